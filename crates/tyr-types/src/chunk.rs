//! What operations do to one chunk of a blob: the one rule for everything that keeps content.
//!
//! A chunk is kept like a blob of its own, with bytes counted from the chunk's start. Of chunk 0,
//! size and existence are those of the whole blob, for its nodes are the version managers; of a
//! later chunk the size is how far it holds bytes, and says nothing of where the blob ends (R7). A
//! node that holds everything, an embedded store, has each blob as one chunk ([`Place::WHOLE`]).
//!
//! ```text
//!   blob      0 ........ s ........ 2s .... end       s: the keyspace's chunk size
//!   chunk 0   0 ........ s                            size = end
//!   chunk 1              0 ........ s                 size = s, or less where nothing was written
//! ```
//!
//! [`operate`] says what happens, in terms of [`ChunkContent`]; how bytes and versions are kept is
//! the affair of whoever keeps them.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::operation::{Operation, Outcome};
use crate::payload::{ExtentRef, Payload};
use crate::range::ByteRange;
use crate::timestamp::Timestamp;
use crate::transform::Transform;
use crate::uploaded::{PieceContent, Uploaded, UploadedPiece};

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

/// What an operation answered, with its place among those on the blob. Those that answer nothing
/// but that they took effect are left out.
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

/// What keeps the content of a chunk.
pub trait ChunkContent {
    /// Whether the blob exists; asked of chunk 0 only, a later chunk may say anything.
    fn exists(&self) -> bool;

    /// How many bytes the chunk holds; of chunk 0 the size of the blob.
    fn held(&self) -> u64;

    /// Writes the share of bytes at `offset` of the blob that lies in the chunk, at least a byte. A
    /// later chunk then holds bytes up to there at least; of chunk 0 the size follows by
    /// [`ChunkContent::reshape`].
    fn put(&mut self, offset: u64, bytes: &Bytes);

    /// The same of bytes that lie in extents.
    fn put_extents(&mut self, offset: u64, extents: &[ExtentRef]);

    /// `range`, given in bytes of the chunk, of which it holds all, reads as zeros from now on. It
    /// holds as many bytes as before.
    fn clear(&mut self, range: ByteRange);

    /// Everything from `len` of the blob on goes, which is before the chunk's end. A later chunk
    /// then holds exactly the bytes up to there, new ones being zero.
    fn cut(&mut self, len: u64);

    /// Does transforms on numbers side by side, which are as wide as `range` together, given in
    /// bytes of the chunk. A later chunk then holds bytes up to there at least. Tells the new
    /// values one by one.
    fn transform(
        &mut self,
        range: ByteRange,
        transforms: impl Iterator<Item = Transform>,
        answer: impl FnMut(Outcome),
    );

    /// Chunk 0: the blob has this size now, `None` when it is gone.
    fn reshape(&mut self, size: Option<u64>);
}

impl Place {
    /// All of a blob.
    pub const WHOLE: Self = Self { range: ByteRange::ALL };

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

    /// Where in the blob a range is that is counted from the chunk's start.
    pub fn in_blob(self, local: ByteRange) -> ByteRange {
        let start = self.range.start;
        ByteRange { start: start + local.start, end: start + local.end }
    }
}

/// Does the operations of a transaction that committed at `at` on the blob, as far as they concern
/// this chunk. Chunk 0 does not need `start`. Stamps are filled with `at` (C10), so that they are
/// the same on every node, whenever it does so.
///
/// # Panics
/// When a transform reaches over the chunk's end: the commit machine sees to that (C4).
pub fn operate(
    content: &mut impl ChunkContent,
    place: Place,
    operations: &[Operation],
    start: Start,
    at: Timestamp,
) -> Answers {
    let end = match (place.is_first(), start) {
        (true, _) => End::At(content.held()),
        (false, Start::Known(size)) => End::At(size),
        (false, Start::Guessed(guess)) => End::Near(guess),
    };
    let mut run = Run { content, place, end, at };
    let mut answers = Answers::new();
    for Step { number, operations, changed } in steps(place, operations) {
        let Some(range) = changed else {
            let outcome = run.operate_one(&operations[0]);
            answers.extend(outcome.map(|outcome| (number, outcome)));
            continue;
        };
        let mut numbers = number..;
        run.content.transform(range, operations.iter().filter_map(transform), |value| {
            answers.extend(numbers.next().map(|number| (number, value)));
        });
        run.reaches(place.range.start + range.end);
    }
    answers
}

/// Operations being done on a chunk.
struct Run<'a, C> {
    content: &'a mut C,
    place: Place,
    end: End,
    at: Timestamp,
}

impl<C: ChunkContent> Run<'_, C> {
    fn operate_one(&mut self, operation: &Operation) -> Option<Outcome> {
        match operation {
            Operation::Compare { .. } | Operation::Expect { .. } => None,
            Operation::Create => {
                self.ends_at(0);
                None
            }
            Operation::Write { offset, payload } => {
                match payload.len() {
                    0 => self.extend(*offset),
                    _ => self.put(*offset, payload),
                }
                self.reaches(offset + payload.len());
                None
            }
            Operation::Append { payload, expected } => {
                let len = payload.len();
                let Some(offset) = expected.or_else(|| self.end_here(len)) else {
                    if let End::Near(guess) = &mut self.end {
                        *guess += len;
                    }
                    return None;
                };
                self.put(offset, payload);
                self.ends_at(offset + len);
                Some(Outcome::Offset(offset))
            }
            Operation::Truncate { len } => {
                self.cut(*len);
                self.ends_at(*len);
                None
            }
            Operation::Delete => {
                let existed = self.content.exists();
                self.cut(0);
                self.end = End::At(0);
                if self.place.is_first() {
                    self.content.reshape(None);
                }
                Some(Outcome::Existed(existed))
            }
            Operation::Replace { payload } => {
                self.cut(0);
                self.put(0, payload);
                self.ends_at(payload.len());
                None
            }
            Operation::Clear { range } => {
                self.clear(*range);
                None
            }
            // It changes another chunk.
            Operation::Apply { offset, transform } => {
                self.reaches(offset + transform.width() as u64);
                None
            }
        }
    }

    fn put(&mut self, offset: u64, payload: &Payload) {
        let span = ByteRange { start: offset, end: offset + payload.len() };
        if span.intersection(self.place.range).is_empty() {
            return;
        }
        match payload {
            Payload::Inline(bytes) => self.content.put(offset, bytes),
            Payload::Extents(extents) => self.content.put_extents(offset, extents),
            Payload::Stamped(stamped) => self.content.put(offset, &stamped.filled(self.at)),
            Payload::Uploaded(uploaded) => self.put_pieces(offset, uploaded),
        }
    }

    /// The pieces that lie in the chunk. Whoever applies has looked them up: bytes that are nowhere
    /// cannot be applied (U1).
    fn put_pieces(&mut self, offset: u64, uploaded: &Uploaded) {
        for (start, UploadedPiece { piece, content }) in uploaded.placed() {
            let start = offset + start;
            let span = ByteRange { start, end: start + u64::from(piece.len) };
            if !span.overlaps(self.place.range) {
                continue;
            }
            match content {
                PieceContent::Bytes(bytes) => self.content.put(start, bytes),
                PieceContent::Extents(extents) => self.content.put_extents(start, extents),
                PieceContent::Elsewhere => {
                    panic!("U1: {:?} is applied without its bytes", piece.id)
                }
            }
        }
    }

    fn clear(&mut self, range: ByteRange) {
        let local = self.place.local(range);
        let held = ByteRange { start: 0, end: self.content.held() };
        let cleared = local.intersection(held);
        if !cleared.is_empty() {
            self.content.clear(cleared);
        }
    }

    /// A write of nothing moves the end of a blob that is shorter, as every write does: the chunk
    /// in which it ends from now on holds zeros up to there, so that the next append finds it. It
    /// writes the last of them, the byte that it claims (C4), and no other: writes behind it are in
    /// no order with it, and may come late.
    fn extend(&mut self, end: u64) {
        let Place { range } = self.place;
        let is_here = range.start < end && end < range.end;
        if is_here && !self.place.is_first() && self.content.held() < end - range.start {
            self.content.put(end - 1, &Bytes::from_static(&[0]));
        }
    }

    fn cut(&mut self, len: u64) {
        if len < self.place.range.end {
            self.content.cut(len);
        }
    }

    /// Where an append of `len` bytes goes, if it can be told here.
    fn end_here(&self, len: u64) -> Option<u64> {
        let place = self.place;
        match self.end {
            End::At(size) => Some(size),
            End::Near(guess) if guess + len > chunk_end(place, guess) => Some(guess),
            End::Near(guess) => {
                let is_here = place.range.start <= guess && guess < place.range.end;
                is_here.then(|| place.range.start + self.content.held())
            }
        }
    }

    fn ends_at(&mut self, size: u64) {
        self.end = End::At(size);
        if self.place.is_first() {
            self.content.reshape(Some(size));
        }
    }

    fn reaches(&mut self, reach: u64) {
        match self.end {
            End::At(size) => self.ends_at(size.max(reach)),
            End::Near(guess) => self.end = End::Near(guess.max(reach)),
        }
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
    for span in operations.iter().map_while(Operation::transformed) {
        let share = span.intersection(place.range);
        let is_next = whole.is_none_or(|whole| whole.end == span.start);
        if share.is_empty() || !is_next {
            break;
        }
        let at = span.start;
        assert!(
            share == span,
            "violation: a transform at {at} over a chunk's end reached the store (C4)"
        );
        whole = Some(ByteRange { start: whole.map_or(at, |whole| whole.start), end: span.end });
        count += 1;
    }
    whole.map(|whole| (place.local(whole), count))
}

fn transform(operation: &Operation) -> Option<Transform> {
    match operation {
        Operation::Apply { transform, .. } => Some(*transform),
        Operation::Create
        | Operation::Write { .. }
        | Operation::Append { .. }
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Compare { .. }
        | Operation::Replace { .. }
        | Operation::Expect { .. } => None,
    }
}

/// Where the chunk ends in which `byte` lies.
fn chunk_end(place: Place, byte: u64) -> u64 {
    (byte / place.range.len() + 1) * place.range.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::operation::Existence;
    use crate::stamped::Stamped;
    use crate::transform::Number;

    const CHUNK: u64 = 8;
    const AT: Timestamp = Timestamp { clock: u64::MAX / 3, ..Timestamp::ZERO };

    /// A chunk's bytes, as plainly as can be.
    struct Plain {
        place: Place,
        size: Option<u64>,
        bytes: Vec<u8>,
    }

    impl Plain {
        fn at(place: Place, blob: &[u8]) -> Self {
            let size = blob.len() as u64;
            let share = ByteRange { start: 0, end: size }.intersection(place.range);
            let bytes = blob.get(share.start as usize..share.end as usize).unwrap_or(&[]).to_vec();
            Self { place, size: Some(size), bytes }
        }

        fn room(&mut self, end: u64) {
            self.bytes.resize(self.bytes.len().max(end as usize), 0);
        }
    }

    impl ChunkContent for Plain {
        fn exists(&self) -> bool {
            self.size.is_some()
        }

        fn held(&self) -> u64 {
            match self.place.is_first() {
                true => self.size.unwrap_or(0),
                false => self.bytes.len() as u64,
            }
        }

        fn put(&mut self, offset: u64, bytes: &Bytes) {
            let ByteRange { start, end } = self.place.range;
            for (at, byte) in (offset..).zip(bytes.iter()) {
                if (start..end).contains(&at) {
                    self.room(at + 1 - start);
                    self.bytes[(at - start) as usize] = *byte;
                }
            }
        }

        fn put_extents(&mut self, _offset: u64, _extents: &[ExtentRef]) {
            panic!("extents are the stores' affair");
        }

        fn clear(&mut self, range: ByteRange) {
            let end = range.end.min(self.bytes.len() as u64);
            self.bytes[range.start.min(end) as usize..end as usize].fill(0);
        }

        fn cut(&mut self, len: u64) {
            self.bytes.resize(len.saturating_sub(self.place.range.start) as usize, 0);
        }

        fn transform(
            &mut self,
            range: ByteRange,
            transforms: impl Iterator<Item = Transform>,
            mut answer: impl FnMut(Outcome),
        ) {
            self.room(range.end);
            let mut rest = &mut self.bytes[range.start as usize..range.end as usize];
            for transform in transforms {
                let number = rest.split_off_mut(..transform.width()).unwrap();
                answer(Outcome::Value(transform.apply(number)));
            }
        }

        fn reshape(&mut self, size: Option<u64>) {
            self.size = size;
        }
    }

    fn payload(bytes: &[u8]) -> Payload {
        Payload::Inline(Bytes::copy_from_slice(bytes))
    }

    /// Filled, it is of no zeros only, and lies in three chunks.
    fn stamped() -> Payload {
        Payload::Stamped(Arc::new(Stamped::new(vec![9; 18], [1]).unwrap()))
    }

    fn operations() -> Vec<Vec<Operation>> {
        let add = |offset| Operation::Apply { offset, transform: Transform::add(Number::U32(7)) };
        let append = |bytes| Operation::Append { payload: payload(bytes), expected: None };
        vec![
            vec![Operation::Write { offset: 6, payload: payload(b"abcd") }],
            vec![append(b"xy"), append(b"z")],
            vec![Operation::Append { payload: payload(b"xy"), expected: Some(12) }],
            vec![Operation::Write { offset: 1, payload: stamped() }],
            vec![Operation::Append { payload: stamped(), expected: None }],
            vec![Operation::Truncate { len: 3 }, append(b"q")],
            vec![Operation::Truncate { len: 20 }],
            vec![Operation::Clear { range: ByteRange { start: 3, end: 10 } }, append(b"q")],
            vec![Operation::Clear { range: ByteRange { start: 10, end: 30 } }],
            vec![append(b"more"), Operation::Clear { range: ByteRange::ALL }],
            vec![Operation::Write { offset: 19, payload: payload(b"") }, append(b"xy")],
            vec![Operation::Write { offset: 16, payload: payload(b"") }],
            vec![Operation::Delete],
            vec![Operation::Delete, Operation::Create, append(b"new")],
            vec![Operation::Replace { payload: payload(b"ten bytes!") }],
            vec![add(0), add(4), add(12)],
            vec![Operation::Compare { offset: 0, expected: Bytes::new().into() }],
            vec![Operation::Expect { existence: Existence::Present }],
        ]
    }

    /// A write of nothing beyond the end, and an append that goes by the guess of the end, each a
    /// transaction, at a node that holds the last chunk only.
    #[test]
    fn an_append_after_a_write_of_nothing_goes_where_that_has_put_the_end() {
        let place = Place { range: ByteRange { start: 16, end: 24 } };
        let mut chunk = Plain::at(place, &[1; 12]);
        let write = [Operation::Write { offset: 19, payload: payload(b"") }];
        operate(&mut chunk, place, &write, Start::Guessed(12), AT);
        assert_eq!(chunk.held(), 3);
        let append = [Operation::Append { payload: payload(b"xy"), expected: None }];
        let answers = operate(&mut chunk, place, &append, Start::Guessed(19), AT);
        assert_eq!(answers[..], [(0, Outcome::Offset(19))]);
        assert_eq!(chunk.bytes, b"\0\0\0xy");
        // One that ends before what is there changes nothing.
        let write = [Operation::Write { offset: 18, payload: payload(b"") }];
        operate(&mut chunk, place, &write, Start::Guessed(21), AT);
        assert_eq!(chunk.bytes, b"\0\0\0xy");
    }

    /// A blob of three chunks comes out the same, whether it is kept whole or chunk by chunk, and
    /// as large as its operations say one by one.
    #[test]
    fn chunks_come_out_as_the_whole_and_the_size_as_the_operations_say() {
        let before: Vec<u8> = (1..=12).collect();
        for operations in operations() {
            let start = Start::Known(before.len() as u64);
            let mut whole = Plain::at(Place::WHOLE, &before);
            let answered = operate(&mut whole, Place::WHOLE, &operations, start, AT);
            let mut size = Some(12);
            operations.iter().for_each(|it| size = it.size_after(size));
            assert_eq!(whole.size, size, "{operations:?}");
            whole.bytes.resize(size.unwrap_or(0) as usize, 0);
            let answering = operations.iter().filter(|operation| operation.is_answering());
            assert_eq!(answered.len(), answering.count(), "{operations:?}");
            for number in 0..3 {
                let range = ByteRange { start: number * CHUNK, end: (number + 1) * CHUNK };
                let place = Place { range };
                let mut chunk = Plain::at(place, &before);
                let answers = operate(&mut chunk, place, &operations, start, AT);
                let is_told = |answer| answered.contains(answer);
                assert!(answers.iter().all(is_told), "{answers:?} of {operations:?}");
                let share = Plain::at(place, &whole.bytes).bytes;
                chunk.room(share.len() as u64);
                assert_eq!(chunk.bytes, share, "chunk {number} after {operations:?}");
            }
        }
    }
}
