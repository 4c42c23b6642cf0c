//! The blobs of a keyspace as files, by FUSE: Linux, feature `mount`.
//!
//! ```text
//!   open("/mnt/run/7/out.h5")              tyr put data run/7/out.h5 ...
//!       │ kernel                                │ other programs, at the same time
//!       ▼                                       ▼
//!     bridge ──► state ──► blobs ──────────► keyspace
//!                  │ numbers    what the kernel knows blobs and directories by
//!                  │ made       empty directories, which are nowhere in the store
//!                  └ listing    what is in a directory, a page at a time
//! ```
//!
//! There is nothing between a file and its blob: the path below the place of the mount is the key
//! ([`path`]), the size is the blob's, and each call is one transaction ([`blobs`]). So programs
//! that know only files, of several ranks on several machines too, write into the same blob beside
//! those that use the store's own calls, each byte where it says.
//!
//! - *Moments.* A read is of one moment, a write takes effect at one, each of up to 1 MiB: the
//!   kernel cuts longer ones, and those of memory that begins within a page a page earlier.
//!   `O_APPEND` is an append of the store, whatever offset the kernel computed.
//! - *What others do* is seen by the next call. Names and attributes have no lifetime in the
//!   kernel, and files are opened past its pages; mapped memory shows the blob as it was when it
//!   was mapped and a page first touched. Where nobody else uses the keyspace the kernel keeps all.
//! - *Directories* are what keys begin with. One of them hides a blob of the same name.
//! - *A deleted blob* is ESTALE for who has it open, as on NFS, and is not made anew by a write.
//! - *Rights* are those of the store's user who mounts, for all who may enter the mount. Mode,
//!   owner and times that programs set are taken and forgotten, since cp, tar and rsync fail
//!   otherwise. There are no links, devices, nor extended attributes.

mod blobs;
mod bridge;
mod listing;
mod made;
mod numbers;
mod path;
mod state;

use std::io;
use std::path::Path;
use std::sync::Arc;

use tyr::blocking::{Keyspace, Tyr};

use self::blobs::Blobs;
use self::numbers::{File, Numbers};
use self::path::Directory;
use self::state::Flat;
use crate::fuse::known::KnownFiles;
use crate::fuse::{Mount, Target, serve};

/// How the blobs of a keyspace are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatOptions {
    /// Whether nothing can be changed there.
    pub is_read_only: bool,
    /// Whether nobody else uses the keyspace while it is mounted: no other program, mount or
    /// handle. Then the kernel keeps names, attributes and bytes, and asks for each once. Where
    /// that is not so, what others do is seen late, or not at all.
    pub is_alone: bool,
    /// Bytes of memory for files that the kernel knows: above them it is asked to forget those
    /// that it was told of first, unless they are open.
    pub cache_bytes: usize,
}

impl Default for FlatOptions {
    fn default() -> Self {
        Self { is_read_only: false, is_alone: false, cache_bytes: 64 << 20 }
    }
}

/// Mounts the blobs of a keyspace of a store at a directory, as files.
///
/// Needs `/dev/fuse`, and root or `fusermount3` (Debian's `fuse3`). As root all users may use it.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = tyr::blocking::Tyr::connect("tyr://node-1:7001")?;
/// let data = store.keyspace("data")?;
/// let mounted = tyr_fs::mount_flat(&store, &data, "/mnt", &tyr_fs::FlatOptions::default())?;
/// std::fs::write("/mnt/run/7", "written")?;
/// assert_eq!(data.get("run/7")?, "written");
/// mounted.unmount()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `ENOENT`, `ENOTDIR` of the directory; what the kernel or `fusermount3` says.
pub fn mount_flat(
    store: &Tyr,
    keyspace: &Keyspace,
    at: impl AsRef<Path>,
    options: &FlatOptions,
) -> io::Result<Mount> {
    let root = File::Directory(Directory::root());
    let known = Arc::new(KnownFiles::new(options.cache_bytes, root));
    let blobs = Blobs::new(store.clone(), keyspace.clone());
    let flat = Flat::new(blobs, Numbers::new(Arc::clone(&known)), options.is_alone);
    let target =
        Target { at: at.as_ref(), source: keyspace.name(), is_read_only: options.is_read_only };
    serve(flat, known, &target)
}
