//! Monitors that follow others: what they assume, and what they do not do again.

use std::sync::Arc;

use tyr_types::{Epoch, NodeId};

use super::monitors::Monitors;
use crate::lease::{Effect, Event, Grants};
use crate::map::{Change, NodeState};

#[test]
fn monitors_that_take_over_assume_that_every_node_has_a_lease() {
    let mut monitors = Monitors::new(3);
    monitors.pass(3, &[1, 2]);
    monitors.step(Event::Lead);
    assert!(monitors.grants.has_lease(NodeId(0), monitors.now_us));
    monitors.pass(3, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Up);
    monitors.pass(1, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
}

/// Monitors that follow these ones.
fn successors(monitors: &Monitors, reserved: Epoch) -> Monitors {
    let (config, map) = (monitors.grants.config, Arc::clone(monitors.grants.map()));
    let (now_us, mut effects) = (monitors.now_us, Vec::new());
    let grants = Grants::take_over(config, map, reserved, now_us, &mut effects);
    grants.invariants();
    Monitors { grants, now_us, effects }
}

#[test]
fn monitors_that_take_over_use_no_epoch_again_that_anybody_prepared_for() {
    let mut monitors = Monitors::new(4);
    monitors.pass(1, &[0, 1, 2, 3]);
    monitors.propose(Change::Drain(NodeId(3)));
    monitors.caught_up(0);
    (1..3).for_each(|node| monitors.caught_up(node));
    let pending = monitors.grants.pending().unwrap().epoch;
    let before = monitors.map().clone();

    let after = successors(&monitors, pending);
    assert!(after.map().epoch > pending, "who has prepared is released from it");
    assert_eq!(after.map(), &before.at(after.map().epoch), "and nothing else has changed");
    assert!(matches!(&after.effects[..], [Effect::Publish(map)] if **map == *after.map()));
}

#[test]
fn monitors_that_take_over_with_nothing_reserved_publish_nothing() {
    let monitors = Monitors::new(3);
    let after = successors(&monitors, monitors.map().epoch);
    assert_eq!((after.map(), after.effects.len()), (monitors.map(), 0));
}

#[test]
fn monitors_that_take_over_give_no_lease_with_a_map_older_than_the_one_in_effect() {
    let mut monitors = Monitors::new(4);
    monitors.pass(6, &[0, 1, 2]);
    assert_eq!(monitors.state(3), NodeState::Down);
    let epoch = monitors.map().epoch;
    let mut after = successors(&monitors, epoch);
    assert!(!after.renew_with(0, Epoch(epoch.0 - 1)), "it may go by what somebody has lost");
    assert!(after.effects.iter().any(|it| matches!(it, Effect::Inform { .. })));
    assert!(after.renew_with(0, epoch));
}

#[test]
fn monitors_that_take_over_wait_for_the_leases_that_others_granted() {
    let mut monitors = Monitors::new(4);
    monitors.pass(1, &[0, 1, 2, 3]);
    let epoch = monitors.map().epoch;
    let mut after = successors(&monitors, epoch);
    let end_us = after.now_us + after.grants.config.counted_us();
    assert!(after.grants.has_lease(NodeId(3), end_us - 1));
    assert!(!after.grants.has_lease(NodeId(3), end_us));
    after.propose(Change::Down(NodeId(3)));
    assert_eq!(after.answer(), Some(false), "node 3 may have come back while they took over");
    after.pass(6, &[0, 1, 2]);
    assert_eq!(after.state(3), NodeState::Down);
}
