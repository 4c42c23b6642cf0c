//! May this transaction be validated here now? (C1, C2, C4, conditions)
//!
//! Two questions. Against the other claims on its blobs: is one in its way? Then against the
//! applied state: do its conditions hold? The second is asked only when no condition has a write
//! in flight over it, so the applied state is all there is.
//!
//! ```text
//!   own \ other      validated, undecided    decided, not applied    waiting, came earlier
//!   read      vs write      abort (C1)             abort (C1)               wait
//!   condition vs write      wait  (C1)             wait  (C1)               wait
//!   write vs read, cond.    wait  (C2)               go                     wait
//!   append vs end mover     wait                    wait                    wait
//!   end mover vs append     wait                     go *                   wait
//!   write vs write           go   (C4)               go                      go
//! ```
//!
//! \* A cut whose chain may not have all chunks waits until what grows the blob past that is
//! applied, and the other way round until it is decided: then it shows what there is to cut.
//!
//! Those who cannot meet are not compared: a plain write beside others on a blob looks at what is
//! no plain write ([`super::claim_index`]).
//!
//! The last column keeps those that wait from being overtaken for ever: whoever comes later and
//! is in the way of an earlier one stands behind it, at the head of its chain.
//!
//! Waiting for a decision is waiting for what is further along the node order, so it cannot run in
//! a circle. Waiting until something is applied could, since that may wait for what comes before
//! it at another authority (C9): so who is validated at nodes before this one withdraws that, waits
//! without holding anyone up, and comes again from the head. Nor does it stand behind those that
//! wait.

use std::ops::ControlFlow;

use tyr_types::{ErrorKind, Existence, Expected, NodeId, Operation, OperationId};

use super::append;
use super::claims::{BlobClaims, Candidate};
use super::effect::{Placed, Placements};
use super::in_flight::{Claim, ClaimKind, InFlight};
use super::kept_off::Needed;
use super::listed::check_listing;
use super::record::{Record, Records, Slot, State};
use crate::abort::Abort;
use crate::footprint::Footprint;
use crate::rule::{Rule, Rules};
use crate::upload::Pieces;
use crate::view::View;

/// The text of an abort whose reads are stale.
pub(crate) const STALE: &str = "what the transaction read here has changed since; run it again";

/// What validation came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It may be validated now; these appends have an explicit offset.
    Valid(Placements),
    /// Another transaction is in its way. With which one: when that is decided, applied or given
    /// up it is to be asked again, and not before.
    Wait(Option<Slot>),
    /// Its appends on these blobs (places in the transaction) need the end for themselves.
    NeedsEnd(Vec<usize>),
    /// Its chain does not have all the chunks that it touches of this blob (a place in the
    /// transaction), which ends at `end`.
    Misplaced { blob: u32, end: u64 },
    /// Others must be applied first, and they may wait for what it has validated before (C9).
    Park,
    /// Leases that others hold keep it off this (K2).
    KeptOff(Vec<Needed>),
    /// It cannot commit.
    Abort(Abort),
}

/// Everything that validation looks at.
pub(crate) struct Validation<'a, V> {
    pub node: NodeId,
    pub records: &'a Records,
    pub in_flight: &'a InFlight,
    pub pieces: &'a Pieces,
    pub rules: Rules,
    pub view: &'a V,
}

/// What another claim means for one's own.
#[derive(Clone, Copy)]
pub(super) enum Obstacle {
    None,
    /// It waits, for this one.
    Wait(Slot),
    Park,
    Stale,
}

impl<V: View> Validation<'_, V> {
    /// Whether the transaction in `slot` may be validated.
    pub fn verdict(&self, slot: Slot) -> Verdict {
        let record = &self.records[slot];
        debug_assert!(record.state.is_waiting(), "C1, C2: asked before anything is proposed");
        if let Some(abort) = self.stale_read(record) {
            return Verdict::Abort(abort);
        }
        let kept_off = self.kept_off(record);
        if !kept_off.is_empty() {
            return Verdict::KeptOff(kept_off);
        }
        if self.records.len() > 1 {
            let obstacle = self.obstacle(slot, record);
            match obstacle.and_then(|met| self.listed_obstacle(slot, record, met)) {
                Ok(Obstacle::None) => {}
                Ok(Obstacle::Park) => {
                    debug_assert!(has_passed(record), "C9: the head has nothing to withdraw");
                    return Verdict::Park;
                }
                // Its reads may be found stale meanwhile, by whatever happens.
                Ok(Obstacle::Wait(rival)) => {
                    debug_assert!(self.records.get(rival).is_some(), "a rival can wake it");
                    let is_woken = record.transaction.reads.is_empty();
                    return Verdict::Wait(is_woken.then_some(rival));
                }
                Ok(Obstacle::Stale) => unreachable!("a stale read is an abort"),
                Err(abort) => return Verdict::Abort(abort),
            }
        }
        let crossing = self.crossing(slot, record);
        if !crossing.is_empty() {
            return Verdict::NeedsEnd(crossing);
        }
        match self.conditions(slot, record) {
            Ok(placed) => match self.misplaced(record, &placed) {
                None => match self.lacking(record) {
                    None => Verdict::Valid(placed),
                    Some(abort) => Verdict::Abort(abort),
                },
                Some((blob, end)) => Verdict::Misplaced { blob, end },
            },
            Err(abort) => Verdict::Abort(abort),
        }
    }

    /// The first blob, and its size, that the chain does not fit although the transaction appends
    /// to it or cuts it. Asked where nothing in flight moves the end otherwise.
    fn misplaced(&self, record: &Record, placed: &Placements) -> Option<(u32, u64)> {
        let place = record.chain.place(record.position);
        let blobs = (0..).zip(&record.transaction.blobs);
        let moving =
            blobs.filter(|(_, entry)| entry.operations.iter().any(Operation::depends_on_end));
        moving.filter(|(_, entry)| place.is_end_authority(&entry.blob)).find_map(
            |(index, entry)| {
                let size = self.view.stat(&entry.blob).unwrap_or(0);
                let placed = placed.iter().find(|placed| placed.index == index);
                let start = placed.map_or(size, |placed| placed.offset);
                let chain = &record.chain;
                let guess = chain.ends().iter().find(|(place, _)| *place == index);
                let guess = guess.map_or(0, |(_, end)| *end);
                append::is_misguessed(entry, chain, guess, size, start).then_some((index, size))
            },
        )
    }

    /// C1: a read is stale when a newer version that overlaps it was applied; so is a listing (Q3).
    fn stale_read(&self, record: &Record) -> Option<Abort> {
        if !self.rules.hold(Rule::C1) {
            return None;
        }
        let place = record.chain.place(record.position);
        for read in &record.transaction.reads {
            if let Some(listed) = &read.listed {
                if place.is_end_authority(&read.blob)
                    && let Err(abort) = check_listing(self.rules, read, listed, self.view)
                {
                    return Some(abort);
                }
                continue;
            }
            let footprint = Footprint { range: read.range, is_attributes: read.is_attributes };
            let mut is_stale = false;
            place.shares(&read.blob, footprint, |share| {
                if share.authority == self.node {
                    let Footprint { range, is_attributes } = share.footprint;
                    let newest = self.view.newest_overlapping(&read.blob, range, is_attributes);
                    is_stale |= newest > read.at;
                }
            });
            if is_stale {
                return Some(Abort::at(&read.blob, ErrorKind::Conflict, STALE));
            }
        }
        None
    }

    /// Whether other transactions are in the way; an error when one makes a read stale.
    fn obstacle(&self, slot: Slot, record: &Record) -> Result<Obstacle, Abort> {
        let mut worst = Obstacle::None;
        let is_exclusive = !self.rules.hold(Rule::C4);
        let before = (!has_passed(record)).then_some(record.arrival);
        let has_reads = !record.transaction.reads.is_empty();
        for blob in record.blobs() {
            let claims = self.in_flight.claims(blob);
            if !claims.has_others(slot) {
                continue;
            }
            let size = if claims.has_appends() { self.view.stat(blob).unwrap_or(0) } else { 0 };
            for own in claims.of(slot) {
                let end = append::is_at_end(own, self.node).then_some(size);
                let candidate = Candidate { claim: own, end, before, is_exclusive };
                let mut meet = |other: &Claim, is_any: bool| {
                    match self.meeting(record, own, other, size) {
                        Obstacle::Stale => return ControlFlow::Break(true),
                        met => worst = self.longer(worst, met),
                    }
                    match worst {
                        Obstacle::Wait(_) if is_any => ControlFlow::Break(false),
                        Obstacle::None | Obstacle::Wait(_) | Obstacle::Park | Obstacle::Stale => {
                            ControlFlow::Continue(())
                        }
                    }
                };
                // Whoever holds nothing validated waits for one as for any, and looks no further.
                let is_any = before.is_some() && own.kind != ClaimKind::Read && !is_exclusive;
                let is_stale = visit_rivals(claims, candidate, is_any, &mut meet);
                if is_stale == ControlFlow::Break(true) {
                    return Err(Abort::at(blob, ErrorKind::Conflict, STALE));
                }
                if is_any && !has_reads && matches!(worst, Obstacle::Wait(_)) {
                    return Ok(worst);
                }
            }
        }
        Ok(worst)
    }

    /// Whichever keeps a transaction longer. Of two that it waits for, the one that waits itself
    /// and came last; else the one with the higher timestamp.
    pub(super) fn longer(&self, left: Obstacle, right: Obstacle) -> Obstacle {
        let rank = |obstacle: Obstacle| match obstacle {
            Obstacle::None => (0, 0, None),
            Obstacle::Wait(rival) => {
                let rival = &self.records[rival];
                let at = rival.state.in_flight_at();
                (1, if at.is_none() { rival.arrival } else { 0 }, at)
            }
            Obstacle::Park => (2, 0, None),
            Obstacle::Stale => (3, 0, None),
        };
        if rank(right) > rank(left) { right } else { left }
    }

    /// What `other` means for `own`: the table at the top.
    pub(super) fn meeting(
        &self,
        record: &Record,
        own: &Claim,
        other: &Claim,
        size: u64,
    ) -> Obstacle {
        debug_assert_ne!(own.slot, other.slot, "a transaction is not in its own way");
        if !own.footprint.overlaps(other.footprint) {
            return Obstacle::None;
        }
        let is_own_write = own.kind.is_write();
        // Another node may have looked after the end for the other one, by another map.
        let is_end = append::is_at_end(own, self.node) && other.footprint.is_attributes;
        let is_met = match (is_own_write, other.kind.is_write()) {
            (false, false) => false,
            (false, true) => self.rules.hold(Rule::C1),
            (true, false) => self.rules.hold(Rule::C2),
            (true, true) => {
                let is_disagreed = append::disagree_on_end(own.kind, other.kind, size);
                is_end && is_disagreed && self.rules.hold(Rule::End)
            }
        };
        let is_write_conflict = is_own_write && other.kind.is_write() && !self.rules.hold(Rule::C4);
        if !is_met && !is_write_conflict {
            return Obstacle::None;
        }
        let rival = &self.records[other.slot];
        if is_write_conflict && rival.state.in_flight_at().is_some() {
            return Obstacle::Stale;
        }
        match rival.state {
            State::Waiting if rival.arrival < record.arrival && !has_passed(record) => {
                Obstacle::Wait(other.slot)
            }
            State::Waiting
            | State::Parked
            | State::Fenced
            | State::Applied(_)
            | State::Aborting
            | State::Aborted => Obstacle::None,
            State::Persisting(_) | State::Validated(_) | State::Decided(_) => match own.kind {
                ClaimKind::Read => Obstacle::Stale,
                ClaimKind::Condition | ClaimKind::Append { .. } if other.kind.is_write() => {
                    until_applied(record, other.slot, rival.state)
                }
                // How far there is to cut shows when what grows the blob is applied.
                ClaimKind::Cut { reach, .. } if other.kind.is_write() && reach < u64::MAX => {
                    until_applied(record, other.slot, rival.state)
                }
                ClaimKind::Condition
                | ClaimKind::Append { .. }
                | ClaimKind::Write { .. }
                | ClaimKind::Cut { .. } => match rival.state.is_undecided() {
                    true => Obstacle::Wait(other.slot),
                    false => Obstacle::None,
                },
            },
        }
    }

    fn crossing(&self, slot: Slot, record: &Record) -> Vec<usize> {
        let mut crossing = Vec::new();
        if !self.rules.hold(Rule::End) {
            return crossing;
        }
        for (index, entry) in record.transaction.blobs.iter().enumerate() {
            if entry.operations.iter().any(is_append) {
                let claims = self.in_flight.claims(&entry.blob);
                let (blob, node) = (&entry.blob, self.node);
                if append::is_crossing(self.records, claims, slot, node, blob, self.view) {
                    crossing.push(index);
                }
            }
        }
        crossing
    }

    /// Looks at the conditions, and where appends go that have the end for themselves.
    fn conditions(&self, slot: Slot, record: &Record) -> Result<Placements, Abort> {
        let mut placed = Placements::new();
        let place = record.chain.place(record.position);
        for (index, entry) in (0..).zip(&record.transaction.blobs) {
            let is_conditional = entry.operations.iter().any(Operation::is_condition);
            if !is_conditional && !entry.operations.iter().any(is_append) {
                continue;
            }
            let claims = self.in_flight.claims(&entry.blob);
            let has_end = claims.of(slot).any(|claim| {
                claim.kind == ClaimKind::Condition && append::is_at_end(claim, self.node)
            });
            if !is_conditional && !has_end {
                continue;
            }
            let holds = |footprint: Footprint, visit: &mut dyn FnMut(Footprint)| {
                place.shares(&entry.blob, footprint, |share| {
                    if share.authority == self.node {
                        visit(share.footprint);
                    }
                });
            };
            let appended = look(self.rules, index, entry, self.view, has_end, holds)?;
            if let (true, Some(offset)) = (has_end, appended) {
                placed.push(Placed { index, offset });
            }
        }
        debug_assert!(placed.is_sorted_by(|left, right| left.index < right.index), "one a blob");
        Ok(placed)
    }
}

/// Visits the claims that `own` may meet; says of each whether any that it has to wait for will do.
/// Then those come first that wait themselves, and of them the last: so each is woken by one.
fn visit_rivals<B>(
    claims: &BlobClaims,
    own: Candidate<'_>,
    is_any: bool,
    meet: &mut impl FnMut(&Claim, bool) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if is_any && claims.is_indexed() {
        claims.rivals_waiting(own, |other| meet(other, true))?;
        return claims.rivals_in_flight(own, |other| meet(other, true));
    }
    claims.rivals_in_flight(own, |other| meet(other, false))?;
    claims.rivals_waiting(own, |other| meet(other, true))
}

/// Whether it is validated at a node before this: whether others may wait for it there (C6, C9).
fn has_passed(record: &Record) -> bool {
    record.position > 0
}

/// Waiting until another is applied. That one may wait, at another node, for what comes before it
/// there to be shown (C9): so nobody who holds something validated waits for it.
fn until_applied(record: &Record, rival: Slot, state: State) -> Obstacle {
    match state {
        State::Decided(_) if has_passed(record) => Obstacle::Park,
        State::Waiting
        | State::Parked
        | State::Fenced
        | State::Persisting(_)
        | State::Validated(_)
        | State::Decided(_)
        | State::Applied(_)
        | State::Aborting
        | State::Aborted => Obstacle::Wait(rival),
    }
}

fn is_append(operation: &Operation) -> bool {
    matches!(operation, Operation::Append { .. })
}

/// Looks at the conditions on one blob, the transaction's number `index`; answers where its first
/// append goes.
///
/// Conditions on size and existence see what the transaction's own operations before them did;
/// `compare` sees the bytes as they are before the transaction. `shares` visits the shares of a
/// footprint whose authority looks here; `has_end` says whether the attributes are among them.
pub(crate) fn look(
    rules: Rules,
    index: u32,
    entry: &tyr_types::BlobOperations,
    view: &impl View,
    has_end: bool,
    shares: impl Fn(Footprint, &mut dyn FnMut(Footprint)),
) -> Result<Option<u64>, Abort> {
    let blob = &entry.blob;
    let mut size = if has_end { view.stat(blob) } else { None };
    let mut appended = None;
    for (place, operation) in (0..).zip(&entry.operations) {
        let refuse = |kind, reason| {
            let abort = Abort::at(blob, kind, reason);
            Err(match rules.hold(Rule::C12) {
                true => abort.of_operation(OperationId { blob: index, operation: place }),
                false => abort,
            })
        };
        match operation {
            Operation::Create if has_end && size.is_some() => {
                let reason = "the blob to create exists; delete it first, or write without create";
                return refuse(ErrorKind::AlreadyExists, reason);
            }
            Operation::Expect { existence } if has_end && *existence != Existence::of(size) => {
                let (kind, reason) = unexpected(*existence);
                return refuse(kind, reason);
            }
            Operation::Append { expected, .. }
                if has_end && expected.is_some_and(|end| end != size.unwrap_or(0)) =>
            {
                let reason = "the blob does not end where the append expects it to";
                return refuse(ErrorKind::Conflict, reason);
            }
            Operation::Append { .. } => appended = appended.or(Some(size.unwrap_or(0))),
            Operation::Compare { offset, expected } => {
                let mut holds = true;
                if let Some(required) = Footprint::required(operation) {
                    shares(required, &mut |share| {
                        let (from, len) = match share.range.is_empty() {
                            true => (0, 0),
                            false => (share.range.start - offset, share.range.len()),
                        };
                        debug_assert!(from + len <= expected.len(), "a share is of what is asked");
                        holds &=
                            view.is_as_expected(blob, offset + from, &expected.part(from, len));
                    });
                }
                if !holds {
                    return refuse(ErrorKind::Conflict, unequal(expected));
                }
            }
            Operation::Create
            | Operation::Write { .. }
            | Operation::Clear { .. }
            | Operation::Apply { .. }
            | Operation::Truncate { .. }
            | Operation::Replace { .. }
            | Operation::Delete
            | Operation::Expect { .. } => {}
        }
        size = operation.size_after(size);
    }
    Ok(appended)
}

/// Why a transaction is refused whose blob does not exist, or exists, as it expects.
fn unexpected(expected: Existence) -> (ErrorKind, &'static str) {
    match expected {
        Existence::Absent => (
            ErrorKind::AlreadyExists,
            "the blob is expected to be absent, and exists; look what it is, or delete it first",
        ),
        Existence::Present => {
            (ErrorKind::NotFound, "the blob is expected to exist, and is absent; create it first")
        }
    }
}

/// Why a transaction is refused that compared something.
fn unequal(expected: &Expected) -> &'static str {
    match expected {
        Expected::Bytes(_) => "the bytes compared are not the ones expected",
        Expected::Number { .. } => "the number compared does not stand to the other as expected",
    }
}
