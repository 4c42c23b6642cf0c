//! What Raft is told about: its commands, their answers, and who its members are.

use std::io::Cursor;

use serde::{Deserialize, Serialize};

use tyr_control::refusal::Refusal;
use tyr_metadata::{Actor, Transaction};

/// A transaction on the metadata, and who asks for it: rights are checked where it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Who asks.
    pub actor: Actor,
    /// What for.
    pub transaction: Transaction,
}

/// What came of an entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Nothing was asked: the entry is Raft's own.
    Nothing,
    /// The transaction took effect; the revision of the store.
    Done(u64),
    /// It did not, and why.
    Refused(Refusal),
}

openraft::declare_raft_types!(
    /// The types of the monitors' Raft. A member is known by its node's number, and by an address
    /// for as long as no node has reported a newer one.
    pub TypeConfig:
        D = Command,
        R = Reply,
);

/// An entry of the log.
pub type Entry = openraft::Entry<TypeConfig>;
/// The place of an entry in the log.
pub type LogId = openraft::LogId<u64>;
/// The error of Raft's storage.
pub type StorageError = openraft::StorageError<u64>;
/// Raft itself.
pub type Raft = openraft::Raft<TypeConfig>;
