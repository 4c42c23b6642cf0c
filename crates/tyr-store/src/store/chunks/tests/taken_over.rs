//! Extents whose bytes a fold takes over by value: the extent goes with the next checkpoint, and
//! whoever reads what was there at some moment finds it in the base.

use super::*;

const LEN: usize = 784;

/// A chunk that one extent has as a whole, of so few bytes that the base takes them by value.
fn written() -> (Arc<Store>, Bytes) {
    let store = store();
    let bytes = Bytes::from(vec![7; LEN]);
    let lease = store.write_extent_later(bytes.clone(), false).unwrap();
    let payload = Payload::Extents(vec![lease.extent()]);
    apply(&store, 1, &Operation::Write { offset: SIZE, payload }, 5, 0);
    lease.adopt();
    store.extents().sync().unwrap();
    (store, bytes)
}

fn give_back(store: &Store) {
    store.base().give_all_back(|| false).unwrap();
}

/// A copy of what was current at a kept moment, and is not any more. Seed 4 of real-pieces.
#[test]
fn what_was_overwritten_after_a_fold_is_read_as_it_was_before_that() {
    let (store, bytes) = written();
    apply(&store, 1, &write(SIZE + 10, b"xx"), 9, 0);
    fold(&store, 6);
    give_back(&store);
    for when in 6..9 {
        assert_eq!(read(&store, 1, Some(when)).unwrap().bytes, bytes, "at {when}");
    }
    let now = read(&store, 1, None).unwrap().bytes;
    assert_eq!((&now[..10], &now[10..12], &now[12..]), (&bytes[..10], &b"xx"[..], &bytes[12..]));
    fold(&store, 9);
    give_back(&store);
    assert_eq!(read(&store, 1, None).unwrap().bytes, now);
}

/// Between what a fold takes and what it leaves behind another blob has its turn.
#[test]
fn who_reads_while_it_is_taken_over_reads_anew() {
    let (store, bytes) = written();
    apply(&store, 0, &write(0, b"first"), 5, 0);
    let begin = |when| {
        let cell = store.chunk(&stored_name(&blob(), 1)).unwrap();
        store.plan_chunk_read(&cell, place(1), place(1).range, when).unwrap()
    };
    let mut begun = Vec::new();
    let mut fold = store.begin_fold(at(6), store.take_dead());
    let turns = std::cell::RefCell::new(&mut begun);
    let look = |_| {
        turns.borrow_mut().extend([begin(None), begin(Some(at(6)))]);
        true
    };
    while store.fold_some(&mut fold, look).unwrap() {}
    assert_eq!(begun.len(), 4, "before it is taken, and after");
    store.end_fold(fold, 1).unwrap();
    give_back(&store);
    for read in begun {
        assert_eq!(store.finish_chunk_read(read).unwrap().bytes, bytes);
    }
}
