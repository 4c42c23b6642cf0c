//! A blob as one would write it down in a test: its bytes, and what operations do to them.
//!
//! No chunks, no versions, no nodes. What operations do is stated here a second time, on purpose.

use std::borrow::Cow;

use smallvec::SmallVec;
use tyr_types::{
    ByteRange, Existence, Expected, Number, Operation, Outcome, Payload, PieceContent, Relation,
    Timestamp, UploadedPiece,
};

/// Stands for size and existence among the ranges of a blob: a byte that no blob has.
pub const ATTRIBUTES: ByteRange = ByteRange {
    start: tyr_types::limits::BLOB_SIZE_MAX,
    end: tyr_types::limits::BLOB_SIZE_MAX + 1,
};

/// Ranges of a blob, [`ATTRIBUTES`] perhaps among them.
pub type Ranges = SmallVec<[ByteRange; 2]>;

/// A blob's bytes; `None` when it is absent.
pub type Blob = Option<Vec<u8>>;

/// Does the operations of a transaction that committed at `at` on a blob, in order; adds what
/// changed to `changed`.
/// Answers what each of them answers.
///
/// # Errors
/// The place of the first condition that does not hold.
pub fn operate(
    blob: &mut Blob,
    operations: &[Operation],
    at: Timestamp,
    changed: &mut Ranges,
) -> Result<Vec<Outcome>, usize> {
    let old_size = blob.as_ref().map(Vec::len);
    // Bytes are compared as they are before the transaction.
    for (place, operation) in operations.iter().enumerate() {
        if let Operation::Compare { offset, expected } = operation
            && !is_as_expected(blob.as_deref(), *offset, expected)
        {
            return Err(place);
        }
    }
    let mut outcomes = Vec::with_capacity(operations.len());
    for (place, operation) in operations.iter().enumerate() {
        outcomes.push(operate_one(blob, operation, at, changed).ok_or(place)?);
    }
    if blob.as_ref().map(Vec::len) != old_size {
        changed.push(ATTRIBUTES);
    }
    Ok(outcomes)
}

/// Whether a blob of these bytes has there what is expected; of numbers only those of 64 bits
/// without a sign are compared.
fn is_as_expected(bytes: Option<&[u8]>, offset: u64, expected: &Expected) -> bool {
    match expected {
        Expected::Bytes(expected) => {
            let there = bytes.and_then(|bytes| bytes.get(place_of(offset, expected.len())));
            there == Some(&expected[..])
        }
        Expected::Number { relation, value: Number::U64(value) } => {
            let rest = bytes.and_then(|bytes| bytes.get(offset as usize..)).unwrap_or(&[]);
            // Little-endian, and zeros where nothing is.
            let found = rest.iter().take(8).rev();
            let found = found.fold(0_u64, |high, byte| high << 8 | u64::from(*byte));
            match relation {
                Relation::Equal => found == *value,
                Relation::NotEqual => found != *value,
                Relation::Less => found < *value,
                Relation::LessOrEqual => found <= *value,
                Relation::Greater => found > *value,
                Relation::GreaterOrEqual => found >= *value,
            }
        }
        Expected::Number { value, .. } => panic!("no workload compares {value:?}"),
    }
}

/// `None` when it is a condition that does not hold.
fn operate_one(
    blob: &mut Blob,
    operation: &Operation,
    at: Timestamp,
    changed: &mut Ranges,
) -> Option<Outcome> {
    match operation {
        Operation::Compare { .. } => {}
        Operation::Expect { existence } => {
            let is_there = blob.is_some();
            if is_there != (*existence == Existence::Present) {
                return None;
            }
        }
        Operation::Create if blob.is_some() => return None,
        Operation::Create => *blob = Some(Vec::new()),
        Operation::Write { offset, payload } => put(blob, *offset, &stored(payload, at), changed),
        Operation::Append { payload, expected } => {
            let size = size_of(blob);
            if expected.is_some_and(|expected| expected != size) {
                return None;
            }
            put(blob, size, &stored(payload, at), changed);
            return Some(Outcome::Offset(size));
        }
        Operation::Truncate { len } => resize(blob, *len, changed),
        Operation::Clear { range } => {
            let there = range.intersection(ByteRange { start: 0, end: size_of(blob) });
            if let Some(bytes) = blob.as_mut().filter(|_| !there.is_empty()) {
                bytes[place_of(there.start, there.len() as usize)].fill(0);
                changed.push(there);
            }
        }
        Operation::Delete => {
            let existed = blob.is_some();
            resize(blob, 0, changed);
            *blob = None;
            return Some(Outcome::Existed(existed));
        }
        Operation::Replace { payload } => {
            resize(blob, 0, changed);
            put(blob, 0, &stored(payload, at), changed);
        }
        Operation::Apply { offset, transform } => {
            let end = offset + transform.width() as u64;
            reach(blob, end, changed);
            changed.push(ByteRange { start: *offset, end });
            let bytes = blob.as_mut().expect("it reaches so far");
            return Some(Outcome::Value(transform.apply(&mut bytes[*offset as usize..])));
        }
    }
    Some(Outcome::Done)
}

fn put(blob: &mut Blob, offset: u64, bytes: &[u8], changed: &mut Ranges) {
    let end = offset + bytes.len() as u64;
    reach(blob, end, changed);
    changed.push(ByteRange { start: offset, end });
    let there = blob.as_mut().expect("it reaches so far");
    there[place_of(offset, bytes.len())].copy_from_slice(bytes);
}

/// Extends with zeros up to `end`, if it is shorter.
fn reach(blob: &mut Blob, end: u64, changed: &mut Ranges) {
    if blob.is_none() || size_of(blob) < end {
        resize(blob, end, changed);
    }
}

fn resize(blob: &mut Blob, len: u64, changed: &mut Ranges) {
    let size = size_of(blob);
    let moved = ByteRange { start: size.min(len), end: size.max(len) };
    if !moved.is_empty() {
        changed.push(moved);
    }
    blob.get_or_insert_default().resize(len as usize, 0);
}

fn size_of(blob: &Blob) -> u64 {
    blob.as_ref().map_or(0, |bytes| bytes.len() as u64)
}

fn place_of(offset: u64, len: usize) -> std::ops::Range<usize> {
    offset as usize..offset as usize + len
}

/// The bytes that are there after a commit at `at`.
fn stored(payload: &Payload, at: Timestamp) -> Cow<'_, [u8]> {
    match payload {
        Payload::Inline(bytes) => Cow::Borrowed(bytes),
        Payload::Extents(_) => panic!("clients of the simulator send payloads by value"),
        Payload::Uploaded(uploaded) => {
            let bytes = |it: &UploadedPiece| match &it.content {
                PieceContent::Bytes(bytes) => bytes.clone(),
                PieceContent::Elsewhere | PieceContent::Extents(_) => {
                    panic!("clients of the simulator know what they uploaded")
                }
            };
            Cow::Owned(uploaded.pieces().iter().flat_map(bytes).collect())
        }
        Payload::Stamped(stamped) => {
            let (epoch, clock) = (at.epoch.0.to_be_bytes(), at.clock.to_be_bytes());
            let stamp = [&epoch[..], &clock, &at.node.to_be_bytes(), &[0, 0]].concat();
            let mut bytes = stamped.bytes().to_vec();
            for place in stamped.places() {
                bytes[place_of((*place).into(), stamp.len())].copy_from_slice(&stamp);
            }
            Cow::Owned(bytes)
        }
    }
}
