//! What kept snapshots hold on the disks of a cluster of three, and what bounds it (V7).

use std::process::Command;
use std::time::Instant;

use tyr_client::{Client, Place, Want, block_on};
use tyr_server::{Observer, ROOM_MIN, room};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, KeptName, Key, KeyspaceConfig,
    KeyspaceId, KeyspaceName, Operation, Payload, Result,
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

/// The first entry of the cluster log that says this.
fn told(stage: &Stage, part: &str) -> String {
    let begun = Instant::now();
    loop {
        let entries = stage.log();
        if let Some(found) = entries.iter().find(|entry| entry.contains(part)) {
            return found.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{entries:?}");
    }
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
        assert_eq!(read(&client, &stage, "monday", &number.to_string()).unwrap(), Some(1));
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

#[test]
fn beyond_its_bound_a_node_drops_the_oldest_for_all_and_writers_go_on() {
    let (stage, client) = Stage::with(|options| {
        options.fold_log_bytes = 64 << 10;
        options.kept_bytes_max = ALL + ALL / 2;
    });
    put_some(&client, &stage, 0..BLOBS, 1);
    block_on(client.keep(&name("old"))).unwrap();
    put_some(&client, &stage, 0..BLOBS, 2);
    fold(&client, &stage);
    block_on(client.keep(&name("young"))).unwrap();
    assert_eq!(read(&client, &stage, "old", "7").unwrap(), Some(1));
    let begun = Instant::now();
    // Whoever writes notices nothing: each of these would fail.
    while held(&client).len() == 2 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", held(&client));
        put_some(&client, &stage, 0..BLOBS, 3);
    }
    let dropped = read(&client, &stage, "old", "7").unwrap_err();
    assert_eq!(dropped.kind(), ErrorKind::NotFound, "{dropped}");
    fold(&client, &stage);
    assert_eq!(read(&client, &stage, "young", "7").unwrap(), Some(2), "it is within the bound");
    let told = told(&stage, "kept snapshot old was dropped, the oldest: ");
    let what_to_do = format!("kept_bytes_max is {}; raise it, or keep fewer", ALL + ALL / 2);
    assert!(told.contains(&what_to_do), "{told}");
    assert!(!stage.log().iter().any(|entry| entry.contains("kept snapshot young was dropped")));
    block_on(client.keep(&name("old"))).unwrap();
    assert_eq!(read(&client, &stage, "old", "7").unwrap(), Some(3), "there is room for it again");
}

/// A disk of its own in memory, where the test may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = ["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"];
        match Command::new("mount").args(options).arg(folder.path()).output() {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(_) | Err(_) => {
                println!("skipped: this process may not mount a small disk");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, should a failed test have left files open.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// A blob of a MiB.
fn put_large(client: &Client, keyspace: KeyspaceId, key: &str, seed: u64) -> Result<()> {
    put_len(client, keyspace, key, seed, 1 << 17)
}

/// A blob of so many words, which become no less by compression.
fn put_len(
    client: &Client,
    keyspace: KeyspaceId,
    key: &str,
    seed: u64,
    words: usize,
) -> Result<()> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let bytes: Vec<u8> = (0..words).flat_map(|_| word()).collect();
    let operations = vec![Operation::Replace { payload: Payload::Inline(Bytes::from(bytes)) }];
    let blob = BlobName { keyspace, key: Key::new(key).unwrap() };
    let blobs = vec![BlobOperations { blob, operations }];
    client.commit(blobs, Vec::new(), Vec::new()).wait().map(drop)
}

#[test]
fn where_the_disk_is_full_the_oldest_makes_room_and_writers_go_on() {
    let Some(disk) = SmallDisk::mount("640m") else { return };
    let folder = tempfile::tempdir_in(disk.0.path()).unwrap();
    // No fold is due before the disk is full.
    let (stage, client) = Stage::within(folder, 1, |_| {});
    let large = KeyspaceName::new("large").unwrap();
    let large = block_on(client.create_keyspace(&large, &KeyspaceConfig::default())).unwrap().id;
    (0..100).for_each(|n| put_large(&client, large, &n.to_string(), n).unwrap());
    block_on(client.keep(&name("old"))).unwrap();
    // The node looks twice a second: what is large must not be faster.
    let is_full = || room(disk.0.path()).unwrap() < ROOM_MIN;
    let overwritten = (0..1000).take_while(|_| !is_full());
    overwritten.for_each(|n| put_large(&client, large, &(n % 100).to_string(), 100 + n).unwrap());
    // Until the oldest is gone writers are refused, unless it goes before one comes.
    let begun = Instant::now();
    while !held(&client).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the oldest stays");
        // Where a fold has made room the disk is filled again.
        let put = match is_full() {
            true => put_len(&client, large, "small", 0, 1),
            false => put_large(&client, large, "0", 100),
        };
        if let Err(full) = put {
            assert_eq!(full.kind(), ErrorKind::Unavailable, "{full}");
            assert!(full.message().contains("disk"), "{full}");
        }
    }
    let told = told(&stage, "kept snapshot old was dropped, the oldest: its disk is full");
    assert!(told.contains("make room, or keep fewer"), "{told}");
    let begun = Instant::now();
    while let Err(error) = put_large(&client, large, "more", 0) {
        assert!(begun.elapsed() < PATIENCE, "{error}");
    }
}
