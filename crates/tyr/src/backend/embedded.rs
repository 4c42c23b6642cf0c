//! A store in this process. Every call may block for the disk, but for what memory answers.

use std::sync::Arc;
use std::time::Duration;

use tyr_embedded::{Attributes, AwaitedLease, Held, KeyspaceEntry};
pub(crate) use tyr_embedded::{
    EmbeddedLease, EmbeddedPresence, EmbeddedStore, EmbeddedWatch, ExtentLease, MetadataWatch,
    SnapshotGuard,
};
use tyr_runtime::ticket::Ticket;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, KeyspaceInfo, LeaseMode, ReadCheck, Result, Scan,
    ScanPage, Stat, Stretches, Timestamp, Transaction, WatchTarget, limits,
};

use super::{Answer, Found, ReadVersions};

/// A keyspace of a store in this process.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedSpace {
    store: Arc<EmbeddedStore>,
    entry: Arc<KeyspaceEntry>,
}

/// A store in this process, at one moment.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedView {
    store: Arc<EmbeddedStore>,
    guard: Arc<SnapshotGuard>,
}

impl EmbeddedSpace {
    pub fn new(store: &Arc<EmbeddedStore>, entry: Arc<KeyspaceEntry>) -> Self {
        Self { store: Arc::clone(store), entry }
    }

    pub fn store(&self) -> &Arc<EmbeddedStore> {
        &self.store
    }

    pub fn info(&self) -> &KeyspaceInfo {
        self.entry.info()
    }

    pub fn read(&self, name: &BlobName, range: ByteRange) -> Result<Answer> {
        self.store.read(&self.entry, name, range, Timestamp::MAX).map(found)
    }

    /// The same if memory can answer.
    pub fn read_resident(&self, name: &BlobName, range: ByteRange) -> Option<Result<Answer>> {
        let answer = self.store.read_resident(&self.entry, name, range, Timestamp::MAX)?;
        Some(answer.map(found))
    }

    pub fn read_whole(&self, name: &BlobName) -> Result<Answer> {
        let before = self.store.attributes(&self.entry, name, Timestamp::MAX)?;
        if let Some(before) = before.filter(|before| before.size > limits::READ_LEN_MAX) {
            let (size, version) = (Some(before.size), before.version);
            return Ok(Some(Found { size, version, bytes: Bytes::new() }));
        }
        self.read(name, ByteRange { start: 0, end: limits::READ_LEN_MAX })
    }

    pub fn stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        let attributes = self.store.attributes(&self.entry, name, Timestamp::MAX)?;
        Ok(attributes.and_then(|found| found.stat()))
    }

    pub fn lease(
        &self,
        name: BlobName,
        mode: LeaseMode,
        wait: Option<Duration>,
    ) -> Result<AwaitedLease> {
        self.store.lease(name, mode, wait)
    }

    pub fn watch(&self, target: WatchTarget) -> Result<EmbeddedWatch> {
        self.store.watch(target)
    }

    /// Writes a piece of a large payload to disk, ahead of the transaction that refers to it.
    pub fn upload(&self, piece: &[u8]) -> Result<Arc<ExtentLease>> {
        self.store.upload(&self.entry, piece)
    }
}

impl EmbeddedView {
    pub fn new(store: &Arc<EmbeddedStore>) -> Result<Self> {
        let guard = Arc::new(store.snapshot()?);
        Ok(Self { store: Arc::clone(store), guard })
    }

    pub fn at(&self) -> Timestamp {
        self.guard.at()
    }

    /// What keeps its versions.
    pub fn into_guard(self) -> Arc<SnapshotGuard> {
        self.guard
    }

    pub fn read(&self, space: &EmbeddedSpace, name: &BlobName, range: ByteRange) -> Result<Answer> {
        self.guard.settle()?;
        let answer = self.store.read(&space.entry, name, range, self.guard.at())?;
        self.check(answer.is_some())?;
        Ok(found(answer))
    }

    /// The same if memory can answer.
    pub fn read_resident(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        range: ByteRange,
    ) -> Option<Result<Answer>> {
        if !self.guard.is_settled() {
            return None;
        }
        let answer = self.store.read_resident(&space.entry, name, range, self.guard.at())?;
        Some(answer.map(found))
    }

    pub fn read_into(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool> {
        self.guard.settle()?;
        let range = ByteRange::at(offset, out.len() as u64)?;
        let found = self.store.read_into(&space.entry, name, range, self.guard.at(), out)?;
        self.check(found.is_some())?;
        Ok(found.is_some())
    }

    pub fn stat(&self, space: &EmbeddedSpace, name: &BlobName) -> Result<Option<Stat>> {
        self.guard.settle()?;
        let attributes = self.store.attributes(&space.entry, name, self.guard.at())?;
        self.check(attributes.is_some())?;
        Ok(attributes.and_then(|found| found.stat()))
    }

    /// A page of what is written of a range then; `None`: no such blob.
    pub fn stretches(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        range: ByteRange,
    ) -> Result<Option<Stretches>> {
        self.guard.settle()?;
        let found = self.store.stretches(&space.entry, name, range, self.guard.at())?;
        self.check(found.is_some())?;
        Ok(found.map(|(_, page)| page))
    }

    pub fn scan(&self, space: &EmbeddedSpace, scan: &Scan) -> Result<ScanPage> {
        self.guard.settle()?;
        let found = self.store.scan(&space.entry, scan, self.guard.at())?;
        self.check(false)?;
        Ok(found)
    }

    /// What was not found was not there: unless a fold has ended the snapshot meanwhile, and taken
    /// away what it would have found.
    fn check(&self, is_found: bool) -> Result<()> {
        if is_found { Ok(()) } else { self.guard.check() }
    }
}

/// Commits a transaction.
pub(super) fn commit(
    store: &Arc<EmbeddedStore>,
    blobs: Vec<BlobOperations>,
    reads: Vec<ReadCheck>,
    versions: ReadVersions,
    leases: Vec<Arc<ExtentLease>>,
) -> Ticket {
    let transaction = Transaction { id: store.next_transaction_id(), blobs, reads };
    let snapshot = versions.into_guard();
    store.commit(transaction, Held { leases, snapshot, ..Held::default() })
}

fn found(answer: Option<(Attributes, Bytes)>) -> Answer {
    answer.map(|(Attributes { size, version, .. }, bytes)| {
        let size = Some(size);
        Found { size, version, bytes }
    })
}
