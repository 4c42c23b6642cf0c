//! The monitors as what they promise: one map at a time, leases, nothing forgotten that was agreed
//! on.
//!
//! How several of them agree is not simulated here: one machine stands for whoever leads. What they
//! say may be lost or late like any message, and they may be out of a node's reach. Who leads may
//! change, with nobody for a while: what follows knows what is in consensus, as a term of a leader
//! does in a node, and no more.
//!
//! ```text
//!   the map in effect, the highest epoch that anybody was asked to prepare for ── stay
//!   leases, who was heard when, who is back, what is pending, what was proposed ── are gone
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_protocol::Rule;
use tyr_protocol::lease::{Effect, Event, Grants, LeaseConfig};
use tyr_protocol::map::{Change, ClusterMap, Newcomer, NodeState};
use tyr_protocol::member::incarnation;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_types::{Epoch, ErrorKind, KeptName, KeyspaceId, NodeId};

use super::clock::Clock;
use super::{Happening, World};
use crate::fault::Upset;
use crate::random::Random;
use crate::setup::{Clocks, Setup};

/// The monitors look around so often, in microseconds.
pub const TICK_US: u64 = 100_000;

/// An operator tries again after so long when the cluster is busy with another change.
const PATIENCE_US: u64 = 1_000_000;

/// After a pause longer than this a leader assumes of its own leases what another would.
const GAP_US: u64 = 1_000_000;

/// The monitors' invariants are asked for every so many times while the map stays.
const CHECK_EVERY: u32 = 32;

/// An order to declare a node down takes up to so long from who gives it to the monitors.
const ORDER_US: u64 = 1_000_000;

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The node is to join.
    Add,
    /// The node is to leave.
    Drain,
    /// The node is to get this weight.
    Weigh(u32),
    /// The node's process is gone, it is said: the one of this incarnation. The monitors are not
    /// told of which.
    Down(u64),
    /// The keyspace is to take nothing new any more; the node does not matter.
    DropKeyspace(KeyspaceId),
    /// What nodes that are down alone had of the keyspace is lost; the node does not matter.
    AcceptLoss(KeyspaceId),
    /// A snapshot is to be kept; the node does not matter.
    Keep,
    /// The oldest kept snapshot is to be dropped; the node does not matter.
    DropKept,
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
    /// The highest epoch that anybody was asked to prepare for.
    reserved: Epoch,
    /// What has happened to those who led last, and when.
    upset: Option<(Upset, u64)>,
    /// How often others took over.
    terms: u64,
    /// The newest incarnation of each node that told these monitors that it is back.
    back: BTreeMap<NodeId, u64>,
    orders: Vec<Open>,
    proposals: u64,
    /// Orders to declare a node down that took effect in this step, with the incarnation that was
    /// meant.
    downs: Vec<(NodeId, u64)>,
    /// Such orders that were refused in this step.
    refused: u64,
    /// How long orders are on their way.
    random: Random,
    seed: u64,
    clocks: Clocks,
    broken: Option<Rule>,
    effects: Vec<Effect>,
    /// The map that was looked at last, and how often since.
    checked: (Option<Arc<ClusterMap>>, u32),
}

impl Monitors {
    /// Monitors of a cluster with this map.
    pub fn new(map: Arc<ClusterMap>, setup: &Setup) -> Self {
        let clock = Clock::new(setup.clocks, &mut Random::of(setup.seed, "monitors", 0));
        let mut grants = Grants::new(LeaseConfig::default(), map, clock.monotonic_us(0));
        if let Some(rule) = setup.broken {
            grants.break_rule(rule);
        }
        Self {
            grants,
            clock,
            reserved: Epoch(0),
            upset: None,
            terms: 0,
            back: BTreeMap::new(),
            orders: Vec::new(),
            proposals: 0,
            downs: Vec::new(),
            refused: 0,
            random: Random::of(setup.seed, "orders", 0),
            seed: setup.seed,
            clocks: setup.clocks,
            broken: setup.broken,
            effects: Vec::new(),
            checked: (None, 0),
        }
    }

    /// Nobody hears of them from now on.
    pub fn suffer(&mut self, upset: Upset, now_us: u64) {
        self.upset = Some((upset, now_us));
    }

    /// Why nobody hears of them now.
    pub fn upset(&self) -> Option<Upset> {
        self.upset.map(|(upset, _)| upset)
    }

    /// Whether somebody leads, and hears what is said to monitors.
    fn is_led(&self) -> bool {
        match self.upset() {
            None | Some(Upset::Mute) => true,
            Some(Upset::Change | Upset::Pause) => false,
        }
    }

    /// Others follow, on a machine of their own. What they do first is answered.
    fn take_over(&mut self, now_us: u64) -> Vec<(Address, Body)> {
        self.terms += 1;
        let mut random = Random::of(self.seed, "monitors", self.terms);
        self.clock = Clock::new(self.clocks, &mut random);
        let (config, map) = (LeaseConfig::default(), Arc::clone(self.grants.map()));
        let (reserved, clock_us) = (self.reserved, self.clock.monotonic_us(now_us));
        let mut effects = std::mem::take(&mut self.effects);
        self.grants = Grants::take_over(config, map, reserved, clock_us, &mut effects);
        if let Some(rule) = self.broken {
            self.grants.break_rule(rule);
        }
        self.back.clear();
        // What became of a proposal nobody knows; gossip does not ask again, an operator does.
        self.orders.retain(|open| open.due_us.is_some() || !open.order.is_down());
        for open in &mut self.orders {
            open.due_us = open.due_us.or(Some(now_us + PATIENCE_US));
        }
        self.carry_out(now_us, effects)
    }

    /// The map in effect.
    pub fn map(&self) -> &Arc<ClusterMap> {
        self.grants.map()
    }

    /// The map in effect, for a node that has one of an older epoch.
    pub fn newer_than(&self, epoch: Epoch) -> Option<Arc<ClusterMap>> {
        self.grants.newer_than(epoch)
    }

    /// Whether a change is under way.
    pub fn is_changing(&self) -> bool {
        self.grants.pending().is_some() || self.map().next.is_some()
    }

    /// What holds between steps. That goes through every range of the map, and took two fifths of
    /// a run: so it is looked at when the map is another one, and else now and then.
    pub fn invariants(&mut self) {
        let map = self.grants.map();
        let is_same = self.checked.0.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, map));
        self.checked.1 += 1;
        if !is_same || self.checked.1 >= CHECK_EVERY {
            self.checked = (Some(Arc::clone(map)), 0);
            self.grants.invariants();
        }
    }

    /// Operators want nothing any more that has not begun.
    pub fn forget_orders(&mut self) {
        self.orders.retain(|open| open.due_us.is_none());
    }

    fn step(&mut self, now_us: u64, event: Event) -> Vec<(Address, Body)> {
        let mut effects = std::mem::take(&mut self.effects);
        self.grants.step(self.clock.monotonic_us(now_us), event, &mut effects);
        self.carry_out(now_us, effects)
    }

    fn carry_out(&mut self, now_us: u64, mut effects: Vec<Effect>) -> Vec<(Address, Body)> {
        let mut messages = Vec::new();
        for effect in effects.drain(..) {
            let (to, body) = match effect {
                Effect::Grant { to, incarnation, sent_us, duration_us, epoch, retention } => {
                    (to, Body::Granted { incarnation, sent_us, duration_us, epoch, retention })
                }
                Effect::Prepare { to, map } => {
                    self.reserved = self.reserved.max(map.epoch);
                    (to, Body::Prepare(map))
                }
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
        let place = self.orders.iter().position(|open| open.proposal == proposal);
        let Some(place) = place else { return };
        match (self.orders[place].order, result) {
            (Order::Down(incarnation), result) => {
                let Open { node, .. } = self.orders.swap_remove(place);
                match result {
                    Ok(_) => self.downs.push((node, incarnation)),
                    Err(_) => self.refused += 1,
                }
            }
            // Nobody hears the answer.
            (order, _) if self.upset.is_some() => assert!(!order.is_down(), "that was above"),
            (_, Err(error)) if error.kind() == ErrorKind::Unavailable => {
                self.orders[place].due_us = Some(now_us + PATIENCE_US);
            }
            (_, Ok(_) | Err(_)) => {
                self.orders.remove(place);
            }
        }
    }

    /// Whether an order was about a process that these monitors know to be followed by another.
    fn is_about_former(&self, node: NodeId, meant: u64, before: &ClusterMap) -> bool {
        let known = before.incarnation(node).max(self.back.get(&node).copied());
        known.is_some_and(|known| known > meant)
    }
}

impl Order {
    fn is_down(self) -> bool {
        match self {
            Self::Down(_) => true,
            Self::Add
            | Self::Drain
            | Self::Weigh(_)
            | Self::DropKeyspace(_)
            | Self::AcceptLoss(_)
            | Self::Keep
            | Self::DropKept => false,
        }
    }
}

impl World {
    /// An operator wants something.
    pub(super) fn operate(&mut self, node: NodeId, order: Order) {
        self.order(node, order, self.now_us);
        self.propose();
    }

    /// Somebody takes the process for gone that runs as this node, or ran last.
    pub(super) fn order_down(&mut self, node: NodeId) {
        if let Some(machine) = self.nodes.get(usize::from(node.0)) {
            let order = Order::Down(machine.incarnation());
            let due_us = self.now_us + self.monitors.random.below(ORDER_US);
            self.order(node, order, due_us);
        }
    }

    fn order(&mut self, node: NodeId, order: Order, due_us: u64) {
        let proposal = self.monitors.proposals;
        self.monitors.proposals += 1;
        self.monitors.orders.push(Open { proposal, node, order, due_us: Some(due_us) });
    }

    /// Somebody leads the monitors again.
    pub(super) fn lead(&mut self, upset: Upset) {
        let before = Arc::clone(self.monitors.map());
        let since_us = self.monitors.upset.take().map_or(self.now_us, |(_, since_us)| since_us);
        match upset {
            Upset::Pause if self.now_us - since_us > GAP_US => self.step_monitors(Event::Lead),
            Upset::Pause => {}
            Upset::Change | Upset::Mute => {
                if self.tracer.is_on() {
                    self.tracer.line(self.now_us, &"monitors", &"others take over");
                }
                let messages = self.monitors.take_over(self.now_us);
                self.told(&before, messages);
                self.counters.terms += 1;
            }
        }
    }

    /// Proposes what is due, if there is anybody to propose it to.
    fn propose(&mut self) {
        if !self.monitors.is_led() {
            return;
        }
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
                Order::Down(_) => Change::Down(node),
                Order::DropKeyspace(keyspace) => Change::DropKeyspace(keyspace),
                Order::AcceptLoss(keyspace) => Change::AcceptLoss(keyspace),
                Order::Keep => {
                    let name = KeptName::new(&format!("k{proposal}"));
                    let name = name.expect("a letter and digits are a name");
                    Change::Keep { name, day_us: self.now_us }
                }
                Order::DropKept => {
                    let kept = &self.monitors.map().kept;
                    match kept.iter().min_by_key(|(_, kept)| kept.epoch) {
                        Some((name, _)) => Change::DropKept(name.clone()),
                        None => {
                            self.monitors.orders.remove(place);
                            continue;
                        }
                    }
                }
            };
            self.step_monitors(Event::Propose { proposal, change });
        }
    }

    /// The monitors look around.
    pub(super) fn tick_monitors(&mut self) {
        if self.monitors.is_led() {
            self.step_monitors(Event::Tick);
        }
        self.propose();
        self.queue.push(self.now_us + TICK_US, Happening::TickMonitors);
        self.look_for_end();
    }

    /// A message arrives at the monitors.
    pub(super) fn arrive_at_monitors(&mut self, envelope: Envelope) {
        let Address::Node(node) = envelope.from else { return };
        if !self.monitors.is_led() {
            return;
        }
        let (incarnation, epoch) = (envelope.incarnation, envelope.epoch);
        let event = match envelope.body {
            Body::Renew { incarnation, epoch, sent_us, retention } => {
                Event::Renew { node, incarnation, epoch, sent_us, retention }
            }
            Body::Prepared { epoch } => Event::Prepared { node, incarnation, epoch },
            Body::CaughtUp { epoch } => Event::CaughtUp { node, incarnation, epoch },
            Body::Return { incarnation, has_disk, level } => {
                let back = self.monitors.back.entry(node).or_default();
                *back = incarnation.max(*back);
                Event::Return { node, incarnation, epoch, has_disk, level }
            }
            Body::FetchMap => {
                if let Some(map) = self.monitors.newer_than(epoch) {
                    self.send_from_monitors(Address::Node(node), Body::NewerMap(map));
                }
                return;
            }
            body => panic!("monitors are sent what is not for them: {body:?}"),
        };
        self.step_monitors(event);
    }

    fn step_monitors(&mut self, event: Event) {
        let before = Arc::clone(self.monitors.map());
        let messages = self.monitors.step(self.now_us, event);
        self.told(&before, messages);
    }

    /// The monitors have decided something, and tell it.
    fn told(&mut self, before: &ClusterMap, messages: Vec<(Address, Body)>) {
        for (to, body) in messages {
            self.send_from_monitors(to, body);
        }
        if self.monitors.map().epoch != before.epoch {
            self.note_map();
            self.forget_expelled(before);
        }
        self.counters.downs += self.monitors.downs.drain(..).count() as u64;
        self.counters.downs_refused += std::mem::take(&mut self.monitors.refused);
    }

    fn send_from_monitors(&mut self, to: Address, body: Body) {
        if self.monitors.upset.is_some() {
            return;
        }
        let epoch = self.monitors.map().epoch;
        self.send(to, Envelope { epoch, incarnation: 0, from: Address::Monitors, body });
    }

    /// What a node knew that was declared down does not count any more; but it does if that was by
    /// an order about the process before, which is there again.
    fn forget_expelled(&mut self, before: &ClusterMap) {
        let map = Arc::clone(self.monitors.map());
        let monitors = &self.monitors;
        let is_about_former =
            |(node, meant): &&(NodeId, u64)| monitors.is_about_former(*node, *meant, before);
        let spared: Vec<NodeId> =
            monitors.downs.iter().filter(is_about_former).map(|(node, _)| *node).collect();
        for (node, it) in &before.nodes {
            let now = map.nodes.get(node).map(|it| it.state);
            let is_anew = it.state == NodeState::Up && now == Some(NodeState::Returning);
            let is_expelled = it.is_live() && (is_anew || !map.is_live(*node));
            if is_expelled && !spared.contains(node) {
                let alone: Vec<KeyspaceId> = map.held_alone(*node).map(|(id, _)| id).collect();
                self.knowledge.expel(*node, &alone);
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
