//! What the recipient is told.

use tyr_types::{Epoch, NodeId};

use super::copy::{ChunkCopy, ChunkName};

/// What the recipient is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// The node goes by another map.
    Map {
        /// Whether something moves, or the node has returned.
        is_moving: bool,
        /// Whether what was installed counts no more: it is another move, and chains may have gone
        /// without this node in between.
        is_anew: bool,
    },
    /// A chain brought something of this chunk, of which the node is a recipient.
    Heard(ChunkName),
    /// A page of a list.
    Listed {
        /// Who answers.
        from: NodeId,
        /// By the map of this epoch.
        epoch: Epoch,
        /// What was asked.
        after: Option<ChunkName>,
        /// The page.
        chunks: Vec<ChunkName>,
        /// Where to ask on.
        next: Option<ChunkName>,
        /// Whether that was asked for already.
        is_asked: bool,
    },
    /// A page of what a node remembers is taken in, durably.
    Recalled {
        /// Who answered.
        from: NodeId,
        /// By the map of this epoch.
        epoch: Epoch,
        /// What was asked.
        after: u64,
        /// Where to ask on.
        next: Option<u64>,
    },
    /// A copy.
    Copied {
        /// The number of the read.
        read: u64,
        /// The chunk.
        chunk: ChunkName,
        /// The copy.
        copy: ChunkCopy,
    },
    /// A copy is not to be had there, or not at that timestamp any more.
    Refused {
        /// The number of the read.
        read: u64,
    },
    /// The chunk's last piece is durable here; also what the log says after a restart.
    Stored(ChunkName),
    /// Some time has passed.
    Tick,
}
