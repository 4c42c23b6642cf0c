//! Workloads and faults, composed in a few lines of text.
//!
//! ```text
//!   text ──parse──► Scenario ──draw(seed)──► Scenario ──setup(seed)──► Setup ──► world::run
//!        ◄──print──          choices open     choices closed: moments, nodes
//! ```
//!
//! A scenario leaves choices open (`random`, spans, `sometimes`); a seed closes them. What is drawn
//! is a scenario again, and prints as one: so a failing run can be made smaller line by line, and
//! what is left is a text that runs. `docs/internals/simulator.md` has the whole grammar.
//!
//! Reading order: [`quantity`] and [`fault`] are what statements are made of, [`words`] and
//! [`parse`] read them, [`mod@print`] writes them, [`draw`] closes the choices, [`mod@run_setup`]
//! makes a [`crate::Setup`] of what is drawn, with the workloads of [`work`]; [`library`] are the
//! scenarios that come with the simulator.

pub mod draw;
pub mod fault;
pub mod library;
pub mod parse;
pub mod print;
pub mod quantity;
pub mod run_setup;
pub mod words;
pub mod work;

#[cfg(test)]
mod tests;

use tyr_types::{Durability, Error, Result, limits};

use self::fault::{Fault, FaultLine, When};
use self::quantity::{Micros, Share, Size, Span};
use crate::setup::Stores;

/// Most nodes that a scenario may have.
pub const NODES_MAX: u16 = 256;
/// Most clients that a scenario may have.
pub const CLIENTS_MAX: u16 = 256;
/// The longest run: a little more than a day of simulated time.
pub const LENGTH_MAX: Micros = Micros::seconds(100_000);
/// The keyspace that is there without being named.
pub const MAIN: &str = "main";

/// What a run is like, before or after a seed closed its choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What it is about, a line each: the comments at the top of the text.
    pub about: Vec<String>,
    /// Nodes at the start.
    pub nodes: Span<u16>,
    /// Replicas of each chunk.
    pub replication: Span<u16>,
    /// Sessions of clients.
    pub clients: Span<u16>,
    /// How long a client rests between two things.
    pub rest: Span<Micros>,
    /// The highest feature level of the program that the nodes begin with, if it is an older one;
    /// each has this one when it starts again.
    pub older: Option<u8>,
    /// So long clients begin new work.
    pub length: Micros,
    /// The keyspaces, numbered from 1; the first is [`MAIN`].
    pub keyspaces: Vec<Keyspace>,
    /// What clients do.
    pub workloads: Vec<WorkloadLine>,
    /// How the network is when nothing is wrong.
    pub network: Network,
    /// How far clocks are off.
    pub clocks: Clocks,
    /// How long a disk takes to sync.
    pub sync: Span<Micros>,
    /// How often the log of a node is cut.
    pub checkpoint: Checkpoints,
    /// What nodes keep their chunks in.
    pub stores: Stores,
    /// What goes wrong.
    pub faults: Vec<FaultLine>,
    /// When all faults end; at the end of the run when not said.
    pub heal: Option<Micros>,
    /// The share of runs that may be more than the protocol promises to bear (F7).
    pub unjudged: Share,
}

/// How often the log of a node is cut, and a checkpoint stands for what is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// In two of three runs, as often as the seed says.
    Sometimes,
    /// Never.
    Never,
    /// So long after the last time.
    Every(Span<Micros>),
}

/// A keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    /// What the text calls it.
    pub name: String,
    /// Bytes of a chunk.
    pub chunk: Size,
    /// Replicas of each chunk; as many as the scenario says when not said.
    pub replication: Option<u16>,
    /// Live replicas that a write needs; more than half of all when not said.
    pub live: Option<u16>,
    /// Whether older versions stay for snapshots.
    pub is_multi_versioned: bool,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// How many first bytes of a key place its blob (H); all when not said.
    pub placed: Option<u8>,
    /// Whether leases of its keys keep others off (K2).
    pub is_guarded: bool,
}

impl Keyspace {
    /// A keyspace of this name with nothing said of it.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            chunk: Size(4096),
            replication: None,
            live: None,
            is_multi_versioned: true,
            durability: Durability::Sync,
            placed: None,
            is_guarded: false,
        }
    }

    /// Replicas of each chunk, in this scenario: the fewest and the most.
    pub fn replicas(&self, scenario: &Scenario) -> Span<u16> {
        self.replication.map_or(scenario.replication, Span::exactly)
    }
}

/// Something that clients do: which workload, with which parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadLine {
    /// The workload's name.
    pub name: String,
    /// The keyspaces that its blobs are in, one after the other; [`MAIN`] when none is named.
    pub keyspaces: Vec<String>,
    /// Its parameters, in the order of the text; those not named have their defaults.
    pub parameters: Vec<(String, u64)>,
}

/// How the network is when nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// How long a message takes.
    pub delay: Span<Micros>,
    /// The share of messages that take up to twenty times longer.
    pub slow: Share,
    /// The share of messages that are lost.
    pub loss: Share,
    /// The share of messages that come twice.
    pub duplicate: Share,
}

/// How far clocks are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// A wall clock starts off by up to this.
    pub offset: Micros,
    /// And runs faster or slower by up to this.
    pub drift: Share,
    /// A monotonic clock runs faster or slower by up to this.
    pub monotonic: Share,
    /// Wall clocks jump by up to this now and then, drawn for each; not when `None`.
    pub jump: Option<Micros>,
}

impl Default for Scenario {
    fn default() -> Self {
        let span = |low, high| Span { low: Micros(low), high: Micros(high) };
        let delay = span(200, 2_000);
        let network = Network { delay, slow: Share(50), loss: Share(0), duplicate: Share(0) };
        let (offset, drift, monotonic) = (Micros(10_000), Share(10), Share(10));
        Self {
            about: Vec::new(),
            nodes: Span::exactly(5),
            replication: Span::exactly(3),
            clients: Span::exactly(8),
            rest: span(0, 60_000),
            older: None,
            length: Micros::seconds(30),
            keyspaces: vec![Keyspace::named(MAIN)],
            workloads: Vec::new(),
            network,
            clocks: Clocks { offset, drift, monotonic, jump: None },
            sync: span(200, 3_000),
            checkpoint: Checkpoints::Sometimes,
            stores: Stores::Model,
            faults: Vec::new(),
            heal: None,
            unjudged: Share(0),
        }
    }
}

impl Scenario {
    /// When all faults end.
    pub fn healed_at(&self) -> Micros {
        self.heal.unwrap_or(self.length)
    }

    /// Checks what no single statement shows.
    ///
    /// # Errors
    /// `InvalidArgument` with what does not fit.
    pub fn check(&self) -> Result<()> {
        if self.workloads.is_empty() {
            return Err(Error::invalid("a scenario has at least one workload"));
        }
        self.keyspaces.iter().try_for_each(|keyspace| self.check_keyspace(keyspace))?;
        for name in self.workloads.iter().flat_map(|line| &line.keyspaces) {
            self.keyspace(name)?;
        }
        if let Some(name) = self.needs_real().filter(|_| self.stores == Stores::Model) {
            return Err(Error::invalid(format!("\"workload {name}\" needs \"store real\"")));
        }
        let healed = self.healed_at();
        if healed > self.length {
            return Err(Error::invalid(format!(
                "healing at {healed} comes after the end at {}",
                self.length
            )));
        }
        self.faults.iter().try_for_each(|line| self.check_fault(line, healed))
    }

    /// The place of the keyspace of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with those there are.
    pub fn keyspace(&self, name: &str) -> Result<usize> {
        self.keyspaces.iter().position(|keyspace| keyspace.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.keyspaces.iter().map(|it| it.name.as_str()).collect();
            Error::invalid(format!("no keyspace \"{name}\"; there are {}", names.join(", ")))
        })
    }

    fn check_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        let replicas = keyspace.replicas(self);
        if replicas.high > self.nodes.low {
            return Err(Error::invalid(format!(
                "replication {} needs as many nodes, there may be {}",
                replicas.high, self.nodes.low
            )));
        }
        if let Some(live) = keyspace.live.filter(|live| *live > replicas.low) {
            return Err(Error::invalid(format!(
                "{live} live replicas need as much replication, it may be {}",
                replicas.low
            )));
        }
        let (size, low, high) = (keyspace.chunk.0, limits::CHUNK_SIZE_MIN, limits::CHUNK_SIZE_MAX);
        if !size.is_power_of_two() || !(low..=high).contains(&size) {
            return Err(Error::invalid(format!(
                "a chunk is a power of two from 4 KiB to 256 MiB, not {}",
                keyspace.chunk
            )));
        }
        let same = self.keyspaces.iter().filter(|other| other.name == keyspace.name);
        match same.count() {
            1 => Ok(()),
            _ => Err(Error::invalid(format!("two keyspaces are named \"{}\"", keyspace.name))),
        }
    }

    /// Whether something goes wrong in it that only a model of a store has: bytes that rot.
    pub fn needs_model(&self) -> bool {
        self.faults.iter().any(|line| matches!(line.fault, Fault::Rot(_)))
    }

    /// The workload, if there is one, that does what only the store itself can: listings.
    pub fn needs_real(&self) -> Option<&str> {
        let mut names = self.workloads.iter().map(|line| line.name.as_str());
        names.find(|name| ["pages", "rooms"].contains(name))
    }

    fn check_fault(&self, line: &FaultLine, healed: Micros) -> Result<()> {
        if self.stores == Stores::Real && matches!(line.fault, Fault::Rot(_)) {
            return Err(Error::invalid(format!("\"{line}\" needs \"store model\"")));
        }
        let latest = match line.when {
            When::At(span) | When::Every(span) => span.high,
        };
        if latest >= healed {
            return Err(Error::invalid(format!(
                "\"{line}\" may happen at {latest}, when all is healed since {healed}"
            )));
        }
        if let Fault::Drop(name) | Fault::AcceptLoss(name) = &line.fault {
            self.keyspace(name)?;
        }
        if let Some(client) = line.fault.named_client()
            && client >= self.clients.high
        {
            return Err(Error::invalid(format!(
                "\"{line}\" names client {client}; there are {}, from 0 on",
                self.clients.high
            )));
        }
        let joins = self.faults.iter().filter(|line| matches!(line.fault, Fault::Join(_)));
        let nodes = self.nodes.high.saturating_add(joins.count() as u16);
        match line.fault.named_nodes().into_iter().find(|node| *node >= nodes) {
            Some(node) => Err(Error::invalid(format!(
                "\"{line}\" names node {node}; nodes are 0 to {}, joining ones among them",
                nodes.saturating_sub(1)
            ))),
            None => Ok(()),
        }
    }
}
