//! The blocking API on a real folder: each operation, its answers and its errors.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod fixtures;

use std::time::{Duration, Instant};

use fixtures::{Kind, Opened, Store, stores};
use tyr::blocking::Tyr;
use tyr::{
    ByteRange, Durability, ErrorKind, KeyspaceConfig, Number, PlacedBy, Scan, Stamped, Transform,
    TransformKind, limits,
};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store of this kind, with a keyspace of this durability.
fn store_of(kind: Kind, durability: Durability) -> Store {
    Store::new(kind, KeyspaceConfig { durability, ..KeyspaceConfig::default() })
}

/// A store of each kind, with a keyspace of each of these durabilities.
fn each(durabilities: &'static [Durability]) -> impl Iterator<Item = Store> {
    let of_kind = |kind| durabilities.iter().map(move |it| store_of(kind, *it));
    stores().into_iter().flat_map(of_kind)
}

/// A store of each kind.
fn buffered() -> impl Iterator<Item = Store> {
    each(&[Durability::Buffered])
}

const LASTING: &[Durability] = &[Durability::Buffered, Durability::Sync];

#[test]
fn what_was_written_is_read_in_every_durability_and_after_reopening() {
    for store in each(LASTING) {
        store.keyspace.put("a", "hello world").unwrap();
        store.keyspace.write("a", 6, "týr!").unwrap();
        assert_eq!(store.keyspace.append("a", "...").unwrap(), 11);
        assert_eq!(store.keyspace.get("a").unwrap(), "hello týr!...".as_bytes());
        let store = store.reopen();
        assert_eq!(store.keyspace.get("a").unwrap(), "hello týr!...".as_bytes());
        assert_eq!(store.keyspace.read("a", 6, 4).unwrap(), "týr".as_bytes());
        assert_eq!(store.keyspace.read("a", 13, 100).unwrap().len(), 1);
    }
}

#[test]
fn a_memory_keyspace_is_empty_after_reopening() {
    let store = store_of(Kind::Embedded, Durability::Memory);
    store.keyspace.put("a", "1").unwrap();
    assert_eq!(store.keyspace.get("a").unwrap(), "1");
    let store = store.reopen();
    assert_eq!(store.keyspace.get("a").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_cluster_refuses_a_memory_keyspace_and_says_why() {
    let opened = Opened::new(Kind::Cluster);
    let config = || KeyspaceConfig { durability: Durability::Memory, ..KeyspaceConfig::default() };
    let refused = opened.tyr.create_keyspace(&opened.name("test"), config()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("syncs every commit"), "{refused}");
    assert!(opened.tyr.keyspace(&opened.name("test")).is_err(), "there is none now");
}

#[test]
fn a_keyspace_is_made_only_if_it_is_missing_and_another_configuration_is_refused() {
    for kind in stores() {
        let opened = Opened::new(kind);
        let name = opened.name("test");
        let config = || KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let made = opened.tyr.keyspace_or_create(&name, config()).unwrap();
        made.put("a", "1").unwrap();
        let found = opened.tyr.keyspace_or_create(&name, config()).unwrap();
        assert_eq!((found.id(), found.get("a").unwrap()), (made.id(), "1".into()));
        let refused = opened.tyr.keyspace_or_create(&name, KeyspaceConfig::default()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert!(refused.message().contains("chunk size 4096, not 67108864"), "{refused}");
        let config = KeyspaceConfig { chunk_size: 3, ..KeyspaceConfig::default() };
        let wrong = opened.tyr.keyspace_or_create(&name, config).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_group_is_listed_as_any_prefix_is() {
    for opened in stores().into_iter().map(Opened::new) {
        let placed_by = PlacedBy::UpTo(b'/');
        let config = KeyspaceConfig { placed_by, ..KeyspaceConfig::default() };
        let keyspace = opened.tyr.create_keyspace(&opened.name("groups"), config).unwrap();
        assert_eq!(keyspace.config().placed_by, placed_by);
        let keys = ["a", "a/", "a/1", "a/2/3", "ab/1", "b/1"];
        keys.iter().for_each(|key| keyspace.put(key, "x").unwrap());
        let listed = |prefix: &str| -> Vec<String> {
            let page = keyspace.scan(prefix.as_bytes(), None, 10).unwrap();
            page.iter().map(|(key, _)| key.to_string()).collect()
        };
        assert_eq!(listed("a/"), ["a/", "a/1", "a/2/3"]);
        assert_eq!(listed("a/2/"), ["a/2/3"]);
        assert_eq!(listed("a"), keys[..5]);
        assert_eq!(listed(""), keys);
    }
}

#[test]
fn errors_name_keyspaces_as_users_do() {
    for store in buffered() {
        let place = format!("keyspace {} blob \"log\": ", store.opened.name("test"));
        store.keyspace.append("log", "ab").unwrap();
        let mut transaction = store.tyr().begin();
        transaction.create(&store.keyspace, "log").unwrap();
        for error in [
            store.keyspace.append_at("log", 0, "cd").unwrap_err(),
            store.keyspace.create("log").unwrap_err(),
            store.keyspace.compare_and_swap("log", 1, "bc", "xx").unwrap_err(),
            transaction.commit().unwrap_err(),
        ] {
            assert!(error.message().starts_with(&place), "{error}");
            assert_eq!(error.blob().unwrap().keyspace, store.keyspace.id());
        }
    }
}

#[test]
fn absent_blobs_are_errors_and_gaps_are_zeros() {
    for store in buffered() {
        let keyspace = &store.keyspace;
        assert_eq!(keyspace.read("none", 0, 1).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(keyspace.stat("none").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!keyspace.delete("none").unwrap());
        keyspace.write("gap", 5, "x").unwrap();
        assert_eq!(keyspace.get("gap").unwrap(), &b"\0\0\0\0\0x"[..]);
        keyspace.truncate("gap", 2).unwrap();
        keyspace.truncate("gap", 4).unwrap();
        assert_eq!(keyspace.get("gap").unwrap(), &b"\0\0\0\0"[..]);
        assert!(keyspace.delete("gap").unwrap());
        assert_eq!(keyspace.get("gap").unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn create_fails_if_the_blob_exists() {
    for store in each(&[Durability::Sync]) {
        store.keyspace.create("a").unwrap();
        assert_eq!(store.keyspace.create("a").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(store.keyspace.stat("a").unwrap().size, 0);
    }
}

#[test]
fn arithmetic_happens_in_place_on_zeros_where_nothing_is() {
    for store in buffered() {
        let add = Transform::add(Number::I64(-7));
        assert_eq!(store.keyspace.apply("n", 8, add).unwrap(), Number::I64(-7));
        assert_eq!(store.keyspace.apply("n", 8, add).unwrap(), Number::I64(-14));
        assert_eq!(store.keyspace.stat("n").unwrap().size, 16);
        let swap = Transform::new(TransformKind::Swap, Number::F32(1.5)).unwrap();
        assert_eq!(store.keyspace.apply("n", 3, swap).unwrap(), Number::F32(1.5));
        // Across the bound of a block in memory.
        let across = Transform::add(Number::U64(1));
        for _ in 0..3 {
            store.keyspace.apply("n", (16 << 10) - 3, across).unwrap();
        }
        let bytes = store.keyspace.read("n", (16 << 10) - 3, 8).unwrap();
        assert_eq!(bytes, &3u64.to_le_bytes()[..]);
    }
}

#[test]
fn conditions_decide_whether_a_transaction_takes_effect() {
    for store in each(LASTING) {
        let keyspace = &store.keyspace;
        assert_eq!(keyspace.append_at("log", 0, "ab").unwrap(), 0);
        let late = keyspace.append_at("log", 0, "cd").unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict);
        assert_eq!(keyspace.append_at("log", 2, "cd").unwrap(), 2);
        keyspace.compare_and_swap("log", 1, "bc", "BC").unwrap();
        let swapped = keyspace.compare_and_swap("log", 1, "bc", "xx").unwrap_err();
        assert_eq!(swapped.kind(), ErrorKind::Conflict);
        assert_eq!(keyspace.get("log").unwrap(), "aBCd");
    }
}

/// Found by the model of seed 73690950611304: the size was that of a blob which ends there.
#[test]
fn an_append_that_expects_another_end_is_seen_at_the_end_and_refused() {
    for store in buffered() {
        store.keyspace.append("log", "abc").unwrap();
        let mut transaction = store.tyr().begin();
        transaction.append_at(&store.keyspace, "log", 4, "de").unwrap();
        assert_eq!(transaction.stat(&store.keyspace, "log").unwrap().size, 5);
        assert_eq!(transaction.read(&store.keyspace, "log", 0, 9).unwrap(), "abcde");
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(store.keyspace.get("log").unwrap(), "abc");
    }
}

#[test]
fn a_transaction_over_many_blobs_takes_effect_together() {
    for store in each(LASTING) {
        let keyspace = &store.keyspace;
        let mut transaction = store.tyr().begin();
        let mut ids = Vec::new();
        for n in 0..20 {
            let key = format!("blob{n}");
            ids.push(transaction.append(keyspace, &key, vec![n; 3]).unwrap());
            let add = Transform::add(Number::U64(u64::from(n)));
            transaction.apply(keyspace, "sum", 0, add).unwrap();
        }
        let deleted = transaction.delete(keyspace, "blob3").unwrap();
        let committed = transaction.commit().unwrap();
        assert!(ids.iter().all(|id| committed.offset(*id) == Some(0)));
        assert_eq!(committed.existed(deleted), Some(true));
        assert_eq!(keyspace.stat("blob4").unwrap().version, committed.version());
        assert_eq!(keyspace.read("sum", 0, 8).unwrap(), &190u64.to_le_bytes()[..]);
        let listed = keyspace.scan(b"blob", None, 100).unwrap();
        assert_eq!(listed.len(), 19);
    }
}

#[test]
fn reads_in_a_transaction_repeat_see_its_own_writes_and_are_validated() {
    for store in each(LASTING) {
        let keyspace = &store.keyspace;
        keyspace.put("a", "0123456789").unwrap();
        let mut transaction = store.tyr().begin();
        assert_eq!(transaction.get(keyspace, "a").unwrap(), "0123456789");
        keyspace.write("a", 0, "X").unwrap();
        assert_eq!(transaction.get(keyspace, "a").unwrap(), "0123456789");
        transaction.write(keyspace, "a", 8, "abcd").unwrap();
        transaction.apply(keyspace, "a", 0, Transform::add(Number::U8(1))).unwrap();
        transaction.append(keyspace, "a", "!").unwrap();
        assert_eq!(transaction.get(keyspace, "a").unwrap(), "11234567abcd!");
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(keyspace.get("a").unwrap(), "X123456789");
    }
}

#[test]
fn overlap_is_of_bytes_not_of_blobs() {
    for store in buffered() {
        let keyspace = &store.keyspace;
        keyspace.put("a", vec![0; 100]).unwrap();
        let mut transaction = store.tyr().begin();
        transaction.read(keyspace, "a", 0, 10).unwrap();
        transaction.write(keyspace, "b", 0, "done").unwrap();
        keyspace.write("a", 10, "elsewhere").unwrap();
        transaction.commit().unwrap();
        assert_eq!(keyspace.get("b").unwrap(), "done");
    }
}

#[test]
fn a_snapshot_keeps_its_version_while_writers_and_folds_go_on() {
    for store in buffered() {
        let keyspace = &store.keyspace;
        keyspace.put("a", vec![1; 50_000]).unwrap();
        keyspace.put("gone", "soon").unwrap();
        let snapshot = store.tyr().snapshot().unwrap();
        keyspace.put("a", "new").unwrap();
        keyspace.put("later", "x").unwrap();
        keyspace.delete("gone").unwrap();
        for _ in 0..2 {
            assert_eq!(snapshot.get(keyspace, "a").unwrap(), vec![1; 50_000]);
            assert_eq!(snapshot.get(keyspace, "gone").unwrap(), "soon");
            assert_eq!(snapshot.stat(keyspace, "later").unwrap_err().kind(), ErrorKind::NotFound);
            let keys: Vec<_> = snapshot.scan(keyspace, b"", None, 10).unwrap();
            let keys: Vec<_> = keys.iter().map(|(key, _)| key.to_string()).collect();
            assert_eq!(keys, ["a", "gone"]);
        }
        assert_eq!(keyspace.get("a").unwrap(), "new");
    }
}

/// Q1.
#[test]
fn a_snapshot_lists_the_same_while_blobs_are_deleted_and_folded_until_it_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::options().fold_log_bytes(64 << 10).open_blocking(folder.path()).unwrap();
    let keyspace = tyr.create_keyspace("test", KeyspaceConfig::default()).unwrap();
    let keys: Vec<String> = (0..50).map(|number| format!("key-{number:02}")).collect();
    keys.iter().for_each(|key| keyspace.put(key, vec![1; 500]).unwrap());
    let snapshot = tyr.snapshot().unwrap();
    let first = snapshot.scan(&keyspace, b"", None, 100).unwrap();
    assert_eq!(first.len(), keys.len());
    keys.iter().for_each(|key| keyspace.delete(key).map(drop).unwrap());
    // The log grows until a fold waits no longer for who reads below it.
    let (begun, mut listed) = (Instant::now(), 0);
    let error = loop {
        keyspace.put("other", vec![2; 30_000]).unwrap();
        match snapshot.scan(&keyspace, b"", None, 100) {
            Ok(again) => assert_eq!(again, first),
            Err(error) => break error,
        }
        listed += 1;
        assert!(begun.elapsed() < PATIENCE, "no fold ended it");
    };
    assert_eq!((error.kind(), listed > 0), (ErrorKind::SnapshotTooOld, true));
    assert_eq!(snapshot.get(&keyspace, "key-07").unwrap_err().kind(), ErrorKind::SnapshotTooOld);
    let now = tyr.snapshot().unwrap().scan(&keyspace, b"", None, 100).unwrap();
    assert_eq!(now.len(), 1);
}

/// Q2.
#[test]
fn pages_have_sizes_and_first_bytes_of_one_moment_and_groups_once() {
    for is_compressed in [false, true] {
        for kind in stores() {
            let config = KeyspaceConfig { is_compressed, ..KeyspaceConfig::default() };
            let Store { opened, keyspace, .. } = &Store::new(kind, config);
            for number in 0..30_u8 {
                keyspace.put(format!("dir/{number:02}"), vec![number; 10]).unwrap();
            }
            let large: Vec<u8> = (0..100_000_u32).map(|at| (at / 100) as u8).collect();
            keyspace.put("large", large.clone()).unwrap();
            keyspace.truncate("sparse", 50).unwrap();
            let snapshot = opened.tyr.snapshot().unwrap();
            keyspace.put("dir/07", "changed").unwrap();
            keyspace.delete("dir/08").unwrap();
            let scan = Scan::new().limit(7).range(ByteRange { start: 4, end: 300 });
            let pages: Vec<_> = snapshot.scan_pages(keyspace, &scan).map(Result::unwrap).collect();
            assert!(pages.len() == 5 && pages[..4].iter().all(|page| page.entries.len() == 7));
            let entries: Vec<_> = pages.iter().flat_map(|page| &page.entries).collect();
            assert_eq!(entries.len(), 32);
            for (number, entry) in (0..30_u8).zip(&entries) {
                assert_eq!(entry.bytes, vec![number; 6], "{:?}", entry.key);
                let stat = snapshot.stat(keyspace, &entry.key).unwrap();
                assert_eq!(entry.stat.map(|stat| stat.size), Some(stat.size));
            }
            assert_eq!(entries[30].bytes, large[4..300]);
            assert_eq!(entries[31].bytes, vec![0; 46], "nothing was written of it");
            let now = keyspace.scan_page(&Scan::new().prefix("dir/0").first_bytes(4)).unwrap();
            assert_eq!((now.entries.len(), now.is_end()), (9, true));
            assert_eq!(now.entries[7].bytes, "chan");
            let scan = Scan::new().delimiter("/").keys_only();
            let page = snapshot.scan_page(keyspace, &scan).unwrap();
            let keys: Vec<_> = page.entries.iter().map(|entry| entry.key.to_string()).collect();
            assert_eq!(
                (keys, page.groups),
                (vec!["large".into(), "sparse".into()], vec!["dir/".into()])
            );
        }
    }
}

#[test]
fn a_scan_out_of_range_is_refused_in_words_wherever_the_store_is() {
    for store in buffered() {
        let refused = |scan: Scan| {
            let error = store.keyspace.scan_page(&scan).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            error.message().to_owned()
        };
        assert!(refused(Scan::new().from("b").to("a")).contains("exchange them"));
        assert!(refused(Scan::new().delimiter("")).contains("delimiter"));
        assert!(
            refused(Scan::new().range(ByteRange::at(1 << 40, 8).unwrap())).contains("first chunk")
        );
        assert!(refused(Scan::new().limit(limits::SCAN_LIMIT_MAX + 1)).contains("limit"));
    }
}

#[test]
fn large_payloads_come_back_by_range_and_as_a_stream() {
    for store in each(&[Durability::Sync]) {
        let data: Vec<u8> =
            (0..10_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(store.keyspace.put_reader("big", &data[..]).unwrap(), data.len() as u64);
        let store = store.reopen();
        let part = store.keyspace.read("big", 4_194_000, 1000).unwrap();
        assert_eq!(part, &data[4_194_000..4_195_000]);
        let mut reader = store.keyspace.reader("big", ByteRange::ALL).unwrap();
        let mut back = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut back).unwrap();
        assert!(back == data);
        store.keyspace.write("big", 5_000_000, vec![9; 100_000]).unwrap();
        store.keyspace.apply("big", 5_000_010, Transform::add(Number::U8(1))).unwrap();
        let part = store.keyspace.read("big", 4_999_999, 13).unwrap();
        assert_eq!(part[0], data[4_999_999]);
        assert_eq!(&part[1..], [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10, 9]);
    }
}

#[test]
fn a_second_opener_is_told_who_has_the_store() {
    let store = store_of(Kind::Embedded, Durability::Buffered);
    let error = Tyr::open(store.opened.folder()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&std::process::id().to_string()), "{error}");
}

#[test]
fn absurd_arguments_are_refused_with_the_allowed_range() {
    for store in buffered() {
        let keyspace = &store.keyspace;
        for error in [
            keyspace.write("a", 1 << 63, "x").unwrap_err(),
            keyspace.put("", "x").unwrap_err(),
            keyspace.put(vec![b'k'; limits::KEY_LEN_MAX + 1], "x").unwrap_err(),
            keyspace.read("a", 0, limits::READ_LEN_MAX + 1).unwrap_err(),
            keyspace.scan(b"", None, 0).unwrap_err(),
            keyspace.truncate("a", u64::MAX).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.message().contains(|c: char| c.is_ascii_digit()), "{error}");
        }
        let config = KeyspaceConfig { chunk_size: 3, ..KeyspaceConfig::default() };
        assert!(store.tyr().create_keyspace("bad", config).is_err());
    }
}

#[test]
fn dropped_keyspaces_are_gone_for_every_handle_and_after_reopening() {
    for store in buffered() {
        store.keyspace.put("a", "1").unwrap();
        let name = store.opened.name("test");
        store.tyr().drop_keyspace(&name).unwrap();
        assert_eq!(store.keyspace.put("a", "2").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.keyspace.get("a").unwrap_err().kind(), ErrorKind::NotFound);
        store.tyr().create_keyspace(&name, KeyspaceConfig::default()).unwrap();
        let store = store.reopen();
        assert_eq!(store.keyspace.get("a").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.keyspace.scan(b"", None, 10).unwrap(), []);
    }
}

#[test]
fn arithmetic_changes_a_large_payload_of_the_same_transaction() {
    for store in buffered() {
        let data = vec![7; limits::EXTENT_PAYLOAD_MIN];
        let mut transaction = store.tyr().begin();
        transaction.append(&store.keyspace, "a", data).unwrap();
        let place = limits::EXTENT_PAYLOAD_MIN as u64 / 2 - 1;
        let transform = Transform::add(Number::U16(1));
        let id = transaction.apply(&store.keyspace, "a", place, transform).unwrap();
        let committed = transaction.commit().unwrap();
        assert_eq!(committed.value(id), Some(Number::U16(0x0708)));
        let store = store.reopen();
        assert_eq!(store.keyspace.read("a", place - 1, 4).unwrap(), &[7, 8, 7, 7][..]);
    }
}

#[test]
fn appends_beyond_the_largest_blob_are_refused_wherever_the_transaction_put_the_end() {
    // A cluster has no chain for the chunks that such a cut takes off.
    let store = store_of(Kind::Embedded, Durability::Buffered);
    let (tyr, keyspace) = (store.tyr(), &store.keyspace);
    keyspace.truncate("a", limits::BLOB_SIZE_MAX).unwrap();
    assert_eq!(keyspace.append("a", "x").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut shorter = tyr.begin();
    shorter.truncate(keyspace, "a", 1).unwrap();
    let id = shorter.append(keyspace, "a", "x").unwrap();
    assert_eq!(shorter.commit().unwrap().offset(id), Some(1));
    let mut longer = tyr.begin();
    longer.truncate(keyspace, "a", limits::BLOB_SIZE_MAX).unwrap();
    longer.append(keyspace, "a", "x").unwrap();
    assert_eq!(longer.commit().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(keyspace.stat("a").unwrap().size, 2);
}

#[test]
fn what_only_one_kind_can_do_says_so_on_the_other() {
    let store = store_of(Kind::Cluster, Durability::Sync);
    let refused = store.tyr().check(&mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(store.tyr().damage().is_none());
    // What is stamped travels in its transaction, and has a bound there.
    let stamped = || Stamped::new(vec![1; limits::TRANSACTION_INLINE_MAX / 2 + 1], [0]).unwrap();
    let mut transaction = store.tyr().begin();
    transaction.put(&store.keyspace, "a", stamped()).unwrap();
    let refused = transaction.put(&store.keyspace, "b", stamped()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("16 MiB"), "{refused}");
    drop(transaction);
    let before = store.tyr().statistics().commits;
    store.keyspace.put("a", "1").unwrap();
    let conflict = store.keyspace.append_at("a", 9, "x").unwrap_err();
    assert_eq!(store.tyr().statistics().commits, before + 1);
    let asked = store.tyr().outcome(&conflict).unwrap_err();
    assert_eq!(asked.kind(), ErrorKind::InvalidArgument);
    let embedded = store_of(Kind::Embedded, Durability::Buffered);
    assert!(embedded.tyr().outcome(&conflict).is_err());
    let mixed = embedded.tyr().begin().read(&store.keyspace, "a", 0, 1).unwrap_err();
    assert_eq!(mixed.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_number_in_two_chunks_of_a_cluster_is_refused_and_nodes_go_on() {
    let opened = Opened::new(Kind::Cluster);
    let config = KeyspaceConfig { chunk_size: limits::CHUNK_SIZE_MIN, ..Default::default() };
    let keyspace = opened.create("small", config);
    let end = limits::CHUNK_SIZE_MIN;
    let add = Transform::add(Number::U64(1));
    for offset in [end - 7, end - 1] {
        let refused = keyspace.apply("a", offset, add).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
    assert_eq!(keyspace.apply("a", end - 8, add).unwrap(), Number::U64(1));
    assert_eq!(keyspace.apply("a", end, add).unwrap(), Number::U64(1));
}

/// C1: also the version that it shows, wherever in the blob somebody wrote.
#[test]
fn what_stat_showed_in_a_transaction_is_validated() {
    for opened in stores().map(Opened::new) {
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let data = opened.create("stat", config);
        data.put("a", vec![1; 9000]).unwrap();
        for offset in [0, 4000, 8999] {
            let mut transaction = opened.tyr.begin();
            let shown = transaction.stat(&data, "a").unwrap();
            let mut other = opened.tyr.begin();
            assert_eq!(other.read(&data, "a", 100, 3).unwrap().len(), 3);
            assert_eq!(other.read(&data, "a", 9000, 5).unwrap().len(), 0);
            data.write("a", offset, "x").unwrap();
            assert!(data.stat("a").unwrap().version > shown.version);
            transaction.put(&data, "b", "").unwrap();
            let refused = transaction.commit().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "written at {offset}");
            other.put(&data, "b", "").unwrap();
            other.commit().unwrap();
        }
        let mut transaction = opened.tyr.begin();
        transaction.stat(&data, "a").unwrap();
        data.put("c", "").unwrap();
        transaction.put(&data, "b", "").unwrap();
        transaction.commit().unwrap();
    }
}

/// R8: it runs again at one moment of what it has read, until that is all it reads.
#[test]
fn a_transaction_that_only_reads_does_not_starve_though_somebody_writes_all_the_time() {
    for store in buffered() {
        let (tyr, data) = (store.tyr(), &store.keyspace);
        let mut round = 0;
        let mut rewrite = || {
            round += 1;
            let rewritten = tyr.transact(|transaction| {
                for key in ["a", "b", "c"] {
                    transaction.put(data, key, round.to_string())?;
                }
                Ok(())
            });
            rewritten.unwrap();
        };
        rewrite();
        let mut runs = 0;
        let seen = tyr.transact(|transaction| {
            runs += 1;
            let first = transaction.get(data, "a")?;
            rewrite();
            let second = transaction.get(data, "b");
            rewrite();
            let third = if runs > 1 { transaction.get(data, "c") } else { Ok(first.clone()) };
            rewrite();
            Ok((first, second?, third?))
        });
        let (first, second, third) = seen.unwrap();
        assert!(
            first == second && second == third,
            "of one moment: {first:?} {second:?} {third:?}"
        );
        assert!(runs <= 4, "it ran {runs} times");
    }
}

/// R8: what a body writes by what it has read is validated, though the run before did only read.
#[test]
fn a_body_that_writes_in_a_later_run_is_validated_as_ever() {
    for store in buffered() {
        let (tyr, data) = (store.tyr(), &store.keyspace);
        data.put("a", "0").unwrap();
        let mut runs = 0;
        let done = tyr.transact(|transaction| {
            runs += 1;
            let old = transaction.get(data, "a")?;
            if runs < 4 {
                data.put("a", runs.to_string()).unwrap();
            }
            if runs > 1 {
                transaction.put(data, "b", old)?;
            }
            Ok(())
        });
        done.unwrap();
        assert_eq!((runs, data.get("b").unwrap()), (4, "3".into()));
    }
}

/// Once a chain of a thousand pieces took seconds a node, and was given up before it ended.
#[test]
fn a_transaction_on_blobs_of_thousands_of_chunks_ends_soon() {
    for opened in stores().map(Opened::new) {
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let keyspace = opened.create("chunks", config);
        let bytes: Vec<u8> = (0..9u32 << 20).map(|n| (n / 4093) as u8).collect();
        keyspace.put("a", bytes.clone()).unwrap();
        keyspace.put("b", bytes.clone()).unwrap();
        let changed = opened.tyr.transact(|transaction| {
            assert_eq!(transaction.read(&keyspace, "a", 5000, 3)?, bytes[5000..5003]);
            transaction.put(&keyspace, "a", bytes[..5 << 20].to_vec())?;
            transaction.truncate(&keyspace, "b", 4097)
        });
        changed.unwrap();
        assert!(keyspace.get("a").unwrap() == bytes[..5 << 20]);
        assert!(keyspace.get("b").unwrap() == bytes[..4097]);
    }
}
