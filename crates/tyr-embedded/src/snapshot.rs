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
    /// The moment of the fold under way, and those that it stops at before.
    fold: Vec<Timestamp>,
    /// Kept moments that no fold has passed.
    kept: Vec<Timestamp>,
    /// The moment that is about to be kept.
    keeping: Option<Timestamp>,
    /// Folds and kept moments: the only readers of keyspaces without older versions.
    always: Vec<Timestamp>,
}

impl InUse {
    /// The timestamps in use, ascending, each once.
    pub fn timestamps(&self) -> &[Timestamp] {
        &self.timestamps
    }

    /// Those among them that also keyspaces without older versions have: folds, and what is kept.
    pub fn always(&self) -> &[Timestamp] {
        &self.always
    }

    /// Puts the rows right after some have ended, or others than snapshots have begun.
    fn refresh(&mut self) {
        self.always.clear();
        self.always.extend(self.fold.iter().chain(&self.kept).chain(&self.keeping));
        self.always.sort_unstable();
        self.always.dedup();
        self.timestamps.clear();
        self.timestamps.extend(self.table.timestamps());
        self.timestamps.extend_from_slice(&self.always);
        self.timestamps.sort_unstable();
        self.timestamps.dedup();
        debug_assert!(self.timestamps.is_sorted_by(|left, right| left < right), "each once");
    }
}

impl Snapshots {
    /// None in use; each may last for `timeout_us`.
    pub fn new(timeout_us: u64) -> Self {
        let table = SnapshotTable::new(timeout_us);
        Self(Mutex::new(InUse {
            table,
            timestamps: Vec::new(),
            fold: Vec::new(),
            kept: Vec::new(),
            keeping: None,
            always: Vec::new(),
        }))
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
        let mut in_use = self.lock();
        assert!(in_use.fold.is_empty(), "a fold begins before the last has ended");
        in_use.fold.push(at);
        in_use.refresh();
        Ok(id)
    }

    /// The kept moments that the fold under way stops at: from now on they are in use until it has
    /// ended, even if they are dropped meanwhile. `unfolded` says which those are.
    pub fn stop_fold_at(&self, unfolded: impl FnOnce() -> Vec<Timestamp>) -> Vec<Timestamp> {
        let mut in_use = self.lock();
        let stops = unfolded();
        in_use.fold.extend_from_slice(&stops);
        in_use.refresh();
        stops
    }

    /// The fold is done, and `unfolded` says which kept moments it has not passed.
    pub fn end_fold(&self, unfolded: impl FnOnce() -> Vec<Timestamp>) {
        let mut in_use = self.lock();
        in_use.fold.clear();
        in_use.kept = unfolded();
        in_use.refresh();
    }

    /// `at` is about to be kept: no fold passes it. Call it under the arbiter's lock, as
    /// [`Snapshots::begin`]; one is kept at a time.
    pub fn begin_keep(&self, at: Timestamp) {
        let mut in_use = self.lock();
        assert!(in_use.keeping.is_none(), "one is kept at a time");
        in_use.keeping = Some(at);
        in_use.refresh();
    }

    /// Some may not be kept any more: `unfolded` says which kept moments no fold has passed.
    pub fn look_at_kept(&self, unfolded: impl FnOnce() -> Vec<Timestamp>) {
        let mut in_use = self.lock();
        in_use.kept = unfolded();
        in_use.refresh();
    }

    /// It is kept, or is not to be: `unfolded` says which kept moments no fold has passed.
    pub fn end_keep(&self, unfolded: impl FnOnce() -> Vec<Timestamp>) {
        let mut in_use = self.lock();
        in_use.keeping = None;
        in_use.kept = unfolded();
        in_use.refresh();
    }

    /// Whether what is about to be kept lies below `at`.
    pub fn is_keeping_below(&self, at: Timestamp) -> bool {
        self.lock().keeping.is_some_and(|keeping| keeping < at)
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

    /// The oldest timestamp that somebody reads at, or that is about to be kept: no fold passes
    /// it. What is kept does not hold folds back.
    pub fn oldest(&self) -> Option<Timestamp> {
        let in_use = self.lock();
        let snapshots = in_use.table.timestamps().next();
        snapshots.into_iter().chain(in_use.keeping).min()
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
