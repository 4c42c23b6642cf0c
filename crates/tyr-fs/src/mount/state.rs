//! What the kernel was told of, and has open.
//!
//! The kernel knows files by number. Those that it [knows](crate::fuse::known) are found wherever
//! they have gone since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fuser::{FileAttr, FileHandle, FileType, FopenFlags, INodeNo, ReplyEntry, Request};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::answers::name_of;
use super::moments::{Asked, Moments};
use super::pages::Pages;
use super::place::{KEPT, Own, Place};
use super::snapshots::Snapshots;
use crate::blocking::{FileSystem, OpenFile};
use crate::error::{Error, Result};
use crate::fuse::answers::{bare_attr, errno};
use crate::fuse::known::{KnownFiles, Tracked};
use crate::fuse::space::Space;
use crate::fuse::{GENERATION, LIFETIME_ALONE};
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;

/// How long the kernel may go by what it was told of what was, which nobody changes.
const LIFETIME_UNCHANGED: Duration = LIFETIME_ALONE;

/// An open file.
pub(super) enum Handle {
    Now {
        file: OpenFile,
        is_append: bool,
    },
    /// In a snapshot or a moment.
    Then(FileSystem, Node),
}

impl Handle {
    /// A file that may be changed.
    pub fn now(&self) -> Result<(&OpenFile, bool)> {
        match self {
            Self::Now { file, is_append } => Ok((file, *is_append)),
            Self::Then(..) => Err(unchangeable()),
        }
    }
}

fn unchangeable() -> Error {
    Error::new(Errno::ROFS, "what was cannot be changed")
}

impl Tracked for Node {
    fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// A file system for the kernel.
pub struct Bridge {
    pub(super) files: FileSystem,
    known: Arc<KnownFiles<Node>>,
    pub(super) pages: Arc<Pages>,
    handles: Mutex<HashMap<u64, Arc<Handle>>>,
    next_handle: AtomicU64,
    space: Space,
    /// Whether all changes come from the kernel.
    pub(super) is_alone: bool,
    pub(super) snapshots: Snapshots,
    pub(super) moments: Moments,
    began: Instant,
}

impl Bridge {
    pub fn new(
        files: FileSystem,
        (known, pages): (Arc<KnownFiles<Node>>, Arc<Pages>),
        is_alone: bool,
    ) -> Self {
        Self {
            files,
            known,
            pages,
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
            space: Space::default(),
            is_alone,
            snapshots: Snapshots::default(),
            moments: Moments::default(),
            began: Instant::now(),
        }
    }

    /// How long the kernel may go by what it is told.
    pub(super) fn lifetime(&self) -> Duration {
        if self.is_alone { LIFETIME_ALONE } else { Duration::ZERO }
    }

    /// How long it may go by what it is told of a file here, or of what is in a directory here:
    /// what was stays as it was.
    pub(super) fn lifetime_of(&self, number: INodeNo) -> Duration {
        match (Own::of(number), Place::of(number).is_now()) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => self.lifetime(),
            (None, false) => LIFETIME_UNCHANGED,
        }
    }

    /// How long it has been mounted.
    fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    /// A file that may be changed.
    pub(super) fn node(&self, number: INodeNo) -> Result<Node> {
        match Place::of(number).is_now() {
            true => self.known(number),
            false => Err(unchangeable()),
        }
    }

    fn known(&self, number: INodeNo) -> Result<Node> {
        self.known.find(number).ok_or_else(|| {
            Error::new(Errno::STALE, format!("the kernel was told of no file {}", number.0))
        })
    }

    /// A file that is looked at, and the file system, as it is or was, that it is in.
    pub(super) fn look(&self, number: INodeNo) -> Result<(FileSystem, Node)> {
        Ok((self.files_of(Place::of(number).view)?, self.known(number)?))
    }

    /// How all files of a view are, or were.
    pub(super) fn files_of(&self, view: u16) -> Result<FileSystem> {
        match view {
            0 => Ok(self.files.clone()),
            view if KEPT.contains(&view) => self.snapshots.files(view),
            view => self.moments.files(view, self.uptime()),
        }
    }

    /// The kernel is told of a file of a view, by a name in a directory.
    pub(super) fn tell(&self, view: u16, seen: &Seen, name: (INodeNo, &OsStr)) -> FileAttr {
        let number = Place { view, file: seen.node.number }.number();
        if self.known.tell(number, seen.node.clone(), name) {
            self.known.wait_for_room();
        }
        if view == 0 {
            self.pages.tell(&seen.attributes);
        }
        Place { view, file: seen.node.number }.attr(&seen.attributes)
    }

    /// What a name stands for, in a directory as it is now or was.
    pub(super) fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        if let Some(own) = Own::named(parent, name) {
            return Ok(own.attr());
        }
        match Own::of(parent) {
            Some(Own::Snapshots) => self.root_of(self.snapshots.find(&self.files, name)?, name),
            Some(Own::Control) => {
                let text = format!("{} is nothing that a mount has", name.display());
                Err(Error::new(Errno::NOENT, text))
            }
            Some(Own::Moments) => {
                let (view, root) = self.moments.find(name)?;
                Ok(self.tell(view, &root, (parent, name)))
            }
            None => {
                let (files, node) = self.look(parent)?;
                let seen = files.lookup(&node, &name_of(name)?)?;
                Ok(self.tell(Place::of(parent).view, &seen, (parent, name)))
            }
        }
    }

    /// The root as it was in a snapshot of this name, of which the kernel is told.
    pub(super) fn root_of(&self, view: u16, name: &OsStr) -> Result<FileAttr> {
        let root = self.snapshots.files(view)?.attributes(&Node::ROOT);
        let attributes = root.map_err(|error| Error::new(Errno::NOENT, error.text()))?;
        let (seen, snapshots) = (Seen { node: Node::ROOT, attributes }, Own::Snapshots.number());
        Ok(self.tell(view, &seen, (snapshots, name)))
    }

    /// Takes a moment, and tells the kernel of its root.
    pub(super) fn take_moment(&self, name: &OsStr, user: u32) -> Result<FileAttr> {
        let asked = Asked { user, at: self.uptime() };
        let is_free = |view| !self.known.has_any(Place::numbers(view));
        let (view, root) = self.moments.take(&self.files, name, asked, is_free)?;
        Ok(self.tell(view, &root, (Own::Moments.number(), name)))
    }

    /// Answers with a file that was made, or got one more name.
    pub(super) fn entry(&self, reply: ReplyEntry, result: Result<Seen>, name: (INodeNo, &OsStr)) {
        match result {
            Ok(seen) => reply.entry(&self.lifetime(), &self.tell(0, &seen, name), GENERATION),
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// What a name stands for. That there is no such name is kept by the kernel as well, where it
    /// may keep anything: number 0 says so.
    pub(super) fn found(&self, parent: INodeNo, reply: ReplyEntry, result: Result<FileAttr>) {
        let lifetime = self.lifetime_of(parent);
        match result {
            Ok(attr) => reply.entry(&lifetime, &attr, GENERATION),
            Err(error) if !lifetime.is_zero() && error.errno() == Errno::NOENT => {
                let nothing = bare_attr(INodeNo(0), FileType::RegularFile);
                reply.entry(&lifetime, &nothing, GENERATION);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(super) fn handle(&self, handle: FileHandle) -> Result<Arc<Handle>> {
        let handles = self.handles.lock();
        handles
            .get(&handle.0)
            .cloned()
            .ok_or_else(|| Error::new(Errno::BADF, format!("there is no open file {}", handle.0)))
    }

    /// Opens a file.
    pub(super) fn open_file(
        &self,
        number: INodeNo,
        flags: i32,
    ) -> Result<(FileHandle, FopenFlags)> {
        if Place::of(number).is_now() {
            return Ok(self.keep_open(self.files.open_file(&self.known(number)?)?, flags));
        }
        let mode = OFlags::from_bits_retain(flags.cast_unsigned()) & OFlags::ACCMODE;
        let (files, node) = self.look(number)?;
        match mode == OFlags::RDONLY {
            true => Ok((self.keep(Handle::Then(files, node)), FopenFlags::FOPEN_KEEP_CACHE)),
            false => Err(unchangeable()),
        }
    }

    fn keep(&self, handle: Handle) -> FileHandle {
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.handles.lock().insert(number, Arc::new(handle));
        FileHandle(number)
    }

    /// Keeps an open file. What is appended to is not cached, so that the kernel does not say
    /// where, unless it knows.
    pub(super) fn keep_open(&self, file: OpenFile, flags: i32) -> (FileHandle, FopenFlags) {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let is_append = flags.contains(OFlags::APPEND);
        if !self.is_alone && !is_append {
            self.pages.opened(file.node().number);
        }
        let handle = self.keep(Handle::Now { file, is_append });
        let flags = match (self.is_alone, is_append) {
            (true, _) => FopenFlags::FOPEN_KEEP_CACHE,
            (false, true) => FopenFlags::FOPEN_DIRECT_IO,
            (false, false) => FopenFlags::empty(),
        };
        (handle, flags)
    }

    /// Makes a regular file and opens it.
    pub(super) fn make_open(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, FileHandle, FopenFlags)> {
        let directory = self.node(parent)?;
        let access = Access { mode: mode & 0o7777, owner: request.uid(), group: request.gid() };
        let (seen, file) = self.files.make_open_file(&directory, &name_of(name)?, access)?;
        let (handle, flags) = self.keep_open(file, flags);
        Ok((self.tell(0, &seen, (parent, name)), handle, flags))
    }

    pub(super) fn make(
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

    pub(super) fn set(
        &self,
        number: INodeNo,
        new: NewAttributes,
        size: Option<u64>,
    ) -> Result<Attributes> {
        let node = self.node(number)?;
        if let Some(size) = size {
            self.files.truncate(&node, size)?;
        }
        if new != NewAttributes::default() {
            self.files.set_attributes(&node, new)?;
        }
        self.files.attributes(&node)
    }

    /// Bytes that there may be, and those that are left: of the disk, or of the quota.
    pub(super) fn room(&self) -> Result<(u64, u64)> {
        let disk = self.space.of(self.files.store())?;
        Ok(match self.files.bytes_of_quota()? {
            None => (disk.size_bytes, disk.free_bytes),
            Some((limit, used)) => (limit, limit.saturating_sub(used).min(disk.free_bytes)),
        })
    }

    /// What was renamed has a name that the kernel was not told of. Which file that is has to be
    /// looked up, so it is done only where the table of what it knows fills.
    pub(super) fn note_renamed(&self, parent: INodeNo, name: &OsStr) {
        if !self.known.is_filling() {
            return;
        }
        let seen = (|| self.files.lookup(&self.node(parent)?, &name_of(name)?))();
        // Whoever has renamed it since notes that.
        if let Ok(seen) = seen
            && self.known.name(INodeNo(seen.node.number), (parent, name))
        {
            self.known.wait_for_room();
        }
    }

    pub(super) fn forget_node(&self, number: INodeNo, count: u64) {
        self.known.forget(number, count);
    }

    /// It is closed when the last request that uses it is over.
    pub(super) fn close_handle(&self, handle: FileHandle) {
        let handle = self.handles.lock().remove(&handle.0);
        if let Some(Handle::Now { file, is_append: false }) = handle.as_deref()
            && !self.is_alone
        {
            self.pages.closed(file.node().number);
        }
    }
}
