//! What holds between any two steps of the read machine.

use super::Reads;
use crate::commit::Commit;

impl Reads {
    /// Checks everything that must hold once every `Moved` of `commit` was taken in.
    ///
    /// # Panics
    /// When one does not hold, naming it.
    pub fn invariants(&self, commit: &Commit) {
        let mut links = 0;
        for (id, parked) in &self.parked {
            assert!(!parked.pending.is_empty(), "a read that waits for nothing is served: {id:?}");
            for transaction in &parked.pending {
                let readers = self.waiting.get(transaction);
                let is_linked = readers.is_some_and(|readers| readers.contains(id));
                assert!(is_linked, "what a read waits for leads back to it: {id:?}");
                let pending_at = commit.pending_at(*transaction);
                assert!(
                    pending_at.is_some(),
                    "{id:?} waits for what is in flight: {transaction:?}"
                );
                if let (Some(pending_at), Some(at)) = (pending_at, parked.at) {
                    assert!(pending_at <= at, "R5: {id:?} waits for what is at or below {at}");
                }
                links += 1;
            }
            if let Some(at) = parked.at {
                assert!(commit.clock() >= at, "R5: the clock has moved to {at}");
            }
        }
        let linked: usize = self.waiting.values().map(|readers| readers.len()).sum();
        assert_eq!(linked, links, "nobody is linked who does not wait");
        assert!(self.parked.len() <= super::PARKED_MAX, "reads that wait are bounded");
    }
}
