//! What a fold replaces that was current at the newest kept moment.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use tyr_types::{BlobName, ByteRange, Error, ExtentRef, Result, Timestamp};

use super::row::{self, HeldPiece, PieceKeys};
use crate::base::Base;
use crate::base::dead::Elsewhere;
use crate::base::fold::Fold;
use crate::base::key::SegmentKeys;
use crate::base::record::BlobEntry;
use crate::base::segments::{BLOCK_SIZE, covered};
use crate::base::types::{BlobBase, BlobChange, PieceData};
use crate::index::Table;
use crate::pages::PAGE_LEN;

/// Changes shorter than this take the rest of the inline segments and the pages that they touch
/// along: many small changes of one block are few pieces then.
const WIDENED_LEN_MAX: u64 = 4 << 10;

/// Parts of extents, and pages, that something shows.
pub(in crate::base) type Shown = Vec<Elsewhere>;

impl Fold<'_> {
    /// Holds what `change` replaces of `old` and was current at the newest kept moment below it.
    /// Answers where what is held now is.
    pub fn capture(&mut self, old: Option<&BlobEntry>, change: &BlobChange) -> Result<Shown> {
        let Some(old) = old.filter(|old| old.blob.exists) else { return Ok(Shown::new()) };
        let base = self.base();
        let Some(at) = base.kept.read().newest_below(change.folded_at) else {
            return Ok(Shown::new());
        };
        let blob = &change.blob;
        let then = match base.held_entry(at, blob)? {
            Some(then) => then,
            None if old.blob.version <= at => {
                let blob_then = BlobBase { ahead: None, ..old.blob.clone() };
                let then = BlobEntry { blob: blob_then, stored: 0 };
                self.hold_entry(at, blob, &then);
                then
            }
            // It was not there then.
            None => return Ok(Shown::new()),
        };
        if then.blob.content.is_some() {
            return Ok(Shown::new());
        }
        let mut changed = changed(change, then.blob.size);
        if old.blob.content.is_none() {
            base.widen(blob, &mut changed, then.blob.size)?;
        }
        let coming = change.pieces.iter().filter_map(|(_, piece)| extent_of(piece)).collect();
        let mut shown = Shown::new();
        for range in base.not_held(at, blob, &joined(changed))? {
            for (offset, piece) in base.current(blob, old, range, &coming)? {
                shown.extend(Elsewhere::of_held(&piece));
                self.hold_piece(at, blob, offset, &piece);
            }
        }
        Ok(shown)
    }

    /// Holds a blob's entry for a moment.
    pub(super) fn hold_entry(&mut self, at: Timestamp, blob: &BlobName, entry: &BlobEntry) {
        let (key, value) = (row::entry(at, blob), entry.encode());
        let held = self.held(at);
        held.bytes += (key.len() + value.len()) as u64;
        held.blobs += 1;
        self.batch().put(Table::Meta, key, value);
    }

    /// Holds some bytes of a blob for a moment.
    pub(super) fn hold_piece(
        &mut self,
        at: Timestamp,
        blob: &BlobName,
        offset: u64,
        piece: &HeldPiece,
    ) {
        let key = PieceKeys::new(at, blob).at(offset);
        self.held(at).bytes += piece.cost(key.len());
        self.batch().put(Table::Meta, key, piece.encode());
    }
}

impl Base {
    /// Visits what is held of a blob's bytes in `range` for a moment, in order.
    pub(super) fn each_held(
        &self,
        at: Timestamp,
        blob: &BlobName,
        range: ByteRange,
        visit: &mut dyn FnMut(u64, HeldPiece) -> Result<bool>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let keys = PieceKeys::new(at, blob);
        let mut first = None;
        let mut before = |key: &[u8], value: &Bytes| {
            let offset = keys.offset(key).expect("the range holds keys of this blob only");
            first = Some((offset, Self::decode_held(at, blob, offset, value)?));
            Ok(false)
        };
        let (begin, from, to) = (keys.at(0), keys.at(range.start), keys.at(range.end));
        self.index.scan_back(Table::Meta, &begin, &from, &mut before)?;
        if let Some((offset, piece)) = first
            && piece.covered(offset).overlaps(range)
            && !visit(offset, piece)?
        {
            return Ok(());
        }
        let mut found = |key: &[u8], value: &Bytes| {
            let offset = keys.offset(key).expect("the range holds keys of this blob only");
            visit(offset, Self::decode_held(at, blob, offset, value)?)
        };
        self.index.scan(Table::Meta, &from, Some(&to), &mut found)
    }

    fn decode_held(
        at: Timestamp,
        blob: &BlobName,
        offset: u64,
        value: &Bytes,
    ) -> Result<HeldPiece> {
        HeldPiece::decode(offset, value).ok_or_else(|| {
            let text = format!("{blob} as kept at {at}, offset {offset}: no piece");
            Error::corrupt(text).naming(blob.clone())
        })
    }

    /// The parts of `ranges`, which are disjoint and in order, that nothing is held of.
    pub(super) fn not_held(
        &self,
        at: Timestamp,
        blob: &BlobName,
        ranges: &[ByteRange],
    ) -> Result<Vec<ByteRange>> {
        let mut left = Vec::new();
        for range in ranges {
            let mut next = range.start;
            let mut meet = |offset: u64, piece: HeldPiece| {
                if next < offset {
                    left.push(ByteRange { start: next, end: offset });
                }
                next = next.max(piece.covered(offset).end);
                Ok(true)
            };
            self.each_held(at, blob, *range, &mut meet)?;
            if next < range.end {
                left.push(ByteRange { start: next, end: range.end });
            }
        }
        Ok(left)
    }

    /// Grows short ranges by what inline segments and pages have beside them.
    fn widen(&self, blob: &BlobName, ranges: &mut [ByteRange], end: u64) -> Result<()> {
        let keys = SegmentKeys::new(blob);
        for range in ranges.iter_mut().filter(|range| range.len() < WIDENED_LEN_MAX) {
            let mut whole = *range;
            let mut meet = |offset: u64, segment: PieceData| {
                let all = covered(offset, &segment);
                let taken = match segment {
                    PieceData::Bytes(_) => all,
                    PieceData::Extent { .. } => return Ok(()),
                    PieceData::Pages(_) => {
                        let (part, page_len) = (all.intersection(*range), PAGE_LEN as u64);
                        let from = (part.start - offset) / page_len * page_len;
                        let to = (part.end - offset).next_multiple_of(page_len);
                        ByteRange { start: offset + from, end: all.end.min(offset + to) }
                    }
                };
                whole.start = whole.start.min(taken.start);
                whole.end = whole.end.max(taken.end);
                Ok(())
            };
            self.overlapping(blob, &keys, *range, &mut meet)?;
            *range = whole.intersection(ByteRange { start: 0, end });
        }
        Ok(())
    }

    /// What the base has in `range` of a blob whose entry is `entry`, in order, with its holes. An
    /// extent that is `coming`, though it is here already, is held by value: the base will show
    /// what it has.
    fn current(
        &self,
        blob: &BlobName,
        entry: &BlobEntry,
        range: ByteRange,
        coming: &BTreeSet<ExtentRef>,
    ) -> Result<Vec<(u64, HeldPiece)>> {
        let mut segments = Vec::new();
        match &entry.blob.content {
            Some(content) if content.is_empty() => {}
            Some(content) => segments.push((0, PieceData::Bytes(content.clone()))),
            None => {
                let mut meet = |offset: u64, segment: PieceData| {
                    segments.push((offset, segment));
                    Ok(())
                };
                self.overlapping(blob, &SegmentKeys::new(blob), range, &mut meet)?;
                segments.reverse();
            }
        }
        let mut all = Vec::new();
        let mut next = range.start;
        for (offset, segment) in segments {
            let part = covered(offset, &segment).intersection(range);
            if part.is_empty() {
                continue;
            }
            if next < part.start {
                all.push((next, HeldPiece::Hole(part.start - next)));
            }
            next = part.end;
            match extent_of(&segment).is_some_and(|extent| coming.contains(&extent)) {
                true => self.by_value(offset, &segment, part, &mut all)?,
                false => self.hold_part(offset, segment, part, &mut all)?,
            }
        }
        if next < range.end {
            all.push((next, HeldPiece::Hole(range.end - next)));
        }
        Ok(all)
    }

    /// The part of a piece at `offset` that holds `range`, to be held where it is, or by value
    /// where it is no whole pages.
    pub(super) fn hold_part(
        &self,
        offset: u64,
        piece: PieceData,
        range: ByteRange,
        all: &mut Vec<(u64, HeldPiece)>,
    ) -> Result<()> {
        let (from, to) = (range.start - offset, range.end - offset);
        if !piece.is_divisible(from, to) {
            return self.by_value(offset, &piece, range, all);
        }
        all.push((range.start, HeldPiece::Written(piece.slice(from, to))));
        Ok(())
    }

    fn by_value(
        &self,
        offset: u64,
        piece: &PieceData,
        range: ByteRange,
        all: &mut Vec<(u64, HeldPiece)>,
    ) -> Result<()> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / BLOCK_SIZE + 1) * BLOCK_SIZE);
            let mut bytes = BytesMut::zeroed((end - start) as usize);
            self.copy_segment(piece, start - offset, &mut bytes)?;
            all.push((start, HeldPiece::Written(PieceData::Bytes(bytes.freeze()))));
            start = end;
        }
        Ok(())
    }
}

/// What a change replaces of the first `end` bytes, in no order.
fn changed(change: &BlobChange, end: u64) -> Vec<ByteRange> {
    let whole = ByteRange { start: 0, end };
    if !change.exists {
        return vec![whole].into_iter().filter(|range| !range.is_empty()).collect();
    }
    let cut = ByteRange::from(change.cut.unwrap_or(u64::MAX).min(change.size));
    let pieces = change.pieces.iter().map(|(offset, piece)| covered(*offset, piece));
    let all = pieces.chain(change.holes.iter().copied()).chain([cut]);
    all.map(|range| range.intersection(whole)).filter(|range| !range.is_empty()).collect()
}

/// The same bytes as ranges that are disjoint and in order.
fn joined(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let is_touching = next.start <= before.end;
        if is_touching {
            before.end = before.end.max(next.end);
        }
        is_touching
    });
    ranges
}

fn extent_of(piece: &PieceData) -> Option<ExtentRef> {
    match piece {
        PieceData::Bytes(_) | PieceData::Pages(_) => None,
        PieceData::Extent { extent, .. } => Some(*extent),
    }
}
