//! When something is to be tried again, or given up.

use std::collections::BTreeSet;

use tyr_types::ErrorKind;

use super::effect::Effect;
use super::event::CallId;
use super::{Session, Task};
use crate::abort::Abort;

/// What happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A call has taken too long.
    Deadline(CallId),
    /// A question has no answer yet.
    Question(u64),
    /// A call goes on by itself.
    Resume(CallId),
    /// Leases are renewed, or over.
    Leases,
    /// Those who tell of what is watched are asked.
    Watches,
}

/// What is to happen, by time. Bounded by the calls and questions: each has one of a kind, the
/// leases have one, and the watches.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers(BTreeSet<(u64, Timer)>);

impl Timers {
    pub fn set(&mut self, due_us: u64, timer: Timer) {
        let is_new = self.0.insert((due_us, timer));
        debug_assert!(
            is_new,
            "the one before was cleared, or it would be cleared for two: {timer:?}"
        );
    }

    pub fn clear(&mut self, due_us: u64, timer: Timer) {
        self.0.remove(&(due_us, timer));
    }

    /// When the first one is due.
    pub fn first_us(&self) -> Option<u64> {
        self.0.first().map(|(due_us, _)| *due_us)
    }

    /// The next that is due by now.
    pub fn pop(&mut self, now_us: u64) -> Option<Timer> {
        let is_due = self.first_us().is_some_and(|due_us| due_us <= now_us);
        if is_due { self.0.pop_first().map(|(_, timer)| timer) } else { None }
    }

    pub fn contains(&self, due_us: u64, timer: Timer) -> bool {
        self.0.contains(&(due_us, timer))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Session {
    /// What is due is done.
    pub(super) fn fire(&mut self, effects: &mut Vec<Effect>) {
        while let Some(timer) = self.timers.pop(self.now_us) {
            match timer {
                Timer::Deadline(call) => {
                    let reason = "no node that could answer did so in time; retry later";
                    let abort = self.last_refusal(call);
                    let abort = abort.unwrap_or(Abort::new(ErrorKind::Unavailable, reason));
                    self.give_up(call, abort, effects);
                }
                Timer::Question(number) => self.is_late(number, effects),
                Timer::Leases => self.renew_leases(effects),
                Timer::Watches => self.ask_tellers(effects),
                Timer::Resume(call) => {
                    let Some(in_flight) = self.calls.get_mut(&call) else { continue };
                    in_flight.due_us = None;
                    match &in_flight.task {
                        Task::Commit(submission) => {
                            if let Some(head) = submission.waits_for() {
                                self.ask_others_than(head, effects);
                            }
                            self.submit(call, effects);
                        }
                        Task::Read(_) => self.advance(call, effects),
                        Task::Scan(_) => self.resume_scan(call, effects),
                        Task::Lease(_) => self.resume_lease(call, effects),
                        Task::Stage(_) => self.send_piece(call, effects),
                        Task::Notify(_) => self.resume_notice(call, effects),
                        Task::Moment(_) => self.resume_moment(call, effects),
                    }
                }
            }
        }
    }

    /// The call goes on by itself in `pause_us`.
    pub(super) fn resume_in(&mut self, call: CallId, pause_us: u64) {
        let due_us = self.now_us + pause_us.max(1);
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        if let Some(before_us) = in_flight.due_us.replace(due_us) {
            self.timers.clear(before_us, Timer::Resume(call));
        }
        self.timers.set(due_us, Timer::Resume(call));
    }
}
