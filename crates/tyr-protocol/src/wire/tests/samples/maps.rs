//! Cluster maps.

use super::*;

pub(super) fn map() -> Arc<ClusterMap> {
    let newcomer = |node: u16, incarnation: u64, domain: Option<Domain>| Newcomer {
        node: NodeId(node),
        incarnation,
        share: Share { weight: 150, domain },
        level: 1,
    };
    let config = KeyspaceConfig {
        chunk_size: 4096,
        replication: 3,
        live_replicas_min: Some(1),
        is_multi_versioned: true,
        durability: Durability::Buffered,
        is_compressed: false,
        placed_by: PlacedBy::Key,
        is_guarded: false,
    };
    let name = KeyspaceName::new("messung").unwrap();
    let changes = [
        Change::CreateKeyspace { name, config, seed: u64::MAX },
        Change::Down(NodeId(1)),
        Change::Return { node: NodeId(1), incarnation: 2, has_disk: true, level: 1 },
        Change::Down(NodeId(2)),
        Change::Join(vec![newcomer(300, 5, Some(Domain(9)))]),
    ];
    let members = [newcomer(0, 1, None), newcomer(1, 1, Some(Domain(9))), newcomer(2, 1, None)];
    let first = ClusterMap::form(&members).unwrap();
    Arc::new(changes.iter().fold(first, |map, change| map.changed(change).unwrap()))
}

/// A map of level 2, in which what nodes alone had of two keyspaces is given up.
pub fn map_with_loss() -> ClusterMap {
    let mut map = cluster_map();
    map.level = 2;
    map.nodes.values_mut().for_each(|node| node.level = 2);
    let single = |name: &str, is_dropped| MapKeyspace {
        name: KeyspaceName::new(name).unwrap(),
        config: KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() }.explicit(),
        seed: 7,
        is_dropped,
        lost: [(NodeId(2), Epoch(5)), (NodeId(300), Epoch(6))].into(),
    };
    map.keyspaces.insert(KeyspaceId(2), single("scratch", false));
    map.keyspaces.insert(KeyspaceId(3), single("gone", true));
    map.keyspaces_created = 3;
    map
}

/// A map of level 18, which keeps two snapshots.
pub fn map_with_kept() -> ClusterMap {
    let mut map = cluster_map().speaking(18);
    for (name, epoch, day_us) in [("monday", 5, 1_700_000_000_000_000), ("a:1", 6, 300)] {
        let kept = MapKept { epoch: Epoch(epoch), day_us };
        map.kept.insert(KeptName::new(name).unwrap(), kept);
    }
    map
}

/// A cluster map.
pub fn cluster_map() -> ClusterMap {
    (*map()).clone()
}
