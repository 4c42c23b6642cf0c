//! How a transaction comes in: from a client at the head, or from the node before (C1..C5).

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{ErrorKind, Timestamp, Transaction, TransactionId};

use super::claims::Standing;
use super::effect::{Effect, Placements};
use super::event::{Attempt, Decision, Message};
use super::memory::Entry;
use super::namesake;
use super::outcomes::Outcomes;
use super::record::{Heard, Record, Slot, State, Subject};
use super::validate::{Validation, Verdict};
use super::{Commit, IN_FLIGHT_MAX};
use crate::abort::Abort;
use crate::chain::Chain;
use crate::rule::Rule;
use crate::view::View;

/// A forward pass as it comes to a node.
#[derive(Debug)]
pub(crate) struct Pass {
    pub transaction: Arc<Transaction>,
    pub chain: Chain,
    pub attempt: Attempt,
    pub begun: Timestamp,
    pub highest: Timestamp,
    pub known: Option<Timestamp>,
}

impl Commit {
    /// Takes in a client's transaction, at the head.
    pub(crate) fn submit(
        &mut self,
        now_us: u64,
        Subject { transaction, chain, begun }: Subject,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let id = transaction.id;
        if self.records.slot(id).is_some() {
            return; // The reply that is due answers the retry too.
        }
        if self.remembers(id) && self.rules.hold(Rule::F4) {
            // Late, or under way by another coordinator; who is told nothing asks again.
            if let Some((decision, outcomes)) = self.answerable(id, begun) {
                let transaction = Some(transaction);
                effects.push(Effect::Reply { id, decision, outcomes, transaction });
            }
            return;
        }
        if chain.position(self.node) != Some(0) {
            let reason = "a transaction is submitted to the head of its chain; look it up again";
            return refuse(id, reason, effects);
        }
        if self.records.len() >= IN_FLIGHT_MAX {
            return refuse(id, "too many transactions are in flight; retry later", effects);
        }
        let attempt = Attempt { epoch: self.clock.epoch, number: 0, coordinator: self.node };
        let (highest, known) = (Timestamp::ZERO, None);
        let pass = Pass { transaction, chain, attempt, begun, highest, known };
        self.enter(now_us, pass, view, effects);
    }

    /// A forward pass arrives: of a transaction not known here, or in a newer attempt (F2, F3).
    pub(super) fn forward(
        &mut self,
        now_us: u64,
        pass: Pass,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(position) = pass.chain.position(self.node) else { return };
        if self.is_refused(&pass.chain, &pass.transaction, pass.attempt) {
            return;
        }
        if let Some(at) = pass.known {
            self.observe(at);
        }
        let id = pass.transaction.id;
        if pass.known.is_none() && self.is_namesake(id, pass.begun) && self.rules.hold(Rule::F4) {
            let decision = Decision::Abort(namesake::refusal());
            return self.forward_ended(pass, position, (decision, Outcomes::new()), effects);
        }
        if let Some(slot) = self.records.slot(id) {
            let record = &self.records[slot];
            let is_old = pass.attempt < record.attempt && self.rules.hold(Rule::F2);
            if !is_old && pass.attempt != record.entered_in {
                self.enter_again(now_us, slot, pass, view, effects);
            }
            return;
        }
        let Some(recovery) = &self.recovery else {
            return self.enter(now_us, pass, view, effects);
        };
        match recovery.memory.get(id) {
            Some(entry) if pass.attempt < entry.attempt && self.rules.hold(Rule::F2) => {}
            // That nobody could tell is no outcome: here is somebody who can (F11).
            Some(Entry { outcome: Some((decision, _)), .. })
                if decision.is_given_up() && pass.known.is_some() =>
            {
                let at = pass.known.expect("it was just there");
                self.enter_applied(pass, position, at, Outcomes::new(), effects);
            }
            Some(Entry { outcome: Some(outcome), finished_in, .. }) => {
                if *finished_in != Some(pass.attempt) {
                    let outcome = outcome.clone();
                    self.forward_ended(pass, position, outcome, effects);
                }
            }
            // Only promised to, at most.
            Some(_) | None if self.is_forgotten(pass.begun) => {
                // One that is known to be committed was done with here, or is in what was copied
                // (F10). Who asks about another is told that nobody can tell (F11).
                if let Some(at) = pass.known {
                    self.enter_applied(pass, position, at, Outcomes::new(), effects);
                }
            }
            Some(_) | None => self.enter(now_us, pass, view, effects),
        }
    }

    /// Another pass of what this node knows the outcome of.
    fn forward_ended(
        &mut self,
        pass: Pass,
        position: usize,
        (decision, outcomes): (Decision, Outcomes),
        effects: &mut Vec<Effect>,
    ) {
        match decision {
            Decision::Commit(at) => self.enter_applied(pass, position, at, outcomes, effects),
            Decision::Abort(abort) => {
                if let Some(previous) = position.checked_sub(1) {
                    let to = pass.chain.hops()[previous].node;
                    let (id, attempt) = (pass.transaction.id, pass.attempt);
                    effects.push(Effect::backward(
                        to,
                        id,
                        attempt,
                        Decision::Abort(abort),
                        Outcomes::new(),
                    ));
                }
            }
        }
    }

    /// A record of what is not known here, in no state yet.
    fn record(&mut self, pass: Pass, position: usize) -> Record {
        self.arrivals += 1;
        Record {
            unanchored: match self.rules.hold(Rule::C9) {
                true => pass.chain.anchors_before(position).collect(),
                false => SmallVec::new(),
            },
            transaction: pass.transaction,
            chain: pass.chain,
            position,
            attempt: pass.attempt,
            entered_in: pass.attempt,
            begun: pass.begun,
            arrival: self.arrivals,
            state: State::Waiting,
            highest: pass.highest,
            known: pass.known,
            placed: Placements::new(),
            unstable: SmallVec::new(),
            is_writing_here: false,
            is_watched: false,
            is_heard: false,
            is_anchored: false,
            is_behind: false,
            is_passed: false,
            is_restored: false,
            heard: Heard::default(),
            blocker: None,
            holds_up: SmallVec::new(),
            waits_for: None,
            holds_back: SmallVec::new(),
            outcomes: Outcomes::new(),
            answers: Outcomes::new(),
            abort: None,
            touched_us: self.recovery.as_ref().map_or(0, |recovery| recovery.elapsed_us),
            asked: 0,
        }
    }

    /// Takes a transaction in that is not known here.
    fn enter(&mut self, now_us: u64, pass: Pass, view: &impl View, effects: &mut Vec<Effect>) {
        let Some(position) = pass.chain.position(self.node) else { return };
        let record = self.record(pass, position);
        let slot = self.records.insert(record);
        self.claim(slot, view);
        self.validate(now_us, slot, view, effects);
    }

    /// Takes in a newer attempt of a transaction that is known here.
    ///
    /// When it is known to be committed, its claims are never gone in between: what comes after it
    /// still waits (C6).
    pub(crate) fn enter_again(
        &mut self,
        now_us: u64,
        slot: Slot,
        pass: Pass,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(position) = pass.chain.position(self.node) else { return };
        let decided_at = self.records[slot].state.decided_at();
        let is_aborting = self.records[slot].state == State::Aborting;
        if is_aborting {
            return; // The abort is on its way to the client.
        }
        self.unclaim(slot);
        let fresh = self.record(pass, position);
        let record = &mut self.records[slot];
        let old = std::mem::replace(record, fresh);
        record.is_watched = old.is_watched;
        record.holds_up = old.holds_up;
        record.holds_back = old.holds_back;
        let arrival = record.arrival;
        self.moved(slot);
        match decided_at {
            None => {
                self.claim(slot, view);
                self.validate(now_us, slot, view, effects);
            }
            Some(at) => {
                let record = &mut self.records[slot];
                record.outcomes = old.outcomes;
                record.answers = old.answers;
                record.state = old.state;
                record.known = Some(at);
                record.highest = record.highest.max(at);
                let was_applied = old.state == State::Applied(at);
                self.claim(slot, view);
                if was_applied {
                    // Where one that owes its notice is no authority any more, all that are tell.
                    let unstable = &mut self.records[slot].unstable;
                    if old.unstable.iter().all(|by| unstable.contains(by)) {
                        *unstable = old.unstable;
                    }
                } else {
                    self.shared += usize::from(!self.records[slot].chain.is_alone());
                }
                self.pass_on(slot, effects);
            }
        }
        if self.records.get(slot).is_some_and(|record| record.arrival == arrival) {
            self.settle(slot, effects);
        }
    }

    /// Takes in another attempt of a transaction that this node has finished with: it only passes
    /// it on, and back.
    fn enter_applied(
        &mut self,
        pass: Pass,
        position: usize,
        at: Timestamp,
        outcomes: Outcomes,
        effects: &mut Vec<Effect>,
    ) {
        let highest = pass.highest.max(at);
        let record = self.record(Pass { highest, known: Some(at), ..pass }, position);
        let record = Record { state: State::Applied(at), outcomes, ..record };
        let slot = self.records.insert(record);
        self.pass_on(slot, effects);
    }

    /// It was validated here before a restart.
    pub(crate) fn restore_validated(
        &mut self,
        pass: Pass,
        placed: Placements,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(position) = pass.chain.position(self.node) else { return };
        let (proposal, known_as) = (pass.highest, self.records.slot(pass.transaction.id));
        if known_as.is_some_and(|slot| self.records[slot].state.decided_at().is_some()) {
            return; // Another attempt of what was decided already.
        }
        let mut record = self.record(pass, position);
        record.state = State::Validated(proposal);
        record.is_restored = true;
        record.placed = placed;
        self.shared += usize::from(!record.chain.is_alone());
        // In the place of an older attempt, as then: what comes after it waits all the time.
        let slot = match known_as {
            Some(slot) => {
                self.unclaim(slot);
                let old = &mut self.records[slot];
                record.attempt = record.attempt.max(old.attempt);
                record.holds_up = std::mem::take(&mut old.holds_up);
                record.holds_back = std::mem::take(&mut old.holds_back);
                self.records[slot] = record;
                slot
            }
            None => self.records.insert(record),
        };
        self.claim(slot, view);
        self.settle(slot, effects);
    }

    /// Claims what the transaction touches here.
    fn claim(&mut self, slot: Slot, view: &impl View) {
        let record = &self.records[slot];
        let (transaction, chain) = (Arc::clone(&record.transaction), record.chain.clone());
        let place = chain.place(record.position);
        let standing = |other: Slot| Standing::of(&self.records[other]);
        let authorities =
            self.in_flight.claim(slot, place, &transaction, view, standing, self.rules);
        let record = &mut self.records[slot];
        record.is_writing_here = !authorities.is_empty();
        record.unstable = authorities;
        self.claim_pieces(slot, view);
    }

    /// How the transaction stands to others has changed: where they are many, that is kept.
    pub(super) fn rank(&mut self, slot: Slot) {
        if !self.in_flight.has_indexes() {
            return;
        }
        let record = &self.records[slot];
        let standing = Standing::of(record);
        for blob in record.blobs() {
            self.in_flight.rank(blob, slot, standing);
        }
    }

    /// Gives up what the transaction claims here, and what was validated with it.
    pub(crate) fn unclaim(&mut self, slot: Slot) {
        let record = &self.records[slot];
        for blob in record.blobs() {
            self.in_flight.remove(blob, slot);
        }
        self.in_flight.remove_listings(slot);
        let is_shared = record.state.in_flight_at().is_some() && !record.chain.is_alone();
        self.shared -= usize::from(is_shared);
        self.woken.remove(&record.arrival);
    }

    /// Validates a transaction that came in; one that is known to be committed is not asked (F3).
    fn validate(&mut self, now_us: u64, slot: Slot, view: &impl View, effects: &mut Vec<Effect>) {
        match self.records[slot].known {
            Some(at) => self.propose(slot, at, Placements::new(), effects),
            None => self.admit(now_us, slot, view, effects),
        }
    }

    /// Validates a transaction that waits, if it can be; then proposes a timestamp (C3).
    pub(super) fn admit(
        &mut self,
        now_us: u64,
        slot: Slot,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        self.claim_pieces(slot, view); // Another may have had them, and is over.
        let mut verdict = self.verdict(slot, view);
        if let Verdict::NeedsEnd(indexes) = verdict {
            let record = &self.records[slot];
            let place = record.chain.place(record.position);
            let standing = |other: Slot| Standing::of(&self.records[other]);
            for index in indexes {
                let blob = &record.transaction.blobs[index].blob;
                self.in_flight.claim_end(slot, place, blob, standing);
            }
            verdict = self.verdict(slot, view);
        }
        if let Verdict::KeptOff(needed) = &verdict {
            self.recall_for(slot, needed, effects);
        }
        if self.records[slot].state == State::Parked && !self.is_unparked(slot, &verdict, effects) {
            return;
        }
        let rival = match verdict {
            Verdict::Wait(rival) => rival,
            Verdict::Valid(_)
            | Verdict::NeedsEnd(_)
            | Verdict::Misplaced { .. }
            | Verdict::Park
            | Verdict::KeptOff(_)
            | Verdict::Abort(_) => None,
        };
        self.wait_for(slot, rival);
        match verdict {
            Verdict::Wait(_) => self.waiting.begin(),
            Verdict::Park | Verdict::KeptOff(_) => {
                self.waiting.begin();
                self.park(slot, effects);
            }
            Verdict::NeedsEnd(_) => unreachable!("it has the end of these blobs now"),
            Verdict::Abort(abort) => self.abort(slot, abort, effects),
            Verdict::Misplaced { blob, end } => self.misplaced(slot, blob, end, effects),
            Verdict::Valid(placed) => {
                let proposal = self.clock.next(now_us, self.node.0);
                debug_assert!(proposal > self.clock, "C3: a proposal is above all that was seen");
                self.clock = proposal;
                self.propose(slot, proposal, placed, effects);
            }
        }
    }

    /// If it waits, it is for this one; else for whatever happens on its blobs.
    fn wait_for(&mut self, slot: Slot, rival: Option<Slot>) {
        let record = &mut self.records[slot];
        let (arrival, old) = (record.arrival, std::mem::replace(&mut record.waits_for, rival));
        if old == rival {
            return;
        }
        if let Some(rival) = rival {
            debug_assert_ne!(rival, slot, "nobody would wake it");
            self.records[rival].holds_back.push((arrival, slot));
        }
        self.rank(slot);
    }

    fn verdict(&self, slot: Slot, view: &impl View) -> Verdict {
        let (node, rules) = (self.node, self.rules);
        let (records, in_flight, pieces) = (&self.records, &self.in_flight, &self.pieces);
        Validation { node, records, in_flight, pieces, rules, view }.verdict(slot)
    }

    /// It is validated here with this proposal, once that is durable.
    fn propose(
        &mut self,
        slot: Slot,
        proposal: Timestamp,
        placed: Placements,
        effects: &mut Vec<Effect>,
    ) {
        let record = &mut self.records[slot];
        debug_assert_eq!(record.state, State::Waiting, "C3: an attempt has one proposal here");
        record.state = State::Persisting(proposal);
        record.placed = placed;
        self.shared += usize::from(!record.chain.is_alone());
        self.rank(slot);
        let record = &self.records[slot];
        if record.transaction.is_writing() {
            effects.push(Effect::Persist {
                transaction: Arc::clone(&record.transaction),
                chain: record.chain.clone(),
                attempt: record.entered_in,
                proposal,
                placed: record.placed.clone(),
            });
            if self.rules.hold(Rule::C3) {
                return;
            }
        }
        self.validated(slot, proposal, effects); // There is nothing to lose.
    }

    /// The record is durable: passes the transaction on, unless it is fenced since (F2).
    pub(super) fn validated(&mut self, slot: Slot, proposal: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        record.state = State::Validated(proposal);
        if record.position == 0 || self.rules.hold(Rule::C5) {
            record.highest = record.highest.max(proposal);
        }
        if record.attempt == record.entered_in || !self.rules.hold(Rule::F2) {
            self.pass_on(slot, effects);
        }
    }

    /// To the next node (C3); at the tail it is decided (C5).
    fn pass_on(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        let Some(next) = record.chain.hops().get(record.position + 1) else {
            return self.decide_at_tail(slot, effects);
        };
        let message = Message::Forward {
            transaction: Arc::clone(&record.transaction),
            chain: record.chain.clone(),
            attempt: record.entered_in,
            begun: record.begun,
            highest: record.highest,
            known: record.known,
            usages: Vec::new(),
        };
        effects.push(Effect::Send { to: next.node, message });
    }
}

/// Tells a client that nothing was begun.
fn refuse(id: TransactionId, reason: &'static str, effects: &mut Vec<Effect>) {
    effects.push(Effect::aborted(id, Abort::new(ErrorKind::Unavailable, reason)));
}
