//! Faults happen, and in the end everything is mended.

use std::sync::Arc;

use tyr_protocol::View;
use tyr_protocol::member::ChunkName;
use tyr_protocol::message::Address;
use tyr_types::{ByteRange, NodeId};

use super::node::{Body, End};
use super::trace::Place;
use super::{Happening, TICK_US, World};
use crate::fault::Fault;
use crate::random::Random;

impl World {
    /// Lets a fault happen.
    pub(super) fn mishap(&mut self, fault: Fault) {
        self.counters.faults += 1;
        self.tracer.note((self.now_us, "fault", self.counters.faults));
        if self.tracer.is_on() {
            self.tracer.line(self.now_us, &"fault", &format_args!("{fault:?}"));
        }
        match fault {
            Fault::Crash(node) => self.end(node, End::Crash),
            Fault::Stop(node) => self.end(node, End::Stop),
            Fault::Restart(node) => self.restart(node),
            Fault::Replace(node) => self.replace(node),
            Fault::PowerLoss => {
                self.all().for_each(|node| self.end(node, End::PowerLoss));
            }
            Fault::RestartAll => self.all().for_each(|node| {
                // Not those that an operator adds later.
                if self.nodes[usize::from(node.0)].starts > 0 {
                    self.restart(node);
                }
            }),
            Fault::Partition(groups) => self.network.part(groups),
            Fault::OneWay(from, to) => self.network.block(from, to),
            Fault::NoMonitors(node) => self.network.block_monitors(node),
            Fault::Join => self.network.join(),
            Fault::Loss(share) => self.network.lose(share),
            Fault::Duplication(share) => self.network.duplicate(share),
            Fault::SlowLink(one, other, by_us) => self.network.slow_down(one, other, by_us),
            Fault::ClockJump(node, by_us) => {
                self.with(node, |machine| machine.clock.jump(by_us));
            }
            Fault::SlowDisk(node, times) => {
                self.with(node, |machine| machine.slow_down(times));
            }
            Fault::FullDisk(node) => self.with(node, |machine| machine.fill(true)),
            Fault::RoomOnDisk(node) => self.with(node, |machine| machine.fill(false)),
            Fault::Rot(node) => self.rot(node),
            Fault::Pause(node, lasts_us) => {
                let until_us = self.now_us + lasts_us;
                self.with(node, |machine| machine.paused_until_us = until_us);
                self.queue.push(until_us, Happening::Unpause { node });
            }
            Fault::Add(node) => {
                self.restart(node);
                self.operate(node, super::monitors::Order::Add);
            }
            Fault::Drain(node) => self.operate(node, super::monitors::Order::Drain),
            Fault::Weight(node, weight) => {
                self.operate(node, super::monitors::Order::Weigh(weight));
            }
            Fault::OrderDown(node) => self.order_down(node),
            Fault::Upset(upset) => self.monitors.suffer(upset, self.now_us),
            Fault::Lead(upset) => self.lead(upset),
            Fault::DropKeyspace(keyspace) => {
                self.operate(NodeId(0), super::monitors::Order::DropKeyspace(keyspace));
            }
            Fault::AcceptLoss(keyspace) => {
                self.operate(NodeId(0), super::monitors::Order::AcceptLoss(keyspace));
            }
            Fault::Keep => self.operate(NodeId(0), super::monitors::Order::Keep),
            Fault::DropKept => self.operate(NodeId(0), super::monitors::Order::DropKept),
            Fault::ClientJump(client, by_us) => {
                if let Some(client) = self.clients.get_mut(usize::from(client)) {
                    client.clock.jump(by_us);
                }
            }
            Fault::Sleep(client, lasts_us) => self.sleep(usize::from(client), lasts_us),
        }
    }

    /// The machine starts again with another disk, empty.
    fn replace(&mut self, node: NodeId) {
        self.end(node, End::Crash);
        if let Some(machine) = self.nodes.get_mut(usize::from(node.0)) {
            machine.replace();
            self.lineage.replace(node);
            self.knowledge.lose(node, 0);
            self.start(node);
        }
    }

    /// The numbers of all machines.
    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u16::try_from(self.nodes.len()).expect("nodes are numbered by u16")).map(NodeId)
    }

    fn with(&mut self, node: NodeId, change: impl FnOnce(&mut super::Node)) {
        if let Some(machine) = self.nodes.get_mut(usize::from(node.0)) {
            change(machine);
        }
    }

    /// Some bytes of a chunk cannot be read any more at a node that holds it, while all others that
    /// do can read it: what nobody can read is lost, whatever anybody does.
    fn rot(&mut self, node: NodeId) {
        let map = Arc::clone(self.monitors.map());
        let store = |node: NodeId| match &self.nodes.get(usize::from(node.0))?.body {
            Body::Model(model) => model.process.as_ref().map(|process| &process.store),
            Body::Real(_) => None,
        };
        let Some(own) = store(node) else { return };
        let is_able = |name: &ChunkName| {
            let holders = map.holders(&name.0, name.1);
            let is_sound = |holder: &NodeId| store(*holder).is_some_and(|it| !it.rot().has(name));
            holders.contains(&node) && holders.len() > 1 && holders.iter().all(is_sound)
        };
        let chunks = own.chunks().filter(|(name, chunk)| {
            !chunk.is_awaited() && !chunk.latest().bytes.is_empty() && is_able(name)
        });
        let chunks: Vec<(&ChunkName, u64)> = chunks
            .map(|(name, chunk)| (name, chunk.range().start + chunk.latest().bytes.len() as u64))
            .collect();
        let mut random = Random::of(self.setup.seed, "rot", self.counters.faults);
        if chunks.is_empty() {
            return;
        }
        let (name, end) = random.pick(&chunks);
        let start = end - 1 - random.below(end - name.1 * own.chunk_size(name.0.keyspace));
        let range = ByteRange { start, end: random.between(start + 1, end) };
        let name = name.clone();
        self.with(node, |machine| {
            if let Body::Model(model) = &mut machine.body
                && let Some(process) = &mut model.process
            {
                process.store.spoil(&name, range);
            }
        });
    }

    /// The process of a node ends, one way or the other.
    fn end(&mut self, node: NodeId, end: End) {
        let Some(is_running) = self.nodes.get(usize::from(node.0)).map(super::Node::is_running)
        else {
            return;
        };
        if is_running {
            self.follow(node);
            self.lineage.lose(node);
        }
        let machine = &mut self.nodes[usize::from(node.0)];
        machine.end(end);
        self.knowledge.lose(node, machine.log_len());
    }

    fn restart(&mut self, node: NodeId) {
        if self.nodes.get(usize::from(node.0)).is_some_and(|machine| !machine.is_running()) {
            self.start(node);
        }
    }

    /// Starts the process of a node; it looks around at once.
    pub(super) fn start(&mut self, node: NodeId) {
        let machine = &mut self.nodes[usize::from(node.0)];
        machine.start();
        let (start, records) = (machine.starts, machine.log_len());
        if !machine.is_running() {
            return;
        }
        match &machine.body {
            Body::Model(model) => {
                if let Some(base) = model.disk.base() {
                    self.lineage.find(node, base.content.clone());
                }
            }
            Body::Real(real) => {
                self.lineage.find_again(node, |chunk| real.found().folded_at(chunk));
            }
        }
        self.plan_cutting(node, start);
        // Processes do not tick in step.
        let phase_us = u64::from(node.0) * 7_919 % TICK_US;
        self.queue.push(self.now_us + phase_us, Happening::TickNode { node, start });
        if self.tracer.is_on() {
            let place = Place(Address::Node(node));
            let text = format_args!("starts for the {start}. time with {records} records");
            self.tracer.line(self.now_us, &place, &text);
        }
    }

    /// The process goes on with what came in the meantime, unless another pause began.
    pub(super) fn unpause(&mut self, node: NodeId) {
        let machine = &mut self.nodes[usize::from(node.0)];
        if machine.is_paused(self.now_us) {
            return;
        }
        for event in std::mem::take(&mut machine.inbox) {
            self.step_node(node, event);
        }
    }

    /// From here on nothing is wrong, and clients begin nothing more.
    pub(super) fn mend(&mut self) {
        self.is_mended = true;
        self.runner.stop();
        if self.tracer.is_on() {
            self.tracer.line(self.now_us, &"fault", &"all is mended");
        }
        self.network.mend();
        for node in self.all() {
            let machine = &mut self.nodes[usize::from(node.0)];
            machine.clock.mend();
            machine.fill(false);
            machine.slow_down(1);
            machine.paused_until_us = 0;
            let (is_broken, has_been) = (machine.is_broken(), machine.starts > 0);
            self.unpause(node);
            if is_broken {
                self.end(node, End::Crash);
            }
            if has_been {
                self.restart(node);
            }
        }
        if let Some(upset) = self.monitors.upset() {
            self.lead(upset);
        }
        for client in 0..self.clients.len() {
            self.rouse(client);
        }
    }
}
