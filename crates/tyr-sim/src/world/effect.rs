//! What machines ask for is done: messages go out, records to disk, reads to the store.

use tyr_protocol::map::NodeState;
use tyr_protocol::member::{ChunkName, Effect, Event, Record};
use tyr_protocol::message::{Address, Envelope, ReadRequest};
use tyr_protocol::movement::scrub::Finding;
use tyr_protocol::wire::LEVEL;
use tyr_types::{NodeId, Timestamp};

use super::codec;
use super::node::Body;
use super::trace::{Brief, BriefRecord, Place, record_subject, subject};
use super::{Happening, World};

/// A node that yields goes on after so long at most, in microseconds.
const CONTINUE_MAX_US: u64 = 3000;

impl World {
    /// Sends a message: it arrives in its time, twice, or never.
    pub(super) fn send(&mut self, to: Address, envelope: Envelope) {
        let from = envelope.from;
        if self.tracer.wants(subject(&envelope.body)) {
            let text = format_args!("-> {:<8}  {}", Place(to), Brief(&envelope.body));
            self.tracer.line(self.now_us, &Place(from), &text);
        }
        let mut delays = self.network.send(from, to, &mut self.counters);
        let Some(last_us) = delays.pop() else { return };
        let envelope = match self.sampling.per_million(self.setup.network.encoded) {
            true => {
                self.counters.encoded += 1;
                let level = match to {
                    Address::Node(node) => self.nodes[usize::from(node.0)].level(),
                    Address::Client(_) | Address::Monitors => LEVEL,
                };
                codec::carried(envelope, level)
            }
            false => envelope,
        };
        for delay_us in delays {
            let envelope = envelope.clone();
            self.queue.push(self.now_us + delay_us, Happening::Arrive { to, envelope });
        }
        self.queue.push(self.now_us + last_us, Happening::Arrive { to, envelope });
    }

    /// A message arrives.
    pub(super) fn arrive(&mut self, to: Address, envelope: Envelope) {
        let about = subject(&envelope.body);
        let kind = std::mem::discriminant(&envelope.body);
        self.tracer.note((self.now_us, to, envelope.from, kind, about));
        if self.tracer.wants(about) {
            let text = format_args!("<- {:<8}  {}", Place(envelope.from), Brief(&envelope.body));
            self.tracer.line(self.now_us, &Place(to), &text);
        }
        match to {
            Address::Node(node) => {
                let is_there = self.nodes[usize::from(node.0)].is_running();
                if is_there && self.monitors.map().is_live(node) {
                    self.knowledge.heard(node, &envelope.body);
                }
                self.step_node(node, Event::Receive(envelope));
            }
            Address::Client(client) => self.arrive_at_client(client, envelope),
            Address::Monitors => self.arrive_at_monitors(envelope),
        }
    }

    /// Hands an event to a node, and does what it asks for. Nothing comes of it when no process
    /// runs there; while it is paused, later.
    pub(super) fn step_node(&mut self, node: NodeId, event: Event) {
        let machine = &mut self.nodes[usize::from(node.0)];
        if !machine.is_running() {
            return;
        }
        if machine.is_paused(self.now_us) {
            return machine.inbox.push_back(event);
        }
        if let (now, Body::Real(real)) = (machine.now(self.now_us), &mut machine.body) {
            let asked = real.step(now, event);
            self.carry_out(node, asked);
            return self.round(node, false);
        }
        let mut effects = std::mem::take(&mut self.effects);
        let mut next = Some(event);
        while let Some(event) = next.take() {
            self.nodes[usize::from(node.0)].step_model(self.now_us, event, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Resume => next = Some(Event::Resume),
                    effect => self.execute(node, effect),
                }
            }
        }
        self.effects = effects;
    }

    /// Does what a node over a model asks for.
    fn execute(&mut self, node: NodeId, effect: Effect) {
        match effect {
            Effect::Send { to, envelope } => self.send(to, envelope),
            Effect::Persist { number, record, is_synced } => {
                let log_len = self.nodes[usize::from(node.0)].log_len() + 1;
                self.logged(node, &record, log_len);
                let machine = &mut self.nodes[usize::from(node.0)];
                let start = machine.starts;
                let Body::Model(model) = &mut machine.body else { return };
                if let Some(sync_us) = model.disk.write(number, record, is_synced) {
                    self.queue.push(self.now_us + sync_us, Happening::Synced { node, start });
                }
            }
            Effect::Serve { request, at } => {
                if let (true, Some(at)) = (request.is_copy, at) {
                    let chunk = (request.blob.clone(), self.chunk_of(&request));
                    self.note_copy(node, chunk, at);
                }
                let served = self.nodes[usize::from(node.0)].serve(request, at);
                if let Some((to, envelope)) = served {
                    self.send(to, envelope);
                }
            }
            Effect::List { request, .. } => panic!("no client lists anything: {request:?}"),
            Effect::Found(finding) => self.found(node, &finding),
            Effect::Yield => self.go_on_later(node),
            Effect::Resume => unreachable!("the caller sees to it"),
        }
    }

    /// A node goes on a little later: others may be faster.
    pub(super) fn go_on_later(&mut self, node: NodeId) {
        let start = self.nodes[usize::from(node.0)].starts;
        let at_us = self.now_us + self.sampling.between(0, CONTINUE_MAX_US);
        self.queue.push(at_us, Happening::Continue { node, start });
    }

    /// A node gives a record to its log, which is so long with it.
    pub(super) fn logged(&mut self, node: NodeId, record: &Record, log_len: usize) {
        self.counters.records += 1;
        if self.tracer.wants(record_subject(record)) {
            let text = format_args!("writes     {}", BriefRecord(record));
            self.tracer.line(self.now_us, &Place(Address::Node(node)), &text);
        }
        if !self.monitors.map().is_live(node) {
            return;
        }
        self.knowledge.wrote(node, record, log_len);
        if let Record::Installed { blob, chunk, copy } = record {
            let copied = self.lineage.copied((blob.clone(), *chunk), copy.at);
            self.knowledge.copied(node, copied, log_len);
        }
        if let Record::Map(map) = record
            && map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up)
        {
            // It has caught up, with what was found to be as it was, too.
            self.follow(node);
            self.knowledge.copied(node, self.lineage.held(node), log_len);
        }
    }

    /// A node's chunk is copied, or a piece of it, as it is at `at`.
    pub(super) fn note_copy(&mut self, node: NodeId, chunk: ChunkName, at: Timestamp) {
        self.follow(node);
        self.lineage.copy(node, chunk, at);
        self.counters.copies += 1;
    }

    /// The chunk that a read is of.
    pub(super) fn chunk_of(&self, request: &ReadRequest) -> u64 {
        let keyspace = request.blob.keyspace.0 as usize - 1;
        request.range.start / self.setup.keyspaces[keyspace].chunk_size
    }

    /// A node found something in comparing replicas.
    pub(super) fn found(&mut self, node: NodeId, finding: &Finding) {
        self.counters.findings += 1;
        if self.tracer.is_on() {
            let text = format_args!("found      {finding}");
            self.tracer.line(self.now_us, &Place(Address::Node(node)), &text);
        }
    }

    /// What need not be synced at once is synced soon.
    pub(super) fn flush(&mut self, node: NodeId, start: u64) {
        match &mut self.nodes[usize::from(node.0)].body {
            Body::Real(_) => self.round(node, true),
            Body::Model(model) => {
                if let Some(sync_us) = model.disk.flush() {
                    self.queue.push(self.now_us + sync_us, Happening::Synced { node, start });
                }
            }
        }
    }

    /// A sync has ended, or a step of it: tells those who wait for it.
    pub(super) fn synced(&mut self, node: NodeId, start: u64) {
        if !self.runs(node, start) {
            return;
        }
        let Body::Model(model) = &mut self.nodes[usize::from(node.0)].body else {
            return self.sync(node, start);
        };
        self.counters.syncs += 1;
        let synced = model.disk.end_sync();
        if let Some(next_us) = synced.next_us {
            self.queue.push(self.now_us + next_us, Happening::Synced { node, start });
        }
        for number in synced.durable {
            self.step_node(node, Event::Persisted { number });
        }
        for number in synced.failed {
            self.step_node(node, Event::PersistFailed { number });
        }
    }

    /// Whether the process of this start is there, running or paused.
    pub(super) fn runs(&self, node: NodeId, start: u64) -> bool {
        let machine = &self.nodes[usize::from(node.0)];
        machine.starts == start && machine.is_running()
    }
}
