//! A file system in memory, by the book: what the real one has to answer.

use std::collections::BTreeMap;

use tyr_fs::{Access, Allocation, Errno, Kind, RenameMode, Time};

pub type Answer<T> = Result<T, Errno>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    pub kind: Kind,
    pub access: Access,
    pub links: u32,
    pub mtime: Time,
    pub ctime: Time,
    pub atime: Time,
    pub btime: Time,
    /// Of a symlink its target.
    pub content: Vec<u8>,
    pub names: BTreeMap<String, u64>,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub parent: u64,
}

#[derive(Clone)]
pub struct Model {
    pub inodes: BTreeMap<u64, Inode>,
    next: u64,
    pub now: Time,
}

pub const ROOT: u64 = 1;

impl Model {
    pub fn new(access: Access, now: Time) -> Self {
        let root = inode(Kind::Directory, access, ROOT, now);
        Self { inodes: BTreeMap::from([(ROOT, root)]), next: 2, now }
    }

    fn at(&self, number: u64) -> &Inode {
        &self.inodes[&number]
    }

    fn at_mut(&mut self, number: u64) -> &mut Inode {
        self.inodes.get_mut(&number).unwrap()
    }

    /// The directory and name that a path ends with, or the directory that it is.
    fn walk(&self, path: &str, is_followed: bool) -> Answer<(u64, Option<String>)> {
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        rest.retain(|part| !part.is_empty());
        let (mut at, mut symlinks) = (ROOT, 0);
        while let Some(part) = rest.pop() {
            if self.at(at).kind != Kind::Directory {
                return Err(Errno::NOTDIR);
            }
            let is_last = rest.is_empty();
            if is_last && !is_followed {
                return Ok((at, Some(part)));
            }
            let Some(found) = self.at(at).names.get(&part) else {
                return if is_last { Ok((at, Some(part))) } else { Err(Errno::NOENT) };
            };
            match self.at(*found).kind {
                Kind::Directory => at = *found,
                Kind::Symlink => {
                    symlinks += 1;
                    if symlinks > 40 {
                        return Err(Errno::LOOP);
                    }
                    let target = String::from_utf8(self.at(*found).content.clone()).unwrap();
                    if target.starts_with('/') {
                        at = ROOT;
                    }
                    let parts = target.split('/').rev().filter(|part| !part.is_empty());
                    rest.extend(parts.map(str::to_owned));
                }
                _ if is_last => return Ok((at, Some(part))),
                _ => return Err(Errno::NOTDIR),
            }
        }
        Ok((at, None))
    }

    pub fn find(&self, path: &str, is_followed: bool) -> Answer<u64> {
        match self.walk(path, is_followed)? {
            (at, None) => Ok(at),
            (at, Some(name)) => self.at(at).names.get(&name).copied().ok_or(Errno::NOENT),
        }
    }

    fn place(&self, path: &str) -> Answer<(u64, String)> {
        match self.walk(path, false)? {
            (at, Some(name)) => Ok((at, name)),
            (_, None) => Err(Errno::BUSY),
        }
    }

    fn enter(&mut self, directory: u64) {
        let now = self.now;
        let directory = self.at_mut(directory);
        (directory.mtime, directory.ctime) = (now, now);
    }

    fn insert(&mut self, directory: u64, name: String, new: Inode) -> Answer<u64> {
        if self.at(directory).names.contains_key(&name) {
            return Err(Errno::EXIST);
        }
        let mut new = new;
        let parent = self.at(directory).access;
        if parent.mode & 0o2000 != 0 {
            new.access.group = parent.group;
            if new.kind == Kind::Directory {
                new.access.mode |= 0o2000;
            }
        }
        let number = self.next;
        self.next += 1;
        self.inodes.insert(number, new);
        self.at_mut(directory).names.insert(name, number);
        self.enter(directory);
        Ok(number)
    }

    pub fn make(&mut self, path: &str, kind: Kind, access: Access, content: &[u8]) -> Answer<()> {
        let (directory, name) = match self.walk(path, false)? {
            (at, Some(name)) => (at, name),
            (_, None) => return Err(Errno::EXIST),
        };
        let mut new = inode(kind, access, directory, self.now);
        new.content = content.to_vec();
        self.insert(directory, name, new).map(drop)
    }

    pub fn open_or_make(&mut self, path: &str, access: Access) -> Answer<u64> {
        let (directory, Some(name)) = self.walk(path, true)? else { return Err(Errno::ISDIR) };
        if let Some(found) = self.at(directory).names.get(&name) {
            return Ok(*found);
        }
        let new = inode(Kind::Regular, access, directory, self.now);
        self.insert(directory, name, new)
    }

    /// A name went; the file goes with the last one. Open files are the caller's.
    fn unname(&mut self, number: u64) {
        let now = self.now;
        let file = self.at_mut(number);
        file.links -= 1;
        file.ctime = now;
    }

    pub fn remove(&mut self, path: &str, is_directory: bool) -> Answer<()> {
        let (directory, name) = match self.walk(path, false)? {
            (at, Some(name)) => (at, name),
            (_, None) => return Err(if is_directory { Errno::BUSY } else { Errno::ISDIR }),
        };
        let number = *self.at(directory).names.get(&name).ok_or(Errno::NOENT)?;
        self.check_replaced(number, is_directory)?;
        self.at_mut(directory).names.remove(&name);
        self.unname(number);
        self.enter(directory);
        Ok(())
    }

    fn check_replaced(&self, number: u64, by_directory: bool) -> Answer<()> {
        let file = self.at(number);
        match (file.kind == Kind::Directory, by_directory) {
            (true, false) => Err(Errno::ISDIR),
            (false, true) => Err(Errno::NOTDIR),
            _ if !file.names.is_empty() => Err(Errno::NOTEMPTY),
            _ => Ok(()),
        }
    }

    pub fn link(&mut self, from: &str, to: &str) -> Answer<()> {
        let number = self.find(from, false)?;
        let (directory, name) = self.place(to)?;
        if self.at(number).kind == Kind::Directory {
            return Err(Errno::PERM);
        }
        if self.at(directory).names.contains_key(&name) {
            return Err(Errno::EXIST);
        }
        let now = self.now;
        let file = self.at_mut(number);
        (file.links, file.ctime) = (file.links + 1, now);
        self.at_mut(directory).names.insert(name, number);
        self.enter(directory);
        Ok(())
    }

    fn is_within(&self, mut directory: u64, above: u64) -> bool {
        while directory != ROOT {
            if directory == above {
                return true;
            }
            directory = self.at(directory).parent;
        }
        false
    }

    pub fn rename(&mut self, from: &str, to: &str, mode: RenameMode) -> Answer<()> {
        let (from, name) = self.place(from)?;
        let (to, new_name) = self.place(to)?;
        let source = *self.at(from).names.get(&name).ok_or(Errno::NOENT)?;
        let target = self.at(to).names.get(&new_name).copied();
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            _ if target == Some(source) => return Ok(()),
            _ => {}
        }
        let is_directory = self.at(source).kind == Kind::Directory;
        if is_directory && from != to && self.is_within(to, source) {
            return Err(Errno::INVAL);
        }
        if let (RenameMode::Exchange, Some(target)) = (mode, target) {
            let target_is_directory = self.at(target).kind == Kind::Directory;
            if target_is_directory && from != to && self.is_within(from, target) {
                return Err(Errno::INVAL);
            }
            self.at_mut(from).names.insert(name, target);
            self.arrive(target, from);
        } else {
            if let Some(target) = target {
                self.check_replaced(target, is_directory)?;
                self.unname(target);
            }
            self.at_mut(from).names.remove(&name);
        }
        self.at_mut(to).names.insert(new_name, source);
        self.arrive(source, to);
        self.enter(from);
        self.enter(to);
        Ok(())
    }

    fn arrive(&mut self, number: u64, parent: u64) {
        let now = self.now;
        let file = self.at_mut(number);
        (file.parent, file.ctime) = (parent, now);
    }

    pub fn check_regular(&self, number: u64) -> Answer<()> {
        match self.at(number).kind {
            Kind::Regular => Ok(()),
            Kind::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Answer<()> {
        self.check_regular(number)?;
        if data.is_empty() {
            return Ok(());
        }
        let (now, end) = (self.now, offset as usize + data.len());
        let file = self.at_mut(number);
        if file.content.len() < end {
            file.content.resize(end, 0);
        }
        file.content[offset as usize..end].copy_from_slice(data);
        (file.mtime, file.ctime) = (now, now);
        Ok(())
    }

    pub fn append(&mut self, number: u64, data: &[u8]) -> Answer<u64> {
        let offset = self.at(number).content.len() as u64;
        self.write(number, offset, data)?;
        Ok(offset)
    }

    pub fn truncate(&mut self, number: u64, size: u64) -> Answer<()> {
        self.check_regular(number)?;
        let now = self.now;
        let file = self.at_mut(number);
        file.content.resize(size as usize, 0);
        (file.mtime, file.ctime) = (now, now);
        Ok(())
    }

    pub fn allocate(&mut self, number: u64, kind: Allocation, at: u64, len: u64) -> Answer<()> {
        self.check_regular(number)?;
        let (now, start, end) = (self.now, at as usize, (at + len) as usize);
        let file = self.at_mut(number);
        if kind != Allocation::Punch && file.content.len() < end {
            file.content.resize(end, 0);
        }
        if kind != Allocation::Extend {
            let size = file.content.len();
            file.content[start.min(size)..end.min(size)].fill(0);
        }
        (file.mtime, file.ctime) = (now, now);
        Ok(())
    }

    pub fn touch(&mut self, number: u64, change: impl FnOnce(&mut Inode)) {
        let now = self.now;
        let file = self.at_mut(number);
        change(file);
        file.ctime = now;
    }
}

fn inode(kind: Kind, access: Access, parent: u64, now: Time) -> Inode {
    Inode {
        kind,
        access,
        links: 1,
        mtime: now,
        ctime: now,
        atime: now,
        btime: now,
        content: Vec::new(),
        names: BTreeMap::new(),
        xattrs: BTreeMap::new(),
        parent,
    }
}
