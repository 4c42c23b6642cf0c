//! A machine that can be taken back to any moment of its past, and lose power there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr_embedded::{EmbeddedStore, Options};
use tyr_store::disk::SimulatedDisk;
use tyr_store::disk::simulated::chance::Chance;
use tyr_store::extents::ExtentOptions;
use tyr_store::log::LogOptions;
use tyr_store::store::Parts;
use tyr_types::Result;

use super::index::RecordedIndex;

/// What ends a life of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The power goes: what was not synced is left to chance.
    PowerLoss,
    /// The process is killed: everything written is still there, and still not synced.
    Kill,
}

/// A disk, and an index beside it.
pub struct Machine {
    disk: SimulatedDisk,
    index: RecordedIndex,
    /// Operations of the disk until the store was open.
    opened_at: AtomicU64,
}

impl Machine {
    /// A new machine.
    pub fn new() -> Self {
        Self::with(SimulatedDisk::recorded(), RecordedIndex::new)
    }

    fn with(disk: SimulatedDisk, index: impl FnOnce(SimulatedDisk) -> RecordedIndex) -> Self {
        let index = index(disk.clone());
        Self { disk, index, opened_at: AtomicU64::new(u64::MAX) }
    }

    /// Opens the store on it. Everything is small, so that files and folds are many.
    pub fn boot(&self) -> Result<Arc<EmbeddedStore>> {
        self.boot_with_kept_bytes_max(u64::MAX)
    }

    /// The same, and no more than these bytes may be held for kept snapshots.
    pub fn boot_with_kept_bytes_max(&self, kept_bytes_max: u64) -> Result<Arc<EmbeddedStore>> {
        let parts = Parts {
            disk: Arc::new(self.disk.clone()),
            index: Box::new(self.index.clone()),
            log: LogOptions { segment_len: 16 << 10, is_direct: false },
            extents: ExtentOptions { file_len_max: 256 << 10 },
            is_read_only: false,
        };
        let options = Options {
            fold_log_bytes: 64 << 10,
            fold_step_bytes: 16 << 10,
            kept_bytes_max,
            ..Options::default()
        };
        let node = EmbeddedStore::assemble(parts, options)?;
        self.opened_at.store(self.operations(), Ordering::Relaxed);
        Ok(node)
    }

    /// The disk, to fill it up.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// Operations of the disk so far in this life.
    pub fn operations(&self) -> u64 {
        self.disk.operations()
    }

    /// Operations until the store was open.
    pub fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Relaxed)
    }

    /// The machine after an end of this life after the first `count` operations.
    pub fn after(&self, count: u64, end: End, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let disk = match end {
            End::PowerLoss => self.disk.crash_after(count, chance.any()),
            End::Kill => self.disk.copy_after(count),
        };
        disk.record();
        Self::with(disk, |disk| match end {
            End::PowerLoss => self.index.crash_after(count, &mut chance, disk),
            End::Kill => self.index.copy_after(count, &mut chance, disk),
        })
    }
}
