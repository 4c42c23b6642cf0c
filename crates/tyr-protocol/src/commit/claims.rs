//! The claims on one blob, and the questions about them: who meets mine, who comes before me.
//!
//! A few are gone over one by one. Beyond [`FEW_MAX`] they are in a [`ClaimIndex`], so that
//! what a transaction costs does not grow with how many others are in flight beside it. Both answer
//! the same; the few say what is meant, and the index is held to them by the tests.

use std::ops::ControlFlow;

use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::claim_index::ClaimIndex;
use super::in_flight::{Claim, ClaimKind};
use super::record::{Slot, State};

/// Claims on a blob up to which there is no index: looking at so many costs less than to keep one.
pub(super) const FEW_MAX: usize = 32;

/// What one transaction claims of a blob.
pub(crate) type Claims = SmallVec<[Claim; 1]>;

/// How a transaction stands to the others on its blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It waits to be validated.
    Waiting,
    /// Validated and not applied: it cannot take effect below this.
    InFlight(Timestamp),
    /// It is applied or given up.
    Past,
}

impl Standing {
    pub fn of(state: State) -> Self {
        match state.in_flight_at() {
            Some(at) => Self::InFlight(at),
            None if state.is_waiting() => Self::Waiting,
            None => Self::Past,
        }
    }
}

/// A claim that is to be validated, and what it depends on whom it can meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub claim: &'a Claim,
    /// The blob's size, where this node looks after its end and the claim is on that.
    pub end: Option<u64>,
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

    /// Visits claims of others until told to stop; whoever can meet this one is among them.
    pub fn rivals<B>(
        &self,
        own: Candidate<'_>,
        mut visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut visit = |other: &Claim| {
            look();
            if other.slot == own.claim.slot { ControlFlow::Continue(()) } else { visit(other) }
        };
        self.few.iter().try_for_each(&mut visit)?;
        match &self.index {
            Some(index) => index.rivals(own, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// Of the others' claims that overlap a write of `slot`, the one with the highest timestamp
    /// that `before` gives; of several of one transaction the first. No timestamp is `at` or above,
    /// and none is given to a transaction that is not in flight.
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

    /// Those who may wait to be validated.
    pub fn waiting(&self) -> impl Iterator<Item = Slot> {
        let index = self.index.iter().flat_map(|index| index.waiting());
        self.few.iter().map(|claim| claim.slot).chain(index).inspect(|_| look())
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
            Some(index) => own.into_iter().for_each(|claim| index.insert(claim, &standing)),
            None if self.few.is_empty() && own.len() <= few_max => self.few = own,
            None if self.few.len() + own.len() <= few_max => self.few.extend(own),
            None => {
                let mut index = ClaimIndex::default();
                let all = std::mem::take(&mut self.few).into_iter().chain(own);
                all.for_each(|claim| index.insert(claim, &standing));
                self.index = Some(Box::new(index));
            }
        }
    }

    /// Takes out what one transaction claims.
    pub fn remove(&mut self, slot: Slot) {
        match &mut self.index {
            Some(index) => index.remove(slot),
            None => self.few.retain(|claim| claim.slot != slot),
        }
    }

    /// One of them stands otherwise now.
    pub fn rank(&mut self, slot: Slot, standing: Standing) {
        if let Some(index) = &mut self.index {
            index.rank(slot, standing);
        }
    }
}

/// Of `others` that overlap one of `own`, the one with the highest timestamp that `before` gives.
pub(super) fn nearest_of<'a>(
    own: impl Iterator<Item = &'a Claim>,
    others: impl Iterator<Item = &'a Claim> + Clone,
    before: impl Fn(&Claim) -> Option<Timestamp>,
) -> Option<(Timestamp, &'a Claim)> {
    let mut nearest: Option<(Timestamp, &Claim)> = None;
    for own in own {
        for other in others.clone().filter(|other| other.footprint.overlaps(own.footprint)) {
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

/// A claim was looked at. Tests count that: it is what must not grow with the index.
#[cfg(not(test))]
#[inline]
fn look() {}

#[cfg(test)]
fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// How many claims were looked at, on this thread.
    pub(super) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
