//! Snapshots in use: which older versions must stay (V1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tyr_protocol::SnapshotTable;
use tyr_protocol::versions::SnapshotId;
use tyr_types::{Error, ErrorKind, Result, Timestamp};

use crate::inner::Inner;

/// The snapshots in use. Its lock is taken inside the arbiter's, never the other way round.
#[derive(Debug)]
pub(crate) struct Snapshots(Mutex<InUse>);

/// The table of snapshots, and its timestamps in a row for whoever applies and collects.
#[derive(Debug)]
pub(crate) struct InUse {
    table: SnapshotTable,
    timestamps: Vec<Timestamp>,
    /// The moment of the fold under way: the only reader of keyspaces without older versions.
    fold: Option<Timestamp>,
}

impl InUse {
    /// The timestamps in use, ascending, each once.
    pub fn timestamps(&self) -> &[Timestamp] {
        &self.timestamps
    }

    /// The moment of the fold under way, if there is one.
    pub fn fold(&self) -> &[Timestamp] {
        self.fold.as_slice()
    }

    /// Puts the row right after some have ended.
    fn refresh(&mut self) {
        self.timestamps.clear();
        self.timestamps.extend(self.table.timestamps());
        debug_assert!(self.timestamps.is_sorted_by(|left, right| left < right), "each once");
    }
}

impl Snapshots {
    /// None in use; each may last for `timeout_us`.
    pub fn new(timeout_us: u64) -> Self {
        let table = SnapshotTable::new(timeout_us);
        Self(Mutex::new(InUse { table, timestamps: Vec::new(), fold: None }))
    }

    /// Registers a reader at `at`. Call it under the arbiter's lock, so that no commit comes
    /// between taking the clock and registering.
    pub fn begin(&self, at: Timestamp, now_us: u64) -> Result<SnapshotId> {
        let mut in_use = self.lock();
        let id = in_use.table.begin(at, now_us)?;
        match in_use.timestamps.last() {
            Some(last) if *last == at => {}
            Some(last) if *last > at => in_use.refresh(),
            Some(_) | None => in_use.timestamps.push(at),
        }
        debug_assert!(in_use.timestamps.contains(&at), "a reader is seen by who drops versions");
        Ok(id)
    }

    /// Registers a fold at `at`, in the same way; there is one at a time.
    pub fn begin_fold(&self, at: Timestamp, now_us: u64) -> Result<SnapshotId> {
        let id = self.begin(at, now_us)?;
        let before = self.lock().fold.replace(at);
        assert!(before.is_none(), "a fold begins before the last has ended");
        Ok(id)
    }

    /// The fold is done.
    pub fn end_fold(&self) {
        self.lock().fold = None;
    }

    /// The reader is done.
    pub fn end(&self, id: SnapshotId) {
        let mut in_use = self.lock();
        if in_use.table.end(id) {
            in_use.refresh();
        }
    }

    /// Ends those that have lasted too long.
    pub fn expire(&self, now_us: u64) {
        let mut in_use = self.lock();
        if in_use.table.expire(now_us) > 0 {
            in_use.refresh();
        }
    }

    /// Ends those that read below `at`.
    pub fn end_below(&self, at: Timestamp) {
        let mut in_use = self.lock();
        if in_use.table.end_below(at) > 0 {
            in_use.refresh();
        }
    }

    /// Locks the list, for as long as versions are kept or dropped by it.
    pub fn lock(&self) -> MutexGuard<'_, InUse> {
        self.0.lock()
    }

    /// How many snapshots are in use.
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// The oldest timestamp in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.lock().timestamps.first().copied()
    }

    fn is_in_use(&self, id: SnapshotId) -> bool {
        self.lock().table.at(id).is_some()
    }
}

/// A snapshot in use; dropping it ends its use.
#[derive(Debug)]
pub struct SnapshotGuard {
    inner: Arc<Inner>,
    id: SnapshotId,
    at: Timestamp,
    is_settled: AtomicBool,
}

impl SnapshotGuard {
    pub(super) fn new(inner: Arc<Inner>, id: SnapshotId, at: Timestamp, is_settled: bool) -> Self {
        Self { inner, id, at, is_settled: AtomicBool::new(is_settled) }
    }

    /// Its moment.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether reads at it may go ahead: everything up to it has been applied, and it has not
    /// expired.
    pub fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire) && self.check().is_ok()
    }

    /// Waits until everything that was in flight when it began is applied (R5).
    ///
    /// # Errors
    /// `SnapshotTooOld` after the time a snapshot may last.
    pub fn settle(&self) -> Result<()> {
        if !self.is_settled.load(Ordering::Acquire) {
            self.inner.settle(self.at)?;
            self.is_settled.store(true, Ordering::Release);
        }
        self.check()
    }

    /// Whether it still holds its versions.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it does not.
    pub fn check(&self) -> Result<()> {
        if !self.inner.snapshots.is_in_use(self.id) {
            return Err(Error::new(
                ErrorKind::SnapshotTooOld,
                "this snapshot has been in use for too long and its versions are gone; \
                 begin a new one",
            ));
        }
        Ok(())
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.inner.snapshots.end(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    #[test]
    fn a_timestamp_stays_in_use_until_its_last_reader_is_done() {
        let snapshots = Snapshots::new(100);
        let first = snapshots.begin(at(5), 1).unwrap();
        let second = snapshots.begin(at(5), 2).unwrap();
        snapshots.begin(at(9), 3).unwrap();
        snapshots.end(first);
        assert_eq!(snapshots.lock().timestamps(), [at(5), at(9)]);
        snapshots.end(second);
        assert_eq!(snapshots.oldest(), Some(at(9)));
    }

    #[test]
    fn snapshots_end_when_they_are_too_old_or_stand_in_the_way_of_a_fold() {
        let snapshots = Snapshots::new(100);
        let [old, young, fold] =
            [10, 20, 30].map(|clock| snapshots.begin(at(clock), clock).unwrap());
        snapshots.expire(115);
        assert!(!snapshots.is_in_use(old));
        snapshots.end_below(at(30));
        assert!(!snapshots.is_in_use(young));
        assert!(snapshots.is_in_use(fold));
        assert_eq!(snapshots.lock().timestamps(), [at(30)]);
    }
}
