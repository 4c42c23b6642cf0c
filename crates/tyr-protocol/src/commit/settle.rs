//! What follows when a transaction got further: who was held up by it is applied or woken.
//!
//! Those decided and held up (C6) are applied in the same step. Those that wait to be validated
//! (C1, C2) look at the applied state, which is behind until the driver has executed the step's
//! effects; so they are only marked, and looked at again with `Resume`.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};
use tyr_types::{BlobName, Timestamp};

use super::Commit;
use super::effect::Effect;
use super::event::Decision;
use super::memory::Remembered;
use super::record::{Record, Records, Slot, State};
use super::recovery::{Recovery, held_alone};
use crate::view::View;

/// Decided transactions in the order of their timestamps.
pub(super) type HeldUp = SmallVec<[(Timestamp, Slot); 4]>;

/// Whether somebody may wait to be validated: where nobody does, as is usual, nobody has to be
/// looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    is_anybody: bool,
    /// How often that was asked since it was last looked at.
    asked: usize,
}

impl Waiting {
    /// Somebody waits from now on.
    pub fn begin(&mut self) {
        (self.is_anybody, self.asked) = (true, 0);
    }

    /// Whether it is known that somebody may wait.
    pub fn is_known(self) -> bool {
        self.is_anybody
    }

    /// Whether somebody may wait. Looks at all only after as many questions as there are.
    fn is_anybody(&mut self, records: &Records) -> bool {
        self.asked += usize::from(self.is_anybody);
        if self.asked > records.len() {
            *self = Self::default();
            self.is_anybody = records.iter().any(|(_, record)| record.state.is_waiting());
        }
        self.is_anybody
    }
}

impl Commit {
    /// The transaction in `slot` got further: applies those it held up, wakes those that waited
    /// for it, and forgets what is finished.
    ///
    /// Each round but the first follows the application of a transaction, so there are at most as
    /// many as transactions in flight.
    pub(crate) fn settle(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        if self.records.get(slot).is_none() {
            return; // It was finished on the way here.
        }
        let held_up = if self.records.len() > 1 { self.held_up(slot) } else { SmallVec::new() };
        if self.records[slot].is_finished() {
            self.forget(slot);
        }
        self.free(held_up, effects);
    }

    /// Applies those of `held_up` that nothing holds up any more, and whoever they held up.
    pub(super) fn free(&mut self, held_up: HeldUp, effects: &mut Vec<Effect>) {
        let mut rounds: SmallVec<[HeldUp; 2]> = smallvec![held_up];
        while let Some(held_up) = rounds.pop() {
            for (at, other) in held_up {
                let Some(record) = self.records.get(other) else { continue };
                if record.state == State::Decided(at) && self.apply_if_next(other, at, effects) {
                    self.touch(other);
                    rounds.push(self.held_up(other));
                    if self.records[other].is_finished() {
                        self.forget(other);
                    }
                }
            }
        }
    }

    /// Those that `slot` holds up, in the order of their timestamps. Those that wait and share a
    /// blob with it are marked as woken.
    pub(super) fn held_up(&mut self, slot: Slot) -> HeldUp {
        let held_up = std::mem::take(&mut self.records[slot].holds_up);
        let decided = |other| match self.records.get(other)?.state {
            State::Decided(at) => Some((at, other)),
            _ => None,
        };
        let mut decided: HeldUp = held_up.into_iter().filter_map(decided).collect();
        decided.sort_unstable();
        debug_assert!(decided.iter().all(|(_, other)| *other != slot), "C6: it held itself up");
        self.wake(slot);
        decided
    }

    /// Marks as woken who waits for `slot`, and who waits for whatever happens on its blobs.
    fn wake(&mut self, slot: Slot) {
        for (arrival, other) in std::mem::take(&mut self.records[slot].holds_back) {
            let waits = |it: &Record| it.arrival == arrival && it.waits_for == Some(slot);
            if self.records.get(other).is_some_and(waits) {
                debug_assert_ne!(other, slot, "nobody waits for itself");
                self.records[other].waits_for = None;
                self.rank(other);
                self.woken.insert(arrival, other);
            }
        }
        if !self.waiting.is_anybody(&self.records) {
            return;
        }
        let record = &self.records[slot];
        let open = record.blobs().flat_map(|blob| self.in_flight.claims(blob).open());
        let open = open.chain(self.open_beside_listings(record));
        wake_open(&mut self.woken, &self.records, open.filter(|other| *other != slot));
    }

    /// Marks as woken who is kept off this blob, or waits for whatever happens on it (K2); and who
    /// has listed keys of the group of this name.
    pub(super) fn wake_kept_off(&mut self, blob: &BlobName) {
        let open = self.in_flight.claims(blob).open();
        let open = open.chain(self.in_flight.listings().of_group(blob));
        wake_open(&mut self.woken, &self.records, open);
    }

    pub(crate) fn forget(&mut self, slot: Slot) {
        let state = self.records[slot].state;
        let is_over = matches!(state, State::Applied(_) | State::Aborted);
        debug_assert!(is_over, "something comes of it yet: {state:?}");
        if let State::Applied(at) = self.records[slot].state {
            self.remember(slot, Some(Decision::Commit(at)));
        }
        let record = self.records.remove(slot);
        for blob in record.blobs() {
            self.in_flight.remove(blob, slot);
        }
        self.in_flight.remove_listings(slot);
        self.woken.remove(&record.arrival);
        // Claims name slots, and the next transaction gets this one.
        debug_assert!(
            record.blobs().all(|blob| self.in_flight.claims(blob).of(slot).next().is_none()),
            "nobody claims anything who is not known: {slot:?}"
        );
    }

    /// Notes what became of a transaction, or only the attempt promised to, for those who may
    /// still ask (F2, F4).
    pub(crate) fn remember(&mut self, slot: Slot, decision: Option<Decision>) {
        let (record, clock) = (&mut self.records[slot], self.clock);
        let Some(recovery) = &mut self.recovery else { return };
        let (id, attempt, entered_in) = (record.transaction.id, record.attempt, record.entered_in);
        match decision {
            Some(decision) => {
                let decided_at = match &decision {
                    Decision::Commit(at) => Some(*at),
                    Decision::Abort(_) => None,
                };
                let known = record.state.decided_at();
                debug_assert_eq!(decided_at, known, "F4: what is remembered is what was decided");
                let outcome = (decision, std::mem::take(&mut record.outcomes));
                recovery.memory.note(id, attempt, outcome, clock);
                let (ends, answers) = (record.chain.ends().clone(), &mut record.answers);
                let answers = std::mem::take(answers);
                recovery.memory.finish(id, entered_in, record.begun, ends, answers);
            }
            None => recovery.memory.fence(id, attempt, clock),
        }
        if !recovery.singles.is_empty() {
            let Recovery { memory, singles, .. } = &mut **recovery;
            memory.mark_single(id, held_alone(&record.chain, record.position, singles));
        }
    }

    /// A page of what is remembered here of transactions, for a node that was not there (F4): of
    /// those noted after the clock `after`, with where to go on. The last page also has those that
    /// are applied here and not finished with.
    pub(crate) fn remembered(&self, after: u64, limit: usize) -> (Vec<Remembered>, Option<u64>) {
        let Some(recovery) = &self.recovery else { return (Vec::new(), None) };
        let (mut page, next) = recovery.memory.page(after, limit);
        if next.is_none() {
            let applied = self.records.iter().filter_map(|(_, record)| {
                let State::Applied(at) = record.state else { return None };
                Some(Remembered {
                    id: record.transaction.id,
                    attempt: record.attempt,
                    ends: record.chain.ends().clone(),
                    decision: Decision::Commit(at),
                    outcomes: record.outcomes.clone(),
                })
            });
            page.extend(applied);
        }
        (page, next)
    }

    /// Takes in what another node remembers, also of what is in flight here: whoever knows what
    /// became of it may leave before it is asked about (F2).
    pub(crate) fn recall(&mut self, remembered: Remembered) {
        if let Decision::Commit(at) = &remembered.decision {
            self.observe(*at); // It is not noted below when it began (F10).
        }
        let clock = self.clock;
        if let Some(recovery) = &mut self.recovery {
            let (id, Recovery { memory, singles, .. }) = (remembered.id, &mut **recovery);
            memory.recall(remembered, clock);
            // What it is about is not told: it is kept as long as any of it may be.
            memory.mark_single(id, singles.iter().copied());
        }
    }

    /// It got further just now (F6).
    pub(crate) fn touch(&mut self, slot: Slot) {
        if let Some(recovery) = &self.recovery {
            let record = &mut self.records[slot];
            debug_assert!(record.touched_us <= recovery.elapsed_us, "F6: the clock does not jump");
            record.touched_us = recovery.elapsed_us;
            record.asked = 0;
        }
    }

    /// Looks again at those that waited, first come first.
    pub(super) fn resume(&mut self, now_us: u64, view: &impl View, effects: &mut Vec<Effect>) {
        self.is_resuming = false;
        for (arrival, slot) in std::mem::take(&mut self.woken) {
            let is_it = |record: &Record| record.arrival == arrival && record.state.is_waiting();
            let is_waiting = self.records.get(slot).is_some_and(is_it);
            if is_waiting {
                self.touch(slot);
                self.admit(now_us, slot, view, effects);
            }
        }
    }
}

/// Marks as woken those among these that wait, and for nobody in particular.
fn wake_open(
    woken: &mut BTreeMap<u64, Slot>,
    records: &Records,
    slots: impl Iterator<Item = Slot>,
) {
    for slot in slots {
        let record = &records[slot];
        if record.state.is_waiting() && record.waits_for.is_none() {
            woken.insert(record.arrival, slot);
        }
    }
}
