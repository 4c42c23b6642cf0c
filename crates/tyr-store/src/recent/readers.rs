//! The timestamps at which somebody still reads.
//!
//! A version that was current at one of them must stay. Everything that no reader can tell apart
//! may be merged, which is what keeps hot blobs small.

use smallvec::SmallVec;
use tyr_types::Timestamp;

/// Who may read older versions: an embedded node knows every snapshot; a node of a cluster knows
/// those that were told (V2), and from where on there may be others. Borrowed from whoever keeps
/// the table of them.
#[derive(Clone, Copy, Debug)]
pub struct Readers<'a> {
    /// Snapshots in use, ascending.
    listed: &'a [Timestamp],
    /// Kept moments that no fold has passed, ascending (V7).
    kept: &'a [Timestamp],
    /// Somebody may read at any timestamp from here on.
    from: Timestamp,
    /// A fold under way reads here; [`Timestamp::MAX`] without one.
    fold: Timestamp,
}

impl<'a> Readers<'a> {
    /// Nobody reads older versions.
    pub const NONE: Self =
        Self { listed: &[], kept: &[], from: Timestamp::MAX, fold: Timestamp::MAX };

    /// These snapshots are in use; ascending.
    pub fn new(ascending: &'a [Timestamp]) -> Self {
        debug_assert!(ascending.is_sorted());
        Self { listed: ascending, ..Self::NONE }
    }

    /// Somebody may read at any timestamp from `from` on (V2, V4).
    pub fn from(from: Timestamp) -> Self {
        Self { from, ..Self::NONE }
    }

    /// The same readers, and somebody may read at any timestamp from `from` on (V2, V4).
    #[must_use]
    pub fn and_from(self, from: Timestamp) -> Self {
        Self { from, ..self }
    }

    /// The same readers, and a fold of everything up to `fold`.
    #[must_use]
    pub fn and_at(self, fold: Timestamp) -> Self {
        Self { fold, ..self }
    }

    /// The same readers, and what was current at these moments is kept; ascending (V7).
    #[must_use]
    pub fn and_kept(self, kept: &'a [Timestamp]) -> Self {
        debug_assert!(kept.is_sorted());
        Self { kept, ..self }
    }

    /// Nobody reads below it.
    pub fn first(self) -> Timestamp {
        let known = self.listed.first().into_iter().chain(self.kept.first()).copied();
        known.fold(self.from.min(self.fold), Timestamp::min)
    }

    /// Somebody may read at any timestamp from here on. [`Timestamp::MAX`] when all readers are
    /// known.
    pub fn every_from(self) -> Timestamp {
        self.from
    }

    /// Whether there may be versions that nobody reads although somebody reads older ones.
    pub fn have_gaps(self) -> bool {
        !self.listed.is_empty() || !self.kept.is_empty() || self.fold < self.from
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
        is_any_in(self.listed, from, until) || is_any_in(self.kept, from, until)
    }
}

/// Whether one of these lies from `from` up to, not with, `until`.
fn is_any_in(ascending: &[Timestamp], from: Timestamp, until: Timestamp) -> bool {
    if ascending.last().is_none_or(|newest| *newest < from) {
        return false;
    }
    let first = ascending.partition_point(|at| *at < from);
    ascending.get(first).is_some_and(|at| *at < until)
}

/// The moments that were counted among the readers at every change so far: what was current then
/// has been kept. Of others it may be lost, or merged with what came later.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Those below `from`, ascending. There is one long snapshot, or none.
    listed: SmallVec<[Timestamp; 1]>,
    /// All from here on.
    from: Timestamp,
}

impl Counted {
    /// Whether this moment was always counted.
    pub fn has(&self, at: Timestamp) -> bool {
        self.from <= at || self.listed.binary_search(&at).is_ok()
    }

    /// There was a change of what is `newest` now, and these readers were counted. From the newest
    /// version on nothing has gone, whoever was counted.
    pub fn narrow(&mut self, readers: Readers, newest: Timestamp) {
        let Readers { listed, kept, from, fold: _ } = readers;
        let from = from.min(newest.max(self.from));
        let is_counted =
            |at: &Timestamp| listed.binary_search(at).is_ok() || kept.binary_search(at).is_ok();
        self.listed.retain(|at| from <= *at || is_counted(at));
        if self.from < from {
            for counted in [listed, kept] {
                let start = counted.partition_point(|at| *at < self.from);
                self.listed.extend(counted[start..].iter().copied().take_while(|at| *at < from));
            }
            if !kept.is_empty() {
                self.listed.sort_unstable();
                self.listed.dedup();
            }
            self.from = from;
        }
        debug_assert!(self.listed.is_sorted() && self.listed.last() < Some(&self.from));
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

    /// V2, V4.
    #[test]
    fn below_where_all_may_read_a_version_is_needed_for_a_listed_reader_only() {
        let in_use = [at(10), at(20)];
        let readers = Readers::new(&in_use).and_from(at(30));
        assert!(readers.need(at(5), at(11)) && readers.need(at(20), at(21)));
        assert!(!readers.need(at(11), at(20)) && !readers.need(at(21), at(30)));
        assert!(readers.need(at(21), at(31)) && readers.need(at(40), at(50)));
        assert_eq!((readers.first(), readers.every_from()), (at(10), at(30)));
        assert!(readers.have_gaps() && readers.take_as_one(at(21), at(29)));
    }

    /// V2.
    #[test]
    fn a_moment_is_told_while_it_was_counted_at_every_change() {
        let in_use = [at(10), at(20), at(30)];
        let mut counted = Counted::default();
        let all = |counted: &Counted, moments: [u64; 5]| moments.map(|it| counted.has(at(it)));
        counted.narrow(Readers::new(&in_use[..2]).and_from(at(25)), Timestamp::MAX);
        assert_eq!(all(&counted, [10, 15, 20, 24, 25]), [true, false, true, false, true]);
        counted.narrow(Readers::new(&in_use[1..]).and_from(at(40)), Timestamp::MAX);
        assert_eq!(all(&counted, [10, 20, 25, 30, 40]), [false, true, false, true, true]);
        counted.narrow(Readers::from(at(5)), Timestamp::MAX);
        assert_eq!(all(&counted, [10, 20, 25, 30, 40]), [false, true, false, true, true]);
        counted.narrow(Readers::new(&in_use).and_from(at(35)), Timestamp::MAX);
        assert_eq!(all(&counted, [10, 20, 25, 35, 40]), [false, true, false, false, true]);
        counted.narrow(Readers::NONE, Timestamp::MAX);
        assert_eq!(all(&counted, [20, 30, 40, 50, u64::MAX]), [false; 5]);
    }

    /// V7.
    #[test]
    fn a_kept_moment_is_needed_and_told_beside_those_that_are_read() {
        let (in_use, kept) = ([at(10), at(30)], [at(20), at(30)]);
        let readers = Readers::new(&in_use).and_from(at(40)).and_kept(&kept);
        assert!(readers.need(at(15), at(21)) && readers.need(at(5), at(11)));
        assert!(!readers.need(at(11), at(20)) && !readers.need(at(21), at(30)));
        let alone = Readers::NONE.and_kept(&kept);
        assert!(alone.need(at(15), at(21)) && !alone.need(at(31), at(99)));
        assert!(alone.have_gaps() && alone.first() == at(20));
        let mut counted = Counted::default();
        counted.narrow(readers, Timestamp::MAX);
        assert!([10, 20, 30, 40].into_iter().all(|it| counted.has(at(it))) && !counted.has(at(25)));
        counted.narrow(Readers::from(at(50)).and_kept(&kept[..1]), Timestamp::MAX);
        assert!(counted.has(at(20)) && !counted.has(at(10)) && !counted.has(at(30)));
        let mut counted = Counted::default();
        counted.narrow(Readers::NONE, at(25));
        counted.narrow(Readers::NONE.and_kept(&kept), at(40));
        assert!(counted.has(at(30)) && counted.has(at(40)) && !counted.has(at(20)));
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
