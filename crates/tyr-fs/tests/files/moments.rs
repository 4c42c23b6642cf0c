//! Moments: everything as it was, while others go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tyr_chance::size;
use tyr_fs::blocking::{FileSystem, Moment};
use tyr_fs::{Access, Credentials, Errno, Kind, Node, RenameMode};

use super::random::Random;
use super::{MINE, fixture, options};
use tyr_testing::{Kind as Stored, Opened, stores};

/// The sum of all files of a tree, and how many there are.
fn total(moment: &Moment) -> (u64, u64) {
    let (mut sum, mut count, mut directories) = (0, 0, vec![Node::ROOT]);
    while let Some(directory) = directories.pop() {
        let mut cookie = 0;
        loop {
            let page = moment.list_directory(&directory, cookie, 7).unwrap();
            for entry in page.entries {
                cookie = entry.cookie;
                match entry.node.kind {
                    Kind::Directory => directories.push(entry.node),
                    _ => {
                        let bytes = moment.read(&entry.node, 0, 9).unwrap();
                        sum += std::str::from_utf8(&bytes).unwrap().parse::<u64>().unwrap();
                        count += 1;
                    }
                }
            }
            if page.is_end {
                break;
            }
        }
    }
    (sum, count)
}

#[test]
fn a_moment_of_a_tree_adds_up_while_transactions_change_it() {
    for kind in stores() {
        // Reads of a cluster take longer.
        let names = match kind {
            Stored::Embedded => size(10, 1_000),
            Stored::Cluster => size(10, 100),
        };
        add_up(kind, size(5, 100), names);
    }
}

/// Files that are given from and to in a tree of so many directories with so many files each, while
/// others add them up.
fn add_up(kind: Stored, directories: u64, names: u64) {
    let store = Opened::new(kind);
    let name = store.name("tree");
    let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
    let two = FileSystem::open(&store.other(), &name).unwrap();
    for directory in 0..directories {
        one.make_directory_at(format!("/{directory}"), MINE).unwrap();
        for file in 0..names {
            one.store_at(format!("/{directory}/{file}"), b"100", MINE).unwrap();
        }
    }
    let (is_over, looks) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let count = directories * names;
    thread::scope(|scope| {
        let movers: Vec<_> = [&one, &two]
            .into_iter()
            .zip(1_u64..)
            .map(|(files, seed)| {
                scope.spawn(move || {
                    let (mut random, mut round) = (Random::new(seed), 0);
                    while round < 60 || looks.load(Ordering::Relaxed) < 4 {
                        let mut path =
                            || format!("/{}/{}", random.below(directories), random.below(names));
                        give(files, &path(), &path());
                        round += 1;
                        if round % 10 == 0 {
                            files.swap_at("/0", "/1").unwrap();
                        }
                    }
                })
            })
            .collect();
        let readers = [&one, &two].map(|files| {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let moment = files.moment().unwrap();
                    assert_eq!(total(&moment), (100 * count, count));
                    assert_eq!(total(&moment.clone()), (100 * count, count));
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        movers.into_iter().for_each(|it| it.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|it| it.join().unwrap());
    });
    assert_eq!(one.check(&mut |_| true).unwrap().findings, []);
}

/// Some of what one file has goes to another, and the files change places.
fn give(files: &FileSystem, from: &str, to: &str) {
    if from == to {
        return;
    }
    let number = |bytes: tyr::Bytes| std::str::from_utf8(&bytes).unwrap().parse::<u64>().unwrap();
    let given = files.transact(|it| {
        let (has, other) = (number(it.fetch_at(from)?), number(it.fetch_at(to)?));
        let by = has.min(7);
        it.store_at(from, (has - by).to_string().as_bytes(), MINE)?;
        it.store_at(to, (other + by).to_string().as_bytes(), MINE)?;
        // Files go from directory to directory as well.
        it.rename_at_with(from, to, RenameMode::Exchange)
    });
    given.unwrap();
}

#[test]
fn a_moment_stays_as_it_was() {
    let fixture = fixture();
    let files = &fixture.files;
    files.store_at("/file", b"then", MINE).unwrap();
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at / 9) as u8).collect();
    files.store_at("/large", &large, MINE).unwrap();
    let node = files.find("/large").unwrap().node;
    let moment = files.moment().unwrap();
    files.store_at("/file", b"now", MINE).unwrap();
    files.truncate(&node, 10).unwrap();
    files.remove_file_at("/large").unwrap();
    files.make_directory_at("/new", MINE).unwrap();
    assert_eq!(moment.fetch_at("/file").unwrap(), "then");
    assert!(moment.fetch_at("/large").unwrap() == large);
    let part = moment.read(&node, 131_000, 1_000).unwrap();
    assert!(part == large[131_000..132_000]);
    assert_eq!(moment.attributes(&node).unwrap().size, 300_000);
    assert_eq!(moment.find("/new").unwrap_err().errno(), Errno::NOENT);
    assert_eq!(files.moment().unwrap().find("/large").unwrap_err().errno(), Errno::NOENT);
    fixture.verify();
}

#[test]
fn a_user_reads_of_a_moment_what_the_rights_of_then_allow() {
    let fixture = fixture();
    let files = &fixture.files;
    let access = Access { mode: 0o600, owner: 5, group: 5 };
    files.store_at("/theirs", b"secret", access).unwrap();
    let (owner, other) = (Credentials::new(5, 5), Credentials::new(6, 6));
    let refused = files.acting_as(other).moment().unwrap().fetch_at("/theirs").unwrap_err();
    assert_eq!(refused.errno(), Errno::ACCESS);
    assert_eq!(files.acting_as(owner).moment().unwrap().fetch_at("/theirs").unwrap(), "secret");
}

#[test]
fn what_a_store_keeps_is_read_until_it_is_dropped() {
    for kind in stores() {
        let store = Opened::new(kind);
        let name = store.name("kept");
        let files = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        files.store_at("/small", b"then", MINE).unwrap();
        files.store_at("/large", &[7; 100_000], MINE).unwrap();
        store.tyr.keep(&name).unwrap();
        files.store_at("/small", b"now", MINE).unwrap();
        files.remove_file_at("/large").unwrap();
        let kept = files.moment_at(&name).unwrap();
        assert_eq!(kept.fetch_at("/small").unwrap(), "then");
        assert_eq!(kept.fetch_at("/large").unwrap(), vec![7; 100_000]);
        let names = kept.list_directory(&Node::ROOT, 0, 10).unwrap().entries.len();
        assert_eq!(names, 2);
        assert_eq!(files.fetch_at("/small").unwrap(), "now");
        store.tyr.drop_kept(&name).unwrap();
        assert_eq!(files.moment_at(&name).unwrap_err().errno(), Errno::NOENT);
    }
}
