//! How large a part of a limit on operations a node grants: as large as its part of what is asked.
//!
//! Clients send a transaction to the first node of its chain, so in a small cluster one node may be
//! asked for all of them. What a node was asked for lately it tells the others; what all grant
//! together is the limit, as soon as they have heard of each other.
//!
//! Must not know: clocks, and who the others are.

use std::time::Instant;

/// A node grants at least this part of an even part, so that who comes anew is let in and counted.
const LEAST: f64 = 0.125;

const _: () = assert!(0.0 < LEAST && LEAST <= 1.0);

/// What clients ask this node for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// Operations asked for since then, let in or not.
    asked: u64,
    since: Option<Instant>,
    /// Operations a second before that.
    rate: f64,
}

impl Demand {
    /// So many operations are asked for.
    pub fn ask(&mut self, operations: u64) {
        self.asked = self.asked.saturating_add(operations);
    }

    /// What was asked for in a second since the last measurement; a new one begins.
    pub fn measure(&mut self, now: Instant) -> u32 {
        let passed = self.since.map_or(0.0, |since| (now - since).as_secs_f64());
        if passed > 0.0 {
            self.rate = self.asked as f64 / passed;
        }
        debug_assert!(self.rate.is_finite() && self.rate >= 0.0, "a rate is a number");
        (self.asked, self.since) = (0, Some(now));
        // A rate of many millions is as good as one of more.
        self.rate.ceil() as u32
    }

    /// What this node, one of `up`, grants of `limit` in a second, when so much is asked for at the
    /// others.
    pub fn part(&self, limit: u64, others: u32, up: usize) -> f64 {
        assert!(up > 0, "this node is one of them");
        let (limit, others) = (limit as f64, f64::from(others));
        let even = limit / up as f64;
        if self.rate == 0.0 {
            return even;
        }
        let left = limit - others;
        let fair = limit * self.rate / (self.rate + others);
        debug_assert!(fair.is_finite() && fair >= 0.0, "a fair part is a number");
        left.max(fair).max(even * LEAST)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked(operations: u64) -> Demand {
        let (mut demand, start) = (Demand::default(), Instant::now());
        demand.measure(start);
        demand.ask(operations);
        assert_eq!(demand.measure(start + Duration::from_secs(2)), operations.div_ceil(2) as u32);
        demand
    }

    #[test]
    fn who_was_not_asked_yet_grants_an_even_part() {
        assert_eq!(Demand::default().part(300, 0, 3), 100.0);
        assert_eq!(asked(0).part(300, 500, 3), 100.0);
    }

    #[test]
    fn what_nobody_else_is_asked_for_is_granted_here() {
        assert_eq!(asked(2000).part(300, 0, 3), 300.0);
        assert_eq!(asked(100).part(300, 100, 3), 200.0);
    }

    #[test]
    fn where_more_is_asked_than_there_is_each_grants_as_it_is_asked() {
        let (one, other) = (asked(6000), asked(2000));
        assert_eq!(one.part(300, 1000, 3), 225.0);
        assert_eq!(other.part(300, 3000, 3), 75.0);
    }

    #[test]
    fn who_is_hardly_asked_still_grants_a_little() {
        assert_eq!(asked(2).part(240, 100_000, 3), 10.0);
    }
}
