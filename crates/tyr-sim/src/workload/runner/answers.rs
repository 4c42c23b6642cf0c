//! Writes down what came of a client's calls.

use std::sync::Arc;

use tyr_protocol::Abort;
use tyr_protocol::commit::Outcomes;
use tyr_protocol::session;
use tyr_types::{ErrorKind, Timestamp, Transaction};

use super::{ASKS_MAX, Doing};
use crate::checker::{self, Deed, Fate, Found, Seen};

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

pub(super) fn failed(deed: &mut Deed, abort: Abort, now_us: u64) {
    if let Deed::Transaction(attempted) = deed
        && attempted.fate == Fate::Pending
    {
        // It was not even named: the session did not take it in.
        attempted.fate = Fate::Aborted(abort);
        return;
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
