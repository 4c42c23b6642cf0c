//! The cluster map: who is in the cluster, and what lies where.
//!
//! A value, with an epoch that grows with every change. Everybody who has it computes the same
//! places, holders and chains from it, so no read or write needs a look-up elsewhere. It changes by
//! pure rules only, each of which answers a new map or says why not; deciding on a change, and
//! when it takes effect, is the affair of the monitors ([`crate::lease`]).
//!
//! ```text
//!   hash(keyspace seed, key, chunk) ─► place ─► walk(ring) ─► up: holders, the first by number
//!                                        │                    is the authority
//!                                        │                    returning: recipients
//!                                        └────► walk(next) ─► what it adds: recipients
//! ```
//!
//! Reading order: [`hash`] and [`ring`] say where things lie; [`node`] and [`keyspace`] are what
//! a map is made of, `kept` the snapshots that it keeps; [`level`] what its nodes may say to each
//! other; [`route`] computes chains; [`change`] holds the rules of change, [`ranges`] who loses
//! what by one, and [`check`] what holds in every map; [`balance`] counts how evenly the roles fall
//! on the nodes.
//!
//! This module must not know how maps travel, who decides on them, nor what time it is.

pub mod balance;
pub mod change;
pub mod check;
mod difference;
pub mod hash;
mod kept;
pub mod keyspace;
mod level;
pub mod node;
pub mod ranges;
pub mod ring;
pub mod route;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tyr_types::{BlobName, ByteRange, Epoch, KeptName, KeyspaceConfig, KeyspaceId, NodeId};

pub use self::balance::{Balance, Load, Spread};
pub use self::change::{Change, Newcomer};
pub use self::kept::MapKept;
pub use self::keyspace::{DROPPED, Layout, MapKeyspace};
pub use self::node::{MapNode, Membership, NodeState};
pub use self::ranges::{losers, may_lose};
pub use self::ring::{Domain, Nodes, Ring, Share};
pub use self::route::CHAIN_CHUNKS_MAX;

/// The cluster map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMap {
    /// Its version.
    pub epoch: Epoch,
    /// The epoch of the last change to nodes or rings. What has the same has the same chains.
    pub moved: Epoch,
    /// The feature level in use: all nodes of it speak this. It only grows.
    pub level: u8,
    /// All nodes that ever were in the cluster; bounded by their numbers.
    pub nodes: BTreeMap<NodeId, MapNode>,
    /// The keyspaces, those too that were dropped and are not forgotten yet.
    pub keyspaces: BTreeMap<KeyspaceId, MapKeyspace>,
    /// Numbers given to keyspaces so far; the next one gets the one after.
    pub keyspaces_created: u32,
    /// The ring that says who holds what.
    pub ring: Ring,
    /// While data moves: the ring that will be. What it adds are recipients.
    pub next: Option<Ring>,
    /// The snapshots that are kept (V7).
    pub kept: BTreeMap<KeptName, MapKept>,
}

/// Who has to do with a chunk, each in node order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The nodes that hold it and are up; the first is the authority. Of a chunk with one replica
    /// it is, from level 2 on, that one's node whether it is up or not: nobody else has what is in
    /// it.
    pub holders: Nodes,
    /// The nodes that get its writes and will hold it.
    pub recipients: Nodes,
    /// How many would hold it if all were up.
    pub replicas: usize,
}

impl Placement {
    /// Whether the node gets the chunk's writes.
    pub fn has(&self, node: NodeId) -> bool {
        self.holders.contains(&node) || self.recipients.contains(&node)
    }

    /// Who serves a chunk does not wait for a copy of it (D1), and each node is named once: who is
    /// first is the authority, at every node that asks.
    fn check_apart(&self) {
        debug_assert!(self.holders.len() <= self.replicas, "who holds it is of the walk: {self:?}");
        debug_assert!(self.holders.is_sorted_by(|left, right| left < right), "{self:?}");
        debug_assert!(self.recipients.is_sorted_by(|left, right| left < right), "{self:?}");
        debug_assert!(self.recipients.iter().all(|it| !self.holders.contains(it)), "{self:?}");
    }
}

impl ClusterMap {
    /// The map of a healthy cluster of `nodes` equal nodes, numbered from 0, with these keyspaces,
    /// numbered from 1: where simulations and tests begin.
    ///
    /// # Panics
    /// When there are no nodes, more than [`ring::NODES_MAX`], or a configuration is not valid.
    pub fn of(nodes: u16, keyspaces: &[KeyspaceConfig]) -> Self {
        let newcomer =
            |node| Newcomer { node: NodeId(node), incarnation: 1, ..Newcomer::default() };
        let members: Vec<Newcomer> = (0..nodes).map(newcomer).collect();
        let mut map = Self::form(&members).expect("1 to NODES_MAX equal nodes form a cluster");
        for (number, config) in (1..).zip(keyspaces) {
            config.validate().expect("the caller gives valid configurations");
            map.keyspaces.insert(KeyspaceId(number), MapKeyspace::numbered(number, config));
            map.keyspaces_created = number;
        }
        debug_assert!(
            map.check().is_ok(),
            "it is as good as one that came about: {:?}",
            map.check()
        );
        map
    }

    /// Whether leases keep others off the keys of this keyspace (K2).
    pub fn is_guarded(&self, keyspace: KeyspaceId) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|keyspace| keyspace.config.is_guarded)
    }

    /// Who has to do with this chunk; `None` when there is no such keyspace.
    pub fn placement(&self, blob: &BlobName, chunk: u64) -> Option<Placement> {
        let keyspace = self.keyspaces.get(&blob.keyspace)?;
        Some(self.placed(keyspace.hash(&blob.key).place(chunk), keyspace.layout()))
    }

    /// The nodes that list all blobs of a keyspace whose keys begin with `prefix`, each those that
    /// it is the authority of: all that are live; where the prefix is of one group, the group's.
    pub fn listers(&self, keyspace: KeyspaceId, prefix: &[u8]) -> Nodes {
        let authority = self.keyspaces.get(&keyspace).and_then(|keyspace| {
            let placed = self.placed(keyspace.place_of_all(prefix)?, keyspace.layout());
            placed.holders.first().copied()
        });
        authority.map_or_else(|| self.live().collect(), |authority| Nodes::from_slice(&[authority]))
    }

    /// The nodes that hold this chunk and are up, in node order; the first is its authority. May
    /// be empty.
    pub fn holders(&self, blob: &BlobName, chunk: u64) -> Nodes {
        self.placement(blob, chunk).unwrap_or_default().holders
    }

    /// The nodes that get writes of this chunk and serve nothing of it yet, in node order.
    pub fn recipients(&self, blob: &BlobName, chunk: u64) -> Nodes {
        self.placement(blob, chunk).unwrap_or_default().recipients
    }

    /// Who has to do with what lies at this place in this layout.
    pub(crate) fn placed(&self, place: u64, layout: Layout<'_>) -> Placement {
        if layout.is_single() && self.is_awaiting() {
            return self.placed_single(place, layout);
        }
        debug_assert!(layout.replication > 0, "what nobody holds is nowhere");
        let walked = self.ring.walk(place, layout.replication);
        let mut placed = Placement { replicas: walked.len(), ..Placement::default() };
        for node in walked {
            match self.state(node) {
                NodeState::Up => placed.holders.push(node),
                NodeState::Returning => placed.recipients.push(node),
                NodeState::Down => {}
            }
        }
        if let Some(next) = &self.next {
            for node in next.walk(place, layout.replication) {
                if !placed.has(node) && self.is_live(node) {
                    placed.recipients.push(node);
                }
            }
        }
        placed.holders.sort_unstable();
        placed.recipients.sort_unstable();
        placed.check_apart();
        placed
    }

    /// The same of what has one replica: it stays with its node, in whatever state that is, until
    /// what that one had is given up. Then it is the next one's on the walk; who is back after that
    /// gets it back by copy.
    fn placed_single(&self, place: u64, layout: Layout<'_>) -> Placement {
        debug_assert!(layout.is_single(), "of what has more replicas nobody is waited for");
        let mut placed = Placement { replicas: 1, ..Placement::default() };
        let count = 1 + layout.lost.len();
        for node in self.ring.walk(place, count) {
            match (layout.lost.contains_key(&node), self.is_live(node)) {
                (true, true) => placed.recipients.push(node),
                (true, false) => {}
                (false, _) => {
                    placed.holders.push(node);
                    break;
                }
            }
        }
        for node in self.next.iter().flat_map(|next| next.walk(place, count)) {
            if !placed.has(node) && self.is_live(node) {
                placed.recipients.push(node);
            }
            if !layout.lost.contains_key(&node) {
                break;
            }
        }
        placed.recipients.sort_unstable();
        placed.check_apart();
        debug_assert!(placed.holders.len() <= 1, "of one replica there is one holder");
        let is_lost = |node: &NodeId| layout.lost.contains_key(node);
        debug_assert!(!placed.holders.iter().any(is_lost), "what was given up nobody serves");
        placed
    }

    /// Whether the node takes part: is up or returning.
    pub fn is_live(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(MapNode::is_live)
    }

    /// The incarnation of the node; `None` when it never was in the cluster.
    pub fn incarnation(&self, node: NodeId) -> Option<u64> {
        self.nodes.get(&node).map(|node| node.incarnation)
    }

    /// Bytes of a chunk of this keyspace.
    pub fn chunk_size(&self, keyspace: KeyspaceId) -> Option<u64> {
        self.keyspaces.get(&keyspace).map(|keyspace| keyspace.config.chunk_size)
    }

    /// Which bytes of a blob its chunk of this number has; `None` when there is no such keyspace.
    pub fn chunk_range(&self, keyspace: KeyspaceId, chunk: u64) -> Option<ByteRange> {
        let size = self.chunk_size(keyspace)?;
        let start = chunk.saturating_mul(size);
        Some(ByteRange { start, end: start.saturating_add(size) })
    }

    /// Whether there was such a keyspace and nothing new is done in it any more.
    pub fn is_dropped(&self, keyspace: KeyspaceId) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|it| it.is_dropped)
    }

    /// The keyspace of this name; dropped ones have none.
    pub fn keyspace_named(&self, name: &str) -> Option<(KeyspaceId, &MapKeyspace)> {
        let mut open = self.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped);
        open.find(|(_, keyspace)| keyspace.name.as_str() == name).map(|(id, found)| (*id, found))
    }

    /// Whether the node is on the ring, or on its way.
    pub fn membership(&self, node: NodeId) -> Membership {
        let next = self.next.as_ref().unwrap_or(&self.ring);
        match (self.ring.share(node).is_some(), next.share(node).is_some()) {
            (true, true) => Membership::In,
            (true, false) => Membership::Leaving,
            (false, true) => Membership::Joining,
            (false, false) => Membership::Out,
        }
    }

    /// The nodes that take part.
    pub fn live(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(|(_, node)| node.is_live()).map(|(node, _)| *node)
    }

    fn state(&self, node: NodeId) -> NodeState {
        self.nodes.get(&node).map_or(NodeState::Down, |node| node.state)
    }
}
