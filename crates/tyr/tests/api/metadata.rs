//! Service metadata of both kinds of store: what it holds, whom it tells, and what it refuses.

use std::time::Duration;

use tyr::ErrorKind;
use tyr::metadata::{Expected, Path, Transaction};

use tyr_testing::{Kind, Opened, stores};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A prefix of the test's own: of a cluster several tests share one.
fn prefix(test: &str) -> String {
    format!("test/{test}/")
}

fn path(text: &str) -> Path {
    Path::new(text).unwrap()
}

#[test]
fn what_is_put_is_got_listed_and_gone_after_it_is_deleted() {
    for kind in stores() {
        let store = Opened::new(kind);
        let (metadata, prefix) = (store.tyr.metadata(), prefix("put"));
        let (a, b) = (format!("{prefix}a"), format!("{prefix}b"));
        let first = metadata.put(&a, "1").unwrap();
        let second = metadata.put(&b, vec![0; 5000]).unwrap();
        assert!(first < second);
        let third = metadata.put(&a, "2").unwrap();
        let entry = metadata.get(&a).unwrap().unwrap();
        assert_eq!((entry.value.as_ref(), entry.created, entry.changed), (&b"2"[..], first, third));
        let page = metadata.list(&prefix, None, 10).unwrap();
        let keys: Vec<_> = page.entries.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(keys, [&a, &b]);
        assert!(page.revision >= third);
        let rest = metadata.list(&prefix, Some(&a), 10).unwrap();
        assert_eq!(rest.entries.len(), 1);
        metadata.delete(&a).unwrap();
        assert_eq!(metadata.get(&a).unwrap(), None);
        let gone = metadata.delete(&a).unwrap();
        assert!(gone >= third, "what is not there is deleted without a word");
    }
}

#[test]
fn a_revision_is_what_one_of_two_may_change() {
    for kind in stores() {
        let store = Opened::new(kind);
        let (metadata, other) = (store.tyr.metadata(), store.other().metadata());
        let leader = path(&format!("{}leader", prefix("revision")));
        let claim = |name: &'static str, expected| {
            Transaction::new().when(leader.clone(), expected).put(leader.clone(), name)
        };
        metadata.transact(claim("alice", Expected::Absent)).unwrap();
        let late = other.transact(claim("bob", Expected::Absent)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict, "{late}");
        let seen = other.get(leader.as_str()).unwrap().unwrap();
        other.transact(claim("bob", Expected::Revision(seen.changed))).unwrap();
        let late = metadata.transact(claim("alice", Expected::Revision(seen.changed)));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(metadata.get(leader.as_str()).unwrap().unwrap().value, "bob");
    }
}

#[test]
fn a_watch_tells_what_changes_after_a_listing_and_nothing_else() {
    for kind in stores() {
        let store = Opened::new(kind);
        let (metadata, prefix) = (store.tyr.metadata(), prefix("watch"));
        let key = |name: &str| format!("{prefix}{name}");
        metadata.put(&key("before"), "0").unwrap();
        let page = metadata.list(&prefix, None, 10).unwrap();
        let mut watch = metadata.watch(&prefix, page.revision);
        let none = watch.next_within(Duration::from_millis(20)).unwrap();
        assert_eq!(none, None, "nothing has changed");
        let other = store.other();
        let (one, two) = (key("one"), key("two"));
        let both = Transaction::new().put(path(&one), "1").put(path(&two), "2");
        let waiting = std::thread::spawn(move || {
            let changes = watch.next_within(PATIENCE).unwrap().unwrap();
            (watch, changes)
        });
        other.metadata().put("test/watched-elsewhere", "x").unwrap();
        let revision = other.metadata().transact(both).unwrap();
        let (mut watch, told) = waiting.join().unwrap();
        let keys: Vec<_> = told.changes.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(keys, [&one, &two], "a transaction is told as a whole");
        assert!(told.revision >= revision);
        other.metadata().delete(&one).unwrap();
        let told = watch.next_within(PATIENCE).unwrap().unwrap();
        assert_eq!((told.changes[0].path.as_str(), &told.changes[0].value), (&*one, &None));
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    for kind in stores() {
        let store = Opened::new(kind);
        let metadata = store.tyr.metadata();
        for key in ["", "/a", "a\nb", &"x".repeat(513)] {
            assert_eq!(metadata.put(key, "1").unwrap_err().kind(), ErrorKind::InvalidArgument);
            assert_eq!(metadata.get(key).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let large = metadata.put("test/large", vec![0; (4 << 20) + 1]).unwrap_err();
        assert_eq!(large.kind(), ErrorKind::InvalidArgument, "{large}");
        assert!(large.message().contains("4194304"), "{large}");
        let own = metadata.put("cluster/map", "x").unwrap_err();
        assert_eq!(own.kind(), ErrorKind::PermissionDenied, "{own}");
        assert_eq!(metadata.get("test/large").unwrap(), None);
    }
}

#[test]
fn it_outlives_the_process_with_its_revisions_and_a_watch_goes_on() {
    for kind in stores() {
        let store = Opened::new(kind);
        let prefix = prefix("reopen");
        let key = format!("{prefix}a");
        store.tyr.metadata().put(&format!("{prefix}gone"), "1").unwrap();
        store.tyr.metadata().put(&key, "1").unwrap();
        store.tyr.metadata().delete(&format!("{prefix}gone")).unwrap();
        let before = store.tyr.metadata().list(&prefix, None, 10).unwrap();
        let store = store.reopen();
        let metadata = store.tyr.metadata();
        assert_eq!(metadata.list(&prefix, None, 10).unwrap().entries, before.entries);
        let mut watch = metadata.watch(&prefix, before.revision);
        let revision = metadata.put(&key, "2").unwrap();
        assert!(revision > before.revision);
        let told = watch.next_within(PATIENCE).unwrap().unwrap();
        assert_eq!(told.changes.len(), 1);
        assert_eq!(told.changes[0].path.as_str(), key);
    }
}

#[test]
fn a_directory_tells_who_asks_for_what_it_has_forgotten_to_list_anew() {
    let store = Opened::new(Kind::Embedded);
    store.tyr.metadata().put("a", "1").unwrap();
    store.tyr.metadata().put("a", "2").unwrap();
    let store = store.reopen();
    let mut watch = store.tyr.metadata().watch("", 1);
    let error = watch.next_within(PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}");
}

#[test]
fn closing_a_directory_ends_its_watches() {
    let store = Opened::new(Kind::Embedded);
    let mut watch = store.tyr.metadata().watch("", 0);
    let waiting = std::thread::spawn(move || (watch.next(), watch.next()));
    store.tyr.close().unwrap();
    let (told, over) = waiting.join().unwrap();
    assert!(over.is_none(), "it ends after an error");
    let error = told.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[test]
fn a_directory_that_is_read_only_shows_it_and_changes_nothing() {
    let store = Opened::new(Kind::Embedded);
    store.tyr.metadata().put("a", "1").unwrap();
    store.tyr.clone().close().unwrap();
    let tyr = tyr::Tyr::options().is_read_only(true).open_blocking(store.folder()).unwrap();
    assert_eq!(tyr.metadata().get("a").unwrap().unwrap().value, "1");
    let error = tyr.metadata().put("a", "2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!(tyr.metadata().get("a").unwrap().unwrap().value, "1");
}
