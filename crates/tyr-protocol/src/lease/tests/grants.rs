//! The monitors' side.

use tyr_types::{Epoch, NodeId};

use super::monitors::Monitors;
use crate::commit::OutcomeRetention;
use crate::lease::grants::PROPOSALS_MAX;
use crate::lease::{Effect, Event};
use crate::map::{Change, Membership, Newcomer, NodeState};

const SECOND: u64 = 1_000_000;

/// Three nodes of which node 0 was down, is back and has caught up: node 1 loses by it.
pub(super) fn node_0_has_caught_up() -> Monitors {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
    monitors.back(0, 2, true);
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.pass(1, &[0, 1, 2]);
    monitors.caught_up(0);
    monitors
}

#[test]
fn a_silent_node_is_declared_down_after_its_lease_and_not_before() {
    let mut monitors = Monitors::new(3);
    monitors.pass(3, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Up);
    monitors.pass(1, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
    assert!(!monitors.grants.has_lease(NodeId(0), monitors.now_us));
}

#[test]
fn a_node_that_returns_may_be_silent_for_longer() {
    let mut monitors = Monitors::new(3);
    monitors.grants.config.returning_down_after_us = 20_000_000;
    monitors.pass(5, &[1, 2]);
    monitors.back(0, 2, true);
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.pass(19, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.pass(2, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
    monitors.back(0, 3, true);
    monitors.pass(1, &[0, 1, 2]);
    monitors.caught_up(0);
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down, "it has returned");
}

#[test]
fn a_node_that_is_down_gets_no_lease_but_the_map() {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    assert!(!monitors.renew_with(0, Epoch(1)));
    assert!(matches!(&monitors.effects[..], [Effect::Inform { to: NodeId(0), .. }]));
}

#[test]
fn the_last_node_that_is_up_is_waited_for() {
    let mut monitors = Monitors::new(2);
    monitors.pass(5, &[1]);
    assert_eq!(monitors.state(0), NodeState::Down);
    monitors.pass(20, &[]);
    assert_eq!(monitors.state(1), NodeState::Up);
    assert!(monitors.renew(1), "it goes on where it was");
    monitors.back(1, 2, true);
    assert_eq!(
        (monitors.state(1), monitors.map().incarnation(NodeId(1))),
        (NodeState::Up, Some(2))
    );
}

/// M3.
#[test]
fn a_node_that_never_answers_is_waited_for_until_its_lease_is_over() {
    for (silent, others) in [(1, [0, 2]), (2, [0, 1])] {
        let mut monitors = node_0_has_caught_up();
        monitors.pass(2, &others);
        assert_eq!(monitors.state(0), NodeState::Returning);
        monitors.pass(1, &others);
        assert_eq!(monitors.state(0), NodeState::Up);
        let before = monitors.map().epoch.0 - 1;
        assert!(!monitors.renew_with(silent, Epoch(before)), "it would go on with what is over");
        assert!(monitors.renew(silent));
    }
}

/// M3.
#[test]
fn a_failure_takes_effect_when_those_who_are_alive_have_prepared() {
    let mut monitors = Monitors::new(3);
    let alive = [1, 2];
    for _ in 0..8 {
        monitors.now_us += SECOND / 2;
        alive.iter().for_each(|node| _ = monitors.renew(*node));
        monitors.step(Event::Tick);
    }
    monitors.now_us += SECOND / 4;
    monitors.step(Event::Tick);
    assert_eq!(monitors.asked(), [0, 1, 2], "nobody goes by a map with node 0 any more");
    monitors.prepared(1);
    assert_eq!(monitors.state(0), NodeState::Up);
    monitors.prepared(2);
    assert_eq!(monitors.state(0), NodeState::Down);
}

#[test]
fn who_has_not_prepared_is_sent_the_map_a_few_times_and_who_has_is_not() {
    let mut monitors = Monitors::new(4);
    monitors.propose(Change::Down(NodeId(3)));
    assert_eq!(monitors.asked(), [0, 1, 2, 3]);
    monitors.prepared(0);
    let mut asked = Vec::new();
    for _ in 0..20 {
        monitors.now_us += SECOND / 10;
        (1..4).for_each(|node| _ = monitors.renew(node));
        monitors.step(Event::Tick);
        asked.extend(monitors.asked());
    }
    assert_eq!(asked, [1, 2, 3].repeat(3));
}

#[test]
fn a_node_that_has_the_map_is_not_sent_it_when_it_asks() {
    let monitors = Monitors::new(3);
    let epoch = monitors.map().epoch;
    assert!(monitors.grants.newer_than(epoch).is_none());
    for older in [Epoch(0), Epoch(epoch.0 - 1)] {
        assert_eq!(monitors.grants.newer_than(older).map(|map| map.epoch), Some(epoch));
    }
}

#[test]
fn two_that_fail_at_once_are_declared_down_one_after_the_other() {
    let mut monitors = Monitors::new(5);
    monitors.propose(Change::Drain(NodeId(4)));
    monitors.pass(5, &[2, 3, 4]);
    assert_eq!((monitors.state(0), monitors.state(1)), (NodeState::Down, NodeState::Down));
}

/// M3.
#[test]
fn a_node_without_a_lease_that_gets_one_while_others_prepare_is_waited_for_too() {
    let mut monitors = Monitors::new(4);
    monitors.pass(5, &[1, 2, 3]);
    monitors.back(0, 2, true);
    monitors.pass(1, &[0, 1, 2, 3]);
    monitors.back(1, 2, true);
    assert!(!monitors.grants.has_lease(NodeId(1), monitors.now_us));
    monitors.caught_up(0);
    assert_eq!(monitors.asked(), [0, 1, 2, 3]);
    assert!(monitors.renew(1), "it goes on under the map in effect");
    monitors.all_prepared(&[0, 2, 3]);
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.prepared(1);
    assert_eq!(monitors.state(0), NodeState::Up);
}

#[test]
fn a_failure_withdraws_a_planned_change_and_its_epoch_is_never_used_again() {
    let mut monitors = node_0_has_caught_up();
    let planned = monitors.grants.pending().unwrap().epoch;
    monitors.back(2, 2, true);
    assert!(monitors.grants.pending().is_none() && monitors.map().epoch > planned);
    let incarnation = 1;
    monitors.step(Event::Prepared { node: NodeId(1), incarnation, epoch: planned });
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.caught_up(0);
    monitors.all_prepared(&[0, 1, 2]);
    assert_eq!(monitors.state(0), NodeState::Up);
}

#[test]
fn a_planned_change_withdrawn_for_a_keyspace_is_taken_up_again() {
    let mut monitors = node_0_has_caught_up();
    let planned = monitors.grants.pending().unwrap().epoch;
    monitors.propose(Change::DropKeyspace(tyr_types::KeyspaceId(1)));
    assert_eq!(monitors.answer(), Some(true));
    assert!(monitors.grants.pending().is_none_or(|map| map.epoch > planned));
    monitors.pass(1, &[0, 1, 2]);
    assert_eq!(monitors.state(0), NodeState::Up);
}

#[test]
fn what_is_down_for_long_is_removed_and_others_take_its_place() {
    let mut monitors = Monitors::new(4);
    monitors.pass(62, &[1, 2, 3]);
    assert_eq!(monitors.map().membership(NodeId(0)), Membership::In);
    monitors.pass(3, &[1, 2, 3]);
    assert_eq!(monitors.map().membership(NodeId(0)), Membership::Leaving);
    (1..4).for_each(|node| monitors.caught_up(node));
    monitors.asked().into_iter().for_each(|node| monitors.prepared(node));
    assert_eq!(monitors.map().membership(NodeId(0)), Membership::Out);
}

#[test]
fn a_drain_ends_when_those_who_take_over_have_caught_up_and_it_has_prepared() {
    let mut monitors = Monitors::new(4);
    monitors.pass(1, &[0, 1, 2, 3]);
    monitors.propose(Change::Drain(NodeId(3)));
    assert_eq!(monitors.answer(), Some(true));
    (0..3).for_each(|node| monitors.caught_up(node));
    assert!(monitors.asked().contains(&3));
    for node in monitors.asked() {
        assert!(monitors.grants.pending().is_some());
        monitors.prepared(node);
    }
    assert_eq!(monitors.map().membership(NodeId(3)), Membership::Out);
    assert!(!monitors.renew(3));
}

#[test]
fn a_node_declared_down_by_order_keeps_the_change_waiting_until_its_lease_is_over() {
    let mut monitors = Monitors::new(3);
    monitors.pass(1, &[0, 1, 2]);
    monitors.propose(Change::Down(NodeId(1)));
    assert_eq!((monitors.answer(), monitors.state(1)), (None, NodeState::Up));
    assert!(!monitors.renew(1));
    monitors.pass(3, &[0, 1, 2]);
    assert_eq!(monitors.state(1), NodeState::Down);
}

#[test]
fn who_joins_and_dies_is_given_up_after_a_while() {
    let mut monitors = Monitors::new(3);
    let newcomer = Newcomer { node: NodeId(5), incarnation: 1, ..Newcomer::default() };
    monitors.propose(Change::Join(vec![newcomer]));
    monitors.pass(10, &[0, 1, 2]);
    assert_eq!(monitors.state(5), NodeState::Down);
    monitors.pass(60, &[0, 1, 2]);
    assert_eq!(monitors.map().membership(NodeId(5)), Membership::Out);
}

#[test]
fn proposals_that_make_no_sense_are_answered_and_those_that_wait_are_bounded() {
    let mut monitors = Monitors::new(3);
    monitors.propose(Change::Remove(NodeId(1)));
    assert_eq!(monitors.answer(), Some(false));
    monitors.propose(Change::Settle([NodeId(1)].into()));
    assert_eq!(monitors.answer(), Some(false), "only the node itself knows");
    monitors.pass(1, &[0, 1, 2]);
    monitors.propose(Change::Down(NodeId(1)));
    for _ in 0..PROPOSALS_MAX {
        monitors.propose(Change::Drain(NodeId(2)));
        assert_eq!(monitors.answer(), None);
    }
    monitors.propose(Change::Drain(NodeId(2)));
    assert_eq!(monitors.answer(), Some(false));
}

#[test]
fn unknown_nodes_and_old_incarnations_are_not_listened_to() {
    let mut monitors = Monitors::new(3);
    let epoch = Epoch(1);
    for (node, incarnation) in [(NodeId(9), 1), (NodeId(1), 0), (NodeId(1), 2)] {
        monitors.step(Event::Renew {
            node,
            incarnation,
            epoch,
            sent_us: 0,
            retention: OutcomeRetention::UNKNOWN,
        });
        assert!(monitors.effects.is_empty());
    }
    monitors.back(9, 1, true);
    monitors.back(1, 0, true);
    assert!(monitors.effects.is_empty());
}

/// C8, F10.
#[test]
fn the_clock_of_the_fastest_and_how_far_the_slowest_is_come_with_every_lease() {
    let mut monitors = Monitors::new(3);
    let mut granted = |node, incarnation, clock_us, done_to_us| {
        let (node, epoch) = (NodeId(node), Epoch(1));
        let retention = OutcomeRetention { clock_us, done_to_us, ..OutcomeRetention::UNKNOWN };
        monitors.step(Event::Renew { node, incarnation, epoch, sent_us: 0, retention });
        let effects = std::mem::take(&mut monitors.effects);
        effects.iter().find_map(|effect| match effect {
            Effect::Grant { retention, .. } => Some((retention.clock_us, retention.done_to_us)),
            Effect::Prepare { .. }
            | Effect::Publish(_)
            | Effect::Inform { .. }
            | Effect::Answer { .. } => None,
        })
    };
    assert_eq!(granted(0, 1, 50, 30), Some((50, 0)), "the others have said nothing");
    assert_eq!(granted(1, 1, 7_200_000_050, 20), Some((7_200_000_050, 0)));
    assert_eq!(granted(2, 0, u64::MAX, 9), None, "an older process says nothing");
    assert_eq!(granted(2, 1, 0, 40), Some((7_200_000_050, 20)));
    assert_eq!(granted(0, 1, 60, 35), Some((7_200_000_050, 20)));
    assert_eq!(
        granted(1, 1, 7_200_000_060, 0),
        Some((7_200_000_060, 20)),
        "others have forgotten that far"
    );
}
