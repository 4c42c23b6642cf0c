//! A read-only view of everything at one moment, for async code.

use tyr_types::{ByteRange, Bytes, Key, Result, Stat, Timestamp};

use crate::key::ToKey;
use crate::offload::offload;
use crate::{Keyspace, Reader, blocking};

/// Everything as it was at one moment. Writers go on; they do not wait for it, nor it for them.
/// Dropping it lets the old versions go. Clones share the moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    inner: blocking::Snapshot,
}

impl Snapshot {
    pub(crate) fn from_blocking(inner: blocking::Snapshot) -> Self {
        Self { inner }
    }

    /// The same snapshot, for threads.
    pub fn as_blocking(&self) -> &blocking::Snapshot {
        &self.inner
    }

    /// Its moment.
    pub fn version(&self) -> Timestamp {
        self.inner.version()
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound`, `SnapshotTooOld`, `InvalidArgument` above 64 MiB, `Corrupt`.
    pub async fn read(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<Bytes> {
        let keyspace = keyspace.as_blocking().clone();
        let name = keyspace.blob(key)?;
        let range = blocking::read_range(offset, len)?;
        let guard = &self.inner.guard;
        if guard.is_settled()
            && let Some(answer) =
                self.inner.node.read_resident(&keyspace.entry, &name, range, guard.at())
        {
            return answer?.map(|(_, bytes)| bytes).ok_or_else(|| keyspace.absent(&name));
        }
        let inner = self.inner.clone();
        offload(move || inner.read(&keyspace, name.key, offset, len)).await
    }

    /// Reads a whole blob of up to 64 MiB.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub async fn get(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Bytes> {
        let (inner, keyspace, key) = self.parts(keyspace, key)?;
        offload(move || inner.get(&keyspace, key)).await
    }

    /// A blob's size and version then.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub async fn stat(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        let (inner, keyspace, key) = self.parts(keyspace, key)?;
        offload(move || inner.stat(&keyspace, key)).await
    }

    /// Lists blobs as of then, in key order.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit of 0 or above 10,000; `SnapshotTooOld`.
    pub async fn scan(
        &self,
        keyspace: &Keyspace,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Stat)>> {
        let (inner, keyspace) = (self.inner.clone(), keyspace.as_blocking().clone());
        let (prefix, after) = (prefix.to_vec(), after.cloned());
        offload(move || inner.scan(&keyspace, &prefix, after.as_ref(), limit)).await
    }

    /// Reads any part of a blob as a stream.
    ///
    /// # Errors
    /// `NotFound`, `SnapshotTooOld`.
    pub async fn reader(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        range: ByteRange,
    ) -> Result<Reader> {
        let (inner, keyspace, key) = self.parts(keyspace, key)?;
        offload(move || inner.reader(&keyspace, key, range)).await.map(Reader::from_blocking)
    }

    fn parts(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
    ) -> Result<(blocking::Snapshot, blocking::Keyspace, Key)> {
        Ok((self.inner.clone(), keyspace.as_blocking().clone(), key.to_key()?))
    }
}
