//! Paths, and listings that go on while names come and go.

use std::collections::BTreeMap;
use std::time::Instant;

use tyr_chance::size;
use tyr_fs::{Errno, Name, NewFile, Node};

use super::{MINE, fixture};

#[test]
fn paths_are_walked_as_posix_has_it() {
    let fixture = fixture();
    let files = &fixture.files;
    files.make_directory_at("/a", MINE).unwrap();
    files.make_directory_at("/a/b/", MINE).unwrap();
    files.store_at("/a/b/file", b"found", MINE).unwrap();
    files.make_symlink_at("/a/up", "../a/b", MINE).unwrap();
    files.make_symlink_at("/round", "round", MINE).unwrap();
    assert_eq!(files.fetch_at("//a/./b/../up/file").unwrap(), "found");
    assert_eq!(files.fetch_at("/a/up/../b/file").unwrap(), "found");
    let refused = |path: &str| files.find(path).unwrap_err().errno();
    assert_eq!(refused("/round"), Errno::LOOP);
    assert_eq!(refused("/a/b/file/"), Errno::NOTDIR);
    assert_eq!(refused("/a/b/file/x"), Errno::NOTDIR);
    assert_eq!(refused("/a/none/x"), Errno::NOENT);
    assert_eq!(refused(""), Errno::NOENT);
    assert_eq!(refused(&format!("/{}", "x".repeat(256))), Errno::NAMETOOLONG);
    assert_eq!(refused(&"/a".repeat(2_049)), Errno::NAMETOOLONG);
    assert_eq!(files.remove_directory_at("/").unwrap_err().errno(), Errno::BUSY);
    assert_eq!(files.make_directory_at("/", MINE).unwrap_err().errno(), Errno::EXIST);
    assert_eq!(files.find("/").unwrap().node, Node::ROOT);
    assert_eq!(files.find_symlink("/a/up").unwrap().attributes.size, 6);
}

#[test]
fn a_name_that_is_there_throughout_is_listed_once_whatever_comes_and_goes() {
    let fixture = fixture();
    let files = &fixture.files;
    let name = |text: String| Name::new(text).unwrap();
    let make = |text: String| {
        files.make_file(&Node::ROOT, &name(text), NewFile::regular(MINE)).unwrap();
    };
    for number in 0..300 {
        make(format!("stays {number}"));
        make(format!("goes {number}"));
    }
    let (mut seen, mut cookie) = (BTreeMap::<Name, u32>::new(), 0);
    for round in 0.. {
        let page = files.list_directory(&Node::ROOT, cookie, 7).unwrap();
        for entry in page.entries {
            assert!(entry.cookie > cookie, "cookies rise");
            cookie = entry.cookie;
            *seen.entry(entry.name).or_default() += 1;
        }
        if page.is_end {
            break;
        }
        make(format!("comes {round}"));
        let _ = files.remove_file(&Node::ROOT, &name(format!("goes {round}")));
    }
    for number in 0..300 {
        assert_eq!(seen.get(&name(format!("stays {number}"))), Some(&1));
    }
    assert!(seen.values().all(|count| *count == 1));
    fixture.verify();
}

/// What a rename commits does not grow with what is below; the times are told.
#[test]
fn a_directory_of_many_names_is_renamed_and_swapped_as_an_empty_one_is() {
    let thousands = size(1, 1_000);
    let fixture = fixture();
    let files = &fixture.files;
    for path in ["/empty", "/full"] {
        files.make_directory_at(path, MINE).unwrap();
    }
    for thousand in 0..thousands {
        files
            .transact(|it| {
                for number in 0..1_000 {
                    it.make_file_at(format!("/full/{thousand} {number}"), MINE)?;
                }
                Ok(())
            })
            .unwrap();
    }
    let measured = |path: &str| {
        let (moved, before) = (format!("{path}-moved"), files.store().statistics());
        let mut times: Vec<_> = (0..50)
            .map(|_| {
                let begun = Instant::now();
                files.rename_at(path, &moved).unwrap();
                files.rename_at(&moved, path).unwrap();
                begun.elapsed() / 2
            })
            .collect();
        times.sort_unstable();
        println!("{path}: a rename takes {:?}", times[times.len() / 2]);
        files.store().statistics().commits - before.commits
    };
    assert_eq!(measured("/empty"), measured("/full"));
    let begun = Instant::now();
    files.swap_at("/empty", "/full").unwrap();
    println!("the two change places in {:?}", begun.elapsed());
    assert_eq!(files.attributes_at("/empty").unwrap().size, 1_000 * thousands);
    assert!(files.find("/empty/0 999").is_ok());
    files.swap_at("/empty", "/full").unwrap();
    assert_eq!(files.check(&mut |_| true).unwrap().names, 1_000 * thousands);
    fixture.verify();
}
