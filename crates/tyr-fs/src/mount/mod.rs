//! A file system at a path of this machine, by FUSE: Linux, feature `mount`.
//!
//! The kernel checks rights and names, and asks for everything each time: nothing is cached but
//! pages of files, which go when a file has changed; unless nobody else uses the file system, or it
//! is as it was at a moment: then it may keep what it knows. [`bridge`] turns its requests into
//! calls, [`answers`] its words into ours; [`state`] has what is open, [`pages`] whose pages the
//! kernel has to drop, and [`listing`] fills its listings; [`snapshots`] shows what was kept, and
//! [`moments`] what is to be read as of one moment; [`place`] says how both are told from what is
//! now. What it shares with other mounts is in [`fuse`](crate::fuse).

mod answers;
mod bridge;
mod listing;
mod moments;
mod pages;
mod place;
mod snapshots;
mod state;

use std::io;
use std::path::Path;
use std::sync::Arc;

use self::pages::Pages;
use self::state::Bridge;
use crate::blocking::FileSystem;
use crate::fuse::known::KnownFiles;
use crate::fuse::{Mount, Target, serve};
use crate::options::AccessTimes;
use crate::plan::node::Node;

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
    let access_times = match options.is_read_only {
        true => AccessTimes::Never,
        false => options.access_times,
    };
    let known = Arc::new(KnownFiles::new(options.cache_bytes, Node::ROOT));
    let pages = Arc::new(Pages::default());
    let kept = (Arc::clone(&known), Arc::clone(&pages));
    let bridge = Bridge::new(files.with_access_times(access_times), kept, options.is_alone);
    let is_read_only = options.is_read_only;
    let target = Target { at: at.as_ref(), source: files.name(), is_read_only };
    let mounted = serve(bridge, known, &target)?;
    pages.mounted(mounted.notifier());
    Ok(mounted)
}
