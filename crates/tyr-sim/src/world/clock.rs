//! The two clocks of a machine: the wall clock, which may jump, and the monotonic one.

use crate::random::Random;
use crate::setup::Clocks;

/// When a run begins, in microseconds since 1970: wall clocks show about this.
pub const BEGIN_US: u64 = 1_800_000_000_000_000;

/// The clocks of one machine. They go on while its process does not.
#[derive(Clone, Debug)]
pub struct Clock {
    offset_us: i64,
    /// Millionths that the wall clock is fast; negative when it is slow.
    drift: i64,
    monotonic_drift: i64,
    /// The machine was switched on so long before the run began.
    uptime_us: u64,
}

impl Clock {
    /// A machine's clocks, as far off as `clocks` lets them be.
    pub fn new(clocks: Clocks, random: &mut Random) -> Self {
        let mut within = |bound: u64| {
            let bound = i64::try_from(bound).expect("clocks are off by less than 2^63");
            let width = u64::try_from(2 * bound + 1).expect("it is positive");
            i64::try_from(random.below(width)).expect("below a positive number") - bound
        };
        Self {
            offset_us: within(clocks.offset_us),
            drift: within(clocks.drift.into()),
            monotonic_drift: within(clocks.monotonic_drift.into()),
            uptime_us: 1_000_000 + random.below(1_000_000_000),
        }
    }

    /// What the wall clock shows.
    pub fn wall_us(&self, now_us: u64) -> u64 {
        (BEGIN_US + with_drift(now_us, self.drift)).saturating_add_signed(self.offset_us)
    }

    /// What the monotonic clock shows.
    pub fn monotonic_us(&self, now_us: u64) -> u64 {
        self.uptime_us + with_drift(now_us, self.monotonic_drift)
    }

    /// How long it takes, by the run's time, until the monotonic clock has gone on by so much.
    pub fn lasts_us(&self, monotonic_us: u64) -> u64 {
        let speed = 1_000_000_u64.saturating_add_signed(self.monotonic_drift);
        let lasts_us = u128::from(monotonic_us) * 1_000_000 / u128::from(speed);
        u64::try_from(lasts_us).expect("leases last for seconds")
    }

    /// The wall clock is set forward or back.
    pub fn jump(&mut self, by_us: i64) {
        self.offset_us = self.offset_us.saturating_add(by_us);
    }

    /// The wall clock is set right, as a time service does in the end.
    pub fn mend(&mut self) {
        self.offset_us = 0;
    }
}

fn with_drift(us: u64, millionths: i64) -> u64 {
    let share = us / 1_000_000 * millionths.unsigned_abs()
        + us % 1_000_000 * millionths.unsigned_abs() / 1_000_000;
    if millionths < 0 { us - share } else { us + share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_jump_with_the_wall_clock() {
        let clocks = Clocks { offset_us: 500, drift: 50_000, monotonic_drift: 20_000 };
        let mut clock = Clock::new(clocks, &mut Random::new(1));
        let (wall_us, monotonic_us) = (clock.wall_us(1_000), clock.monotonic_us(1_000));
        clock.jump(-60_000_000);
        assert_eq!(clock.wall_us(1_000), wall_us - 60_000_000);
        assert_eq!(clock.monotonic_us(1_000), monotonic_us);
    }

    #[test]
    fn a_clock_that_is_fast_gains_its_share() {
        assert_eq!(with_drift(10_000_000, 20_000), 10_200_000);
        assert_eq!(with_drift(10_000_000, -20_000), 9_800_000);
        assert_eq!(with_drift(999, 20_000), 1_018);
    }
}
