//! Listings of a cluster of three in this process, at one moment whatever happens (Q1).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_types::{BlobOperations, Bytes, Key, NodeId, Operation, Payload, Timestamp};

use super::cluster::{PATIENCE, Stage};
use tyr_client::{Client, block_on};
use tyr_server::Observer;

/// Everything at a moment, in pages.
fn listed(stage: &Stage, client: &Client, at: Timestamp, page: usize) -> Vec<(String, u64)> {
    let (mut all, mut after) = (Vec::new(), None::<Key>);
    loop {
        let listed = client.list(stage.keyspace, b"", after.as_ref(), page, Some(at));
        let (listed, is_end) = block_on(listed).unwrap();
        after = listed.last().map(|(key, _)| key.clone()).or(after);
        all.extend(listed.into_iter().map(|(key, stat)| (key.to_string(), stat.size)));
        if is_end {
            return all;
        }
    }
}

fn put(stage: &Stage, key: &str, len: usize) -> BlobOperations {
    let payload = Payload::Inline(Bytes::from(vec![7; len]));
    BlobOperations { blob: stage.blob(key), operations: vec![Operation::Replace { payload }] }
}

fn delete(stage: &Stage, key: &str) -> BlobOperations {
    BlobOperations { blob: stage.blob(key), operations: vec![Operation::Delete] }
}

fn commit(client: &Client, blobs: Vec<BlobOperations>) {
    client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap();
}

fn moment(client: &Client) -> Timestamp {
    block_on(client.moment()).unwrap().unwrap()
}

fn folds(stage: &Stage) -> u64 {
    let of = |server| Observer::of(server).statistics().folds;
    stage.servers.values().map(of).min().unwrap()
}

fn keys() -> Vec<String> {
    (0..40).map(|number| format!("key-{number:02}")).collect()
}

#[test]
fn a_snapshot_lists_what_was_deleted_and_folded_since() {
    let (stage, client) = Stage::with(|options| {
        options.fold_log_bytes = 64 << 10;
        options.linger = Duration::from_secs(100);
    });
    commit(&client, keys().iter().map(|key| put(&stage, key, key.len() * 700)).collect());
    let at = moment(&client);
    let first = listed(&stage, &client, at, 100);
    assert_eq!(first.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), keys());
    commit(&client, keys().iter().map(|key| delete(&stage, key)).collect());
    let (begun, before) = (Instant::now(), folds(&stage));
    while folds(&stage) < before + 2 {
        assert!(begun.elapsed() < PATIENCE, "nothing is folded");
        commit(&client, vec![put(&stage, "other", 30_000)]);
    }
    assert_eq!(listed(&stage, &client, at, 100), first);
    assert_eq!(listed(&stage, &client, at, 7), first);
    let now = moment(&client);
    assert_eq!(listed(&stage, &client, now, 7), [("other".to_owned(), 30_000)]);
}

#[test]
fn a_snapshot_lists_the_same_when_a_node_is_lost() {
    let (mut stage, client) = Stage::new();
    commit(&client, keys().iter().map(|key| put(&stage, key, 10)).collect());
    let at = moment(&client);
    let first = listed(&stage, &client, at, 9);
    commit(&client, keys()[10..30].iter().map(|key| delete(&stage, key)).collect());
    stage.servers.remove(&NodeId(0));
    assert_eq!((listed(&stage, &client, at, 9), first.len()), (first, 40));
}

#[test]
fn listings_while_pairs_come_and_go_are_each_of_one_moment() {
    let (stage, client) = Stage::new();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (stage, client, is_over) = (&stage, &client, &is_over);
            scope.spawn(move || {
                let names = |n: u64| ["a", "b"].map(|side| format!("{side}-{writer}-{}", n % 5));
                for n in 0.. {
                    commit(client, names(n).iter().map(|key| put(stage, key, 5000)).collect());
                    commit(client, names(n + 3).iter().map(|key| delete(stage, key)).collect());
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        for page in (1..40).chain(1..40) {
            let at = moment(&client);
            let first = listed(&stage, &client, at, page);
            let (left, right): (Vec<_>, Vec<_>) =
                first.iter().map(|(key, _)| key).partition(|key| key.starts_with('a'));
            assert!(left.iter().map(|key| &key[1..]).eq(right.iter().map(|key| &key[1..])));
            assert_eq!(listed(&stage, &client, at, 100), first);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
