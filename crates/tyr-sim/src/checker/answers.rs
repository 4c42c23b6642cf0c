//! What clients were told, against what they may be told and what took effect.

use std::collections::BTreeSet;

use tyr_protocol::Abort;
use tyr_protocol::commit::PIECES_LACKING;
use tyr_protocol::movement::scrub::is_repair;
use tyr_types::{BlobOperations, ErrorKind, Existence, KeyspaceId, Operation, Timestamp};

use super::history::{Attempted, Deed, Entry, Fate, Found, History, Seen};
use super::timeline::Applied;

/// Which refusals are legitimate in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Whether faults were so bad that nodes may not have been there: then anything may be refused
    /// as `Unavailable`, and time out. On a healthy cluster nothing is, and transactions without
    /// reads and conditions never abort.
    pub is_unavailable: bool,
    /// Whether what was uploaded ahead may be out of everybody's reach. It is not where nodes only
    /// come and change their weights: who lacks it asks others (U4).
    pub are_pieces_lost: bool,
    /// Whether what disks hold may be damaged.
    pub is_damaged: bool,
    /// How long a snapshot reads the blob that it began with (V1), and one of everything all blobs
    /// (V5): the read timeout. `None` when
    /// nodes may have lost what they knew of snapshots in use.
    pub snapshot_us: Option<u64>,
    /// How long it finds versions of others (V4).
    pub linger_us: u64,
    /// Keyspaces that are dropped, each from when on: what is asked of them may not be found.
    pub dropped: Vec<(KeyspaceId, u64)>,
}

impl Allowed {
    fn is_dropped(&self, keyspace: KeyspaceId, end_us: Option<u64>) -> bool {
        let ended_us = end_us.unwrap_or(u64::MAX);
        self.dropped.iter().any(|(dropped, since_us)| *dropped == keyspace && ended_us >= *since_us)
    }
}

/// Liveness: everything that was begun has ended.
///
/// # Errors
/// What is still under way.
pub fn everything_ended(history: &History) -> Result<(), String> {
    let open = history.entries.iter().find(|entry| entry.end_us.is_none());
    open.map_or(Ok(()), |entry| Err(format!("{} never ended", entry.name())))
}

/// What was acknowledged took effect, once, and what was aborted never did; nothing took effect
/// that nobody asked for.
///
/// # Errors
/// What did not, or did.
pub fn effects_are_as_told(history: &History, applied: &Applied) -> Result<(), String> {
    if let Some(clash) = applied.clash() {
        return Err(clash.to_owned());
    }
    let mut ids = BTreeSet::new();
    let mut is_unnamed = false;
    for (_, entry, attempted) in history.transactions() {
        let Some(id) = attempted.id else {
            is_unnamed |= matches!(attempted.fate, Fate::Pending | Fate::Unknown);
            continue;
        };
        if !ids.insert(id) {
            return Err(format!("{}: two transactions have this id", entry.name()));
        }
        let mut written = attempted.blobs.iter().filter(|entry| is_writing(entry));
        match (&attempted.fate, applied.at(id)) {
            (Fate::Committed(at), None)
                if written.any(|it| !is_deleted_after(history, it, *at)) =>
            {
                let name = entry.name();
                return Err(format!("{name} was acknowledged at {at}, and no node applied it"));
            }
            (Fate::Committed(told), Some(at)) if *told != at => {
                let name = entry.name();
                return Err(format!("{name} was acknowledged at {told}, and applied at {at}"));
            }
            (Fate::Aborted(abort), Some(at)) => {
                let name = entry.name();
                let reason = &abort.reason;
                return Err(format!("{name} was aborted ({reason}), and applied at {at}"));
            }
            (Fate::Committed(_) | Fate::Aborted(_), _)
            | (Fate::NotSubmitted | Fate::Pending | Fate::Unknown, _) => {}
        }
    }
    // What nodes write anew is what was there: it changes nothing.
    let foreign = applied.iter().filter(|(id, _)| !ids.contains(id) && !is_repair(*id)).min();
    match foreign {
        Some((id, at)) if !is_unnamed => {
            Err(format!("transaction {:x} was applied at {at}, and nobody asked for it", id.0))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the blob was deleted later. Who gets its chunks after that was forgotten gets none of
/// it, and so does not know what was done to it before.
fn is_deleted_after(history: &History, written: &BlobOperations, at: Timestamp) -> bool {
    history.transactions().any(|(_, _, later)| {
        let is_later = matches!(later.fate, Fate::Committed(deleted_at) if deleted_at > at);
        let deletes = |entry: &BlobOperations| {
            let is_delete = |it: &Operation| matches!(it, Operation::Delete);
            entry.blob == written.blob && entry.operations.iter().any(is_delete)
        };
        is_later && later.blobs.iter().any(deletes)
    })
}

/// Nothing was refused that had to be served.
///
/// # Errors
/// What was.
pub fn refusals_are_legitimate(history: &History, allowed: &Allowed) -> Result<(), String> {
    for entry in &history.entries {
        if let Deed::Transaction(attempted) = &entry.deed {
            commit_is_legitimate(entry, attempted, allowed)?;
        }
        let seen = entry.seen();
        for read in seen {
            if let Found::Refused(abort) = &read.found {
                read_is_legitimate(entry, &seen[0], read, abort, allowed)?;
            }
        }
    }
    Ok(())
}

fn commit_is_legitimate(
    entry: &Entry,
    attempted: &Attempted,
    allowed: &Allowed,
) -> Result<(), String> {
    let abort = match &attempted.fate {
        Fate::Unknown if !allowed.is_unavailable => {
            return Err(format!("{} was not told its outcome on a healthy cluster", entry.name()));
        }
        Fate::Aborted(abort) => abort,
        Fate::NotSubmitted | Fate::Pending | Fate::Committed(_) | Fate::Unknown => return Ok(()),
    };
    let mut operations = attempted.blobs.iter().flat_map(|entry| &entry.operations);
    let is_conditional = !attempted.reads.is_empty() || operations.any(Operation::is_condition);
    let is_legitimate = match abort.kind {
        ErrorKind::Conflict => is_conditional,
        ErrorKind::AlreadyExists => is_asked(attempted, Existence::Absent),
        ErrorKind::Unavailable if abort.reason == PIECES_LACKING => allowed.are_pieces_lost,
        ErrorKind::Unavailable => allowed.is_unavailable,
        ErrorKind::NotFound => {
            let written = attempted.blobs.iter().map(|written| written.blob.keyspace);
            let read = attempted.reads.iter().map(|seen| seen.want.blob.keyspace);
            is_asked(attempted, Existence::Present)
                || written.chain(read).any(|keyspace| allowed.is_dropped(keyspace, entry.end_us))
        }
        // A number that lies in two chunks is not changed in place, nor compared.
        ErrorKind::InvalidArgument => attempted.blobs.iter().any(has_odd_place),
        ErrorKind::TimedOut
        | ErrorKind::SnapshotTooOld
        | ErrorKind::PermissionDenied
        | ErrorKind::QuotaExceeded
        | ErrorKind::Corrupt => false,
    };
    match is_legitimate {
        true => Ok(()),
        false => {
            let kind = if is_conditional { "it" } else { "it only writes, and" };
            let (name, abort) = (entry.name(), told(abort));
            Err(format!("{name}: {kind} was aborted as {abort}"))
        }
    }
}

fn read_is_legitimate(
    entry: &Entry,
    first: &Seen,
    read: &Seen,
    abort: &Abort,
    allowed: &Allowed,
) -> Result<(), String> {
    let began_us = match &entry.deed {
        Deed::Moment(_) => entry.start_us,
        Deed::Transaction(_) | Deed::Read(_) | Deed::Snapshot(_) | Deed::ReadMany(_) => {
            first.start_us
        }
    };
    let age_us = read.end_us.unwrap_or(u64::MAX) - began_us;
    let is_legitimate = match abort.kind {
        ErrorKind::Unavailable | ErrorKind::TimedOut => allowed.is_unavailable,
        ErrorKind::Corrupt => allowed.is_damaged,
        ErrorKind::SnapshotTooOld => match (&entry.deed, allowed.snapshot_us) {
            (Deed::Read(_), _) => false,
            (_, None) => true,
            (Deed::Moment(_), Some(snapshot_us)) => age_us >= snapshot_us,
            (_, Some(snapshot_us)) if read.want.blob == first.want.blob => age_us >= snapshot_us,
            (_, Some(_)) => age_us >= allowed.linger_us,
        },
        // Who reads many at one timestamp is refused all of them for one.
        ErrorKind::NotFound => {
            let mut seen = entry.seen().iter();
            seen.any(|seen| allowed.is_dropped(seen.want.blob.keyspace, read.end_us))
        }
        ErrorKind::AlreadyExists
        | ErrorKind::Conflict
        | ErrorKind::InvalidArgument
        | ErrorKind::PermissionDenied
        | ErrorKind::QuotaExceeded => false,
    };
    match is_legitimate {
        true => Ok(()),
        false => {
            let (name, key, abort) = (entry.name(), &read.want.blob.key, told(abort));
            Err(format!("{name}: its read of \"{key}\" after {age_us} us was refused as {abort}"))
        }
    }
}

/// Reads repeat: in a transaction those of a blob, in a snapshot all are of one timestamp, and
/// what two of them share they saw alike.
///
/// # Errors
/// The two that differ.
pub fn reads_repeat(history: &History) -> Result<(), String> {
    for entry in &history.entries {
        let is_one_time = match &entry.deed {
            Deed::Transaction(_) => false,
            Deed::Read(_) => continue,
            Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => true,
        };
        let answered: Vec<&Seen> = entry.seen().iter().filter(|seen| seen.is_answered()).collect();
        for (number, left) in answered.iter().enumerate() {
            for right in &answered[number + 1..] {
                let is_one_blob = left.want.blob == right.want.blob;
                let is_apart = (is_one_time || is_one_blob) && left.at != right.at;
                if is_apart || is_one_blob && !agree(left, right) {
                    let (name, key) = (entry.name(), &right.want.blob.key);
                    let (left, right) = (left.at, right.at);
                    return Err(format!(
                        "{name}: reads do not repeat on \"{key}\" (at {left:?} and {right:?})"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether two reads of one blob can be of one version.
fn agree(left: &Seen, right: &Seen) -> bool {
    match (&left.found, &right.found) {
        (Found::Bytes { bytes: seen, .. }, Found::Bytes { bytes: again, .. }) => {
            let [one, other] = [(left, seen), (right, again)].map(|(seen, bytes)| {
                let start = seen.want.range.start;
                tyr_types::ByteRange { start, end: start + bytes.len() as u64 }
            });
            let share = one.intersection(other);
            let of = |bytes: &[u8], from: u64| {
                bytes[(share.start - from) as usize..(share.end - from) as usize].to_vec()
            };
            share.is_empty() || of(seen, one.start) == of(again, other.start)
        }
        (Found::Absent, Found::Bytes { .. }) | (Found::Bytes { .. }, Found::Absent) => false,
        (Found::Absent | Found::Nothing | Found::Refused(_), _)
        | (_, Found::Nothing | Found::Refused(_)) => true,
    }
}

fn is_writing(entry: &BlobOperations) -> bool {
    entry.operations.iter().any(Operation::is_write)
}

/// Whether a number is changed or compared at a place that is no multiple of its size.
fn has_odd_place(entry: &BlobOperations) -> bool {
    let mut numbers = entry.operations.iter().filter_map(Operation::number_range);
    numbers.any(|number| !number.start.is_multiple_of(number.len()))
}

/// Whether it is refused where that is not so of one of its blobs.
fn is_asked(attempted: &Attempted, existence: Existence) -> bool {
    let mut operations = attempted.blobs.iter().flat_map(|entry| &entry.operations);
    operations.any(|operation| asked(operation) == Some(existence))
}

/// What an operation asks of a blob's existence.
pub fn asked(operation: &Operation) -> Option<Existence> {
    match operation {
        Operation::Create => Some(Existence::Absent),
        Operation::Expect { existence } => Some(*existence),
        Operation::Write { .. }
        | Operation::Append { .. }
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Replace { .. }
        | Operation::Compare { .. } => None,
    }
}

fn told(abort: &Abort) -> String {
    format!("{} ({})", abort.kind.name(), abort.reason)
}
