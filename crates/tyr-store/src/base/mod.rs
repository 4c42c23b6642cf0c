//! The base: what is on disk below the recent operations.

mod types;

use std::sync::Arc;

use tyr_types::{
    BlobName, ByteRange, Error, ExtentRef, Key, KeyspaceConfig, KeyspaceId, KeyspaceName, Result,
};

pub use types::{BlobBase, BlobChange, Checkpoint, KeyspaceInfo, PieceData, Totals};

use crate::disk::Disk;
use crate::extents::Extents;
use crate::index::Index;

/// The typed layer over index and extents.
pub struct Base {
    _index: Box<dyn Index>,
    _extents: Arc<Extents>,
    _disk: Arc<dyn Disk>,
}

fn not_yet<T>() -> Result<T> {
    Err(Error::unavailable("not yet"))
}

/// Until the next commit: the signatures, for those who build on them.
#[allow(missing_docs, unused_variables)]
impl Base {
    pub fn open(index: Box<dyn Index>, extents: Arc<Extents>, disk: Arc<dyn Disk>) -> Result<Self> {
        Ok(Self { _index: index, _extents: extents, _disk: disk })
    }
    /// `None`: never folded, or gone for good. A tombstone answers `exists: false`.
    pub fn attributes(&self, blob: &BlobName) -> Result<Option<BlobBase>> {
        not_yet()
    }
    /// `out.len() == range.len()`; holes and what lies beyond the end read as zeros. Safe against
    /// folds and checkpoints at the same time: answers one state of the blob.
    pub fn read(&self, blob: &BlobName, range: ByteRange, out: &mut [u8]) -> Result<()> {
        not_yet()
    }
    /// Existing blobs only, in key order.
    pub fn scan(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, BlobBase)>> {
        not_yet()
    }
    /// Each blob atomically; batches of about 4 MiB.
    pub fn fold(&self, changes: Vec<BlobChange>) -> Result<()> {
        not_yet()
    }
    /// Syncs, records the checkpoint durably, then frees dead extents and old tombstones.
    pub fn checkpoint(&self, at: Checkpoint) -> Result<()> {
        not_yet()
    }
    pub fn last_checkpoint(&self) -> Checkpoint {
        Checkpoint::default()
    }
    pub fn keyspaces(&self) -> Vec<KeyspaceInfo> {
        Vec::new()
    }
    pub fn create_keyspace(
        &self,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<KeyspaceId> {
        not_yet()
    }
    pub fn drop_keyspace(&self, id: KeyspaceId) -> Result<()> {
        not_yet()
    }
    /// Removes up to `limit` blobs of dropped keyspaces; answers whether there is more to do.
    pub fn remove_some_dropped(&self, limit: usize) -> Result<bool> {
        not_yet()
    }
    /// Empties a keyspace; only before anything is served.
    pub fn clear_keyspace(&self, id: KeyspaceId) -> Result<()> {
        not_yet()
    }
    pub fn is_referenced(&self, extent: &ExtentRef) -> Result<bool> {
        not_yet()
    }
    /// After replay, before serving: gives back what abandoned uploads left in extent files.
    /// `in_log`: every extent that the log still refers to. Answers how many bytes.
    pub fn reclaim(&self, in_log: &[ExtentRef]) -> Result<u64> {
        not_yet()
    }
    pub fn totals(&self, keyspace: KeyspaceId) -> Totals {
        Totals::default()
    }
    pub fn disk_bytes(&self) -> u64 {
        0
    }
}
