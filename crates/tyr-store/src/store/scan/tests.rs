//! Listings at a moment, against a model: whatever is deleted, folded and forgotten meanwhile.

mod stale;

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
    let (operations, start) = (std::slice::from_ref(&operation), Start::Known(0));
    store.apply_chunk(&cell, PLACE, operations, start, at(when), Readers::from(at(from))).unwrap();
}

/// Folds everything up to `when`; a node that starts then has no log before it.
fn fold(store: &Store, when: u64) {
    let mut fold = store.begin_fold(at(when), store.take_dead());
    store.write_promises().unwrap().finish(when, at(when)).unwrap();
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    store.end_fold(fold, when).unwrap();
}

/// Forgets what is in the base.
fn shrink(store: &Store) {
    for _ in 0..2 {
        store.recent().shrink(0, usize::MAX);
    }
}

fn listed(store: &Store, when: u64, limit: usize) -> Result<Vec<(Key, u64)>> {
    let pages = pages(store, &Scan::new().prefix("k").limit(limit), when)?;
    let entries = pages.into_iter().flat_map(|page| page.entries);
    Ok(entries.map(|entry| (entry.key, entry.stat.unwrap().size)).collect())
}

/// All pages of a scan.
fn pages(store: &Store, scan: &Scan, when: u64) -> Result<Vec<ScanPage>> {
    let (mut pages, mut next) = (Vec::new(), Some(scan.clone()));
    while let Some(scan) = next {
        let page = store.scan(KEYSPACE, &scan, Moment::of(Some(at(when))), |_| true)?;
        next = scan.resumed(&page);
        pages.push(page);
    }
    Ok(pages)
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
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(64)))]

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

/// Keys and groups of each page, in short, and whether all pages but the last were full.
fn shown(pages: &[ScanPage]) -> Vec<String> {
    let of_page = |page: &ScanPage| {
        let keys = page.entries.iter().map(|entry| entry.key.to_string());
        let groups = page.groups.iter().map(|group| group.escape_ascii().to_string());
        keys.chain(groups).collect::<Vec<_>>().join(" ")
    };
    pages.iter().map(of_page).collect()
}

/// Puts a blob of this key with these bytes.
fn put(store: &Store, key: &str, bytes: impl Into<Bytes>, when: u64) {
    let name = BlobName { keyspace: KEYSPACE, key: Key::new(key).unwrap() };
    let operation = Operation::Replace { payload: Payload::Inline(bytes.into()) };
    let cell = store.chunk(&name).unwrap();
    let (operations, start) = (std::slice::from_ref(&operation), Start::Known(0));
    store
        .apply_chunk(&cell, PLACE, operations, start, at(when), Readers::from(at(EVERYWHERE)))
        .unwrap();
}

#[test]
fn groups_are_listed_once_and_passed_by() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for number in 0..1_500 {
        put(&store, &format!("a/{number:04}"), "x", 2);
    }
    fold(&store, 2);
    for key in ["a", "b", "c/1", "d/e/f", "z"] {
        put(&store, key, "y", 3);
    }
    let scan = Scan::new().delimiter("/").limit(10);
    assert_eq!(shown(&pages(&store, &scan, 3).unwrap()), ["a b z a/ c/ d/"]);
    assert_eq!(shown(&pages(&store, &scan, 2).unwrap()), ["a/"]);
    let scan = scan.limit(2);
    assert_eq!(shown(&pages(&store, &scan, 3).unwrap()), ["a a/", "b c/", "z d/"]);
    let inner = Scan::new().prefix("d/").delimiter("/");
    assert_eq!(shown(&pages(&store, &inner, 3).unwrap()), ["d/e/"]);
}

#[test]
fn a_range_of_keys_is_from_its_first_to_before_its_last() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for key in ["a", "b", "c"] {
        put(&store, key, "x", 2);
    }
    fold(&store, 2);
    for key in ["b5", "d"] {
        put(&store, key, "x", 3);
    }
    let scan = Scan::new().from("b").to("d").keys_only();
    let pages = pages(&store, &scan, 3).unwrap();
    assert_eq!(shown(&pages), ["b b5 c"]);
    assert!(pages[0].entries.iter().all(|entry| entry.stat.is_none()), "keys only");
    let none = Scan::new().prefix("b").from("c");
    let page = store.scan(KEYSPACE, &none, Moment::of(None), |_| true).unwrap();
    assert_eq!(page, ScanPage::default(), "a prefix whose keys all come before");
}

/// Q2.
#[test]
fn attributes_and_first_bytes_are_of_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    put(&store, "small", "old", 2);
    put(&store, "large", vec![7; 4000], 2);
    fold(&store, 3);
    shrink(&store);
    let listed = |moment: Moment| {
        let scan = Scan::new().range(ByteRange { start: 1, end: 6 });
        let page = store.scan(KEYSPACE, &scan, moment, |_| true).unwrap();
        page.entries.into_iter().map(|it| (it.stat.unwrap().size, it.bytes)).collect::<Vec<_>>()
    };
    let before = [(4000, Bytes::from(vec![7; 5])), (3, Bytes::from("ld"))];
    assert_eq!(listed(Moment::of(Some(at(3)))), before, "from the base");
    put(&store, "small", "newer", 5);
    put(&store, "large", vec![8; 3], 5);
    assert_eq!(listed(Moment::of(Some(at(4)))), before, "from what was kept");
    let after = [(3, Bytes::from(vec![8; 2])), (5, Bytes::from("ewer"))];
    assert_eq!(listed(Moment::of(Some(at(5)))), after);
    assert_eq!(listed(Moment::of(None)), after);
    let broken = Moment { at: Some(at(4)), bytes_at: None };
    assert_eq!(listed(broken)[1], (3, Bytes::from("ewer")), "of two versions: what Q2 forbids");
}

#[test]
fn what_was_never_written_of_the_range_is_zeros_up_to_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let name = BlobName { keyspace: KEYSPACE, key: key(1) };
    let operation = Operation::Truncate { len: 10_000 };
    let cell = store.chunk(&name).unwrap();
    let (operations, start) = (std::slice::from_ref(&operation), Start::Known(0));
    store
        .apply_chunk(&cell, PLACE, operations, start, at(2), Readers::from(at(EVERYWHERE)))
        .unwrap();
    let of = |scan: Scan| {
        let page = store.scan(KEYSPACE, &scan, Moment::of(Some(at(3))), |_| true).unwrap();
        page.entries[0].bytes.clone()
    };
    assert_eq!(of(Scan::new().first_bytes(8)), vec![0; 8]);
    fold(&store, 3);
    shrink(&store);
    assert_eq!(of(Scan::new().first_bytes(8)), vec![0; 8]);
    assert_eq!(of(Scan::new().range(ByteRange { start: 4000, end: 4096 })), vec![0; 96]);
}
