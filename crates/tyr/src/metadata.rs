//! Service metadata: a small versioned key-value store for what services must agree on.
//!
//! On a cluster the monitors keep it, under consensus: it is there as long as a majority of them
//! is. A store in a directory keeps its own. Keys are paths of up to 512 bytes, `service/epoch`;
//! values have up to 4 MiB, all of it together 64 MiB and 262,144 keys: configuration, not data.
//!
//! Each change raises one *revision* of the whole. An entry knows the revision in which it came to
//! be and the one of its last change, so that a condition on that is a compare-and-set. A watch
//! tells what changes under a prefix, and goes on from any revision, also in another process:
//!
//! ```
//! # async fn tour() -> tyr::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! use tyr::metadata::{Expected, Path, Transaction};
//!
//! let tyr = tyr::Tyr::open(folder.path()).await?;
//! let metadata = tyr.metadata();
//! metadata.put("service/log/leader", "alice").await?;
//!
//! // Whoever has seen this revision may change it; all others are told `Conflict`.
//! let known = metadata.get("service/log/leader").await?.expect("just put");
//! let leader = Path::new("service/log/leader")?;
//! let take_over = Transaction::new()
//!     .when(leader.clone(), Expected::Revision(known.changed))
//!     .put(leader, "bob")
//!     .put(Path::new("service/log/epoch")?, "2");
//! metadata.transact(take_over).await?;
//!
//! // What is there, and then what changes: nothing in between is missed.
//! let page = metadata.list("service/log/", None, 1_000).await?;
//! assert_eq!(page.entries.len(), 2);
//! let mut watch = metadata.watch("service/log/", page.revision);
//! metadata.delete("service/log/epoch").await?;
//! let told = watch.next().await?;
//! assert_eq!(told.changes[0].path.as_str(), "service/log/epoch");
//! assert_eq!(told.changes[0].value, None);
//! # tyr.close().await
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(tour()).unwrap();
//! ```
//!
//! What a program says of itself, such as where it is reached, it binds to its
//! [presence](Metadata::presence): it goes when the program does, and watches tell.
//!
//! On a cluster users see and change what the longest prefix with rights lets them
//! (`access/<prefix>`, which administrators write); in a directory whoever opens it may do
//! everything. `cluster/`, `users/`, `quotas/` and `access/` are the cluster's own.

use std::time::Duration;

use tyr_types::{Bytes, Result};

pub use tyr_metadata::{Entry, Expected, KeyChange, Path, Transaction};

pub use crate::presence::Presence;

use crate::backend::{Backend, MetadataWatch};

/// The service metadata of a store; see [the module](self). Clone it freely.
#[derive(Clone, Debug)]
pub struct Metadata {
    backend: Backend,
}

/// Entries of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In order of their keys. At most 1,024 and about 4 MiB, whatever was asked for: the next page
    /// begins after the last of them, and there is none after an empty one.
    pub entries: Vec<(Path, Entry)>,
    /// The revision that they are of: a watch from there on misses nothing.
    pub revision: u64,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// What changed, in order, in whole revisions.
    pub changes: Vec<KeyChange>,
    /// Up to this revision that is everything.
    pub revision: u64,
}

/// A watch; see [`Metadata::watch`]. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    inner: MetadataWatch,
}

impl Metadata {
    pub(crate) fn new(backend: Backend) -> Self {
        Self { backend }
    }

    /// Whether it is that of a cluster, which other programs read and change, too.
    pub fn is_of_cluster(&self) -> bool {
        self.backend.is_of_cluster()
    }

    /// What a key holds; `None` when there is no such key.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no key; `PermissionDenied`; `Unavailable` when the monitors do
    /// not answer, or the disk does not.
    pub async fn get(&self, path: &str) -> Result<Option<Entry>> {
        self.backend.metadata(Path::new(path)?).await
    }

    /// Gives a key this value, whether it was there or not; the revision in which it has it.
    ///
    /// # Errors
    /// As [`Metadata::transact`].
    pub async fn put(&self, path: &str, value: impl Into<Bytes>) -> Result<u64> {
        self.transact(Transaction::new().put(Path::new(path)?, value)).await
    }

    /// Takes a key away; does nothing if it is not there. Answers the revision afterwards.
    ///
    /// # Errors
    /// As [`Metadata::transact`].
    pub async fn delete(&self, path: &str) -> Result<u64> {
        self.transact(Transaction::new().delete(Path::new(path)?)).await
    }

    /// Entries whose keys begin with `prefix` and come after `after`, in order, at most `limit`.
    /// What the user may not read is left out.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer, or the disk does not.
    pub async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let (entries, revision) = self.backend.list_metadata(prefix, after, limit).await?;
        Ok(Page { entries, revision })
    }

    /// Conditions and changes, all or nothing, of at most 256 in all; the revision in which they
    /// took effect. It is durable when it answers.
    ///
    /// # Errors
    /// `Conflict` when a condition does not hold; `PermissionDenied`; `InvalidArgument` beyond the
    /// limits; `QuotaExceeded` when all of it together is too much; `Unavailable`, and on a cluster
    /// `TimedOut` when it is not known whether it took effect: look before asking again.
    pub async fn transact(&self, transaction: Transaction) -> Result<u64> {
        self.backend.change_metadata(transaction).await
    }

    /// That this program is there: what is put by it goes when the program does. On a cluster it is
    /// over when nothing was heard of it for `ttl`, 1 to 60 s.
    ///
    /// # Errors
    /// `InvalidArgument` for another time; `PermissionDenied` for a directory that is read-only;
    /// `QuotaExceeded` when 4,096 programs are there; `Unavailable` when the monitors do not
    /// answer, or their programs are of an older release.
    pub async fn presence(&self, ttl: Duration) -> Result<Presence> {
        Presence::begin(&self.backend, ttl).await
    }

    /// What changes under a prefix after a revision: that of a [`Page`], so that nothing is missed,
    /// or one that a watch has told.
    pub fn watch(&self, prefix: &str, after: u64) -> Watch {
        Watch { inner: self.backend.watch_metadata(prefix.to_owned(), after) }
    }
}

impl Watch {
    /// What has changed since it told last; waits for something. Nothing is lost when the future is
    /// dropped before it is ready.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what changed is not remembered any more (the last 4,096 changes are, a
    /// directory's until it is closed): list anew, and watch from that page's revision.
    /// `PermissionDenied`; `Unavailable` when the store is closed.
    pub async fn next(&mut self) -> Result<Changes> {
        let (changes, revision) = self.inner.next().await?;
        Ok(Changes { changes, revision })
    }
}
