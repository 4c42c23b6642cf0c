//! The blocking API on a real folder: each operation, its answers and its errors.

mod snapshots;
mod transactions;

use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{
    ByteRange, Durability, ErrorKind, KeyspaceConfig, Number, PlacedBy, Scan, Stamped, Transform,
    TransformKind, limits,
};
use tyr_testing::{Kind, Opened, Store, stores};

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
fn bytes_are_read_with_size_and_version_of_their_moment() {
    for store in each(LASTING) {
        let keyspace = &store.keyspace;
        let absent = keyspace.read_with_stat("a", 0, 5).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        keyspace.put("a", "hello world").unwrap();
        let before = keyspace.stat("a").unwrap();
        let (stat, bytes) = keyspace.read_with_stat("a", 6, 100).unwrap();
        assert_eq!((stat, &bytes[..]), (before, &b"world"[..]));
        // What was written elsewhere in the blob is a version of it, too.
        keyspace.write("a", 8, "x").unwrap();
        let (stat, bytes) = keyspace.read_with_stat("a", 0, 5).unwrap();
        assert_eq!((stat, &bytes[..]), (keyspace.stat("a").unwrap(), &b"hello"[..]));
        assert!(stat.version > before.version);
        let (stat, bytes) = keyspace.read_with_stat("a", 3, 0).unwrap();
        assert_eq!((stat.size, bytes.len()), (11, 0));
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
