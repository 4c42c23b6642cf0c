//! Whatever is damaged is found and named, and repaired where that is promised.

mod content;
mod names;

use std::fmt::Write as _;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Bytes, Number, Transform};

use crate::blocking::FileSystem;
use crate::layout::key::{Blob, Space};
use crate::layout::name::Name;
use crate::layout::record::Access;
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
        for (path, len) in [("/large", 1_000), ("/dir/small", 5)] {
            let node = files.find(path).unwrap().node;
            files.set_xattr(&node, b"user.a", XattrChange::Set(vec![1; len])).unwrap();
        }
        assert_eq!(files.check(&mut |_| true).unwrap().findings, []);
        let (meta, data) =
            (store.keyspace("test.meta").unwrap(), store.keyspace("test.data").unwrap());
        Self { files, meta, data, _folder: folder }
    }

    fn number(&self, path: &str) -> u64 {
        self.files.find(path).unwrap().node.number
    }

    fn entry(&self, directory: &str, name: &str) -> Blob {
        Blob::entry(self.number(directory), &Name::new(name).unwrap())
    }

    fn keyspace(&self, blob: &Blob) -> &Keyspace {
        match blob.space {
            Space::Meta => &self.meta,
            Space::Data => &self.data,
        }
    }

    fn add(&self, blob: &Blob, offset: u64) {
        let one = Transform::add(Number::U32(1));
        self.keyspace(blob).apply(&blob.key, offset, one).unwrap();
    }

    fn delete(&self, blob: &Blob) {
        assert!(self.keyspace(blob).delete(&blob.key).unwrap());
    }

    fn get(&self, blob: &Blob) -> Bytes {
        self.keyspace(blob).get(&blob.key).unwrap()
    }

    fn put(&self, blob: &Blob, bytes: impl AsRef<[u8]>) {
        self.keyspace(blob).put(&blob.key, bytes.as_ref().to_vec()).unwrap();
    }

    fn write(&self, blob: &Blob, offset: u64, bytes: impl AsRef<[u8]>) {
        self.keyspace(blob).write(&blob.key, offset, bytes.as_ref().to_vec()).unwrap();
    }

    /// Sets a flag of an identity.
    fn flag(&self, blob: &Blob, flag: u8) {
        let flags = self.get(blob)[3];
        self.write(blob, 3, [flags | flag]);
    }

    /// All files' bytes that can be read, in no order.
    fn contents(&self) -> Vec<Bytes> {
        let mut contents = Vec::new();
        let mut directories = vec![self.files.find("/").unwrap().node];
        while let Some(directory) = directories.pop() {
            for entry in self.files.list_directory(&directory, 0, 100).unwrap().entries {
                match entry.node.kind {
                    crate::Kind::Directory => directories.push(entry.node),
                    _ => contents.push(self.files.read(&entry.node, 0, 1 << 20).unwrap()),
                }
            }
        }
        contents
    }
}

/// One thing that goes wrong.
struct Damage {
    what: &'static str,
    harm: fn(&Fixture),
    /// Words of what is said of it.
    words: &'static str,
    /// Words of what is done about it; empty where it is only named.
    repair: &'static str,
    /// Files whose bytes are there afterwards.
    left: usize,
}

/// How many names the files of the fixture have: two are of the large one.
const ALL: usize = 4;

fn texts(all: &[super::Finding]) -> String {
    all.iter().fold(String::new(), |mut text, finding| {
        writeln!(text, "{finding}").unwrap();
        text
    })
}

/// Does the harm, and answers what is not as it should be.
fn problem(damage: &Damage) -> Option<String> {
    let Damage { what, harm, words, repair, left } = damage;
    let fixture = Fixture::new();
    harm(&fixture);
    let found = texts(&fixture.files.check(&mut |_| true).unwrap().findings);
    if !found.contains(words) {
        return Some(format!("{what}: it is not found: {found}"));
    }
    let repairs = fixture.files.repair(&mut |_| true).unwrap();
    let (done, rest) = (texts(&repairs.done), texts(&repairs.report.findings));
    if repair.is_empty() {
        return (!rest.contains(words)).then(|| format!("{what}: it is gone: {done}"));
    }
    if !done.contains(repair) || !rest.is_empty() {
        return Some(format!("{what}: {done}and this is left: {rest}"));
    }
    fixture.files.tend_orphans().unwrap();
    let again = fixture.files.repair(&mut |_| true).unwrap();
    if !again.done.is_empty() || again.report.orphans > 0 {
        return Some(format!("{what}: repaired again: {again:?}"));
    }
    let kept = fixture.contents().iter().filter(|bytes| !bytes.is_empty()).count();
    (kept != *left).then(|| format!("{what}: {kept} files are left: {done}"))
}

#[test]
fn each_damage_is_found_and_named_and_repaired_where_it_can_be() {
    assert!(names::DAMAGES.len() + content::DAMAGES.len() >= 40);
    let problems: Vec<_> = std::thread::scope(|scope| {
        let halves = [&names::DAMAGES[..], &content::DAMAGES].map(|damages| {
            scope.spawn(move || damages.iter().filter_map(problem).collect::<Vec<_>>())
        });
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_lost_its_names_is_in_lost_and_found() {
    let fixture = Fixture::new();
    let number = fixture.number("/large");
    fixture.delete(&fixture.entry("/", "large"));
    fixture.delete(&fixture.entry("/dir", "link"));
    let lost = fixture.number("/dir");
    fixture.delete(&fixture.entry("/", "dir"));
    let repairs = fixture.files.repair(&mut |_| true).unwrap();
    assert_eq!(repairs.report.findings, []);
    let found = fixture.files.fetch_at(format!("/lost+found/#{number}")).unwrap();
    assert!(found == vec![1; 200_000]);
    let small = fixture.files.fetch_at(format!("/lost+found/#{lost}/small")).unwrap();
    assert_eq!(small, "small");
}

#[test]
fn a_check_is_stopped_when_it_is_enough() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        fixture.files.make_file_at(format!("/{number}"), MINE).unwrap();
    }
    let stopped = fixture.files.check(&mut |_| false).unwrap_err();
    assert_eq!(stopped.errno(), crate::Errno::INTR);
}
