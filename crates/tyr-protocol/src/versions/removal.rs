//! May this version go? (V3, V4)
//!
//! A version is what reads between its own timestamp and that of the next see. Its age is counted
//! from the next one: a blob written once and never again has an old version that is the newest;
//! and when at last it is overwritten, snapshots begun a moment before still read it.

use tyr_types::{ErrorKind, Timestamp};

use super::usage::Usage;
use crate::abort::Abort;
use crate::rule::{Rule, Rules};

/// A version of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The transaction that wrote it.
    pub version: Timestamp,
    /// The transaction that wrote the next one; `None` while it is the newest.
    pub superseded_at: Option<Timestamp>,
}

/// How long versions stay, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The read timeout: nothing in use is older.
    pub read_timeout_us: u64,
    /// How long a version stays that nobody is known to use, while memory allows (V4).
    pub linger_us: u64,
}

/// Whether a version may be removed at `now`, given the newest `usage` of its blob.
///
/// V3: it is not the newest, and either by usage information from after it was superseded nobody
/// reads where it was current, or it was superseded a read timeout ago. V4: what may go for lack of
/// users still lingers for snapshots placed on other blobs, unless memory is short.
pub fn may_go(
    version: &Version,
    usage: Option<&Usage>,
    now: Timestamp,
    policy: Policy,
    is_memory_short: bool,
) -> bool {
    may_go_by(Rules::default(), version, usage, now, policy, is_memory_short)
}

/// The same with this rule taken away, for a test that wants to see its checker notice.
#[cfg(any(test, feature = "broken-rules"))]
pub fn may_go_without(
    broken: Option<Rule>,
    version: &Version,
    usage: Option<&Usage>,
    now: Timestamp,
    policy: Policy,
    is_memory_short: bool,
) -> bool {
    may_go_by(Rules { broken }, version, usage, now, policy, is_memory_short)
}

fn may_go_by(
    rules: Rules,
    version: &Version,
    usage: Option<&Usage>,
    now: Timestamp,
    policy: Policy,
    is_memory_short: bool,
) -> bool {
    let Some(superseded_at) = version.superseded_at else { return false };
    let age_us = now.clock.saturating_sub(superseded_at.clock);
    let is_read = |usage: &Usage| {
        let until = match rules.hold(Rule::V3) {
            true => superseded_at,
            false => superseded_at.min(usage.as_of()), // What came after the news does not count.
        };
        usage.needs(version.version, until)
    };
    let is_unused = usage.is_some_and(|usage| !is_read(usage));
    let has_lingered = is_memory_short || age_us >= policy.linger_us || !rules.hold(Rule::V4);
    age_us >= policy.read_timeout_us || is_unused && has_lingered
}

/// The version, by its place in `kept`, that a read at `at` sees.
///
/// # Errors
/// `SnapshotTooOld` when it was removed (V4).
pub fn version_at(kept: &[Version], at: Timestamp) -> Result<usize, Abort> {
    let covers = |version: &Version| {
        version.version <= at && version.superseded_at.is_none_or(|next| at < next)
    };
    kept.iter().position(covers).ok_or_else(|| {
        let reason = "the version that the snapshot needs is gone; start a new snapshot";
        Abort::new(ErrorKind::SnapshotTooOld, reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { read_timeout_us: 1000, linger_us: 50 };

    fn time(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    fn version(from: u64, until: Option<u64>) -> Version {
        Version { version: time(from), superseded_at: until.map(time) }
    }

    fn usage(as_of: u64, moments: &[u64]) -> Usage {
        Usage::new(time(as_of), moments.iter().map(|clock| time(*clock)))
    }

    fn goes(version: Version, usage: &Usage, now: u64) -> bool {
        may_go(&version, Some(usage), time(now), POLICY, true)
    }

    /// V3.
    #[test]
    fn the_newest_version_never_goes() {
        assert!(!goes(version(10, None), &usage(1_000_000, &[]), 1_000_000));
    }

    /// V3.
    #[test]
    fn a_version_in_use_stays_and_one_that_is_not_goes() {
        let usage = usage(30, &[12]);
        assert!(!goes(version(10, Some(20)), &usage, 40));
        assert!(goes(version(20, Some(25)), &usage, 40));
        assert!(goes(version(10, Some(12)), &usage, 40), "superseded when the snapshot reads");
    }

    /// V3.
    #[test]
    fn usage_from_before_it_was_superseded_removes_nothing() {
        assert!(!goes(version(10, Some(20)), &usage(19, &[]), 40));
        assert!(goes(version(10, Some(20)), &usage(20, &[]), 40));
        assert!(!may_go(&version(10, Some(20)), None, time(40), POLICY, true));
    }

    /// V3.
    #[test]
    fn a_version_goes_a_read_timeout_after_it_was_superseded() {
        assert!(!goes(version(10, Some(2000)), &usage(2500, &[10]), 2999));
        assert!(goes(version(10, Some(2000)), &usage(2500, &[10]), 3000));
        assert!(may_go(&version(10, Some(2000)), None, time(3000), POLICY, false));
    }

    /// V4.
    #[test]
    fn an_unused_version_lingers_while_there_is_memory() {
        let (unused, usage) = (version(10, Some(100)), usage(120, &[]));
        assert!(!may_go(&unused, Some(&usage), time(149), POLICY, false));
        assert!(may_go(&unused, Some(&usage), time(150), POLICY, false));
        assert!(may_go(&unused, Some(&usage), time(121), POLICY, true));
    }

    /// V4.
    #[test]
    fn a_read_below_what_is_kept_says_that_the_snapshot_is_too_old() {
        let kept = [version(10, Some(20)), version(30, None)];
        assert_eq!(version_at(&kept, time(19)), Ok(0));
        assert_eq!(version_at(&kept, time(99)), Ok(1));
        for gone in [9, 20, 29] {
            let abort = version_at(&kept, time(gone)).unwrap_err();
            assert_eq!(abort.kind, ErrorKind::SnapshotTooOld);
        }
    }
}
