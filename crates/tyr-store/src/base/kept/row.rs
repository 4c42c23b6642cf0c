//! The keys and values of kept snapshots in table `meta`, byte for byte
//! (`docs/internals/format.md`, section Base).
//!
//! ```text
//!   "s" name                                   moment
//!   "h" moment                                 bytes held:u64  blobs:u64
//!   "a" moment keyspace:u32 key                the blob's entry then, as in `blobs`
//!   "b" moment (as in `segments`)              bytes, an extent's, or a hole
//! ```

use bytes::Bytes;
use tyr_types::{BlobName, ByteRange, KeptName, KeyspaceId, Timestamp};

use super::super::key::{self, SegmentKeys, TIMESTAMP_LEN};
use super::super::record;
use super::super::types::PieceData;

/// What is held of some bytes of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::base) enum HeldPiece {
    /// Bytes that were written.
    Written(PieceData),
    /// So many bytes of a hole.
    Hole(u64),
}

/// A hole, among the codes of segments.
const HOLE: u8 = 2;

impl HeldPiece {
    /// The number of bytes of the blob.
    pub fn len(&self) -> u64 {
        match self {
            Self::Written(piece) => piece.len(),
            Self::Hole(len) => *len,
        }
    }

    /// The bytes of the blob, from where it begins.
    pub fn covered(&self, offset: u64) -> ByteRange {
        ByteRange { start: offset, end: offset + self.len() }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Written(piece) => record::encode_segment(piece),
            Self::Hole(len) => [&[HOLE], len.to_le_bytes().as_slice()].concat(),
        }
    }

    /// What these bytes are, at a place in a blob.
    pub fn decode(offset: u64, value: &Bytes) -> Option<Self> {
        let piece = match value.split_first() {
            Some((&HOLE, len)) => Self::Hole(u64::from_le_bytes(len.try_into().ok()?)),
            Some(_) | None => Self::Written(record::decode_segment(value)?),
        };
        let is_possible = piece.len() > 0 && ByteRange::at(offset, piece.len()).is_ok();
        is_possible.then_some(piece)
    }

    /// Bytes that it takes, with its key and the payload of its extent.
    pub fn cost(&self, key_len: usize) -> u64 {
        let payload = match self {
            Self::Written(piece) => piece.len(),
            Self::Hole(_) => 0,
        };
        key_len as u64 + payload
    }
}

/// How much is held for a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::base) struct Held {
    /// Bytes of keys, entries and payloads.
    pub bytes: u64,
    /// Blobs of which something is held.
    pub blobs: u64,
}

impl Held {
    pub fn encode(self) -> Vec<u8> {
        [self.bytes.to_le_bytes(), self.blobs.to_le_bytes()].concat()
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let (bytes, blobs) = value.split_first_chunk()?;
        let blobs = blobs.try_into().ok()?;
        Some(Self { bytes: u64::from_le_bytes(*bytes), blobs: u64::from_le_bytes(blobs) })
    }
}

/// The key of a kept snapshot.
pub(super) fn name(name: &KeptName) -> Vec<u8> {
    [key::KEPT, name.as_str().as_bytes()].concat()
}

/// The name in such a key.
pub(super) fn name_of(key: &[u8]) -> Option<KeptName> {
    let name = key.strip_prefix(key::KEPT)?;
    KeptName::new(std::str::from_utf8(name).ok()?).ok()
}

pub(super) fn encode_moment(at: Timestamp) -> Vec<u8> {
    key::timestamp(at).to_vec()
}

pub(super) fn decode_moment(value: &[u8]) -> Option<Timestamp> {
    value.try_into().ok().map(key::timestamp_from)
}

/// The key of how much is held for a moment.
pub(in crate::base) fn held(at: Timestamp) -> Vec<u8> {
    [key::HELD, &key::timestamp(at)].concat()
}

/// The moment in such a key.
pub(super) fn held_moment(key: &[u8]) -> Option<Timestamp> {
    decode_moment(key.strip_prefix(key::HELD)?)
}

/// A place among the entries that are held for a moment.
pub(super) fn entries(at: Timestamp, keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    [key::HELD_ENTRY, &key::timestamp(at), &key::in_blobs(keyspace, key)].concat()
}

/// The key of a blob's entry that is held for a moment.
pub(super) fn entry(at: Timestamp, blob: &BlobName) -> Vec<u8> {
    entries(at, blob.keyspace, blob.key.as_bytes())
}

/// Where the entries begin that are held for a moment.
pub(super) fn all_entries(at: Timestamp) -> Vec<u8> {
    [key::HELD_ENTRY, &key::timestamp(at)].concat()
}

/// Moment and blob of an entry's key.
pub(super) fn entry_parts(key: &[u8]) -> Option<(Timestamp, BlobName)> {
    let (at, blob) = parts(key::HELD_ENTRY, key)?;
    Some((at, key::blob_name(blob)?))
}

/// Moment, blob and offset of the key of a piece.
pub(super) fn piece_parts(key: &[u8]) -> Option<(Timestamp, BlobName, u64)> {
    let (at, segment) = parts(key::HELD_PIECE, key)?;
    let (blob, offset) = key::segment(segment)?;
    Some((at, blob, offset))
}

fn parts<'a>(prefix: &[u8], key: &'a [u8]) -> Option<(Timestamp, &'a [u8])> {
    let (at, rest) = key.strip_prefix(prefix)?.split_first_chunk::<TIMESTAMP_LEN>()?;
    Some((key::timestamp_from(at), rest))
}

/// The keys of what is held of a blob's bytes for a moment.
pub(super) struct PieceKeys {
    prefix: Vec<u8>,
    segments: SegmentKeys,
}

impl PieceKeys {
    pub fn new(at: Timestamp, blob: &BlobName) -> Self {
        let prefix = [key::HELD_PIECE, &key::timestamp(at)].concat();
        Self { prefix, segments: SegmentKeys::new(blob) }
    }

    /// The key of what is held from `offset` on.
    pub fn at(&self, offset: u64) -> Vec<u8> {
        [self.prefix.as_slice(), &self.segments.at(offset)].concat()
    }

    /// The offset in such a key.
    pub fn offset(&self, key: &[u8]) -> Option<u64> {
        self.segments.offset(key.strip_prefix(self.prefix.as_slice())?)
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::{Epoch, ExtentRef, Key};

    use super::*;

    #[test]
    fn keys_and_values_read_back() {
        let at = Timestamp { epoch: Epoch(1), clock: 1 << 40, node: 3 };
        let blob = BlobName { keyspace: KeyspaceId(7), key: Key::new([0, 1, 0]).unwrap() };
        let keys = PieceKeys::new(at, &blob);
        assert_eq!(piece_parts(&keys.at(5)), Some((at, blob.clone(), 5)));
        assert_eq!(keys.offset(&keys.at(5)), Some(5));
        assert_eq!(entry_parts(&entry(at, &blob)), Some((at, blob)));
        let kept = KeptName::new("before").unwrap();
        assert_eq!(name_of(&name(&kept)), Some(kept));
        assert_eq!(held_moment(&held(at)), Some(at));
        assert_eq!(decode_moment(&encode_moment(at)), Some(at));
        let held = Held { bytes: 1 << 33, blobs: 2 };
        assert_eq!(Held::decode(&held.encode()), Some(held));
        let extent = ExtentRef { file: 1, position: 4096, len: 100, compressed_len: 0 };
        let bytes = Bytes::from_static(b"x");
        for piece in [
            HeldPiece::Hole(1 << 40),
            HeldPiece::Written(PieceData::Bytes(bytes)),
            HeldPiece::Written(PieceData::Extent { extent, skip: 3, len: 5 }),
        ] {
            assert_eq!(HeldPiece::decode(9, &piece.encode().into()), Some(piece));
        }
        for wrong in [&[HOLE][..], &[HOLE, 0, 0, 0, 0, 0, 0, 0, 0], &[HOLE; 9], &[9], &[]] {
            assert_eq!(HeldPiece::decode(u64::MAX / 2, &Bytes::copy_from_slice(wrong)), None);
        }
    }
}
