//! Changes of the map: what they take, what they refuse, what holds after any of them.

use tyr_types::{ErrorKind, KeyspaceName};

use super::*;
use crate::level::{LEVEL, LEVEL_ALONE};
use crate::map::{Membership, NodeState, losers, may_lose};

pub(super) fn back(node: u16, incarnation: u64, has_disk: bool) -> Change {
    Change::Return { node: NodeId(node), incarnation, has_disk, level: LEVEL }
}

pub(super) fn refused(map: &ClusterMap, change: &Change) -> ErrorKind {
    map.changed(change).unwrap_err().kind()
}

pub(super) fn create(name: &str, replication: u8) -> Change {
    let name = KeyspaceName::new(name).unwrap();
    Change::CreateKeyspace { name, config: replicated(replication), seed: 5 }
}

#[test]
fn who_joins_is_a_recipient_until_it_has_caught_up() {
    let map = cluster(4);
    let joining = after(&map, &[Change::Join(vec![newcomer(4), newcomer(5)])]);
    assert_eq!(joining.membership(NodeId(4)), Membership::Joining);
    assert_eq!(joining.recipients_of_any(), nodes([4, 5]));
    let (mut received, mut held) = (0, 0);
    for index in 0..200 {
        let name = blob(&format!("blob {index}"));
        assert_eq!(joining.holders(&name, 0), map.holders(&name, 0));
        let recipients = joining.recipients(&name, 0);
        let done = settled(&joining).holders(&name, 0);
        assert!(recipients.iter().all(|node| done.contains(node)));
        received += recipients.len();
        held += done.iter().filter(|node| node.0 >= 4).count();
    }
    assert!(received > 0 && received == held);
    assert!(settled(&joining).next.is_none());
    assert_eq!(settled(&joining).membership(NodeId(5)), Membership::In);
}

#[test]
fn a_move_ends_only_when_all_its_recipients_have_caught_up() {
    let joining = after(&cluster(4), &[Change::Join(vec![newcomer(4), newcomer(5)])]);
    assert_eq!(refused(&joining, &Change::Settle(nodes([4]))), ErrorKind::Unavailable);
}

#[test]
fn who_is_drained_holds_its_ranges_to_the_end_and_is_out_then() {
    let draining = after(&cluster(5), &[Change::Drain(NodeId(2))]);
    assert_eq!(draining.membership(NodeId(2)), Membership::Leaving);
    assert!(
        (0..50)
            .any(|index| { draining.holders(&blob(&format!("{index}")), 0).contains(&NodeId(2)) })
    );
    let drained = settled(&draining);
    assert_eq!(drained.membership(NodeId(2)), Membership::Out);
    assert!(!drained.is_live(NodeId(2)) && losers(&draining, &drained).contains(&NodeId(2)));
}

#[test]
fn a_node_that_is_down_keeps_its_place_until_it_is_removed() {
    let map = cluster(5);
    let degraded = after(&map, &[Change::Down(NodeId(1))]);
    let name = (0..).map(|index| blob(&format!("{index}")));
    let name = name.into_iter().find(|name| map.holders(name, 0).contains(&NodeId(1))).unwrap();
    assert_eq!(degraded.holders(&name, 0).len(), 2);
    assert!(degraded.recipients(&name, 0).is_empty());
    let healing = after(&degraded, &[Change::Remove(NodeId(1))]);
    assert_eq!(healing.recipients(&name, 0).len(), 1);
    assert_eq!(settled(&healing).holders(&name, 0).len(), 3);
    assert_eq!(refused(&map, &Change::Remove(NodeId(1))), ErrorKind::InvalidArgument);
}

#[test]
fn a_node_that_was_down_is_a_recipient_until_it_has_caught_up() {
    let down = after(&cluster(3), &[Change::Down(NodeId(0))]);
    assert_eq!(refused(&down, &back(0, 1, true)), ErrorKind::InvalidArgument);
    let returning = after(&down, &[back(0, 2, true)]);
    assert_eq!(returning.recipients(&blob("x"), 0).as_slice(), [NodeId(0)]);
    assert_eq!(returning.holders(&blob("x"), 0).as_slice(), [NodeId(1), NodeId(2)]);
    let up = settled(&returning);
    assert_eq!(up.holders(&blob("x"), 0).len(), 3);
    assert_eq!(losers(&returning, &up), nodes([1]), "it was the authority, and is not any more");
}

#[test]
fn a_node_loses_nothing_by_most_maps_and_what_it_loses_is_noticed() {
    let keyspaces = [replicated(2), replicated(3)];
    let map = ClusterMap::of(5, &keyspaces);
    let away = [Change::Down(NodeId(0)), back(0, 2, true)];
    let down = after(&map, &away[..1]);
    let returning = after(&map, &away);
    for (old, new) in [(&map, &down), (&down, &returning), (&returning, &settled(&returning))] {
        assert!(
            (1..5).all(|node| !may_lose(old, new, NodeId(node))),
            "{:?} to {:?}",
            old.epoch,
            new.epoch
        );
    }
    assert!(may_lose(&down, &returning, NodeId(0)), "nobody knows what it has");
    assert!(!may_lose(&returning, &settled(&returning), NodeId(0)), "it gets what it is to hold");

    let joining = after(&map, &[Change::Join(vec![newcomer(5)])]);
    let joined = settled(&joining);
    assert!((0..5).all(|node| !may_lose(&map, &joining, NodeId(node))));
    assert!(may_lose(&map, &joining, NodeId(5)), "nobody knows of it either");
    assert!(
        (0..5).all(|node| may_lose(&joining, &joined, NodeId(node)))
            && !may_lose(&joining, &joined, NodeId(5))
    );
    // As chunks say, one by one.
    for (old, new) in [(&joining, &joined), (&joined, &after(&joined, &[Change::Drain(NodeId(1))]))]
    {
        for node in (0..6).map(NodeId) {
            let is_lost = |index| {
                let (name, of) = (blob(&format!("{index}")), |map: &ClusterMap, name| {
                    map.placement(name, 0).unwrap().has(node)
                });
                of(old, &name) && !of(new, &name)
            };
            assert_eq!(may_lose(old, new, node), (0..2000).any(is_lost), "{node:?}");
        }
    }
    let created = after(&map, &[create("more", 2)]);
    assert!((0..5).all(|node| !may_lose(&map, &created, NodeId(node))));
    let id = *created.keyspaces.keys().last().unwrap();
    let forgotten = after(&created, &[Change::DropKeyspace(id), Change::ForgetKeyspace(id)]);
    assert!((0..5).all(|node| may_lose(&created, &forgotten, NodeId(node))), "of all of it");
}

#[test]
fn a_node_that_starts_again_while_it_is_up_goes_on_with_its_disk_only() {
    let map = cluster(3);
    let resumed = after(&map, &[back(0, 2, true)]);
    assert_eq!(resumed.nodes[&NodeId(0)].state, NodeState::Up);
    assert_eq!(resumed.nodes[&NodeId(0)].since, resumed.epoch);
    assert!(losers(&map, &resumed).is_empty());
    assert_eq!(refused(&map, &back(0, 2, false)), ErrorKind::Unavailable);
    let joining = after(&map, &[Change::Join(vec![newcomer(3)])]);
    let again = after(&joining, &[back(3, 2, false)]);
    assert_eq!(again.nodes[&NodeId(3)].state, NodeState::Up, "who joins had nothing to lose");
}

#[test]
fn the_last_holder_of_a_range_is_never_declared_down() {
    let map = after(&cluster(3), &[Change::Down(NodeId(0)), Change::Down(NodeId(2))]);
    assert_eq!(refused(&map, &Change::Down(NodeId(1))), ErrorKind::Unavailable);
    let returning = after(&map, &[back(0, 2, true)]);
    assert_eq!(refused(&returning, &Change::Down(NodeId(1))), ErrorKind::Unavailable);
    assert!(settled(&returning).changed(&Change::Down(NodeId(1))).is_ok());
}

#[test]
fn one_change_of_the_ring_at_a_time() {
    let joining = after(&cluster(4), &[Change::Join(vec![newcomer(4)])]);
    for change in [
        Change::Drain(NodeId(1)),
        Change::Join(vec![newcomer(5)]),
        Change::SetWeight { node: NodeId(1), weight: 200 },
    ] {
        assert_eq!(refused(&joining, &change), ErrorKind::Unavailable);
    }
    let cancelled = after(&joining, &[Change::CancelMove]);
    assert_eq!(cancelled.membership(NodeId(4)), Membership::Out);
    assert_eq!(refused(&cancelled, &Change::CancelMove), ErrorKind::NotFound);
    let again = Newcomer { incarnation: 2, ..newcomer(4) };
    assert!(cancelled.changed(&Change::Join(vec![newcomer(4)])).is_err(), "an old incarnation");
    assert!(cancelled.changed(&Change::Join(vec![again])).is_ok());
}

#[test]
fn a_weight_moves_ranges_to_the_node() {
    let map = cluster(6);
    let moving = after(&map, &[Change::SetWeight { node: NodeId(3), weight: 300 }]);
    assert_eq!(moving.recipients_of_any(), nodes([3]));
    let same = Change::SetWeight { node: NodeId(3), weight: 100 };
    assert_eq!(refused(&map, &same), ErrorKind::InvalidArgument);
    let none = Change::SetWeight { node: NodeId(3), weight: 0 };
    assert_eq!(refused(&map, &none), ErrorKind::InvalidArgument);
}

#[test]
fn a_node_joins_once() {
    let map = cluster(3);
    for newcomers in [vec![newcomer(1)], vec![newcomer(3), newcomer(3)]] {
        assert_eq!(refused(&map, &Change::Join(newcomers)), ErrorKind::AlreadyExists);
    }
}

#[test]
fn nothing_loses_by_a_change_that_only_adds() {
    let map = cluster(5);
    for change in [
        Change::Join(vec![newcomer(7)]),
        Change::Drain(NodeId(1)),
        Change::SetWeight { node: NodeId(2), weight: 10 },
        create("new", 2),
        back(1, 2, true),
    ] {
        assert!(losers(&map, &map.changed(&change).unwrap()).is_empty(), "{change:?}");
    }
}

#[test]
fn keyspace_numbers_are_never_given_twice() {
    let map = after(&cluster(3), &[create("new", 3)]);
    assert_eq!(refused(&map, &create("new", 3)), ErrorKind::AlreadyExists);
    assert_eq!(refused(&map, &Change::ForgetKeyspace(KeyspaceId(2))), ErrorKind::NotFound);
    let map = after(&map, &[Change::DropKeyspace(KeyspaceId(2)), create("new", 2)]);
    assert_eq!(map.keyspace_named("new").unwrap().0, KeyspaceId(3));
    let forget = Change::ForgetKeyspace(KeyspaceId(2));
    let map = after(&map, &[forget, create("newer", 2)]);
    assert_eq!(map.keyspace_named("newer").unwrap().0, KeyspaceId(4));
    map.invariants();
}

#[test]
fn changes_of_keyspaces_move_nothing() {
    let map = cluster(3);
    let created = after(&map, &[create("new", 3), Change::DropKeyspace(KeyspaceId(1))]);
    assert_eq!(created.moved, map.moved);
    assert!(created.epoch > map.epoch);
}

#[test]
fn a_map_that_does_not_fit_together_is_refused() {
    let spoil = |spoil: fn(&mut ClusterMap)| {
        let mut map = after(&cluster(4), &[Change::Down(NodeId(3))]);
        map.check().unwrap();
        spoil(&mut map);
        map.check().unwrap_err();
    };
    spoil(|map| map.moved.0 += 1);
    spoil(|map| _ = map.nodes.remove(&NodeId(1)));
    spoil(|map| map.next = Some(map.ring.clone()));
    spoil(|map| map.ring = map.ring.without(NodeId(1)).unwrap());
    spoil(|map| map.keyspaces_created = 0);
    spoil(|map| {
        (0..3).for_each(|it| map.nodes.get_mut(&NodeId(it)).unwrap().state = NodeState::Down)
    });
    spoil(|map| map.nodes.get_mut(&NodeId(1)).unwrap().since.0 = 99);
}

/// A change at random; many of them are refused.
fn change(seed: u64, count: u64) -> Change {
    let draw = |salt: u64, bound: u64| number(seed ^ salt << 32, count, bound);
    let node = NodeId(draw(1, 8) as u16);
    match draw(2, 12) {
        0 => Change::Join(vec![Newcomer { incarnation: count, ..newcomer(node.0) }]),
        1 => Change::Drain(node),
        2 => Change::Remove(node),
        3 => Change::SetWeight { node, weight: 50 + 50 * draw(3, 4) as u32 },
        4 if draw(3, 3) == 0 => Change::CancelMove,
        4..=6 => Change::Down(node),
        7..=9 => back(node.0, count, draw(3, 3) > 0),
        _ => Change::Settle(
            (0..8).filter(|it| draw(4 + it, 4) > 0).map(|it| NodeId(it as u16)).collect(),
        ),
    }
}

#[test]
fn whatever_happens_every_range_has_a_holder_and_losers_are_all_who_lose() {
    let mut made = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        let mut map = ClusterMap::of(5, &[replicated(2 + (seed % 2) as u8)]);
        for count in 10..160 {
            let Ok(new) = map.changed(&change(seed, count)) else { continue };
            made += 1;
            new.invariants();
            assert!(new.epoch > map.epoch);
            let losers = losers(&map, &new);
            for index in 0..40 {
                let name = blob(&format!("{seed} {index}"));
                let (before, now) = (map.holders(&name, 0), new.holders(&name, 0));
                assert!(!now.is_empty());
                let lost = before.iter().filter(|node| !now.contains(node));
                assert!(lost.into_iter().all(|node| losers.contains(node)));
                assert!(before[0] == now[0] || losers.contains(&before[0]));
                let recipients = new.recipients(&name, 0);
                assert!(recipients.iter().all(|it| new.is_live(*it) && !now.contains(it)));
            }
            map = new;
        }
    }
    assert!(made > 1_000, "only {made} changes were made");
}

/// What a holder holds, it held before, or was a recipient of until it had caught up.
#[test]
fn nobody_becomes_a_holder_who_was_no_recipient() {
    for seed in 40..80 {
        println!("seed {seed}");
        let mut map = ClusterMap::of(5, &[replicated(3)]);
        for count in 10..160 {
            let step = change(seed, count);
            let Ok(new) = map.changed(&step) else { continue };
            for index in 0..40 {
                let name = blob(&format!("{seed} {index}"));
                let before = map.placement(&name, 0).unwrap();
                for node in new.holders(&name, 0) {
                    let caught_up = matches!(&step, Change::Settle(it) if it.contains(&node));
                    let has_received = before.recipients.contains(&node) && caught_up;
                    assert!(before.holders.contains(&node) || has_received, "{step:?}");
                }
            }
            map = new;
        }
    }
}

#[test]
fn groups_wait_until_all_nodes_know_how_to_place_them() {
    let placed = KeyspaceConfig { placed_by: PlacedBy::First(8), ..replicated(3) };
    let change = Change::CreateKeyspace {
        name: KeyspaceName::new("groups").unwrap(),
        config: placed.clone(),
        seed: 5,
    };
    let old = cluster(3).speaking(LEVEL_ALONE);
    let error = old.changed(&change).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("feature level 3"), "{error}");
    let created = after(&cluster(3), &[change]);
    assert_eq!(created.keyspaces.values().last().unwrap().config, placed.explicit());
}

#[test]
fn a_map_says_which_nodes_a_feature_level_waits_for() {
    let mut map = cluster(3);
    assert!(map.check_level(LEVEL).is_ok() && map.check_program(LEVEL).is_ok());
    let error = map.check_level(LEVEL + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let expected = format!(
        "this needs feature level {}, and the cluster uses {LEVEL}: nodes 0, 1, 2 are of older \
         releases; upgrade them",
        LEVEL + 1
    );
    assert_eq!(error.message(), expected);
    let speaks = |map: &mut ClusterMap, node: u16| {
        map.nodes.get_mut(&NodeId(node)).unwrap().level = LEVEL + 1;
    };
    (0..2).for_each(|node| speaks(&mut map, node));
    assert_eq!(refused(&map, &Change::RaiseLevel), ErrorKind::Unavailable);
    let error = map.check_level(LEVEL + 1).unwrap_err();
    assert!(error.message().ends_with("node 2 is of an older release; upgrade it"), "{error}");
    speaks(&mut map, 2);
    let raised = after(&map, &[Change::RaiseLevel]);
    assert_eq!((raised.level, raised.moved), (LEVEL + 1, map.moved));
    assert!(raised.check_level(LEVEL + 1).is_ok());
    let error = raised.check_program(LEVEL).unwrap_err();
    let expected = format!(
        "this cluster uses feature level {}; this program speaks up to {LEVEL}: it is of an older \
         release; upgrade it",
        LEVEL + 1
    );
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, &expected[..]));
    assert_eq!(refused(&raised, &back(1, 2, true)), ErrorKind::InvalidArgument);
    let mut wrong = raised;
    wrong.nodes.get_mut(&NodeId(1)).unwrap().level = LEVEL;
    assert!(wrong.check().is_err());
}
