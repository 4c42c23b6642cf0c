//! Moments in a mount: the directory `.tyr/now`.
//!
//! ```text
//!   mkdir .tyr/now/NAME   takes one;  rmdir .tyr/now/NAME  gives it up
//!   .tyr/now/NAME/...     the whole file system as it was then; nothing can be changed there
//! ```
//!
//! A moment has a name, so that all paths below it are of the same moment, whichever program
//! follows them. It is over after five minutes. Its name stays, so that nobody takes a tree that
//! cannot be read any more for one without files: everything in it is ESTALE.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::answers::name_of;
use super::place::TAKEN;
use crate::blocking::{FileSystem, Moment};
use crate::error::{Error, Result};
use crate::options::AccessTimes;
use crate::plan::lookup::Seen;
use crate::plan::node::Node;

/// How many there may be at a time: each makes the store keep what is replaced after it.
pub const MOMENTS_MAX: usize = 64;

/// How long one can be read, if the store keeps what was then for so long: as it does unless
/// configured.
pub const LIFETIME: Duration = Duration::from_secs(300);

/// A moment that has a name.
struct Taken {
    view: u16,
    /// Who took it.
    user: u32,
    /// When, from the beginning of the mount.
    at: Duration,
    /// The root then.
    root: Seen,
    /// `None` when it is over.
    moment: Option<Moment>,
}

#[derive(Default)]
struct Table {
    taken: BTreeMap<OsString, Taken>,
    last: Option<u16>,
}

/// The moments that were taken.
#[derive(Default)]
pub struct Moments(Mutex<Table>);

/// Who asks, and when, from the beginning of the mount.
#[derive(Clone, Copy)]
pub struct Asked {
    pub user: u32,
    pub at: Duration,
}

impl Table {
    /// Lets go of those that are over.
    fn expire(&mut self, now: Duration) {
        for taken in self.taken.values_mut() {
            if now.saturating_sub(taken.at) >= LIFETIME {
                taken.moment = None;
            }
        }
    }

    /// Room for one more: of those that are over, the oldest loses its name for it.
    fn make_room(&mut self) -> Result<()> {
        if self.taken.len() < MOMENTS_MAX {
            return Ok(());
        }
        let over = self.taken.iter().filter(|(_, taken)| taken.moment.is_none());
        let oldest = over.min_by_key(|(_, taken)| taken.at).map(|(name, _)| name.clone());
        match oldest {
            Some(name) => drop(self.taken.remove(&name)),
            None => {
                let text = format!("{MOMENTS_MAX} moments are in use: give one up by rmdir");
                return Err(Error::new(Errno::NOSPC, text));
            }
        }
        Ok(())
    }

    /// A number for one more. The kernel may know files of a moment whose name is gone, so one is
    /// used again when it `is_free` of them.
    fn number(&mut self, is_free: impl Fn(u16) -> bool) -> Result<u16> {
        let (first, last) = (*TAKEN.start(), self.last.unwrap_or(*TAKEN.end()));
        let mut candidates = (last + 1..=*TAKEN.end()).chain(first..=last);
        let is_named = |view| self.taken.values().any(|taken| taken.view == view);
        let view = candidates.find(|view| !is_named(*view) && is_free(*view)).ok_or_else(|| {
            Error::new(Errno::NFILE, "files of too many moments are open: close some")
        })?;
        self.last = Some(view);
        Ok(view)
    }
}

impl Moments {
    /// Takes one; answers which view it is, and its root. `is_free` says of which views the kernel
    /// knows no files.
    ///
    /// # Errors
    /// `EEXIST`; `ENOSPC` when there are [`MOMENTS_MAX`] of them that are not over.
    pub fn take(
        &self,
        files: &FileSystem,
        name: &OsStr,
        asked: Asked,
        is_free: impl Fn(u16) -> bool,
    ) -> Result<(u16, Seen)> {
        name_of(name)?;
        let moment = files.with_access_times(AccessTimes::Never).moment()?;
        let root = Seen { node: Node::ROOT, attributes: moment.attributes(&Node::ROOT)? };
        let mut table = self.0.lock();
        table.expire(asked.at);
        if table.taken.contains_key(name) {
            let text = format!("there is a moment {} already", name.display());
            return Err(Error::new(Errno::EXIST, text));
        }
        table.make_room()?;
        let view = table.number(is_free)?;
        let Asked { user, at } = asked;
        let taken = Taken { view, user, at, root: root.clone(), moment: Some(moment) };
        table.taken.insert(name.to_owned(), taken);
        Ok((view, root))
    }

    /// Which view has this name, and its root, also when it is over.
    pub fn find(&self, name: &OsStr) -> Result<(u16, Seen)> {
        let table = self.0.lock();
        let taken = table.taken.get(name);
        taken.map(|taken| (taken.view, taken.root.clone())).ok_or_else(|| none(name))
    }

    /// The file system as it was then. Calls of one answer wait for each other; those of several
    /// do not.
    pub fn files(&self, view: u16, now: Duration) -> Result<FileSystem> {
        let mut table = self.0.lock();
        table.expire(now);
        let taken = table.taken.values().find(|taken| taken.view == view);
        let moment = taken.and_then(|taken| taken.moment.as_ref());
        moment.map(|moment| moment.clone().files().clone()).ok_or_else(|| {
            Error::new(Errno::STALE, "the moment is over: take another by mkdir in .tyr/now")
        })
    }

    /// Gives one up. Files of it that are open stay so.
    ///
    /// # Errors
    /// `ENOENT`; `EPERM` for who is neither root nor the user that took it.
    pub fn give_up(&self, name: &OsStr, user: u32) -> Result<()> {
        let mut table = self.0.lock();
        let taken = table.taken.get(name).ok_or_else(|| none(name))?;
        if user != 0 && user != taken.user {
            let text = format!("the moment {} is of user {}", name.display(), taken.user);
            return Err(Error::new(Errno::PERM, text));
        }
        table.taken.remove(name);
        Ok(())
    }

    /// The names of all, and their roots.
    pub fn list(&self) -> Vec<(OsString, u16, Seen)> {
        let table = self.0.lock();
        let taken = table.taken.iter();
        taken.map(|(name, taken)| (name.clone(), taken.view, taken.root.clone())).collect()
    }
}

fn none(name: &OsStr) -> Error {
    Error::new(Errno::NOENT, format!("there is no moment {}: take one by mkdir", name.display()))
}

#[cfg(test)]
mod tests;
