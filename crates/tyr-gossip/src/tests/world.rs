//! A network of machines that runs from one seed.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tyr_types::NodeId;

use crate::{
    Effect, GossipConfig, GossipEvent, Input, Machine, MachineParts, NodeView, PeerState, Rumour,
};
use tyr_net::access::Key;

/// One second.
pub const SECOND: u64 = 1_000_000;

/// One millisecond.
pub const MS: u64 = 1_000;

/// What the network does.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Datagrams lost, in hundredths.
    pub loss: u32,
    /// Datagrams that come twice, in hundredths.
    pub doubled: u32,
    /// The shortest way, in microseconds.
    pub delay_us: u64,
    /// By how much it may be longer.
    pub jitter_us: u64,
}

/// A network on which nothing happens.
pub const QUIET: Weather = Weather { loss: 0, doubled: 0, delay_us: 100, jitter_us: 100 };

/// One process.
pub struct Process {
    machine: Machine,
    incarnation: u64,
    /// It does not run before.
    asleep_until: u64,
    /// What came meanwhile: what a socket's buffer holds.
    buffer: Vec<(SocketAddr, Vec<u8>)>,
    is_dead: bool,
}

/// What somebody found: when, who.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub at: u64,
    pub by: u16,
    pub event: GossipEvent,
}

/// A datagram on its way: when it arrives, its number, to whom, from where, its bytes.
type Flying = (u64, u64, u16, SocketAddr, Vec<u8>);

/// All of it.
pub struct World {
    pub now: u64,
    pub weather: Weather,
    pub found: Vec<Found>,
    /// Ways on which nothing arrives: from, to.
    pub cuts: Vec<(u16, u16)>,
    /// Every datagram that was delivered, for who wants to play them again.
    pub recorded: Option<Vec<(u16, SocketAddr, Vec<u8>)>>,
    pub config: GossipConfig,
    processes: BTreeMap<u16, Process>,
    flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    rng: SmallRng,
    /// Prints the seed when a test fails.
    _seed: Seed,
}

struct Seed(u64, Rc<Cell<u64>>);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, at {} us", self.0, self.1.get());
        }
    }
}

pub fn address(node: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, (node / 250) as u8, (node % 250) as u8), 7000))
}

impl World {
    /// So many nodes, numbered from 1, that know of each other by the map alone.
    pub fn new(nodes: u16, seed: u64, weather: Weather) -> Self {
        let mut world = Self {
            now: 0,
            weather,
            found: Vec::new(),
            cuts: Vec::new(),
            recorded: None,
            config: GossipConfig::default(),
            processes: BTreeMap::new(),
            flying: BinaryHeap::new(),
            sent: 0,
            rng: SmallRng::seed_from_u64(seed),
            _seed: Seed(seed, Rc::default()),
        };
        (1..=nodes).for_each(|node| world.start(node, 1, nodes));
        world
    }

    /// Starts a process, or starts it again, in a cluster of so many nodes.
    pub fn start(&mut self, node: u16, incarnation: u64, nodes: u16) {
        let parts = MachineParts {
            node: NodeId(node),
            incarnation,
            cluster: Some(42),
            secret: Some(Key::of("secret")),
            config: self.config.clone(),
            seed: self.rng.random(),
        };
        let mut machine = Machine::new(parts).unwrap();
        machine.step(self.now, Input::Tick, &mut Vec::new());
        machine.set_nodes(self.now, &map(nodes));
        let process =
            Process { machine, incarnation, asleep_until: 0, buffer: Vec::new(), is_dead: false };
        self.processes.insert(node, process);
    }

    pub fn machine(&mut self, node: u16) -> &mut Machine {
        &mut self.processes.get_mut(&node).unwrap().machine
    }

    /// It has a new map.
    pub fn set_nodes(&mut self, node: u16, nodes: &BTreeMap<NodeId, Vec<SocketAddr>>) {
        let now = self.now;
        self.machine(node).set_nodes(now, nodes);
    }

    /// It has something to tell.
    pub fn tell(&mut self, node: u16, rumour: Rumour) {
        let now = self.now;
        self.machine(node).tell(now, rumour).unwrap();
    }

    /// It is gone without a word.
    pub fn kill(&mut self, node: u16) {
        self.processes.get_mut(&node).unwrap().is_dead = true;
    }

    /// It does not run for so long.
    pub fn pause(&mut self, node: u16, us: u64) {
        self.processes.get_mut(&node).unwrap().asleep_until = self.now + us;
    }

    /// It goes, with a word.
    pub fn leave(&mut self, node: u16) {
        let mut effects = Vec::new();
        self.machine(node).leave(&mut effects);
        self.carry_out(node, effects);
        self.kill(node);
    }

    /// Nothing arrives from these at those, nor back.
    pub fn part(&mut self, these: &[u16], those: &[u16]) {
        for a in these {
            for b in those {
                self.cuts.extend([(*a, *b), (*b, *a)]);
            }
        }
    }

    /// Time goes on by so much.
    pub fn run(&mut self, us: u64) {
        let end = self.now + us;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self._seed.1.set(self.now);
            self.deliver();
            self.tick();
        }
        self.now = end;
    }

    /// Runs until it is so; fails when it takes longer than `us`.
    pub fn run_until(&mut self, us: u64, what: impl Fn(&Self) -> bool) {
        let end = self.now + us;
        while !what(self) {
            assert!(self.now < end, "it is not so yet");
            self.run(10 * MS);
        }
    }

    /// Runs until all see all alive, and takes the record anew.
    pub fn settle(&mut self) {
        self.run_until(10 * SECOND, Self::is_whole);
        self.run(20 * SECOND);
        self.run_until(10 * SECOND, Self::is_whole);
        self.found.clear();
    }

    /// Whether all who live see each other alive, in their incarnations.
    pub fn is_whole(&self) -> bool {
        let is_seen = |view: &NodeView| match &self.processes[&view.node.0] {
            process if process.is_dead => view.state == PeerState::Down,
            process => view.state == PeerState::Alive && view.incarnation == process.incarnation,
        };
        self.living().all(|node| self.view(node).iter().all(is_seen))
    }

    pub fn living(&self) -> impl Iterator<Item = u16> {
        self.processes.iter().filter(|(_, it)| !it.is_dead).map(|(node, _)| *node)
    }

    pub fn view(&self, node: u16) -> Vec<NodeView> {
        self.processes[&node].machine.view(self.now)
    }

    /// How this one sees that one.
    pub fn sees(&self, by: u16, node: u16) -> PeerState {
        self.view(by).iter().find(|view| view.node.0 == node).unwrap().state
    }

    /// Who was found down, when and by whom.
    pub fn downs(&self) -> Vec<(u64, u16, u16)> {
        let down = |it: &Found| match it.event {
            GossipEvent::Down { node, .. } => Some((it.at, it.by, node.0)),
            GossipEvent::Alive { .. } | GossipEvent::Suspect { .. } | GossipEvent::Epoch { .. } => {
                None
            }
        };
        self.found.iter().filter_map(down).collect()
    }

    pub fn suspicions(&self) -> usize {
        let is_one = |it: &&Found| matches!(it.event, GossipEvent::Suspect { .. });
        self.found.iter().filter(is_one).count()
    }

    /// Something arrives at a node, whoever sent it.
    pub fn inject(&mut self, to: u16, from: SocketAddr, bytes: Vec<u8>) {
        self.sent += 1;
        self.flying.push(Reverse((self.now, self.sent, to, from, bytes)));
    }

    fn next_at(&self) -> Option<u64> {
        let flying = self.flying.peek().map(|Reverse(it)| it.0);
        let wakes = self
            .processes
            .values()
            .filter(|it| !it.is_dead)
            .map(|it| it.machine.wakes_at().max(it.asleep_until));
        wakes.chain(flying).min()
    }

    fn deliver(&mut self) {
        while self.flying.peek().is_some_and(|Reverse(it)| it.0 <= self.now) {
            let Some(Reverse((_, _, to, from, bytes))) = self.flying.pop() else { return };
            if let Some(recorded) = &mut self.recorded {
                recorded.push((to, from, bytes.clone()));
            }
            let process = self.processes.get_mut(&to).unwrap();
            if process.is_dead {
                continue;
            }
            if process.asleep_until > self.now {
                // Linux holds some 270 small datagrams, unless told otherwise.
                if process.buffer.len() < 270 {
                    process.buffer.push((from, bytes));
                }
                continue;
            }
            let mut effects = Vec::new();
            let input = Input::Datagram { from, bytes: &bytes };
            process.machine.step(self.now, input, &mut effects);
            self.carry_out(to, effects);
        }
    }

    fn tick(&mut self) {
        let nodes: Vec<u16> = self.living().collect();
        for node in nodes {
            let process = self.processes.get_mut(&node).unwrap();
            if process.asleep_until > self.now {
                continue;
            }
            let mut effects = Vec::new();
            for (from, bytes) in std::mem::take(&mut process.buffer) {
                let input = Input::Datagram { from, bytes: &bytes };
                process.machine.step(self.now, input, &mut effects);
            }
            if process.machine.wakes_at() <= self.now {
                process.machine.step(self.now, Input::Tick, &mut effects);
                assert!(process.machine.wakes_at() > self.now, "a tick that leads nowhere");
            }
            self.carry_out(node, effects);
        }
    }

    fn carry_out(&mut self, by: u16, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { to, bytes } => self.send(by, to, bytes),
                Effect::Event(event) => self.found.push(Found { at: self.now, by, event }),
            }
        }
    }

    fn send(&mut self, from: u16, to: SocketAddr, bytes: Vec<u8>) {
        assert!(bytes.len() <= 1232, "{} bytes", bytes.len());
        let Some(to) = self.processes.keys().copied().find(|node| address(*node) == to) else {
            return;
        };
        if self.cuts.contains(&(from, to)) || self.rng.random_range(0..100) < self.weather.loss {
            return;
        }
        let copies = 1 + u32::from(self.rng.random_range(0..100) < self.weather.doubled);
        for _ in 0..copies {
            let jitter = self.rng.random_range(0..=self.weather.jitter_us);
            let at = self.now + self.weather.delay_us + jitter;
            self.sent += 1;
            self.flying.push(Reverse((at, self.sent, to, address(from), bytes.clone())));
        }
    }
}

/// A map of so many nodes.
pub fn map(nodes: u16) -> BTreeMap<NodeId, Vec<SocketAddr>> {
    (1..=nodes).map(|node| (NodeId(node), vec![address(node)])).collect()
}
