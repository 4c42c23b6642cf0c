//! The snapshots in use of the blobs that this node is a version manager of (V1), and those that
//! read all blobs (V5).
//!
//! A snapshot is in use from its first read, which is known by its asker and the number that the
//! asker gave it, until the asker says that it has ended or the read timeout has passed. Bounded by
//! [`SNAPSHOTS_MAX`] over all of them.

use std::collections::BTreeMap;

use tyr_types::{BlobName, Timestamp};

use crate::abort::Abort;
use crate::message::Address;
use crate::versions::snapshots::SNAPSHOTS_MAX;
use crate::versions::{SnapshotId, SnapshotTable};

/// Who was told a clock for a moment of everything says where that is within so many microseconds:
/// it has to wait for the other nodes only. As long as it does not, every version stays.
const UNPLACED_MAX_US: u64 = 10_000_000;

/// What a snapshot reads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// This blob, to begin with.
    Blob(BlobName),
    /// All blobs, at some moment from its timestamp on.
    AllFrom,
    /// All blobs, at its timestamp.
    All,
}

/// The snapshots in use, by what they read.
#[derive(Debug)]
pub(super) struct InUse {
    timeout_us: u64,
    tables: BTreeMap<BlobName, SnapshotTable>,
    all_from: SnapshotTable,
    all: SnapshotTable,
    by_asker: BTreeMap<(Address, u64), (Scope, SnapshotId)>,
}

impl InUse {
    /// None in use; each lasts at most `timeout_us`.
    pub fn new(timeout_us: u64) -> Self {
        Self {
            timeout_us,
            tables: BTreeMap::new(),
            all_from: SnapshotTable::new(timeout_us.min(UNPLACED_MAX_US)),
            all: SnapshotTable::new(timeout_us),
            by_asker: BTreeMap::new(),
        }
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
        self.add(asker, read, Scope::Blob(blob.clone()), at, now_us)
    }

    /// Somebody will read all blobs, at `clock` or above: where, it says soon. Asked again it is
    /// told the same clock as before: it may go by either answer.
    pub fn begin_from(
        &mut self,
        asker: Address,
        read: u64,
        clock: Timestamp,
        now_us: u64,
    ) -> Result<Timestamp, Abort> {
        if let Some((Scope::AllFrom, id)) = self.by_asker.get(&(asker, read)) {
            return Ok(self.all_from.at(*id).unwrap_or(clock));
        }
        self.end(asker, read);
        self.add(asker, read, Scope::AllFrom, clock, now_us)?;
        Ok(clock)
    }

    /// It reads at `at` who was told a clock as `first`. `false` when that clock is not known any
    /// more, or is above it: what it reads may have gone.
    pub fn place(
        &mut self,
        asker: Address,
        first: u64,
        read: u64,
        at: Timestamp,
        now_us: u64,
    ) -> Result<bool, Abort> {
        if let Some((Scope::All, id)) = self.by_asker.get(&(asker, read)) {
            return Ok(self.all.at(*id) == Some(at));
        }
        let Some((Scope::AllFrom, id)) = self.by_asker.get(&(asker, first)) else {
            return Ok(false);
        };
        if self.all_from.at(*id).is_none_or(|clock| clock > at) {
            return Ok(false);
        }
        // First the one, then the other: nobody is told anything in between.
        self.end(asker, first);
        self.end(asker, read);
        self.add(asker, read, Scope::All, at, now_us)?;
        Ok(true)
    }

    fn add(
        &mut self,
        asker: Address,
        read: u64,
        scope: Scope,
        at: Timestamp,
        now_us: u64,
    ) -> Result<(), Abort> {
        if self.by_asker.len() >= SNAPSHOTS_MAX {
            let reason = "too many snapshots are in use; end some, or retry later";
            return Err(Abort::new(tyr_types::ErrorKind::Unavailable, reason));
        }
        let timeout_us = self.timeout_us;
        let table = match &scope {
            Scope::Blob(blob) => {
                let table = self.tables.entry(blob.clone());
                table.or_insert_with(|| SnapshotTable::new(timeout_us))
            }
            Scope::AllFrom => &mut self.all_from,
            Scope::All => &mut self.all,
        };
        let id = table.begin(at, now_us)?;
        let before = self.by_asker.insert((asker, read), (scope, id));
        debug_assert!(before.is_none(), "V1: a read begins one snapshot, and ended the one before");
        Ok(())
    }

    /// The asker needs the snapshot no more that this read began.
    pub fn end(&mut self, asker: Address, read: u64) {
        let Some((scope, id)) = self.by_asker.remove(&(asker, read)) else { return };
        let Some(table) = self.table_mut(&scope) else { return };
        let was_in_use = table.end(id);
        debug_assert!(was_in_use, "V1: whose snapshot timed out is forgotten with it: {id:?}");
        if let (true, Scope::Blob(blob)) = (table.is_empty(), scope) {
            self.tables.remove(&blob);
        }
    }

    fn table(&self, scope: &Scope) -> Option<&SnapshotTable> {
        match scope {
            Scope::Blob(blob) => self.tables.get(blob),
            Scope::AllFrom => Some(&self.all_from),
            Scope::All => Some(&self.all),
        }
    }

    fn table_mut(&mut self, scope: &Scope) -> Option<&mut SnapshotTable> {
        match scope {
            Scope::Blob(blob) => self.tables.get_mut(blob),
            Scope::AllFrom => Some(&mut self.all_from),
            Scope::All => Some(&mut self.all),
        }
    }

    /// Ends those that have lasted longer than the read timeout.
    pub fn expire(&mut self, now_us: u64) {
        let mut expired = self.all_from.expire(now_us) + self.all.expire(now_us);
        self.tables.retain(|_, table| {
            expired += table.expire(now_us);
            !table.is_empty()
        });
        if expired > 0 {
            let mut by_asker = std::mem::take(&mut self.by_asker);
            by_asker.retain(|_, (scope, id)| {
                self.table(scope).is_some_and(|table| table.at(*id).is_some())
            });
            self.by_asker = by_asker;
        }
        debug_assert_eq!(
            self.len(),
            self.by_asker.len(),
            "V1: who asks again finds its snapshot gone"
        );
    }

    fn all_tables(&self) -> impl Iterator<Item = &SnapshotTable> {
        self.tables.values().chain([&self.all_from, &self.all])
    }

    fn len(&self) -> usize {
        self.all_tables().map(SnapshotTable::len).sum()
    }

    /// The oldest of all in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.all_tables().filter_map(SnapshotTable::oldest).min()
    }

    /// The snapshots of `blob` in use.
    pub fn of(&self, blob: &BlobName) -> Option<&SnapshotTable> {
        self.tables.get(blob)
    }

    /// The snapshots of all blobs.
    pub fn of_all(&self) -> &SnapshotTable {
        &self.all
    }

    /// From here on somebody may read all blobs, who has not said where.
    pub fn all_from(&self) -> Option<Timestamp> {
        self.all_from.oldest()
    }

    pub fn invariants(&self) {
        assert_eq!(self.len(), self.by_asker.len(), "each snapshot has an asker");
        assert!(!self.tables.values().any(SnapshotTable::is_empty), "a table is for what is in it");
        for (asked, (scope, id)) in &self.by_asker {
            let at = self.table(scope).and_then(|table| table.at(*id));
            assert!(at.is_some(), "V1: what was begun by {asked:?} is in use until it ends");
        }
        assert!(self.len() <= SNAPSHOTS_MAX, "snapshots in use are bounded");
    }
}
