//! What a chunk holds at one moment, and what operations do to it.
//!
//! A chunk's bytes are counted from its start and may be fewer than the blob has there: what was
//! never written is not kept, and reads as zeros as long as the blob does not end before (R7). Size
//! and existence are kept with chunk 0, whose nodes are the version managers.

use smallvec::SmallVec;
use tyr_types::chunk::{self, Answers, ChunkContent, Place, Start};
use tyr_types::{ByteRange, Bytes, ExtentRef, Operation, Outcome, Timestamp, Transform};

/// What a chunk holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Its bytes from its start on.
    pub bytes: Vec<u8>,
    /// The blob's size, `None` when it is absent; of chunk 0 only.
    pub size: Option<u64>,
}

/// What the operations of one transaction on one blob did to a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The bytes that were written.
    pub ranges: SmallVec<[ByteRange; 1]>,
    /// Whether size or existence changed; of chunk 0 only.
    pub is_attributes: bool,
}

/// A chunk's content while operations are done on it.
struct Writing<'a> {
    content: &'a mut Content,
    place: Place,
    written: &'a mut Written,
}

impl Content {
    /// Does the operations of a transaction that committed at `at`. Chunk 0 does not need `start`.
    pub fn operate(
        &mut self,
        place: Place,
        operations: &[Operation],
        start: Start,
        at: Timestamp,
    ) -> (Written, Answers) {
        let mut written = Written::default();
        let old_size = self.size;
        let mut writing = Writing { content: self, place, written: &mut written };
        let answers = chunk::operate(&mut writing, place, operations, start, at);
        written.is_attributes = place.is_first() && self.size != old_size;
        (written, answers)
    }

    /// The share of `range`, given in bytes of the blob, as places of the chunk's bytes, which are
    /// filled up with zeros to its end.
    fn room(&mut self, place: Place, range: ByteRange) -> std::ops::Range<usize> {
        let from = (range.start - place.range.start) as usize;
        let to = (range.end - place.range.start) as usize;
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        from..to
    }
}

impl ChunkContent for Writing<'_> {
    fn exists(&self) -> bool {
        self.content.size.is_some()
    }

    fn held(&self) -> u64 {
        match self.place.is_first() {
            true => self.content.size.unwrap_or(0),
            false => self.content.bytes.len() as u64,
        }
    }

    fn put(&mut self, offset: u64, bytes: &Bytes) {
        let span = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        let share = span.intersection(self.place.range);
        let skip = (share.start - offset) as usize;
        let room = self.content.room(self.place, share);
        let bytes = &bytes[skip..skip + room.len()];
        self.content.bytes[room].copy_from_slice(bytes);
        self.written.ranges.push(share);
    }

    fn put_extents(&mut self, _offset: u64, _extents: &[ExtentRef]) {
        panic!("no node of a simulated cluster has extents");
    }

    fn clear(&mut self, range: ByteRange) {
        let start = self.place.range.start;
        // What was never written is not kept, and is zero already.
        let end = range.end.min(self.content.bytes.len() as u64);
        if range.start < end {
            self.content.bytes[range.start as usize..end as usize].fill(0);
        }
        let span = ByteRange { start: start + range.start, end: start + range.end };
        self.written.ranges.push(span);
    }

    fn cut(&mut self, len: u64) {
        let kept = len.saturating_sub(self.place.range.start);
        self.content.bytes.resize(kept as usize, 0);
        self.written.ranges.push(ByteRange::from(len).intersection(self.place.range));
    }

    fn transform(
        &mut self,
        range: ByteRange,
        transforms: impl Iterator<Item = Transform>,
        mut answer: impl FnMut(Outcome),
    ) {
        let start = self.place.range.start;
        let span = ByteRange { start: start + range.start, end: start + range.end };
        let mut place = self.content.room(self.place, span);
        for transform in transforms {
            let number = place.start..place.start + transform.width();
            place.start = number.end;
            answer(Outcome::Value(transform.apply(&mut self.content.bytes[number])));
        }
        self.written.ranges.push(span);
    }

    fn reshape(&mut self, size: Option<u64>) {
        self.content.size = size;
    }
}

impl Written {
    /// Whether it changed something of `range`, or of the attributes if they are asked for; of no
    /// byte at all and the attributes, whether it is what the blob's version is of.
    pub fn overlaps(&self, range: ByteRange, is_attributes: bool) -> bool {
        is_attributes && (self.is_attributes || range == ByteRange::NOTHING)
            || self.ranges.iter().any(|written| written.overlaps(range))
    }
}
