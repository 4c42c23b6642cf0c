//! A node: a machine with clocks and a disk, and the process on it, while one runs.

use std::collections::VecDeque;

use tyr_protocol::member::{Effect, Event, Member, MemberConfig, incarnation};
use tyr_protocol::message::{Address, Body, Envelope, Now, ReadPart, ReadRequest};
use tyr_protocol::movement::{self, scrub::ScrubConfig};
use tyr_protocol::wire::LEVEL;
use tyr_protocol::{Rule, View};
use tyr_types::{NodeId, Timestamp};

use super::checkpoint::{Cutting, Rhythm};
use super::clock::Clock;
use super::disk::Disk;
use crate::random::Random;
use crate::setup::Setup;
use crate::store::{Reading, SimStore, StoreConfig};

/// A machine that may run a node.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its clocks.
    pub clock: Clock,
    /// Its disk.
    pub disk: Disk,
    /// When its log is cut.
    pub rhythm: Rhythm,
    /// What runs on it.
    pub process: Option<Process>,
    /// So often a process was started on it.
    pub starts: u64,
    /// Until then the process does nothing.
    pub paused_until_us: u64,
    broken: Option<Rule>,
    store: StoreConfig,
    scrub: ScrubConfig,
    /// Whether its first process is of the feature level before.
    is_older: bool,
}

/// A process: all that is lost when it is killed.
pub struct Process {
    /// What decides.
    pub member: Member,
    /// What is applied.
    pub store: SimStore,
    /// What came while it was paused.
    pub inbox: VecDeque<Event>,
    /// How far it is with cutting its log.
    pub cutting: Cutting,
}

impl Node {
    /// A machine with an empty disk that nothing runs on.
    pub fn new(id: NodeId, setup: &Setup) -> Self {
        let stream = |name| Random::of(setup.seed, name, id.0.into());
        Self {
            id,
            clock: Clock::new(setup.clocks, &mut stream("clock")),
            disk: Disk::new(setup.disks, stream("disk")),
            rhythm: Rhythm::new(setup.disks.checkpoint_us, stream("checkpoint")),
            process: None,
            starts: 0,
            paused_until_us: 0,
            broken: setup.broken,
            store: setup.store(),
            scrub: setup.scrub,
            is_older: setup.is_older && id.0 < setup.nodes,
        }
    }

    /// The time as its process sees it.
    pub fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), monotonic_us: self.clock.monotonic_us(now_us) }
    }

    /// Starts a process on what is on the disk.
    pub fn start(&mut self) {
        self.starts += 1;
        self.paused_until_us = 0;
        let config = MemberConfig {
            read_timeout_us: self.store.policy.read_timeout_us,
            scrub: self.scrub,
            level: self.level(),
            ..MemberConfig::default()
        };
        let mut member = Member::new(self.id, incarnation(self.starts), config);
        if let Some(rule) = self.broken {
            member.break_rule(rule);
        }
        let (base, records) = self.disk.open();
        let mut store = match base {
            Some(base) => base.store.clone(),
            None => SimStore::new(self.id, self.store.clone()),
        };
        for record in records {
            member.replay(record.clone(), &mut store);
        }
        let (inbox, cutting) = (VecDeque::new(), Cutting::Idle);
        self.process = Some(Process { member, store, inbox, cutting });
    }

    /// The highest feature level that its program speaks.
    pub fn level(&self) -> u8 {
        if self.is_older && self.starts <= 1 { LEVEL - 1 } else { LEVEL }
    }

    /// Kills the process. `false` when none ran.
    pub fn crash(&mut self) -> bool {
        let was_running = self.process.take().is_some();
        if was_running {
            self.disk.crash();
        }
        was_running
    }

    /// Ends the process in order: its log is durable as it is. `false` when none ran.
    pub fn stop(&mut self) -> bool {
        self.disk.settle();
        self.crash()
    }

    /// The incarnation of the process that runs, or the highest that the last one can have had.
    pub fn incarnation(&self) -> u64 {
        match &self.process {
            Some(process) => process.member.incarnation(),
            None => incarnation(self.starts + 1) - 1,
        }
    }

    /// Whether its process is paused now.
    pub fn is_paused(&self, now_us: u64) -> bool {
        now_us < self.paused_until_us
    }

    /// Hands an event to the process. Nothing comes of it when none runs; while it is paused,
    /// later.
    pub fn step(&mut self, now_us: u64, event: Event, effects: &mut Vec<Effect>) {
        let (now, is_paused) = (self.now(now_us), self.is_paused(now_us));
        let Some(process) = &mut self.process else { return };
        if is_paused {
            process.inbox.push_back(event);
        } else {
            process.member.step(now, event, &mut process.store, effects);
        }
    }

    /// Reads the store for whoever asked; answers the message with what was found.
    pub fn serve(
        &self,
        request: ReadRequest,
        at: Option<Timestamp>,
    ) -> Option<(Address, Envelope)> {
        let Process { member, store, .. } = self.process.as_ref()?;
        let ReadRequest { read, asker, blob, range, is_copy, .. } = request;
        let number = range.start / store.chunk_size(blob.keyspace);
        let chunk = (blob, number);
        let found = match (is_copy, at) {
            (true, Some(at)) => store
                .export(&chunk, range, at)
                .map(|copy| Body::Movement(movement::Message::Copied { read, chunk, copy })),
            (true, None) => panic!("violation: a copy is read at no timestamp"),
            (false, at) => store.read(&chunk.0, range, at).map(|reading| {
                let Reading { version, bytes, size } = reading;
                let clock = member.clock();
                Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
            }),
        };
        let body = found.unwrap_or_else(|abort| Body::Refused { read, abort });
        Some((asker, member.envelope(body)))
    }
}
