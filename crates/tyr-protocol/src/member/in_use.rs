//! The snapshots in use of the blobs that this node is a version manager of (V1).
//!
//! A snapshot is in use from its first read, which is known by its asker and the number that the
//! asker gave it, until the asker says that it has ended or the read timeout has passed. Bounded by
//! [`SNAPSHOTS_MAX`] over all blobs.

use std::collections::BTreeMap;

use tyr_types::{BlobName, Timestamp};

use crate::abort::Abort;
use crate::message::Address;
use crate::versions::snapshots::SNAPSHOTS_MAX;
use crate::versions::{SnapshotId, SnapshotTable};

/// The snapshots in use, by blob.
#[derive(Debug)]
pub(super) struct InUse {
    timeout_us: u64,
    tables: BTreeMap<BlobName, SnapshotTable>,
    by_asker: BTreeMap<(Address, u64), (BlobName, SnapshotId)>,
}

impl InUse {
    /// None in use; each lasts at most `timeout_us`.
    pub fn new(timeout_us: u64) -> Self {
        Self { timeout_us, tables: BTreeMap::new(), by_asker: BTreeMap::new() }
    }

    /// A snapshot of `blob` at `at` is in use from `now_us` on. The same read served again, when
    /// its answer was lost, is a new one in its place.
    pub fn begin(
        &mut self,
        asker: Address,
        read: u64,
        blob: &BlobName,
        at: Timestamp,
        now_us: u64,
    ) -> Result<(), Abort> {
        self.end(asker, read);
        if self.by_asker.len() >= SNAPSHOTS_MAX {
            let reason = "too many snapshots are in use; end some, or retry later";
            return Err(Abort::new(tyr_types::ErrorKind::Unavailable, reason));
        }
        let timeout_us = self.timeout_us;
        let table =
            self.tables.entry(blob.clone()).or_insert_with(|| SnapshotTable::new(timeout_us));
        let id = table.begin(at, now_us)?;
        let before = self.by_asker.insert((asker, read), (blob.clone(), id));
        debug_assert!(before.is_none(), "V1: a read begins one snapshot, and ended the one before");
        Ok(())
    }

    /// The asker needs the snapshot no more that this read began.
    pub fn end(&mut self, asker: Address, read: u64) {
        let Some((blob, id)) = self.by_asker.remove(&(asker, read)) else { return };
        if let Some(table) = self.tables.get_mut(&blob) {
            let was_in_use = table.end(id);
            debug_assert!(was_in_use, "V1: whose snapshot timed out is forgotten with it: {id:?}");
            if table.is_empty() {
                self.tables.remove(&blob);
            }
        }
    }

    /// Ends those that have lasted longer than the read timeout.
    pub fn expire(&mut self, now_us: u64) {
        let mut expired = 0;
        self.tables.retain(|_, table| {
            expired += table.expire(now_us);
            !table.is_empty()
        });
        if expired > 0 {
            let tables = &self.tables;
            self.by_asker.retain(|_, (blob, id)| {
                tables.get(blob).is_some_and(|table| table.at(*id).is_some())
            });
        }
        let counted: usize = self.tables.values().map(SnapshotTable::len).sum();
        debug_assert_eq!(
            counted,
            self.by_asker.len(),
            "V1: who asks again finds its snapshot gone"
        );
    }

    /// The oldest of all in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.tables.values().filter_map(SnapshotTable::oldest).min()
    }

    /// The snapshots of `blob` in use.
    pub fn of(&self, blob: &BlobName) -> Option<&SnapshotTable> {
        self.tables.get(blob)
    }

    pub fn invariants(&self) {
        let counted: usize = self.tables.values().map(SnapshotTable::len).sum();
        assert_eq!(counted, self.by_asker.len(), "each snapshot has an asker");
        assert!(!self.tables.values().any(SnapshotTable::is_empty), "a table is for what is in it");
        for (asked, (blob, id)) in &self.by_asker {
            let at = self.tables.get(blob).and_then(|table| table.at(*id));
            assert!(at.is_some(), "V1: what was begun by {asked:?} is in use until it ends");
        }
        assert!(counted <= SNAPSHOTS_MAX, "snapshots in use are bounded");
    }
}
