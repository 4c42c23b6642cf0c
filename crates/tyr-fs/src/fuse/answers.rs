//! What the kernel says and is told by every mount, in our words and in its own.

use std::time::UNIX_EPOCH;

use fuser::{FileAttr, FileType, INodeNo, RenameFlags, ReplyEmpty};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::plan::allocate::Allocation;
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

/// What the kernel is told where a file that is to be opened with these flags was not made.
///
/// Where another has just made it, and it need not be new, the kernel looks again by this answer,
/// and opens what it finds as any file, with the rights and the cut that belong to that.
pub fn not_made(error: &Error, flags: i32) -> fuser::Errno {
    let is_new = OFlags::from_bits_retain(flags.cast_unsigned()).contains(OFlags::EXCL);
    match error.errno() == Errno::EXIST && !is_new {
        true => fuser::Errno::ESTALE,
        false => errno(error),
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
