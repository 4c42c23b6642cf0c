//! What the operations of transactions answered here, for those who ask again.
//!
//! The applied state answers when a transaction is applied, and not again. The answers are for the
//! client and travel back with the decision; they are kept as long as the outcome is (F4). Bounded
//! by [`OUTCOMES_MAX`], as outcomes are; nearly all transactions answer nothing and are not here.

use std::collections::{BTreeMap, VecDeque};

use tyr_types::{Timestamp, TransactionId};

use crate::commit::{OUTCOME_WINDOW_US, OUTCOMES_MAX, Outcomes};

/// Answers by transaction.
#[derive(Debug, Default)]
pub(super) struct Answers {
    by_id: BTreeMap<TransactionId, Outcomes>,
    /// In the order they came.
    order: VecDeque<(u64, TransactionId)>,
}

impl Answers {
    /// Keeps what a transaction answered at the clock `now`.
    pub fn keep(&mut self, id: TransactionId, outcomes: Outcomes, now: Timestamp) {
        if outcomes.is_empty() {
            return;
        }
        if self.by_id.insert(id, outcomes).is_none() {
            self.order.push_back((now.clock, id));
        }
        self.expire(now);
    }

    /// Forgets what is older than the window, or too much.
    pub fn expire(&mut self, now: Timestamp) {
        let horizon = now.clock.saturating_sub(OUTCOME_WINDOW_US);
        while let Some((kept, id)) = self.order.front().copied() {
            if kept > horizon && self.order.len() <= OUTCOMES_MAX {
                break;
            }
            self.order.pop_front();
            self.by_id.remove(&id);
        }
    }

    /// Adds what was answered here to what others answered.
    pub fn complete(&self, id: TransactionId, outcomes: &mut Outcomes) {
        for own in self.by_id.get(&id).into_iter().flatten() {
            let is_same = |other: &crate::commit::Answered| {
                (other.blob, other.operation) == (own.blob, own.operation)
            };
            if !outcomes.iter().any(is_same) {
                outcomes.push(*own);
            }
        }
    }

    pub fn invariants(&self) {
        assert_eq!(self.by_id.len(), self.order.len(), "all answers are forgotten some day");
        assert!(self.order.len() <= OUTCOMES_MAX, "answers are bounded");
    }
}
