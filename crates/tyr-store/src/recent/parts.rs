//! Folding a large blob in parts: so that what is folded leaves memory as it goes, and no writer
//! waits until all of the blob is.
//!
//! ```text
//!          0              below                                  size
//!   base   |== fold's moment ==|.... the fold before ............|
//!   memory   what came since     what the fold takes, and since
//! ```
//!
//! With each part the base says how far the fold is ([`Ahead`]); with the last one it is all of one
//! moment again. If the process ends in between, the log is played over that: what it has of up to
//! the fold's moment is applied to all of the blob, since operations look at its size, and what
//! that left below is let go of before anything later is applied, for there the base has it. What
//! it computed there of bytes that the base had already is let go of with it; on the other side of
//! the end nothing was computed of those, because no operation wrote on both sides.
//!
//! Only bytes by value come in parts: a blob of which also a large payload, a hole or a cut is to
//! be folded comes whole.

use tyr_types::{ByteRange, Timestamp};

use super::blob::{BlobState, within_block};
use super::block::BLOCK_SIZE;
use super::older::OldContent;
use crate::base::Ahead;

/// How far the base is ahead of [`BlobState::folded_at`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub ahead: Ahead,
    /// Whether nothing is here any more that the base has there.
    is_caught_up: bool,
}

impl BlobState {
    /// The same, when the base says that a fold has come so far.
    #[must_use]
    pub fn with_ahead(mut self, ahead: Option<Ahead>) -> Self {
        self.begun = ahead.map(|ahead| Box::new(Begun { ahead, is_caught_up: false }));
        self
    }

    /// The log is played, and has come to `at`: lets go of what it brought of up to the fold's
    /// moment, where the base has that.
    pub fn catch_up(&mut self, at: Timestamp) {
        let Some(begun) = &mut self.begun else { return };
        if begun.is_caught_up || at <= begun.ahead.at {
            return;
        }
        begun.is_caught_up = true;
        let (ahead, memory) = (begun.ahead, &mut self.memory);
        let below = ByteRange { start: 0, end: ahead.below };
        self.blocks.retain(|(number, block)| {
            let (start, end) = within_block(*number, below);
            *memory -= block.memory();
            if start < end {
                block.cut(start, end);
            }
            *memory += if block.is_empty() { 0 } else { block.memory() };
            !block.is_empty()
        });
        self.forgotten = self.forgotten.max(ahead.at);
        debug_assert!(self.is_counted(), "memory is not what is held");
    }

    /// Where the next part begins that a fold up to `at` takes.
    pub(super) fn part_start(&self, at: Timestamp) -> u64 {
        let begun = self.begun.as_ref().filter(|begun| begun.ahead.at == at);
        debug_assert!(begun.is_none_or(|it| it.is_caught_up), "the log is not played yet");
        begun.map_or(0, |begun| begun.ahead.below)
    }

    /// Where the part ends that begins at `from` and has about `budget` bytes; `None` when the rest
    /// comes whole.
    pub(super) fn part_end(&self, at: Timestamp, from: u64, budget: u64) -> Option<u64> {
        // Nodes take no parts, and most blobs are too short: that is looked at before all else.
        if self.base_size.saturating_sub(from) <= budget {
            return None;
        }
        let is_of_other = self.begun.as_ref().is_some_and(|begun| begun.ahead.at != at);
        let is_by_value = self.cuts.iter().all(|cut| cut.at > at)
            && self.pieces.values().all(|piece| piece.version > at)
            && self.older.at(at).all(|old| matches!(old.content, OldContent::Bytes(_)));
        if is_of_other || !is_by_value {
            return None;
        }
        let mut older: Vec<ByteRange> = self
            .older
            .at(at)
            .map(|old| ByteRange { start: old.start, end: old.end })
            .filter(|old| old.start >= from)
            .collect();
        older.sort_unstable_by_key(|old| old.start);
        let is_written = |byte: u64| {
            let before = older.partition_point(|old| old.start <= byte);
            let is_older = before.checked_sub(1).is_some_and(|it| byte < older[it].end);
            is_older || self.is_dirty_at(byte, at)
        };
        let first = self.blocks.partition_point(|(number, _)| (number + 1) * BLOCK_SIZE <= from);
        let mut bytes = 0;
        for (number, block) in &self.blocks[first..] {
            let taken = block.runs().filter(|run| run.is_dirty_at(at));
            bytes += taken.map(|run| u64::from(run.end - run.start)).sum::<u64>();
            let end = (number + 1) * BLOCK_SIZE;
            if end >= self.base_size {
                return None;
            }
            if bytes >= budget && !(is_written(end - 1) && is_written(end)) {
                return Some(end);
            }
        }
        None
    }

    /// A part may be in the base or not: the next fold takes all of the blob in one go.
    pub fn leave_parts(&mut self) {
        let ahead = Ahead { below: 0, at: Timestamp::ZERO };
        self.begun = Some(Box::new(Begun { ahead, is_caught_up: true }));
    }

    fn is_dirty_at(&self, byte: u64, at: Timestamp) -> bool {
        let inside = (byte % BLOCK_SIZE) as u32;
        self.block(byte / BLOCK_SIZE).is_some_and(|block| {
            block.overlapping(inside, inside + 1).any(|run| run.is_dirty_at(at))
        })
    }

    /// Takes note that the base has what a fold up to `at` took of this part.
    pub(super) fn settle_part(&mut self, at: Timestamp, part: ByteRange) {
        let memory = &mut self.memory;
        let first = self.blocks.partition_point(|(n, _)| (n + 1) * BLOCK_SIZE <= part.start);
        for (_, block) in
            self.blocks[first..].iter_mut().take_while(|(n, _)| n * BLOCK_SIZE < part.end)
        {
            *memory -= block.memory();
            block.settle(at, 0..0);
            *memory += block.memory();
        }
        let ahead = Ahead { below: part.end, at };
        self.begun = Some(Box::new(Begun { ahead, is_caught_up: true }));
        debug_assert!(self.is_counted(), "memory is not what is held");
    }
}
