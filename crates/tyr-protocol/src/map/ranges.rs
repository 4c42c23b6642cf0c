//! The ranges of a ring, all of them: what a change takes from whom.
//!
//! Between two tokens everything has the same replicas, so a map is looked at token by token.
//! That takes some milliseconds for hundreds of nodes; it is done when maps change, never for a
//! transaction.

use std::collections::BTreeSet;

use tyr_types::NodeId;

use super::{ClusterMap, NodeState, Placement, Ring};

impl ClusterMap {
    /// The replication factors in use, ascending.
    pub(super) fn replications(&self) -> BTreeSet<usize> {
        self.keyspaces.values().map(|it| usize::from(it.config.replication)).collect()
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
        for replication in self.replications() {
            for place in &places {
                found.extend(self.placed(*place, replication).recipients);
            }
        }
        found
    }

    /// All nodes that are the authority of anything.
    pub fn authorities(&self) -> BTreeSet<NodeId> {
        let places = places(self.rings());
        let placed = |replication| places.iter().map(move |at| self.placed(*at, replication));
        let all = self.replications().into_iter().flat_map(placed);
        all.filter_map(|placed| placed.holders.first().copied()).collect()
    }

    /// Whether every range has a holder that is up, however few replicas its keyspace has. Dropped
    /// ones do not count.
    pub fn has_holders_everywhere(&self) -> bool {
        // A walk for more replicas begins with the one for fewer.
        let open = self.keyspaces.values().filter(|it| !it.is_dropped);
        let Some(fewest) = open.map(|it| it.config.replication).min().map(usize::from) else {
            return true;
        };
        let mut places = self.ring.tokens().iter();
        places.all(|place| !self.placed(*place, fewest).holders.is_empty())
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
        return losers;
    }
    let replications: BTreeSet<usize> = &old.replications() | &new.replications();
    let places = places(old.rings().chain(new.rings()));
    for replication in replications {
        for place in &places {
            let before = old.placed(*place, replication);
            let after = new.placed(*place, replication);
            losers.extend(lost(&before, &after));
        }
    }
    losers
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
    places
}

/// Who loses a range, or the authority over it.
fn lost(before: &Placement, after: &Placement) -> impl Iterator<Item = NodeId> {
    let authority = before.holders.first().filter(|node| after.holders.first() != Some(node));
    let holds_no_more = |node: &&NodeId| !after.holders.contains(node);
    let holders = before.holders.iter().filter(holds_no_more);
    holders.chain(authority).copied().collect::<super::Nodes>().into_iter()
}
