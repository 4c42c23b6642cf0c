//! Counters of a node, for `inspect`, `bench` and the demo.

use std::sync::atomic::{AtomicU64, Ordering};

/// A moment's copy of a node's counters and sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed since the store was opened.
    pub commits: u64,
    /// Transactions that failed, for a conflict or another reason.
    pub aborts: u64,
    /// Reads answered.
    pub reads: u64,
    /// Reads that had to go to disk (or the operating system's cache).
    pub reads_from_disk: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Transactions that waited for those syncs.
    pub synced_commits: u64,
    /// Bytes in the log's segments.
    pub log_bytes: u64,
    /// Bytes written to extents since the store was opened.
    pub extent_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Older versions held for readers.
    pub versions_held: u64,
    /// Snapshots in use.
    pub snapshots_in_use: u64,
    /// Bytes of memory in recent operations and cache.
    pub memory_bytes: u64,
    /// Bytes of memory that the base lacks.
    pub dirty_bytes: u64,
    /// Folds finished.
    pub folds: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub aborts: AtomicU64,
    pub reads: AtomicU64,
    pub reads_from_disk: AtomicU64,
    pub log_syncs: AtomicU64,
    pub synced_commits: AtomicU64,
    pub extent_bytes: AtomicU64,
    pub folds: AtomicU64,
}

impl Counters {
    /// Adds to one of them.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Reads one of them.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}
