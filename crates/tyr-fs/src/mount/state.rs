//! What the kernel was told of, and has open.
//!
//! The kernel knows files by number. Those that it knows are kept, until it forgets them, as they
//! were seen when it looked them up; they are found wherever they have gone since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fuser::{
    FileAttr, FileHandle, FileType, FopenFlags, Generation, INodeNo, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEntry, Request,
};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tyr::DiskSpace;

use super::answers::{bare_attr, errno, file_type, name_of};
use super::snapshots::{self, Place, Snapshots};
use crate::blocking::{FileSystem, OpenFile};
use crate::error::{Error, Result};
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;

/// Names that are read from a directory at a time.
const PAGE_LEN: usize = 256;

/// How long the kernel may go by what it was told, where nobody else changes anything: all changes
/// come from it, and it knows what they change.
const LIFETIME_ALONE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long what was told of the room that there is may be gone by, at least.
const SPACE_LIFETIME: Duration = Duration::from_secs(5);

/// The part of the time, one in so many, that counting it may take.
const SPACE_SHARE: u32 = 20;

/// Numbers are never used twice.
pub(super) const GENERATION: Generation = Generation(0);

/// Places in a listing of what every directory has.
const COOKIE_SELF: u64 = 1;
const COOKIE_PARENT: u64 = 2;

/// A file that the kernel knows, and how often it was told of it.
struct Known {
    node: Node,
    count: u64,
}

/// An open file.
pub(super) enum Handle {
    Now {
        file: OpenFile,
        is_append: bool,
    },
    /// In a snapshot.
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
    Error::new(Errno::ROFS, "a snapshot cannot be changed")
}

/// What a listing shows.
enum Listed {
    /// The directory itself, or the one that it is in.
    Around(INodeNo),
    File {
        snapshot: u16,
        node: Node,
        attributes: Option<Attributes>,
    },
}

/// A file system for the kernel.
pub struct Bridge {
    pub(super) files: FileSystem,
    known: Mutex<HashMap<u64, Known>>,
    handles: Mutex<HashMap<u64, Arc<Handle>>>,
    next_handle: AtomicU64,
    /// How much room there is, and until when that is gone by.
    space: Mutex<Option<(DiskSpace, Instant)>>,
    /// Whether all changes come from the kernel.
    pub(super) is_alone: bool,
    pub(super) snapshots: Snapshots,
}

impl Bridge {
    pub fn new(files: FileSystem, is_alone: bool) -> Self {
        let root = Known { node: Node::ROOT, count: 1 };
        Self {
            files,
            known: Mutex::new(HashMap::from([(Node::ROOT.number, root)])),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
            space: Mutex::default(),
            is_alone,
            snapshots: Snapshots::default(),
        }
    }

    /// How long the kernel may go by what it is told.
    pub(super) fn lifetime(&self) -> Duration {
        if self.is_alone { LIFETIME_ALONE } else { Duration::ZERO }
    }

    /// A file that may be changed.
    pub(super) fn node(&self, number: INodeNo) -> Result<Node> {
        match Place::of(number).is_now() {
            true => self.known(number),
            false => Err(unchangeable()),
        }
    }

    fn known(&self, number: INodeNo) -> Result<Node> {
        let known = self.known.lock();
        known.get(&number.0).map(|known| known.node.clone()).ok_or_else(|| {
            Error::new(Errno::STALE, format!("the kernel was told of no file {}", number.0))
        })
    }

    /// A file that is looked at, and the file system, as it is or was, that it is in.
    pub(super) fn look(&self, number: INodeNo) -> Result<(FileSystem, Node)> {
        Ok((self.files_of(Place::of(number).snapshot)?, self.known(number)?))
    }

    fn files_of(&self, snapshot: u16) -> Result<FileSystem> {
        match snapshot {
            0 => Ok(self.files.clone()),
            snapshot => self.snapshots.files(snapshot),
        }
    }

    /// The kernel is told of a file.
    pub(super) fn tell(&self, seen: &Seen) -> FileAttr {
        self.tell_of(0, seen)
    }

    /// The same of one in a snapshot.
    pub(super) fn tell_of(&self, snapshot: u16, seen: &Seen) -> FileAttr {
        let place = Place { snapshot, file: seen.node.number };
        let mut known = self.known.lock();
        let node = seen.node.clone();
        let known = known.entry(place.number().0).or_insert_with(|| Known { node, count: 0 });
        known.node = seen.node.clone();
        known.count += 1;
        place.attr(&seen.attributes)
    }

    /// What a name stands for, in a directory as it is now or was.
    pub(super) fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        if parent == Place::DIRECTORY.number() {
            let snapshot = self.snapshots.find(&self.files, name)?;
            return self.root_of(snapshot);
        }
        if parent.0 == Node::ROOT.number && snapshots::is_directory(name) {
            return Ok(snapshots::directory_attr());
        }
        let (files, node) = self.look(parent)?;
        let seen = files.lookup(&node, &name_of(name)?)?;
        Ok(self.tell_of(Place::of(parent).snapshot, &seen))
    }

    /// The root as it was in a snapshot, of which the kernel is told.
    pub(super) fn root_of(&self, snapshot: u16) -> Result<FileAttr> {
        let root = self.snapshots.files(snapshot)?.attributes(&Node::ROOT);
        let attributes = root.map_err(|error| Error::new(Errno::NOENT, error.text()))?;
        Ok(self.tell_of(snapshot, &Seen { node: Node::ROOT, attributes }))
    }

    pub(super) fn entry(&self, reply: ReplyEntry, result: Result<Seen>) {
        match result {
            Ok(seen) => reply.entry(&self.lifetime(), &self.tell(&seen), GENERATION),
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// What a name stands for. That there is no such name is kept by the kernel as well, where it
    /// may keep anything: number 0 says so.
    pub(super) fn found(&self, reply: ReplyEntry, result: Result<FileAttr>) {
        match result {
            Ok(attr) => reply.entry(&self.lifetime(), &attr, GENERATION),
            Err(error) if self.is_alone && error.errno() == Errno::NOENT => {
                let nothing = bare_attr(INodeNo(0), FileType::RegularFile);
                reply.entry(&self.lifetime(), &nothing, GENERATION);
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
        let (directory, name) = (self.node(parent)?, name_of(name)?);
        let access = Access { mode: mode & 0o7777, owner: request.uid(), group: request.gid() };
        let (seen, file) = self.files.make_open_file(&directory, &name, access)?;
        let (handle, flags) = self.keep_open(file, flags);
        Ok((self.tell(&seen), handle, flags))
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

    /// Fills a page of a listing: `add` takes a place in it, a name and what that stands for, and
    /// answers whether there was no more room.
    fn list(
        &self,
        number: INodeNo,
        offset: u64,
        mut add: impl FnMut(u64, &OsStr, Listed) -> Result<bool>,
    ) -> Result<()> {
        if number == Place::DIRECTORY.number() {
            return self.list_snapshots(offset, add);
        }
        let snapshot = Place::of(number).snapshot;
        let (files, directory) = self.look(number)?;
        if offset < COOKIE_SELF && add(COOKIE_SELF, OsStr::new("."), Listed::Around(number))? {
            return Ok(());
        }
        if offset < COOKIE_PARENT {
            let file = files.parent(&directory)?.number;
            let parent = Place { snapshot, file }.number();
            if add(COOKIE_PARENT, OsStr::new(".."), Listed::Around(parent))? {
                return Ok(());
            }
        }
        let mut cookie = if offset <= COOKIE_PARENT { 0 } else { offset };
        loop {
            let page = files.list_directory(&directory, cookie, PAGE_LEN)?;
            for entry in page.entries {
                cookie = entry.cookie;
                let name = OsStr::from_bytes(entry.name.as_bytes());
                let (node, attributes) = (entry.node, entry.attributes);
                if add(cookie, name, Listed::File { snapshot, node, attributes })? {
                    return Ok(());
                }
            }
            if page.is_end {
                return Ok(());
            }
        }
    }

    fn list_snapshots(
        &self,
        offset: u64,
        mut add: impl FnMut(u64, &OsStr, Listed) -> Result<bool>,
    ) -> Result<()> {
        let around = [(".", Place::DIRECTORY.number()), ("..", INodeNo(Node::ROOT.number))];
        let mut listed: Vec<_> = around
            .map(|(name, number)| (name.to_owned(), Listed::Around(number)))
            .into_iter()
            .collect();
        for name in snapshots::names(&self.files)? {
            let Ok(snapshot) = self.snapshots.find(&self.files, OsStr::new(&name)) else {
                continue;
            };
            // The file system may have been made later.
            let Ok(attributes) = self.files_of(snapshot)?.attributes(&Node::ROOT) else { continue };
            let attributes = Some(attributes);
            listed.push((name, Listed::File { snapshot, node: Node::ROOT, attributes }));
        }
        let places = (1..).zip(listed).skip_while(|(place, _)| *place <= offset);
        for (place, (name, listed)) in places {
            if add(place, OsStr::new(&name), listed)? {
                break;
            }
        }
        Ok(())
    }

    /// Names alone.
    pub(super) fn list_names(
        &self,
        number: INodeNo,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<()> {
        self.list(number, offset, |place, name, listed| {
            let (number, kind) = match listed {
                Listed::Around(number) => (number, FileType::Directory),
                Listed::File { snapshot, node, .. } => {
                    (Place { snapshot, file: node.number }.number(), file_type(node.kind))
                }
            };
            Ok(reply.add(number, place, kind, name))
        })
    }

    /// Names with what is known of the files, of which the kernel is told thereby.
    pub(super) fn list_files(
        &self,
        number: INodeNo,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let lifetime = self.lifetime();
        self.list(number, offset, |place, name, listed| match listed {
            Listed::Around(number) => {
                let attr = bare_attr(number, FileType::Directory);
                Ok(reply.add(number, place, name, &lifetime, &attr, GENERATION))
            }
            Listed::File { snapshot, node, attributes } => {
                let attributes = match attributes {
                    Some(attributes) => attributes,
                    // It may go between the listing and this.
                    None => match self.files_of(snapshot)?.attributes(&node) {
                        Err(error) if error.errno() == Errno::STALE => return Ok(false),
                        attributes => attributes?,
                    },
                };
                let attr = Place { snapshot, file: node.number }.attr(&attributes);
                let is_full = reply.add(attr.ino, place, name, &lifetime, &attr, GENERATION);
                if !is_full {
                    self.tell_of(snapshot, &Seen { node, attributes });
                }
                Ok(is_full)
            }
        })
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
        let disk = self.space()?;
        Ok(match self.files.bytes_of_quota()? {
            None => (disk.size_bytes, disk.free_bytes),
            Some((limit, used)) => (limit, limit.saturating_sub(used).min(disk.free_bytes)),
        })
    }

    /// How much room there is, as of some seconds ago: a store counts all that it has for that.
    fn space(&self) -> Result<DiskSpace> {
        let mut space = self.space.lock();
        if let Some((known, until)) = *space
            && Instant::now() < until
        {
            return Ok(known);
        }
        let begun = Instant::now();
        let found = self.files.store().usage()?.disk();
        let lifetime = SPACE_LIFETIME.max(begun.elapsed() * SPACE_SHARE);
        *space = Some((found, Instant::now() + lifetime));
        Ok(found)
    }

    pub(super) fn forget_node(&self, number: INodeNo, count: u64) {
        let mut known = self.known.lock();
        let Some(file) = known.get_mut(&number.0) else { return };
        file.count = file.count.saturating_sub(count);
        if file.count == 0 && number.0 != Node::ROOT.number {
            known.remove(&number.0);
        }
    }

    /// It is closed when the last request that uses it is over.
    pub(super) fn close_handle(&self, handle: FileHandle) {
        drop(self.handles.lock().remove(&handle.0));
    }
}
