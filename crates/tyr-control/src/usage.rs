//! What a node says of how much there is with it: asked of each node, and added up by who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tyr_types::{Error, Result};

use super::client::MetadataClient;
use super::message::{Answer, Request};
use crate::record::NodeRecord;

/// Nodes that are asked at once.
const ASKED_AT_ONCE: usize = 64;

/// How much there is with a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUsage {
    /// Its number.
    pub node: u16,
    /// Bytes of its disk; of them, free, and taken by the node.
    pub disk: NodeDisk,
    /// What it counts of each keyspace.
    pub keyspaces: Vec<KeyspaceCount>,
    /// What it holds for each kept snapshot. Programs of before do not say it, and pass over what
    /// comes after what they know.
    #[serde(deserialize_with = "kept_or_nothing")]
    pub kept: Vec<KeptCount>,
}

/// What a node holds for a kept snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCount {
    /// The snapshot's name.
    pub name: String,
    /// Bytes that were replaced after it and before the next one.
    pub bytes: u64,
}

/// What is said of kept snapshots, or nothing where the message ends before it.
fn kept_or_nothing<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<KeptCount>, D::Error> {
    Ok(Vec::deserialize(deserializer).unwrap_or_default())
}

/// How full a node's disk is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDisk {
    /// Of the file system.
    pub size: u64,
    /// That nobody has taken yet.
    pub free: u64,
    /// That the node takes.
    pub taken: u64,
}

/// What counts of a keyspace at a node: blobs of whose first chunk it is the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyspaceCount {
    /// The keyspace's number.
    pub keyspace: u32,
    /// Blobs.
    pub blobs: u64,
    /// Their sizes, with what is uploaded ahead of its transaction.
    pub bytes: u64,
    /// When all of it was last counted, if it was yet.
    pub counted: Option<CountedAt>,
    /// What the keyspace may have in the whole cluster: blobs.
    pub blobs_max: Option<u64>,
    /// And bytes.
    pub bytes_max: Option<u64>,
}

/// When all of a keyspace was counted at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedAt {
    /// The epoch since which who holds what was as it was then.
    pub moved: u32,
    /// How long ago that was, in milliseconds.
    pub ago_ms: u64,
}

impl MetadataClient {
    /// What each of these nodes says of how much there is with it, or why it does not say.
    pub async fn usage_of(
        &self,
        nodes: BTreeMap<u16, NodeRecord>,
    ) -> BTreeMap<u16, Result<NodeUsage>> {
        let room = Arc::new(Semaphore::new(ASKED_AT_ONCE));
        let mut asking = JoinSet::new();
        for (node, record) in nodes {
            let (client, room) = (self.clone(), Arc::clone(&room));
            asking.spawn(async move {
                let _place = room.acquire().await;
                (node, client.usage_at(node, &record.addresses).await)
            });
        }
        asking.join_all().await.into_iter().collect()
    }

    /// Asks a node, at each of its addresses until somebody answers.
    async fn usage_at(&self, node: u16, addresses: &[String]) -> Result<NodeUsage> {
        let mut last = Error::unavailable(format!("node {node} has no address"));
        for address in addresses {
            match self.ask_node(address, Request::Usage).await {
                Ok(Some(Answer::Usage(usage))) if usage.node == node => return Ok(usage),
                Ok(Some(Answer::Usage(usage))) => {
                    last = Error::unavailable(format!(
                        "at {address} answers node {}: two nodes have one address, or the one that \
                         node {node} gives (advertise) leads elsewhere",
                        usage.node
                    ));
                }
                Ok(Some(other)) => last = other.unexpected(),
                Ok(None) => {
                    return Err(Error::unavailable(format!(
                        "the program of node {node} is of a release that does not tell; update it"
                    )));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
