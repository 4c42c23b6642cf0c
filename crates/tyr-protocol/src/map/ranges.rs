//! The ranges of a ring, all of them: what a change takes from whom.
//!
//! Between two tokens everything has the same replicas, so a map is looked at token by token.
//! That takes a millisecond or so for a large cluster; it is done when maps change, never for a
//! transaction.

use std::collections::BTreeSet;

use tyr_types::NodeId;

use super::{ClusterMap, Placement};

impl ClusterMap {
    /// The replication factors in use, ascending.
    pub(super) fn replications(&self) -> BTreeSet<usize> {
        self.keyspaces.values().map(|it| usize::from(it.config.replication)).collect()
    }

    /// One place of every range of this map.
    fn places(&self) -> impl Iterator<Item = u64> + '_ {
        let next = self.next.iter().flat_map(|ring| ring.tokens());
        self.ring.tokens().iter().chain(next).copied()
    }

    /// All nodes that are recipients of anything: those whose [`super::Change::Settle`] is waited
    /// for.
    pub fn recipients_of_any(&self) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        for (node, it) in &self.nodes {
            if it.state == super::NodeState::Returning {
                found.insert(*node);
            }
        }
        if let Some(next) = &self.next {
            // A node that joins is one even while there is no keyspace.
            let joins = |node: &&NodeId| self.ring.share(**node).is_none() && self.is_live(**node);
            found.extend(next.members().keys().filter(joins));
        }
        for replication in self.replications() {
            for place in self.places() {
                found.extend(self.placed(place, replication).recipients);
            }
        }
        found
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
    for replication in replications {
        for place in old.places().chain(new.places()) {
            let (before, after) = (old.placed(place, replication), new.placed(place, replication));
            losers.extend(lost(&before, &after));
        }
    }
    losers
}

/// Who loses a range, or the authority over it.
fn lost(before: &Placement, after: &Placement) -> impl Iterator<Item = NodeId> {
    let authority = before.holders.first().filter(|node| after.holders.first() != Some(node));
    let holds_no_more = |node: &&NodeId| !after.holders.contains(node);
    let holders = before.holders.iter().filter(holds_no_more);
    holders.chain(authority).copied().collect::<super::Nodes>().into_iter()
}
