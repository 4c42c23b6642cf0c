//! How much there is in a store of one process: what the base counts, and what memory has since.
//!
//! The base knows the totals of each keyspace as of what was folded, for free. A blob that it lacks
//! something of is looked up there, and what memory has of it counts in its place: so a question
//! costs as much as there are such blobs, and not as there are blobs.

use std::collections::BTreeMap;

use tyr_types::{DiskSpace, KeyspaceId, KeyspaceUsage, Result};

use super::Store;
use crate::disk::refusal;

impl Store {
    /// How much there is of each of these keyspaces, in their order, with everything that was
    /// applied before. Of what is applied meanwhile some may count. Whoever asks sees to it that
    /// nothing is folded meanwhile.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn usage(&self, keyspaces: &[KeyspaceId]) -> Result<Vec<KeyspaceUsage>> {
        let folded = |id: &KeyspaceId| {
            let totals = self.base.totals(*id);
            KeyspaceUsage { blobs: totals.blobs, bytes: totals.bytes, operations: 0 }
        };
        let mut usage: BTreeMap<KeyspaceId, KeyspaceUsage> =
            keyspaces.iter().map(|id| (*id, folded(id))).collect();
        for cell in self.recent.dirty_cells() {
            let Some(counted) = usage.get_mut(&cell.name().keyspace) else { continue };
            let base = self.base.attributes(cell.name())?;
            let before = base.filter(|base| base.exists).map(|base| base.size);
            let now = cell.lock().attributes();
            let after = now.exists.then_some(now.size);
            *counted = counted.changed(before, after);
        }
        Ok(keyspaces.iter().map(|id| usage[id]).collect())
    }

    /// Bytes that extent and page files take on the disk, without their holes.
    ///
    /// # Errors
    /// `Unavailable` when the disk does not tell.
    pub fn payload_bytes(&self) -> Result<u64> {
        Ok(self.extents.disk_bytes()?.saturating_add(self.base.pages().disk_bytes()?))
    }

    /// How full its disk is; `log_bytes` are those of the log, which its owner has.
    ///
    /// # Errors
    /// `Unavailable` when the disk does not tell.
    pub fn space(&self, log_bytes: u64) -> Result<DiskSpace> {
        let (size_bytes, free_bytes) =
            self.disk.size_and_free().map_err(|error| refusal(self.disk.describe(), error))?;
        let payloads = self.payload_bytes()?;
        let taken_bytes = log_bytes.saturating_add(payloads).saturating_add(self.base.disk_bytes());
        Ok(DiskSpace { size_bytes, free_bytes, taken_bytes })
    }
}
