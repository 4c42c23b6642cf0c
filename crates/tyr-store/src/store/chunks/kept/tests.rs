//! Chunks at kept moments against a model of whole contents: written, deleted, folded, forgotten,
//! copied from elsewhere, let go of; after each step each kept moment reads as it was (V7).

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::chunk::Start;
use tyr_types::{KeyspaceConfig, KeyspaceName, Operation, Payload};

use super::*;
use crate::base::CopiedVersion;
use crate::disk::simulated::SimulatedDisk;
use crate::extents::ExtentOptions;
use crate::index::memory::MemoryIndex;
use crate::log::LogOptions;
use crate::recent::Readers;
use crate::recent::chunk::Installed;
use crate::store::Parts;
use crate::store::chunks::stored_name;

const KEYSPACE: KeyspaceId = KeyspaceId(1);
const SIZE: u64 = 64 << 10;
const BLOBS: usize = 3;

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
    store: Arc<Store>,
    kept: Vec<Timestamp>,
    blobs: [History; BLOBS],
    clock: u64,
}

impl Case {
    fn new() -> Self {
        let parts = Parts {
            disk: Arc::new(SimulatedDisk::new()),
            index: Box::new(MemoryIndex::default()),
            log: LogOptions::default(),
            extents: ExtentOptions::default(),
            is_read_only: false,
        };
        let store = Store::assemble_node(parts, &mut |_, _, _| Ok(())).unwrap().store;
        let config = KeyspaceConfig { chunk_size: SIZE, ..KeyspaceConfig::default() };
        store.adopt_keyspace(KEYSPACE, &KeyspaceName::new("k").unwrap(), &config).unwrap();
        Self { store, kept: Vec::new(), blobs: Default::default(), clock: 10 }
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
            0 => {
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
        let cell = self.store.chunk(&Self::blob(number)).unwrap();
        let kept = self.unfolded();
        let readers = Readers::NONE.and_kept(&kept);
        let (operations, start) = (std::slice::from_ref(&operation), Start::Guessed(0));
        self.store
            .apply_chunk(&cell, place(0), operations, start, at(self.clock), readers)
            .unwrap();
        self.blobs[number].insert(self.clock, content);
    }

    fn fold(&mut self) {
        let stops = self.unfolded();
        let mut fold = self.store.begin_fold(at(self.clock), self.store.take_dead());
        fold.stop_at(&stops);
        while self.store.fold_some(&mut fold, |_| true).unwrap() {}
        self.store.end_fold(fold, 0).unwrap();
    }

    /// The chunk goes, and comes as another node has it, with what that knows of kept moments from
    /// this one on.
    fn copy(&mut self, number: usize, known_from: u64) {
        let blob = Self::blob(number);
        self.store.release_chunk(&blob).unwrap();
        self.clock += 1;
        let version_at = |when: u64| {
            let last = self.blobs[number].range(..=when).next_back();
            last.map_or(Timestamp::ZERO, |(version, _)| at(*version))
        };
        let content = self.content(number, self.clock).cloned();
        let pieces: Vec<_> = content.iter().map(|it| (0, Bytes::from(it.clone()))).collect();
        let (version, size) = (version_at(self.clock), content.map(|it| it.len() as u64));
        let copy = Installed {
            at: at(self.clock),
            version,
            pieces: &pieces,
            size: Some(size),
            size_version: version,
        };
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
            current_from = version_at(kept.clock);
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
    for seed in 0..60 {
        let (mut case, mut draws) = (Case::new(), Draws(seed));
        // From where on it is known what a blob was.
        let mut known_from = [0; BLOBS];
        for _ in 0..60 {
            let number = draws.below(BLOBS as u64) as usize;
            match draws.below(12) {
                0..6 => case.change(number, &mut draws),
                6 => case.fold(),
                7 => (0..3).for_each(|_| case.store.recent().shrink(0)),
                8 => {
                    case.clock += 1;
                    case.kept.push(at(case.clock));
                    case.adopt();
                }
                9 if !case.kept.is_empty() => {
                    case.kept.remove(draws.below(case.kept.len() as u64) as usize);
                    case.adopt();
                }
                10 => {
                    let from = if draws.below(3) == 0 { draws.below(case.clock) } else { 0 };
                    known_from[number] = from.max(known_from[number]);
                    case.copy(number, known_from[number]);
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

#[test]
fn what_a_chunk_was_goes_with_it_and_is_listed_while_it_is_here() {
    let (mut case, mut draws) = (Case::new(), Draws(1));
    case.change(0, &mut draws);
    while case.content(0, case.clock).is_none() {
        case.change(0, &mut draws);
    }
    case.clock += 1;
    case.kept.push(at(case.clock));
    case.adopt();
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
