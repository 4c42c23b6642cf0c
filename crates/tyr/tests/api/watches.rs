//! Watches of keys, of a store in this process and of a cluster (K5).

use std::time::{Duration, Instant};

use tyr::blocking::Watch;
use tyr::{ErrorKind, KeyspaceConfig, WatchEvent};
use tyr_testing::{Kind, Store, stores};

const LONG: Duration = Duration::from_secs(60);

fn store_of(kind: Kind) -> Store {
    Store::new(kind, KeyspaceConfig::default())
}

/// The next that a watcher is told.
fn told(watch: &Watch) -> WatchEvent {
    watch.changed_within(LONG).unwrap().expect("it is told within a minute")
}

/// The keys that a watcher is told of, until all of these are among them.
fn told_of(watch: &Watch, wanted: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let until = Instant::now() + LONG;
    while !wanted.iter().all(|wanted| keys.iter().any(|key| key == wanted)) {
        assert!(Instant::now() < until, "told of {keys:?}");
        keys.extend(told(watch).changes.keys.iter().map(ToString::to_string));
    }
    keys
}

#[test]
fn who_watches_is_told_to_look_first_and_then_what_changes() {
    for store in stores().map(store_of) {
        let keyspace = &store.keyspace;
        keyspace.put("a/1", "before").unwrap();
        let of_key = keyspace.watch("a/1").unwrap();
        let of_prefix = keyspace.watch_prefix("a/").unwrap();
        let of_all = keyspace.watch_prefix("").unwrap();
        for watch in [&of_key, &of_prefix, &of_all] {
            assert!(told(watch).is_anew);
        }
        keyspace.put("b", "of one only").unwrap();
        keyspace.put("a/2", "of two").unwrap();
        keyspace.append("a/1", ", and after").unwrap();
        keyspace.delete("a/2").unwrap();
        let keys = told_of(&of_prefix, &["a/1", "a/2"]);
        assert!(keys.iter().all(|key| key.starts_with("a/")), "{keys:?}");
        told_of(&of_all, &["a/1", "a/2", "b"]);
        assert_eq!(told_of(&of_key, &["a/1"]), ["a/1"]);
        let read = keyspace.get("a/1").unwrap();
        assert_eq!(read, b"before, and after".as_slice(), "who is told finds it");
        assert!(of_key.changed_within(Duration::from_millis(50)).unwrap().is_none());
    }
}

#[test]
fn what_changes_while_nobody_asks_is_told_as_one() {
    for store in stores().map(store_of) {
        let watch = store.keyspace.watch_prefix("k").unwrap();
        assert!(told(&watch).is_anew);
        for number in 0..200 {
            store.keyspace.put(format!("k{:03}", number % 100), "x").unwrap();
        }
        let last = store.keyspace.stat("k099").unwrap().version;
        let (mut events, mut at) = (0, tyr::Timestamp::ZERO);
        while at < last {
            let event = told(&watch);
            assert!(event.changes.keys.len() <= 64 && !event.is_anew);
            at = at.max(event.changes.at);
            events += 1;
        }
        assert!(events < 200, "told one by one: {events}");
    }
}

#[test]
fn what_is_not_changed_is_not_told_and_a_watch_ends_with_its_keyspace() {
    for store in stores().map(store_of) {
        store.keyspace.put("a", "1").unwrap();
        let watch = store.keyspace.watch("a").unwrap();
        assert!(told(&watch).is_anew);
        let mut transaction = store.tyr().begin();
        transaction.compare(&store.keyspace, "a", 0, "1").unwrap();
        transaction.put(&store.keyspace, "b", "2").unwrap();
        transaction.commit().unwrap();
        let mut aborted = store.tyr().begin();
        aborted.compare(&store.keyspace, "a", 0, "9").unwrap();
        aborted.put(&store.keyspace, "a", "2").unwrap();
        assert_eq!(aborted.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert!(watch.changed_within(Duration::from_millis(100)).unwrap().is_none());
        store.tyr().drop_keyspace(store.keyspace.name()).unwrap();
        let until = Instant::now() + LONG;
        let ended = loop {
            match watch.changed_within(LONG) {
                Ok(_) => assert!(Instant::now() < until, "it goes on without its keyspace"),
                Err(error) => break error,
            }
        };
        assert_eq!(ended.kind(), ErrorKind::NotFound, "{ended}");
    }
}
