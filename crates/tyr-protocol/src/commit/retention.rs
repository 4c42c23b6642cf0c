//! How long outcomes are remembered, agreed on through the monitors (F10).

use tyr_types::NodeId;

use super::memory::OUTCOME_WINDOW_US;

/// What a node says of itself when it renews its lease; and, of all live nodes together, what the
/// monitors answer. All times are microseconds of the cluster's clock, that of timestamps, but for
/// the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutcomeRetention {
    /// Its clock; of all, the highest that is known.
    pub clock_us: u64,
    /// It is done with every transaction that began at or before this, durably, and has been for
    /// the window; of all, the lowest.
    pub done_to_us: u64,
    /// For how long outcomes may be remembered after that, of a clock that does not jump: less than
    /// [`OUTCOME_WINDOW_US`] where they take too much memory; of all, the shortest.
    pub window_us: u64,
    /// Of all: whose `done_to_us` it is.
    pub slowest: Option<NodeId>,
}

impl OutcomeRetention {
    /// What is known of a node that has said nothing yet.
    pub const UNKNOWN: Self =
        Self { clock_us: 0, done_to_us: 0, window_us: OUTCOME_WINDOW_US, slowest: None };

    /// What is so of several together.
    pub fn of_all(nodes: impl IntoIterator<Item = (NodeId, Self)>) -> Self {
        let mut all = Self { done_to_us: u64::MAX, ..Self::UNKNOWN };
        for (node, it) in nodes {
            all.clock_us = all.clock_us.max(it.clock_us);
            all.window_us = all.window_us.min(it.window_us);
            if it.done_to_us < all.done_to_us {
                (all.done_to_us, all.slowest) = (it.done_to_us, Some(node));
            }
        }
        match all.slowest {
            Some(_) => all,
            None => Self { done_to_us: 0, ..all },
        }
    }
}

impl Default for OutcomeRetention {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_the_slowest_counts_and_the_highest_clock() {
        let said = |clock_us, done_to_us, window_us| OutcomeRetention {
            clock_us,
            done_to_us,
            window_us,
            slowest: None,
        };
        let all = [(NodeId(1), said(50, 40, 9)), (NodeId(2), said(60, 30, 10))];
        let together = OutcomeRetention { slowest: Some(NodeId(2)), ..said(60, 30, 9) };
        assert_eq!(OutcomeRetention::of_all(all), together);
        assert_eq!(OutcomeRetention::of_all([]), OutcomeRetention::UNKNOWN);
    }
}
