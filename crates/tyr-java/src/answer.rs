//! What a call answers, in the few forms that Java gets.

use tyr::{Bytes, Number, Stat, Timestamp};

/// What a call answers.
#[derive(Debug)]
pub enum Answer {
    /// That it is done.
    Nothing,
    /// Numbers, as a `long[]`: a handle, an offset, a size with a version.
    Numbers(Numbers),
    /// Bytes of a blob, as a `byte[]`.
    Bytes(Bytes),
    /// Anything longer, as a `byte[]` that [`Packing`](crate::packed::Packing) has written.
    Packed(Vec<u8>),
}

/// Up to three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    all: [i64; 3],
    len: usize,
}

impl Numbers {
    /// Those numbers.
    pub fn of<const N: usize>(numbers: [i64; N]) -> Self {
        let mut all = [0; 3];
        all[..N].copy_from_slice(&numbers);
        Self { all, len: N }
    }

    /// They.
    pub fn as_slice(&self) -> &[i64] {
        &self.all[..self.len]
    }
}

impl Answer {
    /// One number: a handle, or, as its bits, what is never negative.
    pub fn number(number: impl TryInto<i64>) -> Self {
        Self::Numbers(Numbers::of([number.try_into().unwrap_or(i64::MAX)]))
    }

    /// Yes or no.
    pub fn truth(is_so: bool) -> Self {
        Self::number(i64::from(is_so))
    }

    /// A handle and a version.
    pub fn at(handle: i64, version: Timestamp) -> Self {
        let [clock, place] = version_numbers(version);
        Self::Numbers(Numbers::of([handle, clock, place]))
    }

    /// Size and version of a blob.
    pub fn stat(stat: Stat) -> Self {
        let [clock, place] = version_numbers(stat.version);
        Self::Numbers(Numbers::of([stat.size as i64, clock, place]))
    }

    /// The value after arithmetic in place.
    pub fn value(number: Number) -> Self {
        Self::Numbers(Numbers::of([bits_of(number)]))
    }
}

/// A version as two numbers: its clock, and epoch and node together.
pub fn version_numbers(version: Timestamp) -> [i64; 2] {
    [version.clock as i64, i64::from(version.epoch.0) << 16 | i64::from(version.node)]
}

/// The version that these two numbers are.
pub fn version_of(clock: i64, place: i64) -> Timestamp {
    // The type of its epoch is none that the public crate names.
    let mut version = Timestamp { clock: clock as u64, node: place as u16, ..Timestamp::ZERO };
    version.epoch.0 = (place >> 16) as u32;
    version
}

/// A number as 64 bits: integers extended, floats as a double.
pub fn bits_of(number: Number) -> i64 {
    match number {
        Number::I8(it) => it.into(),
        Number::I16(it) => it.into(),
        Number::I32(it) => it.into(),
        Number::I64(it) => it,
        Number::U8(it) => it.into(),
        Number::U16(it) => it.into(),
        Number::U32(it) => it.into(),
        Number::U64(it) => it as i64,
        Number::F32(it) => f64::from(it).to_bits() as i64,
        Number::F64(it) => it.to_bits() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_it_was_after_a_trip_to_java() {
        for clock in [0, 1, 1 << 53, u64::MAX] {
            for (epoch, node) in [(0, 0), (1, 7), (u32::MAX, u16::MAX)] {
                let mut version = Timestamp { clock, node, ..Timestamp::ZERO };
                version.epoch.0 = epoch;
                let [clock, place] = version_numbers(version);
                assert_eq!(version_of(clock, place), version);
            }
        }
    }
}
