//! A read-only view of everything at one moment, for threads.

use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, ByteRange, Bytes, Error, Key, Result, Scan, ScanPage, Stat, Stretches, Timestamp,
    limits,
};

use super::keyspace::{read_range, too_large};
use super::{Keyspace, Reader};
use crate::backend::View;
use crate::key::ToKey;

/// Everything as it was at one moment. Writers go on; they do not wait for it, nor it for them.
/// Dropping it lets the old versions go. Clones share the moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) view: View,
}

impl Snapshot {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }

    /// The same moment, for async code.
    pub fn into_async(self) -> crate::Snapshot {
        crate::Snapshot::from_blocking(self)
    }

    /// Its moment.
    pub fn version(&self) -> Timestamp {
        self.view.at()
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound`, `SnapshotTooOld`, `InvalidArgument` above 64 MiB, `Corrupt`.
    pub fn read(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<Bytes> {
        let name = keyspace.blob(key)?;
        self.read_at(keyspace, &name, read_range(offset, len)?)?
            .ok_or_else(|| keyspace.absent(&name))
    }

    /// Reads a whole blob of up to 64 MiB.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn get(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Bytes> {
        let name = keyspace.blob(key)?;
        let size = self.stat_blob(keyspace, &name)?.size;
        if size > limits::READ_LEN_MAX {
            return Err(too_large(&name.key, size));
        }
        self.read_at(keyspace, &name, ByteRange { start: 0, end: size })?
            .ok_or_else(|| keyspace.absent(&name))
    }

    /// A blob's size and version then.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn stat(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        self.stat_blob(keyspace, &keyspace.blob(key)?)
    }

    /// Which bytes of a range of a blob were written then: see [`crate::Keyspace::stretches`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::stretches`]; `SnapshotTooOld`.
    pub fn stretches(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        range: ByteRange,
    ) -> Result<Stretches> {
        let name = keyspace.blob(key)?;
        let found = block_on(self.view.stretches(&keyspace.space, &name, range))?;
        found.ok_or_else(|| keyspace.absent(&name))
    }

    /// How many bytes of a blob were written then: see [`crate::Keyspace::allocated`].
    ///
    /// # Errors
    /// As [`Snapshot::stretches`].
    pub fn allocated(&self, keyspace: &Keyspace, key: impl ToKey) -> Result<u64> {
        let name = keyspace.blob(key)?;
        let found = block_on(self.view.allocated(&keyspace.space, &name))?;
        found.ok_or_else(|| keyspace.absent(&name))
    }

    /// Lists blobs as of then, in key order.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit of 0 or above 10,000; `SnapshotTooOld`.
    pub fn scan(
        &self,
        keyspace: &Keyspace,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Stat)>> {
        check_limit(limit)?;
        let scan = Scan::new().prefix(prefix).limit(limit);
        let mut next = Some(after.into_iter().fold(scan, Scan::after));
        let mut found = Vec::new();
        while let Some(scan) = next.filter(|_| found.len() < limit) {
            let scan = scan.limit(limit - found.len());
            let page = self.scan_page(keyspace, &scan)?;
            next = scan.resumed(&page);
            found.extend(page.entries.into_iter().filter_map(|it| Some((it.key, it.stat?))));
        }
        debug_assert!(found.len() <= limit, "{} of {limit}", found.len());
        Ok(found)
    }

    /// Lists a page as of then: what `scan` says, with sizes and versions, and first bytes if they
    /// are asked for, all of that moment. [`Scan::resumed`] goes on behind it.
    ///
    /// # Errors
    /// `InvalidArgument` for a scan out of range; `SnapshotTooOld`; `Unavailable` in a cluster some
    /// node of which is of a release that lists keys with size and version only.
    pub fn scan_page(&self, keyspace: &Keyspace, scan: &Scan) -> Result<ScanPage> {
        self.view.scan(&keyspace.space, scan)
    }

    /// Lists all that `scan` says as of then, page by page. It ends with the first error.
    pub fn scan_pages(
        &self,
        keyspace: &Keyspace,
        scan: &Scan,
    ) -> impl Iterator<Item = Result<ScanPage>> + use<> {
        let (snapshot, keyspace) = (self.clone(), keyspace.clone());
        pages(scan.clone(), move |scan| snapshot.scan_page(&keyspace, scan))
    }

    /// Reads any part of a blob as a stream.
    ///
    /// # Errors
    /// `NotFound`, `SnapshotTooOld`.
    pub fn reader(&self, keyspace: &Keyspace, key: impl ToKey, range: ByteRange) -> Result<Reader> {
        let name = keyspace.blob(key)?;
        let size = self.stat_blob(keyspace, &name)?.size;
        Ok(Reader::new(self.clone(), keyspace.clone(), name, range, size))
    }

    pub(crate) fn read_at(
        &self,
        keyspace: &Keyspace,
        name: &BlobName,
        range: ByteRange,
    ) -> Result<Option<Bytes>> {
        let answer = self.view.read(&keyspace.space, name, range)?;
        Ok(answer.map(|found| found.bytes))
    }

    /// Fills `out` with the bytes from `offset` on, which must be within the blob.
    pub(crate) fn read_into(
        &self,
        keyspace: &Keyspace,
        name: &BlobName,
        offset: u64,
        out: &mut [u8],
    ) -> Result<()> {
        match self.view.read_into(&keyspace.space, name, offset, out)? {
            true => Ok(()),
            false => Err(keyspace.absent(name)),
        }
    }

    fn stat_blob(&self, keyspace: &Keyspace, name: &BlobName) -> Result<Stat> {
        self.view.stat(&keyspace.space, name)?.ok_or_else(|| keyspace.absent(name))
    }
}

/// The pages of a scan, until the last or the first error.
pub(super) fn pages(
    scan: Scan,
    fetch: impl Fn(&Scan) -> Result<ScanPage>,
) -> impl Iterator<Item = Result<ScanPage>> {
    let mut next = Some(scan);
    std::iter::from_fn(move || {
        let scan = next.take()?;
        let page = fetch(&scan);
        next = page.as_ref().ok().and_then(|page| scan.resumed(page));
        Some(page)
    })
}

/// Refuses a scan of no keys or of too many.
fn check_limit(limit: usize) -> Result<()> {
    if (1..=limits::SCAN_LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let max = limits::SCAN_LIMIT_MAX;
    Err(Error::invalid(format!("a scan's limit is 1 to {max}, not {limit}")))
}
