//! The ranges of a ring, all of them: what a change takes from whom.
//!
//! Between two tokens everything has the same replicas, so a map is looked at token by token.
//! That takes some milliseconds for hundreds of nodes; it is done when maps change, never for a
//! transaction.

use std::collections::BTreeSet;

use tyr_types::{KeyspaceId, NodeId};

use super::{ClusterMap, Layout, MapKeyspace, NodeState, Placement, Ring};

impl ClusterMap {
    /// The layouts in use, each once.
    fn layouts(&self) -> BTreeSet<Layout<'_>> {
        self.keyspaces.values().map(MapKeyspace::layout).collect()
    }

    /// Its rings.
    fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.ring).chain(&self.next)
    }

    /// All nodes that are recipients of anything: those whose [`super::Change::Settle`] is waited
    /// for.
    pub fn recipients_of_any(&self) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        let returning = self.nodes.iter().filter(|(_, it)| it.state == NodeState::Returning);
        found.extend(returning.map(|(node, _)| *node));
        if let Some(next) = &self.next {
            // A node that joins is one even while there is no keyspace.
            let joins = |node: &&NodeId| self.ring.share(**node).is_none() && self.is_live(**node);
            found.extend(next.members().keys().filter(joins));
        }
        let places = places(self.rings());
        for layout in self.layouts() {
            for place in &places {
                found.extend(self.placed(*place, layout).recipients);
            }
        }
        found
    }

    /// All nodes that are the authority of anything.
    pub fn authorities(&self) -> BTreeSet<NodeId> {
        let places = places(self.rings());
        let placed = |layout| places.iter().map(move |at| self.placed(*at, layout));
        let all = self.layouts().into_iter().flat_map(placed);
        all.filter_map(|placed| placed.holders.first().copied()).collect()
    }

    /// Whether every range has a holder that is up. Dropped keyspaces do not count, nor, from level
    /// 2 on, those with one replica: there what a node held that is down waits for it, and nothing
    /// else does.
    pub fn has_holders_everywhere(&self) -> bool {
        // A walk for more replicas begins with the one for fewer.
        let open = self.keyspaces.values().filter(|it| !it.is_dropped).map(MapKeyspace::layout);
        let counted = open.filter(|layout| !(layout.is_single() && self.is_awaiting()));
        let Some(fewest) = counted.min_by_key(|layout| layout.replication) else {
            return true;
        };
        let mut places = self.ring.tokens().iter();
        places.all(|place| !self.placed(*place, fewest).holders.is_empty())
    }

    /// The keyspaces of which the node alone has its part: nobody else has what it holds of them.
    pub fn held_alone(&self, node: NodeId) -> impl Iterator<Item = (KeyspaceId, &MapKeyspace)> {
        let is_member = self.is_awaiting() && self.ring.share(node).is_some();
        let is_its = move |it: &MapKeyspace| {
            is_member && it.layout().is_single() && !it.lost.contains_key(&node)
        };
        self.keyspaces.iter().filter(move |(_, it)| is_its(it)).map(|(id, it)| (*id, it))
    }

    /// The nodes that are down and alone have their part of this keyspace.
    pub fn missing(&self, keyspace: &MapKeyspace) -> Vec<NodeId> {
        let members = self.ring.members().keys().copied();
        let is_missing = |node: &NodeId| {
            let is_alone = keyspace.layout().is_single() && !keyspace.lost.contains_key(node);
            is_alone && self.is_awaiting() && !self.is_live(*node)
        };
        members.filter(is_missing).collect()
    }

    /// The nodes that are down and alone have something of a keyspace: it waits for them, or for
    /// somebody to accept the loss.
    pub fn awaited(&self) -> BTreeSet<NodeId> {
        let down = self.nodes.iter().filter(|(_, it)| !it.is_live()).map(|(node, _)| *node);
        down.filter(|node| self.held_alone(*node).next().is_some()).collect()
    }

    /// Whether a node of either ring is down that alone has part of a keyspace, or would.
    pub(super) fn is_waiting_for_any(&self) -> bool {
        let open = self.keyspaces.values().filter(|it| !it.is_dropped && it.layout().is_single());
        let mut open = open.peekable();
        if open.peek().is_none() || !self.is_awaiting() {
            return false;
        }
        let members = self.rings().flat_map(|ring| ring.members().keys());
        let down: BTreeSet<&NodeId> = members.filter(|node| !self.is_live(**node)).collect();
        open.any(|it| down.iter().any(|node| !it.lost.contains_key(node)))
    }

    /// The nodes that may be the authority of something: those that are up, and those that are
    /// back and alone have something.
    pub fn serving(&self) -> impl Iterator<Item = NodeId> {
        let is_serving = |node: NodeId, state| match state {
            NodeState::Up => true,
            NodeState::Returning => self.held_alone(node).next().is_some(),
            NodeState::Down => false,
        };
        let serving = self.nodes.iter().filter(move |(node, it)| is_serving(**node, it.state));
        serving.map(|(node, _)| *node)
    }
}

/// The nodes from which the step from `old` to `new` takes something: their part in the cluster, a
/// range that they hold, or the authority over one.
///
/// The new map must not take effect before each of them has said that it stopped using the old one,
/// or cannot be using it any more (M3).
pub fn losers(old: &ClusterMap, new: &ClusterMap) -> BTreeSet<NodeId> {
    let mut losers: BTreeSet<NodeId> = old.live().filter(|node| !new.is_live(*node)).collect();
    if old.moved == new.moved {
        debug_assert!(old.ring == new.ring && old.next == new.next, "it has the same chains");
        return losers;
    }
    let places = places(old.rings().chain(new.rings()));
    for (before, after) in layouts_of_both(old, new) {
        for place in &places {
            let before = old.placed(*place, before);
            let after = new.placed(*place, after);
            losers.extend(lost(&before, &after));
        }
    }
    debug_assert!(losers.iter().all(|node| old.nodes.contains_key(node)), "who loses had it");
    losers
}

/// Whether a node that goes by `old` has anything that it neither holds nor gets by `new`. Of a
/// node that was down by `old` that is not known: what it has it may have had by an older map.
pub fn may_lose(old: &ClusterMap, new: &ClusterMap, node: NodeId) -> bool {
    let is_forgotten = old.keyspaces.keys().any(|id| !new.keyspaces.contains_key(id));
    if is_forgotten || old.moved == new.moved {
        return is_forgotten;
    }
    if !old.is_live(node) {
        return true;
    }
    let places = places(old.rings().chain(new.rings()));
    layouts_of_both(old, new).into_iter().any(|(before, after)| {
        let is_lost = |place: &u64| {
            old.placed(*place, before).has(node) && !new.placed(*place, after).has(node)
        };
        places.iter().any(is_lost)
    })
}

/// The layouts of the keyspaces that are in both maps, by each, each once.
fn layouts_of_both<'a>(
    old: &'a ClusterMap,
    new: &'a ClusterMap,
) -> BTreeSet<(Layout<'a>, Layout<'a>)> {
    let both = old.keyspaces.iter().filter_map(|(id, before)| {
        let after = new.keyspaces.get(id)?;
        Some((before.layout(), after.layout()))
    });
    both.collect()
}

/// One place of every range of these rings.
fn places<'a>(rings: impl Iterator<Item = &'a Ring>) -> Vec<u64> {
    let mut distinct: Vec<&Ring> = Vec::new();
    for ring in rings {
        if !distinct.contains(&ring) {
            distinct.push(ring);
        }
    }
    let mut places: Vec<u64> = distinct.iter().flat_map(|it| it.tokens()).copied().collect();
    places.sort_unstable();
    places.dedup();
    debug_assert!(!places.is_empty(), "a ring has a range, and who looks at none finds no loser");
    places
}

/// Who loses a range, or the authority over it.
fn lost(before: &Placement, after: &Placement) -> impl Iterator<Item = NodeId> {
    let authority = before.holders.first().filter(|node| after.holders.first() != Some(node));
    let holds_no_more = |node: &&NodeId| !after.holders.contains(node);
    let holders = before.holders.iter().filter(holds_no_more);
    holders.chain(authority).copied().collect::<super::Nodes>().into_iter()
}
