//! Reads and snapshots.

use std::sync::Arc;

use tyr_store::store::Answer;
use tyr_store::store::scan::Moment;
use tyr_types::{BlobName, ByteRange, Result, Scan, ScanPage, Timestamp};

use crate::inner::Inner;
use crate::keyspaces::KeyspaceEntry;
use crate::snapshot::SnapshotGuard;
use tyr_runtime::clock;

impl Inner {
    /// Reads a range of a blob; `at` is a snapshot's moment, or [`Timestamp::MAX`].
    ///
    /// A direct read (R1) need not look at what is in flight: a transaction whose whole chain is
    /// this store is shown nowhere before it is applied here.
    pub(crate) fn read(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Answer> {
        if let Some(answer) = self.read_resident(entry, name, range, at) {
            return answer;
        }
        self.counters.reads_from_disk.add(1);
        self.store.read(name, range, at)
    }

    /// The same, if memory alone can answer.
    pub(crate) fn read_resident(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Option<Result<Answer>> {
        if let Err(error) = entry.check() {
            return Some(Err(error));
        }
        self.counters.reads.add(1);
        self.store.read_resident(name, range, at)
    }

    /// A page of blobs as of a snapshot's moment (Q2).
    pub(crate) fn scan(
        &self,
        entry: &KeyspaceEntry,
        scan: &Scan,
        at: Timestamp,
    ) -> Result<ScanPage> {
        entry.check()?;
        // Without older versions, each blob is listed as it is now.
        let at = entry.info().config.is_multi_versioned.then_some(at);
        self.store.scan(entry.info().id, scan, Moment::of(at), |_| true)
    }

    /// Begins a snapshot of everything (R6): its moment is the clock now.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Result<SnapshotGuard> {
        self.check_open()?;
        let arbiter = self.arbiter.lock();
        let at = arbiter.machine.snapshot_timestamp();
        let id = self.snapshots.begin(at, clock::now_us())?;
        let is_settled = arbiter.is_settled(at);
        drop(arbiter);
        Ok(SnapshotGuard::new(Arc::clone(self), id, at, is_settled))
    }

    /// A snapshot for a fold, with the log's end at its moment: every record below that has a
    /// timestamp up to the snapshot's. `None` when there is no log.
    pub(crate) fn snapshot_for_fold(self: &Arc<Self>) -> Result<Option<(SnapshotGuard, u64)>> {
        let arbiter = self.arbiter.lock();
        let Some(log) = &arbiter.log else { return Ok(None) };
        let sequence = log.next_sequence();
        let at = arbiter.machine.snapshot_timestamp();
        let id = self.snapshots.begin_fold(at, clock::now_us())?;
        drop(arbiter);
        Ok(Some((SnapshotGuard::new(Arc::clone(self), id, at, false), sequence)))
    }

    /// Waits until nothing is in flight that can still take effect at or below `at` (R5).
    pub(crate) fn settle(&self, at: Timestamp) -> Result<()> {
        let receiver = {
            let mut arbiter = self.arbiter.lock();
            if !arbiter.machine.is_in_flight_below(at) {
                return Ok(());
            }
            let (sender, receiver) = oneshot::channel();
            arbiter.settling.push((at, sender));
            receiver
        };
        // The sender is dropped, unused, when the wait is over.
        let _ = receiver.recv();
        Ok(())
    }
}
