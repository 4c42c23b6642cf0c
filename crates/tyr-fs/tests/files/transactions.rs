//! Transactions over files: random ones on a real file system and on its model, and many at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tyr::KeyspaceConfig;
use tyr_chance::{part, size};
use tyr_fs::blocking::{FileSystem, Transaction};
use tyr_fs::{Errno, Error, Kind, NewAttributes, RenameMode, XattrChange};

use super::program::{Pair, errno};
use super::random::Random;
use super::{Fixture, MINE, fixture, options};
use tyr_testing::{Opened, stores};

/// One call of a random transaction, on both; they have to answer alike.
fn call(pair: &mut Pair, files: &Transaction) {
    let (path, to, access) = (pair.path(), pair.path(), pair.access());
    let (data, offset, what) = (pair.data(), pair.offset(), pair.random.below(14));
    pair.say(format!("  {what} {path} {to} at {offset} {} bytes", data.len()));
    let found = |pair: &Pair| pair.model.find(&path, true);
    let node = || errno(files.find(&path)).map(|seen| seen.node);
    let (real, model) = match what {
        0 | 1 => {
            let real = errno(files.make_directory_at(&path, access)).map(drop);
            (real, pair.model.make(&path, Kind::Directory, access, b""))
        }
        2 | 3 => {
            let real = errno(files.store_at(&path, &data, access));
            let model = pair.model.open_or_make(&path, access).and_then(|number| {
                pair.model.truncate(number, 0)?;
                pair.model.write(number, 0, &data)
            });
            (real, model)
        }
        4 => (errno(files.remove_file_at(&path)), pair.model.remove(&path, false)),
        5 => (errno(files.remove_directory_at(&path)), pair.model.remove(&path, true)),
        6 => (errno(files.link_at(&path, &to)), pair.model.link(&path, &to)),
        7..=9 => {
            let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
            let mode = modes[what as usize - 7];
            let real = errno(files.rename_at_with(&path, &to, mode));
            (real, pair.model.rename(&path, &to, mode))
        }
        10 => {
            let real = node().and_then(|it| errno(files.write(&it, offset, data.clone())));
            let model = found(pair).and_then(|number| pair.model.write(number, offset, &data));
            (real, model)
        }
        11 => {
            let real = node().and_then(|it| errno(files.append(&it, data.clone())));
            let model = found(pair).and_then(|number| pair.model.append(number, &data));
            (real, model.map(drop))
        }
        12 => {
            let real = node().and_then(|it| errno(files.truncate(&it, offset)));
            (real, found(pair).and_then(|number| pair.model.truncate(number, offset)))
        }
        _ => {
            let new = NewAttributes { mode: Some(access.mode), ..NewAttributes::default() };
            let change = XattrChange::Set(data.iter().take(700).copied().collect());
            let (name, value) = (b"user.a", data.iter().take(700).copied().collect::<Vec<_>>());
            let real = node().and_then(|it| {
                errno(files.set_attributes(&it, new))?;
                errno(files.set_xattr(&it, name, change))
            });
            let model = found(pair).map(|number| {
                pair.model.touch(number, |file| {
                    file.access.mode = access.mode;
                    file.xattrs.insert(name.to_vec(), value);
                });
            });
            (real, model)
        }
    };
    assert_eq!(real, model, "{:#?}", pair.tail());
    look(pair, files);
}

/// What is there, in the middle of a transaction.
fn look(pair: &mut Pair, files: &Transaction) {
    let path = pair.path();
    let real = errno(files.find(&path)).map(|seen| seen.node);
    let model = pair.model.find(&path, true);
    assert_eq!(real.as_ref().map(drop).map_err(|it| *it), model.map(drop), "{:#?}", pair.tail());
    let (Ok(node), Ok(number)) = (real, model) else { return };
    let inode = &pair.model.inodes[&number];
    match node.kind {
        Kind::Regular => {
            assert!(files.read(&node, 0, 1 << 30).unwrap() == inode.content, "{:#?}", pair.tail());
        }
        Kind::Directory => {
            let mut names = Vec::new();
            let mut cookie = 0;
            loop {
                let page = files.list_directory(&node, cookie, 2).unwrap();
                for entry in page.entries {
                    cookie = entry.cookie;
                    names.push(entry.name.to_string());
                }
                if page.is_end {
                    break;
                }
            }
            names.sort_unstable();
            assert!(names.iter().eq(inode.names.keys()), "{path} {names:?} {:#?}", pair.tail());
        }
        _ => {}
    }
}

fn run(seed: u64, transactions: u32) {
    let mut pair = Pair::new(seed);
    for round in 0..transactions {
        pair.hand.tick();
        pair.model.now = pair.hand.now();
        let files = pair.files();
        let before = pair.model.clone();
        let (calls, is_given_up) = (1 + pair.random.below(12), pair.random.is_one_in(4));
        pair.say(format!("transaction of {calls}, given up: {is_given_up}"));
        let done = files.transact(|transaction| {
            for _ in 0..calls {
                call(&mut pair, transaction);
            }
            match is_given_up {
                true => Err(Error::new(Errno::CANCELED, "it is given up")),
                false => Ok(()),
            }
        });
        match is_given_up {
            true => {
                assert_eq!(done.unwrap_err().errno(), Errno::CANCELED);
                pair.model = before;
            }
            false => done.unwrap(),
        }
        // Calls of their own in between.
        pair.step();
        if round % 20 == 19 {
            pair.compare_all();
        }
        if round % 40 == 39 {
            pair.reopen();
            pair.compare_all();
        }
    }
    pair.compare_all();
}

#[test]
fn random_transactions_do_what_the_model_does_or_nothing() {
    for seed in 1_000..1_000 + part(40) {
        println!("seed {seed}");
        run(seed, 120);
    }
}

fn number(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).unwrap().trim().parse().unwrap()
}

/// Accounts in files, between which many move amounts: their sum stays, whoever looks whenever.
#[test]
fn a_total_that_transactions_keep_is_right_whenever_it_is_looked_at() {
    for kind in stores() {
        let store = Opened::new(kind);
        let name = store.name("accounts");
        let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        let two = FileSystem::open(&store.other(), &name).unwrap();
        let paths: Vec<_> = (0..8).map(|it| format!("/account {it}")).collect();
        for path in &paths {
            one.store_at(path, b"1000", MINE).unwrap();
        }
        let (paths, is_over) = (&paths, &AtomicBool::new(false));
        let sum = |files: &FileSystem| -> Result<u64, Error> {
            files.transact(|it| paths.iter().map(|at| Ok(number(&it.fetch_at(at)?))).sum())
        };
        thread::scope(|scope| {
            let movers: Vec<_> = [&one, &two, &one]
                .into_iter()
                .zip(1_u64..)
                .map(|(files, seed)| {
                    scope.spawn(move || {
                        let mut random = Random::new(seed);
                        for _ in 0..60 {
                            let (from, to) = (random.pick(paths), random.pick(paths));
                            let amount = random.below(50);
                            files.transact(|it| move_amount(it, from, to, amount)).unwrap();
                        }
                    })
                })
                .collect();
            let readers = [&one, &two].map(|files| {
                scope.spawn(move || {
                    let mut looks = 0;
                    while !is_over.load(Ordering::Relaxed) || looks == 0 {
                        assert_eq!(sum(files).unwrap(), 8_000);
                        looks += 1;
                    }
                })
            });
            movers.into_iter().for_each(|it| it.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|it| it.join().unwrap());
        });
        assert_eq!(one.check(&mut |_| true).unwrap().findings, []);
    }
}

fn move_amount(
    files: &Transaction,
    from: &str,
    to: &str,
    amount: u64,
) -> Result<(), tyr_fs::Error> {
    let has = number(&files.fetch_at(from)?);
    if has < amount {
        return Ok(());
    }
    // A file that is replaced, as programs do it, and one that is written anew.
    files.store_at("/new", (has - amount).to_string().as_bytes(), MINE)?;
    files.rename_at("/new", from)?;
    let has = number(&files.fetch_at(to)?);
    files.store_at(to, (has + amount).to_string().as_bytes(), MINE)
}

#[test]
fn names_in_many_directories_change_at_once_or_not_at_all() {
    let (directories, names) = (size(10, 100), size(20, 100));
    let Fixture { files, .. } = &fixture();
    for directory in 0..directories {
        files.make_directory_at(format!("/{directory}"), MINE).unwrap();
        for name in 0..names {
            files.store_at(format!("/{directory}/{name} a"), b"x", MINE).unwrap();
        }
    }
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut seen = [0, 0];
            while !is_over.load(Ordering::Relaxed) {
                let ends = files
                    .transact(|it| {
                        let mut ends = Vec::new();
                        for directory in 0..directories {
                            let node = it.find(format!("/{directory}"))?.node;
                            let page = it.list_directory(&node, 0, 1_000)?;
                            let names = page.entries.iter().map(|entry| entry.name.to_string());
                            ends.extend(names.map(|name| name.ends_with('b')));
                        }
                        Ok(ends)
                    })
                    .unwrap();
                assert_eq!(ends.len() as u64, directories * names);
                assert!(ends.iter().all(|end| *end == ends[0]), "part of it was seen");
                seen[usize::from(ends[0])] += 1;
            }
            seen
        });
        for round in 0..10 {
            let (old, new) = if round % 2 == 0 { ('a', 'b') } else { ('b', 'a') };
            files
                .transact(|it| {
                    for directory in 0..directories {
                        for name in 0..names {
                            let place = format!("/{directory}/{name}");
                            it.rename_at(format!("{place} {old}"), format!("{place} {new}"))?;
                        }
                    }
                    Ok(())
                })
                .unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        println!("seen before and behind a change: {:?}", reader.join().unwrap());
    });
    assert_eq!(files.check(&mut |_| true).unwrap().findings, []);
}

#[test]
fn a_conflict_leaves_nothing_and_is_told_when_it_does_not_end() {
    let fixture = fixture();
    let files = &fixture.files;
    files.store_at("/watched", b"0", MINE).unwrap();
    let mut runs = 0;
    let done = files.transact(|it| {
        runs += 1;
        it.fetch_at("/watched")?;
        it.make_directory_at("/made", MINE)?;
        it.store_at("/made/file", b"content", MINE)?;
        // Another program is always quicker.
        files.store_at("/watched", runs.to_string().as_bytes(), MINE)
    });
    assert_eq!(done.unwrap_err().errno(), Errno::AGAIN);
    assert_eq!(runs, 100);
    assert_eq!(files.find("/made").unwrap_err().errno(), Errno::NOENT);
    // Once is no trouble.
    let mut runs = 0;
    files
        .transact(|it| {
            runs += 1;
            let seen = it.fetch_at("/watched")?;
            if runs == 1 {
                files.store_at("/watched", b"other", MINE)?;
            }
            it.store_at("/copy", &seen, MINE)
        })
        .unwrap();
    assert_eq!((runs, files.fetch_at("/copy").unwrap().as_ref()), (2, &b"other"[..]));
    fixture.verify();
}

#[test]
fn what_others_make_beside_it_is_no_conflict() {
    let fixture = fixture();
    let files = &fixture.files;
    files.make_directory_at("/dir", MINE).unwrap();
    let log = files.make_file_at("/log", MINE).unwrap().node;
    let mut runs = 0;
    files
        .transact(|it| {
            runs += 1;
            it.store_at("/dir/mine", b"mine", MINE)?;
            it.append(&log, "mine")?;
            it.make_directory_at("/dir/below", MINE)?;
            files.store_at(format!("/dir/other {runs}"), b"other", MINE)?;
            files.append(&log, "other").map(drop)
        })
        .unwrap();
    assert_eq!(runs, 1);
    assert_eq!(files.attributes_at("/dir").unwrap().size, 3);
    assert_eq!(files.fetch_at("/log").unwrap(), "othermine");
    // But a name that it found free, and a directory that it listed, are.
    let mut runs = 0;
    files
        .transact(|it| {
            runs += 1;
            let directory = it.find("/dir")?.node;
            let names = it.list_directory(&directory, 0, 100)?.entries.len();
            if runs == 1 {
                files.store_at("/dir/last", b"x", MINE)?;
            }
            it.store_at("/count", names.to_string().as_bytes(), MINE)
        })
        .unwrap();
    assert_eq!((runs, number(&files.fetch_at("/count").unwrap())), (2, 4));
    fixture.verify();
}

#[test]
fn more_than_one_transaction_can_do_is_told_by_name() {
    let fixture = fixture();
    let files = &fixture.files;
    let many = |count: u64| {
        files.transact(|it| {
            for number in 0..count {
                it.make_file_at(format!("/{number}"), MINE)?;
            }
            Ok(())
        })
    };
    let error = many(40_000).unwrap_err();
    assert_eq!(error.errno(), Errno::TOOBIG, "{error}");
    assert!(error.text().contains("65536 conditions and changes"), "{error}");
    assert_eq!(files.attributes_at("/").unwrap().size, 0);
    many(5_000).unwrap();
    assert_eq!(files.attributes_at("/").unwrap().size, 5_000);
    fixture.verify();
}

#[test]
fn what_a_transaction_unlinks_stays_while_it_is_open() {
    for kind in stores() {
        let store = Opened::new(kind);
        let name = store.name("shared");
        let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        let two = FileSystem::open(&store.other(), &name).unwrap();
        for size in [10, 300_000] {
            let content = vec![1; size];
            one.store_at("/mine", &content, MINE).unwrap();
            one.store_at("/yours", &content, MINE).unwrap();
            let mine = one.open_file(&one.find("/mine").unwrap().node).unwrap();
            let yours = two.open_file(&two.find("/yours").unwrap().node).unwrap();
            one.transact(|it| {
                it.remove_file_at("/mine")?;
                it.store_at("/new", b"new", MINE)?;
                it.rename_at("/new", "/yours")
            })
            .unwrap();
            assert_eq!(two.fetch_at("/yours").unwrap(), "new");
            for open in [&mine, &yours] {
                open.append("more").unwrap();
                assert_eq!(open.read(size as u64, 9).unwrap(), "more");
            }
            mine.close().unwrap();
            yours.close().unwrap();
            for files in [&one, &two, &one] {
                files.tend_orphans().unwrap();
            }
            let report = one.check(&mut |_| true).unwrap();
            assert_eq!((report.findings, report.orphans), (vec![], 0));
        }
    }
}

#[test]
fn files_and_other_data_of_the_store_change_together() {
    let fixture = fixture();
    let files = &fixture.files;
    let rows = files.store().keyspace_or_create("rows", KeyspaceConfig::default()).unwrap();
    files
        .transact(|it| {
            it.store_at("/upload", b"bytes", MINE)?;
            it.with_store(|store| store.put(&rows, "upload", "5 bytes").map(drop))
        })
        .unwrap();
    assert_eq!(rows.get("upload").unwrap(), "5 bytes");
    // A row depends on a file that was read: what others do with that is a conflict.
    let mut runs = 0;
    files
        .transact(|it| {
            runs += 1;
            let size = it.attributes_at("/upload")?.size;
            if runs == 1 {
                files.store_at("/upload", b"longer bytes", MINE)?;
            }
            it.with_store(|store| store.put(&rows, "size", size.to_string()).map(drop))
        })
        .unwrap();
    assert_eq!((runs, rows.get("size").unwrap().as_ref()), (2, &b"12"[..]));
    // And neither comes without the other.
    let given_up: Result<(), _> = files.transact(|it| {
        it.remove_file_at("/upload")?;
        it.with_store(|store| store.delete(&rows, "upload").map(drop))?;
        Err(Error::new(Errno::CANCELED, "it is given up"))
    });
    assert_eq!(given_up.unwrap_err().errno(), Errno::CANCELED);
    assert!(files.find("/upload").is_ok() && rows.get("upload").is_ok());
    fixture.verify();
}

#[test]
fn a_tree_of_thousands_of_files_appears_at_once() {
    let (directories, names) = (size(50, 100), size(40, 290));
    let fixture = fixture();
    let files = &fixture.files;
    files
        .transact(|it| {
            for directory in 0..directories {
                it.make_directory_at(format!("/{directory}"), MINE)?;
                for name in 0..names {
                    it.store_at(format!("/{directory}/{name}"), b"content", MINE)?;
                }
            }
            assert_eq!(files.attributes_at("/")?.size, 0, "nothing is there before");
            Ok(())
        })
        .unwrap();
    let report = files.check(&mut |_| true).unwrap();
    assert_eq!((report.names, report.directories), (directories * names, directories + 1));
    fixture.verify();
}
