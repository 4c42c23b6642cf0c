//! What stands for a cluster in a build without it: types that have no value.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tyr_metadata::{Entry, KeyChange, Path, Transaction as MetadataTransaction};
use tyr_runtime::lease_state::LeaseState;
use tyr_runtime::statistics::Statistics;
use tyr_runtime::ticket::{Committed, Ticket};
use tyr_runtime::watch_state::WatchState;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ChunkLocation, Error, KeptName, KeptSnapshot,
    KeyspaceConfig, KeyspaceId, KeyspaceInfo, KeyspaceName, LeaseMode, Leased, MethodAnswer,
    MethodCall, NodeId, NoticeId, Notified, Payload, ReadCheck, Result, Scan, ScanPage, SeatAnswer,
    Stat, Stretches, Timestamp, Transaction, Usage, WatchTarget,
};

use super::{Answer, BlobPart, Moment, PlacedCopy, VersionedRead};

/// No client.
#[derive(Clone, Debug)]
pub(crate) enum Client {}

/// No keyspace of a cluster.
#[derive(Clone, Debug)]
pub(crate) enum RemoteSpace {}

/// No moment of one.
#[derive(Clone, Debug)]
pub(crate) enum RemoteView {}

/// No lease of a key of one.
#[derive(Debug)]
pub(crate) enum RemoteLease {}

/// No watch of keys of one.
#[derive(Debug)]
pub(crate) enum RemoteWatch {}

/// No presence of a client.
#[derive(Debug)]
pub(crate) enum RemotePresence {}

/// No snapshot that nodes keep.
#[derive(Clone, Debug)]
pub(crate) enum Lease {}

/// Nothing was read in a cluster.
#[derive(Debug)]
pub(crate) struct RemoteVersions;

/// Nothing is uploaded.
#[derive(Debug)]
pub(crate) enum RemoteUpload {}

/// No error leaves anything open.
pub(crate) enum Unresolved {}

/// No keyspace has a name.
pub(super) fn name_of(client: &Client, _: KeyspaceId) -> Option<KeyspaceName> {
    match *client {}
}

impl Client {
    pub async fn create_keyspace(
        &self,
        _: &KeyspaceName,
        _: &KeyspaceConfig,
    ) -> Result<KeyspaceInfo> {
        match *self {}
    }

    pub async fn keyspace(&self, _: &KeyspaceName) -> Result<KeyspaceInfo> {
        match *self {}
    }

    pub async fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        match *self {}
    }

    pub async fn drop_keyspace(&self, _: &KeyspaceName) -> Result<()> {
        match *self {}
    }

    pub async fn keep(&self, _: &KeptName) -> Result<KeptSnapshot> {
        match *self {}
    }

    pub async fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        match *self {}
    }

    pub async fn drop_kept(&self, _: &KeptName) -> Result<()> {
        match *self {}
    }

    pub fn ask(&self, _: Arc<Transaction>) -> Ticket {
        match *self {}
    }

    pub async fn metadata(&self, _: Path) -> Result<Option<Entry>> {
        match *self {}
    }

    pub async fn list_metadata(
        &self,
        _: String,
        _: Option<String>,
        _: usize,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        match *self {}
    }

    pub async fn change_metadata(&self, _: MetadataTransaction) -> Result<u64> {
        match *self {}
    }

    pub async fn metadata_changes(&self, _: String, _: u64) -> Result<(Vec<KeyChange>, u64)> {
        match *self {}
    }

    pub async fn presence(&self, _: Duration) -> Result<RemotePresence> {
        match *self {}
    }

    pub async fn locations(&self, _: &BlobName, _: ByteRange) -> Result<Vec<ChunkLocation>> {
        match *self {}
    }

    pub async fn call_method(&self, _: MethodCall) -> Result<Option<MethodAnswer>> {
        match *self {}
    }

    pub async fn ask_seat_at(&self, _: NodeId, _: MethodCall) -> Result<Option<SeatAnswer>> {
        match *self {}
    }

    pub async fn ask_seat(&self, _: MethodCall) -> Result<Option<MethodAnswer>> {
        match *self {}
    }

    pub async fn usage(&self) -> Result<Usage> {
        match *self {}
    }

    pub fn statistics(&self) -> Statistics {
        match *self {}
    }

    pub fn close(&self) {
        match *self {}
    }
}

impl RemotePresence {
    pub fn state(&self) -> &LeaseState {
        match *self {}
    }

    pub async fn bind(&self, _: MetadataTransaction) -> Result<u64> {
        match *self {}
    }

    pub async fn end(&self) -> Result<u64> {
        match *self {}
    }
}

impl RemoteLease {
    pub fn state(&self) -> &LeaseState {
        match *self {}
    }
}

impl RemoteWatch {
    pub fn state(&self) -> &WatchState {
        match *self {}
    }

    pub fn acknowledge(&self, _: NoticeId, _: Bytes) {
        match *self {}
    }
}

impl RemoteSpace {
    pub async fn notify(&self, _: BlobName, _: Bytes, _: Duration) -> Result<Notified> {
        match *self {}
    }

    pub async fn watch(&self, _: WatchTarget) -> Result<RemoteWatch> {
        match *self {}
    }

    pub fn new(client: &Arc<Client>, _: KeyspaceInfo) -> Self {
        match **client {}
    }

    pub fn client(&self) -> &Arc<Client> {
        match *self {}
    }

    pub fn info(&self) -> &KeyspaceInfo {
        match *self {}
    }

    pub async fn scan_newest(&self, _: &Scan) -> Result<ScanPage> {
        match *self {}
    }

    pub async fn lease(
        &self,
        _: Leased,
        _: LeaseMode,
        _: Duration,
        _: Option<Duration>,
    ) -> Result<RemoteLease> {
        match *self {}
    }

    pub async fn read(&self, _: &BlobName, _: ByteRange, _: bool) -> Result<Answer> {
        match *self {}
    }

    pub async fn read_whole(&self, _: &BlobName) -> Result<Answer> {
        match *self {}
    }

    pub fn may_upload(&self) -> bool {
        match *self {}
    }

    pub async fn upload(&self, _: &BlobName, _: Option<u64>) -> Result<(RemoteUpload, u64)> {
        match *self {}
    }

    pub fn check_copies(&self) -> Result<()> {
        match *self {}
    }

    pub fn copy(&self, _: &BlobName) -> RemoteUpload {
        match *self {}
    }

    pub async fn stat(&self, _: &BlobName) -> Result<Option<Stat>> {
        match *self {}
    }
}

impl RemoteUpload {
    pub async fn push(&mut self, _: Bytes) -> Result<()> {
        match *self {}
    }

    pub async fn payload(&mut self) -> Result<Payload> {
        match *self {}
    }

    pub async fn copy(
        &mut self,
        _: &BlobName,
        _: u64,
        _: Timestamp,
        _: PlacedCopy,
        _: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<()> {
        match *self {}
    }

    pub async fn payloads(&mut self, _: &[u64]) -> Result<Vec<Payload>> {
        match *self {}
    }

    pub fn end(&mut self, _: &Result<Committed>) {
        match *self {}
    }
}

impl RemoteView {
    pub async fn new(client: &Arc<Client>) -> Result<Self> {
        match **client {}
    }

    pub async fn kept(client: &Arc<Client>, _: &KeptName) -> Result<Self> {
        match **client {}
    }

    pub async fn of_blob(client: &Arc<Client>, _: &BlobName) -> Result<Option<(Self, u64)>> {
        match **client {}
    }

    pub fn kept_at(client: &Arc<Client>, _: Timestamp) -> Self {
        match **client {}
    }

    pub fn at(&self) -> Timestamp {
        match *self {}
    }

    pub async fn read(&self, _: &BlobName, _: ByteRange, _: bool) -> Result<Answer> {
        match *self {}
    }

    pub async fn read_into(&self, _: &BlobName, _: u64, _: &mut [u8]) -> Result<bool> {
        match *self {}
    }

    pub async fn stat(&self, _: &BlobName) -> Result<Option<Stat>> {
        match *self {}
    }

    pub async fn stretches(
        &self,
        _: &KeyspaceInfo,
        _: &BlobName,
        _: ByteRange,
    ) -> Result<Option<Stretches>> {
        match *self {}
    }

    pub async fn scan(&self, _: &KeyspaceInfo, _: &Scan) -> Result<ScanPage> {
        match *self {}
    }
}

impl RemoteVersions {
    pub fn new(_: Option<Timestamp>) -> Self {
        Self
    }

    pub fn into_leases(self) -> Vec<Lease> {
        Vec::new()
    }

    pub async fn read(
        &mut self,
        client: &Client,
        _: &BlobName,
        _: ByteRange,
        _: bool,
    ) -> Result<VersionedRead> {
        match *client {}
    }
}

impl RemoteVersions {
    pub async fn scan(
        &mut self,
        space: &RemoteSpace,
        _: &BlobName,
        _: &Scan,
    ) -> Result<(ScanPage, Timestamp)> {
        match *space {}
    }
}

impl Unresolved {
    pub fn of(_: &Error) -> Option<Arc<Transaction>> {
        None
    }
}

pub(super) fn commit(
    client: &Arc<Client>,
    _: Vec<BlobOperations>,
    _: Vec<ReadCheck>,
    _: Vec<Lease>,
) -> Ticket {
    match **client {}
}

pub(super) async fn read_many(client: &Arc<Client>, _: &[BlobPart]) -> Result<Vec<Option<Bytes>>> {
    match **client {}
}

pub(super) async fn moment(client: &Arc<Client>, _: &BTreeSet<BlobName>) -> Option<Moment> {
    match **client {}
}
