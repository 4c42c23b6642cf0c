//! Týr's protocols as pure machines: commit, reads, versions.
//!
//! A machine is fed events and answers effects. It has no clock, socket, disk, thread or random
//! source: the driver in the node above passes the time in, executes the effects in order and
//! feeds what comes of them back. A simulator does the same under faults, so that what is tested
//! is what runs. An embedded store is a cluster of one: the same machines, with a chain of one.
//!
//! ```text
//!        Event                                             Effect
//!   client, wire, log ──►  commit::Commit  (C1..C8)  ──►  Send, Persist, Apply, Reply
//!                               ▲ asks what is in flight
//!   client, wire      ──►  read::Reads     (R1..R7)  ──►  Serve, Forward, AnswerClock
//!
//!                          versions        (V1..V4)       what may go, and what not yet
//! ```
//!
//! Reading order: [`chain`] says which nodes a transaction passes and what each holds of it,
//! [`footprint`] what an operation touches, [`view`] what a machine may ask of the applied state.
//! Then the three protocols: [`commit`], [`read`], [`versions`]. Each page of `docs/internals` of
//! the same name states the rules in full.
//!
//! What travels is written as [`wire`] says; no machine knows of it.
//!
//! This crate must not know how anything is stored.

pub mod abort;
pub mod chain;
pub mod commit;
pub mod footprint;
pub mod lease;
pub mod map;
pub mod member;
pub mod message;
pub mod movement;
pub mod read;
pub mod recovery;
pub mod session;
pub mod versions;
pub mod view;
pub mod wire;

mod rule;

#[cfg(test)]
mod cluster;

pub use abort::Abort;
pub use chain::{Chain, Ends, Hop, Part, Piece};
pub use commit::Commit;
pub use footprint::Footprint;
pub use read::Reads;
#[cfg(feature = "broken-rules")]
pub use rule::Rule;
pub use versions::SnapshotTable;
pub use view::View;
