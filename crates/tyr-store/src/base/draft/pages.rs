//! What of a draft goes to pages, and how pages are taken apart.

use bytes::{Buf, Bytes, BytesMut};
use tyr_types::{ByteRange, Result};

use super::Draft;
use super::inline::MERGED_LEN_MAX;
use crate::base::segments::BLOCK_SIZE;
use crate::base::types::PieceData;
use crate::pages::{PAGE_LEN, RUN_PAGES_MAX};

/// Bytes of an aligned page from which on they get a page of their own: shorter ones stay inline,
/// where they take no more space than they have.
const PAGE_BYTES_MIN: usize = 3 << 10;

const _: () = {
    assert!(MERGED_LEN_MAX <= PAGE_BYTES_MIN as u64, "what fills a page is not merged any more");
    assert!(PAGE_BYTES_MIN <= PAGE_LEN && BLOCK_SIZE.is_multiple_of(PAGE_LEN as u64));
    assert!(BLOCK_SIZE as usize <= RUN_PAGES_MAX * PAGE_LEN, "a block of pages is one run");
};

impl Draft<'_> {
    /// Takes pages into memory that reach over an end of `range`, so that they can be cut there.
    pub(super) fn loosen(&mut self, range: ByteRange) -> Result<()> {
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

    /// Writes what is new and fills most of a page to pages.
    pub(super) fn write_pages(&mut self) -> Result<()> {
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
            for (mut offset, mut part, has_pages) in in_pages(offset, &bytes) {
                if !has_pages {
                    self.segments.insert(offset, PieceData::Bytes(part));
                    continue;
                }
                while !part.is_empty() {
                    let run = self.base.write_pages_of(&part)?;
                    part.advance(run.len() as usize);
                    self.segments.insert(offset, PieceData::Pages(run));
                    offset += run.len();
                }
            }
        }
        Ok(())
    }
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
