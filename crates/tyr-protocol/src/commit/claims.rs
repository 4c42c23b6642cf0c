//! The claims on one blob, and the questions about them: who meets mine, who comes before me.
//!
//! A few are gone over one by one. Beyond [`FEW_MAX`] they are in a [`ClaimIndex`], so that
//! what a transaction costs does not grow with how many others are in flight beside it. Both answer
//! the same; the few say what is meant, and the index is held to them by the tests.

use std::ops::ControlFlow;

use smallvec::{SmallVec, smallvec};
use tyr_types::Timestamp;

use super::claim_index::ClaimIndex;
use super::in_flight::{Claim, ClaimKind};
use super::record::{Record, Slot, State};
use crate::footprint::Footprint;

/// Claims on a blob up to which there is no index: looking at so many costs less than to keep one.
pub(super) const FEW_MAX: usize = 32;

/// What one transaction claims of a blob.
pub(crate) type Claims = SmallVec<[Claim; 1]>;

/// How a transaction stands to the others on its blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It came as the `arrival`th and waits to be validated; for one of them, which wakes it, or
    /// whatever happens on its blobs has to be told to it (`is_open`).
    Waiting { arrival: u64, is_open: bool },
    /// It waits and is in nobody's way; it is told whatever happens on its blobs.
    Parked,
    /// Validated and not applied: it cannot take effect below this.
    InFlight(Timestamp),
    /// It is applied or given up.
    Past,
}

impl Standing {
    pub fn of(record: &Record) -> Self {
        match record.state {
            State::Waiting => {
                Self::Waiting { arrival: record.arrival, is_open: record.waits_for.is_none() }
            }
            State::Parked => Self::Parked,
            State::Persisting(at) | State::Validated(at) | State::Decided(at) => Self::InFlight(at),
            State::Fenced | State::Applied(_) | State::Aborting | State::Aborted => Self::Past,
        }
    }

    /// Whether it is told whatever happens on its blobs.
    pub fn is_open(self) -> bool {
        match self {
            Self::Waiting { is_open, .. } => is_open,
            Self::Parked => true,
            Self::InFlight(_) | Self::Past => false,
        }
    }
}

/// A claim that is to be validated, and what it depends on whom it can meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub claim: &'a Claim,
    /// The blob's size, where this node looks after its end and the claim is on that.
    pub end: Option<u64>,
    /// Those that wait are in its way if they came before this arrival; none of them where it is
    /// validated at another node already.
    pub before: Option<u64>,
    /// Whether writes meet writes (C4 is taken away).
    pub is_exclusive: bool,
}

/// All claims on one blob.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlobClaims {
    /// Those of one arrival together; none where there is an index.
    few: Claims,
    index: Option<Box<ClaimIndex>>,
}

impl BlobClaims {
    pub fn is_indexed(&self) -> bool {
        self.index.is_some()
    }

    pub fn index(&self) -> Option<&ClaimIndex> {
        self.index.as_deref()
    }

    pub fn len(&self) -> usize {
        self.few.len() + self.index.as_ref().map_or(0, |index| index.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All, those of one transaction together, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        let index = self.index.iter().flat_map(|index| index.iter());
        self.few.iter().chain(index).inspect(|_| look())
    }

    /// Those of one transaction.
    pub fn of(&self, slot: Slot) -> impl Iterator<Item = &Claim> + Clone {
        let index = self.index.iter().flat_map(move |index| index.of(slot));
        self.few.iter().filter(move |claim| claim.slot == slot).chain(index)
    }

    /// Whether there are others than those of one transaction.
    pub fn has_others(&self, slot: Slot) -> bool {
        let is_other = |claim: &Claim| claim.slot != slot;
        self.few.iter().any(is_other) || self.index.iter().any(|index| index.has_others(slot))
    }

    /// Whether somebody appends.
    pub fn has_appends(&self) -> bool {
        let is_append = |claim: &Claim| matches!(claim.kind, ClaimKind::Append { .. });
        self.few.iter().any(is_append) || self.index.iter().any(|index| index.has_appends())
    }

    /// Visits claims of others in flight until told to stop; whoever of those can meet this one is
    /// among them. Where there is no index it visits those that wait, too.
    pub fn rivals_in_flight<B>(
        &self,
        own: Candidate<'_>,
        visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut visit = visiting_others(own.claim.slot, visit);
        self.few.iter().try_for_each(&mut visit)?;
        match &self.index {
            Some(index) => index.rivals_in_flight(own, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// Visits claims of others that wait and came before it, the last of them first, until told to
    /// stop; whoever of those can meet this one is among them. None where there is no index.
    pub fn rivals_waiting<B>(
        &self,
        own: Candidate<'_>,
        visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match &self.index {
            Some(index) => index.rivals_waiting(own, visiting_others(own.claim.slot, visit)),
            None => ControlFlow::Continue(()),
        }
    }

    /// Of the others' claims that a write of `slot` is applied after, the one with the highest
    /// timestamp that `before` gives; of several of one transaction the first. No timestamp is `at`
    /// or above, and none is given to a transaction that is not in flight.
    pub fn nearest(
        &self,
        slot: Slot,
        at: Timestamp,
        before: impl Fn(&Claim) -> Option<Timestamp>,
    ) -> Option<(Timestamp, &Claim)> {
        let before = |claim: &Claim| {
            look();
            before(claim)
        };
        if let Some(index) = &self.index {
            return index.nearest(slot, at, before);
        }
        let own = self.of(slot).filter(|claim| claim.kind.is_write());
        let others = self.few.iter().filter(|other| other.slot != slot);
        nearest_of(own, others, before)
    }

    /// Those that wait and are told whatever happens here; without an index also others.
    pub fn open(&self) -> impl Iterator<Item = Slot> {
        let index = self.index.iter().flat_map(|index| index.open());
        self.few.iter().map(|claim| claim.slot).chain(index).inspect(|_| look())
    }

    /// Those that write something of `footprint`.
    pub fn writes(&self, footprint: Footprint) -> impl Iterator<Item = &Claim> {
        self.iter().filter(move |claim| claim.writes(footprint))
    }

    /// Of those in flight that write something of `footprint`, the last one up to `up_to`, where
    /// `at` says how one stands; whom it gives no timestamp is left out.
    pub fn last_write(
        &self,
        footprint: Footprint,
        up_to: Timestamp,
        at: impl Fn(Slot) -> Option<Timestamp>,
    ) -> Option<Slot> {
        if let Some(index) = &self.index {
            return index.last_write(footprint, up_to, at);
        }
        let writes = self.writes(footprint).filter_map(|claim| Some((at(claim.slot)?, claim.slot)));
        writes.filter(|(at, _)| *at <= up_to).max().map(|(_, slot)| slot)
    }

    /// The lowest timestamp of what is in flight and writes, where `at` says how that stands.
    pub fn lowest_write(&self, at: impl Fn(Slot) -> Option<Timestamp>) -> Option<Timestamp> {
        match &self.index {
            Some(index) => index.lowest_write(),
            None => {
                let writes = self.few.iter().filter(|claim| claim.kind.is_write());
                writes.filter_map(|claim| at(claim.slot)).min()
            }
        }
    }

    /// The lowest end that a cut of those here gives the blob, whether it is applied or not.
    pub fn lowest_cut(&self) -> Option<u64> {
        let few = self.few.iter().filter_map(cut_end);
        few.chain(self.index.as_ref().and_then(|index| index.lowest_cut())).min()
    }

    /// Bytes that others in flight append, wherever that is.
    pub fn reserved(&self, slot: Slot, is_in_flight: impl Fn(Slot) -> bool) -> u64 {
        match &self.index {
            Some(index) => index.reserved(slot),
            None => {
                let others = self.few.iter().filter(|claim| claim.slot != slot);
                let in_flight = others.filter(|claim| is_in_flight(claim.slot));
                in_flight.filter_map(appended).fold(0, u64::saturating_add)
            }
        }
    }

    /// Adds claims of one transaction. When they are more than a few, `standing` says of each how
    /// it stands; who is in an index says so whenever that changes.
    pub fn insert(&mut self, own: Claims, few_max: usize, standing: impl Fn(Slot) -> Standing) {
        match &mut self.index {
            Some(index) => index.insert(own, &standing),
            None if self.few.is_empty() && own.len() <= few_max => self.few = own,
            None if self.few.len() + own.len() <= few_max => self.few.extend(own),
            None => {
                let mut index = ClaimIndex::default();
                for claim in std::mem::take(&mut self.few) {
                    index.insert(smallvec![claim], &standing);
                }
                index.insert(own, &standing);
                self.index = Some(Box::new(index));
            }
        }
        let is_one = self.index.is_none() || self.few.is_empty();
        debug_assert!(is_one, "a claim is in the index or among the few, not in both");
        debug_assert!(self.few.len() <= few_max, "what is more than a few is in an index");
    }

    /// Takes out what one transaction claims.
    pub fn remove(&mut self, slot: Slot) {
        match &mut self.index {
            Some(index) => index.remove(slot),
            None => self.few.retain(|claim| claim.slot != slot),
        }
        debug_assert!(self.of(slot).next().is_none(), "the next in this slot claims for itself");
    }

    /// One of them stands otherwise now.
    pub fn rank(&mut self, slot: Slot, standing: Standing) {
        if let Some(index) = &mut self.index {
            index.rank(slot, standing);
        }
    }
}

/// A visit of claims that are not of `slot`.
fn visiting_others<B>(
    slot: Slot,
    mut visit: impl FnMut(&Claim) -> ControlFlow<B>,
) -> impl FnMut(&Claim) -> ControlFlow<B> {
    move |other| {
        look();
        if other.slot == slot { ControlFlow::Continue(()) } else { visit(other) }
    }
}

/// Of `others` that one of the writes in `own` is applied after, the one with the highest timestamp
/// that `before` gives.
pub(super) fn nearest_of<'a>(
    own: impl Iterator<Item = &'a Claim>,
    others: impl Iterator<Item = &'a Claim> + Clone,
    before: impl Fn(&Claim) -> Option<Timestamp>,
) -> Option<(Timestamp, &'a Claim)> {
    let mut nearest: Option<(Timestamp, &Claim)> = None;
    for own in own {
        for other in others.clone().filter(|other| own.is_applied_after(other)) {
            if let Some(its) = before(other)
                && nearest.is_none_or(|(known, _)| its > known)
            {
                nearest = Some((its, other));
            }
        }
    }
    nearest
}

/// Bytes that a claim reserves at the end of the blob.
pub(super) fn appended(claim: &Claim) -> Option<u64> {
    match claim.kind {
        ClaimKind::Append { len } if claim.footprint.is_attributes => Some(len),
        ClaimKind::Append { .. }
        | ClaimKind::Read
        | ClaimKind::Condition
        | ClaimKind::Write { .. }
        | ClaimKind::Cut { .. } => None,
    }
}

/// The lowest end that a cut may give the blob, of what is held here: several of one transaction
/// are one claim, which has the highest of their ends.
pub(super) fn cut_end(claim: &Claim) -> Option<u64> {
    let range = claim.footprint.range;
    match claim.kind {
        ClaimKind::Cut { end, .. } if range.is_empty() => Some(end),
        ClaimKind::Cut { end, .. } => Some(end.min(range.start)),
        ClaimKind::Append { .. }
        | ClaimKind::Read
        | ClaimKind::Condition
        | ClaimKind::Write { .. } => None,
    }
}

/// A claim was looked at. Tests count that: it is what must not grow with the index.
#[cfg(not(test))]
#[inline]
pub(super) fn look() {}

#[cfg(test)]
pub(super) fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// How many claims were looked at, on this thread.
    pub(super) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
