//! Members together: transactions, maps, crashes and moves, from many seeds.
//!
//! [`shelf`] is a small store, [`world`] runs members, monitors and clients. What the simulator
//! does better is left to it; here is that the parts fit.

mod absence;
mod checkpoints;
mod comparing;
mod copies;
mod difference;
mod key_guard;
mod key_leases;
mod late_questions;
mod listings;
mod maps;
mod notices;
mod pieces;
mod restarts;
mod shelf;
mod stand;
mod uploads;
mod usage;
mod world;

use self::world::{Config, World};

const QUIET: Config =
    Config { nodes: 4, replication: 3, transactions: 40, loss: 0, crashes: 0, is_moving: false };

fn run(seeds: std::ops::Range<u64>, config: Config) -> usize {
    let mut moved = 0;
    for seed in seeds {
        println!("seed {seed} of {config:?}");
        let mut world = World::new(seed, config);
        world.run();
        moved += world.moved_chunks;
    }
    moved
}

#[test]
fn transactions_take_effect_once_on_all_replicas() {
    run(0..8, QUIET);
}

#[test]
fn lost_and_doubled_messages_change_nothing() {
    run(100..108, Config { loss: 5, ..QUIET });
}

#[test]
fn nodes_that_crash_and_come_back_change_nothing() {
    run(200..210, Config { loss: 2, crashes: 3, ..QUIET });
}

#[test]
fn chunks_move_to_a_node_that_joins_and_from_one_that_leaves() {
    let moved = run(300..306, Config { is_moving: true, ..QUIET });
    assert!(moved > 6 * 5, "{moved} chunks have moved");
}

#[test]
fn chunks_move_while_nodes_crash_and_messages_are_lost() {
    run(400..408, Config { is_moving: true, loss: 2, crashes: 3, nodes: 5, ..QUIET });
}

/// V2.
#[test]
fn what_snapshots_need_is_told_to_all_replicas() {
    let mut world = World::new(900, QUIET);
    world.run();
    let told = world.usages_told();
    assert!(told > 10, "{told} replicas were told that nothing is in use");
    assert_eq!(world.not_told(), None, "the tail too, which nobody tells");
}
