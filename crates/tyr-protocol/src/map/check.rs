//! What holds in every map.

use tyr_types::{Error, Result};

use super::{ClusterMap, MapNode, Membership, NodeState, ring};

/// Most keyspaces of a map, those dropped and not forgotten yet among them. Bounds what a map takes
/// in memory and on the wire.
pub const KEYSPACES_MAX: usize = 16_384;

impl ClusterMap {
    /// Checks a map that came from elsewhere.
    ///
    /// # Errors
    /// `InvalidArgument` with what does not fit together.
    pub fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::invalid(format!("a cluster map {what}")));
        if self.moved > self.epoch {
            return fail(format!("of epoch {} cannot change in {}", self.epoch.0, self.moved.0));
        }
        let rings = [Some(&self.ring), self.next.as_ref()];
        for member in rings.iter().flatten().flat_map(|ring| ring.members().keys()) {
            if !self.nodes.contains_key(member) {
                return fail(format!("has node {} on a ring and does not know it", member.0));
            }
        }
        if self.next.as_ref() == Some(&self.ring) {
            return fail("moves to the ring that it has".into());
        }
        for (node, it) in &self.nodes {
            let MapNode { incarnation: _, state, since, level: _ } = it;
            if *since > self.moved {
                return fail(format!("has node {} change after its last change", node.0));
            }
            if self.membership(*node) == Membership::Out && *state != NodeState::Down {
                return fail(format!("has node {} {} and on no ring", node.0, state.name()));
            }
        }
        if let Some(node) = self.behind(self.level).next() {
            return fail(format!(
                "uses feature level {}, and node {} does not",
                self.level, node.0
            ));
        }
        self.check_keyspaces()?;
        self.check_kept()?;
        if !self.has_holders_everywhere() {
            return fail("leaves a range without a holder that is up".into());
        }
        Ok(())
    }

    fn check_keyspaces(&self) -> Result<()> {
        let fail = |what: String| Err(Error::invalid(format!("a cluster map {what}")));
        if self.keyspaces.len() > KEYSPACES_MAX {
            return fail(format!("has at most {KEYSPACES_MAX} keyspaces"));
        }
        let mut names = std::collections::BTreeSet::new();
        for (id, keyspace) in &self.keyspaces {
            if !(1..=self.keyspaces_created).contains(&id.0) {
                return fail(format!("has keyspace {} and gave no such number", id.0));
            }
            keyspace.config.validate()?;
            let may_lose = keyspace.layout().is_single() && self.is_awaiting();
            if !may_lose && !keyspace.lost.is_empty() {
                return fail(format!("has lost part of {}, which waits for none", keyspace.name));
            }
            if !keyspace.is_dropped && !names.insert(&keyspace.name) {
                return fail(format!("has two keyspaces named {}", keyspace.name));
            }
        }
        Ok(())
    }

    /// Checks what holds between a map and the one before it, where debug assertions are on. Nodes
    /// go from any map to any later one, so each of these holds over many steps too.
    pub(super) fn check_follows(&self, old: &Self) {
        if !cfg!(debug_assertions) {
            return;
        }
        assert!(self.epoch > old.epoch, "epochs grow");
        assert!(self.level >= old.level, "what was begun in a level is not taken back");
        assert!(self.keyspaces_created >= old.keyspaces_created, "no number is given twice");
        assert!(self.moved == old.moved || self.moved == self.epoch, "it moved now, or not");
        for (node, before) in &old.nodes {
            // By its incarnation the messages of a process are told from those of an older one.
            let after = self.nodes.get(node).expect("who ever was in the cluster stays known");
            assert!(after.incarnation >= before.incarnation, "M4: {node:?} goes back");
            assert!(after.since >= before.since, "F1: what changed at {node:?} is forgotten");
        }
        if self.moved == old.moved {
            assert!(self.ring == old.ring && self.next == old.next, "chains stay as they are");
            assert!(self.nodes == old.nodes, "F1: what was begun before would not be driven anew");
        }
        self.invariants();
    }

    /// Panics unless everything holds that must hold in every map.
    pub fn invariants(&self) {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        assert!(self.ring.members().len() <= ring::NODES_MAX, "Ring::new refuses more");
        for keyspace in self.keyspaces.values() {
            let mut lost = keyspace.lost.values();
            assert!(lost.all(|epoch| *epoch <= self.epoch), "nothing is lost in time to come");
        }
    }
}
