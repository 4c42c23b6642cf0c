//! One file system that is mounted twice: by two programs of a cluster, and of one store.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use tyr::{Durability, KeyspaceConfig};
use tyr_fs::blocking::FileSystem;
use tyr_fs::{MountOptions, Options, mount};

use tyr_testing::{Kind, Opened};

/// Runs `test` with two mounts, and checks afterwards that everything fits together.
pub fn with_mounts(kind: Kind, test: impl FnOnce(&Path, &Path)) {
    with_mounted(kind, |[(_, one), (_, other)]| test(one, other));
}

/// A file system, and where it is mounted.
pub type Mounted<'a> = (&'a FileSystem, &'a Path);

/// The same with the file systems that are mounted.
pub fn with_mounted(kind: Kind, test: impl FnOnce([Mounted<'_>; 2])) {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let store = Opened::new(kind);
    let name = store.name("shared");
    let keyspace_config =
        KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    let options = Options { keyspace_config, segment_bits: 20, ..Options::default() };
    let one = FileSystem::create(&store.tyr, &name, &options).unwrap();
    let two = FileSystem::open(&store.other(), &name).unwrap();
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mounts = [(&one, &places[0]), (&two, &places[1])]
        .map(|(files, at)| mount(files, at.path(), &MountOptions::default()).unwrap());
    test([(&one, places[0].path()), (&two, places[1].path())]);
    for mounted in mounts {
        mounted.unmount().unwrap();
    }
    for files in [&one, &two, &one] {
        files.tend_orphans().unwrap();
    }
    let report = one.check(&mut |_| true).unwrap();
    assert_eq!((report.findings, report.orphans), (vec![], 0));
}

fn see_each_other(one: &Path, two: &Path) {
    fs::create_dir(one.join("dir")).unwrap();
    for round in 0..20_u8 {
        let (mine, yours) = (one.join("dir/file"), two.join("dir/file"));
        fs::write(&mine, vec![round; 100_000]).unwrap();
        assert!(fs::read(&yours).unwrap() == vec![round; 100_000], "round {round}");
        // What is open there sees what is written here.
        let open = File::open(&yours).unwrap();
        let file = File::options().write(true).open(&mine).unwrap();
        file.write_all_at(b"here", 50_000).unwrap();
        let mut bytes = [0; 4];
        open.read_exact_at(&mut bytes, 50_000).unwrap();
        assert_eq!(&bytes, b"here", "round {round}");
        fs::rename(&yours, two.join(format!("moved {round}"))).unwrap();
        assert_eq!(fs::metadata(&mine).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::metadata(one.join(format!("moved {round}"))).unwrap().len(), 100_000);
    }
    assert_eq!(fs::read_dir(two).unwrap().count(), 21);
}

fn unlinked_by_the_other(one: &Path, two: &Path) {
    fs::write(one.join("file"), "before").unwrap();
    let open = File::options().read(true).append(true).open(two.join("file"));
    let mut open = open.unwrap();
    fs::remove_file(one.join("file")).unwrap();
    assert!(!two.join("file").exists());
    open.write_all(b" after").unwrap();
    assert_eq!(open.metadata().unwrap().nlink(), 0);
    let mut all = [0; 12];
    open.read_exact_at(&mut all, 0).unwrap();
    assert_eq!(&all, b"before after");
}

/// Both make the same files at once: one of them does, and the other opens what is there.
fn made_by_both(one: &Path, two: &Path) {
    std::thread::scope(|scope| {
        for at in [one, two] {
            scope.spawn(move || {
                let mut options = OpenOptions::new();
                options.append(true).create(true);
                for number in 0..50 {
                    options.open(at.join(format!("made {number}"))).unwrap();
                }
            });
        }
    });
}

fn appended_by_both(one: &Path, two: &Path) {
    std::thread::scope(|scope| {
        for (writer, at) in [one, two].into_iter().enumerate() {
            scope.spawn(move || {
                let options = OpenOptions::new().append(true).create(true).clone();
                let mut file = options.open(at.join("log")).unwrap();
                for number in 0..100 {
                    file.write_all(format!("{writer}:{number:05}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    let all = fs::read_to_string(one.join("log")).unwrap();
    let mut lines: Vec<_> = all.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() == 200 && lines.iter().all(|line| line.len() == 7), "{all}");
}

#[test]
fn two_mounts_of_one_cluster_see_each_other() {
    with_mounts(Kind::Cluster, |one, two| {
        see_each_other(one, two);
        unlinked_by_the_other(one, two);
        made_by_both(one, two);
        appended_by_both(one, two);
    });
}

#[test]
fn two_mounts_of_one_store_see_each_other() {
    with_mounts(Kind::Embedded, |one, two| {
        see_each_other(one, two);
        unlinked_by_the_other(one, two);
        made_by_both(one, two);
        appended_by_both(one, two);
    });
}
