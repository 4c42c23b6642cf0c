//! What version managers tell about the snapshots in use of a blob (V2).
//!
//! The moments at which somebody reads, as they are, and from where on anybody may come to read: a
//! snapshot that begins does so at its version manager's clock, so that below what that was no new
//! one comes. What is said once stays true: snapshots only end.
//!
//! ```text
//!        40      55                        as of 90
//!   ──────┼───────┼───────────────────────────┼─────────────► time
//!     a moment  a moment   nobody reads here   anybody may
//! ```
//!
//! When there are too many, the oldest are told, and what there is from the next one on counts as
//! read at every moment.

use tyr_types::Timestamp;

/// The most moments that are told of a blob: 900 bytes of a message.
pub const MOMENTS_MAX: usize = 64;

/// The snapshots in use of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// From here on somebody may read at any moment.
    pub(crate) as_of: Timestamp,
    /// Where somebody reads below that; ascending, each once, at most [`MOMENTS_MAX`].
    pub(crate) moments: Vec<Timestamp>,
}

impl Usage {
    /// What is in use: these moments, given in ascending order, and whatever is at `as_of` and
    /// above.
    pub fn new(as_of: Timestamp, ascending: impl IntoIterator<Item = Timestamp>) -> Self {
        let mut moments: Vec<Timestamp> = Vec::new();
        for at in ascending.into_iter().take_while(|at| *at < as_of) {
            debug_assert!(moments.last().is_none_or(|last| *last <= at), "in ascending order");
            if moments.last() == Some(&at) {
                continue;
            }
            if moments.len() == MOMENTS_MAX {
                return Self { as_of: at, moments };
            }
            moments.push(at);
        }
        Self { as_of, moments }
    }

    /// The same of values that came from elsewhere; `None` when they are not as they should be.
    pub(crate) fn checked(as_of: Timestamp, moments: Vec<Timestamp>) -> Option<Self> {
        let is_right = moments.len() <= MOMENTS_MAX
            && moments.is_sorted_by(|one, next| one < next)
            && moments.last().is_none_or(|last| *last < as_of);
        is_right.then_some(Self { as_of, moments })
    }

    /// All snapshots in use that read below it are told.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// Where somebody reads below that, ascending.
    pub fn moments(&self) -> &[Timestamp] {
        &self.moments
    }

    /// Nobody reads below it.
    pub fn oldest(&self) -> Timestamp {
        self.moments.first().copied().unwrap_or(self.as_of)
    }

    /// Whether somebody may read what was the newest from `from` up to, not with, `until`.
    pub fn needs(&self, from: Timestamp, until: Timestamp) -> bool {
        let next = self.moments.partition_point(|at| *at < from);
        let first = self.moments.get(next).map_or(self.as_of, |at| *at);
        from < until && first < until
    }

    /// What is in use if that is so of some, and `other` of others.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut moments = [self.moments(), other.moments()].concat();
        moments.sort_unstable();
        let both = Self::new(self.as_of.min(other.as_of), moments);
        debug_assert_eq!(both.oldest(), self.oldest().min(other.oldest()), "V2: nobody is lost");
        both
    }

    /// The same in no more than `moments_max` moments.
    #[must_use]
    pub fn within(self, moments_max: usize) -> Self {
        match self.moments.len() <= moments_max {
            true => self,
            false => Self { as_of: self.oldest(), moments: Vec::new() },
        }
    }

    /// Takes what was told later. News arrive in any order, and the older ones are still true.
    pub fn update(&mut self, other: &Self) {
        if other.as_of >= self.as_of {
            self.clone_from(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    fn usage(as_of: u64, moments: &[u64]) -> Usage {
        Usage::new(time(as_of), moments.iter().map(|clock| time(*clock)))
    }

    /// V2.
    #[test]
    fn a_version_is_needed_at_a_moment_that_is_told_and_from_the_last_news_on() {
        let usage = usage(90, &[40, 55]);
        let needs = |from, until| usage.needs(time(from), time(until));
        assert!(needs(40, 41) && needs(30, 50) && needs(55, 80) && needs(30, 200));
        assert!(needs(60, 91) && needs(90, 91) && needs(200, 300));
        assert!(!needs(30, 40) && !needs(41, 55) && !needs(56, 90) && !needs(60, 60));
        assert_eq!((usage.oldest(), self::usage(90, &[]).oldest()), (time(40), time(90)));
    }

    /// V2.
    #[test]
    fn of_more_than_64_moments_the_oldest_are_told_and_all_from_the_next_one_on() {
        let all: Vec<u64> = (1..=65).map(|number| 10 * number).collect();
        let exact = usage(900, &all[..64]);
        assert_eq!((exact.as_of(), exact.moments().len()), (time(900), 64));
        let more = usage(900, &all);
        assert_eq!((more.as_of(), more.moments().len()), (time(650), 64));
        assert!(all.iter().all(|at| more.needs(time(*at), time(at + 1))));
        assert!(!more.needs(time(11), time(20)) && more.needs(time(660), time(670)));
        let fewer = more.within(63);
        assert_eq!((fewer.as_of(), fewer.moments()), (time(10), &[][..]));
    }

    /// V2.
    #[test]
    fn two_managers_together_know_the_snapshots_of_both_and_the_older_news() {
        let both = usage(90, &[40, 55, 85]).and(&usage(80, &[20, 55]));
        assert_eq!(both, usage(80, &[20, 40, 55]));
        let many: Vec<u64> = (1..=64).map(|number| 10 * number).collect();
        let both = usage(900, &many).and(&usage(901, &[15]));
        assert_eq!((both.as_of(), both.moments().len()), (time(640), 64));
    }

    /// V2.
    #[test]
    fn older_usage_that_arrives_late_changes_nothing() {
        let mut known = usage(50, &[10]);
        known.update(&usage(40, &[10, 20]));
        assert_eq!(known, usage(50, &[10]));
        known.update(&usage(50, &[]));
        known.update(&usage(60, &[55]));
        assert_eq!(known, usage(60, &[55]));
    }
}
