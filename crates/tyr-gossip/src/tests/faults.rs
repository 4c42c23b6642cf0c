//! Nobody who lives is found down, and if so by mistake, it is mended.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::world::{MS, QUIET, SECOND, Weather, World, address};
use crate::{PeerState, Rejection};

#[test]
fn nobody_is_found_down_while_every_fifth_datagram_is_lost() {
    for (nodes, minutes) in [(3, 10), (5, 5), (8, 4), (16, 2), (32, 1)] {
        for seed in 0..3 {
            let weather = Weather { loss: 20, doubled: 5, delay_us: 500, jitter_us: 20 * MS };
            let mut world = World::new(nodes, seed, weather);
            world.run(minutes * 60 * SECOND);
            let downs = world.downs();
            let suspicions = world.suspicions();
            println!("{nodes} nodes, {minutes} min: {suspicions} suspicions, {downs:?}");
            assert!(suspicions > 0, "the network was not that bad");
            assert_eq!(downs, []);
        }
    }
}

#[test]
fn nobody_is_found_down_on_a_network_that_is_slower_than_the_shortest_suspicion() {
    for seed in 0..3 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        // It becomes slower and slower; answers take up to two seconds in the end.
        for step in 1..=10 {
            let (delay_us, jitter_us) = (step * 20 * MS, step * 80 * MS);
            world.weather = Weather { delay_us, jitter_us, ..QUIET };
            world.run(60 * SECOND);
        }
        assert!(world.suspicions() > 0);
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn nobody_is_found_down_while_two_of_five_datagrams_are_lost() {
    for seed in 0..3 {
        let mut world = World::new(5, seed, Weather { loss: 40, ..QUIET });
        world.run(120 * SECOND);
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn short_pauses_of_a_node_are_no_death() {
    for seed in 0..10 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        for round in 0..20 {
            world.pause(1 + round % 5, 400 * MS);
            world.run(5 * SECOND);
        }
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn a_node_that_is_kept_waiting_again_and_again_is_given_more_time() {
    for seed in 0..5 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        for step in 3..=18 {
            for _ in 0..10 {
                world.pause(3, step * 100 * MS);
                world.run(3 * SECOND);
            }
        }
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn a_large_cluster_learns_of_a_slow_network_together() {
    for seed in 0..2 {
        let mut world = World::new(32, seed, QUIET);
        world.settle();
        // Within a minute answers take up to 1.2 s, and each node was asked a few times by each.
        for step in 1..=6 {
            let (delay_us, jitter_us) = (step * 20 * MS, step * 80 * MS);
            world.weather = Weather { delay_us, jitter_us, ..QUIET };
            world.run(10 * SECOND);
        }
        assert!(world.suspicions() > 0);
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn a_node_that_slept_is_found_down_finds_nobody_down_and_comes_back() {
    for seed in 0..10 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        world.pause(3, 20 * SECOND);
        world.run(19 * SECOND);
        let downs = world.downs();
        assert!(downs.len() == 4 && downs.iter().all(|(_, _, node)| *node == 3), "{downs:?}");
        world.run_until(4 * SECOND, World::is_whole);
        let by_sleeper = |it: &(u64, u16, u16)| it.1 == 3;
        assert!(!world.downs().iter().any(by_sleeper), "it has heard nobody die");
        world.run(30 * SECOND);
        assert!(world.is_whole());
        assert_eq!(world.machine(3).statistics().pauses, 1);
    }
}

#[test]
fn two_nodes_that_do_not_reach_each_other_are_alive_by_way_of_others() {
    for seed in 0..5 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        world.part(&[1], &[2]);
        world.run(120 * SECOND);
        assert_eq!(world.downs(), []);
        assert!(world.is_whole());
    }
}

#[test]
fn one_way_that_is_cut_between_two_nodes_is_no_death() {
    for seed in 0..5 {
        let mut world = World::new(3, seed, QUIET);
        world.settle();
        world.cuts.push((1, 2));
        world.run(120 * SECOND);
        assert_eq!(world.downs(), []);
    }
}

#[test]
fn who_can_be_heard_but_hears_nobody_is_down_after_the_longest_suspicion() {
    let mut world = World::new(5, 1, QUIET);
    world.settle();
    world.cuts.extend([(1, 2), (3, 2), (4, 2), (5, 2)]);
    world.run(8 * SECOND);
    for by in [1, 3, 4, 5] {
        assert_eq!(world.sees(by, 2), PeerState::Down);
    }
    world.cuts.clear();
    world.run_until(5 * SECOND, World::is_whole);
}

#[test]
fn both_sides_of_a_partition_find_the_other_down_and_meet_again() {
    for seed in 0..5 {
        let mut world = World::new(6, seed, QUIET);
        world.settle();
        world.part(&[1, 2], &[3, 4, 5, 6]);
        world.run(30 * SECOND);
        assert_eq!(world.sees(3, 1), PeerState::Down);
        assert_eq!(world.sees(1, 6), PeerState::Down);
        assert_eq!(world.sees(1, 2), PeerState::Alive);
        assert_eq!(world.sees(3, 6), PeerState::Alive);
        world.cuts.clear();
        world.run_until(15 * SECOND, World::is_whole);
        world.run(30 * SECOND);
        assert!(world.is_whole());
    }
}

#[test]
fn a_node_cut_off_for_a_moment_finds_nobody_down() {
    for seed in 0..10 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        world.part(&[1], &[2, 3, 4, 5]);
        world.run(2_500 * MS);
        let found = world.downs();
        assert!(!found.iter().any(|(_, by, _)| *by == 1), "{found:?}");
        world.cuts.clear();
        world.run_until(5 * SECOND, World::is_whole);
    }
}

#[test]
fn datagrams_played_again_change_nothing() {
    let mut world = World::new(4, 5, QUIET);
    world.recorded = Some(Vec::new());
    world.settle();
    // Down by mistake, and back: the record has every kind of news.
    world.pause(2, 5 * SECOND);
    world.run(20 * SECOND);
    assert!(world.is_whole());
    world.kill(4);
    world.run(5 * SECOND);
    world.start(4, 2, 4);
    world.run(10 * SECOND);
    assert!(world.is_whole());
    let recorded = world.recorded.take().unwrap();
    world.found.clear();
    for (to, from, bytes) in &recorded {
        world.inject(*to, *from, bytes.clone());
        world.run(MS / 10);
    }
    assert_eq!(world.found, []);
    // All but those that a process got which died since, from others who live still.
    let replayed: u64 = (1..=4)
        .filter_map(|node| {
            world.machine(node).statistics().rejected.get(&Rejection::Replayed).copied()
        })
        .sum();
    assert!(replayed as usize > recorded.len() * 3 / 4, "{replayed} of {}", recorded.len());
    // Now the dead one's words again: they do not make it live.
    world.kill(4);
    world.run(5 * SECOND);
    assert_eq!(world.sees(1, 4), PeerState::Down);
    world.found.clear();
    for (to, from, bytes) in recorded.into_iter().filter(|(_, from, _)| *from == address(4)) {
        world.inject(to, from, bytes);
        world.run(MS / 10);
    }
    assert_eq!(world.found, []);
}

#[test]
fn bytes_of_strangers_are_counted_and_change_nothing() {
    let mut world = World::new(3, 9, QUIET);
    world.recorded = Some(Vec::new());
    world.settle();
    let recorded = world.recorded.take().unwrap();
    let mut rng = SmallRng::seed_from_u64(9);
    let mut count = 0;
    for (to, from, mut bytes) in recorded.into_iter().take(2_000) {
        let at = rng.random_range(0..bytes.len());
        bytes[at] ^= 1 << rng.random_range(0..8);
        if rng.random_range(0..4) == 0 {
            bytes.truncate(at);
        }
        world.inject(to, from, bytes);
        world.run(MS / 10);
        count += 1;
    }
    assert_eq!(world.found, []);
    let rejected: u64 =
        (1..=3).flat_map(|node| world.machine(node).statistics().rejected.into_values()).sum();
    assert_eq!(rejected, count);
}
