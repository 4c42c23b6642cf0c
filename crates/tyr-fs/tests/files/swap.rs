//! Directories and files that change places.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tyr_chance::size;
use tyr_fs::Errno;
use tyr_fs::blocking::FileSystem;

use super::random::Random;
use super::{MINE, fixture, options};
use tyr_testing::{Opened, stores};

/// A tree in which each file has these bytes.
fn grow(files: &FileSystem, at: &str, content: &str) {
    files.make_directory_at(at, MINE).unwrap();
    files.make_directory_at(format!("{at}/below"), MINE).unwrap();
    for name in ["index", "below/page"] {
        files.store_at(format!("{at}/{name}"), content.as_bytes(), MINE).unwrap();
    }
}

#[test]
fn readers_see_the_one_tree_or_the_other() {
    for kind in stores() {
        let store = Opened::new(kind);
        let name = store.name("shared");
        let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        let two = FileSystem::open(&store.other(), &name).unwrap();
        one.make_directory_at("/deep", MINE).unwrap();
        grow(&one, "/site", "old");
        grow(&one, "/deep/new", "new");
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            for files in [&one, &two] {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let [index, page, other] = files
                            .transact(|it| {
                                let paths = ["/site/index", "/site/below/page", "/deep/new/index"];
                                let [index, page, other] = paths.map(|path| it.fetch_at(path));
                                Ok([index?, page?, other?])
                            })
                            .unwrap();
                        assert_eq!(index, page);
                        assert_ne!(index, other);
                        // And without a transaction there is always one.
                        files.fetch_at("/site/below/page").unwrap();
                    }
                });
            }
            for _ in 0..40 {
                one.swap_at("/site", "/deep/new").unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(one.fetch_at("/site/index").unwrap(), "old");
        assert_eq!(one.check(&mut |_| true).unwrap().findings, []);
    }
}

#[test]
fn a_swap_is_refused_where_one_is_in_the_other_or_is_not_there() {
    let fixture = fixture();
    let files = &fixture.files;
    grow(files, "/a", "a");
    for (one, other, errno) in [
        ("/a", "/a/below", Errno::INVAL),
        ("/a/below/page", "/a", Errno::INVAL),
        ("/a", "/none", Errno::NOENT),
        ("/none", "/a", Errno::NOENT),
        ("/", "/a", Errno::BUSY),
    ] {
        let refused = files.swap_at(one, other).unwrap_err();
        assert_eq!(refused.errno(), errno, "{one} and {other}: {refused}");
    }
    // A file with a directory of another place, and what is the same.
    files.store_at("/file", b"file", MINE).unwrap();
    files.swap_at("/file", "/a/below").unwrap();
    assert_eq!(files.fetch_at("/a/below").unwrap(), "file");
    assert_eq!(files.fetch_at("/file/page").unwrap(), "a");
    files.swap_at("/file", "/file").unwrap();
    fixture.verify();
}

#[test]
fn swaps_of_many_never_form_a_loop() {
    let fixture = fixture();
    let files = &fixture.files;
    for path in ["/a", "/a/b", "/a/b/c", "/d", "/d/e", "/d/e/f"] {
        files.make_directory_at(path, MINE).unwrap();
    }
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut random = Random::new(50 + thread);
                let names = ["a", "b", "c", "d", "e", "f"];
                for _ in 0..size(200, 250_000) {
                    let mut path = || {
                        let depth = 1 + random.below(3);
                        (0..depth).map(|_| format!("/{}", random.pick(&names))).collect::<String>()
                    };
                    if let Err(error) = files.swap_at(path(), path()) {
                        let expected = [Errno::NOENT, Errno::INVAL];
                        assert!(expected.contains(&error.errno()), "{error}");
                    }
                }
            });
        }
    });
    fixture.verify();
    assert_eq!(files.check(&mut |_| true).unwrap().directories, 7);
}
