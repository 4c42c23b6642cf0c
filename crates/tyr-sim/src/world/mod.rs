//! The run itself: what happens next, in simulated time, until everything has ended.
//!
//! [`queue`] holds what will happen. The loop takes out what is next, hands it to the machine it
//! is for, and does what the machine asks for: a message goes through the [`network`] and back
//! into the queue, a record to the [`disk`], a read to the store. Machines see the time by their
//! own [`clock`].
//!
//! ```text
//!   queue ─► arrive, synced, tick, fault, .. ─► node / client / monitors: step
//!     ▲                                              │ effects
//!     └── network (delay, loss, ..), disk (sync) ◄───┘
//!
//!   0 ──── faults, clients begin work ────► duration ──── everything mended ────► all has ended
//! ```
//!
//! The parts: [`node`], [`client`] and [`monitors`] are who takes part; a node is one over a
//! [`model`] of a store, whose log [`checkpoint`] cuts, or over the [`real`] one, which
//! [`background`] keeps; [`faults`] lets faults happen; [`effect`] does what nodes ask for;
//! [`trace`] writes down; [`ending`] says when all has ended, and looks at what is there then;
//! [`lineage`] says what came from where, [`knowledge`] when too much was lost to judge.

mod background;
mod checkpoint;
pub mod client;
pub mod clock;
mod codec;
pub mod disk;
mod effect;
mod ending;
mod faults;
mod knowledge;
mod lineage;
mod model;
pub mod monitors;
pub mod network;
pub mod node;
pub(crate) mod panic;
pub mod queue;
pub mod real;
#[cfg(test)]
mod tests;
pub mod trace;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tyr_engine::lists::Listing;
use tyr_engine::reads::Fetch;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{Effect, Event};
use tyr_protocol::message::{Address, Envelope};
use tyr_types::NodeId;

use self::client::Client;
use self::knowledge::Knowledge;
use self::lineage::Lineage;
use self::monitors::Monitors;
use self::network::Network;
use self::node::Node;
use self::queue::Queue;
use self::trace::Tracer;
use crate::fault::Fault;
use crate::random::Random;
use crate::report::{Counters, Report};
use crate::setup::Setup;
use crate::workload::Runner;

/// A node is ticked so often, in microseconds.
const TICK_US: u64 = 50_000;

/// Something that happens.
enum Happening {
    /// A message arrives.
    Arrive { to: Address, envelope: Envelope },
    /// A sync of the node's disk has ended, or a step of it, that the process of this start began.
    Synced { node: NodeId, start: u64 },
    /// The process of this start makes some more of a segment of its log.
    Prepare { node: NodeId, start: u64 },
    /// It is noted beside the log of this process how far it is durable.
    Mark { node: NodeId, start: u64 },
    /// A read of the process of this start, that takes the disk, ends.
    Fetch { node: NodeId, start: u64, fetch: Box<Fetch> },
    /// A listing of the process of this start ends.
    List { node: NodeId, start: u64, listing: Box<Listing> },
    /// The process of this start goes on with what it broke off.
    Continue { node: NodeId, start: u64 },
    /// Time for the process of this start to look around.
    TickNode { node: NodeId, start: u64 },
    /// The process of this start goes on with cutting its log.
    Cut { node: NodeId, start: u64 },
    /// A pause of the node's process may be over.
    Unpause { node: NodeId },
    /// Time for the client to look around.
    TickClient { client: usize },
    /// The client may begin something.
    Begin { client: usize },
    /// A client's sleep may be over.
    Wake { client: usize },
    /// All that is asked from now on must be served soon.
    Probe,
    /// Time for the monitors to look around, and for the run to see whether it is over.
    TickMonitors,
    /// The fault at this place of the plan.
    Mishap(usize),
    /// Everything is mended.
    Mend,
}

/// A run under way.
struct World {
    setup: Setup,
    now_us: u64,
    queue: Queue<Happening>,
    network: Network,
    /// By number; those that an operator adds later are there from the start.
    nodes: Vec<Node>,
    clients: Vec<Client>,
    monitors: Monitors,
    runner: Runner,
    /// Which messages go through the wire format.
    sampling: Random,
    tracer: Tracer,
    counters: Counters,
    violations: Vec<String>,
    lineage: Lineage,
    knowledge: Knowledge,
    steps: u64,
    is_mended: bool,
    is_over: bool,
    /// When all that was under way had ended, after all was mended.
    settled_us: Option<u64>,
    /// Kept for its memory.
    effects: Vec<Effect>,
}

/// Runs it to its end.
///
/// A machine that finds itself broken ends the run: that is a violation like others.
pub fn run(setup: Setup) -> Report {
    let mut world = World::new(setup);
    if let Some(said) = panic::watch(AssertUnwindSafe(|| world.run())) {
        world.violations.push(said);
        world.judge_beyond_promise();
    }
    world.report()
}

impl World {
    fn new(mut setup: Setup) -> Self {
        let seed = setup.seed;
        let map = ClusterMap::of(setup.nodes, &setup.keyspaces);
        let map = Arc::new(match setup.older {
            Some(level) => map.speaking(level),
            None => map,
        });
        let added = setup.faults.faults().iter().filter_map(|(_, fault)| match fault {
            Fault::Add(node) => Some(node.0 + 1),
            _ => None,
        });
        let count = added.max().unwrap_or(0).max(setup.nodes);
        let mut world = Self {
            now_us: 0,
            queue: Queue::new(),
            network: Network::new(seed, setup.network, count),
            nodes: (0..count).map(|node| Node::new(NodeId(node), &setup)).collect(),
            clients: (0..usize::from(setup.clients) + setup.keyspaces.len())
                .map(|n| Client::new(n, Arc::clone(&map), &setup))
                .collect(),
            monitors: Monitors::new(Arc::clone(&map), &setup),
            runner: Runner::new(&mut setup),
            sampling: Random::of(seed, "wire", 0),
            tracer: Tracer::new(setup.trace),
            counters: Counters::default(),
            violations: Vec::new(),
            lineage: Lineage::new(count),
            knowledge: Knowledge::default(),
            steps: 0,
            is_mended: false,
            is_over: false,
            settled_us: None,
            effects: Vec::new(),
            setup,
        };
        world.begin();
        world
    }

    /// Everybody starts, and what is planned is put into the queue.
    fn begin(&mut self) {
        for node in 0..self.setup.nodes {
            self.start(NodeId(node));
        }
        for client in 0..usize::from(self.setup.clients) {
            self.queue.push(1 + client as u64, Happening::Begin { client });
        }
        self.queue.push(0, Happening::TickMonitors);
        let times: Vec<u64> = self.setup.faults.faults().iter().map(|(at_us, _)| *at_us).collect();
        for (place, at_us) in times.into_iter().enumerate() {
            self.queue.push(at_us, Happening::Mishap(place));
        }
        self.queue.push(self.setup.duration_us, Happening::Mend);
        self.queue.push(self.setup.duration_us + ending::PROBE_AFTER_US, Happening::Probe);
    }

    fn run(&mut self) {
        while let Some((at_us, happening)) = self.queue.pop() {
            self.now_us = at_us;
            self.steps += 1;
            self.happen(happening);
            if self.steps.is_multiple_of(self.setup.check_every.max(1).into()) {
                self.check_machines();
            }
            let is_beyond = self.knowledge.lost().is_some();
            if self.is_over || is_beyond && !self.knowledge.is_anything_owed() {
                break;
            }
        }
        self.finish();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive { to, envelope } => self.arrive(to, envelope),
            Happening::Synced { node, start } => self.synced(node, start),
            Happening::Prepare { node, start } => self.prepare(node, start),
            Happening::Mark { node, start } => self.mark(node, start),
            Happening::Fetch { node, start, fetch } => self.fetch(node, start, fetch),
            Happening::List { node, start, listing } => self.list(node, start, listing),
            Happening::Continue { node, start } => {
                if self.runs(node, start) {
                    self.step_node(node, Event::Continue);
                }
            }
            Happening::TickNode { node, start } => {
                if self.runs(node, start) {
                    self.step_node(node, Event::Tick);
                    self.flush(node, start);
                    self.queue.push(self.now_us + TICK_US, Happening::TickNode { node, start });
                }
            }
            Happening::Cut { node, start } => self.cut(node, start),
            Happening::Unpause { node } => self.unpause(node),
            Happening::TickClient { client } => self.tick_client(client),
            Happening::Begin { client } => self.begin_work(client),
            Happening::Wake { client } => self.wake(client),
            Happening::Probe => self.probe(),
            Happening::TickMonitors => self.tick_monitors(),
            Happening::Mishap(place) => {
                if !self.is_mended {
                    let fault = self.setup.faults.faults()[place].1.clone();
                    self.mishap(fault);
                }
            }
            Happening::Mend => self.mend(),
        }
    }
}
