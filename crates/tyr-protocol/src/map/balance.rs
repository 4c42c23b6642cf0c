//! How evenly the roles of transactions fall on the nodes.
//!
//! The ring spreads replicas. The order in which chains pass the nodes does not: the first node of
//! a chain is its head, and the first replica of a chunk its authority. Here both are counted,
//! chain by chain, and with them the messages that a healthy pass takes, so that reports and
//! simulations speak of the same numbers.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::NodeId;

use super::ClusterMap;
use crate::chain::{Chain, Part};

/// What fell on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Chains that pass it.
    pub chains: u64,
    /// Chains of which it is the head.
    pub heads: u64,
    /// Chains of which it is the tail.
    pub tails: u64,
    /// Written chunks that it holds.
    pub replicas: u64,
    /// Chunks, written or read, of which it is the authority.
    pub authorities: u64,
    /// Messages sent and received, the client's two among them. Stability counts as one message
    /// for each follower; in fact many share one.
    pub messages: u64,
}

/// How a role is spread over the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Of all nodes.
    pub mean: f64,
    /// Of the node that has least.
    pub least: u64,
    /// Of the node that has most.
    pub most: u64,
}

impl Spread {
    /// How much more than the mean the busiest node has: 1 when all have the same.
    pub fn ratio(&self) -> f64 {
        if self.mean == 0.0 { 1.0 } else { self.most as f64 / self.mean }
    }
}

/// What fell on each node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    nodes: BTreeMap<NodeId, Load>,
    transactions: u64,
}

impl Balance {
    /// Nothing yet, for the members of the map's ring.
    pub fn new(map: &ClusterMap) -> Self {
        let nodes = map.ring.members().keys().map(|node| (*node, Load::default())).collect();
        Self { nodes, transactions: 0 }
    }

    /// Counts a transaction that passed this chain.
    pub fn count(&mut self, chain: &Chain) {
        self.transactions += 1;
        let hops = chain.hops();
        let last = hops.len() - 1;
        for (position, hop) in hops.iter().enumerate() {
            let load = self.nodes.entry(hop.node).or_default();
            load.chains += 1;
            load.heads += u64::from(position == 0);
            load.tails += u64::from(position == last);
            // The request and the answer; a message forward and one back on each side.
            let neighbours = u64::from(position > 0) + u64::from(position < last);
            load.messages += 2 * neighbours + if position == 0 { 2 } else { 0 };
            match &hop.part {
                Part::Whole => {
                    load.replicas += 1;
                    load.authorities += 1;
                }
                Part::Pieces(pieces) => {
                    let written = pieces.iter().filter(|piece| piece.is_written);
                    load.replicas += written.count() as u64;
                    let own = pieces.iter().filter(|piece| piece.authority == hop.node);
                    load.authorities += own.count() as u64;
                }
            }
        }
        self.count_notices(chain);
        let (heads, tails) = (|it: &Load| it.heads, |it: &Load| it.tails);
        let total = |role: fn(&Load) -> u64| self.nodes.values().map(role).sum::<u64>();
        debug_assert_eq!(total(heads), self.transactions, "a chain has one head");
        debug_assert_eq!(total(tails), self.transactions, "and one tail");
    }

    /// What is told beside the two passes: the decision (C9), what is clear (C9), stability (R2).
    fn count_notices(&mut self, chain: &Chain) {
        let hops = chain.hops();
        let mut pairs = Vec::new();
        for (position, hop) in hops.iter().enumerate() {
            pairs.extend(chain.told_by(position).map(|to| (hop.node, to)));
            pairs.extend(chain.anchors_before(position).map(|from| (from, hop.node)));
        }
        let mut stable: BTreeSet<(NodeId, NodeId)> = BTreeSet::new();
        for hop in hops {
            if let Part::Pieces(pieces) = &hop.part {
                let followed = pieces.iter().filter(|piece| piece.authority != hop.node);
                stable.extend(followed.map(|piece| (piece.authority, hop.node)));
            }
        }
        for (from, to) in pairs.into_iter().chain(stable) {
            for node in [from, to] {
                self.nodes.entry(node).or_default().messages += 1;
            }
        }
    }

    /// Transactions counted.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// What fell on each node.
    pub fn loads(&self) -> &BTreeMap<NodeId, Load> {
        &self.nodes
    }

    /// How a role is spread over the nodes.
    pub fn spread(&self, role: impl Fn(&Load) -> u64) -> Spread {
        let all: Vec<u64> = self.nodes.values().map(role).collect();
        let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
        let mean = all.iter().sum::<u64>() as f64 / all.len().max(1) as f64;
        Spread { mean, least: least.unwrap_or(0), most: most.unwrap_or(0) }
    }
}
