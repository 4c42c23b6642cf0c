//! A restart: the log tells a node what it was.
//!
//! The same functions run as when the records were written, so that the state is the same; only
//! nothing is said to anyone. What was promised holds; what was not durable was told to nobody.

use super::{Member, Record, Store, Turn};
use crate::commit;
use crate::commit::{Decision, Kept};
use crate::movement;
use crate::recovery::Restored;

impl Member {
    /// Takes in a record of the log, in the order they were written, before the first step; those
    /// of a [checkpoint](Member::checkpoint) before those that came after it.
    pub fn replay<S: Store>(&mut self, record: Record, store: &mut S) {
        let mut said = Vec::new();
        let mut turn = Turn { member: self, store, effects: &mut said };
        match record {
            Record::Map(map) => {
                turn.adopt(map);
                turn.take_seat();
            }
            Record::Validated { transaction, chain, attempt, begun, proposal, placed } => {
                turn.hear_of_chunks(&chain);
                turn.restore(Restored::Validated {
                    transaction,
                    chain,
                    attempt,
                    begun,
                    proposal,
                    placed,
                });
            }
            Record::Fenced { id, attempt, is_cleared } => {
                turn.restore(Restored::Fenced { id, attempt, is_cleared });
            }
            Record::Decided { id, at } => {
                turn.restore(Restored::Decided { id, decision: Decision::Commit(at) });
            }
            Record::Answered { id, outcomes } => turn.member.commit.answered(id, outcomes),
            Record::Aborted { id, abort } => {
                turn.restore(Restored::Decided { id, decision: Decision::Abort(abort) });
            }
            Record::Recalled { outcomes } => {
                outcomes.into_iter().for_each(|it| turn.member.commit.recall(it));
            }
            Record::Finished { but } => turn.member.commit.restore_finished(&but),
            Record::Installed { blob, chunk, copy } => {
                let chunk = (blob, chunk);
                turn.member.commit.observe(copy.at);
                turn.store.await_base(&chunk);
                turn.store.install(&chunk, &copy);
                if copy.is_last {
                    turn.member.aside.forget(&chunk);
                    turn.supply(movement::Event::Stored(chunk));
                }
            }
            Record::Remembered { entries } => turn.member.remember(entries),
            Record::Standing { map, has_disk, clock, floor } => {
                turn.stand(map, has_disk, (clock, floor));
            }
            Record::Aside { transaction, chain, at } => {
                turn.lay_aside_again(&transaction, &chain, at);
            }
        }
        // Nobody waits for what was asked for on the way.
        self.promises.clear();
        self.lease = crate::lease::Holder::new(self.incarnation);
    }
}

impl Member {
    /// Takes in a page of what was remembered when the log was cut.
    fn remember(&mut self, entries: Vec<Kept>) {
        for kept in entries {
            if let Some(recovery) = &mut self.commit.recovery {
                recovery.memory.keep(kept);
            }
        }
    }
}

impl<S: Store> Turn<'_, S> {
    /// After a restart a node goes by another incarnation than any map had; where one had it at
    /// all, it still has its disk.
    pub(super) fn take_seat(&mut self) {
        if let Some(seat) = self.member.seat().copied() {
            self.member.incarnation = self.member.incarnation.max(seat.incarnation + 1);
            self.member.has_disk = true;
            self.member.usage.change();
        }
    }

    fn restore(&mut self, restored: Restored) {
        let mut effects = Vec::new();
        self.member.commit.restore(restored, &*self.store, &mut effects);
        for effect in effects {
            if let commit::Effect::Apply { transaction, chain, at } = effect {
                self.apply(&transaction, &chain, at);
            }
        }
    }
}
