//! What has one replica: it waits for the node that has it, and can be given up.

use tyr_types::{BlobName, ErrorKind, Key, KeyspaceId};

use super::changes::{back, create, refused};
use super::*;
use crate::level::{LEVEL, LEVEL_ALONE};
use crate::map::{NodeState, losers};

/// What has one replica keeps nobody from being declared down: it stays with its node.
#[test]
fn who_alone_has_something_is_declared_down_and_what_it_has_waits_for_it() {
    let map = ClusterMap::of(3, &[replicated(3), replicated(1)]);
    let down = after(&map, &[Change::Down(NodeId(1))]);
    assert_eq!(down.awaited(), BTreeSet::from([NodeId(1)]));
    let (several, single) = (KeyspaceId(1), KeyspaceId(2));
    for blob in blobs(several) {
        assert_eq!(down.holders(&blob, 0).as_slice(), [NodeId(0), NodeId(2)]);
    }
    let here = after(&down, &[back(1, 2, true)]);
    let mut waiting = 0;
    for blob in blobs(single) {
        let held = map.holders(&blob, 0);
        assert_eq!((down.holders(&blob, 0), here.holders(&blob, 0)), (held.clone(), held.clone()));
        assert!(here.recipients(&blob, 0).is_empty() && here.check_readable(&blob, 0).is_ok());
        if held.contains(&NodeId(1)) {
            let abort = down.check_readable(&blob, 0).unwrap_err();
            assert_eq!(abort.kind, ErrorKind::Unavailable);
            assert!(abort.reason.contains("tyr keyspace loss keyspace-2"), "{}", abort.reason);
            waiting += 1;
        }
    }
    assert!(waiting > 0);
    assert_eq!(down.check_whole(single).unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(down.check_whole(several).is_ok() && here.check_whole(single).is_ok());
    assert_eq!(refused(&down, &Change::Remove(NodeId(1))), ErrorKind::Unavailable);
    assert_eq!(refused(&down, &back_without_disk(1)), ErrorKind::Unavailable);
}

#[test]
fn an_accepted_loss_gives_what_one_alone_had_to_others_and_back_by_copy() {
    let map = ClusterMap::of(4, &[replicated(3), replicated(1), replicated(1)]);
    let (single, other) = (KeyspaceId(2), KeyspaceId(3));
    let down = after(&map, &[Change::Down(NodeId(1))]);
    let lost = after(&down, &[Change::AcceptLoss(single)]);
    assert!(losers(&down, &lost).contains(&NodeId(1)));
    let returning = after(&lost, &[back(1, 2, true)]);
    for blob in blobs(single) {
        let (before, now) = (map.holders(&blob, 0), lost.holders(&blob, 0));
        assert!(now.len() == 1 && lost.check_readable(&blob, 0).is_ok());
        assert_eq!(before != now, before.contains(&NodeId(1)), "others keep what they have");
        assert_eq!(returning.holders(&blob, 0), now, "who is back has nothing of it");
        assert_eq!(returning.recipients(&blob, 0).contains(&NodeId(1)), before != now);
        assert_eq!(settled(&returning).holders(&blob, 0), before);
    }
    for blob in blobs(other) {
        assert_eq!(lost.holders(&blob, 0), map.holders(&blob, 0), "no other keyspace is touched");
    }
    assert!(settled(&returning).keyspaces[&single].lost.is_empty());
    assert_eq!(refused(&lost, &back_without_disk(1)), ErrorKind::Unavailable, "the other waits");
    let all = after(&lost, &[Change::AcceptLoss(other)]);
    assert!(all.awaited().is_empty() && all.changed(&back_without_disk(1)).is_ok());
    let removed = settled(&after(&all, &[Change::Remove(NodeId(1))]));
    assert!(removed.keyspaces.values().all(|it| it.lost.is_empty()));
    for id in [KeyspaceId(1), KeyspaceId(9)] {
        assert!(down.changed(&Change::AcceptLoss(id)).is_err(), "{id:?} loses nothing");
    }
    assert_eq!(refused(&lost, &Change::AcceptLoss(single)), ErrorKind::NotFound);
    assert_eq!(refused(&map, &Change::AcceptLoss(single)), ErrorKind::NotFound);
}

#[test]
fn a_change_of_the_ring_waits_for_who_alone_has_something() {
    let map = ClusterMap::of(3, &[replicated(1)]);
    let leaving = after(&map, &[Change::Drain(NodeId(0)), Change::Down(NodeId(1))]);
    let everyone = Change::Settle((0..3).map(NodeId).collect());
    assert_eq!(refused(&leaving, &everyone), ErrorKind::Unavailable);
    let here = after(&leaving, &[back(1, 2, true)]);
    assert!(after(&here, &[everyone]).next.is_none());
}

/// It would alone hold what it has not got yet.
#[test]
fn a_join_does_not_end_while_who_joins_is_down() {
    let map = ClusterMap::of(3, &[replicated(1), replicated(2)]);
    let joining = after(&map, &[Change::Join(vec![newcomer(3)]), Change::Down(NodeId(3))]);
    let everyone = Change::Settle((0..3).map(NodeId).collect());
    assert_eq!(refused(&joining, &everyone), ErrorKind::Unavailable);
    let dropped = after(&joining, &[Change::DropKeyspace(KeyspaceId(1)), everyone]);
    assert!(dropped.next.is_none() && dropped.awaited().is_empty());
    let given_up = after(&joining, &[Change::CancelMove]);
    assert!(given_up.next.is_none() && given_up.awaited().is_empty());
}

#[test]
fn what_is_made_or_dropped_while_a_node_is_down_does_not_wait_for_it() {
    let map = after(&cluster(3), &[Change::Down(NodeId(0)), create("single", 1)]);
    assert!(map.awaited().is_empty() && map.check_whole(KeyspaceId(2)).is_ok());
    let map = after(&map, &[create("double", 2)]);
    assert_eq!(refused(&map, &Change::Down(NodeId(1))), ErrorKind::Unavailable);
    let single = ClusterMap::of(3, &[replicated(1)]);
    let dropped = Change::DropKeyspace(KeyspaceId(1));
    for changes in [[Change::Down(NodeId(0)), dropped.clone()], [dropped, Change::Down(NodeId(0))]]
    {
        assert!(after(&single, &changes).awaited().is_empty());
    }
}

/// A program of the release before would take what has one replica as gone with its node.
#[test]
fn before_level_2_who_alone_has_something_is_not_declared_down() {
    let map = ClusterMap::of(3, &[replicated(3), replicated(1)]).speaking(LEVEL_ALONE - 1);
    assert_eq!(refused(&map, &Change::Down(NodeId(1))), ErrorKind::Unavailable);
    let error = map.changed(&Change::AcceptLoss(KeyspaceId(2))).unwrap_err();
    assert!(error.message().contains("this needs feature level 2"), "{error}");
    let without = cluster(3).speaking(LEVEL_ALONE - 1);
    let down = after(&without, &[Change::Down(NodeId(1)), create("double", 2)]);
    assert_eq!(refused(&down, &create("single", 1)), ErrorKind::Unavailable);
    let back = Change::Return { node: NodeId(1), incarnation: 2, has_disk: true, level: 1 };
    let returning = after(&down, &[back]);
    assert_eq!(refused(&returning, &create("single", 1)), ErrorKind::Unavailable);
    let raised = after(&upgraded(&map), &[Change::RaiseLevel]);
    assert_eq!((raised.level, raised.moved), (LEVEL, map.moved));
    assert_eq!(after(&raised, &[Change::Down(NodeId(1))]).awaited(), nodes([1]));
}

/// What a node has that went down before the level rose was thrown away when it came back.
#[test]
fn when_the_level_rises_nobody_waits_for_what_was_dropped_before() {
    let map = ClusterMap::of(4, &[replicated(2), replicated(1)]).speaking(LEVEL_ALONE - 1);
    let single = KeyspaceId(2);
    let back = Change::Return { node: NodeId(0), incarnation: 2, has_disk: true, level: 1 };
    let changes = [Change::DropKeyspace(single), Change::Down(NodeId(0)), back];
    for end in 2..=changes.len() {
        let before = after(&map, &changes[..end]);
        assert!(before.keyspaces[&single].lost.is_empty() && before.awaited().is_empty());
        let raised = after(&upgraded(&before), &[Change::RaiseLevel]);
        raised.invariants();
        let expected = before.nodes.iter().filter(|(_, it)| it.state != NodeState::Up);
        assert!(raised.keyspaces[&single].lost.keys().eq(expected.map(|(node, _)| node)));
        assert!(raised.moved == raised.epoch && raised.awaited().is_empty());
        assert!(losers(&before, &raised).is_empty());
        for blob in blobs(single) {
            let holders = raised.holders(&blob, 0);
            assert!(holders.len() == 1 && raised.is_live(holders[0]));
        }
    }
}

/// All its nodes have got the program of this release.
fn upgraded(map: &ClusterMap) -> ClusterMap {
    let level = map.level;
    ClusterMap { level, ..map.clone().speaking(LEVEL) }
}

/// Blobs of a keyspace.
fn blobs(keyspace: KeyspaceId) -> impl Iterator<Item = BlobName> {
    let key = |number: u32| Key::new(number.to_be_bytes()).unwrap();
    (0..40).map(move |number| BlobName { keyspace, key: key(number) })
}

fn back_without_disk(node: u16) -> Change {
    back(node, 2, false)
}
