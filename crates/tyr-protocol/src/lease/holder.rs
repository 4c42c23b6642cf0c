//! The node's side: may it serve now? (M3)

use std::collections::VecDeque;

use tyr_types::Epoch;

use crate::rule::{Rule, Rules};

/// Questions that an answer is still accepted for. More in a row unanswered, and the oldest could
/// not give a lease that lasts.
const ASKED_MAX: usize = 8;

/// What a node asks the monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The node's incarnation.
    pub incarnation: u64,
    /// The epoch of its map.
    pub epoch: Epoch,
    /// When it asked, by its monotonic clock.
    pub sent_us: u64,
}

/// A node's lease, by its own monotonic clock.
#[derive(Clone, Debug)]
pub struct Holder {
    incarnation: u64,
    /// When each open question was asked, oldest first; at most [`ASKED_MAX`].
    asked_us: VecDeque<u64>,
    /// When to ask again.
    next_us: u64,
    /// The lease ends here.
    until_us: u64,
    pub(super) rules: Rules,
}

impl Holder {
    /// No lease yet, for this incarnation of the node.
    pub fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            asked_us: VecDeque::new(),
            next_us: 0,
            until_us: 0,
            rules: Rules::default(),
        }
    }

    /// Takes a rule away, for a test that wants to see its checker notice.
    #[cfg(feature = "broken-rules")]
    pub fn break_rule(&mut self, rule: Rule) {
        self.rules.broken = Some(rule);
    }

    /// Whether the node may serve, validate and answer at `now_us`.
    pub fn is_held(&self, now_us: u64) -> bool {
        now_us < self.until_us || !self.rules.hold(Rule::M3)
    }

    /// When the lease ends, by the node's monotonic clock; 0 before the first.
    pub fn until_us(&self) -> u64 {
        self.until_us
    }

    /// The question to ask now, when it is time to; `epoch` is that of the node's map.
    pub fn renewal(&mut self, now_us: u64, epoch: Epoch) -> Option<Renewal> {
        if now_us < self.next_us {
            return None;
        }
        self.next_us = now_us + super::config::RENEW_EVERY_US;
        if self.asked_us.len() == ASKED_MAX {
            self.asked_us.pop_front();
        }
        debug_assert!(self.asked_us.len() < ASKED_MAX, "open questions are bounded");
        debug_assert!(
            self.asked_us.iter().all(|asked| *asked <= now_us),
            "M3: its clock goes back"
        );
        self.asked_us.push_back(now_us);
        Some(Renewal { incarnation: self.incarnation, epoch, sent_us: now_us })
    }

    /// Ask at the next occasion: the node has a newer map, which may be what the monitors waited
    /// for.
    pub fn hurry(&mut self) {
        self.next_us = 0;
    }

    /// The answer to the question of `sent_us` has come. What was never asked, or by an earlier
    /// incarnation, gives nothing.
    pub fn granted(&mut self, incarnation: u64, sent_us: u64, duration_us: u64) {
        let is_asked = self.asked_us.contains(&sent_us);
        if incarnation == self.incarnation && is_asked {
            self.asked_us.retain(|asked| *asked > sent_us);
            debug_assert!(
                self.asked_us.iter().is_sorted(),
                "questions are asked one after the other"
            );
            self.until_us = self.until_us.max(sent_us.saturating_add(duration_us));
        }
    }

    /// The incarnation that it is the lease of.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The lease is over: the node was told that it takes no part, or stops.
    pub fn give_up(&mut self) {
        self.until_us = 0;
        self.asked_us.clear();
    }

    /// Panics unless what must hold holds.
    pub fn invariants(&self) {
        assert!(self.asked_us.len() <= ASKED_MAX, "open questions are bounded");
        assert!(self.asked_us.iter().is_sorted(), "questions are asked one after the other");
    }
}
