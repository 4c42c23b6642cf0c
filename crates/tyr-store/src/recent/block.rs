//! Bytes held in memory, in aligned blocks, each byte with the version that wrote it.
//!
//! ```text
//! block 3 of a blob      0        100        340            16384
//!   data                 |xxxxxxxx|..........|xxxxxxxxxxxxxxx|
//!   runs                  v7 dirty    gap      v0 clean
//! ```
//!
//! A *run* is a stretch of known bytes of one version. A gap is unknown here: what lies there is in
//! the base on disk. A *dirty* run is not in the base yet; a clean one equals the base and may be
//! forgotten at any time. Neighbouring runs that no reader can tell apart are merged, so that a
//! block that is written over and over stays one run; where it is written here and there, the few
//! clean bytes and holes between count as dirty in time, and are folded too.

use std::ops::Range;

use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::readers::Readers;
use super::runs::{Run, Runs};

/// Bytes of a block. Also the largest inline segment of the base.
pub const BLOCK_SIZE: u64 = 16 << 10;

const _: () = assert!(BLOCK_SIZE <= u16::MAX as u64, "a run has 16 bits for where it ends");

/// Clean runs and holes up to this long are made one with the dirty runs beside them: a run takes
/// memory, and time in each later write to its block; the base writes what is near by anew in any
/// case.
const SWALLOWED_LEN_MAX: u32 = 256;

/// Runs that are so few take little time to look at.
const MERGED_FROM: usize = 4;

/// What a block's memory begins at a multiple of: what is written to the end of a block alone needs
/// none for its beginning.
const STEP: u32 = 4 << 10;

/// Known bytes of one aligned block of a blob.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// From `origin` to the end of the last run; gaps hold no meaning.
    data: Vec<u8>,
    /// Where in the block the data begin: a multiple of [`STEP`], at or before the first run.
    origin: u16,
    runs: Runs,
    /// How many there were when they were merged last.
    merged: u16,
}

impl Block {
    /// The runs, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter()
    }

    /// The bytes of a stretch that runs cover.
    pub fn bytes(&self, start: u32, end: u32) -> &[u8] {
        debug_assert!(self.gaps(start, end).is_empty(), "nobody knows all of {start}..{end}");
        &self.data[self.place(start, end)]
    }

    /// Where a stretch of the block is in its data.
    fn place(&self, start: u32, end: u32) -> Range<usize> {
        let origin = u32::from(self.origin);
        (start - origin) as usize..(end - origin) as usize
    }

    /// The data of a stretch that there is memory for.
    fn data_mut(&mut self, start: u32, end: u32) -> &mut [u8] {
        let place = self.place(start, end);
        &mut self.data[place]
    }

    /// The block's end of what there is memory for.
    fn end(&self) -> u32 {
        u32::from(self.origin) + self.data.len() as u32
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes of memory it holds.
    pub fn memory(&self) -> usize {
        self.data.capacity() + self.runs.memory()
    }

    /// Writes `bytes` at `start` as version `version`, over whatever is known there.
    ///
    /// What was there has to be kept by the caller first, where readers need it
    /// ([`Block::overlapping`]).
    pub fn write(&mut self, start: u32, bytes: &[u8], version: Timestamp, readers: Readers) {
        let end = start + bytes.len() as u32;
        debug_assert!(u64::from(end) <= BLOCK_SIZE && start < end);
        self.reserve(start, end);
        self.data_mut(start, end).copy_from_slice(bytes);
        // The hot case: an append to the block's only run, or a change inside it.
        if let Some(run) = self.runs.only()
            && run.is_dirty
            && run.start <= start
            && start <= run.end
            && readers.take_as_one(run.version, version)
        {
            let (end, version) = (run.end.max(end), run.version.max(version));
            self.runs.splice(0..1, &[Run { end, version, ..run }]);
            return;
        }
        self.put(Run { start, end, version, is_dirty: true }, readers);
    }

    /// Lets `change` alter the bytes of `range`, which runs must cover, as `version`.
    pub fn alter(
        &mut self,
        range: Range<u32>,
        version: Timestamp,
        readers: Readers,
        change: impl FnOnce(&mut [u8]),
    ) {
        let Range { start, end } = range;
        debug_assert!(self.gaps(start, end).is_empty(), "what is altered is known");
        change(self.data_mut(start, end));
        if let Some(run) = self.runs.only()
            && run.is_dirty
            && readers.take_as_one(run.version, version)
        {
            debug_assert!(run.start <= start && end <= run.end);
            self.runs.splice(0..1, &[Run { version: run.version.max(version), ..run }]);
            return;
        }
        self.put(Run { start, end, version, is_dirty: true }, readers);
    }

    /// Fills the gaps in `start..start + bytes.len()` with what the base holds there: clean, and
    /// older than every reader.
    pub fn fill(&mut self, start: u32, bytes: &[u8]) {
        let end = start + bytes.len() as u32;
        debug_assert!(u64::from(end) <= BLOCK_SIZE, "{start}..{end} reaches into another block");
        for (gap_start, gap_end) in self.gaps(start, end) {
            self.reserve(gap_start, gap_end);
            let from = (gap_start - start) as usize..(gap_end - start) as usize;
            self.data_mut(gap_start, gap_end).copy_from_slice(&bytes[from]);
            let run =
                Run { start: gap_start, end: gap_end, version: Timestamp::ZERO, is_dirty: false };
            self.put(run, Readers::NONE);
        }
        debug_assert!(self.gaps(start, end).is_empty(), "all of it is known now");
    }

    /// Puts dirty bytes of an older version where nothing is known; merges with nothing.
    pub fn put_older(&mut self, start: u32, bytes: &[u8], version: Timestamp) {
        let end = start + bytes.len() as u32;
        debug_assert!(
            start < end && u64::from(end) <= BLOCK_SIZE,
            "{start}..{end} is nothing, or reaches into another block"
        );
        debug_assert!(
            self.overlapping(start, end).all(|run| run.version <= version || !run.is_dirty),
            "what is newer would be hidden"
        );
        self.reserve(start, end);
        self.data_mut(start, end).copy_from_slice(bytes);
        self.cut(start, end);
        let at = self.runs.overlapping(start, end);
        self.runs.splice(at, &[Run { start, end, version, is_dirty: true }]);
    }

    /// The parts of `start..end` that no run covers.
    pub fn gaps(&self, start: u32, end: u32) -> SmallVec<[(u32, u32); 4]> {
        self.runs.gaps(start, end)
    }

    /// The runs that share a byte with `start..end`, cut to it.
    pub fn overlapping(&self, start: u32, end: u32) -> impl Iterator<Item = Run> + '_ {
        let met = self.runs.range(self.runs.overlapping(start, end));
        met.map(move |run| Run { start: run.start.max(start), end: run.end.min(end), ..run })
    }

    /// Forgets what is known of `start..end`.
    pub fn cut(&mut self, start: u32, end: u32) {
        let met = self.runs.overlapping(start, end);
        let mut rest: SmallVec<[Run; 2]> = SmallVec::new();
        for run in self.runs.range(met.clone()) {
            if run.start < start {
                rest.push(Run { end: start, ..run });
            }
            if run.end > end {
                rest.push(Run { start: end, ..run });
            }
        }
        self.runs.splice(met, &rest);
    }

    /// Marks dirty runs of versions up to `at` as clean: the base has them now. The gaps in `holes`
    /// are known to be holes in it, and are filled as far as there is memory for them.
    pub fn settle(&mut self, at: Timestamp, holes: Range<u32>) {
        self.runs.clean(at);
        let mut runs: Vec<Run> = self.runs().collect();
        let holes = holes.start.max(u32::from(self.origin))..holes.end.min(self.end());
        for (start, end) in self.gaps(holes.start, holes.end) {
            self.data_mut(start, end).fill(0);
            runs.push(Run { start, end, version: Timestamp::ZERO, is_dirty: false });
        }
        runs.sort_unstable_by_key(|run| run.start);
        self.runs = runs.into_iter().collect();
        self.merge(|left, right| left.end == right.start && !left.is_dirty && !right.is_dirty);
    }

    /// Whether there are many more runs than were left when they were merged last: those that have
    /// come since pay for looking at all.
    pub fn is_worth_merging(&self) -> bool {
        self.runs.len() >= 2 * usize::from(self.merged) + MERGED_FROM
    }

    /// Merges neighbours that `readers` cannot tell apart any more, also over short gaps in
    /// `holes`, where neither the base nor anything else has bytes.
    pub fn merge_unread(&mut self, readers: Readers, holes: Range<u32>) {
        self.merge(|left, right| {
            let is_alike =
                left.is_dirty == right.is_dirty || is_swallowed(left) || is_swallowed(right);
            let is_near = left.end == right.start
                || right.start - left.end <= SWALLOWED_LEN_MAX
                    && holes.start <= left.end
                    && right.start <= holes.end
                    && readers.take_as_one(Timestamp::ZERO, left.version);
            is_alike && is_near && readers.take_as_one(left.version, right.version)
        });
    }

    /// Makes neighbours one; a gap between them is a hole.
    fn merge(&mut self, is_one: impl Fn(&Run, &Run) -> bool) {
        let origin = u32::from(self.origin);
        let mut merged = Runs::default();
        let mut last: Option<Run> = None;
        for run in self.runs.iter() {
            match &mut last {
                Some(last) if is_one(last, &run) => {
                    let gap = (last.end - origin) as usize..(run.start - origin) as usize;
                    self.data[gap].fill(0);
                    last.end = run.end;
                    last.version = last.version.max(run.version);
                    last.is_dirty |= run.is_dirty;
                }
                _ => merged.extend(last.replace(run)),
            }
        }
        merged.extend(last);
        debug_assert!(last.is_none_or(|last| last.end <= self.end()), "a run has its bytes");
        self.merged = merged.len() as u16;
        self.runs = merged;
    }

    /// Forgets clean runs; answers the newest version that was forgotten.
    pub fn forget_clean(&mut self) -> Timestamp {
        let clean = self.runs().filter(|run| !run.is_dirty).map(|run| run.version);
        let forgotten = clean.max().unwrap_or(Timestamp::ZERO);
        self.runs = self.runs().filter(|run| run.is_dirty).collect();
        forgotten
    }

    /// Makes sure that there is memory for a stretch.
    fn reserve(&mut self, start: u32, end: u32) {
        let first = start / STEP * STEP;
        if self.data.is_empty() {
            self.origin = first as u16;
        } else if first < u32::from(self.origin) {
            let before = (u32::from(self.origin) - first) as usize;
            let mut data = vec![0; before + self.data.len()];
            data[before..].copy_from_slice(&self.data);
            (self.data, self.origin) = (data, first as u16);
        }
        if self.end() < end {
            self.data.resize((end - u32::from(self.origin)) as usize, 0);
        }
    }

    /// Puts `run` in place of what is known there, and merges it with neighbours that readers
    /// cannot tell apart from it.
    fn put(&mut self, run: Run, readers: Readers) {
        debug_assert!(
            u32::from(self.origin) <= run.start && run.end <= self.end(),
            "a run has its bytes: {run:?}"
        );
        let met = self.runs.touching(run.start, run.end);
        let mut new: SmallVec<[Run; 3]> = SmallVec::new();
        let mut add = |part: Run| match new.last_mut() {
            _ if part.start >= part.end => {}
            Some(last) if last.end == part.start && last.is_like(&part, readers) => {
                last.end = part.end;
                last.version = last.version.max(part.version);
            }
            _ => new.push(part),
        };
        for before in self.runs.range(met.clone()) {
            add(Run { end: before.end.min(run.start), ..before });
        }
        add(run);
        for after in self.runs.range(met.clone()) {
            add(Run { start: after.start.max(run.end), ..after });
        }
        self.runs.splice(met, &new);
    }
}

/// Whether a run is so short, and clean, that a dirty one beside it may have it.
fn is_swallowed(run: &Run) -> bool {
    !run.is_dirty && run.end - run.start <= SWALLOWED_LEN_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::fixtures::at;

    #[test]
    fn appends_and_changes_that_nobody_can_tell_apart_stay_one_run() {
        let mut block = Block::default();
        for n in 0..100u32 {
            block.write(n * 16, &[n as u8; 16], at(u64::from(n) + 1), Readers::NONE);
        }
        block.write(160, &[9; 8], at(200), Readers::NONE);
        assert_eq!(block.runs().count(), 1);
        assert_eq!(block.runs().next().unwrap().version, at(200));
        assert_eq!(block.bytes(160, 168), [9; 8]);
    }

    #[test]
    fn a_reader_between_two_versions_keeps_their_runs_apart() {
        let mut block = Block::default();
        let in_use = [at(5)];
        let readers = Readers::new(&in_use);
        block.write(0, &[1; 32], at(1), readers);
        block.write(8, &[2; 8], at(9), readers);
        let versions: Vec<_> = block.runs().map(|run| (run.start, run.version)).collect();
        assert_eq!(versions, [(0, at(1)), (8, at(9)), (16, at(1))]);
        block.write(16, &[3; 8], at(10), readers);
        assert_eq!(block.runs().count(), 3, "both after the reader: merged");
    }

    #[test]
    fn filling_touches_only_the_gaps() {
        let mut block = Block::default();
        block.write(4, &[7; 4], at(1), Readers::NONE);
        block.fill(0, &[1; 16]);
        assert_eq!(block.bytes(0, 16), [1, 1, 1, 1, 7, 7, 7, 7, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(block.gaps(0, 16).is_empty());
        block.settle(at(1), 0..0);
        assert_eq!(block.runs().count(), 1);
        assert_eq!(block.forget_clean(), at(1));
        assert!(block.is_empty());
    }

    #[test]
    fn holes_are_filled_as_far_as_there_is_memory() {
        let mut block = Block::default();
        block.write(8, &[7; 4], at(1), Readers::NONE);
        block.write(20, &[7; 4], at(9), Readers::from(at(5)));
        block.settle(at(5), 4..100);
        let runs: Vec<_> = block.runs().map(|it| (it.start, it.end, it.is_dirty)).collect();
        assert_eq!(runs, [(4, 20, false), (20, 24, true)]);
        assert_eq!(block.bytes(4, 20), [[0; 4], [7; 4], [0; 4], [0; 4]].concat());
        assert_eq!(block.gaps(0, 100).as_slice(), [(0, 4), (24, 100)]);
    }

    #[test]
    fn runs_merge_when_nobody_can_tell_them_apart_any_more() {
        let mut block = Block::default();
        for n in 0..4u32 {
            block.write(n * 8, &[1; 8], at(u64::from(n) + 1), Readers::from(at(0)));
        }
        assert_eq!(block.runs().count(), 4);
        block.merge_unread(Readers::from(at(3)), 0..0);
        let versions: Vec<_> = block.runs().map(|run| (run.start, run.version)).collect();
        assert_eq!(versions, [(0, at(3)), (24, at(4))]);
    }

    #[test]
    fn short_clean_runs_go_to_dirty_ones_that_readers_cannot_tell_from_them() {
        let mut block = Block::default();
        block.fill(0, &[1; 2000]);
        for (n, start) in [100, 200, 1000].into_iter().enumerate() {
            block.write(start, &[2; 8], at(n as u64 + 1), Readers::from(at(0)));
        }
        let merged = |block: &mut Block, from: u64| {
            block.merge_unread(Readers::from(at(from)), 0..0);
            let runs = block.runs();
            runs.map(|run| (run.start, run.is_dirty, run.version)).collect::<Vec<_>>()
        };
        let rest = [(208, false, at(0)), (1000, true, at(3)), (1008, false, at(0))];
        let first = [(0, true, at(1)), (200, true, at(2))];
        assert_eq!(merged(&mut block, 1), [&first[..], &rest[..]].concat());
        assert_eq!(merged(&mut block, 9), [&[(0, true, at(2))], &rest[..]].concat());
        assert_eq!(block.bytes(100, 116), [[2; 8], [1; 8]].concat());
    }

    #[test]
    fn short_holes_are_swallowed_too_and_read_as_zeros() {
        let mut block = Block::default();
        for (n, start) in [0, 100, 1000].into_iter().enumerate() {
            block.write(start, &[2; 200], at(n as u64 + 1), Readers::from(at(0)));
            block.cut(start + 8, start + 200);
        }
        let merged = |block: &mut Block, from: u64, holes: Range<u32>| {
            block.merge_unread(Readers::from(at(from)), holes);
            block.runs().map(|run| (run.start, run.end)).collect::<Vec<_>>()
        };
        let apart = [(0, 8), (100, 108), (1000, 1008)];
        assert_eq!(merged(&mut block, 9, 9..2000), apart, "something may lie there");
        assert_eq!(merged(&mut block, 1, 0..2000), apart, "the second is read without the first");
        assert_eq!(merged(&mut block, 9, 0..2000), [(0, 108), (1000, 1008)]);
        assert_eq!(block.bytes(8, 100), [0; 92]);
    }

    #[test]
    fn a_block_has_memory_for_what_is_known_of_it() {
        let mut block = Block::default();
        block.write(12_288, &[3; 4096], at(1), Readers::NONE);
        assert_eq!(block.memory() - block.runs.memory(), 4096);
        block.fill(5000, &[2; 100]);
        block.write(0, &[1; 8], at(2), Readers::NONE);
        assert_eq!(block.bytes(12_288, 16_384), [3; 4096]);
        assert_eq!(block.bytes(5000, 5100), [2; 100]);
        assert_eq!(block.bytes(0, 8), [1; 8]);
        block.settle(at(9), 0..6000);
        assert_eq!(block.bytes(0, 6000), [&[1; 8][..], &[0; 4992], &[2; 100], &[0; 900]].concat());
        assert_eq!(block.gaps(0, 16_384).as_slice(), [(6000, 12_288)]);
    }

    #[test]
    fn cutting_the_middle_leaves_both_ends() {
        let mut block = Block::default();
        block.write(0, &[1; 100], at(1), Readers::NONE);
        block.cut(40, 60);
        assert_eq!(block.gaps(0, 100).as_slice(), [(40, 60)]);
    }
}
