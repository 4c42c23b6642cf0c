//! When a transaction has to come again, although nobody has decided or aborted anything: its chain
//! was too short, or it would have waited with something validated that others wait for (C9).
//!
//! ```text
//!   head ──Forward──► … ──► node: must wait until something is applied: parks
//!   head ◄─Withdrawn─ … ◄──┘      … the way is free:
//!   head ◄─Again──────────────────┘
//!   head ──Forward, the next attempt──►
//! ```

use std::sync::Arc;

use tyr_types::{NodeId, Timestamp, TransactionId};

use super::Commit;
use super::effect::Effect;
use super::enter::Pass;
use super::event::{Attempt, Message};
use super::record::{Slot, State};
use super::validate::Verdict;
use crate::chain::Chain;
use crate::rule::Rule;
use crate::view::View;

impl Commit {
    /// The chain was too short; this is one that reaches the blob's end.
    pub(super) fn reroute(
        &mut self,
        now_us: u64,
        id: TransactionId,
        chain: Chain,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.records.slot(id) else { return };
        let record = &self.records[slot];
        // Fenced by itself: nobody else has made it promise anything since.
        if record.state != State::Fenced || record.attempt != record.entered_in {
            return;
        }
        let head = chain.hops()[0].node;
        if head == self.node {
            self.records[slot].chain = chain;
            return self.begin_again(now_us, slot, view, effects);
        }
        let (transaction, begun) = (Arc::clone(&record.transaction), record.begun);
        let attempt = self.attempt_after(slot);
        let (highest, known) = (Timestamp::ZERO, None);
        self.unclaim(slot);
        if self.rules.hold(Rule::F8) {
            self.records[slot].attempt = attempt; // It is begun.
        }
        self.remember(slot, None);
        self.records[slot].state = State::Aborted; // Of no more interest here: others go on.
        self.settle(slot, effects);
        // What it had validated must not come back from the log when all others have forgotten.
        effects.push(Effect::Fence { id, attempt, is_cleared: true });
        let usages = Vec::new();
        let message =
            Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
        effects.push(Effect::Send { to: head, message });
    }

    /// It waits until others are applied, or have given back what keeps it off (K2), which may wait
    /// for what it has validated before (C9): so that is withdrawn, and it waits here without
    /// holding anyone up.
    pub(super) fn park(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        if record.state == State::Parked {
            return;
        }
        debug_assert_eq!(record.state, State::Waiting, "C9: who is validated waits for nobody");
        record.state = State::Parked;
        self.rank(slot);
        let record = &self.records[slot];
        if let Some(previous) = record.position.checked_sub(1) {
            let (id, attempt) = (record.transaction.id, record.entered_in);
            let to = record.chain.hops()[previous].node;
            effects.push(Effect::Send { to, message: Message::Withdrawn { id, attempt } });
        }
        self.settle(slot, effects);
    }

    /// It waits at a node after this, and holds nobody up there or here.
    pub(super) fn withdrawn(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        if record.state.decided_at().is_some() || record.state == State::Aborting {
            return;
        }
        match record.position.checked_sub(1) {
            None => {
                self.withdraw(slot);
                self.settle(slot, effects);
            }
            Some(previous) => {
                let (id, attempt) = (record.transaction.id, record.entered_in);
                let to = record.chain.hops()[previous].node;
                effects.push(Effect::Send { to, message: Message::Withdrawn { id, attempt } });
                self.leave(slot, effects);
            }
        }
    }

    /// It was looked at again. Whether it goes on here: at the head, where nothing was withdrawn
    /// when it was kept off; elsewhere it comes again when the way is free.
    pub(super) fn is_unparked(
        &mut self,
        slot: Slot,
        verdict: &Verdict,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let is_head = self.records[slot].position == 0;
        match verdict {
            Verdict::KeptOff(_) => {}
            _ if is_head => {
                self.records[slot].state = State::Waiting;
                self.rank(slot);
            }
            Verdict::Wait(_) | Verdict::Park => {}
            Verdict::Valid(_)
            | Verdict::Abort(_)
            | Verdict::Misplaced { .. }
            | Verdict::NeedsEnd(_) => self.unpark(slot, effects),
        }
        is_head && !matches!(verdict, Verdict::KeptOff(_))
    }

    /// It has nothing to wait for any more.
    fn unpark(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        debug_assert_eq!(record.state, State::Parked, "C9: only who was withdrawn comes again");
        let (id, attempt) = (record.transaction.id, record.entered_in);
        let to = record.chain.hops()[0].node;
        effects.push(Effect::Send { to, message: Message::Again { id, attempt } });
        self.leave(slot, effects);
    }

    /// At the head: what it waited for is done.
    pub(super) fn come_again(
        &mut self,
        now_us: u64,
        slot: Slot,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let record = &self.records[slot];
        let is_undecided = record.state == State::Fenced || record.state.is_undecided();
        if record.position == 0 && is_undecided {
            self.begin_again(now_us, slot, view, effects);
        }
    }

    /// At the head: the same chain once more, with proposals above all that was seen so far.
    fn begin_again(
        &mut self,
        now_us: u64,
        slot: Slot,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let record = &self.records[slot];
        debug_assert_eq!(record.chain.hops()[0].node, self.node, "F8: only the head begins");
        let (transaction, chain) = (Arc::clone(&record.transaction), record.chain.clone());
        let (begun, highest, known) = (record.begun, Timestamp::ZERO, None);
        let attempt = self.attempt_after(slot);
        debug_assert!(attempt.number > 0, "F9: an abort of it must not be told as a first one's");
        let pass = Pass { transaction, chain, attempt, begun, highest, known };
        self.enter_again(now_us, slot, pass, view, effects);
    }

    /// The attempt that follows what is known of this transaction here, ballots of this node too:
    /// two of one number would be taken for one (F8).
    fn attempt_after(&self, slot: Slot) -> Attempt {
        let record = &self.records[slot];
        if self.rules.hold(Rule::F8) && self.recovery.is_some() {
            return self.next_attempt(record.transaction.id);
        }
        let number = record.attempt.number + 1;
        Attempt { epoch: self.clock.epoch, number, coordinator: self.node }
    }

    /// Takes no part in this attempt any more; the head makes another.
    pub(super) fn leave(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        self.withdraw(slot);
        let record = &mut self.records[slot];
        let number = record.entered_in.number + 1;
        let next = Attempt { number, coordinator: NodeId(0), ..record.entered_in };
        record.attempt = record.attempt.max(next);
        let is_left = record.entered_in < record.attempt;
        debug_assert!(is_left, "F2: a message of this attempt does nothing here from now on");
        if self.recovery.is_some() {
            // What the log has of it must not count after a restart either.
            let (id, attempt) = (record.transaction.id, record.attempt);
            effects.push(Effect::Fence { id, attempt, is_cleared: true });
        }
        self.remember(slot, None);
        self.records[slot].state = State::Aborted; // Of no interest here until it comes again.
        self.settle(slot, effects);
    }

    /// Nothing that was validated counts any more; the next attempt will come by.
    pub(crate) fn withdraw(&mut self, slot: Slot) {
        let decided_at = self.records[slot].state.decided_at();
        debug_assert!(decided_at.is_none(), "F3: what is decided stands, at {decided_at:?}");
        self.unclaim(slot);
        self.records[slot].state = State::Fenced;
        self.moved(slot);
    }
}
