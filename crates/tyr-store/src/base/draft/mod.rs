//! What becomes of one blob's segments in a fold.
//!
//! A draft loads the segments around what changes, changes them in memory, and then says which
//! keys of the index have to be set or removed. Small pieces become inline segments within one
//! block of 16 KiB; small neighbours are merged when the new one is at least as large, so that
//! appending costs a small multiple of what is appended, and a block never has many segments. What
//! fills most of an aligned page of 4 KiB of the blob goes to a page in the end: a page that is
//! changed in part is written anew. Runs of [`limits::EXTENT_PAYLOAD_MIN`] bytes and more go to
//! extents. Extents are never rewritten: a segment that is overwritten in part is cut into what is
//! left of it.
//!
//! [`inline`] is how small pieces lie in their blocks, [`pages`] what goes to pages, and
//! [`extents`] what becomes of extents.

mod extents;
mod inline;
mod pages;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use tyr_types::{BlobName, ByteRange, ExtentRef, Result, limits};

use self::extents::{Lost, Use};
use self::inline::MERGED_LEN_MAX;
use super::Base;
use super::dead::{self, Elsewhere};
use super::fold::Changes;
use super::key::SegmentKeys;
use super::record;
use super::segments::{BLOCK_SIZE, covered};
use super::types::PieceData;
use crate::extents::FRAME_PAYLOAD;
use crate::index::Table;
use crate::pages::{PAGE_LEN, PageSpan};

const _: () = {
    assert!(BLOCK_SIZE <= limits::EXTENT_PAYLOAD_MIN as u64, "a whole block may lie inline");
    assert!(limits::EXTENT_PAYLOAD_MIN <= limits::EXTENT_LEN_MAX as usize);
};

/// Segments that are looked up one by one for a piece that replaces them: of more, a search over
/// all that lies around it costs less.
const REPLACED_MAX: usize = 4;

/// The segments of one blob, being changed.
pub(super) struct Draft<'a> {
    base: &'a Base,
    blob: &'a BlobName,
    keys: SegmentKeys,
    is_compressed: bool,
    /// Nothing is stored from here on: the base's old end, or where it was cut.
    stored_end: u64,
    /// As in the index, where it was looked at.
    loaded: BTreeMap<u64, PieceData>,
    /// As it shall be there.
    segments: BTreeMap<u64, PieceData>,
    /// Of these bytes all segments were loaded: where stretches begin, and end.
    known: BTreeMap<u64, u64>,
    /// Cut off or cleared without having been loaded.
    removed: BTreeSet<u64>,
    /// Bytes in segments: after minus before.
    stored_change: i64,
    /// What becomes of each extent.
    uses: BTreeMap<ExtentRef, Use>,
    /// Pages that something showed before.
    pages_before: Vec<PageSpan>,
    /// Pages that are held for a kept snapshot from now on.
    pages_held: Vec<PageSpan>,
    /// Whether an extent was written that is not synced yet.
    pub has_new_extents: bool,
    /// Whether what fills most of a page goes to one; else it stays inline.
    pub writes_pages: bool,
}

impl<'a> Draft<'a> {
    /// A draft of a blob of which segments are stored below `stored_end`.
    pub fn new(base: &'a Base, blob: &'a BlobName, stored_end: u64, is_compressed: bool) -> Self {
        Self {
            base,
            blob,
            keys: SegmentKeys::new(blob),
            is_compressed,
            stored_end,
            loaded: BTreeMap::new(),
            segments: BTreeMap::new(),
            known: BTreeMap::new(),
            removed: BTreeSet::new(),
            stored_change: 0,
            uses: BTreeMap::new(),
            pages_before: Vec::new(),
            pages_held: Vec::new(),
            has_new_extents: false,
            writes_pages: false,
        }
    }

    /// Drops everything that the base stores from `cut` on. Comes before all else.
    pub fn cut(&mut self, cut: u64) -> Result<()> {
        // What is cut is taken from the index: it knows nothing of what was put in here.
        assert!(self.segments.is_empty() && self.removed.is_empty(), "cut comes first, and once");
        if cut >= self.stored_end {
            return Ok(());
        }
        self.load_overlapping(ByteRange { start: cut.saturating_sub(1), end: cut })?;
        self.forget(ByteRange::from(cut))?;
        self.carve(ByteRange::from(cut))?;
        debug_assert!(self.segments.range(cut..).next().is_none(), "nothing is left from {cut} on");
        self.stored_end = cut;
        Ok(())
    }

    /// Drops everything in `range`, which is behind all that was dropped so before and touches none
    /// of it. Comes after the cut, and before pieces that were written since.
    pub fn clear(&mut self, range: ByteRange) -> Result<()> {
        let stored = range.intersection(ByteRange { start: 0, end: self.stored_end });
        if !stored.is_empty() {
            for byte in [stored.start.saturating_sub(1), stored.end] {
                self.load_overlapping(ByteRange { start: byte, end: byte + 1 })?;
            }
            self.forget(stored)?;
        }
        self.carve(range)
    }

    /// Drops the segments that begin in `range` and were not loaded. Only what is needed to forget
    /// one stays: a large blob has many.
    fn forget(&mut self, range: ByteRange) -> Result<()> {
        let (base, blob, keys) = (self.base, self.blob, self.keys.clone());
        let mut forget = |offset: u64, segment: PieceData| {
            if self.loaded.contains_key(&offset) {
                return Ok(());
            }
            self.removed.insert(offset);
            self.stored_change -= segment.len() as i64;
            if let Some(place) = Elsewhere::of(&segment) {
                self.release(place);
            }
            Ok(())
        };
        base.each_segment(blob, &keys, range, &mut forget)
    }

    /// Puts pieces in, which are disjoint and ordered by offset.
    pub fn put(&mut self, pieces: Vec<(u64, PieceData)>) -> Result<()> {
        debug_assert!(
            pieces.windows(2).all(|pair| covered(pair[0].0, &pair[0].1).end <= pair[1].0),
            "pieces are disjoint and in order"
        );
        let runs = joined(&pieces);
        self.load_around(&runs)?;
        for (offset, run) in runs {
            let range = covered(offset, &run);
            match run {
                PieceData::Bytes(bytes) if bytes.len() < limits::EXTENT_PAYLOAD_MIN => {
                    self.put_blocks(offset, bytes)?;
                }
                PieceData::Bytes(bytes) => self.put_extents(offset, &bytes)?,
                piece @ PieceData::Extent { .. } => {
                    self.carve(covered(offset, &piece))?;
                    self.segments.insert(offset, piece);
                    self.has_new_extents = true;
                }
                PieceData::Pages(run) => unreachable!("{run:?} comes from outside of the base"),
            }
            debug_assert!(self.is_covered(range), "{range:?} was put in and is not there");
        }
        Ok(())
    }

    /// Whether segments have every byte of `range`.
    fn is_covered(&self, range: ByteRange) -> bool {
        let before = self.segments.range(..=range.start).next_back();
        let mut end = before.map_or(0, |(offset, segment)| covered(*offset, segment).end);
        for (offset, segment) in self.segments.range(range.start..range.end) {
            if *offset > end && *offset > range.start {
                return false;
            }
            end = end.max(covered(*offset, segment).end);
        }
        range.end <= end
    }

    /// Loads the segments that hold a byte of `range`.
    fn load_overlapping(&mut self, range: ByteRange) -> Result<()> {
        self.know(range);
        let (base, blob, keys) = (self.base, self.blob, self.keys.clone());
        let mut load = |offset, segment| {
            self.load(offset, segment);
            Ok(())
        };
        base.overlapping(blob, &keys, range, &mut load)
    }

    fn load(&mut self, offset: u64, segment: PieceData) {
        if self.removed.contains(&offset) {
            return;
        }
        if let Entry::Vacant(entry) = self.loaded.entry(offset) {
            entry.insert(segment.clone());
            self.segments.insert(offset, segment);
        }
    }

    /// Loads what shares a block with a piece. Pieces come in order, so what one of them changes
    /// is loaded before any of them changes it.
    fn load_around(&mut self, pieces: &[(u64, PieceData)]) -> Result<()> {
        let mut done = 0;
        for (offset, piece) in pieces {
            if self.load_replaced(*offset, piece)? {
                continue;
            }
            // And of what shares a frame of an extent with it: is it the last to be shown there?
            let end = (offset + piece.len()).div_ceil(BLOCK_SIZE).saturating_mul(BLOCK_SIZE);
            let end = end.saturating_add(FRAME_PAYLOAD as u64);
            let start = (offset / BLOCK_SIZE * BLOCK_SIZE).saturating_sub(FRAME_PAYLOAD as u64);
            let start = start.max(done);
            let range = ByteRange { start, end: end.min(self.stored_end) };
            if range.is_empty() {
                continue;
            }
            done = range.end;
            self.load_overlapping(range)?;
        }
        Ok(())
    }

    /// Loads the segments that a piece replaces, if there are few, they begin where it begins, and
    /// it leaves whole pages of the last one at most: nothing else is needed then, for the piece is
    /// too long to be merged with what lies beside it. An extent's frames may show more.
    fn load_replaced(&mut self, offset: u64, piece: &PieceData) -> Result<bool> {
        let whole = covered(offset, piece);
        if whole.len() <= MERGED_LEN_MAX || whole.end > self.stored_end {
            return Ok(false);
        }
        let mut replaced = SmallVec::<[(u64, PieceData); REPLACED_MAX]>::new();
        let mut next = whole.start;
        while next < whole.end {
            if replaced.len() == REPLACED_MAX {
                return Ok(false);
            }
            let found = self.base.segment_at(self.blob, &self.keys, next)?;
            let Some(segment) = found else { return Ok(false) };
            let end = covered(next, &segment).end;
            let is_replaced = match &segment {
                PieceData::Bytes(_) => end <= whole.end,
                PieceData::Pages(_) => {
                    end <= whole.end || (whole.end - next).is_multiple_of(PAGE_LEN as u64)
                }
                PieceData::Extent { .. } => false,
            };
            if !is_replaced || end == next {
                return Ok(false);
            }
            replaced.push((next, segment));
            next = end;
        }
        for (offset, segment) in replaced {
            self.load(offset, segment);
        }
        Ok(true)
    }

    /// Takes every segment out of `range`; what reaches beyond it stays.
    fn carve(&mut self, range: ByteRange) -> Result<()> {
        self.loosen(range)?;
        let before = self.segments.range(..range.start).next_back();
        let reaching =
            before.filter(|(offset, segment)| covered(**offset, segment).end > range.start);
        let mut hit: Vec<u64> = reaching.map(|(offset, _)| *offset).into_iter().collect();
        hit.extend(self.segments.range(range.start..range.end).map(|(offset, _)| *offset));
        for offset in hit {
            let segment = self.segments.remove(&offset).expect("it was just found");
            let whole = covered(offset, &segment);
            let part = whole.intersection(range);
            if whole.start < part.start {
                self.segments.insert(offset, segment.slice(0, part.start - offset));
            }
            if part.end < whole.end {
                let right = segment.slice(part.end - offset, whole.len());
                self.segments.insert(part.end, right);
            }
            if let PieceData::Extent { extent, skip, .. } = segment {
                let start = skip + (part.start - offset) as u32;
                let lost = start..start + part.len() as u32;
                let used = self.uses.entry(extent).or_default();
                used.lost.push(Lost { part: lost, at: Some(part.start) });
            }
        }
        debug_assert!(
            self.segments.range(range.start..range.end).next().is_none(),
            "a segment begins in {range:?}, which was taken out"
        );
        Ok(())
    }

    fn put_extents(&mut self, offset: u64, bytes: &Bytes) -> Result<()> {
        debug_assert!(bytes.len() >= limits::EXTENT_PAYLOAD_MIN, "less lies inline");
        let range = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        self.carve(range)?;
        for (place, part) in bytes.chunks(limits::EXTENT_LEN_MAX as usize).enumerate() {
            let extent = self.base.extents.write(part, self.is_compressed)?;
            let offset = offset + place as u64 * u64::from(limits::EXTENT_LEN_MAX);
            let piece = PieceData::Extent { extent, skip: 0, len: part.len() as u32 };
            self.segments.insert(offset, piece);
        }
        self.has_new_extents = true;
        Ok(())
    }

    /// What is held for kept snapshots shows these places from now on.
    pub fn show(&mut self, places: impl IntoIterator<Item = Elsewhere>) {
        for place in places {
            match place {
                Elsewhere::Extent(extent, part) => {
                    let used = self.uses.entry(extent).or_default();
                    used.change += 1;
                    used.shown.push(part);
                }
                Elsewhere::Pages(span) => self.pages_held.push(span),
            }
        }
    }

    /// What was held for a kept snapshot, or a segment that is gone, shows this place no more.
    pub fn release(&mut self, place: Elsewhere) {
        match place {
            Elsewhere::Extent(extent, part) => {
                let used = self.uses.entry(extent).or_default();
                used.change -= 1;
                used.lost.push(Lost { part, at: None });
            }
            Elsewhere::Pages(span) => self.pages_before.push(span),
        }
    }

    /// Writes the changes to a batch; answers by how much the bytes in segments grew.
    pub fn finish(mut self, changes: &mut Changes) -> Result<i64> {
        self.write_pages()?;
        let Changes { batch, dead_pages } = changes;
        let mut pages = std::mem::take(&mut self.pages_held);
        debug_assert!(
            self.removed.iter().all(|offset| !self.loaded.contains_key(offset)),
            "a segment is taken away once, or its extent loses two references"
        );
        for offset in &self.removed {
            batch.remove(Table::Segments, self.keys.at(*offset));
        }
        for (offset, old) in &self.loaded {
            self.stored_change -= old.len() as i64;
            match old {
                PieceData::Bytes(_) => {}
                PieceData::Extent { extent, .. } => {
                    self.uses.entry(*extent).or_default().change -= 1;
                }
                PieceData::Pages(run) => self.pages_before.push(run.span()),
            }
            if !self.segments.contains_key(offset) {
                batch.remove(Table::Segments, self.keys.at(*offset));
            }
        }
        for (offset, segment) in &self.segments {
            self.stored_change += segment.len() as i64;
            match segment {
                PieceData::Bytes(_) => {}
                PieceData::Extent { extent, skip, len } => {
                    let used = self.uses.entry(*extent).or_default();
                    used.change += 1;
                    used.shown.push(*skip..skip + len);
                }
                PieceData::Pages(run) => pages.push(run.span()),
            }
            if self.loaded.get(offset) != Some(segment) {
                batch.put(Table::Segments, self.keys.at(*offset), record::encode_segment(segment));
            }
        }
        for (extent, used) in std::mem::take(&mut self.uses) {
            self.settle_extent(extent, used, batch)?;
        }
        dead_pages.extend(dead::pages_without(self.pages_before, pages));
        Ok(self.stored_change)
    }
}

/// Pieces in order of offset, those by value that touch each other made one.
fn joined(pieces: &[(u64, PieceData)]) -> Vec<(u64, PieceData)> {
    let touch = |(start, left): &(u64, PieceData), (next, right): &(u64, PieceData)| {
        let are_bytes = matches!((left, right), (PieceData::Bytes(_), PieceData::Bytes(_)));
        are_bytes && covered(*start, left).end == *next
    };
    let runs = pieces.chunk_by(touch).map(|run| match run {
        [single] => single.clone(),
        several => {
            let mut all = BytesMut::new();
            for (_, piece) in several {
                if let PieceData::Bytes(bytes) = piece {
                    all.extend_from_slice(bytes);
                }
            }
            (several[0].0, PieceData::Bytes(all.freeze()))
        }
    });
    runs.filter(|(_, piece)| !piece.is_empty()).collect()
}
