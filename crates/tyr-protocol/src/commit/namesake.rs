//! Another transaction under an id that is known here: two clients of one number (F4).
//!
//! Clients draw their numbers at random. But who copies a machine while a program runs on it, or
//! gives two programs one number, makes two clients of one, and their transactions have the same
//! ids. To take the second for a retry of the first would answer it with what became of the first:
//! it would be lost, and its client not know. When each was first submitted tells them apart, for
//! that is the same in all that is sent of one transaction.
//!
//! It is told here by what is at hand. Who has started since, or was told of an outcome by another
//! node, knows only the timestamp of a commit; no transaction has one before it began (C8).

use tyr_types::{ErrorKind, Timestamp, TransactionId};

use super::{Commit, Decision};
use crate::abort::Abort;

/// Why nothing is done with it. `TimedOut`, since the answer may reach the other client of the two,
/// whose transaction may have taken effect.
const REASON: &str = "another transaction has the number of this one: two programs use one \
                      client's number, as after a machine was copied while they ran; connect anew, \
                      and look at what it would have written";

impl Commit {
    /// Whether what is known here under this id began at another moment, and so is another
    /// transaction.
    pub(crate) fn is_namesake(&self, id: TransactionId, begun: Timestamp) -> bool {
        let is_other = |known_us: u64| known_us != 0 && known_us != begun.clock;
        let record = self.records.slot(id).map(|slot| self.records[slot].begun.clock);
        let Some(recovery) = &self.recovery else { return record.is_some_and(is_other) };
        let asked_about = recovery.inquiries.get(id).map(|inquiry| inquiry.begun.clock);
        let noted = recovery.memory.get(id).is_some_and(|entry| {
            let is_before = match &entry.outcome {
                Some((Decision::Commit(at), _)) => at.clock < begun.clock,
                Some((Decision::Abort(_), _)) | None => false,
            };
            is_before || is_other(entry.begun_us)
        });
        record.is_some_and(is_other) || asked_about.is_some_and(is_other) || noted
    }
}

/// What is said of it.
pub(crate) fn refusal() -> Abort {
    Abort::new(ErrorKind::TimedOut, REASON)
}
