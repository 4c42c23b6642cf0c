//! The claims on one blob that many write at once, with an index for each question about them.
//!
//! | question | found by |
//! |---|---|
//! | who in flight meets a write | `looked`, `attributes`, `cutting` |
//! | who in flight meets a write behind the end | the same, and `appends` |
//! | who in flight meets a read of bytes | `spans`, `cutting`, `appends` |
//! | who in flight meets a condition on bytes | the last in `order`; then as for a read |
//! | who in flight meets an append | `special`; all, if a write ends behind the blob (`ends`) |
//! | who comes before me | `order`, from my timestamp down; then `in_chunk`, `across`, `looked` |
//! | for whom a read waits | `order` in the same way; then `spans`, `cutting`, `appends` |
//! | who waits and came before me | `queue`, from my arrival down; or the `special_queue` |
//! | who is told whatever happens | `open` |
//! | how much is reserved at the end, and to where it is cut | counted |
//!
//! The rest, cuts and reads of size and existence, go over all in flight: they wait for the last of
//! them, or abort at the first. It must know of each transaction how it stands, and be told when
//! that changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{ByteRange, Timestamp};

use super::claims::{Candidate, Claims, Standing, appended, cut_end, look, nearest_of};
use super::in_flight::{Chunks, Claim, ClaimKind};
use super::record::Slot;
use super::spans::Spans;
use crate::footprint::Footprint;

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
    /// Of them, appends.
    appending: usize,
    /// Where plain writes end, and how many there.
    ends: BTreeMap<u64, u32>,
    /// The ends that cuts give the blob, and how many each.
    cuts: BTreeMap<u64, u32>,
    /// Those in flight.
    order: BTreeSet<(Timestamp, Slot)>,
    /// Of those in flight, what reads, requires or cuts something.
    special: BTreeSet<(Timestamp, Slot)>,
    /// Of those, what cuts something.
    cutting: BTreeSet<(Timestamp, Slot)>,
    /// Of those, what reads or requires size or existence.
    attributes: BTreeSet<(Timestamp, Slot)>,
    /// Of those in flight, what appends.
    appends: BTreeSet<(Timestamp, Slot)>,
    /// The bytes that those in flight read or require.
    looked: Spans,
    /// The bytes of plain writes in flight.
    spans: Spans,
    /// What writes in one chunk, in flight: by where that starts.
    in_chunk: BTreeSet<(u64, Timestamp, Slot)>,
    /// What writes across several: from the first to the last of them.
    across: Spans,
    /// Bytes that those in flight append.
    reserved: u128,
    /// Those that wait and have a place, by arrival.
    queue: BTreeMap<u64, Slot>,
    /// Of those, what reads, requires or cuts something.
    special_queue: BTreeMap<u64, Slot>,
    /// Those that wait and are told whatever happens.
    open: BTreeSet<Slot>,
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
        self.appending > 0
    }

    pub fn open(&self) -> impl Iterator<Item = Slot> {
        self.open.iter().copied()
    }

    /// See [`super::claims::BlobClaims::rivals_in_flight`]; those of the same transaction are
    /// visited too. The last come first: when they are applied, so are most of those before them.
    pub fn rivals_in_flight<B>(
        &self,
        own: Candidate<'_>,
        mut visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let last_first = |set: &BTreeSet<(Timestamp, Slot)>, visit: &mut _, count: usize| {
            self.visit(set.iter().rev().take(count).map(|(_, slot)| *slot), visit)
        };
        let is_bytes = !own.claim.footprint.is_attributes && !own.is_exclusive;
        match (self.is_met_by_all(own), own.claim.kind) {
            (true, kind @ (ClaimKind::Read | ClaimKind::Condition)) if is_bytes => {
                if kind == ClaimKind::Condition {
                    last_first(&self.order, &mut visit, STEPS_MAX)?;
                }
                let spans = self.spans.overlapping(own.claim.footprint.range);
                self.visit(spans, &mut visit)?;
                last_first(&self.cutting, &mut visit, usize::MAX)?;
                last_first(&self.appends, &mut visit, usize::MAX)
            }
            (true, _) => last_first(&self.order, &mut visit, usize::MAX),
            (false, ClaimKind::Write { end }) => {
                if is_outgrown(own, end) {
                    last_first(&self.appends, &mut visit, usize::MAX)?;
                }
                let at = |slot: Slot| match self.all.get(&slot)?.standing {
                    Standing::InFlight(at) => Some((at, slot)),
                    Standing::Waiting { .. } | Standing::Parked | Standing::Past => None,
                };
                let looked = self.looked.overlapping(own.claim.footprint.range);
                let mut looked: Vec<(Timestamp, Slot)> = looked.filter_map(at).collect();
                looked.sort_unstable();
                self.visit(looked.into_iter().rev().map(|(_, slot)| slot), &mut visit)?;
                if own.claim.footprint.is_attributes {
                    last_first(&self.attributes, &mut visit, usize::MAX)?;
                }
                last_first(&self.cutting, &mut visit, usize::MAX)
            }
            (false, _) => last_first(&self.special, &mut visit, usize::MAX),
        }
    }

    /// See [`super::claims::BlobClaims::rivals_waiting`].
    pub fn rivals_waiting<B>(
        &self,
        own: Candidate<'_>,
        mut visit: impl FnMut(&Claim) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(arrival) = own.before else { return ControlFlow::Continue(()) };
        let is_ending = match own.claim.kind {
            ClaimKind::Write { end } => is_outgrown(own, end),
            ClaimKind::Read
            | ClaimKind::Condition
            | ClaimKind::Cut { .. }
            | ClaimKind::Append { .. } => false,
        };
        let queue = match self.is_met_by_all(own) || is_ending {
            true => &self.queue,
            false => &self.special_queue,
        };
        self.visit(queue.range(..arrival).rev().map(|(_, slot)| *slot), &mut visit)
    }

    /// Whether plain writes can meet it, too.
    fn is_met_by_all(&self, own: Candidate<'_>) -> bool {
        let highest = self.ends.last_key_value().map_or(0, |(end, _)| *end);
        own.is_exclusive
            || match own.claim.kind {
                ClaimKind::Read | ClaimKind::Condition | ClaimKind::Cut { .. } => true,
                ClaimKind::Write { .. } => false,
                ClaimKind::Append { .. } => is_outgrown(own, highest),
            }
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
        let mut is_found = |other: Slot| {
            let found = if other == slot { None } else { meets(other) };
            if let Some(found) = found
                && nearest.is_none_or(|(known, _)| found.0 > known)
            {
                nearest = Some(found);
            }
            found.is_some()
        };
        if own.clone().any(|claim| claim.footprint.is_attributes) {
            self.order.iter().for_each(|(_, slot)| _ = is_found(*slot));
            return nearest;
        }
        for Claim { footprint, chunks, .. } in own.clone() {
            let ByteRange { start, end } = chunks.range;
            if chunks.is_one {
                let of_chunk = (start, Timestamp::ZERO, Slot::FIRST)..(start, at, Slot::FIRST);
                let mut last_first = self.in_chunk.range(of_chunk).rev();
                let _last = last_first.find(|(.., slot)| is_found(*slot));
            } else {
                let first = (start, Timestamp::ZERO, Slot::FIRST);
                let of_chunks = first..(end, Timestamp::ZERO, Slot::FIRST);
                self.in_chunk.range(of_chunks).for_each(|(.., slot)| _ = is_found(*slot));
            }
            let across = self.across.overlapping(chunks.range);
            let others = across.chain(self.looked.overlapping(footprint.range));
            others.for_each(|slot| _ = is_found(slot));
        }
        nearest
    }

    /// See [`super::claims::BlobClaims::last_write`].
    pub fn last_write(
        &self,
        footprint: Footprint,
        up_to: Timestamp,
        at: impl Fn(Slot) -> Option<Timestamp>,
    ) -> Option<Slot> {
        let is_wanted = |slot: Slot| {
            let mut claims = self.of(slot).inspect(|_| look());
            claims.any(|claim| claim.writes(footprint)) && at(slot).is_some()
        };
        let is_found = |(_, slot): &(Timestamp, Slot)| is_wanted(*slot);
        let mut below = self.order.range(..=(up_to, Slot::LAST)).rev().copied();
        let last = below.by_ref().take(STEPS_MAX).find(is_found);
        let last = last.or_else(|| match footprint.is_attributes {
            true => below.find(is_found),
            false => {
                let spans = self.spans.overlapping(footprint.range);
                let spans = spans.filter_map(|slot| Some((at(slot)?, slot)));
                let others = self.cutting.iter().chain(&self.appends).copied();
                spans.chain(others).filter(|it| it.0 <= up_to && is_found(it)).max()
            }
        });
        last.map(|(_, slot)| slot)
    }

    /// The lowest timestamp of those in flight that write.
    pub fn lowest_write(&self) -> Option<Timestamp> {
        let is_writing = |slot: Slot| self.of(slot).any(|claim| claim.kind.is_write());
        self.order.iter().find(|(_, slot)| is_writing(*slot)).map(|(at, _)| *at)
    }

    /// The lowest end that a cut gives the blob.
    pub fn lowest_cut(&self) -> Option<u64> {
        self.cuts.first_key_value().map(|(end, _)| *end)
    }

    /// Bytes that others in flight append.
    pub fn reserved(&self, slot: Slot) -> u64 {
        let own = self.all.get(&slot).filter(|own| matches!(own.standing, Standing::InFlight(_)));
        debug_assert!(self.appending > 0 || self.reserved == 0, "who reserves appends");
        let others = self.reserved - own.map_or(0, |own| reserves(&own.claims));
        u64::try_from(others).unwrap_or(u64::MAX)
    }

    /// Adds claims of one transaction.
    pub fn insert(&mut self, claims: Claims, standing: &impl Fn(Slot) -> Standing) {
        let Some(slot) = claims.first().map(|claim| claim.slot) else { return };
        self.leave(slot);
        self.len += claims.len();
        for claim in &claims {
            self.appending += usize::from(matches!(claim.kind, ClaimKind::Append { .. }));
            if let Some(end) = written_end(claim) {
                *self.ends.entry(end).or_default() += 1;
            }
            if let Some(end) = cut_end(claim) {
                *self.cuts.entry(end).or_default() += 1;
            }
        }
        let own = self.all.entry(slot);
        let own = own.or_insert_with(|| Own { claims: SmallVec::new(), standing: standing(slot) });
        own.claims.extend(claims);
        self.enter(slot);
    }

    pub fn remove(&mut self, slot: Slot) {
        self.leave(slot);
        let Some(own) = self.all.remove(&slot) else { return };
        self.len -= own.claims.len();
        for claim in own.claims {
            self.appending -= usize::from(matches!(claim.kind, ClaimKind::Append { .. }));
            if let Some(end) = written_end(&claim) {
                count_out(&mut self.ends, end);
            }
            if let Some(end) = cut_end(&claim) {
                count_out(&mut self.cuts, end);
            }
        }
    }

    pub fn rank(&mut self, slot: Slot, standing: Standing) {
        if self.all.get(&slot).is_some_and(|own| own.standing != standing) {
            self.leave(slot);
            self.all.get_mut(&slot).expect("it was just there").standing = standing;
            self.enter(slot);
        }
    }

    /// Puts it where one is found that stands as it does.
    fn enter(&mut self, slot: Slot) {
        let Some(own) = self.all.get(&slot) else { return };
        if own.standing.is_open() {
            self.open.insert(slot);
        }
        match own.standing {
            Standing::Waiting { arrival, .. } => {
                self.queue.insert(arrival, slot);
                if own.claims.iter().any(is_special) {
                    self.special_queue.insert(arrival, slot);
                }
            }
            Standing::InFlight(at) => {
                self.order.insert((at, slot));
                self.reserved += reserves(&own.claims);
                for claim in &own.claims {
                    match claim.chunks {
                        Chunks { range, is_one: true } => {
                            self.in_chunk.insert((range.start, at, slot));
                        }
                        // Of what writes nothing there is none.
                        Chunks { range, is_one: false } => self.across.insert(range, slot),
                    }
                    match claim.kind {
                        ClaimKind::Read | ClaimKind::Condition => {
                            self.special.insert((at, slot));
                            self.looked.insert(claim.footprint.range, slot);
                            if claim.footprint.is_attributes {
                                self.attributes.insert((at, slot));
                            }
                        }
                        ClaimKind::Cut { .. } => {
                            self.special.insert((at, slot));
                            self.cutting.insert((at, slot));
                        }
                        ClaimKind::Append { .. } => {
                            self.appends.insert((at, slot));
                        }
                        ClaimKind::Write { .. } => self.spans.insert(claim.footprint.range, slot),
                    }
                }
            }
            Standing::Parked | Standing::Past => {}
        }
    }

    /// Takes it from where one is found that stands as it does.
    fn leave(&mut self, slot: Slot) {
        let Some(own) = self.all.get(&slot) else { return };
        self.open.remove(&slot);
        match own.standing {
            Standing::Waiting { arrival, .. } => {
                self.queue.remove(&arrival);
                self.special_queue.remove(&arrival);
            }
            Standing::InFlight(at) => {
                self.order.remove(&(at, slot));
                for set in [&mut self.special, &mut self.cutting, &mut self.attributes] {
                    set.remove(&(at, slot));
                }
                self.appends.remove(&(at, slot));
                self.reserved -= reserves(&own.claims);
                for claim in &own.claims {
                    match claim.chunks {
                        Chunks { range, is_one: true } => {
                            self.in_chunk.remove(&(range.start, at, slot));
                        }
                        Chunks { range, is_one: false } => self.across.remove(range, slot),
                    }
                    match claim.kind {
                        ClaimKind::Read | ClaimKind::Condition => {
                            self.looked.remove(claim.footprint.range, slot);
                        }
                        ClaimKind::Write { .. } => self.spans.remove(claim.footprint.range, slot),
                        ClaimKind::Cut { .. } | ClaimKind::Append { .. } => {}
                    }
                }
            }
            Standing::Parked | Standing::Past => {}
        }
    }

    /// What holds between steps, where `standing` says how each stands.
    pub fn invariants(&self, standing: impl Fn(Slot) -> Standing) {
        let claims = || self.iter();
        assert_eq!(claims().count(), self.len, "claims are counted");
        let (mut expected, mut spans, mut looked) =
            (Self::default(), BTreeSet::new(), BTreeSet::new());
        for (slot, own) in &self.all {
            assert_eq!(own.standing, standing(*slot), "an index knows how each stands: {slot:?}");
            if let Standing::InFlight(_) = own.standing {
                for claim in own.claims.iter().filter(|claim| !claim.footprint.range.is_empty()) {
                    let ByteRange { start, end } = claim.footprint.range;
                    match claim.kind {
                        ClaimKind::Write { .. } => _ = spans.insert((*slot, start, end)),
                        ClaimKind::Read | ClaimKind::Condition => {
                            looked.insert((*slot, start, end));
                        }
                        ClaimKind::Cut { .. } | ClaimKind::Append { .. } => {}
                    }
                }
            }
            expected.insert(own.claims.clone(), &|_| own.standing);
        }
        assert_eq!(expected.order, self.order, "who is in flight has a place");
        assert_eq!(expected.special, self.special, "what is no plain write is known");
        assert_eq!(expected.cutting, self.cutting, "what cuts is known");
        assert_eq!(expected.attributes, self.attributes, "who looks at attributes is known");
        assert_eq!(expected.appends, self.appends, "what appends is known");
        assert_eq!(looked.len(), self.looked.len(), "the bytes looked at in flight are known");
        assert_eq!(spans.len(), self.spans.len(), "the bytes of plain writes in flight are known");
        assert_eq!(expected.in_chunk, self.in_chunk, "what writes in a chunk has a place there");
        assert_eq!(expected.across.len(), self.across.len(), "what writes across chunks is known");
        assert_eq!(expected.reserved, self.reserved, "what is reserved is counted");
        assert_eq!(expected.queue, self.queue, "who waits has a place");
        assert_eq!(expected.special_queue, self.special_queue, "who waits has a place");
        assert_eq!(expected.open, self.open, "who is told of everything is known");
        assert_eq!(expected.ends, self.ends, "the ends of all plain writes are known");
        assert_eq!(expected.cuts, self.cuts, "the ends that cuts give are known");
        assert_eq!(expected.appending, self.appending, "appends are counted");
    }
}

/// Whether a plain write that ends there moves the end of the blob, and the claim is on that.
fn is_outgrown(own: Candidate<'_>, end: u64) -> bool {
    own.end.is_some_and(|size| end > size)
}

/// Whether it meets plain writes.
fn is_special(claim: &Claim) -> bool {
    match claim.kind {
        ClaimKind::Read | ClaimKind::Condition | ClaimKind::Cut { .. } => true,
        ClaimKind::Write { .. } | ClaimKind::Append { .. } => false,
    }
}

/// Where a plain write ends that may move the blob's end.
fn written_end(claim: &Claim) -> Option<u64> {
    match claim.kind {
        ClaimKind::Write { end } if claim.footprint.is_attributes => Some(end),
        ClaimKind::Write { .. }
        | ClaimKind::Read
        | ClaimKind::Condition
        | ClaimKind::Cut { .. }
        | ClaimKind::Append { .. } => None,
    }
}

/// One fewer is there.
fn count_out(counts: &mut BTreeMap<u64, u32>, end: u64) {
    let count = counts.get_mut(&end).expect("it was counted");
    *count -= 1;
    if *count == 0 {
        counts.remove(&end);
    }
}

/// Bytes that a transaction reserves at the end of the blob.
fn reserves(claims: &[Claim]) -> u128 {
    claims.iter().filter_map(appended).map(u128::from).sum()
}
