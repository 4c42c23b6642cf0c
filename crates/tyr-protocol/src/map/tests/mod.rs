//! Tests of the cluster map.

mod balance;
mod chains;
mod changes;
mod difference;
mod kept;
mod loss;
mod places;

use std::collections::BTreeSet;

use tyr_types::{BlobName, Key, KeyspaceConfig, KeyspaceId, NodeId, PlacedBy};

use super::{Change, ClusterMap, Domain, Newcomer, Share, hash};

/// A number below `bound`, the `count`-th of this seed.
fn number(seed: u64, count: u64, bound: u64) -> u64 {
    hash::place(seed.wrapping_mul(0xD134_2543_DE82_EF95), count) % bound
}

/// Chunks of 4 KiB, and so many replicas.
fn replicated(replication: u8) -> KeyspaceConfig {
    KeyspaceConfig { chunk_size: 4096, replication, ..KeyspaceConfig::default() }
}

/// So many equal nodes and one keyspace with three replicas.
fn cluster(nodes: u16) -> ClusterMap {
    ClusterMap::of(nodes, &[replicated(3)])
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn newcomer(node: u16) -> Newcomer {
    Newcomer { node: NodeId(node), incarnation: 1, ..Newcomer::default() }
}

fn in_domain(node: u16, domain: u32) -> Newcomer {
    let share = Share { domain: Some(Domain(domain)), ..Share::default() };
    Newcomer { share, ..newcomer(node) }
}

fn nodes<const N: usize>(numbers: [u16; N]) -> BTreeSet<NodeId> {
    numbers.map(NodeId).into()
}

/// The map after these changes.
fn after(map: &ClusterMap, changes: &[Change]) -> ClusterMap {
    changes.iter().fold(map.clone(), |map, change| map.changed(change).unwrap())
}

/// The map after all recipients have caught up.
fn settled(map: &ClusterMap) -> ClusterMap {
    map.changed(&Change::Settle(map.recipients_of_any())).unwrap()
}
