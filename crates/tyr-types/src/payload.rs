//! The bytes that an operation carries.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::stamped::Stamped;
use crate::uploaded::{PieceRef, Uploaded};

/// Where one piece of a large payload lies on disk; written before the record that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentRef {
    /// Number of the extent file.
    pub file: u32,
    /// Where in the file the extent begins, in bytes; a multiple of the frame size.
    pub position: u64,
    /// Bytes of payload; at most [`EXTENT_LEN_MAX`](crate::limits::EXTENT_LEN_MAX).
    pub len: u32,
    /// Bytes stored, when it is compressed; 0 when it is stored as it is.
    pub compressed_len: u32,
}

/// The bytes that a write or append carries.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// By value.
    Inline(Bytes),
    /// By reference to extents, in order; the payload is their concatenation.
    Extents(Vec<ExtentRef>),
    /// By value, with places that the commit timestamp fills (C10).
    Stamped(Arc<Stamped>),
    /// In pieces that were uploaded ahead of the transaction (U1).
    Uploaded(Arc<Uploaded>),
}

/// Printed with the first few of its bytes.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(bytes) => {
                let first = bytes.slice(..bytes.len().min(8));
                write!(f, "Inline({} bytes: {first:?})", bytes.len())
            }
            Self::Extents(extents) => f.debug_tuple("Extents").field(extents).finish(),
            Self::Stamped(stamped) => {
                write!(f, "Stamped({} bytes at {:?})", stamped.bytes().len(), stamped.places())
            }
            Self::Uploaded(uploaded) => {
                let pieces = uploaded.pieces().len();
                write!(f, "Uploaded({} bytes in {pieces} pieces)", uploaded.len())
            }
        }
    }
}

impl Payload {
    /// Bytes of payload.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Stamped(stamped) => stamped.bytes().len() as u64,
            Self::Extents(extents) => extents.iter().map(|extent| u64::from(extent.len)).sum(),
            Self::Uploaded(uploaded) => uploaded.len(),
        }
    }

    /// Bytes that a transaction with it takes in memory and on its way: of what was uploaded
    /// ahead only the names.
    pub fn carried_len(&self) -> u64 {
        match self {
            Self::Inline(_) | Self::Stamped(_) | Self::Extents(_) => self.len(),
            Self::Uploaded(uploaded) => (uploaded.pieces().len() * size_of::<PieceRef>()) as u64,
        }
    }

    /// Whether it carries no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
