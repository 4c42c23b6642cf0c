//! What a fold takes from a blob, and what it leaves behind.
//!
//! A fold reads like a snapshot: it takes everything up to its timestamp that the base lacks, while
//! writers go on above it. When the base has it, what was taken becomes clean.

use std::sync::Arc;

use tyr_types::{ByteRange, Bytes, Timestamp};

use super::blob::{Attributes, BlobState, within_block};
use super::block::BLOCK_SIZE;
use super::lease::ExtentLease;
use super::older::{OldContent, OldPiece};
use super::piece::{PIECE_MEMORY, Unheld};
use crate::base::PieceData;

/// What the base lacks of a blob, as of one timestamp.
#[derive(Debug)]
pub struct Captured {
    /// As of this timestamp.
    pub at: Timestamp,
    /// The attributes then.
    pub attributes: Attributes,
    /// Everything the base holds from here on has been cut since the last fold.
    pub cut: Option<u64>,
    /// New bytes; disjoint, in no order.
    pub pieces: Vec<(u64, PieceData)>,
    /// What was cleared; shares no byte with the pieces, and is in no order.
    pub holes: Vec<ByteRange>,
    /// Where it begins: what lies before that the base has already.
    pub from: u64,
    /// Where it ends, when it is a part and not the last.
    pub part: Option<u64>,
    leases: Vec<Arc<ExtentLease>>,
}

impl BlobState {
    /// How far folds have taken what the base lacks.
    pub fn captured_to(&self) -> Timestamp {
        self.captured_to
    }

    /// Whether a fold has been, or is, at a later moment than this kept one, at which it stopped:
    /// then the base tells what was there, and what memory looks for in the base may be of later.
    pub fn is_passed(&self, at: Timestamp) -> bool {
        at < self.folded_at.max(self.captured_to)
    }

    /// Takes what the base lacks up to `at`, which must be registered as a reader; `None` when it
    /// lacks nothing.
    ///
    /// A chunk that was copied here as of later is left to the next fold: it came after the place
    /// where this one cuts the log, and versions of its moment are kept for nobody.
    ///
    /// # Panics
    /// When the version as of `at` is gone: then a fold would let go of a log that is still needed.
    pub fn capture(&mut self, at: Timestamp) -> Option<Captured> {
        self.capture_some(at, u64::MAX)
    }

    /// The same in parts of about `budget` bytes, if it is much more and that can be: the first
    /// one, or what comes behind those that are in the base.
    ///
    /// # Panics
    /// As [`BlobState::capture`].
    pub fn capture_some(&mut self, at: Timestamp, budget: u64) -> Option<Captured> {
        if at < self.included_to {
            return None;
        }
        let attributes =
            self.attributes_at(at).expect("a fold's own snapshot keeps the versions it needs");
        if attributes.version <= self.folded_at {
            return None;
        }
        // The list of dirty blobs is what a fold goes by.
        debug_assert!(self.is_dirty, "the base lacks {} of it", attributes.version);
        self.base_generation += 1;
        self.captured_to = at;
        self.stood_at = None;
        let from = self.part_start(at);
        let part = self.part_end(at, from, budget);
        let cuts = self.cuts.iter().filter(|cut| cut.at <= at).map(|cut| cut.len);
        let mut captured = Captured {
            at,
            attributes,
            cut: cuts.min(),
            pieces: Vec::new(),
            holes: Vec::new(),
            from,
            part,
            leases: Vec::new(),
        };
        self.capture_newest(&mut captured);
        self.capture_older(&mut captured);
        debug_assert!(captured.attributes.version <= at, "a later version is none of this fold's");
        debug_assert!(
            !captured.attributes.exists || captured.is_disjoint(),
            "a byte is captured twice, or lies behind the end: {captured:?}"
        );
        Some(captured)
    }

    fn capture_newest(&self, captured: &mut Captured) {
        let (at, taken) = (captured.at, captured.range());
        for (number, _, _, block) in self.blocks_in(taken) {
            for run in block.runs().filter(|run| run.is_dirty_at(at)) {
                let offset = number * BLOCK_SIZE + u64::from(run.start);
                let bytes = Bytes::copy_from_slice(block.bytes(run.start, run.end));
                captured.pieces.push((offset, PieceData::Bytes(bytes)));
            }
        }
        for (start, piece) in self.pieces.iter().filter(|(_, piece)| piece.version <= at) {
            debug_assert!(taken == ByteRange::ALL, "what is not by value comes with all else");
            captured.add_unheld(ByteRange { start: *start, end: piece.end }, &piece.content);
        }
    }

    fn capture_older(&self, captured: &mut Captured) {
        let (at, taken) = (captured.at, captured.range());
        for piece in
            self.older.at(at).filter(|old| taken.start <= old.start && old.start < taken.end)
        {
            debug_assert!(piece.end <= taken.end, "a block is all in one part");
            match &piece.content {
                OldContent::Bytes(bytes) => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    captured.pieces.push((piece.start, PieceData::Bytes(bytes)));
                }
                OldContent::Unheld(content) => {
                    captured.add_unheld(ByteRange { start: piece.start, end: piece.end }, content);
                }
            }
        }
    }

    /// Takes note that the base has what `captured` holds; answers whether more is left to fold.
    pub fn settle(&mut self, captured: &Captured) -> bool {
        // What was found to stand meanwhile was captured as it was then, and nothing on top of it.
        let at = self.stood_at.take().unwrap_or(captured.at);
        assert!(self.folded_at <= at, "a fold as of {at} after one as of {}", self.folded_at);
        if captured.part.is_some() {
            self.settle_part(at, captured.range());
            return true;
        }
        if !captured.leases.is_empty() {
            self.leave_extents(captured, at);
        }
        // Where nothing was cut and there are no pieces, a gap beyond what the base held before is
        // a hole in it: nobody need look.
        let is_plain = self.cuts.is_empty()
            && self.pieces.is_empty()
            && captured.leases.is_empty()
            && captured.holes.is_empty();
        let holes = match is_plain {
            true => ByteRange { start: self.base_size, end: captured.attributes.size },
            false => ByteRange { start: 0, end: 0 },
        };
        for (number, block) in &mut self.blocks {
            let before = block.memory();
            let (start, end) = within_block(*number, holes);
            block.settle(at, start..end);
            self.memory = self.memory + block.memory() - before;
        }
        // Who read before must still meet at validation what has its place in the base alone now
        // (C1), and a copy says of when it is (D2).
        let pieces = self.pieces.values().map(|piece| piece.version);
        let cuts = self.cuts.iter().map(|cut| cut.at);
        let settled = pieces.chain(cuts).filter(|version| *version <= at).max();
        self.forgotten = self.forgotten.max(settled.unwrap_or(Timestamp::ZERO));
        let before = self.pieces.len();
        self.pieces.retain(|_, piece| piece.version > at);
        self.memory -= (before - self.pieces.len()) * PIECE_MEMORY;
        self.cuts.retain(|cut| cut.at > at);
        self.base_size = captured.attributes.size;
        self.folded_at = at;
        self.begun = None;
        self.included_to = self.included_to.max(at);
        self.is_dirty = self.attributes.version > at;
        debug_assert!(self.is_counted(), "memory is not what is held");
        // It may leave memory from now on.
        debug_assert!(self.is_dirty || self.is_all_in_base(), "more than the base has is here");
        self.is_dirty
    }

    /// The base has what these extents had at `at`, perhaps by value, and says alone how long it
    /// needs them: who still means to read one, or would find it here as what was current then and
    /// is not any more, asks the base.
    fn leave_extents(&mut self, captured: &Captured, at: Timestamp) {
        captured.leases.iter().for_each(|lease| lease.adopt());
        self.base_generation += 1;
        let is_left = |old: &OldPiece| {
            let is_extent = matches!(old.content, OldContent::Unheld(Unheld::Extent { .. }));
            is_extent && old.from <= at && at < old.until
        };
        let mut freed = 0;
        self.older.drop_those(is_left, |old| freed += old.memory());
        self.memory -= freed;
        self.older_memory -= freed;
    }

    /// Whether the base has every byte that is here.
    fn is_all_in_base(&self) -> bool {
        let mut runs = self.blocks.iter().flat_map(|(_, block)| block.runs());
        self.cuts.is_empty() && self.pieces.is_empty() && runs.all(|run| !run.is_dirty)
    }
}

impl Captured {
    /// Which bytes of the blob it is about.
    pub fn range(&self) -> ByteRange {
        ByteRange { start: self.from, end: self.part.unwrap_or(ByteRange::ALL.end) }
    }

    /// Whether the pieces share no byte, and lie within the blob.
    fn is_disjoint(&self) -> bool {
        let pieces = self.pieces.iter().map(|(start, piece)| (*start, start + piece.len()));
        let holes = self.holes.iter().map(|hole| (hole.start, hole.end));
        let mut spans: Vec<_> = pieces.chain(holes).collect();
        spans.sort_unstable();
        spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
            && spans.last().is_none_or(|(_, end)| *end <= self.attributes.size)
    }

    fn add_unheld(&mut self, range: ByteRange, content: &Unheld) {
        match content {
            Unheld::Extent { lease, skip } => {
                let (extent, len) = (lease.extent(), range.len() as u32);
                self.pieces.push((range.start, PieceData::Extent { extent, skip: *skip, len }));
                self.leases.push(Arc::clone(lease));
            }
            Unheld::Hole => {
                // What came late may have a hole where the end was not yet then: there is nothing.
                let hole = range.intersection(ByteRange { start: 0, end: self.attributes.size });
                if !hole.is_empty() {
                    self.holes.push(hole);
                }
            }
        }
    }
}
