//! The monitors as what they promise: one map at a time, leases, nothing forgotten.
//!
//! How several of them agree is not simulated here: they are one machine that never fails. What
//! they say may be lost or late like any message, and they may be out of a node's reach.

use std::sync::Arc;

use tyr_protocol::lease::{Effect, Event, Grants, LeaseConfig};
use tyr_protocol::map::{Change, ClusterMap, Newcomer, NodeState};
use tyr_protocol::member::incarnation;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_types::{Epoch, ErrorKind, NodeId};

use super::clock::Clock;
use super::{Happening, World};
use crate::random::Random;
use crate::setup::Setup;

/// The monitors look around so often, in microseconds.
pub const TICK_US: u64 = 100_000;

/// An operator tries again after so long when the cluster is busy with another change.
const PATIENCE_US: u64 = 1_000_000;

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The node is to join.
    Add,
    /// The node is to leave.
    Drain,
    /// The node is to get this weight.
    Weigh(u32),
}

/// An order that the monitors have not carried out yet.
#[derive(Debug)]
struct Open {
    proposal: u64,
    node: NodeId,
    order: Order,
    /// When to propose it; `None` while the answer is awaited.
    due_us: Option<u64>,
}

/// The monitors, with the operators who command them.
#[derive(Debug)]
pub struct Monitors {
    grants: Grants,
    clock: Clock,
    orders: Vec<Open>,
    proposals: u64,
    effects: Vec<Effect>,
}

impl Monitors {
    /// Monitors of a cluster with this map.
    pub fn new(map: Arc<ClusterMap>, setup: &Setup) -> Self {
        let clock = Clock::new(setup.clocks, &mut Random::of(setup.seed, "monitors", 0));
        let mut grants = Grants::new(LeaseConfig::default(), map, clock.monotonic_us(0));
        if let Some(rule) = setup.broken {
            grants.break_rule(rule);
        }
        Self { grants, clock, orders: Vec::new(), proposals: 0, effects: Vec::new() }
    }

    /// The map in effect.
    pub fn map(&self) -> &Arc<ClusterMap> {
        self.grants.map()
    }

    /// Whether a change is under way.
    pub fn is_changing(&self) -> bool {
        self.grants.pending().is_some() || self.map().next.is_some()
    }

    /// What holds between steps.
    pub fn invariants(&self) {
        self.grants.invariants();
    }

    /// Operators want nothing any more that has not begun.
    pub fn forget_orders(&mut self) {
        self.orders.retain(|open| open.due_us.is_none());
    }

    fn step(&mut self, now_us: u64, event: Event) -> Vec<(Address, Body)> {
        let mut effects = std::mem::take(&mut self.effects);
        self.grants.step(self.clock.monotonic_us(now_us), event, &mut effects);
        let mut messages = Vec::new();
        for effect in effects.drain(..) {
            let (to, body) = match effect {
                Effect::Grant { to, incarnation, sent_us, duration_us, epoch } => {
                    (to, Body::Granted { incarnation, sent_us, duration_us, epoch })
                }
                Effect::Prepare { to, map } => (to, Body::Prepare(map)),
                Effect::Inform { to, map } => (to, Body::Effective(map)),
                Effect::Publish(map) => {
                    let all = map.nodes.keys().map(|node| Address::Node(*node));
                    messages.extend(all.map(|to| (to, Body::Effective(Arc::clone(&map)))));
                    continue;
                }
                Effect::Answer { proposal, result } => {
                    self.answered(now_us, proposal, result);
                    continue;
                }
            };
            messages.push((Address::Node(to), body));
        }
        self.effects = effects;
        messages
    }

    fn answered(&mut self, now_us: u64, proposal: u64, result: tyr_types::Result<Epoch>) {
        let is_busy = result.is_err_and(|error| error.kind() == ErrorKind::Unavailable);
        if is_busy {
            let mut orders = self.orders.iter_mut();
            if let Some(open) = orders.find(|open| open.proposal == proposal) {
                open.due_us = Some(now_us + PATIENCE_US);
            }
        } else {
            self.orders.retain(|open| open.proposal != proposal);
        }
    }
}

impl World {
    /// An operator wants something.
    pub(super) fn operate(&mut self, node: NodeId, order: Order) {
        let proposal = self.monitors.proposals;
        self.monitors.proposals += 1;
        let due_us = Some(self.now_us);
        self.monitors.orders.push(Open { proposal, node, order, due_us });
        self.propose();
    }

    fn propose(&mut self) {
        for place in (0..self.monitors.orders.len()).rev() {
            let Some(open) = self.monitors.orders.get_mut(place) else { continue };
            if open.due_us.is_none_or(|due_us| due_us > self.now_us) {
                continue;
            }
            open.due_us = None;
            let (proposal, node) = (open.proposal, open.node);
            let change = match open.order {
                Order::Add => {
                    let Some(machine) = self.nodes.get(usize::from(node.0)) else { continue };
                    let incarnation = incarnation(machine.starts);
                    Change::Join(vec![Newcomer { node, incarnation, ..Newcomer::default() }])
                }
                Order::Drain => Change::Drain(node),
                Order::Weigh(weight) => Change::SetWeight { node, weight },
            };
            self.step_monitors(Event::Propose { proposal, change });
        }
    }

    /// The monitors look around.
    pub(super) fn tick_monitors(&mut self) {
        self.step_monitors(Event::Tick);
        self.propose();
        self.queue.push(self.now_us + TICK_US, Happening::TickMonitors);
        self.look_for_end();
    }

    /// A message arrives at the monitors.
    pub(super) fn arrive_at_monitors(&mut self, envelope: Envelope) {
        let Address::Node(node) = envelope.from else { return };
        let incarnation = envelope.incarnation;
        let event = match envelope.body {
            Body::Renew { incarnation, epoch, sent_us } => {
                Event::Renew { node, incarnation, epoch, sent_us }
            }
            Body::Prepared { epoch } => Event::Prepared { node, incarnation, epoch },
            Body::CaughtUp { epoch } => Event::CaughtUp { node, incarnation, epoch },
            Body::Return { incarnation, has_disk } => Event::Return { node, incarnation, has_disk },
            Body::FetchMap => {
                let body = Body::NewerMap(Arc::clone(self.monitors.map()));
                return self.send_from_monitors(Address::Node(node), body);
            }
            body => panic!("monitors are sent what is not for them: {body:?}"),
        };
        self.step_monitors(event);
    }

    fn step_monitors(&mut self, event: Event) {
        let before = Arc::clone(self.monitors.map());
        for (to, body) in self.monitors.step(self.now_us, event) {
            self.send_from_monitors(to, body);
        }
        if self.monitors.map().epoch != before.epoch {
            self.note_map();
            self.forget_expelled(&before);
        }
    }

    fn send_from_monitors(&mut self, to: Address, body: Body) {
        let epoch = self.monitors.map().epoch;
        self.send(to, Envelope { epoch, incarnation: 0, from: Address::Monitors, body });
    }

    /// What a node knew that was declared down does not count any more.
    fn forget_expelled(&mut self, before: &ClusterMap) {
        let map = Arc::clone(self.monitors.map());
        for (node, it) in &before.nodes {
            let now = map.nodes.get(node).map(|it| it.state);
            let is_anew = it.state == NodeState::Up && now == Some(NodeState::Returning);
            if it.is_live() && (is_anew || !map.is_live(*node)) {
                self.knowledge.lose(*node, 0);
            }
        }
    }

    fn note_map(&mut self) {
        let map = self.monitors.map();
        self.counters.epochs += 1;
        self.tracer.note((self.now_us, "map", map.epoch));
        if self.tracer.is_on() {
            let mut text = format!("epoch {} is in effect:", map.epoch.0);
            for (node, it) in &map.nodes {
                let membership = format!("{:?}", map.membership(*node)).to_lowercase();
                let state = it.state.name();
                text += &format!(" n{} {state} {membership} ({}.)", node.0, it.incarnation);
            }
            self.tracer.line(self.now_us, &"monitors", &text);
        }
    }
}
