//! Kept snapshots in a mount: the directory `.snap` of the root, which no listing shows.
//!
//! ```text
//!   .snap/NAME/...     the file system as it was when NAME was kept; nothing can be changed there
//!   mkdir .snap/NAME   keeps one, of the whole store;  rmdir .snap/NAME  drops it
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;

use parking_lot::Mutex;
use rustix::io::Errno;
use tyr::Timestamp;

use super::place::KEPT;
use crate::blocking::{FileSystem, Moment};
use crate::error::{Error, Result};
use crate::options::AccessTimes;

/// A snapshot that was looked at.
struct Known {
    view: u16,
    version: Timestamp,
    moment: Moment,
}

/// The snapshots that were looked at.
#[derive(Default)]
pub struct Snapshots {
    known: Mutex<HashMap<String, Known>>,
    last: Mutex<u16>,
}

fn text_of(name: &OsStr) -> Result<&str> {
    name.to_str().ok_or_else(|| Error::new(Errno::NOENT, "no snapshot has such a name"))
}

impl Snapshots {
    /// Looks a snapshot up: which view it is here.
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
            return Ok(known.view);
        }
        let mut last = self.last.lock();
        let view = *last + 1;
        if !KEPT.contains(&view) {
            let text = "too many snapshots were looked at: mount anew";
            return Err(Error::new(Errno::NFILE, text));
        }
        *last = view;
        known.insert(name.to_owned(), Known { view, version, moment });
        Ok(view)
    }

    /// The file system as it was then. Calls of one answer wait for each other; those of several
    /// do not.
    pub fn files(&self, view: u16) -> Result<FileSystem> {
        let known = self.known.lock();
        let found = known.values().find(|known| known.view == view);
        found.map(|known| known.moment.clone().files().clone()).ok_or_else(|| {
            Error::new(Errno::STALE, "the snapshot was dropped, and another has its name")
        })
    }

    /// Keeps everything as it is now; answers which view it is here.
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
