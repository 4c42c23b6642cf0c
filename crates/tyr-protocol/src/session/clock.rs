//! What a client takes the cluster's clock to be.
//!
//! Nodes say their clock in every answer; in between, the client's own monotonic clock carries it
//! on. It dates submissions (`begun_us`): too low and the cluster may take one for older than what
//! it remembers; too high does no harm, since the head moves its clock past it.

use tyr_types::Timestamp;

/// How long a clock is carried on before any newer one counts, lower ones too: two clocks drift
/// apart by a few per cent, so by less than half a second in this time.
const TRUSTED_US: u64 = 10_000_000;

/// The estimate: a clock that was seen, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    seen: Option<(u64, u64)>,
}

impl Clock {
    /// A node said its clock; it arrived at `monotonic_us`.
    pub fn observe(&mut self, clock: Timestamp, monotonic_us: u64) {
        let is_trusted =
            self.seen.is_some_and(|(_, at)| monotonic_us.saturating_sub(at) < TRUSTED_US);
        if !is_trusted || self.now_us(monotonic_us).is_none_or(|now| clock.clock > now) {
            self.seen = Some((clock.clock, monotonic_us));
        }
    }

    /// The cluster's clock now, in microseconds; `None` before any node said it.
    pub fn now_us(self, monotonic_us: u64) -> Option<u64> {
        let carried =
            |(clock, at): (u64, u64)| clock.saturating_add(monotonic_us.saturating_sub(at));
        self.seen.map(carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    #[test]
    fn the_highest_clock_is_carried_on() {
        let mut clock = Clock::default();
        assert_eq!(clock.now_us(5), None);
        clock.observe(time(1_000), 100);
        clock.observe(time(900), 200);
        assert_eq!(clock.now_us(200), Some(1_100));
        clock.observe(time(5_000), 200);
        assert_eq!(clock.now_us(250), Some(5_050));
    }

    #[test]
    fn a_clock_that_ran_ahead_is_corrected_after_a_while() {
        let mut clock = Clock::default();
        clock.observe(time(1_000_000_000), 0);
        clock.observe(time(500), TRUSTED_US);
        assert_eq!(clock.now_us(TRUSTED_US), Some(500));
    }
}
