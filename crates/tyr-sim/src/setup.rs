//! What a run is made of.

use tyr_protocol::Rule;
use tyr_protocol::movement::scrub::ScrubConfig;
use tyr_protocol::versions::Policy;
use tyr_types::{KeyspaceConfig, KeyspaceId, TransactionId};

use crate::fault::FaultPlan;
use crate::store::StoreConfig;
use crate::workload::Workload;

/// What a run is made of: from it alone everything follows.
pub struct Setup {
    /// Where all chance comes from.
    pub seed: u64,
    /// Nodes 0 to `nodes - 1` form the cluster at the start.
    pub nodes: u16,
    /// The highest feature level of the program that they begin with, if it is an older one.
    pub older: Option<u8>,
    /// Sessions of clients.
    pub clients: u16,
    /// The keyspaces there are from the start, numbered from 1.
    pub keyspaces: Vec<KeyspaceConfig>,
    /// So long clients begin new work and faults happen; then everything is mended.
    pub duration_us: u64,
    /// How the network is when nothing is wrong.
    pub network: Network,
    /// How far clocks are off.
    pub clocks: Clocks,
    /// How long disks take.
    pub disks: Disks,
    /// What nodes keep their chunks in.
    pub stores: Stores,
    /// How long nodes keep versions.
    pub versions: Policy,
    /// How fast nodes compare replicas.
    pub scrub: ScrubConfig,
    /// Versions of a chunk above which a node's memory counts as short (V4).
    pub versions_max: usize,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Shortest and longest pause of a client between what it does, in microseconds.
    pub pause_us: (u64, u64),
    /// What clients do.
    pub workloads: Vec<Box<dyn Workload>>,
    /// A rule that does not hold in this run.
    pub broken: Option<Rule>,
    /// The machines' invariants are checked after every so many steps; 1 is after each.
    pub check_every: u32,
    /// What is written down of the run.
    pub trace: Trace,
}

/// How the network is when nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Shortest and longest time of a message in microseconds, drawn anew for each.
    pub delay_us: (u64, u64),
    /// The share of messages that take up to twenty times longer, in millionths.
    pub slow: u32,
    /// The share of messages that are lost, in millionths.
    pub loss: u32,
    /// The share of messages that come twice, in millionths.
    pub duplication: u32,
    /// The share of messages that go through the wire format and back, in millionths.
    pub encoded: u32,
}

/// How far clocks are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// A node's wall clock starts off by up to so many microseconds.
    pub offset_us: u64,
    /// And runs faster or slower by up to this share, in millionths.
    pub drift: u32,
    /// A node's monotonic clock runs faster or slower by up to this share, in millionths. Leases
    /// allow for 2 %.
    pub monotonic_drift: u32,
}

/// How long disks take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disks {
    /// Shortest and longest time of a sync in microseconds.
    pub sync_us: (u64, u64),
    /// Shortest and longest time from one checkpoint of a node's log to the next; never, if none.
    pub checkpoint_us: Option<(u64, u64)>,
}

/// What nodes keep their chunks and their logs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stores {
    /// A model, which is faster and trusts nobody.
    #[default]
    Model,
    /// The store and the engine of a node, on a disk that loses power.
    Real,
}

/// What is written down of a run; its hash is kept always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing.
    #[default]
    Off,
    /// What is about this transaction.
    Transaction(TransactionId),
    /// Everything.
    All,
}

impl Default for Network {
    fn default() -> Self {
        Self { delay_us: (200, 2_000), slow: 5_000, loss: 0, duplication: 0, encoded: 0 }
    }
}

impl Default for Clocks {
    fn default() -> Self {
        Self { offset_us: 10_000, drift: 1_000, monotonic_drift: 1_000 }
    }
}

impl Default for Disks {
    fn default() -> Self {
        Self { sync_us: (200, 3_000), checkpoint_us: None }
    }
}

impl Setup {
    /// Five nodes, thirty seconds, one keyspace of small chunks with three replicas, no faults and
    /// no work yet: what a run sets besides is what it is about.
    pub fn new(seed: u64) -> Self {
        let keyspace = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        Self {
            seed,
            nodes: 5,
            older: None,
            clients: 8,
            keyspaces: vec![keyspace],
            duration_us: 30_000_000,
            network: Network::default(),
            clocks: Clocks::default(),
            disks: Disks::default(),
            stores: Stores::Model,
            versions: Policy { read_timeout_us: 300_000_000, linger_us: 5_000_000 },
            scrub: ScrubConfig::default(),
            versions_max: 64,
            faults: FaultPlan::default(),
            pause_us: (0, 60_000),
            workloads: Vec::new(),
            broken: None,
            check_every: 64,
            trace: Trace::Off,
        }
    }

    /// What each node's store is told.
    pub fn store(&self) -> StoreConfig {
        let sizes = self.keyspaces.iter().map(|keyspace| keyspace.chunk_size);
        let chunk_sizes = (1..).map(KeyspaceId).zip(sizes).collect();
        let (policy, versions_max, broken) = (self.versions, self.versions_max, self.broken);
        StoreConfig { chunk_sizes, policy, versions_max, broken }
    }
}
