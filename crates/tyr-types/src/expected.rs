//! What a comparison expects to find: bytes, or a number in some relation to another.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::range::ByteRange;
use crate::transform::Number;

/// What is expected at an offset.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Exactly these bytes. A blob that ends earlier, or is absent, does not match.
    Bytes(Bytes),
    /// A number of the type of `value`, little-endian, that stands in `relation` to it. As for
    /// [`crate::Transform`], a number that was never written is zero, and in a cluster it lies in
    /// one chunk.
    Number {
        /// How the number that is there stands to `value`.
        relation: Relation,
        /// What it is compared with.
        value: Number,
    },
}

impl Expected {
    /// Bytes that are looked at.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Number { value, .. } => value.number_type().width() as u64,
        }
    }

    /// Whether no byte is looked at.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `len` bytes of it from its byte `from` on, as far as the chunk of one authority has it;
    /// a number stays whole, as it lies in one.
    ///
    /// # Panics
    /// When there are not so many bytes.
    #[must_use]
    pub fn part(&self, from: u64, len: u64) -> Self {
        assert!(from.saturating_add(len) <= self.len(), "a part is of what is expected");
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.slice(from as usize..(from + len) as usize)),
            Self::Number { .. } => {
                assert_eq!(len, self.len(), "a number is looked at as a whole");
                self.clone()
            }
        }
    }

    /// The bytes looked at, beginning at `offset`.
    pub fn range(&self, offset: u64) -> ByteRange {
        ByteRange { start: offset, end: offset.saturating_add(self.len()) }
    }
}

impl From<Bytes> for Expected {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// How one number stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumCount)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// All of them, in the order of their codes on disk and wire.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// Its sign, as on the command line.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Whether `left` stands so to `right`. Floats compare as IEEE 754 has it: zeros are equal
    /// whatever their signs, a NaN is unequal to everything, and neither less nor greater.
    ///
    /// # Panics
    /// When the two are of different types.
    pub fn holds(self, left: Number, right: Number) -> bool {
        assert_eq!(
            left.number_type(),
            right.number_type(),
            "a number is read as what it is held to"
        );
        let ordering = left.partial_cmp(&right);
        match self {
            Self::Equal => ordering == Some(Ordering::Equal),
            Self::NotEqual => ordering != Some(Ordering::Equal),
            Self::Less => ordering == Some(Ordering::Less),
            Self::LessOrEqual => ordering.is_some_and(Ordering::is_le),
            Self::Greater => ordering == Some(Ordering::Greater),
            Self::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(left: Number, right: Number) -> Vec<&'static str> {
        let holds = Relation::ALL.into_iter().filter(|relation| relation.holds(left, right));
        holds.map(Relation::sign).collect()
    }

    #[test]
    fn numbers_of_each_type_are_held_to_each_other_by_their_values() {
        let (less, equal, greater) = (["!=", "<", "<="], ["=", "<=", ">="], ["!=", ">", ">="]);
        assert_eq!(holding(Number::U8(200), Number::U8(100)), greater);
        assert_eq!(holding(Number::I8(-56), Number::I8(100)), less);
        assert_eq!(holding(Number::U64(u64::MAX), Number::U64(u64::MAX)), equal);
        assert_eq!(holding(Number::I64(i64::MIN), Number::I64(i64::MAX)), less);
        assert_eq!(holding(Number::U64((1 << 53) + 1), Number::U64(1 << 53)), greater);
        assert_eq!(holding(Number::F32(-0.0), Number::F32(0.0)), equal);
        assert_eq!(holding(Number::F64(f64::NEG_INFINITY), Number::F64(0.0)), less);
    }

    #[test]
    fn what_is_no_number_is_unequal_to_everything() {
        for (left, right) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
            assert_eq!(holding(Number::F64(left), Number::F64(right)), ["!="]);
        }
    }

    #[test]
    #[should_panic(expected = "a number is read as what it is held to")]
    fn numbers_of_two_types_are_not_compared() {
        Relation::Equal.holds(Number::U8(1), Number::I8(1));
    }
}
