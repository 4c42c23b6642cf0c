//! A restart: the log tells a node what it was.
//!
//! The same functions run as when the records were written, so that the state is the same; only
//! nothing is said to anyone. What was promised holds; what was not durable was told to nobody.

use std::sync::Arc;

use tyr_types::{Timestamp, Transaction};

use super::{Member, Record, Store, Turn};
use crate::chain::Chain;
use crate::commit;
use crate::commit::recovery::Restored;
use crate::commit::{Decision, Marked, Singles};
use crate::movement;
use crate::rule::Rule;

impl Member {
    /// Takes in a record of the log, in the order they were written, before the first step.
    pub fn replay<S: Store>(&mut self, record: Record, store: &mut S) {
        self.read_again(store, |turn| turn.take_back(record));
    }

    /// Takes in a record of the [checkpoint](Member::checkpoint) that stands for the log before the
    /// base in `store`, in its order, before what the log has since.
    pub fn replay_checkpoint<S: Store>(&mut self, record: Record, store: &mut S) {
        self.read_again(store, |turn| turn.take_back_standing(record));
    }

    fn read_again<S: Store>(&mut self, store: &mut S, take_back: impl FnOnce(&mut Turn<'_, S>)) {
        let mut said = Vec::new();
        let mut turn = Turn { member: self, store, effects: &mut said };
        take_back(&mut turn);
        turn.member.difference.replayed(turn.member.commit.clock());
        // Nobody waits for what was asked for on the way.
        let is_said = said.iter().any(|it| matches!(it, super::Effect::Serve { .. }));
        debug_assert!(!is_said, "M3: nobody is answered before there is a lease");
        self.promises.clear();
        self.lease = crate::lease::Holder::new(self.incarnation);
    }
}

impl Member {
    /// Takes in a page of what was remembered when the log was cut.
    pub(super) fn remember(&mut self, entries: impl IntoIterator<Item = Marked>) {
        if let Some(recovery) = &mut self.commit.recovery {
            entries.into_iter().for_each(|it| recovery.memory.keep(it));
        }
    }
}

impl<S: Store> Turn<'_, S> {
    /// Takes in a record of what this node was.
    pub(super) fn take_back(&mut self, record: Record) {
        match record {
            Record::Map(map) => {
                self.adopt(map);
                self.take_seat();
                // It is logged only where it is this folder's.
                self.member.has_disk |= self.member.map_node().is_some();
            }
            Record::Validated { transaction, chain, attempt, begun, proposal, placed } => {
                self.hear_of_chunks(&chain);
                self.restore(Restored::Validated {
                    transaction,
                    chain,
                    attempt,
                    begun,
                    proposal,
                    placed,
                });
            }
            Record::Fenced { id, attempt, is_cleared } => {
                self.restore(Restored::Fenced { id, attempt, is_cleared });
            }
            Record::Decided { id, at } => {
                self.restore(Restored::Decided { id, decision: Decision::Commit(at) });
            }
            Record::Answered { id, outcomes } => self.member.commit.answered(id, outcomes),
            Record::Aborted { id, abort } => {
                self.restore(Restored::Decided { id, decision: Decision::Abort(abort) });
            }
            Record::Recalled { outcomes } => {
                outcomes.into_iter().for_each(|it| self.member.commit.recall(it));
            }
            Record::Finished { but } => self.member.commit.restore_finished(&but),
            Record::Installed { blob, chunk, copy } => {
                let chunk = (blob, chunk);
                self.member.commit.observe(copy.at);
                self.await_copy(&chunk);
                self.store.install(&chunk, &copy);
                if copy.is_last {
                    self.nothing_waits_for(&chunk);
                    self.supply(movement::Event::Stored(chunk));
                }
            }
            Record::Remembered { entries } => {
                let unmarked = |kept| Marked { kept, singles: Singles::new() };
                self.member.remember(entries.into_iter().map(unmarked));
            }
            Record::Marked { entries } => self.member.remember(entries),
            Record::Staged { staged, until_us, content } => {
                self.restage(staged, until_us, &content);
            }
            Record::Unstaged { ids } => self.unstaged(ids),
            Record::Standing { map, has_disk, clock, floor } => {
                self.stand(map, has_disk, clock, floor);
            }
            Record::CompleteTo { at } => self.member.difference.is_complete_to(at),
            Record::Aside { transaction, chain, at } => {
                self.lay_aside_again(&transaction, &chain, at);
            }
        }
    }

    /// Takes in a record of a checkpoint. What was applied by then is in the base, or went with its
    /// chunk; what it has of chunks that waited was taken in as laid aside.
    fn take_back_standing(&mut self, record: Record) {
        let Record::Decided { id, at } = record else { return self.take_back(record) };
        let decided = Restored::Decided { id, decision: Decision::Commit(at) };
        for (transaction, chain, _) in self.applies(decided) {
            self.use_alone(&transaction, &chain);
        }
    }

    /// After a restart a node goes by another incarnation than any map had.
    pub(super) fn take_seat(&mut self) {
        if let Some(map_node) = self.member.map_node().copied() {
            self.member.incarnation = self.member.incarnation.max(map_node.incarnation + 1);
            debug_assert!(!self.member.is_member(), "M4: nobody takes it for the process before");
            self.member.usage.change();
            // What the process before gave it does not know (K3).
            self.member.place_key_leases(None);
        }
    }

    /// Takes in a record of what this node goes on with though it began anew: of what it decided
    /// all is in the chunks that it keeps.
    pub(super) fn take_on(&mut self, record: Record) {
        let Record::Decided { id, at } = record else { return self.take_back(record) };
        let decided = Restored::Decided { id, decision: Decision::Commit(at) };
        for (transaction, chain, at) in self.applies(decided) {
            self.keep_applied(&transaction, &chain, at);
        }
    }

    /// Where the log already has what a transaction answered, that stands (L4): it may be applied
    /// later than it was, when its chunk is gone from a base that is ahead.
    fn restore(&mut self, restored: Restored) {
        for (transaction, chain, at) in self.applies(restored) {
            let logged = self.member.commit.answers(transaction.id).cloned();
            self.apply(&transaction, &chain, at);
            if let Some(logged) = logged.filter(|_| self.member.commit.rules.hold(Rule::L4)) {
                self.member.commit.answered(transaction.id, logged);
            }
        }
    }

    /// Restores it in the commit machine; answers what that applies.
    fn applies(&mut self, restored: Restored) -> Vec<(Arc<Transaction>, Chain, Timestamp)> {
        let mut effects = Vec::new();
        self.member.commit.restore(restored, &*self.store, &mut effects);
        let applies = |effect| match effect {
            commit::Effect::Apply { transaction, chain, at } => Some((transaction, chain, at)),
            _ => None,
        };
        effects.into_iter().filter_map(applies).collect()
    }
}
