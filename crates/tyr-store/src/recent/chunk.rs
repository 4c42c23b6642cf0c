//! One chunk of a blob in memory, on a node of a cluster.
//!
//! What operations do to it, and what its size means, is said in [`tyr_types::chunk`]. Operations
//! that overlap come in timestamp order (C6). On a later chunk others may come *late*: after some
//! with higher timestamps, on other bytes. Then the versions in between get what the late one does,
//! too.

use tyr_types::chunk::{Answers, ChunkContent, Place, Start, operate};
use tyr_types::{ByteRange, Bytes, ExtentRef, Operation, Outcome, Timestamp, Transform};

use super::apply::Applying;
use super::blob::{Attributes, BlobState, within_block};
use super::older::OldAttributes;
use super::readers::Readers;

/// Memory of older versions above which a chunk looks for those that may go, at each change anew:
/// some 16 of small ones.
const COLLECT_FROM: usize = 2 << 10;

/// Operations up to here are in whatever is here: also of a chunk that nobody wrote it is known
/// that it is.
pub const HERE: Timestamp = Timestamp { clock: 1, ..Timestamp::ZERO };

/// The newest content of a chunk, as the rule has it of what operations do.
pub(super) struct Content<'a> {
    pub state: &'a mut BlobState,
    pub place: Place,
    pub applying: Applying<'a>,
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
        let is_told = self.included_to <= at && self.counted.has(at);
        let is_newest = self.attributes.version <= at;
        self.known_from <= at && (is_newest || is_told && self.attributes_at(at).is_some())
    }

    /// Whether it came as a copy and no fold has been there since: the base never had what it was.
    pub fn is_unfolded_copy(&self) -> bool {
        self.folded_at < self.included_to
    }

    /// Whether the base, and not memory, has what the chunk was like at a kept moment: all that was
    /// applied is in it, a fold has passed the moment, or the chunk came here as of later.
    pub fn is_left_to_base(&self, at: Timestamp) -> bool {
        !self.is_dirty || at < self.included_to
    }

    /// The attributes at `at`, if they can be told: also where the bytes of then are gone.
    pub fn attributes_told_at(&self, at: Timestamp) -> Option<Attributes> {
        self.attributes_at(at).filter(|_| self.known_from <= at)
    }

    /// What is here is the chunk as it was at `at`, whatever folds have passed it since: operations
    /// above that are done on top of it.
    pub fn stand_at(&mut self, at: Timestamp) {
        debug_assert!(self.attributes.version <= at, "{} is in it", self.attributes.version);
        self.folded_at = self.folded_at.min(at);
        self.included_to = self.included_to.min(at);
        self.absent_to = self.absent_to.min(at);
        self.stood_at = Some(at);
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
        debug_assert!(!self.is_done(applying.at), "{} is in it already", applying.at);
        let is_late = applying.at < self.attributes.version;
        match is_late {
            true => self.split_attributes(applying.at),
            false => self.keep_attributes(applying),
        }
        self.is_dirty = true;
        let mut content = Content { state: self, place, applying };
        let answers = operate(&mut content, place, operations, start, applying.at);
        self.collect_some(applying.readers);
        answers
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

    /// Lets go of what `readers` do not need, when there is much of it.
    fn collect_some(&mut self, readers: Readers) {
        self.counted.narrow(readers, self.attributes.version);
        if self.older_memory >= self.collect_at.max(COLLECT_FROM) {
            self.collect_chunk(readers);
            self.collect_at = 2 * self.older_memory;
        }
    }

    /// Drops older versions of a chunk that `readers` do not need (V3), and merges what they
    /// cannot tell apart; answers how many are left.
    pub fn collect_chunk(&mut self, readers: Readers) -> usize {
        self.counted.narrow(readers, self.attributes.version);
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
        self.included_to = self.included_to.max(copy.at).max(HERE);
        self.absent_to = Timestamp::ZERO;
        self.is_dirty = true;
    }

    /// The newest version up to `at` of `range`, counted from the chunk's start; with
    /// `is_attributes` also that of the blob.
    pub fn version_at(&self, range: ByteRange, is_attributes: bool, at: Timestamp) -> Timestamp {
        let attributes = self.attributes_at(at).filter(|_| is_attributes);
        let newest = self.newest_overlapping(range, is_attributes);
        let known = attributes.map_or(Timestamp::ZERO, |attributes| attributes.version);
        debug_assert!(known <= at, "attributes of {known} were not there at {at}");
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

impl ChunkContent for Content<'_> {
    fn exists(&self) -> bool {
        self.state.attributes.exists
    }

    fn held(&self) -> u64 {
        self.state.attributes.size
    }

    fn put(&mut self, offset: u64, bytes: &Bytes) {
        let Self { place, applying, .. } = *self;
        let span = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        let share = span.intersection(place.range);
        let local = self.reach(share);
        let skip = (share.start - offset) as usize;
        let bytes = &bytes[skip..skip + share.len() as usize];
        self.state.write_bytes(local.start, bytes, applying);
    }

    /// They each lie in one chunk; written are those that lie in this one.
    fn put_extents(&mut self, offset: u64, extents: &[ExtentRef]) {
        let Self { place, applying, .. } = *self;
        let len: u64 = extents.iter().map(|extent| u64::from(extent.len)).sum();
        self.reach(ByteRange { start: offset, end: offset + len }.intersection(place.range));
        let mut start = offset;
        for extent in extents {
            let span = ByteRange { start, end: start + u64::from(extent.len) };
            if place.range.contains(span) {
                self.state.write_extents(place.local(span).start, &[*extent], applying);
            }
            start = span.end;
        }
    }

    fn clear(&mut self, range: ByteRange) {
        self.state.clear_bytes(range, self.applying);
    }

    fn cut(&mut self, len: u64) {
        let Self { place, applying, .. } = *self;
        let local = len.saturating_sub(place.range.start);
        self.state.cut_tail(local, applying);
        self.state.holds(place, Resize::Exactly(local), applying.at);
    }

    fn transform(
        &mut self,
        range: ByteRange,
        transforms: impl Iterator<Item = Transform>,
        answer: impl FnMut(Outcome),
    ) {
        let Self { place, applying, .. } = *self;
        // What is not in memory would be taken for zeros.
        debug_assert!(self.state.is_resident(range), "{range:?} is changed unread");
        self.state.holds(place, Resize::Reach(range.end), applying.at);
        self.state.transform_bytes(range, transforms, applying, answer);
    }

    fn reshape(&mut self, size: Option<u64>) {
        self.state.reshape(size.is_some(), size.unwrap_or(0), self.applying.at);
    }
}

impl Content<'_> {
    /// The chunk holds this share of the blob's bytes, at least; where they lie in it.
    fn reach(&mut self, share: ByteRange) -> ByteRange {
        let local = self.place.local(share);
        debug_assert_eq!(local.len(), share.len(), "as many bytes, counted from the chunk's start");
        self.state.holds(self.place, Resize::Reach(local.end), self.applying.at);
        local
    }
}
