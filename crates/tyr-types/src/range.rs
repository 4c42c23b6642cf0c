//! Ranges of bytes, the unit of overlap (C4).

use std::fmt;

use crate::error::{Error, Result};
use crate::limits;

/// The bytes `start..end` of a blob. Empty where `start == end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// One past the last byte; never below `start`.
    pub end: u64,
}

impl ByteRange {
    /// The whole of any blob.
    pub const ALL: Self = Self { start: 0, end: limits::BLOB_SIZE_MAX };
    /// No byte of any blob.
    pub const NOTHING: Self = Self { start: 0, end: 0 };

    /// `len` bytes from `offset` on.
    ///
    /// # Errors
    /// `InvalidArgument` when the end would lie beyond [`limits::BLOB_SIZE_MAX`].
    pub fn at(offset: u64, len: u64) -> Result<Self> {
        match offset.checked_add(len) {
            Some(end) if end <= limits::BLOB_SIZE_MAX => Ok(Self { start: offset, end }),
            _ => Err(Error::invalid(format!(
                "a blob ends at byte {} (2^63-1) at the latest; offset {offset} and length {len} \
                 reach beyond",
                limits::BLOB_SIZE_MAX
            ))),
        }
    }

    /// Everything from `offset` on.
    pub fn from(offset: u64) -> Self {
        Self { start: offset, end: limits::BLOB_SIZE_MAX.max(offset) }
    }

    /// The number of bytes.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds no byte.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Whether the two share a byte.
    pub fn overlaps(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// The bytes in both; empty when there are none.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// Whether every byte of `other` is in this range.
    pub fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }
}

impl fmt::Debug for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_only_touch_do_not_overlap() {
        let left = ByteRange { start: 0, end: 8 };
        let right = ByteRange { start: 8, end: 16 };
        assert!(!left.overlaps(right));
        assert!(left.overlaps(ByteRange { start: 7, end: 8 }));
        assert!(left.intersection(right).is_empty());
    }

    #[test]
    fn a_range_past_the_largest_blob_is_refused() {
        assert!(ByteRange::at(1 << 63, 0).is_err());
        assert!(ByteRange::at(u64::MAX, 2).is_err());
        assert!(ByteRange::at(limits::BLOB_SIZE_MAX - 1, 1).is_ok());
    }
}
