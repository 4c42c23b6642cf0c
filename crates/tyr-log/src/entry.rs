//! An entry, as readers get it.

use tyr::{Bytes, Timestamp};

use crate::position::Position;

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub position: Position,
    /// The commit timestamp of its transaction: entries of all partitions are in this order. Those
    /// of one transaction have the same, in all logs that it appended to.
    pub stamp: Timestamp,
    /// Of a strict log: how many entries came before it. `None` in other logs, and where the
    /// reader began at a cut that does not say its number.
    pub number: Option<u64>,
    /// What was appended.
    pub data: Bytes,
}
