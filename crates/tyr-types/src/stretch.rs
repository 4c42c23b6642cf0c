//! Which bytes of a blob are written, and which are holes.
//!
//! A *stretch* is bytes that are written, without a hole between them. What is told may be more
//! than was written, where little was left out or where there are many stretches; what is told to
//! be a hole is one, and reads as zeros.

use crate::error::{Error, Result};
use crate::limits;
use crate::range::ByteRange;

/// A page of the stretches of a blob, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// The stretches; they share no byte, and touch only where a page or a chunk ends.
    pub written: Vec<ByteRange>,
    /// Where the next page begins; `None` at the end of what was asked for.
    pub resume: Option<u64>,
}

impl Stretches {
    /// The number of bytes in them.
    pub fn len(&self) -> u64 {
        self.written.iter().map(|range| range.len()).sum()
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Adds those of what comes next, which touch what is there where they go on.
    pub fn extend(&mut self, next: impl IntoIterator<Item = ByteRange>) {
        for range in next {
            match self.written.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                Some(_) | None => self.written.push(range),
            }
        }
    }

    /// The part of `range` after `from` that one page looks at, in pieces that lie in one chunk
    /// each; at most [`limits::STRETCHED_CHUNKS_MAX`] of them.
    pub fn pieces(from: u64, end: u64, chunk_size: u64) -> Vec<ByteRange> {
        let mut pieces = Vec::new();
        let mut start = from;
        while start < end && pieces.len() < limits::STRETCHED_CHUNKS_MAX {
            let chunk_end = (start / chunk_size + 1).saturating_mul(chunk_size);
            pieces.push(ByteRange { start, end: chunk_end.min(end) });
            start = chunk_end;
        }
        pieces
    }
}

/// Makes of ranges in order, which may touch, at most [`limits::STRETCHES_MAX`] stretches: those
/// with the fewest bytes between them become one.
pub fn joined(ranges: impl IntoIterator<Item = ByteRange>) -> Vec<ByteRange> {
    let mut all = Stretches::default();
    all.extend(ranges);
    let mut written = all.written;
    debug_assert!(written.is_sorted_by(|one, next| one.end < next.start), "in order: {written:?}");
    let Some(excess) = written.len().checked_sub(limits::STRETCHES_MAX).filter(|it| *it > 0) else {
        return written;
    };
    let mut gaps: Vec<u64> = written.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    let (_, largest, _) = gaps.select_nth_unstable(excess - 1);
    let largest = *largest;
    let mut few: Vec<ByteRange> = Vec::new();
    for range in written.drain(..) {
        match few.last_mut() {
            Some(last) if range.start - last.end <= largest => last.end = range.end,
            Some(_) | None => few.push(range),
        }
    }
    debug_assert!(few.len() <= limits::STRETCHES_MAX, "so many are told: {}", few.len());
    few
}

/// Checks that these are stretches of `range`.
///
/// # Errors
/// `Corrupt`.
pub fn check(written: &[ByteRange], range: ByteRange) -> Result<()> {
    let are_apart = written.is_sorted_by(|one, next| one.end <= next.start);
    let are_within = written.iter().all(|it| !it.is_empty() && range.contains(*it));
    match are_apart && are_within && written.len() <= limits::STRETCHES_MAX {
        true => Ok(()),
        false => Err(Error::corrupt("a node told stretches that are none of what was asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn stretches_that_touch_are_one_and_of_too_many_the_nearest_are_joined() {
        assert_eq!(joined([range(0, 5), range(5, 7), range(8, 9)]), [range(0, 7), range(8, 9)]);
        let many =
            (0..2_000u64).map(|n| range(n * 100, n * 100 + if n % 2 == 0 { 90 } else { 50 }));
        let few = joined(many.clone());
        assert!(few.len() <= limits::STRETCHES_MAX && few.len() > 900, "{}", few.len());
        assert!(many.clone().all(|it| few.iter().any(|all| all.contains(it))), "nothing is lost");
        assert!(check(&few, range(0, 200_000)).is_ok() && check(&few, range(0, 10)).is_err());
        assert!(check(&[range(3, 5), range(4, 6)], range(0, 9)).is_err());
    }

    #[test]
    fn a_page_is_of_some_chunks() {
        let pieces = Stretches::pieces(5, 25, 10);
        assert_eq!(pieces, [range(5, 10), range(10, 20), range(20, 25)]);
        assert!(Stretches::pieces(9, 9, 10).is_empty());
        assert_eq!(Stretches::pieces(0, u64::MAX, 4096).len(), limits::STRETCHED_CHUNKS_MAX);
    }
}
