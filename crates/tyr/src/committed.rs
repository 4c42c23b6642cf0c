//! What a committed transaction answers.

use tyr_runtime::ticket;
use tyr_types::{Number, Outcome, Timestamp};

use crate::pending::OperationId;

/// What a committed transaction answers: its version, and the outcome of each operation.
#[derive(Clone, Debug)]
pub struct Committed {
    committed: ticket::Committed,
    shape: Vec<u32>,
}

impl Committed {
    pub(crate) fn new(committed: ticket::Committed, shape: Vec<u32>) -> Self {
        Self { committed, shape }
    }

    /// The version of everything the transaction wrote.
    pub fn version(&self) -> Timestamp {
        self.committed.at
    }

    /// The offset that an append got; `None` for another operation.
    pub fn offset(&self, id: OperationId) -> Option<u64> {
        match self.outcome(id)? {
            Outcome::Offset(offset) => Some(offset),
            Outcome::Done | Outcome::Value(_) | Outcome::Existed(_) => None,
        }
    }

    /// The new value after arithmetic in place; `None` for another operation.
    pub fn value(&self, id: OperationId) -> Option<Number> {
        match self.outcome(id)? {
            Outcome::Value(value) => Some(value),
            Outcome::Done | Outcome::Offset(_) | Outcome::Existed(_) => None,
        }
    }

    /// Whether there was a blob to delete; `None` for another operation.
    pub fn existed(&self, id: OperationId) -> Option<bool> {
        match self.outcome(id)? {
            Outcome::Existed(existed) => Some(existed),
            Outcome::Done | Outcome::Offset(_) | Outcome::Value(_) => None,
        }
    }

    fn outcome(&self, id: OperationId) -> Option<Outcome> {
        self.committed.outcomes.get(id.index(&self.shape)?).copied()
    }
}
