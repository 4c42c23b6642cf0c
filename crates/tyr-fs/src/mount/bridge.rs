//! The kernel's requests as calls of a file system.
//!
//! The kernel knows files by number. Those that it knows are kept, until it forgets them, as they
//! were seen when it looked them up; they are found wherever they have gone since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::answers::{
    done, errno, file_attr, file_type, kind_of, name_of, rename_mode, time_of, xattr_answer,
};
use crate::blocking::{FileSystem, OpenFile};
use crate::error::{Error, Result};
use crate::layout::name::NAME_LEN_MAX;
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;
use crate::plan::xattrs::XattrChange;

/// Bytes of a write, and of a transaction.
const WRITE_LEN_MAX: u32 = 1 << 20;

/// Names that are read from a directory at a time.
const PAGE_LEN: usize = 256;

/// How long the kernel may go by what it was told.
const LIFETIME: Duration = Duration::ZERO;

/// Numbers are never used twice.
const GENERATION: Generation = Generation(0);

/// `setxattr` of what must not, or must, be there.
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// Places in a listing of what every directory has.
const COOKIE_SELF: u64 = 1;
const COOKIE_PARENT: u64 = 2;

/// A file that the kernel knows, and how often it was told of it.
struct Known {
    node: Node,
    count: u64,
}

/// An open file.
struct Handle {
    file: OpenFile,
    is_append: bool,
}

/// A file system for the kernel.
pub struct Bridge {
    files: FileSystem,
    known: Mutex<HashMap<u64, Known>>,
    handles: Mutex<HashMap<u64, Arc<Handle>>>,
    next_handle: AtomicU64,
}

impl Bridge {
    pub fn new(files: FileSystem) -> Self {
        let root = Known { node: Node::ROOT, count: 1 };
        Self {
            files,
            known: Mutex::new(HashMap::from([(Node::ROOT.number, root)])),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
        }
    }

    fn node(&self, number: INodeNo) -> Result<Node> {
        let known = self.known.lock();
        known.get(&number.0).map(|known| known.node.clone()).ok_or_else(|| {
            Error::new(Errno::STALE, format!("the kernel was told of no file {}", number.0))
        })
    }

    /// The kernel is told of a file.
    fn tell(&self, seen: &Seen) -> FileAttr {
        let mut known = self.known.lock();
        let node = seen.node.clone();
        let known = known.entry(node.number).or_insert_with(|| Known { node, count: 0 });
        known.node = seen.node.clone();
        known.count += 1;
        file_attr(&seen.attributes)
    }

    fn entry(&self, reply: ReplyEntry, result: Result<Seen>) {
        match result {
            Ok(seen) => reply.entry(&LIFETIME, &self.tell(&seen), GENERATION),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn handle(&self, handle: FileHandle) -> Result<Arc<Handle>> {
        let handles = self.handles.lock();
        handles
            .get(&handle.0)
            .cloned()
            .ok_or_else(|| Error::new(Errno::BADF, format!("there is no open file {}", handle.0)))
    }

    /// Opens a file; what is appended to is not cached, so that the kernel does not say where.
    fn open_node(&self, node: &Node, flags: i32) -> Result<(FileHandle, FopenFlags)> {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let is_append = flags.contains(OFlags::APPEND);
        let file = self.files.open_file(node)?;
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.handles.lock().insert(number, Arc::new(Handle { file, is_append }));
        let flags = match is_append {
            true => FopenFlags::FOPEN_DIRECT_IO,
            false => FopenFlags::empty(),
        };
        Ok((FileHandle(number), flags))
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        (kind, mode, device): (Kind, u32, u32),
    ) -> Result<Seen> {
        let (directory, name) = (self.node(parent)?, name_of(name)?);
        let access = Access { mode: mode & 0o7777, owner: request.uid(), group: request.gid() };
        match kind {
            Kind::Directory => self.files.make_directory(&directory, &name, access),
            _ => self.files.make_file(&directory, &name, NewFile { kind, access, device }),
        }
    }

    /// Fills a page of a listing.
    fn list(&self, number: INodeNo, offset: u64, reply: &mut ReplyDirectory) -> Result<()> {
        let directory = self.node(number)?;
        if offset < COOKIE_SELF && reply.add(number, COOKIE_SELF, FileType::Directory, ".") {
            return Ok(());
        }
        if offset < COOKIE_PARENT {
            let parent = INodeNo(self.files.parent(&directory)?.number);
            if reply.add(parent, COOKIE_PARENT, FileType::Directory, "..") {
                return Ok(());
            }
        }
        let mut cookie = if offset <= COOKIE_PARENT { 0 } else { offset };
        loop {
            let page = self.files.list_directory(&directory, cookie, PAGE_LEN)?;
            for entry in &page.entries {
                cookie = entry.cookie;
                let (number, kind) = (INodeNo(entry.node.number), file_type(entry.node.kind));
                let name = OsStr::from_bytes(entry.name.as_bytes());
                if reply.add(number, cookie, kind, name) {
                    return Ok(());
                }
            }
            if page.is_end {
                return Ok(());
            }
        }
    }

    fn set(&self, number: INodeNo, new: NewAttributes, size: Option<u64>) -> Result<Attributes> {
        let node = self.node(number)?;
        if let Some(size) = size {
            self.files.truncate(&node, size)?;
        }
        if new != NewAttributes::default() {
            self.files.set_attributes(&node, new)?;
        }
        self.files.attributes(&node)
    }

    fn space(&self) -> Result<tyr::DiskSpace> {
        Ok(self.files.store().usage()?.disk())
    }
}

impl Filesystem for Bridge {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel that knows less of it is asked for less.
        let _ = config.set_max_write(WRITE_LEN_MAX);
        let _ = config.add_capabilities(InitFlags::FUSE_AUTO_INVAL_DATA);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = (|| self.files.lookup(&self.node(parent)?, &name_of(name)?))();
        self.entry(reply, found);
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        let mut known = self.known.lock();
        let Some(file) = known.get_mut(&number.0) else { return };
        file.count = file.count.saturating_sub(count);
        if file.count == 0 && number.0 != Node::ROOT.number {
            known.remove(&number.0);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.node(number).and_then(|node| self.files.attributes(&node)) {
            Ok(attributes) => reply.attr(&LIFETIME, &file_attr(&attributes)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        owner: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let time = |time: TimeOrNow| match time {
            TimeOrNow::SpecificTime(time) => time_of(time),
            TimeOrNow::Now => self.files.clock_now(),
        };
        let (atime, mtime) = (atime.map(time), mtime.map(time));
        let new = NewAttributes { mode, owner, group, atime, mtime };
        match self.set(number, new, size) {
            Ok(attributes) => reply.attr(&LIFETIME, &file_attr(&attributes)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.node(number).and_then(|node| self.files.read_link(&node)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let made =
            kind_of(mode).and_then(|kind| self.make(request, parent, name, (kind, mode, device)));
        self.entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        self.entry(reply, self.make(request, parent, name, (Kind::Directory, mode, 0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, (|| self.files.remove_file(&self.node(parent)?, &name_of(name)?))());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, (|| self.files.remove_directory(&self.node(parent)?, &name_of(name)?))());
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let access = Access { mode: 0o777, owner: request.uid(), group: request.gid() };
        let target = target.as_os_str().as_bytes();
        let made =
            (|| self.files.make_symlink(&self.node(parent)?, &name_of(name)?, target, access))();
        self.entry(reply, made);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = (|| {
            let (from, name) = (self.node(parent)?, name_of(name)?);
            let (to, new_name) = (self.node(new_parent)?, name_of(new_name)?);
            self.files.rename((&from, &name), (&to, &new_name), rename_mode(flags)?)
        })();
        done(reply, renamed);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = (|| {
            let (node, directory, name) = (self.node(number)?, self.node(parent)?, name_of(name)?);
            self.files.link(&node, &directory, &name)?;
            let attributes = self.files.attributes(&node)?;
            Ok(Seen { node: Node { place: None, ..node }, attributes })
        })();
        self.entry(reply, linked);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.node(number).and_then(|node| self.open_node(&node, flags.0)) {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = (|| {
            let seen = self.make(request, parent, name, (Kind::Regular, mode, 0))?;
            let opened = self.open_node(&seen.node, flags)?;
            Ok((self.tell(&seen), opened))
        })();
        match made {
            Ok((attr, (handle, flags))) => {
                reply.created(&LIFETIME, &attr, GENERATION, handle, flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.handle(handle).and_then(|it| it.file.read(offset, u64::from(size)));
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.handle(handle).and_then(|it| match it.is_append {
            true => it.file.append(data.to_vec()).map(drop),
            false => it.file.write(offset, data.to_vec()),
        });
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("it came with a size")),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Every write was committed.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        // It is closed when the last request that uses it is over.
        drop(self.handles.lock().remove(&handle.0));
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.files.sync());
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.list(number, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.files.sync());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.space() {
            Ok(space) => {
                let (all, free) = (space.size_bytes / 4_096, space.free_bytes / 4_096);
                let names = u32::try_from(NAME_LEN_MAX).expect("255");
                reply.statfs(all, free, free, 0, 0, 4_096, names, 4_096);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let value = value.to_vec();
        let change = match flags {
            XATTR_CREATE => XattrChange::Create(value),
            XATTR_REPLACE => XattrChange::Replace(value),
            _ => XattrChange::Set(value),
        };
        let node = self.node(number);
        done(reply, node.and_then(|it| self.files.set_xattr(&it, name.as_bytes(), change)));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let node = self.node(number);
        let value = node.and_then(|node| self.files.xattr(&node, name.as_bytes()));
        xattr_answer(reply, size, value);
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.node(number).and_then(|node| self.files.xattr_names(&node));
        let list = names
            .map(|names| names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect());
        xattr_answer(reply, size, list);
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let node = self.node(number);
        let name = name.as_bytes();
        done(reply, node.and_then(|it| self.files.set_xattr(&it, name, XattrChange::Remove)));
    }
}
