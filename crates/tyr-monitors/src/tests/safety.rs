//! Whatever is cut and killed: one authority at a time, one map an epoch.

use std::time::Duration;

use tyr_protocol::map::{Change, hash};
use tyr_types::NodeId;

use super::nodes::{World, address};
use tyr_control::{Answer, Request};
use tyr_metadata::Actor;

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_from_the_others_grants_nothing_any_more() {
    let world = World::formed(5, 3).await;
    let leader = world.wait_for_leader().await;
    // All nodes that are no monitors reach it still, and so does its own.
    world.isolate(leader, &[3, 4]);
    let is_followed =
        |world: &World| (0..3).any(|it| it != leader && !world.granted_by(it).is_empty());
    world.until("another one grants", is_followed).await;
    world.pass(Duration::from_secs(10)).await;
    let others = (0..3).filter(|it| *it != leader);
    let first = others.flat_map(|it| world.granted_by(it)).map(|it| it.granted).min().unwrap();
    let late = world.granted_by(leader).into_iter().find(|it| it.asked > first);
    assert!(late.is_none(), "{late:?}, others since {first:?}");
    assert!(!world.holding().contains(&leader), "its own node hears nobody who leads");
    world.shared.network.heal_all();
    world.until("all is well again", |world| world.holding().len() == 5).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_leader_planned_is_not_planned_again_by_the_next_and_nodes_go_on() {
    let mut world = World::formed(5, 3).await;
    // Node 4 holds its lease and never prepares: what is planned stays planned.
    let leader = world.wait_for_leader().await;
    // Nobody is declared down by order who has come just now.
    world.pass(Duration::from_secs(3)).await;
    world.stop_node(4);
    let client = world.client(3);
    let proposed = tokio::spawn(async move { client.propose(Change::Down(NodeId(4))).await });
    let is_planned = |world: &World| !world.shared.planned.lock().is_empty();
    world.until("the change is planned", is_planned).await;
    let epoch = *world.shared.planned.lock().last_key_value().unwrap().0;
    world.kill_monitor(leader).await;
    let is_above = |world: &World| world.map().epoch > epoch;
    world.until("a map takes effect above what was planned", is_above).await;
    assert!(proposed.await.unwrap().is_err(), "nobody knows whether it will");
    let is_down = |world: &World| !world.map().is_live(NodeId(4));
    world.until("it is declared down all the same", is_down).await;
    world.until("the others go on", |world| world.holding().len() == 4).await;
}

/// One run of trouble from a seed: cuts, kills, silence, changes.
async fn trouble(seed: u64, nodes: u16, monitors: u16) {
    println!("seed {seed}, {nodes} nodes, {monitors} monitors");
    let mut world = World::formed(nodes, monitors).await;
    let mut draws = 0;
    let mut below = |bound: u64| {
        draws += 1;
        hash::place(seed.wrapping_mul(0xD134_2543_DE82_EF95), draws) % bound
    };
    let mut killed: Option<u16> = None;
    for _ in 0..40 {
        let (one, other) = (below(nodes.into()) as u16, below(nodes.into()) as u16);
        match below(10) {
            0 | 1 => world.shared.network.cut(&address(one), &address(other), one != other),
            2 => world.isolate(one, &[]),
            3 | 4 => world.shared.network.heal_all(),
            5 => world.stop_node(one),
            6 => world.start_node(one),
            7 => match killed.take() {
                Some(node) => world.start_monitor(node).await,
                None => {
                    let node = one % monitors;
                    world.kill_monitor(node).await;
                    killed = Some(node);
                }
            },
            8 if killed.is_none() => {
                // With whatever is cut: it hands over, or tries to.
                let node = one % monitors;
                world.stop_monitor(node).await;
                killed = Some(node);
            }
            _ => {
                let weight = 50 + below(100) as u32;
                let monitor = world.shared.monitors.lock().values().next().cloned().unwrap();
                let change = Change::SetWeight { node: NodeId(other), weight };
                tokio::spawn(async move { _ = monitor.propose(change).await });
            }
        }
        world.pass(Duration::from_millis(below(4000))).await;
    }
    world.shared.network.heal_all();
    if let Some(node) = killed {
        world.start_monitor(node).await;
    }
    for node in 0..nodes {
        world.start_node(node);
    }
    let is_well = |world: &World| world.holding().len() == usize::from(nodes);
    world.until("all nodes hold leases in the end", is_well).await;
    let maps = world.shared.effective.lock().len();
    let planned = world.shared.planned.lock().len();
    println!("{maps} maps took effect, {planned} were planned");
    for monitor in 0..monitors {
        let status = world.monitor(monitor).ask(Actor::System, Request::Status).await.unwrap();
        let Answer::Status(status) = status else { panic!("{status:?}") };
        assert_eq!(status.epoch, Some(world.map().epoch.0));
    }
}

#[tokio::test(start_paused = true)]
async fn one_authority_and_one_map_an_epoch_whatever_happens_to_three() {
    for seed in 0..3 {
        trouble(seed, 5, 3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_authority_and_one_map_an_epoch_whatever_happens_to_five() {
    for seed in 10..12 {
        trouble(seed, 6, 5).await;
    }
}
