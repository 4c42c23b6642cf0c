//! The kernel's requests as calls of a file system.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, FileHandle, Filesystem, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use rustix::io::Errno;

use super::answers::{file_attr, kind_of, name_of, offset_of, time_of, xattr_answer};
use super::place::{Own, Place};
use super::state::{Bridge, Handle};
use crate::error::Error;
use crate::fuse::answers::{allocation, done, errno, not_made, rename_mode};
use crate::fuse::{GENERATION, agree, space};
use crate::layout::record::{Access, Kind};
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::Seen;
use crate::plan::node::Node;
use crate::plan::rename::RenameMode;
use crate::plan::xattrs::XattrChange;

/// `setxattr` of what must not, or must, be there.
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// `lseek` to what is, and is not, in a hole.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

impl Filesystem for Bridge {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        agree(config, self.is_alone, InitFlags::FUSE_AUTO_INVAL_DATA);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.found(parent, reply, self.look_up(parent, name));
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.forget_node(number, count);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let lifetime = self.lifetime_of(number);
        if let Some(own) = Own::of(number) {
            return reply.attr(&lifetime, &own.attr());
        }
        let place = Place::of(number);
        let attributes = self.look(number).and_then(|(files, node)| files.attributes(&node));
        let attributes = match attributes {
            Ok(attributes) => attributes,
            Err(error) => return reply.error(errno(&error)),
        };
        let hidden = if place.is_now() { self.pages.tell(&attributes) } else { None };
        let answer = move || reply.attr(&lifetime, &place.attr(&attributes));
        match hidden {
            None => answer(),
            // Without a thread the answer is dropped, which is EIO.
            Some(version) => drop(self.pages.drop_then(place.file, version, answer)),
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
        let now = self.files.clock_now();
        let time = |time: TimeOrNow| match time {
            TimeOrNow::SpecificTime(time) => time_of(time),
            TimeOrNow::Now => now,
        };
        let (atime, mtime) = (atime.map(time), mtime.map(time));
        let new = NewAttributes { mode, owner, group, atime, mtime };
        match self.set(number, new, size) {
            Ok(attributes) => {
                self.pages.tell(&attributes);
                reply.attr(&self.lifetime(), &file_attr(&attributes));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.look(number).and_then(|(files, node)| files.read_link(&node)) {
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
        self.entry(reply, made, (parent, name));
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
        let made = match Own::of(parent) {
            Some(Own::Snapshots) => {
                self.snapshots.keep(&self.files, name).and_then(|view| self.root_of(view, name))
            }
            Some(Own::Moments) => self.take_moment(name, request.uid()),
            Some(Own::Control) | None => {
                let made = self.make(request, parent, name, (Kind::Directory, mode, 0));
                return self.entry(reply, made, (parent, name));
            }
        };
        self.found(parent, reply, made);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, (|| self.files.remove_file(&self.node(parent)?, &name_of(name)?))());
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = match Own::of(parent) {
            Some(Own::Snapshots) => self.snapshots.drop_kept(&self.files, name),
            Some(Own::Moments) => self.moments.give_up(name, request.uid()),
            Some(Own::Control) | None => self
                .node(parent)
                .and_then(|parent| self.files.remove_directory(&parent, &name_of(name)?)),
        };
        done(reply, removed);
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
        self.entry(reply, made, (parent, name));
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
            let mode = rename_mode(flags)?;
            self.files.rename((&from, &name), (&to, &new_name), mode)?;
            Ok(mode)
        })();
        if let Ok(mode) = renamed {
            self.note_renamed(new_parent, new_name);
            if mode == RenameMode::Exchange {
                self.note_renamed(parent, name);
            }
        }
        done(reply, renamed.map(drop));
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = (|| {
            let (node, directory, name) = (self.node(number)?, self.node(parent)?, name_of(name)?);
            self.files.link(&node, &directory, &name)?;
            let attributes = self.files.attributes(&node)?;
            Ok(Seen { node: Node { place: None, ..node }, attributes })
        })();
        self.entry(reply, linked, (parent, name));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(number, flags.0) {
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
        match self.make_open(request, (parent, name), mode, flags) {
            Ok((attr, handle, flags)) => {
                reply.created(&self.lifetime(), &attr, GENERATION, handle, flags);
            }
            Err(error) => reply.error(not_made(&error, flags)),
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
        let len = u64::from(size);
        let read = self.handle(handle).and_then(|handle| match &*handle {
            Handle::Now { file, .. } => file.read(offset, len),
            Handle::Then(files, node) => files.read(node, offset, len),
        });
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
        let written = self.handle(handle).and_then(|handle| match handle.now()? {
            (file, true) => file.append(data.to_vec()).map(drop),
            (file, false) => file.write(offset, data.to_vec()),
        });
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("it came with a size")),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Every write was committed: the kernel need not ask again.
        reply.error(fuser::Errno::ENOSYS);
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
        self.close_handle(handle);
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
        match self.list_names(number, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        match self.list_files(number, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.files.sync());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.room() {
            Ok((size_bytes, free_bytes)) => space::tell(reply, size_bytes, free_bytes),
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
        if Own::of(number).is_some() {
            return reply.error(fuser::Errno::NO_XATTR);
        }
        let value = self.look(number).and_then(|(files, node)| files.xattr(&node, name.as_bytes()));
        xattr_answer(reply, size, value);
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = match Own::of(number) {
            Some(_) => Ok(Vec::new()),
            None => self.look(number).and_then(|(files, node)| files.xattr_names(&node)),
        };
        let list = names
            .map(|names| names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect());
        xattr_answer(reply, size, list);
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let node = self.node(number);
        let name = name.as_bytes();
        done(reply, node.and_then(|it| self.files.set_xattr(&it, name, XattrChange::Remove)));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done_so = allocation(mode).and_then(|allocation| {
            let handle = self.handle(handle)?;
            match allocation {
                Some(allocation) => handle.now()?.0.allocate(allocation, offset, len),
                // Space behind the end that nobody sees: none is reserved.
                None => Ok(()),
            }
        });
        done(reply, done_so);
    }

    fn lseek(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let found = (|| {
            let ((files, node), offset) = (self.look(number)?, offset_of(offset)?);
            match whence {
                SEEK_DATA => files.next_data(&node, offset),
                SEEK_HOLE => files.next_hole(&node, offset),
                _ => Err(Error::new(Errno::INVAL, format!("lseek {whence} is the kernel's"))),
            }
        })();
        match found {
            Ok(at) => reply.offset(at.cast_signed()),
            Err(error) => reply.error(errno(&error)),
        }
    }
}
