//! What was computed once: nodes, events, and what comes of an event at a node.
//!
//! Steps of different nodes have nothing to do with each other, so the same node meets the same
//! event in many states of the cluster. Each node state is kept once, known by its fingerprint;
//! each event once, known by its bytes; each step is done once. A state of the cluster is then a
//! handful of numbers.

use std::collections::HashMap;
use std::hash::Hasher;
use std::panic::AssertUnwindSafe;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::wire;
use tyr_types::{Epoch, NodeId};
use xxhash_rust::xxh3::xxh3_128;

use super::case::Number;
use super::node::{Ending, Happening, Node};
use crate::world::panic::watch;

/// A node state, by number.
pub type NodeState = u32;
/// An event, by number.
pub type EventNumber = u32;

/// Who makes something happen at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A client.
    Client,
    /// The monitors, or time.
    Outside,
    /// The node itself: its log.
    Own,
    /// Another node.
    Node(NodeId),
}

/// Something on its way to a node.
#[derive(Clone, Debug)]
pub struct Posted {
    /// To whom.
    pub to: NodeId,
    /// From whom.
    pub from: Source,
    /// The epoch that the sender was in; it is not heard before the receiver is in it too.
    pub epoch: Epoch,
    /// What.
    pub happening: Happening,
}

/// What comes of an event at a node.
#[derive(Clone, Debug)]
pub struct Step {
    /// The node afterwards.
    pub node: NodeState,
    /// What is on its way then.
    pub posted: SmallVec<[EventNumber; 4]>,
    /// What clients are told.
    pub answers: SmallVec<[(Number, Ending); 1]>,
    /// What the monitors are told: how far the node is done.
    pub done_to_us: Option<u64>,
}

/// All that was computed.
#[derive(Debug, Default)]
pub struct Table {
    nodes: Vec<Node>,
    node_numbers: HashMap<u128, NodeState, FixedState>,
    events: Vec<Posted>,
    event_numbers: HashMap<Vec<u8>, EventNumber, FixedState>,
    step_numbers: HashMap<(NodeState, EventNumber), u32, FixedState>,
    steps: Vec<Step>,
    /// All floors that there may be, ascending.
    floors: Vec<u64>,
}

/// 128 bits that stand for what `feed` feeds: of a billion things, two different ones have the same
/// with a probability of 10^-21.
pub fn fingerprint(feed: impl FnOnce(&mut Gatherer)) -> u128 {
    let mut gatherer = Gatherer::default();
    feed(&mut gatherer);
    gatherer.sum()
}

/// Gathers what is to be hashed as bytes.
#[derive(Debug, Default)]
pub struct Gatherer(SmallVec<[u8; 512]>);

impl Gatherer {
    fn sum(&self) -> u128 {
        xxh3_128(&self.0)
    }
}

impl Hasher for Gatherer {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("only the bytes are wanted")
    }
}

impl Table {
    /// Nothing is computed yet; `floors` are all that there may be, ascending.
    pub fn new(floors: Vec<u64>) -> Self {
        Self { floors, ..Self::default() }
    }

    /// The node of this number.
    pub fn node(&self, number: NodeState) -> &Node {
        &self.nodes[number as usize]
    }

    /// The event of this number.
    pub fn event(&self, number: EventNumber) -> &Posted {
        &self.events[number as usize]
    }

    /// How many node states there are.
    pub fn node_states(&self) -> usize {
        self.nodes.len()
    }

    /// How many different steps were done.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The number of this node state.
    pub fn keep_node(&mut self, node: Node) -> NodeState {
        let print = fingerprint(|gatherer| node.fingerprint(&self.floors, gatherer));
        let next = u32::try_from(self.nodes.len()).expect("memory ends before 2^32 nodes do");
        let number = *self.node_numbers.entry(print).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// The number of this event.
    pub fn keep_event(&mut self, posted: Posted) -> EventNumber {
        let key = bytes(&posted);
        let next = u32::try_from(self.events.len()).expect("memory ends before 2^32 events do");
        let number = *self.event_numbers.entry(key).or_insert(next);
        if number == next {
            self.events.push(posted);
        }
        number
    }

    /// What comes of this event at this node.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn step(&mut self, node: NodeState, event: EventNumber) -> Result<&Step, String> {
        if let Some(number) = self.step_numbers.get(&(node, event)) {
            return Ok(&self.steps[*number as usize]);
        }
        let step = self.do_step(node, event)?;
        let number = u32::try_from(self.steps.len()).expect("memory ends before 2^32 steps do");
        self.step_numbers.insert((node, event), number);
        self.steps.push(step);
        Ok(&self.steps[number as usize])
    }

    fn do_step(&mut self, node: NodeState, event: EventNumber) -> Result<Step, String> {
        let mut after = self.node(node).clone();
        let posted = self.event(event).clone();
        let mut stepped = None;
        let panicked = watch(AssertUnwindSafe(|| stepped = Some(after.step(&posted.happening))));
        let outcome = stepped.unwrap_or_else(|| Err(panicked.unwrap_or_default()))?;
        let epoch = after.epoch();
        let sent = outcome.sent.into_iter().map(|(to, body)| {
            let (from, happening) = (Source::Node(posted.to), Happening::Message(body));
            Posted { to, from, epoch, happening }
        });
        let own = outcome.own.into_iter().map(|event| {
            let (from, happening) = (Source::Own, Happening::Done(event));
            Posted { to: posted.to, from, epoch, happening }
        });
        let posted = sent.chain(own).map(|posted| self.keep_event(posted)).collect();
        let node_after = self.keep_node(after);
        let (answers, done_to_us) = (outcome.answers.into(), outcome.done_to_us);
        Ok(Step { node: node_after, posted, answers, done_to_us })
    }
}

/// What makes an event this one and no other. What travels is what its bytes are.
fn bytes(posted: &Posted) -> Vec<u8> {
    let Posted { to, from, epoch, happening } = posted;
    let mut key = to.0.to_le_bytes().to_vec();
    match (happening, from) {
        (Happening::Message(body), Source::Node(from)) => {
            key.push(0);
            key.extend(encoded(*from, *epoch, body));
        }
        (other, _) => {
            key.push(1);
            key.extend(epoch.0.to_le_bytes());
            key.extend(match other {
                Happening::Install(map) => format!("install {:?}", map.nodes).into_bytes(),
                other => format!("{other:?}").into_bytes(),
            });
        }
    }
    key
}

fn encoded(from: NodeId, epoch: Epoch, body: &Body) -> bytes::Bytes {
    let envelope =
        Envelope { epoch, incarnation: 1, from: Address::Node(from), body: body.clone() };
    let mut outgoing = wire::Outgoing::new();
    wire::encode(&envelope, &mut outgoing).expect("a message of a machine can be encoded");
    outgoing.take_bytes()
}
