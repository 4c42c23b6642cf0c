//! How a monitor is started.

use std::sync::Arc;
use std::time::Duration;

use tyr_protocol::lease::LeaseConfig;
use tyr_protocol::lease::config::{DURATION_US, RETURNING_SILENT_US};
use tyr_store::disk::Disk;
use tyr_types::{Error, NodeId, Result};

use tyr_control::record::NodeRecord;
use tyr_metadata::Path;

/// Most nodes that form a cluster; more join later.
const INITIAL_MAX: usize = 64;

/// One of the nodes that form a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialNode {
    /// Its number.
    pub node: NodeId,
    /// Where it is reached.
    pub address: String,
    /// Whether it is to be a monitor.
    pub is_monitor: bool,
}

/// Says for who looks back what a change of an entry is, by what was there and what is to be;
/// nothing of entries that it does not know.
pub type Describe =
    Arc<dyn Fn(&Path, Option<&[u8]>, Option<&[u8]>) -> Option<String> + Send + Sync>;

/// How a monitor is started.
#[derive(Clone)]
pub struct MonitorOptions {
    /// The node that it runs on.
    pub node: NodeId,
    /// Where it keeps what it must not forget: the folder `raft` of this disk.
    pub disk: Arc<dyn Disk>,
    /// What the node tells of itself; written again whenever it differs from what the others have.
    pub record: NodeRecord,
    /// The nodes that form the cluster. Of use only while there is none; empty for a node that
    /// others make a monitor later.
    pub initial: Vec<InitialNode>,
    /// What this node shows others to prove who it is.
    pub token: String,
    /// How often the leader is heard of. Default 250 ms.
    pub heartbeat: Duration,
    /// After this long at most a silent leader is replaced; three quarters of it at least.
    /// Default 2 s.
    pub election: Duration,
    /// How long leases last and silent nodes are waited for. By default a node is declared down
    /// after 2.5 s, so that there is a new map 5 s after a failure even if it was the leader's:
    /// 2 s until there is another, and then all nodes are heard anew.
    pub lease: LeaseConfig,
    /// What a change of an entry is, for the cluster log.
    pub describe: Describe,
    /// How long a request waits for a leader and for its answer. Default 10 s.
    pub patience: Duration,
}

impl MonitorOptions {
    /// The usual options.
    pub fn new(node: NodeId, disk: Arc<dyn Disk>, record: NodeRecord) -> Self {
        Self {
            node,
            disk,
            record,
            initial: Vec::new(),
            token: String::new(),
            heartbeat: Duration::from_millis(250),
            election: Duration::from_secs(2),
            describe: Arc::new(|_, _, _| None),
            lease: LeaseConfig {
                down_after_us: DURATION_US * 5 / 4,
                returning_down_after_us: RETURNING_SILENT_US,
                ..LeaseConfig::default()
            },
            patience: Duration::from_secs(10),
        }
    }

    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// `InvalidArgument` that says which do not.
    pub(super) fn check(&self) -> Result<()> {
        self.record.check()?;
        if self.election < self.heartbeat * 4 || self.heartbeat < Duration::from_millis(10) {
            return Err(Error::invalid(format!(
                "a heartbeat is 10 ms at least and an election four of them at least, not {:?} \
                 and {:?}",
                self.heartbeat, self.election
            )));
        }
        if self.lease.down_after_us <= self.lease.counted_us() {
            return Err(Error::invalid(format!(
                "a node is waited for longer than its lease, {} us, not {} us",
                self.lease.counted_us(),
                self.lease.down_after_us
            )));
        }
        let mut nodes: Vec<NodeId> = self.initial.iter().map(|it| it.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let is_sound = nodes.len() == self.initial.len() && nodes.len() <= INITIAL_MAX;
        let has_monitor = self.initial.iter().any(|it| it.is_monitor);
        if !is_sound || (!self.initial.is_empty() && !has_monitor) {
            return Err(Error::invalid(format!(
                "at most {INITIAL_MAX} nodes form a cluster, each named once, and at least one of \
                 them is a monitor"
            )));
        }
        Ok(())
    }

    /// What Raft is told of all this.
    ///
    /// A follower waits for its leader's lease, which is Raft's longest election timeout, and then
    /// for its own timeout: together from three quarters to the whole of [`Self::election`].
    pub(super) fn raft(&self) -> openraft::Config {
        let half = self.election.as_millis() as u64 / 2;
        let heartbeat = self.heartbeat.as_millis() as u64;
        debug_assert!(heartbeat + 1 < half, "an election outlasts a heartbeat that is late");
        openraft::Config {
            cluster_name: "tyr".to_owned(),
            heartbeat_interval: heartbeat,
            election_timeout_max: half,
            election_timeout_min: (half / 2).max(heartbeat + 1),
            // One piece of a snapshot, and installing it, on a disk that is busy with data.
            install_snapshot_timeout: 10_000,
            snapshot_max_chunk_size: 1 << 20,
            snapshot_policy: openraft::SnapshotPolicy::LogsSinceLast(1000),
            max_in_snapshot_log_to_keep: 100,
            max_payload_entries: 64,
            ..openraft::Config::default()
        }
    }
}
