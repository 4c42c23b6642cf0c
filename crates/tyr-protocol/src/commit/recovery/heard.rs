//! Commits that were heard of and cannot be applied yet are written down (F14).
//!
//! What is applied is in the log, and so what became of it. What cannot be applied, because a word
//! from others is missing, is known in memory only: were those who have it in their logs lost, and
//! this node to crash then, it would have what it validated and nobody who knows better. It would
//! run again, at another timestamp than was shown, over copies that have it in them already.

use crate::commit::memory::Remembered;
use crate::commit::record::{Heard, Record, Slot};
use crate::commit::{Commit, Decision, Effect};
use crate::rule::Rule;

impl Commit {
    /// With each tick, of those that cannot be applied yet and are not written down: those that the
    /// tick before found so, too. Most are applied soon, and nothing is written of them twice.
    pub(super) fn note_late(&mut self, heard: &[Slot], effects: &mut Vec<Effect>) {
        let mut late = Vec::new();
        for slot in heard {
            match self.records[*slot].heard {
                Heard::Unwritten => self.records[*slot].heard = Heard::Due,
                Heard::Due | Heard::Written => late.push(*slot),
            }
        }
        let heard = self.take_heard(late);
        if !heard.is_empty() {
            effects.push(Effect::NoteHeard { heard });
        }
    }

    /// All of them, to be written down before what is about to be written: that has effects of
    /// theirs in it, and does not say whose they are.
    pub(crate) fn take_all_heard(&mut self) -> Vec<Remembered> {
        let heard = self.records.iter().filter(|(_, record)| record.is_heard_only());
        let heard: Vec<Slot> = heard.map(|(slot, _)| slot).collect();
        self.take_heard(heard)
    }

    fn take_heard(&mut self, heard: Vec<Slot>) -> Vec<Remembered> {
        if self.recovery.is_none() || !self.rules.hold(Rule::F14) {
            return Vec::new();
        }
        let taken = heard.into_iter().filter_map(|slot| {
            let record = &mut self.records[slot];
            record.heard = Heard::Written;
            record.as_heard()
        });
        taken.collect()
    }
}

impl Record {
    /// Whether it commits, cannot be applied yet, and is not written down.
    pub(super) fn is_heard_only(&self) -> bool {
        self.heard != Heard::Written && self.heard_at().is_some()
    }

    /// A commit that cannot be applied yet, as it is written down.
    pub(crate) fn as_heard(&self) -> Option<Remembered> {
        Some(Remembered {
            id: self.transaction.id,
            attempt: self.attempt,
            ends: self.chain.ends().clone(),
            decision: Decision::Commit(self.heard_at()?),
            outcomes: self.outcomes.clone(),
        })
    }
}
