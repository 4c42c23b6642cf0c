//! Arithmetic done in place: numbers of ten types and ten kinds of operation on them.

use std::cmp::Ordering;

use crate::error::{Error, Result};

/// The type of the number that a transform works on, little-endian in the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumCount)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum NumberType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl NumberType {
    /// All of them, in the order of their codes on disk and wire.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Bytes of such a number.
    pub fn width(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating point type.
    pub fn is_float(self) -> bool {
        match self {
            Self::F32 | Self::F64 => true,
            Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64 => false,
        }
    }
}

/// What a transform does to the number in place (`x`) with its operand (`y`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumCount)]
pub enum TransformKind {
    /// x + y; integers wrap.
    Add,
    /// x - y; integers wrap.
    Sub,
    /// x * y; integers wrap.
    Mul,
    /// x / y; integers truncate; y is not zero.
    Div,
    /// The smaller; a NaN gives way to a number (IEEE 754-2008 minNum).
    Min,
    /// The larger; a NaN gives way to a number (IEEE 754-2008 maxNum).
    Max,
    /// Bitwise and, integers only.
    And,
    /// Bitwise or, integers only.
    Or,
    /// Bitwise exclusive or, integers only.
    Xor,
    /// y, whatever x was; the answer is then the new value, y.
    Swap,
    /// Bitwise and, negated, integers only: what a release to come might bring, for tests.
    #[cfg(feature = "next-level")]
    Nand,
}

impl TransformKind {
    /// All of them, in the order of their codes on disk and wire.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Swap,
        #[cfg(feature = "next-level")]
        Self::Nand,
    ];

    /// Whether it works on bits, so on integers only.
    fn is_bitwise(self) -> bool {
        match self {
            Self::And | Self::Or | Self::Xor => true,
            #[cfg(feature = "next-level")]
            Self::Nand => true,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Min | Self::Max | Self::Swap => {
                false
            }
        }
    }

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Swap => "swap",
            #[cfg(feature = "next-level")]
            Self::Nand => "nand",
        }
    }
}

/// A number of one of the ten types; two of different types are unequal, and in no order.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Number {
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

/// Runs `$body` with `$x` bound to the value inside `$number`, whatever its type.
macro_rules! each_number {
    ($number:expr, $x:ident => $body:expr) => {
        match $number {
            Number::I8($x) => $body,
            Number::I16($x) => $body,
            Number::I32($x) => $body,
            Number::I64($x) => $body,
            Number::U8($x) => $body,
            Number::U16($x) => $body,
            Number::U32($x) => $body,
            Number::U64($x) => $body,
            Number::F32($x) => $body,
            Number::F64($x) => $body,
        }
    };
}

impl Number {
    /// Its type.
    pub fn number_type(self) -> NumberType {
        match self {
            Self::I8(_) => NumberType::I8,
            Self::I16(_) => NumberType::I16,
            Self::I32(_) => NumberType::I32,
            Self::I64(_) => NumberType::I64,
            Self::U8(_) => NumberType::U8,
            Self::U16(_) => NumberType::U16,
            Self::U32(_) => NumberType::U32,
            Self::U64(_) => NumberType::U64,
            Self::F32(_) => NumberType::F32,
            Self::F64(_) => NumberType::F64,
        }
    }

    /// Writes it to the first bytes of `out`, little-endian; answers how many.
    ///
    /// # Panics
    /// When `out` is shorter than the type is wide.
    pub fn store(self, out: &mut [u8]) -> usize {
        each_number!(self, x => {
            let bytes = x.to_le_bytes();
            out[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        })
    }

    /// Reads one of type `number_type` from the first bytes of `from`, little-endian.
    ///
    /// # Panics
    /// When `from` is shorter than the type is wide.
    pub fn load(number_type: NumberType, from: &[u8]) -> Self {
        fn first<const N: usize>(from: &[u8]) -> [u8; N] {
            from[..N].try_into().expect("a slice of N bytes is an array of N bytes")
        }
        match number_type {
            NumberType::I8 => Self::I8(i8::from_le_bytes(first(from))),
            NumberType::I16 => Self::I16(i16::from_le_bytes(first(from))),
            NumberType::I32 => Self::I32(i32::from_le_bytes(first(from))),
            NumberType::I64 => Self::I64(i64::from_le_bytes(first(from))),
            NumberType::U8 => Self::U8(u8::from_le_bytes(first(from))),
            NumberType::U16 => Self::U16(u16::from_le_bytes(first(from))),
            NumberType::U32 => Self::U32(u32::from_le_bytes(first(from))),
            NumberType::U64 => Self::U64(u64::from_le_bytes(first(from))),
            NumberType::F32 => Self::F32(f32::from_le_bytes(first(from))),
            NumberType::F64 => Self::F64(f64::from_le_bytes(first(from))),
        }
    }

    /// Parses `text` as a number of type `number_type`.
    ///
    /// # Errors
    /// `InvalidArgument` when it is not one.
    pub fn parse(number_type: NumberType, text: &str) -> Result<Self> {
        fn number<T: std::str::FromStr>(text: &str, name: &str) -> Result<T> {
            text.parse().map_err(|_| {
                Error::invalid(format!(
                    "\"{}\" is not a number of type {name}",
                    text.escape_debug()
                ))
            })
        }
        let name = number_type.name();
        Ok(match number_type {
            NumberType::I8 => Self::I8(number(text, name)?),
            NumberType::I16 => Self::I16(number(text, name)?),
            NumberType::I32 => Self::I32(number(text, name)?),
            NumberType::I64 => Self::I64(number(text, name)?),
            NumberType::U8 => Self::U8(number(text, name)?),
            NumberType::U16 => Self::U16(number(text, name)?),
            NumberType::U32 => Self::U32(number(text, name)?),
            NumberType::U64 => Self::U64(number(text, name)?),
            NumberType::F32 => Self::F32(number(text, name)?),
            NumberType::F64 => Self::F64(number(text, name)?),
        })
    }

    /// The one of type `number_type` that begins with the bytes `written`, as many as it has at
    /// most: what was never written of it is zeros.
    ///
    /// # Panics
    /// When there are more bytes than any number has.
    pub fn load_written(number_type: NumberType, written: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes[..written.len()].copy_from_slice(written);
        Self::load(number_type, &bytes)
    }

    fn is_zero(self) -> bool {
        each_number!(self, x => f64_is_zero(x as f64))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::I8(x), Self::I8(y)) => x.partial_cmp(y),
            (Self::I16(x), Self::I16(y)) => x.partial_cmp(y),
            (Self::I32(x), Self::I32(y)) => x.partial_cmp(y),
            (Self::I64(x), Self::I64(y)) => x.partial_cmp(y),
            (Self::U8(x), Self::U8(y)) => x.partial_cmp(y),
            (Self::U16(x), Self::U16(y)) => x.partial_cmp(y),
            (Self::U32(x), Self::U32(y)) => x.partial_cmp(y),
            (Self::U64(x), Self::U64(y)) => x.partial_cmp(y),
            (Self::F32(x), Self::F32(y)) => x.partial_cmp(y),
            (Self::F64(x), Self::F64(y)) => x.partial_cmp(y),
            _ => None,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        each_number!(*self, x => write!(f, "{x}"))
    }
}

fn f64_is_zero(x: f64) -> bool {
    x == 0.0
}

/// One step of arithmetic in place: what to do, and the operand with its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    kind: TransformKind,
    operand: Number,
}

/// Implements `x kind y` for one integer type.
macro_rules! integer {
    ($variant:ident, $kind:expr, $x:expr, $y:expr) => {
        Number::$variant(match $kind {
            TransformKind::Add => $x.wrapping_add($y),
            TransformKind::Sub => $x.wrapping_sub($y),
            TransformKind::Mul => $x.wrapping_mul($y),
            TransformKind::Div => $x.wrapping_div($y),
            TransformKind::Min => $x.min($y),
            TransformKind::Max => $x.max($y),
            TransformKind::And => $x & $y,
            TransformKind::Or => $x | $y,
            TransformKind::Xor => $x ^ $y,
            TransformKind::Swap => $y,
            #[cfg(feature = "next-level")]
            TransformKind::Nand => !($x & $y),
        })
    };
}

/// Implements `x kind y` for one floating point type.
macro_rules! float {
    ($variant:ident, $kind:expr, $x:expr, $y:expr) => {
        Number::$variant(match $kind {
            TransformKind::Add => $x + $y,
            TransformKind::Sub => $x - $y,
            TransformKind::Mul => $x * $y,
            TransformKind::Div => $x / $y,
            TransformKind::Min => $x.min($y),
            TransformKind::Max => $x.max($y),
            TransformKind::Swap => $y,
            TransformKind::And | TransformKind::Or | TransformKind::Xor => {
                unreachable!("Transform::new refuses bitwise kinds on floats")
            }
            #[cfg(feature = "next-level")]
            TransformKind::Nand => unreachable!("Transform::new refuses bitwise kinds on floats"),
        })
    };
}

impl Transform {
    /// A transform that does `kind` with `operand`.
    ///
    /// # Errors
    /// `InvalidArgument` for a division by zero and for bitwise kinds on floats.
    pub fn new(kind: TransformKind, operand: Number) -> Result<Self> {
        if kind == TransformKind::Div && operand.is_zero() {
            return Err(Error::invalid("division by zero is refused"));
        }
        if kind.is_bitwise() && operand.number_type().is_float() {
            return Err(Error::invalid(format!(
                "{} works on integers, not on {}",
                kind.name(),
                operand.number_type().name()
            )));
        }
        Ok(Self { kind, operand })
    }

    /// Adds `operand`.
    pub fn add(operand: Number) -> Self {
        Self { kind: TransformKind::Add, operand }
    }

    /// Keeps the larger of what is there and `operand`.
    pub fn max(operand: Number) -> Self {
        Self { kind: TransformKind::Max, operand }
    }

    /// Keeps the smaller of what is there and `operand`. A number never written is zero.
    pub fn min(operand: Number) -> Self {
        Self { kind: TransformKind::Min, operand }
    }

    /// What it does.
    pub fn kind(self) -> TransformKind {
        self.kind
    }

    /// The operand.
    pub fn operand(self) -> Number {
        self.operand
    }

    /// Bytes it reads and writes.
    pub fn width(self) -> usize {
        self.operand.number_type().width()
    }

    /// Does it to the number in the first bytes of `place`; answers the new value.
    ///
    /// # Panics
    /// When `place` is shorter than [`Transform::width`].
    pub fn apply(self, place: &mut [u8]) -> Number {
        let old = Number::load(self.operand.number_type(), place);
        let kind = self.kind;
        let new = match (old, self.operand) {
            (Number::I8(x), Number::I8(y)) => integer!(I8, kind, x, y),
            (Number::I16(x), Number::I16(y)) => integer!(I16, kind, x, y),
            (Number::I32(x), Number::I32(y)) => integer!(I32, kind, x, y),
            (Number::I64(x), Number::I64(y)) => integer!(I64, kind, x, y),
            (Number::U8(x), Number::U8(y)) => integer!(U8, kind, x, y),
            (Number::U16(x), Number::U16(y)) => integer!(U16, kind, x, y),
            (Number::U32(x), Number::U32(y)) => integer!(U32, kind, x, y),
            (Number::U64(x), Number::U64(y)) => integer!(U64, kind, x, y),
            (Number::F32(x), Number::F32(y)) => float!(F32, kind, x, y),
            (Number::F64(x), Number::F64(y)) => float!(F64, kind, x, y),
            _ => unreachable!("load gave the operand's own type"),
        };
        new.store(place);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(kind: TransformKind, x: Number, y: Number) -> Number {
        let mut place = [0; 8];
        x.store(&mut place);
        Transform::new(kind, y).unwrap().apply(&mut place)
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(apply(TransformKind::Add, Number::U8(250), Number::U8(10)), Number::U8(4));
        assert_eq!(
            apply(TransformKind::Div, Number::I8(i8::MIN), Number::I8(-1)),
            Number::I8(i8::MIN)
        );
    }

    #[test]
    fn what_was_never_written_of_a_number_is_zeros() {
        let load = |written: &[u8]| Number::load_written(NumberType::U32, written);
        assert_eq!(load(&[]), Number::U32(0));
        assert_eq!(load(&[1, 2]), Number::U32(0x0201));
        assert_eq!(load(&[1, 2, 3, 4]), Number::U32(0x0403_0201));
    }

    #[test]
    fn division_by_zero_and_bits_of_floats_are_refused() {
        for zero in [Number::I32(0), Number::F64(0.0), Number::F32(-0.0)] {
            assert!(Transform::new(TransformKind::Div, zero).is_err());
        }
        assert!(Transform::new(TransformKind::Xor, Number::F32(1.0)).is_err());
    }

    #[test]
    fn every_kind_on_every_type_stores_what_it_answers() {
        for number_type in NumberType::ALL {
            for kind in TransformKind::ALL {
                let y = Number::parse(number_type, "3").unwrap();
                let Ok(transform) = Transform::new(kind, y) else { continue };
                let mut place = [0xAA; 8];
                Number::parse(number_type, "12").unwrap().store(&mut place);
                let answer = transform.apply(&mut place);
                assert_eq!(answer, Number::load(number_type, &place), "{kind:?} {number_type:?}");
                assert!(place[number_type.width()..].iter().all(|byte| *byte == 0xAA));
            }
        }
    }
}
