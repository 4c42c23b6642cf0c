//! Damage of every kind in every file: errors or the right bytes, never wrong ones, never a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tyr_types::{
    BlobName, ByteRange, Bytes, Epoch, Key, KeyspaceConfig, KeyspaceId, KeyspaceName, Timestamp,
};

use super::*;
use crate::base::{BlobChange, Checkpoint, PieceData};
use crate::disk::RealDisk;

const KEYSPACE: KeyspaceId = KeyspaceId(1);

/// A store's content.
type Content = BTreeMap<String, Vec<u8>>;

/// An open base on a real folder.
struct Opened {
    base: Base,
    extents: Arc<Extents>,
    disk: Arc<RealDisk>,
}

fn open(path: &Path) -> Result<Opened> {
    let disk = Arc::new(RealDisk::create(path)?);
    let index = Box::new(FjallIndex::open(&path.join("index"), synced_batch(&*disk)?)?);
    open_on(disk, index)
}

fn open_on(disk: Arc<RealDisk>, index: Box<FjallIndex>) -> Result<Opened> {
    let extents = Arc::new(Extents::open(disk.clone(), ExtentOptions::default())?);
    let base = Base::open(index, Arc::clone(&extents), disk.clone())?;
    Ok(Opened { base, extents, disk })
}

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(0), clock, node: 0 }
}

fn name(key: &str) -> BlobName {
    BlobName { keyspace: KEYSPACE, key: Key::new(key).unwrap() }
}

impl Opened {
    fn write(&self, clock: u64, content: &mut Content, key: &str, offset: usize, bytes: Vec<u8>) {
        let blob = content.entry(key.to_owned()).or_default();
        blob.resize(blob.len().max(offset + bytes.len()), 0);
        blob[offset..offset + bytes.len()].copy_from_slice(&bytes);
        let change = BlobChange {
            holes: Vec::new(),
            blob: name(key),
            exists: true,
            size: blob.len() as u64,
            version: at(clock),
            folded_at: at(clock),
            cut: None,
            part: None,
            pieces: vec![(offset as u64, PieceData::Bytes(Bytes::from(bytes)))],
        };
        self.base.fold(vec![change]).unwrap();
    }

    fn checkpoint(&self, clock: u64) {
        let checkpoint = Checkpoint { sequence: 0, timestamp: at(clock) };
        self.base.checkpoint(checkpoint, &BTreeSet::new()).unwrap();
    }

    /// Whether everything that can be read is right; whatever cannot be read is an error.
    fn compare(&self, content: &Content) -> Result<()> {
        let mut result = Ok(());
        for (key, expected) in content {
            match self.read(key) {
                Ok(found) => assert!(found.as_ref() == Some(expected), "blob {key} is wrong"),
                Err(error) => result = Err(error),
            }
        }
        match self.base.scan(KEYSPACE, b"", None, 10_000) {
            Ok(found) => assert_eq!(found.len(), content.len(), "the scan is wrong"),
            Err(error) => result = Err(error),
        }
        result
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let Some(blob) = self.base.attributes(&name(key))? else { return Ok(None) };
        let mut out = vec![0; blob.size as usize];
        self.base.read(&name(key), ByteRange { start: 0, end: blob.size }, &mut out)?;
        Ok(Some(out))
    }
}

/// A store with tables of two generations, a journal behind them, and extents.
fn make_store(path: &Path) -> Content {
    let mut content = Content::new();
    let disk = Arc::new(RealDisk::create(path).unwrap());
    let open_index = || {
        let synced = synced_batch(&*disk).unwrap();
        Box::new(FjallIndex::open(&path.join("index"), synced).unwrap())
    };
    for generation in 0..3u64 {
        let index = open_index();
        if generation > 0 {
            index.write_out();
        }
        let store = open_on(disk.clone(), index).unwrap();
        if generation == 0 {
            let name = KeyspaceName::new("test").unwrap();
            store.base.create_keyspace(&name, &KeyspaceConfig::default()).unwrap();
        }
        for number in 0..60u64 {
            let clock = 1 + generation * 1000 + number;
            let key = format!("blob-{:03}", number + generation * 20);
            let len = [60, 700, 3_000, 20_000, 50_000][(number % 5) as usize];
            let bytes = (0..len).map(|place| (place as u64 * 31 + clock) as u8).collect();
            store.write(clock, &mut content, &key, (number * generation % 90) as usize, bytes);
        }
        store.checkpoint(generation * 1000 + 999);
    }
    // All of it is in the base, and the log was closed.
    let start = log::Start { sequence: 0, is_used: false };
    let replayed = log::replay(&*disk, start, ReplayMode::Cut, &mut |_, _, _| Ok(())).unwrap();
    log::Log::open(disk, log::LogOptions::default(), &replayed).unwrap().seal().unwrap();
    content
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(usize),
    Zero(usize),
    Truncate(usize),
    Remove,
}

/// Damages a file; answers whether that made a difference.
fn damage(file: &Path, damage: Damage) -> bool {
    let before = fs::read(file).unwrap();
    let mut bytes = before.clone();
    match damage {
        Damage::Flip(at) => bytes[at] ^= 1 << (at % 8),
        Damage::Zero(at) => bytes.iter_mut().skip(at).take(64).for_each(|byte| *byte = 0),
        Damage::Truncate(len) => bytes.truncate(len),
        Damage::Remove => {
            fs::remove_file(file).unwrap();
            return true;
        }
    }
    fs::write(file, &bytes).unwrap();
    bytes != before
}

/// What became of damage.
#[derive(Debug, Default)]
struct Tally {
    /// The store did not open.
    refused: u32,
    /// Some blob could not be read.
    noticed: u32,
    /// All could be read, and the check found it.
    found: u32,
    /// It was in bytes that nothing needs: space given back, a manifest that has a successor.
    harmless: u32,
}

fn try_damage(store: &Path, content: &Content, file: &Path, kind: Damage, tally: &mut Tally) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(store, &path);
    if !damage(&path.join(file), kind) {
        return;
    }
    let outcome = open(&path).map(|opened| (opened.compare(content), opened));
    let (result, opened) = match outcome {
        Err(_) => {
            tally.refused += 1;
            let disk = Arc::new(RealDisk::existing(&path).unwrap());
            let report = run_closed(
                disk,
                |synced| FjallIndex::open(&path.join("index"), synced),
                &mut |_| {},
            )
            .unwrap();
            assert!(!report.is_sound(), "{} {kind:?}", file.display());
            return;
        }
        Ok(found) => found,
    };
    let report = run(&*opened.disk, &opened.extents, &opened.base, &mut |_| {}).unwrap();
    if result.is_ok() {
        if report.is_sound() {
            tally.harmless += 1;
        } else {
            tally.found += 1;
        }
    } else {
        tally.noticed += 1;
        assert!(!report.is_sound(), "{} {kind:?}: the check finds nothing", file.display());
    }
}

/// Seeded places in a file, more of them where it begins and ends.
fn places(len: usize, count: usize, seed: u64) -> Vec<usize> {
    if len == 0 {
        return Vec::new();
    }
    let mut state = seed;
    let mut places = vec![0, len - 1, len / 2];
    for _ in 0..count {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let place = (state >> 33) as usize;
        places.push(match state % 4 {
            0 => place % len.min(64),
            1 => len - 1 - place % len.min(128),
            _ => place % len,
        });
    }
    places
}

#[test]
fn a_sound_store_has_no_finding_and_is_counted_right() {
    let folder = tempfile::tempdir().unwrap();
    let content = make_store(folder.path());
    let store = open(folder.path()).unwrap();
    store.compare(&content).unwrap();
    let mut shares = Vec::new();
    let mut progress = |share| shares.push(share);
    let report = run(&*store.disk, &store.extents, &store.base, &mut progress).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.blobs, content.len() as u64);
    assert_eq!(report.bytes, content.values().map(|blob| blob.len() as u64).sum::<u64>());
    assert!(report.segments > 0 && report.extents > 0);
    assert!(shares.is_sorted() && shares.last() == Some(&1.0));
}

#[test]
fn damage_anywhere_gives_errors_or_the_right_bytes_never_wrong_ones() {
    let seed = 42;
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let content = make_store(folder.path());
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (number, file) in files(folder.path()).into_iter().enumerate() {
        if file.file_name().is_some_and(|name| name == "lock" || name == "LOCK") {
            continue;
        }
        let len = fs::metadata(folder.path().join(&file)).unwrap().len() as usize;
        let kind = file.with_file_name(file.extension().unwrap_or_default());
        let kind = kind.to_string_lossy().replace(char::is_numeric, "");
        let tally = tallies.entry(kind).or_default();
        let mut attempt = |kind| {
            println!("{} {kind:?}", file.display());
            try_damage(folder.path(), &content, &file, kind, tally);
        };
        for (place, at) in
            places(len, tyr_chance::part(12), seed + number as u64).into_iter().enumerate()
        {
            match place % 3 {
                0 => attempt(Damage::Zero(at)),
                1 => attempt(Damage::Flip(at)),
                _ => attempt(Damage::Truncate(at)),
            }
        }
        attempt(Damage::Remove);
    }
    println!("{tallies:#?}");
    assert_eq!(tallies["index/keyspaces//tables/"].harmless, 0, "every byte of a table counts");
    let refused: u32 = tallies.values().map(|tally| tally.refused).sum();
    let noticed: u32 = tallies.values().map(|tally| tally.noticed).sum();
    assert!(
        refused > tyr_chance::part(50) && noticed > tyr_chance::part(20),
        "too little of the damage did anything"
    );
}
