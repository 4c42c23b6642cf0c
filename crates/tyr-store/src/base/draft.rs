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

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use tyr_types::{BlobName, ByteRange, Error, ExtentRef, Result, limits};

use super::Base;
use super::dead::{self, Elsewhere, Part, bury, whole_frames, without};
use super::fold::Changes;
use super::key::{self, SegmentKeys};
use super::record::{self, ExtentEntry};
use super::segments::{BLOCK_SIZE, covered};
use super::types::PieceData;
use crate::extents::FRAME_PAYLOAD;
use crate::index::{IndexBatch, Table};
use crate::pages::{PAGE_LEN, PageSpan, RUN_PAGES_MAX};

/// Larger inline segments than this are not merged with what comes beside them: writing them again
/// would cost more than finding two instead of one.
const MERGED_LEN_MAX: u64 = 2 << 10;

/// Bytes of an aligned page from which on they get a page of their own: shorter ones stay inline,
/// where they take no more space than they have.
const PAGE_BYTES_MIN: usize = 3 << 10;

/// Inline segments in one block, above which they are made one.
const BLOCK_SEGMENTS_MAX: usize = 16;

const _: () = {
    assert!(MERGED_LEN_MAX <= BLOCK_SIZE, "what is merged stays within its block");
    assert!(BLOCK_SIZE <= limits::EXTENT_PAYLOAD_MIN as u64, "a whole block may lie inline");
    assert!(limits::EXTENT_PAYLOAD_MIN <= limits::EXTENT_LEN_MAX as usize);
    assert!(MERGED_LEN_MAX <= PAGE_BYTES_MIN as u64, "what fills a page is not merged any more");
    assert!(PAGE_BYTES_MIN <= PAGE_LEN && BLOCK_SIZE.is_multiple_of(PAGE_LEN as u64));
    assert!(BLOCK_SIZE as usize <= RUN_PAGES_MAX * PAGE_LEN, "a block of pages is one run");
};

/// What becomes of an extent.
#[derive(Default)]
struct Use {
    /// Segments that refer to it: after minus before.
    change: i64,
    /// What the segments that were looked at show of it.
    shown: Vec<Part>,
    /// What lost its segment.
    lost: Vec<Lost>,
}

/// A part of an extent that lost its segment.
struct Lost {
    part: Part,
    /// Where in the blob it was, where that is known to be the only place of the frames beside it.
    at: Option<u64>,
}

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

    /// Notes that all segments of `range` are loaded, with those that it touches.
    fn know(&mut self, mut range: ByteRange) {
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

    /// Loads the segment that a piece replaces whole, if there is one, and the piece is too long to
    /// be merged with what lies beside it: then nothing else is needed, unless it is an extent's,
    /// whose frames may show more.
    fn load_replaced(&mut self, offset: u64, piece: &PieceData) -> Result<bool> {
        let whole = covered(offset, piece);
        if whole.len() <= MERGED_LEN_MAX || whole.end > self.stored_end {
            return Ok(false);
        }
        match self.base.segment_at(self.blob, &self.keys, offset)? {
            Some(segment @ (PieceData::Bytes(_) | PieceData::Pages(_)))
                if covered(offset, &segment) == whole =>
            {
                self.load(offset, segment);
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Takes pages into memory that reach over an end of `range`, so that they can be cut there.
    fn loosen(&mut self, range: ByteRange) -> Result<()> {
        for at in [range.start, range.end] {
            let Some((start, segment)) = self.segments.range(..at).next_back() else { continue };
            let (start, PieceData::Pages(run)) = (*start, segment.clone()) else { continue };
            let (inside, page_len) = (at - start, PAGE_LEN as u64);
            if inside >= run.len() || inside.is_multiple_of(page_len) {
                continue;
            }
            let from = inside / page_len * page_len;
            let to = run.len().min(from + page_len);
            let mut bytes = BytesMut::zeroed((to - from) as usize);
            self.base.copy_segment(&PieceData::Pages(run), from, &mut bytes)?;
            self.segments.remove(&start);
            for (from, to) in [(0, from), (to, run.len())] {
                if from < to {
                    self.segments.insert(start + from, PieceData::Pages(run.slice(from, to)));
                }
            }
            self.segments.insert(start + from, PieceData::Bytes(bytes.freeze()));
        }
        Ok(())
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

    fn put_blocks(&mut self, mut offset: u64, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let room = (BLOCK_SIZE - offset % BLOCK_SIZE) as usize;
            let part = bytes.split_to(room.min(bytes.len()));
            let end = offset + part.len() as u64;
            self.put_in_block(offset, part)?;
            offset = end;
        }
        Ok(())
    }

    /// Puts bytes into their block, with those inline segments that they cut or that are no larger
    /// and touch them.
    fn put_in_block(&mut self, offset: u64, bytes: Bytes) -> Result<()> {
        let new = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        self.loosen(new)?;
        if self.patch(new, &bytes) {
            return Ok(());
        }
        let block = block_of(offset);
        debug_assert!(block.contains(new), "{new:?} reaches over the end of its block");
        let mut merged = Vec::new();
        let mut whole = new;
        for (offset, old) in self.inline_in(block) {
            let old_range = ByteRange { start: offset, end: offset + old.len() as u64 };
            if old_range.overlaps(new) && !new.contains(old_range) {
                whole.start = whole.start.min(old_range.start);
                whole.end = whole.end.max(old_range.end);
                merged.push((offset, old));
            }
        }
        self.carve(whole)?;
        while let Some((offset, old)) = self.mergeable(block, whole) {
            self.segments.remove(&offset);
            whole.start = whole.start.min(offset);
            whole.end = whole.end.max(offset + old.len() as u64);
            merged.push((offset, old));
        }
        let mut content = bytes;
        if !merged.is_empty() {
            let mut all = vec![0; whole.len() as usize];
            for (offset, part) in merged.into_iter().chain([(offset, content)]) {
                let at = (offset - whole.start) as usize;
                all[at..at + part.len()].copy_from_slice(&part);
            }
            content = all.into();
        }
        self.segments.insert(whole.start, PieceData::Bytes(content));
        self.tidy(block)
    }

    /// Puts bytes into the inline segment that has them all, if there is one. It is copied for the
    /// first of them only: a block may have hundreds.
    fn patch(&mut self, new: ByteRange, bytes: &[u8]) -> bool {
        let Some((start, segment)) = self.segments.range_mut(..=new.start).next_back() else {
            return false;
        };
        let at = (new.start - start) as usize;
        let PieceData::Bytes(content) = segment else { return false };
        if content.len() < at + bytes.len() {
            return false;
        }
        let shared = std::mem::take(content);
        let mut own = shared.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared));
        own[at..at + bytes.len()].copy_from_slice(bytes);
        *content = own.freeze();
        true
    }

    fn inline_in(&self, block: ByteRange) -> Vec<(u64, Bytes)> {
        let segments = self.segments.range(block.start..block.end);
        let inline = segments.filter_map(|(offset, segment)| match segment {
            PieceData::Bytes(bytes) => Some((*offset, bytes.clone())),
            PieceData::Extent { .. } | PieceData::Pages(_) => None,
        });
        inline.collect()
    }

    /// An inline segment of the block that touches `range`, is no larger, and small.
    fn mergeable(&self, block: ByteRange, range: ByteRange) -> Option<(u64, Bytes)> {
        let left = self.segments.range(block.start..range.start).next_back();
        let right = self.segments.range(range.end..block.end).next();
        left.into_iter().chain(right).find_map(|(offset, segment)| {
            let PieceData::Bytes(bytes) = segment else { return None };
            let old = covered(*offset, segment);
            let is_touching = old.end == range.start || old.start == range.end;
            (is_touching && old.len() <= range.len().min(MERGED_LEN_MAX))
                .then(|| (*offset, bytes.clone()))
        })
    }

    /// Makes a block with many inline segments one, with what lies between them.
    fn tidy(&mut self, block: ByteRange) -> Result<()> {
        let inline = self.inline_in(block);
        let (Some((start, _)), Some((offset, last))) = (inline.first(), inline.last()) else {
            return Ok(());
        };
        if inline.len() <= BLOCK_SEGMENTS_MAX {
            return Ok(());
        }
        let range = ByteRange { start: *start, end: offset + last.len() as u64 };
        let mut all = vec![0; range.len() as usize];
        for (offset, segment) in self.segments.range(range.start..range.end) {
            let part = covered(*offset, segment).intersection(range);
            let place = (part.start - range.start) as usize..(part.end - range.start) as usize;
            self.base.copy_segment(segment, part.start - offset, &mut all[place])?;
        }
        self.carve(range)?;
        self.segments.insert(range.start, PieceData::Bytes(all.into()));
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

    /// Writes what is new and fills most of a page to pages.
    fn write_pages(&mut self) -> Result<()> {
        if !self.writes_pages {
            return Ok(());
        }
        let is_new = |offset: &u64, segment: &PieceData| self.loaded.get(offset) != Some(segment);
        let new = self.segments.iter().filter_map(|(offset, segment)| match segment {
            PieceData::Bytes(bytes) if bytes.len() >= PAGE_BYTES_MIN => {
                is_new(offset, segment).then(|| (*offset, bytes.clone()))
            }
            PieceData::Bytes(_) | PieceData::Extent { .. } | PieceData::Pages(_) => None,
        });
        for (offset, bytes) in new.collect::<Vec<_>>() {
            self.segments.remove(&offset);
            for (offset, part, has_pages) in in_pages(offset, &bytes) {
                let piece = match has_pages {
                    true => PieceData::Pages(self.base.pages.write(&part)?),
                    false => PieceData::Bytes(part),
                };
                self.segments.insert(offset, piece);
            }
        }
        Ok(())
    }

    /// Writes the changes to a batch; answers by how much the bytes in segments grew.
    pub fn finish(mut self, changes: &mut Changes) -> Result<i64> {
        self.write_pages()?;
        let Changes { batch, dead_pages } = changes;
        let mut pages = self.pages_held;
        self.pages_held = Vec::new();
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

    fn settle_extent(
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

/// Bytes of a blob from `offset` on, cut into those that go to pages, and those that are too few
/// of their aligned page and stay inline.
fn in_pages(offset: u64, bytes: &Bytes) -> Vec<(u64, Bytes, bool)> {
    let mut parts: Vec<(u64, Bytes, bool)> = Vec::new();
    let (mut start, mut from) = (0, 0);
    while from < bytes.len() {
        let inside = ((offset + from as u64) % PAGE_LEN as u64) as usize;
        let to = bytes.len().min(from + PAGE_LEN - inside);
        let has_page = to - from >= PAGE_BYTES_MIN;
        // Only whole pages are followed by another one in their run.
        let is_joined = from > start
            && (from - start).is_multiple_of(PAGE_LEN)
            && parts.last().is_some_and(|(_, _, before)| *before && has_page);
        if is_joined {
            parts.pop();
        } else {
            start = from;
        }
        parts.push((offset + start as u64, bytes.slice(start..to), has_page));
        from = to;
    }
    parts
}

fn block_of(offset: u64) -> ByteRange {
    let start = offset / BLOCK_SIZE * BLOCK_SIZE;
    ByteRange { start, end: start + BLOCK_SIZE }
}
