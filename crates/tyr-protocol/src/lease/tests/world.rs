//! Nodes and monitors under delay, loss, cuts and crashes, on clocks that run at different speeds.
//!
//! A node is as simple as can be: it installs what it is sent, is prepared as soon as it is asked,
//! and copies what it is a recipient of. It has all of a place only while the map in effect sends
//! it the writes. What is checked is who believes to have the authority over a place, and has it,
//! and that nobody goes by a map that somebody has lost by since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{Epoch, KeyspaceConfig, NodeId};

use crate::commit::OutcomeRetention;
use crate::lease::{Effect, Event, Grants, Holder, LeaseConfig};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap, Newcomer, Placement, hash, losers};
use crate::rule::Rule;

/// Microseconds between two looks at everything.
const STEP_US: u64 = 100_000;

struct Node {
    holder: Holder,
    incarnation: u64,
    map: Arc<ClusterMap>,
    /// It has stopped using what these maps take from it.
    prepared: Vec<Arc<ClusterMap>>,
    /// The places that it has all of.
    has: BTreeSet<u64>,
    is_running: bool,
    /// Its clock runs at so many thousandths of the true one.
    speed: u64,
}

enum ToNode {
    Granted(u64, u64, u64),
    Prepare(Arc<ClusterMap>),
    Effective(Arc<ClusterMap>),
}

/// The world of a run, which follows from its seed.
pub(super) struct World {
    seed: u64,
    draws: u64,
    now_us: u64,
    grants: Grants,
    nodes: BTreeMap<NodeId, Node>,
    /// Cut off until then.
    cut_us: BTreeMap<NodeId, u64>,
    to_nodes: Vec<(u64, NodeId, ToNode)>,
    to_monitors: Vec<(u64, Event)>,
    /// The newest map in effect by which somebody lost something.
    taken: Epoch,
    /// What went wrong first.
    pub wrong: Option<String>,
    /// Maps that took effect.
    pub maps: u64,
}

impl World {
    pub fn new(seed: u64, broken: Option<Rule>) -> Self {
        let map = Arc::new(ClusterMap::of(4, &[KeyspaceConfig::default()]));
        let config = LeaseConfig { remove_after_us: Some(20_000_000), ..LeaseConfig::default() };
        let mut world = Self {
            seed,
            draws: 0,
            now_us: 0,
            grants: Grants::new(config, Arc::clone(&map), 0),
            nodes: BTreeMap::new(),
            cut_us: BTreeMap::new(),
            to_nodes: Vec::new(),
            to_monitors: Vec::new(),
            taken: map.epoch,
            wrong: None,
            maps: 0,
        };
        world.grants.rules.broken = broken;
        for node in 0..6 {
            let speed = 960 + world.below(80);
            let holder = holder(1, broken);
            let map = Arc::clone(&map);
            let has = places().filter(|it| holds(&map, NodeId(node), *it)).collect();
            let (prepared, is_running) = (Vec::new(), node < 4);
            let it = Node { holder, incarnation: 1, map, prepared, has, is_running, speed };
            world.nodes.insert(NodeId(node), it);
        }
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        hash::place(self.seed.wrapping_mul(0xD134_2543_DE82_EF95), self.draws) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// When a message to or from the node arrives, if it does.
    fn arrival(&mut self, node: NodeId) -> Option<u64> {
        let is_cut = self.cut_us.get(&node).is_some_and(|until| self.now_us < *until);
        let is_lost = is_cut || self.one_in(12);
        let delay_us = if self.one_in(10) { self.below(1_500_000) } else { self.below(80_000) };
        (!is_lost).then_some(self.now_us + delay_us)
    }

    pub fn run(&mut self, seconds: u64) {
        while self.now_us < seconds * 1_000_000 && self.wrong.is_none() {
            self.now_us += STEP_US;
            self.trouble();
            self.deliver();
            self.tell(Event::Tick);
            let all: Vec<NodeId> = self.nodes.keys().copied().collect();
            all.into_iter().for_each(|node| self.tick(node));
            self.check();
        }
    }

    /// Something happens, now and then.
    fn trouble(&mut self) {
        let node = NodeId(self.below(6) as u16);
        let proposal = self.draws;
        match self.below(50) {
            0 => {
                let until_us = self.now_us + self.below(8_000_000);
                self.cut_us.insert(node, until_us);
            }
            1 | 2 => self.restart(node),
            3 => {
                let incarnation = self.nodes[&node].incarnation + 1;
                let newcomer = Newcomer { node, incarnation, ..Newcomer::default() };
                if !self.nodes[&node].is_running {
                    self.tell(Event::Propose { proposal, change: Change::Join(vec![newcomer]) });
                }
            }
            4 => self.tell(Event::Propose { proposal, change: Change::Drain(node) }),
            5 if self.one_in(4) => {
                self.tell(Event::Propose { proposal, change: Change::Down(node) });
            }
            6 => self.take_over(),
            _ => {}
        }
        if self.grants.map().is_live(node) && !self.nodes[&node].is_running {
            // Who was let in starts.
            self.start(node, self.grants.map().nodes[&node].incarnation, false);
        }
    }

    /// Other monitors go on, who know the map in effect and the epochs that were used, and no more.
    fn take_over(&mut self) {
        let (config, broken) = (self.grants.config, self.grants.rules.broken);
        let (before, reserved) = (Arc::clone(self.grants.map()), self.grants.epoch_max);
        let mut effects = Vec::new();
        let map = Arc::clone(&before);
        self.grants = Grants::take_over(config, map, reserved, self.now_us, &mut effects);
        self.grants.rules.broken = broken;
        self.carry_out(before, effects);
    }

    fn restart(&mut self, node: NodeId) {
        if self.nodes[&node].is_running {
            let has_disk = !self.one_in(3);
            self.start(node, self.nodes[&node].incarnation + 1, has_disk);
        }
    }

    fn start(&mut self, node: NodeId, incarnation: u64, has_disk: bool) {
        let broken = self.grants.rules.broken;
        let map = Arc::clone(self.grants.map());
        let it = self.nodes.get_mut(&node).unwrap();
        it.holder = holder(incarnation, broken);
        (it.incarnation, it.prepared, it.is_running) = (incarnation, Vec::new(), true);
        if !has_disk {
            (it.has, it.map) = (BTreeSet::new(), map);
        }
    }

    /// What a node does from time to time.
    fn tick(&mut self, node: NodeId) {
        let it = self.nodes.get_mut(&node).unwrap();
        if !it.is_running {
            return;
        }
        let now_us = self.now_us * it.speed / 1000;
        let (incarnation, epoch) = (it.incarnation, it.map.epoch);
        let known = it.map.nodes.get(&node).copied();
        let mut said = Vec::new();
        if let Some(asked) = it.holder.renewal(now_us, epoch) {
            let sent_us = asked.sent_us;
            let retention = OutcomeRetention::UNKNOWN;
            said.push(Event::Renew { node, incarnation, epoch, sent_us, retention });
        }
        let is_in = known.is_some_and(|known| known.incarnation == incarnation);
        let receives = |place: &u64| placed(&it.map, *place).recipients.contains(&node);
        let missing = places().find(|place| receives(place) && !it.has.contains(place));
        if !is_in {
            let has_disk = !it.has.is_empty();
            said.push(Event::Return { node, incarnation, epoch, has_disk, level: LEVEL });
        } else if known.is_some_and(|known| !known.is_live()) {
            // Declared down while it was alive: it comes back as another.
            it.incarnation += 1;
            it.holder = holder(it.incarnation, self.grants.rules.broken);
        } else if let Some(place) = missing {
            // Copies come in one by one, from somebody with a map as new.
            if epoch == self.grants.map().epoch && self.below(2) == 0 {
                self.nodes.get_mut(&node).unwrap().has.insert(place);
            }
        } else if self.below(10) == 0 {
            said.push(Event::CaughtUp { node, incarnation, epoch });
        }
        for event in said {
            if let Some(at_us) = self.arrival(node) {
                self.to_monitors.push((at_us, event));
            }
        }
    }

    fn deliver(&mut self) {
        let now_us = self.now_us;
        for (_, event) in
            self.to_monitors.extract_if(.., |(at, _)| *at <= now_us).collect::<Vec<_>>()
        {
            self.tell(event);
        }
        for (_, node, message) in
            self.to_nodes.extract_if(.., |(at, ..)| *at <= now_us).collect::<Vec<_>>()
        {
            self.receive(node, message);
        }
    }

    fn receive(&mut self, node: NodeId, message: ToNode) {
        let it = self.nodes.get_mut(&node).unwrap();
        let mut prepared = None;
        match message {
            ToNode::Granted(incarnation, sent_us, duration_us) => {
                it.holder.granted(incarnation, sent_us, duration_us);
            }
            ToNode::Prepare(map) if map.epoch > it.map.epoch => {
                let (incarnation, epoch) = (it.incarnation, map.epoch);
                prepared = Some(Event::Prepared { node, incarnation, epoch });
                it.prepared.push(map);
            }
            ToNode::Effective(map) if map.epoch > it.map.epoch => {
                it.prepared.retain(|prepared| prepared.epoch > map.epoch);
                it.map = map;
                it.holder.hurry();
            }
            ToNode::Prepare(_) | ToNode::Effective(_) => {}
        }
        if let (Some(event), Some(at_us)) = (prepared, self.arrival(node)) {
            self.to_monitors.push((at_us, event));
        }
    }

    fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        let before = Arc::clone(self.grants.map());
        self.grants.step(self.now_us, event, &mut effects);
        if self.one_in(20) {
            self.grants.invariants();
        }
        self.carry_out(before, effects);
    }

    fn carry_out(&mut self, mut before: Arc<ClusterMap>, effects: Vec<Effect>) {
        for effect in effects {
            let sent: Vec<(NodeId, ToNode)> = match effect {
                Effect::Grant { to, incarnation, sent_us, duration_us, .. } => {
                    vec![(to, ToNode::Granted(incarnation, sent_us, duration_us))]
                }
                Effect::Prepare { to, map } => vec![(to, ToNode::Prepare(map))],
                Effect::Inform { to, map } => vec![(to, ToNode::Effective(map))],
                Effect::Publish(map) => {
                    self.maps += 1;
                    if !losers(&before, &map).is_empty() {
                        self.taken = map.epoch;
                    }
                    before = Arc::clone(&map);
                    for (node, it) in &mut self.nodes {
                        it.has.retain(|place| holds(&map, *node, *place));
                    }
                    let all = self.nodes.keys().copied();
                    all.map(|node| (node, ToNode::Effective(Arc::clone(&map)))).collect()
                }
                Effect::Answer { .. } => Vec::new(),
            };
            for (node, message) in sent {
                if let Some(at_us) = self.arrival(node) {
                    self.to_nodes.push((at_us, node, message));
                }
            }
        }
    }

    /// Whether the node would serve what lies at this place, now.
    fn serves(&self, node: NodeId, place: u64) -> bool {
        let it = &self.nodes[&node];
        let is_authority = |map: &ClusterMap| {
            let is_own = map.incarnation(node) == Some(it.incarnation);
            is_own && placed(map, place).holders.first() == Some(&node)
        };
        let is_kept = it.prepared.iter().all(|map| is_authority(map));
        let now_us = self.now_us * it.speed / 1000;
        it.is_running && it.holder.is_held(now_us) && is_kept && is_authority(&it.map)
    }

    /// Whether the node would take part by a map older than one by which somebody has lost.
    fn is_left_behind(&self, node: NodeId) -> bool {
        let it = &self.nodes[&node];
        let now_us = self.now_us * it.speed / 1000;
        let is_own = it.map.incarnation(node) == Some(it.incarnation)
            && it.prepared.iter().chain([&it.map]).all(|map| map.is_live(node));
        let prepared = it.prepared.iter().map(|map| map.epoch);
        let is_old = prepared.fold(it.map.epoch, Epoch::max) < self.taken;
        it.is_running && is_own && it.holder.is_held(now_us) && is_old
    }

    fn check(&mut self) {
        let all = self.nodes.keys().copied();
        let behind: Vec<NodeId> = all.filter(|node| self.is_left_behind(*node)).collect();
        if !behind.is_empty() {
            self.wrong = Some(format!("{behind:?} go by a map that somebody has lost by since"));
        }
        for place in places() {
            let all = self.nodes.keys().copied();
            let serving: Vec<NodeId> = all.filter(|node| self.serves(*node, place)).collect();
            if serving.len() > 1 {
                self.wrong = Some(format!("{serving:?} all have the authority"));
            }
            if serving.iter().any(|node| !self.nodes[node].has.contains(&place)) {
                self.wrong = Some(format!("{serving:?} serves what it does not have"));
            }
        }
    }
}

fn holder(incarnation: u64, broken: Option<Rule>) -> Holder {
    let mut holder = Holder::new(incarnation);
    holder.rules.broken = broken;
    holder
}

/// The places that are looked at.
fn places() -> impl Iterator<Item = u64> {
    (0..10).map(|index| hash::place(11, index))
}

/// Who has to do with this place, of the only keyspace.
fn placed(map: &ClusterMap, place: u64) -> Placement {
    let keyspace = map.keyspaces.values().next().expect("there is one");
    map.placed(place, keyspace.layout())
}

/// Whether the node gets the writes of this place.
fn holds(map: &ClusterMap, node: NodeId, place: u64) -> bool {
    let placed = placed(map, place);
    placed.holders.contains(&node) || placed.recipients.contains(&node)
}
