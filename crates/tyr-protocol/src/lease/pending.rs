//! A change that waits for all who take part, since somebody loses by it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::NodeId;

use super::effect::Effect;
use crate::map::{Change, ClusterMap};

/// After so long, in microseconds, those who have not prepared are asked again; after twice as long
/// each further time.
///
/// A node says that it has prepared when what is in flight has ended, as a rule within tens of
/// milliseconds, and goes on saying so. So who is asked again has most likely not heard, and gets
/// the map; and while the change waits, which it does for as long as a lease lasts at most, nobody
/// gets it more than a few times.
const REMIND_AFTER_US: u64 = 250_000;

const _: () = assert!(3 * REMIND_AFTER_US < super::config::DURATION_US, "once more within a lease");

/// A change that waits for all who take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub map: Arc<ClusterMap>,
    pub change: Change,
    /// Who asked for it.
    pub proposal: Option<u64>,
    /// Who take part, and have not prepared yet.
    pub waiting: BTreeSet<NodeId>,
    /// When they are asked next, and after how long once more.
    next_us: u64,
    pause_us: u64,
}

impl Pending {
    /// Nobody is asked yet.
    pub fn new(
        map: Arc<ClusterMap>,
        change: Change,
        proposal: Option<u64>,
        waiting: BTreeSet<NodeId>,
    ) -> Self {
        debug_assert!(!waiting.is_empty(), "what waits for nobody takes effect at once");
        Self { map, change, proposal, waiting, next_us: 0, pause_us: REMIND_AFTER_US }
    }

    /// Whether a failure waits: nothing else is more urgent.
    pub fn is_failure(&self) -> bool {
        self.proposal.is_none() && matches!(self.change, Change::Down(_) | Change::Return { .. })
    }

    /// Asks those to prepare who have not, unless that was done a short while ago.
    pub fn ask(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        if now_us < self.next_us {
            return;
        }
        self.next_us = now_us + self.pause_us;
        self.pause_us *= 2;
        let ask = |node: &NodeId| Effect::Prepare { to: *node, map: Arc::clone(&self.map) };
        effects.extend(self.waiting.iter().map(ask));
    }
}
