//! One blob in memory: its attributes, the bytes known of it, and the versions readers still need.
//!
//! ```text
//!   newest     attributes · blocks of bytes · pieces: extents, holes   what R1 reads
//!   older      attributes and pieces with [from, until) timestamps     what snapshots read (R5)
//!   cuts       truncations since the last fold: the base beyond them is gone
//!   base       on disk, as of `folded_at`; not in here
//! ```
//!
//! [`super::apply`] changes it, [`super::plan`] reads it, [`super::capture`] moves it to the base.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tyr_types::{ByteRange, Number, NumberType, Stat, Timestamp};

use super::block::{BLOCK_SIZE, Block};
use super::older::{OldAttributes, OldPiece, Older};
use super::parts::Begun;
use super::piece::{PIECE_MEMORY, Piece};
use super::readers::{Counted, Readers};

/// Size and existence of a blob, as one version has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Whether there is a blob.
    pub exists: bool,
    /// Its size in bytes; 0 when there is none.
    pub size: u64,
    /// The last transaction that wrote to the blob.
    pub version: Timestamp,
}

impl Attributes {
    /// As a user sees it: `None` for an absent blob.
    pub fn stat(self) -> Option<Stat> {
        self.exists.then_some(Stat { size: self.size, version: self.version })
    }
}

/// The blob was cut to `len` at `at`: what the base holds beyond is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub at: Timestamp,
    pub len: u64,
}

/// Memory that a blob takes around its state: the cell, its name twice, its places in the table and
/// in the list of dirty blobs, roughly.
const CELL_MEMORY: usize = 320;

/// A blob in memory.
#[derive(Debug)]
pub struct BlobState {
    pub(super) attributes: Attributes,
    /// The last transaction that changed size or existence.
    pub(super) reshaped: Timestamp,
    pub(super) older_attributes: Older<OldAttributes>,
    pub(super) cuts: SmallVec<[Cut; 1]>,
    /// Bytes that the base holds; beyond are holes.
    pub(super) base_size: u64,
    /// Operations up to here are in the base.
    pub(super) folded_at: Timestamp,
    /// Of a chunk: operations up to here are in what is here, in the base or by a copy.
    pub(super) included_to: Timestamp,
    /// Of a chunk that was found to be as it was at this moment, since a fold has last looked at
    /// it: what came later is on top of that, also what is of before the fold.
    pub(super) stood_at: Option<Timestamp>,
    /// Of a chunk of which nothing was found: operations up to here came to nothing that is left.
    pub(super) absent_to: Timestamp,
    /// Of a chunk: the moments that were always counted among the readers. At others runs may be
    /// of a later version than their bytes.
    pub(super) counted: Counted,
    /// Of a chunk: below this nothing is known of it, not even whether it was there.
    pub(super) known_from: Timestamp,
    /// Nothing that was written later than this has lost its place: what memory has forgotten
    /// counts as of this version.
    pub(super) forgotten: Timestamp,
    /// Counts folds: a read that spans one looks again.
    pub(super) base_generation: u32,
    /// How far folds have taken what the base lacks: it has that, or is about to.
    pub(super) captured_to: Timestamp,
    /// How far a fold has come that takes it in parts.
    pub(super) begun: Option<Box<Begun>>,
    /// Counts changes after which a gap may not be what it was: cuts and pieces.
    pub(super) shape: u32,
    /// By number, ascending. Most blobs are small and have one.
    pub(super) blocks: SmallVec<[(u64, Block); 1]>,
    /// By where they begin: disjoint, and none shares a byte with a run of a block.
    pub(super) pieces: BTreeMap<u64, Piece>,
    pub(super) older: Older<OldPiece>,
    /// Memory that older versions take.
    pub(super) older_memory: usize,
    /// Of a chunk: when older versions take so much it is time to look for those that may go.
    pub(super) collect_at: usize,
    pub(super) memory: usize,
    pub(super) is_dirty: bool,
}

impl BlobState {
    /// The state of a blob of which the base says this.
    pub fn new(attributes: Attributes, folded_at: Timestamp) -> Self {
        Self {
            attributes,
            reshaped: attributes.version,
            older_attributes: Older::default(),
            cuts: SmallVec::new(),
            base_size: attributes.size,
            folded_at,
            included_to: folded_at,
            stood_at: None,
            absent_to: Timestamp::ZERO,
            counted: Counted::default(),
            known_from: Timestamp::ZERO,
            forgotten: attributes.version,
            base_generation: 0,
            captured_to: Timestamp::ZERO,
            begun: None,
            shape: 0,
            blocks: SmallVec::new(),
            pieces: BTreeMap::new(),
            older: Older::default(),
            older_memory: 0,
            collect_at: 0,
            memory: size_of::<Self>() + CELL_MEMORY,
            is_dirty: false,
        }
    }

    /// The same, when anything may have been forgotten that was written up to `forgotten`.
    #[must_use]
    pub fn with_forgotten(self, forgotten: Timestamp) -> Self {
        Self { forgotten: self.forgotten.max(forgotten), ..self }
    }

    /// The same of a chunk of which nothing was found, when it may have been there below `at`.
    #[must_use]
    pub fn with_known_from(self, at: Timestamp) -> Self {
        Self { known_from: at, ..self }
    }

    /// The same of a chunk of which nothing was found, when all that was done up to `at` was
    /// folded: it came to nothing, or what it came to was deleted since.
    #[must_use]
    pub fn with_absent_to(self, at: Timestamp) -> Self {
        Self { absent_to: at, ..self }
    }

    /// Whether it was there and is not any more.
    pub fn is_gone(&self) -> bool {
        !self.attributes.exists && self.attributes.version > Timestamp::ZERO
    }

    /// The newest attributes.
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// Operations up to here are in the base; replay skips them.
    pub fn folded_at(&self) -> Timestamp {
        self.folded_at
    }

    /// Whether something here is not in the base yet.
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Bytes of memory held, roughly.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The newest version that overlaps `range` (C1); with `is_attributes` also the newest that
    /// changed size or existence, and of no byte at all the newest of the blob.
    pub fn newest_overlapping(&self, range: ByteRange, is_attributes: bool) -> Timestamp {
        let mut newest = self.forgotten;
        if is_attributes {
            newest = newest.max(self.reshaped);
        }
        if is_attributes && range == ByteRange::NOTHING {
            newest = newest.max(self.attributes.version);
        }
        for (_, start, end, block) in self.blocks_in(range) {
            for run in block.overlapping(start, end) {
                newest = newest.max(run.version);
            }
        }
        for (_, piece) in self.pieces_in(range) {
            newest = newest.max(piece.version);
        }
        for cut in self.cuts.iter().filter(|cut| cut.len < range.end) {
            newest = newest.max(cut.at);
        }
        newest
    }

    /// Whether older versions are held here.
    pub fn has_older(&self) -> bool {
        !self.older.is_empty() || !self.older_attributes.is_empty()
    }

    /// Older versions take so much more memory.
    pub(super) fn holds_older(&mut self, memory: usize) {
        self.memory += memory;
        self.older_memory += memory;
    }

    /// Drops older versions that no reader needs (V3); answers how many are left.
    ///
    /// `readers` may be a little old: readers that came later read at `now` or above.
    pub fn collect(&mut self, readers: Readers, now: Timestamp) -> usize {
        let mut freed = 0;
        self.older.drop_unneeded(readers, now, |piece| freed += piece.memory());
        self.older_attributes.drop_unneeded(readers, now, |_| freed += size_of::<OldAttributes>());
        self.memory -= freed;
        self.older_memory -= freed;
        debug_assert!(self.has_older() || self.older_memory == 0, "memory of nothing is counted");
        debug_assert!(self.is_counted(), "memory is not what is held");
        self.older.len() + self.older_attributes.len()
    }

    /// Forgets clean bytes, which the base has.
    pub fn forget_clean(&mut self) {
        self.forget_clean_in(ByteRange::ALL);
    }

    /// The same of blocks that lie in `range`.
    pub fn forget_clean_in(&mut self, range: ByteRange) {
        let (memory, forgotten) = (&mut self.memory, &mut self.forgotten);
        self.blocks.retain(|(number, block)| {
            let number = *number;
            let whole = ByteRange { start: number * BLOCK_SIZE, end: (number + 1) * BLOCK_SIZE };
            if !range.contains(whole) {
                return true;
            }
            *memory -= block.memory();
            *forgotten = block.forget_clean().max(*forgotten);
            let is_kept = !block.is_empty();
            // The runs that are left take less than before, too.
            *memory += if is_kept { block.memory() } else { 0 };
            is_kept
        });
        debug_assert!(self.is_counted(), "memory is not what is held");
    }

    /// Whether the memory that is counted is that of what is held.
    pub(super) fn is_counted(&self) -> bool {
        let blocks: usize = self.blocks.iter().map(|(_, block)| block.memory()).sum();
        let pieces = self.pieces.len() * PIECE_MEMORY;
        self.memory == size_of::<Self>() + CELL_MEMORY + blocks + pieces + self.older_memory
    }

    /// Whether the blob holds exactly `expected` at `offset`, as far as memory knows.
    pub fn matches(&self, offset: u64, expected: &[u8]) -> bool {
        let range = ByteRange { start: offset, end: offset + expected.len() as u64 };
        self.attributes.exists
            && range.end <= self.attributes.size
            && self.plan(range, Timestamp::MAX).is_some_and(|plan| plan.into_bytes() == expected)
    }

    /// The number at `offset`, as far as memory knows; zero beyond the blob's end.
    pub fn number(&self, offset: u64, number_type: NumberType) -> Option<Number> {
        let width = number_type.width() as u64;
        let end = if self.attributes.exists { self.attributes.size } else { 0 };
        let range = ByteRange { start: offset.min(end), end: (offset + width).min(end) };
        let plan = self.plan(range, Timestamp::MAX).filter(|plan| plan.missing.is_empty())?;
        let found = plan.into_bytes();
        debug_assert!(found.len() as u64 <= width, "no more is read than is asked for");
        Some(Number::load_written(number_type, &found))
    }

    /// Whether the numbers that transforms change in `range` can be changed at once.
    pub fn is_resident(&self, range: ByteRange) -> bool {
        if self.holes().contains(range) {
            return true;
        }
        let number = range.start / BLOCK_SIZE;
        let (start, end) = ((range.start % BLOCK_SIZE) as u32, range.len() as u32);
        let is_known = u64::from(start) + range.len() <= BLOCK_SIZE
            && self.block(number).is_some_and(|block| covers(block, start, start + end));
        is_known || self.missing(range).is_empty()
    }

    /// Where gaps in memory are holes: neither the base nor a piece has anything there.
    pub(super) fn holes(&self) -> ByteRange {
        ByteRange::from(if self.pieces.is_empty() { self.base_size } else { u64::MAX })
    }

    // -- where things are ------------------------------------------------------------------

    pub(super) fn block(&self, number: u64) -> Option<&Block> {
        self.find_block(number).ok().map(|index| &self.blocks[index].1)
    }

    /// Runs `work` on block `number`, made if missing, and counts its memory.
    pub(super) fn with_block<T>(&mut self, number: u64, work: impl FnOnce(&mut Block) -> T) -> T {
        let index = self.find_block(number).unwrap_or_else(|index| {
            self.blocks.insert(index, (number, Block::default()));
            debug_assert!(index == 0 || self.blocks[index - 1].0 < number, "blocks are in order");
            debug_assert!(self.blocks.get(index + 1).is_none_or(|(next, _)| number < *next));
            index
        });
        let block = &mut self.blocks[index].1;
        let before = block.memory();
        let answer = work(block);
        self.memory = self.memory + block.memory() - before;
        answer
    }

    /// The index of block `number`, or the one that it would have.
    fn find_block(&self, number: u64) -> Result<usize, usize> {
        // Appends and small blobs find their block last, and a blob without gaps has it where its
        // number says.
        let last = self.blocks.len().wrapping_sub(1);
        let is_at = |index| self.blocks.get(index).is_some_and(|(n, _)| *n == number);
        match [last, number as usize].into_iter().find(|index| is_at(*index)) {
            Some(index) => Ok(index),
            None => self.blocks.binary_search_by_key(&number, |(n, _)| *n),
        }
    }

    /// The blocks that share a byte with `range`: number, the shared part as offsets, the block.
    pub(super) fn blocks_in(
        &self,
        range: ByteRange,
    ) -> impl Iterator<Item = (u64, u32, u32, &Block)> {
        let first = self.blocks.partition_point(|(n, _)| (n + 1) * BLOCK_SIZE <= range.start);
        self.blocks[first..]
            .iter()
            .take_while(move |(number, _)| number * BLOCK_SIZE < range.end)
            .map(move |(number, block)| {
                let (start, end) = within_block(*number, range);
                (*number, start, end, block)
            })
    }

    /// The pieces that share a byte with `range`, by where they start.
    pub(super) fn pieces_in(&self, range: ByteRange) -> impl Iterator<Item = (u64, &Piece)> {
        let before = self.pieces.range(..range.start).next_back();
        let before = before.filter(move |(_, piece)| piece.end > range.start);
        before
            .into_iter()
            .chain(self.pieces.range(range.start..range.end.max(range.start)))
            .map(|(start, piece)| (*start, piece))
    }
}

/// The part of `range` that lies in block `number`, as offsets in the block; empty if none does.
pub(super) fn within_block(number: u64, range: ByteRange) -> (u32, u32) {
    let base = number * BLOCK_SIZE;
    let inside = |offset: u64| (offset.clamp(base, base + BLOCK_SIZE) - base) as u32;
    (inside(range.start), inside(range.end))
}

/// Whether one run or more cover all of `start..end`.
pub(super) fn covers(block: &Block, start: u32, end: u32) -> bool {
    block.gaps(start, end).is_empty()
}
