//! Time inside the machine: what is due when, on a clock that stands while the process does.
//!
//! A process that was kept from running, by a debugger or a busy host, finds all its timers due at
//! once, and answers to its questions still in the socket. Were time counted then, it would declare
//! everybody down. So lateness of more than [`LATE_US`] is taken off the clock.
//!
//! Must not know: what the timers are for.

use std::collections::BTreeMap;

use foca::Timer;

use super::identity::Identity;

/// Lateness that is taken off: less is what a busy system does, and within the shortest suspicion.
const LATE_US: u64 = 100_000;

/// The machine's clock, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The latest that was seen.
    now: u64,
    /// The caller's clock is ahead by this.
    skipped: u64,
    /// How often it stood.
    pub pauses: u64,
}

impl Clock {
    /// Time goes on to `now_us` of the caller's clock, who was to call at `due` of this one at the
    /// latest. Answers the time on this one.
    pub fn advance(&mut self, now_us: u64, due: u64) -> u64 {
        let now = now_us.saturating_sub(self.skipped);
        let late = now.saturating_sub(due.max(self.now));
        if late > LATE_US {
            self.skipped += late;
            self.pauses += 1;
        }
        let before = self.now;
        self.now = self.now.max(now_us.saturating_sub(self.skipped));
        debug_assert!(self.now >= before, "the clock does not go back");
        debug_assert!(late <= LATE_US || self.pauses > 0, "a pause is counted");
        self.now
    }

    /// The time, as of the last call.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// For how long it stood, altogether.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// Timers of `foca`. It has at most one for probes, one for the ways around, and one each for what
/// it does from time to time; those of an earlier connection go when they are due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// By when they are due and the order in which they were set.
    due: BTreeMap<(u64, u64), Timer<Identity>>,
    set: u64,
}

impl Timers {
    pub fn set(&mut self, at: u64, timer: Timer<Identity>) {
        self.set += 1;
        let before = self.due.insert((at, self.set), timer);
        debug_assert!(before.is_none(), "each timer has a place of its own");
    }

    /// When the next one is due.
    pub fn next_at(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next one, if it is due.
    pub fn pop(&mut self, now: u64) -> Option<Timer<Identity>> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        debug_assert!(entry.key().1 <= self.set, "it was set here");
        Some(entry.remove())
    }

    pub fn clear(&mut self) {
        self.due.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_while_nobody_calls() {
        let mut clock = Clock::default();
        assert_eq!(clock.advance(1_000, 5_000), 1_000);
        assert_eq!(clock.advance(90_000, 5_000), 90_000, "a little late is time");
        assert_eq!(clock.advance(10_000_000, 100_000), 100_000, "much is not");
        assert_eq!(clock.advance(10_001_000, 150_000), 101_000);
        assert_eq!((clock.pauses, clock.skipped()), (1, 9_900_000));
        assert_eq!(clock.advance(5, 0), 101_000, "nor does it go back");
    }

    #[test]
    fn timers_come_in_the_order_in_which_they_are_due() {
        let mut timers = Timers::default();
        timers.set(20, Timer::PeriodicGossip(1));
        timers.set(10, Timer::ProbeRandomMember(1));
        timers.set(10, Timer::PeriodicAnnounce(1));
        assert_eq!(timers.next_at(), Some(10));
        assert_eq!(timers.pop(9), None);
        let popped: Vec<_> = std::iter::from_fn(|| timers.pop(20)).collect();
        let expected =
            [Timer::ProbeRandomMember(1), Timer::PeriodicAnnounce(1), Timer::PeriodicGossip(1)];
        assert_eq!(popped, expected);
    }
}
