//! What holds between any two steps of a node.

use super::{HELD_MAX, Member, PLANNED_MAX};

impl Member {
    /// Checks everything that must hold between steps, in all machines of the node; its cost grows
    /// with what is in flight.
    ///
    /// # Panics
    /// When something does not hold, naming it.
    pub fn invariants(&self) {
        self.commit.invariants();
        self.reads.invariants(&self.commit);
        self.recipient.invariants();
        self.scrubber.invariants();
        self.lease.invariants();
        self.asked.invariants();
        self.in_use.invariants();
        let is_waiting = !self.aside.chunks().any(|chunk| self.recipient.has(chunk));
        assert!(is_waiting, "L3: what is laid aside waits for a base that is not here");
        let asked = self.asked.len() + self.listings.len();
        assert_eq!(asked, self.reads.len(), "what waits is known by its asker");
        assert!(self.held.len() <= HELD_MAX, "messages that wait for a map are bounded");
        assert!(self.planned.len() <= PLANNED_MAX, "planned maps are bounded");
        let epoch = self.epoch();
        let is_newer = |epoch_held| epoch_held > epoch;
        let is_waiting = self.held.iter().all(|envelope| is_newer(envelope.epoch));
        assert!(is_waiting, "what waits for a map is of an epoch that is not known yet");
        let is_ahead = self.planned.iter().all(|planned| is_newer(planned.map.epoch));
        assert!(is_ahead, "what is planned is not in effect");
        assert!(self.commit_epoch.is_none_or(|known| known <= epoch), "no map is made up");
        let clock = self.commit.clock();
        assert!(clock.epoch <= epoch, "F1: no timestamp is of an epoch that is not known here");
    }
}
