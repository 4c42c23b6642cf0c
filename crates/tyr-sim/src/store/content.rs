//! What a chunk holds at one moment, and what operations do to it.
//!
//! A chunk's bytes are counted from its start and may be fewer than the blob has there: what was
//! never written is not kept, and reads as zeros as long as the blob does not end before (R7). Size
//! and existence are kept with chunk 0, whose nodes are the version managers.

use smallvec::SmallVec;
use tyr_types::{ByteRange, Operation, Outcome, Payload};

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

/// What an operation answered, with its place among those on the blob.
pub type Answers = SmallVec<[(usize, Outcome); 1]>;

/// Which bytes of its blob a chunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The chunk's bytes.
    pub range: ByteRange,
}

impl Place {
    /// Whether it is the first of its blob, which has the attributes.
    pub fn is_first(self) -> bool {
        self.range.start == 0
    }
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

impl Content {
    /// Does the operations of a transaction. Chunk 0 does not need `start`.
    pub fn operate(
        &mut self,
        place: Place,
        operations: &[Operation],
        start: Start,
    ) -> (Written, Answers) {
        let (mut written, mut answers) = (Written::default(), Answers::new());
        let old_size = self.size;
        let mut end = match (place.is_first(), start) {
            (true, _) => End::At(self.size.unwrap_or(0)),
            (false, Start::Known(size)) => End::At(size),
            (false, Start::Guessed(guess)) => End::Near(guess),
        };
        for (number, operation) in operations.iter().enumerate() {
            let outcome = self.operate_one(place, operation, &mut end, &mut written);
            answers.extend(outcome.map(|outcome| (number, outcome)));
        }
        written.is_attributes = place.is_first() && self.size != old_size;
        (written, answers)
    }

    fn operate_one(
        &mut self,
        place: Place,
        operation: &Operation,
        end: &mut End,
        written: &mut Written,
    ) -> Option<Outcome> {
        match operation {
            Operation::Compare { .. } => None,
            Operation::Create => {
                self.ends_at(place, end, 0);
                None
            }
            Operation::Write { offset, payload } => {
                self.put(place, *offset, inline(payload), written);
                self.reaches(place, end, offset + payload.len());
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
                self.put(place, offset, inline(payload), written);
                self.ends_at(place, end, offset + len);
                Some(Outcome::Offset(offset))
            }
            Operation::Truncate { len } => {
                self.cut(place, *len, written);
                self.ends_at(place, end, *len);
                None
            }
            Operation::Delete => {
                let existed = self.size.is_some();
                self.cut(place, 0, written);
                (self.size, *end) = (None, End::At(0));
                Some(Outcome::Existed(existed))
            }
            Operation::Replace { payload } => {
                self.cut(place, 0, written);
                self.put(place, 0, inline(payload), written);
                self.ends_at(place, end, payload.len());
                None
            }
            Operation::Apply { offset, transform } => {
                let span = ByteRange { start: *offset, end: offset + transform.width() as u64 };
                let share = span.intersection(place.range);
                let outcome = (share == span).then(|| {
                    let from = self.room(place, span);
                    Outcome::Value(transform.apply(&mut self.bytes[from]))
                });
                assert!(
                    outcome.is_some() || share.is_empty(),
                    "violation: a transform at {offset} over a chunk's end reached the store"
                );
                if outcome.is_some() {
                    written.ranges.push(span);
                }
                self.reaches(place, end, span.end);
                outcome
            }
        }
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

    fn put(&mut self, place: Place, offset: u64, bytes: &[u8], written: &mut Written) {
        let span = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        let share = span.intersection(place.range);
        if !share.is_empty() {
            let skip = (share.start - offset) as usize;
            let room = self.room(place, share);
            let bytes = &bytes[skip..skip + room.len()];
            self.bytes[room].copy_from_slice(bytes);
            written.ranges.push(share);
        }
    }

    /// Everything from `len` on goes; where the blob then ends in this chunk, it has all bytes up
    /// to there.
    fn cut(&mut self, place: Place, len: u64, written: &mut Written) {
        if len < place.range.end {
            self.bytes.resize(len.saturating_sub(place.range.start) as usize, 0);
        }
        let share = ByteRange::from(len).intersection(place.range);
        if !share.is_empty() {
            written.ranges.push(share);
        }
    }

    /// Where an append of `len` bytes goes, if it can be told here.
    fn end_here(&self, place: Place, end: End, len: u64) -> Option<u64> {
        match end {
            End::At(size) => Some(size),
            End::Near(guess) if guess + len > chunk_end(place, guess) => Some(guess),
            End::Near(guess) => {
                let is_here = place.range.start <= guess && guess < place.range.end;
                is_here.then_some(place.range.start + self.bytes.len() as u64)
            }
        }
    }

    fn ends_at(&mut self, place: Place, end: &mut End, size: u64) {
        *end = End::At(size);
        if place.is_first() {
            self.size = Some(size);
        }
    }

    fn reaches(&mut self, place: Place, end: &mut End, reach: u64) {
        match *end {
            End::At(size) => self.ends_at(place, end, size.max(reach)),
            End::Near(guess) => *end = End::Near(guess.max(reach)),
        }
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

/// Where the chunk ends in which `byte` lies.
fn chunk_end(place: Place, byte: u64) -> u64 {
    (byte / place.range.len() + 1) * place.range.len()
}

fn inline(payload: &Payload) -> &[u8] {
    match payload {
        Payload::Inline(bytes) => bytes,
        Payload::Extents(_) => panic!("no node of a simulated cluster has extents"),
    }
}
