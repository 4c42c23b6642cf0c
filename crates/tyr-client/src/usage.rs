//! How much there is in a cluster: what its nodes count, each of the blobs that it is the authority
//! of, added up; and how full their disks are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tyr_control::NodeRecord;
use tyr_control::usage::{NodeDisk, NodeUsage};
use tyr_protocol::map::{ClusterMap, MapKeyspace, MapNode, Membership, NodeState};
use tyr_types::{DiskSpace, KeyspaceId, KeyspaceSize, NodeId, NodeSpace, Result, SizeLimit, Usage};

use super::Client;
use super::control::UsageOfNodes;
use super::keyspaces::info_of;

impl Client {
    /// How much there is of each keyspace, and how full the nodes' disks are: asked of all nodes,
    /// which answer from what they count all the time.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer. What a node does not say is in the answer.
    pub async fn usage(&self) -> Result<Usage> {
        let (map, nodes, told) = self.ask_nodes().await?;
        Ok(added_up(&map, &nodes, &told))
    }

    /// The newest map, who is in the cluster by it, and what those say who are up.
    pub(super) async fn ask_nodes(
        &self,
    ) -> Result<(Arc<ClusterMap>, BTreeMap<u16, NodeRecord>, UsageOfNodes)> {
        let (map, bootstrap) = self.newest().await?;
        let mut nodes = bootstrap.nodes;
        nodes.retain(|node, _| map.membership(NodeId(*node)) != Membership::Out);
        let mut asked = nodes.clone();
        asked.retain(|node, _| state(&map, *node) != NodeState::Down);
        let told = self.control.usage_of(asked).await?;
        Ok((map, nodes, told))
    }
}

fn state(map: &ClusterMap, node: u16) -> NodeState {
    map.nodes.get(&NodeId(node)).map_or(NodeState::Down, |node| node.state)
}

fn added_up(map: &ClusterMap, nodes: &BTreeMap<u16, NodeRecord>, told: &UsageOfNodes) -> Usage {
    let open = map.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped);
    let mut keyspaces: Vec<KeyspaceSize> =
        open.map(|(id, keyspace)| size(map, *id, keyspace, told)).collect();
    keyspaces.sort_by(|one, next| one.info.name.cmp(&next.info.name));
    let space = |(node, record): (&u16, &NodeRecord)| NodeSpace {
        node: NodeId(*node),
        address: record.addresses.first().cloned().unwrap_or_default(),
        disk: disk(told.get(node)),
    };
    Usage { keyspaces, nodes: nodes.iter().map(space).collect() }
}

/// How much there is of a keyspace: the sum of what the nodes that are up count.
fn size(
    map: &ClusterMap,
    id: KeyspaceId,
    keyspace: &MapKeyspace,
    told: &UsageOfNodes,
) -> KeyspaceSize {
    let mut size = KeyspaceSize {
        info: info_of(id, keyspace),
        blobs: 0,
        bytes: 0,
        limit: SizeLimit::default(),
        counted_ago: Some(Duration::ZERO),
    };
    // What only nodes that are down have of it nobody counts.
    let is_away = |(node, known): (&NodeId, &MapNode)| {
        known.state != NodeState::Up
            && map.membership(*node) != Membership::Out
            && !keyspace.lost.contains_key(node)
    };
    if keyspace.config.replication == 1 && map.nodes.iter().any(is_away) {
        size.counted_ago = None;
    }
    for node in map.live().filter(|node| map.membership(*node) != Membership::Out) {
        let usage = told.get(&node.0).and_then(|told| told.as_ref().ok());
        let count = usage.and_then(|it| it.keyspaces.iter().find(|it| it.keyspace == id.0));
        // By another map it counts what others may count, too, or nobody does.
        let counted = count.and_then(|it| it.counted).filter(|it| it.moved == map.moved.0);
        let ago = counted.map(|it| Duration::from_millis(it.ago_ms));
        size.counted_ago = size.counted_ago.zip(ago).map(|(one, other)| one.max(other));
        if let Some(count) = count {
            size.blobs = size.blobs.saturating_add(count.blobs);
            size.bytes = size.bytes.saturating_add(count.bytes);
            size.limit = SizeLimit { blobs: count.blobs_max, bytes: count.bytes_max };
        }
    }
    size
}

fn disk(told: Option<&Result<NodeUsage>>) -> std::result::Result<DiskSpace, String> {
    match told {
        Some(Ok(NodeUsage { disk: NodeDisk { size, free, taken }, .. })) => {
            Ok(DiskSpace { size_bytes: *size, free_bytes: *free, taken_bytes: *taken })
        }
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it is down".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tyr_control::usage::{CountedAt, KeyspaceCount};
    use tyr_types::{Epoch, Error, KeyspaceConfig};

    use super::*;

    const MOVED: u32 = 5;

    fn map(replication: u8) -> ClusterMap {
        let config = KeyspaceConfig { replication, ..KeyspaceConfig::default() };
        ClusterMap { epoch: Epoch(7), moved: Epoch(MOVED), ..ClusterMap::of(3, &[config]) }
    }

    fn count(blobs: u64, moved: u32, ago_ms: u64) -> Result<NodeUsage> {
        let counted = Some(CountedAt { moved, ago_ms });
        let bytes_max = Some(1000);
        let count =
            KeyspaceCount { keyspace: 1, blobs, bytes: 10 * blobs, counted, ..Default::default() };
        let keyspaces = vec![KeyspaceCount { bytes_max, ..count }];
        let disk = NodeDisk { size: 100, free: 60, taken: 7 };
        Ok(NodeUsage { node: 0, disk, keyspaces, kept: Vec::new() })
    }

    fn usage(map: &ClusterMap, told: [Result<NodeUsage>; 3]) -> Usage {
        let nodes = (0..3).map(|node| (node, NodeRecord::at(format!("n{node}:1")))).collect();
        added_up(map, &nodes, &(0..3).zip(told).collect())
    }

    #[test]
    fn what_nodes_count_is_added_up_and_is_as_old_as_the_oldest_of_it() {
        let usage = usage(&map(3), [count(1, MOVED, 5), count(2, MOVED, 9000), count(3, MOVED, 0)]);
        let size = &usage.keyspaces[0];
        assert_eq!((size.blobs, size.bytes, size.limit.bytes), (6, 60, Some(1000)));
        assert_eq!(size.counted_ago, Some(Duration::from_secs(9)));
        let all = DiskSpace { size_bytes: 300, free_bytes: 180, taken_bytes: 21 };
        assert_eq!((usage.disk(), &*usage.nodes[2].address), (all, "n2:1"));
    }

    #[test]
    fn it_is_not_all_while_a_node_does_not_answer_or_counted_by_another_map() {
        let silent = || Err(Error::unavailable("it does not answer"));
        for told in [silent(), count(3, MOVED - 1, 0)] {
            let usage = usage(&map(3), [count(1, MOVED, 5), count(2, MOVED, 5), told]);
            assert_eq!(usage.keyspaces[0].counted_ago, None);
        }
        let usage = usage(&map(3), [count(1, MOVED, 5), count(2, MOVED, 5), silent()]);
        assert!(usage.nodes[2].disk.as_ref().unwrap_err().contains("does not answer"));
        assert_eq!((usage.keyspaces[0].blobs, usage.disk().size_bytes), (3, 200));
    }

    #[test]
    fn of_a_node_that_is_down_others_count_its_blobs_but_where_there_is_one_replica() {
        for (replication, is_all) in [(3, true), (1, false)] {
            let mut map = map(replication);
            map.nodes.get_mut(&NodeId(2)).unwrap().state = NodeState::Down;
            let usage = usage(&map, [count(1, MOVED, 0), count(2, MOVED, 0), count(9, MOVED, 0)]);
            let size = &usage.keyspaces[0];
            assert_eq!((size.blobs, size.counted_ago.is_some()), (3, is_all));
        }
    }
}
