//! A few members, their monitors and clients in memory, run from a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceConfig, KeyspaceId, NodeId, Number,
    Operation, Payload, Timestamp, Transaction, TransactionId, Transform,
};

use super::shelf::{CHUNK, Content, SLOTS, Shelf, touched};
use crate::chain::Ends;
use crate::commit::Decision;
use crate::commit::recovery::NEVER_BEGUN;
use crate::lease::{self, Grants, LeaseConfig};
use crate::map::{Change, ClusterMap, Membership, Newcomer};
use crate::member::{ChunkName, Effect, Event, Member, MemberConfig, Record, incarnation};
use crate::message::{Address, Body, Envelope, Now, ReadPart, ReadRequest};
use crate::movement;
use crate::read::Kind;
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

struct Machine {
    member: Option<Member>,
    shelf: Shelf,
    log: Vec<Record>,
    synced: usize,
    starts: u64,
    waiting: Vec<(u64, usize)>,
    is_syncing: bool,
}

/// A client's transaction.
struct Call {
    transaction: Arc<Transaction>,
    begun_us: u64,
    is_retry: bool,
    answer: Option<Decision>,
}

/// What is committed anew gets an id so far from the first.
const ANEW: u64 = 1_000;

/// Whether a transaction was closed because nobody had it when it was asked about.
fn is_never_begun(decision: &Decision) -> bool {
    match decision {
        Decision::Abort(abort) => abort.reason == NEVER_BEGUN,
        Decision::Commit(_) => false,
    }
}

/// A direct read of a client.
struct Look {
    chunk: ChunkName,
    asked_us: u64,
    begun_us: u64,
    answer: Option<Content>,
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

const CLIENT: u64 = 7;
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

    fn step(&mut self, node: NodeId, event: Event) {
        let now = Now { wall_us: self.now_us, monotonic_us: self.now_us };
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let machine = self.machines.get_mut(&node).expect("nodes are not removed");
            let Some(member) = &mut machine.member else { return };
            let mut effects = Vec::new();
            member.step(now, event, &mut machine.shelf, &mut effects);
            member.invariants();
            for effect in effects {
                match effect {
                    Effect::Send { to, envelope } => self.send(to, envelope),
                    Effect::Resume => next = Some(Event::Resume),
                    Effect::Persist { number, record, is_synced } => {
                        self.persist(node, number, record, is_synced);
                    }
                    Effect::Serve { request, at } => self.serve(node, &request, at),
                    Effect::List { request, .. } => panic!("nobody asks: {request:?}"),
                    Effect::Found(finding) => panic!("nobody looks for it: {finding}"),
                }
            }
        }
    }

    fn send(&mut self, to: Address, envelope: Envelope) {
        let is_lost = !self.is_healed && self.random.percent(self.config.loss);
        if !is_lost {
            let delay_us = 100 + self.random.below(2_000) as u64;
            if self.random.percent(self.config.loss) {
                let late_us = delay_us + self.random.below(100_000) as u64;
                self.at(late_us, Happening::Arrive(to, envelope.clone()));
            }
            self.at(delay_us, Happening::Arrive(to, envelope));
        }
    }

    fn persist(&mut self, node: NodeId, number: u64, record: Record, is_synced: bool) {
        let machine = self.machines.get_mut(&node).expect("nodes are not removed");
        machine.log.push(record);
        if is_synced {
            machine.waiting.push((number, machine.log.len()));
            self.sync(node);
        }
    }

    fn sync(&mut self, node: NodeId) {
        let machine = self.machines.get_mut(&node).expect("nodes are not removed");
        if machine.is_syncing || machine.waiting.is_empty() {
            return;
        }
        machine.is_syncing = true;
        let numbers = machine.waiting.drain(..).map(|(number, _)| number).collect();
        machine.waiting.push((0, machine.log.len()));
        let starts = machine.starts;
        let sync_us = 200 + self.random.below(3_000) as u64;
        self.at(sync_us, Happening::Synced(node, starts, numbers));
    }

    fn synced(&mut self, node: NodeId, starts: u64, numbers: Vec<u64>) {
        let machine = self.machines.get_mut(&node).expect("nodes are not removed");
        if machine.starts != starts || machine.member.is_none() {
            return;
        }
        let (_, len) = machine.waiting.remove(0);
        machine.synced = len;
        machine.is_syncing = false;
        self.sync(node);
        for number in numbers {
            self.step(node, Event::Persisted { number });
        }
    }

    fn serve(&mut self, node: NodeId, request: &ReadRequest, at: Option<Timestamp>) {
        let machine = &self.machines[&node];
        let member = machine.member.as_ref().expect("it has just asked");
        let chunk = (request.blob.clone(), request.range.start / CHUNK);
        let (read, range, clock) = (request.read, request.range, member.clock());
        let body = if request.is_copy {
            let at = at.expect("a copy is at a timestamp");
            let copy = machine.shelf.copy(&chunk, range, at).expect("it is the newest");
            Body::Movement(movement::Message::Copied { read, chunk, copy })
        } else {
            let (content, version) = machine.shelf.content(&chunk, at).expect("it is the newest");
            let bytes: Vec<u8> = content.iter().flat_map(|number| number.to_le_bytes()).collect();
            let (bytes, size) = (Bytes::from(bytes), None);
            Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
        };
        let envelope = member.envelope(body);
        self.send(request.asker, envelope);
    }

    // -- monitors ---------------------------------------------------------------------------

    fn monitors(&mut self, Envelope { from, epoch, incarnation, body }: Envelope) {
        let Address::Node(node) = from else { return };
        self.grant(match body {
            Body::Renew { incarnation, epoch, sent_us, retention } => {
                lease::Event::Renew { node, incarnation, epoch, sent_us, retention }
            }
            Body::Prepared { epoch } => lease::Event::Prepared { node, incarnation, epoch },
            Body::CaughtUp { epoch } => lease::Event::CaughtUp { node, incarnation, epoch },
            Body::Return { incarnation, has_disk, level } => {
                lease::Event::Return { node, incarnation, epoch, has_disk, level }
            }
            Body::FetchMap => {
                if let Some(map) = self.grants.newer_than(epoch) {
                    self.send_as_monitors(node, Body::NewerMap(map));
                }
                return;
            }
            other => panic!("monitors are not told {other:?}"),
        });
    }

    fn send_as_monitors(&mut self, to: NodeId, body: Body) {
        let (epoch, from) = (self.grants.map().epoch, Address::Monitors);
        self.send(Address::Node(to), Envelope { epoch, incarnation: 0, from, body });
    }

    fn grant(&mut self, event: lease::Event) {
        let mut effects = Vec::new();
        self.grants.step(self.now_us, event, &mut effects);
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
                    self.send_as_monitors(to, body);
                }
                lease::Effect::Prepare { to, map } => self.send_as_monitors(to, Body::Prepare(map)),
                lease::Effect::Inform { to, map } => {
                    self.send_as_monitors(to, Body::Effective(map))
                }
                lease::Effect::Publish(map) => {
                    self.map = Arc::clone(&map);
                    for node in self.machines.keys().copied().collect::<Vec<_>>() {
                        self.send_as_monitors(node, Body::Effective(Arc::clone(&map)));
                    }
                }
                lease::Effect::Answer { result, .. } => {
                    if let Err(error) = result {
                        println!("refused: {error}");
                    }
                }
            }
        }
    }

    // -- faults -----------------------------------------------------------------------------

    fn crash(&mut self) {
        let running = self.machines.iter().filter(|(_, it)| it.member.is_some());
        let running: Vec<NodeId> = running.map(|(node, _)| *node).collect();
        let node = self.random.pick(&running);
        self.crashes -= 1;
        let machine = self.machines.get_mut(&node).expect("it was picked");
        let unsynced = machine.log.len() - machine.synced;
        let kept = self.random.below(unsynced + 1);
        machine.log.truncate(machine.synced + kept);
        machine.synced = machine.log.len();
        machine.member = None;
        machine.waiting.clear();
        machine.is_syncing = false;
        let long_us = if self.random.percent(50) { 500_000 } else { 6_000_000 };
        self.at(long_us, Happening::Start(node));
    }

    fn start(&mut self, node: NodeId) {
        let machine = self.machines.get_mut(&node).expect("nodes are not removed");
        machine.starts += 1;
        machine.shelf = Shelf::new(node);
        let mut config = MemberConfig::default();
        if node.0.is_multiple_of(2) {
            config.ballots_max = 1; // Nearly all that it asks about is put off.
        }
        let mut member = Member::new(node, incarnation(machine.starts), config);
        for record in &machine.log {
            member.replay(record.clone(), &mut machine.shelf);
        }
        member.invariants();
        machine.member = Some(member);
    }

    // -- the client -------------------------------------------------------------------------

    fn client_envelope(&self, body: Body) -> Envelope {
        Envelope { epoch: self.map.epoch, incarnation: 0, from: Address::Client(CLIENT), body }
    }

    fn submit(&mut self, id: TransactionId) {
        if !self.calls.contains_key(&id) {
            let transaction = Arc::new(self.transaction(id));
            let (begun_us, is_retry, answer) = (self.now_us, false, None);
            self.calls.insert(id, Call { transaction, begun_us, is_retry, answer });
        }
        let call = self.calls.get_mut(&id).expect("it was just put in");
        if call.answer.is_some() {
            return;
        }
        let (transaction, begun_us, is_retry) =
            (Arc::clone(&call.transaction), call.begun_us, call.is_retry);
        call.is_retry = true;
        self.at(300_000, Happening::Submit(id));
        let ends = Ends::new();
        if let Ok(chain) = self.map.chain(&transaction, &ends) {
            let head = chain.hops()[0].node;
            let settled = 0;
            let body = Body::Submit { transaction, ends, begun_us, is_retry, settled };
            let envelope = self.client_envelope(body);
            self.send(Address::Node(head), envelope);
        }
    }

    /// Adds to some counters, and writes its own number somewhere.
    fn transaction(&mut self, id: TransactionId) -> Transaction {
        let mut blobs: Vec<u8> = (0..BLOBS).collect();
        blobs = self.random.sample(&blobs, 1 + id.0 as usize % 3);
        blobs.sort_unstable();
        let blobs = blobs.into_iter().map(|number| {
            let chunk = self.random.below(CHUNKS as usize) as u64;
            let offset = |slot: u64| chunk * CHUNK + slot * 8;
            let transform = Transform::add(Number::U64(1));
            let payload = Payload::Inline(Bytes::copy_from_slice(&(id.0 as u64).to_le_bytes()));
            let operations = vec![
                Operation::Apply { offset: offset(0), transform },
                Operation::Write { offset: offset(1 + id.0 as u64 % (SLOTS - 1)), payload },
            ];
            BlobOperations { blob: blob(number), operations }
        });
        Transaction { id, blobs: blobs.collect(), reads: vec![] }
    }

    fn look(&mut self, read: u64) {
        if !self.looks.contains_key(&read) {
            let number = self.random.below(BLOBS.into()) as u8;
            let chunk = (blob(number), self.random.below(CHUNKS as usize) as u64);
            let (asked_us, begun_us) = (0, self.now_us);
            self.looks.insert(read, Look { chunk, asked_us, begun_us, answer: None });
        }
        let look = self.looks.get_mut(&read).expect("it was just put in");
        if look.answer.is_some() {
            return;
        }
        look.asked_us = self.now_us;
        let (blob, chunk) = look.chunk.clone();
        self.at(300_000, Happening::Read(read));
        let holders = self.map.holders(&blob, chunk);
        if holders.is_empty() {
            return;
        }
        let to = self.random.pick(&holders);
        let range = ByteRange { start: chunk * CHUNK, end: chunk * CHUNK + SLOTS * 8 };
        let (asker, kind) = (Address::Client(CLIENT), Kind::Direct);
        let (is_attributes, is_copy) = (false, false);
        let request = ReadRequest { read, asker, blob, range, is_attributes, kind, is_copy };
        let envelope = self.client_envelope(Body::Read(request));
        self.send(Address::Node(to), envelope);
    }

    fn client(&mut self, Envelope { body, .. }: Envelope) {
        match body {
            Body::Reply { id, decision, outcomes, .. } => {
                let call = self.calls.get_mut(&id).expect("only what was asked is answered");
                // Answers are lost only with all that held the chunk when it was applied.
                let adds = call.transaction.blobs.len();
                assert!(outcomes.len() <= adds, "an add answers once: {id:?} {outcomes:?}");
                self.complete_answers += usize::from(outcomes.len() == adds);
                match &call.answer {
                    None => {
                        let is_anew = is_never_begun(&decision);
                        call.answer = Some(decision);
                        if is_anew {
                            // As a session does: the same again, under another id (F12).
                            let sequence = id.0 as u64 + ANEW;
                            let id = TransactionId::new(CLIENT, sequence);
                            self.at(0, Happening::Submit(id));
                        }
                    }
                    Some(answer) => assert_eq!(*answer, decision, "one outcome: {id:?}"),
                }
            }
            Body::Part(part) => {
                let look = self.looks.get_mut(&part.read).expect("only what was asked");
                if look.answer.is_none() {
                    let numbers = part.bytes.chunks_exact(8);
                    let mut content = Content::default();
                    for (slot, bytes) in content.iter_mut().zip(numbers) {
                        *slot = u64::from_le_bytes(bytes.try_into().unwrap());
                    }
                    look.answer = Some(content);
                }
            }
            Body::NewerMap(_) | Body::NotHere(_) | Body::Refused { .. } => {}
            other => panic!("clients are not told {other:?}"),
        }
    }

    // -- what must be so in the end ---------------------------------------------------------

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
