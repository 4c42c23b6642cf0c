//! The claims on one blob that many write at once, with an index for each question about them.
//!
//! | question | found by |
//! |---|---|
//! | who meets a write | what is no plain write: `special`, and `appends` at the end |
//! | who meets a read of bytes | `spans`, `special`, `appends` |
//! | who meets an append | `special`; plain writes if one of them ends behind the blob (`ends`) |
//! | who comes before me | `order`, from my timestamp down |
//! | who waits | `waiting` |
//! | how much is reserved at the end | counted |
//!
//! The rest, cuts and reads of size and existence, go over all: they wait for all, or abort at the
//! first. It must know of each transaction how it stands, and be told when that changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::claims::{Candidate, Standing, appended, nearest_of};
use super::in_flight::{Claim, ClaimKind};
use super::record::Slot;
use super::spans::Spans;

/// Steps down in `order` before those are looked for that overlap. Where all overlap the first one
/// is it, as on a blob's size and existence.
const STEPS_MAX: usize = 32;

/// What a transaction has in an index.
#[derive(Clone, Debug)]
struct Own {
    claims: SmallVec<[Claim; 1]>,
    standing: Standing,
}

/// The claims on one blob that many write.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimIndex {
    all: HashMap<Slot, Own, FixedState>,
    /// Claims, together.
    len: usize,
    /// Those in flight.
    order: BTreeSet<(Timestamp, Slot)>,
    /// Those that wait.
    waiting: BTreeSet<Slot>,
    /// Those that read, require or cut something.
    special: BTreeSet<Slot>,
    /// Those that append.
    appends: BTreeSet<Slot>,
    /// The bytes of plain writes.
    spans: Spans,
    /// Where plain writes end, and how many there.
    ends: BTreeMap<u64, u32>,
    /// Bytes that those in flight append.
    reserved: u128,
}

impl ClaimIndex {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.all.values().flat_map(|own| &own.claims)
    }

    pub fn of(&self, slot: Slot) -> impl Iterator<Item = &Claim> + Clone {
        self.all.get(&slot).into_iter().flat_map(|own| &own.claims)
    }

    pub fn has_others(&self, slot: Slot) -> bool {
        self.all.len() > usize::from(self.all.contains_key(&slot))
    }

    pub fn has_appends(&self) -> bool {
        !self.appends.is_empty()
    }

    pub fn waiting(&self) -> impl Iterator<Item = Slot> {
        self.waiting.iter().copied()
    }

    /// See [`super::claims::BlobClaims::rivals`]; those of the same transaction are visited too.
    pub fn rivals<B>(
        &self,
        own: Candidate<'_>,
        mut visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Candidate { claim, end: size, is_exclusive } = own;
        let is_outgrown = |end: u64| size.is_some_and(|size| end > size);
        let highest = self.ends.last_key_value().map_or(0, |(end, _)| *end);
        let (are_all, with_appends) = match claim.kind {
            _ if is_exclusive => (true, false),
            ClaimKind::Read | ClaimKind::Condition if !claim.footprint.is_attributes => {
                let spans = self.spans.overlapping(claim.footprint.range);
                self.visit(spans, &mut visit)?;
                (false, true)
            }
            ClaimKind::Read | ClaimKind::Condition | ClaimKind::Cut { .. } => (true, false),
            ClaimKind::Write { end } => (false, is_outgrown(end)),
            ClaimKind::Append { .. } => (is_outgrown(highest), false),
        };
        if are_all {
            return self.iter().try_for_each(visit);
        }
        if with_appends {
            self.visit(self.appends.iter().copied(), &mut visit)?;
        }
        self.visit(self.special.iter().copied(), &mut visit)
    }

    fn visit<B>(
        &self,
        mut slots: impl Iterator<Item = Slot>,
        visit: &mut impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        slots.try_for_each(|slot| self.of(slot).try_for_each(&mut *visit))
    }

    /// See [`super::claims::BlobClaims::nearest`].
    pub fn nearest(
        &self,
        slot: Slot,
        at: Timestamp,
        before: impl Fn(&Claim) -> Option<Timestamp>,
    ) -> Option<(Timestamp, &Claim)> {
        let own = self.of(slot).filter(|claim| claim.kind.is_write());
        let meets = |other: Slot| nearest_of(own.clone(), self.of(other), &before);
        let is_other = |(_, other): &&(Timestamp, Slot)| *other != slot;
        let mut below = self.order.range(..(at, Slot::FIRST)).rev().filter(is_other);
        let next = below.by_ref().take(STEPS_MAX).find_map(|(_, other)| meets(*other));
        if next.is_some() || below.next().is_none() {
            return next;
        }
        let mut nearest: Option<(Timestamp, &Claim)> = None;
        let mut look = |other: Slot| {
            if other != slot
                && let Some(found) = meets(other)
                && nearest.is_none_or(|(known, _)| found.0 > known)
            {
                nearest = Some(found);
            }
        };
        if own.clone().any(|claim| claim.footprint.is_attributes) {
            self.all.keys().copied().for_each(look);
        } else {
            let spans = own.clone().flat_map(|claim| self.spans.overlapping(claim.footprint.range));
            spans.chain(self.special.iter().copied()).for_each(&mut look);
            self.appends.iter().copied().for_each(look);
        }
        nearest
    }

    /// The lowest timestamp of those in flight that write.
    pub fn lowest_write(&self) -> Option<Timestamp> {
        let is_writing = |slot: Slot| self.of(slot).any(|claim| claim.kind.is_write());
        self.order.iter().find(|(_, slot)| is_writing(*slot)).map(|(at, _)| *at)
    }

    /// Bytes that others in flight append.
    pub fn reserved(&self, slot: Slot) -> u64 {
        let own = self.all.get(&slot).filter(|own| matches!(own.standing, Standing::InFlight(_)));
        let others = self.reserved - own.map_or(0, |own| reserves(&own.claims));
        u64::try_from(others).unwrap_or(u64::MAX)
    }

    pub fn insert(&mut self, claim: Claim, standing: &impl Fn(Slot) -> Standing) {
        let slot = claim.slot;
        match claim.kind {
            ClaimKind::Read | ClaimKind::Condition | ClaimKind::Cut { .. } => {
                self.special.insert(slot);
            }
            ClaimKind::Append { .. } => {
                self.appends.insert(slot);
            }
            ClaimKind::Write { end } => {
                self.spans.insert(claim.footprint.range, slot);
                if claim.footprint.is_attributes {
                    *self.ends.entry(end).or_default() += 1;
                }
            }
        }
        self.len += 1;
        let known = self.all.get(&slot).map(|own| own.standing);
        let standing = known.unwrap_or_else(|| standing(slot));
        if known.is_none() {
            self.enter(slot, standing);
        }
        if let Standing::InFlight(_) = standing {
            self.reserved += u128::from(appended(&claim).unwrap_or(0));
        }
        let own = self.all.entry(slot);
        let own = own.or_insert_with(|| Own { claims: SmallVec::new(), standing });
        own.claims.push(claim);
    }

    pub fn remove(&mut self, slot: Slot) {
        self.rank(slot, Standing::Past);
        let Some(own) = self.all.remove(&slot) else { return };
        self.len -= own.claims.len();
        self.special.remove(&slot);
        self.appends.remove(&slot);
        for claim in own.claims {
            let ClaimKind::Write { end } = claim.kind else { continue };
            self.spans.remove(claim.footprint.range, slot);
            if claim.footprint.is_attributes {
                let count = self.ends.get_mut(&end).expect("it was counted");
                *count -= 1;
                if *count == 0 {
                    self.ends.remove(&end);
                }
            }
        }
    }

    pub fn rank(&mut self, slot: Slot, standing: Standing) {
        let Some(own) = self.all.get_mut(&slot) else { return };
        let old = std::mem::replace(&mut own.standing, standing);
        if old == standing {
            return;
        }
        let len = reserves(&own.claims);
        match old {
            Standing::Waiting => {
                self.waiting.remove(&slot);
            }
            Standing::InFlight(at) => {
                self.order.remove(&(at, slot));
                self.reserved -= len;
            }
            Standing::Past => {}
        }
        if let Standing::InFlight(_) = standing {
            self.reserved += len;
        }
        self.enter(slot, standing);
    }

    fn enter(&mut self, slot: Slot, standing: Standing) {
        match standing {
            Standing::Waiting => {
                self.waiting.insert(slot);
            }
            Standing::InFlight(at) => {
                self.order.insert((at, slot));
            }
            Standing::Past => {}
        }
    }

    /// What holds between steps, where `standing` says how each stands.
    pub fn invariants(&self, standing: impl Fn(Slot) -> Standing) {
        let claims = || self.iter();
        assert_eq!(claims().count(), self.len, "claims are counted");
        let mut reserved = 0;
        for (slot, own) in &self.all {
            assert_eq!(own.standing, standing(*slot), "an index knows how each stands: {slot:?}");
            assert_eq!(own.standing == Standing::Waiting, self.waiting.contains(slot));
            if let Standing::InFlight(at) = own.standing {
                assert!(self.order.contains(&(at, *slot)), "who is in flight has a place");
                reserved += reserves(&own.claims);
            }
        }
        let in_flight = |own: &&Own| matches!(own.standing, Standing::InFlight(_));
        assert_eq!(self.all.values().filter(in_flight).count(), self.order.len());
        assert_eq!(reserved, self.reserved, "what is reserved is counted");
        let is_plain = |claim: &&Claim| matches!(claim.kind, ClaimKind::Write { .. });
        let with_bytes = |claim: &&Claim| !claim.footprint.range.is_empty();
        let spans: BTreeSet<_> = claims()
            .filter(is_plain)
            .filter(with_bytes)
            .map(|claim| (claim.slot, claim.footprint.range.start, claim.footprint.range.end))
            .collect();
        assert_eq!(spans.len(), self.spans.len(), "the bytes of all plain writes are known");
        let ending = claims().filter(is_plain).filter(|claim| claim.footprint.is_attributes);
        let ends = self.ends.values().map(|count| *count as usize).sum::<usize>();
        assert_eq!(ending.count(), ends, "the ends of all plain writes are known");
    }
}

/// Bytes that a transaction reserves at the end of the blob.
fn reserves(claims: &[Claim]) -> u128 {
    claims.iter().filter_map(appended).map(u128::from).sum()
}
