//! Whole clusters of monitors in one thread, with nodes that do no more than hold leases.
//!
//! Time is tokio's own, paused: it goes on when nobody has anything to do, so that minutes take
//! moments. Elections draw their time-outs at random, as in real life.

mod cluster_log;
mod clusters;
mod formation;
mod network;
mod nodes;
mod presence;
mod safety;
