//! What came of a run.

use tyr_types::TransactionId;

use crate::checker::{Deed, Entry, Fate, History, Seen};

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Of everything that happened, in order: equal for equal runs.
    pub trace_hash: u64,
    /// Events handled.
    pub steps: u64,
    /// How long the run was, in its own time.
    pub simulated_us: u64,
    /// How long after everything was mended the last call ended, in its own time.
    pub settled_us: u64,
    /// What clients did and saw.
    pub history: History,
    /// What was wrong, in words; a good run has none.
    pub violations: Vec<String>,
    /// When faults went beyond what the protocol promises to bear (F7): a transaction of which
    /// nobody knew any more that it is decided. Of such a run only what was acknowledged and still
    /// stands on a disk is judged.
    pub unjudged: Option<TransactionId>,
    /// The lines asked for by [`crate::setup::Trace`].
    pub trace: Vec<String>,
    /// How much of what happened.
    pub counters: Counters,
}

/// How much of what happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages: u64,
    /// Messages lost, by chance or because of a partition.
    pub lost: u64,
    /// Messages that came twice.
    pub duplicated: u64,
    /// Messages that went through the wire format.
    pub encoded: u64,
    /// Records written.
    pub records: u64,
    /// Syncs of disks.
    pub syncs: u64,
    /// Bases that were folded and became durable.
    pub folds: u64,
    /// Logs that were cut.
    pub cuts: u64,
    /// The most older versions that a chunk of a real store had left when it was looked at.
    pub versions_most: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Epochs of the cluster map.
    pub epochs: u64,
    /// How often other monitors took over.
    pub terms: u64,
    /// Orders to declare a node down that took effect.
    pub downs: u64,
    /// Such orders that were refused.
    pub downs_refused: u64,
    /// Calls of clients.
    pub calls: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that were aborted.
    pub aborted: u64,
    /// Transactions whose outcome the client never learnt.
    pub unknown: u64,
    /// Reads answered.
    pub reads: u64,
    /// Reads that took the disk, of a real store.
    pub fetches: u64,
    /// Chunks copied to recipients.
    pub copies: u64,
    /// What nodes found in comparing replicas, and that it was put right.
    pub findings: u64,
}

impl Counters {
    /// Counts what a client did.
    pub(crate) fn count(&mut self, entry: &Entry) {
        let answered = |seen: &Seen| seen.is_answered();
        self.reads += entry.seen().iter().filter(|seen| answered(seen)).count() as u64;
        if let Deed::Transaction(attempted) = &entry.deed {
            match &attempted.fate {
                Fate::Committed(_) => self.committed += 1,
                Fate::Aborted(_) => self.aborted += 1,
                Fate::Pending | Fate::Unknown => self.unknown += 1,
                Fate::NotSubmitted => {}
            }
        }
    }
}

impl Report {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}
