//! A real disk that is full, if the machine lets the test make one: a small file system in memory.
//!
//! That takes the right to mount. Without it the test says so and ends; the simulated disk of
//! `tyr-embedded` fills up in any case.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Durability, Error, ErrorKind, KeyspaceConfig};

const MIB: usize = 1 << 20;

/// A file system of its own.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(mib: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self { folder }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).into_owned();
                println!("skipped: this process may not mount a small disk: {why}");
                None
            }
            Err(error) => {
                println!("skipped: there is no program to mount a small disk: {error}");
                None
            }
        }
    }

    fn free_mib(&self) -> u64 {
        let df = Command::new("df").args(["-m", "--output=avail"]).arg(self.folder.path()).output();
        let text = String::from_utf8(df.unwrap().stdout).unwrap();
        text.split_whitespace().last().unwrap().parse().unwrap()
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, should a failed test have left files open.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
    }
}

fn keyspace(tyr: &Tyr, name: &str, durability: Durability) -> Keyspace {
    let config = KeyspaceConfig { durability, ..KeyspaceConfig::default() };
    tyr.create_keyspace(name, config).unwrap()
}

fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + number) as u8).collect()
}

/// Puts blobs until the disk is full; answers how many there are then.
fn fill(keyspace: &Keyspace, first: usize, len: usize) -> usize {
    for number in first.. {
        if let Err(error) = keyspace.put(number.to_string(), content(number, len)) {
            is_full(&error);
            let absent = keyspace.stat(number.to_string()).unwrap_err();
            assert_eq!(absent.kind(), ErrorKind::NotFound, "what was refused is not there");
            return number;
        }
    }
    unreachable!("a disk ends some time")
}

fn is_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("disk full"), "{error}");
}

fn verify(keyspace: &Keyspace, numbers: impl Iterator<Item = usize>, len: usize) {
    for number in numbers {
        assert!(keyspace.get(number.to_string()).unwrap() == content(number, len), "{number}");
    }
}

/// Takes all the space that is left, from outside.
fn fill_from_outside(path: &Path) {
    let mut file = File::create(path).unwrap();
    for piece in [MIB, 4096, 1] {
        while file.write(&vec![1; piece]).is_ok_and(|count| count == piece) {}
    }
}

#[test]
fn a_full_disk_is_made_room_on_by_deleting() {
    let Some(disk) = SmallDisk::mount(400) else { return };
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = keyspace(&tyr, "blobs", Durability::Sync);
    let count = fill(&blobs, 0, MIB);
    assert!(count > 150, "only {count} MiB found room");
    blobs.put("small", "still fits the log").unwrap();
    verify(&blobs, 0..count, MIB);
    for number in 0..count / 2 {
        assert!(blobs.delete(number.to_string()).unwrap());
    }
    // A check folds, and with that lets go of what was deleted.
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
    let again = fill(&blobs, count, MIB);
    assert!(again - count > count / 3, "only {} MiB of {} came back", again - count, count / 2);
    verify(&blobs, count / 2..again, MIB);
    tyr.close().unwrap();
    let tyr = Tyr::open(disk.store()).unwrap();
    verify(&tyr.keyspace("blobs").unwrap(), count / 2..again, MIB);
    tyr.close().unwrap();
    assert!(tyr::check(disk.store(), &mut |_| {}).unwrap().is_sound());
}

#[test]
fn what_makes_room_goes_through_on_a_disk_that_others_have_filled() {
    let Some(disk) = SmallDisk::mount(400) else { return };
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = keyspace(&tyr, "blobs", Durability::Sync);
    keyspace(&tyr, "dropped", Durability::Sync).put("0", content(0, MIB)).unwrap();
    for number in 0..60 {
        blobs.put(number.to_string(), content(number, MIB)).unwrap();
    }
    tyr.close().unwrap();
    let filler = disk.folder.path().join("filler");
    fill_from_outside(&filler);
    let file = File::options().write(true).open(&filler).unwrap();
    file.set_len(file.metadata().unwrap().len() - 20 * MIB as u64).unwrap();
    // Each opening begins a segment of the log: more than there is room for.
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = tyr.keyspace("blobs").unwrap();
    is_full(&blobs.put("more", "x").unwrap_err());
    assert!(blobs.delete("0").unwrap());
    blobs.truncate("1", 10).unwrap();
    let mut transaction = tyr.begin();
    for number in 2..50 {
        transaction.delete(&blobs, number.to_string()).unwrap();
    }
    transaction.commit().unwrap();
    tyr.drop_keyspace("dropped").unwrap();
    tyr.close().unwrap();
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = tyr.keyspace("blobs").unwrap();
    assert_eq!(blobs.get("1").unwrap(), content(1, 10));
    assert_eq!(blobs.get("0").unwrap_err().kind(), ErrorKind::NotFound);
    // The room that was made is there for what needs some.
    assert!(disk.free_mib() > 60, "{} MiB are free", disk.free_mib());
    verify(&blobs, 50..60, MIB);
    tyr.close().unwrap();
    assert!(tyr::check(disk.store(), &mut |_| {}).unwrap().is_sound());
}

/// What is kept aside for that is enough, also where there are many blobs to let go of.
#[test]
fn what_makes_room_goes_through_where_others_have_left_none() {
    const LEN: usize = 100 << 10;
    let Some(disk) = SmallDisk::mount(600) else { return };
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = keyspace(&tyr, "blobs", Durability::Buffered);
    let count = 1_500;
    (0..count).for_each(|number| blobs.put(number.to_string(), content(number, LEN)).unwrap());
    tyr.close().unwrap();
    let filler = disk.folder.path().join("filler");
    fill_from_outside(&filler);
    assert_eq!(disk.free_mib(), 0);
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = tyr.keyspace("blobs").unwrap();
    is_full(&blobs.put("more", vec![0; MIB]).unwrap_err());
    for number in 0..count - 100 {
        assert!(blobs.delete(number.to_string()).unwrap(), "{number}");
    }
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
    assert!(disk.free_mib() > 100, "{} MiB are free", disk.free_mib());
    tyr.close().unwrap();
    let tyr = Tyr::open(disk.store()).unwrap();
    verify(&tyr.keyspace("blobs").unwrap(), count - 100..count, LEN);
    tyr.close().unwrap();
    assert!(tyr::check(disk.store(), &mut |_| {}).unwrap().is_sound());
}

#[test]
fn a_disk_that_others_fill_stops_writers_until_there_is_room() {
    const LEN: usize = 16 << 10;
    let Some(disk) = SmallDisk::mount(400) else { return };
    let tyr = Tyr::open(disk.store()).unwrap();
    let blobs = keyspace(&tyr, "blobs", Durability::Buffered);
    blobs.put("first", "makes the log").unwrap();
    let filler = disk.folder.path().join("filler");
    fill_from_outside(&filler);
    // What is by value goes to the log, until the log needs a new segment.
    let count = fill(&blobs, 0, LEN);
    assert!(count > 1000, "only {count} records found room");
    is_full(&tyr.check(&mut |_| {}).unwrap_err());
    verify(&blobs, 0..count, LEN);
    std::fs::remove_file(&filler).unwrap();
    // The same store goes on, index and fold included.
    for number in count..count + 100 {
        blobs.put(number.to_string(), content(number, LEN)).unwrap();
    }
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
    verify(&blobs, 0..count + 100, LEN);
    tyr.close().unwrap();
    let tyr = Tyr::open(disk.store()).unwrap();
    verify(&tyr.keyspace("blobs").unwrap(), 0..count + 100, LEN);
}
