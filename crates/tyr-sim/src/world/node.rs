//! A node: a machine with clocks and a disk, and the process on it, while one runs.
//!
//! What it has on its disk, and how, is one of two things ([`Body`]): a model of a store, or the
//! store itself, as in a node.

use std::collections::VecDeque;

use tyr_protocol::Rule;
use tyr_protocol::member::{Effect, Event, Member, MemberConfig, incarnation};
use tyr_protocol::message::{Address, Envelope, Now, ReadRequest};
use tyr_protocol::movement::PieceLengths;
use tyr_protocol::wire::LEVEL;
use tyr_types::{NodeId, Timestamp};

use super::clock::Clock;
use super::model::Model;
use super::real::Real;
use crate::checker::Replica;
use crate::random::Random;
use crate::setup::{Setup, Stores};
use crate::store::Done;

/// So few ballots at a time that some are put off whenever the map changes under load.
const BALLOTS_FEW: usize = 2;

/// So short pages that lists have several in most runs.
const LIST_PAGE_SHORT: usize = 3;

/// So short pieces that the chunks of most runs are copied in several.
const PIECES_SHORT: PieceLengths = PieceLengths { first: 64, other: 1024 };

/// A machine that may run a node.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its clocks.
    pub clock: Clock,
    /// Its disk, and what runs on it.
    pub body: Body,
    /// So often a process was started on it.
    pub starts: u64,
    /// Until then the process does nothing.
    pub paused_until_us: u64,
    /// What came while the process was paused.
    pub inbox: VecDeque<Event>,
    broken: Option<Rule>,
    /// Of its processes, but for the level: as in a node, or so that more comes about in a run.
    config: MemberConfig,
    /// The highest feature level of its first process, if that is an older one.
    older: Option<u8>,
}

/// How a node's processes are set: by some nodes less is done at a time than by others.
fn config(setup: &Setup, id: NodeId) -> MemberConfig {
    let usual = MemberConfig::default();
    let drawn = |what| Random::of(setup.seed, what, id.0.into());
    MemberConfig {
        read_timeout_us: setup.versions.read_timeout_us,
        scrub: setup.scrub,
        ballots_max: drawn("ballots").pick(&[BALLOTS_FEW, usual.ballots_max]),
        copy_pieces: drawn("pieces").pick(&[usual.copy_pieces, PIECES_SHORT]),
        list_page: drawn("list page").pick(&[usual.list_page, LIST_PAGE_SHORT]),
        ..usual
    }
}

/// A disk, and what runs on it.
pub enum Body {
    /// A log of records, and what was applied in memory.
    Model(Box<Model>),
    /// Files, and what a node does about them.
    Real(Box<Real>),
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is killed, and perhaps the machine loses power: chance decides.
    Crash,
    /// The machine loses power.
    PowerLoss,
    /// In order: its log is durable as it is.
    Stop,
}

impl Node {
    /// A machine with an empty disk that nothing runs on.
    pub fn new(id: NodeId, setup: &Setup) -> Self {
        let clock = Clock::new(setup.clocks, &mut Random::of(setup.seed, "clock", id.0.into()));
        let body = match setup.stores {
            Stores::Model => Body::Model(Box::new(Model::new(id, setup))),
            Stores::Real => Body::Real(Box::new(Real::new(id, setup))),
        };
        Self {
            id,
            clock,
            body,
            starts: 0,
            paused_until_us: 0,
            inbox: VecDeque::new(),
            broken: setup.broken,
            config: config(setup, id),
            older: setup.older.filter(|_| id.0 < setup.nodes),
        }
    }

    /// The time as its process sees it.
    pub fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), monotonic_us: self.clock.monotonic_us(now_us) }
    }

    /// Starts a process on what is on the disk. One that finds no room there ends at once.
    pub fn start(&mut self) {
        self.starts += 1;
        self.paused_until_us = 0;
        let config = MemberConfig { level: self.level(), ..self.config };
        let mut member = Member::new(self.id, incarnation(self.starts), config);
        if let Some(rule) = self.broken {
            member.break_rule(rule);
        }
        match &mut self.body {
            Body::Model(model) => model.start(member),
            Body::Real(real) => real.start(member),
        }
    }

    /// The highest feature level that its program speaks.
    pub fn level(&self) -> u8 {
        self.older.filter(|_| self.starts <= 1).unwrap_or(LEVEL)
    }

    /// Hands an event to a process over a model; nothing comes of it where none runs.
    pub fn step_model(&mut self, now_us: u64, event: Event, effects: &mut Vec<Effect>) {
        let now = self.now(now_us);
        if let Body::Model(model) = &mut self.body
            && let Some(process) = &mut model.process
        {
            process.member.step(now, event, &mut process.store, effects);
        }
    }

    /// Reads a model for whoever asked.
    pub fn serve(
        &self,
        request: ReadRequest,
        at: Option<Timestamp>,
    ) -> Option<(Address, Envelope)> {
        match &self.body {
            Body::Model(model) => model.serve(request, at),
            Body::Real(_) => None,
        }
    }

    /// Ends the process, if one runs.
    pub fn end(&mut self, end: End) {
        self.inbox.clear();
        match &mut self.body {
            Body::Model(model) => model.end(end),
            Body::Real(real) => real.end(end),
        }
    }

    /// The member that runs.
    pub fn member(&self) -> Option<&Member> {
        match &self.body {
            Body::Model(model) => model.process.as_ref().map(|process| &process.member),
            Body::Real(real) => real.member(),
        }
    }

    /// Whether a process runs.
    pub fn is_running(&self) -> bool {
        self.member().is_some()
    }

    /// Records that were given to the log, and are not lost.
    pub fn log_len(&self) -> usize {
        match &self.body {
            Body::Model(model) => model.disk.len(),
            Body::Real(real) => real.log_len(),
        }
    }

    /// Whether the log, or the store, did not take something since the process started.
    pub fn is_broken(&self) -> bool {
        match &self.body {
            Body::Model(model) => model.disk.is_broken(),
            Body::Real(real) => real.is_broken(),
        }
    }

    /// Another disk, empty, takes its disk's place.
    pub fn replace(&mut self) {
        match &mut self.body {
            Body::Model(model) => model.disk.replace(),
            Body::Real(real) => real.replace(),
        }
    }

    /// From now on nothing can be written to the disk, or everything again.
    pub fn fill(&mut self, is_full: bool) {
        match &mut self.body {
            Body::Model(model) => model.disk.fill(is_full),
            Body::Real(real) => real.fill(is_full),
        }
    }

    /// A sync takes so many times longer; 1 is as always.
    pub fn slow_down(&mut self, times: u32) {
        match &mut self.body {
            Body::Model(model) => model.disk.slow_down(times),
            Body::Real(real) => real.slow_down(times),
        }
    }

    /// What its process has done since this was asked last, for the checker.
    pub fn take_done(&mut self) -> Vec<Done> {
        match &mut self.body {
            Body::Model(model) => {
                model.process.as_mut().map(|process| process.store.take_done()).unwrap_or_default()
            }
            Body::Real(real) => real.take_done(),
        }
    }

    /// The chunks that its process holds; `None` when none runs.
    pub fn replica(&mut self) -> Option<Replica> {
        match &mut self.body {
            Body::Model(model) => model.process.as_ref().map(|process| process.store.replica()),
            Body::Real(real) => real.replica(),
        }
    }

    /// The incarnation of the process that runs, or the highest that the last one can have had.
    pub fn incarnation(&self) -> u64 {
        match self.member() {
            Some(member) => member.incarnation(),
            None => incarnation(self.starts + 1) - 1,
        }
    }

    /// Whether its process is paused now.
    pub fn is_paused(&self, now_us: u64) -> bool {
        now_us < self.paused_until_us
    }
}
