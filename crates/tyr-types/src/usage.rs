//! How much there is: of a keyspace, what quotas are compared with and nodes tell each other, and
//! of a store as a whole, what its users are told.

use std::time::Duration;

use crate::id::NodeId;
use crate::keyspace::KeyspaceInfo;

/// What of a keyspace counts with a node: blobs whose first chunk it is the authority over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceUsage {
    /// How many.
    pub blobs: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Operations on it that clients ask this node for in a second, where they are limited.
    pub operations: u32,
}

impl KeyspaceUsage {
    /// The same when a blob that had the one size has the other; `None` is a blob that is not.
    #[must_use]
    pub fn changed(self, before: Option<u64>, after: Option<u64>) -> Self {
        let step =
            |total: u64, minus: u64, plus: u64| total.saturating_sub(minus).saturating_add(plus);
        let size = |of: Option<u64>| of.unwrap_or(0);
        let one = |of: Option<u64>| u64::from(of.is_some());
        Self {
            blobs: step(self.blobs, one(before), one(after)),
            bytes: step(self.bytes, size(before), size(after)),
            ..self
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            blobs: self.blobs.saturating_add(other.blobs),
            bytes: self.bytes.saturating_add(other.bytes),
            operations: self.operations.saturating_add(other.operations),
        }
    }
}

/// How much there is in a store, and how much room it has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Each keyspace, by name.
    pub keyspaces: Vec<KeyspaceSize>,
    /// Each node of a cluster, by number; of a store in this process one, number 0.
    pub nodes: Vec<NodeSpace>,
}

impl Usage {
    /// The disks of all nodes that told of theirs, together.
    pub fn disk(&self) -> DiskSpace {
        let told = self.nodes.iter().filter_map(|node| node.disk.as_ref().ok());
        told.fold(DiskSpace::default(), |sum, disk| sum.plus(*disk))
    }
}

/// How much there is of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceSize {
    /// Which keyspace, and how it is configured.
    pub info: KeyspaceInfo,
    /// Its blobs.
    pub blobs: u64,
    /// Their sizes together, holes included and replicas not; on a cluster with what is uploaded
    /// ahead of its transaction.
    pub bytes: u64,
    /// What it may have at most.
    pub limit: SizeLimit,
    /// How long ago all its blobs were counted, one by one, at the node where that is longest ago;
    /// changes since are followed. Zero where the numbers are exact: in a store in this process.
    /// `None`: they are not all counted yet, and there may be more.
    pub counted_ago: Option<Duration>,
}

/// What a keyspace may have at most. What is not limited is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLimit {
    /// Blobs.
    pub blobs: Option<u64>,
    /// Bytes of all its blobs together.
    pub bytes: Option<u64>,
}

/// The room that a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpace {
    /// Its number.
    pub node: NodeId,
    /// Where it is reached, `host:port`; empty for a store in this process.
    pub address: String,
    /// Its disk, or why that is not known.
    pub disk: std::result::Result<DiskSpace, String>,
}

/// How full a disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes of the file system that the store's folder is on.
    pub size_bytes: u64,
    /// Those of them that nobody has taken yet.
    pub free_bytes: u64,
    /// Bytes that the store takes: its log, its index and its extents. All replicas count.
    pub taken_bytes: u64,
}

impl DiskSpace {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            size_bytes: self.size_bytes.saturating_add(other.size_bytes),
            free_bytes: self.free_bytes.saturating_add(other.free_bytes),
            taken_bytes: self.taken_bytes.saturating_add(other.taken_bytes),
        }
    }
}
