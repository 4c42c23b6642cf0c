//! Listings at a moment, against a model: whatever is deleted, folded and forgotten meanwhile.

use std::path::Path;

use proptest::prelude::*;
use tyr_types::{ByteRange, Bytes, Epoch, KeyspaceConfig, KeyspaceName, Operation, Payload};

use super::*;
use crate::recent::Readers;
use tyr_types::chunk::{Place, Start};

const KEYSPACE: KeyspaceId = KeyspaceId(1);
const PLACE: Place = Place { range: ByteRange { start: 0, end: 4096 } };

/// Readers may be anywhere from here on.
const EVERYWHERE: u64 = 0;

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 0 }
}

fn key(number: u8) -> Key {
    Key::new([b'k', number]).unwrap()
}

fn open(folder: &Path) -> Arc<Store> {
    let store = Store::open_node(folder, &mut |_, _, _| Ok(())).unwrap().store;
    let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
    store.adopt_keyspace(KEYSPACE, &KeyspaceName::new("k").unwrap(), &config).unwrap();
    store
}

/// Puts `size` bytes, or deletes, while readers may be anywhere from `from` on.
fn change(store: &Store, number: u8, size: Option<u64>, when: u64, from: u64) {
    let operation = size.map_or(Operation::Delete, |size| {
        let payload = Payload::Inline(Bytes::from(vec![1; size as usize]));
        Operation::Replace { payload }
    });
    let cell = store.chunk(&BlobName { keyspace: KEYSPACE, key: key(number) }).unwrap();
    let what = (std::slice::from_ref(&operation), Start::Known(0));
    store.apply_chunk(&cell, PLACE, what, (at(when), Readers::from(at(from)))).unwrap();
}

/// Folds everything up to `when`; a node that starts then has no log before it.
fn fold(store: &Store, when: u64) {
    let mut fold = store.begin_fold(at(when), store.take_dead());
    store.write_promises().unwrap().finish(when).unwrap();
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    store.end_fold(fold, when).unwrap();
}

/// Forgets what is in the base.
fn shrink(store: &Store) {
    for _ in 0..2 {
        store.recent().shrink(0);
    }
}

fn listed(store: &Store, when: u64, limit: usize) -> Result<Vec<(Key, u64)>> {
    let (mut all, mut after) = (Vec::new(), None::<Key>);
    loop {
        let range = Range { keyspace: KEYSPACE, prefix: b"k", after: after.as_ref() };
        let (found, is_end) = store.list(range, limit, Some(at(when)), |_| true)?;
        after = found.last().map(|(key, _)| key.clone());
        all.extend(found.into_iter().map(|(key, stat)| (key, stat.size)));
        if is_end {
            return Ok(all);
        }
    }
}

fn is_too_old(listed: Result<Vec<(Key, u64)>>) -> bool {
    listed.is_err_and(|error| error.kind() == ErrorKind::SnapshotTooOld)
}

#[test]
fn what_was_deleted_is_listed_at_a_moment_before_also_after_a_fold() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    change(&store, 2, Some(20), 5, EVERYWHERE);
    fold(&store, 6);
    change(&store, 1, None, 7, EVERYWHERE);
    let both = vec![(key(1), 10), (key(2), 20)];
    assert_eq!(listed(&store, 6, 100).unwrap(), both);
    fold(&store, 8);
    assert_eq!(listed(&store, 6, 100).unwrap(), both, "the base has forgotten it");
    assert_eq!(listed(&store, 7, 100).unwrap(), [(key(2), 20)]);
    change(&store, 1, Some(11), 9, EVERYWHERE);
    assert_eq!(listed(&store, 6, 1).unwrap(), both);
    assert_eq!(listed(&store, 8, 1).unwrap(), [(key(2), 20)]);
}

#[test]
fn where_what_was_deleted_is_forgotten_the_moment_before_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    change(&store, 2, Some(20), 5, EVERYWHERE);
    change(&store, 1, None, 7, 7);
    assert!(is_too_old(listed(&store, 6, 100)), "nobody was known to read there");
    fold(&store, 8);
    shrink(&store);
    assert!(is_too_old(listed(&store, 6, 100)), "nothing tells of it any more");
    assert_eq!(listed(&store, 7, 100).unwrap(), [(key(2), 20)]);
    let gone = BlobName { keyspace: KEYSPACE, key: key(1) };
    let read = |when| {
        let cell = store.chunk(&gone).unwrap();
        store.plan_chunk_read(&cell, PLACE, PLACE.range, Some(at(when))).map(drop)
    };
    assert_eq!(read(6).unwrap_err().kind(), ErrorKind::SnapshotTooOld);
    read(7).unwrap();
}

#[test]
fn after_a_restart_what_was_before_the_base_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    change(&store, 2, Some(20), 5, EVERYWHERE);
    change(&store, 1, None, 7, EVERYWHERE);
    fold(&store, 8);
    assert_eq!(listed(&store, 6, 100).unwrap().len(), 2);
    store.base().close();
    drop(store);
    let store = open(folder.path());
    assert!(is_too_old(listed(&store, 6, 100)));
    assert_eq!(listed(&store, 8, 100).unwrap(), [(key(2), 20)]);
}

#[test]
fn one_that_was_deleted_and_made_again_is_not_listed_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    change(&store, 1, None, 6, EVERYWHERE);
    change(&store, 1, Some(12), 8, EVERYWHERE);
    fold(&store, 9);
    assert_eq!(listed(&store, 4, 100).unwrap(), []);
    assert_eq!(listed(&store, 5, 100).unwrap(), [(key(1), 10)]);
    assert_eq!(listed(&store, 7, 100).unwrap(), []);
    assert_eq!(listed(&store, 8, 100).unwrap(), [(key(1), 12)]);
}

#[derive(Clone, Debug)]
enum Act {
    Change { number: u8, size: Option<u64>, keeps: bool },
    Fold,
    Shrink,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let size = prop::option::of(1..2000_u64);
    let change = (0..8_u8, size, prop::bool::weighted(0.9));
    let act = prop_oneof![
        8 => change.prop_map(|(number, size, keeps)| Act::Change { number, size, keeps }),
        1 => Just(Act::Fold),
        1 => Just(Act::Shrink),
    ];
    prop::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_listing_is_the_models_or_too_old(acts in acts(), limit in 1..10_usize) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let (mut model, mut moments) = (BTreeMap::new(), vec![Vec::new()]);
        let mut forgets = 0;
        for (act, when) in acts.iter().zip(1..) {
            match act {
                Act::Change { number, size, keeps } => {
                    let from = if *keeps { EVERYWHERE } else { when };
                    forgets = if *keeps { forgets } else { when };
                    change(&store, *number, *size, when, from);
                    match size {
                        Some(size) => model.insert(key(*number), *size),
                        None => model.remove(&key(*number)),
                    };
                }
                Act::Fold => fold(&store, when),
                Act::Shrink => shrink(&store),
            }
            moments.push(model.clone().into_iter().collect::<Vec<_>>());
            for (moment, expected) in moments.iter().enumerate() {
                match listed(&store, moment as u64, limit) {
                    Ok(listed) => prop_assert_eq!(&listed, expected, "at {}", moment),
                    Err(error) => {
                        prop_assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
                        prop_assert!((moment as u64) < forgets, "at {}: {}", moment, error);
                    }
                }
            }
        }
    }
}
