//! Writes down what came of a client's calls.

use std::sync::Arc;

use tyr_protocol::Abort;
use tyr_protocol::commit::Outcomes;
use tyr_protocol::session;
use tyr_types::{
    ErrorKind, KeyRange, Listed, PieceRef, ReadCheck, ScanPage, Timestamp, Transaction,
};

use super::super::stretching::Stretching;
use super::super::uploading::{Afterwards, Uploading};
use super::{ASKS_MAX, Doing};
use crate::checker::{self, Attempted, Deed, Fate, Found, Seen};

impl Doing {
    /// A piece is uploaded; whether that was all to do.
    pub(super) fn has_uploaded(&mut self, piece: PieceRef) -> bool {
        let Some(uploading) = &mut self.uploading else { return false };
        uploading.uploaded(piece);
        uploading.is_uploaded() && self.afterwards == Afterwards::Leave
    }

    /// Some pieces are dropped; whether that was all to do.
    pub(super) fn has_dropped(&self) -> bool {
        let is_dropped = self.uploading.as_ref().is_some_and(Uploading::is_dropped);
        is_dropped && self.afterwards == Afterwards::Drop
    }
}

pub(super) fn committed(
    deed: &mut Deed,
    transaction: &Transaction,
    at: Timestamp,
    outcomes: Outcomes,
) {
    if let Deed::Transaction(attempted) = deed {
        attempted.id = Some(transaction.id);
        attempted.fate = Fate::Committed(at);
        attempted.answers = outcomes
            .iter()
            .map(|answered| checker::Answer {
                blob: answered.blob as usize,
                operation: answered.operation as usize,
                outcome: answered.outcome,
            })
            .collect();
    }
}

/// Whether that was the last word.
pub(super) fn aborted(
    deed: &mut Deed,
    doing: &mut Doing,
    transaction: Arc<Transaction>,
    abort: Abort,
) -> bool {
    let Deed::Transaction(attempted) = deed else { return true };
    attempted.id = Some(transaction.id);
    let is_unknown = abort.kind == ErrorKind::TimedOut;
    if is_unknown && doing.asks < ASKS_MAX {
        doing.asks += 1;
        doing.asked = Some(transaction);
        return false;
    }
    attempted.fate = if is_unknown { Fate::Unknown } else { Fate::Aborted(abort) };
    true
}

pub(super) fn read(deed: &mut Deed, doing: &mut Doing, seen: session::Seen, now_us: u64) {
    if let Some(mine) = seen_of(deed).last_mut() {
        saw(mine, &seen, now_us);
    }
    doing.checks.extend(seen.check());
    doing.began.extend(seen.began);
}

/// It was told which bytes are written of what it asked about last.
pub(super) fn stretched(
    deed: &mut Deed,
    stretching: &mut Stretching,
    seen: &session::Seen,
    now_us: u64,
) {
    let Deed::Snapshot(all) = deed else { return };
    let Some(asked) = all.pop() else { return };
    let Some(first) = all.first() else { return };
    let at = first.at.expect("the first read of a snapshot told its moment");
    let size = match &first.found {
        Found::Bytes { size, .. } => size.expect("the first read asked where the blob ends"),
        Found::Absent | Found::Nothing | Found::Refused(_) => 0,
    };
    all.extend(stretching.told(&asked, &seen.bytes, (at, size), now_us));
}

/// A page came: what it shows, and what a transaction hands in for it.
pub(super) fn listed(
    deed: &mut Deed,
    doing: &mut Doing,
    page: ScanPage,
    pages: &mut Vec<checker::Listed>,
    now_us: u64,
) {
    let seen = doing.listing.listed(page, pages, now_us);
    match deed {
        Deed::Snapshot(all) => all.extend(seen),
        Deed::Transaction(attempted) => {
            let listed = pages.last().expect("it was just written down");
            doing.checks.extend(checked(attempted, listed));
            attempted.reads.extend(seen);
        }
        Deed::Read(_) | Deed::Moment(_) | Deed::ReadMany(_) => {}
    }
}

/// What a transaction hands in for a page that it listed, at the S of its first read (Q3).
fn checked(attempted: &Attempted, listed: &checker::Listed) -> Option<ReadCheck> {
    let first = attempted.reads.first()?;
    let KeyRange { start, end } = listed.scan.keys();
    let keys = KeyRange { start, end: listed.page.resume.clone().or(end) };
    let listed = Listed { keys, is_keys_only: listed.scan.is_keys_only() };
    Some(ReadCheck::of_listing(first.want.blob.clone(), listed, first.at?))
}

pub(super) fn saw(mine: &mut Seen, seen: &session::Seen, now_us: u64) {
    let want = &mine.want;
    let is_sized = want.is_attributes || (seen.bytes.len() as u64) < want.range.len();
    mine.end_us = Some(now_us);
    mine.at = seen.at;
    mine.found = match seen.is_absent() {
        true => Found::Absent,
        false => {
            let size = if is_sized { seen.size.flatten() } else { None };
            Found::Bytes { bytes: seen.bytes.clone(), size }
        }
    };
}

pub(super) fn failed(deed: &mut Deed, doing: &mut Doing, abort: Abort, now_us: u64) {
    if let Deed::Transaction(attempted) = deed
        && attempted.fate == Fate::Pending
    {
        // It was not even named: the session did not take it in.
        attempted.fate = Fate::Aborted(abort);
        return;
    }
    match deed {
        Deed::Snapshot(all) | Deed::Transaction(Attempted { reads: all, .. }) => {
            all.extend(doing.listing.refused(&abort, now_us));
        }
        // It never came to the first read.
        Deed::Moment(all) if all.is_empty() => {
            let first = doing.reads.front().cloned();
            all.extend(first.map(|want| Seen::asked(want, now_us)));
        }
        Deed::Read(_) | Deed::Moment(_) | Deed::ReadMany(_) => {}
    }
    for seen in seen_of(deed).iter_mut().filter(|seen| seen.end_us.is_none()) {
        seen.end_us = Some(now_us);
        seen.found = Found::Refused(abort.clone());
    }
}

pub(super) fn seen_of(deed: &mut Deed) -> &mut [Seen] {
    match deed {
        Deed::Transaction(attempted) => &mut attempted.reads,
        Deed::Read(seen) => std::slice::from_mut(seen),
        Deed::Snapshot(seen) | Deed::Moment(seen) | Deed::ReadMany(seen) => seen,
    }
}
