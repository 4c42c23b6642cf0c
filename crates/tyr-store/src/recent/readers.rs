//! The timestamps at which somebody still reads.
//!
//! A version that was current at one of them must stay. Everything that no reader can tell apart
//! may be merged, which is what keeps hot blobs small.

use tyr_types::Timestamp;

/// Who may read older versions: an embedded node knows every snapshot; a node of a cluster knows
/// from where on there may be some. Borrowed from whoever keeps the table of them.
#[derive(Clone, Copy, Debug)]
pub struct Readers<'a> {
    /// Snapshots in use, ascending.
    listed: &'a [Timestamp],
    /// Somebody may read at any timestamp from here on.
    from: Timestamp,
    /// A fold under way reads here; [`Timestamp::MAX`] without one.
    fold: Timestamp,
}

impl<'a> Readers<'a> {
    /// Nobody reads older versions.
    pub const NONE: Self = Self { listed: &[], from: Timestamp::MAX, fold: Timestamp::MAX };

    /// These snapshots are in use; ascending.
    pub fn new(ascending: &'a [Timestamp]) -> Self {
        debug_assert!(ascending.is_sorted());
        Self { listed: ascending, ..Self::NONE }
    }

    /// Somebody may read at any timestamp from `from` on (V2, V4).
    pub fn from(from: Timestamp) -> Self {
        Self { from, ..Self::NONE }
    }

    /// The same readers, and a fold of everything up to `fold`.
    #[must_use]
    pub fn and_at(self, fold: Timestamp) -> Self {
        Self { fold, ..self }
    }

    /// Nobody reads below it.
    pub fn first(self) -> Timestamp {
        let first = self.from.min(self.fold);
        self.listed.first().map_or(first, |listed| first.min(*listed))
    }

    /// Somebody may read at any timestamp from here on. [`Timestamp::MAX`] when all readers are
    /// known.
    pub fn every_from(self) -> Timestamp {
        self.from
    }

    /// Whether there may be versions that nobody reads although somebody reads older ones.
    pub fn have_gaps(self) -> bool {
        !self.listed.is_empty() || self.fold < self.from
    }

    /// Whether nobody can tell two versions apart, whichever of them is the newer: what comes late
    /// is the older one.
    pub fn take_as_one(self, one: Timestamp, other: Timestamp) -> bool {
        !self.need(one.min(other), one.max(other))
    }

    /// Whether somebody reads at a timestamp S with `from <= S < until`: whether a version that
    /// was current from `from` up to `until` is still needed (V3).
    pub fn need(self, from: Timestamp, until: Timestamp) -> bool {
        let is_folded = from <= self.fold && self.fold < until;
        if is_folded || from < until && self.from < until {
            return true;
        }
        let Some(newest) = self.listed.last() else { return false };
        if *newest < from {
            return false;
        }
        let first = self.listed.partition_point(|at| *at < from);
        self.listed.get(first).is_some_and(|at| *at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::fixtures::at;

    #[test]
    fn a_version_is_needed_exactly_while_a_reader_lies_in_its_time() {
        let in_use = [at(10), at(20)];
        let readers = Readers::new(&in_use);
        assert!(readers.need(at(10), at(11)));
        assert!(readers.need(at(5), at(15)));
        assert!(readers.need(at(20), at(30)));
        assert!(!readers.need(at(11), at(20)));
        assert!(!readers.need(at(21), at(30)));
        assert!(!Readers::NONE.need(at(0), at(99)));
    }

    #[test]
    fn a_version_is_needed_if_it_was_current_when_readers_may_have_begun() {
        let readers = Readers::from(at(10));
        assert!(readers.need(at(5), at(11)));
        assert!(readers.need(at(20), at(30)));
        assert!(!readers.need(at(5), at(10)));
    }

    #[test]
    fn a_fold_needs_what_was_current_at_its_moment_and_nothing_else() {
        let readers = Readers::from(at(30)).and_at(at(10));
        assert!(readers.need(at(5), at(11)));
        assert!(readers.need(at(10), at(20)));
        assert!(!readers.need(at(5), at(10)));
        assert!(!readers.need(at(11), at(30)));
        assert!(readers.need(at(11), at(31)));
        assert_eq!((readers.first(), readers.every_from()), (at(10), at(30)));
        assert!(readers.have_gaps() && !Readers::from(at(3)).and_at(at(10)).have_gaps());
    }
}
