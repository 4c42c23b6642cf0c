//! How much a read that misses brings into memory.

use tyr_types::chunk::{Place, Start};
use tyr_types::{Epoch, Key, KeyspaceId, Operation, Payload};

use super::*;
use crate::recent::Readers;
use crate::store::chunks::stored_name;
use crate::store::fixtures;

const SIZE: u64 = 4 * BLOCK_SIZE;

/// A store with one blob of [`SIZE`] bytes, all of them in the base and none in memory.
fn store() -> (Arc<Store>, BlobName) {
    let store = fixtures::store(SIZE);
    let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() };
    let name = stored_name(&blob, 0);
    let cell = store.chunk(&name).unwrap();
    let place = Place { range: ByteRange { start: 0, end: SIZE } };
    let at = Timestamp { epoch: Epoch(1), clock: 1, node: 0 };
    let write = Operation::Write { offset: 0, payload: Payload::Inline(content(0, SIZE).into()) };
    let readers = Readers::from(Timestamp::ZERO);
    store.apply_chunk(&cell, place, &[write], Start::Guessed(0), at, readers).unwrap();
    let mut fold = store.begin_fold(at, store.take_dead());
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    store.end_fold(fold, 1).unwrap();
    drop(cell);
    store.recent().shrink(0, usize::MAX);
    (store, name)
}

fn content(start: u64, end: u64) -> Vec<u8> {
    (start..end).map(|place| (place % 251) as u8).collect()
}

/// Reads, checks, and answers by how many bytes memory grew.
fn read(store: &Store, name: &BlobName, start: u64, end: u64) -> u64 {
    let before = store.recent().memory();
    let (_, bytes) = store.read(name, ByteRange { start, end }, Timestamp::MAX).unwrap().unwrap();
    assert!(bytes == content(start, end), "{start}..{end} differs");
    (store.recent().memory() - before) as u64
}

#[test]
fn a_read_somewhere_brings_a_page_and_one_that_goes_on_a_block() {
    let (store, name) = store();
    // What memory takes for the blob itself comes with the first.
    read(&store, &name, 2 * BLOCK_SIZE + PAGE_SIZE, 2 * BLOCK_SIZE + PAGE_SIZE + 1);
    let somewhere = BLOCK_SIZE + PAGE_SIZE + 100;
    let grown = read(&store, &name, somewhere, somewhere + 50);
    assert!((PAGE_SIZE..2 * PAGE_SIZE).contains(&grown), "{grown} bytes");
    assert_eq!(read(&store, &name, somewhere + 50, somewhere + 90), 0, "it is there");
    let next = BLOCK_SIZE + 2 * PAGE_SIZE;
    let grown = read(&store, &name, next, next + 1);
    assert!((BLOCK_SIZE - PAGE_SIZE..2 * BLOCK_SIZE).contains(&grown), "{grown} bytes");
    assert_eq!(read(&store, &name, next, 2 * BLOCK_SIZE), 0, "the rest of the block is there");
    let across = 3 * BLOCK_SIZE - PAGE_SIZE;
    read(&store, &name, across - 1, across + 2 * PAGE_SIZE);
    read(&store, &name, 0, SIZE);
}
