//! Listings of a cluster of three in this process, at one moment whatever happens (Q1).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_types::{
    BlobOperations, ByteRange, Bytes, NodeId, Operation, Payload, Scan, ScanPage, Timestamp,
};

use super::cluster::{PATIENCE, Stage};
use tyr_client::{Client, block_on};
use tyr_server::Observer;

/// Everything at a moment, in pages.
fn listed(stage: &Stage, client: &Client, at: Timestamp, page: usize) -> Vec<(String, u64)> {
    let pages = pages(stage, client, at, Scan::new().limit(page));
    let entries = pages.into_iter().flat_map(|page| page.entries);
    entries.map(|entry| (entry.key.to_string(), entry.stat.unwrap().size)).collect()
}

/// All pages of a scan at a moment.
fn pages(stage: &Stage, client: &Client, at: Timestamp, scan: Scan) -> Vec<ScanPage> {
    let (mut all, mut next) = (Vec::new(), Some(scan));
    while let Some(scan) = next {
        let page = client.scan(stage.keyspace, scan.clone(), Some(at)).answer();
        let page = block_on(page).unwrap();
        next = scan.resumed(&page);
        all.push(page);
    }
    all
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
    block_on(client.moment().answer()).unwrap().unwrap().0
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

/// Q2.
#[test]
fn first_bytes_and_groups_come_from_the_nodes_that_list_and_are_of_the_moment() {
    let (stage, client) = Stage::new();
    let names: Vec<String> =
        (0..60).map(|n| format!("{}/{n:02}", ["a", "b", "c"][n % 3])).collect();
    commit(&client, names.iter().map(|key| put(&stage, key, 100)).collect());
    let at = moment(&client);
    // One that lies in an extent, compressed or not.
    commit(&client, vec![put(&stage, "a/00", 200_000), delete(&stage, "a/03")]);
    let scan = Scan::new().prefix("a/").limit(7).range(ByteRange { start: 2, end: 300 });
    let entries = |at| {
        let pages = pages(&stage, &client, at, scan.clone());
        let entries = pages.into_iter().flat_map(|page| page.entries);
        entries.map(|it| (it.key.to_string(), it.stat.unwrap().size, it.bytes)).collect::<Vec<_>>()
    };
    let before = entries(at);
    assert_eq!(before.len(), 20);
    assert!(before.iter().all(|(_, size, bytes)| *size == 100 && *bytes == vec![7; 98]));
    let after = entries(moment(&client));
    assert_eq!(after.len(), 19);
    assert_eq!(after[0], ("a/00".to_owned(), 200_000, Bytes::from(vec![7; 298])));
    let grouped = pages(&stage, &client, at, Scan::new().delimiter("/").limit(2));
    let groups: Vec<Bytes> = grouped.iter().flat_map(|page| page.groups.clone()).collect();
    assert_eq!((groups, grouped.len()), (["a/", "b/", "c/"].map(Bytes::from).to_vec(), 2));
    assert!(grouped.iter().all(|page| page.entries.is_empty()));
}
