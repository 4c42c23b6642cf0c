//! Stores written by every release of the format open, with everything in them.
//!
//! `fixtures/format-1-closed` was closed cleanly; `fixtures/format-1-killed` was copied while it
//! was open, so its log has to be replayed. Those of format 3 have kept snapshots, and what else
//! came after the first. To write fixtures of a new format version beside them, add it to
//! `VERSIONS` and run this file with `TYR_WRITE_FIXTURES=1`; old ones stay for ever.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use tyr::blocking::Tyr;
use tyr::{Durability, ErrorKind, KeyspaceConfig, Number, PlacedBy, Transform};

/// The versions of which there are fixtures. `TYR_WRITE_FIXTURES` writes the last.
const VERSIONS: [u32; 2] = [1, 3];

fn fixture(version: u32, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(format!("format-{version}-{name}"))
}

/// Bytes that are the same in every run and compress well.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n / 100 % 251) as u8).collect()
}

/// What was in the base when the fixture was made.
fn write_folded(tyr: &Tyr) {
    let plain = tyr.create_keyspace("plain", KeyspaceConfig::default()).unwrap();
    let packed = KeyspaceConfig {
        is_compressed: true,
        durability: Durability::Buffered,
        chunk_size: 4096,
        ..KeyspaceConfig::default()
    };
    let packed = tyr.create_keyspace("packed", packed).unwrap();
    plain.put("small", "a small blob").unwrap();
    plain.put("blocks", pattern(40_000)).unwrap();
    plain.put("extent", pattern(100_000)).unwrap();
    plain.write("sparse", 1 << 40, "far out").unwrap();
    plain.put("deleted", "gone").unwrap();
    plain.delete("deleted").unwrap();
    packed.put("extent", pattern(200_000)).unwrap();
    packed.apply("counter", 8, Transform::add(Number::I64(-5))).unwrap();
}

/// What came after: in the killed store it is only in the log.
fn write_logged(tyr: &Tyr) {
    let plain = tyr.keyspace("plain").unwrap();
    let mut transaction = tyr.begin();
    transaction.append(&plain, "small", ", appended").unwrap();
    transaction.apply(&plain, "counter", 0, Transform::add(Number::U64(7))).unwrap();
    transaction.write(&plain, "extent", 50_000, pattern(40_000)).unwrap();
    transaction.truncate(&plain, "blocks", 20_000).unwrap();
    transaction.commit().unwrap();
}

/// What only later versions have, and what was folded since it was kept.
fn write_kept(tyr: &Tyr) {
    let placed = KeyspaceConfig {
        placed_by: PlacedBy::UpTo(b'/'),
        is_guarded: true,
        chunk_size: 4096,
        ..KeyspaceConfig::default()
    };
    let placed = tyr.create_keyspace("placed", placed).unwrap();
    placed.put("a/one", pattern(10_000)).unwrap();
    placed.put("a/two", "two").unwrap();
    let mut guarded = tyr.begin();
    guarded.expect_absent(&placed, "b/new").unwrap();
    guarded.put(&placed, "b/new", "new").unwrap();
    guarded.clear(&placed, "a/one", 4096, 4096).unwrap();
    guarded.commit().unwrap();
    tyr.keep("first").unwrap();
    placed.put("a/one", "replaced").unwrap();
    placed.delete("a/two").unwrap();
    tyr.keep("second").unwrap();
    placed.put("b/new", "newer").unwrap();
}

fn verify_kept(tyr: &Tyr) {
    let placed = tyr.keyspace("placed").unwrap();
    assert!(placed.config().is_guarded && placed.config().placed_by == PlacedBy::UpTo(b'/'));
    let mut one = pattern(10_000);
    one[4096..8192].fill(0);
    let first = tyr.kept_snapshot("first").unwrap();
    assert!(first.get(&placed, "a/one").unwrap() == one);
    assert_eq!(first.get(&placed, "a/two").unwrap(), "two");
    let second = tyr.kept_snapshot("second").unwrap();
    assert_eq!(second.get(&placed, "a/one").unwrap(), "replaced");
    assert_eq!(second.get(&placed, "a/two").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(second.get(&placed, "b/new").unwrap(), "new");
    assert_eq!(placed.get("b/new").unwrap(), "newer");
    let names: Vec<String> =
        tyr.kept().unwrap().into_iter().map(|kept| kept.name.to_string()).collect();
    assert_eq!(names, ["first", "second"]);
}

fn verify(tyr: &Tyr) {
    let [plain, packed] = ["plain", "packed"].map(|name| tyr.keyspace(name).unwrap());
    assert_eq!(plain.get("small").unwrap(), "a small blob, appended");
    assert_eq!(plain.get("blocks").unwrap(), pattern(20_000));
    let mut extent = pattern(100_000);
    extent[50_000..90_000].copy_from_slice(&pattern(40_000));
    assert!(plain.get("extent").unwrap() == extent);
    assert_eq!(plain.read("sparse", (1 << 40) - 1, 100).unwrap(), &b"\0far out"[..]);
    assert_eq!(plain.get("deleted").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(plain.get("counter").unwrap(), &7u64.to_le_bytes()[..]);
    assert!(packed.get("extent").unwrap() == pattern(200_000));
    assert_eq!(packed.read("counter", 8, 8).unwrap(), &(-5i64).to_le_bytes()[..]);
    assert_eq!(packed.config().chunk_size, 4096);
    assert!(packed.config().is_compressed);
    let keys = plain.scan(b"", None, 10).unwrap();
    let keys: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["blocks", "counter", "extent", "small", "sparse"]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Copies a fixture, with the empty folders that git does not keep.
fn copy_fixture(from: &Path, to: &Path) {
    copy(from, to);
    for table in fs::read_dir(to.join("index/keyspaces")).unwrap() {
        fs::create_dir_all(table.unwrap().path().join("tables")).unwrap();
    }
}

/// Gives back the space that is reserved, for a full disk and behind the last record: a fixture
/// need not carry it.
fn trim(folder: &Path) {
    fs::remove_file(folder.join("RESERVE")).unwrap();
    for entry in fs::read_dir(folder.join("log")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let bytes = fs::read(&path).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            fs::File::options().write(true).open(&path).unwrap().set_len(used as u64).unwrap();
        }
    }
}

fn write_fixtures() {
    let folder = tempfile::tempdir().unwrap();
    let version = *VERSIONS.last().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    write_folded(&tyr);
    write_kept(&tyr);
    tyr.close().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    write_logged(&tyr);
    let killed = fixture(version, "killed");
    copy(folder.path(), &killed);
    trim(&killed);
    tyr.close().unwrap();
    let closed = fixture(version, "closed");
    copy(folder.path(), &closed);
    trim(&closed);
}

#[test]
fn stores_of_every_released_format_open_with_everything_in_them() {
    if std::env::var_os("TYR_WRITE_FIXTURES").is_some() {
        write_fixtures();
    }
    for version in VERSIONS {
        for name in ["closed", "killed"] {
            let folder = tempfile::tempdir().unwrap();
            copy_fixture(&fixture(version, name), folder.path());
            let tyr = Tyr::open(folder.path()).unwrap();
            verify(&tyr);
            if version >= 3 {
                verify_kept(&tyr);
            }
            let report = tyr.check(&mut |_| {}).unwrap();
            assert!(report.is_sound(), "format {version} {name}: {:?}", report.findings);
            tyr.close().unwrap();
            let tyr = Tyr::open(folder.path()).unwrap();
            verify(&tyr);
            if version >= 3 {
                verify_kept(&tyr);
            }
        }
    }
}
