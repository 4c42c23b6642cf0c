//! A harness for unit tests: a cluster in memory, of the commit and read machines alone.
//!
//! Compiled for this crate's own tests, and in no other build. It is the smallest world in which
//! the machines talk to each other: nodes that never fail, messages that are never lost but come in
//! any order, clients that read and write at random. What it can show is that the order of events
//! breaks no promise; what comes of faults is `tyr-sim`'s, which runs whole members.
//!
//! [`layout`] says what lies where, [`state`] is what a node has applied, [`workload`] what clients
//! do, [`world`] runs it all from one seed ([`config`] says how), [`checker`] judges what came of
//! it. The tests run many seeds, and show that the checker notices when a rule is taken away. Other
//! modules' tests borrow parts: [`random`], [`state`], the checker.

pub mod checker;
mod config;
pub mod layout;
pub mod random;
pub mod state;
mod tests;
pub mod workload;
mod world;
