//! Payloads of any length, in one transaction: to a directory, and ahead of it to a cluster (U1).

use std::io::{self, Read};

use tyr::{ErrorKind, KeyspaceConfig, Number, Transform, limits};
use tyr_testing::{Kind, Store, stores};

/// Pieces end where chunks do.
const CHUNK: u64 = 512 << 10;

fn store_of(kind: Kind) -> Store {
    Store::new(kind, KeyspaceConfig { chunk_size: CHUNK, ..KeyspaceConfig::default() })
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

/// All of a blob.
fn content(store: &Store, key: &str) -> Vec<u8> {
    let mut all = Vec::new();
    store.keyspace.reader(key, tyr::ByteRange::ALL).unwrap().read_to_end(&mut all).unwrap();
    all
}

#[test]
fn what_is_put_written_and_appended_may_be_longer_than_a_transaction_carries() {
    let len = limits::TRANSACTION_INLINE_MAX + 12_345;
    let (first, second) = (noise(len, 1), noise(len, 2));
    for store in stores().map(store_of) {
        let data = &store.keyspace;
        data.put("put", first.clone()).unwrap();
        assert_eq!(data.put_reader("reader", &first[..]).unwrap(), len as u64);
        assert!(content(&store, "put") == first && content(&store, "reader") == first);
        data.write("put", 77, second.clone()).unwrap();
        assert_eq!(data.write_reader("reader", 77, &second[..]).unwrap(), len as u64);
        let expected = [&first[..77], &second].concat();
        assert!(content(&store, "put") == expected && content(&store, "reader") == expected);
        assert_eq!(data.append("put", first.clone()).unwrap(), expected.len() as u64);
        let end = expected.len() as u64;
        assert_eq!(data.append_reader_at("reader", end, &first[..]).unwrap(), end);
        let longer = [&expected[..], &first].concat();
        assert!(content(&store, "put") == longer && content(&store, "reader") == longer);
        let conflict = data.append_reader_at("reader", end, &first[..]).unwrap_err();
        assert_eq!(conflict.kind(), ErrorKind::Conflict);
        assert_eq!(data.stat("reader").unwrap().size, longer.len() as u64);
        assert_eq!(data.append_reader("new", &first[..]).unwrap(), 0);
        assert!(content(&store, "new") == first);
    }
}

#[test]
fn large_payloads_of_a_transaction_take_effect_together_with_all_else_of_it() {
    let (one, other) = (noise(3 << 20, 3), noise((2 << 20) + 5, 4));
    for store in stores().map(store_of) {
        let data = &store.keyspace;
        data.put("small", "before").unwrap();
        let mut transaction = store.tyr().begin();
        transaction.put(data, "one", one.clone()).unwrap();
        transaction.write(data, "other", CHUNK - 9, other.clone()).unwrap();
        transaction.apply(data, "other", CHUNK, Transform::add(Number::U64(1))).unwrap();
        transaction.put(data, "small", "after").unwrap();
        assert_eq!(transaction.read(data, "one", 5, 7).unwrap(), one[5..12]);
        transaction.commit().unwrap();
        let mut expected = [&vec![0; CHUNK as usize - 9][..], &other].concat();
        let place = CHUNK as usize..CHUNK as usize + 8;
        let number = u64::from_le_bytes(expected[place.clone()].try_into().unwrap());
        expected[place].copy_from_slice(&number.wrapping_add(1).to_le_bytes());
        assert!(content(&store, "one") == one && content(&store, "other") == expected);
        // What does not commit leaves nothing.
        let mut refused = store.tyr().begin();
        refused.put(data, "one", other.clone()).unwrap();
        refused.create(data, "small").unwrap();
        assert_eq!(refused.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(content(&store, "one") == one);
    }
}

#[test]
fn a_source_that_fails_leaves_the_blob_as_it_was() {
    /// Ends with an error after so many bytes.
    struct Breaks(usize);
    impl Read for Breaks {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = out.len().min(self.0);
            self.0 -= len;
            if len == 0 { Err(io::Error::other("the line is gone")) } else { Ok(len) }
        }
    }
    for store in stores().map(store_of) {
        store.keyspace.put("a", "before").unwrap();
        let error = store.keyspace.put_reader("a", Breaks(9 << 20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(store.keyspace.get("a").unwrap(), "before");
    }
}
