//! A node that alone has part of a keyspace of one replica is lost, for a while or for good.

use tyr_types::{Epoch, KeyspaceConfig, KeyspaceId, NodeId};

use super::monitors::Monitors;
use crate::commit::OutcomeRetention;
use crate::lease::Event;
use crate::level::{LEVEL, LEVEL_ALONE};
use crate::map::{Change, NodeState};

/// Three nodes, a keyspace of three replicas, and an empty one of one.
fn with_a_single() -> Monitors {
    let single = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
    Monitors::with(3, &[KeyspaceConfig::default(), single])
}

#[test]
fn a_keyspace_of_one_replica_keeps_no_node_from_being_declared_down() {
    let mut monitors = with_a_single();
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
    monitors.back(0, 2, true);
    assert_eq!(monitors.state(0), NodeState::Returning);
}

/// By a map of level 1 what the node alone has would be gone.
#[test]
fn before_all_speak_level_2_a_keyspace_of_one_replica_keeps_every_node_up() {
    let map = with_a_single().map().clone().speaking(LEVEL_ALONE - 1);
    let mut monitors = Monitors::of(map);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Up);
    for node in [1, 2, 0] {
        assert_eq!(monitors.map().level, LEVEL_ALONE - 1);
        monitors.back(node, 2, true);
    }
    assert_eq!(monitors.map().level, LEVEL);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
}

#[test]
fn who_lost_what_it_alone_had_is_let_in_when_the_loss_is_accepted() {
    let mut monitors = with_a_single();
    monitors.back(0, 2, false);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down, "nobody knows what was there");
    monitors.propose(Change::AcceptLoss(KeyspaceId(2)));
    monitors.pass(1, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Returning);
    assert_eq!(monitors.map().incarnation(NodeId(0)), Some(2));
}

#[test]
fn what_only_a_node_has_that_is_gone_is_not_taken_out_of_the_ring() {
    let mut monitors = with_a_single();
    monitors.pass(80, &[1, 2]);
    assert!(monitors.map().next.is_none() && monitors.state(0) == NodeState::Down);
    monitors.propose(Change::AcceptLoss(KeyspaceId(2)));
    monitors.pass(2, &[1, 2]);
    let next = monitors.map().next.as_ref().expect("now it is not waited for any more");
    assert!(next.share(NodeId(0)).is_none());
}

/// F10.
#[test]
fn outcomes_are_kept_for_a_node_that_is_away_and_alone_has_something() {
    let mut monitors = with_a_single();
    let said = |monitors: &mut Monitors, node, done_to_us| {
        let retention = OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN };
        let (node, epoch) = (NodeId(node), Epoch(9));
        monitors.step(Event::Renew { node, incarnation: 1, epoch, sent_us: 0, retention });
    };
    said(&mut monitors, 0, 10);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
    (1..3).for_each(|node| said(&mut monitors, node, 100));
    assert_eq!(monitors.done_to_us(), 10, "it will ask about what began later");
    monitors.propose(Change::AcceptLoss(KeyspaceId(2)));
    monitors.all_prepared(&[1, 2]);
    assert_eq!(monitors.done_to_us(), 100);
}
