//! What the operations of transactions answered here, for those who ask again.
//!
//! The applied state answers when a transaction is applied, and not again. The answers are for the
//! client and travel back with the decision; they are kept as long as the outcome is (F4). Bounded
//! by [`OUTCOMES_MAX`], as outcomes are; nearly all transactions answer nothing and are not here.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_types::TransactionId;

use crate::commit::{OUTCOME_WINDOW_US, OUTCOMES_MAX, Outcomes};
use crate::window::Window;

/// Answers by transaction.
#[derive(Debug, Default)]
pub(super) struct Answers {
    by_id: HashMap<TransactionId, Outcomes, FixedState>,
    /// In the order they came.
    order: Window<TransactionId>,
}

impl Answers {
    /// Keeps what a transaction answered.
    pub fn keep(&mut self, id: TransactionId, outcomes: Outcomes) {
        if outcomes.is_empty() {
            return;
        }
        if self.by_id.insert(id, outcomes).is_none() {
            self.order.push(id);
        }
        self.let_go();
    }

    /// What a transaction answered here.
    pub fn of(&self, id: TransactionId) -> Outcomes {
        self.by_id.get(&id).cloned().unwrap_or_default()
    }

    /// The clock that does not jump says so: forgets what is older than the window.
    pub fn expire(&mut self, now_us: u64) {
        self.order.advance(now_us);
        self.let_go();
    }

    fn let_go(&mut self) {
        while let Some(id) = self.order.pop(OUTCOME_WINDOW_US, OUTCOMES_MAX) {
            self.by_id.remove(&id);
        }
    }

    /// Puts what was answered here in place of what nodes further along answered: they may have
    /// applied what is not decided here yet, and be lost before it is. On the way back the
    /// authority is the last to answer.
    pub fn complete(&self, id: TransactionId, outcomes: &mut Outcomes) {
        if let Some(own) = self.by_id.get(&id) {
            outcomes.put(own);
        }
    }

    pub fn invariants(&self) {
        assert_eq!(self.by_id.len(), self.order.len(), "all answers are forgotten some day");
        assert!(self.order.len() <= OUTCOMES_MAX, "answers are bounded");
    }
}
