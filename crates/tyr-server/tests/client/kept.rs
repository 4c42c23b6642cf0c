//! What kept snapshots hold on the disks of a cluster of three (V7).

use std::time::Instant;

use tyr_client::{Client, Place, Want, block_on};
use tyr_server::Observer;
use tyr_types::{
    BlobOperations, ByteRange, Bytes, ErrorKind, KeptName, Operation, Payload, Result,
};

use super::cluster::{PATIENCE, Stage};

/// Blobs that are there when a snapshot is kept.
const BLOBS: usize = 30;

/// Bytes of each.
const LEN: usize = 3000;

/// What each node holds when all of them were replaced.
const ALL: u64 = (BLOBS * LEN) as u64;

fn name(name: &str) -> KeptName {
    KeptName::new(name).unwrap()
}

fn put(client: &Client, stage: &Stage, key: &str, byte: u8) {
    let payload = Payload::Inline(Bytes::from(vec![byte; LEN]));
    let operations = vec![Operation::Replace { payload }];
    commit(client, stage, key, operations);
}

fn commit(client: &Client, stage: &Stage, key: &str, operations: Vec<Operation>) {
    let blobs = vec![BlobOperations { blob: stage.blob(key), operations }];
    client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap();
}

/// Some of the blobs are this now.
fn put_some(client: &Client, stage: &Stage, some: std::ops::Range<usize>, byte: u8) {
    some.for_each(|number| put(client, stage, &number.to_string(), byte));
}

/// What is shown to be held for each kept snapshot.
fn held(client: &Client) -> Vec<(String, u64)> {
    let all = block_on(client.kept()).unwrap();
    all.into_iter().map(|kept| (kept.name.to_string(), kept.bytes)).collect()
}

/// Writes what nobody kept, until every node has folded twice: what was written before is in the
/// base then.
fn fold(client: &Client, stage: &Stage) {
    let folds = || -> Vec<u64> {
        stage.servers.values().map(|node| Observer::of(node).statistics().folds).collect()
    };
    let (begun, before) = (Instant::now(), folds());
    while folds().iter().zip(&before).any(|(now, before)| *now < before + 2) {
        assert!(begun.elapsed() < PATIENCE, "nothing is folded");
        put(client, stage, "other", 9);
    }
}

/// Waits until what is shown to be held is so.
fn until(client: &Client, what: &str, is_so: impl Fn(&[(String, u64)]) -> bool) {
    let begun = Instant::now();
    while !is_so(&held(client)) {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", held(client));
    }
}

/// The first byte of a blob at a kept snapshot.
fn read(client: &Client, stage: &Stage, at: &str, key: &str) -> Result<Option<u8>> {
    let at = block_on(client.kept_moment(&name(at)))?;
    let want = Want::bytes(stage.blob(key), ByteRange { start: 0, end: 1 });
    let sight = block_on(client.read(want, Place::At(at)).answer())?;
    Ok(sight.seen.bytes.first().copied())
}

#[test]
fn what_is_held_grows_with_what_is_replaced_outlives_restarts_and_goes_with_the_snapshot() {
    let (mut stage, mut client) = Stage::with(|options| options.fold_log_bytes = 64 << 10);
    put_some(&client, &stage, 0..BLOBS, 1);
    block_on(client.keep(&name("monday"))).unwrap();
    fold(&client, &stage);
    assert_eq!(held(&client), [("monday".to_owned(), 0)], "nothing was replaced");
    let nodes = stage.servers.len() as u64;
    let is_about = |held: u64, of_each: u64| {
        (nodes * of_each..=nodes * (of_each + of_each / 4)).contains(&held)
    };
    put_some(&client, &stage, 0..BLOBS / 2, 2);
    fold(&client, &stage);
    let half = held(&client)[0].1;
    assert!(is_about(half, ALL / 2), "{half}");
    (BLOBS / 2..BLOBS).for_each(|number| {
        commit(&client, &stage, &number.to_string(), vec![Operation::Delete]);
    });
    fold(&client, &stage);
    let all = held(&client);
    assert!(is_about(all[0].1, ALL), "{all:?}");
    put_some(&client, &stage, 0..BLOBS, 3);
    fold(&client, &stage);
    assert_eq!(held(&client), all, "what was held is replaced no more");

    client = stage.restart();
    until(&client, "all nodes tell", |held| held == all);
    for number in 0..BLOBS {
        match read(&client, &stage, "monday", &number.to_string()) {
            Ok(seen) => assert_eq!(seen, Some(1)),
            // A node that takes its leave is declared down, and data moves by that.
            Err(error) => assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}"),
        }
    }
    // What the younger one held the older one needs.
    block_on(client.keep(&name("tuesday"))).unwrap();
    put(&client, &stage, "other", 4);
    fold(&client, &stage);
    let both = held(&client);
    assert_eq!(both[0], all[0]);
    assert!(both[1].1 > 0, "{both:?}");
    block_on(client.drop_kept(&name("tuesday"))).unwrap();
    until(&client, "monday was there before the other blob", |held| held == all);
    block_on(client.drop_kept(&name("monday"))).unwrap();
    assert_eq!(held(&client), []);
    block_on(client.keep(&name("monday"))).unwrap();
    fold(&client, &stage);
    let again = &held(&client)[0];
    assert!(again.1 < nodes * 2 * LEN as u64, "the other blob alone: {again:?}");
}
