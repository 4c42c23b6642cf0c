//! Numbers and timestamps, as C has them.

use tyr::{Number, NumberType, Relation, Timestamp, Transform, TransformKind};

use crate::failure::Failure;

/// A signed integer of 8 bits.
pub const TYR_I8: i32 = 1;
/// A signed integer of 16 bits.
pub const TYR_I16: i32 = 2;
/// A signed integer of 32 bits.
pub const TYR_I32: i32 = 3;
/// A signed integer of 64 bits.
pub const TYR_I64: i32 = 4;
/// An unsigned integer of 8 bits.
pub const TYR_U8: i32 = 5;
/// An unsigned integer of 16 bits.
pub const TYR_U16: i32 = 6;
/// An unsigned integer of 32 bits.
pub const TYR_U32: i32 = 7;
/// An unsigned integer of 64 bits.
pub const TYR_U64: i32 = 8;
/// A floating point number of 32 bits.
pub const TYR_F32: i32 = 9;
/// A floating point number of 64 bits.
pub const TYR_F64: i32 = 10;

/// x + y; integers wrap.
pub const TYR_ADD: i32 = 1;
/// x - y; integers wrap.
pub const TYR_SUB: i32 = 2;
/// x * y; integers wrap.
pub const TYR_MUL: i32 = 3;
/// x / y; integers truncate; y is not zero.
pub const TYR_DIV: i32 = 4;
/// The smaller; a NaN gives way to a number.
pub const TYR_MIN: i32 = 5;
/// The larger; a NaN gives way to a number.
pub const TYR_MAX: i32 = 6;
/// Bitwise and, integers only.
pub const TYR_AND: i32 = 7;
/// Bitwise or, integers only.
pub const TYR_OR: i32 = 8;
/// Bitwise exclusive or, integers only.
pub const TYR_XOR: i32 = 9;
/// y, whatever x was.
pub const TYR_SWAP: i32 = 10;

/// x = y
pub const TYR_EQUAL: i32 = 1;
/// x != y
pub const TYR_NOT_EQUAL: i32 = 2;
/// x < y
pub const TYR_LESS: i32 = 3;
/// x <= y
pub const TYR_LESS_OR_EQUAL: i32 = 4;
/// x > y
pub const TYR_GREATER: i32 = 5;
/// x >= y
pub const TYR_GREATER_OR_EQUAL: i32 = 6;

/// A number: make one with tyr_u64(1) and its like, look at one with tyr_as_u64 and its like.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct tyr_number {
    /// `TYR_I8` to `TYR_F64`; 0 where there is no number.
    pub type_: i32,
    /// The number in its lowest bits, as many as its type has.
    pub bits: u64,
}

/// When something took effect: the version of all that a transaction wrote. Opaque; `memcmp` orders
/// them, and all zeros are before everything.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct tyr_timestamp {
    /// What is compared.
    pub bytes: [u8; 16],
}

impl tyr_number {
    /// The number.
    pub(super) fn read(self) -> Result<Number, Failure> {
        let number_type = match self.type_ {
            TYR_I8 => NumberType::I8,
            TYR_I16 => NumberType::I16,
            TYR_I32 => NumberType::I32,
            TYR_I64 => NumberType::I64,
            TYR_U8 => NumberType::U8,
            TYR_U16 => NumberType::U16,
            TYR_U32 => NumberType::U32,
            TYR_U64 => NumberType::U64,
            TYR_F32 => NumberType::F32,
            TYR_F64 => NumberType::F64,
            other => return Err(unknown("the type of a number", TYR_I8, TYR_F64, other)),
        };
        Ok(Number::load(number_type, &self.bits.to_le_bytes()))
    }
}

impl From<Number> for tyr_number {
    fn from(number: Number) -> Self {
        let type_ = match number.number_type() {
            NumberType::I8 => TYR_I8,
            NumberType::I16 => TYR_I16,
            NumberType::I32 => TYR_I32,
            NumberType::I64 => TYR_I64,
            NumberType::U8 => TYR_U8,
            NumberType::U16 => TYR_U16,
            NumberType::U32 => TYR_U32,
            NumberType::U64 => TYR_U64,
            NumberType::F32 => TYR_F32,
            NumberType::F64 => TYR_F64,
        };
        let mut bytes = [0; size_of::<u64>()];
        number.store(&mut bytes);
        Self { type_, bits: u64::from_le_bytes(bytes) }
    }
}

/// What is to be done to a number.
pub(super) fn transform(kind: i32, operand: tyr_number) -> Result<Transform, Failure> {
    let kind = match kind {
        TYR_ADD => TransformKind::Add,
        TYR_SUB => TransformKind::Sub,
        TYR_MUL => TransformKind::Mul,
        TYR_DIV => TransformKind::Div,
        TYR_MIN => TransformKind::Min,
        TYR_MAX => TransformKind::Max,
        TYR_AND => TransformKind::And,
        TYR_OR => TransformKind::Or,
        TYR_XOR => TransformKind::Xor,
        TYR_SWAP => TransformKind::Swap,
        other => return Err(unknown("what is done to a number", TYR_ADD, TYR_SWAP, other)),
    };
    Ok(Transform::new(kind, operand.read()?)?)
}

/// How two numbers are to stand to each other.
pub(super) fn relation(number: i32) -> Result<Relation, Failure> {
    Ok(match number {
        TYR_EQUAL => Relation::Equal,
        TYR_NOT_EQUAL => Relation::NotEqual,
        TYR_LESS => Relation::Less,
        TYR_LESS_OR_EQUAL => Relation::LessOrEqual,
        TYR_GREATER => Relation::Greater,
        TYR_GREATER_OR_EQUAL => Relation::GreaterOrEqual,
        other => return Err(unknown("a relation", TYR_EQUAL, TYR_GREATER_OR_EQUAL, other)),
    })
}

fn unknown(what: &str, least: i32, most: i32, given: i32) -> Failure {
    Failure::invalid(format!("{what} is one of {least} to {most}, not {given}: see tyr.h"))
}

impl From<Timestamp> for tyr_timestamp {
    fn from(timestamp: Timestamp) -> Self {
        Self { bytes: timestamp.to_stamp() }
    }
}

impl tyr_timestamp {
    /// The timestamp.
    pub(super) fn read(self) -> Result<Timestamp, Failure> {
        Timestamp::from_stamp(&self.bytes)
            .ok_or_else(|| Failure::invalid("this is no timestamp that Týr gave out"))
    }
}
