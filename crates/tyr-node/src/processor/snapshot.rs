//! Snapshots in use: which older versions must stay (V1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tyr_types::{Error, ErrorKind, Result, Timestamp};

use super::Processor;

/// The snapshots in use. Its lock is taken inside the arbiter's, never the other way round.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    in_use: Mutex<InUse>,
    /// Snapshots up to this clock have expired.
    expired_clock: AtomicU64,
}

/// The timestamps read at, ascending, each with how many read there and since when.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    at: Vec<Timestamp>,
    uses: Vec<Use>,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    count: u32,
    since_us: u64,
}

impl InUse {
    /// The timestamps, ascending.
    pub fn timestamps(&self) -> &[Timestamp] {
        &self.at
    }
}

impl Snapshots {
    /// Registers one more reader at `at`. Call it under the arbiter's lock, so that no commit
    /// comes between taking the clock and registering.
    pub fn begin(&self, at: Timestamp, now_us: u64) {
        let InUse { at: timestamps, uses } = &mut *self.in_use.lock();
        match timestamps.binary_search(&at) {
            Ok(index) => uses[index].count += 1,
            Err(index) => {
                timestamps.insert(index, at);
                uses.insert(index, Use { count: 1, since_us: now_us });
            }
        }
    }

    /// One reader at `at` is done.
    pub fn end(&self, at: Timestamp) {
        let InUse { at: timestamps, uses } = &mut *self.in_use.lock();
        // It is gone already when it expired.
        let Ok(index) = timestamps.binary_search(&at) else { return };
        uses[index].count -= 1;
        if uses[index].count == 0 {
            timestamps.remove(index);
            uses.remove(index);
        }
    }

    /// Ends every snapshot that has been in use since before `since_us`, but `spared`.
    pub fn expire(&self, since_us: u64, spared: Option<Timestamp>) {
        let InUse { at: timestamps, uses } = &mut *self.in_use.lock();
        // They began in the order of their timestamps.
        let count = uses.iter().take_while(|one| one.since_us < since_us).count();
        let spared = spared.and_then(|at| timestamps.binary_search(&at).ok());
        let count = spared.map_or(count, |index| count.min(index));
        if let Some(last) = count.checked_sub(1) {
            self.expired_clock.fetch_max(timestamps[last].clock, Ordering::Release);
        }
        timestamps.drain(..count);
        uses.drain(..count);
    }

    /// Locks the list, for as long as versions are kept or dropped by it.
    pub fn lock(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock()
    }

    /// How many timestamps are in use.
    pub fn len(&self) -> usize {
        self.in_use.lock().at.len()
    }

    /// The oldest timestamp in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.in_use.lock().at.first().copied()
    }

    fn is_expired(&self, at: Timestamp) -> bool {
        at.clock <= self.expired_clock.load(Ordering::Acquire)
    }
}

/// A snapshot in use; dropping it ends its use.
#[derive(Debug)]
pub struct SnapshotGuard {
    processor: Arc<Processor>,
    at: Timestamp,
    is_settled: AtomicBool,
}

impl SnapshotGuard {
    pub(super) fn new(processor: Arc<Processor>, at: Timestamp, is_settled: bool) -> Self {
        Self { processor, at, is_settled: AtomicBool::new(is_settled) }
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
            self.processor.settle(self.at)?;
            self.is_settled.store(true, Ordering::Release);
        }
        self.check()
    }

    /// Whether it still holds its versions.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it does not.
    pub(crate) fn check(&self) -> Result<()> {
        if self.processor.snapshots.is_expired(self.at) {
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
        self.processor.snapshots.end(self.at);
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
        let snapshots = Snapshots::default();
        snapshots.begin(at(5), 1);
        snapshots.begin(at(5), 2);
        snapshots.begin(at(9), 3);
        snapshots.end(at(5));
        assert_eq!(snapshots.oldest(), Some(at(5)));
        snapshots.end(at(5));
        assert_eq!(snapshots.oldest(), Some(at(9)));
    }

    #[test]
    fn old_snapshots_expire_but_a_fold_in_progress_is_spared() {
        let snapshots = Snapshots::default();
        for clock in [10, 20, 30] {
            snapshots.begin(at(clock), clock);
        }
        snapshots.expire(100, Some(at(20)));
        assert_eq!(snapshots.lock().timestamps(), [at(20), at(30)]);
        assert!(snapshots.is_expired(at(10)));
        assert!(!snapshots.is_expired(at(20)));
        snapshots.end(at(10));
        assert_eq!(snapshots.len(), 2);
    }
}
