//! What is noted of what happens to a cluster.

use tyr_types::{ErrorKind, KeyspaceConfig, KeyspaceName, NodeId};

use super::nodes::World;
use tyr_control::message::{Remark, Remarks};
use tyr_control::{Change, MetadataClient, Sender};
use tyr_metadata::{Path, Transaction, reserved};

fn put(path: &str) -> Transaction {
    Transaction::new().put(Path::new(path).unwrap(), "{}")
}

/// Whose the entries are, and what they say behind the time, from this one on.
async fn entries(client: &MetadataClient, from: usize) -> Vec<(String, String)> {
    let mut entries: Vec<(Path, tyr_metadata::Entry)> = Vec::new();
    loop {
        let after = entries.last().map(|(path, _)| path.as_str());
        let (page, _) = client.list(reserved::LOG, after, 1000).await.unwrap();
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    let entry = |(path, entry): (Path, tyr_metadata::Entry)| {
        let (_, event) = reserved::log_place(path.as_str()).unwrap();
        let text = String::from_utf8(entry.value.to_vec()).unwrap();
        let (head, lines) = text.split_once('\n').unwrap();
        let by = head.split_once(' ').map(|(_, by)| format!("{by}: ")).unwrap_or_default();
        (event.map_or("map", |(_, of)| of).to_owned(), format!("{by}{lines}"))
    };
    entries.into_iter().skip(from).map(entry).collect()
}

fn remarks(node: u16, first: u64, texts: &[&str]) -> Remarks {
    let remark = |text: &&str| Remark { ago_ms: 5, text: (*text).to_owned() };
    Remarks { node, run: 7, first, remarks: texts.iter().map(remark).collect() }
}

#[tokio::test(start_paused = true)]
async fn what_users_change_is_noted_with_their_names_and_outlives_the_leader() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let root = world.client_as(3, Sender::User("root".to_owned()));
    let before = entries(&world.client(0), 0).await.len();
    let name = KeyspaceName::new("notes").unwrap();
    let config = KeyspaceConfig { replication: 3, ..KeyspaceConfig::default() };
    root.propose(Change::CreateKeyspace { name, config, seed: 1 }).await.unwrap();
    root.transact(put("quotas/1")).await.unwrap();
    root.transact(put("service/a")).await.unwrap();
    let first = Path::new("users/bob").unwrap();
    root.transact(put("access/service/").delete(first)).await.unwrap_err();
    root.transact(put("quotas/2")).await.unwrap();
    world.client(1).transact(put("quotas/3")).await.unwrap();
    let expected = [
        ("map", "by root: keyspace notes was created"),
        ("user", "by root: quotas/1 was changed"),
        ("user", "by root: quotas/2 was changed"),
    ]
    .map(|(of, text)| (of.to_owned(), text.to_owned()));
    assert_eq!(entries(&world.client(0), before).await, expected, "and what was refused is not");
    world.kill_monitor(leader).await;
    let left = (0..3).find(|node| *node != leader).unwrap();
    let after = entries(&world.client(left), before).await;
    assert_eq!(after[..3], expected);
}

#[tokio::test(start_paused = true)]
async fn who_becomes_a_monitor_and_who_is_none_any_more_is_noted_once() {
    let mut world = World::formed(4, 3).await;
    world.try_start_monitor(3, Vec::new()).await.unwrap();
    let root = world.client_as(9, Sender::User("root".to_owned()));
    let before = entries(&world.client(0), 0).await.len();
    root.appoint(NodeId(3), true).await.unwrap();
    root.appoint(NodeId(3), true).await.unwrap();
    root.appoint(NodeId(3), false).await.unwrap();
    root.appoint(NodeId(9), true).await.unwrap_err();
    let expected = ["by root: node 3 is a monitor", "by root: node 3 is no monitor any more"]
        .map(|text| ("user".to_owned(), text.to_owned()));
    assert_eq!(entries(&world.client(0), before).await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_says_is_noted_once_however_often_and_to_whomever_it_says_it() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let left = (0..3).find(|node| *node != leader).unwrap();
    let before = entries(&world.client(left), 0).await.len();
    let said = |first, texts: &[&str]| remarks(2, first, texts);
    world.client(left).remark(said(0, &["its disk\nis full", "b"])).await.unwrap();
    world.client(leader).remark(said(1, &["b", "c"])).await.unwrap();
    world.kill_monitor(leader).await;
    world.client(left).remark(said(0, &["its disk is full", "b", "c", "d"])).await.unwrap();
    let mut noted = entries(&world.client(left), before).await;
    // The one of the leader that went is a map.
    noted.retain(|(of, _)| of != "map");
    let text = |(_, text): &(String, String)| text.clone();
    let texts: Vec<_> = noted.iter().map(text).collect();
    assert_eq!(texts, ["its disk is full", "b", "c", "d"].map(|it| format!("node 2: {it}")));
    assert_eq!(noted[0].0, "node-2-0000000000000007-0");
    let alice = world.client_as(3, Sender::User("alice".to_owned()));
    let refused = alice.remark(said(9, &["x"])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let many = world.client(left).remark(remarks(2, 9, &["x"; 17])).await.unwrap_err();
    assert_eq!(many.kind(), ErrorKind::InvalidArgument, "{many}");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_what_nodes_said_goes_and_no_map_with_it() {
    let world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let client = world.client(leader);
    let maps = entries(&client, 0).await;
    let max = crate::cluster_log::EVENTS_MAX as u64;
    for first in (0..max + 32).step_by(16) {
        client.remark(remarks(1, first, &["x"; 16])).await.unwrap();
    }
    let noted = entries(&client, 0).await;
    let (events, kept): (Vec<_>, Vec<_>) = noted.into_iter().partition(|(of, _)| of != "map");
    assert_eq!((events.len() as u64, kept), (max, maps));
    assert_eq!(events[0].0, "node-1-0000000000000007-32");
}
