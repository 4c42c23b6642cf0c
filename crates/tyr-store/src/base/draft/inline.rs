//! How small pieces lie in their blocks of 16 KiB, inline in the index.

use bytes::{Bytes, BytesMut};
use tyr_types::{ByteRange, Result};

use super::Draft;
use crate::base::segments::{BLOCK_SIZE, covered};
use crate::base::types::PieceData;

/// Larger inline segments than this are not merged with what comes beside them: writing them again
/// would cost more than finding two instead of one.
pub(super) const MERGED_LEN_MAX: u64 = 2 << 10;

/// Inline segments in one block, above which they are made one.
const BLOCK_SEGMENTS_MAX: usize = 16;

const _: () = assert!(MERGED_LEN_MAX <= BLOCK_SIZE, "what is merged stays within its block");

impl Draft<'_> {
    pub(super) fn put_blocks(&mut self, mut offset: u64, mut bytes: Bytes) -> Result<()> {
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
}

fn block_of(offset: u64) -> ByteRange {
    let start = offset / BLOCK_SIZE * BLOCK_SIZE;
    ByteRange { start, end: start + BLOCK_SIZE }
}
