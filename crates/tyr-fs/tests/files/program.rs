//! Random programs on a real file system and on its model: the same answers, and in the end, and
//! whenever the store is opened anew, the same tree with the same attributes.

use std::collections::BTreeMap;

use tyr::blocking::Tyr;
use tyr_chance::part;
use tyr_fs::blocking::{FileSystem, OpenFile};
use tyr_fs::{
    Access, AccessTimes, Allocation, Attributes, Errno, Error, Kind, Name, NewAttributes, NewFile,
    Node, RenameMode, Time, XattrChange,
};

use super::model::{Model, ROOT};
use super::random::Random;
use super::{Hand, MINE, options};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "long name"];
const SLOTS: usize = 3;

/// The real one, its model, and files that are open in both.
pub struct Pair {
    folder: tempfile::TempDir,
    store: Option<Tyr>,
    files: Option<FileSystem>,
    pub model: Model,
    pub hand: Hand,
    open: Vec<Option<(OpenFile, u64)>>,
    pub random: Random,
    log: Vec<String>,
}

pub fn errno<T>(result: Result<T, Error>) -> Result<T, Errno> {
    result.map_err(|error| error.errno())
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).unwrap();
        drop(FileSystem::create(&store, "test", &options()).unwrap());
        let hand = Hand::default();
        hand.0.store(1_700_000_000_000_000_000, std::sync::atomic::Ordering::SeqCst);
        let files = FileSystem::open_with(&store, "test", hand.clock()).unwrap();
        let files = files.with_access_times(AccessTimes::Never);
        let root = Access { mode: 0o755, owner: 0, group: 0 };
        let mut model = Model::new(root, hand.now());
        // Its times are those of the real clock.
        let made = files.attributes(&Node::ROOT).unwrap().times;
        let inode = model.inodes.get_mut(&ROOT).unwrap();
        (inode.mtime, inode.ctime, inode.atime, inode.btime) =
            (made.mtime, made.ctime, made.atime, made.btime);
        hand.0.store(made.mtime.0 + 1_000, std::sync::atomic::Ordering::SeqCst);
        let open = (0..SLOTS).map(|_| None).collect();
        let (store, files, random) = (Some(store), Some(files), Random::new(seed));
        Self { folder, store, files, model, hand, open, random, log: Vec::new() }
    }

    pub fn files(&self) -> FileSystem {
        self.files.clone().unwrap()
    }

    pub fn path(&mut self) -> String {
        let depth = 1 + self.random.below(3);
        (0..depth).map(|_| format!("/{}", self.random.pick(&NAMES))).collect()
    }

    pub fn data(&mut self) -> Vec<u8> {
        let len = match self.random.below(12) {
            0 => 0,
            1 => 60_000 + self.random.below(20_000),
            2 => 200_000,
            _ => self.random.below(300),
        };
        let byte = self.random.next() as u8;
        (0..len).map(|at| byte.wrapping_add((at / 7) as u8)).collect()
    }

    pub fn offset(&mut self) -> u64 {
        match self.random.below(10) {
            0 => self.random.below(400_000),
            1 => 65_536 * self.random.below(4),
            _ => self.random.below(500),
        }
    }

    pub fn access(&mut self) -> Access {
        let mode = *self.random.pick(&[0o644, 0o755, 0o2775, 0o1777]);
        Access { mode, owner: self.random.below(4) as u32, group: self.random.below(4) as u32 }
    }

    /// Does something to both, and compares what they say.
    pub fn step(&mut self) {
        self.hand.tick();
        self.model.now = self.hand.now();
        match self.random.below(24) {
            0..=9 => self.change_names(),
            10..=15 => self.change_content(),
            16..=18 => self.change_attributes(),
            _ => self.use_open(),
        }
    }

    pub fn say(&mut self, what: String) {
        self.log.push(what);
    }

    fn change_names(&mut self) {
        let (path, to, access) = (self.path(), self.path(), self.access());
        let files = self.files();
        let (real, model) = match self.random.below(10) {
            0 | 1 => {
                self.say(format!("mkdir {path} {access:?}"));
                let model = self.model.make(&path, Kind::Directory, access, b"");
                (errno(files.make_directory_at(&path, access)).map(drop), model)
            }
            2 => {
                self.say(format!("fifo {path}"));
                let made = errno(fifo(&files, &path, access));
                (made, self.model.make(&path, Kind::Fifo, access, b""))
            }
            3 => {
                let target = if self.random.is_one_in(2) { to } else { to[1..].to_owned() };
                self.say(format!("symlink {path} to {target}"));
                let access = Access { mode: 0o777, ..access };
                let model = self.model.make(&path, Kind::Symlink, access, target.as_bytes());
                let model = if model == Err(Errno::EXIST) && path == "/" {
                    Err(Errno::BUSY)
                } else {
                    model
                };
                (errno(files.make_symlink_at(&path, &target, access)).map(drop), model)
            }
            4 => {
                self.say(format!("unlink {path}"));
                (errno(files.remove_file_at(&path)), self.model.remove(&path, false))
            }
            5 => {
                self.say(format!("rmdir {path}"));
                (errno(files.remove_directory_at(&path)), self.model.remove(&path, true))
            }
            6 => {
                self.say(format!("link {path} to {to}"));
                (errno(files.link_at(&path, &to)), self.model.link(&path, &to))
            }
            _ => {
                let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = *self.random.pick(&modes);
                self.say(format!("rename {path} to {to} {mode:?}"));
                let real = errno(files.rename_at_with(&path, &to, mode));
                (real, self.model.rename(&path, &to, mode))
            }
        };
        assert_eq!(real, model, "{:#?}", self.tail());
    }

    fn change_content(&mut self) {
        let (path, data, offset) = (self.path(), self.data(), self.offset());
        let (access, files) = (self.access(), self.files());
        let what = self.random.below(6);
        self.say(format!("content {what} {path} at {offset} {} bytes", data.len()));
        let (real, model) = match what {
            0 | 1 => {
                let real = errno(files.store_at(&path, &data, access)).map(|()| 0);
                let model = self.model.open_or_make(&path, access).and_then(|number| {
                    self.model.truncate(number, 0)?;
                    self.model.write(number, 0, &data).map(|()| 0)
                });
                (real, model)
            }
            2 => {
                let node = errno(files.find(&path)).map(|seen| seen.node);
                let real = node.and_then(|node| errno(files.append(&node, data.clone())));
                let model = self.model.find(&path, true);
                (real, model.and_then(|number| self.model.append(number, &data)))
            }
            3 | 4 => {
                let node = errno(files.find(&path)).map(|seen| seen.node);
                let real = node.and_then(|it| errno(files.write(&it, offset, data.clone())));
                let model = self.model.find(&path, true);
                let model = model.and_then(|number| self.model.write(number, offset, &data));
                (real.map(|()| 0), model.map(|()| 0))
            }
            _ => {
                let node = errno(files.find(&path)).map(|seen| seen.node);
                let real = node.and_then(|node| errno(files.truncate(&node, offset)));
                let model = self.model.find(&path, true);
                let model = model.and_then(|number| self.model.truncate(number, offset));
                (real.map(|()| 0), model.map(|()| 0))
            }
        };
        // Where nothing is appended there is no place that it is at.
        let is_nothing = data.is_empty() && what == 2;
        let told = |it: Result<u64, Errno>| it.map(|at| if is_nothing { 0 } else { at });
        assert_eq!(told(real), told(model), "{:#?}", self.tail());
    }

    fn change_attributes(&mut self) {
        let (path, files, access) = (self.path(), self.files(), self.access());
        let real = errno(files.find_symlink(&path)).map(|seen| seen.node);
        let model = self.model.find(&path, false);
        let found = real.as_ref().map(drop).map_err(|it| *it);
        assert_eq!(found, model.map(drop), "{path} {:#?}", self.tail());
        let (Ok(node), Ok(number)) = (real, model) else { return };
        let what = self.random.below(4);
        self.say(format!("attributes {what} of {path}"));
        match what {
            0 => {
                let Access { mode, owner, group } = access;
                let new = NewAttributes {
                    mode: Some(mode),
                    owner: Some(owner),
                    group: Some(group),
                    ..NewAttributes::default()
                };
                files.set_attributes(&node, new).unwrap();
                self.model.touch(number, |file| file.access = access);
            }
            1 => {
                let (atime, mtime) = (Time(self.random.next() as i64), Time(-5));
                let new = NewAttributes {
                    atime: Some(atime),
                    mtime: Some(mtime),
                    ..NewAttributes::default()
                };
                files.set_attributes(&node, new).unwrap();
                self.model.touch(number, |file| (file.atime, file.mtime) = (atime, mtime));
            }
            2 => {
                let name = format!("user.{}", self.random.pick(&NAMES)).into_bytes();
                let len = *self.random.pick(&[3, 50, 350, 3_000]);
                let value = vec![self.random.next() as u8; len];
                let change = XattrChange::Set(value.clone());
                files.set_xattr(&node, &name, change).unwrap();
                self.model.touch(number, |file| drop(file.xattrs.insert(name, value)));
            }
            _ => {
                let name = format!("user.{}", self.random.pick(&NAMES)).into_bytes();
                let real = errno(files.set_xattr(&node, &name, XattrChange::Remove));
                if self.model.inodes[&number].xattrs.contains_key(&name) {
                    assert_eq!(real, Ok(()));
                    self.model.touch(number, |file| drop(file.xattrs.remove(&name)));
                } else {
                    assert_eq!(real, Err(Errno::NODATA));
                }
            }
        }
    }

    /// Opens, uses and closes files, whatever became of their names.
    fn use_open(&mut self) {
        let (path, data, offset) = (self.path(), self.data(), self.offset());
        let slot = self.random.below(SLOTS as u64) as usize;
        let files = self.files();
        let Some((file, number)) = self.open[slot].take() else {
            let real = errno(files.find(&path)).map(|seen| seen.node);
            let model = self.model.find(&path, true);
            let found = real.as_ref().map(drop).map_err(|it| *it);
            assert_eq!(found, model.map(drop), "{path} {:#?}", self.tail());
            if let (Ok(node), Ok(number)) = (real, model)
                && node.kind == Kind::Regular
            {
                self.say(format!("open {path} as {slot}"));
                self.open[slot] = Some((files.open_file(&node).unwrap(), number));
            }
            return;
        };
        let what = self.random.below(8);
        self.say(format!("open {slot}: {what} at {offset} {} bytes", data.len()));
        match what {
            0 => {
                file.write(offset, data.clone()).unwrap();
                self.model.write(number, offset, &data).unwrap();
            }
            1 => {
                let real = file.append(data.clone()).unwrap();
                let model = self.model.append(number, &data).unwrap();
                assert!(data.is_empty() || real == model, "{real} {model} {:#?}", self.tail());
            }
            2 => {
                file.truncate(offset).unwrap();
                self.model.truncate(number, offset).unwrap();
            }
            3 => {
                file.close().unwrap();
                return;
            }
            4 | 5 => {
                let kinds = [Allocation::Extend, Allocation::Punch, Allocation::Zero];
                let (kind, len) = (*self.random.pick(&kinds), data.len() as u64 + 1);
                self.say(format!("{kind:?}"));
                file.allocate(kind, offset, len).unwrap();
                self.model.allocate(number, kind, offset, len).unwrap();
            }
            _ => {
                let len = data.len() as u64;
                let content = &self.model.inodes[&number].content;
                let start = content.len().min(offset as usize);
                let end = content.len().min((offset + len) as usize);
                let read = file.read(offset, len).unwrap();
                assert!(read == content[start..end], "{:#?}", self.tail());
            }
        }
        let attributes = file.attributes().unwrap();
        self.compare(number, &attributes, "an open file");
        self.open[slot] = Some((file, number));
    }

    pub fn tail(&self) -> &[String] {
        &self.log[self.log.len().saturating_sub(30)..]
    }

    fn compare(&self, number: u64, real: &Attributes, place: &str) {
        let model = &self.model.inodes[&number];
        let directories =
            model.names.values().filter(|it| self.model.inodes[it].kind == Kind::Directory);
        let (links, size) = match model.kind {
            Kind::Directory => (2 + directories.count() as u32, model.names.len() as u64),
            _ => (model.links, model.content.len() as u64),
        };
        let times = real.times;
        let access = Access { mode: real.mode, owner: real.owner, group: real.group };
        let told = (real.kind, access, real.links, real.size, [times.mtime, times.ctime]);
        let wanted = (model.kind, model.access, links, size, [model.mtime, model.ctime]);
        assert_eq!(told, wanted, "{place} {:#?}", self.tail());
        assert_eq!((times.atime, times.btime), (model.atime, model.btime), "{place}");
    }

    /// The trees are the same.
    pub fn compare_all(&self) {
        let mut numbers = BTreeMap::new();
        self.compare_tree(&Node::ROOT, ROOT, "/", &mut numbers);
        let open = self.open.iter().flatten().count() as u64;
        let report = self.files().check(&mut |_| true).unwrap();
        assert_eq!(report.findings, [], "{:#?}", self.tail());
        assert!(report.orphans <= open, "{report:?} {:#?}", self.tail());
    }

    fn compare_tree(&self, node: &Node, number: u64, at: &str, numbers: &mut BTreeMap<u64, u64>) {
        let files = self.files();
        let attributes = files.attributes(node).unwrap();
        self.compare(number, &attributes, at);
        assert_eq!(*numbers.entry(node.number).or_insert(number), number, "{at}");
        let model = &self.model.inodes[&number];
        let xattrs: BTreeMap<_, _> = files
            .xattr_names(node)
            .unwrap()
            .into_iter()
            .map(|name| (name.clone(), files.xattr(node, &name).unwrap()))
            .collect();
        assert_eq!(xattrs, model.xattrs, "{at}");
        match node.kind {
            Kind::Regular => {
                let read = files.read(node, 0, 1 << 30).unwrap();
                assert!(read == model.content, "{at} {:#?}", self.tail());
            }
            Kind::Symlink => assert_eq!(files.read_link(node).unwrap(), model.content),
            Kind::Directory => {
                let (mut names, mut cookie, directory) = (BTreeMap::new(), 0, node);
                loop {
                    let page = files.list_directory(node, cookie, 2).unwrap();
                    for entry in page.entries {
                        cookie = entry.cookie;
                        let name = String::from_utf8(entry.name.as_bytes().to_vec()).unwrap();
                        assert!(names.insert(name, entry.node).is_none(), "{at}: twice");
                    }
                    if page.is_end {
                        break;
                    }
                }
                assert!(names.keys().eq(model.names.keys()), "{at} {names:?} {model:?}");
                for (name, node) in names {
                    let below = format!("{at}{name}/");
                    let seen = files.lookup(directory, &Name::new(&name).unwrap()).unwrap();
                    assert_eq!(seen.node, node);
                    self.compare_tree(&node, model.names[&name], &below, numbers);
                }
            }
            _ => {}
        }
    }

    /// The program ends, and another opens the store.
    pub fn reopen(&mut self) {
        self.say("reopen".to_owned());
        let is_clean = self.random.is_one_in(2);
        for slot in &mut self.open {
            match slot.take() {
                Some((file, _)) if is_clean => file.close().unwrap(),
                // As if it had died: nobody lets go of it.
                Some((file, _)) => std::mem::forget(file),
                None => {}
            }
        }
        let files = self.files.take().unwrap();
        match is_clean {
            true => files.close().unwrap(),
            false => std::mem::forget(files),
        }
        self.store.take().unwrap().close().unwrap();
        let store = Tyr::open(self.folder.path()).unwrap();
        let files = FileSystem::open_with(&store, "test", self.hand.clock()).unwrap();
        let files = files.with_access_times(AccessTimes::Never);
        let report = files.check(&mut |_| true).unwrap();
        assert_eq!(report.orphans, 0, "{:#?}", self.tail());
        (self.store, self.files) = (Some(store), Some(files));
    }
}

fn fifo(files: &FileSystem, path: &str, access: Access) -> Result<(), Error> {
    let (directory, name) = path.rsplit_once('/').unwrap();
    let directory = if directory.is_empty() { "/" } else { directory };
    let directory = files.find(directory)?.node;
    let new = NewFile { kind: Kind::Fifo, access, device: 0 };
    files.make_file(&directory, &Name::new(name)?, new).map(drop)
}

fn run(seed: u64, steps: u32) {
    let mut pair = Pair::new(seed);
    for step in 0..steps {
        pair.step();
        if step % 100 == 99 {
            pair.compare_all();
        }
        if step % 150 == 149 {
            pair.reopen();
            pair.compare_all();
        }
    }
    pair.open.clear();
    pair.compare_all();
    let report = pair.files().check(&mut |_| true).unwrap();
    assert_eq!(report.orphans, 0);
}

#[test]
fn random_programs_answer_as_the_model_does() {
    for seed in 0..part(48) {
        println!("seed {seed}");
        run(seed, 600);
    }
}

#[test]
fn what_is_made_is_there() {
    let fixture = super::fixture();
    fixture.files.store_at("/one", b"two", MINE).unwrap();
    assert_eq!(fixture.files.fetch_at("/one").unwrap(), "two");
    fixture.verify();
}
