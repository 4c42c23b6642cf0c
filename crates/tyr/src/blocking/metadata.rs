//! Service metadata, for threads.

use std::time::Duration;

use tyr_runtime::waiting::{block_on, block_on_within};
use tyr_types::{Bytes, Result};

use crate::metadata::{self, Changes, Entry, Page, Transaction};

/// The service metadata of a store: see [`crate::metadata`]. Clone it freely.
#[derive(Clone, Debug)]
pub struct Metadata {
    inner: metadata::Metadata,
}

/// A watch: waits for what changes, and ends after an error. Dropping it ends it.
#[derive(Debug)]
pub struct MetadataWatch {
    inner: metadata::Watch,
    is_over: bool,
}

impl Metadata {
    pub(crate) fn new(inner: metadata::Metadata) -> Self {
        Self { inner }
    }

    /// Whether it is that of a cluster: see [`metadata::Metadata::is_of_cluster`].
    pub fn is_of_cluster(&self) -> bool {
        self.inner.is_of_cluster()
    }

    /// What a key holds; `None` when there is no such key.
    ///
    /// # Errors
    /// As [`metadata::Metadata::get`].
    pub fn get(&self, path: &str) -> Result<Option<Entry>> {
        block_on(self.inner.get(path))
    }

    /// Gives a key this value, whether it was there or not; the revision in which it has it.
    ///
    /// # Errors
    /// As [`metadata::Metadata::transact`].
    pub fn put(&self, path: &str, value: impl Into<Bytes>) -> Result<u64> {
        block_on(self.inner.put(path, value))
    }

    /// Takes a key away; does nothing if it is not there. Answers the revision afterwards.
    ///
    /// # Errors
    /// As [`metadata::Metadata::transact`].
    pub fn delete(&self, path: &str) -> Result<u64> {
        block_on(self.inner.delete(path))
    }

    /// Entries whose keys begin with `prefix` and come after `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// As [`metadata::Metadata::list`].
    pub fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        block_on(self.inner.list(prefix, after, limit))
    }

    /// Conditions and changes, all or nothing; the revision in which they took effect.
    ///
    /// # Errors
    /// As [`metadata::Metadata::transact`].
    pub fn transact(&self, transaction: Transaction) -> Result<u64> {
        block_on(self.inner.transact(transaction))
    }

    /// That this program is there: see [`metadata::Metadata::presence`].
    ///
    /// # Errors
    /// As [`metadata::Metadata::presence`].
    pub fn presence(&self, ttl: Duration) -> Result<Presence> {
        block_on(self.inner.presence(ttl)).map(|inner| Presence { inner })
    }

    /// What changes under a prefix after a revision: see [`metadata::Metadata::watch`].
    pub fn watch(&self, prefix: &str, after: u64) -> MetadataWatch {
        MetadataWatch { inner: self.inner.watch(prefix, after), is_over: false }
    }
}

/// That this program is there: see [`metadata::Presence`]. Dropping it ends it.
#[derive(Debug)]
pub struct Presence {
    inner: metadata::Presence,
}

impl Presence {
    /// Gives a key this value for as long as this program is there; the revision.
    ///
    /// # Errors
    /// As [`metadata::Presence::transact`].
    pub fn put(&self, path: &str, value: impl Into<Bytes>) -> Result<u64> {
        block_on(self.inner.put(path, value))
    }

    /// Conditions and changes, all or nothing, of which what is put is bound to this; the revision.
    ///
    /// # Errors
    /// As [`metadata::Presence::transact`].
    pub fn transact(&self, transaction: Transaction) -> Result<u64> {
        block_on(self.inner.transact(transaction))
    }

    /// Whether it is there, as far as this process knows.
    pub fn is_there(&self) -> bool {
        self.inner.is_there()
    }

    /// Waits so long for it to be over though nobody ended it here; whether it is.
    pub fn lost_within(&self, wait: Duration) -> bool {
        block_on_within(self.inner.lost(), wait).is_some()
    }

    /// Ends it: see [`metadata::Presence::end`].
    ///
    /// # Errors
    /// As [`metadata::Presence::end`].
    pub fn end(self) -> Result<()> {
        block_on(self.inner.end())
    }
}

impl MetadataWatch {
    /// What has changed since it told last; waits for so long. `None` when nothing has by then.
    ///
    /// # Errors
    /// As [`metadata::Watch::next`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Changes>> {
        block_on_within(self.inner.next(), timeout).transpose()
    }
}

/// Errors are those of [`metadata::Watch::next`].
impl Iterator for MetadataWatch {
    type Item = Result<Changes>;

    fn next(&mut self) -> Option<Result<Changes>> {
        if self.is_over {
            return None;
        }
        let told = block_on(self.inner.next());
        self.is_over = told.is_err();
        Some(told)
    }
}
