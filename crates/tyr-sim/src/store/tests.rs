//! The store against the plain model, on nodes that hold different chunks.

use tyr_protocol::commit::{Answered, Outcomes};
use tyr_protocol::{Chain, Hop, Piece};
use tyr_types::{Key, Number, Outcome, Payload, Transaction, Transform};

use super::*;
use crate::checker::model::{self, Blob, Ranges};
use crate::random::Random;

const CHUNK: u64 = 32;
const NODES: u16 = 4;

fn name() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() }
}

fn time(clock: u64) -> Timestamp {
    Timestamp { clock, ..Timestamp::ZERO }
}

fn config() -> StoreConfig {
    let policy = Policy { read_timeout_us: 1_000, linger_us: 0 };
    StoreConfig {
        chunk_sizes: [(KeyspaceId(1), CHUNK)].into(),
        policy,
        versions_max: 1_000,
        broken: None,
    }
}

fn payload(number: u64, len: u64) -> Payload {
    Payload::Inline((0..len).map(|place| (number + place) as u8 | 1).collect())
}

/// The nodes of a chunk.
fn holders(chunk: u64) -> [NodeId; 2] {
    let first = (chunk % u64::from(NODES)) as u16;
    let mut holders = [NodeId(first), NodeId((first + 1) % NODES)];
    holders.sort_unstable();
    holders
}

fn transaction(number: u64, operations: Vec<Operation>) -> Transaction {
    let blobs = vec![BlobOperations { blob: name(), operations }];
    Transaction { id: TransactionId(number.into()), blobs, reads: Vec::new() }
}

/// The chain of operations on a blob of `size` bytes, computed with the guess that it ends at
/// `end`.
fn chain(operations: &[Operation], size: u64, end: u64) -> Chain {
    let mut chunks: Vec<u64> = vec![0];
    let mut reached = size.max(end);
    for operation in operations {
        reached = reached.max(reach(operation, reached));
        let Some(written) = tyr_protocol::Footprint::written(operation, size.min(end)) else {
            continue;
        };
        let last = written.range.end.min(reached.max(written.range.start + 1)) - 1;
        if !written.range.is_empty() {
            chunks.extend(written.range.start / CHUNK..=last / CHUNK);
        }
    }
    chunks.sort_unstable();
    chunks.dedup();
    let mut hops: BTreeMap<NodeId, Vec<Piece>> = BTreeMap::new();
    for chunk in chunks {
        for node in holders(chunk) {
            hops.entry(node).or_default().push(Piece {
                blob: name(),
                range: ByteRange { start: chunk * CHUNK, end: (chunk + 1) * CHUNK },
                is_attributes: chunk == 0,
                is_written: true,
                authority: holders(chunk)[0],
            });
        }
    }
    let hops = hops.into_iter().map(|(node, pieces)| Hop { node, part: Part::Pieces(pieces) });
    Chain::new(hops.collect(), [(0, end)].into_iter().collect()).unwrap()
}

/// Operations that the protocol lets through to blobs of a few chunks.
fn operations(random: &mut Random, number: u64) -> Vec<Operation> {
    let count = random.between(1, 3);
    let operation = |_| {
        let len = random.between(1, 40);
        let offset = random.below(4 * CHUNK);
        match random.below(7) {
            0 => Operation::Write { offset, payload: payload(number, len) },
            1 | 2 => Operation::Append { payload: payload(number, len), expected: None },
            3 => Operation::Truncate { len: offset },
            4 if random.percent(30) => Operation::Delete,
            5 => Operation::Replace { payload: payload(number, 3 * len) },
            _ => {
                let offset = offset / 8 * 8;
                Operation::Apply { offset, transform: Transform::add(Number::U64(number)) }
            }
        }
    };
    (0..count).map(operation).collect()
}

struct Cluster {
    stores: Vec<SimStore>,
    /// What there was after each timestamp.
    moments: Vec<(Timestamp, Blob)>,
}

impl Cluster {
    fn new() -> Self {
        let stores = (0..NODES).map(|node| SimStore::new(NodeId(node), config())).collect();
        Self { stores, moments: vec![(Timestamp::ZERO, None)] }
    }

    /// Does it everywhere, and in the model; compares the answers.
    fn apply(&mut self, number: u64, operations: Vec<Operation>) {
        let mut blob = self.moments.last().unwrap().1.clone();
        let size = blob.as_ref().map_or(0, Vec::len) as u64;
        let (at, changed) = (time(number), &mut Ranges::new());
        let outcomes = model::operate(&mut blob, &operations, at, changed).unwrap();
        self.moments.push((time(number), blob));
        let chain = chain(&operations, size, size);
        let transaction = transaction(number, operations);
        let mut answers: Vec<Answered> = Vec::new();
        for hop in chain.hops() {
            let store = &mut self.stores[usize::from(hop.node.0)];
            answers.extend(store.apply(&transaction, &chain, time(number)).iter());
        }
        // Every replica answers, and alike.
        answers.sort_by_key(|answer| answer.operation);
        answers.dedup();
        let told: Vec<_> =
            answers.iter().map(|answer| (answer.operation as usize, answer.outcome)).collect();
        let right: Vec<_> = outcomes.into_iter().enumerate().collect();
        let right: Vec<_> = right.into_iter().filter(|(_, it)| *it != Outcome::Done).collect();
        assert_eq!(told, right, "{number}: {transaction:?}");
    }

    /// Compares all that every node answers at a moment with the model.
    fn compare(&self, moment: usize) {
        let (at, blob) = &self.moments[moment];
        let at = if moment + 1 == self.moments.len() { None } else { Some(*at) };
        let size = blob.as_ref().map(|bytes| bytes.len() as u64);
        for chunk in 0..9 {
            let range = ByteRange { start: chunk * CHUNK, end: (chunk + 1) * CHUNK };
            let all = blob.as_deref().unwrap_or(&[]);
            let to = all.len().min(range.end as usize);
            let right = all.get(range.start as usize..to).unwrap_or(&[]);
            for node in holders(chunk) {
                let reading = self.stores[usize::from(node.0)].read(&name(), range, at).unwrap();
                let (held, hole) = right.split_at(reading.bytes.len());
                assert_eq!(held, &reading.bytes[..], "chunk {chunk} at {at:?} of {node:?}");
                assert!(hole.iter().all(|byte| *byte == 0), "chunk {chunk} at {at:?}");
                if chunk == 0 {
                    assert_eq!((reading.size, hole.len()), (Some(size), 0), "at {at:?}");
                }
            }
        }
    }
}

#[test]
fn every_node_has_its_chunks_as_the_model_has_the_blob_at_every_moment() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut cluster = Cluster::new();
        println!("seed {seed}");
        for number in 1..60 {
            cluster.apply(number, operations(&mut random, number));
            cluster.compare(cluster.moments.len() - 1);
        }
        for moment in 0..cluster.moments.len() {
            cluster.compare(moment);
        }
    }
}

#[test]
fn an_append_goes_by_a_guess_of_its_chunk_where_only_that_chunk_is_held() {
    let mut cluster = Cluster::new();
    cluster.apply(1, vec![Operation::Write { offset: 40, payload: payload(1, 4) }]);
    // The client believes the blob to end at 41; it ends at 44.
    let operations = vec![Operation::Append { payload: payload(2, 4), expected: None }];
    let chain = chain(&operations, 44, 41);
    let transaction = transaction(2, operations);
    for node in holders(1) {
        let store = &mut cluster.stores[usize::from(node.0)];
        store.apply(&transaction, &chain, time(2));
        let reading = store.read(&name(), ByteRange { start: 32, end: 64 }, None).unwrap();
        assert_eq!(reading.bytes.len(), 16, "{node:?}");
    }
}

fn single(operations: &[(u64, Operation)]) -> SimStore {
    let mut store = SimStore::new(NodeId(0), config());
    for (number, operation) in operations {
        let transaction = transaction(*number, vec![operation.clone()]);
        store.apply(&transaction, &Chain::alone(NodeId(0)), time(*number));
    }
    store
}

fn write(offset: u64, len: u64, number: u64) -> Operation {
    Operation::Write { offset, payload: payload(number, len) }
}

#[test]
#[should_panic(expected = "violation")]
fn what_overlaps_something_newer_is_not_applied() {
    single(&[(2, write(0, 8, 2)), (1, write(4, 8, 1))]);
}

/// The second chunk of a blob of two, with the versions gone that it had at these moments.
fn folded(writes: &[(u64, u64)]) -> Chunk {
    let mut chunk = Chunk::new(ByteRange { start: CHUNK, end: 2 * CHUNK });
    writes.iter().for_each(|(number, offset)| write_in(&mut chunk, *number, *offset));
    chunk.remove_versions(|_| true);
    chunk
}

fn write_in(chunk: &mut Chunk, number: u64, offset: u64) {
    let operations = Arc::from([write(CHUNK + offset, 8, number)]);
    let (id, start) = (TransactionId(number.into()), Start::Known(2 * CHUNK));
    chunk.apply(time(number), Cause::Transaction { id, operations, start });
}

/// C6: it was held up for longer than versions stay.
#[test]
#[should_panic(expected = "violation")]
fn other_bytes_are_not_applied_below_the_versions_that_went() {
    write_in(&mut folded(&[(5, 0), (9, 24)]), 7, 8);
}

#[test]
fn what_was_applied_already_answers_again_and_changes_nothing() {
    let add = |number| {
        let transform = Transform::add(Number::U64(number));
        transaction(number, vec![Operation::Apply { offset: 0, transform }])
    };
    let mut store = SimStore::new(NodeId(0), config());
    let chain = Chain::alone(NodeId(0));
    for number in [1, 2, 1, 2, 1] {
        let answers = store.apply(&add(number), &chain, time(number));
        let sum = if number == 1 { 1 } else { 3 };
        assert_eq!(answers[0].outcome, Outcome::Value(Number::U64(sum)));
    }
    assert!(store.matches(&name(), 0, &3u64.to_le_bytes()));
}

/// C6.
#[test]
#[should_panic(expected = "violation")]
fn other_bytes_of_a_later_chunk_are_not_applied_late() {
    let piece = |number| {
        let operations = vec![write(32 + 8 * number, 8, number)];
        let whole = chain(&operations, 0, 0);
        let is_second = |piece: &Piece| piece.range.start == CHUNK;
        let hop = |hop: &Hop| match &hop.part {
            Part::Whole => unreachable!("it is a chain of pieces"),
            Part::Pieces(pieces) => Hop {
                node: hop.node,
                part: Part::Pieces(pieces.iter().filter(|it| is_second(it)).cloned().collect()),
            },
        };
        let hops = whole.hops().iter().map(hop).collect();
        (transaction(number, operations), Chain::new(hops, whole.ends().clone()).unwrap())
    };
    let mut store = SimStore::new(holders(1)[0], config());
    for number in [2, 1] {
        let (transaction, chain) = piece(number);
        store.apply(&transaction, &chain, time(number));
    }
}

#[test]
fn conditions_see_ends_and_holes() {
    let store = single(&[(1, write(0, 4, 9)), (2, Operation::Truncate { len: 40 })]);
    let there = [9, 11, 11, 13];
    assert!(store.matches(&name(), 0, &there));
    assert!(store.matches(&name(), 2, &[11, 13, 0, 0]), "a hole is zeros");
    assert!(store.matches(&name(), 30, &[0; 10]), "over the end of a chunk");
    assert!(!store.matches(&name(), 30, &[0; 11]), "beyond the end");
    assert!(!store.matches(&name(), 0, &[9, 11, 11, 12]));
    assert!(store.matches(&name(), 40, &[]) && !store.matches(&name(), 41, &[]));
    let other = BlobName { key: Key::new("b").unwrap(), ..name() };
    assert!(!store.matches(&other, 0, &[]), "an absent blob matches nothing");
}

#[test]
fn the_newest_version_is_that_of_the_bytes_asked_for() {
    let store = single(&[
        (1, write(0, 60, 1)),
        (2, write(8, 8, 2)),
        (3, write(40, 8, 3)),
        (4, write(60, 8, 4)),
        (5, write(0, 1, 5)),
    ]);
    let newest = |start, end, is_attributes| {
        store.newest_overlapping(&name(), ByteRange { start, end }, is_attributes)
    };
    assert_eq!(newest(1, 8, false), time(1));
    assert_eq!(newest(1, 9, false), time(2));
    assert_eq!(newest(1, 60, false), time(3));
    assert_eq!(newest(1, 1, true), time(4), "the last that changed the size");
    assert_eq!(newest(0, 0, true), time(5), "the last that changed anything");
    assert_eq!(newest(100, 200, false), Timestamp::ZERO);
}

/// Copies chunk 0, in two pieces, from one store to an empty one that awaits it.
fn copied(from: &SimStore, at: Timestamp, in_between: &[(u64, Operation)]) -> SimStore {
    let chunk = (name(), 0);
    let mut to = SimStore::new(NodeId(0), config());
    to.await_base(&chunk);
    for (number, operation) in in_between {
        let transaction = transaction(*number, vec![operation.clone()]);
        to.apply_beside(&transaction, time(*number));
    }
    for range in [ByteRange { start: 0, end: 10 }, ByteRange { start: 10, end: CHUNK }] {
        let copy = from.export(&chunk, range, at).unwrap();
        to.install(&chunk, &copy);
    }
    to
}

impl SimStore {
    /// Applies as a recipient, which is the authority of nothing and answers nothing.
    fn apply_beside(&mut self, transaction: &Transaction, at: Timestamp) {
        let piece = Piece {
            blob: name(),
            range: ByteRange { start: 0, end: CHUNK },
            is_attributes: true,
            is_written: true,
            authority: NodeId(9),
        };
        let hops =
            [0, 9].map(|node| Hop { node: NodeId(node), part: Part::Pieces(vec![piece.clone()]) });
        let chain = Chain::new(hops.into(), [(0, 0)].into_iter().collect()).unwrap();
        assert_eq!(self.apply(transaction, &chain, at), Outcomes::new());
    }
}

#[test]
fn a_copy_goes_under_what_was_applied_above_it_and_takes_the_place_of_what_was_below() {
    let append = |number| Operation::Append { payload: payload(number, 4), expected: None };
    let all = [1, 2, 3, 4, 5].map(|number| (number, append(number)));
    let from = single(&all);
    // Of the five, the recipient heard of the last three; the copy has the first three.
    let to = copied(&from, time(3), &all[2..]);
    let whole = ByteRange { start: 0, end: CHUNK };
    for at in [None, Some(time(2)), Some(time(3)), Some(time(4))] {
        let (left, right) = (from.read(&name(), whole, at), to.read(&name(), whole, at));
        let [left, right] = [left, right].map(|reading| reading.unwrap());
        assert_eq!((left.bytes, left.size), (right.bytes, right.size), "at {at:?}");
    }
}

#[test]
fn a_copy_takes_the_versions_along_that_are_in_use() {
    let append = |number| Operation::Append { payload: payload(number, 4), expected: None };
    let mut from = single(&[1, 2, 3, 4, 5].map(|number| (number, append(number))));
    from.usage(&name(), &Usage::new(time(5), [time(2)]));
    let to = copied(&from, time(5), &[]);
    let whole = ByteRange { start: 0, end: CHUNK };
    assert_eq!(to.read(&name(), whole, Some(time(2))).unwrap().bytes.len(), 8);
    assert_eq!(to.read(&name(), whole, None).unwrap().bytes.len(), 20);
}

#[test]
#[should_panic(expected = "violation")]
fn a_chunk_whose_base_is_still_to_come_is_not_read() {
    let mut store = SimStore::new(NodeId(0), config());
    store.await_base(&(name(), 0));
    let _ = store.read(&name(), ByteRange { start: 0, end: 8 }, None);
}

/// V3.
#[test]
fn versions_that_nobody_uses_go_and_those_in_use_stay() {
    let append = |number| Operation::Append { payload: payload(number, 1), expected: None };
    let all: Vec<_> = (1..=20).map(|number| (number, append(number))).collect();
    let mut store = single(&all);
    store.usage(&name(), &Usage::new(time(20), [time(12)]));
    let whole = ByteRange { start: 0, end: CHUNK };
    let len = |store: &SimStore, at| {
        store.read(&name(), whole, Some(time(at))).map(|reading| reading.bytes.len())
    };
    assert_eq!(len(&store, 12), Ok(12));
    assert_eq!(len(&store, 15), Ok(15));
    assert_eq!(len(&store, 11).unwrap_err().kind, ErrorKind::SnapshotTooOld);
    let newest = store.newest_overlapping(&name(), ByteRange { start: 3, end: 4 }, false);
    assert_eq!(newest, time(4), "what a byte's version was stays known");
    store.remove_versions(time(3_000));
    assert_eq!(len(&store, 20), Ok(20), "the newest never goes");
    assert!(len(&store, 19).is_err(), "a read timeout later the others are gone");
}

#[test]
fn what_is_here_is_listed_in_order_and_a_page_at_a_time() {
    let mut store = single(&[(1, write(0, 90, 1))]);
    let all = [0, 1, 2].map(|chunk| (name(), chunk));
    assert_eq!(store.held(None, 9), all);
    assert_eq!(store.held(None, 2), all[..2]);
    assert_eq!(store.held(Some(&all[1]), 9), all[2..]);
    store.release(&all[1]);
    assert_eq!(store.held(None, 9), [all[0].clone(), all[2].clone()]);
    store.clear();
    assert_eq!(store.held(None, 9), []);
}

/// The first chunk came by copy, and has in it already what is applied now.
#[test]
fn an_append_goes_where_others_have_it_though_the_first_chunk_is_ahead() {
    let mut cluster = Cluster::new();
    cluster.apply(1, vec![Operation::Write { offset: 0, payload: payload(1, 40) }]);
    let operations = vec![Operation::Append { payload: payload(2, 4), expected: None }];
    let (chain, transaction) = (chain(&operations, 40, 40), transaction(2, operations));
    let first = (name(), 0);
    cluster.stores[0].apply(&transaction, &chain, time(2));
    let copy = cluster.stores[0].export(&first, ByteRange { start: 0, end: CHUNK }, time(2));
    let late = &mut cluster.stores[1];
    late.release(&first);
    late.await_base(&first);
    late.install(&first, &copy.unwrap());
    late.apply(&transaction, &chain, time(2));
    let last = late.read(&name(), ByteRange { start: CHUNK, end: 2 * CHUNK }, None).unwrap();
    assert_eq!(last.bytes.len() as u64, 44 - CHUNK);
}

/// D5.
#[test]
fn what_went_after_the_moment_that_is_compared_waits_for_a_copy_or_goes_on_from_nothing() {
    let first = (name(), 0);
    let mut from = single(&[(2, write(0, 8, 2)), (5, Operation::Delete)]);
    from.await_confirmation(&first, time(3));
    let known = from.local_chunk(&first);
    assert!(!known.exists && known.version == time(5) && from.is_awaited(&first));
    from.apply_beside(&transaction(7, vec![write(0, 4, 7)]), time(7));
    let mut copied = from.clone();
    from.install(&first, &ChunkCopy::empty(ByteRange { start: 0, end: CHUNK }, true));
    let len = |store: &SimStore, at| {
        store.read(&name(), ByteRange { start: 0, end: CHUNK }, at).unwrap().bytes.len()
    };
    let moments = [Some(time(2)), Some(time(5)), Some(time(7)), None];
    assert_eq!(moments.map(|at| len(&from, at)), [8, 0, 4, 4], "what it was is known");
    let other = single(&[(2, write(0, 8, 2)), (6, write(8, 8, 6))]);
    copied.install(
        &first,
        &other.export(&first, ByteRange { start: 0, end: CHUNK }, time(6)).unwrap(),
    );
    assert_eq!([Some(time(6)), None].map(|at| len(&copied, at)), [16, 16]);
}

#[test]
#[should_panic(expected = "violation")]
fn what_was_written_after_the_moment_that_is_compared_does_not_wait_for_that() {
    single(&[(5, write(0, 8, 5))]).await_confirmation(&(name(), 0), time(3));
}

#[test]
#[should_panic(expected = "violation")]
fn what_is_not_there_does_not_stand() {
    let (first, mut store) = ((name(), 0), single(&[(1, write(0, 8, 1)), (2, Operation::Delete)]));
    store.await_confirmation(&first, time(3));
    store.confirm(&first, time(3));
}
