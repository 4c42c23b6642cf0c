//! What is open stays usable, and what nobody has open is gone.

use tyr::blocking::Tyr;
use tyr_fs::blocking::FileSystem;
use tyr_fs::{Errno, RenameMode};

use super::{MINE, fixture, options};

#[test]
fn a_file_without_a_name_is_written_until_it_is_closed() {
    let fixture = fixture();
    let files = &fixture.files;
    for size in [10, 70_000, 300_000] {
        files.store_at("/file", &vec![1; size], MINE).unwrap();
        let node = files.find("/file").unwrap().node;
        let (one, two) = (files.open_file(&node).unwrap(), files.open_file(&node).unwrap());
        files.remove_file_at("/file").unwrap();
        assert_eq!(files.find("/file").unwrap_err().errno(), Errno::NOENT);
        one.append("more").unwrap();
        let attributes = two.attributes().unwrap();
        assert_eq!((attributes.size, attributes.links), (size as u64 + 4, 0));
        one.close().unwrap();
        assert_eq!(two.read(size as u64, 10).unwrap(), "more");
        assert_eq!(files.check(&mut |_| true).unwrap().orphans, 1);
        two.close().unwrap();
        assert_eq!(files.attributes(&node).unwrap_err().errno(), Errno::STALE);
        fixture.verify();
    }
}

#[test]
fn what_a_rename_replaces_stays_while_it_is_open() {
    let fixture = fixture();
    let files = &fixture.files;
    files.store_at("/old", b"old", MINE).unwrap();
    files.store_at("/new", b"new", MINE).unwrap();
    let open = files.open_file(&files.find("/old").unwrap().node).unwrap();
    files.rename_at("/new", "/old").unwrap();
    assert_eq!(open.read(0, 10).unwrap(), "old");
    assert_eq!(files.fetch_at("/old").unwrap(), "new");
    drop(open);
    fixture.verify();
}

#[test]
fn a_file_is_found_wherever_it_has_gone() {
    let fixture = fixture();
    let files = &fixture.files;
    files.make_directory_at("/there", MINE).unwrap();
    files.store_at("/file", b"content", MINE).unwrap();
    let node = files.find("/file").unwrap().node;
    files.rename_at("/file", "/there/moved").unwrap();
    assert_eq!(files.read(&node, 0, 10).unwrap(), "content");
    files.rename_at("/there/moved", "/file").unwrap();
    files.write(&node, 7, " here").unwrap();
    files.store_at("/other", b"other", MINE).unwrap();
    files.rename_at_with("/file", "/other", RenameMode::Exchange).unwrap();
    assert_eq!(files.fetch_at("/other").unwrap(), "content here");
    assert_eq!(files.fetch_at("/file").unwrap(), "other");
    files.link_at("/other", "/there/link").unwrap();
    assert_eq!(files.read(&node, 0, 7).unwrap(), "content");
    fixture.verify();
}

#[test]
fn who_opens_the_file_system_next_lets_go_of_what_a_dead_program_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let files = FileSystem::create(&store, "test", &options()).unwrap();
    files.store_at("/file", &[7; 200_000], MINE).unwrap();
    let open = files.open_file(&files.find("/file").unwrap().node).unwrap();
    files.remove_file_at("/file").unwrap();
    // While the first program is there, another leaves its orphans alone.
    let second = FileSystem::open(&store, "test").unwrap();
    assert_eq!(second.check(&mut |_| true).unwrap().orphans, 1);
    second.close().unwrap();
    std::mem::forget(open);
    std::mem::forget(files);
    store.close().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let files = FileSystem::open(&store, "test").unwrap();
    let report = files.check(&mut |_| true).unwrap();
    assert_eq!((report.findings, report.orphans, report.bytes), (vec![], 0, 0));
}

#[test]
fn what_is_no_file_system_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let refused = FileSystem::open(&store, "none").unwrap_err();
    assert_eq!(refused.errno(), Errno::NOENT);
    drop(FileSystem::create(&store, "test", &options()).unwrap());
    let refused = FileSystem::create(&store, "test", &options()).unwrap_err();
    assert_eq!(refused.errno(), Errno::EXIST);
    assert_eq!(FileSystem::list(&store).unwrap(), ["test"]);
    let key = [&[0_u8; 12][..], &[2, b's']].concat();
    let meta = store.keyspace("test.meta").unwrap();
    meta.write(&key, 8, vec![2]).unwrap();
    let refused = FileSystem::open(&store, "test").unwrap_err();
    assert_eq!(refused.errno(), Errno::OPNOTSUPP);
    assert!(refused.text().contains("format 2"), "{refused}");
}
