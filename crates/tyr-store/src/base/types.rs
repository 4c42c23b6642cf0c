//! What the base is asked and answers.

use tyr_types::{BlobName, ByteRange, Bytes, ExtentRef, Timestamp};

use crate::pages::PageRun;

/// A blob as the base knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobBase {
    /// Whether there is such a blob. If not, it was deleted, and the entry stays only until the
    /// log holds no older operation of it.
    pub exists: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The timestamp of the last transaction that wrote it.
    pub version: Timestamp,
    /// Every operation up to here is in the base; a replay of the log skips those.
    pub folded_at: Timestamp,
    /// The content of a small blob: `size` bytes, or fewer when the rest is zeros. `None`: it is
    /// in segments.
    pub content: Option<Bytes>,
    /// What of it is as of later than all else here, if a fold under way takes it in parts.
    pub ahead: Option<Ahead>,
}

/// How far a fold is that takes a blob in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The bytes before this offset are in the base as of the fold's moment. No operation up to
    /// then that the base has only there wrote on both sides of it.
    pub below: u64,
    /// The fold's moment.
    pub at: Timestamp,
}

/// Where new bytes of a blob come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PieceData {
    /// By value.
    Bytes(Bytes),
    /// In an extent, which the base owns from now on.
    Extent {
        /// Which. It is synced before the base refers to it.
        extent: ExtentRef,
        /// Bytes of its payload before those meant.
        skip: u32,
        /// How many bytes are meant.
        len: u32,
    },
    /// In pages, which the base wrote: nobody else hands them in.
    Pages(PageRun),
}

impl PieceData {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Extent { len, .. } => u64::from(*len),
            Self::Pages(run) => run.len(),
        }
    }

    /// Whether the bytes `from..to` of it can stand for themselves: of pages only whole ones.
    pub(super) fn is_divisible(&self, from: u64, to: u64) -> bool {
        match self {
            Self::Bytes(_) | Self::Extent { .. } => true,
            Self::Pages(run) => run.is_whole(from, to),
        }
    }

    /// The bytes `from..to` of it, if it [is divisible](Self::is_divisible) so.
    pub(super) fn slice(&self, from: u64, to: u64) -> Self {
        assert!(from < to && to <= self.len(), "{from}..{to} of {} bytes", self.len());
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.slice(from as usize..to as usize)),
            Self::Extent { extent, skip, .. } => {
                Self::Extent { extent: *extent, skip: skip + from as u32, len: (to - from) as u32 }
            }
            Self::Pages(run) => Self::Pages(run.slice(from, to)),
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a fold changes of one blob, or of a part of it. It takes effect entirely or not at all.
#[derive(Clone, Debug)]
pub struct BlobChange {
    /// The blob.
    pub blob: BlobName,
    /// Whether it exists afterwards. If not, everything of it goes, and `cut` and `pieces` are
    /// not looked at, except that extents in `pieces` die.
    pub exists: bool,
    /// Its size afterwards. What the base holds beyond goes, as by `cut`.
    pub size: u64,
    /// The timestamp of the last transaction that wrote it.
    pub version: Timestamp,
    /// All operations up to here are in the base afterwards. It grows with every fold of a blob.
    pub folded_at: Timestamp,
    /// Everything that the base held from this offset on is gone before the pieces go in.
    pub cut: Option<u64>,
    /// What the base held here is gone before the pieces go in: disjoint from them and from each
    /// other, in any order, within `size`.
    pub holes: Vec<ByteRange>,
    /// New bytes at offsets: disjoint, in any order, within `size`.
    pub pieces: Vec<(u64, PieceData)>,
    /// Of a part that is not the last: where it ends, within the blob as the base has it. All
    /// pieces lie before that, nothing is cut or cleared, and what else is said of the blob
    /// afterwards comes with the last part.
    pub part: Option<u64>,
}

/// From where on the log is still needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Log records below this sequence are not needed.
    pub sequence: u64,
    /// Every record that is still needed has a timestamp above this one.
    pub timestamp: Timestamp,
}

/// How much the base holds of a keyspace. Operations not yet folded are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blobs that exist.
    pub blobs: u64,
    /// The sum of their sizes, holes included.
    pub bytes: u64,
}
