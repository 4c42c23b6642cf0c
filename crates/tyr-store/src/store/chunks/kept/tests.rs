//! Chunks at kept moments against a model of whole contents: written, deleted, folded bit by bit,
//! forgotten, copied from elsewhere, let go of, and played again after a stop of the node; after
//! each step each kept moment reads as it was (V7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::chunk::Start;
use tyr_types::{Operation, Payload};

use super::*;
use crate::base::CopiedVersion;
use crate::disk::simulated::SimulatedDisk;
use crate::index::memory::MemoryIndex;
use crate::recent::Readers;
use crate::recent::chunk::Installed;
use crate::store::chunks::stored_name;
use crate::store::{Fold, fixtures};

const KEYSPACE: KeyspaceId = KeyspaceId(1);
const SIZE: u64 = 64 << 10;
const BLOBS: usize = 4;

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 0 }
}

fn place(chunk: u64) -> Place {
    Place { range: ByteRange { start: chunk * SIZE, end: (chunk + 1) * SIZE } }
}

fn name(moment: u64) -> KeptName {
    KeptName::new(&format!("k{moment}")).unwrap()
}

/// A draw after the other from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// The contents of a blob's first chunk, by when they came; `None` where there was no blob.
type History = BTreeMap<u64, Option<Vec<u8>>>;

struct Case {
    disk: SimulatedDisk,
    index: MemoryIndex,
    store: Arc<Store>,
    kept: Vec<Timestamp>,
    blobs: [History; BLOBS],
    clock: u64,
    /// The fold under way.
    fold: Option<Fold>,
    /// Where it reads, and kept moments at which it stops.
    fold_at: Timestamp,
    stops: Vec<Timestamp>,
    /// What was done since the last checkpoint, and to which blob, in order.
    log: Vec<(u64, usize, Done)>,
}

/// What the log has of a blob.
enum Done {
    Operation(Operation),
    /// It came from another node, which knew of kept moments from this one on.
    Copied {
        known_from: u64,
    },
}

impl Case {
    fn new() -> Self {
        let (disk, index) = (SimulatedDisk::new(), MemoryIndex::new());
        let store = fixtures::open(&disk, &index);
        fixtures::adopt_keyspace(&store, SIZE);
        Self {
            disk,
            index,
            store,
            kept: Vec::new(),
            blobs: Default::default(),
            clock: 10,
            fold: None,
            fold_at: Timestamp::MAX,
            stops: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The node stops, whatever fold is under way, and starts anew: what the log has of after the
    /// last checkpoint is played again.
    fn restart(&mut self) {
        self.store = fixtures::open(&self.disk, &self.index);
        self.has_folded();
        let checkpoint = self.store.base().last_checkpoint().timestamp;
        self.log.retain(|(when, ..)| checkpoint < at(*when));
        for (when, number, operation) in &self.log {
            match operation {
                Done::Operation(operation) => self.play(*when, *number, operation),
                Done::Copied { known_from } => self.install(*when, *number, *known_from),
            }
        }
    }

    fn blob(number: usize) -> BlobName {
        BlobName { keyspace: KEYSPACE, key: Key::new(format!("b{number}")).unwrap() }
    }

    fn adopt(&mut self) {
        let kept = self.kept.iter().map(|at| (name(at.clock), *at)).collect();
        self.store.adopt_kept(&kept, Epoch(1)).unwrap();
    }

    /// As a node knows them: what no fold has passed.
    fn unfolded(&self) -> Vec<Timestamp> {
        self.store.base().kept_unfolded()
    }

    fn content(&self, number: usize, when: u64) -> Option<&Vec<u8>> {
        self.blobs[number].range(..=when).next_back().and_then(|(_, content)| content.as_ref())
    }

    fn change(&mut self, number: usize, draws: &mut Draws) {
        self.clock += 1;
        let mut content = self.content(number, self.clock).cloned();
        let operation = match draws.below(6) {
            0 | 5 => {
                content = None;
                Operation::Delete
            }
            1 if content.is_some() => {
                let len = draws.below(SIZE);
                content.as_mut().unwrap().resize(len as usize, 0);
                Operation::Truncate { len }
            }
            _ => {
                let offset = draws.below(SIZE / 2);
                let most = if draws.below(2) == 0 { 40 } else { SIZE / 2 };
                let len = 1 + draws.below(most);
                let bytes = vec![self.clock as u8; len as usize];
                let whole = content.get_or_insert_default();
                whole.resize(whole.len().max((offset + len) as usize), 0);
                whole[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
                Operation::Write { offset, payload: Payload::Inline(bytes.into()) }
            }
        };
        self.apply(number, operation, content);
    }

    /// Does an operation, after which the blob has this content.
    fn apply(&mut self, number: usize, operation: Operation, content: Option<Vec<u8>>) {
        self.play(self.clock, number, &operation);
        self.log.push((self.clock, number, Done::Operation(operation)));
        self.blobs[number].insert(self.clock, content);
    }

    fn play(&self, when: u64, number: usize, operation: &Operation) {
        let cell = self.store.chunk(&Self::blob(number)).unwrap();
        let kept = self.read_at();
        let readers = Readers::NONE.and_kept(&kept).and_at(self.fold_at);
        let (operations, start) = (std::slice::from_ref(operation), Start::Guessed(0));
        self.store.apply_chunk(&cell, place(0), operations, start, at(when), readers).unwrap();
    }

    /// Kept moments that are read: where the fold under way stops, too.
    fn read_at(&self) -> Vec<Timestamp> {
        let all: BTreeSet<_> = self.unfolded().into_iter().chain(self.stops.clone()).collect();
        all.into_iter().collect()
    }

    fn begin_fold(&mut self) {
        (self.fold_at, self.stops) = (at(self.clock), self.unfolded());
        let mut fold = self.store.begin_fold(self.fold_at, self.store.take_dead());
        fold.stop_at(&self.stops);
        self.fold = Some(fold);
    }

    /// Does a step of the fold under way; answers whether there are more.
    fn fold_some(&mut self) -> bool {
        self.fold.as_mut().is_some_and(|fold| self.store.fold_some(fold, |_| true).unwrap())
    }

    fn end_fold(&mut self) {
        let fold = self.fold.take().unwrap();
        self.store.end_fold(fold, 0).unwrap();
        self.has_folded();
    }

    fn has_folded(&mut self) {
        (self.fold, self.fold_at, self.stops) = (None, Timestamp::MAX, Vec::new());
    }

    fn fold(&mut self) {
        if self.fold.is_none() {
            self.begin_fold();
        }
        while self.fold_some() {}
        self.end_fold();
    }

    fn keep(&mut self) {
        self.clock += 1;
        self.kept.push(at(self.clock));
        self.adopt();
    }

    fn shrink(&self) {
        let kept = self.read_at();
        let readers = Readers::NONE.and_kept(&kept).and_at(self.fold_at);
        self.store.recent().collect_chunks(usize::MAX, |_| readers);
        self.store.recent().shrink(0, usize::MAX);
    }

    /// The chunk goes, and comes as another node has it, with what that knows of kept moments from
    /// this one on.
    fn copy(&mut self, number: usize, known_from: u64) {
        let blob = Self::blob(number);
        self.store.release_chunk(&blob).unwrap();
        self.clock += 1;
        self.install(self.clock, number, known_from);
        self.log.push((self.clock, number, Done::Copied { known_from }));
    }

    fn version_at(&self, number: usize, when: u64) -> Timestamp {
        let last = self.blobs[number].range(..=when).next_back();
        last.map_or(Timestamp::ZERO, |(version, _)| at(*version))
    }

    /// Takes the blob as it was at `when`, and at kept moments, if nothing later of it is here.
    fn install(&self, when: u64, number: usize, known_from: u64) {
        let blob = Self::blob(number);
        if self.store.chunk(&blob).unwrap().lock().is_done(at(when)) {
            return;
        }
        let content = self.content(number, when).cloned();
        let pieces: Vec<_> = content.iter().map(|it| (0, Bytes::from(it.clone()))).collect();
        let version = self.version_at(number, when);
        let size = Some(content.map(|it| it.len() as u64));
        let pieces = &pieces;
        let copy = Installed { at: at(when), version, pieces, size, size_version: version };
        self.store.install_chunk(&blob, place(0), copy).unwrap();
        let (mut versions, mut unknown_to, mut current_from) = (Vec::new(), None, version);
        for kept in self.kept.iter().rev() {
            if current_from <= *kept {
                continue;
            }
            if kept.clock < known_from {
                unknown_to = Some(*kept);
                break;
            }
            current_from = self.version_at(number, kept.clock);
            let then = self.content(number, kept.clock);
            versions.extend(then.map(|content| CopiedVersion {
                at: *kept,
                size: content.len() as u64,
                version: current_from,
                pieces: [(0, Bytes::from(content.clone()))].into(),
            }));
        }
        self.store.base().hold_copied(&blob, &versions, unknown_to).unwrap();
    }

    /// Reads each blob at each kept moment. Of those that came by copy it may be unknown what they
    /// were, and only then.
    fn check(&self, unknown: &dyn Fn(usize, u64) -> bool) {
        for kept in &self.kept {
            let mut there = Vec::new();
            for number in 0..BLOBS {
                let blob = Self::blob(number);
                let expected = self.content(number, kept.clock);
                let whole = place(0).range;
                match self.store.read_chunk_kept(&blob, place(0), whole, *kept) {
                    Ok(found) => {
                        assert_eq!(found.attributes.exists, expected.is_some(), "{blob} at {kept}");
                        let expected = expected.map_or(&[][..], |it| &it[..]);
                        let end = found.bytes.len();
                        assert!(found.bytes == expected[..end], "{blob} at {kept}");
                        assert!(expected[end..].iter().all(|it| *it == 0), "{blob} at {kept}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}");
                        assert!(unknown(number, kept.clock), "{blob} at {kept}: {error}");
                    }
                }
                there.extend(expected.is_some().then_some(blob.key));
            }
            if !(0..BLOBS).any(|number| unknown(number, kept.clock)) {
                let page = self.store.scan_chunks_kept(KEYSPACE, &Scan::new(), *kept, |_| true);
                let keys: Vec<Key> =
                    page.unwrap().entries.into_iter().map(|entry| entry.key).collect();
                assert_eq!(keys, there, "at {kept}");
            }
        }
    }
}

#[test]
fn every_kept_moment_reads_as_it_was_whatever_is_written_folded_copied_and_dropped() {
    for seed in 0..200 {
        let (mut case, mut draws) = (Case::new(), Draws(seed));
        // From where on it is known what a blob was.
        let mut known_from = [0; BLOBS];
        for _ in 0..60 {
            let number = draws.below(BLOBS as u64) as usize;
            match draws.below(15) {
                0..6 => case.change(number, &mut draws),
                6 => case.fold(),
                7 => case.shrink(),
                8 => case.keep(),
                9 if !case.kept.is_empty() => {
                    case.kept.remove(draws.below(case.kept.len() as u64) as usize);
                    case.adopt();
                }
                10 => {
                    let from = if draws.below(3) == 0 { draws.below(case.clock) } else { 0 };
                    known_from[number] = from.max(known_from[number]);
                    case.copy(number, known_from[number]);
                }
                11 if case.fold.is_none() => case.begin_fold(),
                11 | 12 => _ = case.fold_some(),
                13 => {
                    case.restart();
                    case.shrink();
                }
                _ => _ = case.store.base().release_some(2).unwrap(),
            }
            case.check(&|number, kept| kept < known_from[number]);
        }
        case.kept.clear();
        case.adopt();
        while case.store.base().release_some(2).unwrap() {}
        assert!(!case.store.base().holds_any(), "seed {seed}: something is held for nothing");
    }
}

/// A node stops in the middle of a fold: the base has the tombstone of one blob, and memory, which
/// read that again, may forget it. That says nothing of others, which come to memory after it.
#[test]
fn what_memory_forgets_of_one_blob_before_a_fold_has_ended_is_nothing_to_another() {
    let mut case = Case::new();
    let bytes = vec![7; 40];
    let write = || Operation::Write { offset: 0, payload: Payload::Inline(vec![7; 40].into()) };
    let check = |case: &Case| case.check(&|_, _| false);
    case.clock += 1;
    case.apply(1, write(), Some(bytes.clone()));
    case.keep();
    case.clock += 1;
    case.apply(1, Operation::Delete, None);
    case.begin_fold();
    while case.fold_some() {}
    case.restart();
    case.shrink();
    assert!(case.kept[0] < case.store.recent().known_from(), "the deletion is not forgotten");
    check(&case);
    case.shrink();
    case.clock += 1;
    case.apply(0, Operation::Delete, None);
    check(&case);
    case.clock += 1;
    case.apply(2, write(), Some(bytes));
    check(&case);
    case.restart();
    check(&case);
    case.fold();
    check(&case);
    case.shrink();
    check(&case);
}

#[test]
fn what_a_chunk_was_goes_with_it_and_is_listed_while_it_is_here() {
    let (mut case, mut draws) = (Case::new(), Draws(1));
    case.change(0, &mut draws);
    while case.content(0, case.clock).is_none() {
        case.change(0, &mut draws);
    }
    case.keep();
    while case.content(0, case.clock).is_some() {
        case.change(0, &mut draws);
    }
    case.fold();
    let blob = Case::blob(0);
    let chunks = case.store.kept_chunks(KEYSPACE, None, 9).unwrap();
    assert_eq!(chunks, std::slice::from_ref(&blob));
    assert_eq!(stored_name(&blob, 0), blob);
    let written = case.store.chunk_stretches_kept(&blob, place(0), place(0).range, case.kept[0]);
    assert!(!written.unwrap().is_empty());
    case.store.release_chunk(&blob).unwrap();
    assert_eq!(case.store.kept_chunks(KEYSPACE, None, 9).unwrap(), []);
    assert_eq!(case.store.base().kept()[0].bytes, 0);
}

#[test]
fn a_log_that_is_played_again_brings_back_no_moment_that_was_dropped_since() {
    let mut case = Case::new();
    case.clock += 1;
    case.kept.push(at(case.clock));
    let then: BTreeMap<_, _> = [(name(case.clock), case.kept[0])].into();
    case.adopt();
    case.clock += 1;
    case.fold();
    case.store.adopt_kept(&then, Epoch(0)).unwrap();
    case.store.adopt_kept(&BTreeMap::new(), Epoch(0)).unwrap();
    assert!(case.store.base().is_kept(case.kept[0]), "a map of before knows nothing of it");
    case.store.adopt_kept(&BTreeMap::new(), Epoch(1)).unwrap();
    assert!(!case.store.base().is_kept(case.kept[0]));
    case.store.adopt_kept(&then, Epoch(1)).unwrap();
    assert!(!case.store.base().is_kept(case.kept[0]), "the folds have passed it");
}
