//! What holds between any two steps of the commit machine.

use tyr_types::{NodeId, Timestamp};

use super::Commit;
use super::claims::{self, Standing};
use super::in_flight::Claim;
use super::record::{Record, Slot, State};
use super::recovery::Turn;
use crate::rule::Rule;

impl Commit {
    /// Checks everything that must hold between steps; its cost grows with what is in flight.
    ///
    /// # Panics
    /// When one does not hold, naming it.
    pub fn invariants(&self) {
        for (slot, record) in self.records.iter() {
            let id = record.transaction.id;
            assert_eq!(self.records.slot(id), Some(slot), "a record is found by its id: {id:?}");
            assert!(!record.is_finished(), "what is finished is forgotten: {record:?}");
            self.check_record(record);
            if let Some(at) = record.state.in_flight_at() {
                let is_behind = self.clock < at && self.rules.hold(Rule::C8);
                assert!(!is_behind, "C8: the clock is at or past {at}");
            }
            if let State::Decided(at) = record.state {
                let is_held = self.blocker(slot, at).is_some() || !record.is_applicable();
                assert!(is_held, "C6, C9: what can be applied is: {record:?}");
                self.check_nearest(slot, at);
                let is_noted = record.blocker.is_none_or(|blocker| {
                    let other = self.records.get(blocker.slot);
                    other.is_some_and(|other| other.holds_up.contains(&slot))
                });
                assert!(is_noted, "C6, C9: who is held up is told: {record:?}");
            }
            if record.state.is_waiting() {
                // Leases may keep off who is parked (K2), and are not known here.
                let is_held = record.state == State::Parked
                    || self.records.len() > 1
                    || self.woken.contains_key(&record.arrival);
                assert!(is_held, "one that waits has someone to wait for: {id:?}");
                let is_woken = self.waiting.is_known();
                assert!(is_woken, "who waits is looked for: {id:?}");
                self.check_held_back(slot, record);
            }
            let is_claiming = record.chain.is_alone() && record.state.is_claiming();
            for blob in record.blobs().filter(|_| is_claiming) {
                let has_claim = self.in_flight.claims(blob).iter().any(|claim| claim.slot == slot);
                assert!(has_claim, "what a record touches is in the index: {blob}");
            }
        }
        for (blob, claims) in self.in_flight.iter() {
            assert!(!claims.is_empty(), "a blob without claims is not in the index: {blob}");
            if let Some(index) = claims.index() {
                index.invariants(|other| Standing::of(&self.records[other]));
            }
            for claim in claims.iter() {
                let is_live = self.records.get(claim.slot).is_some();
                assert!(is_live, "a claim is of a live record: {blob} {claim:?}");
            }
            if self.rules.hold(Rule::C1) && self.rules.hold(Rule::C2) {
                self.check_apart(&claims.iter().copied().collect::<Vec<_>>());
            }
        }
        self.check_listings();
        let carried = self.records.iter().map(|(_, record)| record.transaction.payload_len());
        assert_eq!(self.payload_len(), carried.sum::<u64>(), "what is carried is counted");
        let is_shared =
            |record: &Record| record.state.in_flight_at().is_some() && !record.chain.is_alone();
        let shared = self.records.iter().filter(|(_, record)| is_shared(record)).count();
        assert_eq!(self.shared, shared, "those in flight with other nodes are counted");
        if let Some(recovery) = &self.recovery {
            recovery.memory.invariants();
            recovery.inquiries.invariants();
            for (id, inquiry) in recovery.inquiries.iter() {
                assert!(inquiry.attempt.coordinator == self.node, "F2: its own attempt: {id:?}");
                let has_reported = |node: &NodeId| inquiry.reports.contains_key(node);
                let is_once = !inquiry.waiting.iter().any(has_reported);
                assert!(is_once, "who has answered is not waited for: {id:?}");
                assert!(!inquiry.chains.is_empty(), "whom to ask is found by a chain: {id:?}");
                let is_begun = inquiry.turn != Turn::PutOff;
                let is_promised = self.promised(*id) >= Some(inquiry.attempt);
                let is_kept = self.rules.hold(Rule::F8) && self.rules.hold(Rule::F10);
                assert!(is_promised || !is_begun || !is_kept, "F8: what it began counts: {id:?}");
            }
        }
        assert!(self.woken.is_empty() || self.is_resuming, "those woken are looked at");
    }

    /// What holds of a record by itself.
    fn check_record(&self, record: &Record) {
        let hop = record.chain.hops().get(record.position);
        assert!(hop.is_some_and(|hop| hop.node == self.node), "its place is its own: {record:?}");
        assert!(record.attempt >= record.entered_in, "F2: what came by was promised: {record:?}");
        assert!(record.arrival <= self.arrivals, "who is here has arrived: {record:?}");
        let is_aborting = record.state == State::Aborting;
        assert_eq!(record.abort.is_some(), is_aborting, "F4: why it is given up is told once");
        assert!(!record.is_passed || record.is_behind, "C7: passed back too early: {record:?}");
        // Of one from the log it may be lost that what comes before it here was withdrawn; it was
        // passed back then.
        let is_shown = record.is_applied() || record.is_restored || !self.rules.hold(Rule::C7);
        assert!(!record.is_passed || is_shown, "C7: what is told of is here: {record:?}");
        let is_decided = record.state.decided_at().is_some();
        assert!(!record.is_anchored || is_decided, "C9: its place is not known: {record:?}");
        let is_held_up = matches!(record.state, State::Decided(_));
        assert!(record.blocker.is_none() || is_held_up, "C6: nobody waits yet: {record:?}");
        if let State::Validated(proposal) = record.state {
            let is_heard = record.highest >= proposal || !self.rules.hold(Rule::C5);
            assert!(is_heard, "C5: its own proposal counts: {record:?}");
        }
        if let (Some(known), Some(at)) = (record.known, record.state.decided_at()) {
            assert!(
                known == at || !self.rules.hold(Rule::F3),
                "F3: what is known stands: {record:?}"
            );
        }
        let has = |node: &NodeId| record.chain.position(*node).is_some();
        assert!(record.unstable.iter().all(has), "R2: an authority is of the chain: {record:?}");
        assert!(record.unanchored.iter().all(has), "C9: an anchor is of the chain: {record:?}");
        assert!(!record.unanchored.contains(&self.node), "C9: it does not wait for itself");
    }

    /// Whoever waits for one is woken by it.
    fn check_held_back(&self, slot: Slot, record: &Record) {
        let Some(rival) = record.waits_for else { return };
        let it = (record.arrival, slot);
        let rival = self.records.get(rival).filter(|rival| rival.holds_back.contains(&it));
        assert!(rival.is_some(), "who is waited for knows it: {record:?}");
        let is_there = rival.is_some_and(|rival| match rival.state {
            State::Waiting => rival.arrival < record.arrival,
            State::Persisting(_) | State::Validated(_) | State::Decided(_) => true,
            State::Parked
            | State::Fenced
            | State::Applied(_)
            | State::Aborting
            | State::Aborted => false,
        });
        assert!(is_there, "who waits for what is past is woken: {record:?} for {rival:?}");
    }

    /// C6, C9: who is found to come before it in an index is who comes before it among all.
    fn check_nearest(&self, slot: Slot, at: Timestamp) {
        let before = |other: &Claim| self.before(other.slot, other.kind.is_write(), at);
        let nearest = self.records[slot].transaction.blobs.iter().map(|entry| {
            let claims = self.in_flight.claims(&entry.blob);
            let own = claims.of(slot).filter(|claim| claim.kind.is_write());
            let others: Vec<Claim> = claims.iter().copied().filter(|it| it.slot != slot).collect();
            let expected = claims::nearest_of(own, others.iter(), before);
            let found = claims.nearest(slot, at, before);
            let of = |(at, claim): (Timestamp, &Claim)| (at, claim.slot, claim.kind);
            assert_eq!(found.map(of), expected.map(of), "C6: of the index on {}", entry.blob);
        });
        nearest.for_each(drop);
    }

    /// C1 and C2: a validated read or condition and an overlapping write of another transaction are
    /// never undecided here at once.
    fn check_apart(&self, claims: &[Claim]) {
        // One that is known to be committed is not asked (F3); of those from the log it may be lost
        // that they were decided.
        let is_undecided = |claim: &Claim| {
            let record = &self.records[claim.slot];
            record.state.is_undecided() && record.is_new()
        };
        for read in claims.iter().filter(|claim| !claim.kind.is_write() && is_undecided(claim)) {
            for write in claims.iter().filter(|claim| claim.kind.is_write() && is_undecided(claim))
            {
                let is_apart = read.slot == write.slot || !read.footprint.overlaps(write.footprint);
                assert!(is_apart, "C1, C2: {read:?} and {write:?} are both validated");
            }
        }
    }
}
