//! Where parts of a blob lie.

use crate::id::NodeId;
use crate::range::ByteRange;

/// A node that holds a part of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// Where it is reached, `host:port`; empty while that is not known.
    pub address: String,
    /// Its failure domain, if it has one.
    pub domain: Option<u32>,
}

/// Where a part of a blob lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkLocation {
    /// Its bytes of the blob: a chunk, cut to what was asked for.
    pub range: ByteRange,
    /// The nodes that hold it and are up, its authority first. None for a store in this process.
    pub replicas: Vec<Replica>,
}
