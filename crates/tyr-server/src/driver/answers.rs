//! Counts of what clients were answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr_types::ErrorKind;

use crate::histogram::{Histogram, Times};

/// Counts of what clients were answered. Read for display only, so no order is kept among them.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    commits: AtomicU64,
    aborts: [AtomicU64; ErrorKind::ALL.len()],
    reads: AtomicU64,
    read_bytes: AtomicU64,
    refused: [AtomicU64; ErrorKind::ALL.len()],
    elsewhere: AtomicU64,
    commit_times: Histogram,
    read_times: Histogram,
}

/// A moment's copy of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerStatistics {
    /// Transactions answered as committed by this node, as head of their chains.
    pub commits: u64,
    /// Transactions answered as aborted, by kind of error; kinds that did not come have 0.
    pub aborts: BTreeMap<&'static str, u64>,
    /// Reads of clients answered.
    pub reads: u64,
    /// Bytes in those answers.
    pub read_bytes: u64,
    /// Reads of clients refused, by kind of error.
    pub reads_refused: BTreeMap<&'static str, u64>,
    /// Questions for which another node is the right one, or that came without a lease here.
    pub elsewhere: u64,
    /// How long committed transactions took.
    pub commit_times: Times,
    /// How long reads took.
    pub read_times: Times,
}

impl Answers {
    pub(super) fn committed(&self, took_us: Option<u64>) {
        add(&self.commits, 1);
        if let Some(took_us) = took_us {
            self.commit_times.note(took_us);
        }
    }

    pub(super) fn aborted(&self, kind: ErrorKind) {
        debug_assert_eq!(ErrorKind::ALL[kind as usize], kind, "each kind has its place");
        add(&self.aborts[kind as usize], 1);
    }

    pub(super) fn read(&self, len: u64, took_us: Option<u64>) {
        add(&self.reads, 1);
        add(&self.read_bytes, len);
        if let Some(took_us) = took_us {
            self.read_times.note(took_us);
        }
    }

    pub(super) fn refused(&self, kind: ErrorKind) {
        debug_assert_eq!(ErrorKind::ALL[kind as usize], kind, "each kind has its place");
        add(&self.refused[kind as usize], 1);
    }

    pub(super) fn sent_elsewhere(&self) {
        add(&self.elsewhere, 1);
    }

    /// A copy.
    pub fn statistics(&self) -> AnswerStatistics {
        AnswerStatistics {
            commits: read(&self.commits),
            aborts: by_kind(&self.aborts),
            reads: read(&self.reads),
            read_bytes: read(&self.read_bytes),
            reads_refused: by_kind(&self.refused),
            elsewhere: read(&self.elsewhere),
            commit_times: self.commit_times.read(),
            read_times: self.read_times.read(),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn by_kind(counters: &[AtomicU64; ErrorKind::ALL.len()]) -> BTreeMap<&'static str, u64> {
    ErrorKind::ALL.iter().zip(counters).map(|(kind, count)| (kind.name(), read(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_own_counter() {
        let answers = Answers::default();
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            answers.aborted(kind);
            assert_eq!(answers.statistics().aborts[kind.name()], 1);
        }
    }
}
