//! The metadata under Raft: several monitors that have the same store, and lose nothing.
//!
//! Raft itself is the library's ([0001](../../../../../docs/decisions/0001-dependencies.md)); here
//! is what it stands on.
//!
//! ```text
//!   Raft ──► log: entries and vote ──► journal (segments), ballot (two slots)
//!     │
//!     └────► machine: the metadata ──► snapshot (one file)
//! ```
//!
//! Reading order: [`types`]; [`journal`], [`ballot`] and [`snapshot`] are the files; [`log`] and
//! [`machine`] are what Raft asks for; [`network`] carries its messages, [`succession`] is how a
//! leader that stops is followed.
//!
//! Only this folder, [`super::monitor`] and what is beside it know the library.

pub mod ballot;
pub mod journal;
pub mod log;
pub mod machine;
pub mod network;
pub mod snapshot;
pub mod succession;
pub mod types;

#[cfg(test)]
mod tests;
