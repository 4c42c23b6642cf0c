//! What the read machine is told.

use tyr_types::{BlobName, KeyRange, KeyspaceId, NodeId, Timestamp, TransactionId};

use crate::footprint::Footprint;

/// A read, by the number its driver gave it; no two that wait at a node have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// How a read is to be placed among the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The newest of one chunk, outside a transaction (R1).
    Direct,
    /// A copy of a chunk for another node (D2): at this node's clock after what was in flight on
    /// arrival is applied.
    Whole,
    /// The first read of a blob in a transaction, or of several chunks (R3), or of a snapshot (R6):
    /// at this node's clock on arrival.
    First,
    /// At this timestamp: what follows one of the two before (R4, R5, R6).
    At(Timestamp),
    /// Only the clock, for a snapshot over blobs named up front (R6).
    Clock,
    /// At this timestamp, like `At`; but what is told is which of the bytes are written
    /// ([`super::layout`]), in the place of the bytes.
    Layout(Timestamp),
}

impl Kind {
    /// The timestamp that it is asked at.
    pub fn at(self) -> Option<Timestamp> {
        match self {
            Self::At(at) | Self::Layout(at) => Some(at),
            Self::Direct | Self::Whole | Self::First | Self::Clock => None,
        }
    }

    /// Whether it shows what there was at one timestamp, instead of the newest.
    pub(super) fn is_at_a_timestamp(self) -> bool {
        match self {
            Self::First | Self::At(_) | Self::Layout(_) => true,
            Self::Direct | Self::Whole | Self::Clock => false,
        }
    }
}

/// A read as it arrives at a node that holds what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub id: ReadId,
    /// The blob.
    pub blob: BlobName,
    /// What it wants: a range of one chunk, the attributes, or both; [`Footprint::BLOB`] with
    /// [`Kind::Whole`].
    pub footprint: Footprint,
    /// The authority of what it wants.
    pub authority: NodeId,
    /// How it is placed.
    pub kind: Kind,
}

/// A listing as it arrives at a node: of the blobs that it is the authority of (Q1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its number, among those of reads.
    pub id: ReadId,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// The keys that are listed.
    pub keys: KeyRange,
    /// Its moment; `None` for the newest, after what was in flight on arrival is applied.
    pub at: Option<Timestamp>,
}

/// What the read machine is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A read, from a client or forwarded.
    Ask(Request),
    /// A listing, from a client.
    List(Listing),
    /// The commit machine's effect of the same name.
    Moved {
        /// The transaction.
        transaction: TransactionId,
    },
    /// Nobody waits for this read any more.
    Cancel {
        /// The read.
        id: ReadId,
    },
}
