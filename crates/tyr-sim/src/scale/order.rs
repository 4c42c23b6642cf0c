//! The order in which chains pass the nodes.
//!
//! Waiting ends because all chains pass the nodes in one order. By number, the low nodes come first
//! in every chain. In *lanes* they do not: the place of a chunk picks one of several lanes, each
//! lane has its own permutation of the nodes, and a chain passes lane by lane, in each lane by that
//! lane's order. It is one order still, of pairs of lane and rank. A node may come once in each
//! lane: there it is another node as far as the protocol goes, with a commit machine of its own.

use tyr_protocol::map::ClusterMap;
use tyr_types::NodeId;

use crate::random::Random;

/// Below this many nodes one lane is enough: a chain passes a large part of them anyway.
const LANED_NODES_MIN: u16 = 16;

/// An order of the nodes.
#[derive(Clone, Debug)]
pub struct Order {
    /// For each lane, the rank of each node, by the node's place among the members.
    ranks: Vec<Vec<u32>>,
    members: Vec<NodeId>,
}

impl Order {
    /// By number, as the protocol has it.
    pub fn by_number(map: &ClusterMap) -> Self {
        let members: Vec<NodeId> = map.ring.members().keys().copied().collect();
        Self { ranks: vec![(0..).take(members.len()).collect()], members }
    }

    /// In so many lanes, each with a permutation that anybody can compute from the seed, which all
    /// would have to share, and the lane's number.
    pub fn by_lanes(map: &ClusterMap, lanes: usize, seed: u64) -> Self {
        let members: Vec<NodeId> = map.ring.members().keys().copied().collect();
        let places: Vec<usize> = (0..members.len()).collect();
        let permuted = |lane| {
            let mut ranks = vec![0; places.len()];
            let order = Random::of(seed, "lane", lane).sample(&places, places.len());
            for (rank, place) in (0..).zip(order) {
                ranks[place] = rank;
            }
            ranks
        };
        Self { ranks: (0..lanes as u64).map(permuted).collect(), members }
    }

    /// How many lanes a cluster of this size would have.
    pub fn lanes_for(nodes: u16) -> usize {
        if nodes < LANED_NODES_MIN { 1 } else { usize::from(nodes / 4) }
    }

    /// The number of lanes.
    pub fn lanes(&self) -> usize {
        self.ranks.len()
    }

    /// The lane of what lies at this place of the ring.
    pub fn lane(&self, place: u64) -> usize {
        (place % self.ranks.len() as u64) as usize
    }

    /// When a chain passes this node in this lane: as a number that grows along the chain.
    pub fn rank(&self, lane: usize, node: NodeId) -> (usize, u32) {
        let place = self.members.binary_search(&node).expect("chains have members of the ring");
        (lane, self.ranks[lane][place])
    }
}
