//! What the recipient asks for.

use tyr_types::{ByteRange, NodeId};

use super::copy::{ChunkCopy, ChunkName};
use crate::read::Kind;

/// What the recipient asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask for a page of the list.
    List {
        /// Whom.
        to: NodeId,
        /// After which.
        after: Option<ChunkName>,
    },
    /// Ask for a page of what became of transactions.
    Recall {
        /// Whom.
        to: NodeId,
        /// After this clock of theirs.
        after: u64,
    },
    /// Ask for a copy.
    Ask {
        /// Whom: the authority.
        to: NodeId,
        /// The number of the read.
        read: u64,
        /// The chunk.
        chunk: ChunkName,
        /// Bytes of it.
        range: ByteRange,
        /// The first piece as it is, the others at the timestamp of the first.
        kind: Kind,
    },
    /// Install what came, make it durable, and say so with [`super::Event::Stored`] if it is the
    /// last.
    Install {
        /// The chunk.
        chunk: ChunkName,
        /// What came.
        copy: ChunkCopy,
    },
    /// Everything is here: tell the monitors.
    CaughtUp,
}
