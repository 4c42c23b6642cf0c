//! The log is told what need not be asked about after a restart: of what was decided before that
//! place, nearly all is finished with.

use super::{Record, Store, Turn};

/// Transactions that are finished with between two places of the log that say so, at least.
const FINISHED_MIN: u64 = 64;

/// After so long, in microseconds, the log is told of fewer, too, if few are in flight: a node that
/// comes back asks about what it is not told of, and may have to copy what that wrote (D5).
const FINISHED_AGAIN_US: u64 = 1_000_000;

/// That many in flight are few.
const FINISHED_IN_FLIGHT_MAX: usize = 256;

/// What the log was told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToldFinished {
    /// How many transactions had been finished with.
    count: u64,
    /// When that was.
    at_us: u64,
}

impl<S: Store> Turn<'_, S> {
    /// Tells the log, now and then, what need not be asked about after a restart: that is nearly
    /// all that it has. What is told takes little beside what is told of.
    pub(super) fn note_finished(&mut self) {
        let (finished, _) = self.member.commit.finished();
        let told = &mut self.member.told_finished;
        told.count = told.count.min(finished); // It began anew.
        let (in_flight, now_us) = (self.member.commit.len(), self.member.now.monotonic_us);
        let is_enough =
            finished >= self.member.told_finished.count + FINISHED_MIN.max(4 * in_flight as u64);
        let is_again = now_us.saturating_sub(self.member.told_finished.at_us) >= FINISHED_AGAIN_US
            && in_flight <= FINISHED_IN_FLIGHT_MAX
            && finished > self.member.told_finished.count;
        if !is_enough && !is_again || self.member.is_broken {
            return;
        }
        (self.member.told_finished.count, self.member.told_finished.at_us) = (finished, now_us);
        let but = self.member.commit.unfinished().collect();
        self.persist(Record::Finished { but }, None);
    }
}
