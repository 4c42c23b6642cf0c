//! What holds between any two steps of a node.

use tyr_types::{Epoch, Timestamp};

use super::{HELD_MAX, Member, PLANNED_MAX};
use crate::message::Address;

/// What of a node never goes back while it runs, as it was before a step. Others count on it: they
/// forget, listen and let go by what they were told of it once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    epoch: Epoch,
    incarnation: u64,
    records: u64,
    clock: Timestamp,
    done_to_us: u64,
    known_from: Timestamp,
    has_disk: bool,
    is_broken: bool,
}

impl Grown {
    pub fn of(member: &Member) -> Self {
        Self {
            epoch: member.epoch(),
            incarnation: member.incarnation,
            records: member.records,
            clock: member.commit.clock(),
            done_to_us: member.done.told_us(),
            known_from: member.known_from,
            has_disk: member.has_disk,
            is_broken: member.is_broken,
        }
    }

    /// Checks it against what is after the step.
    pub fn check(self, member: &Member) {
        let after = Self::of(member);
        debug_assert!(self.epoch <= after.epoch, "F1: a node does not go back to an older map");
        debug_assert!(self.incarnation <= after.incarnation, "M4: not taken for the one before");
        debug_assert!(self.records <= after.records, "a record of the log has its own number");
        debug_assert!(self.clock <= after.clock, "C8: also who begins anew keeps the clock");
        debug_assert!(self.done_to_us <= after.done_to_us, "F10: others have forgotten by it");
        debug_assert!(self.known_from <= after.known_from, "Q1: what was copied has no past");
        debug_assert!(self.has_disk <= after.has_disk, "M4: what it promised it still has");
        debug_assert!(self.is_broken <= after.is_broken, "C3: a log that failed takes no more");
    }
}

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
        self.check_key_leases();
        self.key_watches.invariants();
        self.notices.invariants();
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
        let is_ascending =
            self.planned.is_sorted_by(|left, right| left.map.epoch < right.map.epoch);
        assert!(is_ascending, "a planned map is there once, those withdrawn first");
        for planned in &self.planned {
            let is_ready = planned.is_prepared || !planned.is_durable;
            assert!(is_ready, "M3: what is durable that it has prepared it goes by");
            let is_due = planned.is_durable || planned.told_us.is_none();
            assert!(is_due, "M3: the monitors hear when it is durable, not before");
        }
        assert_eq!(self.lease.incarnation(), self.incarnation, "M4: a lease is of who it is now");
        assert!(!self.is_member() || self.has_disk, "M4: who takes part has what it promised");
        let is_from_peer = self.held.iter().all(|envelope| envelope.from != Address::Monitors);
        assert!(is_from_peer, "the monitors' messages wait for no map: they bring it");
        let last = self.promises.last_key_value().map_or(0, |(number, _)| *number);
        assert!(last <= self.records, "C3: what is waited for was written");
        self.done.invariants(self.records);
        self.aside.invariants();
        self.uploads.invariants();
        self.commit.pieces.invariants();
        assert!(self.commit_epoch.is_none_or(|known| known <= epoch), "no map is made up");
        let clock = self.commit.clock();
        assert!(clock.epoch <= epoch, "F1: no timestamp is of an epoch that is not known here");
    }
}
