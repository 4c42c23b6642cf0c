//! What becomes of the extents that a draft's blob shows.
//!
//! A frame of an extent goes with the last of its bytes that is shown. Frames have 4092 bytes
//! beside their checksum: what is overwritten in aligned pieces of 4096 shares each with a
//! neighbour.

use tyr_types::{ByteRange, Error, ExtentRef, Result};

use super::Draft;
use crate::base::dead::{Part, bury, whole_frames, without};
use crate::base::key;
use crate::base::record::ExtentEntry;
use crate::base::segments::covered;
use crate::base::types::PieceData;
use crate::extents::FRAME_PAYLOAD;
use crate::index::{IndexBatch, Table};

/// What becomes of an extent.
#[derive(Default)]
pub(super) struct Use {
    /// Segments that refer to it: after minus before.
    pub change: i64,
    /// What the segments that were looked at show of it.
    pub shown: Vec<Part>,
    /// What lost its segment.
    pub lost: Vec<Lost>,
}

/// A part of an extent that lost its segment.
pub(super) struct Lost {
    pub part: Part,
    /// Where in the blob it was, where that is known to be the only place of the frames beside it.
    pub at: Option<u64>,
}

impl Draft<'_> {
    /// Notes that all segments of `range` are loaded, with those that it touches.
    pub(super) fn know(&mut self, mut range: ByteRange) {
        if let Some((start, end)) = self.known.range(..=range.start).next_back()
            && *end >= range.start
        {
            range = ByteRange { start: *start, end: range.end.max(*end) };
        }
        self.known.insert(range.start, range.end);
    }

    /// Whether what the index has of `range` was loaded, and no segment shows a byte of it that is
    /// in this extent.
    fn is_unshown(&self, extent: &ExtentRef, range: ByteRange) -> bool {
        let before = self.known.range(..=range.start).next_back();
        let is_known = before.is_some_and(|(_, end)| *end >= range.end);
        let mut first = self.segments.range(..range.start).next_back().into_iter();
        let mut met = self.segments.range(range.start..range.end);
        let shows = |(offset, segment): (&u64, &PieceData)| match segment {
            PieceData::Extent { extent: its, .. } => {
                its == extent && covered(*offset, segment).overlaps(range)
            }
            PieceData::Bytes(_) | PieceData::Pages(_) => false,
        };
        is_known && !first.any(shows) && !met.any(shows)
    }

    /// A part that was lost, with the rest of the frames at its ends, if nothing shows that either.
    fn with_frames(&self, extent: &ExtentRef, Lost { part, at }: Lost) -> Part {
        // What is held for kept snapshots shows it too, and is not looked at.
        let Some(at) = at.filter(|_| extent.compressed_len == 0 && !self.base.holds_any()) else {
            return part;
        };
        let payload = FRAME_PAYLOAD as u32;
        let (mut start, mut end) = (part.start, part.end);
        let head = u64::from(start % payload);
        if head > 0
            && at >= head
            && self.is_unshown(extent, ByteRange { start: at - head, end: at })
        {
            start -= head as u32;
        }
        let frame_end = end.next_multiple_of(payload).min(extent.len);
        let at_end = at + u64::from(end - part.start);
        let tail = ByteRange { start: at_end, end: at_end + u64::from(frame_end - end) };
        if !tail.is_empty() && self.is_unshown(extent, tail) {
            end = frame_end;
        }
        start..end
    }

    pub(super) fn settle_extent(
        &self,
        extent: ExtentRef,
        mut used: Use,
        batch: &mut IndexBatch,
    ) -> Result<()> {
        let key = key::extent_of(&extent);
        let old = self.base.extent_entry(&key)?;
        let wrong = |what: &str| {
            Err(Error::corrupt(format!(
                "{}: extent {extent:?} {what} in index table extents",
                self.blob
            )))
        };
        if let Some(old) = &old {
            if old.owner != *self.blob {
                return wrong("belongs to another blob");
            }
            if (old.len, old.compressed_len) != (extent.len, extent.compressed_len) {
                return wrong("has another length");
            }
        }
        let count = old.as_ref().map_or(0, |old| i64::from(old.segments)) + used.change;
        let Ok(segments) = u32::try_from(count) else {
            return wrong("has fewer references than it has lost");
        };
        if segments == 0 {
            if old.is_some() {
                batch.remove(Table::Extents, key);
            }
            bury(extent, batch);
            return Ok(());
        }
        if old.is_none() {
            // All segments of a new extent are here: what none of them shows was never needed.
            used.lost.clear();
            used.lost.push(Lost { part: 0..extent.len, at: None });
            self.base.revive(&extent, batch)?;
        }
        if old.is_none() || used.change != 0 {
            let (len, compressed_len) = (extent.len, extent.compressed_len);
            let owner = self.blob.clone();
            let entry = ExtentEntry { len, compressed_len, segments, owner };
            batch.put(Table::Extents, key, entry.encode());
        }
        for Lost { part, at } in used.lost {
            for left in without(part.clone(), &used.shown) {
                let at = at.map(|at| at + u64::from(left.start - part.start));
                let left = self.with_frames(&extent, Lost { part: left, at });
                if let Some(frames) = whole_frames(extent, left) {
                    bury(frames, batch);
                }
            }
        }
        Ok(())
    }
}
