//! The last changes of the service metadata, for those who watch.
//!
//! A watcher names the revision that it has seen, and gets what changed since, in order, so that it
//! can go on elsewhere after a monitor failed. What is remembered is bounded: who is further behind
//! is told to list anew, and to watch from the revision of that listing. Nothing of this is in a
//! snapshot; a monitor that got one remembers from there on.

use std::collections::VecDeque;

use bytes::Bytes;
use tyr_types::{Error, ErrorKind, Result};

use super::Path;
use super::limits::{HISTORY_BYTES_MAX, HISTORY_MAX};

/// A key has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KeyChange {
    /// In which revision.
    pub revision: u64,
    /// The key.
    pub path: Path,
    /// What it holds from then on; `None` when it is gone.
    pub value: Option<Bytes>,
}

impl KeyChange {
    fn bytes(&self) -> usize {
        self.path.as_str().len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// What changed lately.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In order of revision; at most [`HISTORY_MAX`].
    changes: VecDeque<KeyChange>,
    /// Bytes of keys and values in it; at most [`HISTORY_BYTES_MAX`].
    bytes: usize,
    /// Everything after this revision is there.
    floor: u64,
}

impl History {
    /// Nothing is remembered of this revision and those before.
    pub fn since(revision: u64) -> Self {
        Self { floor: revision, ..Self::default() }
    }

    /// Everything after this revision is remembered.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Remembers a change, and forgets the oldest beyond the bounds.
    pub fn push(&mut self, change: KeyChange) {
        self.bytes += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > HISTORY_MAX || self.bytes > HISTORY_BYTES_MAX {
            self.forget_oldest();
        }
    }

    /// A revision is forgotten as a whole: half of one would be half a transaction.
    fn forget_oldest(&mut self) {
        let Some(revision) = self.changes.front().map(|it| it.revision) else { return };
        while let Some(first) = self.changes.front()
            && first.revision == revision
        {
            self.bytes -= first.bytes();
            self.changes.pop_front();
        }
        self.floor = revision;
    }

    /// What changed under this prefix after that revision, in order, by whole revisions, at most
    /// about `limit` changes; and the revision up to which that is everything.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that is not remembered any more: list anew.
    pub fn after(
        &self,
        prefix: &str,
        revision: u64,
        newest: u64,
        limit: usize,
    ) -> Result<(Vec<KeyChange>, u64)> {
        if revision < self.floor {
            return Err(Error::new(
                ErrorKind::SnapshotTooOld,
                format!(
                    "changes after revision {revision} are forgotten, the oldest that is known \
                     comes after {}; list {prefix:?} anew and watch from there",
                    self.floor
                ),
            ));
        }
        let mut found: Vec<KeyChange> = Vec::new();
        let start = self.changes.partition_point(|it| it.revision <= revision);
        for change in self.changes.range(start..) {
            let is_full = found.len() >= limit;
            if is_full && found.last().is_some_and(|last| last.revision < change.revision) {
                let up_to = change.revision - 1;
                return Ok((found, up_to));
            }
            if change.path.as_str().starts_with(prefix) {
                found.push(change.clone());
            }
        }
        Ok((found, newest.max(revision)))
    }

    /// Panics unless what must hold holds.
    pub fn invariants(&self) {
        let bytes: usize = self.changes.iter().map(KeyChange::bytes).sum();
        assert_eq!(bytes, self.bytes, "bytes are counted");
        assert!(self.changes.len() <= HISTORY_MAX, "the history is bounded");
        assert!(self.bytes <= HISTORY_BYTES_MAX, "the history's bytes are bounded");
        assert!(
            self.changes.front().is_none_or(|it| it.revision > self.floor),
            "what is remembered is above the floor"
        );
        assert!(self.changes.iter().is_sorted_by_key(|it| it.revision), "in order");
    }
}
