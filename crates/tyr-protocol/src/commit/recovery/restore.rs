//! What a node knows of transactions after a restart, from its log (F2, promise 6).
//!
//! What it validated is in flight again, and will be asked about when the map is installed: the
//! restart has a new incarnation, so every chain with this node is affected (F1). What it knew to
//! be decided is applied again, in the order of C6. Whether others know that it is stable is
//! asked of the authorities (R2), but for what the log says was finished with.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use tyr_types::{Timestamp, Transaction, TransactionId};

use crate::chain::Chain;
use crate::commit::enter::Pass;
use crate::commit::record::{Record, Slot, State};
use crate::commit::{Attempt, Commit, Decision, Effect, Outcomes, Placements};
use crate::view::View;

/// A record of the log, as it comes back.
#[derive(Clone, Debug)]
pub enum Restored {
    /// It was validated here.
    Validated {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// The attempt.
        attempt: Attempt,
        /// The cluster's clock when the client first submitted it.
        begun: Timestamp,
        /// The timestamp proposed.
        proposal: Timestamp,
        /// Appends whose offset was settled.
        placed: Placements,
    },
    /// A promise to take part in no older attempt.
    Fenced {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Whether what was validated before was withdrawn.
        is_cleared: bool,
    },
    /// What became of it.
    Decided {
        /// The transaction.
        id: TransactionId,
        /// What became of it.
        decision: Decision,
    },
}

impl Commit {
    /// Takes in a record of the log, in the order they were written, before anything else happens;
    /// `effects` are applications only.
    pub fn restore(&mut self, restored: Restored, view: &impl View, effects: &mut Vec<Effect>) {
        let mut all = Vec::new();
        match restored {
            Restored::Validated { transaction, chain, attempt, begun, proposal, placed } => {
                self.observe(proposal);
                let (highest, known) = (proposal, None);
                let pass = Pass { transaction, chain, attempt, begun, highest, known };
                self.restore_validated(pass, placed, view, &mut all);
            }
            Restored::Fenced { id, attempt, is_cleared } => match self.records.slot(id) {
                Some(slot) => {
                    let record = &mut self.records[slot];
                    record.attempt = record.attempt.max(attempt);
                    if is_cleared && record.state.is_undecided() {
                        self.withdraw(slot);
                        self.settle(slot, &mut all);
                    }
                }
                None => {
                    let clock = self.clock;
                    let Some(recovery) = &mut self.recovery else { return };
                    recovery.memory.fence(id, attempt, clock);
                }
            },
            Restored::Decided { id, decision } => self.restore_decided(id, decision, &mut all),
        }
        // Nothing is said again; that something goes on is seen when the map is installed.
        effects.extend(all.into_iter().filter(|effect| matches!(effect, Effect::Apply { .. })));
    }

    /// What was applied by this place of the log is finished with, but these.
    pub(crate) fn restore_finished(&mut self, but: &[TransactionId]) {
        let but: HashSet<_, FixedState> = but.iter().copied().collect();
        let is_finished =
            |record: &Record| record.is_applied() && !but.contains(&record.transaction.id);
        debug_assert!(self.moved.is_empty(), "a log is read before anybody reads what it has");
        let finished = self.records.iter().filter(|(_, record)| is_finished(record));
        let finished: Vec<Slot> = finished.map(|(slot, _)| slot).collect();
        finished.into_iter().for_each(|slot| self.forget(slot));
    }

    fn restore_decided(
        &mut self,
        id: TransactionId,
        decision: Decision,
        effects: &mut Vec<Effect>,
    ) {
        match (self.records.slot(id), decision) {
            (Some(slot), Decision::Commit(at)) => {
                let record = &mut self.records[slot];
                record.is_behind = true;
                record.is_passed = true;
                record.is_anchored = true;
                record.unanchored.clear();
                let node = self.node;
                record.unstable.retain(|authority| *authority != node);
                self.decide(slot, at, effects);
            }
            (Some(slot), Decision::Abort(abort)) => {
                self.abort(slot, abort, effects);
                // It was durable: nobody has to wait for that again.
                if let Some(slot) = self.records.slot(id) {
                    self.records[slot].state = State::Aborted;
                    self.settle(slot, effects);
                }
            }
            (None, decision) => {
                let clock = self.clock;
                let Some(recovery) = &mut self.recovery else { return };
                let attempt = recovery.memory.get(id).map(|entry| entry.attempt);
                let attempt = attempt.unwrap_or_default();
                recovery.memory.note(id, attempt, (decision, Outcomes::new()), clock);
            }
        }
    }
}
