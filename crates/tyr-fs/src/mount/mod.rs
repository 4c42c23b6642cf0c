//! A file system at a path of this machine, by FUSE: Linux, feature `mount`.
//!
//! The kernel checks rights and names, and asks for everything each time: nothing is cached but
//! pages of files, which go when a file has changed; unless nobody else uses the file system, or it
//! is as it was at a moment: then it may keep what it knows. [`bridge`] turns its requests into
//! calls, [`answers`] its words into ours; [`state`] has what is open, [`known`] what the kernel
//! was told of, [`pages`] whose pages it has to drop, and [`listing`] fills its listings;
//! [`snapshots`] shows what was kept, and [`moments`] what is to be read as of one moment;
//! [`place`] says how both are told from what is now.

mod answers;
mod bridge;
mod known;
mod listing;
mod moments;
mod pages;
mod place;
mod snapshots;
mod state;

use std::fmt;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::available_parallelism;

use fuser::{BackgroundSession, Config, MountOption, Notifier, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use self::known::KnownFiles;
use self::pages::Pages;
use self::state::Bridge;
use crate::blocking::FileSystem;
use crate::options::AccessTimes;

/// Threads that answer the kernel, at least: each waits for the disk, or for nodes, while others
/// share that wait. A thread has a buffer for the longest write, 1 MiB.
const THREADS_MIN: usize = 16;

/// A file system that is mounted. Dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    session: BackgroundSession,
    at: PathBuf,
    trimmer: Trimmer,
}

/// How a file system is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Whether nothing can be changed there.
    pub is_read_only: bool,
    /// Whether it is noted when files are read; it never is where nothing can be changed.
    pub access_times: AccessTimes,
    /// Whether nobody else uses the file system while it is mounted: no other program, mount or
    /// handle. Then the kernel keeps names, attributes and bytes, and asks for each once. Where
    /// that is not so, what others do is seen late, or not at all.
    pub is_alone: bool,
    /// Bytes of memory for files that the kernel knows: above them it is asked to forget those
    /// that it was told of first, unless they are open.
    pub cache_bytes: usize,
}

impl Default for MountOptions {
    fn default() -> Self {
        let access_times = AccessTimes::default();
        Self { is_read_only: false, access_times, is_alone: false, cache_bytes: 64 << 20 }
    }
}

/// The thread that has the kernel forget files. It ends when this is dropped.
struct Trimmer(Arc<KnownFiles>);

impl Trimmer {
    fn start(known: Arc<KnownFiles>, notifier: Notifier) -> io::Result<Self> {
        let trimmer = Self(Arc::clone(&known));
        std::thread::Builder::new().name("tyr-mount-trim".to_owned()).spawn(move || {
            known.trim(|parent, name| {
                // The kernel may have dropped it before.
                let _ = notifier.inval_entry(parent, name);
            });
        })?;
        Ok(trimmer)
    }
}

impl Drop for Trimmer {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl fmt::Debug for Trimmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trimmer").finish_non_exhaustive()
    }
}

/// Mounts a file system at a directory.
///
/// Needs `/dev/fuse`, and root or `fusermount3` (Debian's `fuse3`). As root all users may use it.
///
/// # Errors
/// `ENOENT`, `ENOTDIR` of the directory; what the kernel or `fusermount3` says.
pub fn mount(
    files: &FileSystem,
    at: impl AsRef<Path>,
    options: &MountOptions,
) -> io::Result<Mount> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(files.name().to_owned()),
        // As the kernel takes it, and fusermount3.
        MountOption::CUSTOM("subtype=tyr".to_owned()),
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
    config.n_threads = Some(available_parallelism().map_or(1, NonZero::get).max(THREADS_MIN));
    config.clone_fd = true;
    let at = at.as_ref().canonicalize()?;
    if !at.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    let known = Arc::new(KnownFiles::new(options.cache_bytes));
    let files = files.with_access_times(access_times);
    let pages = Arc::new(Pages::default());
    let kept = (Arc::clone(&known), Arc::clone(&pages));
    let session = fuser::spawn_mount(Bridge::new(files, kept, options.is_alone), &at, &config)?;
    pages.mounted(session.notifier());
    let trimmer = Trimmer::start(known, session.notifier())?;
    Ok(Mount { session, at, trimmer })
}

impl Mount {
    /// Whether somebody else has unmounted it.
    pub fn is_over(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// How many files the kernel knows now, directories among them: each takes some memory here.
    pub fn known_files(&self) -> usize {
        self.trimmer.0.len()
    }

    /// Unmounts it: who looks for files there finds none any more. Waits until all files there were
    /// closed, which go on until then.
    ///
    /// # Errors
    /// What the kernel or `fusermount3` says.
    pub fn unmount(self) -> io::Result<()> {
        if !self.is_over() {
            detach(&self.at)?;
        }
        self.session.join()
    }
}

/// Takes a mount from its place, also where files are open there.
fn detach(at: &Path) -> io::Result<()> {
    match rustix::mount::unmount(at, UnmountFlags::DETACH) {
        // Who is not root asks the program that mounted it.
        Err(Errno::PERM) => {
            let status = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(at).status()?;
            match status.success() {
                true => Ok(()),
                false => Err(io::Error::other(format!("fusermount3 ended with {status}"))),
            }
        }
        // Somebody else was quicker.
        Err(Errno::INVAL) => Ok(()),
        done => Ok(done?),
    }
}
