//! What others propose waits in order; what nodes report for themselves nobody proposes.

use tyr_types::Error;

use super::effect::Effect;
use super::grants::{Grants, PROPOSALS_MAX};
use crate::map::Change;

impl Grants {
    pub(super) fn propose(&mut self, proposal: u64, change: Change, effects: &mut Vec<Effect>) {
        let refusal = match &change {
            Change::Settle(_) | Change::Return { .. } | Change::RaiseLevel => Some(Error::invalid(
                "nodes report for themselves that they are back or caught up, and what they \
                     speak",
            )),
            Change::Join(_)
            | Change::Drain(_)
            | Change::Remove(_)
            | Change::SetWeight { .. }
            | Change::CancelMove
            | Change::Down(_)
            | Change::CreateKeyspace { .. }
            | Change::DropKeyspace(_)
            | Change::ForgetKeyspace(_)
            | Change::AcceptLoss(_)
            | Change::Keep { .. }
            | Change::DropKept(_) => (self.proposals.len() >= PROPOSALS_MAX)
                .then(|| Error::unavailable("too many changes wait already; try again later")),
        };
        match refusal {
            Some(error) => effects.push(Effect::Answer { proposal, result: Err(error) }),
            None => self.proposals.push_back((proposal, change)),
        }
    }
}
