//! The side that is asked: fences, reports, and does what was concluded (F2, F3).

use tyr_types::{NodeId, Timestamp, TransactionId};

use super::message::{Known, Message};
use crate::commit::record::{State, Subject};
use crate::commit::{self, Attempt, Commit, Decision, Effect, Outcomes};
use crate::rule::Rule;
use crate::view::View;

impl Commit {
    pub(crate) fn recover(
        &mut self,
        now_us: u64,
        message: Message,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        if self.recovery.is_none() {
            return; // An embedded store has nobody who could ask.
        }
        match message {
            Message::Ask { transaction, chain, begun } => {
                self.asked(now_us, Subject { transaction, chain, begun }, view, effects);
            }
            Message::Query { id, attempt, begun } => {
                self.queried(now_us, id, attempt, begun, view, effects);
            }
            Message::Report { id, attempt, from, known } => {
                if self.note_report(id, attempt, from, known) {
                    self.go_on(now_us, id, view, effects);
                }
            }
            Message::Behind { id, attempt, promised } => {
                self.fell_behind(now_us, id, attempt, promised, view, effects);
            }
            Message::Clear { id, attempt } => {
                if self.is_clearable(id, attempt) {
                    effects.push(Effect::Fence { id, attempt, is_cleared: true });
                }
            }
            Message::Abort { id, attempt, abort } => {
                self.abort_asked(now_us, id, attempt, abort, view, effects);
            }
            Message::Aborted { id, attempt, from } => {
                self.abort_heard(id, attempt, from, effects);
            }
        }
    }

    /// Promises to take part in no older attempt; when that is durable, reports.
    fn queried(
        &mut self,
        now_us: u64,
        id: TransactionId,
        attempt: Attempt,
        begun: Timestamp,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        if attempt.epoch < self.clock.epoch {
            return; // Its coordinator asks again by the newest map.
        }
        if let Some(promised) = self.promised(id).filter(|promised| attempt < *promised) {
            let message = Message::Behind { id, attempt, promised };
            return self.tell(now_us, attempt.coordinator, message, view, effects);
        }
        // What is noted of it from now on is noted after it began, however slow this clock is: the
        // floor does not get there while it is in flight (F10).
        let clock = self.clock.clock.max(begun.clock);
        self.observe(Timestamp { clock, ..self.clock });
        let clock = self.clock;
        match self.records.slot(id) {
            Some(slot) => {
                let record = &mut self.records[slot];
                if attempt == record.attempt && attempt == record.entered_in {
                    return; // It has come by already.
                }
                debug_assert!(record.attempt <= attempt, "F2: a promise is not taken back");
                record.attempt = attempt;
                if record.state.is_waiting() {
                    self.withdraw(slot);
                    self.settle(slot, effects);
                }
            }
            None => {
                let Some(recovery) = &mut self.recovery else { return };
                recovery.memory.fence(id, attempt, clock);
            }
        }
        let is_kept = self.promised(id) >= Some(attempt) || !self.rules.hold(Rule::F10);
        debug_assert!(is_kept, "F2: who answers takes part in nothing older");
        let is_here = self.records.slot(id).is_some();
        match self.known(id) {
            known @ (Known::Committed { .. } | Known::Aborted(_) | Known::Forgotten) => {
                self.report(now_us, id, attempt, known, view, effects);
            }
            // It is not taken in any more, so there is nothing to promise (F11).
            Known::Nothing if !is_here && self.is_forgotten(begun) => {
                self.report(now_us, id, attempt, Known::Forgotten, view, effects);
            }
            Known::Nothing | Known::Validated { .. } => {
                effects.push(Effect::Fence { id, attempt, is_cleared: false });
            }
        }
    }

    /// The newest attempt that this node has promised to.
    pub(in crate::commit) fn promised(&self, id: TransactionId) -> Option<Attempt> {
        match self.records.slot(id) {
            Some(slot) => Some(self.records[slot].attempt),
            None => Some(self.recovery.as_ref()?.memory.get(id)?.attempt),
        }
    }

    /// What this node knows of a transaction that would last through a restart.
    fn known(&self, id: TransactionId) -> Known {
        let record = self.records.slot(id).map(|slot| &self.records[slot]);
        let decided = record.and_then(|record| {
            let at = record.state.decided_at().or(record.known)?;
            Some(Known::Committed { at, ends: record.chain.ends().clone() })
        });
        // Another may have told what became of it over another chain than the one it has here.
        let remembered = || {
            let entry = self.recovery.as_ref()?.memory.get(id)?;
            Some(match entry.outcome.as_ref()? {
                (Decision::Commit(at), _) => Known::Committed { at: *at, ends: entry.ends.clone() },
                (Decision::Abort(abort), _) => Known::Aborted(abort.clone()),
            })
        };
        let validated = || {
            let record = record?;
            let State::Validated(proposal) = record.state else { return None };
            let (attempt, chain) = (record.entered_in, record.chain.clone());
            Some(Known::Validated { attempt, proposal, chain })
        };
        decided.or_else(remembered).or_else(validated).unwrap_or(Known::Nothing)
    }

    fn report(
        &mut self,
        now_us: u64,
        id: TransactionId,
        attempt: Attempt,
        known: Known,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let message = Message::Report { id, attempt, from: self.node, known };
        self.tell(now_us, attempt.coordinator, message, view, effects);
    }

    /// A promise is durable: reports; or what older attempts validated is withdrawn.
    pub(crate) fn fenced(
        &mut self,
        now_us: u64,
        id: TransactionId,
        attempt: Attempt,
        is_cleared: bool,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        if is_cleared {
            if self.is_clearable(id, attempt) {
                let slot = self.records.slot(id).expect("it is clearable");
                let entered_in = self.records[slot].entered_in;
                debug_assert!(
                    entered_in < attempt,
                    "F3: what is withdrawn is older: {entered_in:?}"
                );
                self.withdraw(slot);
                self.settle(slot, effects);
            }
            return;
        }
        if self.promised(id) == Some(attempt) {
            let known = self.known(id);
            self.report(now_us, id, attempt, known, view, effects);
        }
    }

    /// Whether something is validated here under an attempt older than this, which was promised to
    /// and has not come by yet.
    fn is_clearable(&self, id: TransactionId, attempt: Attempt) -> bool {
        self.records.slot(id).is_some_and(|slot| {
            let record = &self.records[slot];
            let is_promised = record.attempt == attempt && record.entered_in != attempt;
            is_promised && record.state.is_undecided() && record.known.is_none()
        })
    }

    /// A coordinator says that it is aborted: says so back when that is durable (F9). Not where a
    /// newer attempt was promised to, which may have found out something else.
    fn abort_asked(
        &mut self,
        now_us: u64,
        id: TransactionId,
        attempt: Attempt,
        abort: crate::Abort,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(promised) = self.promised(id).filter(|promised| attempt < *promised) {
            let message = Message::Behind { id, attempt, promised };
            return self.tell(now_us, attempt.coordinator, message, view, effects);
        }
        let (slot, clock) = (self.records.slot(id), self.clock);
        let Some(recovery) = &mut self.recovery else { return };
        let noted = recovery.memory.get(id).and_then(|entry| entry.outcome.as_ref());
        let is_committed = slot.is_some_and(|slot| self.records[slot].state.decided_at().is_some())
            || matches!(noted, Some((Decision::Commit(_), _)));
        if is_committed {
            return; // Long decided; who says otherwise asked before that, and asks again.
        }
        recovery.owed.insert(id, attempt);
        match slot {
            Some(slot) if self.records[slot].state != State::Aborting => {
                debug_assert!(self.records[slot].attempt <= attempt, "F2: a promise stays");
                self.records[slot].attempt = attempt;
                self.abort_as_told(slot, abort, effects);
            }
            Some(_) => {} // On its way to the log.
            None => {
                let decision = Decision::Abort(abort);
                recovery.memory.note(id, attempt, (decision.clone(), Outcomes::new()), clock);
                effects.push(Effect::Note { id, decision, is_synced: true });
            }
        }
    }

    /// Someone holds it undecided for too long, and this is the first live node of its chain.
    pub(super) fn asked(
        &mut self,
        now_us: u64,
        subject: Subject,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let id = subject.transaction.id;
        let Some(recovery) = &self.recovery else { return };
        if recovery.inquiries.contains(id) {
            return; // Under way.
        }
        let Some(slot) = self.records.slot(id) else {
            // An abort may be of a question that nobody could answer (F11): a ballot finds better.
            let committed = recovery.memory.get(id).and_then(|entry| match &entry.outcome {
                Some((Decision::Commit(at), _)) => Some((*at, entry.ends.clone())),
                Some((Decision::Abort(_), _)) | None => None,
            });
            return match committed {
                Some(known) => self.drive_known(now_us, subject, known, view, effects),
                None => self.inquire(now_us, subject, false, view, effects),
            };
        };
        let record = &self.records[slot];
        if record.state.is_waiting()
            && record.known.is_none()
            && record.entered_in == record.attempt
        {
            // It comes by anew, and waits here, perhaps for what waits elsewhere for what was
            // validated before: who asks may not have heard that this does not count (F6).
            let attempt = record.attempt;
            let others =
                subject.chain.hops().iter().map(|hop| hop.node).filter(|node| *node != self.node);
            let clear = |to| Effect::Recover { to, message: Message::Clear { id, attempt } };
            effects.extend(others.map(clear));
        }
        // Who asks may hold it over a chain of before, of which no ballot over this one asks all:
        // then it has not promised to this attempt, and nothing else gets it to let go.
        let is_over_another =
            subject.chain.hops().iter().any(|hop| record.chain.position(hop.node).is_none());
        let rival = record.waits_for.and_then(|rival| self.records.get(rival));
        if !is_over_another && rival.is_some_and(|rival| rival.state.is_waiting()) {
            return; // It stands in a line; whoever is first in it is asked about.
        }
        let idle_us = recovery.elapsed_us.saturating_sub(record.touched_us);
        if !is_over_another && record.asked == 0 && idle_us < super::ASK_AFTER_US / 2 {
            return; // It is getting on; who asked will ask again.
        }
        let (decided_at, ends) = (record.state.decided_at(), record.chain.ends().clone());
        self.touch(slot);
        match decided_at {
            Some(at) => self.drive_known(now_us, subject, (at, ends), view, effects),
            None if self.records[slot].state == State::Aborting => {}
            None => self.inquire(now_us, subject, false, view, effects),
        }
    }

    /// Tells one who has waited long for a notice of stability, if it is stable (R2, F6).
    pub(crate) fn answer_stable(
        &mut self,
        id: TransactionId,
        by: NodeId,
        from: NodeId,
        effects: &mut Vec<Effect>,
    ) {
        // What is not known here any more was passed back.
        let is_stable = self.records.slot(id).is_none_or(|slot| self.records[slot].is_passed);
        if is_stable {
            let message = commit::Message::Stable { id, by, outcomes: Outcomes::new() };
            effects.push(Effect::Send { to: from, message });
        }
    }
}
