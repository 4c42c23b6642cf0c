//! Finding what is held up: by time (F6), by a client that asks again (F4), by a new map (F1, F5).

use std::sync::Arc;

use tyr_types::{NodeId, Timestamp, Transaction, TransactionId};

use super::inquiry::Inquiry;
use super::message::Message;
use super::{ASK_AFTER_DOUBLED_MAX, ASK_AFTER_US};
use crate::chain::Chain;
use crate::commit::record::{Record, Slot, State, Subject};
use crate::commit::{self, Attempt, Commit, Decision, Effect, Outcomes};
use crate::map::{ClusterMap, MapKeyspace};
use crate::rule::Rule;
use crate::view::View;

/// With so many in flight each is given twice the time before it is asked about.
const CROWD: u64 = 256;

/// Whom a held-up transaction needs an answer from.
enum Question {
    /// The chain's first live node: what became of it?
    Outcome,
    /// The authorities: is it stable?
    Stable,
}

/// A record that has not got further for as long as any waits, at least, before it is asked about:
/// since when, when it arrived, and where it is.
type Resting = (u64, u64, Slot);

/// What a tick finds when it goes over all records.
struct Round {
    /// When the oldest transaction began.
    oldest_us: Option<u64>,
    resting: Vec<Resting>,
    /// Those that commit, cannot be applied yet, and are not written down (F14).
    heard: Vec<Slot>,
}

impl Commit {
    /// F1: whether the map does not give this chain any more to a transaction whose attempt began
    /// in an older epoch.
    pub(crate) fn is_refused(
        &self,
        chain: &Chain,
        transaction: &Transaction,
        attempt: Attempt,
    ) -> bool {
        let Some(map) = self.recovery.as_ref().and_then(|recovery| recovery.map.as_ref()) else {
            return false;
        };
        attempt.epoch < map.epoch
            && self.rules.hold(Rule::F1)
            && map.is_affected(chain, transaction, attempt.epoch)
    }

    /// F4: a client asks again.
    pub(crate) fn retry(
        &mut self,
        now_us: u64,
        subject: Subject,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let id = subject.transaction.id;
        let Some(recovery) = &self.recovery else {
            return self.submit(now_us, subject, view, effects);
        };
        if !self.rules.hold(Rule::F4) {
            return self.submit(now_us, subject, view, effects);
        }
        if recovery.inquiries.contains(id) {
            return;
        }
        let Some(slot) = self.records.slot(id) else {
            let told = recovery.memory.get(id).filter(|entry| entry.is_hearsay());
            let is_told = told.is_some();
            return match self.answerable(id, subject.begun) {
                Some((decision, outcomes)) => {
                    let transaction = Some(subject.transaction);
                    effects.push(Effect::Reply { id, decision, outcomes, transaction });
                }
                None if is_told => self.asked(now_us, subject, view, effects),
                None => self.inquire(now_us, subject, true, view, effects),
            };
        };
        let record = &self.records[slot];
        match record.state {
            State::Applied(at) if record.is_passed => {
                let (decision, outcomes) = (Decision::Commit(at), record.outcomes.clone());
                let transaction = Some(subject.transaction);
                effects.push(Effect::Reply { id, decision, outcomes, transaction });
            }
            State::Waiting
            | State::Parked
            | State::Fenced
            | State::Persisting(_)
            | State::Validated(_)
            | State::Decided(_)
            | State::Applied(_) => {
                if self.is_idle(record) {
                    self.touch(slot);
                    self.inquire(now_us, subject, false, view, effects);
                }
            }
            State::Aborting | State::Aborted => {}
        }
    }

    /// What is remembered of a transaction that began then, if its client may be told at once: all
    /// of its chain know it, too, or are done with it. Else they are told first, of an abort by a
    /// ballot (F9), of a commit by another pass (F4).
    pub(crate) fn answerable(
        &self,
        id: TransactionId,
        begun: Timestamp,
    ) -> Option<(Decision, Outcomes)> {
        let recovery = self.recovery.as_ref()?;
        let entry = recovery.memory.get(id)?;
        let is_sure = match entry.outcome.as_ref()?.0 {
            Decision::Commit(_) => !entry.is_hearsay() || recovery.memory.is_forgotten(begun),
            Decision::Abort(_) => entry.is_closed || !self.rules.hold(Rule::F9),
        };
        is_sure.then(|| entry.outcome.clone()).flatten()
    }

    /// Whether it has not got further for so long that it is asked about.
    fn is_idle(&self, record: &Record) -> bool {
        let Some(recovery) = &self.recovery else { return false };
        has_rested(record, recovery.elapsed_us, self.ask_after_us())
    }

    /// How long something waits before it is asked about. The more is in flight the longer each
    /// takes, and to ask about what is only slow makes all of it slower yet. What is applied keeps
    /// nobody busy: after a restart it is all that the log has, of which nobody tells unasked.
    fn ask_after_us(&self) -> u64 {
        let crowd = self.recovery.as_ref().map_or(0, |recovery| recovery.crowd);
        ASK_AFTER_US * (1 + crowd / CROWD)
    }

    /// F6: asks about what has been held up for too long; forgets what is old.
    pub(crate) fn tick(
        &mut self,
        now_us: u64,
        elapsed_us: u64,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        recovery.elapsed_us = recovery.elapsed_us.max(elapsed_us);
        recovery.inquiries.make_room(elapsed_us);
        let Round { oldest_us, resting, heard } = self.go_over_all();
        self.review_done(oldest_us);
        self.note_late(&heard, effects);
        self.take_turns(now_us, view, effects);
        self.tell_untold(effects);
        if self.rules.hold(Rule::F6) {
            self.ask_late(now_us, elapsed_us, view, effects);
            self.ask_held_up(now_us, resting, view, effects);
        }
    }

    /// Goes over all records, the one time that a tick does, and counts them.
    ///
    /// A list by when each is due would have to be kept by every transaction, and nearly all end
    /// long before that.
    fn go_over_all(&mut self) -> Round {
        let elapsed_us = self.recovery.as_ref().map_or(0, |recovery| recovery.elapsed_us);
        let (mut crowd, mut oldest_us) = (0, None::<u64>);
        let (mut resting, mut heard) = (Vec::new(), Vec::new());
        for (slot, record) in self.records.iter() {
            crowd += u64::from(!record.is_applied());
            oldest_us = oldest_us.into_iter().chain([record.begun.clock]).min();
            if has_rested(record, elapsed_us, ASK_AFTER_US) {
                resting.push((record.touched_us, record.arrival, slot));
            }
            if record.is_heard_only() {
                heard.push(slot);
            }
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.crowd = crowd;
        }
        Round { oldest_us, resting, heard }
    }

    /// Ballots that have not heard from all begin anew, those that wait longest first, as long as
    /// there is a place for them.
    fn ask_late(
        &mut self,
        now_us: u64,
        elapsed_us: u64,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let ask_after_us = self.ask_after_us();
        let Some(recovery) = &self.recovery else { return };
        let is_late = |it: &Inquiry| elapsed_us >= it.began_us + (ask_after_us << it.rounds);
        let late = recovery.inquiries.asked().filter(|(_, it)| is_late(it));
        let late = late.map(|(id, it)| (it.began_us, it.begun, *id));
        let mut late: Vec<_> = late.collect();
        late.sort_unstable();
        for (.., id) in late {
            let Some(recovery) = &self.recovery else { return };
            if !recovery.inquiries.has_place() {
                return; // With a later tick.
            }
            if let Some(inquiry) = recovery.inquiries.get(id) {
                let subject = inquiry.subject();
                self.begin_ballot(now_us, subject, false, view, effects);
            }
        }
    }

    /// Asks about what has not got further for too long, what waits longest first: with each tick
    /// about so much as there are ballots at a time.
    fn ask_held_up(
        &mut self,
        now_us: u64,
        resting: Vec<Resting>,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        // What got further since they were found rests no more.
        let is_held_up = |(_, arrival, slot): &Resting| {
            let record = self.records.get(*slot).filter(|record| record.arrival == *arrival);
            record.is_some_and(|record| {
                let is_asked = self.is_idle(record) && question(record).is_some();
                is_asked && !self.is_untold(*slot, record)
            })
        };
        let mut held_up: Vec<Resting> = resting.into_iter().filter(is_held_up).collect();
        held_up.sort_unstable();
        let mut left = self.recovery.as_ref().map_or(0, |recovery| recovery.inquiries.places());
        for (_, arrival, slot) in held_up {
            if left == 0 {
                return;
            }
            let record = self.records.get(slot).filter(|record| record.arrival == arrival);
            if let Some(question) = record.and_then(question) {
                left -= usize::from(self.ask(now_us, slot, question, view, effects));
            }
        }
    }

    /// Asks about a transaction that is held up; answers whether it did. One that this node would
    /// have to find out about by itself waits for a place.
    fn ask(
        &mut self,
        now_us: u64,
        slot: Slot,
        question: Question,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(recovery) = &self.recovery else { return false };
        let Some(map) = recovery.map.clone() else { return false };
        let (elapsed_us, has_place) = (recovery.elapsed_us, recovery.inquiries.has_place());
        let Some(record) = self.records.get(slot) else { return false };
        let is_under_way = recovery.inquiries.contains(record.transaction.id);
        let (transaction, chain) = (record.transaction.clone(), record.chain.clone());
        let (begun, unstable) = (record.begun, record.unstable.clone());
        let id = transaction.id;
        match question {
            Question::Outcome => match first_live(&chain, &map) {
                Some(first) if first != self.node => {
                    let message = Message::Ask { transaction, chain, begun };
                    effects.push(Effect::Recover { to: first, message });
                }
                Some(_) | None => {
                    if !is_under_way && !has_place {
                        return false;
                    }
                    let subject = Subject { transaction, chain, begun };
                    self.inquire_unless_under_way(now_us, subject, view, effects);
                }
            },
            Question::Stable => {
                for by in unstable {
                    let to = self.authority_now(slot, by, &map);
                    let message = commit::Message::AskStable { id, by, from: self.node };
                    match to == self.node {
                        true => self.stable_here(slot, by, effects),
                        false => effects.push(Effect::Send { to, message }),
                    }
                }
            }
        }
        if let Some(slot) = self.records.slot(id) {
            let record = &mut self.records[slot];
            debug_assert!(record.touched_us <= elapsed_us, "F6: the clock does not jump");
            record.touched_us = elapsed_us;
            record.asked = record.asked.saturating_add(1);
        }
        !is_under_way
    }

    pub(super) fn inquire_unless_under_way(
        &mut self,
        now_us: u64,
        subject: Subject,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let is_under_way = self
            .recovery
            .as_ref()
            .is_some_and(|recovery| recovery.inquiries.contains(subject.transaction.id));
        if !is_under_way {
            self.inquire(now_us, subject, false, view, effects);
        }
    }

    /// F1, F5: a newer map. Its timestamps are above all older ones; who is first alive in a chain
    /// that it changed finds out what became of the transaction.
    pub(crate) fn install(
        &mut self,
        now_us: u64,
        map: &Arc<ClusterMap>,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        if recovery.map.as_ref().is_some_and(|old| old.epoch >= map.epoch) {
            return;
        }
        recovery.map = Some(Arc::clone(map));
        let members = map.ring.members().len();
        let is_everywhere =
            |keyspace: &MapKeyspace| usize::from(keyspace.config.replication) >= members;
        recovery.has_one_authority =
            map.next.is_none() && map.keyspaces.values().all(is_everywhere);
        if self.rules.hold(Rule::F1) {
            let clock = self.clock.clock;
            let epoch = map.epoch.max(self.clock.epoch);
            let before = self.clock;
            self.clock = Timestamp { epoch, clock, node: before.node };
            debug_assert!(before <= self.clock, "F1: above all timestamps of older epochs");
        }
        let is_affected = |record: &Record| {
            map.is_affected(&record.chain, &record.transaction, record.attempt.epoch)
        };
        let affected: Vec<(Slot, u64)> = self
            .records
            .iter()
            .filter(|(_, record)| is_affected(record))
            .map(|(slot, record)| (slot, record.arrival))
            .collect();
        for (slot, arrival) in &affected {
            let is_there = |record: &&Record| record.arrival == *arrival;
            let Some(record) = self.records.get(*slot).filter(is_there) else { continue };
            match record.state {
                State::Waiting
                | State::Parked
                | State::Fenced
                | State::Persisting(_)
                | State::Validated(_) => {
                    self.find_out(*slot, map, effects);
                }
                State::Decided(_) | State::Applied(_) | State::Aborting | State::Aborted => {}
            }
        }
        if self.rules.hold(Rule::F5) {
            self.note_untold(&affected, map);
            self.tell_untold(effects);
        }
        let recovery = self.recovery.as_ref().expect("it was just there");
        let open = recovery.inquiries.iter().map(|(_, inquiry)| inquiry);
        let open = open.filter(|inquiry| inquiry.attempt.epoch < map.epoch);
        let open: Vec<_> = open.map(Inquiry::subject).collect();
        for subject in open {
            self.put_off(subject, effects);
        }
        let asked = self.recovery.iter().flat_map(|it| it.inquiries.iter());
        let older = asked.filter(|(_, inquiry)| inquiry.attempt.epoch < map.epoch).count();
        let is_over = older == 0 || !self.rules.hold(Rule::F1);
        debug_assert!(is_over, "F1: by an older map's attempt nothing is concluded");
        self.take_turns(now_us, view, effects);
    }

    /// An undecided transaction whose chain the map changed.
    fn find_out(&mut self, slot: Slot, map: &ClusterMap, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        let subject = record.subject();
        if first_live(&subject.chain, map) == Some(self.node) {
            self.put_off(subject, effects);
        } else if record.state.is_waiting() {
            // Whoever is first finds those that validated it; this node has not.
            self.unclaim(slot);
            self.remember(slot, None);
            self.records[slot].state = State::Aborted;
            self.settle(slot, effects);
        }
    }
}

/// Whether a transaction has not got further for so long; twice as long each time that it was asked
/// about since.
fn has_rested(record: &Record, elapsed_us: u64, after_us: u64) -> bool {
    let after_us = after_us << record.asked.min(ASK_AFTER_DOUBLED_MAX);
    elapsed_us.saturating_sub(record.touched_us) >= after_us
}

/// Whom a transaction that has not got further waits for, if anyone has to be asked.
fn question(record: &Record) -> Option<Question> {
    match record.state {
        State::Fenced | State::Validated(_) => Some(Question::Outcome),
        State::Decided(_) if !record.is_applicable() => Some(Question::Outcome),
        State::Applied(_) if !record.is_passed => Some(Question::Outcome),
        State::Applied(_) => Some(Question::Stable),
        // What holds it up is asked about itself.
        State::Decided(_)
        | State::Waiting
        | State::Parked
        | State::Persisting(_)
        | State::Aborting
        | State::Aborted => None,
    }
}

/// The first node of the chain that the map has alive.
pub(super) fn first_live(chain: &Chain, map: &ClusterMap) -> Option<NodeId> {
    chain.hops().iter().map(|hop| hop.node).find(|node| map.is_live(*node))
}
