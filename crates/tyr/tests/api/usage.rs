//! How much there is of a keyspace, as programs are told.

use std::time::{Duration, Instant};

use tyr::{KeyspaceConfig, KeyspaceSize};

use tyr_testing::{Store, stores};

/// How long nodes may take to count some blobs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The keyspace when all its blobs are counted.
fn counted(store: &Store) -> KeyspaceSize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let usage = store.tyr().usage().unwrap();
        let name = store.keyspace.name();
        let size = usage.keyspaces.into_iter().find(|it| it.info.name.as_str() == name).unwrap();
        if size.counted_ago.is_some() {
            return size;
        }
        assert!(Instant::now() < deadline, "{size:?}");
    }
}

#[test]
fn what_was_acknowledged_counts_and_what_was_deleted_does_not() {
    for kind in stores() {
        let store = Store::new(kind, KeyspaceConfig::default());
        for number in 0..20 {
            store.keyspace.put(format!("{number}"), vec![1; 100]).unwrap();
        }
        let size = counted(&store);
        assert_eq!((size.blobs, size.bytes), (20, 2000));
        store.keyspace.delete("3").unwrap();
        store.keyspace.append("4", vec![1; 40_000]).unwrap();
        store.keyspace.truncate("5", 1).unwrap();
        let size = counted(&store);
        assert_eq!((size.blobs, size.bytes), (19, 2000 - 100 + 40_000 - 99));
        let disk = store.tyr().usage().unwrap().disk();
        assert!(disk.taken_bytes > 0 && disk.free_bytes <= disk.size_bytes, "{disk:?}");
    }
}
