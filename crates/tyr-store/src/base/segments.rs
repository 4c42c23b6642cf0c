//! Finding and reading the segments of a blob.

use bytes::Bytes;
use tyr_types::{BlobName, ByteRange, Error, Result};

use super::Base;
use super::key::SegmentKeys;
use super::record;
use super::types::PieceData;
use crate::index::Table;
use crate::pages::PAGE_LEN;

/// Inline segments never cross a multiple of this: a small write rewrites at most so much.
pub(super) const BLOCK_SIZE: u64 = 16 << 10;

/// The bytes that a segment at `offset` covers.
pub(super) fn covered(offset: u64, segment: &PieceData) -> ByteRange {
    ByteRange { start: offset, end: offset + segment.len() }
}

impl Base {
    fn segment(&self, blob: &BlobName, offset: u64, value: &Bytes) -> Result<PieceData> {
        let segment = record::decode_segment(value);
        // The end must be a place in a blob before anybody adds to it.
        segment.filter(|segment| ByteRange::at(offset, segment.len()).is_ok()).ok_or_else(|| {
            let text = format!("index table segments, {blob}, offset {offset}: no segment");
            Error::corrupt(text).naming(blob.clone())
        })
    }

    /// The segment that begins at `offset`, if there is one.
    pub(super) fn segment_at(
        &self,
        blob: &BlobName,
        keys: &SegmentKeys,
        offset: u64,
    ) -> Result<Option<PieceData>> {
        let value = self.index.get(Table::Segments, &keys.at(offset))?;
        value.map(|value| self.segment(blob, offset, &value)).transpose()
    }

    /// The segment that has all of `range`, if it begins where an aligned page does: one lookup
    /// where a search takes several.
    fn page_with(
        &self,
        blob: &BlobName,
        keys: &SegmentKeys,
        range: ByteRange,
    ) -> Result<Option<(u64, PieceData)>> {
        let offset = range.start / PAGE_LEN as u64 * PAGE_LEN as u64;
        if range.end - offset > PAGE_LEN as u64 {
            return Ok(None);
        }
        let segment = self.segment_at(blob, keys, offset)?;
        let has_all = |segment: &PieceData| range.end <= covered(offset, segment).end;
        Ok(segment.filter(has_all).map(|segment| (offset, segment)))
    }

    /// Visits all segments that begin in `range`, in order.
    pub(super) fn each_segment(
        &self,
        blob: &BlobName,
        keys: &SegmentKeys,
        range: ByteRange,
        visit: &mut dyn FnMut(u64, PieceData) -> Result<()>,
    ) -> Result<()> {
        let mut found = |key: &[u8], value: &Bytes| {
            let offset = keys.offset(key).expect("the range holds keys of this blob only");
            debug_assert!((range.start..range.end).contains(&offset), "keys order as offsets do");
            visit(offset, self.segment(blob, offset, value)?)?;
            Ok(true)
        };
        let (from, to) = (keys.at(range.start), keys.at(range.end));
        self.index.scan(Table::Segments, &from, Some(&to), &mut found)
    }

    /// Visits all segments that hold a byte of `range`, the last first.
    pub(super) fn overlapping(
        &self,
        blob: &BlobName,
        keys: &SegmentKeys,
        range: ByteRange,
        visit: &mut dyn FnMut(u64, PieceData) -> Result<()>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        // Backwards, because the first may begin anywhere before the range.
        let mut found = |key: &[u8], value: &Bytes| {
            let offset = keys.offset(key).expect("the range holds keys of this blob only");
            debug_assert!(offset < range.end, "what begins behind the range holds nothing of it");
            let segment = self.segment(blob, offset, value)?;
            if covered(offset, &segment).overlaps(range) {
                visit(offset, segment)?;
            }
            Ok(offset > range.start)
        };
        let (from, to) = (keys.at(0), keys.at(range.end));
        self.index.scan_back(Table::Segments, &from, &to, &mut found)
    }

    /// What segments hold of `range`, in order; at most `limit` stretches, the first ones.
    pub(super) fn stretches_of_segments(
        &self,
        blob: &BlobName,
        range: ByteRange,
        limit: usize,
    ) -> Result<Vec<ByteRange>> {
        let (keys, mut found) = (SegmentKeys::new(blob), Vec::<ByteRange>::new());
        if range.is_empty() || limit == 0 {
            return Ok(found);
        }
        let mut meet = |key: &[u8], value: &Bytes, goes_on: bool| {
            let offset = keys.offset(key).expect("the range holds keys of this blob only");
            let segment = self.segment(blob, offset, value)?;
            let part = covered(offset, &segment).intersection(range);
            let is_full = found.len() == limit;
            match found.last_mut() {
                _ if part.is_empty() => {}
                Some(before) if before.end == part.start => before.end = part.end,
                Some(_) if is_full => return Ok(false),
                Some(_) | None => found.push(part),
            }
            Ok(goes_on)
        };
        // One may begin anywhere before the range.
        let (first, from, to) = (keys.at(0), keys.at(range.start), keys.at(range.end));
        let mut before = |key: &[u8], value: &Bytes| meet(key, value, false);
        self.index.scan_back(Table::Segments, &first, &from, &mut before)?;
        let mut within = |key: &[u8], value: &Bytes| meet(key, value, true);
        self.index.scan(Table::Segments, &from, Some(&to), &mut within)?;
        Ok(found)
    }

    /// Copies the bytes of a segment from its `skip`-th on.
    pub(super) fn copy_segment(
        &self,
        segment: &PieceData,
        skip: u64,
        out: &mut [u8],
    ) -> Result<()> {
        debug_assert!(skip + out.len() as u64 <= segment.len(), "more is asked for than it has");
        match segment {
            PieceData::Bytes(bytes) => {
                out.copy_from_slice(&bytes[skip as usize..skip as usize + out.len()]);
                Ok(())
            }
            PieceData::Extent { extent, skip: before, .. } => {
                self.extents.read(extent, before + skip as u32, out)
            }
            PieceData::Pages(run) => self.pages.read(run, skip, out),
        }
    }

    /// Reads a range from segments; `out` is zeros where there is none.
    pub(super) fn read_segments(
        &self,
        blob: &BlobName,
        range: ByteRange,
        out: &mut [u8],
    ) -> Result<()> {
        debug_assert_eq!(
            range.len(),
            out.len() as u64,
            "a byte of the blob for each of the buffer"
        );
        out.fill(0);
        let keys = SegmentKeys::new(blob);
        let mut copy = |offset: u64, segment: PieceData| {
            let part = covered(offset, &segment).intersection(range);
            let place = (part.start - range.start) as usize..(part.end - range.start) as usize;
            self.copy_segment(&segment, part.start - offset, &mut out[place])
        };
        let copied = match self.page_with(blob, &keys, range) {
            Ok(Some((offset, segment))) => copy(offset, segment),
            Ok(None) => self.overlapping(blob, &keys, range, &mut copy),
            Err(error) => Err(error),
        };
        copied.map_err(|error| match error.blob() {
            Some(_) => error,
            None => error.at(blob.clone()),
        })
    }
}
