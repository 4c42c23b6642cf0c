//! The session: a client's side of everything, as a pure machine.
//!
//! It turns the calls of its user into messages to the right nodes, by the cluster map alone, and
//! their answers into one answer a call. Nodes may be silent, slow, gone, or of another opinion
//! about the map; messages may be lost, doubled, late. Whatever happens, each call is answered
//! once, and each transaction takes effect at most once.
//!
//! ```text
//!   Call ──► Task ──► Question, Submission ──► Send          Receive: Part, Reply
//!             ▲          │  ▲                                   │
//!             │          │  └─ silent, refused, newer map ──────┤
//!             └──────────┴───── answered ◄──────────────────────┘
//!             └──► Done
//! ```
//!
//! The parts: [`event`] and [`effect`] are what goes in and comes out. A call that reads is a
//! [`reading`] of one or more blobs, each a [`gather`] of questions to single chunks; one that
//! lists is a [`scanning`]; one that wants a lease is a [`leasing`]; one that uploads a piece is a
//! [`staging`]; one that takes a moment of everything is a [`moment`] of those that [`probes`]
//! names; a call that commits is a [`submission`]; [`numbers`] names them. [`map_news`] is what a
//! newer map changes, [`question`] sends questions to replicas until one answers, [`routing`]
//! chooses them, [`limits`] knows how much nodes take, [`unsettled`] whose outcome may still be
//! asked for, [`clock`] the cluster's time, [`sizes`] how long blobs were. [`timer`] says when to
//! try again.
//!
//! It must not know how messages travel, nor what a node does with them.

mod clock;
mod config;
pub mod effect;
pub mod event;
mod gather;
mod invariants;
mod leasing;
mod limits;
mod map_news;
mod moment;
mod notifying;
mod numbers;
mod probes;
mod question;
mod reading;
mod room;
mod routing;
mod scanning;
mod sizes;
mod staging;
mod submission;
#[cfg(test)]
mod tests;
mod timer;
mod unsettled;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{ErrorKind, NodeId, Timestamp};

pub use self::effect::{Answer, Effect, LeaseNews, Seen, WatchNews};
pub use self::event::{Began, Call, CallId, Event, LeaseCall, NotifyCall, Place, Want};
pub use self::reading::{QUESTIONS_MAX, RESTARTS_MAX};
pub use self::unsettled::{REMEMBERED_US, UNKNOWN_MAX};

use self::clock::Clock;
pub use self::config::SessionConfig;
use self::leasing::{Leases, Leasing};
use self::limits::Limits;
use self::moment::Moment;
use self::notifying::{Notices, Notifying};
use self::numbers::Numbers;
use self::probes::Probes;
use self::question::Open;
use self::reading::Reading;
use self::routing::Routing;
use self::scanning::Scanning;
use self::sizes::Sizes;
use self::staging::Staging;
use self::submission::Submission;
use self::timer::{Timer, Timers};
use self::unsettled::Unsettled;
use self::watching::Watches;
use crate::abort::Abort;
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body, Envelope, Now};
#[cfg(feature = "broken-rules")]
use crate::rule::Rule;
use crate::rule::Rules;

/// What a call is busy with.
#[derive(Debug)]
enum Task {
    Read(Reading),
    Scan(Scanning),
    Moment(Moment),
    Commit(Submission),
    Lease(Leasing),
    Stage(Staging),
    Notify(Notifying),
}

/// A call in flight.
#[derive(Debug)]
struct InFlight {
    task: Task,
    /// Its questions without an answer. Bounded by [`QUESTIONS_MAX`].
    questions: BTreeSet<u64>,
    /// When it fails.
    deadline_us: u64,
    /// When it goes on by itself: a transaction is sent again, an unknown keyspace looked up.
    due_us: Option<u64>,
    /// The keyspace is not in the map, and so many nodes knew no better.
    stuck: Option<u32>,
}

/// The client's side of everything.
#[derive(Debug)]
pub struct Session {
    client: u64,
    config: SessionConfig,
    map: Arc<ClusterMap>,
    /// The monotonic clock at the step.
    now_us: u64,
    /// Bounded by [`SessionConfig::in_flight_max`].
    calls: BTreeMap<CallId, InFlight>,
    /// Questions without an answer, by the numbers of their reads. Bounded by the calls.
    questions: BTreeMap<u64, Open>,
    /// The calls that scan, by the numbers of their questions without an answer. Bounded by the
    /// calls, and the nodes of the map.
    scans: BTreeMap<u64, CallId>,
    leases: Leases,
    watches: Watches,
    notices: Notices,
    /// The calls that upload a piece, by the numbers that answers name.
    stagings: BTreeMap<u64, CallId>,
    /// The calls that take a moment, by the numbers of their questions without an answer from all.
    moments: BTreeMap<u64, CallId>,
    probes: Probes,
    questions_begun: u64,
    numbers: Numbers,
    timers: Timers,
    unsettled: Unsettled,
    routing: Routing,
    limits: Limits,
    clock: Clock,
    sizes: Sizes,
    /// Until when the answer to the last `FetchMap` is waited for.
    fetching_until_us: u64,
    /// When a node last told its newest map.
    told_us: Option<u64>,
    pub(crate) rules: Rules,
}

impl Session {
    /// The session of the client that drew the number `client`, at random and never before.
    pub fn new(client: u64, map: Arc<ClusterMap>) -> Self {
        Self::with_config(client, map, SessionConfig::default())
    }

    /// The same, as patient as `config` says.
    pub fn with_config(client: u64, map: Arc<ClusterMap>, config: SessionConfig) -> Self {
        Self {
            client,
            config,
            map,
            now_us: 0,
            calls: BTreeMap::new(),
            questions: BTreeMap::new(),
            scans: BTreeMap::new(),
            leases: Leases::default(),
            watches: Watches::default(),
            notices: Notices::default(),
            stagings: BTreeMap::new(),
            moments: BTreeMap::new(),
            probes: Probes::default(),
            questions_begun: 0,
            numbers: Numbers::new(client),
            timers: Timers::default(),
            unsettled: Unsettled::new(),
            routing: Routing::new(client),
            limits: Limits::default(),
            clock: Clock::default(),
            sizes: Sizes::default(),
            fetching_until_us: 0,
            told_us: None,
            rules: Rules::default(),
        }
    }

    /// Takes a rule away, so that a test can see that its checker notices.
    #[cfg(feature = "broken-rules")]
    pub fn break_rule(&mut self, rule: Rule) {
        self.rules.broken = Some(rule);
    }

    /// The newest map that it knows.
    pub fn map(&self) -> &Arc<ClusterMap> {
        &self.map
    }

    /// The number of calls in flight.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether no call is in flight.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// When, by the monotonic clock, a `Tick` has something to do; `None` when nothing is waited
    /// for.
    pub fn due_us(&self) -> Option<u64> {
        self.timers.first_us()
    }

    /// Takes in `event` and adds what the driver is to do.
    ///
    /// Total and bounded, whatever nodes send. Time may come with any event.
    ///
    /// # Panics
    /// When a call has the number of one in flight.
    pub fn step(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        self.now_us = self.now_us.max(now.monotonic_us);
        self.numbers.live_through(now);
        let before = (self.map.epoch, self.questions_begun, self.unsettled.settled());
        match event {
            Event::Call { call, what } => self.call(call, what, effects),
            Event::Cancel { call } => self.cancel(call, effects),
            Event::Receive(envelope) => self.receive(envelope, effects),
            Event::Learn(map) if map.epoch > self.map.epoch => self.install(map, effects),
            Event::Learn(_) => {}
            Event::Tick => {
                self.unsettled.expire(self.now_us);
                self.routing.expire(self.now_us);
                self.limits.expire(self.now_us);
            }
        }
        self.fire(effects);
        self.let_go(effects);
        self.check_since(before);
    }

    fn call(&mut self, call: CallId, what: Call, effects: &mut Vec<Effect>) {
        assert!(!self.calls.contains_key(&call), "no two calls in flight have the same number");
        let Some(what) = self.unless_ending(what, effects) else {
            return effects.push(Effect::Done { call, answer: Answer::Ended });
        };
        if self.calls.len() >= self.config.in_flight_max {
            let reason = "too many calls of this client are in flight; retry when some are done";
            return fail(call, Abort::new(ErrorKind::Unavailable, reason), effects);
        }
        match what {
            Call::Commit { blobs, reads } => self.commit(call, blobs, reads, effects),
            Call::Ask { transaction } => self.ask_outcome(call, transaction, effects),
            Call::Read { want, place } => {
                self.read(call, Reading::one(want, place, self.rules), effects);
            }
            Call::ReadMany { wants } => match Reading::many(wants, self.rules) {
                Ok(reading) => self.read(call, reading, effects),
                Err(abort) => fail(call, abort, effects),
            },
            Call::Scan { keyspace, scan, at } => {
                self.enter(call, Task::Scan(Scanning::new(keyspace, *scan, at)));
                self.scan(call, effects);
            }
            Call::Lease(what) => self.lease(call, what, effects),
            Call::Watch { target } => self.watch(call, target, effects),
            Call::Notify(what) => self.notify(call, what, effects),
            Call::Moment => self.begin_moment(call, effects),
            Call::Stage { blob, chunk, bytes } => {
                self.begin_staging(call, (blob, chunk), bytes, effects);
            }
            Call::Copy { blob, chunk, source } => {
                self.begin_copying(call, (blob, chunk), source, effects);
            }
            Call::End { .. }
            | Call::GiveBack { .. }
            | Call::EndWatch { .. }
            | Call::Acknowledge { .. }
            | Call::Unstage { .. } => unreachable!("it was handled above"),
        }
    }

    /// Does what only ends something; gives any other call back.
    fn unless_ending(&mut self, what: Call, effects: &mut Vec<Effect>) -> Option<Call> {
        match what {
            Call::End { began } => began.iter().for_each(|began| self.end(began, effects)),
            Call::GiveBack { lease } => self.give_back(lease, effects),
            Call::EndWatch { watch } => self.end_watch(watch, effects),
            Call::Acknowledge { watch, id, reply } => self.acknowledge(watch, id, reply, effects),
            Call::Unstage { blob, chunk, ids } => self.unstage((blob, chunk), ids, effects),
            other => return Some(other),
        }
        None
    }

    fn read(&mut self, call: CallId, reading: Reading, effects: &mut Vec<Effect>) {
        self.enter(call, Task::Read(reading));
        self.advance(call, effects);
    }

    /// A call is in flight from now on.
    fn enter(&mut self, call: CallId, task: Task) {
        self.enter_until(call, task, self.now_us + self.config.deadline_us);
    }

    /// A call is in flight from now on, for so long at most.
    fn enter_until(&mut self, call: CallId, task: Task, deadline_us: u64) {
        let questions = BTreeSet::new();
        self.timers.set(deadline_us, Timer::Deadline(call));
        let (due_us, stuck) = (None, None);
        self.calls.insert(call, InFlight { task, questions, deadline_us, due_us, stuck });
    }

    /// A call is over: what it asked is withdrawn.
    fn leave(&mut self, call: CallId, effects: &mut Vec<Effect>) -> Option<Task> {
        let in_flight = self.calls.remove(&call)?;
        for number in in_flight.questions {
            self.withdraw(number, effects);
        }
        self.timers.clear(in_flight.deadline_us, Timer::Deadline(call));
        if let Some(due_us) = in_flight.due_us {
            self.timers.clear(due_us, Timer::Resume(call));
        }
        let mut task = in_flight.task;
        match &mut task {
            Task::Read(reading) => {
                reading.began().iter().for_each(|began| self.end(began, effects));
            }
            Task::Scan(scanning) => {
                let open: Vec<(u64, NodeId)> = scanning.open().collect();
                self.withdraw_listers(&open, effects);
            }
            Task::Moment(moment) => {
                moment.number().map(|number| self.moments.remove(&number));
                moment.began().iter().for_each(|began| self.end(began, effects));
            }
            Task::Commit(submission) => submission.wait_for(None, &mut self.limits),
            Task::Lease(leasing) => self.withdraw_lease(leasing, effects),
            Task::Stage(staging) => drop(self.stagings.remove(&staging.number)),
            Task::Notify(notifying) => drop(self.notices.sending.remove(&notifying.number)),
        }
        Some(task)
    }

    /// A reading call goes on as far as it can.
    fn advance(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Read(reading) = &mut in_flight.task else { return };
        let room = QUESTIONS_MAX - in_flight.questions.len();
        match reading.advance(room, &self.map, &mut self.sizes) {
            Err(abort) => {
                self.leave(call, effects);
                fail(call, abort, effects);
            }
            Ok(advance) => {
                if !advance.is_stuck {
                    in_flight.stuck = None;
                }
                advance.ended.iter().for_each(|began| self.end(began, effects));
                for ask in advance.asks {
                    self.ask(call, ask, effects);
                }
                if let Some(answer) = advance.answer {
                    self.leave(call, effects);
                    effects.push(Effect::Done { call, answer });
                } else if advance.is_stuck {
                    self.is_stuck(call, effects);
                }
            }
        }
    }

    fn cancel(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        match self.leave(call, effects) {
            Some(Task::Commit(submission)) => self.abandon(&submission),
            Some(Task::Stage(staging)) => {
                let (chunk, id) = staging.of();
                self.unstage(chunk, vec![id], effects);
            }
            Some(Task::Read(_) | Task::Scan(_) | Task::Lease(_) | Task::Moment(_))
            | Some(Task::Notify(_))
            | None => {}
        }
    }

    fn receive(&mut self, envelope: Envelope, effects: &mut Vec<Effect>) {
        let Address::Node(from) = envelope.from else { return };
        match envelope.body {
            Body::Part(part) => {
                self.observe(part.clock, effects);
                self.routing.has_answered(from);
                if !self.moment_told(from, &part, effects) {
                    self.answered(from, part, effects);
                }
            }
            Body::Refused { read, abort } => self.refused(from, read, abort, effects),
            Body::NotHere(Asked::Read(read)) => self.not_here(from, read, effects),
            Body::NotHere(Asked::Transaction(id)) => self.not_head(from, id, effects),
            Body::Reply { id, decision, outcomes, clock } => {
                // Who refuses at the door says no clock.
                let is_refused = clock == Timestamp::ZERO;
                if !is_refused {
                    self.observe(clock, effects);
                }
                self.replied(id, decision, outcomes, is_refused, effects);
            }
            Body::Keys { number, keys, is_end } => {
                self.listed(from, number, (keys, is_end), effects);
            }
            Body::Scanned { number, page } => self.scanned(from, number, page, effects),
            Body::KeyLease(message) => self.hear_of_lease(from, message, effects),
            Body::KeyWatch(message) => self.hear_of_watch(from, message, effects),
            Body::NewerMap(map) => self.install(map, effects),
            Body::Upload(message) => self.hear_of_piece(from, message, effects),
            Body::NotUnderstood { asked, level } => self.misread(from, asked, level, effects),
            // Not for clients.
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Submit { .. }
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::Moment { .. } => return,
        }
        if envelope.epoch > self.map.epoch {
            self.fetch_map(Some(from), effects);
        }
    }

    /// A call ends without what was asked for. What became of a transaction that was sent is
    /// unknown, whatever the reason.
    fn give_up(&mut self, call: CallId, abort: Abort, effects: &mut Vec<Effect>) {
        match self.leave(call, effects) {
            Some(Task::Commit(submission)) => self.give_up_commit(call, submission, abort, effects),
            Some(Task::Read(_) | Task::Scan(_) | Task::Moment(_))
            | Some(Task::Lease(_) | Task::Stage(_) | Task::Notify(_)) => fail(call, abort, effects),
            None => {}
        }
    }

    fn send(&self, to: NodeId, body: Body, effects: &mut Vec<Effect>) {
        let from = Address::Client(self.client);
        let envelope = Envelope { epoch: self.map.epoch, incarnation: 0, from, body };
        effects.push(Effect::Send { to, envelope });
    }
}

fn fail(call: CallId, abort: Abort, effects: &mut Vec<Effect>) {
    effects.push(Effect::Done { call, answer: Answer::Failed(abort) });
}
