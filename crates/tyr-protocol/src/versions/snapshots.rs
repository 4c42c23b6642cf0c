//! The snapshots in use (V1).
//!
//! A snapshot is in use from its first read until it is committed, rolled back or dropped, or until
//! the read timeout has passed: what a client forgot must not keep versions for ever. An embedded
//! store has one table; a version manager has one for the blobs it manages.

use std::collections::BTreeMap;

use tyr_types::{ErrorKind, Timestamp};

use crate::abort::Abort;

/// The most snapshots in use at a time; further ones are refused as `Unavailable`. Each keeps
/// versions in memory, so this many is far beyond what a node can keep apart.
pub const SNAPSHOTS_MAX: usize = 1 << 20;

/// A snapshot in use, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(u64);

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at: Timestamp,
    began_us: u64,
}

/// The snapshots in use, with how long they may last.
#[derive(Debug)]
pub struct SnapshotTable {
    timeout_us: u64,
    begun: u64,
    by_id: BTreeMap<SnapshotId, Snapshot>,
    by_time: BTreeMap<Timestamp, u32>,
}

impl SnapshotTable {
    /// The read timeout unless it is set: five minutes.
    pub const TIMEOUT_US_DEFAULT: u64 = 5 * 60 * 1_000_000;

    /// A table with no snapshot in use; each lasts at most `timeout_us`.
    pub fn new(timeout_us: u64) -> Self {
        Self { timeout_us, begun: 0, by_id: BTreeMap::new(), by_time: BTreeMap::new() }
    }

    /// A snapshot at `at` is in use from `now_us` on. Several may be at one timestamp.
    ///
    /// # Errors
    /// `Unavailable` when [`SNAPSHOTS_MAX`] are in use.
    pub fn begin(&mut self, at: Timestamp, now_us: u64) -> Result<SnapshotId, Abort> {
        if self.by_id.len() >= SNAPSHOTS_MAX {
            let reason = "too many snapshots are in use; end some, or retry later";
            return Err(Abort::new(ErrorKind::Unavailable, reason));
        }
        self.begun += 1;
        let id = SnapshotId(self.begun);
        let before = self.by_id.insert(id, Snapshot { at, began_us: now_us });
        assert!(before.is_none(), "V1: a number is never used again: {id:?}");
        *self.by_time.entry(at).or_insert(0) += 1;
        debug_assert!(self.by_time.len() <= self.by_id.len(), "V1: a time has a snapshot");
        Ok(id)
    }

    /// The snapshot is no longer in use. `false` when it was not any more: it had timed out.
    pub fn end(&mut self, id: SnapshotId) -> bool {
        let Some(snapshot) = self.by_id.remove(&id) else { return false };
        let count = self.by_time.get_mut(&snapshot.at).expect("a snapshot in use is counted");
        *count -= 1;
        if *count == 0 {
            self.by_time.remove(&snapshot.at);
        }
        let is_empty = self.by_id.is_empty();
        debug_assert_eq!(is_empty, self.by_time.is_empty(), "V1: versions are kept for somebody");
        true
    }

    /// Where a snapshot reads, `None` when it has ended or timed out: `SnapshotTooOld`.
    pub fn at(&self, id: SnapshotId) -> Option<Timestamp> {
        self.by_id.get(&id).map(|snapshot| snapshot.at)
    }

    /// Ends those that have lasted longer than the read timeout; answers how many.
    ///
    /// In the order they began: where the clock went back in between, some end a little late.
    pub fn expire(&mut self, now_us: u64) -> usize {
        let mut expired = 0;
        while let Some((id, snapshot)) = self.by_id.first_key_value() {
            if now_us.saturating_sub(snapshot.began_us) < self.timeout_us {
                break;
            }
            let id = *id;
            let was_in_use = self.end(id);
            debug_assert!(was_in_use, "the first of those in use is one: {id:?}");
            expired += 1;
        }
        expired
    }

    /// Ends those that read below `at`, however young: memory or log cannot hold what they need
    /// any longer (V4). Answers how many.
    pub fn end_below(&mut self, at: Timestamp) -> usize {
        let is_below = |snapshot: &Snapshot| snapshot.at < at;
        let below: Vec<SnapshotId> = self
            .by_id
            .iter()
            .filter(|(_, snapshot)| is_below(snapshot))
            .map(|(id, _)| *id)
            .collect();
        for id in &below {
            self.end(*id);
        }
        below.len()
    }

    /// The oldest timestamp in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|(at, _)| *at)
    }

    /// The newest timestamp in use.
    pub fn newest(&self) -> Option<Timestamp> {
        self.by_time.last_key_value().map(|(at, _)| *at)
    }

    /// Whether a snapshot in use sees what was the newest from `from` up to, not with, `until`.
    pub fn is_needed(&self, from: Timestamp, until: Timestamp) -> bool {
        from < until && self.by_time.range(from..until).next().is_some()
    }

    /// The timestamps in use, ascending, each once.
    pub fn timestamps(&self) -> impl Iterator<Item = Timestamp> {
        self.by_time.keys().copied()
    }

    /// The number of snapshots in use.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether no snapshot is in use.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Checks that both orders count the same snapshots.
    ///
    /// # Panics
    /// When they do not.
    pub fn invariants(&self) {
        let counted: usize = self.by_time.values().map(|count| *count as usize).sum();
        assert_eq!(counted, self.by_id.len(), "each snapshot is counted at its timestamp");
        let is_counted = |snapshot: &Snapshot| self.by_time.contains_key(&snapshot.at);
        assert!(self.by_id.values().all(is_counted), "at its own timestamp");
        assert!(self.by_id.len() <= SNAPSHOTS_MAX, "snapshots in use are bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    /// V1.
    #[test]
    fn a_version_is_needed_while_a_snapshot_lies_in_its_time() {
        let mut table = SnapshotTable::new(100);
        let id = table.begin(time(5), 0).unwrap();
        assert!(table.is_needed(time(5), time(6)), "written at the snapshot's own timestamp");
        assert!(table.is_needed(time(1), time(9)));
        assert!(!table.is_needed(time(1), time(5)), "superseded at the snapshot's timestamp");
        assert!(!table.is_needed(time(6), time(9)));
        assert!(!table.is_needed(time(5), time(5)));
        assert!(table.end(id));
        assert!(!table.is_needed(time(1), time(9)));
        table.invariants();
    }

    /// V1.
    #[test]
    fn one_of_two_snapshots_at_a_timestamp_ends_and_the_other_stays() {
        let mut table = SnapshotTable::new(100);
        let [first, second] = [(); 2].map(|()| table.begin(time(5), 0).unwrap());
        assert!(table.end(first));
        assert!(!table.end(first), "it ends once");
        assert_eq!(table.at(second), Some(time(5)));
        assert_eq!((table.oldest(), table.newest()), (Some(time(5)), Some(time(5))));
        table.invariants();
    }

    /// V1.
    #[test]
    fn a_forgotten_snapshot_ends_at_the_read_timeout() {
        let mut table = SnapshotTable::new(100);
        let old = table.begin(time(5), 1000).unwrap();
        let young = table.begin(time(3), 1050).unwrap();
        assert_eq!(table.expire(1099), 0);
        assert_eq!(table.expire(1100), 1);
        assert_eq!((table.at(old), table.at(young)), (None, Some(time(3))));
        assert_eq!(table.expire(900), 0, "a clock that goes back ends nothing");
        assert_eq!(table.expire(u64::MAX), 1);
        assert!(table.is_empty());
        table.invariants();
    }
}
