//! What holds between the steps of the monitors.

use super::grants::{Grants, PROPOSALS_MAX};

impl Grants {
    /// Panics unless everything holds that must hold between steps.
    pub fn invariants(&self) {
        self.map.invariants();
        assert!(self.map.epoch <= self.epoch_max, "no epoch in effect was never proposed");
        assert!(self.proposals.len() <= PROPOSALS_MAX + 1, "proposals are bounded");
        assert!(
            self.node_infos.keys().eq(self.map.nodes.keys()),
            "there is a node_info for every node of the map, and no other"
        );
        assert!(
            self.node_infos.values().all(|node_info| node_info.epoch_min <= self.map.epoch),
            "nobody is asked for a map that is not in effect"
        );
        assert!(
            self.caught_up.iter().all(|node| self.map.is_live(*node)),
            "who has caught up takes part"
        );
        if let Some(pending) = &self.pending {
            pending.map.invariants();
            assert_eq!(pending.map.epoch, self.epoch_max, "what is pending is the newest");
            assert!(pending.map.epoch > self.map.epoch, "epochs grow");
            assert!(!pending.waiting.is_empty(), "what waits for nobody takes effect");
            let is_live = |node: &tyr_types::NodeId| self.map.is_live(*node);
            assert!(pending.waiting.iter().all(is_live), "only who takes part is waited for");
        }
    }
}
