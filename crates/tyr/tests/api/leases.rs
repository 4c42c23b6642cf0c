//! Leases and locks, of a store in this process and of a cluster.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tyr::{ErrorKind, KeyspaceConfig, LeaseMode, LeaseOptions, PlacedBy};
use tyr_testing::{Kind, Opened, Store, stores};

const LONG: Duration = Duration::from_secs(60);

fn store_of(kind: Kind) -> Store {
    Store::new(kind, KeyspaceConfig::default())
}

/// K1.
#[test]
fn an_exclusive_lease_is_held_by_one_and_its_holder_hears_who_waits() {
    for store in stores().map(store_of) {
        let now = LeaseOptions::exclusive().no_wait();
        let first = store.keyspace.lease("a", &now).unwrap();
        assert_eq!((first.key().to_string().as_str(), first.mode()), ("a", LeaseMode::Exclusive));
        let refused = store.keyspace.lease("a", &LeaseOptions::shared().no_wait()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(first.is_held() && !first.is_recalled());
        assert!(store.keyspace.lease("b", &now).is_ok(), "another key is another lease");
        let keyspace = store.keyspace.clone();
        let waiting = std::thread::spawn(move || {
            keyspace.lease("a", &LeaseOptions::exclusive().wait(LONG)).map(drop)
        });
        assert!(first.recalled_within(LONG));
        first.give_back();
        waiting.join().unwrap().unwrap();
    }
}

#[test]
fn shared_leases_are_held_beside_each_other_and_waiting_ends_in_time() {
    for store in stores().map(store_of) {
        let shared = LeaseOptions::shared().no_wait();
        let one = store.keyspace.lease("a", &shared).unwrap();
        let two = store.keyspace.lease("a", &shared).unwrap();
        let brief = LeaseOptions::exclusive().wait(Duration::from_millis(50));
        let refused = store.keyspace.lease("a", &brief).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(one.is_held() && two.is_held());
        drop((one, two));
        assert!(store.keyspace.lease("a", &brief.wait(LONG)).is_ok());
    }
}

/// K4.
#[test]
fn what_is_fenced_takes_effect_while_nobody_else_has_the_lock_and_never_after() {
    for store in stores().map(store_of) {
        let options = LeaseOptions::exclusive().no_wait().holder("first");
        let first = store.keyspace.lock("lock", &options).unwrap();
        assert_eq!(first.token(), 1);
        let commit = |lock: &tyr::blocking::Lock, value: &'static str| {
            let mut transaction = store.tyr().begin();
            let fence = transaction.fence(lock).unwrap();
            transaction.put(&store.keyspace, "data", value).unwrap();
            transaction.commit().map(drop).map_err(|error| (error.kind(), error.operation(), fence))
        };
        commit(&first, "of the first").unwrap();
        let info = store.keyspace.inspect_lock("lock").unwrap();
        assert_eq!((info.token, info.holder.as_deref()), (1, Some("first")));
        // As if it had stood still: another has got the lock, and it does not know.
        let token = store.keyspace.apply("lock", 8, tyr::Transform::add(tyr::Number::U64(1)));
        assert_eq!(token.unwrap(), tyr::Number::U64(2));
        let (kind, operation, fence) = commit(&first, "too late").unwrap_err();
        assert_eq!((kind, operation), (ErrorKind::Conflict, Some(fence)));
        assert_eq!(first.unlock().unwrap_err().kind(), ErrorKind::Conflict);
        let third = store.keyspace.lock("lock", &LeaseOptions::exclusive().wait(LONG)).unwrap();
        assert_eq!(third.token(), 3);
        commit(&third, "of the third").unwrap();
        third.unlock().unwrap();
        assert_eq!(store.keyspace.get("data").unwrap(), "of the third");
        let info = store.keyspace.inspect_lock("lock").unwrap();
        assert_eq!((info.token, info.holder), (3, None));
    }
}

#[test]
fn many_who_want_one_lock_get_it_one_after_the_other_with_rising_tokens() {
    for store in stores().map(store_of) {
        let (inside, last) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let wait = LeaseOptions::exclusive().wait(LONG);
                        let lock = store.keyspace.lock("lock", &wait).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "nobody else has it");
                        assert!(last.swap(lock.token(), Ordering::SeqCst) < lock.token());
                        inside.fetch_sub(1, Ordering::SeqCst);
                        lock.unlock().unwrap();
                    }
                });
            }
        });
        assert_eq!(last.into_inner(), 40);
    }
}

/// K7.
#[test]
fn a_lease_of_a_group_excludes_those_of_its_keys() {
    let config = KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..KeyspaceConfig::default() };
    for store in stores().map(|kind| Store::new(kind, config.clone())) {
        let now = LeaseOptions::exclusive().no_wait();
        let group = store.keyspace.lease_group("home/", &now).unwrap();
        assert_eq!(group.key().to_string(), "home/");
        let refused = store.keyspace.lease("home/new", &now).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        let others = ["mail/a", "home"].map(|key| store.keyspace.lease(key, &now).unwrap());
        let keyspace = store.keyspace.clone();
        let waiting = std::thread::spawn(move || {
            keyspace.lease("home/new", &LeaseOptions::shared().wait(LONG))
        });
        assert!(group.recalled_within(LONG));
        group.give_back();
        let key = waiting.join().unwrap().unwrap();
        assert!(store.keyspace.lease_group("home/", &now).is_err(), "a key of it is held");
        let shared = LeaseOptions::shared().no_wait();
        let beside = store.keyspace.lease_group("home/", &shared).unwrap();
        assert!(key.is_held() && beside.is_held() && others.iter().all(|it| it.is_held()));
    }
}

/// K7.
#[test]
fn a_group_that_a_keyspace_does_not_have_is_refused_and_it_is_said_how_groups_are_named() {
    for kind in stores() {
        let store = Opened::new(kind);
        let plain = store.create("plain", KeyspaceConfig::default());
        let first = KeyspaceConfig { placed_by: PlacedBy::First(4), ..KeyspaceConfig::default() };
        let first = store.create("first", first);
        let options = LeaseOptions::shared();
        for (keyspace, group, what) in [
            (&plain, "home/", "placed-by"),
            (&first, "u1/", "first 4"),
            (&first, "u017/", "first 4"),
        ] {
            let refused = keyspace.lease_group(group, &options).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
            assert!(refused.message().contains(what), "{refused}");
        }
        assert!(first.lease_group("u017", &options).is_ok());
    }
}

#[test]
fn what_is_no_lock_or_out_of_range_is_refused_in_words_and_nothing_changes() {
    for store in stores().map(store_of) {
        store.keyspace.put("data", "precious numbers").unwrap();
        let now = LeaseOptions::exclusive().no_wait();
        let refused = store.keyspace.lock("data", &now).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.message().contains("no lock"), "{refused}");
        assert_eq!(store.keyspace.get("data").unwrap(), "precious numbers");
        let shared = store.keyspace.lock("lock", &LeaseOptions::shared()).unwrap_err();
        assert_eq!(shared.kind(), ErrorKind::InvalidArgument);
        let long = now.clone().duration(Duration::from_secs(11));
        let refused = store.keyspace.lease("a", &long).unwrap_err();
        assert!(refused.message().contains("1 to 10 s"), "{refused}");
        let wordy = now.clone().holder("x".repeat(257));
        let refused = store.keyspace.lock("lock", &wordy).unwrap_err();
        assert!(refused.message().contains("256 bytes"), "{refused}");
        assert_eq!(store.keyspace.inspect_lock("data").unwrap_err().kind(), refused.kind());
        let unknown = store.keyspace.inspect_lock("lock").unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound);
        assert!(store.keyspace.lock("lock", &now).is_ok(), "those who were refused hold nothing");
    }
}
