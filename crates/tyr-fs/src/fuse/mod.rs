//! What every mount is made of, whatever it shows: Linux, feature `mount`.
//!
//! [`serve`] puts something at a directory of this machine, and [`Mount`] takes it away again.
//! [`known`] has what the kernel was told of, `kernel_cache` how it is told to drop that,
//! [`answers`] the words that both sides use, and [`space`] how much room there is. Nothing here
//! knows what a file is: that is of [`mount`](mod@crate::mount) and [`flat`](mod@crate::flat).

pub mod answers;
mod kernel_cache;
pub mod known;
pub mod space;

use std::fmt;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use fuser::{
    BackgroundSession, Config, Filesystem, Generation, InitFlags, KernelConfig, MountOption,
    Notifier, Session, SessionACL,
};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use self::kernel_cache::MountCache;
use self::known::{Bounded, KnownFiles, Tracked};

/// Threads that answer the kernel, at least: each waits for the disk, or for nodes, while others
/// share that wait. A thread has a buffer for the longest write, 1 MiB.
const THREADS_MIN: usize = 16;

/// Bytes of a write, and of a transaction.
pub const WRITE_LEN_MAX: u32 = 1 << 20;

/// How long the kernel may go by what it was told, where nobody else changes anything: all changes
/// come from it, and it knows what they change.
pub const LIFETIME_ALONE: Duration = Duration::from_secs(24 * 60 * 60);

/// Numbers are never used twice while the kernel knows them.
pub const GENERATION: Generation = Generation(0);

/// What is mounted. Dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    session: BackgroundSession,
    at: PathBuf,
    trimmer: Trimmer,
}

/// The thread that has the kernel forget files. It ends when this is dropped.
struct Trimmer(Arc<dyn Bounded>);

impl Trimmer {
    fn start<T: Tracked>(known: Arc<KnownFiles<T>>, kernel: MountCache) -> io::Result<Self> {
        let trimmer = Self(Arc::clone(&known) as Arc<dyn Bounded>);
        std::thread::Builder::new()
            .name("tyr-mount-trim".to_owned())
            .spawn(move || known.trim(kernel))?;
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

/// Where something is mounted, and how.
pub struct Target<'a> {
    pub at: &'a Path,
    /// What the table of mounts calls the source.
    pub source: &'a str,
    pub is_read_only: bool,
}

/// Has the kernel ask this for what is below a directory.
///
/// # Errors
/// `ENOENT`, `ENOTDIR` of the directory; what the kernel or `fusermount3` says.
pub fn serve<T: Tracked>(
    filesystem: impl Filesystem + 'static,
    known: Arc<KnownFiles<T>>,
    target: &Target<'_>,
) -> io::Result<Mount> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(target.source.to_owned()),
        // As the kernel takes it, and fusermount3.
        MountOption::CUSTOM("subtype=tyr".to_owned()),
        MountOption::DefaultPermissions,
    ];
    if target.is_read_only {
        config.mount_options.push(MountOption::RO);
    }
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(available_parallelism().map_or(1, NonZero::get).max(THREADS_MIN));
    config.clone_fd = true;
    let at = target.at.canonicalize()?;
    if !at.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    let session = Session::new(filesystem, &at, &config)?;
    let kernel = MountCache::new(session.notifier(), &session)?;
    let session = session.spawn()?;
    let trimmer = Trimmer::start(known, kernel)?;
    Ok(Mount { session, at, trimmer })
}

/// Agrees with the kernel on what every mount wants of it, and on `more`. A kernel that knows less
/// of it is asked for less.
pub fn agree(config: &mut KernelConfig, is_alone: bool, more: InitFlags) {
    let _ = config.set_max_write(WRITE_LEN_MAX);
    let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
    let _ = config.add_capabilities(more);
    if is_alone {
        // What comes with names is of use where it may be kept.
        let plus = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO;
        let _ = config.add_capabilities(plus);
    }
}

impl Mount {
    /// What tells the kernel something that it did not ask for.
    pub(crate) fn notifier(&self) -> Notifier {
        self.session.notifier()
    }

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
