//! The only door to files, apart from the index library's own.
//!
//! The log, the extents and the base's checkpoint reach files through two small traits, so that
//! the same code runs on a folder of the machine ([`real`]) and in memory ([`simulated`]), where a
//! test takes the power away after any operation and looks at what is left.
//!
//! What the traits promise is what POSIX promises and no more: written bytes may be lost, in any
//! part and order, until `sync` of the file; a created, renamed or removed name may be lost, or
//! come back, until `sync_folder` of its folder. This folder knows nothing of what the files hold.

mod blocks;
pub mod real;
mod reserve;
pub mod simulated;

use std::io::{self, IoSliceMut};
use std::sync::Arc;

pub use blocks::{BlockWriter, Blocks};
pub use real::{FolderLock, LOCK_FILE, RealDisk};
pub use simulated::SimulatedDisk;
use tyr_types::{Error, Result};

/// The error of something that the disk refused: `Unavailable`. `what` names the file.
///
/// A full disk is told apart in words, because whoever reads them can do something about it.
pub fn refusal(what: impl std::fmt::Display, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::io(format!("{what}: disk full, make space and try again"), error)
        }
        _ => Error::io(what.to_string(), error),
    }
}

/// Refuses with `Unavailable` what would take more than the disk has room for. `what` names it.
///
/// # Errors
/// That, and `Unavailable` when the disk does not tell.
pub fn check_room(disk: &dyn Disk, what: impl std::fmt::Display, len: u64) -> Result<()> {
    match disk.room() {
        Ok(room) if len <= room => Ok(()),
        Ok(room) => {
            let text = format!("{len} bytes are needed, there is room for {room}");
            Err(refusal(what, io::Error::new(io::ErrorKind::StorageFull, text)))
        }
        Err(error) => Err(refusal(what, error)),
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading and writing; `NotFound` if there is none.
    Existing,
    /// A new, empty file; `AlreadyExists` if there is one.
    CreateNew,
    /// Whichever of the two applies.
    CreateOrOpen,
    /// As `Existing`, and written past the system's cache where the file system can: what is
    /// written, where to and its place in memory are multiples of [`DIRECT_ALIGNMENT`].
    Direct,
}

/// What direct writes are multiples of: the largest block of any disk in use.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// A folder with files in it. Names are relative to it, with `/` between folder and file.
pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// As [`OpenMode`] says, and what the disk says.
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// The names in `folder` (without the folder), ascending. `""` is the root.
    ///
    /// # Errors
    /// `NotFound` when there is no such folder, and what the disk says.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Removes a file. Those who have it open keep it until they close it.
    ///
    /// # Errors
    /// `NotFound`, and what the disk says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name; a file that had that name is gone. Both at once, or neither.
    ///
    /// # Errors
    /// `NotFound`, and what the disk says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes a folder; does nothing if it is there.
    ///
    /// # Errors
    /// What the disk says.
    fn create_folder(&self, name: &str) -> io::Result<()>;

    /// Makes the names in `folder` durable: what was created, renamed and removed in it.
    ///
    /// # Errors
    /// What the disk says.
    fn sync_folder(&self, name: &str) -> io::Result<()>;

    /// Bytes that users' data may still take: what is free, less what is kept for the index, which
    /// needs some even to let go of what was deleted.
    ///
    /// # Errors
    /// What the disk says.
    fn room(&self) -> io::Result<u64>;

    /// Bytes of the file system that it is on, and those of them that this process may still take.
    ///
    /// # Errors
    /// What the disk says.
    fn size_and_free(&self) -> io::Result<(u64, u64)>;

    /// Keeps some space aside while there is plenty, and gives it back when others have left next
    /// to none. Called before the index is opened and before a fold, which make room. Where it
    /// fails there is less space: what needs it says so.
    fn balance_reserve(&self) {}

    /// Where it is, for messages: a path.
    fn describe(&self) -> String;
}

/// An open file. Any number of threads may read and write it at once.
pub trait DiskFile: Send + Sync {
    /// Reads from `offset` until `buf` is full or the file ends; answers how many bytes.
    ///
    /// # Errors
    /// What the disk says.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads from `offset` into one buffer after the other, as `read_at` does into one; may stop
    /// early anywhere, so who gets fewer bytes than asked for reads again with `read_at`.
    ///
    /// # Errors
    /// What the disk says.
    fn read_scattered_at(&self, bufs: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<usize> {
        let mut done = 0;
        for buf in bufs {
            let count = self.read_at(buf, offset)?;
            done += count;
            offset += count as u64;
            if count < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Writes all of `buf` at `offset`; a gap before it reads as zeros.
    ///
    /// # Errors
    /// What the disk says; then any part of `buf` may have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// From now on reading takes no more into the system's cache than it asks for.
    ///
    /// # Errors
    /// What the disk says.
    fn read_exactly(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes written bytes and the file's length durable (`fdatasync`).
    ///
    /// # Errors
    /// What the disk says. Then what was written may be lost although it still reads back: whoever
    /// relied on it must stop, and read again after a restart.
    fn sync(&self) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// What the disk says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no byte.
    ///
    /// # Errors
    /// What the disk says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes that the file takes on the disk, without its holes.
    ///
    /// # Errors
    /// What the disk says.
    fn disk_bytes(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it with zeros that take no space.
    ///
    /// # Errors
    /// What the disk says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves space, so that later writes to these bytes cannot meet a full disk. Extends the
    /// file when it ends earlier; what was not written reads as zeros.
    ///
    /// # Errors
    /// `StorageFull`, and what the disk says.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Gives the space of these bytes back; they read as zeros. The file's length stays.
    ///
    /// # Errors
    /// What the disk says.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
}

#[cfg(test)]
mod tests;
