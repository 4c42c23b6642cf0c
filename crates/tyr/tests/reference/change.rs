//! The changes that can be made to a blob, each with what it does to the model and what it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tyr::{ErrorKind, Number, Relation, Transform, limits};

use super::Blob;

/// One change of one blob.
#[derive(Clone)]
pub enum Change {
    Create,
    Put(Vec<u8>),
    /// The same through a reader.
    PutReader(Vec<u8>),
    Write(u64, Vec<u8>),
    Append(Vec<u8>),
    AppendReader(Vec<u8>),
    AppendAt(u64, Vec<u8>),
    Truncate(u64),
    Clear(u64, u64),
    Delete,
    Apply(u64, Transform),
    Compare(u64, Vec<u8>),
    CompareNumber(u64, Relation, Number),
    ExpectAbsent,
    ExpectPresent,
    Swap(u64, Vec<u8>, Vec<u8>),
}

/// What a change answers.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Done,
    Offset(u64),
    Value(Number),
    Existed(bool),
    /// Bytes taken from a reader.
    Len(u64),
}

impl PartialEq for Answer {
    /// Floating point numbers are the same when their bytes are: NaN equals itself here.
    fn eq(&self, other: &Self) -> bool {
        let bytes = |number: &Number| {
            let mut bytes = [0; 8];
            number.store(&mut bytes);
            (number.number_type(), bytes)
        };
        match (self, other) {
            (Self::Value(one), Self::Value(two)) => bytes(one) == bytes(two),
            (Self::Done, Self::Done) => true,
            (Self::Offset(one), Self::Offset(two)) | (Self::Len(one), Self::Len(two)) => one == two,
            (Self::Existed(one), Self::Existed(two)) => one == two,
            _ => false,
        }
    }
}

impl fmt::Debug for Change {
    /// Lengths instead of bytes: a failure shall fit on a screen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => write!(f, "create"),
            Self::Put(data) => write!(f, "put {}", data.len()),
            Self::PutReader(data) => write!(f, "put_reader {}", data.len()),
            Self::Write(offset, data) => write!(f, "write {} at {offset}", data.len()),
            Self::Append(data) => write!(f, "append {}", data.len()),
            Self::AppendReader(data) => write!(f, "append_reader {}", data.len()),
            Self::AppendAt(offset, data) => write!(f, "append_at {offset}, {}", data.len()),
            Self::Truncate(len) => write!(f, "truncate to {len}"),
            Self::Clear(offset, len) => write!(f, "clear {len} at {offset}"),
            Self::Delete => write!(f, "delete"),
            Self::Apply(offset, transform) => write!(f, "apply {transform:?} at {offset}"),
            Self::Compare(offset, data) => write!(f, "compare {} at {offset}", data.len()),
            Self::CompareNumber(offset, relation, value) => {
                write!(f, "compare_number {} {value:?} at {offset}", relation.sign())
            }
            Self::ExpectAbsent => write!(f, "expect_absent"),
            Self::ExpectPresent => write!(f, "expect_present"),
            Self::Swap(offset, old, new) => {
                write!(f, "compare_and_swap {} by {} at {offset}", old.len(), new.len())
            }
        }
    }
}

impl Change {
    /// Whether it is wrong on any blob.
    pub fn is_invalid(&self) -> bool {
        let (offset, len) = match self {
            Self::Clear(offset, len) => (*offset, usize::try_from(*len).unwrap_or(usize::MAX)),
            Self::Write(offset, data) | Self::AppendAt(offset, data) => (*offset, data.len()),
            Self::Compare(offset, data) => (*offset, data.len()),
            Self::Swap(offset, old, new) => (*offset, old.len().max(new.len())),
            Self::Truncate(len) => (*len, 0),
            Self::Apply(offset, transform) => (*offset, transform.width()),
            Self::CompareNumber(offset, _, value) => (*offset, value.number_type().width()),
            Self::Create
            | Self::Put(_)
            | Self::PutReader(_)
            | Self::Append(_)
            | Self::AppendReader(_)
            | Self::Delete
            | Self::ExpectAbsent
            | Self::ExpectPresent => (0, 0),
        };
        offset.checked_add(len as u64).is_none_or(|end| end > limits::BLOB_SIZE_MAX)
    }

    /// Whether a transaction can abort for it.
    pub fn is_condition(&self) -> bool {
        match self {
            Self::Create
            | Self::AppendAt(..)
            | Self::Compare(..)
            | Self::CompareNumber(..)
            | Self::ExpectAbsent
            | Self::ExpectPresent
            | Self::Swap(..) => true,
            Self::Put(_)
            | Self::PutReader(_)
            | Self::Write(..)
            | Self::Append(_)
            | Self::AppendReader(_)
            | Self::Truncate(_)
            | Self::Clear(..)
            | Self::Delete
            | Self::Apply(..) => false,
        }
    }

    /// Bytes that it adds at the end.
    fn appended(&self) -> u64 {
        match self {
            Self::Append(data) | Self::AppendReader(data) | Self::AppendAt(_, data) => {
                data.len() as u64
            }
            Self::Create
            | Self::Put(_)
            | Self::PutReader(_)
            | Self::Write(..)
            | Self::Truncate(_)
            | Self::Clear(..)
            | Self::Delete
            | Self::Apply(..)
            | Self::Compare(..)
            | Self::CompareNumber(..)
            | Self::ExpectAbsent
            | Self::ExpectPresent
            | Self::Swap(..) => 0,
        }
    }

    /// Why it cannot be done: `before` is the blob as its transaction found it, `now` as the
    /// transaction has made it so far.
    pub fn refusal(&self, before: Option<&Blob>, now: Option<&Blob>) -> Option<ErrorKind> {
        let holds = |offset: u64, expected: &[u8]| {
            let read = |blob: &Blob| {
                let end = offset + expected.len() as u64;
                end <= blob.size && blob.read(offset, expected.len() as u64) == expected
            };
            before.is_some_and(read)
        };
        let end = now.map_or(0, |blob| blob.size) + self.appended();
        if self.is_invalid() || end > limits::BLOB_SIZE_MAX {
            return Some(ErrorKind::InvalidArgument);
        }
        match self {
            Self::Create | Self::ExpectAbsent => now.map(|_| ErrorKind::AlreadyExists),
            Self::ExpectPresent => now.is_none().then_some(ErrorKind::NotFound),
            Self::AppendAt(expected, _) => {
                let size = now.map_or(0, |blob| blob.size);
                (size != *expected).then_some(ErrorKind::Conflict)
            }
            Self::Compare(offset, expected) | Self::Swap(offset, expected, _) => {
                (!holds(*offset, expected)).then_some(ErrorKind::Conflict)
            }
            Self::CompareNumber(offset, relation, value) => {
                let width = value.number_type().width();
                let mut there = before.map(|blob| blob.read(*offset, width as u64));
                let there = there.get_or_insert_default();
                there.resize(width, 0);
                let found = Number::load(value.number_type(), there);
                (!relation.holds(found, *value)).then_some(ErrorKind::Conflict)
            }
            Self::Put(_)
            | Self::PutReader(_)
            | Self::Write(..)
            | Self::Append(_)
            | Self::AppendReader(_)
            | Self::Truncate(_)
            | Self::Clear(..)
            | Self::Delete
            | Self::Apply(..) => None,
        }
    }

    /// Does it, whatever its conditions say.
    pub fn play(&self, blobs: &mut BTreeMap<Vec<u8>, Arc<Blob>>, key: &[u8]) -> Answer {
        match self {
            Self::Delete => return Answer::Existed(blobs.remove(key).is_some()),
            // One that is not there stays so.
            Self::Clear(offset, len) => {
                if let Some(blob) = blobs.get_mut(key) {
                    Arc::make_mut(blob).clear(*offset, *len);
                }
                return Answer::Done;
            }
            Self::Compare(..)
            | Self::CompareNumber(..)
            | Self::ExpectAbsent
            | Self::ExpectPresent => return Answer::Done,
            Self::Put(_) | Self::PutReader(_) => drop(blobs.remove(key)),
            Self::Create
            | Self::Write(..)
            | Self::Append(_)
            | Self::AppendReader(_)
            | Self::AppendAt(..)
            | Self::Truncate(_)
            | Self::Apply(..)
            | Self::Swap(..) => {}
        }
        let blob = Arc::make_mut(blobs.entry(key.to_vec()).or_default());
        let end = blob.size;
        match self {
            Self::Create
            | Self::Clear(..)
            | Self::Delete
            | Self::Compare(..)
            | Self::CompareNumber(..)
            | Self::ExpectAbsent
            | Self::ExpectPresent => Answer::Done,
            Self::Put(data) => {
                blob.write(0, data);
                Answer::Done
            }
            Self::PutReader(data) => {
                blob.write(0, data);
                Answer::Len(data.len() as u64)
            }
            Self::Write(offset, data) | Self::Swap(offset, _, data) => {
                blob.write(*offset, data);
                Answer::Done
            }
            Self::Append(data) | Self::AppendReader(data) | Self::AppendAt(_, data) => {
                blob.write(end, data);
                Answer::Offset(end)
            }
            Self::Truncate(len) => {
                blob.truncate(*len);
                Answer::Done
            }
            Self::Apply(offset, transform) => {
                let width = transform.width() as u64;
                let mut place = blob.read(*offset, width);
                place.resize(width as usize, 0);
                let value = transform.apply(&mut place);
                blob.write(*offset, &place);
                Answer::Value(value)
            }
        }
    }
}
