//! How a node of a cluster is started.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tyr_engine::need::Limits;
use tyr_protocol::lease::LeaseConfig;
use tyr_protocol::map::ring;
use tyr_protocol::movement::scrub::ScrubConfig;
use tyr_types::{Error, NodeId, Result, limits};

use tyr_control::NodeRecord;
use tyr_gossip::GossipConfig;
use tyr_monitors::InitialNode;
use tyr_net::NetworkConfig;
use tyr_net::access::{Key, Users};
use tyr_trace::TraceOptions;

/// Snapshots that were begun this long before a fold are not disturbed by it, in microseconds.
pub(super) const FOLD_GRACE_US: u64 = 2_000_000;

/// The smallest cache: below that a few large transactions would hold each other up.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// How a node comes to its cluster, the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Formation {
    /// Its folder knows.
    #[default]
    Known,
    /// These form a cluster, itself among them.
    Initial(Vec<InitialNode>),
    /// It joins the cluster that one of these addresses belongs to.
    Join(Vec<String>),
}

/// How a node of a cluster is started. The defaults suit a laptop as well as a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its folder.
    pub folder: PathBuf,
    /// Its number; may be left out when the folder knows it, or the cluster is to give it one.
    pub node: Option<NodeId>,
    /// Where it listens, for nodes, clients and control connections.
    pub listen: SocketAddr,
    /// Where others reach it, `host:port`; where it listens when there are none.
    pub advertise: Vec<String>,
    /// Where it serves metrics and its state by HTTP, for others to know; it is served by whoever
    /// started the node.
    pub http_address: Option<String>,
    /// How it comes to its cluster.
    pub formation: Formation,
    /// Whether it is a monitor. Those that form a cluster say it with [`Formation::Initial`].
    pub is_monitor: bool,
    /// How much it takes of the data, compared with others. Default 100.
    pub weight: u32,
    /// Its failure domain: no two replicas go to the same one while there are enough.
    pub domain: Option<u32>,
    /// The cluster's secret; `None`: nothing is checked.
    pub secret: Option<Key>,
    /// Memory for recent operations and cache, in bytes. Default 512 MiB, at least 8 MiB.
    pub cache_bytes: u64,
    /// Bytes of log after which a fold begins. Default 256 MiB.
    pub fold_log_bytes: u64,
    /// Bytes that may be held for kept snapshots on its disk; beyond, the oldest is dropped (V7).
    /// Default 64 GiB.
    pub kept_bytes_max: u64,
    /// Bytes a second at which it copies what it is to hold, at most. Default: as many as come.
    pub copy_rate: Option<u64>,
    /// After this long a snapshot is too old (V1). Default 5 minutes.
    pub snapshot_timeout: Duration,
    /// How long versions stay that nobody is known to read (V4), unless memory is short.
    /// Default 5 s.
    pub linger: Duration,
    /// How fast replicas are compared, and how often (D4). Default 4 MiB a second, once a day.
    pub scrub: ScrubConfig,
    /// Leases, as the monitors give them (M3); `None` for the usual ones.
    pub lease: Option<LeaseConfig>,
    /// How gossip finds who is gone (M2).
    pub gossip: GossipConfig,
    /// How often the leader of the monitors is heard of, and after how long at most a silent one is
    /// replaced; `None` for the usual times.
    pub heartbeat_and_election: Option<(Duration, Duration)>,
    /// The network's bounds and files for TLS.
    pub network: NetworkConfig,
    /// Which transactions are traced, and where to; `None` for none.
    pub trace: Option<TraceOptions>,
}

impl ServerOptions {
    /// The defaults for a node in this folder that listens here.
    pub fn new(folder: PathBuf, listen: SocketAddr) -> Self {
        Self {
            folder,
            node: None,
            listen,
            advertise: Vec::new(),
            http_address: None,
            formation: Formation::Known,
            is_monitor: false,
            weight: ring::WEIGHT_DEFAULT,
            domain: None,
            secret: None,
            cache_bytes: 512 << 20,
            fold_log_bytes: 256 << 20,
            kept_bytes_max: limits::KEPT_BYTES_DEFAULT,
            copy_rate: None,
            snapshot_timeout: Duration::from_secs(300),
            linger: Duration::from_secs(5),
            scrub: ScrubConfig { rate: 4 << 20, ..ScrubConfig::default() },
            lease: None,
            gossip: GossipConfig::default(),
            heartbeat_and_election: None,
            network: NetworkConfig::default(),
            trace: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.cache_bytes < CACHE_BYTES_MIN {
            return Err(Error::invalid(format!(
                "the cache is at least 8 MiB ({CACHE_BYTES_MIN} bytes), not {}",
                self.cache_bytes
            )));
        }
        if self.advertise.is_empty() && self.listen.ip().is_unspecified() {
            return Err(Error::invalid(format!(
                "others cannot reach a node at {}; say where they can (advertise)",
                self.listen
            )));
        }
        self.trace.iter().try_for_each(TraceOptions::validate)?;
        self.record(0, 1).check()
    }

    /// Nobody yet, of a cluster with this secret or without one.
    pub(crate) fn users(&self) -> Users {
        match &self.secret {
            Some(secret) => Users::with_secret(secret),
            None => Users::unchecked(),
        }
    }

    /// When the keeper folds.
    pub(crate) fn fold_limits(&self) -> Limits {
        Limits {
            cache_bytes: usize::try_from(self.cache_bytes).unwrap_or(usize::MAX),
            fold_log_bytes: self.fold_log_bytes,
            grace_us: FOLD_GRACE_US,
        }
    }

    /// What the node tells others of itself.
    pub(crate) fn record(&self, identity: u128, incarnation: u64) -> NodeRecord {
        let addresses = match self.advertise.is_empty() {
            true => vec![self.listen.to_string()],
            false => self.advertise.clone(),
        };
        debug_assert!(!addresses.is_empty(), "others reach it somewhere");
        NodeRecord {
            identity,
            addresses,
            http_address: self.http_address.clone(),
            weight: self.weight,
            domain: self.domain,
            is_monitor: self.is_monitor,
            incarnation,
            ..NodeRecord::at("")
        }
    }
}
