//! Who answers for an extent that the base does not own yet.
//!
//! A payload goes to an extent before its transaction commits. Until the base takes it over, some
//! piece in memory, or a transaction being put together, holds a lease on it; when the last lease
//! ends without that, the extent is dead and its space is given back after the next checkpoint,
//! when the log cannot refer to it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tyr_types::ExtentRef;

use crate::extents::Extents;

/// Extents that nothing refers to any more but perhaps the log.
#[derive(Debug, Default)]
pub struct DeadExtents {
    extents: Mutex<Vec<ExtentRef>>,
    /// What they take on the disk.
    bytes: AtomicU64,
}

impl DeadExtents {
    /// Takes all of them, to be freed once a checkpoint lies behind every record so far.
    pub fn take(&self) -> Vec<ExtentRef> {
        let mut extents = self.extents.lock();
        self.bytes.store(0, Ordering::Relaxed);
        std::mem::take(&mut extents)
    }

    /// Puts some back, when that checkpoint failed.
    pub fn give_back(&self, back: Vec<ExtentRef>) {
        let mut extents = self.extents.lock();
        let bytes: u64 = back.iter().map(Extents::stored_len).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        extents.extend(back);
    }

    /// What they take on the disk, in bytes, until the next checkpoint.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Keeps one extent alive; clones of the `Arc` around it share it.
#[derive(Debug)]
pub struct ExtentLease {
    extent: ExtentRef,
    dead: Arc<DeadExtents>,
    is_adopted: AtomicBool,
}

impl ExtentLease {
    /// A lease on `extent`, which ends on `dead`.
    pub fn new(extent: ExtentRef, dead: &Arc<DeadExtents>) -> Arc<Self> {
        Arc::new(Self { extent, dead: Arc::clone(dead), is_adopted: AtomicBool::new(false) })
    }

    /// The extent.
    pub fn extent(&self) -> ExtentRef {
        self.extent
    }

    /// From now on somebody else answers for the extent: the base, or another lease.
    pub fn adopt(&self) {
        self.is_adopted.store(true, Ordering::Release);
    }
}

impl Drop for ExtentLease {
    fn drop(&mut self) {
        if !*self.is_adopted.get_mut() {
            self.dead.give_back(vec![self.extent]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_dies_with_its_last_lease_unless_it_was_adopted() {
        let dead = Arc::new(DeadExtents::default());
        let extent = ExtentRef { file: 1, position: 0, len: 9, compressed_len: 0 };
        let lease = ExtentLease::new(extent, &dead);
        let other = Arc::clone(&lease);
        drop(lease);
        assert!(dead.take().is_empty());
        assert_eq!(dead.bytes(), 0);
        drop(other);
        assert_eq!(dead.bytes(), 4096, "in whole frames");
        assert_eq!(dead.take(), [extent]);
        assert_eq!(dead.bytes(), 0);
        dead.give_back(vec![extent, extent]);
        assert_eq!((dead.bytes(), dead.take().len()), (2 * 4096, 2));
        ExtentLease::new(extent, &dead).adopt();
        assert!(dead.take().is_empty());
    }
}
