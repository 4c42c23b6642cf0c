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
//! block that is written over and over stays one run.

use std::ops::Range;

use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::readers::Readers;

/// Bytes of a block. Also the largest inline segment of the base.
pub const BLOCK_SIZE: u64 = 16 << 10;

/// A stretch of known bytes of one version, in offsets within its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first byte.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// The transaction that wrote them last.
    pub version: Timestamp,
    /// Whether the base lacks them.
    pub is_dirty: bool,
}

impl Run {
    /// Whether `readers` cannot tell the bytes of both apart, and the base has both or neither.
    fn is_like(&self, other: &Self, readers: Readers) -> bool {
        self.is_dirty == other.is_dirty && readers.take_as_one(self.version, other.version)
    }
}

/// Known bytes of one aligned block of a blob.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// From the block's start to the end of its last run; gaps hold no meaning.
    data: Vec<u8>,
    /// Ascending, disjoint.
    runs: SmallVec<[Run; 1]>,
}

impl Block {
    /// The runs, ascending.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The bytes of a stretch that runs cover.
    pub fn bytes(&self, start: u32, end: u32) -> &[u8] {
        &self.data[start as usize..end as usize]
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes of memory it holds.
    pub fn memory(&self) -> usize {
        let spilled = if self.runs.spilled() { self.runs.capacity() * size_of::<Run>() } else { 0 };
        self.data.capacity() + spilled
    }

    /// Writes `bytes` at `start` as version `version`, over whatever is known there.
    ///
    /// What was there has to be kept by the caller first, where readers need it
    /// ([`Block::overlapping`]).
    pub fn write(&mut self, start: u32, bytes: &[u8], version: Timestamp, readers: Readers) {
        let end = start + bytes.len() as u32;
        debug_assert!(u64::from(end) <= BLOCK_SIZE && start < end);
        self.reserve(end);
        self.data[start as usize..end as usize].copy_from_slice(bytes);
        // The hot case: an append to the block's only run, or a change inside it.
        if let [run] = self.runs.as_mut_slice()
            && run.is_dirty
            && run.start <= start
            && start <= run.end
            && readers.take_as_one(run.version, version)
        {
            run.end = run.end.max(end);
            run.version = run.version.max(version);
            return;
        }
        self.cut(start, end);
        self.insert(Run { start, end, version, is_dirty: true }, readers);
    }

    /// Lets `change` alter the `len` bytes at `start`, which runs must cover, as `version`.
    pub fn alter<T>(
        &mut self,
        (start, len): (u32, u32),
        version: Timestamp,
        readers: Readers,
        change: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let end = start + len;
        let answer = change(&mut self.data[start as usize..end as usize]);
        if let [run] = self.runs.as_mut_slice()
            && run.is_dirty
            && readers.take_as_one(run.version, version)
        {
            debug_assert!(run.start <= start && end <= run.end);
            run.version = run.version.max(version);
            return answer;
        }
        self.cut(start, end);
        self.insert(Run { start, end, version, is_dirty: true }, readers);
        answer
    }

    /// Fills the gaps in `start..start + bytes.len()` with what the base holds there: clean, and
    /// older than every reader.
    pub fn fill(&mut self, start: u32, bytes: &[u8]) {
        let end = start + bytes.len() as u32;
        for (gap_start, gap_end) in self.gaps(start, end) {
            self.reserve(gap_end);
            let from = (gap_start - start) as usize..(gap_end - start) as usize;
            self.data[gap_start as usize..gap_end as usize].copy_from_slice(&bytes[from]);
            let run =
                Run { start: gap_start, end: gap_end, version: Timestamp::ZERO, is_dirty: false };
            self.insert(run, Readers::NONE);
        }
    }

    /// Puts dirty bytes of an older version where nothing is known; merges with nothing.
    pub fn place(&mut self, start: u32, bytes: &[u8], version: Timestamp) {
        let end = start + bytes.len() as u32;
        self.reserve(end);
        self.data[start as usize..end as usize].copy_from_slice(bytes);
        self.cut(start, end);
        let at = self.runs.partition_point(|other| other.end <= start);
        self.runs.insert(at, Run { start, end, version, is_dirty: true });
    }

    /// The parts of `start..end` that no run covers.
    pub fn gaps(&self, start: u32, end: u32) -> SmallVec<[(u32, u32); 4]> {
        let mut gaps = SmallVec::new();
        let mut at = start;
        for run in self.overlapping(start, end) {
            if at < run.start {
                gaps.push((at, run.start));
            }
            at = at.max(run.end);
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }

    /// The runs that share a byte with `start..end`, cut to it.
    pub fn overlapping(&self, start: u32, end: u32) -> impl Iterator<Item = Run> + '_ {
        let first = self.runs.partition_point(|run| run.end <= start);
        self.runs[first..].iter().take_while(move |run| run.start < end).map(move |run| Run {
            start: run.start.max(start),
            end: run.end.min(end),
            ..*run
        })
    }

    /// Forgets what is known of `start..end`.
    pub fn cut(&mut self, start: u32, end: u32) {
        let first = self.runs.partition_point(|run| run.end <= start);
        let after = self.runs[first..].partition_point(|run| run.start < end) + first;
        if first == after {
            return;
        }
        let (head, tail) = (self.runs[first], self.runs[after - 1]);
        let mut rest: SmallVec<[Run; 2]> = SmallVec::new();
        if head.start < start {
            rest.push(Run { end: start, ..head });
        }
        if tail.end > end {
            rest.push(Run { start: end, ..tail });
        }
        self.runs.drain(first..after);
        self.runs.insert_many(first, rest);
    }

    /// Marks dirty runs of versions up to `at` as clean: the base has them now. The gaps in `holes`
    /// are known to be holes in it, and are filled as far as there is memory for them.
    pub fn settle(&mut self, at: Timestamp, holes: Range<u32>) {
        for run in &mut self.runs {
            run.is_dirty &= run.version > at;
        }
        for (start, end) in self.gaps(holes.start, holes.end.min(self.data.len() as u32)) {
            self.data[start as usize..end as usize].fill(0);
            self.runs.push(Run { start, end, version: Timestamp::ZERO, is_dirty: false });
        }
        self.runs.sort_unstable_by_key(|run| run.start);
        self.merge(|left, right| !left.is_dirty && !right.is_dirty);
    }

    /// Merges neighbours that `readers` cannot tell apart any more.
    pub fn merge_unread(&mut self, readers: Readers) {
        self.merge(|left, right| left.is_like(right, readers));
    }

    fn merge(&mut self, is_one: impl Fn(&Run, &Run) -> bool) {
        let mut merged: SmallVec<[Run; 1]> = SmallVec::new();
        for run in self.runs.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end == run.start && is_one(last, &run) => {
                    last.end = run.end;
                    last.version = last.version.max(run.version);
                }
                _ => merged.push(run),
            }
        }
        self.runs = merged;
    }

    /// Forgets clean runs; answers the newest version that was forgotten.
    pub fn forget_clean(&mut self) -> Timestamp {
        let clean = self.runs.iter().filter(|run| !run.is_dirty).map(|run| run.version);
        let forgotten = clean.max().unwrap_or(Timestamp::ZERO);
        self.runs.retain(|run| run.is_dirty);
        forgotten
    }

    fn reserve(&mut self, end: u32) {
        if self.data.len() < end as usize {
            self.data.resize(end as usize, 0);
        }
    }

    /// Inserts a run where there is a gap, and merges it with neighbours that readers cannot tell
    /// apart from it.
    fn insert(&mut self, run: Run, readers: Readers) {
        let at = self.runs.partition_point(|other| other.end <= run.start);
        self.runs.insert(at, run);
        self.merge_at(at, readers);
        if at > 0 {
            self.merge_at(at - 1, readers);
        }
    }

    /// Merges run `at` with the one after it, if they touch and are alike to every reader.
    fn merge_at(&mut self, at: usize, readers: Readers) {
        let Some([left, right]) = self.runs.get(at..at + 2) else { return };
        if left.end != right.start || !left.is_like(right, readers) {
            return;
        }
        let (end, high) = (right.end, left.version.max(right.version));
        self.runs[at].end = end;
        self.runs[at].version = high;
        self.runs.remove(at + 1);
    }
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
        assert_eq!(block.runs().len(), 1);
        assert_eq!(block.runs()[0].version, at(200));
        assert_eq!(block.bytes(160, 168), [9; 8]);
    }

    #[test]
    fn a_reader_between_two_versions_keeps_their_runs_apart() {
        let mut block = Block::default();
        let in_use = [at(5)];
        let readers = Readers::new(&in_use);
        block.write(0, &[1; 32], at(1), readers);
        block.write(8, &[2; 8], at(9), readers);
        let versions: Vec<_> = block.runs().iter().map(|run| (run.start, run.version)).collect();
        assert_eq!(versions, [(0, at(1)), (8, at(9)), (16, at(1))]);
        block.write(16, &[3; 8], at(10), readers);
        assert_eq!(block.runs().len(), 3, "both after the reader: merged");
    }

    #[test]
    fn filling_touches_only_the_gaps() {
        let mut block = Block::default();
        block.write(4, &[7; 4], at(1), Readers::NONE);
        block.fill(0, &[1; 16]);
        assert_eq!(block.bytes(0, 16), [1, 1, 1, 1, 7, 7, 7, 7, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(block.gaps(0, 16).is_empty());
        block.settle(at(1), 0..0);
        assert_eq!(block.runs().len(), 1);
        assert_eq!(block.forget_clean(), at(1));
        assert!(block.is_empty());
    }

    #[test]
    fn holes_are_filled_as_far_as_there_is_memory() {
        let mut block = Block::default();
        block.write(8, &[7; 4], at(1), Readers::NONE);
        block.write(20, &[7; 4], at(9), Readers::from(at(5)));
        block.settle(at(5), 4..100);
        let runs: Vec<_> = block.runs().iter().map(|it| (it.start, it.end, it.is_dirty)).collect();
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
        assert_eq!(block.runs().len(), 4);
        block.merge_unread(Readers::from(at(3)));
        let versions: Vec<_> = block.runs().iter().map(|run| (run.start, run.version)).collect();
        assert_eq!(versions, [(0, at(3)), (24, at(4))]);
    }

    #[test]
    fn cutting_the_middle_leaves_both_ends() {
        let mut block = Block::default();
        block.write(0, &[1; 100], at(1), Readers::NONE);
        block.cut(40, 60);
        assert_eq!(block.gaps(0, 100).as_slice(), [(40, 60)]);
    }
}
