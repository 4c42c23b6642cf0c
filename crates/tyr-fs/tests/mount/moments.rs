//! Moments, in the directory `.tyr/now`.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use rustix::io::Errno;
use tyr::blocking::Tyr;
use tyr::{Durability, KeyspaceConfig};
use tyr_fs::blocking::FileSystem;
use tyr_fs::{Access, MountOptions, Options, RenameMode, mount};
use tyr_testing::stores;

use super::two::{Mounted, with_mounted};
use super::with_mount;

const MINE: Access = Access { mode: 0o755, owner: 0, group: 0 };

const DIRECTORIES: u64 = 4;
const FILES: u64 = 10;

/// What all files of the tree have together.
const TOTAL: u64 = DIRECTORIES * FILES * 100;

/// A moment of a mount, given up when dropped.
struct Moment(PathBuf);

impl Moment {
    /// Takes one of the mount at `at`, by a name that nothing else has.
    fn of(at: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = at.join(format!(".tyr/now/{number}"));
        fs::create_dir(&place).unwrap();
        Self(place)
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).unwrap();
    }
}

/// The sum of all files of a tree, each found by its whole path; something is done behind the first
/// directory.
fn total_while(tree: &Path, between: impl FnOnce()) -> u64 {
    let mut between = Some(between);
    let mut total = 0;
    for directory in 0..DIRECTORIES {
        for file in fs::read_dir(tree.join(directory.to_string())).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            total += text.parse::<u64>().unwrap();
        }
        if let Some(between) = between.take() {
            between();
        }
    }
    total
}

/// The same by programs of the system, which take a moment, read it, and give it up.
fn total_of_programs(at: &Path) -> u64 {
    let script = r#"
        moment=$(mktemp -d -p "$1/.tyr/now") &&
        awk '{ total += $1 } END { print total }' "$moment"/[0-9]/* &&
        rmdir "$moment""#;
    let output = Command::new("sh").args(["-c", script, "sh"]).arg(at).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn plant(files: &FileSystem) {
    for directory in 0..DIRECTORIES {
        files.make_directory_at(format!("/{directory}"), MINE).unwrap();
        for file in 0..FILES {
            files.store_at(format!("/{directory}/{file}"), b"100", MINE).unwrap();
        }
    }
}

/// Moves up to 7 from one file to another, and has the two change places.
fn pay(files: &FileSystem, from: &str, to: &str) {
    let paid = files.transact(|it| {
        let read = |path: &str| -> tyr_fs::Result<u64> {
            Ok(String::from_utf8(it.fetch_at(path)?.to_vec()).unwrap().parse().unwrap())
        };
        let (has, other) = (read(from)?, read(to)?);
        let by = has.min(7);
        it.store_at(from, (has - by).to_string().as_bytes(), MINE)?;
        it.store_at(to, (other + by).to_string().as_bytes(), MINE)?;
        it.rename_at_with(from, to, RenameMode::Exchange)
    });
    paid.unwrap();
}

#[test]
fn a_tree_read_as_of_a_moment_adds_up_where_the_tree_itself_does_not() {
    for kind in stores() {
        with_mounted(kind, |[(files, at), (_, other)]| {
            plant(files);
            let pay = || pay(files, "/0/0", "/3/9");
            for at in [at, other] {
                let moment = Moment::of(at);
                assert_eq!(total_while(&moment.0, pay), TOTAL);
                assert_eq!(total_while(&moment.0, || {}), TOTAL);
                // What was paid meanwhile is missed, or counted twice.
                assert_ne!(total_while(at, pay), TOTAL);
            }
        });
    }
}

/// Pays to and fro until all readers have read enough.
fn write_while((files, _): Mounted<'_>, seed: u64, is_over: &AtomicBool) {
    let mut place = seed;
    let mut path = || {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = place >> 33;
        format!("/{}/{}", number % DIRECTORIES, number / DIRECTORIES % FILES)
    };
    while !is_over.load(Ordering::Relaxed) {
        let (from, to) = (path(), path());
        if from != to {
            pay(files, &from, &to);
        }
        if from.as_bytes()[3] == b'3' {
            files.swap_at("/0", "/1").unwrap();
        }
    }
}

fn adds_up_for_all(mounts: [Mounted<'_>; 2]) {
    plant(mounts[0].0);
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let writers = [(mounts[0], 1), (mounts[1], 2)]
            .map(|(mounted, seed)| scope.spawn(move || write_while(mounted, seed, is_over)));
        let readers = mounts.map(|(_, at)| {
            scope.spawn(move || {
                for _ in 0..20 {
                    let moment = Moment::of(at);
                    assert_eq!(total_while(&moment.0, || {}), TOTAL);
                    // Another who reads it reads the same.
                    assert_eq!(total_while(&moment.0, || {}), TOTAL);
                }
                for _ in 0..5 {
                    assert_eq!(total_of_programs(at), TOTAL);
                }
            })
        });
        let read = readers.map(|it| it.join());
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|it| it.join().unwrap());
        read.into_iter().for_each(|it| it.unwrap());
    });
}

#[test]
fn what_programs_read_below_now_adds_up_while_transactions_change_it() {
    for kind in stores() {
        with_mounted(kind, adds_up_for_all);
    }
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.map(|it| it.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_moment_is_taken_by_name_read_and_given_up() {
    with_mount(|at| {
        let large: Vec<u8> = (0..3_u32 << 20).map(|at| (at / 3) as u8).collect();
        fs::create_dir(at.join("dir")).unwrap();
        fs::write(at.join("dir/small"), "then").unwrap();
        fs::write(at.join("dir/large"), &large).unwrap();
        let now = at.join(".tyr/now");
        let one = now.join("one");
        assert_eq!(fs::metadata(&one).unwrap_err().kind(), ErrorKind::NotFound);
        fs::create_dir(&one).unwrap();
        fs::write(at.join("dir/small"), "later").unwrap();
        fs::remove_file(at.join("dir/large")).unwrap();
        fs::create_dir(now.join("two")).unwrap();

        assert_eq!(fs::read_to_string(one.join("dir/small")).unwrap(), "then");
        assert!(fs::read(one.join("dir/large")).unwrap() == large);
        assert_eq!(fs::read_to_string(now.join("two/dir/small")).unwrap(), "later");
        assert_eq!(names(&now.join("two/dir")), ["small"]);
        assert_eq!(names(&one.join("dir")), ["large", "small"]);
        assert_eq!((names(at), names(&at.join(".tyr"))), (vec!["dir".into()], vec!["now".into()]));
        assert_eq!(names(&now), ["one", "two"]);
        let number = |path: &Path| fs::metadata(path.join("dir/small")).unwrap().ino();
        assert!(number(&one) != number(at) && number(&one) != number(&now.join("two")));
        assert_eq!(fs::create_dir(&one).unwrap_err().kind(), ErrorKind::AlreadyExists);

        // What is open stays so, and nothing else of it.
        let open = File::open(one.join("dir/small")).unwrap();
        fs::remove_dir(&one).unwrap();
        let mut bytes = [0; 4];
        open.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"then");
        assert_eq!(fs::metadata(one.join("dir/small")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::remove_dir(&one).unwrap_err().kind(), ErrorKind::NotFound);
        // One that has the name again is another.
        fs::create_dir(&one).unwrap();
        assert_eq!(fs::read_to_string(one.join("dir/small")).unwrap(), "later");
        assert_eq!(names(&now), ["one", "two"]);
        drop(open);
        for name in ["one", "two"] {
            fs::remove_dir(now.join(name)).unwrap();
        }
    });
}

#[test]
fn nothing_can_be_changed_in_a_moment_or_beside_it() {
    with_mount(|at| {
        fs::write(at.join("file"), "then").unwrap();
        let moment = Moment::of(at);
        let (file, new) = (moment.0.join("file"), moment.0.join("new"));
        let tries = [
            OpenOptions::new().write(true).open(&file).map(drop),
            File::create(&new).map(drop),
            fs::create_dir(&new),
            fs::remove_file(&file),
            fs::rename(&file, at.join("new")),
            fs::hard_link(&file, at.join("new")),
            File::create(at.join(".tyr/now/file")).map(drop),
            fs::create_dir(at.join(".tyr/new")),
            fs::rename(&moment.0, at.join(".tyr/now/other")),
            fs::remove_dir(at.join(".tyr/now")),
        ];
        for (index, result) in tries.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{index}: {error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "then");
    });
}

#[test]
fn what_a_moment_had_and_the_store_has_no_more_is_stale() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::options().fold_log_bytes(64 << 10).open_blocking(folder.path()).unwrap();
    let keyspace_config =
        KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    let options = Options { keyspace_config, ..Options::default() };
    let files = FileSystem::create(&store, "short", &options).unwrap();
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let mounted = mount(&files, at, &MountOptions::default()).unwrap();
    for name in ["file", "other"] {
        fs::write(at.join(name), "then").unwrap();
    }
    let moment = Moment::of(at);
    let open = File::open(moment.0.join("file")).unwrap();
    // The log grows until a fold waits no longer for who reads below it.
    let error = loop {
        fs::write(at.join("other"), vec![2; 30_000]).unwrap();
        match fs::read_to_string(moment.0.join("other")) {
            Ok(then) => assert_eq!(then, "then"),
            Err(error) => break error,
        }
    };
    let is_stale = |error: std::io::Error| {
        assert_eq!(error.raw_os_error(), Some(Errno::STALE.raw_os_error()), "{error}");
    };
    is_stale(error);
    is_stale(open.read_at(&mut [0; 4], 0).unwrap_err());
    is_stale(fs::metadata(moment.0.join("file")).unwrap_err());
    is_stale(
        fs::read_dir(&moment.0)
            .map(|mut it| it.next().unwrap().map(drop))
            .and_then(|it| it)
            .unwrap_err(),
    );
    // Its name can be given up, and another taken.
    assert_eq!(names(&at.join(".tyr/now")).len(), 1);
    drop((open, moment));
    let moment = Moment::of(at);
    assert_eq!(fs::read_to_string(moment.0.join("file")).unwrap(), "then");
    drop(moment);
    mounted.unmount().unwrap();
}
