//! The header of a directory's shard: the directory's record, and in its body where the directory
//! lies, what is counted, and the fence.
//!
//! ```text
//! 128  parent u64 · length of the name u8 · name, 255 bytes
//! 448  entries i64 · subdirectories i64
//! 480  fence: is alive u8 · depth u8 · salt u8 · 5 bytes of zeros
//! ```
//!
//! Who adds a name compares the fence and adds to the counters: neither reads, and many do it at
//! once. A header that is gone fails the comparison. Depth and salt are zero: one shard has the
//! whole directory.

use super::key::ROOT;
use super::name::{NAME_LEN_MAX, Name};
use super::record::{BODY_AT, Kind, Record};
use crate::error::{Error, Result};

/// Where the directory lies: parent and name together.
pub const PLACE_AT: u64 = BODY_AT as u64;
/// Bytes of the parent and the name.
pub const PLACE_LEN: usize = 8 + 1 + NAME_LEN_MAX;
/// Bytes of the parent alone.
pub const PARENT_LEN: usize = 8;
/// Where the number of names is, `i64`.
pub const ENTRIES_AT: u64 = 448;
/// Where the number of directories among them is, `i64`.
pub const SUBDIRECTORIES_AT: u64 = 456;
/// Where the fence is.
pub const FENCE_AT: u64 = 480;
/// The fence of a directory with one shard.
pub const FENCE: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];

/// Where a directory lies. The root lies in itself, and has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPlace {
    /// The number of the directory that it is in.
    pub parent: u64,
    /// Its name there.
    pub name: Option<Name>,
}

impl DirectoryPlace {
    /// The root's.
    pub const ROOT: Self = Self { parent: ROOT, name: None };

    /// Its bytes.
    pub fn encode(&self) -> [u8; PLACE_LEN] {
        let name = self.name.as_ref().map(Name::as_bytes).unwrap_or_default();
        let mut bytes = [0; PLACE_LEN];
        bytes[..PARENT_LEN].copy_from_slice(&self.parent.to_le_bytes());
        bytes[PARENT_LEN] = u8::try_from(name.len()).expect("a name has at most 255 bytes");
        bytes[PARENT_LEN + 1..][..name.len()].copy_from_slice(name);
        bytes
    }
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is known of it as a file.
    pub record: Record,
    /// Where it lies.
    pub place: DirectoryPlace,
    /// Names in it.
    pub entries: i64,
    /// Directories among them.
    pub subdirectories: i64,
}

impl Header {
    /// An empty directory.
    pub fn new(record: Record, place: DirectoryPlace) -> Self {
        Self { record, place, entries: 0, subdirectories: 0 }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; super::record::RECORD_LEN] {
        let mut bytes = self.record.encode();
        bytes[BODY_AT..].fill(0);
        bytes[BODY_AT..][..PLACE_LEN].copy_from_slice(&self.place.encode());
        bytes[ENTRIES_AT as usize..][..8].copy_from_slice(&self.entries.to_le_bytes());
        bytes[SUBDIRECTORIES_AT as usize..][..8]
            .copy_from_slice(&self.subdirectories.to_le_bytes());
        bytes[FENCE_AT as usize..][..8].copy_from_slice(&FENCE);
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// `EIO` for what is none; the text says what is wrong, but not where.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let record = Record::decode(from)?;
        if record.identity.kind != Kind::Directory {
            let text = format!("a {} stands where a directory should", record.identity.kind.name());
            return Err(Error::damaged(text));
        }
        let body = &record.body[..];
        let number = |at: usize| {
            let bytes = body[at - BODY_AT..][..8].try_into().expect("eight bytes");
            i64::from_le_bytes(bytes)
        };
        let fence = &body[FENCE_AT as usize - BODY_AT..][..8];
        if *fence != FENCE {
            return Err(Error::damaged(format!("its fence is {}", fence.escape_ascii())));
        }
        let parent = number(PLACE_AT as usize).cast_unsigned();
        let len = usize::from(body[PARENT_LEN]);
        let name = match (len, record.identity.number) {
            (0, ROOT) => None,
            _ => Some(Name::new(&body[PARENT_LEN + 1..][..len])?),
        };
        let (entries, subdirectories) =
            (number(ENTRIES_AT as usize), number(SUBDIRECTORIES_AT as usize));
        if !(0..=entries).contains(&subdirectories) {
            let text =
                format!("it counts {entries} names, {subdirectories} directories among them");
            return Err(Error::damaged(text));
        }
        let place = DirectoryPlace { parent, name };
        Ok(Self { record, place, entries, subdirectories })
    }
}
