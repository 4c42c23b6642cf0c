//! What this node is done with, so that all may forget what became of it (F10, F11).
//!
//! A transaction counts from when its client first submitted it, by the cluster's clock. A node is
//! done with those that began up to some moment when it has none of them in flight and coordinates
//! no ballot on any. It says so through the monitors, when its log has it durably, and hears how
//! far all live nodes are: the floor, up to which outcomes are forgotten everywhere.

use std::collections::VecDeque;

use tyr_types::{NodeId, Timestamp, TransactionId};

use super::{Inquiries, Recovery};
use crate::commit::OutcomeRetention;
use crate::commit::{Commit, OUTCOME_WINDOW_US, OUTCOMES_MAX};
use crate::rule::Rule;

/// Between two moments at which the clock is noted, in microseconds.
const NOTE_EVERY_US: u64 = 1_000_000;

/// Outcomes are remembered at least so long, however many there are, in microseconds: longer than a
/// client that is answered waits to ask again.
pub const WINDOW_MIN_US: u64 = 5_000_000;

/// Entries that are forgotten in one tick.
const LET_GO_MAX: usize = 4096;

const _: () = {
    assert!(WINDOW_MIN_US <= OUTCOME_WINDOW_US, "a window is between the two");
    assert!(NOTE_EVERY_US < WINDOW_MIN_US, "what the clock was a window ago is known");
};

/// What the cluster's clock was, by one that does not jump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Both clocks, a second apart, ascending; bounded by the window.
    noted: VecDeque<(u64, u64)>,
}

impl Past {
    /// Notes both clocks; lets go of what is older than `window_us`, but for the newest of that.
    fn note(&mut self, elapsed_us: u64, clock_us: u64, window_us: u64) {
        let is_due = |(last_us, _): &(u64, u64)| elapsed_us >= last_us + NOTE_EVERY_US;
        if self.noted.back().is_none_or(is_due) {
            let last_us = self.noted.back().map_or(0, |(_, clock_us)| *clock_us);
            debug_assert!(last_us <= clock_us, "F10: the clock was never ahead of what it is");
            self.noted.push_back((elapsed_us, clock_us));
        }
        while self.noted.get(1).is_some_and(|(then_us, _)| then_us + window_us <= elapsed_us) {
            self.noted.pop_front();
        }
    }

    /// What the cluster's clock was `window_us` ago, or a little before; 0 when that is not known.
    fn before(&self, elapsed_us: u64, window_us: u64) -> u64 {
        let first = self.noted.front().filter(|(then_us, _)| then_us + window_us <= elapsed_us);
        first.map_or(0, |(_, clock_us)| *clock_us)
    }
}

impl Commit {
    /// Whether nothing is in flight here, nor asked about in a ballot of this node.
    pub fn is_at_rest(&self) -> bool {
        let is_asking = |recovery: &Recovery| !recovery.inquiries.is_empty();
        self.is_empty() && !self.recovery.as_deref().is_some_and(is_asking)
    }

    /// Up to where this node is done, as of the last tick: everything that began at or before this
    /// clock has ended here, if not durably yet, the window ago or longer.
    pub(crate) fn done_to_us(&self) -> u64 {
        self.recovery.as_ref().map_or(0, |recovery| recovery.done_to_us)
    }

    /// Goes on with the time of `old`, whose transactions are no more: what everyone was done with
    /// stays forgotten.
    pub(crate) fn follow(&mut self, old: Self) {
        let (Some(recovery), Some(old)) = (&mut self.recovery, old.recovery) else { return };
        recovery.elapsed_us = old.elapsed_us;
        recovery.past = old.past;
        recovery.done_to_us = old.done_to_us;
        recovery.window_us = old.window_us;
        recovery.memory.raise_floor(old.memory.floor());
        recovery.singles = old.singles;
        recovery.inquiries = Inquiries::with_places(old.inquiries.places());
    }

    /// For how long this node can remember outcomes.
    ///
    /// So that they fill half of what is allowed: at more, a share less than now; at less than a
    /// quarter, a tenth more.
    pub(crate) fn affordable_window_us(&self) -> u64 {
        let Some(recovery) = &self.recovery else { return OUTCOME_WINDOW_US };
        let (len, half) = (recovery.memory.len(), OUTCOMES_MAX / 2);
        let window_us = match len {
            len if len > half => recovery.window_us / len as u64 * half as u64,
            len if len < half / 2 => recovery.window_us + recovery.window_us / 10,
            _ => recovery.window_us,
        };
        window_us.clamp(WINDOW_MIN_US, OUTCOME_WINDOW_US)
    }

    /// Whether so much is remembered that a head begins nothing new (F10).
    pub(crate) fn remembers_too_much(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.memory.is_full())
    }

    /// The node that is done the least far, as the monitors said last.
    pub(crate) fn slowest(&self) -> Option<NodeId> {
        self.recovery.as_ref().and_then(|recovery| recovery.slowest)
    }

    /// Whether something is known here of the transaction.
    pub fn remembers(&self, id: TransactionId) -> bool {
        let is_noted = |recovery: &Recovery| recovery.memory.get(id).is_some();
        self.records.slot(id).is_some() || self.recovery.as_deref().is_some_and(is_noted)
    }

    /// Whether it is known here what became of the transaction. To have promised to an attempt of
    /// it (F2), or to have it in flight undecided, is not that.
    pub fn knows_outcome(&self, id: TransactionId) -> bool {
        let is_decided = |slot| self.records[slot].state.decided_at().is_some();
        let is_over = |recovery: &Recovery| {
            recovery.memory.get(id).is_some_and(|entry| entry.outcome.is_some())
        };
        self.records.slot(id).is_some_and(is_decided)
            || self.recovery.as_deref().is_some_and(is_over)
    }

    /// Whether what began then may have been forgotten here (F11).
    pub fn is_forgotten(&self, begun: Timestamp) -> bool {
        let recovery = self.recovery.as_ref();
        recovery.is_some_and(|recovery| recovery.memory.is_forgotten(begun))
            && self.rules.hold(Rule::F11)
    }

    /// How far all live nodes are (F10), and the highest clock of the cluster (C8).
    pub(crate) fn retain(&mut self, of_all: OutcomeRetention) {
        let clock = self.clock.clock.max(of_all.clock_us);
        self.observe(Timestamp { clock, ..self.clock });
        let Some(recovery) = &mut self.recovery else { return };
        if !std::mem::replace(&mut recovery.has_heard, true) {
            self.clock.clock = recovery.memory.note_again(self.clock.clock);
        }
        recovery.memory.raise_floor(of_all.done_to_us);
        recovery.window_us = of_all.window_us.clamp(WINDOW_MIN_US, OUTCOME_WINDOW_US);
        recovery.slowest = of_all.slowest;
    }

    /// Looks, with each tick, how far this node is; `oldest_us` is when the oldest transaction in
    /// flight began.
    pub(crate) fn review_done(&mut self, oldest_us: Option<u64>) {
        let clock_us = self.clock.clock;
        let Some(recovery) = &mut self.recovery else { return };
        let (elapsed_us, window_us) = (recovery.elapsed_us, recovery.window_us);
        recovery.past.note(elapsed_us, clock_us, window_us);
        let horizon_us = recovery.past.before(elapsed_us, window_us);
        self.be_done(oldest_us, horizon_us);
    }

    /// Looks how far this node is at a tick for which the clock was `horizon_us` the window ago,
    /// and forgets up to the floor: for a search over all orders of events, in which no time
    /// passes.
    #[cfg(feature = "broken-rules")]
    pub fn done_since(&mut self, horizon_us: u64) -> u64 {
        let oldest_us = self.records.iter().map(|(_, record)| record.begun.clock).min();
        self.be_done(oldest_us, horizon_us);
        self.done_to_us()
    }

    /// This node is done with what began before the oldest in flight, but not later than the
    /// window ago.
    fn be_done(&mut self, oldest_us: Option<u64>, horizon_us: u64) {
        let is_waiting_for_all = self.rules.hold(Rule::F10);
        let Some(recovery) = &mut self.recovery else { return };
        let oldest_us = recovery.inquiries.oldest_us().into_iter().chain(oldest_us).min();
        let done_to_us = oldest_us.map_or(horizon_us, |it| it.saturating_sub(1).min(horizon_us));
        // What was done once stays so; what comes late was begun by somebody who is not done.
        recovery.done_to_us = recovery.done_to_us.max(done_to_us).max(recovery.memory.floor());
        debug_assert!(recovery.done_to_us >= recovery.memory.floor(), "F10: all are done so far");
        if !is_waiting_for_all {
            recovery.memory.raise_floor(horizon_us);
        }
        recovery.memory.let_go(LET_GO_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clock_was_is_known_after_the_window() {
        let mut past = Past::default();
        for second in 0..100_u64 {
            past.note(second * 1_000_000, 7_000_000 + second, 60_000_000);
            let known = past.before(second * 1_000_000, 60_000_000);
            let expected = second.checked_sub(60).map_or(0, |second| 7_000_000 + second);
            assert_eq!(known, expected, "after {second} s");
        }
        assert!(past.noted.len() <= 62, "{}", past.noted.len());
    }

    #[test]
    fn a_clock_that_jumps_shortens_no_window() {
        let mut past = Past::default();
        past.note(0, 10, 60_000_000);
        past.note(1_000_000, 10 + 3_600_000_000, 60_000_000);
        assert_eq!(past.before(59_000_000, 60_000_000), 0);
        past.note(60_000_000, 20 + 3_600_000_000, 60_000_000);
        assert_eq!(past.before(60_000_000, 60_000_000), 10);
    }
}
