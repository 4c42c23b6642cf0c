//! What is to be given back of extents: a whole one, or the frames of which nothing is shown any
//! more. It is noted in the index, and goes after the next checkpoint: until then a loss of power
//! may bring back what showed it.

use std::ops::Range;

use tyr_types::ExtentRef;

use super::{key, record};
use crate::extents::{Extents, FRAME_LEN, FRAME_PAYLOAD};
use crate::index::{IndexBatch, Table};

/// Bytes of an extent's payload.
pub(super) type Part = Range<u32>;

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
