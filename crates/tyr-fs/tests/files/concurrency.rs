//! Many threads in the same directories.

use std::thread;

use tyr_chance::size;
use tyr_fs::{Errno, Error, RenameMode};

use super::random::Random;
use super::{MINE, fixture};

const THREADS: u64 = 4;

/// Errors that others in the same directories may cause.
fn is_expected(error: &Error) -> bool {
    [
        Errno::NOENT,
        Errno::EXIST,
        Errno::NOTEMPTY,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::INVAL,
        Errno::STALE,
        Errno::PERM,
    ]
    .contains(&error.errno())
}

#[test]
fn whatever_many_do_at_once_everything_fits_together() {
    (0..size(1, 100)).for_each(change_and_check);
}

/// Many calls of each thread, and checks meanwhile.
fn change_and_check(seed: u64) {
    let fixture = fixture();
    let files = &fixture.files;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut random = Random::new(THREADS * seed + thread + 1);
                let mut open = Vec::new();
                for _ in 0..400 {
                    let mut path = || {
                        let names = ["a", "b", "c"];
                        let depth = 1 + random.below(3);
                        (0..depth).map(|_| format!("/{}", random.pick(&names))).collect::<String>()
                    };
                    let (path, to) = (path(), path());
                    let done = match random.below(10) {
                        0..=1 => files.make_directory_at(&path, MINE).map(drop),
                        2 => files.remove_directory_at(&path),
                        3 => files.store_at(&path, &[thread as u8; 100], MINE),
                        4 => files.remove_file_at(&path),
                        5 => files.rename_at(&path, &to),
                        6 => files.rename_at_with(&path, &to, RenameMode::Exchange),
                        7 => files.link_at(&path, &to),
                        8 => files.find(&path).and_then(|seen| {
                            open.push(files.open_file(&seen.node)?);
                            if open.len() > 3 { open.remove(0).close() } else { Ok(()) }
                        }),
                        _ => files
                            .find(&path)
                            .and_then(|seen| files.append(&seen.node, vec![7; 30_000]).map(drop)),
                    };
                    if let Err(error) = done {
                        assert!(is_expected(&error), "{error:?}");
                    }
                }
            });
        }
        for round in 0..10 {
            // There is nothing to repair, and nothing is.
            let found = match round % 2 {
                0 => files.check(&mut |_| true).unwrap().findings,
                _ => {
                    let repairs = files.repair(&mut |_| true).unwrap();
                    [repairs.done, repairs.report.findings].concat()
                }
            };
            assert_eq!(found, []);
        }
    });
    fixture.verify();
}

#[test]
fn of_many_that_make_one_name_one_succeeds() {
    let fixture = fixture();
    let files = &fixture.files;
    for round in 0..20 {
        let path = format!("/{round}");
        let made = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let path = &path;
                    scope.spawn(move || match thread % 2 {
                        0 => files.make_directory_at(path, MINE).map(drop),
                        _ => files.make_symlink_at(path, "x", MINE).map(drop),
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
        for refused in made.into_iter().filter_map(Result::err) {
            assert_eq!(refused.errno(), Errno::EXIST);
        }
    }
    fixture.verify();
}

#[test]
fn appends_of_many_lie_beside_each_other_whole() {
    let fixture = fixture();
    let files = &fixture.files;
    let node = files.make_file_at("/log", MINE).unwrap().node;
    let count = 150;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let node = &node;
            scope.spawn(move || {
                for number in 0..count {
                    let record = format!("{thread}:{number:06}:{}\n", "x".repeat(500));
                    let at = files.append(node, record.clone()).unwrap();
                    assert_eq!(files.read(node, at, record.len() as u64).unwrap(), record);
                }
            });
        }
    });
    let all = files.read(&node, 0, 1 << 30).unwrap();
    let lines: Vec<_> = all.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len() as u64, THREADS * count);
    assert!(lines.iter().all(|line| line.len() == 510), "none is torn");
    fixture.verify();
}

#[test]
fn directories_moved_into_each_other_never_form_a_loop() {
    let fixture = fixture();
    let files = &fixture.files;
    for name in ["/a", "/b", "/c"] {
        files.make_directory_at(name, MINE).unwrap();
    }
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut random = Random::new(100 + thread);
                for _ in 0..size(300, 250_000) {
                    // Each is looked for wherever the others have put it.
                    let names = ["a", "b", "c"];
                    let (moved, into) = (*random.pick(&names), *random.pick(&names));
                    let find = |name: &str| {
                        let places =
                            ["", "/a", "/b", "/c", "/a/b", "/b/a", "/a/c", "/c/a", "/b/c", "/c/b"];
                        places
                            .into_iter()
                            .map(|at| format!("{at}/{name}"))
                            .find(|path| files.find(path).is_ok())
                    };
                    let (Some(from), Some(to)) = (find(moved), find(into)) else { continue };
                    let to = match random.is_one_in(3) {
                        true => format!("/{moved}"),
                        false => format!("{to}/{moved}"),
                    };
                    if let Err(error) = files.rename_at(from, to) {
                        assert!(is_expected(&error), "{error:?}");
                    }
                }
            });
        }
    });
    fixture.verify();
    assert_eq!(files.check(&mut |_| true).unwrap().directories, 4);
}
