//! When something is to be tried again, or given up.

use std::collections::BTreeSet;

use super::event::CallId;

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
