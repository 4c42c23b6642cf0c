//! A file system at a path of this machine, by FUSE: Linux, feature `mount`.
//!
//! The kernel checks rights and names, and asks for everything each time: nothing is cached but
//! pages of files, which go when a file has changed. [`bridge`] turns its requests into calls,
//! [`answers`] its words into ours; [`state`] has what it was told of, and what is open.

mod answers;
mod bridge;
mod state;

use std::io;
use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;

use fuser::{BackgroundSession, Config, MountOption, SessionACL};

use self::state::Bridge;
use crate::blocking::FileSystem;
use crate::options::AccessTimes;

/// A file system that is mounted. Dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    session: BackgroundSession,
}

/// How a file system is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Whether nothing can be changed there.
    pub is_read_only: bool,
    /// Whether it is noted when files are read; it never is where nothing can be changed.
    pub access_times: AccessTimes,
}

/// Mounts a file system at a directory.
///
/// Needs `/dev/fuse`, and root or `fusermount3` (Debian's `fuse3`). As root all users may use it.
///
/// # Errors
/// What the kernel or `fusermount3` says.
pub fn mount(
    files: &FileSystem,
    at: impl AsRef<Path>,
    options: &MountOptions,
) -> io::Result<Mount> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(files.name().to_owned()),
        MountOption::Subtype("tyr".to_owned()),
        MountOption::DefaultPermissions,
    ];
    let access_times = match options.is_read_only {
        true => {
            config.mount_options.push(MountOption::RO);
            AccessTimes::Never
        }
        false => options.access_times,
    };
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(available_parallelism().map_or(1, NonZero::get));
    config.clone_fd = true;
    let session = fuser::spawn_mount(Bridge::new(files.with_access_times(access_times)), at, &config)?;
    Ok(Mount { session })
}

impl Mount {
    /// Whether somebody else has unmounted it.
    pub fn is_over(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts it, and waits until all requests were answered and all files there were closed.
    ///
    /// # Errors
    /// What the kernel or `fusermount3` says.
    pub fn unmount(self) -> io::Result<()> {
        match self.is_over() {
            true => self.session.join(),
            false => self.session.umount_and_join(),
        }
    }
}
