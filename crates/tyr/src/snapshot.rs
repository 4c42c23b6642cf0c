//! A read-only view of everything at one moment, for async code.

use futures_core::Stream;
use tyr_types::{
    ByteRange, Bytes, Key, Result, Scan, ScanPage, Stat, Stretches, Timestamp, limits,
};

use crate::key::ToKey;
use crate::offload::offload;
use crate::pages::ScanPages;
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
        let keyspace = keyspace.as_blocking();
        let name = keyspace.blob(key)?;
        let range = blocking::read_range(offset, len)?;
        let answer = self.inner.view.fetch(&keyspace.space, &name, range).await?;
        answer.map(|found| found.bytes).ok_or_else(|| keyspace.absent(&name))
    }

    /// Reads a whole blob of up to 64 MiB.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub async fn get(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Bytes> {
        let key = key.to_key()?;
        let size = self.stat(keyspace, &key).await?.size;
        if size > limits::READ_LEN_MAX {
            return Err(blocking::too_large(&key, size));
        }
        self.read(keyspace, key, 0, size).await
    }

    /// A blob's size and version then.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub async fn stat(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        let keyspace = keyspace.as_blocking();
        let name = keyspace.blob(key)?;
        let stat = self.inner.view.fetch_stat(&keyspace.space, &name).await?;
        stat.ok_or_else(|| keyspace.absent(&name))
    }

    /// Which bytes of a range of a blob were written then: see [`Keyspace::stretches`].
    ///
    /// # Errors
    /// As [`Keyspace::stretches`]; `SnapshotTooOld`.
    pub async fn stretches(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        range: ByteRange,
    ) -> Result<Stretches> {
        let keyspace = keyspace.as_blocking();
        let name = keyspace.blob(key)?;
        let found = self.inner.view.stretches(&keyspace.space, &name, range).await?;
        found.ok_or_else(|| keyspace.absent(&name))
    }

    /// How many bytes of a blob were written then: see [`Keyspace::allocated`].
    ///
    /// # Errors
    /// As [`Snapshot::stretches`].
    pub async fn allocated(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<u64> {
        let keyspace = keyspace.as_blocking();
        let name = keyspace.blob(key)?;
        let found = self.inner.view.allocated(&keyspace.space, &name).await?;
        found.ok_or_else(|| keyspace.absent(&name))
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

    /// Lists a page as of then: what `scan` says, with sizes and versions, and first bytes if they
    /// are asked for, all of that moment. [`Scan::resumed`] goes on behind it.
    ///
    /// # Errors
    /// `InvalidArgument` for a scan out of range; `SnapshotTooOld`; `Unavailable` in a cluster some
    /// node of which is of a release that lists keys with size and version only.
    pub async fn scan_page(&self, keyspace: &Keyspace, scan: &Scan) -> Result<ScanPage> {
        self.inner.view.fetch_page(&keyspace.as_blocking().space, scan).await
    }

    /// Lists all that `scan` says as of then, page by page. It ends with the first error.
    pub fn scan_pages(
        &self,
        keyspace: &Keyspace,
        scan: &Scan,
    ) -> impl Stream<Item = Result<ScanPage>> + use<> {
        let (snapshot, keyspace) = (self.clone(), keyspace.clone());
        ScanPages::new(scan, move |scan: Scan| {
            let (snapshot, keyspace) = (snapshot.clone(), keyspace.clone());
            async move { snapshot.scan_page(&keyspace, &scan).await }
        })
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
        let key = key.to_key()?;
        let size = self.stat(keyspace, &key).await?.size;
        let keyspace = keyspace.as_blocking().clone();
        let name = keyspace.blob(key)?;
        let reader = blocking::Reader::new(self.inner.clone(), keyspace, name, range, size);
        Ok(Reader::from_blocking(reader))
    }
}
