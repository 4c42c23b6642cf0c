//! Tests of leases.

mod grants;
mod holder;
mod levels;
mod loss;
mod monitors;
mod returns;
mod safety;
mod takeovers;
mod world;
