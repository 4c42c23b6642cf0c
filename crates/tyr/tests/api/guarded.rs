//! Guarded keyspaces: what is held under a lease others do not change (K2).

use std::time::{Duration, Instant};

use tyr::blocking::Keyspace;
use tyr::{ErrorKind, KeyspaceConfig, LeaseOptions, PlacedBy, Scan};
use tyr_testing::{Kind, Opened, stores};

const LONG: Duration = Duration::from_secs(60);

fn guarded() -> KeyspaceConfig {
    KeyspaceConfig { is_guarded: true, ..KeyspaceConfig::default() }
}

#[test]
fn what_is_held_shared_others_change_when_it_is_given_back() {
    let store = Opened::new(Kind::Cluster);
    let mine = store.create("test", guarded());
    let other = store.other();
    let theirs = other.keyspace(&store.name("test")).unwrap();
    mine.put("limits", "old").unwrap();
    let lease = mine.lease("limits", &LeaseOptions::shared()).unwrap();
    assert_eq!(mine.get("limits").unwrap(), b"old".as_slice());
    assert_eq!(theirs.get("limits").unwrap(), b"old".as_slice(), "who only looks is not kept off");
    theirs.put("others", "is of no lease").unwrap();
    let writing = std::thread::spawn(move || theirs.put("limits", "new"));
    assert!(lease.recalled_within(LONG));
    for _ in 0..50 {
        assert_eq!(mine.get("limits").unwrap(), b"old".as_slice());
    }
    assert!(!writing.is_finished() && lease.is_held());
    lease.give_back();
    writing.join().unwrap().unwrap();
    assert_eq!(mine.get("limits").unwrap(), b"new".as_slice());
}

#[test]
fn who_holds_a_key_alone_writes_and_others_look_when_it_is_given_back() {
    let store = Opened::new(Kind::Cluster);
    let mine = store.create("test", guarded());
    let theirs = store.other().keyspace(&store.name("test")).unwrap();
    mine.put("page", "old").unwrap();
    let lease = mine.lease("page", &LeaseOptions::exclusive()).unwrap();
    let reading = std::thread::spawn(move || theirs.get("page"));
    assert!(lease.recalled_within(LONG));
    mine.put("page", "what was put off").unwrap();
    lease.give_back();
    assert_eq!(reading.join().unwrap().unwrap(), b"what was put off".as_slice());
}

fn guarded_groups() -> KeyspaceConfig {
    KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..guarded() }
}

/// K7: also what is not there stays so.
#[test]
fn who_holds_a_group_goes_by_what_it_has_listed_and_by_what_was_not_there() {
    let store = Opened::new(Kind::Cluster);
    let mine = store.create("test", guarded_groups());
    let theirs = store.other().keyspace(&store.name("test")).unwrap();
    mine.put("home/a", "there").unwrap();
    let lease = mine.lease_group("home/", &LeaseOptions::shared()).unwrap();
    let listed = |keyspace: &Keyspace| -> Vec<String> {
        let page = keyspace.scan_page(&Scan::new().prefix("home/")).unwrap();
        page.entries.iter().map(|entry| entry.key.to_string()).collect()
    };
    assert_eq!(listed(&mine), ["home/a"]);
    assert_eq!(listed(&theirs), ["home/a"], "who only looks is not kept off");
    theirs.put("mail/b", "another group").unwrap();
    let writing = std::thread::spawn(move || theirs.put("home/b", "new"));
    assert!(lease.recalled_within(LONG));
    for _ in 0..50 {
        assert_eq!(mine.get("home/b").unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert!(!writing.is_finished() && lease.is_held());
    lease.give_back();
    writing.join().unwrap().unwrap();
    assert_eq!(listed(&mine), ["home/a", "home/b"]);
}

/// K7.
#[test]
fn who_holds_a_group_alone_writes_and_others_list_when_it_is_given_back() {
    let store = Opened::new(Kind::Cluster);
    let mine = store.create("test", guarded_groups());
    let theirs = store.other().keyspace(&store.name("test")).unwrap();
    let lease = mine.lease_group("home/", &LeaseOptions::exclusive()).unwrap();
    let all = theirs.scan_page(&Scan::new()).unwrap();
    assert_eq!(all.entries, [], "over several groups it is of a moment, and waits for nobody");
    let listing = std::thread::spawn(move || theirs.scan_page(&Scan::new().prefix("home/")));
    assert!(lease.recalled_within(LONG));
    mine.put("home/a", "what was put off").unwrap();
    assert_eq!(mine.scan_page(&Scan::new().prefix("home/")).unwrap().entries.len(), 1);
    lease.give_back();
    assert_eq!(listing.join().unwrap().unwrap().entries.len(), 1);
}

/// A client that is gone keeps nobody off for longer than its lease lasts.
#[test]
fn a_holder_that_is_gone_is_waited_for_for_some_seconds() {
    let store = Opened::new(Kind::Cluster);
    let mine = store.create("test", guarded());
    let other = store.other();
    let theirs = other.keyspace(&store.name("test")).unwrap();
    let long = LeaseOptions::shared().duration(Duration::from_secs(10));
    let lease = theirs.lease("a", &long).unwrap();
    other.close().unwrap();
    std::mem::forget(lease);
    let begun = Instant::now();
    mine.put("a", "at last").unwrap();
    assert!(begun.elapsed() < Duration::from_secs(9), "a guarded keyspace has shorter leases");
}

#[test]
fn a_keyspace_says_whether_it_is_guarded_and_is_not_taken_for_another() {
    for kind in stores() {
        let store = Opened::new(kind);
        let keyspace = store.create("test", guarded());
        assert!(keyspace.config().is_guarded);
        let name = store.name("test");
        let plain = KeyspaceConfig::default();
        let error = store.tyr.keyspace_or_create(&name, plain).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.message().contains("guarded by leases"), "{error}");
        let store = store.reopen();
        assert!(store.tyr.keyspace(&name).unwrap().config().is_guarded);
    }
}
