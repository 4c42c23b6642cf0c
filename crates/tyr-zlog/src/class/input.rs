//! The bytes that methods are given and answer: numbers of eight bytes, little-endian, and then
//! data.

use tyr::Bytes;
use tyr_class::Failure;

use super::NUMBER_END;
use super::refusal::Refusal;

/// Numbers and data, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    /// These numbers.
    pub fn of<const N: usize>(numbers: [u64; N]) -> Self {
        Self(numbers.into_iter().flat_map(u64::to_le_bytes).collect())
    }

    /// And these bytes.
    #[must_use]
    pub fn and(mut self, data: &[u8]) -> Self {
        self.0.extend_from_slice(data);
        self
    }
}

impl From<Fields> for Bytes {
    fn from(fields: Fields) -> Self {
        fields.0.into()
    }
}

/// The numbers that an input begins with, and what is behind them.
pub fn numbers<const N: usize>(input: &[u8]) -> Result<([u64; N], &[u8]), Failure> {
    let Some((head, rest)) = input.split_at_checked(8 * N) else {
        return Err(Refusal::Wrong.failure(format!("the input is to begin with {N} numbers")));
    };
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(head.as_chunks().0) {
        *number = u64::from_le_bytes(*bytes);
        if *number >= NUMBER_END {
            return Err(Refusal::Wrong.failure("numbers are below 2^53"));
        }
    }
    Ok((numbers, rest))
}
