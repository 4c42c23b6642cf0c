//! Counting on paper: what falls on each node by the rules, when all goes well.

use std::collections::BTreeMap;

use tyr_protocol::Ends;
use tyr_protocol::map::ClusterMap;
use tyr_types::{NodeId, Transaction};

use super::order::Order;
use super::passage::Passage;
use super::tally::{Counts, Kind, Spread};
use super::telling::Telling;

/// What fell on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Chains that visit it, in each lane anew.
    pub chains: u64,
    /// Chains of which it is the head.
    pub heads: u64,
    /// Chains of which it is the tail.
    pub tails: u64,
    /// Chunks of which it is the authority.
    pub authorities: u64,
    /// Messages sent and received.
    pub messages: Counts,
    /// Their bytes, each kind taken at its mean.
    pub bytes: f64,
}

/// What fell on all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paper {
    /// By node.
    pub nodes: BTreeMap<NodeId, Load>,
    /// Transactions.
    pub transactions: u64,
    /// Visits of all chains.
    pub hops: u64,
    /// Visits of the longest chain.
    pub hops_most: usize,
    /// Messages by kind.
    pub messages: Counts,
    /// Message delays of all transactions, from request to answer.
    pub delays: u64,
}

/// Counts these transactions for each way of telling; a message of each kind has so many bytes.
pub fn count<const N: usize>(
    map: &ClusterMap,
    order: &Order,
    tellings: [Telling; N],
    sizes: &[f64; Kind::ALL.len()],
    transactions: impl Iterator<Item = Transaction>,
) -> [Paper; N] {
    let members = map.ring.members().keys();
    let nodes: BTreeMap<_, _> = members.map(|node| (*node, Load::default())).collect();
    let mut papers = tellings.map(|_| Paper { nodes: nodes.clone(), ..Paper::default() });
    for transaction in transactions {
        let chain = map.chain(&transaction, &Ends::new()).expect("all nodes are up");
        let passage = Passage::new(map, order, &chain);
        for (paper, telling) in papers.iter_mut().zip(tellings) {
            paper.add(&passage, telling);
        }
    }
    for load in papers.iter_mut().flat_map(|paper| paper.nodes.values_mut()) {
        let bytes = load.messages.iter().zip(sizes).map(|(count, size)| *count as f64 * size);
        load.bytes = bytes.sum();
    }
    papers
}

impl Paper {
    fn add(&mut self, passage: &Passage, telling: Telling) {
        let (head, last) = (passage.visits[0], passage.visits.len() - 1);
        self.transactions += 1;
        self.hops += passage.visits.len() as u64;
        self.hops_most = self.hops_most.max(passage.visits.len());
        self.delays += u64::from(passage.delays(telling));
        for node in &passage.visits {
            self.load(*node).chains += 1;
        }
        for place in &passage.chunk_authorities {
            self.load(passage.visits[*place]).authorities += 1;
        }
        self.load(head).heads += 1;
        self.load(passage.visits[last]).tails += 1;
        for kind in [Kind::Submit, Kind::Reply] {
            self.messages[kind as usize] += 1;
            self.load(head).messages[kind as usize] += 1;
        }
        for sent in passage.messages(telling) {
            self.messages[sent.kind as usize] += 1;
            for node in [sent.from, sent.to] {
                self.load(node).messages[sent.kind as usize] += 1;
            }
        }
    }

    fn load(&mut self, node: NodeId) -> &mut Load {
        self.nodes.entry(node).or_default()
    }

    /// How something is spread over the nodes.
    pub fn spread(&self, what: impl Fn(&Load) -> f64) -> Spread {
        Spread::of(self.nodes.values().map(what))
    }

    /// So much of something for each transaction.
    pub fn each(&self, total: u64) -> f64 {
        total as f64 / self.transactions.max(1) as f64
    }
}

impl Load {
    /// All messages.
    pub fn all_messages(&self) -> f64 {
        self.messages.iter().sum::<u64>() as f64
    }
}

/// The share of the ring of which each node is a replica, of three.
pub fn ring_shares(map: &ClusterMap) -> Spread {
    let mut shares: BTreeMap<NodeId, f64> = BTreeMap::new();
    let tokens = map.ring.tokens();
    let mut before = tokens.last().copied().unwrap_or(0);
    for token in tokens {
        for node in map.ring.walk(*token, 3) {
            *shares.entry(node).or_default() += token.wrapping_sub(before) as f64;
        }
        before = *token;
    }
    Spread::of(shares.into_values())
}
