//! The keys of the index's tables: which bytes stand for which thing, in an order of use.
//!
//! ```text
//!   blobs     keyspace:u32  key
//!   segments  keyspace:u32  key with 00 as 00 FF  00 01  offset:u64
//!   extents   file:u32  position:u64
//!   meta      "format" | "next" | "k" keyspace:u32 | "t" keyspace:u32
//!             "d" file:u32 position:u64 | "g" folded_at keyspace:u32 key | "reclaimed"
//!             "m" path | "version" | "s" name | "h" moment
//!             "a" moment (as in blobs) | "b" moment (as in segments)
//!             "p" file:u32 | "q" batch:u64
//! ```
//!
//! All numbers are big-endian, so that keys order as what they stand for. The escape in `segments`
//! keeps the segments of a blob together and those of different blobs apart: no escaped key is the
//! beginning of another.

pub(super) use tyr_types::scan::behind;
use tyr_types::{BlobName, Epoch, ExtentRef, Key, KeyspaceId, Timestamp, limits};

use crate::index::BATCH_KEY;

/// Bytes of a timestamp in a key or value.
pub(super) const TIMESTAMP_LEN: usize = 14;

/// Version of everything in the index.
pub(super) const FORMAT: &[u8] = b"format";
/// The number of the next keyspace.
pub(super) const NEXT_KEYSPACE: &[u8] = b"next";
/// Extent files below this number hold no leftovers of abandoned uploads.
pub(super) const RECLAIMED: &[u8] = b"reclaimed";
/// Keyspaces, by number.
pub(super) const KEYSPACE: &[u8] = b"k";
/// Totals of keyspaces, by number.
pub(super) const TOTALS: &[u8] = b"t";
/// Extents, and parts of extents, to be given back after the next checkpoint.
pub(super) const DEAD: &[u8] = b"d";
/// Tombstones, by when the log may forget them.
pub(super) const GRAVE: &[u8] = b"g";
/// Service metadata, by path.
pub(super) const METADATA: &[u8] = b"m";
/// The revision of the service metadata.
pub(super) const REVISION: &[u8] = b"version";
/// Kept snapshots, by name.
pub(super) const KEPT: &[u8] = b"s";
/// How much is held for kept moments.
pub(super) const HELD: &[u8] = b"h";
/// Entries of blobs that are held for kept moments.
pub(super) const HELD_ENTRY: &[u8] = b"a";
/// Bytes of blobs that are held for kept moments.
pub(super) const HELD_PIECE: &[u8] = b"b";

/// Page files, by number.
pub(super) const PAGE_FILE: &[u8] = b"p";
/// Pages to be given back after the next checkpoint, by the batch that let go of them.
pub(super) const DEAD_PAGES: &[u8] = b"q";

const _: () = {
    assert!(TIMESTAMP_LEN == size_of::<u32>() + size_of::<u64>() + size_of::<u16>());
    // A scan of one kind of entries must not meet those of another.
    let first = [
        FORMAT,
        NEXT_KEYSPACE,
        RECLAIMED,
        KEYSPACE,
        TOTALS,
        DEAD,
        GRAVE,
        METADATA,
        REVISION,
        KEPT,
        HELD,
        HELD_ENTRY,
        HELD_PIECE,
        PAGE_FILE,
        DEAD_PAGES,
        BATCH_KEY,
    ];
    let mut one = 0;
    while one < first.len() {
        let mut other = one + 1;
        while other < first.len() {
            assert!(
                first[one][0] != first[other][0],
                "kinds of entries differ in their first byte"
            );
            other += 1;
        }
        one += 1;
    }
    // Of a later chunk the key is escaped twice: once in its own, once in those of its segments.
    let chunk_key_len_max = 2 * limits::KEY_LEN_MAX + 2 + 8;
    // The index takes keys of so many bytes.
    let segment_key_len_max = 4 + 2 * chunk_key_len_max + 2 + 8;
    assert!(HELD_PIECE.len() + TIMESTAMP_LEN + segment_key_len_max <= u16::MAX as usize);
    assert!(GRAVE.len() + TIMESTAMP_LEN + 4 + chunk_key_len_max <= u16::MAX as usize);
};

/// A key of `meta` that ends in a number.
pub(super) fn numbered(prefix: &[u8], number: KeyspaceId) -> Vec<u8> {
    [prefix, &number.0.to_be_bytes()].concat()
}

/// The number that a key of `meta` ends in.
pub(super) fn number(prefix: &[u8], key: &[u8]) -> Option<KeyspaceId> {
    let number = key.strip_prefix(prefix)?;
    Some(KeyspaceId(u32::from_be_bytes(number.try_into().ok()?)))
}

/// The key of a blob.
pub(super) fn blob(name: &BlobName) -> Vec<u8> {
    in_blobs(name.keyspace, name.key.as_bytes())
}

/// A place among the keys of blobs.
pub(super) fn in_blobs(keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    [&keyspace.0.to_be_bytes(), key].concat()
}

/// The blob of a key.
pub(super) fn blob_name(key: &[u8]) -> Option<BlobName> {
    let (keyspace, key) = key.split_first_chunk()?;
    let keyspace = KeyspaceId(u32::from_be_bytes(*keyspace));
    Some(BlobName { keyspace, key: Key::stored(key).ok()? })
}

/// The keys of a blob's segments.
#[derive(Clone, Debug)]
pub(super) struct SegmentKeys(Vec<u8>);

impl SegmentKeys {
    /// Those of `name`.
    pub fn new(name: &BlobName) -> Self {
        let key = name.key.as_bytes();
        let mut prefix = Vec::with_capacity(4 + key.len() + 2 + 8);
        prefix.extend_from_slice(&name.keyspace.0.to_be_bytes());
        for byte in key {
            prefix.push(*byte);
            if *byte == 0 {
                prefix.push(0xFF);
            }
        }
        prefix.extend_from_slice(&[0, 1]);
        Self(prefix)
    }

    /// The key of the segment at `offset`.
    pub fn at(&self, offset: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.0.len() + 8);
        key.extend_from_slice(&self.0);
        key.extend_from_slice(&offset.to_be_bytes());
        debug_assert_eq!(self.offset(&key), Some(offset), "a segment would not be found again");
        key
    }

    /// The offset in a key of this blob's segments.
    pub fn offset(&self, key: &[u8]) -> Option<u64> {
        Some(u64::from_be_bytes(key.strip_prefix(self.0.as_slice())?.try_into().ok()?))
    }
}

/// The blob and offset of any segment's key.
pub(super) fn segment(key: &[u8]) -> Option<(BlobName, u64)> {
    let (prefix, offset) = key.split_last_chunk::<8>()?;
    let (keyspace, escaped) = prefix.split_first_chunk::<4>()?;
    let mut escaped = escaped.strip_suffix(&[0, 1])?.iter();
    let mut key = Vec::new();
    while let Some(byte) = escaped.next() {
        key.push(*byte);
        if *byte == 0 && escaped.next() != Some(&0xFF) {
            return None;
        }
    }
    let keyspace = KeyspaceId(u32::from_be_bytes(*keyspace));
    let name = BlobName { keyspace, key: Key::stored(key).ok()? };
    Some((name, u64::from_be_bytes(*offset)))
}

/// The key of an extent, behind `prefix` (none in `extents`, [`DEAD`] in `meta`).
pub(super) fn extent(prefix: &[u8], file: u32, position: u64) -> Vec<u8> {
    [prefix, &file.to_be_bytes(), &position.to_be_bytes()].concat()
}

/// The key of `extent` in `extents`.
pub(super) fn extent_of(reference: &ExtentRef) -> Vec<u8> {
    extent(b"", reference.file, reference.position)
}

/// File and position of an extent's key.
pub(super) fn extent_place(prefix: &[u8], key: &[u8]) -> Option<(u32, u64)> {
    let (file, position) = key.strip_prefix(prefix)?.split_first_chunk()?;
    Some((u32::from_be_bytes(*file), u64::from_be_bytes(position.try_into().ok()?)))
}

/// The key of a page file.
pub(super) fn page_file(number: u32) -> Vec<u8> {
    [PAGE_FILE, &number.to_be_bytes()].concat()
}

/// The number of a page file's key.
pub(super) fn page_file_number(key: &[u8]) -> Option<u32> {
    let number = key.strip_prefix(PAGE_FILE)?;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

/// The key of a list of pages that a batch let go of: its first one has no number.
pub(super) fn dead_pages(batch: u64, list: u32) -> Vec<u8> {
    let mut key = [DEAD_PAGES, &batch.to_be_bytes()].concat();
    if list > 0 {
        key.extend_from_slice(&list.to_be_bytes());
    }
    key
}

/// The key of a tombstone's grave.
pub(super) fn grave(folded_at: Timestamp, name: &BlobName) -> Vec<u8> {
    let key = [GRAVE, &timestamp(folded_at), &blob(name)].concat();
    // A tombstone whose grave cannot be read stays for ever.
    debug_assert_eq!(grave_parts(&key), Some((folded_at, name.clone())), "it reads back");
    key
}

/// Timestamp and blob of a grave's key.
pub(super) fn grave_parts(key: &[u8]) -> Option<(Timestamp, BlobName)> {
    let (at, name) = key.strip_prefix(GRAVE)?.split_first_chunk()?;
    Some((timestamp_from(at), blob_name(name)?))
}

/// A timestamp as bytes that order as it does.
pub(super) fn timestamp(at: Timestamp) -> [u8; TIMESTAMP_LEN] {
    let mut bytes = [0; TIMESTAMP_LEN];
    bytes[..4].copy_from_slice(&at.epoch.0.to_be_bytes());
    bytes[4..12].copy_from_slice(&at.clock.to_be_bytes());
    bytes[12..].copy_from_slice(&at.node.to_be_bytes());
    bytes
}

/// The timestamp of such bytes.
pub(super) fn timestamp_from(bytes: &[u8; TIMESTAMP_LEN]) -> Timestamp {
    let [a, b, c, d, clock @ .., e, f] = *bytes;
    Timestamp {
        epoch: Epoch(u32::from_be_bytes([a, b, c, d])),
        clock: u64::from_be_bytes(clock),
        node: u16::from_be_bytes([e, f]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &[u8]) -> BlobName {
        BlobName { keyspace: KeyspaceId(7), key: Key::new(key).unwrap() }
    }

    #[test]
    fn segments_order_by_key_and_offset_and_never_mix() {
        let keys: [&[u8]; 8] =
            [b"\0", b"\0\0", b"\0\x01", b"\x01", b"a", b"a\0", b"a\0\xFF", b"a\x01"];
        let mut all = Vec::new();
        for key in keys {
            for offset in [0, 1, 255, 256, u64::MAX] {
                all.push(SegmentKeys::new(&name(key)).at(offset));
            }
        }
        assert!(all.is_sorted());
        for (place, key) in keys.iter().enumerate() {
            let own = SegmentKeys::new(&name(key));
            let found: Vec<_> = all.iter().filter_map(|key| own.offset(key)).collect();
            assert_eq!(found, [0, 1, 255, 256, u64::MAX], "key {place}");
            assert_eq!(segment(&own.at(9)), Some((name(key), 9)));
        }
    }

    #[test]
    fn the_key_behind_a_prefix_is_above_all_that_begin_with_it() {
        assert_eq!(behind(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(behind(b"\xFF"), None);
        assert_eq!(behind(b""), None);
    }

    #[test]
    fn timestamps_order_as_their_bytes() {
        let at = Timestamp { epoch: Epoch(1), clock: 2, node: 3 };
        assert_eq!(timestamp_from(&timestamp(at)), at);
        assert!(timestamp(at) < timestamp(Timestamp { clock: 256, node: 0, ..at }));
        assert!(timestamp(Timestamp { clock: u64::MAX, ..at }) < timestamp(Timestamp::MAX));
    }

    #[test]
    fn other_keys_read_back_as_what_they_were_made_of() {
        let at = Timestamp { epoch: Epoch(1), clock: 2, node: 3 };
        assert_eq!(grave_parts(&grave(at, &name(b"x"))), Some((at, name(b"x"))));
        assert_eq!(extent_place(DEAD, &extent(DEAD, 3, 4096)), Some((3, 4096)));
        assert_eq!(number(TOTALS, &numbered(TOTALS, KeyspaceId(9))), Some(KeyspaceId(9)));
        assert_eq!(page_file_number(&page_file(9)), Some(9));
        assert!(dead_pages(9, 0) < dead_pages(9, 1) && dead_pages(9, 256) < dead_pages(10, 0));
        for bad in [b"".as_slice(), b"g", b"d1234567890", b"t123", b"\0\0\0\x01"] {
            assert_eq!(extent_place(DEAD, bad), None);
            assert_eq!(grave_parts(bad), None);
            assert_eq!(page_file_number(bad), None);
            assert_eq!(number(TOTALS, bad), None);
            assert_eq!(segment(bad), None);
        }
        assert_eq!(blob_name(b"\0\0\0\x01"), None, "a key has at least one byte");
    }
}
