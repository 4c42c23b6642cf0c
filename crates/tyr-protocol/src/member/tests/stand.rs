//! One member by itself: the test is its monitors, its clients and the other nodes.

use std::sync::Arc;

use tyr_types::{Epoch, KeyspaceConfig, NodeId};

use super::shelf::{CHUNK, Shelf};
use crate::commit::OutcomeRetention;
use crate::map::ClusterMap;
use crate::member::{Effect, Event, Member, MemberConfig};
use crate::message::{Address, Body, Envelope, Now};

pub const CLIENT: u64 = 7;

/// A node, and what it is told.
pub struct Stand {
    pub member: Member,
    pub shelf: Shelf,
    pub now_us: u64,
    /// Requests of the client so far.
    pub asked: u64,
}

/// Nodes that all hold everything, if there are at most three.
pub fn map(nodes: u16) -> ClusterMap {
    let replication = u8::try_from(nodes.min(3)).expect("at most three");
    let keyspace = KeyspaceConfig { chunk_size: CHUNK, replication, ..Default::default() };
    ClusterMap::of(nodes, &[keyspace])
}

impl Stand {
    pub fn new(node: u16, map: &ClusterMap) -> Self {
        let incarnation = map.incarnation(NodeId(node)).unwrap_or(1);
        let member = Member::new(NodeId(node), incarnation, MemberConfig::default());
        let shelf = Shelf::new(NodeId(node));
        let mut stand = Self { member, shelf, now_us: 1_000_000, asked: 0 };
        stand.learn(map);
        stand
    }

    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let now = Now { wall_us: self.now_us, monotonic_us: self.now_us };
        let mut effects = Vec::new();
        self.member.step(now, event, &mut self.shelf, &mut effects);
        self.member.invariants();
        effects
    }

    /// It hears this of somebody who goes by `map`.
    pub fn receive(&mut self, map: &ClusterMap, from: Address, body: Body) -> Vec<Effect> {
        let incarnation = match from {
            Address::Node(node) => map.incarnation(node).unwrap(),
            Address::Monitors | Address::Client(_) => 0,
        };
        self.step(Event::Receive(Envelope { epoch: map.epoch, incarnation, from, body }))
    }

    pub fn monitors_say(&mut self, body: Body) {
        let (epoch, from) = (Epoch(0), Address::Monitors);
        self.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }));
    }

    pub fn learn(&mut self, map: &ClusterMap) {
        self.monitors_say(Body::Effective(Arc::new(map.clone())));
    }

    /// It asks for its lease, and gets it.
    pub fn lease(&mut self) {
        self.lease_with(OutcomeRetention::UNKNOWN);
    }

    /// It asks for its lease, gets it, and hears how far all nodes are.
    pub fn lease_with(&mut self, retention: OutcomeRetention) {
        self.now_us += 1_000_000;
        for effect in self.step(Event::Tick) {
            let Effect::Send { envelope: Envelope { body, .. }, .. } = effect else { continue };
            if let Body::Renew { incarnation, epoch, sent_us, .. } = body {
                let duration_us = 2_000_000;
                let granted = Body::Granted { incarnation, sent_us, duration_us, epoch, retention };
                self.monitors_say(granted);
            }
        }
    }
}
