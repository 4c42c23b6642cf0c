//! Any cluster map, as changes make it, and what it is made of.

use std::collections::BTreeMap;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tyr_types::{
    Durability, KeptName, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, PlacedBy, limits,
};

use super::words::{number_u32, number_u64};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap, Domain, Newcomer, Share};

/// A keyspace's configuration.
pub fn keyspace_config() -> BoxedStrategy<KeyspaceConfig> {
    let durability = select(vec![Durability::Memory, Durability::Buffered, Durability::Sync]);
    let placed_by = prop_oneof![
        Just(PlacedBy::Key),
        (1..=limits::PLACED_BY_LEN_MAX).prop_map(PlacedBy::First),
        any::<u8>().prop_map(PlacedBy::UpTo),
    ];
    let replicas = (1..=limits::REPLICATION_MAX, any::<u8>());
    (12..29_u32, replicas, any::<[bool; 3]>(), durability, placed_by)
        .prop_map(|(bits, (replication, live), flags, durability, placed_by)| {
            let [is_multi_versioned, is_compressed, is_guarded] = flags;
            KeyspaceConfig {
                chunk_size: 1 << bits,
                replication,
                live_replicas_min: Some(live % replication + 1),
                is_multi_versioned,
                durability,
                is_compressed,
                placed_by,
                is_guarded,
            }
        })
        .boxed()
}

/// A change of a cluster map of a few nodes; often one that is refused.
pub fn change() -> BoxedStrategy<Change> {
    let few = || (0..7_u16).prop_map(NodeId);
    let keyspace =
        (any::<u16>(), keyspace_config(), any::<u64>()).prop_map(|(name, config, seed)| {
            let name =
                KeyspaceName::new(&format!("{name}-raw_1.x")).expect("allowed letters, and few");
            Change::CreateKeyspace { name, config, seed }
        });
    prop_oneof![
        2 => vec(newcomer(), 1..3).prop_map(Change::Join),
        1 => few().prop_map(Change::Drain),
        1 => few().prop_map(Change::Remove),
        1 => (few(), 1..300_u32).prop_map(|(node, weight)| Change::SetWeight { node, weight }),
        2 => few().prop_map(Change::Down),
        2 => (few(), number_u64(), any::<bool>(), 1..5_u8)
            .prop_map(|(node, incarnation, has_disk, level)| Change::Return {
                node,
                incarnation,
                has_disk,
                level,
            }),
        1 => Just(Change::RaiseLevel),
        1 => btree_set(few(), 0..7).prop_map(Change::Settle),
        2 => keyspace,
        1 => (1..4_u32).prop_map(|number| Change::DropKeyspace(KeyspaceId(number))),
        1 => (1..4_u32).prop_map(|number| Change::AcceptLoss(KeyspaceId(number))),
        2 => (kept_name(), number_u64()).prop_map(|(name, day_us)| Change::Keep { name, day_us }),
        1 => kept_name().prop_map(Change::DropKept),
    ]
    .boxed()
}

fn kept_name() -> BoxedStrategy<KeptName> {
    let name = |number: u8| KeptName::new(&format!("{number}:a_Z")).expect("letters, and few");
    (0..3_u8).prop_map(name).boxed()
}

fn newcomer() -> BoxedStrategy<Newcomer> {
    let share = (1..300_u32, option::of(number_u32().prop_map(Domain)))
        .prop_map(|(weight, domain)| Share { weight, domain });
    ((0..7_u16).prop_map(NodeId), number_u64(), share, 1..5_u8)
        .prop_map(|(node, incarnation, share, level)| Newcomer { node, incarnation, share, level })
        .boxed()
}

/// A cluster map as changes make it.
pub fn cluster_map() -> BoxedStrategy<ClusterMap> {
    let members = vec(newcomer(), 1..5).prop_map(|members| {
        let distinct: BTreeMap<_, _> = members.into_iter().map(|it| (it.node, it)).collect();
        distinct.into_values().collect::<Vec<_>>()
    });
    (members, vec(change(), 0..8), any::<bool>())
        .prop_map(|(members, changes, is_newest)| {
            let formed =
                ClusterMap::form(&members).expect("a few distinct nodes of allowed weights");
            let first = if is_newest { formed.speaking(LEVEL) } else { formed };
            changes.iter().fold(first, |map, change| map.changed(change).unwrap_or(map))
        })
        .boxed()
}
