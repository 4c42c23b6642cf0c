//! The base against a model: random folds, checkpoints, reopenings, losses of power.

mod damage;
mod kept;
mod keyspaces;
mod metadata;
mod pages;
mod parts;
mod space;

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{Durability, Epoch, ErrorKind, KeyspaceConfig, KeyspaceName, Timestamp, limits};

use super::audit::{Auditor, Finding, Severity};
use super::segments::BLOCK_SIZE;
use super::*;
use crate::disk::simulated::{Fault, FaultyOperation, SimulatedDisk};
use crate::extents::ExtentOptions;
use crate::index::memory::MemoryIndex;

/// Numbers from a seed; each test prints its seed.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn bytes(&mut self, len: u64) -> Vec<u8> {
        let start = self.below(256);
        (0..len).map(|place| (start + place * 7 + place / 251) as u8 | 1).collect()
    }
}

/// The index, shared, so that a test can take its power away.
struct Shared(Arc<MemoryIndex>);

impl Index for Shared {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.get(table, key)
    }
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut crate::index::Visit<'_>,
    ) -> Result<()> {
        self.0.scan(table, from, to, visit)
    }
    fn scan_back(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut crate::index::Visit<'_>,
    ) -> Result<()> {
        self.0.scan_back(table, from, to, visit)
    }
    fn commit(&self, batch: IndexBatch) -> Result<u64> {
        self.0.commit(batch)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
    fn last_batch(&self) -> u64 {
        self.0.last_batch()
    }
    fn close(&self) {
        self.0.close();
    }
    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes()
    }
    fn inspect(&self, table: Table, inspect: &mut crate::index::Inspect<'_>) -> Result<()> {
        self.0.inspect(table, inspect)
    }
    fn verify(&self, found: &mut dyn FnMut(Error)) -> Result<()> {
        self.0.verify(found)
    }
}

/// A base in memory that can lose its power.
struct Fixture {
    disk: Arc<SimulatedDisk>,
    index: Arc<MemoryIndex>,
    extents: Arc<Extents>,
    base: Base,
    keyspace: KeyspaceId,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Auditor for Findings {
    fn found(&mut self, finding: Finding) {
        self.0.push(finding);
    }
    fn progress(&mut self, share: f64) {
        assert!((0.0..=1.0).contains(&share));
    }
}

impl Fixture {
    fn new(is_compressed: bool) -> Self {
        let disk = Arc::new(SimulatedDisk::recorded());
        let mut fixture = Self::open(disk, Arc::new(MemoryIndex::new()));
        let config = KeyspaceConfig { is_compressed, ..Default::default() };
        let name = KeyspaceName::new("test").unwrap();
        fixture.keyspace = fixture.base.create_keyspace(&name, &config).unwrap();
        fixture
    }

    fn open(disk: Arc<SimulatedDisk>, index: Arc<MemoryIndex>) -> Self {
        let options = ExtentOptions { file_len_max: 1 << 20 };
        let extents = Arc::new(Extents::open(disk.clone(), options).unwrap());
        let base = Base::open(Box::new(Shared(index.clone())), extents.clone(), disk.clone());
        let base = base.unwrap();
        Self { disk, index, extents, base, keyspace: KeyspaceId(1) }
    }

    fn reopened(self) -> Self {
        Self::open(self.disk, self.index)
    }

    fn crashed(&self, keep: usize, seed: u64) -> Self {
        Self::open(Arc::new(self.disk.crash(seed)), Arc::new(self.index.crash(keep)))
    }

    fn name(&self, key: &str) -> BlobName {
        BlobName { keyspace: self.keyspace, key: Key::new(key).unwrap() }
    }

    fn read(&self, key: &str, range: ByteRange) -> Vec<u8> {
        let mut out = vec![0xEE; range.len() as usize];
        self.base.read(&self.name(key), range, &mut out).unwrap();
        out
    }

    fn content(&self, key: &str) -> Option<Vec<u8>> {
        let blob = self.base.attributes(&self.name(key)).unwrap()?;
        blob.exists.then(|| self.read(key, ByteRange { start: 0, end: blob.size }))
    }

    fn fold(&self, changes: Vec<BlobChange>) {
        self.base.fold(changes).unwrap();
    }

    fn change(&self, key: &str, clock: u64, size: u64) -> BlobChange {
        BlobChange {
            holes: Vec::new(),
            blob: self.name(key),
            exists: true,
            size,
            version: at(clock),
            folded_at: at(clock),
            cut: None,
            part: None,
            pieces: Vec::new(),
        }
    }

    fn write(&self, key: &str, clock: u64, offset: u64, bytes: &[u8]) {
        let old = self.base.attributes(&self.name(key)).unwrap();
        let size = old.map_or(0, |old| old.size).max(offset + bytes.len() as u64);
        let mut change = self.change(key, clock, size);
        change.pieces.push((offset, PieceData::Bytes(Bytes::copy_from_slice(bytes))));
        self.fold(vec![change]);
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        self.base.audit(&[], &mut findings);
        findings.0
    }

    fn assert_sound(&self) {
        let findings = self.findings();
        let errors: Vec<_> = findings.iter().filter(|finding| is_wrong(finding)).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }

    fn checkpoint(&self, sequence: u64, clock: u64) {
        let checkpoint = Checkpoint { sequence, timestamp: at(clock) };
        self.base.checkpoint(checkpoint, &BTreeSet::new()).unwrap();
        self.base.give_all_back(|| false).unwrap();
    }
}

/// Pages are counted exactly, through every crash: none belongs to nothing.
fn is_wrong(finding: &Finding) -> bool {
    finding.severity == Severity::Error || finding.place.contains("/pages/")
}

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(0), clock, node: 0 }
}

/// One blob's content after each fold, by when that was.
type History = BTreeMap<u64, Option<Vec<u8>>>;

/// A random change of a blob, and what the blob is afterwards.
fn random_change(
    fixture: &Fixture,
    random: &mut Random,
    key: &str,
    clock: u64,
    old: Option<Vec<u8>>,
) -> (BlobChange, Option<Vec<u8>>) {
    let mut change = fixture.change(key, clock, 0);
    if random.one_in(12) {
        change.exists = false;
        return (change, None);
    }
    let mut content = old.unwrap_or_default();
    if random.one_in(4) {
        let cut = random.below(content.len() as u64 + 2) as usize;
        content.truncate(cut);
        change.cut = Some(cut as u64);
    }
    let scale = [40, 900, 5_000, 40_000, 300_000][random.below(5) as usize];
    let mut offset = match random.one_in(2) {
        true => content.len() as u64,
        false => random.below(content.len() as u64 + scale),
    };
    for _ in 0..random.below(4) {
        let len = 1 + random.below(scale);
        let bytes = random.bytes(len);
        let end = (offset + len) as usize;
        content.resize(content.len().max(end), 0);
        if random.one_in(3) {
            content[offset as usize..end].fill(0);
            change.holes.push(ByteRange { start: offset, end: offset + len });
            offset += len + if random.one_in(2) { 0 } else { random.below(scale) };
            continue;
        }
        content[offset as usize..end].copy_from_slice(&bytes);
        let piece = if random.one_in(3) {
            let (before, behind) = (random.below(5000), random.below(5000));
            let payload = [random.bytes(before), bytes, random.bytes(behind)].concat();
            let extent = fixture.extents.write(&payload, random.one_in(2)).unwrap();
            PieceData::Extent { extent, skip: before as u32, len: len as u32 }
        } else {
            PieceData::Bytes(bytes.into())
        };
        change.pieces.push((offset, piece));
        offset += len + if random.one_in(2) { 0 } else { random.below(scale) };
    }
    if random.one_in(3) {
        content.resize(content.len() + random.below(scale) as usize, 0);
    }
    change.size = content.len() as u64;
    change.pieces.reverse();
    change.holes.reverse();
    (change, Some(content))
}

fn run_against_model(seed: u64, is_compressed: bool, rounds: u64) {
    let mut random = Random::new(seed);
    let mut fixture = Fixture::new(is_compressed);
    let keys = ["a", "a\0", "a\0\u{1}", "b", "c", "dd"];
    let mut model: BTreeMap<&str, History> = BTreeMap::new();
    for clock in 1..=rounds {
        let mut changes = Vec::new();
        for key in keys {
            if random.one_in(3) {
                let history = model.entry(key).or_default();
                let old = history.values().next_back().cloned().flatten();
                let (change, new) = random_change(&fixture, &mut random, key, clock, old);
                history.insert(clock, new);
                changes.push(change);
            }
        }
        fixture.fold(changes);
        if random.one_in(5) {
            fixture.checkpoint(clock, clock);
        }
        if random.one_in(9) {
            fixture = fixture.reopened();
            fixture.base.reclaim(&[]).unwrap();
        }
        if random.one_in(9) {
            let keep = random.below(fixture.index.unsynced_batches() as u64 + 1) as usize;
            fixture = fixture.crashed(keep, random.below(1 << 40));
            forget_lost(&fixture, &mut model);
            fixture.base.reclaim(&[]).unwrap();
        }
        compare(&fixture, &mut random, &model);
    }
    fixture.assert_sound();
}

/// What a crash took is gone from the model too; what it left must be a state the blob once had.
fn forget_lost(fixture: &Fixture, model: &mut BTreeMap<&str, History>) {
    for (key, history) in model {
        let found = fixture.base.attributes(&fixture.name(key)).unwrap();
        let last = found.map(|blob| blob.folded_at.clock);
        history.retain(|clock, content| match last {
            Some(last) => *clock <= last,
            // Its tombstone was forgotten, or nothing of it was ever synced.
            None => content.is_none(),
        });
        if let Some(last) = last {
            assert!(history.contains_key(&last), "{key}: there was no fold at {last}");
        }
    }
}

fn compare(fixture: &Fixture, random: &mut Random, model: &BTreeMap<&str, History>) {
    let mut expected_keys = Vec::new();
    for (key, history) in model {
        let expected = history.values().next_back().cloned().flatten();
        let found = fixture.content(key);
        assert!(found == expected, "blob {key:?} differs");
        let Some(content) = expected else { continue };
        expected_keys.push(key.to_string());
        let start = random.below(content.len() as u64 + 1);
        let end = start + random.below(content.len() as u64 + 1 - start);
        let part = fixture.read(key, ByteRange { start, end });
        assert!(part == content[start as usize..end as usize], "{key:?} {start}..{end}");
    }
    let found = fixture.base.scan(fixture.keyspace, b"", None, 100).unwrap();
    let found: Vec<String> = found.iter().map(|(key, _)| key_text(key)).collect();
    assert_eq!(found, expected_keys);
    let totals = fixture.base.totals(fixture.keyspace);
    assert_eq!(totals.blobs, found.len() as u64);
}

fn key_text(key: &Key) -> String {
    String::from_utf8(key.as_bytes().to_vec()).unwrap()
}

#[test]
fn the_base_agrees_with_a_model_through_folds_checkpoints_and_losses_of_power() {
    for seed in 0..12 {
        run_against_model(seed, seed % 2 == 1, 60);
    }
}

#[test]
fn a_small_blob_lies_in_its_entry_and_a_grown_one_does_not() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, b"hello");
    let blob = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
    assert_eq!(blob.content.unwrap(), "hello");
    fixture.write("a", 2, 2000, b"!");
    let blob = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
    assert_eq!((blob.content, blob.size), (None, 2001));
    let content = fixture.content("a").unwrap();
    assert_eq!((&content[..5], content[5], content[2000]), (b"hello".as_slice(), 0, b'!'));
    let mut change = fixture.change("a", 3, 3);
    change.cut = Some(3);
    fixture.fold(vec![change]);
    assert_eq!(fixture.content("a").unwrap(), b"hel");
    fixture.assert_sound();
}

#[test]
fn a_fold_that_shrinks_a_blob_leaves_nothing_to_reappear_when_it_grows() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &[7; 100_000]);
    fixture.fold(vec![fixture.change("a", 2, 50_000)]);
    fixture.fold(vec![fixture.change("a", 3, 100_000)]);
    let content = fixture.content("a").unwrap();
    assert!(content[..50_000].iter().all(|byte| *byte == 7));
    assert!(content[50_000..].iter().all(|byte| *byte == 0));
    fixture.assert_sound();
}

#[test]
fn a_fold_of_what_is_folded_already_changes_nothing() {
    let fixture = Fixture::new(false);
    fixture.write("a", 5, 0, b"new");
    let mut old = fixture.change("a", 5, 3);
    old.pieces.push((0, PieceData::Bytes(Bytes::from_static(b"old"))));
    fixture.fold(vec![old]);
    assert_eq!(fixture.content("a").unwrap(), b"new");
}

#[test]
fn a_blob_that_comes_twice_in_one_fold_gets_both_changes() {
    let fixture = Fixture::new(false);
    let mut changes = vec![fixture.change("a", 1, 2), fixture.change("a", 2, 4)];
    changes[0].pieces.push((0, PieceData::Bytes(Bytes::from_static(b"ab"))));
    changes[1].pieces.push((2, PieceData::Bytes(Bytes::from_static(b"cd"))));
    fixture.fold(changes);
    assert_eq!(fixture.content("a").unwrap(), b"abcd");
}

#[test]
fn pieces_that_overlap_or_leave_their_blob_are_refused() {
    let fixture = Fixture::new(false);
    let bytes = |len| PieceData::Bytes(Bytes::from(vec![1; len]));
    for pieces in [vec![(0, bytes(5)), (4, bytes(1))], vec![(8, bytes(3))]] {
        let mut change = fixture.change("a", 1, 10);
        change.pieces = pieces;
        let error = fixture.base.fold(vec![change]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(fixture.content("a"), None);
}

#[test]
fn a_tombstone_stays_until_the_checkpoint_has_passed_it() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, b"x");
    let mut gone = fixture.change("a", 5, 0);
    gone.exists = false;
    fixture.fold(vec![gone]);
    fixture.checkpoint(1, 4);
    let tombstone = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
    assert_eq!((tombstone.exists, tombstone.folded_at), (false, at(5)));
    assert!(fixture.base.scan(fixture.keyspace, b"", None, 9).unwrap().is_empty());
    fixture.checkpoint(2, 5);
    assert_eq!(fixture.base.attributes(&fixture.name("a")).unwrap(), None);
    fixture.assert_sound();
}

#[test]
fn a_tombstone_that_became_a_blob_again_is_not_forgotten_with_its_grave() {
    let fixture = Fixture::new(false);
    let mut gone = fixture.change("a", 5, 0);
    gone.exists = false;
    fixture.fold(vec![gone]);
    fixture.write("a", 6, 0, b"again");
    fixture.checkpoint(2, 5);
    assert_eq!(fixture.content("a").unwrap(), b"again");
}

#[test]
fn a_scan_pages_through_a_prefix() {
    let fixture = Fixture::new(false);
    for key in ["a", "p", "p1", "p2", "p3", "q"] {
        fixture.write(key, 1, 0, b"x");
    }
    let page = |after: Option<&str>, limit| {
        let after = after.map(str::as_bytes);
        let found = fixture.base.scan(fixture.keyspace, b"p", after, limit).unwrap();
        found.iter().map(|(key, _)| key_text(key)).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), ["p", "p1"]);
    assert_eq!(page(Some("p1"), 2), ["p2", "p3"]);
    assert_eq!(page(Some("a"), 9), ["p", "p1", "p2", "p3"]);
    assert!(page(Some("q"), 9).is_empty());
    assert!(page(None, 0).is_empty());
}

#[test]
fn appends_cost_a_small_multiple_of_what_is_appended() {
    let fixture = Fixture::new(false);
    let mut written = 0;
    for round in 0..64u64 {
        let before = fixture.index.last_batch();
        fixture.write("log", round + 1, 2048 + round * 4096, &[round as u8 + 1; 4096]);
        assert_eq!(fixture.index.last_batch(), before + 1);
        let start = 2048 + round * 4096;
        let blob = fixture.name("log");
        let keys = key::SegmentKeys::new(&blob);
        let mut count = |_, segment: PieceData| {
            written += u64::from(!segment.is_empty());
            Ok(())
        };
        let block = ByteRange { start: start / BLOCK_SIZE * BLOCK_SIZE, end: start + BLOCK_SIZE };
        fixture.base.each_segment(&blob, &keys, block, &mut count).unwrap();
    }
    assert!(written <= 64 * 4, "{written} segments in 64 looks at the last block");
    fixture.assert_sound();
}

#[test]
fn scattered_bytes_in_one_block_do_not_stay_scattered() {
    let fixture = Fixture::new(false);
    for round in 0..200u64 {
        fixture.write("a", round + 1, 20_000 + (round * 37 % 200) * 60, &[1; 8]);
    }
    let mut findings = Findings::default();
    let audited = fixture.base.audit(&[], &mut findings);
    assert!(findings.0.is_empty(), "{:?}", findings.0);
    assert!(audited.segments <= 34, "{} segments in two blocks", audited.segments);
}

#[test]
fn a_run_of_bytes_that_is_long_enough_goes_to_an_extent() {
    let fixture = Fixture::new(false);
    let mut change = fixture.change("a", 1, 64 << 10);
    for block in 0..16u64 {
        let bytes = Bytes::from(vec![block as u8; 4096]);
        change.pieces.push((block * 4096, PieceData::Bytes(bytes)));
    }
    const { assert!(16 * 4096 >= limits::EXTENT_PAYLOAD_MIN) };
    fixture.fold(vec![change]);
    let mut findings = Findings::default();
    let audited = fixture.base.audit(&[], &mut findings);
    assert_eq!((audited.segments, audited.extents), (1, 1));
}
