//! A log that has lost a part after a kill is damaged, however busy the store was: how far it was
//! durable stands beside it, at most 100 ms late.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tyr::{Durability, ErrorKind};

use super::Run;
use super::setup::{self, Setup};

/// How long the child writes: half of its log is older than a mark may be late, by far.
const WRITING: Duration = Duration::from_secs(2);

/// Acknowledged transactions, at least.
const COMMITS: u64 = 300;

/// What becomes of a segment, of which so many bytes are in use.
type Harm = fn(&Path, usize);

const HARMS: [(&str, Harm); 4] = [
    ("cut to half", |path, len| cut(path, len / 2)),
    ("emptied", |path, _| cut(path, 0)),
    ("removed", |path, _| fs::remove_file(path).unwrap()),
    ("flipped in the middle", |path, len| {
        let mut bytes = fs::read(path).unwrap();
        bytes[len / 2] ^= 1;
        fs::write(path, bytes).unwrap();
    }),
];

#[test]
fn a_log_that_lost_a_part_after_a_kill_is_damaged() {
    let sync = Setup {
        durability: Durability::Sync,
        is_compressed: false,
        is_versioned: false,
        is_folding: false,
    };
    let mut run = Run::new(sync, 3);
    let begun = Instant::now();
    run.run_child(|seen| seen > COMMITS && begun.elapsed() >= WRITING, 0);
    let killed = run.folder.path();
    assert!(tyr::check(killed, &mut |_| {}).unwrap().is_sound());
    let (segment, len) = fullest_segment(killed);
    for (what, harm) in HARMS {
        let damaged = tempfile::tempdir().unwrap();
        copy(killed, damaged.path());
        harm(&damaged.path().join("log").join(&segment), len);
        let report = tyr::check(damaged.path(), &mut |_| {}).unwrap();
        assert!(!report.is_sound(), "{what}: {:?}", report.findings);
        let error = setup::options().open_blocking(damaged.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(error.message().contains("/log"), "{what}: {error}");
    }
}

/// The segment that most is written to, and how much.
fn fullest_segment(store: &Path) -> (PathBuf, usize) {
    let names = fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().file_name());
    let segments = names.filter(|name| name.to_str().unwrap().ends_with(".log"));
    let used = |name: &PathBuf| {
        let bytes = fs::read(store.join("log").join(name)).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    };
    segments
        .map(PathBuf::from)
        .map(|name| (name.clone(), used(&name)))
        .max_by_key(|it| it.1)
        .unwrap()
}

fn cut(path: &Path, len: usize) {
    fs::File::options().write(true).open(path).unwrap().set_len(len as u64).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (entry, path) = entry.map(|it| (it.path(), to.join(it.file_name()))).unwrap();
        if entry.is_dir() {
            fs::create_dir(&path).unwrap();
            copy(&entry, &path);
        } else {
            fs::copy(&entry, &path).unwrap();
        }
    }
}
