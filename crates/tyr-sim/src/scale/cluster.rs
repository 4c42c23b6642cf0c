//! A healthy cluster and its clients, run through the machines; every message is counted.
//!
//! Each message takes one delay, disks take no time, nothing is lost: what is left is what the
//! protocol itself costs. Unlike [`crate::world`], where everything goes wrong, this is made to
//! count, and asks nobody whether the outcome was right.

use std::sync::Arc;

use bytes::Buf;
use tyr_protocol::lease::{self, Grants, LeaseConfig};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member;
use tyr_protocol::message::{Address, Body, Envelope, Now};
use tyr_protocol::session::{self, Answer, Call, CallId, Session};
use tyr_protocol::wire;
use tyr_types::{NodeId, Transaction};

use super::tally::Tally;
use super::work::Work;
use crate::random::Random;
use crate::setup::{Clocks, Setup};
use crate::world::clock::BEGIN_US;
use crate::world::node::Node;
use crate::world::queue::Queue;

/// How long a message takes, in microseconds.
pub const DELAY_US: u64 = 1_000;
/// Fewest clients; a larger cluster has one for each node.
const CLIENTS_MIN: u16 = 64;
/// A client rests up to so long between two transactions.
const PAUSE_US: u64 = 60_000;
/// Clients begin when every node has its lease: with one transaction each that does not count,
/// before which they ask for the time.
const BEGIN_WORK_US: u64 = 1_000_000;
/// From here on it counts.
const COUNT_US: u64 = 2_000_000;
/// After the last answer, so long for what is told lazily.
const REST_US: u64 = 1_000_000;
/// Nodes and monitors look around so often.
const TICK_US: u64 = 50_000;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Nodes.
    pub nodes: u16,
    /// Where all chance comes from.
    pub seed: u64,
    /// So long clients begin transactions, in microseconds.
    pub duration_us: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The messages.
    pub tally: Tally,
    /// Those that committed, in the order of their answers.
    pub committed: Vec<Arc<Transaction>>,
    /// Those that did not. There should be none.
    pub aborted: u64,
    /// From call to answer, in microseconds, ascending.
    pub latencies_us: Vec<u64>,
}

enum Happening {
    Arrive { to: Address, envelope: Envelope },
    Persisted { node: NodeId, number: u64 },
    TickNode(NodeId),
    TickMonitors,
    TickClient(usize),
    Begin(usize),
    Count,
}

struct Client {
    session: Session,
    random: Random,
    /// When its transaction was begun, if it waits for one.
    begun_us: Option<u64>,
    /// When its next look around is in the queue.
    tick_at_us: Option<u64>,
}

struct Cluster {
    plan: Plan,
    work: Work,
    now_us: u64,
    queue: Queue<Happening>,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    monitors: Grants,
    outgoing: wire::Outgoing,
    calls: u64,
    outcome: Outcome,
}

/// Runs it until the last answer, and a little longer.
pub fn run(plan: Plan, work: Work) -> Outcome {
    let mut cluster = Cluster::new(plan, work);
    let mut ends_us = None;
    while let Some((at_us, happening)) = cluster.queue.pop() {
        if ends_us.is_some_and(|ends_us| at_us > ends_us) {
            break;
        }
        cluster.now_us = at_us;
        cluster.happen(happening);
        if ends_us.is_none() && cluster.is_idle() {
            ends_us = Some(at_us + REST_US);
        }
    }
    cluster.outcome.latencies_us.sort_unstable();
    cluster.outcome
}

impl Cluster {
    fn new(plan: Plan, work: Work) -> Self {
        let mut setup = Setup::new(plan.seed);
        setup.nodes = plan.nodes;
        setup.keyspaces = vec![work.keyspace()];
        setup.clocks = Clocks { offset_us: 0, drift: 0, monotonic_drift: 0 };
        let map = Arc::new(ClusterMap::of(plan.nodes, &setup.keyspaces));
        let clients = plan.nodes.max(CLIENTS_MIN);
        let client = |number: u64| Client {
            session: Session::new(number + 1, Arc::clone(&map)),
            random: Random::of(plan.seed, "client", number),
            begun_us: None,
            tick_at_us: None,
        };
        let mut queue = Queue::new();
        queue.push(0, Happening::TickMonitors);
        queue.push(COUNT_US, Happening::Count);
        for node in 0..plan.nodes {
            let phase_us = u64::from(node) * 7_919 % TICK_US;
            queue.push(phase_us, Happening::TickNode(NodeId(node)));
        }
        let mut cluster = Self {
            plan,
            work,
            now_us: 0,
            queue,
            nodes: (0..plan.nodes).map(|node| Node::new(NodeId(node), &setup)).collect(),
            clients: (0..clients.into()).map(client).collect(),
            monitors: Grants::new(LeaseConfig::default(), map, 0),
            outgoing: wire::Outgoing::new(),
            calls: 0,
            outcome: Outcome::default(),
        };
        cluster.nodes.iter_mut().for_each(Node::start);
        for client in 0..cluster.clients.len() {
            cluster.rest(client, BEGIN_WORK_US);
        }
        cluster
    }

    /// Whether no client does anything any more.
    fn is_idle(&self) -> bool {
        self.is_over() && self.clients.iter().all(|client| client.begun_us.is_none())
    }

    fn is_over(&self) -> bool {
        self.now_us >= COUNT_US + self.plan.duration_us
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive { to: Address::Node(node), envelope } => {
                self.step_node(node, member::Event::Receive(envelope));
            }
            Happening::Arrive { to: Address::Client(number), envelope } => {
                let client = usize::try_from(number - 1).expect("a client's number is its place");
                self.step_client(client, session::Event::Receive(envelope));
            }
            Happening::Arrive { to: Address::Monitors, envelope } => self.ask_monitors(envelope),
            Happening::Persisted { node, number } => {
                self.step_node(node, member::Event::Persisted { number });
            }
            Happening::TickNode(node) => {
                self.step_node(node, member::Event::Tick);
                self.queue.push(self.now_us + TICK_US, Happening::TickNode(node));
            }
            Happening::TickMonitors => {
                self.step_monitors(lease::Event::Tick);
                self.queue.push(self.now_us + TICK_US, Happening::TickMonitors);
            }
            Happening::TickClient(client) => {
                if self.clients[client].tick_at_us.is_some_and(|at_us| at_us <= self.now_us) {
                    self.clients[client].tick_at_us = None;
                    self.step_client(client, session::Event::Tick);
                }
            }
            Happening::Begin(client) if !self.is_over() => self.begin(client),
            Happening::Begin(_) => {}
            Happening::Count => {
                let is_waiting = self.clients.iter().any(|client| client.begun_us.is_some());
                assert!(!is_waiting, "a second is enough for one transaction of each client");
                self.outcome = Outcome::default();
            }
        }
    }

    fn rest(&mut self, client: usize, from_us: u64) {
        let pause_us = self.clients[client].random.below(PAUSE_US);
        self.queue.push(from_us + pause_us, Happening::Begin(client));
    }

    fn begin(&mut self, client: usize) {
        let it = &mut self.clients[client];
        it.begun_us = Some(self.now_us);
        let blobs = self.work.draw(&mut it.random);
        self.calls += 1;
        let (call, what) = (CallId(self.calls), Call::Commit { blobs, reads: Vec::new() });
        self.step_client(client, session::Event::Call { call, what });
    }

    fn step_client(&mut self, client: usize, event: session::Event) {
        let now = Now { wall_us: BEGIN_US + self.now_us, monotonic_us: self.now_us };
        let mut effects = Vec::new();
        let it = &mut self.clients[client];
        it.session.step(now, event, &mut effects);
        if let Some(due_us) = it.session.due_us() {
            let at_us = due_us.max(self.now_us + 1_000);
            if it.tick_at_us.is_none_or(|earlier_us| at_us < earlier_us) {
                it.tick_at_us = Some(at_us);
                self.queue.push(at_us, Happening::TickClient(client));
            }
        }
        for effect in effects {
            match effect {
                session::Effect::Send { to, envelope } => self.send(Address::Node(to), envelope),
                session::Effect::Done { call: _, answer } => self.done(client, answer),
                session::Effect::Lease { .. } => unreachable!("nobody asks for a lease"),
                session::Effect::Watch { .. } => unreachable!("nobody watches"),
            }
        }
    }

    fn done(&mut self, client: usize, answer: Answer) {
        let begun_us = self.clients[client].begun_us.take();
        let begun_us = begun_us.expect("an answer is to a transaction that was begun");
        match answer {
            Answer::Committed { transaction, .. } => {
                self.outcome.committed.push(transaction);
                self.outcome.latencies_us.push(self.now_us - begun_us);
            }
            Answer::Aborted { .. } | Answer::Failed(_) => self.outcome.aborted += 1,
            Answer::Read(_)
            | Answer::Many { .. }
            | Answer::Page(_)
            | Answer::Leased { .. }
            | Answer::Watching { .. }
            | Answer::Notified(_)
            | Answer::Staged(_)
            | Answer::Moment { .. }
            | Answer::Ended => unreachable!("clients only commit"),
        }
        self.rest(client, self.now_us.max(COUNT_US));
    }

    fn step_node(&mut self, node: NodeId, event: member::Event) {
        let (mut effects, mut next) = (Vec::new(), Some(event));
        while let Some(event) = next.take() {
            self.nodes[usize::from(node.0)].step_model(self.now_us, event, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    member::Effect::Send { to, envelope } => self.send(to, envelope),
                    member::Effect::Persist { number, is_synced: true, .. } => {
                        *self.outcome.tally.records.entry(node).or_default() += 1;
                        self.queue.push(self.now_us, Happening::Persisted { node, number });
                    }
                    member::Effect::Persist { is_synced: false, .. } => {}
                    member::Effect::Serve { request, at } => {
                        let served = self.nodes[usize::from(node.0)].serve(request, at);
                        if let Some((to, envelope)) = served {
                            self.send(to, envelope);
                        }
                    }
                    member::Effect::List { request, .. } => panic!("nobody lists: {request:?}"),
                    member::Effect::Found(finding) => panic!("in a healthy cluster: {finding}"),
                    member::Effect::Resume => next = Some(member::Event::Resume),
                    member::Effect::Yield => panic!("in a healthy cluster nobody compares"),
                }
            }
        }
    }

    fn ask_monitors(&mut self, envelope: Envelope) {
        let Address::Node(node) = envelope.from else { return };
        let epoch = envelope.epoch;
        let event = match envelope.body {
            Body::Renew { incarnation, epoch, sent_us, retention } => {
                lease::Event::Renew { node, incarnation, epoch, sent_us, retention }
            }
            Body::Return { incarnation, has_disk, level } => {
                lease::Event::Return { node, incarnation, epoch, has_disk, level }
            }
            Body::FetchMap => {
                let body = Body::NewerMap(Arc::clone(self.monitors.map()));
                return self.send_from_monitors(node, body);
            }
            body => panic!("in a healthy cluster nobody tells the monitors {body:?}"),
        };
        self.step_monitors(event);
    }

    fn step_monitors(&mut self, event: lease::Event) {
        let mut effects = Vec::new();
        self.monitors.step(self.now_us, event, &mut effects);
        for effect in effects {
            match effect {
                lease::Effect::Grant {
                    to,
                    incarnation,
                    sent_us,
                    duration_us,
                    epoch,
                    retention,
                } => {
                    let body =
                        Body::Granted { incarnation, sent_us, duration_us, epoch, retention };
                    self.send_from_monitors(to, body);
                }
                lease::Effect::Inform { to, map } => {
                    self.send_from_monitors(to, Body::Effective(map));
                }
                lease::Effect::Publish(map) => {
                    for node in map.nodes.keys() {
                        self.send_from_monitors(*node, Body::Effective(Arc::clone(&map)));
                    }
                }
                lease::Effect::Prepare { to, map } => {
                    self.send_from_monitors(to, Body::Prepare(map));
                }
                lease::Effect::Answer { .. } => unreachable!("nobody proposes a change"),
            }
        }
    }

    fn send_from_monitors(&mut self, node: NodeId, body: Body) {
        let epoch = self.monitors.map().epoch;
        let envelope = Envelope { epoch, incarnation: 0, from: Address::Monitors, body };
        self.send(Address::Node(node), envelope);
    }

    /// Counts a message, and lets it arrive one delay later. What a node says to itself takes none.
    fn send(&mut self, to: Address, envelope: Envelope) {
        if envelope.from == to {
            self.queue.push(self.now_us, Happening::Arrive { to, envelope });
            return;
        }
        let encoded = wire::encode(&envelope, &mut self.outgoing);
        encoded.expect("a message of a machine can be encoded");
        let bytes = self.outgoing.remaining();
        self.outgoing.advance(bytes);
        self.outcome.tally.count(envelope.from, to, &envelope.body, bytes as u64);
        self.queue.push(self.now_us + DELAY_US, Happening::Arrive { to, envelope });
    }
}

impl Outcome {
    /// The latency that so many of a hundred transactions are not above, in message delays.
    pub fn percentile(&self, of_hundred: usize) -> f64 {
        let place = (self.latencies_us.len() * of_hundred / 100).saturating_sub(1);
        self.latencies_us.get(place).map_or(0.0, |us| *us as f64 / DELAY_US as f64)
    }

    /// The mean latency in message delays.
    pub fn mean_delays(&self) -> f64 {
        let total: u64 = self.latencies_us.iter().sum();
        total as f64 / DELAY_US as f64 / self.latencies_us.len().max(1) as f64
    }

    /// So much of something for each transaction that committed.
    pub fn each(&self, total: u64) -> f64 {
        total as f64 / self.committed.len().max(1) as f64
    }
}
