//! What holds between any two steps of the read machine.

use super::Reads;
use crate::commit::Commit;

impl Reads {
    /// Checks everything that must hold once every `Moved` of `commit` was taken in.
    ///
    /// # Panics
    /// When one does not hold, naming it.
    pub fn invariants(&self, commit: &Commit) {
        for (id, parked) in self.parked.iter() {
            let readers = self.waiting.get(&parked.pending);
            let is_linked = readers.is_some_and(|readers| readers.contains(&id));
            assert!(is_linked, "what a read waits for leads back to it: {id:?}");
            let (pending, up_to) = (parked.pending, parked.up_to);
            let at = commit.pending_at(pending);
            assert!(at.is_some(), "{id:?} waits for what is in flight: {pending:?}");
            assert!(at <= Some(up_to), "R5: {id:?} waits for what is at or below {up_to}");
            assert!(commit.clock() >= up_to, "R5: the clock has moved to {up_to}");
        }
        self.parked.invariants();
        let linked: usize = self.waiting.values().map(|readers| readers.len()).sum();
        assert_eq!(linked, self.parked.len(), "nobody is linked who does not wait");
        assert!(self.parked.len() <= super::PARKED_MAX, "reads that wait are bounded");
    }
}
