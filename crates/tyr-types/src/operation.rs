//! What a transaction is made of.

use crate::error::{Error, Result};
use crate::expected::Expected;
use crate::id::{BlobName, TransactionId};
use crate::limits;
use crate::payload::{ExtentRef, Payload};
use crate::range::ByteRange;
use crate::read_check::ReadCheck;
use crate::timestamp::Timestamp;
use crate::transform::{Number, Transform};
use crate::uploaded::Uploaded;

/// One operation on one blob.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// An empty blob; the transaction fails with `AlreadyExists` if there is one.
    Create,
    /// Bytes at an offset; creates the blob if missing, may extend it; a gap reads as zeros.
    Write {
        /// Where the first byte goes.
        offset: u64,
        /// The bytes.
        payload: Payload,
    },
    /// Bytes at the end; creates the blob if missing. Answers the offset it got.
    Append {
        /// The bytes.
        payload: Payload,
        /// A condition: the transaction fails with `Conflict` unless the blob ends here.
        expected: Option<u64>,
    },
    /// Cuts the blob, or extends it with zeros; creates it if missing.
    Truncate {
        /// The new size in bytes.
        len: u64,
    },
    /// Makes a hole: zeros are read of the range from then on, and they take no space. What lies
    /// behind the blob's end stays as it is, and so does an absent blob.
    Clear {
        /// Which bytes; at most to the end of the largest blob.
        range: ByteRange,
    },
    /// Removes the blob. Never fails: answers whether there was one.
    Delete,
    /// Arithmetic in place; creates the blob or extends it with zeros where nothing is.
    Apply {
        /// Where the number lies; any alignment.
        offset: u64,
        /// What to do.
        transform: Transform,
    },
    /// A condition: the transaction fails with `Conflict` unless this is there, before whatever
    /// the transaction itself does.
    Compare {
        /// Where the first byte is.
        offset: u64,
        /// What is expected.
        expected: Expected,
    },
    /// Makes the blob's content these bytes and nothing else: a truncate to 0 and a write, in one.
    Replace {
        /// The whole new content.
        payload: Payload,
    },
    /// A condition: whether there is a blob, after what the transaction's operations before it do
    /// (C1). The transaction fails with `AlreadyExists` where it is to be absent and is there, with
    /// `NotFound` where it is to be present and is not.
    Expect {
        /// What is expected.
        existence: Existence,
    },
}

/// Which operation of a transaction is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId {
    /// The place of its blob among those that the transaction does something to, from 0.
    pub blob: u32,
    /// Its place among what is done to that blob, from 0.
    pub operation: u32,
}

/// Whether there is a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// There is none.
    Absent,
    /// There is one, though it may be empty.
    Present,
}

impl Existence {
    /// That of a blob of this size, `None` where there is none.
    pub fn of(size: Option<u64>) -> Self {
        match size {
            None => Self::Absent,
            Some(_) => Self::Present,
        }
    }
}

impl Operation {
    /// Bytes that it carries.
    pub fn payload_len(&self) -> u64 {
        match self {
            Self::Compare { expected, .. } => expected.len(),
            Self::Write { payload, .. }
            | Self::Append { payload, .. }
            | Self::Replace { payload } => payload.carried_len(),
            Self::Create
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Expect { .. } => 0,
        }
    }

    /// Whether it changes the blob when the transaction commits.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Create
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Replace { .. } => true,
            Self::Compare { .. } | Self::Expect { .. } => false,
        }
    }

    /// Whether the transaction can abort for it: compare, expect, create, append at an expected
    /// offset.
    pub fn is_condition(&self) -> bool {
        match self {
            Self::Compare { .. }
            | Self::Expect { .. }
            | Self::Create
            | Self::Append { expected: Some(_), .. } => true,
            Self::Write { .. }
            | Self::Append { expected: None, .. }
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Replace { .. } => false,
        }
    }

    /// Whether it answers more than that it took effect.
    pub fn is_answering(&self) -> bool {
        match self {
            Self::Append { .. } | Self::Delete | Self::Apply { .. } => true,
            Self::Create
            | Self::Write { .. }
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Compare { .. }
            | Self::Replace { .. }
            | Self::Expect { .. } => false,
        }
    }

    /// Whether the bytes that it changes depend on where the blob ends.
    pub fn depends_on_end(&self) -> bool {
        match self {
            Self::Append { .. } | Self::Truncate { .. } | Self::Delete | Self::Replace { .. } => {
                true
            }
            Self::Create
            | Self::Write { .. }
            | Self::Clear { .. }
            | Self::Apply { .. }
            | Self::Compare { .. }
            | Self::Expect { .. } => false,
        }
    }

    /// Whether it only cuts or removes, and carries nothing.
    pub fn makes_room(&self) -> bool {
        match self {
            Self::Delete | Self::Truncate { .. } | Self::Clear { .. } => true,
            Self::Create
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Apply { .. }
            | Self::Compare { .. }
            | Self::Replace { .. }
            | Self::Expect { .. } => false,
        }
    }

    /// Where the number lies that it looks at or changes as a whole.
    pub fn number_range(&self) -> Option<ByteRange> {
        match self {
            Self::Compare { offset, expected: expected @ Expected::Number { .. } } => {
                Some(expected.range(*offset))
            }
            Self::Compare { expected: Expected::Bytes(_), .. }
            | Self::Create
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Replace { .. }
            | Self::Expect { .. } => self.transformed(),
        }
    }

    /// Where the number lies that it changes in place.
    pub fn transformed(&self) -> Option<ByteRange> {
        match self {
            Self::Apply { offset, transform } => {
                Some(ByteRange { start: *offset, end: offset + transform.width() as u64 })
            }
            Self::Create
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Compare { .. }
            | Self::Replace { .. }
            | Self::Expect { .. } => None,
        }
    }

    /// The size of a blob after it, `None` where there is none; `size` is the one before. An append
    /// that names where the blob has to end takes effect nowhere else.
    pub fn size_after(&self, size: Option<u64>) -> Option<u64> {
        let known = size.unwrap_or(0);
        let reach = |offset: u64, len: u64| Some(known.max(offset.saturating_add(len)));
        match self {
            Self::Create => Some(known),
            Self::Write { offset, payload } => reach(*offset, payload.len()),
            Self::Apply { offset, transform } => reach(*offset, transform.width() as u64),
            Self::Append { payload, .. } => Some(known.saturating_add(payload.len())),
            Self::Truncate { len } => Some(*len),
            Self::Replace { payload } => Some(payload.len()),
            Self::Delete => None,
            Self::Clear { .. } | Self::Compare { .. } | Self::Expect { .. } => size,
        }
    }

    /// The payload, where it carries one.
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Write { payload, .. }
            | Self::Append { payload, .. }
            | Self::Replace { payload } => Some(payload),
            Self::Create
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Compare { .. }
            | Self::Expect { .. } => None,
        }
    }

    /// The same with another payload, where it carries one.
    pub fn with_payload(&self, payload: Payload) -> Self {
        match self {
            Self::Write { offset, .. } => Self::Write { offset: *offset, payload },
            Self::Append { expected, .. } => Self::Append { payload, expected: *expected },
            Self::Replace { .. } => Self::Replace { payload },
            Self::Create
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Compare { .. }
            | Self::Expect { .. } => self.clone(),
        }
    }

    /// Whether its payload is by reference, which only the node can follow that wrote it.
    pub fn has_extents(&self) -> bool {
        match self.payload() {
            Some(Payload::Extents(_)) => true,
            Some(Payload::Inline(_) | Payload::Stamped(_) | Payload::Uploaded(_)) | None => false,
        }
    }

    /// The payload that was uploaded ahead, and where in the blob it begins (U1); an append says
    /// where it expects that.
    pub fn uploaded(&self) -> Option<(u64, &Uploaded)> {
        let Some(Payload::Uploaded(uploaded)) = self.payload() else { return None };
        let start = match self {
            Self::Write { offset, .. } => *offset,
            Self::Append { expected, .. } => expected.unwrap_or(0),
            Self::Replace { .. }
            | Self::Create
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Compare { .. }
            | Self::Expect { .. } => 0,
        };
        Some((start, uploaded))
    }

    /// Bytes that it carries by value, references to extents among them.
    fn inline_len(&self) -> usize {
        match self {
            Self::Compare { expected: Expected::Bytes(bytes), .. } => bytes.len(),
            Self::Write { payload, .. }
            | Self::Append { payload, .. }
            | Self::Replace { payload } => match payload {
                Payload::Inline(bytes) => bytes.len(),
                Payload::Stamped(stamped) => stamped.bytes().len(),
                Payload::Extents(extents) => extents.len() * size_of::<ExtentRef>(),
                Payload::Uploaded(_) => payload.carried_len() as usize,
            },
            Self::Compare { expected: Expected::Number { .. }, .. }
            | Self::Create
            | Self::Truncate { .. }
            | Self::Clear { .. }
            | Self::Delete
            | Self::Apply { .. }
            | Self::Expect { .. } => 0,
        }
    }

    /// Checks offsets and lengths against [`limits`].
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed range.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Write { offset, payload } => {
                ByteRange::at(*offset, payload.len())?;
            }
            Self::Append { payload: Payload::Uploaded(_), expected: None } => {
                return Err(Error::invalid(
                    "an append of what was uploaded ahead says where it expects the blob to end",
                ));
            }
            Self::Append { payload, expected } => {
                ByteRange::at(expected.unwrap_or(0), payload.len())?;
            }
            Self::Truncate { len } => {
                ByteRange::at(*len, 0)?;
            }
            Self::Clear { range } => {
                ByteRange::at(range.start, range.len())?;
            }
            Self::Apply { offset, transform } => {
                ByteRange::at(*offset, transform.width() as u64)?;
            }
            Self::Compare { offset, expected } => {
                ByteRange::at(*offset, expected.len())?;
            }
            Self::Create | Self::Delete | Self::Replace { .. } | Self::Expect { .. } => {}
        }
        Ok(())
    }
}

/// The operations of a transaction on one blob, in the order they take effect.
#[derive(Clone, Debug, PartialEq)]
pub struct BlobOperations {
    /// The blob.
    pub blob: BlobName,
    /// What is done to it, in order. Never empty.
    pub operations: Vec<Operation>,
}

/// A whole transaction, as the client sends it to the head of its chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Its name; a retry carries the same.
    pub id: TransactionId,
    /// What it does, one entry a blob.
    pub blobs: Vec<BlobOperations>,
    /// What it read.
    pub reads: Vec<ReadCheck>,
}

impl Transaction {
    /// Bytes that its operations carry.
    pub fn payload_len(&self) -> u64 {
        let operations = self.blobs.iter().flat_map(|entry| &entry.operations);
        operations.map(Operation::payload_len).sum()
    }

    /// Whether it can abort on a healthy cluster: it has reads or conditions.
    pub fn is_conditional(&self) -> bool {
        !self.reads.is_empty()
            || self.blobs.iter().any(|blob| blob.operations.iter().any(Operation::is_condition))
    }

    /// Whether it changes anything.
    pub fn is_writing(&self) -> bool {
        self.blobs.iter().any(|blob| blob.operations.iter().any(Operation::is_write))
    }

    /// Checks the number of operations, each operation, and the bytes carried by value.
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed range.
    pub fn validate(&self) -> Result<()> {
        let count: usize = self.blobs.iter().map(|blob| blob.operations.len()).sum();
        if count > limits::TRANSACTION_OPERATIONS_MAX {
            return Err(Error::invalid(format!(
                "a transaction has at most {} operations, this one has {count}",
                limits::TRANSACTION_OPERATIONS_MAX
            )));
        }
        if has_twice(&self.blobs) {
            return Err(Error::invalid(
                "a transaction names each blob once, with all its operations",
            ));
        }
        let listings = self.reads.iter().filter(|read| read.listed.is_some()).count();
        if listings > limits::TRANSACTION_LISTINGS_MAX {
            return Err(Error::invalid(format!(
                "a transaction lists at most {} ranges of keys, this one has {listings}; list \
                 page after page of a range, which counts once",
                limits::TRANSACTION_LISTINGS_MAX
            )));
        }
        if has_piece_twice(&self.blobs) {
            return Err(Error::invalid(
                "a transaction names each piece that was uploaded ahead once",
            ));
        }
        let mut inline = 0;
        for operation in self.blobs.iter().flat_map(|blob| &blob.operations) {
            operation.validate()?;
            inline += operation.inline_len();
        }
        if inline > limits::TRANSACTION_INLINE_MAX {
            return Err(Error::invalid(format!(
                "a transaction carries at most {} bytes by value, this one has {inline}; \
                 write payloads of {} bytes and more in one operation, they go to disk ahead",
                limits::TRANSACTION_INLINE_MAX,
                limits::EXTENT_PAYLOAD_MIN
            )));
        }
        Ok(())
    }
}

/// Whether a piece that was uploaded ahead is named twice.
fn has_piece_twice(blobs: &[BlobOperations]) -> bool {
    let operations = blobs.iter().flat_map(|entry| &entry.operations);
    let uploads = operations.filter_map(Operation::uploaded);
    let pieces = uploads.flat_map(|(_, uploaded)| uploaded.pieces());
    let mut ids: Vec<_> = pieces.map(|it| it.piece.id).collect();
    ids.sort_unstable();
    ids.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether two entries are of the same blob.
fn has_twice(blobs: &[BlobOperations]) -> bool {
    /// Up to here comparing all pairs is quicker than sorting.
    const FEW: usize = 8;
    if blobs.len() <= FEW {
        let mut pairs = blobs.iter().enumerate();
        return pairs.any(|(n, entry)| blobs[..n].iter().any(|other| other.blob == entry.blob));
    }
    let mut names: Vec<_> = blobs.iter().map(|entry| &entry.blob).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// What an operation of a committed transaction answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It took effect.
    Done,
    /// The offset that an append got.
    Offset(u64),
    /// The new value after a transform.
    Value(Number),
    /// Whether there was a blob to delete.
    Existed(bool),
}

/// What is known about a blob without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its size in bytes.
    pub size: u64,
    /// The timestamp of the last transaction that wrote it.
    pub version: Timestamp,
}
