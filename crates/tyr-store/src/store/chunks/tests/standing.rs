//! Chunks that were found to stand while folds passed (D5).

use super::*;

/// What was done to a chunk since it was as it is here, at the places that the test says.
fn confirm(store: &Store, stands_at: u64, since: &[(u64, Operation)]) {
    let cell = store.chunk(&stored_name(&blob(), 1)).unwrap();
    let since: Vec<Since<'_>> = since
        .iter()
        .map(|(when, operation)| Since {
            operations: std::slice::from_ref(operation),
            start: Start::Guessed(0),
            at: at(*when),
            readers: Readers::NONE,
        })
        .collect();
    store.confirm_chunk(&cell, place(1), at(stands_at), &since).unwrap();
}

/// What the base has of the chunk, when memory has forgotten all that it may.
fn read_base(store: &Store) -> Bytes {
    store.recent().collect(usize::MAX, Readers::NONE, at(99));
    store.recent().shrink(0, usize::MAX);
    assert!(!store.is_chunk_resident(&stored_name(&blob(), 1)), "all of it is folded");
    read(store, 1, None).unwrap().bytes
}

/// A chunk waits until it is known whether it stands, and folds pass: what is done to it then may
/// be of before them.
#[test]
fn what_lies_above_a_chunk_that_stands_is_done_and_folded_also_where_it_is_from_before_a_fold() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"one two"), 5, 0);
    fold(&store, 20);
    confirm(&store, 10, &[(15, write(SIZE, b"ONE")), (16, write(SIZE + 7, b"!"))]);
    assert_eq!(read(&store, 1, None).unwrap().bytes, "ONE two!");
    fold(&store, 30);
    assert_eq!(read_base(&store), "ONE two!");
}

/// The same while a fold is between what it reads and what it writes.
#[test]
fn what_is_done_to_a_chunk_that_stands_while_a_fold_has_it_in_hand_is_left_to_the_next() {
    let store = store();
    apply(&store, 1, &write(SIZE, b"one two"), 5, 0);
    let cell = store.chunk(&stored_name(&blob(), 1)).unwrap();
    let captured = cell.lock().capture(at(20)).expect("the base lacks it");
    confirm(&store, 10, &[(15, write(SIZE, b"ONE"))]);
    assert!(cell.lock().settle(&captured), "what was done since is not in what it has in hand");
    fold(&store, 30);
    drop(cell);
    assert_eq!(read_base(&store), "ONE two");
}
