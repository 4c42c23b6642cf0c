//! A state of the cluster, and all that can happen next.
//!
//! A message is delivered at any time after it was sent; to a node whose map is older than the
//! sender's, when it has the sender's (that is how members do it), and never to a node that knows
//! that the sender is down. What a node asks to be made durable becomes so at any time, in any
//! order. A node that is down stays down, and every other one hears of it at any time, by
//! the new map. A client whose head is down asks the next head, at any time. When nothing is left
//! to happen and something is still open, time passes for everyone (F6).

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_protocol::Rule;
use tyr_protocol::chain::Ends;
use tyr_protocol::map::ClusterMap;
use tyr_types::{BlobName, NodeId, Transaction};

use super::case::{self, Case, NODES, Number};
use super::clients::Client;
use super::forgetting::{self, Round};
use super::node::{Happening, Node};
use super::table::{EventNumber, NodeState, Posted, Source, Table};
use super::verdict;

/// The number of a node that is down.
const DOWN: NodeState = NodeState::MAX;

/// How often time passes before what is still open is taken for stuck.
const ROUNDS_MAX: u8 = 8;
/// How often time passes before it is calm: messages arrive in the order sent, and nothing fails
/// any more. Who can overtake for ever can hold up anything for ever.
const STORMY_ROUNDS: u8 = 1;

/// What may go wrong in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mishaps {
    /// Nodes that go down for good.
    pub crashes: u8,
    /// Messages between nodes that are lost.
    pub losses: u8,
    /// How often a node, or a client, asks about what was held up although it was not (F4, F6); a
    /// client also about what it was answered, as when it asked before that.
    pub impatience: u8,
    /// How often a long time passes, and all forget what everyone is done with (F10).
    pub forgettings: u8,
}

/// A state of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) nodes: [NodeState; NODES as usize],
    /// What is on its way, ascending; the same twice if it is so twice. In the order sent once it
    /// is calm.
    pending: SmallVec<[EventNumber; 20]>,
    pub(super) clients: SmallVec<[Client; 3]>,
    /// In which era each client submitted its transaction.
    pub(super) eras: SmallVec<[u8; 3]>,
    /// What the monitors have heard since they last told how far all are done.
    pub(super) round: Round,
    pub(super) down: Option<NodeId>,
    /// What may still go wrong.
    pub(super) left: Mishaps,
    /// How often time has passed for everyone.
    rounds: u8,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Something that is on its way arrives.
    Deliver(EventNumber),
    /// A message is lost.
    Lose(EventNumber),
    /// A node goes down; with `true`, what it answered last did not reach the clients.
    Crash(NodeId, bool),
    /// Time passes for one node.
    Tick(NodeId),
    /// A client asks again.
    Ask(Number),
    /// A long time passes: whoever is done with everything says so, and forgets it.
    Forget,
    /// Time passes for everyone, since nothing else happens.
    Round,
}

/// All that can happen in a state, always in the same order.
pub type Actions = SmallVec<[Action; 24]>;

/// What stays the same in a search, and what was computed in it.
#[derive(Debug)]
pub struct Explorer {
    pub(super) case: Case,
    pub(super) names: [BlobName; 2],
    pub(super) map: Arc<ClusterMap>,
    /// The map without each node that can be done without.
    maps: [Option<Arc<ClusterMap>>; NODES as usize],
    pub(super) mishaps: Mishaps,
    /// Whether a transaction has reads or conditions.
    pub(super) is_conditional: Vec<bool>,
    /// The heads of the transactions by the first map, and by that without each node.
    pub(super) heads: Vec<[NodeId; 1 + NODES as usize]>,
    /// What was computed.
    pub table: Table,
    first: World,
}

impl Explorer {
    /// A search over this case.
    pub fn new(case: Case, mishaps: Mishaps, broken: Option<Rule>) -> Self {
        let (map, names) = case.map();
        let maps = [0, 1, 2].map(|node| case::without(&map, NodeId(node)));
        let map = Arc::new(map);
        let mut table = Table::new(forgetting::floors(&case, mishaps));
        let nodes = [0, 1, 2].map(|node: u16| {
            let ahead_us = case.ahead_us[usize::from(node)];
            table.keep_node(Node::new(NodeId(node), &map, &names, ahead_us, broken))
        });
        let clients = case.plans.iter().map(|_| Client::Idle).collect();
        let eras = case.plans.iter().map(|_| 0).collect();
        let (pending, round, down, left, rounds) = (SmallVec::new(), None, None, mishaps, 0);
        let first = World { nodes, pending, clients, eras, round, down, left, rounds };
        let (mut is_conditional, mut heads) = (Vec::new(), Vec::new());
        for number in 0..case.plans.len() {
            // When something was read has no say in where it lies.
            let transaction = case.transaction(number, &names, |_| None);
            let head_without = |node: usize| match &maps[node] {
                Some(map) => head(map, &transaction),
                None => head(&map, &transaction),
            };
            let without = [0, 1, 2].map(head_without);
            heads.push([head(&map, &transaction), without[0], without[1], without[2]]);
            is_conditional.push(transaction.is_conditional());
        }
        let mut explorer =
            Self { case, names, map, maps, mishaps, is_conditional, heads, table, first };
        let mut first = explorer.first.clone();
        for number in 0..explorer.case.plans.len() {
            if explorer.case.plans[number].after.is_none() {
                explorer.submit(&mut first, number);
            }
        }
        explorer.first = first;
        explorer
    }

    /// Where it begins.
    pub fn first(&self) -> World {
        self.first.clone()
    }

    /// All that can happen in this state.
    ///
    /// # Errors
    /// When nothing more happens and what is there is not what was promised.
    pub fn actions(&self, world: &World) -> Result<Actions, String> {
        let mut actions = Actions::new();
        if let (Some(event), true) = (world.pending.first(), world.is_calm()) {
            actions.push(Action::Deliver(*event));
            return Ok(actions);
        }
        let mut last = None;
        for event in &world.pending {
            if last != Some(*event) && self.is_deliverable(world, *event) {
                actions.push(Action::Deliver(*event));
            }
            last = Some(*event);
        }
        if self.is_over(world) {
            self.check(world)?;
        } else if world.pending.is_empty() {
            if world.left == self.mishaps {
                return Err(format!("stuck though nothing failed:\n{}", self.brief(world)));
            }
            if world.rounds == ROUNDS_MAX {
                return Err(format!("still open after a long time:\n{}", self.brief(world)));
            }
            actions.push(Action::Round);
        }
        self.add_mishaps(world, &mut actions);
        Ok(actions)
    }

    fn add_mishaps(&self, world: &World, actions: &mut Actions) {
        if world.is_calm() {
            return;
        }
        if world.left.crashes > 0 {
            let is_spare = |node: &NodeId| self.maps[usize::from(node.0)].is_some();
            for node in world.live().into_iter().filter(is_spare) {
                actions.push(Action::Crash(node, false));
                if self.answered_last(world, node).next().is_some() {
                    actions.push(Action::Crash(node, true));
                }
            }
        }
        if world.left.losses > 0 {
            let mut last = None;
            for event in &world.pending {
                let is_message = matches!(self.table.event(*event).from, Source::Node(_));
                if last != Some(*event) && is_message {
                    actions.push(Action::Lose(*event));
                }
                last = Some(*event);
            }
        }
        if world.left.impatience > 0 {
            let is_busy = |node: &NodeId| self.table.node(world.node(*node)).is_busy();
            actions.extend(world.live().into_iter().filter(is_busy).map(Action::Tick));
            let clients = world.clients.iter().enumerate();
            let begun = clients.filter(|(_, client)| **client != Client::Idle);
            actions.extend(begun.map(|(number, _)| Action::Ask(number)));
        }
        if self.is_forgetting_possible(world) {
            actions.push(Action::Forget);
        }
    }

    /// The state after this.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn after(&mut self, world: &World, action: Action) -> Result<World, String> {
        let mut world = world.clone();
        match action {
            Action::Deliver(event) => {
                world.take(event);
                self.deliver(&mut world, event)?;
            }
            Action::Lose(event) => {
                world.take(event);
                world.left.losses -= 1;
            }
            Action::Crash(node, is_forgetting) => self.crash(&mut world, node, is_forgetting),
            Action::Tick(node) => {
                world.left.impatience -= 1;
                let tick = self.outside(node, Happening::Tick);
                self.deliver(&mut world, tick)?;
            }
            Action::Forget => self.forget(&mut world)?,
            Action::Ask(number) => {
                world.left.impatience -= 1;
                self.ask(&mut world, number);
            }
            Action::Round => {
                world.rounds += 1;
                for node in world.live() {
                    let tick = self.outside(node, Happening::Tick);
                    world.post(tick);
                }
                for number in 0..world.clients.len() {
                    if world.clients[number] == Client::Waiting {
                        self.ask(&mut world, number);
                    }
                }
            }
        }
        self.tell_floor(&mut world);
        Ok(world)
    }

    /// Whether it is the same in which order the two happen: all that a step does is change its
    /// node, send, and answer, so they are of different nodes. A crash is of its node too: what
    /// others send there is lost, before it or by it. But two that use up what may go wrong are
    /// not independent, nor are a crash and an answer on which a client submits, or a crash and
    /// what is said to the monitors.
    pub fn is_independent(&self, one: Action, other: Action) -> bool {
        let (Some(left), Some(right)) = (self.place(one), self.place(other)) else { return false };
        let is_mishap = |action| !matches!(action, Action::Deliver(_));
        let is_crash = |action| matches!(action, Action::Crash(..));
        let is_news = |action| match action {
            Action::Deliver(event) => {
                matches!(self.table.event(event).happening, Happening::Renew(_))
            }
            _ => false,
        };
        left != right
            && !(is_mishap(one) && is_mishap(other))
            && !(is_crash(one) && is_news(other) || is_news(one) && is_crash(other))
    }

    /// Where it happens; `None` when it concerns more than a node. Where a client goes on with
    /// what it was told first, and may be told less than another node knows, all does (F11).
    fn place(&self, action: Action) -> Option<NodeId> {
        let is_followed = self.case.plans.iter().any(|plan| plan.after.is_some());
        if is_followed && self.mishaps.forgettings > 0 {
            return None;
        }
        match action {
            Action::Deliver(event) | Action::Lose(event) => Some(self.table.event(event).to),
            Action::Tick(node) => Some(node),
            Action::Crash(node, _) => (!is_followed).then_some(node),
            Action::Ask(_) | Action::Forget | Action::Round => None,
        }
    }

    /// The action in words.
    pub fn words(&self, action: Action) -> String {
        let event = |event| {
            let Posted { to, from, happening, .. } = self.table.event(event);
            let from = match from {
                Source::Node(from) => format!(" from {}", from.0),
                Source::Client => " from a client".to_owned(),
                Source::Outside | Source::Own => String::new(),
            };
            format!("at {}{from}: {}", to.0, super::words::of(happening))
        };
        match action {
            Action::Deliver(number) => event(number),
            Action::Lose(number) => format!("lost: {}", event(number)),
            Action::Crash(node, false) => format!("at {}: crash", node.0),
            Action::Crash(node, true) => format!("at {}: crash; its answers are lost", node.0),
            Action::Tick(node) => format!("at {}: time passes", node.0),
            Action::Ask(number) => format!("client of {number} asks again"),
            Action::Forget => "a long time passes".to_owned(),
            Action::Round => "time passes".to_owned(),
        }
    }

    /// What is in flight in this state, in words.
    pub fn brief(&self, world: &World) -> String {
        let brief = |node: NodeId| self.table.node(world.node(node)).brief();
        let nodes: Vec<String> = world.live().into_iter().map(brief).collect();
        format!("{:?}, {:?} down\n{}", world.clients, world.down, nodes.concat())
    }

    fn is_deliverable(&self, world: &World, event: EventNumber) -> bool {
        let posted = self.table.event(event);
        self.table.node(world.node(posted.to)).epoch() >= posted.epoch
    }

    /// Whether all is done in this state, though something may still go wrong.
    pub fn is_over(&self, world: &World) -> bool {
        world.pending.is_empty() && self.is_done(world)
    }

    fn is_done(&self, world: &World) -> bool {
        let is_answered = |client: &Client| matches!(client, Client::Answered(_));
        let is_idle = |node: &NodeState| *node == DOWN || self.table.node(*node).is_idle();
        world.clients.iter().all(is_answered) && world.nodes.iter().all(is_idle)
    }

    /// Something arrives at its node.
    ///
    /// # Errors
    /// What is wrong with what comes of it.
    pub fn deliver(&mut self, world: &mut World, event: EventNumber) -> Result<(), String> {
        let to = self.table.event(event).to;
        let step = self.table.step(world.node(to), event)?;
        world.nodes[usize::from(to.0)] = step.node;
        let (posted, answers) = (step.posted.clone(), step.answers.clone());
        let done_to_us = step.done_to_us;
        if let Happening::Install(_) = self.table.event(event).happening {
            let table = &self.table;
            let is_heard = |event: &EventNumber| {
                let posted = table.event(*event);
                let is_of_down = match posted.from {
                    Source::Node(from) => world.down == Some(from),
                    Source::Client | Source::Outside | Source::Own => false,
                };
                posted.to != to || !is_of_down
            };
            world.pending.retain(|event| is_heard(event));
        }
        for event in posted {
            if world.is_up(self.table.event(event).to) {
                world.post(event);
            }
        }
        for (number, ending) in answers {
            self.answer(world, number, ending)?;
        }
        if let Some(done_to_us) = done_to_us {
            self.hear_done(world, to, done_to_us);
        }
        Ok(())
    }

    fn crash(&mut self, world: &mut World, node: NodeId, is_forgetting: bool) {
        if is_forgetting {
            let forgotten: Vec<Number> = self.answered_last(world, node).collect();
            for number in forgotten {
                world.clients[number] = Client::Waiting;
            }
        }
        world.left.crashes -= 1;
        world.nodes[usize::from(node.0)] = DOWN;
        world.down = Some(node);
        let table = &self.table;
        world.pending.retain(|event| table.event(*event).to != node);
        let (map, epoch) = (Arc::clone(self.newest(world)), self.map.epoch);
        for to in world.live() {
            let happening = Happening::Install(Arc::clone(&map));
            let posted = Posted { to, from: Source::Outside, epoch, happening };
            world.post(self.table.keep_event(posted));
        }
        for number in 0..world.clients.len() {
            if world.clients[number] == Client::Waiting && self.heads[number][0] == node {
                self.ask(world, number);
            }
        }
    }

    /// The newest map.
    pub fn newest(&self, world: &World) -> &Arc<ClusterMap> {
        let without = world.down.and_then(|node| self.maps[usize::from(node.0)].as_ref());
        without.unwrap_or(&self.map)
    }

    /// All is done: whether it is as promised.
    fn check(&self, world: &World) -> Result<(), String> {
        let answered = |(number, client): (Number, &Client)| match client {
            Client::Answered(ending) => (self.transaction(world, number), *ending),
            Client::Idle | Client::Waiting => unreachable!("all is done"),
        };
        let answered: Vec<_> = world.clients.iter().enumerate().map(answered).collect();
        let live = world.nodes.iter().filter(|node| **node != DOWN);
        let live: Vec<&Node> = live.map(|node| self.table.node(*node)).collect();
        verdict::check(&self.case, &self.names, &live, &answered)
    }
}

impl World {
    /// The nodes that are up.
    pub fn live(&self) -> SmallVec<[NodeId; NODES as usize]> {
        (0..NODES).map(NodeId).filter(|node| self.is_up(*node)).collect()
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.nodes[usize::from(node.0)] != DOWN
    }

    fn node(&self, node: NodeId) -> NodeState {
        self.nodes[usize::from(node.0)]
    }

    fn is_calm(&self) -> bool {
        self.rounds > STORMY_ROUNDS
    }

    /// Something is on its way.
    pub fn post(&mut self, event: EventNumber) {
        let place = match self.is_calm() {
            true => self.pending.len(),
            false => self.pending.partition_point(|other| *other < event),
        };
        self.pending.insert(place, event);
    }

    fn take(&mut self, event: EventNumber) {
        let place = self.pending.iter().position(|other| *other == event);
        self.pending.remove(place.expect("what arrives was on its way"));
    }
}

/// The head of the chain that this map gives the transaction.
fn head(map: &ClusterMap, transaction: &Transaction) -> NodeId {
    let chain = map.chain(transaction, &Ends::new());
    chain.expect("each blob has a replica that is up").hops()[0].node
}
