//! What the read machine asks about the transactions in flight (R1..R6).

use tyr_types::{BlobName, Leased, Operation, Timestamp, TransactionId};

use super::Commit;
use super::record::{Record, State};
use crate::footprint::Footprint;

impl Commit {
    /// Whether a transaction is in flight that has not been applied here and can still take effect
    /// at or below `at`: whether a snapshot at `at` has to wait, whatever it reads (R5).
    pub fn is_in_flight_below(&self, at: Timestamp) -> bool {
        let mut in_flight =
            self.records.iter().filter_map(|(_, record)| record.state.in_flight_at());
        in_flight.any(|its| its <= at)
    }

    /// Everything at or below this is applied here, and nothing will be any more: the clock, or
    /// what is just below the lowest proposal in flight (L2). What comes later proposes above the
    /// clock (C3, C8), and takes effect at its proposal here or above (C5).
    pub(crate) fn applied_to(&self) -> Timestamp {
        let in_flight = self.records.iter().filter_map(|(_, record)| record.state.in_flight_at());
        let to = in_flight.map(Timestamp::previous).fold(self.clock, Timestamp::min);
        debug_assert!(!self.is_in_flight_below(to), "L2: what is folded does not change any more");
        to
    }

    /// Everything that was committed up to here with this node in its chain is applied wherever
    /// it is held: nobody will ever commit it at another timestamp. What is applied and not known
    /// to be stable (R2) others may not have heard of.
    pub(crate) fn complete_to(&self) -> Timestamp {
        let unstable = self.records.iter().filter_map(|(_, record)| match record.state {
            State::Applied(at) => Some(at.previous()),
            _ => None,
        });
        let to = unstable.fold(self.applied_to(), Timestamp::min);
        debug_assert!(to <= self.clock, "nothing is known of what comes");
        to
    }

    /// Whether all that is in flight here up to `up_to`, or all of it, and writes something of
    /// `footprint` is applied, and stable where that is asked for (R2): then nobody can find it in
    /// another place, or not at all.
    pub(crate) fn is_settled(
        &self,
        blob: &BlobName,
        footprint: Footprint,
        up_to: Option<Timestamp>,
        is_to_be_stable: bool,
    ) -> bool {
        self.in_flight.claims(blob).writes(footprint).all(|claim| {
            let record = &self.records[claim.slot];
            let is_above = |at: Timestamp| up_to.is_some_and(|up_to| at > up_to);
            match record.state {
                State::Persisting(at) | State::Validated(at) | State::Decided(at) => is_above(at),
                State::Applied(at) => {
                    is_above(at) || !is_to_be_stable || !record.unstable.contains(&claim.authority)
                }
                State::Waiting
                | State::Parked
                | State::Fenced
                | State::Aborting
                | State::Aborted => true,
            }
        })
    }

    /// Of the transactions that were validated here, are not applied and write something of
    /// `footprint`, the one with the highest timestamp up to `up_to`. Without `may_be_alone`, none
    /// that was shown nowhere yet since its whole chain is this node and it is new here (R1).
    pub(crate) fn last_pending(
        &self,
        blob: &BlobName,
        footprint: Footprint,
        up_to: Timestamp,
        may_be_alone: bool,
    ) -> Option<TransactionId> {
        let at = |slot| {
            let record = &self.records[slot];
            let is_wanted = may_be_alone || !record.chain.is_alone() || !record.is_new();
            record.state.in_flight_at().filter(|_| is_wanted)
        };
        let last = self.in_flight.claims(blob).last_write(footprint, up_to, at)?;
        Some(self.records[last].transaction.id)
    }

    /// Whether a read here may show where a blob ends by a transaction that is applied and not
    /// stable (R2), and writes none of the bytes that are read: one that made the blob longer over
    /// a gap, which is a hole since. What appends leaves no gap. When size or existence has last
    /// changed is asked only where there is such a transaction.
    pub(crate) fn may_show_growth(
        &self,
        blob: &BlobName,
        reshaped: impl FnOnce() -> Timestamp,
    ) -> bool {
        let leaves_gap = |record: &Record| {
            let of_blob = record.transaction.blobs.iter().filter(|entry| entry.blob == *blob);
            let mut writes = of_blob.flat_map(|entry| &entry.operations).filter(|it| it.is_write());
            writes.any(|it| !matches!(it, Operation::Append { .. }))
        };
        let writes = self.in_flight.claims(blob).writes(Footprint::ATTRIBUTES);
        let unstable = writes.filter_map(|claim| {
            let record = &self.records[claim.slot];
            let State::Applied(at) = record.state else { return None };
            let is_unstable = record.unstable.contains(&claim.authority);
            (is_unstable && leaves_gap(record)).then_some(at)
        });
        unstable.min().is_some_and(|at| at <= reshaped())
    }

    /// Whether something in flight here may still change this key, or one of this group, validated
    /// or driven anew: who is given a lease of it would not know (K2). Its cost grows with what is
    /// in flight.
    pub(crate) fn is_changing(&self, of: &Leased) -> bool {
        self.records.iter().any(|(_, record)| {
            let is_begun = record.state == State::Fenced || record.state.in_flight_at().is_some();
            is_begun && record.transaction.blobs.iter().any(|entry| of.contains(&entry.blob))
        })
    }

    /// The lowest timestamp at or above which something of `blob` is still to be written here, by a
    /// transaction that was validated and not applied.
    pub(crate) fn unapplied_from(&self, blob: &BlobName) -> Option<Timestamp> {
        let at = |slot| self.records[slot].state.in_flight_at();
        self.in_flight.claims(blob).lowest_write(at)
    }

    /// Of the transactions that were validated here, are not applied and write one of these blobs,
    /// the one with the highest timestamp up to `up_to`. Its cost grows with what is in flight.
    pub(crate) fn last_pending_where(
        &self,
        up_to: Timestamp,
        is_wanted: impl Fn(&BlobName) -> bool,
    ) -> Option<TransactionId> {
        let claims = self.in_flight.iter().filter(|(blob, _)| is_wanted(blob));
        let claims = claims.flat_map(|(_, claims)| claims.iter());
        let writes = claims.filter(|claim| claim.kind.is_write());
        let pending = writes.filter_map(|claim| {
            let record = &self.records[claim.slot];
            Some((record.state.in_flight_at()?, record.transaction.id))
        });
        pending.filter(|(at, _)| *at <= up_to).max().map(|(_, id)| id)
    }

    /// The transactions that are applied here and not finished with.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = TransactionId> {
        let applied = self.records.iter().filter(|(_, record)| record.is_applied());
        applied.map(|(_, record)| record.transaction.id)
    }

    /// Whether a transaction is in flight, validated here, that other nodes know of too.
    pub(crate) fn is_shared_in_flight(&self) -> bool {
        self.shared > 0
    }

    /// The timestamp at or above which a transaction will be applied here; `None` when it is
    /// applied, aborted or not known.
    pub(crate) fn pending_at(&self, id: TransactionId) -> Option<Timestamp> {
        self.records.slot(id).and_then(|slot| self.records[slot].state.in_flight_at())
    }

    /// What is in flight here and what it waits for, a line each; for whoever looks for a failure.
    pub fn brief(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for (_, record) in self.records.iter() {
            let blobs: Vec<String> = record.blobs().map(|blob| blob.key.to_string()).collect();
            let _ = writeln!(
                text,
                "node {} place {} of {}: transaction {:x} on {} {:?} begun {} attempt {:?} \
                 unanchored {:?} behind {} passed {} unstable {:?}",
                self.node.0,
                record.position,
                record.chain.hops().len(),
                record.transaction.id.0,
                blobs.join(","),
                record.state,
                record.begun,
                record.attempt.number,
                record.unanchored,
                record.is_behind,
                record.is_passed,
                record.unstable,
            );
        }
        for (id, inquiry) in self.recovery.iter().flat_map(|recovery| recovery.inquiries.iter()) {
            let _ = writeln!(
                text,
                "node {} asks about {:x}: {:?} attempt {} promised {:?} waiting {:?} reports {:?} \
                 closing {} round {}",
                self.node.0,
                id.0,
                inquiry.turn,
                inquiry.attempt.number,
                inquiry.promised.map(|promised| (promised.number, promised.coordinator.0)),
                inquiry.waiting,
                inquiry.reports,
                inquiry.closing.is_some(),
                inquiry.rounds,
            );
        }
        text
    }

    /// From now on, [`super::Effect::Moved`] tells of this transaction.
    pub(crate) fn watch(&mut self, id: TransactionId) {
        if let Some(slot) = self.records.slot(id) {
            self.records[slot].is_watched = true;
        }
    }
}
