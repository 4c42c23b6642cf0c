//! What this node remembers of transactions that it has finished with, or never saw.
//!
//! Outcomes, so that a retry takes effect once and an abort that was answered stays one (F4), and
//! fences, so that a late message of an older attempt does nothing (F2).
//!
//! An entry stays until the *floor* has passed the clock at which it was noted (F10). The floor is
//! told to all nodes alike: every live node is done with every transaction that began at or below
//! it, and at least [`OUTCOME_WINDOW_US`] have passed since. What began at or below the floor and
//! is not known here was forgotten, or never was: nobody can tell, and it is not taken in (F11).
//!
//! So what is remembered is bounded by the slowest node. At [`OUTCOMES_MAX`] a head takes in
//! nothing new; it does not forget.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{KeyspaceId, Timestamp, TransactionId};

use super::event::{Attempt, Decision};
use super::outcomes::Outcomes;
use crate::chain::Ends;
use crate::queue::Queue;

/// For how long outcomes are remembered at least, in microseconds of a clock that does not jump;
/// less where there are too many of them, by [`super::OutcomeRetention`].
pub const OUTCOME_WINDOW_US: u64 = 60_000_000;

/// With as many outcomes and fences, of some hundred bytes each, a head takes in nothing new.
pub const OUTCOMES_MAX: usize = 1 << 20;

/// Entries that are noted in one microsecond when all are noted again.
const NOTED_AT_ONCE: usize = 256;

/// Entries that go at a time, so that no step takes long.
const LET_GO_MAX: usize = 4;

const _: () = {
    assert!(NOTED_AT_ONCE > 0, "to note again comes to an end");
    assert!(LET_GO_MAX > 1, "each that is noted lets more go than comes: so what is old goes");
};

/// Keyspaces of one replica; mostly none.
pub type Singles = SmallVec<[KeyspaceId; 2]>;

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
    /// Whether every live node of its chain is known to have the abort durably, or its head alone
    /// answered it before any other attempt (F9): who asks again may be told at once.
    pub is_closed: bool,
    /// The keyspaces of which its chain had chunks that only this node has: nobody else may know.
    pub singles: Singles,
    /// The cluster's clock when its client first submitted it; 0 where that is not known any more.
    pub begun_us: u64,
    /// The clock when it was last noted.
    noted: u64,
}

impl Entry {
    /// Whether this node was only told that it is committed (F4): nodes of its chain may not have
    /// heard so, and would not once those who have are lost.
    pub fn is_hearsay(&self) -> bool {
        let is_commit = matches!(self.outcome, Some((Decision::Commit(_), _)));
        is_commit && self.finished_in.is_none()
    }

    /// The first of these floors, ascending, with which it goes, by its place.
    #[cfg(feature = "broken-rules")]
    pub fn goes_with(&self, floors: &[u64]) -> usize {
        floors.partition_point(|floor| *floor < self.noted)
    }
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

/// The same, with what of it nobody else may know.
#[derive(Clone, Debug, PartialEq)]
pub struct Marked {
    /// What is remembered.
    pub kept: Kept,
    /// The keyspaces of which its chain had chunks that only this node has.
    pub singles: Singles,
}

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// In boxes, so that a table that grows moves little.
    entries: HashMap<TransactionId, Box<Entry>, FixedState>,
    /// By the clock when they were noted, ascending; one noted again since is passed over.
    order: Queue<(u64, TransactionId)>,
    /// The highest clock at which something was noted.
    noted_to: u64,
    /// Transactions that began at or before this clock may be forgotten; 0 before there is one.
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

    /// Whether there are so many that nothing new is to be begun.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= OUTCOMES_MAX
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether what began then may have been forgotten, so that knowing nothing means nothing.
    pub fn is_forgotten(&self, begun: Timestamp) -> bool {
        self.floor > 0 && begun.clock <= self.floor
    }

    /// Promises to take part in no attempt older than `attempt`.
    pub fn fence(&mut self, id: TransactionId, attempt: Attempt, clock: Timestamp) {
        // A timestamp of a newer epoch may have a lower clock, and a log that is read again shows
        // no other. Pages and what goes next are found by the order of these.
        let noted = clock.clock.max(self.noted_to);
        self.noted_to = noted;
        let entry = self.entries.entry(id).or_insert_with(|| {
            let (finished_in, ends, outcome) = (None, Ends::new(), None);
            let (answers, is_closed, singles, begun_us) =
                (Outcomes::new(), false, Singles::new(), 0);
            Box::new(Entry {
                attempt,
                finished_in,
                ends,
                outcome,
                answers,
                is_closed,
                singles,
                begun_us,
                noted,
            })
        });
        entry.attempt = entry.attempt.max(attempt);
        debug_assert!(entry.noted <= noted, "F10: nothing is forgotten the sooner for a promise");
        entry.noted = noted;
        self.order.push((noted, id));
        self.let_go(LET_GO_MAX);
    }

    /// The client may be told of this abort at once when it asks again.
    pub fn close(&mut self, id: TransactionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_closed = true;
        }
    }

    /// Its chain had chunks of these keyspaces that only this node has.
    pub fn mark_single(&mut self, id: TransactionId, singles: impl Iterator<Item = KeyspaceId>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        for keyspace in singles {
            if !entry.singles.contains(&keyspace) {
                entry.singles.push(keyspace);
            }
        }
    }

    /// Notes what became of a transaction; a decision that is known stays. That nobody could tell
    /// is none: it gives way to one, and takes no one's place (F11).
    pub fn note(
        &mut self,
        id: TransactionId,
        attempt: Attempt,
        outcome: (Decision, Outcomes),
        clock: Timestamp,
    ) {
        self.fence(id, attempt, clock);
        if let Some(entry) = self.entries.get_mut(&id) {
            match &mut entry.outcome {
                None => entry.outcome = Some(outcome),
                Some((decision, _)) if decision.is_given_up() => entry.outcome = Some(outcome),
                Some(_) if outcome.0.is_given_up() => {}
                Some((decision, known)) => {
                    let is_same = match (&*decision, &outcome.0) {
                        (Decision::Commit(at), Decision::Commit(other)) => at == other,
                        (Decision::Abort(_), Decision::Abort(_)) => true,
                        (Decision::Commit(_), Decision::Abort(_))
                        | (Decision::Abort(_), Decision::Commit(_)) => false,
                    };
                    let other = &outcome.0;
                    assert!(is_same, "{id:?} has one decision, not {decision:?} and {other:?}");
                    // It may have been heard of before it was answered.
                    known.put(&outcome.1);
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
        begun: Timestamp,
        ends: Ends,
        answers: Outcomes,
    ) {
        if let Some(entry) = self.entries.get_mut(&id) {
            debug_assert!(entry.outcome.is_some(), "F4: what is finished with has an outcome");
            entry.finished_in = Some(entered_in);
            entry.begun_us = begun.clock;
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
    /// What is not above the floor is nobody else's any more: everyone is done with it. Else
    /// outcomes would live for ever that nodes which come and go tell each other.
    pub fn page(&self, after: u64, limit: usize) -> (Vec<Remembered>, Option<u64>) {
        let horizon = self.floor;
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
    pub fn kept(&self, after: u64, limit: usize) -> (Vec<Marked>, Option<u64>) {
        self.page_of(after, limit, |id, entry| {
            let Entry { attempt, finished_in, ends, outcome, answers, noted, singles, .. } =
                entry.clone();
            let kept = Kept { id, noted, attempt, finished_in, ends, outcome, answers };
            Some(Marked { kept, singles })
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
            debug_assert!(*noted >= last, "F4: what is out of order is on no page: {noted}");
            if page.len() >= limit && *noted > last {
                debug_assert!(last > after, "a page goes on, or the next is the same");
                return (page, Some(last));
            }
            last = *noted;
            let entry = self.entries.get(id).filter(|entry| entry.noted == *noted);
            page.extend(entry.and_then(|entry| as_item(*id, entry)));
        }
        (page, None)
    }

    /// Takes in what was kept, in the order of the pages, before anything else is noted.
    pub fn keep(&mut self, Marked { kept, singles }: Marked) {
        let Kept { id, noted, attempt, finished_in, ends, outcome, answers } = kept;
        let is_closed = false;
        let begun_us = 0;
        let entry = Entry {
            attempt,
            finished_in,
            ends,
            outcome,
            answers,
            is_closed,
            singles,
            begun_us,
            noted,
        };
        self.noted_to = self.noted_to.max(noted);
        self.entries.insert(id, Box::new(entry));
        self.order.push((noted, id));
    }

    /// Notes everything again, at `clock` and a little above: at most [`NOTED_AT_ONCE`] in one
    /// microsecond, so that pages of them stay short. The highest clock that was used.
    ///
    /// What is read from a log again is noted by the clock that the log had come to, which may be
    /// below that at which a transaction began: it would be forgotten with those before it.
    pub fn note_again(&mut self, clock: u64) -> u64 {
        let mut noted_at = clock;
        for (number, (noted, id)) in std::mem::take(&mut self.order).into_items().enumerate() {
            let Some(entry) = self.entries.get_mut(&id).filter(|it| it.noted == noted) else {
                continue;
            };
            noted_at = noted_at.max(noted).max(clock + (number / NOTED_AT_ONCE) as u64);
            debug_assert!(entry.noted <= noted_at, "F10: nothing is forgotten the sooner for it");
            entry.noted = noted_at;
            self.order.push((noted_at, id));
        }
        self.noted_to = self.noted_to.max(noted_at);
        noted_at
    }

    /// Transactions that began at or before this clock may be forgotten.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Every live node is done with what began at or before this clock (F10).
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Notes what another node remembers. Each knows its own answers, and some of others'.
    pub fn recall(&mut self, remembered: Remembered, clock: Timestamp) {
        let Remembered { id, attempt, ends, decision, outcomes } = remembered;
        let known = self.entries.get_mut(&id).and_then(|it| it.outcome.as_mut());
        let is_better = |known: &Decision| known.is_given_up() && !decision.is_given_up();
        if let Some((_, known)) = known.filter(|(known, _)| !is_better(known)) {
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

    /// Forgets what was noted at or below the floor, oldest first, at most `count_max` entries.
    pub fn let_go(&mut self, count_max: usize) {
        let floor = self.floor;
        if floor == 0 {
            return;
        }
        for _ in 0..count_max {
            let Some((noted, id)) = self.order.pop_if(|(noted, _)| *noted <= floor) else { return };
            if self.entries.get(&id).is_some_and(|entry| entry.noted == noted) {
                self.entries.remove(&id);
            }
        }
        debug_assert!(self.entries.len() <= self.order.len(), "every entry has its turn to go");
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        assert!(self.entries.len() <= self.order.len(), "every entry has its turn to go");
        let (mut last, mut in_turn) = (0, 0);
        for (noted, id) in self.order.from(|_| false) {
            assert!(*noted >= last, "F10: the oldest goes first: {id:?} at {noted} after {last}");
            last = *noted;
            in_turn += usize::from(self.entries.get(id).is_some_and(|it| it.noted == *noted));
        }
        assert!(in_turn >= self.entries.len(), "F10: what has no turn is remembered for ever");
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

    /// F10, F11.
    #[test]
    fn an_outcome_is_remembered_until_everyone_is_done_and_no_longer() {
        let (mut memory, id) = (Memory::default(), TransactionId(1));
        memory.note(id, Attempt::default(), committed(900), at(1000));
        memory.raise_floor(999);
        memory.let_go(10);
        assert!(memory.get(id).is_some_and(|entry| entry.outcome.is_some()));
        memory.raise_floor(1000);
        memory.let_go(10);
        assert!(memory.get(id).is_none());
        assert!(memory.is_forgotten(at(1000)), "who began then may have been forgotten");
        assert!(!memory.is_forgotten(at(1001)));
    }

    /// F10.
    #[test]
    fn what_was_noted_anew_stays_as_long_as_if_it_were_new() {
        let (mut memory, id) = (Memory::default(), TransactionId(1));
        memory.fence(id, Attempt::default(), at(1000));
        memory.fence(id, Attempt::default(), at(2000));
        memory.raise_floor(1500);
        memory.let_go(10);
        assert!(memory.get(id).is_some());
        memory.invariants();
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
            let (page, next) = old.page(from, 2);
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
        let [early, late] = [1, 1000];
        old.note(TransactionId(1), Attempt::default(), committed(early), at(early));
        old.note(TransactionId(2), Attempt::default(), committed(late), at(late));
        old.raise_floor(early);
        let (page, _) = old.page(0, 10);
        assert_eq!(page.iter().map(|it| it.id.0).collect::<Vec<_>>(), [2]);
        page[..].iter().for_each(|it| new.recall(it.clone(), at(late)));
        let noted = new.get(TransactionId(2)).unwrap().noted;
        page.into_iter().for_each(|it| new.recall(it, at(late + 5)));
        assert_eq!(new.get(TransactionId(2)).unwrap().noted, noted, "it says nothing new");
    }

    /// F10.
    #[test]
    fn what_a_log_told_is_remembered_as_long_as_what_was_promised_now() {
        let mut memory = Memory::default();
        for id in 0..1_000 {
            memory.fence(TransactionId(id), Attempt::default(), at(10 + id as u64 / 700));
        }
        memory.fence(TransactionId(0), Attempt::default(), at(12));
        let last = memory.note_again(5_000);
        assert_eq!(last, 5_003, "a thousand, 256 in a microsecond");
        memory.fence(TransactionId(1_000), Attempt::default(), at(last));
        memory.raise_floor(4_999);
        memory.let_go(2_000);
        assert_eq!(memory.len(), 1_001);
        let (page, next) = memory.kept(0, 10);
        assert!(page.len() <= NOTED_AT_ONCE && next == Some(5_000), "{} {next:?}", page.len());
        memory.raise_floor(last);
        memory.let_go(2_000);
        assert_eq!(memory.len(), 0);
        memory.invariants();
    }

    /// L1: a log that is read again may show a newer epoch at a lower clock.
    #[test]
    fn pages_have_all_though_the_clock_that_a_log_tells_goes_back() {
        let mut memory = Memory::default();
        let ids = || (0..3_000).map(TransactionId);
        for id in ids() {
            memory.fence(id, Attempt::default(), at(if id.0 < 2_000 { 95 } else { 90 }));
        }
        memory.invariants();
        memory.fence(TransactionId(3_000), Attempt::default(), at(96));
        let (mut kept, mut from, mut pages) = (Vec::new(), Some(0), 0);
        while let Some(after) = from {
            let (page, next) = memory.kept(after, 1_024);
            kept.extend(page.into_iter().map(|it| it.kept.id));
            (from, pages) = (next, pages + 1);
            assert!(pages < 10, "pages come to an end");
        }
        kept.sort_unstable();
        assert_eq!(kept.len(), 3_001, "each is on one page");
        assert!(ids().all(|id| kept.binary_search(&id).is_ok()));
    }

    /// F11.
    #[test]
    fn that_nobody_could_tell_gives_way_to_what_somebody_can() {
        let abort = crate::Abort::new(tyr_types::ErrorKind::TimedOut, "too long ago to tell");
        let given_up = || (Decision::Abort(abort.clone()), Outcomes::new());
        let (id, attempt) = (TransactionId(1), Attempt::default());
        let told = |(decision, outcomes): (Decision, Outcomes)| {
            let ends = Ends::new();
            Remembered { id, attempt, ends, decision, outcomes }
        };
        for outcomes in [[committed(5), given_up()], [given_up(), committed(5)]] {
            let (mut noted, mut recalled) = (Memory::default(), Memory::default());
            for outcome in outcomes {
                noted.note(id, attempt, outcome.clone(), at(10));
                recalled.recall(told(outcome), at(10));
            }
            for memory in [noted, recalled] {
                assert_eq!(memory.get(id).unwrap().outcome, Some(committed(5)));
            }
        }
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

    /// F10.
    #[test]
    fn too_many_outcomes_are_said_and_none_is_pushed_out() {
        let mut memory = Memory::default();
        for id in 0..OUTCOMES_MAX as u64 {
            assert!(!memory.is_full());
            memory.fence(TransactionId(id.into()), Attempt::default(), at(1_000_000_000 + id));
        }
        memory.invariants();
        assert!(memory.is_full());
        assert!(memory.get(TransactionId(0)).is_some());
        assert!(!memory.is_forgotten(at(1_000_000_000)));
    }
}
