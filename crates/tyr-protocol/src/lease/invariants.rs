//! What holds between the steps of the monitors.

use tyr_types::Epoch;

use super::grants::{Grants, PROPOSALS_MAX};

impl Grants {
    /// Checks what never goes back, where debug assertions are on, against what was before a step:
    /// the epochs in effect and proposed, and how far all are done.
    pub(super) fn check_since(&self, (epoch, epoch_max, done_to_us): (Epoch, Epoch, u64)) {
        debug_assert!(self.map.epoch >= epoch, "no map takes effect before an older one");
        debug_assert!(self.epoch_max >= epoch_max, "M3: no epoch is proposed twice");
        debug_assert!(self.epoch_max >= self.map.epoch, "what is in effect was proposed");
        debug_assert!(self.done_to_us >= done_to_us, "F10: the floor never falls");
    }

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
        assert!(self.leveled_in.is_none_or(|seen| seen <= self.map.epoch), "it was in effect");
        for (node, node_info) in &self.node_infos {
            let known = self.map.incarnation(*node).unwrap_or(0);
            let back = node_info.back.map(|back| back.incarnation);
            assert!(back.is_none_or(|back| back > known), "M4: {node:?} is back, and has come");
            let kept_in = node_info.kept_in;
            assert!(
                kept_in.is_none_or(|epoch| epoch <= self.map.epoch),
                "tried by a map there was"
            );
        }
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
