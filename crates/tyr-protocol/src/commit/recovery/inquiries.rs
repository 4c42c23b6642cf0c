//! The ballots of a node: those that are asked, and those that wait for their turn.
//!
//! One event can raise a question about everything in flight: a new map does, and so does a pause
//! in which nothing got further. Were all of it asked in one step, this node would answer nothing
//! else meanwhile, and all others would get as many messages at once. So a few are asked at a time,
//! and the rest is put off: the oldest transaction is asked about when one of the few has ended.
//!
//! ```text
//!   has a place? ─ yes ─► Placed ──────────────► (ended)
//!        │                  │ no end in half a second
//!        └ no ─► PutOff     └► Overdue ────────► (ended)
//!                  └ when a place is free ─► Placed
//! ```
//!
//! A ballot cannot end while one who is asked is gone and nobody has declared it down. It goes on,
//! but it loses its place, so that nobody else waits for it.
//!
//! What is put off is in flight like what is asked about: what waits for it goes on waiting, and
//! this node is not done with it (F10).

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{Timestamp, TransactionId};

use super::inquiry::Inquiry;
use crate::commit::record::{State, Subject, look};
use crate::commit::{Attempt, Commit, Decision, Effect};
use crate::rule::Rule;
use crate::view::View;

/// Ballots that a node asks about at a time.
///
/// A node keeps [1,024](crate::member::HELD_MAX) messages of a map that it does not have yet, and a
/// ballot sends it one: so four nodes that ask at a time lose none. One sync makes the promises of
/// all 256 durable, which is what a ballot waits for: at 2 ms for that, tens of thousands take less
/// than a second. A step that begins so many takes some milliseconds.
pub const BALLOTS_MAX: usize = 256;

/// How long a ballot has a place, in microseconds.
const PLACE_US: u64 = super::ASK_AFTER_US;

/// Whether a ballot is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Turn {
    /// It waits for a place: nobody was asked yet.
    PutOff,
    /// It is asked, and has a place.
    Placed,
    /// It is asked, and takes long.
    Overdue,
}

/// The ballots of a node, one a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Inquiries {
    all: BTreeMap<TransactionId, Inquiry>,
    /// Those put off, the oldest transaction first.
    put_off: BTreeSet<(Timestamp, TransactionId)>,
    /// The others: so that a tick does not look at those put off, which may be all in flight.
    asked: BTreeSet<TransactionId>,
    /// When the transactions began, by the clock.
    begun: BTreeSet<(u64, TransactionId)>,
    /// How many have a place.
    placed: usize,
    /// How many may.
    places: usize,
}

impl Default for Inquiries {
    fn default() -> Self {
        Self::with_places(BALLOTS_MAX)
    }
}

impl Inquiries {
    /// None yet; at most so many, and one at least, will be asked at a time.
    pub fn with_places(places: usize) -> Self {
        let (all, put_off) = (BTreeMap::new(), BTreeSet::new());
        let (asked, begun) = (BTreeSet::new(), BTreeSet::new());
        Self { all, put_off, asked, begun, placed: 0, places: places.max(1) }
    }

    /// How many are asked at a time.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Whether one more may be asked.
    pub fn has_place(&self) -> bool {
        self.placed < self.places
    }

    /// What one is that is asked now.
    pub fn turn(&self) -> Turn {
        if self.has_place() { Turn::Placed } else { Turn::Overdue }
    }

    /// The oldest that is put off, if it may be asked.
    pub fn next(&self) -> Option<TransactionId> {
        let first = self.put_off.first().filter(|_| self.has_place());
        first.map(|(_, id)| *id)
    }

    /// Takes their places from those that have had them long enough.
    pub fn make_room(&mut self, elapsed_us: u64) {
        for id in &self.asked {
            look();
            let inquiry = self.all.get_mut(id).expect("what is asked is there");
            let is_long = elapsed_us.saturating_sub(inquiry.began_us) >= PLACE_US;
            if inquiry.turn == Turn::Placed && is_long {
                inquiry.turn = Turn::Overdue;
                self.placed -= 1;
            }
        }
        debug_assert!(self.placed <= self.places, "no more have a place than there are");
    }

    pub fn insert(&mut self, id: TransactionId, inquiry: Inquiry) {
        self.remove(id);
        self.begun.insert((inquiry.begun.clock, id));
        if inquiry.turn != Turn::PutOff {
            self.asked.insert(id);
        }
        match inquiry.turn {
            Turn::PutOff => {
                let is_new = self.put_off.insert((inquiry.begun, id));
                debug_assert!(is_new, "a ballot is put off once: {id:?}");
            }
            Turn::Placed => self.placed += 1,
            Turn::Overdue => {}
        }
        debug_assert!(self.placed <= self.places, "no more have a place than there are");
        self.all.insert(id, inquiry);
    }

    pub fn remove(&mut self, id: TransactionId) -> Option<Inquiry> {
        let inquiry = self.all.remove(&id)?;
        self.begun.remove(&(inquiry.begun.clock, id));
        self.asked.remove(&id);
        match inquiry.turn {
            Turn::PutOff => {
                let was_there = self.put_off.remove(&(inquiry.begun, id));
                debug_assert!(was_there, "what is put off is kept in order: {id:?}");
            }
            Turn::Placed => self.placed -= 1,
            Turn::Overdue => {}
        }
        debug_assert!(self.put_off.len() + self.placed <= self.all.len(), "each has one turn");
        Some(inquiry)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn contains(&self, id: TransactionId) -> bool {
        self.all.contains_key(&id)
    }

    pub fn get(&self, id: TransactionId) -> Option<&Inquiry> {
        self.all.get(&id)
    }

    /// To change anything but its turn and when its transaction began.
    pub fn get_mut(&mut self, id: TransactionId) -> Option<&mut Inquiry> {
        self.all.get_mut(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TransactionId, &Inquiry)> {
        self.all.iter()
    }

    /// Those that are not put off.
    pub fn asked(&self) -> impl Iterator<Item = (&TransactionId, &Inquiry)> {
        self.asked.iter().map(|id| (id, &self.all[id])).inspect(|_| look())
    }

    /// When the transaction of the oldest ballot began, by the clock.
    pub fn oldest_us(&self) -> Option<u64> {
        self.begun.first().map(|(clock_us, _)| *clock_us)
    }

    /// Panics unless what must hold holds.
    pub fn invariants(&self) {
        let count = |turn| self.all.values().filter(|it| it.turn == turn).count();
        assert_eq!(count(Turn::Placed), self.placed, "ballots with a place are counted");
        assert!(self.placed <= self.places, "no more have a place than there are");
        assert_eq!(count(Turn::PutOff), self.put_off.len(), "what is put off is kept in order");
        assert_eq!(self.asked.len() + self.put_off.len(), self.all.len(), "each has one turn");
        let is_asked = |id| self.all.get(id).is_some_and(|it: &Inquiry| it.turn != Turn::PutOff);
        assert!(self.asked.iter().all(is_asked), "who is put off is not asked");
        let begun: BTreeSet<_> = self.all.iter().map(|(id, it)| (it.begun.clock, *id)).collect();
        assert_eq!(begun, self.begun, "when each began is kept in order");
        for (begun, id) in &self.put_off {
            let inquiry = &self.all[id];
            assert!(inquiry.begun == *begun && inquiry.turn == Turn::PutOff, "{id:?} is put off");
            let is_asked = !inquiry.waiting.is_empty() || !inquiry.reports.is_empty();
            assert!(!is_asked && inquiry.closing.is_none(), "nobody was asked yet: {id:?}");
        }
    }
}

impl Commit {
    /// Finds out what became of a transaction: now, or when there is a place for it.
    pub(crate) fn inquire(
        &mut self,
        now_us: u64,
        subject: Subject,
        is_question: bool,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &self.recovery else { return };
        let turn = recovery.inquiries.get(subject.transaction.id).map(|inquiry| inquiry.turn);
        match turn {
            Some(Turn::PutOff) => {}
            None if !recovery.inquiries.has_place() => _ = self.enlist(subject, is_question, true),
            Some(Turn::Placed | Turn::Overdue) | None => {
                self.begin_ballot(now_us, subject, is_question, view, effects);
            }
        }
    }

    /// Begins a ballot, or begins it anew.
    pub(super) fn begin_ballot(
        &mut self,
        now_us: u64,
        subject: Subject,
        is_question: bool,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let id = subject.transaction.id;
        let Some(attempt) = self.enlist(subject, is_question, false) else { return };
        debug_assert_eq!(attempt.coordinator, self.node, "F2: nobody drives another's attempt");
        if self.rules.hold(Rule::F8) {
            self.promise(id, attempt);
        }
        self.ask_members(now_us, id, view, effects);
    }

    /// Notes a ballot that is asked now, or is put off, in place of the one there is on this
    /// transaction. What is said in that one's attempt counts no more.
    fn enlist(
        &mut self,
        Subject { transaction, chain, begun }: Subject,
        is_question: bool,
        is_put_off: bool,
    ) -> Option<Attempt> {
        let id = transaction.id;
        let attempt = self.next_attempt(id);
        let recovery = self.recovery.as_mut()?;
        let old = recovery.inquiries.remove(id);
        let is_anew = !is_put_off && old.as_ref().is_some_and(|old| old.turn != Turn::PutOff);
        let (mut chains, is_question, rounds) = match old {
            Some(Inquiry { chains, is_question, rounds, .. }) => {
                let rounds = (rounds + u8::from(is_anew)).min(super::ASK_AFTER_DOUBLED_MAX);
                (chains, is_question, rounds)
            }
            None => (Vec::new(), is_question, 0),
        };
        if !chains.contains(&chain) {
            chains.push(chain);
        }
        let turn = if is_put_off { Turn::PutOff } else { recovery.inquiries.turn() };
        let inquiry = Inquiry {
            attempt,
            promised: None,
            turn,
            transaction,
            begun,
            is_question,
            closing: None,
            chains,
            waiting: BTreeSet::new(),
            reports: BTreeMap::new(),
            began_us: recovery.elapsed_us,
            rounds,
        };
        debug_assert!(!inquiry.chains.is_empty(), "whom to ask is found by a chain that it had");
        recovery.inquiries.insert(id, inquiry);
        Some(attempt)
    }

    /// Puts a ballot off that a new map demands. This node has promised to it already, so that
    /// nothing goes on here by the older map: as if all that it asks were lost on the way (F6).
    pub(super) fn put_off(&mut self, subject: Subject, effects: &mut Vec<Effect>) {
        let id = subject.transaction.id;
        let Some(attempt) = self.enlist(subject, false, true) else { return };
        if self.rules.hold(Rule::F8) {
            self.promise(id, attempt);
        }
        if let Some(slot) = self.records.slot(id)
            && self.records[slot].state.is_waiting()
        {
            self.withdraw(slot);
            self.settle(slot, effects);
        }
    }

    /// Begins the ballots that were put off, the oldest first, as far as there is a place for them.
    pub(crate) fn take_turns(&mut self, now_us: u64, view: &impl View, effects: &mut Vec<Effect>) {
        let places = self.recovery.as_ref().map_or(0, |recovery| recovery.inquiries.places());
        // Those that end at once make room for more, which another step begins.
        for _ in 0..places {
            let Some(recovery) = &mut self.recovery else { return };
            let Some(id) = recovery.inquiries.next() else { return };
            let Some(inquiry) = recovery.inquiries.get(id) else { return };
            let subject = inquiry.subject();
            match self.has_ended(id) {
                true => {
                    let recovery = self.recovery.as_mut().expect("it was just there");
                    recovery.inquiries.remove(id);
                }
                false => self.begin_ballot(now_us, subject, false, view, effects),
            }
        }
    }

    /// Whether it was found out already what became of a transaction. Who asked for it asks again,
    /// and is answered by that (F4, F6).
    fn has_ended(&self, id: TransactionId) -> bool {
        match self.records.slot(id).map(|slot| self.records[slot].state) {
            Some(State::Decided(_) | State::Applied(_) | State::Aborting | State::Aborted) => true,
            Some(
                State::Waiting
                | State::Parked
                | State::Fenced
                | State::Persisting(_)
                | State::Validated(_),
            ) => false,
            None => {
                let noted = self.recovery.as_ref().and_then(|recovery| recovery.memory.get(id));
                let outcome = noted.and_then(|entry| entry.outcome.as_ref());
                matches!(outcome, Some((Decision::Commit(_), _)))
            }
        }
    }
}
