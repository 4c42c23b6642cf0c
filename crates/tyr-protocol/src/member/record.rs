//! What a node writes to its log, and reads again when it restarts.
//!
//! The log is the order of what a node promised: a record is durable before the promise is given,
//! and all before it are durable too. What is needed of it when it is cut is a
//! [checkpoint](super::checkpoint), of records too.

use std::sync::Arc;

use tyr_types::{BlobName, PieceContent, PieceId, Timestamp, Transaction, TransactionId};

use crate::abort::Abort;
use crate::chain::Chain;
use crate::commit::{Attempt, Kept, Marked, Outcomes, Placements, Remembered};
use crate::map::ClusterMap;
use crate::movement::ChunkCopy;
use crate::upload::StagedPiece;

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
    /// What the operations of a transaction answered here when it was applied, if they did: the
    /// base may have more in it when the log is read again, and could not tell any more (F4).
    Answered {
        /// The transaction.
        id: TransactionId,
        /// The answers.
        outcomes: Outcomes,
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
    /// Of what was decided before this place of the log, all but these is finished with: stable
    /// wherever it is held, so that nobody has to be asked about it again (R2).
    Finished {
        /// Those that are not.
        but: Vec<TransactionId>,
    },
    /// Of a checkpoint: a page of what this node remembered itself (F2, F4).
    Remembered {
        /// In the order they were noted.
        entries: Vec<Kept>,
    },
    /// The same, of which nobody else may remember some: there are keyspaces of one replica.
    Marked {
        /// In the order they were noted.
        entries: Vec<Marked>,
    },
    /// Of a checkpoint: what the node was like when the log was cut.
    Standing {
        /// The map it went by.
        map: Option<Arc<ClusterMap>>,
        /// Whether it still had what it promised under earlier maps.
        has_disk: bool,
        /// Its clock.
        clock: Timestamp,
        /// Attempts that began at or before this clock may be forgotten.
        floor: u64,
    },
    /// A piece was staged here ahead of its transaction, or its time began anew (U1, U2).
    Staged {
        /// The piece.
        staged: StagedPiece,
        /// Until which clock it is promised, in microseconds.
        until_us: u64,
        /// What is in it; in the log of a node with extents, where that lies.
        content: PieceContent,
    },
    /// These pieces are gone without a transaction: dropped by their client, or late (U2).
    Unstaged {
        /// Which.
        ids: Vec<PieceId>,
    },
    /// The node was declared down, and has all that was committed up to this moment of the chunks
    /// that it has: the map that says so follows (D5). In a checkpoint, while it catches up.
    CompleteTo {
        /// The moment.
        at: Timestamp,
    },
    /// Of a checkpoint: a transaction that was applied to a chunk whose base was awaited.
    Aside {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// Its timestamp.
        at: Timestamp,
    },
}

impl Record {
    /// The record of a checkpoint with what there is of a piece, if it is of one.
    pub fn with_content(self, content: impl Fn(PieceId) -> PieceContent) -> Self {
        match self {
            Self::Staged { staged, until_us, content: PieceContent::Elsewhere } => {
                let content = content(staged.piece.id);
                Self::Staged { staged, until_us, content }
            }
            other => other,
        }
    }
}
