//! A client: a session, driven for the workloads.

use std::sync::Arc;

use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Address, Envelope, Now};
use tyr_protocol::session::{Answer, CallId, Effect, Event, LeaseNews, Session};
use tyr_types::Watcher;

use super::clock::Clock;
use super::{Happening, World};
use crate::random::Random;
use crate::setup::Setup;
use crate::workload::Next;

/// A client with its session.
pub struct Client {
    /// What routes, asks again and puts answers together.
    pub session: Session,
    /// Its clocks.
    pub clock: Clock,
    /// When the next look around is in the queue, by the run's time.
    tick_at_us: Option<u64>,
    /// Until then nothing reaches it, and it does nothing.
    asleep_until_us: u64,
}

/// The number by which nodes know the client at this place of the list.
pub fn address(client: usize) -> u64 {
    client as u64 + 1
}

impl Client {
    /// A client that knows this map.
    pub fn new(client: usize, map: Arc<ClusterMap>, setup: &Setup) -> Self {
        let mut session = Session::new(address(client), map);
        if let Some(rule) = setup.broken {
            session.break_rule(rule);
        }
        let clock = Clock::new(setup.clocks, &mut Random::of(setup.seed, "client", client as u64));
        Self { session, clock, tick_at_us: None, asleep_until_us: 0 }
    }

    /// When, by the run's time, its monotonic clock shows that.
    fn run_us(&self, now_us: u64, monotonic_us: u64) -> u64 {
        now_us + self.clock.lasts_us(monotonic_us - self.clock.monotonic_us(now_us))
    }

    fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), monotonic_us: self.clock.monotonic_us(now_us) }
    }
}

impl World {
    /// The machine of a client sleeps for so long.
    pub(super) fn sleep(&mut self, client: usize, lasts_us: u64) {
        let Some(it) = self.clients.get_mut(client) else { return };
        it.asleep_until_us = it.asleep_until_us.max(self.now_us + lasts_us);
        self.queue.push(it.asleep_until_us, Happening::Wake { client });
    }

    /// A client wakes, unless it fell asleep again; it sees by its clock how long it was away.
    pub(super) fn wake(&mut self, client: usize) {
        if !self.is_asleep(client) {
            self.step_client(client, Event::Tick);
        }
    }

    /// A client that sleeps is woken.
    pub(super) fn rouse(&mut self, client: usize) {
        if self.is_asleep(client) {
            self.clients[client].asleep_until_us = self.now_us;
            self.wake(client);
        }
    }

    fn is_asleep(&self, client: usize) -> bool {
        self.now_us < self.clients[client].asleep_until_us
    }

    /// A message arrives at a client.
    pub(super) fn arrive_at_client(&mut self, address: u64, envelope: Envelope) {
        let client = usize::try_from(address - 1).expect("a client's number is its place");
        if self.is_asleep(client) {
            self.counters.lost += 1;
            return;
        }
        self.step_client(client, Event::Receive(envelope));
    }

    /// The session looks around.
    pub(super) fn tick_client(&mut self, client: usize) {
        if self.clients[client].tick_at_us.is_none_or(|at_us| at_us > self.now_us) {
            return; // A newer look around is in the queue.
        }
        self.clients[client].tick_at_us = None;
        if self.is_asleep(client) {
            return; // It looks around when it wakes.
        }
        self.step_client(client, Event::Tick);
    }

    /// Hands an event to a session, and does what it asks for.
    pub(super) fn step_client(&mut self, client: usize, event: Event) {
        let it = &mut self.clients[client];
        let now = it.now(self.now_us);
        let mut effects = Vec::new();
        it.session.step(now, event, &mut effects);
        // What wakes it next, by the run's time: clocks run at about the same speed, and a look
        // around too early does nothing but ask for another.
        if let Some(due_us) = it.session.due_us() {
            let at_us = self.now_us + due_us.saturating_sub(now.monotonic_us).max(1_000);
            if it.tick_at_us.is_none_or(|earlier_us| at_us < earlier_us) {
                it.tick_at_us = Some(at_us);
                self.queue.push(at_us, Happening::TickClient { client });
            }
        }
        for effect in effects {
            match effect {
                Effect::Send { to, envelope } => self.send(Address::Node(to), envelope),
                Effect::Done { call, mut answer } => {
                    if let Answer::Leased { until_us, .. } = &mut answer {
                        *until_us = self.clients[client].run_us(self.now_us, *until_us);
                    }
                    self.tracer.note((self.now_us, client, call));
                    self.know_kept();
                    let number = u16::try_from(client).expect("clients are numbered by u16");
                    self.runner.answered(number, answer, self.now_us);
                    self.queue.push(self.now_us, Happening::Begin { client });
                }
                Effect::Watch { watch, news } => {
                    let number = u16::try_from(client).expect("clients are numbered by u16");
                    let watcher = Watcher { client: address(client), watch };
                    self.runner.watch_told(number, watcher, &news, self.now_us);
                }
                Effect::Lease { lease, news } => {
                    let number = u16::try_from(client).expect("clients are numbered by u16");
                    match news {
                        LeaseNews::Held { until_us } => {
                            let until_us = self.clients[client].run_us(self.now_us, until_us);
                            self.runner.hold_on(number, lease, until_us);
                        }
                        LeaseNews::Lost => self.runner.end_holding(number, lease, self.now_us),
                        // Who has a lock gives it back when it is done.
                        LeaseNews::Recalled => self.runner.recalled(number, lease),
                    }
                }
            }
        }
    }

    /// Clients know which snapshots are kept (V7).
    fn know_kept(&mut self) {
        let moments = self.monitors.map().kept_moments();
        self.runner.know_kept(moments);
    }

    /// The client does what it wants to do next.
    pub(super) fn begin_work(&mut self, client: usize) {
        if self.is_asleep(client) {
            let until_us = self.clients[client].asleep_until_us;
            return self.queue.push(until_us, Happening::Begin { client });
        }
        let number = u16::try_from(client).expect("clients are numbered by u16");
        self.know_kept();
        match self.runner.next(number, self.now_us) {
            Next::Call(what) => {
                self.counters.calls += 1;
                let call = CallId(self.counters.calls);
                self.step_client(client, Event::Call { call, what });
            }
            Next::Wait(until_us) => self.queue.push(until_us, Happening::Begin { client }),
            Next::Nothing => {}
        }
    }
}
