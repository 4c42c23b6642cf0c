//! Directories, which are what keys begin with, and their listings.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tyr::blocking::Keyspace;
use tyr_testing::Kind;

use super::{Flat, errno, with_flat, with_flat_alone, with_flat_of};

fn names(at: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        fs::read_dir(at).unwrap().map(|it| name(it).into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_directory_is_there_while_keys_begin_with_it() {
    with_flat(|Flat { keyspace, one, other }| {
        keyspace.put("a/b/c", "content").unwrap();
        assert_eq!(names(one), ["a"]);
        assert_eq!(names(&one.join("a")), ["b"]);
        assert!(one.join("a/b").is_dir() && one.join("a/b/c").is_file());
        assert_eq!(errno(fs::read(one.join("a/b"))), Some(21));
        assert_eq!(errno(fs::read(one.join("a/b/c/d"))), Some(20));
        assert_eq!(errno(fs::remove_dir(one.join("a/b"))), Some(39));
        assert_eq!(errno(fs::create_dir(one.join("a"))), Some(17));
        keyspace.delete("a/b/c").unwrap();
        assert!(!one.join("a").exists() && names(other).is_empty());
    });
}

fn make_and_remove_directories(keyspace: &Keyspace, at: &Path) {
    fs::create_dir_all(at.join("x/y/z")).unwrap();
    assert_eq!(keyspace.scan(b"", None, 10).unwrap(), [], "an empty one is nowhere in the store");
    assert_eq!(errno(fs::remove_dir(at.join("x"))), Some(39));
    assert_eq!((names(at), names(&at.join("x"))), (vec!["x".to_owned()], vec!["y".to_owned()]));
    fs::write(at.join("x/y/file"), "content").unwrap();
    assert_eq!(keyspace.get("x/y/file").unwrap(), "content");
    assert_eq!(names(&at.join("x/y")), ["file", "z"]);
    assert_eq!(errno(fs::remove_dir(at.join("x/y"))), Some(39));
    fs::remove_dir(at.join("x/y/z")).unwrap();
    // A directory outlives what was taken out of it here, for who removes it next.
    fs::remove_file(at.join("x/y/file")).unwrap();
    assert!(names(&at.join("x/y")).is_empty());
    fs::remove_dir(at.join("x/y")).unwrap();
    fs::remove_dir(at.join("x")).unwrap();
    assert!(names(at).is_empty());
    assert_eq!(errno(fs::remove_dir(at.join("x"))), Some(2));
    for number in 0..20 {
        fs::create_dir_all(at.join(format!("tree/{number}"))).unwrap();
        fs::write(at.join(format!("tree/{number}/leaf")), "").unwrap();
    }
    fs::remove_dir_all(at.join("tree")).unwrap();
    assert_eq!(keyspace.scan(b"", None, 10).unwrap(), []);
    assert!(names(at).is_empty());
}

#[test]
fn directories_are_made_filled_emptied_and_removed() {
    with_flat(|flat| make_and_remove_directories(flat.keyspace, flat.one));
    with_flat_alone(make_and_remove_directories);
}

#[test]
fn an_empty_directory_is_known_where_it_was_made_until_something_is_in_it() {
    with_flat(|Flat { keyspace, one, other }| {
        fs::create_dir(one.join("dir")).unwrap();
        assert!(one.join("dir").is_dir() && !other.join("dir").exists());
        fs::write(one.join("dir/file"), "content").unwrap();
        assert_eq!(names(&other.join("dir")), ["file"]);
        assert_eq!(names(&one.join("dir")), ["file"]);
        keyspace.delete("dir/file").unwrap();
        assert!(!one.join("dir").exists() && !other.join("dir").exists());
    });
}

#[test]
fn a_directory_hides_a_blob_of_the_same_name() {
    with_flat(|Flat { keyspace, one, .. }| {
        keyspace.put("name", "hidden").unwrap();
        assert!(one.join("name").is_file());
        keyspace.put("name/below", "content").unwrap();
        assert!(one.join("name").is_dir());
        assert_eq!(names(one), ["name"]);
        // Its directory may come on a later page than the blob.
        for number in 0..1_500 {
            keyspace.put(format!("name!{number}").as_str(), "").unwrap();
        }
        let all = names(one);
        assert_eq!(all.iter().filter(|name| *name == "name").count(), 1);
        assert_eq!(all.len(), 1_501);
        keyspace.delete("name/below").unwrap();
        assert_eq!(fs::read_to_string(one.join("name")).unwrap(), "hidden");
        assert_eq!(names(one).len(), 1_501);
    });
}

#[test]
fn keys_that_are_no_paths_are_not_shown_and_harm_nothing() {
    with_flat_of(Kind::Embedded, |Flat { keyspace, one, .. }| {
        let long = "n".repeat(256);
        let bad = ["/", "/a", "a//b", "a/", "a/./b", "a/../b", ".", "..", "./x", "nul\0", &long];
        for key in bad {
            keyspace.put(key, "content").unwrap();
        }
        keyspace.put(format!("{long}/below").as_str(), "content").unwrap();
        keyspace.put("a/good", "content").unwrap();
        keyspace.put(&b"a/\xFF\xFE"[..], "bytes").unwrap();
        assert_eq!(names(one), ["a"]);
        assert_eq!(fs::read_dir(one.join("a")).unwrap().count(), 2);
        let bytes = std::os::unix::ffi::OsStrExt::from_bytes(&b"\xFF\xFE"[..]);
        let bytes: &std::ffi::OsStr = bytes;
        assert_eq!(fs::read_to_string(one.join("a").join(bytes)).unwrap(), "bytes");
        fs::remove_file(one.join("a/good")).unwrap();
        fs::remove_file(one.join("a").join(bytes)).unwrap();
        assert_eq!(errno(fs::remove_dir(one.join("a"))), Some(39), "there are keys below");
    });
}

#[test]
fn thousands_of_keys_are_listed_each_once() {
    with_flat(|Flat { keyspace, one, .. }| {
        let put = |from: usize| {
            for number in (from..5_000).step_by(8) {
                let key = match number % 5 {
                    0 => format!("deep/{}/{number}", number % 7),
                    _ => format!("flat/{number}"),
                };
                keyspace.put(key.as_str(), "").unwrap();
            }
        };
        std::thread::scope(|scope| (0..8).for_each(|from| drop(scope.spawn(move || put(from)))));
        assert_eq!(names(one), ["deep", "flat"]);
        assert_eq!(names(&one.join("deep")), ["0", "1", "2", "3", "4", "5", "6"]);
        let flat: BTreeSet<_> = names(&one.join("flat")).into_iter().collect();
        assert_eq!((flat.len(), names(&one.join("flat")).len()), (4_000, 4_000));
        let deep = (0..7).map(|it| names(&one.join(format!("deep/{it}"))).len());
        assert_eq!(deep.sum::<usize>(), 1_000);
    });
}

#[test]
fn a_program_goes_back_to_any_place_in_a_listing() {
    with_flat_of(Kind::Embedded, |Flat { keyspace, one, .. }| {
        for number in 0..2_500 {
            keyspace.put(format!("{number:04}").as_str(), "").unwrap();
        }
        let directory = fs::File::open(one).unwrap();
        let mut read = rustix::fs::Dir::read_from(&directory).unwrap();
        let mut all = Vec::new();
        while let Some(entry) = read.read() {
            let entry = entry.unwrap();
            all.push((entry.file_name().to_owned(), entry.offset()));
        }
        assert_eq!(all.len(), 2_502);
        for at in [0, 1, 2, 700, 999, 1_000, 1_001, 2_400] {
            read.seek(all[at].1).unwrap();
            let next = read.read().unwrap().unwrap();
            assert_eq!(next.file_name(), &*all[at + 1].0, "behind {at}");
        }
        read.rewind();
        keyspace.put("0000 new", "").unwrap();
        assert_eq!(std::iter::from_fn(|| read.read()).count(), 2_503);
    });
}
