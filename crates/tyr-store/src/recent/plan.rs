//! Reading a blob: what memory knows at once, and what has to be fetched.
//!
//! A plan is made under the blob's lock and takes no time; fetching from the base and from extents
//! happens after the lock is gone. The plan remembers the base's generation, so that a read which
//! a fold overtook is done again instead of mixing two versions.

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{ByteRange, Timestamp};

use super::blob::{Attributes, BlobState};
use super::block::BLOCK_SIZE;
use super::lease::ExtentLease;
use super::older::{OldContent, OldPiece};
use super::piece::Unheld;

/// A stretch that memory does not hold.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Which bytes of the blob.
    pub range: ByteRange,
    /// Where they are.
    pub source: Source,
}

/// Where missing bytes are.
#[derive(Clone, Debug)]
pub enum Source {
    /// In the base.
    Base,
    /// In an extent that the base does not own yet, after its first `skip` bytes.
    Extent {
        /// Keeps the extent alive.
        lease: Arc<ExtentLease>,
        /// Bytes of the extent before them.
        skip: u32,
    },
}

/// Where the bytes of a read go.
#[derive(Debug)]
pub enum Buffer<'o> {
    /// To memory of their own.
    Owned(Vec<u8>),
    /// To somebody's memory, at least as long as the range that is read.
    Borrowed(&'o mut [u8]),
}

/// A read under way.
#[derive(Debug)]
pub struct Plan<'o> {
    /// The attributes of the version that is read.
    pub attributes: Attributes,
    /// The bytes asked for, cut to the blob's size.
    pub range: ByteRange,
    /// Their values, but for what is missing.
    pub bytes: Buffer<'o>,
    /// What is still to be fetched.
    pub missing: Vec<Missing>,
    /// The base's generation the plan was made for.
    pub generation: u32,
    /// The blob's shape at that time: whether a gap is still what it was.
    pub shape: u32,
}

impl Missing {
    /// The same, cut at the bounds of blocks.
    pub fn by_block(&self) -> impl Iterator<Item = Missing> + '_ {
        let whole = self.range;
        let blocks = whole.start / BLOCK_SIZE..whole.end.div_ceil(BLOCK_SIZE);
        blocks.map(move |number| {
            let block = ByteRange { start: number * BLOCK_SIZE, end: (number + 1) * BLOCK_SIZE };
            let range = block.intersection(whole);
            let source = match &self.source {
                Source::Base => Source::Base,
                Source::Extent { lease, skip } => {
                    let skip = skip + (range.start - whole.start) as u32;
                    Source::Extent { lease: Arc::clone(lease), skip }
                }
            };
            Missing { range, source }
        })
    }
}

impl Plan<'_> {
    /// The part of `bytes` that `range` of the blob goes to.
    pub fn part(&mut self, range: ByteRange) -> &mut [u8] {
        debug_assert!(self.range.contains(range), "{range:?} is no part of {:?}", self.range);
        let start = (range.start - self.range.start) as usize;
        let bytes = match &mut self.bytes {
            Buffer::Owned(bytes) => bytes,
            Buffer::Borrowed(bytes) => &mut **bytes,
        };
        &mut bytes[start..start + range.len() as usize]
    }

    /// Fetches what is in `range`, or knows it to be zeros.
    fn put_unheld(&mut self, range: ByteRange, content: Unheld) {
        match content {
            Unheld::Extent { lease, skip } => {
                self.missing.push(Missing { range, source: Source::Extent { lease, skip } });
            }
            Unheld::Hole => self.part(range).fill(0),
        }
    }

    /// All bytes, when they are in memory of their own.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.bytes {
            Buffer::Owned(bytes) => bytes,
            Buffer::Borrowed(bytes) => bytes[..self.range.len() as usize].to_vec(),
        }
    }
}

impl BlobState {
    /// The attributes as of `at`; `None` when that version is gone.
    pub fn attributes_at(&self, at: Timestamp) -> Option<Attributes> {
        if self.attributes.version <= at {
            return Some(self.attributes);
        }
        self.older_attributes.at(at).next().map(|old| old.attributes)
    }

    /// Plans to read `range` as of `at` ([`Timestamp::MAX`]: the newest version); `None` when
    /// that version is gone.
    pub fn plan(&self, range: ByteRange, at: Timestamp) -> Option<Plan<'static>> {
        self.plan_into(range, at, Buffer::Owned(Vec::new()))
    }

    /// The same, with the bytes going to `bytes`.
    pub fn plan_into<'o>(
        &self,
        range: ByteRange,
        at: Timestamp,
        bytes: Buffer<'o>,
    ) -> Option<Plan<'o>> {
        let attributes = self.attributes_at(at)?;
        let range = range.intersection(ByteRange { start: 0, end: attributes.size });
        let mut plan = Plan {
            attributes,
            range,
            bytes,
            missing: Vec::new(),
            generation: self.base_generation,
            shape: self.shape,
        };
        let run = self.one_run(range, at);
        if let Buffer::Owned(bytes) = &mut plan.bytes {
            match run {
                Some(run) => bytes.extend_from_slice(run),
                None => bytes.resize(range.len() as usize, 0),
            }
        } else if let Some(run) = run {
            plan.part(range).copy_from_slice(run);
        }
        if run.is_none() {
            self.plan_pieces(&mut plan, at);
        }
        debug_assert!(
            plan.missing.iter().all(|missing| range.contains(missing.range)),
            "{:?} is fetched for {range:?}",
            plan.missing
        );
        Some(plan)
    }

    /// What has to be fetched before `range` is known in full.
    pub fn missing(&self, range: ByteRange) -> Vec<Missing> {
        self.plan(range, Timestamp::MAX).map(|plan| plan.missing).unwrap_or_default()
    }

    /// Puts what the base holds into the gaps in memory. `plan` must be of the newest version;
    /// nothing happens if a fold, a cut or an extent came since it was made.
    pub fn fill(&mut self, plan: &Plan, range: ByteRange, bytes: &[u8]) {
        if plan.generation != self.base_generation || plan.shape != self.shape {
            return;
        }
        debug_assert_eq!(range.len(), bytes.len() as u64);
        debug_assert!(plan.range.contains(range), "{range:?} was not planned: {:?}", plan.range);
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / BLOCK_SIZE + 1) * BLOCK_SIZE);
            let part = &bytes[(start - range.start) as usize..(end - range.start) as usize];
            let number = start / BLOCK_SIZE;
            self.with_block(number, |block| block.fill((start % BLOCK_SIZE) as u32, part));
            start = end;
        }
    }

    /// Puts the whole content of a small blob, just loaded, into memory.
    pub fn fill_small(&mut self, content: &[u8]) {
        if !content.is_empty() {
            self.with_block(0, |block| block.fill(0, content));
        }
    }

    /// Whether a fold overtook the read that `plan` began.
    pub fn is_overtaken(&self, plan: &Plan) -> bool {
        plan.generation != self.base_generation
    }

    /// Turns a stretch of an extent piece into bytes in memory, so that it can change in place.
    /// The stretch lies within one block.
    pub fn materialize(&mut self, missing: &Missing, bytes: &[u8]) {
        let Source::Extent { lease, .. } = &missing.source else { return };
        let range = missing.range;
        debug_assert_eq!(range.len(), bytes.len() as u64);
        let Some((start, piece)) = self.pieces_in(range).next() else { return };
        let Unheld::Extent { lease: its, .. } = &piece.content else { return };
        let is_same = Arc::ptr_eq(its, lease)
            && start <= range.start
            && range.end <= piece.end
            && range.start / BLOCK_SIZE == (range.end - 1) / BLOCK_SIZE;
        if !is_same {
            return;
        }
        let piece = self.remove_piece(start);
        let version = piece.version;
        self.shape += 1;
        self.keep_rest(start, piece, range);
        let offset = (range.start % BLOCK_SIZE) as u32;
        self.with_block(range.start / BLOCK_SIZE, |block| block.put_older(offset, bytes, version));
    }

    /// Copies what is known of `range` in the newest version; the rest of `out` stays.
    pub(super) fn copy_resident(&self, range: ByteRange, out: &mut [u8]) {
        debug_assert_eq!(range.len(), out.len() as u64);
        for (number, start, end, block) in self.blocks_in(range) {
            for run in block.overlapping(start, end) {
                let to = (number * BLOCK_SIZE + u64::from(run.start) - range.start) as usize;
                let bytes = block.bytes(run.start, run.end);
                out[to..to + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    /// The bytes of `range`, when a single run of a version up to `at` holds them.
    fn one_run(&self, range: ByteRange, at: Timestamp) -> Option<&[u8]> {
        if range.is_empty() || range.start / BLOCK_SIZE != (range.end - 1) / BLOCK_SIZE {
            return None;
        }
        let number = range.start / BLOCK_SIZE;
        let block = self.block(number)?;
        let (start, end) = super::blob::within_block(number, range);
        let run = block.overlapping(start, end).next()?;
        let is_whole = run.start == start && run.end == end && run.version <= at;
        is_whole.then(|| block.bytes(start, end))
    }

    fn plan_pieces(&self, plan: &mut Plan<'_>, at: Timestamp) {
        let mut unknown = Unknown::new(plan.range);
        for (number, start, end, block) in self.blocks_in(plan.range) {
            for run in block.overlapping(start, end).filter(|run| run.version <= at) {
                let range = ByteRange {
                    start: number * BLOCK_SIZE + u64::from(run.start),
                    end: number * BLOCK_SIZE + u64::from(run.end),
                };
                plan.part(range).copy_from_slice(block.bytes(run.start, run.end));
                unknown.remove(range);
            }
        }
        for (start, piece) in self.pieces_in(plan.range).filter(|(_, p)| p.version <= at) {
            let range = ByteRange { start, end: piece.end }.intersection(plan.range);
            plan.put_unheld(range, piece.content.after(range.start - start));
            unknown.remove(range);
        }
        self.plan_older(plan, &mut unknown, at);
        let limit = self.base_limit(at);
        for range in unknown.0 {
            let stored = range.intersection(ByteRange { start: 0, end: limit });
            if !stored.is_empty() {
                plan.missing.push(Missing { range: stored, source: Source::Base });
            }
            let hole = range.intersection(ByteRange::from(limit));
            if !hole.is_empty() {
                plan.part(hole).fill(0);
            }
        }
    }

    fn plan_older(&self, plan: &mut Plan<'_>, unknown: &mut Unknown, at: Timestamp) {
        for piece in self.older.at(at) {
            let whole = ByteRange { start: piece.start, end: piece.end };
            let range = whole.intersection(plan.range);
            if range.is_empty() {
                continue;
            }
            let inside = range.start - piece.start;
            match &piece.content {
                OldContent::Bytes(bytes) => {
                    let from = inside as usize..inside as usize + range.len() as usize;
                    plan.part(range).copy_from_slice(&bytes[from]);
                }
                OldContent::Unheld(content) => plan.put_unheld(range, content.after(inside)),
            }
            unknown.remove(range);
        }
    }

    /// Bytes that were current at `at` and are not any more.
    pub(super) fn older_at(&self, at: Timestamp) -> impl Iterator<Item = &OldPiece> {
        self.older.at(at)
    }

    pub(super) fn generation(&self) -> u32 {
        self.base_generation
    }

    /// How far the base's bytes are good as of `at`: beyond it everything was cut.
    pub(super) fn base_limit(&self, at: Timestamp) -> u64 {
        let cuts = self.cuts.iter().filter(|cut| cut.at <= at).map(|cut| cut.len);
        cuts.fold(self.base_size, u64::min)
    }
}

/// The parts of a range that nothing has been found for yet.
pub(super) struct Unknown(SmallVec<[ByteRange; 4]>);

impl Unknown {
    pub fn new(range: ByteRange) -> Self {
        Self(if range.is_empty() { SmallVec::new() } else { SmallVec::from_slice(&[range]) })
    }

    pub fn into_ranges(self) -> impl Iterator<Item = ByteRange> {
        self.0.into_iter()
    }

    pub fn remove(&mut self, known: ByteRange) {
        let mut rest: SmallVec<[ByteRange; 4]> = SmallVec::new();
        for range in self.0.drain(..) {
            if !range.overlaps(known) {
                rest.push(range);
                continue;
            }
            if range.start < known.start {
                rest.push(ByteRange { start: range.start, end: known.start });
            }
            if known.end < range.end {
                rest.push(ByteRange { start: known.end, end: range.end });
            }
        }
        debug_assert!(
            rest.iter().all(|range| !range.is_empty() && !range.overlaps(known)),
            "{known:?} is known, and would be fetched: {rest:?}"
        );
        self.0 = rest;
    }
}
