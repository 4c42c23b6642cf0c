//! Monitors as tests have them: with nodes that renew, prepare and come back as they are told.

use std::sync::Arc;

use tyr_types::{Epoch, KeyspaceConfig, NodeId};

use crate::commit::OutcomeRetention;
use crate::lease::config::LeaseConfig;
use crate::lease::{Effect, Event, Grants};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap, NodeState};

const SECOND: u64 = 1_000_000;

/// Monitors of so many nodes that all hold a lease, and what they did last.
pub(super) struct Monitors {
    pub grants: Grants,
    pub now_us: u64,
    pub effects: Vec<Effect>,
}

impl Monitors {
    pub fn new(nodes: u16) -> Self {
        Self::with(nodes, &[KeyspaceConfig::default()])
    }

    pub fn with(nodes: u16, keyspaces: &[KeyspaceConfig]) -> Self {
        Self::of(ClusterMap::of(nodes, keyspaces))
    }

    pub fn of(map: ClusterMap) -> Self {
        let map = Arc::new(map);
        let config = LeaseConfig { remove_after_us: Some(60 * SECOND), ..LeaseConfig::default() };
        let grants = Grants::new(config, map, 0);
        Self { grants, now_us: 0, effects: Vec::new() }
    }

    pub fn step(&mut self, event: Event) {
        self.effects.clear();
        self.grants.step(self.now_us, event, &mut self.effects);
        self.grants.invariants();
    }

    pub fn map(&self) -> &ClusterMap {
        self.grants.map()
    }

    pub fn done_to_us(&self) -> u64 {
        self.grants.retention().done_to_us
    }

    pub fn state(&self, node: u16) -> NodeState {
        self.map().nodes[&NodeId(node)].state
    }

    pub fn renew(&mut self, node: u16) -> bool {
        let epoch = self.map().epoch;
        self.renew_with(node, epoch)
    }

    /// Whether the node gets its lease.
    pub fn renew_with(&mut self, node: u16, epoch: Epoch) -> bool {
        let (node, incarnation) = (NodeId(node), self.map().nodes[&NodeId(node)].incarnation);
        self.step(Event::Renew {
            node,
            incarnation,
            epoch,
            sent_us: 7,
            retention: OutcomeRetention::UNKNOWN,
        });
        self.effects.iter().any(|it| matches!(it, Effect::Grant { to, .. } if *to == node))
    }

    /// Time passes, in which only these nodes renew, and prepare when they are asked to.
    pub fn pass(&mut self, seconds: u64, alive: &[u16]) {
        for _ in 0..seconds * 2 {
            self.now_us += SECOND / 2;
            alive.iter().for_each(|node| _ = self.renew(*node));
            self.step(Event::Tick);
            self.all_prepared(alive);
        }
    }

    /// These nodes prepare, as long as they are asked to.
    pub fn all_prepared(&mut self, nodes: &[u16]) {
        for node in nodes {
            if self.grants.pending().is_some() {
                self.prepared(*node);
            }
        }
    }

    pub fn propose(&mut self, change: Change) {
        self.step(Event::Propose { proposal: 1, change });
    }

    /// Whether the last proposal was answered, and how.
    pub fn answer(&self) -> Option<bool> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Answer { result, .. } => Some(result.is_ok()),
            Effect::Grant { .. }
            | Effect::Prepare { .. }
            | Effect::Publish(_)
            | Effect::Inform { .. } => None,
        })
    }

    pub fn back(&mut self, node: u16, incarnation: u64, has_disk: bool) {
        self.back_speaking(LEVEL, node, incarnation, has_disk);
    }

    /// The node starts again with a program that speaks this feature level.
    pub fn back_speaking(&mut self, level: u8, node: u16, incarnation: u64, has_disk: bool) {
        let epoch = self.map().epoch;
        self.step(Event::Return { node: NodeId(node), incarnation, epoch, has_disk, level });
    }

    pub fn caught_up(&mut self, node: u16) {
        let (epoch, node) = (self.map().epoch, NodeId(node));
        let incarnation = self.map().nodes[&node].incarnation;
        self.step(Event::CaughtUp { node, incarnation, epoch });
    }

    pub fn prepared(&mut self, node: u16) {
        let epoch = self.grants.pending().unwrap().epoch;
        let incarnation = self.map().nodes[&NodeId(node)].incarnation;
        self.step(Event::Prepared { node: NodeId(node), incarnation, epoch });
    }

    /// Who was just asked to prepare.
    pub fn asked(&self) -> Vec<u16> {
        let asked = self.effects.iter().filter_map(|effect| match effect {
            Effect::Prepare { to, .. } => Some(to.0),
            Effect::Grant { .. }
            | Effect::Publish(_)
            | Effect::Inform { .. }
            | Effect::Answer { .. } => None,
        });
        asked.collect()
    }
}
