//! What nodes say to each other about a transaction that was held up.

use std::sync::Arc;

use tyr_types::{NodeId, Timestamp, Transaction, TransactionId};

use crate::abort::Abort;
use crate::chain::{Chain, Ends};
use crate::commit::Attempt;

/// What a node knows of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Nothing that counts: it has not validated it, or not durably.
    Nothing,
    /// It has validated it, durably, and not heard what became of it.
    Validated {
        /// In this attempt.
        attempt: Attempt,
        /// The timestamp it proposed, above those of all nodes before it.
        proposal: Timestamp,
        /// The chain of that attempt.
        chain: Chain,
    },
    /// It is committed.
    Committed {
        /// At this timestamp.
        at: Timestamp,
        /// Where its blobs were taken to end in the chain over which it was decided: another guess
        /// would give other chunks.
        ends: Ends,
    },
    /// It is aborted.
    Aborted(Abort),
    /// It began so long ago that this node may have forgotten what became of it (F11).
    Forgotten,
}

/// What nodes say to each other about a transaction that was held up.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// To the first live node of its chain: find out what became of it (F6).
    Ask {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain, as far as the sender knows.
        chain: Chain,
        /// The cluster's clock when the client first submitted it.
        begun: Timestamp,
    },
    /// What do you know? Whoever answers takes part in no older attempt any more (F2).
    Query {
        /// The transaction.
        id: TransactionId,
        /// The attempt that may follow.
        attempt: Attempt,
        /// The cluster's clock when the client first submitted it.
        begun: Timestamp,
    },
    /// The answer to a query.
    Report {
        /// The transaction.
        id: TransactionId,
        /// The attempt of the query.
        attempt: Attempt,
        /// Who answers.
        from: NodeId,
        /// What it knows.
        known: Known,
    },
    /// The answer to a query that comes too late: a newer attempt was promised to. Who coordinates
    /// tries a yet newer one when its turn comes, or would never be heard.
    Behind {
        /// The transaction.
        id: TransactionId,
        /// The attempt of the query.
        attempt: Attempt,
        /// The attempt promised to.
        promised: Attempt,
    },
    /// Nobody knows of a decision: what older attempts validated is withdrawn (F3).
    Clear {
        /// The transaction.
        id: TransactionId,
        /// The attempt that follows.
        attempt: Attempt,
    },
    /// It is aborted (F3): to be made durable, and then said to the coordinator (F9).
    Abort {
        /// The transaction.
        id: TransactionId,
        /// The attempt of the query.
        attempt: Attempt,
        /// Why.
        abort: Abort,
    },
    /// The abort is durable (F9).
    Aborted {
        /// The transaction.
        id: TransactionId,
        /// The attempt in which that was asked.
        attempt: Attempt,
        /// Who says so.
        from: NodeId,
    },
}
