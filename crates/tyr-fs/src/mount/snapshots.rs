//! Kept snapshots in a mount: the directory `.snap` of the root, which no listing shows.
//!
//! ```text
//!   .snap/NAME/...     the file system as it was when NAME was kept; nothing can be changed there
//!   mkdir .snap/NAME   keeps one, of the whole store;  rmdir .snap/NAME  drops it
//! ```
//!
//! The kernel knows files by number. One in a snapshot has the number that it had, with that of the
//! snapshot, which is this mount's, in the bits above.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};
use parking_lot::Mutex;
use rustix::io::Errno;
use tyr::Timestamp;

use super::answers::{bare_attr, file_attr};
use crate::blocking::{FileSystem, Moment};
use crate::error::{Error, Result};
use crate::options::AccessTimes;
use crate::plan::lookup::Attributes;

/// The name of the directory.
const NAME: &str = ".snap";

/// Bits of a file's own number.
const FILE_BITS: u32 = 48;

/// What stands for the directory in place of a snapshot.
const DIRECTORY: u16 = u16::MAX;

/// A file as the kernel knows it: the snapshot that it is in, 0 for none, and its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub snapshot: u16,
    pub file: u64,
}

impl Place {
    /// The directory of snapshots.
    pub const DIRECTORY: Self = Self { snapshot: DIRECTORY, file: 0 };

    pub fn of(number: INodeNo) -> Self {
        let snapshot = u16::try_from(number.0 >> FILE_BITS).expect("sixteen bits are left");
        Self { snapshot, file: number.0 & ((1 << FILE_BITS) - 1) }
    }

    pub fn number(self) -> INodeNo {
        debug_assert!(self.file >> FILE_BITS == 0, "numbers are given in order");
        INodeNo(u64::from(self.snapshot) << FILE_BITS | self.file)
    }

    /// Whether it is a file as it is now.
    pub fn is_now(self) -> bool {
        self.snapshot == 0
    }

    /// Attributes of a file there.
    pub fn attr(self, attributes: &Attributes) -> FileAttr {
        FileAttr { ino: self.number(), ..file_attr(attributes) }
    }
}

/// Attributes of the directory of snapshots: root may keep and drop them.
pub fn directory_attr() -> FileAttr {
    let now = SystemTime::now();
    let attr = bare_attr(Place::DIRECTORY.number(), FileType::Directory);
    FileAttr { perm: 0o755, nlink: 2, mtime: now, ctime: now, atime: now, ..attr }
}

/// A snapshot that was looked at.
struct Known {
    snapshot: u16,
    version: Timestamp,
    moment: Moment,
}

/// The snapshots that were looked at.
#[derive(Default)]
pub struct Snapshots {
    known: Mutex<HashMap<String, Known>>,
    last: Mutex<u16>,
}

/// Whether the kernel asks for the directory of snapshots by this name, in the root.
pub fn is_directory(name: &OsStr) -> bool {
    name == NAME
}

fn text_of(name: &OsStr) -> Result<&str> {
    name.to_str().ok_or_else(|| Error::new(Errno::NOENT, "no snapshot has such a name"))
}

impl Snapshots {
    /// Looks a snapshot up: which it is here.
    pub fn find(&self, files: &FileSystem, name: &OsStr) -> Result<u16> {
        let name = text_of(name)?;
        let moment = files.with_access_times(AccessTimes::Never).moment_at(name);
        let moment = moment.map_err(|error| match error.errno() {
            // A name that none can have.
            Errno::INVAL => Error::new(Errno::NOENT, error.text()),
            _ => error,
        })?;
        let version = moment.version();
        let mut known = self.known.lock();
        if let Some(known) = known.get(name).filter(|known| known.version == version) {
            return Ok(known.snapshot);
        }
        let mut last = self.last.lock();
        let snapshot = *last + 1;
        if snapshot == DIRECTORY {
            let text = "too many snapshots were looked at: mount anew";
            return Err(Error::new(Errno::NFILE, text));
        }
        *last = snapshot;
        known.insert(name.to_owned(), Known { snapshot, version, moment });
        Ok(snapshot)
    }

    /// The file system as it was then.
    pub fn files(&self, snapshot: u16) -> Result<FileSystem> {
        let known = self.known.lock();
        let found = known.values().find(|known| known.snapshot == snapshot);
        found.map(|known| known.moment.files().clone()).ok_or_else(|| {
            Error::new(Errno::STALE, "the snapshot was dropped, and another has its name")
        })
    }

    /// Keeps everything as it is now; answers which it is here.
    pub fn keep(&self, files: &FileSystem, name: &OsStr) -> Result<u16> {
        files.store().keep(text_of(name)?)?;
        self.find(files, name)
    }

    /// Drops one.
    pub fn drop_kept(&self, files: &FileSystem, name: &OsStr) -> Result<()> {
        Ok(files.store().drop_kept(text_of(name)?)?)
    }
}

/// The names of all that can be read.
pub fn names(files: &FileSystem) -> Result<Vec<String>> {
    let kept = files.store().kept()?.into_iter().filter(|kept| kept.unreadable.is_none());
    Ok(kept.map(|kept| kept.name.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_which_snapshot_and_which_file() {
        for (snapshot, file) in [(0, 1), (1, 1), (7, (1 << 48) - 1), (DIRECTORY, 0)] {
            let place = Place { snapshot, file };
            assert_eq!(Place::of(place.number()), place);
            assert_eq!(place.is_now(), snapshot == 0);
        }
        assert_eq!(Place::of(INodeNo(99)), Place { snapshot: 0, file: 99 });
    }
}
