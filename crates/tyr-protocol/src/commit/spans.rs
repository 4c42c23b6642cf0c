//! Ranges of bytes, to be found by what they overlap.
//!
//! They lie by their start, apart by length: those of 2^n up to 2^(n+1) bytes together. Whatever
//! of them overlaps a range starts before its end, and less than 2^(n+1) bytes before its start. So
//! a question looks at what it finds, at what ends just before, and once at every length there is.

use std::collections::BTreeSet;

use tyr_types::ByteRange;

use super::record::Slot;

/// Lengths there are: one for each bit of a number of bytes.
const LENGTHS: usize = u64::BITS as usize;

/// Ranges with the transactions that they are of. Empty ones overlap nothing, and are not kept.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    /// By length, then by start: with the end.
    all: BTreeSet<(u8, u64, u64, Slot)>,
    /// How many there are of each length.
    counts: [u32; LENGTHS],
}

impl Default for Spans {
    fn default() -> Self {
        Self { all: BTreeSet::new(), counts: [0; LENGTHS] }
    }
}

impl Spans {
    pub fn insert(&mut self, range: ByteRange, slot: Slot) {
        if let Some(length) = length(range)
            && self.all.insert((length, range.start, range.end, slot))
        {
            self.counts[usize::from(length)] += 1;
        }
        self.check_counts();
    }

    /// A length that is counted too low is not looked at, and who overlaps there is not found.
    fn check_counts(&self) {
        let counted = || self.counts.iter().map(|count| *count as usize).sum::<usize>();
        debug_assert_eq!(counted(), self.all.len(), "ranges are counted by length");
    }

    /// Takes out what was put in once or more often.
    pub fn remove(&mut self, range: ByteRange, slot: Slot) {
        if let Some(length) = length(range)
            && self.all.remove(&(length, range.start, range.end, slot))
        {
            debug_assert!(self.counts[usize::from(length)] > 0, "ranges are counted by length");
            self.counts[usize::from(length)] -= 1;
        }
        self.check_counts();
    }

    /// Whose ranges share a byte with `range`: each once for each of its ranges.
    pub fn overlapping(&self, range: ByteRange) -> impl Iterator<Item = Slot> {
        let lengths = (0_u8..).zip(self.counts).filter(|(_, count)| *count > 0);
        lengths.flat_map(move |(length, _)| {
            let longest = u64::MAX >> (LENGTHS - 1 - usize::from(length));
            let from = (length, range.start.saturating_sub(longest), 0, Slot::FIRST);
            let until = (length, range.end, 0, Slot::FIRST);
            // An empty range overlaps nothing, wherever it is.
            let near = (!range.is_empty()).then(|| self.all.range(from..until));
            let near = near.into_iter().flatten();
            near.filter(move |(_, _, end, _)| *end > range.start).map(|(.., slot)| *slot)
        })
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }
}

/// The place of the highest bit of its length; `None` of none.
fn length(range: ByteRange) -> Option<u8> {
    let bit = range.len().checked_ilog2()?;
    debug_assert!(range.start < range.end, "what overlaps nothing is not kept: {range:?}");
    Some(u8::try_from(bit).expect("a number has 64 bits"))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn any_range() -> impl Strategy<Value = ByteRange> {
        let near = (0_u64..200, 0_u64..40).prop_map(|(start, len)| (start, start + len));
        let any =
            (any::<u64>(), any::<u64>()).prop_map(|(one, other)| (one.min(other), one.max(other)));
        prop_oneof![3 => near, 1 => any].prop_map(|(start, end)| ByteRange { start, end })
    }

    proptest! {
        #[test]
        fn whoever_overlaps_is_found_and_nobody_else(
            ranges in vec(any_range(), 0..40),
            gone in vec(any::<bool>(), 40),
            wanted in any_range(),
        ) {
            let mut spans = Spans::default();
            let slots: Vec<Slot> = Slot::numbered().take(ranges.len()).collect();
            let mut all: Vec<_> = ranges.into_iter().zip(slots).zip(gone).collect();
            all.iter().for_each(|((range, slot), _)| spans.insert(*range, *slot));
            for ((range, slot), _) in all.iter().filter(|(_, is_gone)| *is_gone) {
                spans.remove(*range, *slot);
            }
            all.retain(|(_, is_gone)| !is_gone);
            let overlaps = |range: &ByteRange| range.overlaps(wanted);
            let expected = all.iter().filter(|((range, _), _)| overlaps(range));
            let expected: BTreeSet<Slot> = expected.map(|((_, slot), _)| *slot).collect();
            let found: Vec<Slot> = spans.overlapping(wanted).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            let kept = all.iter().filter(|((range, _), _)| !range.is_empty());
            prop_assert_eq!(spans.len(), kept.count());
        }
    }
}
