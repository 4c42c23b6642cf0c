//! Kept snapshots of a map (V7).

use tyr_types::{Epoch, ErrorKind, KeptName, KeyspaceId, Timestamp, limits};

use super::changes::refused;
use super::*;
use crate::level::LEVEL_LISTING;

fn name(text: &str) -> KeptName {
    KeptName::new(text).unwrap()
}

fn keep(text: &str) -> Change {
    Change::Keep { name: name(text), day_us: 7 }
}

/// V7.
#[test]
fn a_kept_moment_lies_between_all_of_earlier_maps_and_all_of_this_one() {
    let map = cluster(3);
    let kept = after(&map, &[keep("monday")]);
    let at = kept.kept_named(&name("monday")).unwrap().at();
    let last = Timestamp { epoch: map.epoch, clock: u64::MAX, node: u16::MAX };
    let first = Timestamp { epoch: kept.epoch, clock: 0, node: 0 };
    assert!(last < at && at <= first);
    assert_eq!(kept.moved, map.moved, "nothing moves for it");
    assert!(kept.is_kept(at) && !map.is_kept(at));
    let both = after(&kept, &[keep("tuesday")]);
    assert_eq!(both.kept_moments(), [at, Timestamp { epoch: both.epoch, ..Timestamp::ZERO }]);
    let one = after(&both, &[Change::DropKept(name("monday"))]);
    assert!(!one.is_kept(at) && one.kept.len() == 1);
    assert_eq!(refused(&one, &Change::DropKept(name("monday"))), ErrorKind::NotFound);
    assert_eq!(refused(&both, &keep("tuesday")), ErrorKind::AlreadyExists);
    assert_eq!(both.differences(&kept), ["snapshot tuesday is kept"]);
    assert_eq!(one.differences(&both), ["kept snapshot monday was dropped"]);
    let older = map.speaking(LEVEL_LISTING);
    assert_eq!(refused(&older, &keep("monday")), ErrorKind::Unavailable);
}

#[test]
fn as_many_are_kept_as_can_be_and_no_more() {
    let mut map = cluster(3);
    for number in 0..limits::KEPT_MAX {
        map = map.changed(&keep(&format!("n{number}"))).unwrap();
    }
    assert_eq!(refused(&map, &keep("more")), ErrorKind::Unavailable);
    let spoil = |spoil: fn(&mut ClusterMap)| {
        let mut map = after(&cluster(3), &[keep("monday"), keep("tuesday")]);
        spoil(&mut map);
        map.check().unwrap_err();
    };
    spoil(|map| {
        let epoch = map.epoch;
        map.kept.values_mut().for_each(|kept| kept.epoch = epoch);
    });
    spoil(|map| map.kept.get_mut(&name("monday")).unwrap().epoch = Epoch(99));
}

#[test]
fn what_was_kept_before_its_only_replica_was_given_up_is_lost() {
    let map = ClusterMap::of(3, &[replicated(1)]);
    let kept = after(&map, &[keep("monday"), Change::Down(NodeId(2))]);
    let at = kept.kept_named(&name("monday")).unwrap().at();
    assert!(!kept.is_lost_since(KeyspaceId(1), at));
    let lost = after(&kept, &[Change::AcceptLoss(KeyspaceId(1)), keep("tuesday")]);
    assert!(lost.is_lost_since(KeyspaceId(1), at));
    let later = lost.kept_named(&name("tuesday")).unwrap().at();
    assert!(!lost.is_lost_since(KeyspaceId(1), later));
}
