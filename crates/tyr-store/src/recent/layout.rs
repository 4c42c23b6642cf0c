//! Which bytes of a blob are written, as far as memory knows, and what the base has to be asked.
//!
//! The same as a plan of a read, without the bytes: whatever a read would find somewhere is
//! written, and what it would take for zeros is a hole. What is clean is left to the base, which
//! has the same: memory also has zeros of holes that were read.

use tyr_types::{ByteRange, Timestamp};

use super::blob::{Attributes, BlobState};
use super::block::BLOCK_SIZE;
use super::older::OldContent;
use super::piece::Unheld;
use super::plan::Unknown;

/// What memory knows of a range.
#[derive(Debug)]
pub struct Layout {
    /// The attributes of the version that is looked at.
    pub attributes: Attributes,
    /// What is written. In no order.
    pub written: Vec<ByteRange>,
    /// What the base has to be asked for. In no order.
    pub in_base: Vec<ByteRange>,
    /// The base's generation it was made for.
    generation: u32,
}

impl BlobState {
    /// Looks at `range` as of `at` ([`Timestamp::MAX`]: the newest version); `None` when that
    /// version is gone.
    pub fn layout(&self, range: ByteRange, at: Timestamp) -> Option<Layout> {
        let attributes = self.attributes_at(at)?;
        let range = range.intersection(ByteRange { start: 0, end: attributes.size });
        let (mut written, mut unknown) = (Vec::new(), Unknown::new(range));
        for (number, start, end, block) in self.blocks_in(range) {
            let seen = block.overlapping(start, end).filter(|run| run.version <= at);
            for run in seen.filter(|run| run.is_dirty) {
                let start = number * BLOCK_SIZE;
                let run = ByteRange {
                    start: start + u64::from(run.start),
                    end: start + u64::from(run.end),
                };
                unknown.remove(run);
                written.push(run);
            }
        }
        let mut met = |range: ByteRange, is_hole: bool| {
            unknown.remove(range);
            if !is_hole && !range.is_empty() {
                written.push(range);
            }
        };
        for (start, piece) in self.pieces_in(range).filter(|(_, piece)| piece.version <= at) {
            let part = ByteRange { start, end: piece.end }.intersection(range);
            met(part, matches!(piece.content, Unheld::Hole));
        }
        for old in self.older_at(at) {
            let part = ByteRange { start: old.start, end: old.end }.intersection(range);
            if !part.is_empty() {
                met(part, matches!(old.content, OldContent::Unheld(Unheld::Hole)));
            }
        }
        let stored = ByteRange { start: 0, end: self.base_limit(at) };
        let in_base = unknown.into_ranges().map(|range| range.intersection(stored));
        let in_base = in_base.filter(|range| !range.is_empty()).collect();
        Some(Layout { attributes, written, in_base, generation: self.generation() })
    }

    /// Whether a fold overtook the look that made this.
    pub fn has_overtaken(&self, layout: &Layout) -> bool {
        layout.generation != self.generation()
    }
}
