//! What becomes of a transaction that a node has no room for: it waits, and goes when there may be.
//!
//! ```text
//!   submit ──► more are in flight there than its refusals allow ──► in line ──┐
//!     ▲ └────► sent ──► refused at the door ──► pause ──┐                     │ one is answered
//!     └─────────────────────────────────────────────────┴─────────────────────┘
//! ```
//!
//! It is sent under the same id, and to the same head of the same map it is no retry: to that it is
//! what the network may always have doubled (F4). Both end in the node's words when three quarters
//! of the call's time are over. How many may be in flight is in [`limits`](super::limits).

use tyr_types::{ErrorKind, NodeId};

use super::effect::Effect;
use super::event::CallId;
use super::limits::{ROOM_PAUSE_MAX_US, ROOM_PAUSE_US, ROOM_RESERVE};
use super::routing::pause_us;
use super::{Session, Task};
use crate::abort::Abort;

impl Session {
    /// Until when a call waits for room.
    fn patient_until_us(&self, call: CallId) -> Option<u64> {
        let deadline_us = self.calls.get(&call)?.deadline_us;
        Some(deadline_us.saturating_sub(self.config.deadline_us / ROOM_RESERVE))
    }

    /// A node is not to be sent more: a transaction that was not sent yet waits for a moment.
    pub(super) fn wait_for_room(
        &mut self,
        call: CallId,
        to: NodeId,
        abort: Abort,
        effects: &mut Vec<Effect>,
    ) {
        let Some(until_us) = self.patient_until_us(call) else { return };
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        debug_assert!(!submission.is_sent(), "F4: what a node has is asked about at once");
        let now_us = self.now_us;
        let (is_queued, end_us) = (submission.queued_at == Some(to), in_flight.deadline_us);
        let is_late = now_us >= until_us;
        if is_late || !is_queued && !self.limits.wait(to, call, end_us, submission.len) {
            return self.give_up(call, abort, effects);
        }
        submission.queued_at = Some(to);
        submission.refusal = Some(abort);
        self.resume_in(call, until_us - now_us);
    }

    /// Nodes may have been sent less meanwhile, or take more: whoever waited for that goes on.
    pub(super) fn let_go(&mut self, effects: &mut Vec<Effect>) {
        while let Some((node, call)) = self.limits.next(self.now_us) {
            let Some(in_flight) = self.calls.get_mut(&call) else { continue };
            let Task::Commit(submission) = &mut in_flight.task else { continue };
            if submission.queued_at == Some(node) {
                submission.queued_at = None;
                self.submit(call, effects);
            }
        }
    }

    /// A node had no room for a transaction that was sent once, and has not looked at it: it is
    /// sent again after a pause. `false` when that has gone on for long enough.
    pub(super) fn wait_after_refusal(&mut self, call: CallId, abort: &Abort) -> bool {
        let now_us = self.now_us;
        let Some(until_us) = self.patient_until_us(call) else { return false };
        let Some(in_flight) = self.calls.get_mut(&call) else { return false };
        let Task::Commit(submission) = &mut in_flight.task else { return false };
        if abort.kind != ErrorKind::Unavailable || submission.is_question {
            return false;
        }
        submission.refusals += 1;
        let salt = self.client ^ submission.sequence();
        let pause_us = pause_us(ROOM_PAUSE_US, ROOM_PAUSE_MAX_US, submission.refusals, salt);
        if now_us + pause_us >= until_us {
            return false;
        }
        submission.take_back(abort.clone(), &mut self.limits);
        self.resume_in(call, pause_us);
        true
    }
}
