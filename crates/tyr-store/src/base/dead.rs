//! What is to be given back: a whole extent, the frames of one of which nothing is shown any more,
//! or pages. It is noted in the index, and goes after the next checkpoint: until then a loss of
//! power may bring back what showed it.

use std::ops::Range;

use tyr_types::ExtentRef;

use super::kept::HeldPiece;
use super::types::PieceData;
use super::{key, record};
use crate::extents::{Extents, FRAME_LEN, FRAME_PAYLOAD};
use crate::index::{IndexBatch, Table};
use crate::pages::PageSpan;

/// Bytes of an extent's payload.
pub(super) type Part = Range<u32>;

/// Where bytes of a blob are that do not lie in the index itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// In a part of an extent.
    Extent(ExtentRef, Part),
    /// In pages.
    Pages(PageSpan),
}

impl Elsewhere {
    /// Where a piece is.
    pub fn of(piece: &PieceData) -> Option<Self> {
        match piece {
            PieceData::Bytes(_) => None,
            PieceData::Extent { extent, skip, len } => {
                Some(Self::Extent(*extent, *skip..skip + len))
            }
            PieceData::Pages(run) => Some(Self::Pages(run.span())),
        }
    }

    /// Where a held piece is.
    pub fn of_held(piece: &HeldPiece) -> Option<Self> {
        match piece {
            HeldPiece::Written(piece) => Self::of(piece),
            HeldPiece::Hole(_) => None,
        }
    }
}

/// The pages of `before` that are not in `after`, those side by side together.
pub(super) fn pages_without(mut before: Vec<PageSpan>, mut after: Vec<PageSpan>) -> Vec<PageSpan> {
    before.sort_unstable();
    after.sort_unstable();
    let mut left: Vec<PageSpan> = Vec::new();
    let mut stay = after.iter().copied().peekable();
    for PageSpan { file, first, count } in before {
        for page in first..first + count {
            let ends = |span: &PageSpan| (span.file, span.first + span.count) <= (file, page);
            while stay.next_if(ends).is_some() {}
            if stay.peek().is_some_and(|span| (span.file, span.first) <= (file, page)) {
                continue;
            }
            match left.last_mut() {
                Some(last) if last.file == file && last.first + last.count == page => {
                    last.count += 1;
                }
                Some(_) | None => left.push(PageSpan { file, first: page, count: 1 }),
            }
        }
    }
    left
}

/// The parts of `whole` that are in none of `parts`.
pub(super) fn without(whole: Part, parts: &[Part]) -> Vec<Part> {
    let mut met: Vec<&Part> = parts.iter().filter(|part| part.end > whole.start).collect();
    met.sort_by_key(|part| part.start);
    let mut left = Vec::new();
    let mut start = whole.start;
    for part in met {
        if part.start >= whole.end {
            break;
        }
        if start < part.start {
            left.push(start..part.start);
        }
        start = start.max(part.end);
    }
    if start < whole.end {
        left.push(start..whole.end);
    }
    debug_assert!(
        left.iter().all(|left| parts.iter().all(|p| p.end <= left.start || left.end <= p.start)),
        "bytes that are shown would be given back: {left:?} of {whole:?} without {parts:?}"
    );
    left
}

/// Notes that an extent, or a part of one, is to be given back after the next checkpoint.
pub(super) fn bury(extent: ExtentRef, batch: &mut IndexBatch) {
    let key = key::extent(key::DEAD, extent.file, extent.position);
    batch.put(Table::Meta, key, record::encode_dead(&extent));
}

/// The frames of an uncompressed extent that hold nothing but `part`.
pub(super) fn whole_frames(extent: ExtentRef, part: Part) -> Option<ExtentRef> {
    // Frames beyond it are somebody else's.
    assert!(part.start <= part.end && part.end <= extent.len, "{part:?} of {extent:?}");
    if extent.compressed_len != 0 {
        return None;
    }
    let payload = FRAME_PAYLOAD as u32;
    let first = part.start.div_ceil(payload);
    let is_to_the_end = part.end == extent.len;
    let end = if is_to_the_end { part.end.div_ceil(payload) } else { part.end / payload };
    let frames = (first < end).then(|| ExtentRef {
        file: extent.file,
        position: extent.position + u64::from(first) * FRAME_LEN as u64,
        len: (end * payload).min(extent.len) - first * payload,
        compressed_len: 0,
    });
    let end = |of: &ExtentRef| of.position + Extents::stored_len(of);
    // They are given back: one frame too many takes bytes of whoever lies behind.
    let is_part = |of: &ExtentRef| extent.position <= of.position && end(of) <= end(&extent);
    assert!(frames.iter().all(is_part), "{frames:?} is no part of {extent:?}");
    frames
}
