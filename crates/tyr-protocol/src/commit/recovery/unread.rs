//! A transaction that a node of its chain does not understand, since its program is of an older
//! release.
//!
//! Where feature levels are kept to this does not happen: nothing is begun that needs a higher one
//! than all nodes of the map speak. Should it happen all the same, the transaction ends as if the
//! node had refused it at validation, and nobody asks about it for ever: the node takes it for
//! aborted, and whoever has it undecided and hears that it was not understood finds that out.

use tyr_types::{ErrorKind, TransactionId};

use crate::abort::Abort;
use crate::commit::record::State;
use crate::commit::{Attempt, Commit, Decision, Effect, Outcomes};
use crate::view::View;

impl Commit {
    /// A transaction that needs this feature level came by, and was not understood. Nothing of it
    /// was validated here, and nothing will be: a ballot is told that it is aborted.
    ///
    /// Only while this process lives: the next may be of a later release.
    pub(crate) fn unread(&mut self, id: TransactionId, level: u8) {
        let clock = self.clock;
        let is_here = self.records.slot(id).is_some();
        let Some(recovery) = self.recovery.as_mut().filter(|_| !is_here) else { return };
        let entry = recovery.memory.get(id);
        if entry.is_some_and(|entry| entry.outcome.is_some()) {
            return;
        }
        let attempt = entry.map_or(Attempt::default(), |entry| entry.attempt);
        let reason = format!(
            "it needs feature level {level}, and node {} does not understand it: it is of an older \
             release; upgrade it",
            self.node.0
        );
        let decision = Decision::Abort(Abort::new(ErrorKind::Unavailable, reason));
        recovery.memory.note(id, attempt, (decision, Outcomes::new()), clock);
    }

    /// What was sent of a transaction was not understood, be it the transaction on its way or a
    /// question about it to who should have found out: then this node finds out.
    pub(crate) fn not_understood(
        &mut self,
        now_us: u64,
        id: TransactionId,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.records.slot(id) else { return };
        let record = &self.records[slot];
        match record.state {
            State::Fenced | State::Validated(_) => {
                let subject = record.subject();
                self.inquire_unless_under_way(now_us, subject, view, effects);
            }
            // Not sent yet, decided, or over.
            State::Waiting
            | State::Parked
            | State::Persisting(_)
            | State::Decided(_)
            | State::Applied(_)
            | State::Aborting
            | State::Aborted => {}
        }
    }
}
