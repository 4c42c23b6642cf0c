//! The feature level follows what all nodes speak, and never falls.

use super::monitors::Monitors;
use crate::lease::Effect;
use crate::level::LEVEL;
use crate::map::{Change, Membership, Newcomer};
use tyr_types::NodeId;

const NEXT: u8 = LEVEL + 1;

#[test]
fn the_level_rises_when_the_last_node_speaks_a_higher_one() {
    let mut monitors = Monitors::new(3);
    for node in 0..3 {
        assert_eq!(monitors.map().level, LEVEL);
        assert!(monitors.map().behind(NEXT).any(|behind| behind == NodeId(node)));
        monitors.back_speaking(NEXT, node, 2, true);
    }
    assert_eq!(monitors.map().level, NEXT);
    assert_eq!(monitors.map().behind(NEXT).count(), 0);
    assert!(
        monitors
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Publish(map) if map.level == NEXT))
    );
    assert!(monitors.renew(0) && monitors.renew(1) && monitors.renew(2), "nobody lost anything");
}

#[test]
fn a_node_that_is_down_is_waited_for_until_it_is_removed() {
    let mut monitors = Monitors::new(4);
    monitors.pass(10, &[0, 1, 2]);
    for node in 0..3 {
        monitors.back_speaking(NEXT, node, 2, true);
    }
    assert_eq!(monitors.map().level, LEVEL, "it may come back as it was");
    monitors.pass(70, &[0, 1, 2]);
    for node in 0..3 {
        monitors.caught_up(node);
    }
    monitors.pass(1, &[0, 1, 2]);
    assert_eq!(monitors.map().membership(NodeId(3)), Membership::Out);
    assert_eq!(monitors.map().level, NEXT);
}

#[test]
fn a_node_of_an_older_release_is_not_let_in_and_is_told_why() {
    let mut monitors = Monitors::new(3);
    for node in 0..3 {
        monitors.back_speaking(NEXT, node, 2, true);
    }
    monitors.back_speaking(LEVEL, 1, 3, true);
    let told = |effect: &Effect| match effect {
        Effect::Inform { to, map } => to.0 == 1 && map.level == NEXT,
        _ => false,
    };
    assert!(monitors.effects.iter().any(told));
    assert_eq!(monitors.map().incarnation(NodeId(1)), Some(2));
    assert_eq!(monitors.map().level, NEXT, "it never falls");
    monitors.back_speaking(NEXT, 1, 4, true);
    assert_eq!(monitors.map().incarnation(NodeId(1)), Some(4), "upgraded, it is back");
    let newcomer = Newcomer { node: NodeId(9), incarnation: 1, ..Newcomer::default() };
    monitors.propose(Change::Join(vec![newcomer]));
    assert_eq!(monitors.answer(), Some(false));
    monitors.propose(Change::Join(vec![Newcomer { level: NEXT, ..newcomer }]));
    assert_eq!(monitors.answer(), Some(true));
}
