//! Several programs with one file system: each of two that opened it in one store, or on a cluster
//! with a connection of its own.

use tyr_fs::blocking::{FileSystem, OpenFile};
use tyr_fs::{Errno, RenameMode};

use super::{MINE, options};
use tyr_testing::{Kind, Opened, stores};

/// Two programs.
struct Two {
    one: FileSystem,
    two: FileSystem,
    store: Opened,
}

impl Two {
    fn new(kind: Kind) -> Self {
        let store = Opened::new(kind);
        let name = store.name("shared");
        let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        let two = FileSystem::open(&store.other(), &name).unwrap();
        Self { one, two, store }
    }

    /// The second opens what the first made.
    fn opened(&self, path: &str) -> OpenFile {
        self.two.open_file(&self.two.find(path).unwrap().node).unwrap()
    }

    fn orphans(&self) -> u64 {
        let report = self.one.check(&mut |_| true).unwrap();
        assert_eq!(report.findings, []);
        report.orphans
    }
}

#[test]
fn what_another_program_unlinks_or_replaces_stays_while_it_is_open_here() {
    for kind in stores() {
        let pair = Two::new(kind);
        let (one, two) = (&pair.one, &pair.two);
        for size in [10, 70_000, 300_000] {
            one.store_at("/file", &vec![1; size], MINE).unwrap();
            let open = pair.opened("/file");
            match size {
                70_000 => {
                    one.store_at("/new", b"new", MINE).unwrap();
                    one.rename_at("/new", "/file").unwrap();
                    assert_eq!(two.fetch_at("/file").unwrap(), "new");
                    one.remove_file_at("/file").unwrap();
                }
                _ => one.remove_file_at("/file").unwrap(),
            }
            assert_eq!(two.find("/file").unwrap_err().errno(), Errno::NOENT);
            open.append("more").unwrap();
            // The others do not have it open.
            one.tend_orphans().unwrap();
            two.tend_orphans().unwrap();
            assert_eq!(pair.orphans(), 1);
            let attributes = open.attributes().unwrap();
            assert_eq!((attributes.size, attributes.links), (size as u64 + 4, 0));
            assert_eq!(open.read(size as u64 - 1, 9).unwrap(), "\x01more");
            open.close().unwrap();
            two.tend_orphans().unwrap();
            one.tend_orphans().unwrap();
            assert_eq!(pair.orphans(), 0);
        }
    }
}

#[test]
fn a_transaction_extends_a_file_twice_into_the_same_segment() {
    for kind in stores() {
        let pair = Two::new(kind);
        pair.one.store_at("/file", &[1; 10], MINE).unwrap();
        let extended = pair.one.transact(|together| {
            let node = together.find("/file")?.node;
            together.truncate(&node, 300_000)?;
            together.truncate(&node, 310_000)?;
            together.write(&node, 305_000, "x")
        });
        extended.unwrap();
        let bytes = pair.two.fetch_at("/file").unwrap();
        assert_eq!((bytes.len(), bytes[9], bytes[10], bytes[305_000]), (310_000, 1, 0, b'x'));
        assert_eq!(pair.orphans(), 0);
    }
}

#[test]
fn a_file_is_used_on_whatever_two_others_do_to_it_and_its_name() {
    for kind in stores() {
        let pair = Two::new(kind);
        let (one, two) = (&pair.one, &pair.two);
        let three = FileSystem::open(&pair.store.other(), one.name()).unwrap();
        one.make_directory_at("/dir", MINE).unwrap();
        one.store_at("/file", &[1; 300_000], MINE).unwrap();
        let bytes = || one.check(&mut |_| true).unwrap().bytes;
        let open = pair.opened("/file");
        three.rename_at("/file", "/dir/other").unwrap();
        three.truncate(open.node(), 100_000).unwrap();
        assert_eq!(open.attributes().unwrap().size, 100_000);
        one.remove_file_at("/dir/other").unwrap();
        // It is found by nobody, and changed by all who have it.
        assert_eq!(two.find("/dir/other").unwrap_err().errno(), Errno::NOENT);
        open.write(99_999, vec![2; 100_000]).unwrap();
        three.truncate(open.node(), 150_000).unwrap();
        assert_eq!(open.append("more").unwrap(), 150_000);
        assert_eq!(open.read(99_998, 2).unwrap(), [1, 2][..]);
        assert_eq!(open.read(149_999, 9).unwrap(), "\x02more");
        [one, &three].into_iter().for_each(|files| files.tend_orphans().unwrap());
        assert_eq!((pair.orphans(), bytes()), (1, 150_004));
        open.close().unwrap();
        [two, one, &three].into_iter().for_each(|files| files.tend_orphans().unwrap());
        assert_eq!((pair.orphans(), bytes()), (0, 0));
    }
}

#[test]
fn who_begins_while_a_name_goes_may_have_the_file_open() {
    let store = Opened::new(Kind::Embedded);
    let one = FileSystem::create(&store.tyr, "test", &options()).unwrap();
    // Nobody else is there, so the first name goes with its file.
    one.store_at("/first", b"1", MINE).unwrap();
    one.remove_file_at("/first").unwrap();
    assert_eq!(one.check(&mut |_| true).unwrap().orphans, 0);
    one.store_at("/second", b"2", MINE).unwrap();
    let two = FileSystem::open(&store.tyr, "test").unwrap();
    let open = two.open_file(&two.find("/second").unwrap().node).unwrap();
    one.remove_file_at("/second").unwrap();
    assert_eq!(open.read(0, 9).unwrap(), "2");
    open.close().unwrap();
    two.tend_orphans().unwrap();
    assert_eq!(one.check(&mut |_| true).unwrap().orphans, 0);
    // And when it has gone, the first is alone again.
    two.close().unwrap();
    one.store_at("/third", b"3", MINE).unwrap();
    one.remove_file_at("/third").unwrap();
    assert_eq!(one.check(&mut |_| true).unwrap().orphans, 0);
}

#[test]
fn what_one_program_does_the_other_sees_at_once() {
    for kind in stores() {
        let pair = Two::new(kind);
        let (one, two) = (&pair.one, &pair.two);
        one.make_directory_at("/dir", MINE).unwrap();
        for round in 0..20_u8 {
            let path = format!("/dir/{round}");
            one.store_at(&path, &[round; 100], MINE).unwrap();
            let open = pair.opened(&path);
            assert_eq!(open.read(0, 200).unwrap(), vec![round; 100]);
            open.write(50, vec![round + 1; 70_000]).unwrap();
            assert_eq!(one.attributes_at(&path).unwrap().size, 70_050);
            let moved = format!("/{round}");
            one.rename_at_with(&path, &moved, RenameMode::NoReplace).unwrap();
            assert_eq!(two.find(&path).unwrap_err().errno(), Errno::NOENT);
            open.append("end").unwrap();
            assert_eq!(one.fetch_at(&moved).unwrap().len(), 70_053);
        }
        assert_eq!(pair.orphans(), 0);
    }
}
