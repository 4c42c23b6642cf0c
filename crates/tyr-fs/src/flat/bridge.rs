//! The kernel's requests as calls on blobs.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, FileType, Filesystem, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use rustix::io::Errno;
use tyr::Bytes;

use super::state::Flat;
use crate::error::Result;
use crate::fuse::answers::{allocation, bare_attr, done, errno, not_made, rename_mode};
use crate::fuse::{GENERATION, agree, space};

impl Flat {
    /// Answers with what a name stands for.
    fn entry(&self, reply: ReplyEntry, result: Result<FileAttr>) {
        match result {
            Ok(attr) => reply.entry(&self.lifetime(), &attr, GENERATION),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn attr_answer(&self, reply: ReplyAttr, result: Result<FileAttr>) {
        match result {
            Ok(attr) => reply.attr(&self.lifetime(), &attr),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

impl Filesystem for Flat {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What is read and written past the kernel's pages may be mapped, too.
        agree(config, self.is_alone, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.look_up(parent, name) {
            // The kernel keeps that there is none, where it may keep anything.
            Err(error) if self.is_alone && error.errno() == Errno::NOENT => {
                let nothing = bare_attr(INodeNo(0), FileType::RegularFile);
                reply.entry(&self.lifetime(), &nothing, GENERATION);
            }
            found => self.entry(reply, found),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.numbers.forget(number, count);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.attr_answer(reply, self.attributes(number));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A blob has no mode, owner or times of its own: they are taken, and stay as they are.
        let set = (|| {
            if let Some(size) = size {
                self.blobs.truncate(&self.blob(number)?, size)?;
            }
            self.attributes(number)
        })();
        self.attr_answer(reply, set);
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::RegularFile => self.entry(reply, self.make((parent, name))),
            _ => reply.error(fuser::Errno::EPERM),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        self.entry(reply, self.make_directory((parent, name)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.remove((parent, name)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.remove_directory((parent, name)));
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
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
        let renamed = rename_mode(flags)
            .and_then(|mode| Flat::rename(self, (parent, name), (new_parent, new_name), mode));
        done(reply, renamed);
    }

    fn open(&self, _: &Request, _: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let (handle, flags) = self.opened(flags.0);
        reply.opened(handle, flags);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make((parent, name)) {
            Ok(attr) => {
                let (handle, flags) = self.opened(flags);
                reply.created(&self.lifetime(), &attr, GENERATION, handle, flags);
            }
            Err(error) => reply.error(not_made(&error, flags)),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.blob(number);
        match read.and_then(|key| self.blobs.read(&key, offset, u64::from(size))) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = u32::try_from(data.len()).expect("it came with a size");
        // What was written into mapped memory goes where that is, by whichever open file.
        let is_append = Self::is_append(handle) && !flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let bytes = Bytes::copy_from_slice(data);
        let written = self.blob(number).and_then(|key| match is_append {
            true => self.blobs.append(&key, &bytes),
            false => self.blobs.write(&key, offset, &bytes),
        });
        match written {
            Ok(()) => reply.written(len),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Every write was committed: the kernel need not ask again.
        reply.error(fuser::Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.blobs.sync());
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.open_listing(number) {
            Ok(handle) => reply.opened(handle, fuser::FopenFlags::empty()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self
            .listing(handle)
            .and_then(|listing| self.list_names(&mut listing.lock(), offset, &mut reply));
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self
            .listing(handle)
            .and_then(|listing| self.list_files((&mut listing.lock(), number), offset, &mut reply));
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.close_listing(handle);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.blobs.sync());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.space.of(self.blobs.store()) {
            Ok(disk) => space::tell(reply, disk.size_bytes, disk.free_bytes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done_so = allocation(mode).and_then(|allocation| match allocation {
            Some(allocation) => self.blobs.allocate(&self.blob(number)?, allocation, offset, len),
            // Space behind the end that nobody sees: none is reserved.
            None => Ok(()),
        });
        done(reply, done_so);
    }
}
