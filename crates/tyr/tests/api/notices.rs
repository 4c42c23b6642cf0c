//! Notices: they reach who watches, and who sent one hears who has acknowledged it (K6).

use std::time::{Duration, Instant};

use tyr::blocking::{Keyspace, Watch};
use tyr::{ErrorKind, KeyspaceConfig, Notice, Notified};
use tyr_testing::{Kind, Store, stores};

const LONG: Duration = Duration::from_secs(30);

fn store_of(kind: Kind) -> Store {
    Store::new(kind, KeyspaceConfig::default())
}

/// A watch that is told from now on.
fn begun(watch: Watch) -> Watch {
    assert!(watch.changed_within(LONG).unwrap().expect("it is told to look").is_anew);
    watch
}

/// The next notice of a watch.
fn notice(watch: &Watch) -> Notice {
    let until = Instant::now() + 2 * LONG;
    loop {
        assert!(Instant::now() < until, "no notice comes");
        let event = watch.changed_within(LONG).unwrap();
        if let Some(first) = event.and_then(|event| event.notices.into_iter().next()) {
            return first;
        }
    }
}

/// Sends a notice while these watches acknowledge it, each with its place.
fn notify(keyspace: &Keyspace, watches: &[&Watch], timeout: Duration) -> Notified {
    std::thread::scope(|scope| {
        for (watch, place) in watches.iter().zip(0..) {
            scope.spawn(move || {
                let notice = notice(watch);
                assert_eq!((notice.key.as_bytes(), &notice.payload[..]), (&b"a/1"[..], &b"go"[..]));
                watch.acknowledge(&notice, vec![place]).unwrap();
                watch.acknowledge(&notice, "again").unwrap();
            });
        }
        keyspace.notify("a/1", "go", timeout).unwrap()
    })
}

#[test]
fn who_watches_a_key_or_what_it_begins_with_gets_a_notice_and_is_named_with_the_reply() {
    for store in stores().map(store_of) {
        let keyspace = &store.keyspace;
        let of_key = begun(keyspace.watch("a/1").unwrap());
        let of_prefix = begun(keyspace.watch_prefix("a/").unwrap());
        let of_other = begun(keyspace.watch("a/2").unwrap());
        let notified = notify(keyspace, &[&of_key, &of_prefix], LONG);
        assert_eq!(notified.missed, []);
        let mut replies: Vec<u8> =
            notified.acknowledged.iter().map(|(_, reply)| reply[0]).collect();
        replies.sort_unstable();
        assert_eq!(replies, [0, 1], "each once, and the first reply counts");
        assert!(of_other.changed_within(Duration::from_millis(50)).unwrap().is_none());
        drop(of_key);
        let notified = notify(keyspace, &[&of_prefix], LONG);
        assert_eq!(notified.acknowledged.len(), 1);
        assert_eq!(keyspace.notify("b", "", LONG).unwrap(), Notified::default(), "nobody watches");
    }
}

#[test]
fn who_does_not_acknowledge_in_time_is_named_as_one_who_missed_it() {
    for store in stores().map(store_of) {
        let keyspace = &store.keyspace;
        let silent = begun(keyspace.watch_prefix("").unwrap());
        let heard = begun(keyspace.watch("a/1").unwrap());
        let before = Instant::now();
        let timeout = Duration::from_millis(300);
        let notified = notify(keyspace, &[&heard], timeout);
        assert!(before.elapsed() >= timeout);
        assert_eq!((notified.acknowledged.len(), notified.missed.len()), (1, 1));
        assert_ne!(notified.acknowledged[0].0, notified.missed[0]);
        silent.acknowledge(&notice(&silent), "too late").unwrap();
        let again = notify(keyspace, &[&heard, &silent], LONG);
        assert_eq!(again.missed, [], "it gets the next");
    }
}

#[test]
fn who_watches_no_more_is_not_waited_for() {
    for store in stores().map(store_of) {
        let keyspace = &store.keyspace;
        let watch = begun(keyspace.watch("a/1").unwrap());
        let ending = std::thread::spawn(move || {
            notice(&watch);
            drop(watch);
        });
        let before = Instant::now();
        let notified = keyspace.notify("a/1", "go", LONG).unwrap();
        assert_eq!((notified.acknowledged.len(), notified.missed.len()), (0, 1));
        assert!(before.elapsed() < LONG);
        ending.join().unwrap();
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_with_the_bounds() {
    for store in stores().map(store_of) {
        let keyspace = &store.keyspace;
        let long = keyspace.notify("a", vec![0; 65_537], LONG).unwrap_err();
        assert_eq!(long.kind(), ErrorKind::InvalidArgument);
        assert!(long.message().contains("65536"), "{long}");
        let slow = keyspace.notify("a", "", 2 * LONG).unwrap_err();
        assert!(slow.message().contains("10ms to 30s"), "{slow}");
        let watch = begun(keyspace.watch("a/1").unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let notice = notice(&watch);
                let refused = watch.acknowledge(&notice, vec![0; 4_097]).unwrap_err();
                assert!(refused.message().contains("4096"), "{refused}");
                watch.acknowledge(&notice, vec![0; 4_096]).unwrap();
            });
            let notified = keyspace.notify("a/1", "go", LONG).unwrap();
            assert_eq!(notified.acknowledged[0].1.len(), 4_096);
        });
        store.tyr().drop_keyspace(store.keyspace.name()).unwrap();
        let gone = keyspace.notify("a/1", "go", LONG).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
    }
}
