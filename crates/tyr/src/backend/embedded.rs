//! A store in this process. Every call may block for the disk, but for what memory answers.

use std::sync::Arc;
use std::time::Duration;

use tyr_embedded::{Attributes, AwaitedLease, AwaitedNotice, Held, KeyspaceEntry};
pub(crate) use tyr_embedded::{
    EmbeddedLease, EmbeddedPresence, EmbeddedStore, EmbeddedWatch, ExtentLease, MetadataWatch,
    SnapshotGuard,
};
use tyr_runtime::ticket::Ticket;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, KeptName, KeyspaceInfo, LeaseMode, Leased,
    ReadCheck, Result, Scan, ScanPage, Stat, Stretches, Timestamp, Transaction, WatchTarget,
    limits,
};

use super::{Answer, Found, ReadVersions};
use crate::offload::offload;

/// What is read first of a whole blob from memory: most blobs end there.
const SHORT: u64 = 4096;

/// A whole blob of more bytes is not copied by who asks for it from an executor's thread.
const COPIED_AT_ONCE_MAX: u64 = 1 << 20;

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
    moment: Moment,
}

/// What keeps the versions of a moment.
#[derive(Clone, Debug)]
enum Moment {
    /// A snapshot in use.
    InUse(Arc<SnapshotGuard>),
    /// A kept snapshot.
    Kept(Timestamp),
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

    pub async fn fetch(&self, name: &BlobName, range: ByteRange) -> Result<Answer> {
        if let Some(answer) = self.read_resident(name, range) {
            return answer;
        }
        let (space, name) = (self.clone(), name.clone());
        offload(move || space.read(&name, range)).await
    }

    /// The same if memory can answer.
    fn read_resident(&self, name: &BlobName, range: ByteRange) -> Option<Result<Answer>> {
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

    pub async fn fetch_whole(&self, name: &BlobName) -> Result<Answer> {
        if let Some(answer) = self.read_whole_resident(name) {
            return answer;
        }
        let (space, name) = (self.clone(), name.clone());
        offload(move || space.read_whole(&name)).await
    }

    /// The same of a blob that is not long, if memory can answer.
    fn read_whole_resident(&self, name: &BlobName) -> Option<Result<Answer>> {
        let first = self.read_resident(name, ByteRange { start: 0, end: SHORT })?;
        match first.as_ref().ok().and_then(Option::as_ref).and_then(|found| found.size) {
            Some(size) if size > COPIED_AT_ONCE_MAX => None,
            // Of one moment: what was read first may have been replaced since.
            Some(size) if size > SHORT => {
                self.read_resident(name, ByteRange { start: 0, end: limits::READ_LEN_MAX })
            }
            Some(_) | None => Some(first),
        }
    }

    pub fn stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        let attributes = self.store.attributes(&self.entry, name, Timestamp::MAX)?;
        Ok(attributes.and_then(|found| found.stat()))
    }

    pub async fn fetch_stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        if let Some(stat) = self.stat_resident(name) {
            return stat;
        }
        let (space, name) = (self.clone(), name.clone());
        offload(move || space.stat(&name)).await
    }

    /// The same if memory can answer.
    fn stat_resident(&self, name: &BlobName) -> Option<Result<Option<Stat>>> {
        let attributes = self.store.attributes_resident(&self.entry, name, Timestamp::MAX)?;
        Some(attributes.map(|it| it.and_then(|found| found.stat())))
    }

    pub fn lease(
        &self,
        of: Leased,
        mode: LeaseMode,
        wait: Option<Duration>,
    ) -> Result<AwaitedLease> {
        self.store.lease(of, mode, wait)
    }

    pub fn watch(&self, target: WatchTarget) -> Result<EmbeddedWatch> {
        self.store.watch(target)
    }

    pub fn notify(
        &self,
        blob: &BlobName,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<AwaitedNotice> {
        self.entry.check()?;
        self.store.notify(blob, payload, timeout)
    }

    /// Writes a piece of a large payload to disk, ahead of the transaction that refers to it.
    pub fn upload(&self, piece: &[u8]) -> Result<Arc<ExtentLease>> {
        self.store.upload(&self.entry, piece)
    }
}

impl EmbeddedView {
    pub fn new(store: &Arc<EmbeddedStore>) -> Result<Self> {
        let moment = Moment::InUse(Arc::new(store.snapshot()?));
        Ok(Self { store: Arc::clone(store), moment })
    }

    /// The store at the moment of a kept snapshot.
    pub fn kept(store: &Arc<EmbeddedStore>, name: &KeptName) -> Result<Self> {
        let moment = Moment::Kept(store.kept_moment(name)?);
        Ok(Self { store: Arc::clone(store), moment })
    }

    pub fn at(&self) -> Timestamp {
        match &self.moment {
            Moment::InUse(guard) => guard.at(),
            Moment::Kept(at) => *at,
        }
    }

    /// What keeps its versions, if it is in use.
    pub fn into_guard(self) -> Option<Arc<SnapshotGuard>> {
        match self.moment {
            Moment::InUse(guard) => Some(guard),
            Moment::Kept(_) => None,
        }
    }

    pub fn read(&self, space: &EmbeddedSpace, name: &BlobName, range: ByteRange) -> Result<Answer> {
        let guard = match &self.moment {
            Moment::InUse(guard) => guard,
            Moment::Kept(at) => {
                return self.store.read_kept(&space.entry, name, range, *at).map(found);
            }
        };
        guard.settle()?;
        let answer = self.store.read(&space.entry, name, range, guard.at())?;
        check(guard, answer.is_some())?;
        Ok(found(answer))
    }

    /// The same if memory can answer.
    pub fn read_resident(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        range: ByteRange,
    ) -> Option<Result<Answer>> {
        let Moment::InUse(guard) = &self.moment else { return None };
        if !guard.is_settled() {
            return None;
        }
        let answer = self.store.read_resident(&space.entry, name, range, guard.at())?;
        Some(answer.map(found))
    }

    pub fn read_into(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool> {
        let range = ByteRange::at(offset, out.len() as u64)?;
        let guard = match &self.moment {
            Moment::InUse(guard) => guard,
            Moment::Kept(at) => {
                let found = self.store.read_kept(&space.entry, name, range, *at)?;
                return match found {
                    Some((_, bytes)) if bytes.len() == out.len() => {
                        out.copy_from_slice(&bytes);
                        Ok(true)
                    }
                    Some(_) => Err(Error::invalid(format!("{name} ends within {range:?}"))),
                    None => Ok(false),
                };
            }
        };
        guard.settle()?;
        let found = self.store.read_into(&space.entry, name, range, guard.at(), out)?;
        check(guard, found.is_some())?;
        Ok(found.is_some())
    }

    pub fn stat(&self, space: &EmbeddedSpace, name: &BlobName) -> Result<Option<Stat>> {
        let attributes = match &self.moment {
            Moment::InUse(guard) => {
                guard.settle()?;
                let attributes = self.store.attributes(&space.entry, name, guard.at())?;
                check(guard, attributes.is_some())?;
                attributes
            }
            Moment::Kept(at) => self.store.attributes_kept(&space.entry, name, *at)?,
        };
        Ok(attributes.and_then(|found| found.stat()))
    }

    /// The same if memory can answer.
    pub fn stat_resident(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
    ) -> Option<Result<Option<Stat>>> {
        let Moment::InUse(guard) = &self.moment else { return None };
        if !guard.is_settled() {
            return None;
        }
        let attributes = self.store.attributes_resident(&space.entry, name, guard.at())?;
        Some(attributes.and_then(|found| {
            check(guard, found.is_some())?;
            Ok(found.and_then(|found| found.stat()))
        }))
    }

    /// A page of what is written of a range then; `None`: no such blob.
    pub fn stretches(
        &self,
        space: &EmbeddedSpace,
        name: &BlobName,
        range: ByteRange,
    ) -> Result<Option<Stretches>> {
        let found = match &self.moment {
            Moment::InUse(guard) => {
                guard.settle()?;
                let found = self.store.stretches(&space.entry, name, range, guard.at())?;
                check(guard, found.is_some())?;
                found
            }
            Moment::Kept(at) => self.store.stretches_kept(&space.entry, name, range, *at)?,
        };
        Ok(found.map(|(_, page)| page))
    }

    pub fn scan(&self, space: &EmbeddedSpace, scan: &Scan) -> Result<ScanPage> {
        match &self.moment {
            Moment::InUse(guard) => {
                guard.settle()?;
                let found = self.store.scan(&space.entry, scan, guard.at())?;
                check(guard, false)?;
                Ok(found)
            }
            Moment::Kept(at) => self.store.scan_kept(&space.entry, scan, *at),
        }
    }
}

/// What was not found was not there: unless a fold has ended the snapshot meanwhile, and taken
/// away what it would have found.
fn check(guard: &SnapshotGuard, is_found: bool) -> Result<()> {
    if is_found { Ok(()) } else { guard.check() }
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
