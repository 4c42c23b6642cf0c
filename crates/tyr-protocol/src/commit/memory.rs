//! What this node remembers of transactions that it has finished with, or never saw.
//!
//! Outcomes, so that a retry takes effect once and an abort that was answered stays one (F4), and
//! fences, so that a late message of an older attempt does nothing (F2). Each entry is kept for
//! [`OUTCOME_WINDOW_US`] of a clock that does not jump; longer than anyone asks, since who holds
//! something undecided asks every second or so, or is declared down within a few. The hybrid clock
//! would not do: one node whose day is wrong moves it on by hours at all others.
//!
//! Bounded by [`OUTCOMES_MAX`]. When there are more the oldest go before their time. Attempts that
//! began before what is gone was noted are refused from then on.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_types::{Timestamp, TransactionId};

use super::event::{Attempt, Decision};
use super::outcomes::Outcomes;
use crate::chain::Ends;
use crate::window::Window;

/// For how long outcomes are remembered, in microseconds.
pub const OUTCOME_WINDOW_US: u64 = 60_000_000;

/// The most outcomes and fences remembered, of some hundred bytes each.
pub const OUTCOMES_MAX: usize = 1 << 20;

/// What is remembered of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The newest attempt promised to.
    pub attempt: Attempt,
    /// The attempt that had come by when it was finished with here.
    pub finished_in: Option<Attempt>,
    /// Where its blobs were taken to end in the chain that it was finished over.
    pub ends: Ends,
    /// What became of it, if that is known, and what the nodes from here to the tail answered.
    pub outcome: Option<(Decision, Outcomes)>,
    /// What its operations answered at this node.
    pub answers: Outcomes,
    /// The clock when it was last noted.
    noted: u64,
}

/// What became of a transaction, as one node tells it another that was not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// The transaction.
    pub id: TransactionId,
    /// The newest attempt promised to.
    pub attempt: Attempt,
    /// Where its blobs were taken to end in the chain that it was finished over.
    pub ends: Ends,
    /// What became of it.
    pub decision: Decision,
    /// What its operations answered, as far as is known.
    pub outcomes: Outcomes,
}

/// What is remembered of a transaction, or promised about it, as a node keeps it for itself when
/// its log is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The transaction.
    pub id: TransactionId,
    /// The clock when it was last noted.
    pub noted: u64,
    /// The newest attempt promised to.
    pub attempt: Attempt,
    /// The attempt that had come by when it was finished with.
    pub finished_in: Option<Attempt>,
    /// Where its blobs were taken to end in the chain that it was finished over.
    pub ends: Ends,
    /// What became of it, if that is known, and its answers.
    pub outcome: Option<(Decision, Outcomes)>,
    /// What its operations answered at this node.
    pub answers: Outcomes,
}

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// In boxes, so that a table that grows moves little.
    entries: HashMap<TransactionId, Box<Entry>, FixedState>,
    /// By the clock when they were noted, ascending; one noted again since is passed over.
    order: Window<(u64, TransactionId)>,
    /// Attempts that began at or before this clock may be forgotten.
    floor: u64,
}

impl Memory {
    /// What is remembered of `id`.
    pub fn get(&self, id: TransactionId) -> Option<&Entry> {
        self.entries.get(&id).map(|entry| &**entry)
    }

    /// All that is remembered, in no order that may matter.
    #[cfg(feature = "broken-rules")]
    pub fn iter(&self) -> impl Iterator<Item = (&TransactionId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (id, &**entry))
    }

    /// Whether what began then may have been forgotten, so that knowing nothing means nothing.
    pub fn is_forgotten(&self, begun: Timestamp) -> bool {
        begun.clock <= self.floor
    }

    /// Promises to take part in no attempt older than `attempt`.
    pub fn fence(&mut self, id: TransactionId, attempt: Attempt, clock: Timestamp) {
        let noted = clock.clock;
        let entry = self.entries.entry(id).or_insert_with(|| {
            let (finished_in, ends, outcome) = (None, Ends::new(), None);
            Box::new(Entry { attempt, finished_in, ends, outcome, answers: Outcomes::new(), noted })
        });
        entry.attempt = entry.attempt.max(attempt);
        entry.noted = noted;
        self.order.push((noted, id));
        self.let_go();
    }

    /// Notes what became of a transaction; a decision that is known stays.
    pub fn note(
        &mut self,
        id: TransactionId,
        attempt: Attempt,
        outcome: (Decision, Outcomes),
        clock: Timestamp,
    ) {
        self.fence(id, attempt, clock);
        if let Some(entry) = self.entries.get_mut(&id) {
            match &entry.outcome {
                None => entry.outcome = Some(outcome),
                Some((decision, _)) => {
                    let is_same = match (decision, &outcome.0) {
                        (Decision::Commit(at), Decision::Commit(other)) => at == other,
                        (Decision::Abort(_), Decision::Abort(_)) => true,
                        (Decision::Commit(_), Decision::Abort(_))
                        | (Decision::Abort(_), Decision::Commit(_)) => false,
                    };
                    let other = &outcome.0;
                    assert!(is_same, "{id:?} has one decision, not {decision:?} and {other:?}");
                }
            }
        }
    }

    /// It is finished with here, after this attempt has come by over a chain made with these
    /// guesses: the same again says nothing new. Its operations answered this here, or, in an
    /// attempt that did not apply it, nothing.
    pub fn finish(
        &mut self,
        id: TransactionId,
        entered_in: Attempt,
        ends: Ends,
        answers: Outcomes,
    ) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.finished_in = Some(entered_in);
            entry.ends = ends;
            if !answers.is_empty() {
                entry.answers = answers;
            }
        }
    }

    /// Its operations answered this here.
    pub fn answered(&mut self, id: TransactionId, answers: Outcomes) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.answers = answers;
        }
    }

    /// A page of what became of transactions, of those noted after the clock `after`: at least
    /// `limit` while there are more. Also the clock after which the next page begins.
    ///
    /// What is older than the window by the clock `now` is nobody else's any more: who asks again
    /// for a transaction that began before is refused. Else outcomes would live for ever that nodes
    /// which come and go tell each other.
    pub fn page(&self, after: u64, limit: usize, now: u64) -> (Vec<Remembered>, Option<u64>) {
        let horizon = now.saturating_sub(OUTCOME_WINDOW_US);
        self.page_of(after, limit, |id, Entry { attempt, ends, outcome, noted, .. }| {
            let (decision, outcomes) = outcome.clone()?;
            let since = match decision {
                Decision::Commit(at) => at.clock,
                Decision::Abort(_) => *noted,
            };
            let (attempt, ends) = (*attempt, ends.clone());
            (since > horizon).then_some(Remembered { id, attempt, ends, decision, outcomes })
        })
    }

    /// A page of all that is kept, fences too, in the same way. What is noted anew while pages are
    /// taken is on a later one.
    pub fn kept(&self, after: u64, limit: usize) -> (Vec<Kept>, Option<u64>) {
        self.page_of(after, limit, |id, entry| {
            let Entry { attempt, finished_in, ends, outcome, answers, noted } = entry.clone();
            Some(Kept { id, noted, attempt, finished_in, ends, outcome, answers })
        })
    }

    fn page_of<T>(
        &self,
        after: u64,
        limit: usize,
        as_item: impl Fn(TransactionId, &Entry) -> Option<T>,
    ) -> (Vec<T>, Option<u64>) {
        let mut page = Vec::new();
        let mut last = after;
        for (noted, id) in self.order.from(|(noted, _)| *noted <= after) {
            if page.len() >= limit && *noted > last {
                return (page, Some(last));
            }
            last = *noted;
            let entry = self.entries.get(id).filter(|entry| entry.noted == *noted);
            page.extend(entry.and_then(|entry| as_item(*id, entry)));
        }
        (page, None)
    }

    /// Takes in what was kept, in the order of the pages, before anything else is noted.
    pub fn keep(&mut self, kept: Kept) {
        let Kept { id, noted, attempt, finished_in, ends, outcome, answers } = kept;
        let entry = Entry { attempt, finished_in, ends, outcome, answers, noted };
        self.entries.insert(id, Box::new(entry));
        self.order.push((noted, id));
        self.let_go();
    }

    /// Attempts that began at or before this clock may be forgotten.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// What began at or before this clock was forgotten before.
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Notes what another node remembers. Each knows its own answers, and some of others'.
    pub fn recall(&mut self, remembered: Remembered, clock: Timestamp) {
        let Remembered { id, attempt, ends, decision, outcomes } = remembered;
        if let Some((_, known)) = self.entries.get_mut(&id).and_then(|it| it.outcome.as_mut()) {
            if outcomes.iter().any(|answered| !known.contains(answered)) {
                known.put(&outcomes);
                self.fence(id, attempt, clock); // Noted anew: it has changed.
            }
            return;
        }
        self.note(id, attempt, (decision, outcomes), clock);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.ends = ends;
        }
    }

    /// The clock that does not jump says so: forgets what is older than the window.
    pub fn expire(&mut self, elapsed_us: u64) {
        self.order.advance(elapsed_us);
        self.let_go();
    }

    fn let_go(&mut self) {
        while let Some((noted, id)) = self.order.pop(OUTCOME_WINDOW_US, OUTCOMES_MAX) {
            if self.entries.get(&id).is_some_and(|entry| entry.noted == noted) {
                self.entries.remove(&id);
                self.floor = self.floor.max(noted);
            }
        }
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        assert!(self.order.len() <= OUTCOMES_MAX + 1, "outcomes are bounded");
        assert!(self.entries.len() <= self.order.len(), "every entry has its turn to go");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    fn committed(clock: u64) -> (Decision, Outcomes) {
        (Decision::Commit(at(clock)), Outcomes::new())
    }

    /// F4.
    #[test]
    fn an_outcome_is_remembered_for_the_window_and_no_longer() {
        let (mut memory, id) = (Memory::default(), TransactionId(1));
        let start = 1_000_000_000;
        memory.expire(1);
        memory.note(id, Attempt::default(), committed(start), at(start));
        memory.expire(OUTCOME_WINDOW_US);
        assert!(memory.get(id).is_some_and(|entry| entry.outcome.is_some()));
        memory.expire(1 + OUTCOME_WINDOW_US);
        assert!(memory.get(id).is_none());
        assert!(memory.is_forgotten(at(start)), "who began then may have been forgotten");
        assert!(!memory.is_forgotten(at(start + 1)));
    }

    /// F4.
    #[test]
    fn what_one_remembers_another_can_recall_page_by_page() {
        let (mut old, mut new) = (Memory::default(), Memory::default());
        for id in 0..10 {
            old.note(TransactionId(id), Attempt::default(), committed(1 + id as u64 / 3), at(100));
        }
        for id in 0..10 {
            old.fence(TransactionId(100 + id), Attempt::default(), at(101 + id as u64));
            old.note(
                TransactionId(200 + id),
                Attempt::default(),
                committed(7),
                at(101 + id as u64),
            );
        }
        let (mut after, mut pages) = (Some(0), 0);
        while let Some(from) = after {
            let (page, next) = old.page(from, 2, 120);
            page.into_iter().for_each(|remembered| new.recall(remembered, at(500)));
            (after, pages) = (next, pages + 1);
        }
        assert!(pages > 3, "{pages}");
        for id in (0..10).chain(200..210) {
            let [old, new] = [&old, &new].map(|memory| memory.get(TransactionId(id)).unwrap());
            assert_eq!(old.outcome, new.outcome);
        }
        assert!(new.get(TransactionId(100)).is_none(), "a fence alone is nobody else's");
    }

    /// F4.
    #[test]
    fn what_nodes_tell_each_other_again_and_again_does_not_live_for_ever() {
        let (mut old, mut new) = (Memory::default(), Memory::default());
        let [early, late] = [1, 1 + OUTCOME_WINDOW_US];
        old.note(TransactionId(1), Attempt::default(), committed(early), at(early));
        old.note(TransactionId(2), Attempt::default(), committed(late), at(late));
        let (page, _) = old.page(0, 10, late);
        assert_eq!(page.iter().map(|it| it.id.0).collect::<Vec<_>>(), [2]);
        page[..].iter().for_each(|it| new.recall(it.clone(), at(late)));
        let noted = new.get(TransactionId(2)).unwrap().noted;
        page.into_iter().for_each(|it| new.recall(it, at(late + 5)));
        assert_eq!(new.get(TransactionId(2)).unwrap().noted, noted, "it says nothing new");
    }

    /// F2.
    #[test]
    fn a_fence_only_rises_and_stays_when_the_outcome_comes() {
        let (mut memory, id) = (Memory::default(), TransactionId(1));
        let attempt = |number| Attempt { number, ..Attempt::default() };
        memory.fence(id, attempt(3), at(10));
        memory.fence(id, attempt(2), at(11));
        memory.note(id, attempt(1), committed(5), at(12));
        assert_eq!(memory.get(id).unwrap().attempt, attempt(3));
    }

    #[test]
    #[should_panic(expected = "has one decision")]
    fn two_decisions_for_one_transaction_are_not_taken() {
        let (mut memory, id) = (Memory::default(), TransactionId(1));
        memory.note(id, Attempt::default(), committed(1), at(1));
        let abort = crate::Abort::new(tyr_types::ErrorKind::Conflict, "it changed");
        memory.note(id, Attempt::default(), (Decision::Abort(abort), Outcomes::new()), at(2));
    }

    #[test]
    fn too_many_outcomes_push_out_the_oldest_and_say_so() {
        let mut memory = Memory::default();
        for id in 0..OUTCOMES_MAX as u64 + 5 {
            memory.fence(TransactionId(id.into()), Attempt::default(), at(1_000_000_000 + id));
        }
        memory.invariants();
        assert!(memory.get(TransactionId(0)).is_none());
        assert!(memory.is_forgotten(at(1_000_000_000 + 2)));
        assert!(memory.entries.len() <= OUTCOMES_MAX);
    }
}
