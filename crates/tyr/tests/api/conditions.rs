//! What a transaction can rely on beside what it reads, and how it is told what did not hold.

use tyr::blocking::{Keyspace, Transaction};
use tyr::{
    Bytes, ErrorKind, KeyspaceConfig, Number, OperationId, Relation, Timestamp, Transform,
    TransformKind, limits,
};
use tyr_testing::{Kind, Store, stores};

/// A store of this kind, with a keyspace of small chunks.
fn store_of(kind: Kind) -> Store {
    let chunk_size = limits::CHUNK_SIZE_MIN;
    Store::new(kind, KeyspaceConfig { chunk_size, ..KeyspaceConfig::default() })
}

/// What the tests here ask a store.
trait Asked {
    fn refusal(
        &self,
        conditions: impl FnOnce(&mut Transaction, &Keyspace) -> tyr::Result<()>,
    ) -> Option<ErrorKind>;
    fn compare(&self, key: &str, offset: u64, relation: Relation, value: Number) -> bool;
    fn version(&self, key: &str) -> Timestamp;
}

impl Asked for Store {
    /// What a transaction fails with that writes another blob under these conditions.
    fn refusal(
        &self,
        conditions: impl FnOnce(&mut Transaction, &Keyspace) -> tyr::Result<()>,
    ) -> Option<ErrorKind> {
        let mut transaction = self.tyr().begin();
        conditions(&mut transaction, &self.keyspace).unwrap();
        transaction.put(&self.keyspace, "witness", "x").unwrap();
        transaction.commit().err().map(|error| error.kind())
    }

    fn compare(&self, key: &str, offset: u64, relation: Relation, value: Number) -> bool {
        let refusal = self.refusal(|transaction, data| {
            transaction.compare_number(data, key, offset, relation, value).map(drop)
        });
        assert!(matches!(refusal, None | Some(ErrorKind::Conflict)), "{refusal:?}");
        refusal.is_none()
    }

    fn version(&self, key: &str) -> Timestamp {
        self.keyspace.stat(key).unwrap().version
    }
}

/// C1.
#[test]
fn a_number_is_compared_with_what_is_there_and_is_zero_where_nothing_was_written() {
    for store in stores().map(store_of) {
        let far = 3 * limits::CHUNK_SIZE_MIN + 16;
        store.keyspace.apply("a", far, Transform::add(Number::I64(-40))).unwrap();
        assert!(store.compare("a", far, Relation::Equal, Number::I64(-40)));
        assert!(store.compare("a", far, Relation::Less, Number::I64(0)));
        assert!(store.compare("a", far, Relation::Greater, Number::U64(1 << 63)));
        assert!(!store.compare("a", far, Relation::GreaterOrEqual, Number::I64(-39)));
        // In a hole, half beyond the end, beyond it, and of a blob that is not there.
        store.keyspace.write("a", far + 8, vec![7, 0, 0]).unwrap();
        for (key, offset, found) in
            [("a", 24, 0), ("a", far + 8, 7), ("a", 1 << 20, 0), ("b", 8, 0)]
        {
            assert!(store.compare(key, offset, Relation::Equal, Number::U64(found)), "{key}");
            assert!(!store.compare(key, offset, Relation::NotEqual, Number::U64(found)), "{key}");
        }
        store.keyspace.truncate("a", far).unwrap();
        assert!(store.compare("a", far, Relation::Equal, Number::U64(0)), "it is cut off");
    }
}

/// C1: what is compared is what is there before the transaction's own writes.
#[test]
fn a_stock_is_taken_from_while_there_is_something_in_it() {
    for store in stores().map(store_of) {
        store.keyspace.apply("stock", 0, Transform::add(Number::U32(3))).unwrap();
        let sub = Transform::new(TransformKind::Sub, Number::U32(2)).unwrap();
        let take = || {
            store.refusal(|transaction, data| {
                let relation = Relation::GreaterOrEqual;
                transaction.apply(data, "stock", 0, sub)?;
                transaction.compare_number(data, "stock", 0, relation, Number::U32(2)).map(drop)
            })
        };
        assert_eq!((take(), take()), (None, Some(ErrorKind::Conflict)));
        assert_eq!(store.keyspace.get("stock").unwrap(), &1_u32.to_le_bytes()[..]);
    }
}

#[test]
fn a_number_compared_in_two_chunks_of_a_cluster_is_refused() {
    let store = store_of(Kind::Cluster);
    let (end, value) = (limits::CHUNK_SIZE_MIN, Number::U64(0));
    let at = |offset| {
        store.refusal(|transaction, data| {
            transaction.compare_number(data, "a", offset, Relation::Equal, value).map(drop)
        })
    };
    assert_eq!(at(end - 8), None);
    assert_eq!(at(end - 7), Some(ErrorKind::InvalidArgument));
    let mut transaction = store.tyr().begin();
    let beyond = transaction.compare_number(
        &store.keyspace,
        "a",
        limits::BLOB_SIZE_MAX - 7,
        Relation::Equal,
        value,
    );
    assert_eq!(beyond.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// C12: which of a transaction's conditions did not hold.
#[test]
fn an_error_tells_the_condition_that_did_not_hold() {
    for store in stores().map(store_of) {
        store.keyspace.put("there", "12345678").unwrap();
        type Add = fn(&mut Transaction, &Keyspace) -> tyr::Result<OperationId>;
        let wrong: [(Add, ErrorKind); 6] = [
            (|it, data| it.create(data, "there"), ErrorKind::AlreadyExists),
            (|it, data| it.expect_absent(data, "there"), ErrorKind::AlreadyExists),
            (|it, data| it.expect_present(data, "gone"), ErrorKind::NotFound),
            (|it, data| it.append_at(data, "there", 9, "x"), ErrorKind::Conflict),
            (|it, data| it.compare(data, "there", 4, "6"), ErrorKind::Conflict),
            (
                |it, data| it.compare_number(data, "there", 0, Relation::Less, Number::U8(49)),
                ErrorKind::Conflict,
            ),
        ];
        for (add, kind) in wrong {
            let mut transaction = store.tyr().begin();
            transaction.write(&store.keyspace, "other", 0, "x").unwrap();
            transaction.expect_present(&store.keyspace, "there").unwrap();
            transaction.compare(&store.keyspace, "there", 0, "12").unwrap();
            let refused = add(&mut transaction, &store.keyspace).unwrap();
            transaction.expect_absent(&store.keyspace, "absent").unwrap();
            let error = transaction.commit().unwrap_err();
            assert_eq!((error.kind(), error.operation()), (kind, Some(refused)), "{error}");
        }
    }
}

/// What was read is no operation.
#[test]
fn an_error_for_what_was_read_names_the_blob_and_no_operation() {
    for store in stores().map(store_of) {
        store.keyspace.put("a", "1").unwrap();
        let mut transaction = store.tyr().begin();
        transaction.expect_present(&store.keyspace, "a").unwrap();
        transaction.read(&store.keyspace, "a", 0, 1).unwrap();
        store.keyspace.put("a", "2").unwrap();
        transaction.put(&store.keyspace, "b", "").unwrap();
        let error = transaction.commit().unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Conflict, None));
        assert_eq!(error.blob().unwrap().key.as_bytes(), b"a");
    }
}

/// C11, C1, also after the store was opened again, when nothing is in memory.
#[test]
fn a_version_that_was_told_holds_until_anything_of_the_blob_is_written() {
    for kind in stores() {
        let far = 5 * limits::CHUNK_SIZE_MIN;
        let mut store = store_of(kind);
        store.keyspace.write("a", far, vec![1; 100]).unwrap();
        let told = store.version("a");
        store.keyspace.put("other", "x").unwrap();
        store = store.reopen();
        let expect = |store: &Store| {
            store.refusal(|transaction, data| transaction.expect_version(data, "a", told))
        };
        assert_eq!(store.version("a"), told);
        assert_eq!((expect(&store), expect(&store)), (None, None), "nothing was written");
        store.keyspace.write("a", far + 99, "y").unwrap();
        assert_eq!(expect(&store), Some(ErrorKind::Conflict), "a byte far from the first");
        let told = store.version("a");
        store.keyspace.delete("a").unwrap();
        let mut store = store.reopen();
        let expect = store.refusal(|transaction, data| transaction.expect_version(data, "a", told));
        assert_eq!(expect, Some(ErrorKind::Conflict), "it is gone");
        store.keyspace.create("a").unwrap();
        store = store.reopen();
        let expect = store.refusal(|transaction, data| transaction.expect_version(data, "a", told));
        assert_eq!(expect, Some(ErrorKind::Conflict), "another of the same name");
    }
}

/// C11, C1.
#[test]
fn what_is_assumed_of_some_bytes_holds_while_others_are_written() {
    for mut store in stores().map(store_of) {
        let chunk = limits::CHUNK_SIZE_MIN;
        let far = 64 * chunk;
        store.keyspace.put("a", Bytes::from(vec![1; 2 * chunk as usize])).unwrap();
        store.keyspace.write("a", far, "x").unwrap();
        let told = store.version("a");
        store.keyspace.write("a", 100, "x").unwrap();
        let assume = |store: &Store, offset: u64, len: u64, version: Timestamp| {
            store.refusal(|it, data| it.assume(data, "a", offset, len, version))
        };
        assert_eq!(assume(&store, far, 1, told), None);
        assert_eq!(assume(&store, 90, 11, told), Some(ErrorKind::Conflict));
        assert_eq!(assume(&store, 100, 0, told), None, "of no bytes");
        store.keyspace.truncate("a", far).unwrap();
        assert_eq!(assume(&store, far, 1, told), Some(ErrorKind::Conflict), "it is cut off");
        // When nothing is in memory, too: what is assumed wrongly is refused, what is new holds.
        let newest = store.version("a");
        store = store.reopen();
        for _ in 0..2 {
            assert_eq!(assume(&store, 90, 11, told), Some(ErrorKind::Conflict));
            assert_eq!(assume(&store, 0, 2 * chunk, newest), None);
        }
        let now = store.tyr().snapshot().unwrap().version();
        let beyond = store.refusal(|it, data| it.assume(data, "a", 9 * chunk, 50, now));
        assert_eq!(beyond, None, "as of now, nothing was written there since");
        let mut transaction = store.tyr().begin();
        let long = transaction.assume(&store.keyspace, "a", 0, limits::READ_LEN_MAX + 1, now);
        assert_eq!(long.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// What is left of a blob that somebody writes by what is in a cache, after others have written it.
fn written_by_what_was_known(store: &Store, is_assumed: bool) -> Bytes {
    store.keyspace.put("a", "known").unwrap();
    let told = store.version("a");
    store.keyspace.put("a", "of others").unwrap();
    let mut late = store.tyr().begin();
    if is_assumed {
        late.assume(&store.keyspace, "a", 0, 5, told).unwrap();
    }
    late.put(&store.keyspace, "a", "of who knew it").unwrap();
    match late.commit() {
        Ok(_) => assert!(!is_assumed),
        Err(error) => assert!(is_assumed && error.kind() == ErrorKind::Conflict, "{error}"),
    }
    store.keyspace.get("a").unwrap()
}

/// C11 taken away: what is known is not said.
#[test]
fn without_c11_who_goes_by_a_cache_undoes_what_others_have_written() {
    for store in stores().map(store_of) {
        assert_eq!(written_by_what_was_known(&store, true), "of others");
        assert_eq!(written_by_what_was_known(&store, false), "of who knew it");
    }
}
