//! The commit timestamp inside of what a transaction writes (C10).

use tyr::blocking::Tyr;
use tyr::{ErrorKind, KeyspaceConfig, Stamped, Timestamp, limits};
use tyr_testing::{Kind, Store, stores};

const CHUNK: u64 = limits::CHUNK_SIZE_MIN;

/// A store of this kind, with a keyspace of small chunks.
fn store_of(kind: Kind) -> Store {
    Store::new(kind, KeyspaceConfig { chunk_size: CHUNK, ..KeyspaceConfig::default() })
}

/// The timestamp that stands at a place.
fn stamp(bytes: &[u8], place: usize) -> Option<Timestamp> {
    Timestamp::from_stamp(bytes[place..place + limits::STAMP_LEN].try_into().unwrap())
}

/// So many bytes of 7, with stamps at these places.
fn stamped<const N: usize>(len: usize, places: [usize; N]) -> Stamped {
    Stamped::new(vec![7; len], places).unwrap()
}

#[test]
fn a_stamp_is_the_version_that_the_commit_tells_wherever_it_is_written() {
    for store in stores().map(store_of) {
        let data = &store.keyspace;
        data.put("log", "begin").unwrap();
        let mut transaction = store.tyr().begin();
        let entry = transaction.append(data, "log", stamped(50, [0, 30])).unwrap();
        transaction.write(data, "border", CHUNK - 9, stamped(18, [1])).unwrap();
        transaction.put(data, "whole", stamped(16, [0])).unwrap();
        // Nobody knows it before.
        assert_eq!(transaction.get(data, "whole").unwrap(), [0; 16][..]);
        let committed = transaction.commit().unwrap();
        let at = committed.version();
        assert_eq!(committed.offset(entry), Some(5));

        let log = data.get("log").unwrap();
        assert_eq!((stamp(&log, 5), stamp(&log, 35)), (Some(at), Some(at)));
        assert_eq!(
            (&log[..5], &log[21..35], &log[51..]),
            (&b"begin"[..], &[7; 14][..], &[7; 4][..])
        );
        let border = data.get("border").unwrap();
        let place = CHUNK as usize - 9;
        assert_eq!((border[place], stamp(&border, place + 1)), (7, Some(at)));
        assert_eq!((border[place + 17], border.len()), (7, place + 18));
        assert_eq!(stamp(&data.get("whole").unwrap(), 0), Some(at));
        assert_eq!(data.stat("whole").unwrap().version, at);
    }
}

#[test]
fn what_is_written_by_one_call_is_stamped_too_and_stamps_ascend_along_a_log() {
    for store in stores().map(store_of) {
        let data = &store.keyspace;
        data.put("whole", stamped(20, [4])).unwrap();
        assert_eq!(
            stamp(&data.get("whole").unwrap(), 4),
            Some(data.stat("whole").unwrap().version)
        );
        for number in 0..20_u64 {
            let offset = number * 24;
            assert_eq!(data.append("log", stamped(24, [8])).unwrap(), offset);
        }
        data.append_at("log", 480, stamped(24, [8])).unwrap();
        let log = data.get("log").unwrap();
        let stamps: Vec<_> = log.chunks(24).map(|entry| stamp(entry, 8).unwrap()).collect();
        assert!(stamps.is_sorted_by(|one, next| one < next) && stamps.len() == 21, "{stamps:?}");
        // More than goes to extents when it has no stamps.
        let large = 3 * limits::EXTENT_PAYLOAD_MIN;
        data.write("large", 100, stamped(large, [0, large - 16])).unwrap();
        let (bytes, version) = (data.get("large").unwrap(), data.stat("large").unwrap().version);
        assert_eq!((stamp(&bytes, 100), stamp(&bytes, 84 + large)), (Some(version), Some(version)));
    }
}

#[test]
fn a_snapshot_and_a_store_that_was_opened_again_have_the_same_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    let data = tyr.create_keyspace("data", KeyspaceConfig::default()).unwrap();
    data.append("log", stamped(24, [0])).unwrap();
    let (snapshot, first) = (tyr.snapshot().unwrap(), data.get("log").unwrap());
    data.append("log", stamped(24, [0])).unwrap();
    data.write("log", 0, stamped(24, [8])).unwrap();
    assert_eq!(snapshot.get(&data, "log").unwrap(), first);
    let last = data.get("log").unwrap();
    drop((snapshot, data));
    tyr.close().unwrap();
    for _ in 0..2 {
        let tyr = Tyr::open(folder.path()).unwrap();
        let data = tyr.keyspace("data").unwrap();
        assert_eq!(data.get("log").unwrap(), last);
        assert_eq!(stamp(&last, 8), Some(data.stat("log").unwrap().version));
        // Not closed: it comes back from the log.
    }
}

#[test]
fn stamps_that_do_not_fit_are_refused_before_anything_is_written() {
    for (len, places) in [(16, vec![]), (16, vec![1]), (64, vec![0, 8]), (4096, vec![0; 17])] {
        let error = Stamped::new(vec![0; len], places).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    for store in stores().map(store_of) {
        let half = limits::TRANSACTION_INLINE_MAX / 2;
        let mut transaction = store.tyr().begin();
        transaction.append(&store.keyspace, "a", stamped(half + 1, [0])).unwrap();
        let second = transaction.append(&store.keyspace, "b", stamped(half, [0]));
        let error = second.map(drop).and_then(|()| transaction.commit().map(drop)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(store.keyspace.scan(b"", None, 10).unwrap().is_empty());
    }
}
