//! Chunks of blobs: what is done to them, folded, copied, and read at any timestamp.

mod model;
mod standing;
mod taken_over;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tyr_types::{Epoch, ErrorKind, Number, NumberType, Outcome, Payload, Transform};

use super::*;
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::index::memory::MemoryIndex;
use crate::store::Fold;
use crate::store::fixtures::{self, open};

const SIZE: u64 = 4096;

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 0 }
}

fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() }
}

fn place(chunk: u64) -> Place {
    Place { range: ByteRange { start: chunk * SIZE, end: (chunk + 1) * SIZE } }
}

fn store() -> Arc<Store> {
    fixtures::store(SIZE)
}

fn apply(store: &Store, chunk: u64, operation: &Operation, when: u64, from: u64) -> Answers {
    let cell = store.chunk(&stored_name(&blob(), chunk)).unwrap();
    let operations = std::slice::from_ref(operation);
    let (operations, start) = (operations, Start::Guessed(0));
    store
        .apply_chunk(&cell, place(chunk), operations, start, at(when), Readers::from(at(from)))
        .unwrap()
}

fn read(store: &Store, chunk: u64, when: Option<u64>) -> Result<ChunkReading> {
    let cell = store.chunk(&stored_name(&blob(), chunk)).unwrap();
    let plan = store.plan_chunk_read(&cell, place(chunk), place(chunk).range, when.map(at))?;
    store.finish_chunk_read(plan)
}

fn fold(store: &Store, when: u64) {
    finish(store, store.begin_fold(at(when), store.take_dead()));
}

fn finish(store: &Store, mut fold: Fold) {
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    store.end_fold(fold, 1).unwrap();
}

fn write(offset: u64, bytes: &[u8]) -> Operation {
    Operation::Write { offset, payload: Payload::Inline(Bytes::copy_from_slice(bytes)) }
}

#[test]
fn a_later_chunk_holds_bytes_and_says_nothing_of_the_blobs_end() {
    let store = store();
    apply(&store, 1, &write(SIZE + 10, b"abc"), 5, 0);
    let seen = read(&store, 1, None).unwrap();
    assert_eq!(seen.bytes, [&[0; 10][..], b"abc"].concat());
    assert!(read(&store, 1, Some(4)).unwrap().bytes.is_empty());
    apply(&store, 1, &Operation::Truncate { len: SIZE + 100 }, 6, 0);
    assert_eq!(read(&store, 1, None).unwrap().bytes.len(), 100);
    apply(&store, 1, &Operation::Truncate { len: 10 }, 7, 0);
    assert!(read(&store, 1, None).unwrap().bytes.is_empty());
    assert_eq!(read(&store, 1, Some(6)).unwrap().bytes.len(), 100);
}

#[test]
fn chunk_0_has_the_blobs_size_and_existence() {
    let store = store();
    assert!(!read(&store, 0, None).unwrap().attributes.exists);
    apply(&store, 0, &write(SIZE + 10, b"abc"), 5, 0);
    let seen = read(&store, 0, None).unwrap();
    assert_eq!((seen.attributes.size, seen.bytes.len() as u64), (SIZE + 13, SIZE));
    let answers = apply(&store, 0, &Operation::Delete, 6, 0);
    assert_eq!(answers.as_slice(), [(0, Outcome::Existed(true))]);
    assert!(!read(&store, 0, None).unwrap().attributes.exists);
    assert!(read(&store, 0, Some(5)).unwrap().attributes.exists);
}

#[test]
fn what_comes_late_is_there_from_its_own_time_on() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"first"), 5, 0);
    apply(&store, 1, &write(SIZE + 100, b"late"), 10, 0);
    apply(&store, 1, &write(SIZE + 50, b"later"), 7, 0);
    let middle = read(&store, 1, Some(8)).unwrap();
    assert_eq!((middle.bytes.len(), &middle.bytes[50..]), (55, &b"later"[..]));
    assert_eq!(read(&store, 1, Some(6)).unwrap().bytes, "first");
    assert_eq!(read(&store, 1, None).unwrap().bytes.len(), 104);
}

#[test]
fn after_a_fold_what_is_in_it_is_not_applied_again_and_what_was_before_is_too_old() {
    let store = store();
    let add = Operation::Apply { offset: 8, transform: Transform::add(Number::U64(3)) };
    apply(&store, 0, &add, 5, 0);
    apply(&store, 0, &add, 6, 0);
    fold(&store, 6);
    store.recent().shrink(0, usize::MAX);
    store.recent().shrink(0, usize::MAX);
    assert!(apply(&store, 0, &add, 6, 0).is_empty());
    let answers = apply(&store, 0, &add, 8, 0);
    assert_eq!(answers.as_slice(), [(0, Outcome::Value(Number::U64(9)))]);
    let error = read(&store, 0, Some(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
    assert_eq!(read(&store, 0, Some(7)).unwrap().bytes[8], 6);
    assert_eq!(NumberType::U64.width(), 8);
}

/// The process ends in the middle of a fold. When its log is read again a map takes the chunk away,
/// and what came after that comes again. Seed 1795605755757 of the simulator, scenario real-moves.
#[test]
fn what_a_log_brings_again_to_a_base_that_was_ahead_of_it_is_not_given_back() {
    let (disk, index) = (SimulatedDisk::new(), MemoryIndex::default());
    let store = open(&disk, &index);
    let config = KeyspaceConfig { chunk_size: 1 << 20, ..KeyspaceConfig::default() };
    store.adopt_keyspace(KeyspaceId(1), &KeyspaceName::new("k").unwrap(), &config).unwrap();
    let place = Place { range: ByteRange { start: 0, end: config.chunk_size } };
    let bytes = Bytes::from(vec![7; 300_000]);
    let lease = store.write_extent_later(bytes.clone(), false).unwrap();
    let payload = Payload::Extents(vec![lease.extent()]);
    let operations = [Operation::Write { offset: 0, payload }];
    let apply = |store: &Store| {
        let cell = store.chunk(&stored_name(&blob(), 0)).unwrap();
        let (operations, start) = (&operations[..], Start::Guessed(0));
        store.apply_chunk(&cell, place, operations, start, at(5), Readers::from(at(0))).unwrap();
    };
    apply(&store);
    lease.adopt();
    store.extents().sync().unwrap();
    let mut fold = store.begin_fold(at(6), store.take_dead());
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    let store = open(&disk.copy(), &index.copy());
    assert!(store.base().is_referenced(&lease.extent()).unwrap(), "the base is ahead");
    store.release_chunk(&stored_name(&blob(), 0)).unwrap();
    apply(&store);
    finish(&store, store.begin_fold(at(6), store.take_dead()));
    let cell = store.chunk(&stored_name(&blob(), 0)).unwrap();
    let plan = store.plan_chunk_read(&cell, place, place.range, None).unwrap();
    assert_eq!(store.finish_chunk_read(plan).unwrap().bytes, bytes);
}

#[test]
fn below_where_readers_are_nothing_is_told_that_may_be_merged_with_what_came_later() {
    let store = store();
    apply(&store, 0, &write(0, b"aaaa"), 5, 1);
    apply(&store, 0, &write(4, b"bbbb"), 6, 1);
    assert_eq!(read(&store, 0, Some(5)).unwrap().bytes, "aaaa");
    // Nobody reads below 9, so that all of it becomes one run of that version.
    apply(&store, 0, &write(2, b"cccc"), 9, 9);
    let error = read(&store, 0, Some(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
    assert_eq!(read(&store, 0, Some(9)).unwrap().bytes, "aaccccbb");
}

#[test]
fn a_fold_takes_its_moment_although_nobody_else_reads_between_it_and_now() {
    let store = store();
    let apply_during = |when, from, bytes: &[u8]| {
        let cell = store.chunk(&stored_name(&blob(), 0)).unwrap();
        let operations = [write(0, bytes)];
        let readers = Readers::from(at(from)).and_at(at(6));
        let (operations, start) = (&operations[..], Start::Guessed(0));
        store.apply_chunk(&cell, place(0), operations, start, at(when), readers).unwrap();
    };
    apply(&store, 0, &write(0, b"aaaa"), 5, 1);
    let fold_at_6 = store.begin_fold(at(6), store.take_dead());
    for when in 7..1000 {
        apply_during(when, when, &[when as u8; 1000]);
    }
    let error = read(&store, 0, Some(500)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
    assert!(store.recent().memory() < 8000, "{} bytes are held", store.recent().memory());
    finish(&store, fold_at_6);
    let base = store.base().attributes(&stored_name(&blob(), 0)).unwrap().unwrap();
    assert_eq!((base.version, base.size), (at(5), 4));
}

/// V2.
#[test]
fn beside_a_long_snapshot_a_counter_keeps_two_versions_and_what_lingers() {
    let store = store();
    let add = Transform::add(Number::U64(1));
    let (held, linger) = ([at(50)], 100);
    for when in 1..=10_000_u64 {
        let readers = Readers::new(&held).and_from(at(when.saturating_sub(linger)));
        let cell = store.chunk(&stored_name(&blob(), 0)).unwrap();
        let operations = [Operation::Apply { offset: 0, transform: add }];
        let (operations, start) = (&operations[..], Start::Guessed(0));
        store.apply_chunk(&cell, place(0), operations, start, at(when), readers).unwrap();
    }
    let count = |when| -> Result<u64> {
        Ok(u64::from_le_bytes(read(&store, 0, when)?.bytes[..].try_into().unwrap()))
    };
    assert_eq!((count(None).unwrap(), count(Some(50)).unwrap()), (10_000, 50));
    assert_eq!(count(Some(9_950)).unwrap(), 9_950, "it lingers");
    assert_eq!(count(Some(51)).unwrap_err().kind(), ErrorKind::SnapshotTooOld);
    let left = |linger: u64| {
        let cell = store.chunk(&stored_name(&blob(), 0)).unwrap();
        cell.lock().collect_chunk(Readers::new(&held).and_from(at(10_000 - linger)))
    };
    assert_eq!(left(100), 2 * (1 + 100), "bytes and attributes of each");
    assert_eq!(left(0), 2, "beside the newest there is what the snapshot reads");
    assert_eq!(count(Some(50)).unwrap(), 50);
}

#[test]
fn what_was_forgotten_counts_as_written_last_when_it_was_folded() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"x"), 5, 0);
    fold(&store, 6);
    for _ in 0..4 {
        store.recent().shrink(0, usize::MAX);
    }
    let cell = store.chunk(&stored_name(&blob(), 1)).unwrap();
    let newest = cell.lock().newest_overlapping(ByteRange { start: 2000, end: 2001 }, false);
    assert_eq!(newest, at(5), "nobody knows which byte it was");
    let absent = store.chunk(&stored_name(&blob(), 2)).unwrap();
    assert_eq!(absent.lock().newest_overlapping(ByteRange::ALL, true), at(6));
}

#[test]
fn an_installed_chunk_has_what_came_with_it_and_no_more() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"stray"), 3, 0);
    let pieces = [(0, Bytes::from_static(b"co")), (2, Bytes::from_static(b"py"))];
    let copy = Installed {
        at: at(9),
        version: at(4),
        pieces: &pieces,
        size: None,
        size_version: Timestamp::ZERO,
    };
    store.install_chunk(&stored_name(&blob(), 1), place(1), copy).unwrap();
    assert_eq!(read(&store, 1, None).unwrap().bytes, "copy");
    assert!(apply(&store, 1, &write(SIZE, b"again"), 9, 0).is_empty());
    apply(&store, 1, &write(SIZE + 4, b"!"), 10, 0);
    fold(&store, 5);
    store.recent().shrink(0, usize::MAX);
    assert_eq!(read(&store, 1, None).unwrap().bytes, "copy!");
    store.release_chunk(&stored_name(&blob(), 1)).unwrap();
    assert!(read(&store, 1, None).unwrap().bytes.is_empty());
    assert!(store.stored_chunks(later(KeyspaceId(1)), None, 9).unwrap().is_empty());
}

#[test]
fn memory_tells_what_changed_after_a_moment_unless_a_fold_was_begun_as_of_later() {
    let store = store();
    fold(&store, 1);
    let above = |moment| {
        let found = store.stored_above(at(moment))?;
        Some(found.into_iter().map(|(name, of)| (name, of.version)).collect::<Vec<_>>())
    };
    apply(&store, 0, &write(0, b"first"), 5, 0);
    apply(&store, 1, &write(SIZE, b"second"), 7, 0);
    let second = (stored_name(&blob(), 1), at(7));
    assert_eq!(above(4).unwrap().len(), 2);
    assert_eq!(above(5), Some(vec![second.clone()]));
    fold(&store, 6);
    assert_eq!(above(6), Some(vec![second]));
    assert_eq!(above(5), None, "the fold may have taken it");
    let begun = store.begin_fold(at(9), store.take_dead());
    assert_eq!(above(8), None, "some of it may be in the base already");
    store.abandon_fold(begun);
    assert_eq!((above(8), above(9)), (None, Some(vec![])));
}

/// A node was killed in the middle of a fold.
#[test]
fn a_fold_that_did_not_end_is_known_of_when_the_store_is_opened_again() {
    let (disk, index) = (SimulatedDisk::new(), MemoryIndex::default());
    let begin = |store: &Store, sequence, moment| {
        store.write_promises().unwrap().finish(sequence, at(moment)).unwrap();
    };
    let store = open(&disk, &index);
    assert_eq!(store.stored_above(at(9)), None, "nothing is known of what is in the base");
    begin(&store, 1, 6);
    fold(&store, 6);
    assert_eq!(store.stored_above(at(6)), Some(vec![]));
    begin(&store, 2, 9);
    drop(store);
    for _ in 0..2 {
        let store = open(&disk, &index);
        assert_eq!((store.stored_above(at(8)), store.stored_above(at(9))), (None, Some(vec![])));
    }
    // A program that does not know of the file.
    disk.remove("promises/folded-to").unwrap();
    assert_eq!(open(&disk, &index).stored_above(at(9)), None);
}

/// A checkpoint has what is applied and not finished with, and not always what deleted it since.
#[test]
fn what_was_deleted_and_folded_does_not_come_back_when_a_part_of_it_is_done_again() {
    for chunk in [0, 1] {
        let store = store();
        apply(&store, chunk, &write(chunk * SIZE, b"once"), 5, 0);
        apply(&store, chunk, &Operation::Delete, 7, 0);
        fold(&store, 8);
        store.recent().forget(&stored_name(&blob(), chunk));
        apply(&store, chunk, &write(chunk * SIZE, b"once"), 5, 0);
        let seen = read(&store, chunk, None).unwrap();
        assert!(seen.bytes.is_empty() && !seen.attributes.exists, "chunk {chunk}: {seen:?}");
        apply(&store, chunk, &write(chunk * SIZE, b"new"), 9, 0);
        assert_eq!(read(&store, chunk, None).unwrap().bytes, "new");
    }
}

/// A copy may be of before the last fold: what came to the chunk while it was awaited lies above.
#[test]
fn what_lies_above_a_copy_is_done_also_where_it_is_from_before_a_fold() {
    let store = store();
    fold(&store, 8);
    let pieces = [(0, Bytes::from_static(b"copy"))];
    let copy = Installed {
        at: at(5),
        version: at(4),
        pieces: &pieces,
        size: None,
        size_version: Timestamp::ZERO,
    };
    store.install_chunk(&stored_name(&blob(), 1), place(1), copy).unwrap();
    apply(&store, 1, &write(SIZE + 4, b"!"), 7, 0);
    assert_eq!(read(&store, 1, None).unwrap().bytes, "copy!");
}

/// A fold waits, for readers or for the log; meanwhile chunks come by copy, and are written.
#[test]
fn what_was_copied_since_a_fold_began_is_left_to_the_next() {
    let store = store();
    let pieces = [(0, Bytes::from_static(b"copy"))];
    let copy = Installed {
        at: at(9),
        version: at(8),
        pieces: &pieces,
        size: None,
        size_version: Timestamp::ZERO,
    };
    store.install_chunk(&stored_name(&blob(), 1), place(1), copy).unwrap();
    for when in 10..12 {
        apply(&store, 1, &write(SIZE, b"over"), when, 12);
    }
    fold(&store, 5);
    assert_eq!(store.base().attributes(&stored_name(&blob(), 1)).unwrap(), None);
    fold(&store, 12);
    let base = store.base().attributes(&stored_name(&blob(), 1)).unwrap().unwrap();
    assert_eq!((base.version, base.folded_at), (at(11), at(12)));
    assert_eq!(read(&store, 1, None).unwrap().bytes, "over");
}

fn apply_near(store: &Store, operation: &Operation, time: u64, readers: Readers) {
    let cell = store.chunk(&stored_name(&blob(), 1)).unwrap();
    let (operations, start) = (std::slice::from_ref(operation), Start::Guessed(SIZE));
    store.apply_chunk(&cell, place(1), operations, start, at(time), readers).unwrap();
}

#[test]
fn what_comes_late_beside_a_newer_write_is_seen_by_those_who_read_in_between() {
    let store = store();
    let write = |offset: u64, bytes: &'static [u8]| Operation::Write {
        offset: SIZE + offset,
        payload: Payload::Inline(Bytes::from_static(bytes)),
    };
    apply_near(&store, &write(3, b"new"), 4, Readers::from(at(1)));
    apply_near(&store, &write(6, b"late"), 2, Readers::from(at(1)));
    assert_eq!(read(&store, 1, Some(3)).unwrap().bytes, "\0\0\0\0\0\0late");
    assert_eq!(read(&store, 1, None).unwrap().bytes, "\0\0\0newlate");
}

/// A write of nothing has moved the end to before where a write goes that comes late, and a fold
/// takes that one alone. Seed 970004507 of the simulator, scenario real-copies.
#[test]
fn what_comes_late_behind_where_a_write_of_nothing_ends_stays_when_it_is_folded() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"first"), 5, 0);
    apply(&store, 1, &write(SIZE + 20, b""), 9, 8);
    apply(&store, 1, &write(SIZE + 30, b"late"), 7, 8);
    let held = [&b"first"[..], &[0; 25], b"late"].concat();
    for folded in [8, 9] {
        fold(&store, folded);
        store.recent().collect(usize::MAX, Readers::NONE, at(99));
        store.recent().shrink(0, usize::MAX);
        assert_eq!(read(&store, 1, None).unwrap().bytes, held, "folded up to {folded}");
    }
}

/// A hole that comes late, behind where the end was at its time. Seed 920004544 of `stretches`.
#[test]
fn a_hole_of_before_the_end_came_there_is_none_of_an_earlier_fold() {
    let store = store();
    apply(&store, 1, &write(SIZE, &[1; 100]), 5, 0);
    apply(&store, 1, &write(SIZE + 300, &[2; 8]), 9, 0);
    let range = ByteRange { start: SIZE + 90, end: SIZE + 250 };
    apply(&store, 1, &Operation::Clear { range }, 7, 0);
    fold(&store, 8);
    let held = |when| read(&store, 1, when).unwrap().bytes;
    assert_eq!(held(Some(8)), [vec![1; 90], vec![0; 10]].concat());
    let now = [vec![1; 90], vec![0; 210], vec![2; 8]].concat();
    assert_eq!(held(None), now);
    fold(&store, 9);
    store.recent().shrink(0, usize::MAX);
    assert_eq!(held(None), now);
}

#[test]
fn what_is_let_go_of_while_it_is_folded_does_not_come_back() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"one"), 5, 0);
    apply(&store, 2, &write(2 * SIZE, b"two"), 6, 0);
    let mut fold = store.begin_fold(at(7), store.take_dead());
    // Asked before each: by the time it comes to the first, the second has been looked at.
    let looked = std::cell::Cell::new(0);
    let is_alive = |_| {
        looked.set(looked.get() + 1);
        if looked.get() == 2 {
            store.release_chunk(&stored_name(&blob(), 2)).unwrap();
        }
        true
    };
    while store.fold_some(&mut fold, is_alive).unwrap() {}
    store.end_fold(fold, 1).unwrap();
    assert_eq!(looked.get(), 2);
    assert!(store.base().attributes(&stored_name(&blob(), 1)).unwrap().is_some());
    assert!(store.base().attributes(&stored_name(&blob(), 2)).unwrap().is_none());
    let cell = store.chunk(&stored_name(&blob(), 2)).unwrap();
    assert_eq!(cell.lock().included_to(), Timestamp::ZERO, "nothing of it is known");
}

#[test]
fn a_first_chunk_is_never_ahead_of_later_ones_in_the_base() {
    let store = store();
    let large = vec![7; SIZE as usize];
    for chunk in 0..1_100 {
        apply(&store, chunk, &write(chunk * SIZE, &large), 5 + chunk, 0);
    }
    let mut fold = store.begin_fold(at(5_000), store.take_dead());
    assert!(store.fold_some(&mut fold, |_| true).unwrap(), "it takes several steps");
    let is_in_base =
        |chunk| store.base().attributes(&stored_name(&blob(), chunk)).unwrap().is_some();
    assert!(is_in_base(1_099) && !is_in_base(0));
    store.abandon_fold(fold);
}

/// Adds one to numbers of 8 bytes around the bound between two chunks; `slots` in words from there.
fn count(slots: &[u64]) -> Vec<Operation> {
    let add = Transform::add(Number::U64(1));
    let first = SIZE - 8 * 8;
    slots.iter().map(|slot| Operation::Apply { offset: first + 8 * slot, transform: add }).collect()
}

proptest! {
    #[test]
    fn numbers_side_by_side_change_as_they_do_one_by_one(
        slots in prop::collection::vec(0..16u64, 1..12),
        is_ascending: bool,
        is_there: bool,
    ) {
        let mut slots = slots;
        if is_ascending {
            slots.sort_unstable();
        }
        let store = store();
        if is_there {
            apply(&store, 0, &write(SIZE - 40, &[0; 32]), 1, 0);
        }
        let mut counts = [0_u64; 16];
        for round in 2..4 {
            let mut answers: Vec<Option<Outcome>> = vec![None; slots.len()];
            for chunk in 0..2 {
                let cell = store.chunk(&stored_name(&blob(), chunk)).unwrap();
                let operations = count(&slots);
                let (operations, start) = (operations.as_slice(), Start::Guessed(0));
                let (at, readers) = (at(round), Readers::from(at(1)));
                let answered =
                    store.apply_chunk(&cell, place(chunk), operations, start, at, readers).unwrap();
                for (number, answer) in answered {
                    prop_assert_eq!(answers[number].replace(answer), None);
                }
            }
            for (slot, answer) in slots.iter().zip(answers) {
                let number = &mut counts[*slot as usize];
                *number += 1;
                prop_assert_eq!(answer, Some(Outcome::Value(Number::U64(*number))));
            }
        }
        let bytes = (0..2).flat_map(|chunk| read(&store, chunk, None).unwrap().bytes);
        let bytes: Vec<u8> = bytes.skip(SIZE as usize - 64).collect();
        let expected: Vec<u8> = counts.iter().flat_map(|number| number.to_le_bytes()).collect();
        prop_assert_eq!(&bytes[..], &expected[..bytes.len()]);
        let first = read(&store, 1, Some(2)).unwrap().bytes;
        let twice = |at: usize| expected.get(64 + at).is_some_and(|all| first[at] * 2 == *all);
        prop_assert!((0..first.len()).all(twice), "the first round is still there for its readers");
    }
}
