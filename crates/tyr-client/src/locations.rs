//! Where the chunks of a blob lie: what the map says, with the nodes' addresses from the monitors.

use tyr_control::NodeRecord;
use tyr_control::status::Bootstrap;
use tyr_types::{BlobName, ByteRange, ChunkLocation, Error, NodeId, Replica, Result, limits};

use super::Client;

impl Client {
    /// Where the chunks of a range of a blob lie, by the newest map, whether there is such a blob
    /// or not.
    ///
    /// # Errors
    /// `NotFound` for a keyspace that is gone; `InvalidArgument` for a range of more than 65,536
    /// chunks; `Unavailable` when the monitors do not answer.
    pub async fn locations(&self, blob: &BlobName, range: ByteRange) -> Result<Vec<ChunkLocation>> {
        let (map, Bootstrap { nodes, .. }) = self.newest().await?;
        let keyspace = blob.keyspace;
        let chunk_size = map.chunk_size(keyspace).filter(|_| !map.is_dropped(keyspace));
        let chunk_size = chunk_size
            .ok_or_else(|| Error::not_found(format!("keyspace {} was dropped", keyspace.0)))?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let (first, last) = (range.start / chunk_size, (range.end - 1) / chunk_size);
        if last - first >= limits::LOCATIONS_MAX {
            return Err(Error::invalid(format!(
                "the range {} to {} has {} chunks of {chunk_size} bytes; ask for at most {} at a \
                 time",
                range.start,
                range.end,
                u128::from(last - first) + 1,
                limits::LOCATIONS_MAX
            )));
        }
        let location = |chunk: u64| {
            let start = chunk * chunk_size;
            let whole = ByteRange { start, end: start.saturating_add(chunk_size) };
            let holders = map.holders(blob, chunk);
            let up = holders.iter().filter(|node| map.is_live(**node));
            let replicas = up.map(|node| replica(*node, nodes.get(&node.0))).collect();
            ChunkLocation { range: range.intersection(whole), replicas }
        };
        Ok((first..=last).map(location).collect())
    }
}

fn replica(node: NodeId, record: Option<&NodeRecord>) -> Replica {
    let address = record.and_then(|record| record.addresses.first().cloned()).unwrap_or_default();
    Replica { node, address, domain: record.and_then(|record| record.domain) }
}
