//! A few members, their monitors and clients in memory, run from a seed.

mod client;
mod machines;
mod monitors;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use tyr_types::{BlobName, Key, KeyspaceConfig, KeyspaceId, NodeId, Timestamp, TransactionId};

use self::client::{CLIENT, Call, Look, is_never_begun};
use self::machines::Machine;
use super::shelf::{CHUNK, Content, Shelf, touched};
use crate::commit::Decision;
use crate::lease::{self, Grants, LeaseConfig};
use crate::map::{Change, ClusterMap, Membership, Newcomer};
use crate::member::{ChunkName, Event, incarnation};
use crate::message::{Address, Envelope};
use crate::test_cluster::random::Random;

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub nodes: u16,
    pub replication: u8,
    pub transactions: u64,
    /// Messages lost, in a hundred.
    pub loss: usize,
    pub crashes: usize,
    /// Whether a node joins, and one is drained.
    pub is_moving: bool,
}

#[derive(Debug)]
enum Happening {
    Arrive(Address, Envelope),
    Synced(NodeId, u64, Vec<u64>),
    Tick(NodeId),
    TickMonitors,
    Submit(TransactionId),
    Read(u64),
    Crash,
    Start(NodeId),
    Propose(Change),
}

pub struct World {
    random: Random,
    config: Config,
    now_us: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    given: u64,
    machines: BTreeMap<NodeId, Machine>,
    grants: Grants,
    map: Arc<ClusterMap>,
    calls: BTreeMap<TransactionId, Call>,
    looks: BTreeMap<u64, Look>,
    crashes: usize,
    is_healed: bool,
    pub moved_chunks: usize,
    pub complete_answers: usize,
}

const BLOBS: u8 = 6;
const CHUNKS: u64 = 2;

pub fn blob(number: u8) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new([b'a' + number]).unwrap() }
}

impl World {
    pub fn new(seed: u64, config: Config) -> Self {
        let keyspace = KeyspaceConfig {
            chunk_size: CHUNK,
            replication: config.replication,
            live_replicas_min: Some(1), // They are to be lost down to the last.
            ..KeyspaceConfig::default()
        };
        let map = Arc::new(ClusterMap::of(config.nodes, &[keyspace]));
        let leases = LeaseConfig { remove_after_us: None, ..LeaseConfig::default() };
        let mut world = Self {
            random: Random::new(seed),
            config,
            now_us: 1_000_000,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            given: 0,
            machines: BTreeMap::new(),
            grants: Grants::new(leases, Arc::clone(&map), 1_000_000),
            map,
            calls: BTreeMap::new(),
            looks: BTreeMap::new(),
            crashes: config.crashes,
            is_healed: false,
            moved_chunks: 0,
            complete_answers: 0,
        };
        for node in 0..config.nodes {
            world.add(NodeId(node));
        }
        world.at(0, Happening::TickMonitors);
        for id in 0..config.transactions {
            let begin_us = 100_000 + world.random.below(8_000_000) as u64;
            world.at(begin_us, Happening::Submit(TransactionId::new(CLIENT, id)));
            let begin_us = 100_000 + world.random.below(8_000_000) as u64;
            world.at(begin_us, Happening::Read(id));
        }
        for _ in 0..config.crashes {
            let crash_us = 500_000 + world.random.below(7_000_000) as u64;
            world.at(crash_us, Happening::Crash);
        }
        if config.is_moving {
            world.plan_moves();
        }
        world
    }

    fn plan_moves(&mut self) {
        let joiner = NodeId(self.config.nodes);
        self.add(joiner);
        let newcomer =
            Newcomer { node: joiner, incarnation: incarnation(1), ..Newcomer::default() };
        let join_us = 1_000_000 + self.random.below(2_000_000) as u64;
        self.at(join_us, Happening::Propose(Change::Join(vec![newcomer])));
        let drained = NodeId(self.random.below(self.config.nodes.into()) as u16);
        let drain_us = join_us + 2_000_000 + self.random.below(2_000_000) as u64;
        self.at(drain_us, Happening::Propose(Change::Drain(drained)));
    }

    fn add(&mut self, node: NodeId) {
        let machine = Machine {
            member: None,
            shelf: Shelf::new(node),
            log: Vec::new(),
            synced: 0,
            starts: 0,
            waiting: Vec::new(),
            is_syncing: false,
        };
        self.machines.insert(node, machine);
        self.start(node);
        self.at(0, Happening::Tick(node));
    }

    fn at(&mut self, in_us: u64, happening: Happening) {
        self.given += 1;
        self.happenings.insert(self.given, happening);
        self.queue.push(Reverse((self.now_us + in_us, self.given)));
    }

    /// Runs to the end: everything is answered and nothing moves any more.
    pub fn run(&mut self) {
        let limit_us = self.now_us + 60_000_000;
        while let Some(Reverse((at_us, number))) = self.queue.pop() {
            self.now_us = at_us;
            let happening = self.happenings.remove(&number).expect("it is in the queue");
            self.happen(happening);
            self.is_healed = self.now_us > 10_000_000;
            if self.is_healed && self.is_done() {
                return self.check();
            }
            assert!(self.now_us < limit_us, "not done after a minute: {}", self.open());
        }
    }

    /// How often a node that holds a blob knows what is in use of it.
    pub fn usages_told(&self) -> usize {
        self.machines.values().map(|machine| machine.shelf.usages.len()).sum()
    }

    /// A blob of which some but not all of its managers know what is in use.
    pub fn not_told(&self) -> Option<&BlobName> {
        let knows = |node: &NodeId, blob| self.machines[node].shelf.usages.contains_key(blob);
        let mut told = self.machines.values().flat_map(|machine| machine.shelf.usages.keys());
        told.find(|blob| !self.map.holders(blob, 0).iter().all(|node| knows(node, blob)))
    }

    fn is_done(&self) -> bool {
        let is_anew = |call: &&Call| call.answer.as_ref().is_some_and(is_never_begun);
        let anew = self.calls.values().filter(is_anew).count() as u64;
        let is_answered = self.calls.len() as u64 == self.config.transactions + anew
            && self.calls.values().all(|call| call.answer.is_some())
            && self.looks.values().all(|look| look.answer.is_some());
        let is_still = self.machines.iter().all(|(node, machine)| {
            // Nobody tells a node that has left of maps that come after that.
            let has_left = self.map.membership(*node) == Membership::Out;
            machine.member.as_ref().is_some_and(|member| {
                let is_current = member.map().is_some_and(|it| it.epoch == self.map.epoch);
                member.in_flight() == 0 && (is_current || has_left)
            })
        });
        let is_caught_up = self.map.next.is_none() && self.map.recipients_of_any().is_empty();
        is_answered && is_still && is_caught_up && self.grants.pending().is_none()
    }

    fn open(&self) -> String {
        let calls = self.calls.iter().filter(|(_, call)| call.answer.is_none());
        let calls: Vec<_> = calls.map(|(id, _)| id.0 as u64).collect();
        let members: Vec<String> = self
            .machines
            .iter()
            .map(|(node, it)| match &it.member {
                None => format!("{} is down", node.0),
                Some(member) => format!(
                    "{}: epoch {:?} lease {} in flight {} {:?}",
                    node.0,
                    member.map().map(|map| map.epoch.0),
                    member.has_lease(),
                    member.in_flight(),
                    member.progress()
                ),
            })
            .collect();
        let states = self.machines.iter().filter_map(|(node, it)| {
            it.member.as_ref().map(|member| format!("{}: {}", node.0, member.brief()))
        });
        let states: Vec<String> = states.collect();
        let epoch = self.map.epoch;
        format!("calls {calls:?}, epoch {epoch:?}, members {members:#?}\n{}", states.join("\n"))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(Address::Node(node), envelope) => {
                self.step(node, Event::Receive(envelope));
            }
            Happening::Arrive(Address::Client(_), envelope) => self.client(envelope),
            Happening::Arrive(Address::Monitors, envelope) => self.monitors(envelope),
            Happening::Synced(node, starts, numbers) => self.synced(node, starts, numbers),
            Happening::Tick(node) => {
                self.step(node, Event::Tick);
                self.at(50_000, Happening::Tick(node));
            }
            Happening::TickMonitors => {
                self.grant(lease::Event::Tick);
                self.at(100_000, Happening::TickMonitors);
            }
            Happening::Submit(id) => self.submit(id),
            Happening::Read(read) => self.look(read),
            Happening::Crash => self.crash(),
            Happening::Start(node) => self.start(node),
            Happening::Propose(change) => {
                self.grant(lease::Event::Propose { proposal: 1, change });
            }
        }
    }

    fn check(&mut self) {
        let mut adds: BTreeMap<ChunkName, u64> = BTreeMap::new();
        for (id, call) in &self.calls {
            match call.answer.as_ref().expect("all are answered") {
                Decision::Commit(_) => {
                    for name in touched(&call.transaction) {
                        *adds.entry(name).or_default() += 1;
                    }
                }
                decision if is_never_begun(decision) => {}
                Decision::Abort(abort) => panic!("a blind write aborts: {id:?} {abort:?}"),
            }
        }
        let mut seen = BTreeSet::new();
        for number in 0..BLOBS {
            for chunk in 0..CHUNKS {
                let name = (blob(number), chunk);
                let holders = self.map.holders(&name.0, chunk);
                let contents: Vec<Content> = holders
                    .iter()
                    .map(|node| self.machines[node].shelf.content(&name, None).unwrap().0)
                    .collect();
                let expected = adds.get(&name).copied().unwrap_or(0);
                for (node, content) in holders.iter().zip(&contents) {
                    assert_eq!(content[0], expected, "{name:?} at {}: each add once", node.0);
                    assert_eq!(content, &contents[0], "{name:?} at {}: replicas", node.0);
                    seen.insert(*node);
                    let base = self.machines[node].shelf.base_at(&name);
                    self.moved_chunks += usize::from(base > Timestamp::ZERO);
                }
            }
        }
        for look in self.looks.values() {
            let adds = adds.get(&look.chunk).copied().unwrap_or(0);
            assert!(look.answer.is_some_and(|content| content[0] <= adds));
            assert!(look.begun_us <= look.asked_us);
        }
        assert!(!seen.is_empty());
        let epoch = self.map.epoch;
        assert!(
            self.machines.values().all(|it| {
                it.member.as_ref().is_some_and(|member| member.clock().epoch <= epoch)
            })
        );
    }
}
