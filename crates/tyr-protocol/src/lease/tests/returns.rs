//! Nodes that start again or were down: when they are let in, and as what (M4).

use tyr_types::{Epoch, NodeId};

use super::grants::node_0_has_caught_up;
use super::monitors::Monitors;
use crate::lease::{Effect, Event};
use crate::level::LEVEL;
use crate::map::{Change, Newcomer, NodeState};
use crate::rule::Rule;

/// M4.
#[test]
fn a_node_that_was_down_is_up_again_only_when_it_has_caught_up_and_all_have_prepared() {
    let mut monitors = node_0_has_caught_up();
    assert_eq!(monitors.asked(), [0, 1, 2], "node 1 was the authority while node 0 was away");
    monitors.all_prepared(&[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Returning);
    monitors.prepared(0);
    assert_eq!(monitors.state(0), NodeState::Up);
    assert!(matches!(&monitors.effects[..], [Effect::Publish(_)]));
}

#[test]
fn a_report_of_an_older_move_or_incarnation_counts_for_nothing() {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    let old = monitors.map().epoch;
    monitors.back(0, 2, true);
    monitors.step(Event::CaughtUp { node: NodeId(0), incarnation: 2, epoch: old });
    let epoch = monitors.map().epoch;
    monitors.step(Event::CaughtUp { node: NodeId(0), incarnation: 1, epoch });
    assert!(monitors.grants.pending().is_none());
    monitors.caught_up(0);
    assert!(monitors.grants.pending().is_some());
}

#[test]
fn a_node_that_lost_its_disk_is_declared_down_once_its_old_lease_is_over() {
    let mut monitors = Monitors::new(3);
    monitors.pass(1, &[0, 1, 2]);
    monitors.back(2, 2, false);
    assert_eq!(monitors.state(2), NodeState::Up);
    assert!(!monitors.renew(2), "the process before it gets no lease any more");
    monitors.pass(3, &[0, 1]);
    assert_eq!(monitors.state(2), NodeState::Returning);
    assert_eq!(monitors.map().incarnation(NodeId(2)), Some(2));
}

#[test]
fn a_node_that_starts_again_with_its_disk_goes_on_at_once() {
    let mut monitors = Monitors::new(3);
    monitors.back(2, 2, true);
    assert_eq!(monitors.state(2), NodeState::Up);
    assert!(!monitors.grants.has_lease(NodeId(2), 0), "it never had one");
    assert!(monitors.renew(2));
    monitors.back(2, 2, true);
    assert!(matches!(&monitors.effects[..], [Effect::Inform { .. }]), "it did not know yet");
}

/// M4: by a map after the next it could not tell whether it was declared down in between.
#[test]
fn a_recipient_that_starts_again_is_let_in_when_it_has_the_map_in_effect() {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    monitors.back(0, 5, true);
    let (node, incarnation, epoch) = (NodeId(0), 9, monitors.map().epoch);
    monitors.back(1, 2, true);
    monitors.step(Event::Return { node, incarnation, epoch, has_disk: true, level: LEVEL });
    assert_eq!(monitors.map().incarnation(node), Some(5), "it has an older map");
    assert!(monitors.effects.iter().any(|it| matches!(it, Effect::Inform { .. })));
    monitors.back(0, 9, true);
    let node_info = monitors.map().nodes[&node];
    let expected = (9, NodeState::Returning, monitors.map().epoch);
    assert_eq!((node_info.incarnation, node_info.state, node_info.since), expected);
}

/// M4: the same for who is about to join, and holds what others passed on.
#[test]
fn who_joins_and_starts_again_is_let_in_when_it_has_the_map_in_effect() {
    let mut monitors = Monitors::new(3);
    let newcomer = Newcomer { node: NodeId(3), incarnation: 1, ..Newcomer::default() };
    monitors.propose(Change::Join(vec![newcomer]));
    monitors.all_prepared(&[0, 1, 2]);
    let (node, incarnation, epoch) = (NodeId(3), 9, monitors.map().epoch);
    let before = monitors.map().incarnation(node);
    assert!(before.is_some());
    monitors.back(1, 2, true);
    assert!(monitors.map().epoch > epoch);
    monitors.step(Event::Return { node, incarnation, epoch, has_disk: true, level: LEVEL });
    assert_eq!(monitors.map().incarnation(node), before, "it has an older map");
    monitors.back(3, incarnation, true);
    let node_info = monitors.map().nodes[&node];
    assert_eq!((node_info.incarnation, node_info.since), (incarnation, monitors.map().epoch));
}

#[test]
fn epochs_that_were_given_up_are_none_that_a_node_which_is_back_has_missed() {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    monitors.back(0, 5, true);
    let known = monitors.map().epoch;
    monitors.propose(Change::Down(NodeId(1)));
    assert!(monitors.grants.pending().is_some());
    monitors.back(0, 9, true);
    let node_info = monitors.map().nodes[&NodeId(0)];
    assert_eq!((node_info.incarnation, node_info.since.0), (9, known.0 + 1));
    assert!(monitors.map().epoch.0 > known.0 + 1, "what was pending had that epoch");
}

#[test]
fn a_recipient_that_was_told_the_map_and_is_not_heard_again_is_declared_down() {
    let mut monitors = Monitors::new(3);
    monitors.pass(5, &[1, 2]);
    monitors.back(0, 5, true);
    let (node, incarnation, epoch) = (NodeId(0), 9, Epoch(1));
    monitors.step(Event::Return { node, incarnation, epoch, has_disk: true, level: LEVEL });
    monitors.pass(3, &[1, 2]);
    assert_eq!(monitors.map().incarnation(node), Some(5));
    monitors.pass(2, &[1, 2]);
    let node_info = monitors.map().nodes[&node];
    assert_eq!(
        (node_info.incarnation, node_info.state),
        (9, NodeState::Returning),
        "it was down before"
    );
    monitors.pass(5, &[1, 2]);
    assert_eq!(monitors.state(0), NodeState::Down);
}

/// M2: who proposed it meant the process before.
#[test]
fn who_has_started_again_is_not_declared_down_for_the_process_before() {
    let mut monitors = Monitors::new(3);
    (0..3).for_each(|node| assert!(monitors.renew(node)));
    monitors.propose(Change::Down(NodeId(1)));
    assert!(monitors.grants.pending().is_some(), "it may hold a lease");
    monitors.back(1, 9, true);
    monitors.all_prepared(&[0, 2]);
    monitors.propose(Change::Down(NodeId(1)));
    assert_eq!(monitors.answer(), Some(false), "it is there");
    monitors.pass(2, &[0, 2]);
    let node_info = monitors.map().nodes[&NodeId(1)];
    assert_eq!((node_info.state, node_info.incarnation), (NodeState::Up, 9));
    monitors.pass(4, &[0, 2]);
    assert_eq!(monitors.state(1), NodeState::Down, "it has been silent for long");
}

/// M4.
#[test]
fn without_m4_order_who_has_started_again_is_declared_down() {
    let mut monitors = Monitors::new(3);
    monitors.grants.rules.broken = Some(Rule::M4Order);
    (0..3).for_each(|node| assert!(monitors.renew(node)));
    monitors.back(1, 9, true);
    monitors.propose(Change::Down(NodeId(1)));
    assert_ne!(monitors.answer(), Some(false), "nobody says that it is there");
    assert!(monitors.grants.pending().is_some(), "the others are asked to go on without it");
    println!("without M4Order: noticed: what only it may have is thrown away");
}
