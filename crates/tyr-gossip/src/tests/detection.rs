//! What failed is found, by all, and in which time.

use tyr_types::NodeId;

use super::world::{MS, QUIET, SECOND, Weather, World, address, map};
use crate::{GossipEvent, PeerState};

/// When the first and when the last of those who live found the node down, after it died.
fn detect(nodes: u16, seed: u64, weather: Weather) -> (u64, u64) {
    let mut world = World::new(nodes, seed, weather);
    world.settle();
    world.run(seed % 7 * 37 * MS);
    world.found.clear();
    let (killed_at, victim) = (world.now, 1 + (seed % u64::from(nodes)) as u16);
    world.kill(victim);
    let all = usize::from(nodes) - 1;
    world.run_until(20 * SECOND, |world| {
        world.downs().iter().filter(|(_, _, node)| *node == victim).count() == all
    });
    let times: Vec<u64> = world.downs().iter().map(|(at, _, _)| at - killed_at).collect();
    assert_eq!(times.len(), all, "nobody else was found down");
    (times[0], times[all - 1])
}

/// The figures of docs/internals/gossip.md, printed: median, nineteen of twenty, longest, in ms.
fn distribution(nodes: u16, runs: u64, weather: Weather) -> [[u64; 3]; 2] {
    let (mut first, mut last): (Vec<_>, Vec<_>) =
        (0..runs).map(|seed| detect(nodes, seed, weather)).unzip();
    let figures = [&mut first, &mut last].map(|times| {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] / MS;
        [at(0.5), at(0.95), at(1.0)]
    });
    println!("{nodes} nodes, {weather:?}: first {:?}, last {:?}", figures[0], figures[1]);
    figures
}

#[test]
fn a_dead_node_is_found_within_a_second_and_a_half_on_a_quiet_network() {
    for (nodes, runs) in [(2, 40), (3, 40), (5, 40), (8, 20), (32, 10)] {
        let [[first, _, first_max], [last, _, last_max]] = distribution(nodes, runs, QUIET);
        assert!(first <= 1_200 && first_max <= 1_600, "{nodes}: {first}, {first_max}");
        assert!(last <= 1_500 && last_max <= 2_200, "{nodes}: {last}, {last_max}");
    }
}

#[test]
fn a_dead_node_is_found_on_a_bad_network_too_but_later() {
    for nodes in [3, 8, 32] {
        let bad = Weather { loss: 20, doubled: 5, delay_us: 500, jitter_us: 20 * MS };
        let [_, [_, _, last]] = distribution(nodes, 10, bad);
        assert!(last <= 6_000, "{nodes}: {last}");
    }
}

#[test]
fn who_says_goodbye_is_down_at_once() {
    let mut world = World::new(5, 1, QUIET);
    world.settle();
    world.leave(2);
    world.run(300 * MS);
    assert_eq!(world.downs().len(), 4);
    assert_eq!(world.suspicions(), 0);
}

#[test]
fn who_was_never_heard_is_reported_down_and_alive_when_it_comes() {
    let mut world = World::new(3, 1, QUIET);
    world.kill(3);
    world.run(5 * SECOND);
    assert_eq!(world.downs(), []);
    assert_eq!(world.sees(1, 3), PeerState::Unknown);
    world.run(2 * SECOND);
    assert_eq!(world.downs().len(), 2);
    world.start(3, 1, 3);
    world.run(2 * SECOND);
    assert!(world.is_whole());
}

#[test]
fn a_node_that_starts_again_is_alive_in_its_next_incarnation() {
    for seed in 0..10 {
        let mut world = World::new(5, seed, QUIET);
        world.settle();
        world.kill(2);
        // Sometimes before anybody noticed, sometimes afterwards.
        world.run(seed * 300 * MS);
        world.start(2, 2, 5);
        let started_at = world.now;
        world.run(2 * SECOND);
        assert!(world.is_whole());
        for by in [1, 3, 4, 5] {
            let is_it =
                |event| matches!(event, GossipEvent::Alive { node, incarnation: 2 } if node.0 == 2);
            let alive: Vec<_> =
                world.found.iter().filter(|it| it.by == by && is_it(it.event)).collect();
            assert_eq!(alive.len(), 1, "said once");
            assert!(alive[0].at - started_at < SECOND);
        }
    }
}

#[test]
fn a_node_that_leaves_the_map_is_forgotten_and_one_that_joins_is_found() {
    let mut world = World::new(4, 3, QUIET);
    world.settle();
    for node in 1..=3 {
        world.set_nodes(node, &map(3));
    }
    world.run(5 * SECOND);
    assert_eq!(world.view(1).len(), 2);
    // The others are not in a map with it, and nobody answers it.
    let by_others = |it: &(u64, u16, u16)| it.1 != 4;
    assert!(!world.downs().iter().any(by_others), "{:?}", world.downs());
    for node in 1..=3 {
        world.set_nodes(node, &map(4));
    }
    world.run(3 * SECOND);
    assert!(world.is_whole());
}

#[test]
fn what_is_said_of_a_node_that_is_not_in_the_map_yet_is_left_out() {
    let mut world = World::new(4, 3, QUIET);
    world.start(1, 2, 3);
    world.run(60 * SECOND);
    assert_eq!(world.view(1).len(), 2);
    assert_eq!(world.machine(1).statistics().unsent, 0, "nothing is sent to it");
    for by in 2..=4 {
        assert!(world.view(by).iter().all(|view| view.state == PeerState::Alive), "{by}");
    }
    assert_eq!(world.downs(), []);
}

#[test]
fn a_node_with_several_addresses_is_found_at_the_one_where_it_is() {
    let mut world = World::new(2, 8, QUIET);
    let mut nodes = map(2);
    nodes.insert(NodeId(2), vec![address(99), address(98), address(2)]);
    world.set_nodes(1, &nodes);
    world.run(5 * SECOND);
    // It hears the first only if that one found the way.
    assert_eq!(world.sees(2, 1), PeerState::Alive);
}

#[test]
fn calls_between_long_ticks_are_no_pause() {
    let mut world = World::new(2, 8, QUIET);
    world.config.probe_interval_ms = 6_000;
    world.config.suspicion_min_ms = 6_000;
    world.config.suspicion_max_ms = 12_000;
    world.config.rumour_interval_ms = 6_000;
    world.start(1, 2, 1);
    world.run(1_500 * MS);
    world.set_nodes(1, &map(2));
    world.run(SECOND);
    assert_eq!(world.sees(1, 2), PeerState::Alive);
    assert_eq!(world.machine(1).statistics().pauses, 0);
}
