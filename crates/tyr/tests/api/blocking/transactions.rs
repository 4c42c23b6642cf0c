//! Transactions: conditions, reads that repeat, and what is validated.

use super::*;

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
