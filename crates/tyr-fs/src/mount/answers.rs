//! What the kernel says and is told, in our words and in its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, RenameFlags, ReplyEmpty, ReplyXattr};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::layout::name::Name;
use crate::layout::record::{Kind, Time};
use crate::plan::allocate::Allocation;
use crate::plan::lookup::Attributes;
use crate::plan::rename::RenameMode;

/// The number that the kernel is told.
///
/// What was and is not kept any more is stale: programs take EAGAIN of a read for a file that has
/// no more bytes yet.
pub fn errno(error: &Error) -> fuser::Errno {
    if error.is_too_old() {
        return fuser::Errno::ESTALE;
    }
    match error.errno() {
        Errno::IO => tracing::warn!("a call of the file system failed: {error}"),
        _ => tracing::trace!("{error}"),
    }
    fuser::Errno::from_i32(error.errno().raw_os_error())
}

/// Whether what is opened with these flags must be made by that.
pub fn is_exclusive(flags: i32) -> bool {
    OFlags::from_bits_retain(flags.cast_unsigned()).contains(OFlags::EXCL)
}

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

/// Attributes of which the kernel looks at number and kind alone.
pub fn bare_attr(number: INodeNo, kind: FileType) -> FileAttr {
    FileAttr {
        ino: number,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4_096,
        flags: 0,
    }
}

/// Answers a request that has nothing to tell.
pub fn done(reply: ReplyEmpty, result: Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
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

/// What `fallocate` makes of a range; `None` for what changes nothing that is seen.
pub fn allocation(mode: i32) -> Result<Option<Allocation>> {
    let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
    let is_kept = flags.contains(FallocateFlags::KEEP_SIZE);
    match flags.difference(FallocateFlags::KEEP_SIZE) {
        rest if rest.is_empty() => Ok((!is_kept).then_some(Allocation::Extend)),
        FallocateFlags::PUNCH_HOLE if is_kept => Ok(Some(Allocation::Punch)),
        FallocateFlags::ZERO_RANGE if is_kept => Ok(Some(Allocation::Punch)),
        FallocateFlags::ZERO_RANGE => Ok(Some(Allocation::Zero)),
        _ => {
            let text = format!("fallocate with {flags:?} is not done here");
            Err(Error::new(Errno::OPNOTSUPP, text))
        }
    }
}

/// A place in a file that the kernel says.
pub fn offset_of(offset: i64) -> Result<u64> {
    u64::try_from(offset)
        .map_err(|_| Error::new(Errno::NXIO, format!("there is nothing at {offset}")))
}

/// What a rename does with what has the new name.
pub fn rename_mode(flags: RenameFlags) -> Result<RenameMode> {
    if flags.is_empty() {
        Ok(RenameMode::Replace)
    } else if flags == RenameFlags::RENAME_NOREPLACE {
        Ok(RenameMode::NoReplace)
    } else if flags == RenameFlags::RENAME_EXCHANGE {
        Ok(RenameMode::Exchange)
    } else {
        Err(Error::new(Errno::INVAL, format!("a rename with {flags:?} is not known")))
    }
}
