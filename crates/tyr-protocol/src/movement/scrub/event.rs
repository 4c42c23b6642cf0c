//! What goes into a scrubber and comes out of it, and how fast it is to be.

use tyr_types::{ByteRange, Bytes, NodeId, Timestamp, TransactionId};

use super::finding::Finding;
use crate::movement::ChunkName;

/// How fast chunks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubConfig {
    /// Bytes of chunks a second that a node compares as their authority; each is read at all
    /// replicas, and comes over the network from all but one. 0: nothing is compared.
    pub rate: u64,
    /// A round begins so long after the one before began, in microseconds; later if that one takes
    /// longer.
    pub every_us: u64,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self { rate: 0, every_us: 24 * 60 * 60 * 1_000_000 }
    }
}

/// What has been compared since the node's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubCounts {
    /// Rounds over all chunks that have ended.
    pub rounds: u64,
    /// Chunks compared.
    pub chunks: u64,
    /// Bytes of them, each counted once for all its replicas.
    pub bytes: u64,
    /// Stretches found that differ, or that a replica could not read.
    pub differing: u64,
    /// Those of them that are the same again, and can be read.
    pub repaired: u64,
    /// Those that could not be repaired; the next round comes by again.
    pub unrepaired: u64,
}

/// What the scrubber is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A holder answers a read.
    Read {
        /// The holder.
        from: NodeId,
        /// The number of the read.
        read: u64,
        /// What it says.
        answer: Answer,
    },
    /// The node goes by another map: perhaps others hold what is being compared.
    Map,
    /// Some time has passed.
    Tick {
        /// The node's clock.
        clock: Timestamp,
        /// Whether there is nothing that matters more: then more is compared.
        is_quiet: bool,
    },
}

/// What a holder says to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has this.
    Holds {
        /// At this timestamp.
        at: Option<Timestamp>,
        /// The bytes, from the start of the stretch; may be short (R7).
        bytes: Bytes,
        /// Of chunk 0: the size, `Some(None)` when the blob is absent.
        size: Option<Option<u64>>,
    },
    /// What it has is damaged.
    Unreadable,
    /// The version at S is gone.
    TooOld,
}

/// What the scrubber asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Have a holder read.
    Ask {
        /// The holder; may be this node.
        to: NodeId,
        /// The number of the read.
        read: u64,
        /// The chunk.
        chunk: ChunkName,
        /// Bytes of it; none to find out whether the chunk can be written.
        range: ByteRange,
        /// At this timestamp.
        at: Timestamp,
    },
    /// Write these bytes where they are, if nothing newer than `at` is there.
    Rewrite {
        /// The transaction's name.
        id: TransactionId,
        /// The chunk.
        chunk: ChunkName,
        /// Where they begin in the blob.
        offset: u64,
        /// What most replicas have there at `at`.
        bytes: Bytes,
        /// When they were read.
        at: Timestamp,
    },
    /// Tell whoever looks after the node.
    Tell(Finding),
}
