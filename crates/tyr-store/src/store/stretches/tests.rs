//! Stretches against a model: no byte that is there is told to be in a hole, and no block of the
//! base to be written in which nothing is, whatever is written, cleared, cut, folded, forgotten.

use tyr_types::chunk::Start;
use tyr_types::{Bytes, Epoch, Key, KeyspaceId, Operation, Payload};

use super::*;
use crate::recent::Readers;
use crate::recent::block::BLOCK_SIZE;
use crate::store::chunks::stored_name;
use crate::store::fixtures;

/// Bytes of the chunk: large enough for payloads that go to extents.
const SIZE: u64 = 256 << 10;

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 0 }
}

fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() }
}

fn store() -> Arc<Store> {
    fixtures::store(SIZE)
}

/// A draw after the other from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Which bytes were written and are not cleared or cut since.
#[derive(Clone, Default)]
struct Model(Vec<bool>);

impl Model {
    fn fill(&mut self, range: ByteRange, is_written: bool) {
        let end =
            if is_written { range.end as usize } else { self.0.len().min(range.end as usize) };
        if self.0.len() < end {
            self.0.resize(end, false);
        }
        let start = end.min(range.start as usize);
        self.0[start..end].fill(is_written);
    }

    fn check(&self, told: &[ByteRange], what: &str) {
        tyr_types::stretch::check(told, ByteRange { start: 0, end: SIZE }).unwrap();
        let mut covered = vec![false; SIZE as usize];
        told.iter().for_each(|it| covered[it.start as usize..it.end as usize].fill(true));
        for (place, is_written) in self.0.iter().enumerate() {
            assert!(!is_written || covered[place], "{what}: byte {place} is in a hole of {told:?}");
        }
        for (number, block) in covered.chunks(BLOCK_SIZE as usize).enumerate() {
            let start = number * BLOCK_SIZE as usize;
            let own = self.0.get(start..self.0.len().min(start + block.len())).unwrap_or(&[]);
            let is_empty = !own.iter().any(|is_written| *is_written);
            assert!(!is_empty || !block.iter().any(|it| *it), "{what}: block {number}: {told:?}");
        }
    }
}

fn draw(draws: &mut Draws) -> (Operation, ByteRange, bool) {
    let start = draws.below(SIZE - 1);
    let len = match draws.below(4) {
        0 => 1 + draws.below(40),
        1 => 1 + draws.below(3_000),
        _ => 1 + draws.below(50_000),
    };
    let range = ByteRange { start, end: (start + len).min(SIZE) };
    match draws.below(10) {
        0..6 => {
            let payload = Payload::Inline(Bytes::from(vec![7; range.len() as usize]));
            (Operation::Write { offset: range.start, payload }, range, true)
        }
        6..9 => (Operation::Clear { range }, range, false),
        _ => (Operation::Truncate { len: start }, ByteRange { start, end: SIZE }, false),
    }
}

fn play(seed: u64) {
    let (store, mut draws, mut now) = (store(), Draws(seed), Model::default());
    let (stored, place) =
        (stored_name(&blob(), 0), Place { range: ByteRange { start: 0, end: SIZE } });
    let mut held: Option<(u64, Model)> = None;
    for clock in 1..60 {
        let (operation, range, is_written) = draw(&mut draws);
        let cell = store.chunk(&stored).unwrap();
        let listed: Vec<Timestamp> = held.iter().map(|(when, _)| at(*when)).collect();
        let readers = Readers::new(&listed).and_from(at(clock));
        let start = Start::Known(now.0.len() as u64);
        let operations = std::slice::from_ref(&operation);
        store.apply_chunk(&cell, place, operations, start, at(clock), readers).unwrap();
        now.fill(range, is_written);
        if let Operation::Truncate { len } = operation {
            now.0.resize(len as usize, false);
        }
        match draws.below(12) {
            0..2 => {
                let fold = store.begin_fold(at(clock), store.take_dead());
                let mut fold = fold;
                while store.fold_some(&mut fold, |_| true).unwrap() {}
                store.end_fold(fold, clock).unwrap();
                held = None; // A fold waits for its readers.
            }
            2 => {
                store.recent().shrink(0, usize::MAX);
            }
            3 => drop(store.read(&blob(), place.range, Timestamp::MAX).unwrap()),
            4 => held = Some((clock, now.clone())),
            _ => {}
        }
        let told = |when| store.chunk_stretches(&stored, place, place.range, when).unwrap();
        let what = format!("seed {seed}, {clock}, after {operation:?}");
        now.check(&told(Timestamp::MAX), &what.chars().take(120).collect::<String>());
        if let Some((when, model)) = &held {
            model.check(&told(at(*when)), &format!("seed {seed}, {clock}, as of {when}"));
        }
    }
}

#[test]
fn nothing_that_is_there_is_told_to_be_in_a_hole_and_no_empty_block_to_be_written() {
    (0..60).for_each(play);
}

#[test]
fn stretches_of_a_later_chunk_are_told_where_they_are_in_the_blob() {
    let store = store();
    let (stored, range) = (stored_name(&blob(), 3), ByteRange { start: 3 * SIZE, end: 4 * SIZE });
    let cell = store.chunk(&stored).unwrap();
    let payload = Payload::Inline(Bytes::from_static(b"abc"));
    let write = [Operation::Write { offset: 3 * SIZE + 100, payload }];
    let (place, start) = (Place { range }, Start::Guessed(0));
    store.apply_chunk(&cell, place, &write, start, at(5), Readers::from(at(0))).unwrap();
    let told = |range, when| store.chunk_stretches(&stored, place, range, at(when)).unwrap();
    let written = ByteRange { start: 3 * SIZE + 100, end: 3 * SIZE + 103 };
    assert_eq!(told(range, 5), [written]);
    assert_eq!(told(ByteRange { start: 3 * SIZE + 102, ..range }, 5)[0].len(), 1);
    assert!(
        told(range, 4).is_empty() && told(ByteRange { end: written.start, ..range }, 5).is_empty()
    );
}
