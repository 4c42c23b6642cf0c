//! What transactions list (Q3): what they see, what is a conflict, and what is refused.

use std::thread;

use tyr::blocking::{Keyspace, Transaction};
use tyr::{Bytes, ErrorKind, KeyspaceConfig, PlacedBy, Scan, limits};
use tyr_testing::{Kind, Store, stores};

/// A store of this kind, whose keyspace is placed by what comes before a slash.
fn store_of(kind: Kind) -> Store {
    let (chunk_size, placed_by) = (limits::CHUNK_SIZE_MIN, PlacedBy::UpTo(b'/'));
    let store =
        Store::new(kind, KeyspaceConfig { chunk_size, placed_by, ..KeyspaceConfig::default() });
    for key in ["a/1", "a/2", "a/3", "b/1"] {
        store.keyspace.put(key, key).unwrap();
    }
    store
}

fn keys(transaction: &mut Transaction, data: &Keyspace, scan: &Scan) -> Vec<String> {
    let page = transaction.scan_page(data, scan).unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

fn a() -> Scan {
    Scan::new().prefix("a/")
}

/// What the tests here ask a store.
trait Asked {
    fn refusal(&self, scan: &Scan, since: impl FnOnce(&Keyspace)) -> Option<ErrorKind>;
}

impl Asked for Store {
    /// What the commit of a transaction fails with that has listed this, when that happened since.
    fn refusal(&self, scan: &Scan, since: impl FnOnce(&Keyspace)) -> Option<ErrorKind> {
        let mut transaction = self.tyr().begin();
        transaction.scan_page(&self.keyspace, scan).unwrap();
        since(&self.keyspace);
        transaction.put(&self.keyspace, "witness", "x").unwrap();
        transaction.commit().err().map(|error| error.kind())
    }
}

#[test]
fn a_key_that_came_or_went_in_what_was_listed_is_a_conflict() {
    const CONFLICT: Option<ErrorKind> = Some(ErrorKind::Conflict);
    for store in stores().map(store_of) {
        let put = |key: &'static str| move |data: &Keyspace| data.put(key, "new").unwrap();
        assert_eq!(store.refusal(&a(), |_| ()), None);
        assert_eq!(store.refusal(&a(), put("b/2")), None, "another group");
        assert_eq!(store.refusal(&a(), put("a/0")), CONFLICT, "a key that came");
        assert_eq!(store.refusal(&a(), |data| assert!(data.delete("a/0").unwrap())), CONFLICT);
        assert_eq!(store.refusal(&a(), put("a/2")), CONFLICT, "a blob that was written");
        assert_eq!(store.refusal(&a().keys_only(), put("a/2")), None, "its key was listed");
        assert_eq!(store.refusal(&a().keys_only(), put("a/22")), CONFLICT);
        // What lies behind the page, or before where it begins, was not listed.
        assert_eq!(store.refusal(&a().limit(2), put("a/9")), None);
        assert_eq!(store.refusal(&a().limit(2), put("a/11")), CONFLICT);
        assert_eq!(store.refusal(&a().after("a/2"), put("a/1")), None);
        assert_eq!(store.refusal(&a().from("a/3").to("a/5"), put("a/4")), CONFLICT);
        // An empty group is listed, too.
        let none = Scan::new().prefix("none/");
        assert_eq!(store.refusal(&none, put("none/1")), CONFLICT);
    }
}

#[test]
fn a_listing_shows_what_the_transaction_has_written() {
    for store in stores().map(store_of) {
        let data = &store.keyspace;
        let mut transaction = store.tyr().begin();
        transaction.put(data, "a/0", "first").unwrap();
        transaction.delete(data, "a/2").unwrap();
        transaction.append(data, "a/3", "!!").unwrap();
        transaction.put(data, "b/0", "elsewhere").unwrap();
        transaction.expect_absent(data, "a/7").unwrap();
        assert_eq!(keys(&mut transaction, data, &a()), ["a/0", "a/1", "a/3"]);
        assert_eq!(keys(&mut transaction, data, &a().keys_only()), ["a/0", "a/1", "a/3"]);
        let page = transaction.scan_page(data, &a().first_bytes(4)).unwrap();
        let seen: Vec<(Bytes, u64)> =
            page.entries.into_iter().map(|it| (it.bytes, it.stat.unwrap().size)).collect();
        let bytes = |text: &'static str, size: u64| (Bytes::from(text), size);
        assert_eq!(seen, [bytes("firs", 5), bytes("a/1", 3), bytes("a/3!", 5)]);
        // Pages of one key go on behind each other, whoever has made the key.
        let (mut next, mut all) = (Some(a().limit(1)), Vec::new());
        while let Some(scan) = next {
            let page = transaction.scan_page(data, &scan).unwrap();
            assert!(page.entries.len() <= 1);
            next = scan.resumed(&page);
            all.extend(page.entries.into_iter().map(|entry| entry.key.to_string()));
        }
        assert_eq!(all, ["a/0", "a/1", "a/3"]);
        transaction.commit().unwrap();
        let listed = data.scan_page(&a().keys_only()).unwrap();
        assert_eq!(listed.entries.len(), 3);
    }
}

#[test]
fn a_listing_of_several_groups_and_one_of_groups_are_refused_in_words() {
    for kind in stores() {
        let store = store_of(kind);
        let plain = store.opened.create("plain", KeyspaceConfig::default());
        let mut transaction = store.tyr().begin();
        let mut refused = |data: &Keyspace, scan: Scan| {
            let error = transaction.scan_page(data, &scan).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            error.message().to_owned()
        };
        let data = &store.keyspace;
        assert!(refused(data, Scan::new()).contains("give a prefix that says which group"));
        assert!(refused(data, Scan::new().prefix("a")).contains("up-to:/"));
        assert!(refused(data, Scan::new().from("a/1").to("b/1")).contains("of one group"));
        assert!(refused(&plain, a()).contains("placed-by"));
        assert!(refused(data, a().delimiter("/")).contains("delimiter"));
        assert!(refused(data, a().limit(0)).contains("limit"));
        // What is of one group by its bounds is, and of no keys there is nothing to list.
        assert_eq!(keys(&mut transaction, data, &Scan::new().from("a/2").to("a/9")).len(), 2);
        assert_eq!(keys(&mut transaction, &plain, &Scan::new().from("b").to("b")).len(), 0);
        transaction.commit().unwrap();
    }
}

#[test]
fn a_transaction_lists_so_many_keys_and_ranges_at_most() {
    let store = store_of(Kind::Embedded);
    let data = &store.keyspace;
    let mut transaction = store.tyr().begin();
    for number in 0..=limits::TRANSACTION_LISTED_MAX {
        transaction.create(data, format!("many/{number:06}")).unwrap();
    }
    transaction.commit().unwrap();
    let many = Scan::new().prefix("many/");
    let mut transaction = store.tyr().begin();
    let (mut next, mut pages) = (Some(many), 0);
    let error = loop {
        let scan = next.take().expect("there are too many");
        match transaction.scan_page(data, &scan) {
            Ok(page) => next = scan.resumed(&page),
            Err(error) => break error,
        }
        pages += 1;
    };
    assert_eq!((pages, error.kind()), (10, ErrorKind::InvalidArgument));
    assert!(error.message().contains("10000 keys"), "{error}");
    transaction.commit().unwrap();
    let mut transaction = store.tyr().begin();
    for number in 0..=limits::TRANSACTION_LISTINGS_MAX {
        transaction.scan_page(data, &Scan::new().prefix(format!("{number}/"))).unwrap();
    }
    assert!(transaction.commit().unwrap_err().message().contains("64 ranges"));
}

/// Nobody writes what another reads: only what is listed keeps them apart.
#[test]
fn of_many_that_take_a_seat_if_one_is_left_no_more_get_one_than_there_are() {
    const HOLDS: usize = 5;
    for store in stores().map(store_of) {
        let (tyr, data) = (store.tyr(), &store.keyspace);
        let room = &Scan::new().prefix("room/").keys_only();
        let enter = |client: usize| {
            let entered = (0..10).filter(|number| {
                let entered = tyr.transact(|transaction| {
                    if transaction.scan_page(data, room)?.entries.len() >= HOLDS {
                        return Ok(false);
                    }
                    transaction.create(data, format!("room/{client}-{number}"))?;
                    Ok(true)
                });
                entered.unwrap()
            });
            entered.count()
        };
        let enter = &enter;
        let entered: usize = thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|client| scope.spawn(move || enter(client))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        let there = data.scan_page(room).unwrap().entries.len();
        assert_eq!((entered, there), (HOLDS, HOLDS));
    }
}

/// R8.
#[test]
fn who_only_lists_commits_though_somebody_writes_all_the_time() {
    for store in stores().map(store_of) {
        let (tyr, data) = (store.tyr(), &store.keyspace);
        let mut runs = 0;
        let listed = tyr.transact(|transaction| {
            runs += 1;
            let listed = keys(transaction, data, &a()).len();
            data.put(format!("a/new{runs}"), "x").unwrap();
            Ok(listed)
        });
        assert!(listed.is_ok() && runs <= 3, "it ran {runs} times: {listed:?}");
    }
}

#[test]
fn without_older_versions_a_listing_is_validated_all_the_same() {
    for kind in stores() {
        let config = KeyspaceConfig {
            placed_by: PlacedBy::First(2),
            is_multi_versioned: false,
            ..KeyspaceConfig::default()
        };
        let store = Store::new(kind, config);
        store.keyspace.put("a/1", "x").unwrap();
        let put = |data: &Keyspace| data.put("a/2", "x").unwrap();
        assert_eq!(store.refusal(&a(), put), Some(ErrorKind::Conflict));
        assert_eq!(store.refusal(&a(), |_| ()), None);
    }
}

#[test]
fn of_a_keyspace_that_was_dropped_meanwhile_nothing_is_validated() {
    for kind in stores() {
        let store = store_of(kind);
        let config = KeyspaceConfig { placed_by: PlacedBy::First(2), ..KeyspaceConfig::default() };
        let dropped = store.opened.create("dropped", config);
        let mut transaction = store.tyr().begin();
        transaction.scan_page(&dropped, &a()).unwrap();
        transaction.put(&store.keyspace, "witness", "x").unwrap();
        store.tyr().drop_keyspace(&store.opened.name("dropped")).unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.keyspace.get("witness").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
