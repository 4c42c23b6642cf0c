//! What becomes of one blob's segments in a fold.
//!
//! A draft loads the segments around what changes, changes them in memory, and then says which
//! keys of the index have to be set or removed. Small pieces become inline segments within one
//! block of 16 KiB; small neighbours are merged when the new one is at least as large, so that
//! appending costs a small multiple of what is appended, and a block never has many segments. Runs
//! of [`limits::EXTENT_PAYLOAD_MIN`] bytes and more go to extents. Extents are never rewritten: a
//! segment that is overwritten in part is cut into what is left of it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use tyr_types::{BlobName, ByteRange, Error, ExtentRef, Result, limits};

use super::Base;
use super::dead::{Part, bury, whole_frames, without};
use super::key::{self, SegmentKeys};
use super::record::{self, ExtentEntry};
use super::segments::{BLOCK_SIZE, covered};
use super::types::PieceData;
use crate::index::{IndexBatch, Table};

/// Larger inline segments than this are not merged with what comes beside them: writing them again
/// would cost more than finding two instead of one.
const MERGED_LEN_MAX: u64 = 2 << 10;

/// Inline segments in one block, above which they are made one.
const BLOCK_SEGMENTS_MAX: usize = 16;

const _: () = {
    assert!(MERGED_LEN_MAX <= BLOCK_SIZE, "what is merged stays within its block");
    assert!(BLOCK_SIZE <= limits::EXTENT_PAYLOAD_MIN as u64, "a whole block may lie inline");
    assert!(limits::EXTENT_PAYLOAD_MIN <= limits::EXTENT_LEN_MAX as usize);
};

/// What becomes of an extent.
#[derive(Default)]
struct Use {
    /// Segments that refer to it: after minus before.
    change: i64,
    /// What the segments that were looked at show of it.
    shown: Vec<Part>,
    /// What lost its segment.
    lost: Vec<Part>,
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
    /// Cut off or cleared without having been loaded.
    removed: BTreeSet<u64>,
    /// Bytes in segments: after minus before.
    stored_change: i64,
    /// What becomes of each extent.
    uses: BTreeMap<ExtentRef, Use>,
    /// Whether an extent was written that is not synced yet.
    pub has_new_extents: bool,
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
            removed: BTreeSet::new(),
            stored_change: 0,
            uses: BTreeMap::new(),
            has_new_extents: false,
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
        self.carve(ByteRange::from(cut));
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
        self.carve(range);
        Ok(())
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
            if let PieceData::Extent { extent, skip, len } = segment {
                let used = self.uses.entry(extent).or_default();
                used.change -= 1;
                used.lost.push(skip..skip + len);
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
                PieceData::Extent { extent, skip, len } => {
                    let piece = PieceData::Extent { extent, skip, len };
                    self.carve(covered(offset, &piece));
                    self.segments.insert(offset, piece);
                    self.has_new_extents = true;
                }
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
            let end = (offset + piece.len()).div_ceil(BLOCK_SIZE).saturating_mul(BLOCK_SIZE);
            let start = (offset / BLOCK_SIZE * BLOCK_SIZE).max(done);
            let range = ByteRange { start, end: end.min(self.stored_end) };
            if range.is_empty() {
                continue;
            }
            done = range.end;
            self.load_overlapping(range)?;
        }
        Ok(())
    }

    /// Takes every segment out of `range`; what reaches beyond it stays.
    fn carve(&mut self, range: ByteRange) {
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
                let used = self.uses.entry(extent).or_default();
                used.lost.push(start..start + part.len() as u32);
            }
        }
        debug_assert!(
            self.segments.range(range.start..range.end).next().is_none(),
            "a segment begins in {range:?}, which was taken out"
        );
    }

    fn put_extents(&mut self, offset: u64, bytes: &Bytes) -> Result<()> {
        debug_assert!(bytes.len() >= limits::EXTENT_PAYLOAD_MIN, "less lies inline");
        let range = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        self.carve(range);
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
        self.carve(whole);
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
            PieceData::Extent { .. } => None,
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
        self.carve(range);
        self.segments.insert(range.start, PieceData::Bytes(all.into()));
        Ok(())
    }

    /// What is held for kept snapshots shows these parts of extents from now on.
    pub fn show(&mut self, parts: impl IntoIterator<Item = (ExtentRef, Part)>) {
        for (extent, part) in parts {
            let used = self.uses.entry(extent).or_default();
            used.change += 1;
            used.shown.push(part);
        }
    }

    /// What was held for a kept snapshot shows this part of an extent no more.
    pub fn release(&mut self, extent: ExtentRef, part: Part) {
        let used = self.uses.entry(extent).or_default();
        used.change -= 1;
        used.lost.push(part);
    }

    /// Writes the changes to `batch`; answers by how much the bytes in segments grew.
    pub fn finish(mut self, batch: &mut IndexBatch) -> Result<i64> {
        debug_assert!(
            self.removed.iter().all(|offset| !self.loaded.contains_key(offset)),
            "a segment is taken away once, or its extent loses two references"
        );
        for offset in &self.removed {
            batch.remove(Table::Segments, self.keys.at(*offset));
        }
        for (offset, old) in &self.loaded {
            self.stored_change -= old.len() as i64;
            if let PieceData::Extent { extent, .. } = old {
                self.uses.entry(*extent).or_default().change -= 1;
            }
            if !self.segments.contains_key(offset) {
                batch.remove(Table::Segments, self.keys.at(*offset));
            }
        }
        for (offset, segment) in &self.segments {
            self.stored_change += segment.len() as i64;
            if let PieceData::Extent { extent, skip, len } = segment {
                let used = self.uses.entry(*extent).or_default();
                used.change += 1;
                used.shown.push(*skip..skip + len);
            }
            if self.loaded.get(offset) != Some(segment) {
                batch.put(Table::Segments, self.keys.at(*offset), record::encode_segment(segment));
            }
        }
        for (extent, used) in std::mem::take(&mut self.uses) {
            self.settle_extent(extent, used, batch)?;
        }
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
            used.lost.push(0..extent.len);
            self.base.revive(&extent, batch)?;
        }
        if old.is_none() || used.change != 0 {
            let (len, compressed_len) = (extent.len, extent.compressed_len);
            let owner = self.blob.clone();
            let entry = ExtentEntry { len, compressed_len, segments, owner };
            batch.put(Table::Extents, key, entry.encode());
        }
        for part in used.lost.into_iter().flat_map(|lost| without(lost, &used.shown)) {
            if let Some(part) = whole_frames(extent, part) {
                bury(part, batch);
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

fn block_of(offset: u64) -> ByteRange {
    let start = offset / BLOCK_SIZE * BLOCK_SIZE;
    ByteRange { start, end: start + BLOCK_SIZE }
}
