//! What is where in a keyspace, for the kernel: found by directory and name, known by number.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileHandle, FileType, FopenFlags, INodeNo};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use tyr::{Key, Stat};

use super::blobs::Blobs;
use super::listing::Listing;
use super::made::Made;
use super::numbers::{File, Numbers};
use super::path::Directory;
use crate::error::{Error, Result};
use crate::fuse::answers::bare_attr;
use crate::fuse::space::Space;
use crate::fuse::{LIFETIME_ALONE, WRITE_LEN_MAX};
use crate::plan::rename::RenameMode;

/// Rights of blobs and of directories: those of the store are the mount's.
const BLOB_MODE: u16 = 0o666;
const DIRECTORY_MODE: u16 = 0o777;

/// What the kernel is told of each open file: whether its writes are appends.
const HANDLE: FileHandle = FileHandle(0);
const APPENDING: FileHandle = FileHandle(1);

/// A keyspace for the kernel.
pub struct Flat {
    pub(super) blobs: Blobs,
    pub(super) numbers: Numbers,
    pub(super) made: Made,
    pub(super) space: Space,
    listings: Mutex<HashMap<u64, Arc<Mutex<Listing>>>>,
    next_listing: AtomicU64,
    /// Whether all changes come from the kernel.
    pub(super) is_alone: bool,
    /// When it was mounted: the time of all directories.
    began: SystemTime,
}

impl Flat {
    pub fn new(blobs: Blobs, numbers: Numbers, is_alone: bool) -> Self {
        Self {
            blobs,
            numbers,
            made: Made::default(),
            space: Space::default(),
            listings: Mutex::default(),
            next_listing: AtomicU64::new(1),
            is_alone,
            began: SystemTime::now(),
        }
    }

    /// How long the kernel may go by what it is told.
    pub(super) fn lifetime(&self) -> Duration {
        if self.is_alone { LIFETIME_ALONE } else { Duration::ZERO }
    }

    fn known(&self, number: INodeNo) -> Result<File> {
        self.numbers.find(number).ok_or_else(|| {
            Error::new(Errno::STALE, format!("the kernel was told of no file {}", number.0))
        })
    }

    /// A directory that the kernel knows.
    pub(super) fn directory(&self, number: INodeNo) -> Result<Directory> {
        match self.known(number)? {
            File::Directory(directory) => Ok(directory),
            File::Blob(key) => Err(Error::new(Errno::NOTDIR, format!("{key} is a blob"))),
            File::Gone => Err(gone()),
        }
    }

    /// A blob that the kernel knows.
    pub(super) fn blob(&self, number: INodeNo) -> Result<Key> {
        match self.known(number)? {
            File::Blob(key) => Ok(key),
            File::Directory(_) => Err(Error::new(Errno::ISDIR, "it is a directory")),
            File::Gone => Err(gone()),
        }
    }

    /// Whether keys begin as those in a directory do, or it was made here.
    pub(super) fn is_directory(&self, directory: &Directory) -> Result<bool> {
        let at = self.made.now();
        let has_any = self.blobs.has_any(directory)?;
        if has_any {
            self.made.drop_filled(directory, at);
        }
        Ok(has_any || self.made.has(directory))
    }

    /// What a key stands for as a path: a directory before a blob.
    pub(super) fn find(&self, key: &Key) -> Result<Option<(File, Option<Stat>)>> {
        if let Some(directory) = Directory::at(key)
            && self.is_directory(&directory)?
        {
            return Ok(Some((File::Directory(directory), None)));
        }
        Ok(self.blobs.find(key)?.map(|stat| (File::Blob(key.clone()), Some(stat))))
    }

    /// What a name in a directory stands for, of which the kernel is told.
    pub(super) fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        let key = self.directory(parent)?.blob(name)?;
        let found = self.find(&key)?;
        let (file, stat) =
            found.ok_or_else(|| Error::new(Errno::NOENT, format!("there is no blob {key}")))?;
        Ok(self.tell(&file, stat, (parent, name)))
    }

    /// The kernel is told of a file, by a name in a directory.
    pub(super) fn tell(
        &self,
        file: &File,
        stat: Option<Stat>,
        name: (INodeNo, &OsStr),
    ) -> FileAttr {
        self.attr(self.numbers.tell(file, name), stat)
    }

    /// Attributes of a blob of this size and version; without, of a directory.
    pub(super) fn attr(&self, number: INodeNo, stat: Option<Stat>) -> FileAttr {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let Some(Stat { size, version }) = stat else {
            let attr = bare_attr(number, FileType::Directory);
            let time = self.began;
            let (atime, mtime, ctime) = (time, time, time);
            let perm = DIRECTORY_MODE;
            return FileAttr { perm, nlink: 2, uid, gid, atime, mtime, ctime, ..attr };
        };
        let time = UNIX_EPOCH + Duration::from_micros(version.clock);
        FileAttr {
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            perm: BLOB_MODE,
            uid,
            gid,
            blksize: WRITE_LEN_MAX,
            ..bare_attr(number, FileType::RegularFile)
        }
    }

    /// Attributes of what the kernel knows.
    pub(super) fn attributes(&self, number: INodeNo) -> Result<FileAttr> {
        let stat = match self.known(number)? {
            File::Directory(_) => None,
            File::Blob(key) => Some(self.blobs.stat(&key)?),
            File::Gone => return Err(gone()),
        };
        Ok(self.attr(number, stat))
    }

    /// Makes an empty blob.
    pub(super) fn make(&self, (parent, name): (INodeNo, &OsStr)) -> Result<FileAttr> {
        let key = self.directory(parent)?.blob(name)?;
        let version = self.blobs.create(&key)?;
        let stat = Stat { size: 0, version };
        Ok(self.tell(&File::Blob(key), Some(stat), (parent, name)))
    }

    /// Notes an empty directory.
    pub(super) fn make_directory(&self, (parent, name): (INodeNo, &OsStr)) -> Result<FileAttr> {
        let key = self.directory(parent)?.blob(name)?;
        let directory = Directory::at(&key).ok_or_else(|| {
            Error::new(Errno::NAMETOOLONG, "no key is long enough for what would be in it")
        })?;
        if self.find(&key)?.is_some() {
            return Err(Error::new(Errno::EXIST, format!("there is {key} already")));
        }
        self.made.make(&directory)?;
        Ok(self.tell(&File::Directory(directory), None, (parent, name)))
    }

    pub(super) fn remove(&self, (parent, name): (INodeNo, &OsStr)) -> Result<()> {
        let directory = self.directory(parent)?;
        let key = directory.blob(name)?;
        self.blobs.remove(&key)?;
        self.made.keep(&directory);
        self.numbers.remove(&File::Blob(key));
        Ok(())
    }

    pub(super) fn remove_directory(&self, (parent, name): (INodeNo, &OsStr)) -> Result<()> {
        let around = self.directory(parent)?;
        let none = || Error::new(Errno::NOENT, "there is no such directory");
        let directory = Directory::at(&around.blob(name)?).ok_or_else(none)?;
        if self.blobs.has_any(&directory)? {
            return Err(Error::new(Errno::NOTEMPTY, "there are blobs in it or below"));
        }
        if !self.made.remove(&directory)? {
            return Err(none());
        }
        self.made.keep(&around);
        self.numbers.remove(&File::Directory(directory));
        Ok(())
    }

    pub(super) fn rename(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        mode: RenameMode,
    ) -> Result<()> {
        let directory = self.directory(parent)?;
        let (from, to) = (directory.blob(name)?, self.directory(new_parent)?.blob(new_name)?);
        if let Some(directory) = Directory::at(&from)
            && self.is_directory(&directory)?
        {
            let text = "a directory is what keys begin with: it is moved key by key";
            return Err(Error::new(Errno::XDEV, text));
        }
        if from == to {
            return Ok(());
        }
        self.blobs.rename(&from, &to, mode)?;
        self.made.keep(&directory);
        let [from, to] = [from, to].map(File::Blob);
        self.numbers.rename(&from, &to, (new_parent, new_name));
        Ok(())
    }

    /// How a file is opened: past the kernel's pages, so that each call sees what others have
    /// written, unless there are none.
    pub(super) fn opened(&self, flags: i32) -> (FileHandle, FopenFlags) {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let handle = if flags.contains(OFlags::APPEND) { APPENDING } else { HANDLE };
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        (handle, if self.is_alone { FopenFlags::FOPEN_KEEP_CACHE } else { direct })
    }

    /// Whether what is written by an open file goes behind the end.
    pub(super) fn is_append(handle: FileHandle) -> bool {
        handle == APPENDING
    }

    /// Opens a directory, to be listed.
    pub(super) fn open_listing(&self, number: INodeNo) -> Result<FileHandle> {
        let listing = Listing::new(self.directory(number)?);
        let handle = self.next_listing.fetch_add(1, Ordering::Relaxed);
        self.listings.lock().insert(handle, Arc::new(Mutex::new(listing)));
        Ok(FileHandle(handle))
    }

    pub(super) fn listing(&self, handle: FileHandle) -> Result<Arc<Mutex<Listing>>> {
        self.listings.lock().get(&handle.0).cloned().ok_or_else(|| {
            Error::new(Errno::BADF, format!("there is no open directory {}", handle.0))
        })
    }

    pub(super) fn close_listing(&self, handle: FileHandle) {
        self.listings.lock().remove(&handle.0);
    }
}

/// What was deleted or replaced by this mount.
fn gone() -> Error {
    Error::new(Errno::STALE, "the file was deleted, or another has its name")
}
