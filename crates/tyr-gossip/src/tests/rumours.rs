//! What travels besides membership.

use std::collections::BTreeMap;

use tyr_types::{Epoch, KeyspaceId, KeyspaceUsage, NodeId, Timestamp};

use super::world::{MS, QUIET, SECOND, Weather, World};
use crate::{GossipEvent, Rumour};

fn rumour(node: u16, epoch: u32, keyspaces: u32) -> Rumour {
    let totals = |keyspace| KeyspaceUsage {
        blobs: u64::from(node),
        bytes: u64::from(keyspace),
        operations: keyspace,
    };
    Rumour {
        epoch: Epoch(epoch),
        snapshot_floor: Timestamp { epoch: Epoch(epoch), clock: 7, node },
        is_memory_full: node == 1,
        is_disk_full: node == 2,
        totals: (1..=keyspaces).map(|keyspace| (KeyspaceId(keyspace), totals(keyspace))).collect(),
    }
}

/// Whether everybody has heard exactly this of everybody else.
fn has_all(world: &mut World, nodes: u16, expected: &BTreeMap<u16, Rumour>) -> bool {
    let now = world.now;
    (1..=nodes).all(|by| {
        let heard = world.machine(by).rumours(now);
        heard.len() == usize::from(nodes) - 1
            && heard.iter().all(|it| expected[&it.node.0] == it.rumour)
    })
}

#[test]
fn everybody_hears_the_newest_of_everybody_even_on_a_bad_network() {
    for (nodes, loss) in [(3, 0), (3, 20), (16, 0), (32, 20)] {
        let weather = Weather { loss, ..QUIET };
        let mut world = World::new(nodes, 4, weather);
        let mut expected = BTreeMap::new();
        for round in 1..=2 {
            for node in 1..=nodes {
                let rumour = rumour(node, round, 30);
                world.tell(node, rumour.clone());
                expected.insert(node, rumour);
            }
            let mut ms = 0;
            while !has_all(&mut world, nodes, &expected) {
                world.run(100 * MS);
                ms += 100;
                assert!(ms < 30_000, "{nodes} nodes, loss {loss}");
            }
            println!("{nodes} nodes, loss {loss}: both pages of all rumours after {ms} ms");
        }
        let now = world.now;
        let heard = world.machine(1).rumours(now);
        assert!(heard.iter().all(|it| it.age_us < 10 * SECOND));
    }
}

#[test]
fn a_higher_epoch_is_everywhere_in_a_moment_and_said_once() {
    for nodes in [3, 8, 32] {
        let mut world = World::new(nodes, 6, QUIET);
        for node in 1..=nodes {
            world.tell(node, rumour(node, 4, 2));
        }
        world.settle();
        let told_at = world.now;
        world.tell(2, rumour(2, 5, 2));
        world.run(2 * SECOND);
        let found: Vec<_> = world
            .found
            .iter()
            .filter(|it| it.event == GossipEvent::Epoch { epoch: Epoch(5), node: NodeId(2) })
            .collect();
        assert_eq!(found.len(), usize::from(nodes) - 1);
        let last = found.iter().map(|it| it.at - told_at).max().unwrap();
        println!("{nodes} nodes: a new epoch is everywhere after {} ms", last / MS);
        assert!(last < SECOND, "{nodes} nodes: {last} us");
    }
}

#[test]
fn traffic_does_not_grow_with_the_square_of_the_cluster() {
    let mut per_node = Vec::new();
    for nodes in [3, 8, 32] {
        let mut world = World::new(nodes, 2, QUIET);
        for node in 1..=nodes {
            world.tell(node, rumour(node, 1, 24));
        }
        world.settle();
        let before = world.machine(1).statistics();
        world.run(20 * SECOND);
        let after = world.machine(1).statistics();
        let bytes = (after.sent_bytes - before.sent_bytes) / 20;
        let datagrams = (after.sent - before.sent) / 20;
        println!("{nodes} nodes: each sends {datagrams} datagrams, {bytes} bytes a second");
        per_node.push(bytes);
        assert!(bytes < 64_000, "{bytes}");
    }
    assert!(per_node[2] < 16 * per_node[0], "{per_node:?}");
}

#[test]
fn a_rumour_is_passed_on_for_a_while_and_then_no_more() {
    let mut world = World::new(3, 2, QUIET);
    world.config.rumour_interval_ms = 60_000;
    (1..=3).for_each(|node| world.start(node, 2, 3));
    (1..=3).for_each(|node| world.tell(node, rumour(node, 1, 24)));
    world.run(10 * SECOND);
    let before = world.machine(1).statistics();
    world.run(10 * SECOND);
    let after = world.machine(1).statistics();
    // Four probes a second, and as many answers.
    assert!(after.sent - before.sent < 90, "{}", after.sent - before.sent);
    assert!(after.sent_bytes - before.sent_bytes < 90 * 100);
}
