//! The test cluster: nodes, the messages between them in random order, and clients.
//!
//! One seed gives one run. Messages overtake each other at will; records become durable at once or
//! later. Nothing is lost and nobody fails.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tyr_types::{NodeId, Timestamp, Transaction};

use super::checker::{Attempted, History, Seen, check, read_check, version};
use super::config::{Config, Summary};
use super::layout::{CHUNK, Layout, Object, SLOTS, blob_name, blob_number, slot_range};
use super::random::Random;
use super::state::{State, Written};
use super::workload;
use crate::commit::{Commit, Decision, Effect, Event, Message, Placements};
use crate::footprint::Footprint;
use crate::read::{self, Kind, ReadId, Reads, Request};
use crate::rule::Rule;
use crate::view::View;

enum Item {
    Commit(NodeId, Event),
    Read(NodeId, Request),
}

#[derive(Clone, Copy, Debug)]
enum Owner {
    Read(usize),
    Transaction(u64),
    Snapshot(usize),
}

/// A read under way: for whom, and what; no object for a first read of a whole blob (R3).
#[derive(Clone, Debug)]
struct Ask {
    owner: Owner,
    objects: Vec<Object>,
}

/// A transaction that still reads.
#[derive(Debug)]
struct Draft {
    transaction: Transaction,
    wanted: Vec<Object>,
    got: BTreeMap<Object, Vec<Written>>,
    at: Option<Timestamp>,
    start: u64,
}

/// Where an append was promised to go when it was validated.
#[derive(Debug)]
enum Promise {
    Offset(u64),
    Chunk(u64),
}

struct Node {
    commit: Commit,
    reads: Reads,
    state: State,
    skew_us: u64,
    promises: BTreeMap<(u64, u8), Promise>,
}

struct World {
    config: Config,
    random: Random,
    layout: Layout,
    nodes: Vec<Node>,
    queue: Vec<Item>,
    now: u64,
    history: History,
    asks: BTreeMap<ReadId, Ask>,
    drafts: BTreeMap<u64, Draft>,
    clocks: BTreeMap<usize, Vec<Timestamp>>,
    placed_at: BTreeMap<usize, Timestamp>,
    /// Which node has passed which transaction back.
    passed: BTreeSet<(u64, NodeId)>,
    summary: Summary,
}

/// Runs one seed.
///
/// # Errors
/// What was wrong.
pub fn run(seed: u64, config: Config) -> Result<Summary, String> {
    let mut random = Random::new(seed);
    let layout = Layout::random(&mut random, config.nodes, config.replication);
    let nodes = (0..config.nodes).map(|node| {
        let (mut commit, mut reads) = (Commit::new(NodeId(node)), Reads::new(NodeId(node)));
        commit.rules.broken = config.broken;
        commit.index_above(config.few_max);
        reads.rules.broken = config.broken;
        let state = State::new(layout.clone(), Some(NodeId(node)));
        let promises = BTreeMap::new();
        Node { commit, reads, state, skew_us: random.below(200) as u64, promises }
    });
    let nodes = nodes.collect();
    let mut world = World {
        config,
        random,
        layout,
        nodes,
        queue: Vec::new(),
        now: 0,
        history: History::default(),
        asks: BTreeMap::new(),
        drafts: BTreeMap::new(),
        clocks: BTreeMap::new(),
        placed_at: BTreeMap::new(),
        passed: BTreeSet::new(),
        summary: Summary::default(),
    };
    world.run()?;
    let states: Vec<State> = world.nodes.into_iter().map(|node| node.state).collect();
    check(&world.layout, &states, &world.history, config.is_strict)?;
    for attempted in world.history.transactions.values() {
        match attempted.end {
            Some((_, Decision::Commit(_))) => world.summary.committed += 1,
            _ => world.summary.aborted += 1,
        }
    }
    Ok(world.summary)
}

impl World {
    fn run(&mut self) -> Result<(), String> {
        let config = self.config;
        loop {
            self.now += 1;
            let chance = self.random.below(100);
            let begun = (self.history.transactions.len() + self.drafts.len()) as u64;
            if begun < config.transactions && chance < 12 {
                self.begin_transaction(begun);
            } else if self.history.reads.len() < config.reads && chance < 20 {
                self.begin_read();
            } else if self.history.snapshots.len() < config.snapshots && chance < 24 {
                self.begin_snapshot();
            } else if !self.queue.is_empty() {
                let place = self.random.below(self.queue.len());
                match self.queue.swap_remove(place) {
                    Item::Commit(node, event) => self.commit(node, event)?,
                    Item::Read(node, request) => self.read(node, read::Event::Ask(request))?,
                }
            } else if begun >= config.transactions {
                break;
            }
        }
        let open: Vec<String> = self.nodes.iter().map(|node| node.commit.brief()).collect();
        if config.broken.is_none() && open.iter().any(|open| !open.is_empty()) {
            return Err(format!("not finished:\n{}", open.concat()));
        }
        Ok(())
    }

    // Clients.

    fn begin_transaction(&mut self, id: u64) {
        let is_reading = self.random.percent(50);
        let (random, layout, nodes) = (&mut self.random, &self.layout, &self.nodes);
        let peek = |object| nodes[usize::from(layout.replicas(object)[0].0)].state.clone();
        let transaction = workload::transaction(random, layout, id, is_reading, peek);
        if !is_reading {
            let attempted = Attempted {
                transaction: Arc::new(transaction),
                reads: BTreeMap::new(),
                start: self.now,
                end: None,
            };
            return self.submit(id, attempted);
        }
        let is_one_blob = self.random.percent(40);
        let count = self.random.pick(&[1, 2]);
        let wanted = workload::objects(&mut self.random, &self.layout, count, is_one_blob);
        let (got, start) = (BTreeMap::new(), self.now);
        let draft = Draft { transaction, wanted: wanted.clone(), got, at: None, start };
        self.drafts.insert(id, draft);
        self.begin_reading(Owner::Transaction(id), &wanted, is_one_blob);
    }

    fn submit(&mut self, id: u64, attempted: Attempted) {
        let chain = self.layout.chain(&attempted.transaction);
        let transaction = Arc::clone(&attempted.transaction);
        let head = chain.hops()[0].node;
        self.history.transactions.insert(id, attempted);
        self.queue
            .push(Item::Commit(head, Event::Submit { transaction, chain, begun: Timestamp::ZERO }));
    }

    fn begin_read(&mut self) {
        let owner = Owner::Read(self.history.reads.len());
        if self.random.percent(30) {
            return self.begin_read_of_chunk(owner);
        }
        let is_one_blob = self.random.percent(40);
        let count = if is_one_blob { 3 } else { 1 };
        let objects = workload::objects(&mut self.random, &self.layout, count, is_one_blob);
        self.history.reads.push(self.seen(objects.clone()));
        self.begin_reading(owner, &objects, is_one_blob);
    }

    /// A direct read of all slots of a chunk at once (R1).
    fn begin_read_of_chunk(&mut self, owner: Owner) {
        let blob = self.random.below(self.layout.slotted.into()) as u8;
        let (of_chunk, first) = (SLOTS / 2, SLOTS / 2 * self.random.below(2) as u8);
        let objects = (first..first + of_chunk).map(|slot| Object::Slot(blob, slot));
        let objects: Vec<Object> = objects.collect();
        self.history.reads.push(self.seen(objects.clone()));
        let replicas = self.layout.replicas(objects[0]).to_vec();
        let wanted = (blob, Footprint::bytes(slot_range(first, of_chunk)));
        self.ask(Ask { owner, objects }, Kind::Direct, &replicas, wanted);
    }

    fn seen(&self, objects: Vec<Object>) -> Seen {
        Seen { start: self.now, end: None, got: BTreeMap::new(), objects }
    }

    /// Direct reads of each (R1), or one of a whole blob (R3).
    fn begin_reading(&mut self, owner: Owner, objects: &[Object], is_one_blob: bool) {
        if is_one_blob {
            let managers = self.layout.version_managers(objects[0].blob()).to_vec();
            let footprint = (objects[0].blob(), Footprint::BLOB);
            self.ask(Ask { owner, objects: Vec::new() }, Kind::First, &managers, footprint);
        } else {
            objects.iter().for_each(|object| self.ask_object(owner, *object, Kind::Direct));
        }
    }

    fn ask_object(&mut self, owner: Owner, object: Object, kind: Kind) {
        let replicas = self.layout.replicas(object).to_vec();
        let footprint = (object.blob(), object.footprint());
        self.ask(Ask { owner, objects: vec![object] }, kind, &replicas, footprint);
    }

    fn ask(&mut self, ask: Ask, kind: Kind, replicas: &[NodeId], wanted: (u8, Footprint)) {
        let id = ReadId(self.asks.len() as u64);
        self.asks.insert(id, ask);
        let (blob, footprint) = (blob_name(wanted.0), wanted.1);
        let request = Request { id, blob, footprint, authority: replicas[0], kind };
        let node = self.random.pick(replicas);
        self.queue.push(Item::Read(node, request));
    }

    fn begin_snapshot(&mut self) {
        let number = self.history.snapshots.len();
        let count = 2 + self.random.below(2);
        let objects = workload::objects(&mut self.random, &self.layout, count, false);
        self.history.snapshots.push(self.seen(objects.clone()));
        if self.random.percent(50) {
            self.history.fresh.insert(number);
            for object in objects {
                self.ask_object(Owner::Snapshot(number), object, Kind::Clock);
            }
        } else {
            self.ask_object(Owner::Snapshot(number), objects[0], Kind::First);
        }
    }

    fn clock_answered(&mut self, id: ReadId, clock: Timestamp) {
        let Owner::Snapshot(number) = self.asks[&id].owner else { panic!("only read_many asks") };
        let clocks = self.clocks.entry(number).or_default();
        clocks.push(clock);
        let objects = self.history.snapshots[number].objects.clone();
        if clocks.len() == objects.len() {
            let at = clocks.iter().copied().max().unwrap();
            for object in objects {
                self.ask_object(Owner::Snapshot(number), object, Kind::At(at));
            }
        }
    }

    fn read_answered(
        &mut self,
        id: ReadId,
        at: Option<Timestamp>,
        node: NodeId,
    ) -> Result<(), String> {
        let Ask { owner, objects } = self.asks[&id].clone();
        if objects.is_empty() {
            let at = at.expect("a first read is at a timestamp");
            let objects = match owner {
                Owner::Read(number) => self.history.reads[number].objects.clone(),
                Owner::Transaction(id) => {
                    let draft = self.drafts.get_mut(&id).unwrap();
                    draft.at = Some(at);
                    draft.wanted.clone()
                }
                Owner::Snapshot(_) => panic!("snapshots begin with an object"),
            };
            objects.iter().for_each(|object| self.ask_object(owner, *object, Kind::At(at)));
            return Ok(());
        }
        for object in objects {
            let got = self.nodes[usize::from(node.0)].state.list_at(object, at);
            self.shows_only_stable(object, node, &got)?;
            let (now, snapshots) = (self.now, &mut self.history.snapshots);
            let seen = match owner {
                Owner::Read(number) => &mut self.history.reads[number],
                Owner::Snapshot(number) => &mut snapshots[number],
                Owner::Transaction(id) => {
                    self.draft_read(id, object, got);
                    continue;
                }
            };
            seen.got.insert(object, got);
            if seen.got.len() == seen.objects.len() {
                seen.end = Some(now);
            }
        }
        if let Owner::Snapshot(number) = owner
            && !self.history.fresh.contains(&number)
            && let std::collections::btree_map::Entry::Vacant(place) = self.placed_at.entry(number)
        {
            let at = at.expect("a snapshot's first read is at a timestamp");
            place.insert(at);
            let rest = self.history.snapshots[number].objects[1..].to_vec();
            rest.iter().for_each(|object| self.ask_object(owner, *object, Kind::At(at)));
        }
        Ok(())
    }

    fn draft_read(&mut self, id: u64, object: Object, got: Vec<Written>) {
        let draft = self.drafts.get_mut(&id).unwrap();
        let at = draft.at.unwrap_or(version(&got));
        draft.transaction.reads.push(read_check(object, at));
        draft.got.insert(object, got);
        if draft.got.len() == draft.wanted.len() {
            let Draft { transaction, got, start, .. } = self.drafts.remove(&id).unwrap();
            let transaction = Arc::new(transaction);
            self.submit(id, Attempted { transaction, reads: got, start, end: None });
        }
    }

    /// R2: a replica shows only what the authority has passed back.
    fn shows_only_stable(
        &self,
        object: Object,
        node: NodeId,
        got: &[Written],
    ) -> Result<(), String> {
        let authority = self.layout.replicas(object)[0];
        let unstable = got.iter().find(|(_, id)| !self.passed.contains(&(*id, authority)));
        // Without R1 this would be noticed first; what it does to clients is what matters.
        let is_looked_at = node != authority && self.config.broken != Some(Rule::R1);
        match unstable {
            Some(written) if is_looked_at => {
                Err(format!("{node:?} showed {written:?} of {object:?} before it was stable"))
            }
            Some(_) | None => Ok(()),
        }
    }

    // Drivers.

    fn commit(&mut self, node: NodeId, event: Event) -> Result<(), String> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let driver = &mut self.nodes[usize::from(node.0)];
            let mut effects = Vec::new();
            driver.commit.step(self.now + driver.skew_us, event, &driver.state, &mut effects);
            for effect in effects {
                self.execute(node, effect, &mut events)?;
            }
            if self.config.broken.is_none() {
                let driver = &self.nodes[usize::from(node.0)];
                driver.commit.invariants();
                driver.reads.invariants(&driver.commit);
            }
        }
        Ok(())
    }

    fn execute(
        &mut self,
        node: NodeId,
        effect: Effect,
        events: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        match effect {
            Effect::Send { to, message } => {
                if let Message::Backward { id, decision: Decision::Commit(_), .. } = &message {
                    self.passed.insert((id.0 as u64, node));
                }
                if let Message::Decided { id, .. } = &message {
                    let attempted = &self.history.transactions[&(id.0 as u64)];
                    let chain = self.layout.chain(&attempted.transaction);
                    let is_tail = chain.hops().last().is_some_and(|hop| hop.node == node);
                    self.summary.relayed += usize::from(!is_tail);
                }
                self.queue.push(Item::Commit(to, Event::Receive(message)));
            }
            Effect::Persist { transaction, placed, attempt, .. } => {
                self.promise(node, &transaction, &placed);
                let persisted = Event::Persisted { id: transaction.id, attempt };
                self.soon_or_later(node, persisted, events);
            }
            Effect::Resume => self.soon_or_later(node, Event::Resume, events),
            Effect::Apply { transaction, at, .. } => self.apply(node, &transaction, at)?,
            Effect::Reply { id, decision, .. } => {
                let id = id.0 as u64;
                if let Decision::Commit(_) = decision {
                    self.passed.insert((id, node));
                }
                let attempted = self.history.transactions.get_mut(&id).unwrap();
                if attempted.end.replace((self.now, decision)).is_some() {
                    return Err(format!("transaction {id} was answered twice"));
                }
            }
            Effect::Note { id, is_synced, .. } => {
                if is_synced {
                    self.soon_or_later(node, Event::Noted { id }, events);
                }
            }
            Effect::NoteHeard { .. } => {}
            Effect::Recover { .. }
            | Effect::Fence { .. }
            | Effect::Recall { .. }
            | Effect::Misplaced { .. } => {
                return Err(format!("nobody fails here and no chain is too short: {effect:?}"));
            }
            Effect::Moved { id } => self.read(node, read::Event::Moved { transaction: id })?,
        }
        Ok(())
    }

    fn soon_or_later(&mut self, node: NodeId, event: Event, events: &mut VecDeque<Event>) {
        match self.random.percent(40) {
            true => events.push_back(event),
            false => self.queue.push(Item::Commit(node, event)),
        }
    }

    /// Notes, at the authority of each log, what was promised about an append.
    fn promise(&mut self, node: NodeId, transaction: &Transaction, placed: &Placements) {
        for (index, entry) in (0..).zip(&transaction.blobs) {
            let blob = blob_number(&entry.blob);
            if !self.layout.is_log(blob) || self.layout.version_managers(blob)[0] != node {
                continue;
            }
            let driver = &mut self.nodes[usize::from(node.0)];
            let place = placed.iter().find(|placed| placed.index == index);
            self.summary.placed += usize::from(place.is_some());
            let promise = match place {
                Some(placed) => Promise::Offset(placed.offset),
                None => Promise::Chunk(driver.state.stat(&entry.blob).unwrap_or(0) / CHUNK),
            };
            driver.promises.insert((transaction.id.0 as u64, blob), promise);
        }
    }

    fn apply(
        &mut self,
        node: NodeId,
        transaction: &Transaction,
        at: Timestamp,
    ) -> Result<(), String> {
        let driver = &mut self.nodes[usize::from(node.0)];
        let offsets = driver.state.apply(transaction, at)?;
        for (blob, offset) in offsets {
            let id = transaction.id.0 as u64;
            let is_kept = match driver.promises.get(&(id, blob)) {
                None => true,
                Some(Promise::Offset(promised)) => *promised == offset,
                Some(Promise::Chunk(chunk)) => {
                    let end = driver.state.stat(&blob_name(blob)).unwrap_or(0).max(offset + 1) - 1;
                    offset / CHUNK == *chunk && end / CHUNK == *chunk
                }
            };
            if !is_kept {
                let promise = &driver.promises[&(id, blob)];
                return Err(format!("the append of {id} went to {offset}, not {promise:?}"));
            }
        }
        Ok(())
    }

    fn read(&mut self, node: NodeId, event: read::Event) -> Result<(), String> {
        let driver = &mut self.nodes[usize::from(node.0)];
        let (parked, mut effects) = (driver.reads.len(), Vec::new());
        driver.reads.step(event, &mut driver.commit, &mut effects);
        self.summary.parked += usize::from(driver.reads.len() > parked);
        for effect in effects {
            match effect {
                read::Effect::Serve { id, at } => self.read_answered(id, at, node)?,
                read::Effect::List { id } => panic!("nobody lists: {id:?}"),
                read::Effect::AnswerClock { id, clock } => self.clock_answered(id, clock),
                read::Effect::Forward { to, request } => {
                    self.summary.forwarded += 1;
                    self.queue.push(Item::Read(to, request));
                }
                read::Effect::Refuse { id, abort } => {
                    return Err(format!("{id:?} was refused: {abort:?}"));
                }
            }
        }
        Ok(())
    }
}
