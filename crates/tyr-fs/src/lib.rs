//! TýrFS, a POSIX file system on Týr's transactions.
//!
//! ```text
//!   blocking::FileSystem, FileSystem     files by directory and name, by path, and open ones
//!        │
//!       plan        pure: an operation and what is known give a transaction, or "read this first"
//!        │
//!      layout       keys, and the bytes behind them
//!        │
//!      tyr          two keyspaces of any store
//! ```
//!
//! There is no metadata server and no log of changes: each call is one transaction on the blobs
//! that hold names, records and content. What a call returned is on disk and every later call sees
//! it; a rename, of a directory of any size too, is there at once or not at all. Errors are the
//! numbers of POSIX, with a text.
//!
//! `mount_flat` is beside that: it shows the blobs of any keyspace as files, without a file system.
//!
//! This crate knows only the public API of `tyr`, as any other layer does. Rights are checked for
//! who asks for it ([`blocking::FileSystem::acting_as`]), and by the kernel in a mount: who may
//! write the keyspaces may do everything in the file system.
//!
//! ```
//! use tyr_fs::blocking::FileSystem;
//! use tyr_fs::{Access, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = tyr::blocking::Tyr::open(folder.path())?;
//! let files = FileSystem::create(&store, "home", &Options::default())?;
//!
//! let mine = Access { mode: 0o755, owner: 1000, group: 1000 };
//! files.make_directory_at("/letters", mine)?;
//! files.store_at("/letters/first", b"Dear reader", mine)?;
//! files.rename_at("/letters", "/archive")?;
//! assert_eq!(files.fetch_at("/archive/first")?, "Dear reader");
//! # Ok(())
//! # }
//! ```

pub mod blocking;
mod check;
mod error;
mod filesystem;
#[cfg(all(feature = "mount", target_os = "linux"))]
mod flat;
#[cfg(all(feature = "mount", target_os = "linux"))]
mod fuse;
mod layout;
#[cfg(all(feature = "mount", target_os = "linux"))]
mod mount;
mod options;
mod plan;

pub use check::{Finding, Repairs, Report};
pub use error::{Error, Result};
pub use filesystem::{FileSystem, OpenFile};
#[cfg(all(feature = "mount", target_os = "linux"))]
pub use flat::{FlatOptions, mount_flat};
#[cfg(all(feature = "mount", target_os = "linux"))]
pub use fuse::Mount;
pub use layout::name::{NAME_LEN_MAX, Name};
pub use layout::record::{Access, Kind, Time, Times};
pub use layout::superblock::{Quota, SEGMENT_BITS_DEFAULT, SEGMENT_BITS_MAX, SEGMENT_BITS_MIN};
pub use layout::xattrs::{XATTR_NAME_LEN_MAX, XATTR_VALUE_LEN_MAX, XATTRS_LEN_MAX};
#[cfg(all(feature = "mount", target_os = "linux"))]
pub use mount::{MountOptions, mount};
pub use options::{AccessTimes, Clock, NewFile, Options};
pub use plan::allocate::Allocation;
pub use plan::attributes::NewAttributes;
pub use plan::content::SMALL_LEN_MAX;
pub use plan::link::LINKS_MAX;
pub use plan::lookup::{Attributes, Seen};
pub use plan::node::Node;
pub use plan::rename::RenameMode;
pub use plan::rights::{Credentials, Permission};
pub use plan::xattrs::XattrChange;
pub use rustix::io::Errno;
