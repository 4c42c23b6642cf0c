//! What stands for a store in this process in a build without it: types that have no value.

use std::future::Ready;
use std::sync::Arc;
use std::time::Duration;

use tyr_metadata::{Entry, KeyChange, Path, Transaction as MetadataTransaction};
use tyr_runtime::lease_state::LeaseState;
use tyr_runtime::statistics::Statistics;
use tyr_runtime::ticket::Ticket;
use tyr_runtime::watch_state::WatchState;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ExtentRef, KeptName, KeptSnapshot, KeyspaceConfig,
    KeyspaceInfo, KeyspaceName, LeaseMode, Leased, NoticeId, Notified, ReadCheck, Result, Scan,
    ScanPage, Stat, Stretches, Timestamp, Usage, WatchTarget,
};

use super::{Answer, ReadVersions};

/// No store.
#[derive(Clone, Debug)]
pub(crate) enum EmbeddedStore {}

/// No keyspace of one.
#[derive(Clone, Debug)]
pub(crate) enum EmbeddedSpace {}

/// No moment of one.
#[derive(Clone, Debug)]
pub(crate) enum EmbeddedView {}

/// No lease of a key of one.
#[derive(Debug)]
pub(crate) enum EmbeddedLease {}

/// No watch of keys of one.
#[derive(Debug)]
pub(crate) enum EmbeddedWatch {}

/// No piece of a payload on its disk.
#[derive(Clone, Debug)]
pub(crate) enum ExtentLease {}

/// No presence in one.
#[derive(Debug)]
pub(crate) enum EmbeddedPresence {}

/// No watch of one.
#[derive(Debug)]
pub(crate) enum MetadataWatch {}

/// No snapshot of one.
#[derive(Clone, Debug)]
pub(crate) enum SnapshotGuard {}

impl EmbeddedStore {
    pub fn create_keyspace(&self, _: &KeyspaceName, _: &KeyspaceConfig) -> Result<EmbeddedSpace> {
        match *self {}
    }

    pub fn keyspace(&self, _: &KeyspaceName) -> Result<EmbeddedSpace> {
        match *self {}
    }

    pub fn keyspaces(&self) -> Vec<KeyspaceInfo> {
        match *self {}
    }

    pub fn drop_keyspace(&self, _: &KeyspaceName) -> Result<()> {
        match *self {}
    }

    pub fn read_extent(&self, _: &ExtentRef, _: u32, _: &mut [u8]) -> Result<()> {
        match *self {}
    }

    pub fn is_metadata_read(&self) -> bool {
        match *self {}
    }

    pub fn metadata(&self, _: &Path) -> Result<Option<Entry>> {
        match *self {}
    }

    pub fn list_metadata(
        &self,
        _: &str,
        _: Option<&str>,
        _: usize,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        match *self {}
    }

    pub fn change_metadata(&self, _: &MetadataTransaction) -> Result<u64> {
        match *self {}
    }

    pub fn watch_metadata(&self, _: String, _: u64) -> MetadataWatch {
        match *self {}
    }

    pub fn keep(&self, _: &KeptName) -> Result<KeptSnapshot> {
        match *self {}
    }

    pub fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        match *self {}
    }

    pub fn drop_kept(&self, _: &KeptName) -> Result<()> {
        match *self {}
    }

    pub fn sync(&self) -> Result<()> {
        match *self {}
    }

    pub fn presence(&self) -> Result<EmbeddedPresence> {
        match *self {}
    }

    pub fn usage(&self) -> Result<Usage> {
        match *self {}
    }

    pub fn statistics(&self) -> Statistics {
        match *self {}
    }

    pub fn close(&self) -> Result<()> {
        match *self {}
    }
}

impl MetadataWatch {
    pub async fn next(&mut self) -> Result<(Vec<KeyChange>, u64)> {
        match *self {}
    }
}

impl EmbeddedLease {
    pub fn state(&self) -> &LeaseState {
        match *self {}
    }
}

impl EmbeddedWatch {
    pub fn state(&self) -> &WatchState {
        match *self {}
    }

    pub fn acknowledge(&self, _: NoticeId, _: Bytes) {
        match *self {}
    }
}

impl EmbeddedSpace {
    pub fn watch(&self, _: WatchTarget) -> Result<EmbeddedWatch> {
        match *self {}
    }

    pub fn notify(
        &self,
        _: &BlobName,
        _: Bytes,
        _: Duration,
    ) -> Result<Ready<Result<Result<Notified>>>> {
        match *self {}
    }

    pub fn lease(
        &self,
        _: Leased,
        _: LeaseMode,
        _: Option<Duration>,
    ) -> Result<Ready<Result<EmbeddedLease>>> {
        match *self {}
    }

    pub fn new(_: &Arc<EmbeddedStore>, space: Self) -> Self {
        space
    }

    pub fn store(&self) -> &Arc<EmbeddedStore> {
        match *self {}
    }

    pub fn info(&self) -> &KeyspaceInfo {
        match *self {}
    }

    pub fn read(&self, _: &BlobName, _: ByteRange) -> Result<Answer> {
        match *self {}
    }

    pub async fn fetch(&self, _: &BlobName, _: ByteRange) -> Result<Answer> {
        match *self {}
    }

    pub async fn fetch_whole(&self, _: &BlobName) -> Result<Answer> {
        match *self {}
    }

    pub async fn fetch_stat(&self, _: &BlobName) -> Result<Option<Stat>> {
        match *self {}
    }

    pub fn read_whole(&self, _: &BlobName) -> Result<Answer> {
        match *self {}
    }

    pub fn stat(&self, _: &BlobName) -> Result<Option<Stat>> {
        match *self {}
    }

    pub fn upload(&self, _: &[u8]) -> Result<Arc<ExtentLease>> {
        match *self {}
    }
}

impl EmbeddedView {
    pub fn new(store: &Arc<EmbeddedStore>) -> Result<Self> {
        match **store {}
    }

    pub fn at(&self) -> Timestamp {
        match *self {}
    }

    pub fn kept(store: &Arc<EmbeddedStore>, _: &KeptName) -> Result<Self> {
        match **store {}
    }

    pub fn into_guard(self) -> Option<Arc<SnapshotGuard>> {
        match self {}
    }

    pub fn stat_resident(&self, _: &EmbeddedSpace, _: &BlobName) -> Option<Result<Option<Stat>>> {
        match *self {}
    }

    pub fn read(&self, _: &EmbeddedSpace, _: &BlobName, _: ByteRange) -> Result<Answer> {
        match *self {}
    }

    pub fn read_resident(
        &self,
        _: &EmbeddedSpace,
        _: &BlobName,
        _: ByteRange,
    ) -> Option<Result<Answer>> {
        match *self {}
    }

    pub fn read_into(&self, _: &EmbeddedSpace, _: &BlobName, _: u64, _: &mut [u8]) -> Result<bool> {
        match *self {}
    }

    pub fn stretches(
        &self,
        _: &EmbeddedSpace,
        _: &BlobName,
        _: ByteRange,
    ) -> Result<Option<Stretches>> {
        match *self {}
    }

    pub fn stat(&self, _: &EmbeddedSpace, _: &BlobName) -> Result<Option<Stat>> {
        match *self {}
    }

    pub fn scan(&self, _: &EmbeddedSpace, _: &Scan) -> Result<ScanPage> {
        match *self {}
    }
}

impl ExtentLease {
    pub fn extent(&self) -> ExtentRef {
        match *self {}
    }
}

pub(super) fn commit(
    store: &Arc<EmbeddedStore>,
    _: Vec<BlobOperations>,
    _: Vec<ReadCheck>,
    _: ReadVersions,
    _: Vec<Arc<ExtentLease>>,
) -> Ticket {
    match **store {}
}

impl EmbeddedPresence {
    pub fn state(&self) -> &LeaseState {
        match *self {}
    }

    pub fn bind(&self, _: &MetadataTransaction) -> Result<u64> {
        match *self {}
    }

    pub fn end(&self) -> Result<()> {
        match *self {}
    }
}
