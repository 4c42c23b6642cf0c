//! The disk of a node's folder: how large it is, how much of it is free, and whether the folder is
//! still there.
//!
//! Files that are open go on to work when their folder is deleted: the node would acknowledge what
//! nobody finds again. So it looks from time to time whether the folder is the one that it opened.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tyr_types::{Error, Result};

use super::room;

/// How much fits on a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskReport {
    /// Bytes of the file system that the folder is on.
    pub size_bytes: u64,
    /// Those of them that a program may still take.
    pub free_bytes: u64,
    /// Those of them that the node may fill: below [`super::ROOM_MIN`] it refuses writes.
    pub room_bytes: u64,
}

/// A node's folder, looked at again and again.
pub(super) struct NodeDisk {
    /// A file in it that stays what it is for as long as the node runs.
    mark: PathBuf,
    /// Device and number of that file.
    marked: (u64, u64),
    size_bytes: AtomicU64,
    free_bytes: AtomicU64,
    room_bytes: AtomicU64,
    is_gone: AtomicBool,
}

impl NodeDisk {
    /// The disk of this file, which its owner neither removes nor replaces.
    ///
    /// # Errors
    /// `Unavailable` when it is not there.
    pub fn of(mark: PathBuf) -> Result<Self> {
        let marked =
            identify(&mark).map_err(|error| Error::io(mark.display().to_string(), error))?;
        let disk = Self {
            mark,
            marked,
            size_bytes: AtomicU64::default(),
            free_bytes: AtomicU64::default(),
            room_bytes: AtomicU64::default(),
            is_gone: AtomicBool::default(),
        };
        disk.look();
        Ok(disk)
    }

    /// Looks how it is.
    pub fn look(&self) {
        let is_gone = match identify(&self.mark) {
            Ok(found) => found != self.marked,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_gone && !self.is_gone.swap(true, Ordering::Relaxed) {
            tracing::error!(mark = %self.mark.display(), "the node's folder was deleted");
        }
        let Some(folder) = self.mark.parent() else { return };
        if let Ok(system) = rustix::io::retry_on_intr(|| rustix::fs::statvfs(folder)) {
            let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
            self.size_bytes.store(bytes(system.f_blocks), Ordering::Relaxed);
            self.free_bytes.store(bytes(system.f_bavail), Ordering::Relaxed);
        }
        if let Ok(room) = room(folder) {
            self.room_bytes.store(room, Ordering::Relaxed);
        }
    }

    /// What was seen last.
    pub fn report(&self) -> DiskReport {
        DiskReport {
            size_bytes: self.size_bytes.load(Ordering::Relaxed),
            free_bytes: self.free_bytes.load(Ordering::Relaxed),
            room_bytes: self.room_bytes.load(Ordering::Relaxed),
        }
    }

    /// Why the node is of no use any more, if its folder is not there. What is gone stays gone:
    /// what is put in its place is not what the node has open.
    pub fn failure(&self) -> Option<String> {
        self.is_gone.load(Ordering::Relaxed).then(|| {
            format!(
                "its folder was deleted or replaced while it ran ({} is not there any more): what \
                 it acknowledges would be lost with it",
                self.mark.display()
            )
        })
    }
}

/// Device and number of a file.
fn identify(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_deleted_or_replaced_is_gone_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("store").join("LOCK");
        let make = || {
            fs::create_dir_all(mark.parent().unwrap()).unwrap();
            fs::write(&mark, "").unwrap();
        };
        make();
        let disk = NodeDisk::of(mark.clone()).unwrap();
        assert_eq!(disk.failure(), None);
        let report = disk.report();
        assert!(report.size_bytes > 0 && report.free_bytes <= report.size_bytes, "{report:?}");
        let _held = fs::File::open(&mark).unwrap();
        fs::remove_dir_all(mark.parent().unwrap()).unwrap();
        disk.look();
        assert!(disk.failure().unwrap().contains("deleted"));
        make();
        disk.look();
        assert!(disk.failure().is_some(), "it is another one");
        assert_eq!(disk.report().size_bytes, report.size_bytes, "it is known how it was");
    }
}
