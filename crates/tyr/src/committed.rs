//! What a committed transaction answers.

use tyr_runtime::ticket;
use tyr_types::{Number, OperationId, Outcome, Timestamp};

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
        self.committed.outcomes.get(place_of(id, &self.shape)?).copied()
    }
}

/// Where an outcome lies among all, given the operations per blob.
fn place_of(id: OperationId, shape: &[u32]) -> Option<usize> {
    let blob = id.blob as usize;
    if *shape.get(blob)? <= id.operation {
        return None;
    }
    let before: u32 = shape[..blob].iter().sum();
    Some((before + id.operation) as usize)
}
