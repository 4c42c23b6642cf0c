//! Copies inside a store (U5): in a directory, and in a cluster, whose nodes copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr::blocking::Keyspace;
use tyr::{BlobCopy, ByteRange, Error, ErrorKind, KeyspaceConfig, limits};
use tyr_testing::{Kind, Store, stores};

/// Of the source; the target has chunks of half as much.
const CHUNK: u64 = 512 << 10;

/// A store, with the keyspace that is copied from and one that is copied to.
fn store_of(kind: Kind) -> (Store, Keyspace) {
    let config = KeyspaceConfig { chunk_size: CHUNK, ..KeyspaceConfig::default() };
    let store = Store::new(kind, config);
    let config = KeyspaceConfig { chunk_size: CHUNK / 2, ..KeyspaceConfig::default() };
    let other = store.opened.create("other", config);
    (store, other)
}

/// So many bytes that differ from place to place.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(next).collect()
}

fn range(start: usize, end: usize) -> ByteRange {
    ByteRange { start: start as u64, end: end as u64 }
}

#[test]
fn a_whole_blob_is_copied_over_what_was_there() {
    for (store, other) in stores().map(store_of) {
        let data = &store.keyspace;
        for (key, len) in [("none", 0), ("short", 100), ("chunks", 700_000), ("long", 3_333_333)] {
            let bytes = noise(len, 1);
            data.put(key, bytes.clone()).unwrap();
            other.put(key, noise(2_000_000, 2)).unwrap();
            let copied = store.tyr().copy(&BlobCopy::new(data, key, &other, key).unwrap());
            assert_eq!(copied.unwrap(), len as u64, "{key}");
            assert!(other.get(key).unwrap() == bytes, "{key}");
            // And back, where nothing is.
            store.tyr().copy(&BlobCopy::new(&other, key, data, "new").unwrap()).unwrap();
            assert!(data.get("new").unwrap() == bytes, "{key}");
            data.delete("new").unwrap();
        }
    }
}

#[test]
fn a_range_goes_to_a_place_and_the_rest_stays() {
    for (store, other) in stores().map(store_of) {
        let (data, source) = (&store.keyspace, noise(1_500_000, 3));
        data.put("a", source.clone()).unwrap();
        for (from, to) in [(range(0, 10), 5), (range(123_456, 1_400_000), 300_001)] {
            let mut expected = noise(900_000, 4);
            other.put("b", expected.clone()).unwrap();
            let copy = BlobCopy::new(data, "a", &other, "b").unwrap().range(from, to as u64);
            assert_eq!(store.tyr().copy(&copy).unwrap(), from.len());
            let end = to + from.len() as usize;
            expected.resize(expected.len().max(end), 0);
            let copied = &source[from.start as usize..from.end as usize];
            expected[to..end].copy_from_slice(copied);
            assert!(other.get("b").unwrap() == expected, "{from:?}");
        }
        // Beyond the end there is nothing, and of what begins before it the part that is there.
        let copy = BlobCopy::new(data, "a", &other, "c").unwrap();
        let behind = copy.clone().range(range(2_000_000, 3_000_000), 0);
        assert_eq!(store.tyr().copy(&behind).unwrap(), 0);
        assert_eq!(other.get("c").unwrap_err().kind(), ErrorKind::NotFound);
        let across = copy.range(range(1_499_990, 3_000_000), 7);
        assert_eq!(store.tyr().copy(&across).unwrap(), 10);
        assert_eq!(other.get("c").unwrap()[..], [&[0; 7][..], &source[1_499_990..]].concat());
        // Inside one blob, over itself.
        let own = BlobCopy::new(data, "a", data, "a").unwrap().range(range(0, 1_000_000), 100_000);
        store.tyr().copy(&own).unwrap();
        let expected = [&source[..100_000], &source[..1_000_000], &source[1_100_000..]].concat();
        assert!(data.get("a").unwrap() == expected);
    }
}

#[test]
fn holes_stay_holes() {
    const MIB: u64 = 1 << 20;
    for (store, other) in stores().map(store_of) {
        let data = &store.keyspace;
        data.write("a", 8 * MIB, noise(100_000, 5)).unwrap();
        data.write("a", 12 * MIB, "short").unwrap();
        data.truncate("a", 20 * MIB).unwrap();
        other.put("a", noise(3_000_000, 6)).unwrap();
        store.tyr().copy(&BlobCopy::new(data, "a", &other, "a").unwrap()).unwrap();
        assert_eq!(other.stat("a").unwrap().size, 20 * MIB);
        assert!(other.get("a").unwrap() == data.get("a").unwrap());
        let allocated = other.allocated("a").unwrap();
        assert!((100_005..300_000).contains(&allocated), "{allocated}");
        // What was in the way goes, and the end is where the range's is.
        other.put("b", noise(16 * MIB as usize, 7)).unwrap();
        let copy = BlobCopy::new(data, "a", &other, "b").unwrap();
        let copy = copy.range(ByteRange { start: 4 * MIB, end: 20 * MIB }, 2 * MIB);
        assert_eq!(store.tyr().copy(&copy).unwrap(), 16 * MIB);
        assert_eq!(other.stat("b").unwrap().size, 18 * MIB);
        let expected = data.read("a", 4 * MIB, 16 * MIB).unwrap();
        assert!(other.read("b", 2 * MIB, 16 * MIB).unwrap() == expected);
        let allocated = other.allocated("b").unwrap();
        assert!(allocated < 3 * MIB, "{allocated}");
    }
}

#[test]
fn a_copy_is_of_one_moment_and_conflicts_with_nobody() {
    for (store, other) in stores().map(store_of) {
        let (data, tyr) = (store.keyspace.clone(), store.tyr().clone());
        data.put("a", noise(5_000_000, 8)).unwrap();
        let (writer, calls) = (data.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&calls);
        let copy = BlobCopy::new(&data, "a", &other, "a").unwrap().on_progress(move |_| {
            // Somebody writes what is being copied.
            let call = counted.fetch_add(1, Ordering::Relaxed);
            writer.write("a", call * 400_000, noise(100_000, call))
        });
        assert_eq!(tyr.copy(&copy).unwrap(), 5_000_000);
        assert!(calls.load(Ordering::Relaxed) > 1);
        assert!(other.get("a").unwrap() == noise(5_000_000, 8));
    }
}

#[test]
fn in_a_transaction_what_is_copied_is_a_read_and_a_write() {
    for (store, other) in stores().map(store_of) {
        let (data, tyr, bytes) = (&store.keyspace, store.tyr(), noise(1_200_000, 9));
        data.put("a", bytes.clone()).unwrap();
        let copy = BlobCopy::new(data, "a", &other, "a").unwrap();
        let mut transaction = tyr.begin();
        assert_eq!(transaction.copy(&copy).unwrap(), 1_200_000);
        transaction.delete(data, "a").unwrap();
        transaction.append(&other, "log", "moved").unwrap();
        assert_eq!(other.get("a").unwrap_err().kind(), ErrorKind::NotFound, "not yet");
        transaction.commit().unwrap();
        assert!(other.get("a").unwrap() == bytes);
        assert_eq!(data.get("a").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(other.get("log").unwrap(), "moved");

        data.put("a", bytes.clone()).unwrap();
        // What somebody else writes to the source meanwhile is a conflict where it was copied.
        let part = BlobCopy::new(data, "a", &other, "b").unwrap().range(range(0, 500_000), 0);
        for (offset, is_conflict) in [(900_000, false), (499_999, true)] {
            let mut transaction = tyr.begin();
            transaction.copy(&part).unwrap();
            data.write("a", offset, "x").unwrap();
            let committed = transaction.commit();
            match is_conflict {
                true => assert_eq!(committed.unwrap_err().kind(), ErrorKind::Conflict),
                false => drop(committed.unwrap()),
            }
        }
        // That there is none is read, too.
        let mut transaction = tyr.begin();
        let absent = BlobCopy::new(data, "nobody", &other, "c").unwrap();
        assert_eq!(transaction.copy(&absent).unwrap_err().kind(), ErrorKind::NotFound);
        transaction.append(&other, "log", "!").unwrap();
        data.put("nobody", "is here").unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        // What the transaction wrote is not copied.
        let mut transaction = tyr.begin();
        transaction.write(data, "a", 0, "mine").unwrap();
        let refused = transaction.copy(&copy).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.message().contains("copy first"), "{refused}");
    }
}

#[test]
fn several_copies_are_one_transaction() {
    for (store, other) in stores().map(store_of) {
        let (data, tyr) = (&store.keyspace, store.tyr());
        for key in ["a", "b", "c"] {
            data.put(key, noise(1_100_000, key.len() as u64)).unwrap();
        }
        let mut transaction = tyr.begin();
        for key in ["a", "b", "c"] {
            transaction.copy(&BlobCopy::new(data, key, &other, key).unwrap()).unwrap();
        }
        transaction.commit().unwrap();
        for key in ["a", "b", "c"] {
            assert!(other.get(key).unwrap() == data.get(key).unwrap(), "{key}");
        }
    }
}

#[test]
fn what_cannot_be_copied_is_refused_and_changes_nothing() {
    for (store, other) in stores().map(store_of) {
        let (data, tyr) = (&store.keyspace, store.tyr());
        data.put("a", noise(2_000_000, 1)).unwrap();
        other.put("a", "as it was").unwrap();
        let kind = |copy: BlobCopy| tyr.copy(&copy).unwrap_err().kind();
        let absent = BlobCopy::new(data, "nobody", &other, "a").unwrap();
        assert_eq!(kind(absent), ErrorKind::NotFound);
        let own = BlobCopy::new(data, "a", data, "a").unwrap();
        assert_eq!(kind(own), ErrorKind::InvalidArgument);
        let copy = BlobCopy::new(data, "a", &other, "a").unwrap();
        let far = copy.clone().range(range(0, 10), limits::BLOB_SIZE_MAX - 5);
        assert_eq!(kind(far), ErrorKind::InvalidArgument);
        let stopped = copy.on_progress(|_| Err(Error::invalid("enough")));
        assert!(tyr.copy(&stopped).unwrap_err().message().contains("enough"));
        assert_eq!(other.get("a").unwrap(), "as it was");
        let (elsewhere, _) = store_of(Kind::Embedded);
        let refused = BlobCopy::new(data, "a", &elsewhere.keyspace, "a").unwrap_err();
        assert!(refused.message().contains("two stores"), "{refused}");
        let foreign = BlobCopy::new(&elsewhere.keyspace, "a", &elsewhere.keyspace, "b").unwrap();
        assert_eq!(kind(foreign), ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn async_code_copies_too() {
    for (store, other) in stores().map(store_of) {
        let tyr = store.tyr().clone().into_async();
        let (data, other) = (store.keyspace.clone().into_async(), other.into_async());
        data.put("a", noise(1_000_000, 2)).await.unwrap();
        let copy = BlobCopy::new(&data, "a", &other, "a").unwrap();
        assert_eq!(tyr.copy(&copy).await.unwrap(), 1_000_000);
        let copy = &BlobCopy::new(&other, "a", &data, "b").unwrap();
        let copied = tyr.transact(async |transaction| transaction.copy(copy).await).await;
        assert_eq!(copied.unwrap(), 1_000_000);
        assert!(data.get("b").await.unwrap() == data.get("a").await.unwrap());
    }
}
