//! A chunk on its way to another node: what it holds at a timestamp, checksummed.

use tyr_types::{BlobName, ByteRange, Bytes, Timestamp};
use xxhash_rust::xxh3::Xxh3;

use crate::map::ClusterMap;

/// A chunk of a blob.
pub type ChunkName = (BlobName, u64);

/// What a transaction left a chunk like, and until the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkVersion {
    /// The transaction that wrote bytes of the chunk last.
    pub version: Timestamp,
    /// The bytes held, from the start of the copied range on; may be short.
    pub bytes: Bytes,
    /// In a copy of chunk 0: the blob's size, `Some(None)` when it is absent.
    pub size: Option<Option<u64>>,
    /// In a copy of chunk 0: the transaction that changed size or existence last.
    pub size_version: Timestamp,
}

/// A chunk, or a piece of it, as it was at a timestamp.
///
/// It holds everything at or below `at`, and nothing above. The versions before the newest are
/// those that a snapshot may still ask for (V3).
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkCopy {
    /// Where it was read.
    pub at: Timestamp,
    /// Bytes of the blob that were copied: the chunk, or a piece of it.
    pub range: ByteRange,
    /// Whether the pieces before it and this one are the whole chunk, or all that there is of it.
    pub is_last: bool,
    /// The versions kept, ascending; a read at `at` sees the last one. Never empty: a chunk that
    /// nobody wrote has one of no bytes at [`Timestamp::ZERO`].
    pub versions: Vec<ChunkVersion>,
    /// [`ChunkCopy::checksum`] of the rest.
    pub checksum: u64,
}

impl ChunkCopy {
    /// A copy of these versions, with its checksum.
    ///
    /// # Panics
    /// When there is no version: also nothing is a version.
    pub fn new(
        at: Timestamp,
        range: ByteRange,
        is_last: bool,
        versions: Vec<ChunkVersion>,
    ) -> Self {
        assert!(!versions.is_empty(), "a copy has the version that a read at its timestamp sees");
        let mut copy = Self { at, range, is_last, versions, checksum: 0 };
        copy.checksum = copy.computed();
        copy
    }

    /// The copy of a chunk that nobody wrote; `is_first` of chunk 0.
    pub fn empty(range: ByteRange, is_first: bool) -> Self {
        let (version, bytes, size_version) = (Timestamp::ZERO, Bytes::new(), Timestamp::ZERO);
        let size = is_first.then_some(None);
        let nothing = ChunkVersion { version, bytes, size, size_version };
        let copy = Self::new(Timestamp::ZERO, range, true, vec![nothing]);
        debug_assert!(copy.is_sound(), "D2: what is not is not taken: {range:?}");
        copy
    }

    /// What a read at `at` sees.
    ///
    /// # Panics
    /// When the copy came from elsewhere and was not [checked](ChunkCopy::is_sound).
    pub fn newest(&self) -> &ChunkVersion {
        self.versions.last().expect("a sound copy has a version")
    }

    /// Whether it is what was sent, and makes sense: what arrives is checked before it is used.
    pub fn is_sound(&self) -> bool {
        let is_ascending = self.versions.is_sorted_by(|left, right| {
            (left.version, left.size_version) != (right.version, right.size_version)
                && left.version <= right.version
                && left.size_version <= right.size_version
        });
        let fits = |version: &ChunkVersion| {
            version.version.max(version.size_version) <= self.at
                && version.bytes.len() as u64 <= self.range.len()
        };
        !self.versions.is_empty()
            && is_ascending
            && self.versions.iter().all(fits)
            && self.checksum == self.computed()
    }

    /// XXH3 over everything but the checksum, each length before what it counts.
    fn computed(&self) -> u64 {
        let mut sum = Xxh3::new();
        update_timestamp(&mut sum, self.at);
        sum.update(&self.range.start.to_le_bytes());
        sum.update(&self.range.end.to_le_bytes());
        sum.update(&[u8::from(self.is_last)]);
        for version in &self.versions {
            update_timestamp(&mut sum, version.version);
            sum.update(&(version.bytes.len() as u64).to_le_bytes());
            sum.update(&version.bytes);
            let (form, size) = match version.size {
                None => (0, 0),
                Some(None) => (1, 0),
                Some(Some(size)) => (2, size),
            };
            sum.update(&[form]);
            sum.update(&size.to_le_bytes());
            update_timestamp(&mut sum, version.size_version);
        }
        sum.digest()
    }
}

fn update_timestamp(sum: &mut Xxh3, at: Timestamp) {
    sum.update(&at.epoch.0.to_le_bytes());
    sum.update(&at.clock.to_le_bytes());
    sum.update(&at.node.to_le_bytes());
}

/// How many bytes of a chunk are asked for at a time, at least 1: a chunk of more comes in pieces
/// at one timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceLengths {
    /// Of the first piece, which for most chunks is all: it is short, so that many can be on their
    /// way at a time.
    pub first: u64,
    /// Of the pieces behind it, with what they were at kept moments (V7).
    pub other: u64,
}

impl Default for PieceLengths {
    fn default() -> Self {
        Self { first: 64 << 10, other: 4 << 20 }
    }
}

impl PieceLengths {
    /// The piece of the chunk that begins `offset` bytes into it; `None` when its keyspace is gone.
    pub(crate) fn piece(
        &self,
        map: &ClusterMap,
        (blob, chunk): &ChunkName,
        offset: u64,
    ) -> Option<ByteRange> {
        let size = map.chunk_size(blob.keyspace)?;
        let begin = chunk.checked_mul(size)?;
        let start = begin.saturating_add(offset.min(size));
        // What it was at kept moments comes with it, and all together is bounded.
        let shared = (self.other / (1 + map.kept.len() as u64)).max(1);
        let len = if offset == 0 { self.first.min(shared) } else { shared };
        debug_assert!(len > 0, "a copy goes on with each piece");
        let end = start.saturating_add(len).min(begin.saturating_add(size));
        Some(ByteRange { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(clock: u64, bytes: &'static [u8]) -> ChunkVersion {
        let version = Timestamp { clock, ..Timestamp::ZERO };
        let bytes = Bytes::from_static(bytes);
        ChunkVersion { version, bytes, size: Some(Some(4)), size_version: Timestamp::ZERO }
    }

    fn copy(versions: Vec<ChunkVersion>) -> ChunkCopy {
        let at = Timestamp { clock: 9, ..Timestamp::ZERO };
        ChunkCopy::new(at, ByteRange { start: 0, end: 8 }, true, versions)
    }

    #[test]
    fn a_copy_that_changed_on_its_way_is_not_sound() {
        let good = copy(vec![version(3, b"abcd"), version(9, b"abcx")]);
        assert!(good.is_sound());
        let mut bad = good.clone();
        bad.versions[0].bytes = Bytes::from_static(b"abce");
        assert!(!bad.is_sound());
        let mut bad = good.clone();
        bad.versions[1].size = Some(None);
        assert!(!bad.is_sound());
        let mut bad = good;
        bad.is_last = false;
        assert!(!bad.is_sound());
    }

    #[test]
    fn a_copy_with_versions_out_of_order_or_above_its_timestamp_is_not_sound() {
        assert!(!copy(vec![version(3, b"b"), version(2, b"a")]).is_sound());
        assert!(!copy(vec![version(3, b"b"), version(3, b"a")]).is_sound());
        assert!(!copy(vec![version(10, b"b")]).is_sound());
        assert!(!copy(vec![version(1, b"more than 8 bytes")]).is_sound());
    }
}
