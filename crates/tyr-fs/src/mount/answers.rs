//! What the kernel says and is told of files, in our words and in its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, ReplyXattr};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::fuse::answers::errno;
use crate::layout::name::Name;
use crate::layout::record::{Kind, Time};
use crate::plan::lookup::Attributes;

/// A name that the kernel says.
pub fn name_of(name: &OsStr) -> Result<Name> {
    Name::new(name.as_bytes())
}

/// A kind as the kernel is told.
pub fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Regular => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::CharDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::Socket => FileType::Socket,
    }
}

/// The kind that `mknod` says.
pub fn kind_of(mode: u32) -> Result<Kind> {
    let kind = match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::RegularFile => Kind::Regular,
        rustix::fs::FileType::Fifo => Kind::Fifo,
        rustix::fs::FileType::CharacterDevice => Kind::CharDevice,
        rustix::fs::FileType::BlockDevice => Kind::BlockDevice,
        rustix::fs::FileType::Socket => Kind::Socket,
        other => return Err(Error::new(Errno::INVAL, format!("mknod makes no {other:?}"))),
    };
    Ok(kind)
}

/// A time as the kernel is told.
pub fn system_time(time: Time) -> SystemTime {
    let since = Duration::from_nanos(time.0.unsigned_abs());
    if time.0 >= 0 { UNIX_EPOCH + since } else { UNIX_EPOCH - since }
}

/// A time that the kernel says.
pub fn time_of(time: SystemTime) -> Time {
    let nanoseconds = |since: Duration| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time(nanoseconds(since)),
        Err(before) => Time(-nanoseconds(before.duration())),
    }
}

/// Attributes as the kernel is told.
pub fn file_attr(attributes: &Attributes) -> FileAttr {
    let times = attributes.times;
    FileAttr {
        ino: INodeNo(attributes.number),
        size: attributes.size,
        blocks: attributes.size.div_ceil(512),
        atime: system_time(times.atime),
        mtime: system_time(times.mtime),
        ctime: system_time(times.ctime),
        crtime: system_time(times.btime),
        kind: file_type(attributes.kind),
        perm: u16::try_from(attributes.mode).expect("twelve bits"),
        nlink: attributes.links,
        uid: attributes.owner,
        gid: attributes.group,
        rdev: attributes.device,
        blksize: 4_096,
        flags: 0,
    }
}

/// Answers with a value, or with its size where that is all that is asked for.
pub fn xattr_answer(reply: ReplyXattr, size: u32, result: Result<Vec<u8>>) {
    match result {
        Err(error) => reply.error(errno(&error)),
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

/// A place in a file that the kernel says.
pub fn offset_of(offset: i64) -> Result<u64> {
    u64::try_from(offset)
        .map_err(|_| Error::new(Errno::NXIO, format!("there is nothing at {offset}")))
}
