//! How the words of `tyr-types` are written: names, timestamps, ranges, operations, transactions.
//!
//! What a type refuses to be made of is refused here too, so that a decoded value is as good as one
//! made in this process.

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Durability, Epoch, ErrorKind, Existence, Expected,
    ExtentRef, KeptName, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, Number, NumberType,
    Operation, Outcome, Payload, PlacedBy, ReadCheck, Relation, Stamped, Timestamp, Transaction,
    TransactionId, Transform, TransformKind, limits,
};

use super::encoded::{Encoded, encode_list, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use super::output::Output;
use crate::level::{
    LEVEL_CLEARING, LEVEL_EXPECTING, LEVEL_GUARDING, LEVEL_PLACED, level_of_transform,
};

/// A newtype is what it wraps.
macro_rules! encoded_newtype {
    ($($name:path),*) => {
        $(impl Encoded for $name {
            const LEN_MIN: usize = 1;

            #[inline]
            fn encode<'a>(&'a self, output: &mut Output<'a>) {
                self.0.encode(output);
            }

            #[inline]
            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                Encoded::decode(input).map(Self)
            }
        })*
    };
}

encoded_newtype!(Epoch, KeyspaceId, NodeId);

impl Encoded for TransactionId {
    const LEN_MIN: usize = 16;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.raw(&self.0.to_le_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(|bytes| Self(u128::from_le_bytes(bytes)))
    }
}

impl Encoded for Timestamp {
    const LEN_MIN: usize = 14;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { epoch, clock, node } = self;
        let mut bytes = [0; 14];
        bytes[..8].copy_from_slice(&clock.to_le_bytes());
        bytes[8..12].copy_from_slice(&epoch.0.to_le_bytes());
        bytes[12..].copy_from_slice(&node.to_le_bytes());
        output.raw(&bytes);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let clock = u64::from_le_bytes(input.array()?);
        let epoch = Epoch(u32::from_le_bytes(input.array()?));
        let node = u16::from_le_bytes(input.array()?);
        Ok(Self { epoch, clock, node })
    }
}

impl Encoded for BlobName {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.name(self);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.name()
    }
}

impl Encoded for ByteRange {
    const LEN_MIN: usize = 2;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { start, end } = self;
        debug_assert!(start <= end, "one that ends below its start is refused: {self:?}");
        start.encode(output);
        end.encode(output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let range = Self { start: u64::decode(input)?, end: u64::decode(input)? };
        match range.start <= range.end {
            true => Ok(range),
            false => Err(input.malformed("the range before ends below its start")),
        }
    }
}

encoded_enum!(ErrorKind, "kind of error", {
    0 => NotFound,
    1 => AlreadyExists,
    2 => Conflict,
    3 => Unavailable,
    4 => TimedOut,
    5 => SnapshotTooOld,
    6 => InvalidArgument,
    7 => PermissionDenied,
    8 => QuotaExceeded,
    9 => Corrupt,
});

encoded_enum!(Durability, "durability", { 0 => Memory, 1 => Buffered, 2 => Sync });

/// A name is its text, and nothing else than what may be a name.
macro_rules! encoded_name {
    ($name:path, $wrong:literal) => {
        impl Encoded for $name {
            const LEN_MIN: usize = 2;

            #[inline]
            fn encode<'a>(&'a self, output: &mut Output<'a>) {
                output.varint(self.as_str().len() as u64);
                output.raw(self.as_str().as_bytes());
            }

            #[inline]
            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                let text = String::decode(input)?;
                Self::new(&text).map_err(|_| input.malformed($wrong))
            }
        }
    };
}

encoded_name!(KeyspaceName, "the text before is no keyspace's name");
encoded_name!(KeptName, "the text before is no kept snapshot's name");

/// What is added to whether a keyspace is compressed when there follows what places its blobs.
const PLACED: u8 = 2;

/// What is added where it is guarded.
const GUARDED: u8 = 4;

const _: () = assert!(PLACED > true as u8, "the forms of level 1 are those of a truth value");
const _: () = assert!(GUARDED > PLACED + true as u8, "each can be told from the others");

/// One whose blobs are placed by their whole keys, and that is not guarded, is as in level 1.
impl Encoded for KeyspaceConfig {
    const LEN_MIN: usize = 6;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self {
            chunk_size,
            replication,
            live_replicas_min: _,
            is_multi_versioned,
            durability,
            is_compressed,
            placed_by,
            is_guarded,
        } = self;
        debug_assert!(self.validate().is_ok(), "no node would read it: {self:?}");
        chunk_size.encode(output);
        replication.encode(output);
        output.byte(self.live_replicas_needed());
        is_multi_versioned.encode(output);
        durability.encode(output);
        let mut form = u8::from(*is_compressed);
        if *is_guarded {
            output.needs(LEVEL_GUARDING);
            form += GUARDED;
        }
        match placed_by.to_bytes() {
            None => output.byte(form),
            Some(placed_by) => {
                output.needs(LEVEL_PLACED);
                output.byte(form + PLACED);
                output.raw(&placed_by);
            }
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let mut config = Self {
            chunk_size: Encoded::decode(input)?,
            replication: Encoded::decode(input)?,
            live_replicas_min: Some(Encoded::decode(input)?),
            is_multi_versioned: Encoded::decode(input)?,
            durability: Encoded::decode(input)?,
            ..Self::default()
        };
        let form = input.byte()?;
        if form >= 2 * GUARDED {
            return Err(input.unknown_last("an unknown form of a keyspace's configuration"));
        }
        config.is_compressed = form & 1 != 0;
        config.is_guarded = form & GUARDED != 0;
        if config.is_guarded {
            input.needs(LEVEL_GUARDING)?;
        }
        if form & PLACED != 0 {
            input.needs(LEVEL_PLACED)?;
            let placed_by = PlacedBy::from_bytes(input.array()?);
            config.placed_by =
                placed_by.ok_or_else(|| input.unknown_last("an unknown way to place blobs"))?;
        }
        match config.validate() {
            Ok(()) => Ok(config),
            Err(_) => Err(input.malformed("the keyspace's configuration before is out of range")),
        }
    }
}

encoded_struct!(ExtentRef, 4, { file, position, len, compressed_len });

impl Encoded for Stamped {
    const LEN_MIN: usize = 1 + limits::STAMP_LEN + 1 + 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        self.bytes().encode(output);
        encode_list(self.places(), output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (bytes, places) = (Bytes::decode(input)?, Vec::<u32>::decode(input)?);
        Self::from_parts(bytes, &places)
            .map_err(|_| input.malformed("the payload before has stamps where none can be"))
    }
}

encoded_enum!(Payload, "form of payload", {
    0 => Inline(bytes),
    1 => Extents(extents),
    2 @ 6 => Stamped(stamped),
    3 @ 10 => Uploaded(uploaded),
});

/// The type of the number at this place of [`NumberType::ALL`].
fn number_type(code: u8, input: &Input<'_>) -> Result<NumberType, Malformed> {
    let number_type = NumberType::ALL.get(usize::from(code)).copied();
    number_type.ok_or_else(|| input.unknown_last("an unknown type of number"))
}

fn encode_number(number: Number, output: &mut Output<'_>) {
    let mut bytes = [0; 8];
    let width = number.store(&mut bytes);
    debug_assert_eq!(width, number.number_type().width(), "it is read by its type's width");
    output.raw(&bytes[..width]);
}

impl Encoded for Number {
    const LEN_MIN: usize = 2;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let code = self.number_type() as usize;
        debug_assert_eq!(NumberType::ALL[code], self.number_type(), "its place is its code");
        output.byte(self.number_type() as u8);
        encode_number(*self, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let code = input.byte()?;
        let number_type = number_type(code, input)?;
        Ok(Self::load(number_type, input.take(number_type.width())?))
    }
}

impl Encoded for Transform {
    const LEN_MIN: usize = 2;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let operand = self.operand();
        debug_assert_eq!(TransformKind::ALL[self.kind() as usize], self.kind(), "place is code");
        output.needs(level_of_transform(self.kind()));
        output.byte(self.kind() as u8 * 10 + operand.number_type() as u8);
        encode_number(operand, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let code = input.byte()?;
        let Some(kind) = TransformKind::ALL.get(usize::from(code / 10)) else {
            return Err(input.unknown_last("an unknown transform"));
        };
        input.needs(level_of_transform(*kind))?;
        let number_type = number_type(code % 10, input)?;
        let operand = Number::load(number_type, input.take(number_type.width())?);
        Self::new(*kind, operand)
            .map_err(|_| input.malformed("the transform before is never accepted"))
    }
}

const _: () = assert!(TransformKind::ALL.len() * 10 <= 256 && NumberType::ALL.len() == 10);

encoded_enum!(Relation, "relation of numbers", {
    0 => Equal,
    1 => NotEqual,
    2 => Less,
    3 => LessOrEqual,
    4 => Greater,
    5 => GreaterOrEqual,
});

/// By hand for a compare alone: what is expected of bytes is as it was before it could be a number,
/// which has a tag of its own.
impl Encoded for Operation {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        match self {
            Self::Create => output.byte(0),
            Self::Write { offset, payload } => {
                output.byte(1);
                offset.encode(output);
                payload.encode(output);
            }
            Self::Append { payload, expected } => {
                output.byte(2);
                payload.encode(output);
                expected.encode(output);
            }
            Self::Truncate { len } => {
                output.byte(3);
                len.encode(output);
            }
            Self::Delete => output.byte(4),
            Self::Apply { offset, transform } => {
                output.byte(5);
                offset.encode(output);
                transform.encode(output);
            }
            Self::Compare { offset, expected: Expected::Bytes(bytes) } => {
                output.byte(6);
                offset.encode(output);
                bytes.encode(output);
            }
            Self::Replace { payload } => {
                output.byte(7);
                payload.encode(output);
            }
            Self::Expect { existence } => {
                output.byte(8);
                output.needs(LEVEL_EXPECTING);
                existence.encode(output);
            }
            Self::Clear { range } => {
                output.byte(10);
                output.needs(LEVEL_CLEARING);
                range.encode(output);
            }
            Self::Compare { offset, expected: Expected::Number { relation, value } } => {
                output.byte(9);
                output.needs(LEVEL_EXPECTING);
                offset.encode(output);
                relation.encode(output);
                value.encode(output);
            }
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::Create,
            1 => Self::Write { offset: Encoded::decode(input)?, payload: Encoded::decode(input)? },
            2 => {
                Self::Append { payload: Encoded::decode(input)?, expected: Encoded::decode(input)? }
            }
            3 => Self::Truncate { len: Encoded::decode(input)? },
            4 => Self::Delete,
            5 => {
                Self::Apply { offset: Encoded::decode(input)?, transform: Encoded::decode(input)? }
            }
            6 => Self::Compare {
                offset: Encoded::decode(input)?,
                expected: Expected::Bytes(Encoded::decode(input)?),
            },
            7 => Self::Replace { payload: Encoded::decode(input)? },
            8 => {
                input.needs(LEVEL_EXPECTING)?;
                Self::Expect { existence: Encoded::decode(input)? }
            }
            9 => {
                input.needs(LEVEL_EXPECTING)?;
                Self::Compare {
                    offset: Encoded::decode(input)?,
                    expected: Expected::Number {
                        relation: Encoded::decode(input)?,
                        value: Encoded::decode(input)?,
                    },
                }
            }
            10 => {
                input.needs(LEVEL_CLEARING)?;
                Self::Clear { range: Encoded::decode(input)? }
            }
            _ => return Err(input.unknown_last("an unknown operation")),
        })
    }
}

encoded_enum!(Existence, "existence", {
    0 => Absent,
    1 => Present,
});

encoded_enum!(Outcome, "outcome", {
    0 => Done,
    1 => Offset(offset),
    2 => Value(number),
    3 => Existed(is_there),
});

/// Bytes of the operations on one blob at least: keyspace, key, and how many there are.
const BLOB_LEN_MIN: usize = 4;

const _: () = {
    assert!(BLOB_LEN_MIN <= 1 + 2 + 1 + Operation::LEN_MIN, "keyspace, key, count, an operation");
    assert!(Transaction::LEN_MIN == TransactionId::LEN_MIN + 1 + 1, "an id and two empty lists");
    assert!(ReadCheck::LEN_MIN == 1 + ByteRange::LEN_MIN + 1 + Timestamp::LEN_MIN);
    assert!(ExtentRef::LEN_MIN == 4, "four numbers");
};

impl Encoded for Transaction {
    const LEN_MIN: usize = 18;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { id, blobs, reads } = self;
        debug_assert!(self.validate().is_ok(), "nobody would read it: {id:?}");
        id.encode(output);
        output.varint(blobs.len() as u64);
        for BlobOperations { blob, operations } in blobs {
            output.new_name(blob);
            encode_list(operations, output);
        }
        encode_list(reads, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let id = TransactionId::decode(input)?;
        let count = input.count(BLOB_LEN_MIN)?;
        // An operation takes much more memory than its byte here, so they are counted first.
        let mut operations_left = limits::TRANSACTION_OPERATIONS_MAX;
        let mut blobs = Vec::with_capacity(count.min(operations_left));
        for _ in 0..count {
            let blob = input.new_name()?;
            let count = input.count(Operation::LEN_MIN)?;
            if count == 0 {
                return Err(input.malformed_last("a blob without operations"));
            }
            operations_left = operations_left
                .checked_sub(count)
                .ok_or_else(|| input.malformed("more operations than a transaction may have"))?;
            let mut operations = Vec::with_capacity(count);
            for _ in 0..count {
                operations.push(Operation::decode(input)?);
            }
            blobs.push(BlobOperations { blob, operations });
        }
        let transaction = Self { id, blobs, reads: Encoded::decode(input)? };
        match transaction.validate() {
            Ok(()) => Ok(transaction),
            Err(_) => Err(input.malformed(
                "the transaction before names a blob twice, reaches beyond the largest blob, or \
                 carries or lists too much",
            )),
        }
    }
}
