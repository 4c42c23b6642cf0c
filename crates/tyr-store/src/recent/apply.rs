//! What operations do to a blob in memory.
//!
//! Operations arrive in timestamp order (C6). Each one first keeps what it is about to hide, if a
//! reader needs it, and then changes the newest layer in place. What lies only in the base needs no
//! keeping: the base is never ahead of the oldest reader.

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::chunk::{Answers, Place, Start, operate};
use tyr_types::{ByteRange, ExtentRef, Operation, Outcome, Timestamp, Transform};

use super::blob::{BlobState, Cut, covers, within_block};
use super::block::BLOCK_SIZE;
use super::chunk::Content;
use super::lease::{DeadExtents, ExtentLease};
use super::older::{OldAttributes, OldContent, OldPiece};
use super::piece::{PIECE_MEMORY, Piece, Unheld};
use super::readers::Readers;

/// What an operation needs to know beside the blob itself.
#[derive(Clone, Copy, Debug)]
pub struct Applying<'a> {
    /// The transaction's commit timestamp.
    pub at: Timestamp,
    /// Who still reads older versions.
    pub readers: Readers<'a>,
    /// Where extents end that the operation drops.
    pub dead: &'a Arc<DeadExtents>,
}

impl BlobState {
    /// Does operations of a committed transaction on a blob that is kept whole.
    ///
    /// What transforms change must be resident ([`BlobState::missing`] is empty there).
    pub fn apply(&mut self, operations: &[Operation], applying: Applying) -> Answers {
        if !operations.iter().any(Operation::is_write) {
            return Answers::new();
        }
        self.keep_attributes(applying);
        self.is_dirty = true;
        let start = Start::Known(self.attributes.size);
        let mut whole = Content { state: self, place: Place::WHOLE, applying };
        operate(&mut whole, Place::WHOLE, operations, start, applying.at)
    }

    /// Keeps the attributes for readers before they change, and stamps the new version.
    pub(super) fn keep_attributes(&mut self, applying: Applying) {
        let old = self.attributes;
        // What comes late parts the time instead.
        debug_assert!(old.version <= applying.at, "in the order of timestamps (C6)");
        if applying.readers.need(old.version, applying.at) {
            self.older_attributes.keep(OldAttributes { attributes: old, until: applying.at });
            self.holds_older(size_of::<OldAttributes>());
        }
        self.attributes.version = applying.at;
    }

    pub(super) fn reshape(&mut self, exists: bool, size: u64, at: Timestamp) {
        debug_assert!(exists || size == 0, "what is not there has no {size} bytes");
        if (exists, size) != (self.attributes.exists, self.attributes.size) {
            self.attributes.exists = exists;
            self.attributes.size = size;
            self.reshaped = self.reshaped.max(at);
        }
    }

    pub(super) fn write_bytes(&mut self, offset: u64, bytes: &[u8], applying: Applying) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = at / BLOCK_SIZE;
            let start = (at % BLOCK_SIZE) as u32;
            let len = rest.len().min((BLOCK_SIZE - u64::from(start)) as usize);
            let (now, later) = rest.split_at(len);
            let range = ByteRange { start: at, end: at + len as u64 };
            self.keep_block(number, start, start + len as u32, applying);
            self.cut_pieces(range, applying);
            self.with_block(number, |block| block.write(start, now, applying.at, applying.readers));
            at = range.end;
            rest = later;
        }
    }

    pub(super) fn write_extents(&mut self, offset: u64, extents: &[ExtentRef], applying: Applying) {
        let mut start = offset;
        self.shape += 1;
        for extent in extents {
            let range = ByteRange { start, end: start + u64::from(extent.len) };
            self.cut_newest(range, applying);
            let lease = ExtentLease::new(*extent, applying.dead);
            let content = Unheld::Extent { lease, skip: 0 };
            let piece = Piece { end: range.end, version: applying.at, content };
            self.insert_piece(start, piece);
            start = range.end;
        }
    }

    /// Does transforms side by side, which are as wide as `range` together, as one change of it.
    pub(super) fn transform_bytes(
        &mut self,
        range: ByteRange,
        transforms: impl IntoIterator<Item = Transform>,
        applying: Applying,
        mut answer: impl FnMut(Outcome),
    ) {
        let change = |mut place: &mut [u8]| {
            for transform in transforms {
                let number = place.split_off_mut(..transform.width()).expect("they are as wide");
                answer(Outcome::Value(transform.apply(number)));
            }
            debug_assert!(place.is_empty(), "{} bytes stay as they were", place.len());
        };
        let (number, start) = (range.start / BLOCK_SIZE, (range.start % BLOCK_SIZE) as u32);
        let is_within = u64::from(start) + range.len() <= BLOCK_SIZE;
        let end = start + range.len() as u32;
        if is_within && self.block(number).is_some_and(|block| covers(block, start, end)) {
            self.keep_block(number, start, end, applying);
            self.with_block(number, |block| {
                block.alter(start..end, applying.at, applying.readers, change);
            });
            return;
        }
        let mut bytes: SmallVec<[u8; 32]> = SmallVec::from_elem(0, range.len() as usize);
        self.copy_resident(range, &mut bytes);
        change(&mut bytes);
        self.write_bytes(range.start, &bytes, applying);
    }

    /// Makes a hole of `range`, of which the base may have bytes.
    pub(super) fn clear_bytes(&mut self, range: ByteRange, applying: Applying) {
        debug_assert!(!range.is_empty(), "a hole of nothing");
        self.shape += 1;
        self.cut_newest(range, applying);
        let piece = Piece { end: range.end, version: applying.at, content: Unheld::Hole };
        self.insert_piece(range.start, piece);
    }

    /// Cuts the newest layer and the base to `len` bytes.
    pub(super) fn cut_tail(&mut self, len: u64, applying: Applying) {
        let at = applying.at;
        self.shape += 1;
        self.cut_newest(ByteRange::from(len), applying);
        debug_assert!(self.has_nothing_from(len), "bytes behind {len} would show when it grows");
        match self.cuts.last_mut() {
            Some(last) if last.at <= at && !applying.readers.need(last.at, at) => {
                *last = Cut { at, len: last.len.min(len) };
            }
            _ => self.cuts.push(Cut { at, len }),
        }
    }

    /// Whether the newest layer has no byte from `len` on.
    fn has_nothing_from(&self, len: u64) -> bool {
        let behind = ByteRange::from(len);
        let mut blocks = self.blocks_in(behind);
        self.pieces_in(behind).next().is_none()
            && blocks.all(|(_, start, end, block)| block.overlapping(start, end).next().is_none())
    }

    /// Takes `range` out of the newest layer, keeping what readers need.
    fn cut_newest(&mut self, range: ByteRange, applying: Applying) {
        let first = self.blocks.partition_point(|(n, _)| (n + 1) * BLOCK_SIZE <= range.start);
        let mut index = first;
        while let Some((number, _)) = self.blocks.get(index) {
            let number = *number;
            if number * BLOCK_SIZE >= range.end {
                break;
            }
            let (start, end) = within_block(number, range);
            self.keep_block(number, start, end, applying);
            let block = &mut self.blocks[index].1;
            let before = block.memory();
            block.cut(start, end);
            if block.is_empty() {
                self.memory -= before;
                self.blocks.remove(index);
            } else {
                self.memory = self.memory + block.memory() - before;
                index += 1;
            }
        }
        self.cut_pieces(range, applying);
    }

    /// Takes `range` out of the pieces, keeping what readers need.
    fn cut_pieces(&mut self, range: ByteRange, applying: Applying) {
        if self.pieces.is_empty() {
            return;
        }
        let starts: Vec<u64> = self.pieces_in(range).map(|(start, _)| start).collect();
        for start in starts {
            let piece = self.remove_piece(start);
            let hidden = ByteRange { start, end: piece.end }.intersection(range);
            if applying.readers.need(piece.version, applying.at) {
                let content = OldContent::Unheld(piece.content.after(hidden.start - start));
                self.keep(hidden, piece.version, applying.at, content);
            }
            self.keep_rest(start, piece, hidden);
        }
    }

    /// Puts back what is left of a piece that began at `start` around `hidden`.
    pub(super) fn keep_rest(&mut self, start: u64, piece: Piece, hidden: ByteRange) {
        if start < hidden.start {
            self.insert_piece(start, Piece { end: hidden.start, ..piece.clone() });
        }
        if hidden.end < piece.end {
            let content = piece.content.after(hidden.end - start);
            self.insert_piece(hidden.end, Piece { content, ..piece });
        }
    }

    pub(super) fn insert_piece(&mut self, start: u64, piece: Piece) {
        let whole = ByteRange { start, end: piece.end };
        debug_assert!(
            whole.is_empty() || self.pieces_in(whole).next().is_none(),
            "two pieces have bytes of {whole:?}"
        );
        self.pieces.insert(start, piece);
        self.memory += PIECE_MEMORY;
    }

    pub(super) fn remove_piece(&mut self, start: u64) -> Piece {
        self.memory -= PIECE_MEMORY;
        self.pieces.remove(&start).expect("whoever removes a piece has just seen it")
    }

    /// Keeps what block `number` holds of `start..end`, where readers need it and the base lacks
    /// it.
    fn keep_block(&mut self, number: u64, start: u32, end: u32, applying: Applying) {
        let Some(block) = self.block(number) else { return };
        let mut kept: SmallVec<[OldPiece; 1]> = SmallVec::new();
        for run in block.overlapping(start, end) {
            if run.is_dirty && applying.readers.need(run.version, applying.at) {
                kept.push(OldPiece {
                    start: number * BLOCK_SIZE + u64::from(run.start),
                    end: number * BLOCK_SIZE + u64::from(run.end),
                    from: run.version,
                    until: applying.at,
                    content: OldContent::Bytes(block.bytes(run.start, run.end).into()),
                });
            }
        }
        for piece in kept {
            let range = ByteRange { start: piece.start, end: piece.end };
            self.keep(range, piece.from, piece.until, piece.content);
        }
    }

    fn keep(&mut self, range: ByteRange, from: Timestamp, until: Timestamp, content: OldContent) {
        debug_assert!(!range.is_empty(), "nothing is kept of {range:?}");
        let ByteRange { start, end } = range;
        let piece = OldPiece { start, end, from, until, content };
        self.holds_older(piece.memory());
        self.older.keep(piece);
    }
}
