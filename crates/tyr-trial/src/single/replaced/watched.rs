//! When watchers hear of versions: after the installation began, and after it was committed.
//!
//! ```text
//!   installer:  begun ──► compiled, asked for
//!   monitors:                     └──► on disk at two of three ──► applied at the first: committed
//!   watchers:                                                          └──► told, each of them
//! ```
//!
//! All times are those of this machine's clock: a watcher's when it was told, the commit's in the
//! log of the first monitor that had applied it. A watcher notes what it heard and does nothing
//! else, so that 119 others need not wait for it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::Tyr;
use tyr_types::{Error, ErrorKind, Result};

use super::line::{Line, version_at};
use super::now_us;
use crate::cluster::{Cluster, PATIENCE};
use crate::single::times::{Times, millis};
use crate::single::{again, is_passing};

/// A watcher looks so often whether it is over. It asks anew then, so not often.
const LOOK: Duration = Duration::from_secs(5);

/// What is aimed at, from the commit on: nine of ten, and all.
const MOST_AIM: Duration = Duration::from_millis(10);
const LONGEST_AIM: Duration = Duration::from_millis(50);

/// So many times as long is a failure. Less tells more of what else the machine does.
const SLACK: u32 = 10;

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

/// A version that a watcher heard of.
#[derive(Clone, Copy, Debug)]
struct Heard {
    class: usize,
    version: u32,
    /// Of the service metadata, in which it was installed.
    revision: u64,
    at_us: u64,
}

/// What each watcher heard.
pub(super) struct Watched(Vec<Mutex<Vec<Heard>>>);

impl Watched {
    /// By so many.
    pub fn by(watchers: usize) -> Self {
        Self((0..watchers).map(|_| Mutex::default()).collect())
    }

    /// One watcher, until it is over.
    pub fn follow(&self, number: usize, store: &Tyr, is_over: &AtomicBool) -> Result<()> {
        let newest = || again(|| Ok(store.metadata().list("classes/", None, 1)?.revision));
        let mut seen = newest()?;
        let mut watch = store.metadata().watch("classes/", seen);
        while !is_over.load(Ordering::Acquire) {
            let told = match watch.next_within(LOOK) {
                Ok(Some(told)) => told,
                Ok(None) => continue,
                Err(error) if is_passing(&error) => {
                    if error.kind() == ErrorKind::SnapshotTooOld {
                        seen = newest()?;
                    }
                    watch = store.metadata().watch("classes/", seen);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let at_us = now_us();
            seen = told.revision;
            let heard = told.changes.iter().filter_map(|change| {
                let (class, version) = version_at(change.path.as_str())?;
                Some(Heard { class, version, revision: change.revision, at_us })
            });
            self.0[number].lock().extend(heard);
        }
        Ok(())
    }

    /// Waits until everybody has heard of all these versions.
    pub fn wait(&self, classes: usize, versions: &RangeInclusive<u32>) -> Result<()> {
        let (begun, all) = (Instant::now(), classes * versions.clone().count());
        let is_one = |heard: &&Heard| versions.contains(&heard.version);
        loop {
            let counts = self.0.iter().map(|heard| heard.lock().iter().filter(is_one).count());
            let Some(least) = counts.min().filter(|least| *least < all) else { return Ok(()) };
            if begun.elapsed() > PATIENCE {
                let text = format!("a watcher has heard of {least} versions, and there are {all}");
                return Err(Error::corrupt(text));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How long it took until these versions were told.
    pub fn spread(
        &self,
        lines: &[Line],
        versions: &RangeInclusive<u32>,
        commits: &Commits,
    ) -> Spread {
        let (mut spread, mut firsts) = (Spread::default(), Vec::new());
        for (number, heard) in self.0.iter().enumerate() {
            let mut own = Times::default();
            for it in heard.lock().iter().filter(|it| versions.contains(&it.version)) {
                let begun_us = lines[it.class].begun_us(it.version);
                spread.begun.extend(begun_us.map(|begun_us| between(begun_us, it.at_us)));
                let Some(committed_us) = commits.of_revision(it.revision) else { continue };
                own.extend([between(committed_us, it.at_us)]);
                if number == 0 {
                    firsts.extend(begun_us.map(|begun_us| between(begun_us, committed_us)));
                }
            }
            spread.most_each.extend(own.at(0.9));
            spread.committed.extend(own);
        }
        spread.until_commit.extend(firsts);
        spread
    }
}

fn between(from_us: u64, to_us: u64) -> Duration {
    Duration::from_micros(to_us.saturating_sub(from_us))
}

/// When revisions of the service metadata were committed.
pub(super) struct Commits {
    /// Until when everything up to which revision was applied somewhere, ascending.
    applied: Vec<(u64, u64)>,
}

impl Commits {
    /// As the logs of the nodes tell it, of a run that began then.
    pub fn of(cluster: &Cluster, begun_us: u64) -> Result<Self> {
        let (day_us, begun_us) = (begun_us - begun_us % DAY_US, begun_us % DAY_US);
        // What lies before the begin is the next day's, if it is anything.
        let at = |at_us: u64| day_us + at_us + if at_us < begun_us { DAY_US } else { 0 };
        let applied = cluster.applied()?.into_iter().map(|it| (at(it.at_us), it.revision));
        let mut applied: Vec<(u64, u64)> = applied.collect();
        applied.sort_unstable();
        let mut highest = 0;
        applied.retain(|(_, revision)| {
            let is_new = *revision > highest;
            highest = highest.max(*revision);
            is_new
        });
        Ok(Self { applied })
    }

    /// When this revision was.
    fn of_revision(&self, revision: u64) -> Option<u64> {
        let first = self.applied.partition_point(|(_, applied)| *applied < revision);
        self.applied.get(first).map(|(at_us, _)| *at_us)
    }
}

/// How long versions took to those who watch.
#[derive(Default)]
pub(super) struct Spread {
    /// After the commit.
    committed: Times,
    /// After the installation began.
    begun: Times,
    /// From the begin to the commit.
    until_commit: Times,
    /// In which nine of ten were told to a watcher, of each.
    most_each: Times,
}

impl Spread {
    /// Whether that is as it should be, or at least not far from it.
    pub fn judge(&self, text: String) -> Result<String> {
        let (Some(most), Some(longest)) = (self.committed.at(0.9), self.committed.at(1.0)) else {
            let why = "no log of a node tells when something was committed: tyr serve is to run";
            return Err(Error::unavailable(format!("{text}\n{why}")));
        };
        let aims = [("p90", most, MOST_AIM), ("the longest", longest, LONGEST_AIM)].map(
            |(name, time, aim)| {
                let is_met = if time <= aim { "met" } else { "missed" };
                format!("{name} of at most {} ms is {is_met}", millis(aim))
            },
        );
        let text = format!("{text}\nfrom the commit on {}", aims.join(", "));
        match most > SLACK * MOST_AIM || longest > SLACK * LONGEST_AIM {
            true => Err(Error::corrupt(format!("{text}, by more than {SLACK} times"))),
            false => Ok(text),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { committed, begun, until_commit, most_each } = self;
        write!(f, "{committed} after the commit, {begun} after the begin")?;
        write!(f, "; begin to commit {until_commit}")?;
        if let (Some(least), Some(highest)) = (most_each.at(0.0), most_each.at(1.0)) {
            write!(f, "; each watcher's own p90 {} to {} ms", millis(least), millis(highest))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_was_committed_when_the_first_had_applied_it_or_a_later_one() {
        let commits = Commits { applied: vec![(10, 3), (20, 5)] };
        assert_eq!(commits.of_revision(3), Some(10));
        assert_eq!(commits.of_revision(4), Some(20));
        assert_eq!(commits.of_revision(6), None);
    }

    #[test]
    fn what_is_ten_times_as_late_as_it_should_be_is_a_failure() {
        let late = |ms| {
            let committed = Times::from_iter([Duration::from_millis(ms)]);
            Spread { committed, ..Spread::default() }.judge(String::new())
        };
        assert!(late(9).unwrap().contains("10.0 ms is met"));
        assert!(late(60).unwrap().contains("50.0 ms is missed"));
        assert!(late(101).unwrap_err().to_string().contains("more than 10 times"));
        assert!(Spread::default().judge(String::new()).is_err());
    }
}
