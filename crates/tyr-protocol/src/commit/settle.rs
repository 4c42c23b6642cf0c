//! What follows when a transaction got further: who was held up by it is applied or woken.
//!
//! Those decided and held up (C6) are applied in the same step. Those that wait to be validated
//! (C1, C2) look at the applied state, which is behind until the driver has executed the step's
//! effects; so they are only marked, and looked at again with `Resume`.

use smallvec::{SmallVec, smallvec};
use tyr_types::Timestamp;

use super::Commit;
use super::effect::Effect;
use super::record::{Slot, State};
use crate::view::View;

impl Commit {
    /// The transaction in `slot` got further: applies those it held up, wakes those that waited
    /// for it, and forgets what is finished.
    ///
    /// Each round but the first follows the application of a transaction, so there are at most as
    /// many as transactions in flight.
    pub(super) fn settle(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        let mut changed: SmallVec<[Slot; 4]> = smallvec![slot];
        while let Some(slot) = changed.pop() {
            let held_up =
                if self.records.len() > 1 { self.neighbours(slot) } else { SmallVec::new() };
            if self.records[slot].is_finished() {
                self.forget(slot);
            }
            for (at, other) in held_up {
                let is_held =
                    self.records.get(other).map(|record| record.state) == Some(State::Decided(at));
                if is_held && !self.is_blocked(other, at) {
                    self.apply(other, at, effects);
                    changed.push(other);
                }
            }
        }
    }

    /// Those that share a blob with `slot`: the decided in the order of their timestamps; the
    /// waiting are marked as woken.
    fn neighbours(&mut self, slot: Slot) -> SmallVec<[(Timestamp, Slot); 4]> {
        let mut decided = SmallVec::new();
        for blob in self.records[slot].blobs() {
            let claims = self.in_flight.claims(blob).iter();
            for other in claims.map(|claim| claim.slot).filter(|other| *other != slot) {
                let record = &self.records[other];
                match record.state {
                    State::Decided(at) => decided.push((at, other)),
                    State::Waiting => {
                        self.woken.insert(record.arrival, other);
                    }
                    State::Persisting(_)
                    | State::Validated(_)
                    | State::Applied(_)
                    | State::Aborted => {}
                }
            }
        }
        decided.sort_unstable();
        decided.dedup();
        decided
    }

    fn forget(&mut self, slot: Slot) {
        let record = self.records.remove(slot);
        for blob in record.blobs() {
            self.in_flight.remove(blob, slot);
        }
        self.woken.remove(&record.arrival);
    }

    /// Looks again at those that waited, first come first.
    pub(super) fn resume(&mut self, now_us: u64, view: &impl View, effects: &mut Vec<Effect>) {
        self.is_resuming = false;
        for (arrival, slot) in std::mem::take(&mut self.woken) {
            let is_waiting = self
                .records
                .get(slot)
                .is_some_and(|record| record.arrival == arrival && record.state == State::Waiting);
            if is_waiting {
                self.admit(now_us, slot, view, effects);
            }
        }
    }
}
