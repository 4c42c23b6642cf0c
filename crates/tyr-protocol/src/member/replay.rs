//! A restart: the log tells a node what it was.
//!
//! The same functions run as when the records were written, so that the state is the same; only
//! nothing is said to anyone. What was promised holds; what was not durable was told to nobody.

use super::{Member, Record, Store, Turn};
use crate::commit;
use crate::commit::Decision;
use crate::movement;
use crate::recovery::Restored;

impl Member {
    /// Takes in a record of the log, in the order they were written, before the first step.
    pub fn replay<S: Store>(&mut self, record: Record, store: &mut S) {
        let mut said = Vec::new();
        let mut turn = Turn { member: self, store, effects: &mut said };
        match record {
            Record::Map(map) => {
                let given = turn.member.incarnation;
                turn.adopt(map);
                if let Some(seat) = turn.member.seat() {
                    turn.member.incarnation = given.max(seat.incarnation + 1);
                    turn.member.has_disk = true;
                    turn.member.usage.change();
                }
            }
            Record::Validated { transaction, chain, attempt, begun: _, proposal, placed } => {
                turn.hear_of_chunks(&chain);
                turn.restore(Restored::Validated { transaction, chain, attempt, proposal, placed });
            }
            Record::Fenced { id, attempt, is_cleared } => {
                turn.restore(Restored::Fenced { id, attempt, is_cleared });
            }
            Record::Decided { id, at } => {
                turn.restore(Restored::Decided { id, decision: Decision::Commit(at) });
            }
            Record::Aborted { id, abort } => {
                turn.restore(Restored::Decided { id, decision: Decision::Abort(abort) });
            }
            Record::Recalled { outcomes } => {
                outcomes.into_iter().for_each(|it| turn.member.commit.recall(it));
            }
            Record::Installed { blob, chunk, copy } => {
                let chunk = (blob, chunk);
                turn.member.commit.observe(copy.at);
                turn.store.await_base(&chunk);
                turn.store.install(&chunk, &copy);
                if copy.is_last {
                    turn.supply(movement::Event::Stored(chunk));
                }
            }
        }
        // Nobody waits for what was asked for on the way.
        self.promises.clear();
        self.lease = crate::lease::Holder::new(self.incarnation);
    }
}

impl<S: Store> Turn<'_, S> {
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
