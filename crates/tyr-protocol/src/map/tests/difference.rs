//! What a map says that the one before it did not.

use tyr_types::Epoch;

use super::changes::{back, create};
use super::*;
use crate::map::Membership;

fn lines(before: &ClusterMap, change: &Change) -> (ClusterMap, Vec<String>) {
    let map = before.changed(change).unwrap();
    let lines = map.differences(before);
    (map, lines)
}

#[test]
fn each_change_of_a_node_is_told_in_words() {
    let map = cluster(4);
    assert_eq!(map.at(Epoch(map.epoch.0 + 1)).differences(&map), [] as [String; 0]);
    let (map, told) = lines(&map, &Change::Down(NodeId(2)));
    assert_eq!(told, ["node 2 is down"]);
    let (map, told) = lines(&map, &back(2, 2, true));
    assert_eq!(told, ["node 2 is back, and catches up"]);
    let (map, told) = lines(&map, &Change::Settle(nodes([2])));
    assert_eq!(told, ["node 2 is up again"]);
    let (map, told) = lines(&map, &back(1, 2, true));
    assert_eq!(told, ["node 1 has started again"]);
    let (joining, told) = lines(&map, &Change::Join(vec![newcomer(4)]));
    assert_eq!(told, ["node 4 joins"]);
    let joined = settled(&joining);
    assert!(joined.differences(&joining).contains(&"node 4 has joined".to_owned()));
    let (given_up, told) = lines(&joining, &Change::CancelMove);
    assert_eq!(told, ["node 4 does not join any more"]);
    assert_eq!(given_up.membership(NodeId(4)), Membership::Out);
    let (leaving, told) = lines(&joined, &Change::Drain(NodeId(0)));
    assert_eq!(told, ["node 0 leaves"]);
    assert!(settled(&leaving).differences(&leaving).contains(&"node 0 has left".to_owned()));
    let (_, told) = lines(&leaving, &Change::CancelMove);
    assert_eq!(told, ["node 0 stays"]);
    let (_, told) = lines(&joined, &Change::SetWeight { node: NodeId(1), weight: 50 });
    assert_eq!(told, ["node 1 takes a share of weight 50"]);
}

#[test]
fn keyspaces_and_levels_are_told_too() {
    let map = cluster(3);
    let (made, told) = lines(&map, &create("notes", 2));
    assert_eq!(told, ["keyspace notes was created"]);
    let (id, _) = made.keyspace_named("notes").unwrap();
    let (_, told) = lines(&made, &Change::DropKeyspace(id));
    assert_eq!(told, ["keyspace notes was dropped"]);
    let raised = map.clone().speaking(map.level + 1);
    let expected = format!("feature level {} is used, {} before", map.level + 1, map.level);
    assert_eq!(raised.differences(&map), [expected]);
}
