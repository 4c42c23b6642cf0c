//! What the commit machine is told, by its driver and by other nodes.

use std::sync::Arc;

use tyr_types::{Epoch, NodeId, Timestamp, Transaction, TransactionId};

use crate::abort::Abort;
use crate::chain::Chain;

/// Which run of a transaction over its chain a message belongs to.
///
/// A failure in the middle makes the next one (F2, F3); a node answers only to the newest that
/// it knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The epoch in which it began.
    pub epoch: Epoch,
    /// Its number in that epoch, the first being 0.
    pub number: u32,
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It takes effect at this timestamp (C5).
    Commit(Timestamp),
    /// It does not take effect anywhere.
    Abort(Abort),
}

/// What the nodes of a chain say to each other.
#[derive(Clone, Debug)]
pub enum Message {
    /// To the next node: every node so far has validated (C3).
    Forward {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// The attempt.
        attempt: Attempt,
        /// The highest timestamp proposed so far.
        highest: Timestamp,
    },
    /// To the previous node: what was decided, applied from here to the tail (C7).
    Backward {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// What was decided.
        decision: Decision,
    },
    /// From an authority to those that hold the same chunks: it has passed the decision back, so
    /// every replica knows it (R2).
    Stable {
        /// The transaction.
        id: TransactionId,
        /// The authority.
        by: NodeId,
    },
}

/// What the commit machine is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client's transaction, at the head of its chain.
    Submit {
        /// The transaction, checked by [`Transaction::validate`].
        transaction: Arc<Transaction>,
        /// Its chain, of which this node is the head.
        chain: Chain,
    },
    /// A message of another node.
    Receive(Message),
    /// The answer to [`super::Effect::Persist`]: the record is durable.
    Persisted {
        /// The transaction.
        id: TransactionId,
    },
    /// The answer to [`super::Effect::Persist`]: it is not known to be durable.
    PersistFailed {
        /// The transaction.
        id: TransactionId,
    },
    /// The answer to [`super::Effect::Resume`]: everything before it is executed.
    Resume,
}
