//! Stretches of a blob of which memory has no byte, and knows what is there all the same.

use std::sync::Arc;

use tyr_types::Timestamp;

use super::lease::ExtentLease;

/// A stretch that the base does not have yet.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub end: u64,
    pub version: Timestamp,
    pub content: Unheld,
}

/// What is in a stretch of which memory holds no bytes.
#[derive(Clone, Debug)]
pub(super) enum Unheld {
    /// A part of a large payload: what an extent has after its first `skip` bytes.
    Extent { lease: Arc<ExtentLease>, skip: u32 },
    /// Zeros, whatever the base has there: the stretch was cleared.
    Hole,
}

/// Memory that a piece takes, with its lease.
pub(super) const PIECE_MEMORY: usize = size_of::<Piece>() + size_of::<ExtentLease>();

impl Unheld {
    /// What is in the stretch after its first `len` bytes.
    pub fn after(&self, len: u64) -> Self {
        match self {
            Self::Extent { lease, skip } => {
                Self::Extent { lease: Arc::clone(lease), skip: skip + len as u32 }
            }
            Self::Hole => Self::Hole,
        }
    }
}
