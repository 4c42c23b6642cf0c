//! Real calls of the kernel, on a mounted file system.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod flat;
mod known;
mod moments;
mod snapshots;
mod stale;
mod two;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with, seek};
use tyr::blocking::Tyr;
use tyr::{Durability, KeyspaceConfig};
use tyr_fs::blocking::FileSystem;
use tyr_fs::{MountOptions, Options, mount};

/// Runs `test` with a mounted file system, where the kernel asks each time and where it keeps what
/// it knows, and checks afterwards that everything fits together.
fn with_mount(test: impl Fn(&Path)) {
    for is_alone in [false, true] {
        with_mount_that(is_alone, &test);
    }
}

fn with_mount_that(is_alone: bool, test: impl FnOnce(&Path)) {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let keyspace_config =
        KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    let options = Options { keyspace_config, segment_bits: 20, ..Options::default() };
    let files = FileSystem::create(&store, "test", &options).unwrap();
    let mount_options = MountOptions { is_alone, ..MountOptions::default() };
    let mounted = mount(&files, at.path(), &mount_options).unwrap();
    test(at.path());
    mounted.unmount().unwrap();
    let report = files.check(&mut |_| true).unwrap();
    assert_eq!((report.findings, report.orphans), (vec![], 0));
}

#[test]
fn programs_make_rename_link_and_remove_files() {
    with_mount(|at| {
        fs::create_dir_all(at.join("a/b/c")).unwrap();
        fs::write(at.join("a/file"), "content").unwrap();
        fs::rename(at.join("a/file"), at.join("a/b/moved")).unwrap();
        fs::hard_link(at.join("a/b/moved"), at.join("link")).unwrap();
        assert_eq!(fs::metadata(at.join("link")).unwrap().nlink(), 2);
        let [one, two] = ["link", "a/b/moved"].map(|it| fs::metadata(at.join(it)).unwrap().ino());
        assert_eq!(one, two);
        fs::rename(at.join("a"), at.join("renamed")).unwrap();
        assert_eq!(fs::read_to_string(at.join("renamed/b/moved")).unwrap(), "content");
        let loops = fs::rename(at.join("renamed"), at.join("renamed/b/x")).unwrap_err();
        assert_eq!(loops.kind(), ErrorKind::InvalidInput);
        let full = fs::remove_dir(at.join("renamed")).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::DirectoryNotEmpty);
        let exists = OpenOptions::new().write(true).create_new(true).open(at.join("link"));
        assert_eq!(exists.unwrap_err().kind(), ErrorKind::AlreadyExists);
        symlink("renamed/b/moved", at.join("symlink")).unwrap();
        assert_eq!(fs::read_to_string(at.join("symlink")).unwrap(), "content");
        fs::set_permissions(at.join("link"), PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(fs::metadata(at.join("symlink")).unwrap().mode() & 0o7777, 0o600);
        let (one, other) = (at.join("link"), at.join("renamed"));
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        assert!(one.is_dir() && other.is_file());
        let kept = renameat_with(CWD, &one, CWD, &other, RenameFlags::NOREPLACE);
        assert_eq!(kept, Err(rustix::io::Errno::EXIST));
        let names: Vec<_> = fs::read_dir(at).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        fs::remove_dir_all(&one).unwrap();
        fs::remove_file(&other).unwrap();
    });
}

#[test]
fn a_reader_sees_the_one_tree_or_the_other_while_they_are_swapped() {
    with_mount(|at| {
        for tree in ["site", "site.new"] {
            fs::create_dir(at.join(tree)).unwrap();
            fs::write(at.join(tree).join("page"), tree).unwrap();
        }
        std::thread::scope(|scope| {
            let swaps = scope.spawn(|| {
                for _ in 0..50 {
                    let (one, other) = (at.join("site"), at.join("site.new"));
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            while !swaps.is_finished() {
                // There is always one, and it is whole.
                let page = fs::read_to_string(at.join("site/page")).unwrap();
                assert!(["site", "site.new"].contains(&page.as_str()), "{page}");
            }
            swaps.join().unwrap();
        });
        assert_eq!(fs::read_to_string(at.join("site/page")).unwrap(), "site");
    });
}

#[test]
fn a_file_is_used_after_its_name_is_gone() {
    with_mount(|at| {
        let path = at.join("file");
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(b"before").unwrap();
        fs::remove_file(&path).unwrap();
        file.write_all(b" after").unwrap();
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut all = String::new();
        file.read_to_string(&mut all).unwrap();
        assert_eq!(all, "before after");
        assert!(!path.exists());
    });
}

#[test]
fn what_two_append_is_all_there() {
    with_mount(|at| {
        let path = at.join("log");
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let path = &path;
                scope.spawn(move || {
                    let options = OpenOptions::new().append(true).create(true).clone();
                    let mut file = options.open(path).unwrap();
                    for number in 0..200 {
                        file.write_all(format!("{writer}:{number:05}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let all = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<_> = all.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 400);
        assert!(lines.iter().all(|line| line.len() == 7));
    });
}

#[test]
fn a_large_file_is_written_cut_and_read_back() {
    with_mount(|at| {
        let path = at.join("large");
        let data: Vec<u8> = (0..8_u32 << 20).map(|at| (at / 5) as u8).collect();
        fs::write(&path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == data);
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"here", 3 << 30).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), (3 << 30) + 4);
        file.set_len(5 << 20).unwrap();
        file.set_len(6 << 20).unwrap();
        file.sync_all().unwrap();
        let read = fs::read(&path).unwrap();
        assert!(read[..5 << 20] == data[..5 << 20] && read[5 << 20..] == vec![0; 1 << 20]);
    });
}

#[test]
fn hundreds_of_names_are_listed_each_once() {
    with_mount(|at| {
        for number in 0..600 {
            File::create(at.join(format!("file {number}"))).unwrap();
        }
        let mut names: Vec<_> =
            fs::read_dir(at).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 600);
    });
}

#[test]
fn locks_keep_the_programs_of_a_mount_apart() {
    with_mount(|at| {
        let path = at.join("file");
        let one = File::create_new(&path).unwrap();
        let two = File::open(&path).unwrap();
        one.lock().unwrap();
        assert!(matches!(two.try_lock_shared(), Err(TryLockError::WouldBlock)));
        one.unlock().unwrap();
        two.lock_shared().unwrap();
        one.try_lock_shared().unwrap();
        drop(two);
        one.try_lock().unwrap();
    });
}

#[test]
fn holes_are_punched_found_and_passed_over() {
    with_mount(|at| {
        let file = File::options().read(true).write(true).create_new(true).open(at.join("file"));
        let file = file.unwrap();
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 256 << 10, 512 << 10).unwrap();
        let mut middle = [1; 100];
        file.read_exact_at(&mut middle, 300 << 10).unwrap();
        assert_eq!(middle, [0; 100]);
        assert_eq!(seek(&file, rustix::fs::SeekFrom::Hole(0)).unwrap(), 256 << 10);
        assert_eq!(seek(&file, rustix::fs::SeekFrom::Data(300 << 10)).unwrap(), 768 << 10);
        fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 4 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        fallocate(&file, FallocateFlags::empty(), 0, 4 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 4 << 20);
        let collapse = fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4_096);
        assert_eq!(collapse, Err(rustix::io::Errno::OPNOTSUPP));
    });
}
