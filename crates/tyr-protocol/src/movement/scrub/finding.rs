//! What a scrubber has found, for whoever looks after the node.

use std::fmt;

use tyr_types::{ByteRange, NodeId};

use crate::movement::ChunkName;

/// What a scrubber has found in some bytes of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The chunk.
    pub chunk: ChunkName,
    /// The bytes, counted in the blob.
    pub range: ByteRange,
    /// What is the matter with them.
    pub what: What,
    /// At these nodes; at none in particular when there are none.
    pub nodes: Vec<NodeId>,
}

/// What is the matter with some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// They are not what most replicas have.
    Differs,
    /// They cannot be read, because what is stored is damaged.
    Unreadable,
    /// Replicas do not agree on how large the blob is.
    Size,
    /// They were written anew, and are the same everywhere.
    Repaired,
    /// They could not be put right; the next round tries again.
    Unrepaired,
    /// No replica can read them.
    Lost,
}

impl What {
    /// Whether all is well with it now.
    pub fn is_well(self) -> bool {
        match self {
            Self::Repaired => true,
            Self::Differs | Self::Unreadable | Self::Size | Self::Unrepaired | Self::Lost => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Differs => "are not what most replicas have",
            What::Unreadable => "are damaged and cannot be read",
            What::Size => "are of a blob whose size the replicas do not agree on",
            What::Repaired => "were written anew and are the same at all replicas",
            What::Unrepaired => "could not be put right; the next round tries again",
            What::Lost => "cannot be read at any replica",
        };
        let ((blob, chunk), ByteRange { start, end }) = (&self.chunk, self.range);
        write!(f, "{blob}: bytes {start} to {end} in chunk {chunk} {what}")?;
        for (place, node) in self.nodes.iter().enumerate() {
            f.write_str(if place == 0 { "; at node " } else { ", " })?;
            write!(f, "{}", node.0)?;
        }
        Ok(())
    }
}
