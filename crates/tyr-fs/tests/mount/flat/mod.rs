//! The blobs of a keyspace as files, beside programs that use the same keyspace by its own calls.

mod directories;
mod sharing;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;
use tyr::blocking::{Keyspace, Tyr};
use tyr::{Durability, KeyspaceConfig};
use tyr_fs::{FlatOptions, mount_flat};
use tyr_testing::{Kind, Opened, stores};

/// A keyspace that is mounted twice, and the same for a third program that uses its own calls.
struct Flat<'a> {
    keyspace: &'a Keyspace,
    one: &'a Path,
    other: &'a Path,
}

/// Runs `test` on a store of each kind. Chunks are small, so that calls touch several.
fn with_flat(test: impl Fn(&Flat<'_>)) {
    stores().into_iter().for_each(|kind| with_flat_of(kind, &test));
}

fn config() -> KeyspaceConfig {
    let durability = Durability::Buffered;
    KeyspaceConfig { durability, chunk_size: 64 << 10, ..KeyspaceConfig::default() }
}

fn with_flat_of(kind: Kind, test: impl FnOnce(&Flat<'_>)) {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let opened = Opened::new(kind);
    let keyspace = opened.create("flat", config());
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mounts = places.each_ref().map(|at| {
        let store = opened.other();
        let keyspace = store.keyspace(keyspace.name()).unwrap();
        mount_flat(&store, &keyspace, at.path(), &FlatOptions::default()).unwrap()
    });
    test(&Flat { keyspace: &keyspace, one: places[0].path(), other: places[1].path() });
    mounts.into_iter().for_each(|mounted| mounted.unmount().unwrap());
}

/// Runs `test` with a mount for which nobody else uses the keyspace.
fn with_flat_alone(test: impl FnOnce(&Keyspace, &Path)) {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let (folder, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Tyr::open(folder.path()).unwrap();
    let keyspace = store.create_keyspace("flat", config()).unwrap();
    let options = FlatOptions { is_alone: true, ..FlatOptions::default() };
    let mounted = mount_flat(&store, &keyspace, at.path(), &options).unwrap();
    test(&keyspace, at.path());
    mounted.unmount().unwrap();
}

fn errno<T>(result: std::io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

const STALE: Option<i32> = Some(116);

#[test]
fn a_file_is_the_blob_and_the_blob_is_the_file() {
    with_flat(|Flat { keyspace, one, other }| {
        let (mine, yours) = (one.join("run/7/out"), other.join("run/7/out"));
        assert_eq!(fs::read(&mine).unwrap_err().kind(), ErrorKind::NotFound);
        keyspace.put("run/7/out", "by the store").unwrap();
        assert_eq!(fs::read_to_string(&mine).unwrap(), "by the store");
        let file = File::options().read(true).write(true).open(&yours).unwrap();
        for round in 0..20_u64 {
            keyspace.write("run/7/out", round * 50_000, vec![7; 100]).unwrap();
            let mut bytes = [0; 100];
            file.read_exact_at(&mut bytes, round * 50_000).unwrap();
            assert_eq!(bytes, [7; 100], "round {round}");
            file.write_all_at(b"by a file", round * 50_000 + 10).unwrap();
            let read = keyspace.read("run/7/out", round * 50_000 + 10, 9).unwrap();
            assert_eq!(read, "by a file", "round {round}");
            let size = keyspace.stat("run/7/out").unwrap().size;
            assert_eq!(fs::metadata(&mine).unwrap().len(), size);
            assert_eq!(file.metadata().unwrap().len(), size);
        }
        keyspace.truncate("run/7/out", 3).unwrap();
        assert_eq!(fs::read(&mine).unwrap().len(), 3);
        keyspace.delete("run/7/out").unwrap();
        assert!(!mine.exists() && !yours.exists());
    });
}

/// Creates, writes, cuts and removes a file, and looks at the blob after each.
fn use_a_file(keyspace: &Keyspace, at: &Path) {
    let path = at.join("file");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    assert_eq!(keyspace.stat("file").unwrap().size, 0);
    let exists = OpenOptions::new().write(true).create_new(true).open(&path);
    assert_eq!(exists.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let data: Vec<u8> = (0..3_u32 << 20).map(|at| (at / 5) as u8).collect();
    file.write_all(&data).unwrap();
    assert!(keyspace.get("file").unwrap() == data && fs::read(&path).unwrap() == data);
    file.write_all_at(b"far", 10 << 20).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), (10 << 20) + 3);
    file.set_len(100_000).unwrap();
    file.set_len(200_000).unwrap();
    let read = fs::read(&path).unwrap();
    assert!(read[..100_000] == data[..100_000] && read[100_000..] == [0; 100_000]);
    file.seek(SeekFrom::End(-1)).unwrap();
    assert_eq!(file.stream_position().unwrap(), 199_999);
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [0]);
    file.sync_all().unwrap();
    let more = File::options().append(true).open(&path).unwrap();
    (&more).write_all(b"more").unwrap();
    assert_eq!(keyspace.read("file", 200_000, 9).unwrap(), "more");
    fs::write(&path, "short").unwrap();
    assert_eq!(keyspace.get("file").unwrap(), "short");
    fs::remove_file(&path).unwrap();
    assert!(keyspace.stat("file").is_err() && !path.exists());
    assert_eq!(errno(fs::remove_file(&path)), Some(2));
}

#[test]
fn programs_make_write_cut_append_to_and_remove_blobs() {
    with_flat(|flat| use_a_file(flat.keyspace, flat.one));
    with_flat_alone(use_a_file);
}

fn stat_a_file(keyspace: &Keyspace, at: &Path) {
    fs::write(at.join("file"), vec![1; 1_000]).unwrap();
    let seen = fs::metadata(at.join("file")).unwrap();
    assert_eq!((seen.len(), seen.blocks(), seen.nlink()), (1_000, 2, 1));
    assert_eq!(seen.mode(), 0o100_666);
    assert_eq!(seen.uid(), rustix::process::geteuid().as_raw());
    let micros = keyspace.stat("file").unwrap().version.clock;
    assert_eq!(seen.modified().unwrap(), SystemTime::UNIX_EPOCH + Duration::from_micros(micros));
    // What cp and tar set is taken, and stays as it is.
    fs::set_permissions(at.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    let file = File::options().write(true).open(at.join("file")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    std::os::unix::fs::chown(at.join("file"), Some(7), Some(7)).unwrap();
    let again = fs::metadata(at.join("file")).unwrap();
    assert_eq!((again.mode(), again.uid()), (seen.mode(), seen.uid()));
    assert_eq!(again.modified().unwrap(), seen.modified().unwrap());
    assert_eq!(again.ino(), seen.ino());
}

#[test]
fn attributes_are_those_of_the_blob_and_cannot_be_set() {
    with_flat(|flat| {
        stat_a_file(flat.keyspace, flat.one);
        let inodes = [flat.one, flat.other].map(|at| fs::metadata(at.join("file")).unwrap().ino());
        assert_eq!(inodes[0], inodes[1], "each mount gives it the same number");
        let space = rustix::fs::statvfs(flat.one).unwrap();
        assert!(space.f_blocks >= space.f_bfree && space.f_blocks > 0);
    });
    with_flat_alone(stat_a_file);
}

#[test]
fn what_a_blob_cannot_be_is_refused() {
    with_flat_of(Kind::Embedded, |Flat { one: at, .. }| {
        fs::write(at.join("file"), "content").unwrap();
        let (not_permitted, not_supported) = (Some(1), Some(95));
        assert_eq!(errno(fs::hard_link(at.join("file"), at.join("link"))), not_permitted);
        assert_eq!(errno(symlink("file", at.join("link"))), not_permitted);
        let fifo = rustix::fs::mknodat(
            CWD,
            at.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        );
        assert_eq!(fifo, Err(Errno::PERM));
        let set = rustix::fs::setxattr(
            at.join("file"),
            "user.name",
            b"value",
            rustix::fs::XattrFlags::empty(),
        );
        assert_eq!(set.map_err(|it| Some(it.raw_os_error())), Err(not_supported));
        assert_eq!(errno(fs::write(at.join("n".repeat(256)), "")), Some(36));
        fs::write(at.join("n".repeat(255)), "long").unwrap();
        assert_eq!(fs::read_dir(at).unwrap().count(), 2);
        let deep = at.join("d".repeat(250)).join("d".repeat(250)).join("d".repeat(250));
        fs::create_dir_all(&deep).unwrap();
        // Keys have 1,024 bytes at most, of which 753 are the directories'.
        assert_eq!(errno(fs::write(deep.join("d/".repeat(9) + &"n".repeat(255)), "")), Some(2));
        fs::create_dir(deep.join("dirs")).unwrap();
        fs::write(deep.join("n".repeat(255)), "").unwrap();
        fs::create_dir(deep.join("dirs").join("d".repeat(20))).unwrap();
        let too_long = deep.join("dirs").join("d".repeat(20)).join("n".repeat(246));
        assert_eq!(errno(fs::write(&too_long, "")), Some(36));
        fs::write(deep.join("dirs").join("d".repeat(20)).join("n".repeat(245)), "fits").unwrap();
    });
}

#[test]
fn holes_are_made_and_room_is_added() {
    with_flat(|Flat { keyspace, one, .. }| {
        fs::write(one.join("file"), vec![7; 300_000]).unwrap();
        let file = File::options().read(true).write(true).open(one.join("file")).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 100_000, 100_000).unwrap();
        assert!(keyspace.read("file", 100_000, 100_000).unwrap() == vec![0; 100_000]);
        assert_eq!(keyspace.read("file", 99_999, 1).unwrap(), [7_u8][..]);
        fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
        assert_eq!(keyspace.stat("file").unwrap().size, 300_000);
        fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, 10).unwrap();
        assert_eq!(keyspace.stat("file").unwrap().size, 1 << 20);
        fallocate(&file, FallocateFlags::ZERO_RANGE, 299_999, 1 << 20).unwrap();
        assert_eq!(keyspace.stat("file").unwrap().size, 299_999 + (1 << 20));
        assert_eq!(keyspace.read("file", 299_998, 2).unwrap(), [7_u8, 0][..]);
        let collapse = fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4_096);
        assert_eq!(collapse, Err(Errno::OPNOTSUPP));
    });
}

fn rename_files(keyspace: &Keyspace, at: &Path) {
    let path = |name: &str| at.join(name);
    let data = vec![3; 500_000];
    keyspace.put("a", data.clone()).unwrap();
    let open = File::options().read(true).write(true).open(path("a")).unwrap();
    fs::rename(path("a"), path("b")).unwrap();
    assert!(keyspace.get("b").unwrap() == data && keyspace.stat("a").is_err());
    assert!(!path("a").exists() && fs::metadata(path("b")).unwrap().len() == 500_000);
    // What is open goes on under the new name.
    open.write_all_at(b"still", 0).unwrap();
    assert_eq!(keyspace.read("b", 0, 5).unwrap(), "still");
    fs::write(path("a"), "new").unwrap();
    let kept = renameat_with(CWD, path("b"), CWD, path("a"), RenameFlags::NOREPLACE);
    assert_eq!(kept, Err(Errno::EXIST));
    let exchanged = renameat_with(CWD, path("b"), CWD, path("a"), RenameFlags::EXCHANGE);
    assert_eq!(exchanged, Err(Errno::INVAL));
    let replaced = File::open(path("a")).unwrap();
    fs::rename(path("b"), path("a")).unwrap();
    assert_eq!(errno(replaced.read_at(&mut [0; 9], 0)), STALE);
    assert_eq!(fs::read(path("a")).unwrap()[..6], *b"still\x03");
    renameat_with(CWD, path("a"), CWD, path("c"), RenameFlags::NOREPLACE).unwrap();
    assert_eq!(errno(fs::rename(path("a"), path("b"))), Some(2));
    fs::create_dir(path("to")).unwrap();
    fs::rename(path("c"), path("to/c")).unwrap();
    assert_eq!(keyspace.stat("to/c").unwrap().size, 500_000);
    assert_eq!(errno(fs::rename(path("to"), path("too"))), Some(18), "key by key");
    fs::remove_dir_all(path("to")).unwrap();
    assert_eq!(keyspace.scan(b"", None, 10).unwrap(), []);
}

#[test]
fn a_rename_moves_the_blob_or_leaves_everything_as_it_is() {
    with_flat(|flat| rename_files(flat.keyspace, flat.one));
    with_flat_alone(rename_files);
}

#[test]
fn nothing_can_be_changed_in_a_read_only_mount_and_a_missing_place_is_told() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let opened = Opened::new(Kind::Embedded);
    let keyspace = opened.create("flat", config());
    keyspace.put("dir/file", "content").unwrap();
    let at = tempfile::tempdir().unwrap();
    let missing = mount_flat(&opened.tyr, &keyspace, at.path().join("x"), &FlatOptions::default());
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    let options = FlatOptions { is_read_only: true, ..FlatOptions::default() };
    let mounted = mount_flat(&opened.tyr, &keyspace, at.path(), &options).unwrap();
    assert_eq!(fs::read_to_string(at.path().join("dir/file")).unwrap(), "content");
    let read_only = Some(30);
    assert_eq!(errno(fs::write(at.path().join("dir/file"), "other")), read_only);
    assert_eq!(errno(fs::remove_file(at.path().join("dir/file"))), read_only);
    assert_eq!(errno(fs::create_dir(at.path().join("other"))), read_only);
    mounted.unmount().unwrap();
    assert_eq!(keyspace.get("dir/file").unwrap(), "content");
    assert!(opened.tyr.keyspace("none").unwrap_err().to_string().contains("no keyspace"));
}
