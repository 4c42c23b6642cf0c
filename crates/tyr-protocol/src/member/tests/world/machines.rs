//! The nodes: their logs, what they do to each other, and how they crash and start again.

use tyr_types::{Bytes, NodeId, Timestamp};

use super::{Happening, World};
use crate::member::tests::shelf::{CHUNK, Shelf};
use crate::member::{Effect, Event, Member, MemberConfig, Record, incarnation};
use crate::message::{Address, Body, Envelope, Now, ReadPart, ReadRequest};
use crate::movement;

/// A node with its disk.
pub struct Machine {
    pub member: Option<Member>,
    pub shelf: Shelf,
    pub log: Vec<Record>,
    pub synced: usize,
    pub starts: u64,
    pub waiting: Vec<(u64, usize)>,
    pub is_syncing: bool,
}

impl World {
    pub(super) fn step(&mut self, node: NodeId, event: Event) {
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
                    Effect::Yield => next = Some(Event::Continue),
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

    pub(super) fn send(&mut self, to: Address, envelope: Envelope) {
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

    pub(super) fn persist(&mut self, node: NodeId, number: u64, record: Record, is_synced: bool) {
        let machine = self.machines.get_mut(&node).expect("nodes are not removed");
        machine.log.push(record);
        if is_synced {
            machine.waiting.push((number, machine.log.len()));
            self.sync(node);
        }
    }

    pub(super) fn sync(&mut self, node: NodeId) {
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

    pub(super) fn synced(&mut self, node: NodeId, starts: u64, numbers: Vec<u64>) {
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

    pub(super) fn serve(&mut self, node: NodeId, request: &ReadRequest, at: Option<Timestamp>) {
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

    pub(super) fn crash(&mut self) {
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

    pub(super) fn start(&mut self, node: NodeId) {
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
}
