//! One suite for every implementation of [`Disk`], and the lock of the real one.

use std::io::ErrorKind;

use tyr_types::ErrorKind as Kind;

use super::*;

/// Runs `check` on every implementation.
fn on_every_disk(check: impl Fn(&dyn Disk)) {
    let folder = tempfile::tempdir().unwrap();
    check(&RealDisk::create(folder.path().join("store")).unwrap());
    check(&SimulatedDisk::new());
}

fn read(file: &dyn DiskFile, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xAA; len];
    let count = file.read_at(&mut buf, offset).unwrap();
    buf.truncate(count);
    buf
}

#[test]
fn written_bytes_read_back_and_gaps_are_zeros() {
    on_every_disk(|disk| {
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(b"xyz", 5).unwrap();
        assert_eq!(read(&*file, 0, 100), b"\0\0\0\0\0xyz");
        assert_eq!(read(&*file, 6, 1), b"y");
        assert_eq!(read(&*file, 8, 1), b"");
        assert_eq!(read(&*file, 800, 1), b"");
        assert_eq!(file.len().unwrap(), 8);
    });
}

#[test]
fn open_modes_do_what_they_say() {
    on_every_disk(|disk| {
        let kind = |mode| disk.open("a", mode).err().map(|error| error.kind());
        assert_eq!(kind(OpenMode::Existing), Some(ErrorKind::NotFound));
        assert_eq!(kind(OpenMode::CreateNew), None);
        assert_eq!(kind(OpenMode::CreateNew), Some(ErrorKind::AlreadyExists));
        disk.open("a", OpenMode::Existing).unwrap().write_at(b"x", 0).unwrap();
        assert_eq!(read(&*disk.open("a", OpenMode::CreateOrOpen).unwrap(), 0, 9), b"x");
        assert!(disk.open("no/folder", OpenMode::CreateNew).is_err());
    });
}

#[test]
fn a_file_is_written_directly_in_aligned_pieces_and_read_by_the_same_name() {
    on_every_disk(|disk| {
        assert!(disk.open("a", OpenMode::Direct).is_err(), "it is made otherwise");
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(&[1; DIRECT_ALIGNMENT], 0).unwrap();
        let direct = disk.open("a", OpenMode::Direct).unwrap();
        let buffer = vec![2; 3 * DIRECT_ALIGNMENT];
        let from = buffer.as_ptr().align_offset(DIRECT_ALIGNMENT);
        let piece = &buffer[from..from + 2 * DIRECT_ALIGNMENT];
        direct.write_at(piece, DIRECT_ALIGNMENT as u64).unwrap();
        file.sync().unwrap();
        let whole = read(&*file, 0, 9 * DIRECT_ALIGNMENT);
        assert_eq!(whole.len(), 3 * DIRECT_ALIGNMENT);
        assert_eq!(whole[..DIRECT_ALIGNMENT], [1; DIRECT_ALIGNMENT]);
        assert_eq!(whole[DIRECT_ALIGNMENT..], *piece);
    });
}

#[test]
fn names_are_listed_renamed_and_removed() {
    on_every_disk(|disk| {
        disk.create_folder("f/g").unwrap();
        disk.create_folder("f").unwrap();
        for name in ["f/b", "f/a", "top"] {
            disk.open(name, OpenMode::CreateNew).unwrap();
        }
        assert_eq!(disk.list("f").unwrap(), ["a", "b", "g"]);
        assert_eq!(disk.list("").unwrap(), ["f", "top"]);
        disk.rename("f/a", "f/b").unwrap();
        assert_eq!(disk.list("f").unwrap(), ["b", "g"]);
        disk.sync_folder("f").unwrap();
        disk.remove("f/b").unwrap();
        assert_eq!(disk.remove("f/b").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.list("none").unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_removed_file_stays_readable_for_those_who_have_it_open() {
    on_every_disk(|disk| {
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(b"x", 0).unwrap();
        disk.remove("a").unwrap();
        assert_eq!(read(&*file, 0, 9), b"x");
    });
}

#[test]
fn reserved_space_reads_as_zeros_and_keeps_what_was_written() {
    on_every_disk(|disk| {
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(b"x", 0).unwrap();
        file.allocate(0, 65_536).unwrap();
        assert_eq!(file.len().unwrap(), 65_536);
        assert_eq!(file.disk_bytes().unwrap(), 65_536);
        assert_eq!(read(&*file, 0, 2), b"x\0");
        file.set_len(1).unwrap();
        assert_eq!(read(&*file, 0, 2), b"x");
    });
}

#[test]
fn a_punched_range_reads_as_zeros_takes_no_space_and_leaves_its_neighbours() {
    on_every_disk(|disk| {
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(&[9; 16_384], 0).unwrap();
        file.sync().unwrap();
        file.punch(4096, 8192).unwrap();
        assert_eq!(file.len().unwrap(), 16_384);
        assert_eq!(file.disk_bytes().unwrap(), 8192);
        assert_eq!(read(&*file, 4095, 2), [9, 0]);
        assert_eq!(read(&*file, 12_287, 2), [0, 9]);
    });
}

#[test]
fn the_second_opener_is_refused_by_name_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let disk = RealDisk::create(folder.path()).unwrap();
    let lock = disk.lock().unwrap();
    let error = RealDisk::existing(folder.path()).unwrap().lock().err().unwrap();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(error.message().contains(&disk.describe()), "{error}");
    drop(lock);
    disk.lock().unwrap();
}

#[test]
fn a_lock_ends_although_a_process_that_just_starts_has_a_copy_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let disk = RealDisk::create(folder.path()).unwrap();
    let lock = disk.lock().unwrap();
    // What a fork has until it runs its program.
    let _copy = lock.file.try_clone().unwrap();
    drop(lock);
    disk.lock().unwrap();
}
