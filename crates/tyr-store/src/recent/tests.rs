//! A blob under random operations, readers and folds, against a list of whole contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tyr_types::{
    ByteRange, Bytes, ExtentRef, Number, Operation, Outcome, Payload, Timestamp, Transform,
};

use super::apply::Applying;
use super::blob::{Attributes, BlobState};
use super::block::BLOCK_SIZE;
use super::capture::Captured;
use super::fixtures::at;
use super::lease::DeadExtents;
use super::plan::{Buffer, Missing, Plan, Source};
use super::readers::Readers;
use crate::base::{Ahead, PieceData};

/// Everything around one blob: base, extents, readers, and all its versions by value.
struct World {
    state: BlobState,
    base: Vec<u8>,
    /// What the base says of the blob.
    known: Known,
    log: Vec<(Timestamp, Operation)>,
    extents: BTreeMap<ExtentRef, Vec<u8>>,
    dead: Arc<DeadExtents>,
    readers: Vec<Timestamp>,
    /// The content as of each timestamp; `None` where there was no blob.
    versions: Vec<(Timestamp, Option<Vec<u8>>)>,
    clock: u64,
    folding: Option<Captured>,
    part_len: u64,
}

/// What the base says of a blob.
#[derive(Clone, Copy, Default)]
struct Known {
    attributes: Attributes,
    folded_at: Timestamp,
    ahead: Option<Ahead>,
}

impl World {
    fn new() -> Self {
        Self {
            state: BlobState::new(Attributes::default(), Timestamp::ZERO),
            base: Vec::new(),
            known: Known::default(),
            log: Vec::new(),
            extents: BTreeMap::new(),
            dead: Arc::default(),
            readers: Vec::new(),
            versions: vec![(Timestamp::ZERO, None)],
            clock: 1,
            folding: None,
            part_len: u64::MAX,
        }
    }

    fn newest(&self) -> Option<Vec<u8>> {
        self.versions.last().unwrap().1.clone()
    }

    fn expected(&self, when: Timestamp) -> Option<Vec<u8>> {
        self.versions.iter().rev().find(|(version, _)| *version <= when).unwrap().1.clone()
    }

    fn payload(&mut self, seed: u8, len: usize) -> (Payload, Vec<u8>) {
        let bytes: Vec<u8> = (0..len).map(|n| seed.wrapping_add(n as u8)).collect();
        if !seed.is_multiple_of(3) || bytes.is_empty() {
            return (Payload::Inline(bytes.clone().into()), bytes);
        }
        let extents = bytes.chunks(20_000).map(|part| {
            let position = self.extents.len() as u64;
            let len = part.len() as u32;
            let extent = ExtentRef { file: 0, position, len, compressed_len: 0 };
            self.extents.insert(extent, part.to_vec());
            extent
        });
        (Payload::Extents(extents.collect()), bytes)
    }

    fn apply(&mut self, operation: Operation, expected: Option<Vec<u8>>) -> Outcome {
        self.clock += 1;
        self.log.push((at(self.clock), operation.clone()));
        let outcome = self.execute(&operation, at(self.clock));
        self.versions.push((at(self.clock), expected));
        outcome
    }

    fn execute(&mut self, operation: &Operation, at: Timestamp) -> Outcome {
        if let Operation::Apply { offset, .. } = operation {
            self.make_resident(ByteRange { start: *offset, end: offset + 8 });
        }
        let readers = self.readers.clone();
        let readers = Readers::new(&readers);
        let applying = Applying { at, readers, dead: &self.dead };
        let answers = self.state.apply(std::slice::from_ref(operation), applying);
        answers.first().map_or(Outcome::Done, |(_, outcome)| *outcome)
    }

    /// The process ends, and another one plays the log over the base.
    fn restart(&mut self) {
        self.readers.clear();
        self.folding = None;
        let Known { attributes, folded_at, ahead } = self.known;
        self.state = BlobState::new(attributes, folded_at).with_ahead(ahead);
        for (at, operation) in std::mem::take(&mut self.log) {
            if folded_at < at {
                self.state.catch_up(at);
                self.execute(&operation, at);
            }
            self.log.push((at, operation));
        }
        self.state.catch_up(Timestamp::MAX);
    }

    /// As the store does it: what is brought in from an extent changes the blob's shape, so the
    /// rest takes another round.
    fn make_resident(&mut self, range: ByteRange) {
        for _ in 0..3 {
            let Some(plan) = self.state.plan(range, Timestamp::MAX) else { return };
            for part in plan.missing.iter().flat_map(Missing::by_block) {
                let bytes = self.fetch(&part);
                match part.source {
                    Source::Base => self.state.fill(&plan, part.range, &bytes),
                    Source::Extent { .. } => self.state.materialize(&part, &bytes),
                }
            }
            if self.state.is_resident(range) {
                return;
            }
        }
        panic!("{range:?} is not in memory after three rounds");
    }

    fn fetch(&self, missing: &Missing) -> Vec<u8> {
        let range = missing.range;
        match &missing.source {
            Source::Base => {
                // What is played over a base that is ahead may look behind its end.
                let mut bytes = vec![0; range.len() as usize];
                let held = &self.base[(range.start as usize).min(self.base.len())..];
                let held = &held[..bytes.len().min(held.len())];
                bytes[..held.len()].copy_from_slice(held);
                bytes
            }
            Source::Extent { lease, skip } => {
                let bytes = &self.extents[&lease.extent()];
                bytes[*skip as usize..*skip as usize + range.len() as usize].to_vec()
            }
        }
    }

    fn finish(&self, mut plan: Plan<'_>) -> Vec<u8> {
        for missing in std::mem::take(&mut plan.missing) {
            let bytes = self.fetch(&missing);
            plan.part(missing.range).copy_from_slice(&bytes);
        }
        plan.into_bytes()
    }

    fn check(&self, when: Timestamp) {
        let expected = self.expected(when);
        let mut memory = vec![0xEE; 1 << 20];
        let bytes = Buffer::Borrowed(&mut memory);
        let plan = self.state.plan_into(ByteRange::ALL, when, bytes);
        let plan = plan.expect("readers keep their version");
        assert_eq!(plan.attributes.exists, expected.is_some(), "existence at {when}");
        let expected = expected.unwrap_or_default();
        assert_eq!(plan.attributes.size, expected.len() as u64, "size at {when}");
        let bytes = self.finish(plan);
        let differs = bytes.iter().zip(&expected).position(|(left, right)| left != right);
        assert_eq!(differs, None, "first wrong byte at {when}");
    }

    fn fold_begin(&mut self, part_len: u64) {
        if self.folding.is_none() && self.readers.is_empty() {
            self.readers.push(at(self.clock));
            self.part_len = part_len;
            self.folding = self.state.capture_some(at(self.clock), part_len);
            if self.folding.is_none() {
                self.readers.clear();
            }
        }
    }

    /// What a fold has taken is in the base; then it takes the next part, if there is one.
    fn fold_on(&mut self) {
        let Some(captured) = self.folding.take() else { return };
        assert!(captured.part.is_none() || captured.cut.is_none() && captured.holes.is_empty());
        if let Some(len) = captured.cut {
            self.base.truncate(len as usize);
        }
        if captured.part.is_none() {
            self.base.resize(captured.attributes.size as usize, 0);
        }
        for hole in &captured.holes {
            self.base[hole.start as usize..hole.end as usize].fill(0);
        }
        for (offset, piece) in &captured.pieces {
            let bytes = match piece {
                PieceData::Bytes(bytes) => bytes.to_vec(),
                PieceData::Extent { extent, skip, len } => {
                    self.extents[extent][*skip as usize..(*skip + *len) as usize].to_vec()
                }
                PieceData::Pages(run) => unreachable!("{run:?} in memory"),
            };
            let end = *offset as usize + bytes.len();
            assert!(end <= self.base.len(), "a piece lies within the blob");
            self.base[*offset as usize..end].copy_from_slice(&bytes);
        }
        self.state.settle(&captured);
        if let Some(below) = captured.part {
            self.known.ahead = Some(Ahead { below, at: captured.at });
            self.folding = self.state.capture_some(captured.at, self.part_len);
            assert!(self.folding.is_some(), "there is a last part");
            return;
        }
        let (attributes, folded_at) = (captured.attributes, captured.at);
        self.known = Known { attributes, folded_at, ahead: None };
        self.readers.remove(0);
        let readers = self.readers.clone();
        self.state.collect(Readers::new(&readers), Timestamp::MAX);
    }

    fn fold_end(&mut self) {
        while self.folding.is_some() {
            self.fold_on();
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { offset: usize, len: usize, seed: u8 },
    Append { len: usize, seed: u8 },
    Replace { len: usize, seed: u8 },
    Truncate { len: usize },
    Clear { offset: usize, len: usize },
    Delete,
    Add { offset: usize },
    ReaderBegins,
    ReaderEnds { which: usize },
    FoldBegins { part_len: u64 },
    FoldGoesOn,
    FoldEnds,
    Forget,
    Restarts,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = prop_oneof![0..200usize, 16_000..17_000usize, 30_000..60_000usize];
    let len = prop_oneof![0..64usize, 0..20_000usize];
    let step = prop_oneof![
        3 => (place.clone(), len.clone(), any::<u8>())
            .prop_map(|(offset, len, seed)| Step::Write { offset, len, seed }),
        3 => (len.clone(), any::<u8>()).prop_map(|(len, seed)| Step::Append { len, seed }),
        1 => (len.clone(), any::<u8>()).prop_map(|(len, seed)| Step::Replace { len, seed }),
        1 => place.clone().prop_map(|len| Step::Truncate { len }),
        2 => (place.clone(), len.clone())
            .prop_map(|(offset, len)| Step::Clear { offset, len: len + 1 }),
        1 => Just(Step::Delete),
        4 => place.prop_map(|offset| Step::Add { offset }),
        2 => Just(Step::ReaderBegins),
        2 => (0..4usize).prop_map(|which| Step::ReaderEnds { which }),
        2 => prop_oneof![Just(u64::MAX), 1..40_000u64]
            .prop_map(|part_len| Step::FoldBegins { part_len }),
        2 => Just(Step::FoldGoesOn),
        1 => Just(Step::FoldEnds),
        1 => Just(Step::Forget),
        1 => Just(Step::Restarts),
    ];
    prop::collection::vec(step, 1..60)
}

fn run(world: &mut World, step: Step) {
    let mut content = world.newest().unwrap_or_default();
    match step {
        Step::Write { offset, len, seed } => {
            let (payload, bytes) = world.payload(seed, len);
            content.resize(content.len().max(offset + len), 0);
            content[offset..offset + len].copy_from_slice(&bytes);
            world.apply(Operation::Write { offset: offset as u64, payload }, Some(content));
        }
        Step::Append { len, seed } => {
            let (payload, bytes) = world.payload(seed, len);
            let offset = content.len() as u64;
            content.extend(bytes);
            let outcome = world.apply(Operation::Append { payload, expected: None }, Some(content));
            assert_eq!(outcome, Outcome::Offset(offset));
        }
        Step::Replace { len, seed } => {
            let (payload, bytes) = world.payload(seed, len);
            world.apply(Operation::Replace { payload }, Some(bytes));
        }
        Step::Truncate { len } => {
            content.resize(len, 0);
            world.apply(Operation::Truncate { len: len as u64 }, Some(content));
        }
        Step::Clear { offset, len } => {
            let end = (offset + len).min(content.len());
            content[offset.min(end)..end].fill(0);
            let range = ByteRange::at(offset as u64, len as u64).unwrap();
            let expected = world.newest().map(|_| content);
            world.apply(Operation::Clear { range }, expected);
        }
        Step::Delete => {
            let existed = world.newest().is_some();
            let outcome = world.apply(Operation::Delete, None);
            assert_eq!(outcome, Outcome::Existed(existed));
        }
        Step::Add { offset } => {
            content.resize(content.len().max(offset + 8), 0);
            let transform = Transform::add(Number::U64(0x8181_8181_8181_8181));
            let value = transform.apply(&mut content[offset..]);
            let offset = offset as u64;
            let outcome = world.apply(Operation::Apply { offset, transform }, Some(content));
            assert_eq!(outcome, Outcome::Value(value));
        }
        Step::ReaderBegins if world.readers.len() < 4 => world.readers.push(at(world.clock)),
        Step::ReaderEnds { which } => {
            // The fold's own reader is the oldest and ends with the fold.
            let first = usize::from(world.folding.is_some());
            if which + first < world.readers.len() {
                world.readers.remove(which + first);
                let readers = world.readers.clone();
                world.state.collect_chunk(Readers::new(&readers));
            }
        }
        Step::FoldBegins { part_len } => world.fold_begin(part_len),
        Step::FoldGoesOn => world.fold_on(),
        Step::FoldEnds => world.fold_end(),
        Step::Forget => world.state.forget_clean(),
        Step::Restarts => world.restart(),
        Step::ReaderBegins => {}
    }
}

/// Steps on a blob that was written from end to end before, so that folds have much to take.
fn small_steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || 0..150_000usize;
    let step = prop_oneof![
        6 => (place(), 1..9_000usize, any::<u8>()).prop_map(|(offset, len, seed)| {
            Step::Write { offset, len, seed: seed % 80 * 3 + 1 } // By value.
        }),
        4 => place().prop_map(|offset| Step::Add { offset }),
        4 => (1..9usize, 0..16usize).prop_map(|(block, inside)| {
            Step::Add { offset: block * BLOCK_SIZE as usize - 12 + inside } // Near its end.
        }),
        2 => (1_000..40_000u64).prop_map(|part_len| Step::FoldBegins { part_len }),
        4 => Just(Step::FoldGoesOn),
        1 => Just(Step::FoldEnds),
        1 => Just(Step::Forget),
        1 => Just(Step::ReaderBegins),
        2 => (0..4usize).prop_map(|which| Step::ReaderEnds { which }),
        1 => Just(Step::Restarts),
        1 => place().prop_map(|len| Step::Truncate { len }),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(400)))]

    #[test]
    fn every_reader_sees_its_version_whatever_is_written_and_folded(steps in steps()) {
        let mut world = World::new();
        every_reader_sees_its_version(&mut world, steps);
    }

    #[test]
    fn parts_of_a_fold_are_of_one_moment_in_the_end_also_when_the_log_is_played_over_some(
        steps in small_steps()
    ) {
        let mut world = World::new();
        run(&mut world, Step::Write { offset: 0, len: 160_000, seed: 1 });
        run(&mut world, Step::FoldBegins { part_len: u64::MAX });
        run(&mut world, Step::FoldEnds);
        every_reader_sees_its_version(&mut world, steps);
    }
}

fn every_reader_sees_its_version(world: &mut World, steps: Vec<Step>) {
    for step in steps {
        run(world, step);
        world.check(Timestamp::MAX);
        for reader in world.readers.clone() {
            world.check(reader);
        }
    }
    world.fold_end();
    world.readers.clear();
    world.state.collect(Readers::NONE, Timestamp::MAX);
    world.fold_begin(u64::MAX);
    world.fold_end();
    assert!(!world.state.is_dirty());
    assert!(!world.state.has_older());
    assert_eq!(world.base, world.newest().unwrap_or_default());
}

#[test]
fn after_a_part_that_may_have_failed_a_blob_comes_whole() {
    let mut world = World::new();
    let write = |world: &mut World, seed: u8| {
        run(world, Step::Write { offset: 0, len: 150_000, seed });
        run(world, Step::FoldBegins { part_len: u64::MAX });
        run(world, Step::FoldEnds);
        for place in 0..9 {
            run(world, Step::Write { offset: place * BLOCK_SIZE as usize, len: 4096, seed: 1 });
        }
    };
    write(&mut world, 1);
    let part = |world: &mut World| world.state.capture_some(at(world.clock), 8192).unwrap().part;
    assert_eq!(part(&mut world), Some(2 * BLOCK_SIZE));
    world.state.leave_parts();
    assert_eq!(part(&mut world), None);
    // Once it has come whole, it comes in parts again.
    write(&mut world, 4);
    assert_eq!(part(&mut world), Some(2 * BLOCK_SIZE));
}

#[test]
fn a_hot_counter_stays_one_run_and_keeps_one_old_value_per_reader() {
    let mut world = World::new();
    for round in 0..1000u64 {
        if round == 500 {
            world.readers.push(at(world.clock));
        }
        let transform = Transform::add(Number::U64(1));
        let readers = world.readers.clone();
        world.clock += 1;
        let applying =
            Applying { at: at(world.clock), readers: Readers::new(&readers), dead: &world.dead };
        world.state.apply(&[Operation::Apply { offset: 0, transform }], applying);
    }
    assert_eq!(world.state.older.len(), 1);
    let plan = world.state.plan(ByteRange::ALL, world.readers[0]).unwrap();
    assert_eq!(plan.into_bytes(), 500u64.to_le_bytes());
}

#[test]
fn after_a_fold_nobody_looks_for_holes_in_the_base() {
    let mut world = World::new();
    let bytes = [1; 8].to_vec();
    for (place, offset) in [(1, 100), (2, 4_000), (3, 9_000)] {
        let payload = Payload::Inline(bytes.clone().into());
        let write = Operation::Write { offset, payload };
        let mut content = world.newest().unwrap_or_default();
        content.resize(offset as usize, 0);
        content.extend_from_slice(&bytes);
        world.apply(write, Some(content));
        if place == 2 {
            world.fold_begin(u64::MAX);
            world.fold_end();
            assert!(world.state.is_resident(ByteRange { start: 0, end: 4_008 }));
        }
    }
    world.fold_begin(u64::MAX);
    world.fold_end();
    assert!(world.state.is_resident(ByteRange { start: 0, end: 9_008 }));
    world.check(Timestamp::MAX);
}

#[test]
fn validation_sees_exactly_the_overlapping_versions() {
    let mut world = World::new();
    world.readers.push(at(1));
    let write = |offset: u64, len: usize| Operation::Write {
        offset,
        payload: Payload::Inline(Bytes::from(vec![1; len])),
    };
    world.apply(write(0, 100), Some(vec![1; 100]));
    world.readers.push(at(world.clock));
    world.apply(write(10, 10), Some(vec![1; 100]));
    let newest = |start, end| world.state.newest_overlapping(ByteRange { start, end }, false);
    assert_eq!(newest(0, 10), at(2));
    assert_eq!(newest(0, 11), at(3));
    assert_eq!(newest(20, 30), at(2));
    assert_eq!(newest(100, 200), Timestamp::ZERO);
}

/// C1, and for copies D2: a large payload, a hole and a cut leave no byte in memory that has their
/// version.
#[test]
fn validation_sees_what_was_folded_since_though_no_byte_of_it_is_in_memory() {
    let mut world = World::new();
    let (payload, bytes) = world.payload(3, 40_000);
    assert!(matches!(payload, Payload::Extents(_)));
    world.apply(Operation::Write { offset: 0, payload }, Some(bytes.clone()));
    let newest = |world: &World| world.state.newest_overlapping(ByteRange::ALL, false);
    let fold = |world: &mut World| {
        world.fold_begin(u64::MAX);
        world.fold_end();
        assert!(!world.state.is_dirty());
    };
    let written = at(world.clock);
    fold(&mut world);
    assert_eq!(newest(&world), written);
    assert_eq!(world.state.version_at(ByteRange::ALL, false, Timestamp::MAX), written);
    let range = ByteRange { start: 0, end: 100 };
    let mut holed = bytes;
    holed[..100].fill(0);
    world.apply(Operation::Clear { range }, Some(holed.clone()));
    let cleared = at(world.clock);
    fold(&mut world);
    assert_eq!(newest(&world), cleared);
    holed.truncate(50);
    world.apply(Operation::Truncate { len: 50 }, Some(holed));
    let cut = at(world.clock);
    fold(&mut world);
    assert_eq!(newest(&world), cut);
    world.check(Timestamp::MAX);
}

#[test]
fn a_hole_of_any_length_takes_one_piece_and_what_lies_in_it_goes_from_memory() {
    let mut world = World::new();
    let (payload, bytes) = world.payload(1, 60_000);
    world.apply(Operation::Write { offset: 0, payload }, Some(bytes));
    let before = world.state.memory();
    let range = ByteRange { start: 0, end: 1 << 50 };
    world.apply(Operation::Clear { range }, Some(vec![0; 60_000]));
    assert_eq!((world.state.pieces.len(), world.state.blocks.len()), (1, 0));
    assert!(world.state.memory() + 50_000 < before);
    world.check(Timestamp::MAX);
    // It ends with the blob.
    assert_eq!(world.state.pieces.values().next().unwrap().end, 60_000);
}
