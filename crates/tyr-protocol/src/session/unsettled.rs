//! The transactions of a session whose outcome its user may still ask for.
//!
//! Nodes remember outcomes for a while, so that a commit sent twice takes effect once. What this
//! client will never ask for again they may forget: everything below [`Unsettled::settled`].

use std::collections::BTreeMap;

use super::event::CallId;
use super::numbers::Numbers;

/// How long an unknown outcome may be asked for: as long as the nodes remember it.
pub const REMEMBERED_US: u64 = 60_000_000;

/// The most unknown outcomes that may be asked for; beyond it the oldest is given up.
pub const UNKNOWN_MAX: usize = 4096;

const _: () = assert!(REMEMBERED_US == crate::commit::OUTCOME_WINDOW_US, "as long as nodes do");

/// A transaction that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The cluster's clock when it was first submitted; `None` when it was not yet.
    pub begun_us: Option<u64>,
    /// The call that waits for it; `None` when its outcome is unknown.
    pub call: Option<CallId>,
    /// Until when an unknown outcome may be asked for.
    until_us: u64,
}

/// Transactions not answered, by sequence. Bounded by the calls in flight and [`UNKNOWN_MAX`].
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    /// How many there were, and one more.
    next: u64,
    entries: BTreeMap<u64, Entry>,
    unknown: usize,
}

impl Unsettled {
    pub fn new() -> Self {
        Self { next: 1, entries: BTreeMap::new(), unknown: 0 }
    }

    /// The sequence of a new transaction.
    pub fn open(&mut self, call: CallId, numbers: Numbers) -> u64 {
        let sequence = numbers.of(self.next);
        self.next += 1;
        let entry = Entry { begun_us: None, call: Some(call), until_us: 0 };
        let before = self.entries.insert(sequence, entry);
        assert!(before.is_none(), "F4: two transactions of one id are taken for one: {sequence}");
        debug_assert!(self.settled() <= sequence, "F4: its outcome may not be forgotten");
        sequence
    }

    /// A transaction that is not answered.
    pub fn entry(&mut self, sequence: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&sequence)
    }

    /// The transaction is answered for good.
    pub fn close(&mut self, sequence: u64) {
        if let Some(entry) = self.entries.remove(&sequence) {
            self.unknown -= usize::from(entry.call.is_none());
        }
    }

    /// Nobody waits for the transaction any more, and its outcome is unknown.
    pub fn leave(&mut self, sequence: u64, now_us: u64) {
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        if entry.call.take().is_some() {
            self.unknown += 1;
        }
        entry.until_us = now_us + REMEMBERED_US;
        if self.unknown > UNKNOWN_MAX {
            let mut unknown = self.entries.iter().filter(|(_, entry)| entry.call.is_none());
            let oldest = unknown.next().map(|(sequence, _)| *sequence);
            oldest.into_iter().for_each(|sequence| self.close(sequence));
        }
        debug_assert!(self.unknown <= UNKNOWN_MAX, "unknown outcomes are bounded");
    }

    /// A call asks for an unknown outcome; `false` when it is not known to be one.
    pub fn ask(&mut self, sequence: u64, call: CallId) -> bool {
        match self.entries.get_mut(&sequence) {
            Some(entry) if entry.call.is_none() => {
                debug_assert!(self.unknown > 0, "unknown outcomes are counted");
                entry.call = Some(call);
                self.unknown -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// All sequences below this are answered, or too old to be asked for.
    pub fn settled(&self) -> u64 {
        self.entries.first_key_value().map_or(Numbers::least(self.next), |(sequence, _)| *sequence)
    }

    /// Gives up what the nodes do not remember any more.
    pub fn expire(&mut self, now_us: u64) {
        if self.unknown > 0 {
            self.entries.retain(|_, entry| entry.call.is_some() || entry.until_us > now_us);
            self.unknown = self.entries.values().filter(|entry| entry.call.is_none()).count();
        }
    }

    /// The calls that wait for a transaction.
    pub fn calls(&self) -> impl Iterator<Item = (u64, CallId)> + '_ {
        self.entries.iter().filter_map(|(sequence, entry)| Some((*sequence, entry.call?)))
    }

    /// The calls whose transaction was not sent yet.
    pub fn undated(&self) -> impl Iterator<Item = CallId> + '_ {
        let undated = self.entries.values().filter(|entry| entry.begun_us.is_none());
        undated.filter_map(|entry| entry.call)
    }

    pub fn invariants(&self) {
        let unknown = self.entries.values().filter(|entry| entry.call.is_none()).count();
        assert_eq!(unknown, self.unknown, "unknown outcomes are counted");
        assert!(self.unknown <= UNKNOWN_MAX, "unknown outcomes are bounded");
        assert!(self.settled() <= Numbers::least(self.next), "what is not begun is not settled");
        let last = self.entries.last_key_value().map_or(0, |(sequence, _)| *sequence);
        assert!(
            last < Numbers::least(self.next),
            "F4: two transactions of one id would be taken for one"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallId = CallId(9);

    #[test]
    fn everything_below_the_first_that_is_not_answered_is_settled() {
        let mut unsettled = Unsettled::new();
        let [first, second, third] = [(); 3].map(|()| unsettled.open(CALL, Numbers::new(7)));
        unsettled.close(second);
        assert_eq!(unsettled.settled(), first);
        unsettled.close(first);
        assert_eq!(unsettled.settled(), third);
        unsettled.close(third);
        assert_eq!(unsettled.settled(), Numbers::least(4));
        unsettled.invariants();
    }

    #[test]
    fn an_unknown_outcome_is_not_settled_until_the_nodes_forget_it() {
        let mut unsettled = Unsettled::new();
        let sequence = unsettled.open(CALL, Numbers::new(7));
        assert!(!unsettled.ask(sequence, CALL), "a call waits for it");
        unsettled.leave(sequence, 100);
        unsettled.expire(99 + REMEMBERED_US);
        assert_eq!(unsettled.settled(), sequence);
        assert!(unsettled.ask(sequence, CALL));
        unsettled.leave(sequence, 100);
        unsettled.expire(100 + REMEMBERED_US);
        assert_eq!(unsettled.settled(), Numbers::least(2));
        assert!(!unsettled.ask(sequence, CALL));
        unsettled.invariants();
    }

    #[test]
    fn of_too_many_unknown_outcomes_the_oldest_is_given_up() {
        let mut unsettled = Unsettled::new();
        let numbers = Numbers::new(7);
        for _ in 0..=UNKNOWN_MAX {
            let sequence = unsettled.open(CALL, Numbers::new(7));
            unsettled.leave(sequence, 0);
            unsettled.invariants();
        }
        assert!(!unsettled.ask(numbers.of(1), CALL) && unsettled.ask(numbers.of(2), CALL));
    }
}
