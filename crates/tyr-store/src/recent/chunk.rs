//! What operations do to one chunk of a blob, on a node of a cluster.
//!
//! A chunk is kept like a blob of its own, with bytes counted from the chunk's start. Of chunk 0,
//! size and existence are those of the whole blob, for its nodes are the version managers; of a
//! later chunk the size is how far it holds bytes, and says nothing of where the blob ends (R7).
//!
//! ```text
//!   blob      0 ........ s ........ 2s .... end       s: the keyspace's chunk size
//!   chunk 0   0 ........ s                            size = end
//!   chunk 1              0 ........ s                 size = s, or less where nothing was written
//! ```
//!
//! Operations that overlap come in timestamp order (C6). On a later chunk others may come *late*:
//! after some with higher timestamps, on other bytes. Then the versions in between get what the
//! late one does, too.

use smallvec::SmallVec;
use tyr_types::{ByteRange, ExtentRef, Operation, Outcome, Payload, Timestamp};

use super::apply::{Applying, transformed};
use super::blob::{Attributes, BlobState, within_block};
use super::older::OldAttributes;
use super::readers::Readers;

/// Memory of older versions above which a chunk looks for those that may go, at each change anew:
/// some 16 of small ones.
const COLLECT_FROM: usize = 2 << 10;

/// Which bytes of its blob a chunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The chunk's bytes.
    pub range: ByteRange,
}

/// What a node knows of where the blob ends before a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It ends here: the node holds all of the blob.
    Known(u64),
    /// The chain was computed with this guess. The version managers saw to it that an append that
    /// goes by the guess goes to the right chunk; and, over that chunk's end, to the right byte.
    Guessed(u64),
}

/// Where the blob ends while operations are done one after the other.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Exactly here.
    At(u64),
    /// Where this chunk's bytes end, if the byte guessed is in it; else in another chunk.
    Near(u64),
}

/// What an operation answered, with its place among those on the blob.
pub type Answers = SmallVec<[(usize, Outcome); 2]>;

/// Operations of a transaction that are done at once on a chunk: one, or transforms on numbers side
/// by side, as counts and sums are kept.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The place of the first among those on the blob.
    pub number: usize,
    /// At least one.
    pub operations: &'a [Operation],
    /// What transforms change in the chunk, counted from its start.
    pub changed: Option<ByteRange>,
}

/// How an operation changes the number of bytes that a chunk holds.
#[derive(Clone, Copy, Debug)]
enum Resize {
    /// To at least so many.
    Reach(u64),
    /// To exactly so many.
    Exactly(u64),
}

/// What a chunk is as a whole, to be taken from another node.
#[derive(Clone, Debug)]
pub struct Installed<'a> {
    /// Operations up to here are in it.
    pub at: Timestamp,
    /// The transaction that wrote bytes of it last.
    pub version: Timestamp,
    /// Its bytes by where they lie in the chunk; between them are zeros.
    pub pieces: &'a [(u64, bytes::Bytes)],
    /// Of chunk 0: the blob's size, `Some(None)` when it is absent.
    pub size: Option<Option<u64>>,
    /// The transaction that changed size or existence last.
    pub size_version: Timestamp,
}

impl Place {
    /// Whether it is the first of its blob, which has the attributes.
    pub fn is_first(self) -> bool {
        self.range.start == 0
    }

    /// `range` of the blob as far as it lies in the chunk, counted from the chunk's start.
    pub fn local(self, range: ByteRange) -> ByteRange {
        let share = range.intersection(self.range);
        let start = self.range.start;
        ByteRange {
            start: share.start.saturating_sub(start),
            end: share.end.saturating_sub(start).max(share.start.saturating_sub(start)),
        }
    }
}

impl BlobState {
    /// Of a chunk: operations up to here are in it, and are not applied again.
    pub fn included_to(&self) -> Timestamp {
        self.included_to
    }

    /// Whether what was done to the chunk at `at` is in it, or is gone with all that there was.
    pub fn is_done(&self, at: Timestamp) -> bool {
        at <= self.included_to.max(self.absent_to)
    }

    /// Whether what the chunk was like at `at` can be told.
    pub fn is_readable(&self, at: Timestamp) -> bool {
        let is_told = self.included_to <= at && self.readable_from <= at;
        let is_newest = self.attributes.version <= at;
        self.known_from <= at && (is_newest || is_told && self.attributes_at(at).is_some())
    }

    /// The attributes at `at`, if they can be told: also where the bytes of then are gone.
    pub fn attributes_told_at(&self, at: Timestamp) -> Option<Attributes> {
        self.attributes_at(at).filter(|_| self.known_from <= at)
    }

    /// Does the operations of a transaction on the blob, as far as they concern this chunk. What
    /// its transforms change must be resident. Chunk 0 does not need `start`.
    ///
    /// # Panics
    /// When a transform reaches over the chunk's end: the commit machine sees to that (C4).
    pub fn apply_chunk(
        &mut self,
        place: Place,
        operations: &[Operation],
        start: Start,
        applying: Applying,
    ) -> Answers {
        let mut end = match (place.is_first(), start) {
            (true, _) => End::At(self.attributes.size),
            (false, Start::Known(size)) => End::At(size),
            (false, Start::Guessed(guess)) => End::Near(guess),
        };
        let is_late = applying.at < self.attributes.version;
        match is_late {
            true => self.split_attributes(applying.at),
            false => self.keep_attributes(applying),
        }
        self.is_dirty = true;
        let mut answers = Answers::new();
        for Step { number, operations, changed } in steps(place, operations) {
            let Some(range) = changed else {
                let outcome = self.apply_one(place, &operations[0], &mut end, applying);
                answers.extend(outcome.map(|outcome| (number, outcome)));
                continue;
            };
            let transforms = operations.iter().filter_map(|operation| match operation {
                Operation::Apply { transform, .. } => Some(*transform),
                _ => None,
            });
            self.holds(place, Resize::Reach(range.end), applying.at);
            let mut numbers = number..;
            self.transform_bytes(range, transforms, applying, |value| {
                answers.extend(numbers.next().map(|number| (number, value)));
            });
            self.reaches(place, &mut end, place.range.start + range.end, applying.at);
        }
        self.collect_some(applying.readers);
        answers
    }

    fn apply_one(
        &mut self,
        place: Place,
        operation: &Operation,
        end: &mut End,
        applying: Applying,
    ) -> Option<Outcome> {
        match operation {
            Operation::Compare { .. } => None,
            Operation::Create => {
                self.ends_at(place, end, 0, applying.at);
                None
            }
            Operation::Write { offset, payload } => {
                self.put(place, *offset, payload, applying);
                self.reaches(place, end, offset + payload.len(), applying.at);
                None
            }
            Operation::Append { payload, expected } => {
                let len = payload.len();
                let Some(offset) = expected.or_else(|| self.end_here(place, *end, len)) else {
                    if let End::Near(guess) = end {
                        *guess += len;
                    }
                    return None;
                };
                self.put(place, offset, payload, applying);
                self.ends_at(place, end, offset + len, applying.at);
                Some(Outcome::Offset(offset))
            }
            Operation::Truncate { len } => {
                self.cut_chunk(place, *len, applying);
                self.ends_at(place, end, *len, applying.at);
                None
            }
            Operation::Delete => {
                let existed = self.attributes.exists;
                self.cut_chunk(place, 0, applying);
                *end = End::At(0);
                if place.is_first() {
                    self.reshape(false, 0, applying.at);
                }
                Some(Outcome::Existed(existed))
            }
            Operation::Replace { payload } => {
                self.cut_chunk(place, 0, applying);
                self.put(place, 0, payload, applying);
                self.ends_at(place, end, payload.len(), applying.at);
                None
            }
            // It changes another chunk.
            Operation::Apply { offset, transform } => {
                self.reaches(place, end, offset + transform.width() as u64, applying.at);
                None
            }
        }
    }

    /// Writes the share of a payload at `offset` of the blob that lies in the chunk.
    fn put(&mut self, place: Place, offset: u64, payload: &Payload, applying: Applying) {
        let span = ByteRange { start: offset, end: offset + payload.len() };
        let share = span.intersection(place.range);
        if share.is_empty() {
            return;
        }
        let local = place.local(share);
        self.holds(place, Resize::Reach(local.end), applying.at);
        match payload {
            Payload::Inline(bytes) => {
                let skip = (share.start - offset) as usize;
                let bytes = &bytes[skip..skip + share.len() as usize];
                self.write_bytes(local.start, bytes, applying);
            }
            Payload::Extents(extents) => self.put_extents(offset, extents, place, applying),
        }
    }

    /// Writes extents that each lie in one chunk, as far as that is this one.
    fn put_extents(
        &mut self,
        offset: u64,
        extents: &[ExtentRef],
        place: Place,
        applying: Applying,
    ) {
        let mut start = offset;
        for extent in extents {
            let span = ByteRange { start, end: start + u64::from(extent.len) };
            if place.range.contains(span) {
                self.write_extents(place.local(span).start, &[*extent], applying);
            }
            start = span.end;
        }
    }

    /// Everything from `len` of the blob on goes; where the blob then ends in this chunk, it has
    /// all bytes up to there.
    fn cut_chunk(&mut self, place: Place, len: u64, applying: Applying) {
        if len >= place.range.end {
            return;
        }
        let local = len.saturating_sub(place.range.start);
        self.cut_tail(local, applying);
        self.holds(place, Resize::Exactly(local), applying.at);
    }

    /// The number of bytes held of a later chunk changes.
    fn holds(&mut self, place: Place, resize: Resize, at: Timestamp) {
        if place.is_first() {
            return; // Its size is the blob's.
        }
        let resized = |size: u64| match resize {
            Resize::Reach(end) => size.max(end),
            Resize::Exactly(len) => len,
        };
        let size = resized(self.attributes.size);
        self.reshape(size > 0, size, at);
        for old in self.older_attributes.iter_mut().filter(|old| old.attributes.version >= at) {
            old.attributes.size = resized(old.attributes.size);
            old.attributes.exists = old.attributes.size > 0;
        }
    }

    /// Parts the time at `at`, where a late operation comes in, if attributes were current then.
    fn split_attributes(&mut self, at: Timestamp) {
        if self.older_attributes.split(at) {
            self.holds_older(size_of::<OldAttributes>());
        }
    }

    /// Where an append of `len` bytes goes, if it can be told here.
    fn end_here(&self, place: Place, end: End, len: u64) -> Option<u64> {
        match end {
            End::At(size) => Some(size),
            End::Near(guess) if guess + len > chunk_end(place, guess) => Some(guess),
            End::Near(guess) => {
                let is_here = place.range.start <= guess && guess < place.range.end;
                is_here.then_some(place.range.start + self.attributes.size)
            }
        }
    }

    fn ends_at(&mut self, place: Place, end: &mut End, size: u64, at: Timestamp) {
        *end = End::At(size);
        if place.is_first() {
            self.reshape(true, size, at);
        }
    }

    fn reaches(&mut self, place: Place, end: &mut End, reach: u64, at: Timestamp) {
        match *end {
            End::At(size) => self.ends_at(place, end, size.max(reach), at),
            End::Near(guess) => *end = End::Near(guess.max(reach)),
        }
    }

    /// Lets go of what `readers` do not need, when there is much of it.
    fn collect_some(&mut self, readers: Readers) {
        self.readable_from = self.readable_from.max(readers.every_from());
        if self.older_memory >= self.collect_at.max(COLLECT_FROM) {
            self.collect_chunk(readers);
            self.collect_at = 2 * self.older_memory;
        }
    }

    /// Drops older versions of a chunk that `readers` do not need (V3), and merges what they
    /// cannot tell apart; answers how many are left.
    pub fn collect_chunk(&mut self, readers: Readers) -> usize {
        self.readable_from = self.readable_from.max(readers.every_from());
        let left = self.collect(readers, Timestamp::MAX);
        let holes = self.holes();
        for (number, block) in &mut self.blocks {
            if left == 0 || block.is_worth_merging() {
                let before = block.memory();
                let (start, end) = within_block(*number, holes);
                block.merge_unread(readers, start..end);
                self.memory = self.memory + block.memory() - before;
            }
        }
        left
    }

    /// Takes the chunk as it was elsewhere. Nothing that is here counts any more.
    pub fn install(&mut self, place: Place, copy: Installed, applying: Applying) {
        self.collect(Readers::NONE, Timestamp::MAX);
        let replaced = Applying { readers: Readers::NONE, at: copy.version, ..applying };
        self.cut_tail(0, replaced);
        let mut held = 0;
        for (offset, bytes) in copy.pieces.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            self.write_bytes(*offset, bytes, replaced);
            held = offset + bytes.len() as u64;
        }
        self.attributes.version = copy.version.max(copy.size_version);
        let held = (held > 0).then_some(held);
        let size = if place.is_first() { copy.size.flatten() } else { held };
        self.attributes.exists = size.is_some();
        self.attributes.size = size.unwrap_or(0);
        self.reshaped = copy.size_version;
        self.forgotten = copy.version;
        // Where there was nothing to copy, it may have been forgotten that there was something.
        let is_traced = self.attributes.version > Timestamp::ZERO;
        self.known_from = if is_traced { Timestamp::ZERO } else { copy.at };
        // Also of a chunk that nobody wrote it is known that it is here.
        let here = Timestamp { clock: 1, ..Timestamp::ZERO };
        self.included_to = self.included_to.max(copy.at).max(here);
        self.absent_to = Timestamp::ZERO;
        self.is_dirty = true;
    }

    /// The newest version up to `at` of `range`, counted from the chunk's start; with
    /// `is_attributes` also that of the blob.
    pub fn version_at(&self, range: ByteRange, is_attributes: bool, at: Timestamp) -> Timestamp {
        let attributes = self.attributes_at(at).filter(|_| is_attributes);
        let newest = self.newest_overlapping(range, is_attributes);
        let known = attributes.map_or(Timestamp::ZERO, |attributes| attributes.version);
        if newest <= at {
            return newest.max(known);
        }
        let older = self.older.iter().filter(|piece| {
            let whole = ByteRange { start: piece.start, end: piece.end };
            piece.from <= at && whole.overlaps(range)
        });
        let runs = self.blocks_in(range).flat_map(|(_, start, end, block)| {
            block.overlapping(start, end).map(|run| run.version)
        });
        let pieces = self.pieces_in(range).map(|(_, piece)| piece.version);
        let cuts = self.cuts.iter().filter(|cut| cut.len < range.end).map(|cut| cut.at);
        let all = older.map(|piece| piece.from).chain(runs).chain(pieces).chain(cuts);
        let all = all.chain([self.forgotten, known]);
        all.filter(|version| *version <= at).max().unwrap_or(Timestamp::ZERO)
    }
}

/// The operations on a chunk in the steps in which they are done.
///
/// # Panics
/// When a transform reaches over the chunk's end: the commit machine sees to that (C4).
pub fn steps(place: Place, operations: &[Operation]) -> impl Iterator<Item = Step<'_>> {
    let mut number = 0;
    std::iter::from_fn(move || {
        let rest = &operations[number..];
        let (changed, count) = match transformed_at_once(place, rest) {
            Some((range, count)) => (Some(range), count),
            None => (None, 1),
        };
        let operations = rest.get(..count)?;
        number += count;
        Some(Step { number: number - count, operations, changed })
    })
}

/// What the first of these operations changes in the chunk, if it is a transform there, with those
/// that follow on numbers side by side; and how many they are.
fn transformed_at_once(place: Place, operations: &[Operation]) -> Option<(ByteRange, usize)> {
    let mut whole: Option<ByteRange> = None;
    let mut count = 0;
    for span in operations.iter().map_while(transformed) {
        let share = span.intersection(place.range);
        let is_next = whole.is_none_or(|whole| whole.end == span.start);
        if share.is_empty() || !is_next {
            break;
        }
        let at = span.start;
        assert!(share == span, "a transform at {at} over a chunk's end reached the store (C4)");
        whole = Some(ByteRange { start: whole.map_or(at, |whole| whole.start), end: span.end });
        count += 1;
    }
    whole.map(|whole| (place.local(whole), count))
}

/// Where the chunk ends in which `byte` lies.
fn chunk_end(place: Place, byte: u64) -> u64 {
    (byte / place.range.len() + 1) * place.range.len()
}
