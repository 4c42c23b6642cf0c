//! What the operations of transactions answered at this node, for those who ask again.
//!
//! The applied state answers when a transaction is applied, and not again. The answers are for the
//! client and travel back with the decision; then they are remembered with it (F4).

use tyr_types::TransactionId;

use super::Commit;
use super::outcomes::Outcomes;

impl Commit {
    /// The transaction was applied here, and its operations answered this.
    pub(crate) fn answered(&mut self, id: TransactionId, answers: Outcomes) {
        if answers.is_empty() {
            return;
        }
        if let Some(slot) = self.records.slot(id) {
            self.records[slot].answers = answers;
        } else if let Some(recovery) = &mut self.recovery {
            recovery.memory.answered(id, answers);
        }
    }

    /// What a transaction answered here.
    pub(crate) fn answers(&self, id: TransactionId) -> Option<&Outcomes> {
        let in_flight = self.records.slot(id).map(|slot| &self.records[slot].answers);
        in_flight.filter(|answers| !answers.is_empty()).or_else(|| {
            let remembered = self.recovery.as_deref()?.memory.get(id);
            remembered.map(|entry| &entry.answers)
        })
    }

    /// Puts what was answered here in place of what nodes further along answered: they may have
    /// applied what is not decided here yet, and be lost before it is. On the way back the
    /// authority is the last to answer.
    pub(crate) fn complete(&self, id: TransactionId, outcomes: &mut Outcomes) {
        if let Some(own) = self.answers(id) {
            outcomes.put(own);
        }
    }
}
