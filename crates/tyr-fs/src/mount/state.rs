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
    FileAttr, FileHandle, FileType, FopenFlags, Generation, INodeNo, ReplyDirectory, ReplyEntry,
    Request,
};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tyr::DiskSpace;

use super::answers::{errno, file_attr, file_type, name_of};
use crate::blocking::{FileSystem, OpenFile};
use crate::error::{Error, Result};
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;

/// Names that are read from a directory at a time.
const PAGE_LEN: usize = 256;

/// How long the kernel may go by what it was told.
pub(super) const LIFETIME: Duration = Duration::ZERO;

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
pub(super) struct Handle {
    pub file: OpenFile,
    pub is_append: bool,
}

/// A file system for the kernel.
pub struct Bridge {
    pub(super) files: FileSystem,
    known: Mutex<HashMap<u64, Known>>,
    handles: Mutex<HashMap<u64, Arc<Handle>>>,
    next_handle: AtomicU64,
    /// How much room there is, and until when that is gone by.
    space: Mutex<Option<(DiskSpace, Instant)>>,
}

impl Bridge {
    pub fn new(files: FileSystem) -> Self {
        let root = Known { node: Node::ROOT, count: 1 };
        Self {
            files,
            known: Mutex::new(HashMap::from([(Node::ROOT.number, root)])),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
            space: Mutex::default(),
        }
    }

    pub(super) fn node(&self, number: INodeNo) -> Result<Node> {
        let known = self.known.lock();
        known.get(&number.0).map(|known| known.node.clone()).ok_or_else(|| {
            Error::new(Errno::STALE, format!("the kernel was told of no file {}", number.0))
        })
    }

    /// The kernel is told of a file.
    pub(super) fn tell(&self, seen: &Seen) -> FileAttr {
        let mut known = self.known.lock();
        let node = seen.node.clone();
        let known = known.entry(node.number).or_insert_with(|| Known { node, count: 0 });
        known.node = seen.node.clone();
        known.count += 1;
        file_attr(&seen.attributes)
    }

    pub(super) fn entry(&self, reply: ReplyEntry, result: Result<Seen>) {
        match result {
            Ok(seen) => reply.entry(&LIFETIME, &self.tell(&seen), GENERATION),
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

    /// Opens a file; what is appended to is not cached, so that the kernel does not say where.
    pub(super) fn open_node(&self, node: &Node, flags: i32) -> Result<(FileHandle, FopenFlags)> {
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

    /// Fills a page of a listing.
    pub(super) fn list(
        &self,
        number: INodeNo,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<()> {
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

    /// How much room there is, as of some seconds ago: a store counts all that it has for that.
    pub(super) fn space(&self) -> Result<DiskSpace> {
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
