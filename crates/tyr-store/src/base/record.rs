//! The values of the index's tables, byte for byte (`docs/internals/format.md`, section Base).
//!
//! Decoding is total: what is no value answers `None`, and the caller names the place. The index
//! has checked the value's checksum before, so that such a value was written so.

use tyr_types::{
    BlobName, Bytes, Durability, ExtentRef, KeyspaceConfig, KeyspaceName, PlacedBy, Timestamp,
};

use super::key::{self, TIMESTAMP_LEN};
use super::metadata::MetadataRow;
use super::types::{Ahead, BlobBase, PieceData, Totals};
use crate::pages::{PageFile, PageRun, PageSpan, RUN_PAGES_MAX};

const EXISTS: u8 = 1;
const HAS_CONTENT: u8 = 2;
const VERSION_IS_FOLDED_AT: u8 = 4;
const IS_AHEAD: u8 = 8;
const FLAGS: u8 = EXISTS | HAS_CONTENT | VERSION_IS_FOLDED_AT | IS_AHEAD;

const _: () = assert!(FLAGS.count_ones() == 4, "each has a bit of its own");

/// Takes values off the front of some bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| *byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn timestamp(&mut self) -> Option<Timestamp> {
        self.take::<TIMESTAMP_LEN>().map(key::timestamp_from)
    }
}

/// A blob's entry: what the base tells of it, and how many bytes its segments hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlobEntry {
    pub blob: BlobBase,
    /// The sum of the lengths of its segments: less than its size where it has holes.
    pub stored: u64,
}

impl BlobEntry {
    pub fn encode(&self) -> Vec<u8> {
        let blob = &self.blob;
        let content = blob.content.as_deref().unwrap_or_default();
        debug_assert!(content.len() as u64 <= blob.size, "the entry would not be read back");
        debug_assert!(blob.exists || blob.content.is_none(), "what is gone has no content");
        debug_assert!(
            blob.content.is_some() || self.stored <= blob.size,
            "segments lie within the blob, or the entry would not be read back"
        );
        let mut value = Vec::with_capacity(64 + content.len());
        let is_same = blob.version == blob.folded_at;
        value.push(
            (u8::from(blob.exists) * EXISTS)
                | (u8::from(blob.content.is_some()) * HAS_CONTENT)
                | (u8::from(is_same) * VERSION_IS_FOLDED_AT)
                | (u8::from(blob.ahead.is_some()) * IS_AHEAD),
        );
        value.extend_from_slice(&key::timestamp(blob.folded_at));
        if !is_same {
            value.extend_from_slice(&key::timestamp(blob.version));
        }
        value.extend_from_slice(&blob.size.to_le_bytes());
        if let Some(Ahead { below, at }) = blob.ahead {
            value.extend_from_slice(&below.to_le_bytes());
            value.extend_from_slice(&key::timestamp(at));
        }
        match blob.content {
            Some(_) => value.extend_from_slice(content),
            None => value.extend_from_slice(&self.stored.to_le_bytes()),
        }
        value
    }

    pub fn decode(value: &Bytes) -> Option<Self> {
        let mut reader = Reader(value);
        let flags = reader.u8()?;
        if flags & !FLAGS != 0 {
            return None;
        }
        let folded_at = reader.timestamp()?;
        let is_same = flags & VERSION_IS_FOLDED_AT != 0;
        let version = if is_same { folded_at } else { reader.timestamp()? };
        let size = reader.u64()?;
        let ahead = match flags & IS_AHEAD {
            0 => None,
            _ => Some(Ahead { below: reader.u64()?, at: reader.timestamp()? }),
        };
        let has_content = flags & HAS_CONTENT != 0;
        let stored = if has_content { 0 } else { reader.u64()? };
        let rest = value.slice(value.len() - reader.0.len()..);
        let is_possible = if has_content { rest.len() as u64 <= size } else { rest.is_empty() };
        let blob = BlobBase {
            exists: flags & EXISTS != 0,
            size,
            version,
            folded_at,
            content: has_content.then_some(rest),
            ahead,
        };
        (is_possible && stored <= size).then_some(Self { blob, stored })
    }
}

const INLINE: u8 = 0;
const IN_EXTENT: u8 = 1;
// 2 is a hole, of what is held for a kept snapshot.
const IN_PAGES: u8 = 3;

/// Appends an extent reference.
fn put_extent(value: &mut Vec<u8>, extent: &ExtentRef) {
    value.extend_from_slice(&extent.file.to_le_bytes());
    value.extend_from_slice(&extent.position.to_le_bytes());
    value.extend_from_slice(&extent.len.to_le_bytes());
    value.extend_from_slice(&extent.compressed_len.to_le_bytes());
}

/// A segment's value.
pub(super) fn encode_segment(segment: &PieceData) -> Vec<u8> {
    assert!(!segment.is_empty(), "a segment of no byte would not be read back");
    match segment {
        PieceData::Bytes(bytes) => {
            let mut value = Vec::with_capacity(1 + bytes.len() + 4);
            value.push(INLINE);
            value.extend_from_slice(bytes);
            value
        }
        PieceData::Extent { extent, skip, len } => {
            assert!(
                skip.checked_add(*len).is_some_and(|end| end <= extent.len),
                "{len} bytes behind {skip} of {extent:?} would not be read back"
            );
            let mut value = vec![IN_EXTENT];
            put_extent(&mut value, extent);
            value.extend_from_slice(&skip.to_le_bytes());
            value.extend_from_slice(&len.to_le_bytes());
            value
        }
        PieceData::Pages(run) => {
            let mut value = vec![IN_PAGES];
            value.extend_from_slice(&run.file.to_le_bytes());
            value.extend_from_slice(&run.first.to_le_bytes());
            value.extend_from_slice(&(run.len() as u32).to_le_bytes());
            value.extend(run.checksums().iter().flat_map(|checksum| checksum.to_le_bytes()));
            value
        }
    }
}

/// The segment of a value.
pub(super) fn decode_segment(value: &Bytes) -> Option<PieceData> {
    let mut reader = Reader(value);
    match reader.u8()? {
        INLINE if value.len() > 1 => Some(PieceData::Bytes(value.slice(1..))),
        IN_EXTENT => {
            let extent = ExtentRef {
                file: reader.u32()?,
                position: reader.u64()?,
                len: reader.u32()?,
                compressed_len: reader.u32()?,
            };
            let (skip, len) = (reader.u32()?, reader.u32()?);
            let is_inside = skip.checked_add(len).is_some_and(|end| end <= extent.len);
            let is_possible = is_inside && len > 0 && reader.0.is_empty();
            is_possible.then_some(PieceData::Extent { extent, skip, len })
        }
        IN_PAGES => {
            let (file, first, len) = (reader.u32()?, reader.u32()?, reader.u32()?);
            let mut checksums = Vec::with_capacity(RUN_PAGES_MAX);
            while !reader.0.is_empty() && checksums.len() < RUN_PAGES_MAX {
                checksums.push(reader.u32()?);
            }
            let is_all = reader.0.is_empty();
            is_all.then(|| PageRun::new(file, first, len, &checksums))?.map(PieceData::Pages)
        }
        _ => None,
    }
}

/// An extent's entry: how long it is, whose it is, and how many segments refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExtentEntry {
    pub len: u32,
    pub compressed_len: u32,
    pub segments: u32,
    pub owner: BlobName,
}

impl ExtentEntry {
    pub fn encode(&self) -> Vec<u8> {
        // The entry goes with the last of them, and the extent's space after it.
        assert!(self.segments > 0, "an extent that no segment refers to has no entry");
        let mut value = Vec::with_capacity(32);
        value.extend_from_slice(&self.len.to_le_bytes());
        value.extend_from_slice(&self.compressed_len.to_le_bytes());
        value.extend_from_slice(&self.segments.to_le_bytes());
        value.extend_from_slice(&key::blob(&self.owner));
        value
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        Some(Self {
            len: reader.u32()?,
            compressed_len: reader.u32()?,
            segments: reader.u32()?,
            owner: key::blob_name(reader.0)?,
        })
    }
}

/// The value of an extent, or part of one, that waits to be given back.
pub(super) fn encode_dead(extent: &ExtentRef) -> Vec<u8> {
    [extent.len.to_le_bytes(), extent.compressed_len.to_le_bytes()].concat()
}

/// The extent that waits at `place`.
pub(super) fn decode_dead((file, position): (u32, u64), value: &[u8]) -> Option<ExtentRef> {
    let mut reader = Reader(value);
    let (len, compressed_len) = (reader.u32()?, reader.u32()?);
    reader.0.is_empty().then_some(ExtentRef { file, position, len, compressed_len })
}

/// The value of a page file's entry.
pub(super) fn encode_page_file(file: PageFile) -> Vec<u8> {
    [file.end.to_le_bytes(), file.freed.to_le_bytes()].concat()
}

/// What such a value says.
pub(super) fn decode_page_file(value: &[u8]) -> Option<PageFile> {
    let mut reader = Reader(value);
    let (end, freed) = (reader.u32()?, reader.u32()?);
    (reader.0.is_empty() && freed < end).then_some(PageFile { end, freed })
}

/// The value of pages that wait to be given back.
pub(super) fn encode_dead_pages(spans: &[PageSpan]) -> Vec<u8> {
    let numbers = spans.iter().flat_map(|span| [span.file, span.first, span.count]);
    numbers.flat_map(u32::to_le_bytes).collect()
}

/// The pages of such a value.
pub(super) fn decode_dead_pages(value: &[u8]) -> Option<Vec<PageSpan>> {
    let mut reader = Reader(value);
    let mut spans = Vec::with_capacity(value.len() / 12);
    while !reader.0.is_empty() {
        let (file, first, count) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let is_possible = first > 0 && count > 0 && first.checked_add(count).is_some();
        spans.push(is_possible.then_some(PageSpan { file, first, count })?);
    }
    Some(spans)
}

/// A keyspace's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyspaceEntry {
    pub name: KeyspaceName,
    pub config: KeyspaceConfig,
    /// Whether it was dropped and what it held is still being removed.
    pub is_dropped: bool,
}

/// What is added to whether a keyspace was dropped when there follows what places its blobs.
const PLACED: u8 = 2;

/// What is added where it is guarded.
const GUARDED: u8 = 4;

impl KeyspaceEntry {
    /// Whether its blobs are placed by a part of their keys.
    fn is_placed(&self) -> bool {
        self.config.placed_by != PlacedBy::Key
    }

    /// The first format of the index that can say what it is.
    pub fn format(&self) -> u32 {
        match (self.config.is_guarded, self.is_placed()) {
            (true, _) => super::FORMAT_WITH_GUARDED,
            (false, true) => super::FORMAT_WITH_GROUPS,
            (false, false) => super::FORMAT_VERSION_MIN,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let config = &self.config;
        let durability = match config.durability {
            Durability::Memory => 0,
            Durability::Buffered => 1,
            Durability::Sync => 2,
        };
        let mut value = config.chunk_size.to_le_bytes().to_vec();
        value.extend_from_slice(&[
            config.replication,
            config.live_replicas_needed(),
            u8::from(config.is_multi_versioned),
            durability,
            u8::from(config.is_compressed),
            u8::from(self.is_dropped)
                + PLACED * u8::from(self.is_placed())
                + GUARDED * u8::from(config.is_guarded),
        ]);
        value.extend(config.placed_by.to_bytes().into_iter().flatten());
        value.extend_from_slice(self.name.as_str().as_bytes());
        debug_assert_eq!(
            Self::decode(&value).map(|read| (read.name, read.is_dropped)),
            Some((self.name.clone(), self.is_dropped)),
            "a store with that entry would not open again: {config:?}"
        );
        value
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let chunk_size = reader.u64()?;
        let [replication, live_replicas_min, versions, durability, compressed, dropped] =
            *reader.take()?;
        if dropped >= 2 * GUARDED {
            return None;
        }
        let placed_by = match dropped & PLACED {
            0 => PlacedBy::Key,
            _ => PlacedBy::from_bytes(*reader.take()?)?,
        };
        let config = KeyspaceConfig {
            chunk_size,
            replication,
            live_replicas_min: Some(live_replicas_min),
            is_multi_versioned: versions != 0,
            durability: match durability {
                0 => Durability::Memory,
                1 => Durability::Buffered,
                2 => Durability::Sync,
                _ => return None,
            },
            is_compressed: compressed != 0,
            placed_by,
            is_guarded: dropped & GUARDED != 0,
        };
        config.validate().ok()?;
        let name = KeyspaceName::new(std::str::from_utf8(reader.0).ok()?).ok()?;
        Some(Self { name, config, is_dropped: dropped % 2 == 1 })
    }
}

/// The value of a keyspace's totals.
pub(super) fn encode_totals(totals: Totals) -> Vec<u8> {
    [totals.blobs.to_le_bytes(), totals.bytes.to_le_bytes()].concat()
}

/// The totals of a value.
pub(super) fn decode_totals(value: &[u8]) -> Option<Totals> {
    let mut reader = Reader(value);
    let totals = Totals { blobs: reader.u64()?, bytes: reader.u64()? };
    reader.0.is_empty().then_some(totals)
}

/// A single number's value.
pub(super) fn encode_number(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// The single number of a value.
pub(super) fn decode_number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_le_bytes)
}

/// The revision of the service metadata.
pub(super) fn encode_revision(revision: u64) -> Vec<u8> {
    revision.to_le_bytes().to_vec()
}

/// The revision of these bytes.
pub(super) fn decode_revision(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What a key of the service metadata holds.
pub(super) fn encode_metadata(row: &MetadataRow) -> Vec<u8> {
    let MetadataRow { created, changed, value } = row;
    [&created.to_le_bytes(), &changed.to_le_bytes(), value.as_ref()].concat()
}

/// What these bytes are.
pub(super) fn decode_metadata(bytes: &Bytes) -> Option<MetadataRow> {
    let mut reader = Reader(bytes);
    let (created, changed) = (reader.u64()?, reader.u64()?);
    let value = bytes.slice(bytes.len() - reader.0.len()..);
    Some(MetadataRow { created, changed, value })
}

#[cfg(test)]
mod tests {
    use tyr_types::{Epoch, Key, KeyspaceId};

    use super::*;

    fn at(clock: u64) -> Timestamp {
        Timestamp { epoch: Epoch(0), clock, node: 1 }
    }

    #[test]
    fn blob_entries_read_back() {
        let content = Bytes::from_static(b"abc");
        let ahead = Ahead { below: 4, at: at(11) };
        for (content, stored, ahead) in
            [(None, 5, None), (None, 5, Some(ahead)), (Some(content), 0, None)]
        {
            for version in [at(7), at(9)] {
                let blob = BlobBase {
                    exists: true,
                    size: 8,
                    version,
                    folded_at: at(9),
                    content: content.clone(),
                    ahead,
                };
                let entry = BlobEntry { blob, stored };
                let value = Bytes::from(entry.encode());
                assert_eq!(BlobEntry::decode(&value), Some(entry));
            }
        }
    }

    #[test]
    fn segments_extents_and_keyspaces_read_back() {
        let extent = ExtentRef { file: 1, position: 4096, len: 100, compressed_len: 50 };
        let run = PageRun::new(3, 7, 4097, &[1, 2]).unwrap();
        for segment in [
            PieceData::Bytes(Bytes::from_static(b"x")),
            PieceData::Extent { extent, skip: 10, len: 90 },
            PieceData::Pages(run),
        ] {
            assert_eq!(decode_segment(&encode_segment(&segment).into()), Some(segment));
        }
        let owner = BlobName { keyspace: KeyspaceId(1), key: Key::new("k").unwrap() };
        let entry = ExtentEntry { len: 1, compressed_len: 2, segments: 3, owner };
        assert_eq!(ExtentEntry::decode(&entry.encode()), Some(entry));
        assert_eq!(decode_dead((1, 4096), &encode_dead(&extent)), Some(extent));
        let file = PageFile { end: 9, freed: 8 };
        assert_eq!(decode_page_file(&encode_page_file(file)), Some(file));
        let spans = [run.span(), PageSpan { file: 1, first: 1, count: 1 }];
        assert_eq!(decode_dead_pages(&encode_dead_pages(&spans)), Some(spans.to_vec()));
        for wrong in [&[1; 11][..], &[1; 13], &[0; 12]] {
            assert_eq!(decode_dead_pages(wrong), None);
            assert_eq!(decode_page_file(wrong), None);
        }
        let name = KeyspaceName::new("name").unwrap();
        let config = KeyspaceConfig::default().explicit();
        let entry = KeyspaceEntry { name, config, is_dropped: true };
        assert_eq!(KeyspaceEntry::decode(&entry.encode()), Some(entry));
    }

    #[test]
    fn any_prefix_of_a_value_is_refused_or_stands_for_something_else() {
        let extent = ExtentRef { file: 1, position: 4096, len: 100, compressed_len: 0 };
        let segment = PieceData::Extent { extent, skip: 0, len: 100 };
        let value = Bytes::from(encode_segment(&segment));
        for len in 0..value.len() {
            assert_eq!(decode_segment(&value.slice(..len)), None);
        }
        let mut too_long = value.to_vec();
        let skip_at = value.len() - 8;
        too_long[skip_at..skip_at + 4].copy_from_slice(&1_u32.to_le_bytes());
        assert_eq!(decode_segment(&too_long.into()), None);
        assert_eq!(decode_segment(&Bytes::from_static(&[INLINE])), None);
        assert_eq!(decode_segment(&Bytes::from_static(&[9, 1])), None);
        assert_eq!(BlobEntry::decode(&Bytes::from_static(&[16; 40])), None);
    }
}
