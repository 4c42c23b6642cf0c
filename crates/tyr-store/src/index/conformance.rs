//! One suite over the trait, run on every implementation; and what only one of them can do.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use tyr_types::{ErrorKind, Result};

use super::fjall::FjallIndex;
use super::memory::MemoryIndex;
use super::settings::memtable_bytes;
use super::{Index, IndexBatch, Table};

/// Runs a behaviour on a new index of each kind.
fn on_each(behaviour: impl Fn(&dyn Index)) {
    behaviour(&MemoryIndex::new());
    let folder = tempfile::tempdir().unwrap();
    behaviour(&FjallIndex::open(&folder.path().join("index"), 0).unwrap());
}

fn put(index: &dyn Index, table: Table, key: &[u8], value: &[u8]) -> u64 {
    let mut batch = IndexBatch::new();
    batch.put(table, key.to_vec(), value.to_vec());
    index.commit(batch).unwrap()
}

fn keys(index: &dyn Index, table: Table, from: &[u8], to: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8], _: &Bytes| -> Result<bool> {
        keys.push(key.to_vec());
        Ok(true)
    };
    index.scan(table, from, to, &mut visit).unwrap();
    keys
}

#[test]
fn what_was_put_is_got_and_what_was_removed_is_not() {
    on_each(|index| {
        assert_eq!(index.get(Table::Blobs, b"a").unwrap(), None);
        put(index, Table::Blobs, b"a", b"1");
        put(index, Table::Blobs, b"empty", b"");
        assert_eq!(index.get(Table::Blobs, b"a").unwrap().unwrap(), "1");
        assert_eq!(index.get(Table::Blobs, b"empty").unwrap().unwrap(), "");
        assert_eq!(index.get(Table::Segments, b"a").unwrap(), None, "tables are apart");
        let mut batch = IndexBatch::new();
        batch.remove(Table::Blobs, b"a".to_vec());
        batch.remove(Table::Blobs, b"never there".to_vec());
        index.commit(batch).unwrap();
        assert_eq!(index.get(Table::Blobs, b"a").unwrap(), None);
    });
}

#[test]
fn the_last_change_of_a_key_in_a_batch_wins() {
    on_each(|index| {
        let mut batch = IndexBatch::new();
        batch.put(Table::Meta, b"a".to_vec(), b"1".to_vec());
        batch.put(Table::Meta, b"a".to_vec(), b"2".to_vec());
        batch.put(Table::Meta, b"b".to_vec(), b"1".to_vec());
        batch.remove(Table::Meta, b"b".to_vec());
        batch.remove(Table::Meta, b"c".to_vec());
        batch.put(Table::Meta, b"c".to_vec(), b"1".to_vec());
        index.commit(batch).unwrap();
        assert_eq!(index.get(Table::Meta, b"a").unwrap().unwrap(), "2");
        assert_eq!(index.get(Table::Meta, b"b").unwrap(), None);
        assert_eq!(index.get(Table::Meta, b"c").unwrap().unwrap(), "1");
    });
}

#[test]
fn a_scan_goes_in_key_order_from_its_start_and_stops_before_its_end() {
    on_each(|index| {
        for key in [b"b".as_slice(), b"a\0", b"a", b"\xff\xff", b"a\xff"] {
            put(index, Table::Segments, key, b"");
        }
        let all: [&[u8]; 5] = [b"a", b"a\0", b"a\xff", b"b", b"\xff\xff"];
        assert_eq!(keys(index, Table::Segments, b"", None), all);
        assert_eq!(keys(index, Table::Segments, b"a\0", Some(b"b")), all[1..3]);
        assert!(keys(index, Table::Segments, b"b", Some(b"b")).is_empty());
        assert!(keys(index, Table::Segments, b"b", Some(b"a")).is_empty());
        let mut seen = 0;
        let mut visit = |_: &[u8], _: &Bytes| {
            seen += 1;
            Ok(seen < 2)
        };
        index.scan(Table::Segments, b"", None, &mut visit).unwrap();
        assert_eq!(seen, 2, "the visitor says when to stop");
    });
}

#[test]
fn a_scan_back_goes_the_other_way_within_the_same_bounds() {
    on_each(|index| {
        for key in [b"b", b"d", b"f"] {
            put(index, Table::Extents, key, key);
        }
        let back = |from: &[u8], to: &[u8], limit: usize| {
            let mut found = Vec::new();
            let mut visit = |key: &[u8], value: &Bytes| {
                assert_eq!(key, value);
                found.extend_from_slice(key);
                Ok(found.len() < limit)
            };
            index.scan_back(Table::Extents, from, to, &mut visit).unwrap();
            found
        };
        assert_eq!(back(b"a", b"z", 9), b"fdb");
        assert_eq!(back(b"b", b"f", 9), b"db", "the end is not included, the start is");
        assert_eq!(back(b"a", b"e", 1), b"d", "the visitor says when to stop");
        assert_eq!(back(b"d", b"d", 9), b"");
        assert_eq!(back(b"e", b"a", 9), b"");
    });
}

#[test]
fn batches_are_numbered_densely_from_one() {
    on_each(|index| {
        assert_eq!(index.last_batch(), 0);
        assert_eq!(put(index, Table::Meta, b"a", b""), 1);
        assert_eq!(index.commit(IndexBatch::new()).unwrap(), 2);
        assert_eq!(index.last_batch(), 2);
        assert_eq!(keys(index, Table::Meta, b"", None), [b"a"], "the number itself is not shown");
    });
}

#[test]
fn an_empty_key_is_refused() {
    on_each(|index| {
        let mut batch = IndexBatch::new();
        batch.put(Table::Meta, Vec::new(), Vec::new());
        assert_eq!(index.commit(batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
    });
}

#[test]
fn the_tables_agree_with_a_map_after_many_random_batches() {
    on_each(|index| {
        let mut seed = 7u64;
        println!("seed {seed}");
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut model = BTreeMap::new();
        for round in 0..200u32 {
            let mut batch = IndexBatch::new();
            for _ in 0..random(20) {
                let key = vec![b'k'; 1 + random(3) as usize + random(40) as usize];
                if random(3) == 0 {
                    batch.remove(Table::Blobs, key.clone());
                    model.remove(&key);
                } else {
                    let value = vec![round as u8; random(5000) as usize];
                    batch.put(Table::Blobs, key.clone(), value.clone());
                    model.insert(key, value);
                }
            }
            index.commit(batch).unwrap();
        }
        let mut found = BTreeMap::new();
        let mut visit = |key: &[u8], value: &Bytes| {
            found.insert(key.to_vec(), value.to_vec());
            Ok(true)
        };
        index.scan(Table::Blobs, b"", None, &mut visit).unwrap();
        assert_eq!(found, model);
    });
}

#[test]
fn a_crash_in_memory_keeps_what_was_synced_and_the_first_batches_since() {
    let index = MemoryIndex::new();
    put(&index, Table::Meta, b"a", b"");
    index.sync().unwrap();
    put(&index, Table::Meta, b"b", b"");
    put(&index, Table::Meta, b"c", b"");
    assert_eq!(index.unsynced_batches(), 2);
    for (keep, expected) in [(0, 1), (1, 2), (2, 3), (9, 3)] {
        let left = index.crash(keep);
        assert_eq!(keys(&left, Table::Meta, b"", None).len(), expected);
        assert_eq!(left.last_batch(), expected as u64);
    }
}

#[test]
fn a_damaged_value_is_an_error_for_its_readers_and_no_end_for_inspection() {
    let index = MemoryIndex::new();
    for key in [b"a", b"b", b"c"] {
        put(&index, Table::Blobs, key, b"value");
    }
    assert!(index.damage(Table::Blobs, b"b", |value| value[2] ^= 4));
    let error = index.get(Table::Blobs, b"b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("blobs") && error.message().contains("\"b\""), "{error}");
    assert!(index.scan(Table::Blobs, b"", None, &mut |_, _| Ok(true)).is_err());
    let mut found = Vec::new();
    index.inspect(Table::Blobs, &mut |_, value| found.push(value.is_ok())).unwrap();
    assert_eq!(found, [true, false, true]);
}

fn filled(folder: &Path, batches: u64) {
    let index = FjallIndex::open(folder, 0).unwrap();
    for number in 0..batches {
        put(&index, Table::Blobs, &number.to_be_bytes(), &[number as u8; 100]);
    }
    index.sync().unwrap();
}

#[test]
fn an_index_on_disk_is_there_again_when_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    for round in 0..3 {
        let index = FjallIndex::open(&path, round).unwrap();
        assert_eq!(index.last_batch(), round);
        assert_eq!(keys(&index, Table::Blobs, b"", None).len() as u64, round);
        put(&index, Table::Blobs, &[round as u8 + 1], b"");
        index.sync().unwrap();
        assert!(index.disk_bytes() > 0);
    }
}

#[test]
fn a_torn_journal_costs_what_was_not_synced_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    filled(&path, 20);
    let journal = path.join("0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    let len = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes.truncate(len - 30);
    fs::write(&journal, &bytes).unwrap();
    let error = FjallIndex::open(&path, 20).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "batch 20 was synced: {error}");
    assert_eq!(fs::read(&journal).unwrap(), bytes, "damage is left as it is");
    let index = FjallIndex::open(&path, 19).unwrap();
    assert_eq!(index.last_batch(), 19);
    assert_eq!(keys(&index, Table::Blobs, b"", None).len(), 19);
}

#[test]
fn a_damaged_batch_in_the_middle_of_the_journal_hides_no_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    filled(&path, 20);
    let journal = path.join("0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    let len = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes[len / 2] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let error = FjallIndex::open(&path, 20).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("0.jnl") && error.message().contains("at byte"), "{error}");
}

#[test]
fn a_read_that_meets_a_damaged_block_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = FjallIndex::open(&path, 0).unwrap();
    put(&index, Table::Segments, b"key", &[7; 100_000]);
    index.write_out();
    drop(index);
    let tables: Vec<_> = (0..=Table::ALL.len())
        .map(|tree| path.join("keyspaces").join(tree.to_string()).join("tables"))
        .flat_map(|tables| fs::read_dir(tables).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    let table = tables.iter().max_by_key(|table| fs::metadata(table).unwrap().len()).unwrap();
    let mut bytes = fs::read(table).unwrap();
    bytes[50_000] ^= 1;
    fs::write(table, bytes).unwrap();
    let index = FjallIndex::open(&path, 0).unwrap();
    for _ in 0..2 {
        let error = index.get(Table::Segments, b"key").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let text = error.to_string();
        assert!(text.contains(&*table.to_string_lossy()) && !text.contains("Fjall"), "{text}");
    }
}

#[test]
fn a_table_is_written_out_when_its_memory_is_full_however_busy_the_library_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = FjallIndex::open(&path, 0).unwrap();
    for at in 0..40_000_u64 {
        let key = at.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        put(&index, Table::Blobs, &key, &[7; 1024]);
        let bytes = index.bytes_in_memory(Table::Blobs);
        assert!(bytes <= memtable_bytes(Table::Blobs), "{bytes} after {at}");
    }
    assert_eq!(keys(&index, Table::Blobs, b"", None).len(), 40_000);
}

#[test]
fn few_keys_that_change_often_do_not_pile_up_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = FjallIndex::open(&path, 0).unwrap();
    let key = |at: u64| format!("key {:03}", at % 100).into_bytes();
    for at in 0..20_000 {
        put(&index, Table::Blobs, &key(at), &at.to_le_bytes());
        if at % 100 == 99 {
            index.sync().unwrap();
        }
    }
    // Some may come while the library writes out what was there before.
    let values = index.in_memory(Table::Blobs);
    assert!(values < 10_000, "{values}");
    drop(index);
    let index = FjallIndex::open(&path, 20_000).unwrap();
    assert_eq!(keys(&index, Table::Blobs, b"key", None).len(), 100);
    let last = index.get(Table::Blobs, &key(7)).unwrap().unwrap();
    assert_eq!(last, 19_907_u64.to_le_bytes()[..]);
}

#[test]
fn a_second_opener_is_told_that_the_index_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let _first = FjallIndex::open(&path, 0).unwrap();
    let error = FjallIndex::open(&path, 0).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_lost_index_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let error = FjallIndex::open(&folder.path().join("index"), 1).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
