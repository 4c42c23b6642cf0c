//! What happens because time passes.

use tyr_types::Timestamp;

use super::{Store, Turn};
use crate::commit;
use crate::commit::OutcomeRetention;
use crate::message::{Address, Body};
use crate::movement;

/// A node that is back says so again after so long, in microseconds.
pub(super) const RETURN_AGAIN_US: u64 = 200_000;

/// A node whose program is too old for its cluster asks for the map after so long, in microseconds:
/// it is sent all of it each time, and can make nothing of it.
pub(super) const OUTDATED_AGAIN_US: u64 = 5_000_000;

impl<S: Store> Turn<'_, S> {
    /// Some time has passed.
    pub(super) fn tick(&mut self) {
        if self.member.is_broken {
            return; // It lets its lease run out.
        }
        self.member.shown.clear();
        self.follow_day();
        self.return_if_needed();
        self.renew_lease();
        if !self.member.held.is_empty() {
            self.fetch(Address::Monitors);
        }
        let now_us = self.member.now.monotonic_us;
        self.member.in_use.expire(now_us);
        let records = &self.member.commit.records;
        self.member.usage.retain(|id| records.slot(id).is_some());
        self.member.usage.tick(now_us, self.member.config.read_timeout_us);
        self.acknowledge_planned();
        self.review_reads();
        if !self.member.has_lease() {
            return;
        }
        self.catch_up_commit();
        self.supply(movement::Event::Tick);
        self.scrub();
        self.tick_key_leases();
        self.tick_key_watches();
        self.tick_uploads();
        if self.member.planned.is_empty() {
            self.commit(commit::Event::Tick { elapsed_us: now_us });
            self.note_done();
            if self.member.is_resume_due {
                self.resume();
            }
        }
    }

    /// Moves the clock along with the day, also when nothing happens: clients date what they begin
    /// by the clock that nodes tell, and what seems long ago is refused.
    fn follow_day(&mut self) {
        let clock = self.member.commit.clock();
        let clock_us = clock.clock.max(self.member.now.wall_us);
        self.member.commit.observe(Timestamp { clock: clock_us, ..clock });
    }

    /// Asks for the lease when it is time to (M3).
    fn renew_lease(&mut self) {
        if !self.member.is_member() {
            return;
        }
        let (now_us, epoch) = (self.member.now.monotonic_us, self.member.epoch());
        if let Some(renewal) = self.member.lease.renewal(now_us, epoch) {
            let crate::lease::Renewal { incarnation, epoch, sent_us } = renewal;
            let retention = OutcomeRetention {
                clock_us: self.member.commit.clock().clock,
                done_to_us: self.member.done.told_us(),
                window_us: self.member.commit.affordable_window_us(),
                slowest: None,
            };
            self.send(Address::Monitors, Body::Renew { incarnation, epoch, sent_us, retention });
        }
    }
}
