//! Whatever is damaged is found, and named.

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Number, Transform};

use crate::blocking::FileSystem;
use crate::layout::forward::Place;
use crate::layout::header::{ENTRIES_AT, PLACE_AT, SUBDIRECTORIES_AT};
use crate::layout::key::{Blob, ROOT};
use crate::layout::name::Name;
use crate::layout::record::{Access, LAST_SEGMENT_AT, LINKS_AT, MODE_AT};
use crate::options::Options;
use crate::plan::xattrs::XattrChange;

const MINE: Access = Access { mode: 0o700, owner: 1, group: 2 };

/// A file system with one of everything.
struct Fixture {
    files: FileSystem,
    meta: Keyspace,
    data: Keyspace,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).unwrap();
        let options = Options {
            segment_bits: 16,
            keyspace_config: tyr::KeyspaceConfig {
                durability: tyr::Durability::Buffered,
                ..tyr::KeyspaceConfig::default()
            },
            ..Options::default()
        };
        let files = FileSystem::create(&store, "test", &options).unwrap();
        files.make_directory_at("/dir", MINE).unwrap();
        files.make_directory_at("/dir/sub", MINE).unwrap();
        files.store_at("/dir/small", b"small", MINE).unwrap();
        files.store_at("/moved", b"moved", MINE).unwrap();
        files.rename_at("/moved", "/dir/moved").unwrap();
        files.store_at("/large", &[1; 200_000], MINE).unwrap();
        files.link_at("/large", "/dir/link").unwrap();
        let large = files.find("/large").unwrap().node;
        files.set_xattr(&large, b"user.big", XattrChange::Set(vec![1; 1_000])).unwrap();
        assert_eq!(files.check(&mut |_| true).unwrap().findings, []);
        let (meta, data) =
            (store.keyspace("test.meta").unwrap(), store.keyspace("test.data").unwrap());
        Self { files, meta, data, _folder: folder }
    }

    fn number(&self, path: &str) -> u64 {
        self.files.find(path).unwrap().node.number
    }

    fn entry(&self, directory: u64, name: &str) -> tyr::Key {
        Blob::entry(directory, &Name::new(name).unwrap()).key
    }
}

/// One thing that goes wrong, and words of what is said of it.
type Damage = (&'static str, fn(&Fixture), &'static str);

fn add(keyspace: &Keyspace, blob: &Blob, offset: u64) {
    keyspace.apply(&blob.key, offset, Transform::add(Number::U32(1))).unwrap();
}

const DAMAGES: [Damage; 24] = [
    ("superblock", |it| drop(it.meta.delete(&Blob::superblock().key)), "superblock: is missing"),
    ("next", |it| it.meta.put(&Blob::next_number().key, vec![0; 8]).unwrap(), "is 0, but there"),
    ("next gone", |it| drop(it.meta.delete(&Blob::next_number().key)), "given again"),
    ("root", |it| drop(it.meta.delete(&Blob::header(ROOT).key)), "the root is missing"),
    ("entries", |it| add(&it.meta, &Blob::header(it.number("/dir")), ENTRIES_AT), "it counts 5"),
    (
        "subdirectories",
        |it| add(&it.meta, &Blob::header(it.number("/dir")), SUBDIRECTORIES_AT),
        "2 directories among them",
    ),
    (
        "entry gone",
        |it| {
            drop(it.meta.delete(it.entry(it.number("/dir"), "small")));
        },
        "/dir: it counts 4",
    ),
    (
        "rights",
        |it| {
            add(&it.meta, &Blob::header(it.number("/dir")), MODE_AT);
        },
        "in its entry",
    ),
    (
        "parent",
        |it| {
            let header = Blob::header(it.number("/dir/sub"));
            it.meta.write(&header.key, PLACE_AT, vec![1]).unwrap();
        },
        "it says that it is sub in directory 1",
    ),
    (
        "loop",
        |it| {
            let (above, below) = (it.number("/dir"), it.number("/dir/sub"));
            let parent = below.to_le_bytes().to_vec();
            it.meta.write(&Blob::header(above).key, PLACE_AT, parent).unwrap();
        },
        "is not below the root",
    ),
    ("header gone", |it| drop(it.meta.delete(&Blob::header(it.number("/dir/sub")).key)), "nothing"),
    (
        "names of none",
        |it| {
            drop(it.meta.delete(&Blob::header(it.number("/dir")).key));
        },
        "no such directory",
    ),
    (
        "a name twice",
        |it| {
            let small = it.meta.get(it.entry(it.number("/dir"), "small")).unwrap();
            it.meta.put(it.entry(ROOT, "again"), small).unwrap();
        },
        "lies in two entries",
    ),
    (
        "kind",
        |it| {
            it.meta.write(it.entry(ROOT, "large"), 2, vec![4]).unwrap();
        },
        "it is a file, but not to large",
    ),
    (
        "record",
        |it| {
            it.meta.write(it.entry(it.number("/dir"), "small"), 0, "XX").unwrap();
        },
        "does not begin as a record",
    ),
    (
        "fence",
        |it| {
            it.meta.write(&Blob::header(it.number("/dir")).key, 480, vec![9]).unwrap();
        },
        "its fence is",
    ),
    ("links", |it| add(&it.data, &Blob::inode(it.number("/large")), LINKS_AT), "it counts 3 names"),
    ("inode gone", |it| drop(it.data.delete(&Blob::inode(it.number("/large")).key)), "no inode"),
    ("last", |it| add(&it.data, &Blob::inode(it.number("/large")), LAST_SEGMENT_AT), "is missing"),
    (
        "beyond",
        |it| {
            it.data.put(&Blob::content(it.number("/large"), 9).key, "x").unwrap();
        },
        "it ends in segment 3, but has",
    ),
    (
        "forward gone",
        |it| {
            drop(it.data.delete(&Blob::forward(it.number("/dir/moved")).key));
        },
        "/dir/moved: its forward is missing",
    ),
    (
        "forward",
        |it| {
            let place = Place { directory: 1, name: Name::new("x").unwrap() };
            it.data.put(&Blob::forward(it.number("/dir/moved")).key, place.encode()).unwrap();
        },
        "its forward leads to x",
    ),
    ("xattrs", |it| drop(it.data.delete(&Blob::xattrs(it.number("/large")).key)), "are missing"),
    (
        "orphan",
        |it| {
            it.meta.put(&Blob::orphan(it.number("/large")).key, vec![0; 8]).unwrap();
        },
        "is listed as one",
    ),
];

#[test]
fn each_damage_is_found_and_named() {
    for (what, damage, words) in DAMAGES {
        let fixture = Fixture::new();
        damage(&fixture);
        let report = fixture.files.check(&mut |_| true).unwrap();
        let texts: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains(words)), "{what}: {texts:?}");
    }
}

#[test]
fn a_check_is_stopped_when_it_is_enough() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        fixture.files.make_file_at(format!("/{number}"), MINE).unwrap();
    }
    let stopped = fixture.files.check(&mut |_| false).unwrap_err();
    assert_eq!(stopped.errno(), rustix::io::Errno::INTR);
}
