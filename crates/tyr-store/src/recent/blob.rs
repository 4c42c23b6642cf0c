//! One blob in memory: its attributes, the bytes known of it, and the versions readers still need.
//!
//! ```text
//!   newest     attributes · blocks of bytes · pieces of extents        what R1 reads
//!   older      attributes and pieces with [from, until) timestamps     what snapshots read (R5)
//!   cuts       truncations since the last fold: the base beyond them is gone
//!   base       on disk, as of `folded_at`; not in here
//! ```
//!
//! Operations arrive in timestamp order (C6). Each one first keeps what it is about to hide, if a
//! reader needs it, and then changes the newest layer in place. The base is never ahead of the
//! oldest reader, so what lies only in the base needs no keeping.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{ByteRange, ExtentRef, Operation, Outcome, Payload, Stat, Timestamp, Transform};

use super::block::{BLOCK_SIZE, Block};
use super::lease::{DeadExtents, ExtentLease};
use super::readers::Readers;

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

/// Attributes that were current from their version up to `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldAttributes {
    pub attributes: Attributes,
    pub until: Timestamp,
}

/// The blob was cut to `len` at `at`: what the base holds beyond is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub at: Timestamp,
    pub len: u64,
}

/// Where the bytes of a piece are.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Here.
    Bytes(Box<[u8]>),
    /// In an extent, after its first `skip` bytes.
    Extent { lease: Arc<ExtentLease>, skip: u32 },
}

/// A stretch of a large payload that lies in an extent and not yet in the base.
#[derive(Clone, Debug)]
pub(super) struct ExtentPiece {
    pub end: u64,
    pub version: Timestamp,
    pub lease: Arc<ExtentLease>,
    pub skip: u32,
}

/// Memory that an extent piece takes, with its lease.
pub(super) const PIECE_MEMORY: usize = size_of::<ExtentPiece>() + size_of::<ExtentLease>();

/// A stretch of bytes that was current from `from` up to `until`.
#[derive(Clone, Debug)]
pub(super) struct OldPiece {
    pub start: u64,
    pub end: u64,
    pub from: Timestamp,
    pub until: Timestamp,
    pub content: Content,
}

/// A blob in memory.
#[derive(Debug)]
pub struct BlobState {
    pub(super) attributes: Attributes,
    /// The last transaction that changed size or existence.
    pub(super) reshaped: Timestamp,
    pub(super) older_attributes: Vec<OldAttributes>,
    pub(super) cuts: SmallVec<[Cut; 1]>,
    /// Bytes that the base holds; beyond are holes.
    pub(super) base_size: u64,
    /// Operations up to here are in the base.
    pub(super) folded_at: Timestamp,
    /// Counts folds: a read that spans one looks again.
    pub(super) base_generation: u32,
    /// Counts changes after which a gap may not be what it was: cuts and extent pieces.
    pub(super) shape: u32,
    pub(super) blocks: Vec<(u64, Block)>,
    pub(super) extents: BTreeMap<u64, ExtentPiece>,
    pub(super) older: Vec<OldPiece>,
    pub(super) memory: usize,
    pub(super) is_dirty: bool,
}

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
    /// The state of a blob of which the base says this.
    pub fn new(attributes: Attributes, folded_at: Timestamp) -> Self {
        Self {
            attributes,
            reshaped: attributes.version,
            older_attributes: Vec::new(),
            cuts: SmallVec::new(),
            base_size: attributes.size,
            folded_at,
            base_generation: 0,
            shape: 0,
            blocks: Vec::new(),
            extents: BTreeMap::new(),
            older: Vec::new(),
            memory: size_of::<Self>(),
            is_dirty: false,
        }
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
    /// changed size or existence.
    pub fn newest_overlapping(&self, range: ByteRange, is_attributes: bool) -> Timestamp {
        let mut newest = if is_attributes { self.reshaped } else { Timestamp::ZERO };
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

    /// Does one operation of a committed transaction.
    ///
    /// What a transform changes must be resident ([`BlobState::missing`] is empty there).
    pub fn apply(&mut self, operation: &Operation, applying: Applying) -> Outcome {
        if !operation.is_write() {
            return Outcome::Done;
        }
        self.keep_attributes(applying);
        self.is_dirty = true;
        match operation {
            Operation::Compare { .. } => Outcome::Done,
            Operation::Create => {
                self.reshape(true, self.attributes.size, applying.at);
                Outcome::Done
            }
            Operation::Write { offset, payload } => {
                self.write(*offset, payload, applying);
                Outcome::Done
            }
            Operation::Append { payload, .. } => {
                let offset = self.attributes.size;
                self.write(offset, payload, applying);
                Outcome::Offset(offset)
            }
            Operation::Truncate { len } => {
                if *len < self.attributes.size {
                    self.cut_tail(*len, applying);
                }
                self.reshape(true, *len, applying.at);
                Outcome::Done
            }
            Operation::Delete => {
                let existed = self.attributes.exists;
                self.cut_tail(0, applying);
                self.reshape(false, 0, applying.at);
                Outcome::Existed(existed)
            }
            Operation::Replace { payload } => {
                self.cut_tail(0, applying);
                self.reshape(true, 0, applying.at);
                self.write(0, payload, applying);
                Outcome::Done
            }
            Operation::Apply { offset, transform } => self.transform(*offset, *transform, applying),
        }
    }

    /// Keeps the attributes for readers before they change, and stamps the new version.
    fn keep_attributes(&mut self, applying: Applying) {
        let old = self.attributes;
        if applying.readers.need(old.version, applying.at) {
            self.older_attributes.push(OldAttributes { attributes: old, until: applying.at });
            self.memory += size_of::<OldAttributes>();
        }
        self.attributes.version = applying.at;
    }

    fn reshape(&mut self, exists: bool, size: u64, at: Timestamp) {
        if (exists, size) != (self.attributes.exists, self.attributes.size) {
            self.attributes.exists = exists;
            self.attributes.size = size;
            self.reshaped = at;
        }
    }

    fn write(&mut self, offset: u64, payload: &Payload, applying: Applying) {
        let end = offset + payload.len();
        match payload {
            Payload::Inline(bytes) => self.write_bytes(offset, bytes, applying),
            Payload::Extents(extents) => self.write_extents(offset, extents, applying),
        }
        self.reshape(true, self.attributes.size.max(end), applying.at);
    }

    fn write_bytes(&mut self, offset: u64, bytes: &[u8], applying: Applying) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = at / BLOCK_SIZE;
            let start = (at % BLOCK_SIZE) as u32;
            let len = rest.len().min((BLOCK_SIZE - u64::from(start)) as usize);
            let (now, later) = rest.split_at(len);
            let range = ByteRange { start: at, end: at + len as u64 };
            self.keep_block(number, start, start + len as u32, applying);
            self.cut_extents(range, applying);
            self.with_block(number, |block| block.write(start, now, applying.at, applying.readers));
            at = range.end;
            rest = later;
        }
    }

    fn write_extents(&mut self, offset: u64, extents: &[ExtentRef], applying: Applying) {
        let mut start = offset;
        self.shape += 1;
        for extent in extents {
            let range = ByteRange { start, end: start + u64::from(extent.len) };
            self.cut_newest(range, applying);
            let lease = ExtentLease::new(*extent, applying.dead);
            let piece = ExtentPiece { end: range.end, version: applying.at, lease, skip: 0 };
            self.insert_piece(start, piece);
            start = range.end;
        }
    }

    fn transform(&mut self, offset: u64, transform: Transform, applying: Applying) -> Outcome {
        let width = transform.width() as u64;
        let range = ByteRange { start: offset, end: offset + width };
        let (number, start) = (offset / BLOCK_SIZE, (offset % BLOCK_SIZE) as u32);
        self.reshape(true, self.attributes.size.max(range.end), applying.at);
        let is_covered =
            self.block(number).is_some_and(|block| covers(block, start, start + width as u32));
        if is_covered && u64::from(start) + width <= BLOCK_SIZE {
            self.keep_block(number, start, start + width as u32, applying);
            let change = |place: &mut [u8]| transform.apply(place);
            let value = self.with_block(number, |block| {
                block.alter((start, width as u32), applying.at, applying.readers, change)
            });
            return Outcome::Value(value);
        }
        let mut place = [0; 8];
        let place = &mut place[..width as usize];
        self.copy_resident(range, place);
        let value = transform.apply(place);
        self.write_bytes(offset, place, applying);
        Outcome::Value(value)
    }

    /// Cuts the newest layer and the base to `len` bytes.
    fn cut_tail(&mut self, len: u64, applying: Applying) {
        let at = applying.at;
        self.shape += 1;
        self.cut_newest(ByteRange::from(len), applying);
        match self.cuts.last_mut() {
            Some(last) if !applying.readers.need(last.at, at) => {
                *last = Cut { at, len: last.len.min(len) };
            }
            _ => self.cuts.push(Cut { at, len }),
        }
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
        self.cut_extents(range, applying);
    }

    /// Takes `range` out of the extent pieces, keeping what readers need.
    fn cut_extents(&mut self, range: ByteRange, applying: Applying) {
        if self.extents.is_empty() {
            return;
        }
        let starts: Vec<u64> = self.pieces_in(range).map(|(start, _)| start).collect();
        for start in starts {
            let piece = self.remove_piece(start);
            let hidden = ByteRange { start, end: piece.end }.intersection(range);
            if applying.readers.need(piece.version, applying.at) {
                let skip = piece.skip + (hidden.start - start) as u32;
                let content = Content::Extent { lease: Arc::clone(&piece.lease), skip };
                self.keep(hidden, piece.version, applying.at, content);
            }
            self.keep_rest(start, piece, hidden);
        }
    }

    /// Puts back what is left of a piece that began at `start` around `hidden`.
    pub(super) fn keep_rest(&mut self, start: u64, piece: ExtentPiece, hidden: ByteRange) {
        if start < hidden.start {
            self.insert_piece(start, ExtentPiece { end: hidden.start, ..piece.clone() });
        }
        if hidden.end < piece.end {
            let skip = piece.skip + (hidden.end - start) as u32;
            self.insert_piece(hidden.end, ExtentPiece { skip, ..piece });
        }
    }

    pub(super) fn insert_piece(&mut self, start: u64, piece: ExtentPiece) {
        self.extents.insert(start, piece);
        self.memory += PIECE_MEMORY;
    }

    pub(super) fn remove_piece(&mut self, start: u64) -> ExtentPiece {
        self.memory -= PIECE_MEMORY;
        self.extents.remove(&start).expect("whoever removes a piece has just seen it")
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
                    content: Content::Bytes(block.bytes(run.start, run.end).into()),
                });
            }
        }
        for piece in kept {
            let range = ByteRange { start: piece.start, end: piece.end };
            self.keep(range, piece.from, piece.until, piece.content);
        }
    }

    fn keep(&mut self, range: ByteRange, from: Timestamp, until: Timestamp, content: Content) {
        if let Content::Bytes(bytes) = &content {
            self.memory += bytes.len();
        }
        self.memory += size_of::<OldPiece>();
        self.older.push(OldPiece { start: range.start, end: range.end, from, until, content });
    }

    /// Whether older versions are held here.
    pub fn has_older(&self) -> bool {
        !self.older.is_empty() || !self.older_attributes.is_empty()
    }

    /// Drops older versions that no reader needs (V3); answers how many are left.
    ///
    /// `readers` may be a little old: readers that came later read at `now` or above.
    pub fn collect(&mut self, readers: Readers, now: Timestamp) -> usize {
        let freed = &mut 0;
        self.older.retain(|piece| {
            let is_needed = piece.until > now || readers.need(piece.from, piece.until);
            if !is_needed {
                let bytes = match &piece.content {
                    Content::Bytes(bytes) => bytes.len(),
                    Content::Extent { .. } => 0,
                };
                *freed += bytes + size_of::<OldPiece>();
            }
            is_needed
        });
        self.older_attributes.retain(|old| {
            let is_needed = old.until > now || readers.need(old.attributes.version, old.until);
            *freed += if is_needed { 0 } else { size_of::<OldAttributes>() };
            is_needed
        });
        self.memory -= *freed;
        self.older.len() + self.older_attributes.len()
    }

    /// Forgets clean bytes, which the base has.
    pub fn forget_clean(&mut self) {
        let freed = &mut 0;
        self.blocks.retain_mut(|(_, block)| {
            let is_kept = block.forget_clean();
            *freed += if is_kept { 0 } else { block.memory() };
            is_kept
        });
        self.memory -= *freed;
    }

    /// Whether the blob holds exactly `expected` at `offset`, as far as memory knows.
    pub fn matches(&self, offset: u64, expected: &[u8]) -> bool {
        let range = ByteRange { start: offset, end: offset + expected.len() as u64 };
        self.attributes.exists
            && range.end <= self.attributes.size
            && self.plan(range, Timestamp::MAX).is_some_and(|plan| plan.bytes == expected)
    }

    /// Whether the number that a transform at `offset` changes can be changed at once.
    pub fn is_resident(&self, range: ByteRange) -> bool {
        let number = range.start / BLOCK_SIZE;
        let (start, end) = ((range.start % BLOCK_SIZE) as u32, range.len() as u32);
        let is_known = u64::from(start) + range.len() <= BLOCK_SIZE
            && self.block(number).is_some_and(|block| covers(block, start, start + end));
        is_known || self.missing(range).is_empty()
    }

    // -- where things are ------------------------------------------------------------------

    pub(super) fn block(&self, number: u64) -> Option<&Block> {
        // Appends and small blobs find their block last.
        match self.blocks.last() {
            Some((last, block)) if *last == number => Some(block),
            _ => {
                let index = self.blocks.binary_search_by_key(&number, |(n, _)| *n).ok()?;
                Some(&self.blocks[index].1)
            }
        }
    }

    /// Runs `work` on block `number`, made if missing, and counts its memory.
    pub(super) fn with_block<T>(&mut self, number: u64, work: impl FnOnce(&mut Block) -> T) -> T {
        let index = match self.blocks.last() {
            Some((last, _)) if *last == number => self.blocks.len() - 1,
            _ => match self.blocks.binary_search_by_key(&number, |(n, _)| *n) {
                Ok(index) => index,
                Err(index) => {
                    self.blocks.insert(index, (number, Block::default()));
                    index
                }
            },
        };
        let block = &mut self.blocks[index].1;
        let before = block.memory();
        let answer = work(block);
        self.memory = self.memory + block.memory() - before;
        answer
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

    /// The extent pieces that share a byte with `range`, by where they start.
    pub(super) fn pieces_in(&self, range: ByteRange) -> impl Iterator<Item = (u64, &ExtentPiece)> {
        let before = self.extents.range(..range.start).next_back();
        let before = before.filter(move |(_, piece)| piece.end > range.start);
        before
            .into_iter()
            .chain(self.extents.range(range.start..range.end.max(range.start)))
            .map(|(start, piece)| (*start, piece))
    }
}

/// The part of `range` that lies in block `number`, as offsets in the block.
pub(super) fn within_block(number: u64, range: ByteRange) -> (u32, u32) {
    let base = number * BLOCK_SIZE;
    let start = range.start.max(base) - base;
    let end = range.end.min(base + BLOCK_SIZE) - base;
    (start as u32, end as u32)
}

/// Whether one run or more cover all of `start..end`.
fn covers(block: &Block, start: u32, end: u32) -> bool {
    block.gaps(start, end).is_empty()
}
