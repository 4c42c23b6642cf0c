//! Where things lie: hashes that never change, and walks that spread well.

use std::collections::BTreeMap;

use super::*;
use crate::map::ring::{Nodes, Ring};

/// So many places, evenly at random.
fn places(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|index| hash::place(7, index))
}

fn ring(shares: impl IntoIterator<Item = (u16, Share)>) -> Ring {
    Ring::new(shares.into_iter().map(|(node, share)| (NodeId(node), share)).collect()).unwrap()
}

fn equal(nodes: u16) -> Ring {
    ring((0..nodes).map(|node| (node, Share::default())))
}

/// How often each node is among the `replicas` of a place.
fn held(ring: &Ring, replicas: usize) -> BTreeMap<NodeId, u64> {
    let mut held: BTreeMap<NodeId, u64> = BTreeMap::new();
    for place in places(30_000) {
        for node in ring.walk(place, replicas) {
            *held.entry(node).or_default() += 1;
        }
    }
    held
}

/// Compared with another implementation's values; they are part of the protocol.
#[test]
fn places_and_tokens_never_change() {
    let long: Vec<u8> = (0..1024).map(|index| index as u8).collect();
    let cases: [(u64, &[u8], u64, u64, u64); 3] = [
        (0, b"a", 0xe6c6_32b6_1e96_4e1f, 0xb7c9_762b_986f_84b0, 0x0369_5e41_041d_3da5),
        (7, b"accounts/17", 0x3891_6ce3_2f54_e72b, 0x9187_355b_3724_ebb8, 0xb89c_258c_d3a1_63ec),
        (
            0xd134_2543_de82_ef95,
            &long,
            0x6367_a4ef_fdea_6354,
            0xa66f_f582_73ff_087b,
            0xf077_6954_0634_54e0,
        ),
    ];
    for (seed, key, hashed, first, fourth) in cases {
        let blob = hash::key(seed, key);
        assert_eq!((blob, hash::place(blob, 0), hash::place(blob, 3)), (hashed, first, fourth));
    }
    assert_eq!(hash::token(NodeId(0), 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(hash::token(NodeId(0), 1), 0xbfef_8030_ddc2_d772);
    assert_eq!(hash::token(NodeId(1), 0), 0xce30_761c_d737_3f6d);
    assert_eq!(hash::token(NodeId(65_535), 639), 0x6399_90ed_99bf_f496);
}

/// H: first chunks lie by their group, the others by the whole key. Compared with another
/// implementation's values.
#[test]
fn places_of_groups_never_change() {
    let cases: [(PlacedBy, &str, u64, u64); 4] = [
        (PlacedBy::First(3), "accounts/17", 0x6fd7_5519_47ac_8fcd, 0xb89c_258c_d3a1_63ec),
        (PlacedBy::UpTo(b'/'), "accounts/17", 0x0191_83fd_e4ca_0f9c, 0xb89c_258c_d3a1_63ec),
        (PlacedBy::UpTo(b'/'), "/17", 0x571b_1d88_2964_85a8, 0x15f0_8d85_672f_5d3e),
        (PlacedBy::Key, "accounts/17", 0x9187_355b_3724_ebb8, 0xb89c_258c_d3a1_63ec),
    ];
    for (placed_by, key, first, fourth) in cases {
        let mut keyspace = cluster(1).keyspaces[&KeyspaceId(1)].clone();
        (keyspace.config.placed_by, keyspace.seed) = (placed_by, 7);
        let hash = keyspace.hash(&Key::new(key).unwrap());
        assert_eq!((hash.place(0), hash.place(3)), (first, fourth), "{placed_by} of {key}");
    }
}

/// The whole way from a key to its holders, so that no step of it changes unseen.
#[test]
fn holders_of_a_blob_never_change() {
    let map = cluster(9);
    let held =
        |key: &str| -> Vec<u16> { map.holders(&blob(key), 0).iter().map(|node| node.0).collect() };
    assert_eq!([held("a"), held("b"), held("c")], HELD);
}

/// Of another implementation.
const HELD: [[u16; 3]; 3] = [[0, 3, 6], [2, 5, 8], [0, 2, 5]];

#[test]
fn a_longer_walk_begins_with_the_shorter_one() {
    let shares = |node: u16| {
        let domain = (!node.is_multiple_of(4)).then_some(Domain(u32::from(node % 3)));
        (node, Share { domain, ..Share::default() })
    };
    let ring = ring((0..12).map(shares));
    for place in places(2_000) {
        let longest = ring.walk(place, 20);
        assert_eq!(longest.len(), 12, "a walk around meets everybody once");
        for count in 1..12 {
            assert_eq!(ring.walk(place, count)[..], longest[..count]);
        }
    }
}

#[test]
fn each_node_holds_what_its_weight_says() {
    let weights = [100, 100, 200, 400, 50, 100, 100, 100];
    let share = |(node, weight)| (node, Share { weight, domain: None });
    let ring = ring((0..).zip(weights).map(share));
    let (held, whole) = (held(&ring, 1), weights.iter().sum::<u32>());
    for (node, weight) in (0..).zip(weights) {
        let fair = 30_000.0 * f64::from(weight) / f64::from(whole);
        let ratio = held[&NodeId(node)] as f64 / fair;
        assert!((0.7..1.4).contains(&ratio), "node {node} has {ratio:.2} of its share");
    }
}

#[test]
fn equal_nodes_hold_about_as_much_as_each_other() {
    for nodes in [4, 16, 64, 256] {
        let held = held(&equal(nodes), 3);
        let mean = 90_000.0 / f64::from(nodes);
        let most = *held.values().max().unwrap() as f64 / mean;
        let least = *held.values().min().unwrap() as f64 / mean;
        println!("{nodes} nodes: holds {least:.2} to {most:.2} of the mean");
        assert!(least > 0.6 && most < 1.5, "{nodes} nodes: {least:.2} to {most:.2}");
    }
}

#[test]
fn replicas_lie_in_distinct_domains_while_there_are_enough() {
    let ring = ring((0..12).map(|node| (node, in_domain(node, u32::from(node % 4)).share)));
    for place in places(5_000) {
        let domains: BTreeSet<u16> = ring.walk(place, 3).iter().map(|node| node.0 % 4).collect();
        assert_eq!(domains.len(), 3);
    }
}

#[test]
fn with_fewer_domains_than_replicas_every_domain_has_one_and_none_is_missing() {
    let ring = ring((0..10).map(|node| (node, in_domain(node, u32::from(node % 2)).share)));
    for place in places(5_000) {
        let walked = ring.walk(place, 3);
        let domains: BTreeSet<u16> = walked.iter().map(|node| node.0 % 2).collect();
        let distinct: BTreeSet<NodeId> = walked.iter().copied().collect();
        assert_eq!((domains.len(), distinct.len()), (2, 3));
    }
}

#[test]
fn a_node_without_a_domain_is_one_of_its_own() {
    let ring =
        ring([(0, in_domain(0, 1).share), (1, in_domain(1, 1).share), (2, Share::default())]);
    for place in places(1_000) {
        assert!(ring.walk(place, 2).contains(&NodeId(2)));
    }
}

#[test]
fn who_joins_takes_ranges_from_others_and_nothing_else_moves() {
    let (before, newcomer) = (equal(10), NodeId(10));
    let after = before.with(newcomer, Share::default()).unwrap();
    let mut moved = 0;
    for place in places(30_000) {
        let (old, new) = (before.walk(place, 3), after.walk(place, 3));
        let lost: Nodes = old.iter().copied().filter(|node| !new.contains(node)).collect();
        let won: Nodes = new.iter().copied().filter(|node| !old.contains(node)).collect();
        assert!(lost.len() <= 1 && won.iter().all(|node| *node == newcomer));
        moved += won.len();
    }
    let share = moved as f64 / 90_000.0;
    assert!((0.06..0.12).contains(&share), "a share of {share:.3} moved, not about 1/11");
}

#[test]
fn a_ring_needs_members_and_weights_in_range() {
    assert!(Ring::new(BTreeMap::new()).is_err());
    for weight in [0, 1001] {
        let share = Share { weight, domain: None };
        assert!(Ring::new([(NodeId(1), share)].into()).is_err(), "{weight}");
    }
    assert!(equal(1).without(NodeId(0)).is_err());
    let heavy = Share { weight: 1000, domain: None };
    assert!(Ring::new((0..1024).map(|node| (NodeId(node), heavy)).collect()).is_err());
}

#[test]
fn rings_are_equal_when_their_members_are() {
    let grown = equal(3).with(NodeId(3), Share::default()).unwrap();
    assert_eq!(grown, equal(4));
    assert_eq!(grown.walk(99, 3), equal(4).walk(99, 3));
    assert_ne!(grown, equal(3));
}
