//! A file system as it was at one moment, for reading.

use std::sync::Arc;

use parking_lot::Mutex;
use tyr::blocking::Snapshot;
use tyr::{Bytes, Timestamp};

use super::bundle::Bundle;
use super::listing::Page;
use super::store::FileSystem;
use crate::error::Result;
use crate::layout::name::Name;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;

/// All of a file system as it was at one moment: a tree of any size, read at leisure while others
/// go on. See [`FileSystem::moment`] and [`FileSystem::moment_at`].
///
/// Threads that share one wait for each other; clones share the moment and do not.
#[derive(Debug)]
pub struct Moment {
    files: FileSystem,
    snapshot: Snapshot,
}

/// A call of the file system that reads.
macro_rules! calls {
    ($($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Moment {
            $(
                #[doc = concat!("See [`FileSystem::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// As there, and as [`FileSystem::moment`] has it.
                pub fn $name(&self, $($given: $type),*) -> Result<$answer> {
                    self.files.$name($($given),*)
                }
            )*
        }
    };
}

calls! {
    lookup(directory: &Node, name: &Name) -> Seen;
    attributes(node: &Node) -> Attributes;
    read(node: &Node, offset: u64, len: u64) -> Bytes;
    read_link(node: &Node) -> Bytes;
    xattr(node: &Node, name: &[u8]) -> Vec<u8>;
    xattr_names(node: &Node) -> Vec<Vec<u8>>;
    parent(node: &Node) -> Node;
    list_directory(directory: &Node, cookie: u64, limit: usize) -> Page;
    find(path: impl AsRef<[u8]>) -> Seen;
    find_symlink(path: impl AsRef<[u8]>) -> Seen;
    attributes_at(path: impl AsRef<[u8]>) -> Attributes;
    fetch_at(path: impl AsRef<[u8]>) -> Bytes;
}

impl Moment {
    fn new(files: &FileSystem, snapshot: Snapshot) -> Self {
        let bundle = Bundle::of(&files.shared, snapshot.clone());
        let bundle = Some(Arc::new(Mutex::new(bundle)));
        Self { files: FileSystem { bundle, ..files.clone() }, snapshot }
    }

    /// When it was.
    pub fn version(&self) -> Timestamp {
        self.snapshot.version()
    }

    /// The file system at the moment: what changes it is EROFS.
    #[cfg(all(feature = "mount", target_os = "linux"))]
    pub(crate) fn files(&self) -> &FileSystem {
        &self.files
    }

    /// The moment of the store, to read other keyspaces at it.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Clone for Moment {
    fn clone(&self) -> Self {
        Self::new(&self.files, self.snapshot.clone())
    }
}

impl FileSystem {
    /// The whole file system as it is now, to be read for up to 5 minutes; who acts as a user reads
    /// as that user.
    ///
    /// # Errors
    /// `EIO` when the store does not answer. Reading it later than the store keeps what was then is
    /// `EAGAIN`.
    pub fn moment(&self) -> Result<Moment> {
        Ok(Moment::new(self, self.shared.tyr.snapshot()?))
    }

    /// The whole file system as it was when the store kept a snapshot of this name
    /// ([`Tyr::keep`](tyr::blocking::Tyr::keep)), to be read for as long as that is kept.
    ///
    /// # Errors
    /// `ENOENT` when there is none of this name; of reads, soon after it was dropped, and where the
    /// file system was made later.
    pub fn moment_at(&self, kept: &str) -> Result<Moment> {
        Ok(Moment::new(self, self.shared.tyr.kept_snapshot(kept)?))
    }
}
