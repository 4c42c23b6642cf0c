//! What a node writes to its log, and reads again when it restarts.
//!
//! The log is the order of what a node promised: a record is durable before the promise is given,
//! and all before it are durable too.

use std::sync::Arc;

use tyr_types::{BlobName, Timestamp, Transaction, TransactionId};

use crate::abort::Abort;
use crate::chain::Chain;
use crate::commit::{Attempt, Placements, Remembered};
use crate::map::ClusterMap;
use crate::movement::ChunkCopy;

/// A record of a node's log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The node goes by this map from here on.
    Map(Arc<ClusterMap>),
    /// A transaction is validated here (C3).
    Validated {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// The attempt it was validated in.
        attempt: Attempt,
        /// When that attempt began.
        begun: Timestamp,
        /// The timestamp proposed here.
        proposal: Timestamp,
        /// Appends whose offset is settled.
        placed: Placements,
    },
    /// The node takes part in no older attempt any more (F2).
    Fenced {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Whether what older attempts had validated is withdrawn.
        is_cleared: bool,
    },
    /// A transaction is committed, and was applied here at this place of the log.
    Decided {
        /// The transaction.
        id: TransactionId,
        /// Its timestamp.
        at: Timestamp,
    },
    /// A transaction is aborted.
    Aborted {
        /// The transaction.
        id: TransactionId,
        /// Why.
        abort: Abort,
    },
    /// What another node remembers of transactions, told before this one was a holder (F4).
    Recalled {
        /// What became of them.
        outcomes: Vec<Remembered>,
    },
    /// A chunk, or a piece of it, was copied here.
    Installed {
        /// The blob.
        blob: BlobName,
        /// The chunk.
        chunk: u64,
        /// What was copied.
        copy: ChunkCopy,
    },
}
