//! The network: who reaches whom, how long it takes, what gets lost or comes twice.
//!
//! Messages have no order: each takes its own time. What is on its way when the network falls
//! apart arrives; what is sent then is lost.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use tyr_protocol::message::Address;
use tyr_types::NodeId;

use crate::fault::Group;
use crate::random::Random;
use crate::report::Counters;
use crate::setup;

/// The network between nodes, clients and monitors.
#[derive(Debug)]
pub struct Network {
    config: setup::Network,
    /// A stream for each node that sends, then those of clients and monitors.
    streams: Vec<Random>,
    groups: Option<Vec<Group>>,
    one_way: BTreeSet<(NodeId, NodeId)>,
    without_monitors: BTreeSet<NodeId>,
    slow_us: BTreeMap<(NodeId, NodeId), u64>,
    /// Whether anything of the above is there to be looked at.
    is_whole: bool,
}

/// How long each copy of a message takes; none when it is lost.
pub type Delays = SmallVec<[u64; 2]>;

impl Network {
    /// A network that works, between this many nodes.
    pub fn new(seed: u64, config: setup::Network, nodes: u16) -> Self {
        let streams = (0..u64::from(nodes) + 2).map(|n| Random::of(seed, "network", n)).collect();
        Self {
            config,
            streams,
            groups: None,
            one_way: BTreeSet::new(),
            without_monitors: BTreeSet::new(),
            slow_us: BTreeMap::new(),
            is_whole: true,
        }
    }

    /// Sends a message.
    pub fn send(&mut self, from: Address, to: Address, counters: &mut Counters) -> Delays {
        let mut delays = Delays::new();
        counters.messages += 1;
        let others = self.streams.len() - 2;
        let stream = match from {
            Address::Node(node) => usize::from(node.0),
            Address::Client(_) => others,
            Address::Monitors => others + 1,
        };
        let config = self.config;
        let is_reached = from == to || self.is_whole || self.reaches(from, to);
        let random = &mut self.streams[stream];
        if from == to {
            delays.push(1);
            return delays;
        }
        if !is_reached || random.per_million(config.loss) {
            counters.lost += 1;
            return delays;
        }
        let copies = 1 + u32::from(random.per_million(config.duplication));
        counters.duplicated += u64::from(copies - 1);
        for _ in 0..copies {
            let mut delay_us = random.between(config.delay_us.0, config.delay_us.1);
            if random.per_million(config.slow) {
                delay_us *= random.between(2, 20);
            }
            if let (false, Address::Node(from), Address::Node(to)) = (self.is_whole, from, to) {
                delay_us += self.slow_us.get(&(from, to)).copied().unwrap_or(0);
            }
            delays.push(delay_us);
        }
        delays
    }

    fn reaches(&self, from: Address, to: Address) -> bool {
        match (from, to) {
            (Address::Node(from), Address::Node(to)) => {
                let shares =
                    |group: &Group| group.nodes.contains(&from) && group.nodes.contains(&to);
                let is_together =
                    self.groups.as_ref().is_none_or(|groups| groups.iter().any(shares));
                is_together && !self.one_way.contains(&(from, to))
            }
            (Address::Node(node), Address::Monitors) | (Address::Monitors, Address::Node(node)) => {
                let reaches = |group: &Group| group.has_monitors && group.nodes.contains(&node);
                let is_together =
                    self.groups.as_ref().is_none_or(|groups| groups.iter().any(reaches));
                is_together && !self.without_monitors.contains(&node)
            }
            (Address::Client(_), _) | (_, Address::Client(_)) => true,
            (Address::Monitors, Address::Monitors) => true,
        }
    }

    /// Lets it fall apart into these groups.
    pub fn part(&mut self, groups: Vec<Group>) {
        self.groups = Some(groups);
        self.is_whole = false;
    }

    /// Nothing gets from the one to the other any more.
    pub fn block(&mut self, from: NodeId, to: NodeId) {
        self.one_way.insert((from, to));
        self.is_whole = false;
    }

    /// Nothing gets from this node to the monitors or back any more.
    pub fn block_monitors(&mut self, node: NodeId) {
        self.without_monitors.insert(node);
        self.is_whole = false;
    }

    /// Messages between the two take longer.
    pub fn slow_down(&mut self, one: NodeId, other: NodeId, by_us: u64) {
        self.slow_us.insert((one, other), by_us);
        self.slow_us.insert((other, one), by_us);
        self.is_whole = false;
    }

    /// From now on this share of messages is lost, in millionths.
    pub fn lose(&mut self, share: u32) {
        self.config.loss = share;
    }

    /// From now on this share of messages comes twice, in millionths.
    pub fn duplicate(&mut self, share: u32) {
        self.config.duplication = share;
    }

    /// Everybody reaches everybody again.
    pub fn join(&mut self) {
        self.groups = None;
        self.one_way.clear();
        self.without_monitors.clear();
        self.slow_us.clear();
        self.is_whole = true;
    }

    /// Nothing is wrong any more.
    pub fn mend(&mut self) {
        self.join();
        self.config.loss = 0;
        self.config.duplication = 0;
        self.config.slow = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::Node(NodeId(0));
    const B: Address = Address::Node(NodeId(1));
    const C: Address = Address::Node(NodeId(2));

    fn network() -> (Network, Counters) {
        (Network::new(1, setup::Network::default(), 3), Counters::default())
    }

    fn group(nodes: &[u16], has_monitors: bool) -> Group {
        Group { nodes: nodes.iter().copied().map(NodeId).collect(), has_monitors }
    }

    #[test]
    fn a_node_in_two_groups_bridges_them() {
        let (mut network, mut counters) = network();
        network.part(vec![group(&[0, 1], true), group(&[1, 2], false)]);
        let mut is_through = |from, to| !network.send(from, to, &mut counters).is_empty();
        assert!(is_through(A, B) && is_through(B, C) && is_through(C, B));
        assert!(!is_through(A, C) && !is_through(C, A));
        assert!(is_through(A, Address::Monitors) && is_through(Address::Monitors, B));
        assert!(!is_through(C, Address::Monitors));
        assert!(is_through(C, Address::Client(1)));
        network.join();
        assert!(!network.send(A, C, &mut counters).is_empty());
        assert_eq!(counters.lost, 3);
    }

    #[test]
    fn one_way_links_work_the_other_way() {
        let (mut network, mut counters) = network();
        network.block(NodeId(0), NodeId(1));
        assert!(network.send(A, B, &mut counters).is_empty());
        assert!(!network.send(B, A, &mut counters).is_empty());
    }

    #[test]
    fn messages_are_lost_and_doubled_as_often_as_said() {
        let (mut network, mut counters) = network();
        network.lose(100_000);
        network.duplicate(100_000);
        let count: usize = (0..10_000).map(|_| network.send(A, B, &mut counters).len()).sum();
        assert!((800..1_200).contains(&counters.lost), "{counters:?}");
        assert!((700..1_100).contains(&counters.duplicated), "{counters:?}");
        assert_eq!(count as u64, 10_000 - counters.lost + counters.duplicated);
    }
}
