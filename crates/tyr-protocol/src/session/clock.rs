//! What a client takes the cluster's clock to be.
//!
//! Nodes say their clock in every answer; in between, the client's own monotonic clock carries it
//! on, for a few seconds. It dates submissions (`begun_us`): too low and the cluster may take one
//! for older than what it remembers; too high and its head may have to hear first that another node
//! is as far. The client's wall clock does not come into it.

use tyr_types::Timestamp;

/// How long a clock is carried on before any newer one counts, lower ones too: two clocks drift
/// apart by a few per cent, so by less than half a second in this time.
const TRUSTED_US: u64 = 10_000_000;

/// How long a clock is carried on at most: then a node is asked anew. What none of them confirms,
/// because the one that said it is gone, or a machine that slept went by its own idea of time, must
/// not be handed back for ever.
const CARRIED_US: u64 = 2 * TRUSTED_US;

const _: () = assert!(TRUSTED_US < CARRIED_US, "it is corrected before it is forgotten");

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
        debug_assert!(self.now_us(monotonic_us).is_some(), "who was just told knows the time");
    }

    /// The cluster's clock now, in microseconds; `None` when no node said it lately.
    pub fn now_us(self, monotonic_us: u64) -> Option<u64> {
        let (clock, at) = self.seen?;
        let since_us = monotonic_us.saturating_sub(at);
        (since_us < CARRIED_US).then(|| clock.saturating_add(since_us))
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

    #[test]
    fn a_clock_that_nobody_confirms_is_not_carried_on_for_long() {
        let mut clock = Clock::default();
        clock.observe(time(1_000), 0);
        assert!(clock.now_us(CARRIED_US - 1).is_some());
        assert_eq!(clock.now_us(CARRIED_US), None);
        clock.observe(time(900), CARRIED_US);
        assert_eq!(clock.now_us(CARRIED_US), Some(900));
    }
}
