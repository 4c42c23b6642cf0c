//! The way back: what was decided is applied, then told to the node before (C5..C9, R2, F4).

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{NodeId, Timestamp, TransactionId};

use super::effect::Effect;
use super::event::{Decision, Message};
use super::outcomes::Outcomes;
use super::record::{Blocker, Record, Slot, State, Subject};
use super::recovery;
use super::{Commit, in_flight};
use crate::abort::Abort;
use crate::rule::Rule;
use crate::view::View;

impl Commit {
    /// C5: every node has validated.
    pub(super) fn decide_at_tail(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        debug_assert_eq!(record.position + 1, record.chain.hops().len(), "C5: only the tail knows");
        let at = record.known.unwrap_or(record.highest);
        let is_above = record.state.in_flight_at().is_none_or(|own| own <= at);
        debug_assert!(is_above || !self.rules.hold(Rule::C5), "C5: at its own proposal or above");
        record.is_behind = true;
        self.hear(slot, at, effects);
    }

    /// This attempt has reached the tail and is decided: tells those that hear of it from here
    /// (C9), before it waits for anything.
    ///
    /// Once an attempt, however it heard: by being told, or by the way back when that message was
    /// lost or is late, since what is behind may wait for those who do not know yet. Whoever tells
    /// is further along than whom it tells, so this ends.
    pub(super) fn hear(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        let is_current = record.attempt == record.entered_in || !self.rules.hold(Rule::F2);
        debug_assert!(is_current, "F2: it takes part in no older attempt: {:?}", record.entered_in);
        let is_first = !std::mem::replace(&mut record.is_heard, true);
        let is_needed = self.recovery.as_ref().is_none_or(|recovery| !recovery.has_one_authority);
        if is_first && is_needed && self.rules.hold(Rule::C9) {
            let (id, attempt) = (record.transaction.id, record.entered_in);
            effects.extend(record.chain.told_by(record.position).map(|to| {
                let message = Message::Decided { id, attempt, at };
                Effect::Send { to, message }
            }));
        }
        self.decide(slot, at, effects);
    }

    /// The transaction commits at `at`: applies it if nothing comes before it.
    pub(crate) fn decide(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        self.observe(at);
        let record = &mut self.records[slot];
        if record.state.is_undecided() {
            let is_kept =
                [Rule::C5, Rule::F2, Rule::F3, Rule::F4].iter().all(|rule| self.rules.hold(*rule));
            let is_above = record.state.in_flight_at() <= Some(at);
            debug_assert!(
                is_above || !is_kept,
                "C5, C6: what comes after its proposal may be shown, at {at}"
            );
            record.state = State::Decided(at);
            self.rank(slot);
            self.moved(slot);
        } else if let Some(decided_at) = record.state.decided_at() {
            assert_eq!(decided_at, at, "a transaction has one decision: {record:?}");
        }
        self.advance(slot, effects);
    }

    /// Does what can be done now with a transaction that is decided: says that it is clear what
    /// comes before it (C9), applies it, passes it back.
    pub(super) fn advance(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        self.touch(slot);
        if let State::Decided(at) = self.records[slot].state {
            if !self.rules.hold(Rule::C7) && self.records[slot].is_behind {
                self.pass_back(slot, at, effects);
            }
            self.apply_if_next(slot, at, effects);
        } else if let State::Applied(_) = self.records[slot].state {
            self.tell_anchored(slot, effects); // Others wait for it in every attempt anew.
        }
        self.pass_back_applied(slot, effects);
        self.settle(slot, effects);
    }

    /// Applies a decided transaction if nothing comes before it and all have been heard that must;
    /// answers whether it was.
    pub(super) fn apply_if_next(
        &mut self,
        slot: Slot,
        at: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> bool {
        debug_assert_eq!(
            self.records[slot].state,
            State::Decided(at),
            "C6: decided, and not shown"
        );
        if !self.is_still_blocked(slot, at) {
            self.records[slot].blocker = self.blocker(slot, at);
        }
        if let Some(blocker) = self.records[slot].blocker {
            debug_assert_ne!(blocker.slot, slot, "C6: nothing comes before itself");
            let holds_up = &mut self.records[blocker.slot].holds_up;
            if !holds_up.contains(&slot) {
                holds_up.push(slot);
            }
            return false;
        }
        self.tell_anchored(slot, effects);
        let is_next = self.records[slot].is_applicable();
        if is_next {
            self.apply(slot, at, effects);
        }
        is_next
    }

    /// C9: nothing can come before it here any more that is not shown.
    ///
    /// Not before the attempt has reached the tail: in one whose decision is known before, this
    /// would overtake the pass itself, and who has not entered the attempt yet would not listen.
    fn tell_anchored(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let (record, by) = (&mut self.records[slot], self.node);
        let is_anchor = record.chain.anchors().contains(&record.position);
        if record.is_anchored || !record.is_heard || !is_anchor || !self.rules.hold(Rule::C9) {
            return;
        }
        debug_assert!(record.state.decided_at().is_some(), "C9: its place is not known before");
        debug_assert!(record.blocker.is_none(), "C9: something comes before it, and is not shown");
        record.is_anchored = true;
        let (id, attempt) = (record.transaction.id, record.entered_in);
        effects.extend(record.chain.authorities_after(record.position).map(|place| {
            let to = record.chain.hops()[place].node;
            Effect::Send { to, message: Message::Anchored { id, attempt, by } }
        }));
    }

    /// What comes before it here, or may, and is not shown yet: an overlapping write in flight with
    /// a lower timestamp (C6); and, where it was read, a decided transaction with a lower one that
    /// read what this one writes (C9). Of several the one with the highest timestamp: the others
    /// come before that one too, as a rule.
    pub(super) fn blocker(&self, slot: Slot, at: Timestamp) -> Option<Blocker> {
        if self.records.len() == 1 {
            return None;
        }
        // Who has listed what it writes has read it.
        let lister = self.last_lister(slot, at);
        let mut nearest = lister.map(|(its, lister)| (its, lister, false));
        let before = |other: &in_flight::Claim| self.before(other.slot, other.kind.is_write(), at);
        for entry in &self.records[slot].transaction.blobs {
            let found = self.in_flight.claims(&entry.blob).nearest(slot, at, before);
            if let Some((its, other)) = found
                && nearest.is_none_or(|(known, ..)| its > known)
            {
                nearest = Some((its, other.slot, other.kind.is_write()));
            }
        }
        debug_assert!(
            nearest.is_none_or(|(its, ..)| its < at),
            "C6: what comes later holds nobody up"
        );
        nearest.map(|(_, other, is_writing)| {
            debug_assert_ne!(other, slot, "C6: nothing comes before itself");
            let Record { arrival, entered_in, .. } = self.records[other];
            Blocker { slot: other, arrival, entered_in, is_writing }
        })
    }

    /// Whether who was found to come before it last still does; on a blob that many write it mostly
    /// does, and nobody else has to be looked at.
    fn is_still_blocked(&self, slot: Slot, at: Timestamp) -> bool {
        let Some(blocker) = self.records[slot].blocker else { return false };
        let is_it = |other: &Record| {
            other.arrival == blocker.arrival && other.entered_in == blocker.entered_in
        };
        self.records.get(blocker.slot).is_some_and(is_it)
            && self.before(blocker.slot, blocker.is_writing, at).is_some()
    }

    /// The timestamp of a transaction, which overlaps with one at `at`, if it has to be applied
    /// before that.
    pub(super) fn before(&self, other: Slot, is_writing: bool, at: Timestamp) -> Option<Timestamp> {
        let state = self.records[other].state;
        let (its, rule) = match (is_writing, state) {
            (true, _) => (state.in_flight_at()?, Rule::C6),
            (false, State::Decided(its)) => (its, Rule::C9),
            (false, _) => return None,
        };
        (its < at && self.rules.hold(rule)).then_some(its)
    }

    /// Applies a decided transaction here, and passes it back if all behind have (C7). The log says
    /// so, in the order in which it happens: after a restart nothing is shown that was not.
    pub(super) fn apply(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        debug_assert_eq!(record.state, State::Decided(at), "C6: what is shown was decided at that");
        debug_assert!(record.is_applicable() && record.blocker.is_none(), "C6, C7, C9: too early");
        let is_seen = at <= self.clock || !self.rules.hold(Rule::C8);
        debug_assert!(is_seen, "C8: what comes later proposes above what is shown, at {at}");
        record.state = State::Applied(at);
        if self.recovery.is_some() || !record.chain.is_alone() {
            let (id, decision) = (record.transaction.id, Decision::Commit(at));
            effects.push(Effect::Note { id, decision, is_synced: false });
        }
        self.shared -= usize::from(!record.chain.is_alone());
        if record.is_writing_here {
            let (transaction, chain) = (record.transaction.clone(), record.chain.clone());
            effects.push(Effect::Apply { transaction, chain, at });
        }
        self.rank(slot);
        self.pass_back_applied(slot, effects);
        self.moved(slot);
    }

    /// C7: applied from here to the tail, so the node before may know.
    fn pass_back_applied(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        if let State::Applied(at) = record.state
            && record.is_behind
            && !record.is_passed
        {
            self.pass_back(slot, at, effects);
        }
    }

    /// Tells the previous node or the client; and, where this node is the authority, those that
    /// hold the same chunks (R2).
    fn pass_back(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        if record.is_passed {
            return;
        }
        debug_assert!(record.is_behind, "C7: whoever is behind this node has applied it");
        let is_shown = record.is_applied() || !self.rules.hold(Rule::C7);
        debug_assert!(is_shown, "C7: what is told of can be read here");
        record.is_passed = true;
        record.unstable.retain(|authority| *authority != self.node);
        if !self.records[slot].chain.is_alone() {
            self.tell_stable(slot, self.node, effects);
        }
        self.answer(slot, Decision::Commit(at), effects);
    }

    /// Tells those that hold what `by` is the authority of that it is stable (R2).
    pub(crate) fn tell_stable(&self, slot: Slot, by: NodeId, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        debug_assert!(record.is_passed, "R2: stable is what all behind have, and this node");
        let mut followers: SmallVec<[NodeId; 4]> = SmallVec::new();
        for hop in record.chain.hops().iter().filter(|hop| hop.node != self.node) {
            let follows = |piece: &crate::chain::Piece| piece.is_written && piece.authority == by;
            if hop.pieces().iter().any(follows) {
                followers.push(hop.node);
            }
        }
        let id = record.transaction.id;
        let stable = |to| Effect::Send {
            to,
            message: Message::Stable { id, by, outcomes: Outcomes::new() },
        };
        effects.extend(followers.into_iter().map(stable));
    }

    /// Gives the decision to the previous node, or to the client.
    fn answer(&self, slot: Slot, decision: Decision, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        let (id, outcomes) = (record.transaction.id, record.outcomes.clone());
        match record.position.checked_sub(1) {
            None => {
                // In its first attempt all answers came back with the decision (C7).
                let is_again = record.entered_in.number > 0;
                let is_commit = matches!(decision, Decision::Commit(_));
                let (transaction, ends) = (&record.transaction, record.chain.ends());
                if is_again && is_commit && self.is_short_of_replicas(transaction, ends) {
                    return; // It asks again, and hears when there are enough (F13).
                }
                let transaction = is_again.then(|| Arc::clone(&record.transaction));
                effects.push(Effect::Reply { id, decision, outcomes, transaction });
            }
            Some(previous) => {
                let to = record.chain.hops()[previous].node;
                effects.push(Effect::backward(to, id, record.entered_in, decision, outcomes));
            }
        }
    }

    /// Gives an undecided transaction up, and tells those who validated it. A head of several
    /// makes that durable before the client hears of it: others hold it validated, and it must not
    /// rise again from their logs (F4).
    pub(crate) fn abort(&mut self, slot: Slot, abort: Abort, effects: &mut Vec<Effect>) {
        self.give_up(slot, abort, false, effects);
    }

    /// Gives an undecided transaction up because a coordinator says so to everyone, the client in
    /// the end: it is told when that is durable here (F9).
    pub(crate) fn abort_as_told(&mut self, slot: Slot, abort: Abort, effects: &mut Vec<Effect>) {
        self.give_up(slot, abort, true, effects);
    }

    fn give_up(&mut self, slot: Slot, abort: Abort, is_told: bool, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        if record.state.decided_at().is_some()
            || matches!(record.state, State::Aborting | State::Aborted)
        {
            return;
        }
        let id = record.transaction.id;
        let (is_head, is_alone) = (record.position == 0, record.chain.is_alone());
        let was_shared = record.state.in_flight_at().is_some() && !is_alone;
        // An older attempt may be validated elsewhere, or in the log here.
        let is_again = record.attempt.number > 0;
        let is_validated_elsewhere = !is_alone && record.state.is_undecided();
        let decision = Decision::Abort(abort.clone());
        let is_noted = is_told || is_again || is_validated_elsewhere;
        // What was validated here would rise again from the log if this were lost with a crash, and
        // the nodes before this with theirs. Where the log could not be written nothing is durable.
        let is_failed = matches!(record.state, State::Persisting(_));
        let is_durable_back = is_noted && !is_failed && self.rules.hold(Rule::F9);
        let is_durable_first = is_told || is_head && is_noted || is_durable_back;
        if is_noted {
            let (decision, is_synced) = (decision.clone(), is_durable_first);
            effects.push(Effect::Note { id, decision, is_synced });
        }
        self.shared -= usize::from(was_shared);
        self.remember(slot, Some(decision.clone()));
        if is_durable_first {
            debug_assert!(is_noted, "F4: `Noted` comes only for what was to be noted");
            debug_assert!(self.records[slot].abort.is_none(), "a transaction is given up once");
            self.records[slot].state = State::Aborting;
            self.records[slot].abort = Some(Box::new(abort));
            self.rank(slot);
            self.moved(slot);
            // Those it held up go on, though its record stays until others may know.
            let held_up = self.held_up(slot);
            self.free(held_up, effects);
            return;
        }
        if is_head {
            self.close(id);
        }
        self.answer(slot, decision, effects);
        self.records[slot].state = State::Aborted;
        self.moved(slot);
        self.settle(slot, effects);
    }

    /// The abort is durable here: whoever asked for it may know. The head of a first attempt tells
    /// the client: nobody after who aborted it has it, and those before have heard. Of a later one
    /// others may hold what older attempts validated, so everyone is told first (F9).
    pub(super) fn noted(
        &mut self,
        now_us: u64,
        id: TransactionId,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let owed = self.recovery.as_mut().and_then(|recovery| recovery.owed.remove(&id));
        if let Some(slot) = self.records.slot(id)
            && self.records[slot].state == State::Aborting
        {
            let record = &mut self.records[slot];
            record.state = State::Aborted;
            let abort = record.abort.take().expect("one that is given up has its reason");
            let (transaction, chain) = (Arc::clone(&record.transaction), record.chain.clone());
            let (begun, attempt) = (record.begun, record.entered_in);
            let previous = record.position.checked_sub(1);
            let is_first = attempt.number == 0 || self.recovery.is_none();
            // What was promised since it was noted outlives the record (F2).
            self.remember(slot, None);
            self.settle(slot, effects);
            match previous {
                _ if owed.is_some() => {} // Its coordinator tells everybody.
                Some(previous) => {
                    let (to, decision) = (chain.hops()[previous].node, Decision::Abort(*abort));
                    effects.push(Effect::backward(to, id, attempt, decision, Outcomes::new()));
                }
                None if is_first || !self.rules.hold(Rule::F9) => {
                    self.close(id);
                    effects.push(Effect::aborted(id, *abort));
                }
                None => self.inquire(
                    now_us,
                    Subject { transaction, chain, begun },
                    false,
                    view,
                    effects,
                ),
            }
        }
        if let Some(attempt) = owed {
            let message = recovery::Message::Aborted { id, attempt, from: self.node };
            self.tell(now_us, attempt.coordinator, message, view, effects);
        }
    }

    /// The client of an aborted transaction may be told at once when it asks again.
    pub(crate) fn close(&mut self, id: TransactionId) {
        if let Some(recovery) = &mut self.recovery {
            recovery.memory.close(id);
        }
    }

    /// The chain does not reach the blob's end: nothing of it counts any more, and the head makes
    /// another.
    pub(super) fn misplaced(&mut self, slot: Slot, blob: u32, end: u64, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        if record.state.decided_at().is_some() || record.state == State::Aborting {
            return;
        }
        let (id, attempt) = (record.transaction.id, record.entered_in);
        match record.position.checked_sub(1) {
            None => {
                effects.push(Effect::Misplaced {
                    transaction: record.transaction.clone(),
                    chain: record.chain.clone(),
                    blob,
                    end,
                });
                self.withdraw(slot);
                self.settle(slot, effects);
            }
            Some(previous) => {
                let to = record.chain.hops()[previous].node;
                let message = Message::Misplaced { id, attempt, blob, end };
                effects.push(Effect::Send { to, message });
                self.leave(slot, effects);
            }
        }
    }
}
