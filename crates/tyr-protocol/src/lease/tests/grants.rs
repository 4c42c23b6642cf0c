//! The monitors' side.

use std::sync::Arc;

use tyr_types::{Epoch, KeyspaceConfig, NodeId};

use crate::commit::OutcomeRetention;
use crate::lease::config::LeaseConfig;
use crate::lease::grants::PROPOSALS_MAX;
use crate::lease::{Effect, Event, Grants};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap, Membership, Newcomer, NodeState};
use crate::rule::Rule;

const SECOND: u64 = 1_000_000;

/// Monitors of so many nodes that all hold a lease, and what they did last.
pub(super) struct Monitors {
    grants: Grants,
    now_us: u64,
    pub effects: Vec<Effect>,
}

impl Monitors {
    pub fn new(nodes: u16) -> Self {
        Self::with(nodes, &[KeyspaceConfig::default()])
    }

    pub fn with(nodes: u16, keyspaces: &[KeyspaceConfig]) -> Self {
        Self::of(ClusterMap::of(nodes, keyspaces))
    }

    pub fn of(map: ClusterMap) -> Self {
        let map = Arc::new(map);
        let config = LeaseConfig { remove_after_us: Some(60 * SECOND), ..LeaseConfig::default() };
        let grants = Grants::new(config, map, 0);
        Self { grants, now_us: 0, effects: Vec::new() }
    }

    pub fn step(&mut self, event: Event) {
        self.effects.clear();
        self.grants.step(self.now_us, event, &mut self.effects);
        self.grants.invariants();
    }

    pub fn map(&self) -> &ClusterMap {
        self.grants.map()
    }

    pub fn done_to_us(&self) -> u64 {
        self.grants.retention().done_to_us
    }

    pub fn state(&self, node: u16) -> NodeState {
        self.map().nodes[&NodeId(node)].state
    }

    pub fn renew(&mut self, node: u16) -> bool {
        let epoch = self.map().epoch;
        self.renew_with(node, epoch)
    }

    /// Whether the node gets its lease.
    pub fn renew_with(&mut self, node: u16, epoch: Epoch) -> bool {
        let (node, incarnation) = (NodeId(node), self.map().nodes[&NodeId(node)].incarnation);
        self.step(Event::Renew {
            node,
            incarnation,
            epoch,
            sent_us: 7,
            retention: OutcomeRetention::UNKNOWN,
        });
        self.effects.iter().any(|it| matches!(it, Effect::Grant { to, .. } if *to == node))
    }

    /// Time passes, in which only these nodes renew, and prepare when they are asked to.
    pub fn pass(&mut self, seconds: u64, alive: &[u16]) {
        for _ in 0..seconds * 2 {
            self.now_us += SECOND / 2;
            alive.iter().for_each(|node| _ = self.renew(*node));
            self.step(Event::Tick);
            self.all_prepared(alive);
        }
    }

    /// These nodes prepare, as long as they are asked to.
    pub fn all_prepared(&mut self, nodes: &[u16]) {
        for node in nodes {
            if self.grants.pending().is_some() {
                self.prepared(*node);
            }
        }
    }

    pub fn propose(&mut self, change: Change) {
        self.step(Event::Propose { proposal: 1, change });
    }

    /// Whether the last proposal was answered, and how.
    pub fn answer(&self) -> Option<bool> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Answer { result, .. } => Some(result.is_ok()),
            Effect::Grant { .. }
            | Effect::Prepare { .. }
            | Effect::Publish(_)
            | Effect::Inform { .. } => None,
        })
    }

    pub fn back(&mut self, node: u16, incarnation: u64, has_disk: bool) {
        self.back_speaking(LEVEL, node, incarnation, has_disk);
    }

    /// The node starts again with a program that speaks this feature level.
    pub fn back_speaking(&mut self, level: u8, node: u16, incarnation: u64, has_disk: bool) {
        let epoch = self.map().epoch;
        self.step(Event::Return { node: NodeId(node), incarnation, epoch, has_disk, level });
    }

    pub fn caught_up(&mut self, node: u16) {
        let (epoch, node) = (self.map().epoch, NodeId(node));
        let incarnation = self.map().nodes[&node].incarnation;
        self.step(Event::CaughtUp { node, incarnation, epoch });
    }

    pub fn prepared(&mut self, node: u16) {
        let epoch = self.grants.pending().unwrap().epoch;
        let incarnation = self.map().nodes[&NodeId(node)].incarnation;
        self.step(Event::Prepared { node: NodeId(node), incarnation, epoch });
    }

    /// Who was just asked to prepare.
    pub fn asked(&self) -> Vec<u16> {
        let asked = self.effects.iter().filter_map(|effect| match effect {
            Effect::Prepare { to, .. } => Some(to.0),
            Effect::Grant { .. }
            | Effect::Publish(_)
            | Effect::Inform { .. }
            | Effect::Answer { .. } => None,
        });
        asked.collect()
    }
}

/// Three nodes of which node 0 was down, is back and has caught up: node 1 loses by it.
fn node_0_has_caught_up() -> Monitors {
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
