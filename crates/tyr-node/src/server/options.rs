//! How a node of a cluster is started.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tyr_protocol::lease::LeaseConfig;
use tyr_types::{Error, NodeId, Result};

use crate::router::access::Key;
use crate::router::network::{NetworkConfig, NodeAddresses};

/// The smallest cache: below that a few large transactions would hold each other up.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// How a node of a cluster is started. The defaults suit a laptop as well as a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its folder.
    pub folder: PathBuf,
    /// Its number; may be left out when the folder knows it.
    pub node: Option<NodeId>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The nodes that the cluster forms with, itself included, and where they are.
    pub nodes: BTreeMap<NodeId, NodeAddresses>,
    /// The cluster's secret; `None`: nothing is checked.
    pub secret: Option<Key>,
    /// Memory for recent operations and cache, in bytes. Default 128 MiB, at least 8 MiB.
    pub cache_bytes: u64,
    /// Bytes of log after which a fold begins. Default 64 MiB.
    pub fold_log_bytes: u64,
    /// After this long a snapshot is too old (V1). Default 5 minutes.
    pub snapshot_timeout: Duration,
    /// How long versions stay that nobody is known to read (V4). Default 100 ms.
    pub linger: Duration,
    /// Leases, as the monitors give them (M3).
    pub lease: LeaseConfig,
    /// The network's bounds and files for TLS.
    pub network: NetworkConfig,
}

impl ServerOptions {
    /// The defaults for a node in this folder that listens here.
    pub fn new(folder: PathBuf, listen: SocketAddr) -> Self {
        Self {
            folder,
            node: None,
            listen,
            nodes: BTreeMap::new(),
            secret: None,
            cache_bytes: 128 << 20,
            fold_log_bytes: 64 << 20,
            snapshot_timeout: Duration::from_secs(300),
            linger: Duration::from_millis(100),
            lease: LeaseConfig::default(),
            network: NetworkConfig::default(),
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.cache_bytes < CACHE_BYTES_MIN {
            return Err(Error::invalid(format!(
                "the cache is at least 8 MiB ({CACHE_BYTES_MIN} bytes), not {}",
                self.cache_bytes
            )));
        }
        Ok(())
    }
}
