//! Kept snapshots: moments with a name that can be read until they are dropped.
//!
//! A moment is fixed like a fold's, under the arbiter's lock with the clock; from then on no fold
//! passes it, and its versions stay in memory. When everything up to it is applied and durable, the
//! base writes it down; from then on folds stop at it, and hold what they replace.
//!
//! What is held is bounded: beyond [`crate::Options::kept_bytes_max`], and where the disk has no
//! room left, the oldest snapshot is dropped, which is told as an event.

use tyr_store::store::{Answer, Attributes};
use tyr_types::{
    BlobName, ByteRange, KeptName, KeptSnapshot, Result, Scan, ScanPage, Stretches, Timestamp,
    limits,
};

use crate::committer;
use crate::inner::Inner;
use crate::keyspaces::KeyspaceEntry;
use crate::store::EmbeddedStore;

/// With less room than this for what is written the disk counts as full: so much one piece of a
/// large payload takes.
const ROOM_MIN: u64 = limits::EXTENT_LEN_MAX as u64;

impl EmbeddedStore {
    /// Keeps everything as it is now, under a name: it can be read until it is dropped.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name; `Unavailable` when there are too many, or
    /// the disk is full or fails.
    pub fn keep(&self, name: &KeptName) -> Result<KeptSnapshot> {
        self.inner.check_writable()?;
        let _alone = self.inner.keeping.lock();
        self.inner.store.base().check_new(name)?;
        let at = self.inner.begin_keep();
        let kept = self.inner.finish_keep(name, at);
        let base = self.inner.store.base();
        self.inner.snapshots.end_keep(|| base.kept_unfolded());
        kept?;
        Ok(KeptSnapshot { name: name.clone(), at, bytes: 0, unreadable: None })
    }

    /// All kept snapshots, oldest first.
    ///
    /// # Errors
    /// `Unavailable` when the store is closed.
    pub fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        self.inner.check_open()?;
        Ok(self.inner.store.base().kept())
    }

    /// The moment of a kept snapshot.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name.
    pub fn kept_moment(&self, name: &KeptName) -> Result<Timestamp> {
        self.inner.check_open()?;
        self.inner.store.base().kept_moment(name)
    }

    /// Drops a kept snapshot: it can be read no more. What only it had is given back bit by bit.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` when the disk fails.
    pub fn drop_kept(&self, name: &KeptName) -> Result<()> {
        self.inner.check_writable()?;
        let _alone = self.inner.keeping.lock();
        self.inner.drop_kept(name)
    }

    /// Reads a range of a blob at a kept moment.
    ///
    /// # Errors
    /// `NotFound` for a keyspace that is gone, or a snapshot that was dropped; `Corrupt`;
    /// `Unavailable`.
    pub fn read_kept(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Answer> {
        let store = self.readable(entry)?;
        self.inner.counters.reads.add(1);
        store.read_kept(name, range, at)
    }

    /// A blob's attributes at a kept moment; `None` when there was no such blob.
    ///
    /// # Errors
    /// As [`EmbeddedStore::read_kept`].
    pub fn attributes_kept(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        at: Timestamp,
    ) -> Result<Option<Attributes>> {
        self.readable(entry)?.attributes_kept(name, at)
    }

    /// A page of what was written of a range of a blob at a kept moment.
    ///
    /// # Errors
    /// As [`EmbeddedStore::read_kept`].
    pub fn stretches_kept(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Option<(Attributes, Stretches)>> {
        self.readable(entry)?.stretches_kept(name, range, at)
    }

    /// A page of blobs as of a kept moment, in key order (Q2).
    ///
    /// # Errors
    /// As [`EmbeddedStore::read_kept`]; `InvalidArgument` for a scan out of range.
    pub fn scan_kept(&self, entry: &KeyspaceEntry, scan: &Scan, at: Timestamp) -> Result<ScanPage> {
        self.readable(entry)?.scan_kept(entry.info().id, scan, at)
    }
}

impl Inner {
    /// Chooses the moment: the clock now. No fold passes it from now on.
    fn begin_keep(&self) -> Timestamp {
        let arbiter = self.arbiter.lock();
        let at = arbiter.machine.snapshot_timestamp();
        self.snapshots.begin_keep(at);
        at
    }

    /// Makes everything up to the moment durable, and then that it is kept.
    fn finish_keep(&self, name: &KeptName, at: Timestamp) -> Result<()> {
        self.settle(at)?;
        committer::sync_now(self)?;
        self.store.base().keep(name, at)
    }

    fn drop_kept(&self, name: &KeptName) -> Result<()> {
        let base = self.store.base();
        base.unkeep(name)?;
        self.snapshots.look_at_kept(|| base.kept_unfolded());
        Ok(())
    }

    /// Drops the oldest kept snapshots while more is held for them than may be, and one where the
    /// disk has no room and something is held, or a fold has failed for that. An error shows up
    /// where something is written next.
    pub(crate) fn drop_oldest_kept(&self, has_fold_failed: bool) {
        let base = self.store.base();
        let _alone = self.keeping.lock();
        if base.kept().is_empty() {
            return;
        }
        let is_full = self.store.room().is_ok_and(|room| room < ROOM_MIN);
        let mut is_one_dropped = false;
        loop {
            let held = base.kept_bytes();
            let is_too_much = held > self.options.kept_bytes_max;
            let is_room_wanted = is_full && !is_one_dropped && (held > 0 || has_fold_failed);
            if !is_too_much && !is_room_wanted {
                return;
            }
            let Some(oldest) = base.kept().into_iter().next() else { return };
            if self.drop_kept(&oldest.name).is_err() {
                return;
            }
            is_one_dropped = true;
            tracing::warn!(
                name = %oldest.name,
                held,
                kept_bytes_max = self.options.kept_bytes_max,
                is_disk_full = is_full,
                "dropped the oldest kept snapshot: more is held for kept snapshots than may be"
            );
        }
    }
}
