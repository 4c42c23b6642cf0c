//! What there is of one key, or of one group: who holds it, and who waits.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tyr_types::LeaseMode;

use super::Message;

/// A holder is told again after so long that somebody waits, in microseconds.
pub(super) const RECALL_AGAIN_US: u64 = 1_000_000;

/// A lease of a client: nobody else gives the same.
pub(super) type Holder = (u64, u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub holder: Holder,
    pub mode: LeaseMode,
    pub duration_us: u64,
    pub until_us: u64,
    /// When it was last told that somebody waits.
    pub recalled_us: Option<u64>,
}

impl Held {
    /// Whether it keeps off what this client needs the key for (K2).
    pub fn is_in_way(&self, client: u64, mode: LeaseMode) -> bool {
        self.holder.0 != client && !self.mode.is_beside(mode)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub holder: Holder,
    pub mode: LeaseMode,
    pub duration_us: u64,
    pub sent_us: u64,
    pub heard_us: u64,
    /// Its place in line: those who came before have a lower one.
    pub arrival: u64,
}

/// What there is of a key or a group: somebody holds it, or waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub held: SmallVec<[Held; 1]>,
    pub waiting: VecDeque<Waiting>,
}

impl Entry {
    pub fn is_free_for(&self, mode: LeaseMode) -> bool {
        self.held.iter().all(|held| held.mode.is_beside(mode))
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    /// Those who hold it and are in somebody's way are told, now and then.
    pub fn recall(
        &mut self,
        now_us: u64,
        is_in_way: impl Fn(&Held) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        for held in self.held.iter_mut().filter(|held| is_in_way(held)) {
            if is_due(now_us, held.recalled_us) {
                held.recalled_us = Some(now_us);
                let (client, lease) = held.holder;
                said.push((client, Message::Recall { lease }));
            }
        }
    }
}

/// Whether holders are to be told again who were told then.
pub(super) fn is_due(now_us: u64, recalled_us: Option<u64>) -> bool {
    recalled_us.is_none_or(|at_us| now_us.saturating_sub(at_us) >= RECALL_AGAIN_US)
}
