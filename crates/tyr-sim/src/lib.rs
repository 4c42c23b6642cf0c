//! Týr's simulator: a whole cluster in one thread, from one seed, under every fault.
//!
//! What runs in it is what runs in a node: the machines of `tyr-protocol`. Everything around them
//! is made here, and made to fail: the network, the clocks, the disks, the processes themselves.
//! Time is a number of microseconds that jumps from event to event; chance comes from the seed. So
//! the same seed is the same run, event by event, and a failure found once is found again.
//!
//! ```text
//!   scenario (text) ──► Setup: nodes, faults, workloads ──► world::run ──► Report
//!                                                             │
//!      workload ──calls──► client ──┐                         │ History
//!      workload ◄─answers─ client ◄─┤ network                 ▼
//!                                   │ (delay, loss, ..)    checker: what a user was promised
//!      store, disk, clock ◄─► node ─┤
//!                         monitors ─┘
//! ```
//!
//! Reading order: [`setup`] says what a run is made of, [`fault`] what can go wrong, [`world`] is
//! the run. [`workload`] says what clients do, [`store`] keeps what a node has applied, [`checker`]
//! judges. [`scenario`] composes all this from a few lines of text; [`trial`] runs one, [`sweep`]
//! many, [`shrink`] makes one that fails smaller. [`scale`] stands apart: it counts what a healthy
//! cluster costs.
//!
//! [`explore`] is the other way to go about it: not one run from a seed, but all orders of a few
//! events, of commit machines alone.
//!
//! This crate must not know what the machines think: it looks at their effects, at what clients
//! saw and at what is applied in the end, never into them.

pub mod checker;
pub mod explore;
pub mod fault;
pub mod random;
pub mod report;
pub mod scale;
pub mod scenario;
pub mod setup;
pub mod shrink;
pub mod store;
pub mod sweep;
pub mod trial;
pub mod workload;
pub mod world;

pub use fault::{Fault, FaultPlan};
pub use random::Random;
pub use report::Report;
pub use setup::Setup;
pub use world::run;
