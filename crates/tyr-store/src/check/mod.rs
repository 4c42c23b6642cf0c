//! `tyr check`: whether everything on disk is as it was written, and fits together.
//!
//! The log is read from the checkpoint on, then the base is walked from all sides
//! ([`Base::audit`]): every value's checksum, every cross-reference, every byte of every extent in
//! use. A walk goes on behind whatever it finds, and no damage makes it panic. It changes nothing
//! of ours; the index library tidies its own folder whenever it is opened.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tyr_types::{
    BlobName, Error, ErrorKind, ExtentRef, Operation, Payload, Result, Timestamp, Transaction,
};

pub use crate::base::{Finding, Severity};

use crate::base::{Audited, Auditor, Base, synced_batch};
use crate::disk::Disk;
use crate::extents::{ExtentOptions, Extents};
use crate::index::fjall::FjallIndex;
use crate::log::{self, Entry, ReplayMode, TornTail};

/// The log's share of the work, roughly: it is short when the store is closed cleanly.
const LOG_SHARE: f64 = 0.1;

/// How often the log is read again because a running store overtook the reading: a checkpoint took
/// segments away, or records came to where it had just ended.
const ATTEMPTS_MAX: usize = 20;

/// What a check counted and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Blobs in the base.
    pub blobs: u64,
    /// The sum of their sizes.
    pub bytes: u64,
    /// Pieces that the larger ones consist of.
    pub segments: u64,
    /// Extents that blobs refer to.
    pub extents: u64,
    /// Transactions in the log that the base may not have yet.
    pub log_records: u64,
    /// What is not as it should be, in the order it was found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is lost or damaged; wasted space may be.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Error)
    }
}

/// Hears the audit of the base.
struct Listener<'a> {
    findings: &'a mut Vec<Finding>,
    progress: &'a mut dyn FnMut(f64),
}

impl Auditor for Listener<'_> {
    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn progress(&mut self, share: f64) {
        debug_assert!((0.0..=1.0).contains(&share), "{share} of the walk");
        (self.progress)(LOG_SHARE + share * (1.0 - LOG_SHARE));
    }
}

/// An extent that a logged operation refers to.
struct LoggedExtent {
    sequence: u64,
    at: Timestamp,
    blob: BlobName,
    extent: ExtentRef,
}

/// What the log holds.
#[derive(Default)]
struct Logged {
    synced_to: u64,
    extents: Vec<LoggedExtent>,
    torn_tail: Option<TornTail>,
}

/// Checks a store that is open; folds wait meanwhile. `progress` gets the share done, 0 to 1.
///
/// # Errors
/// `Unavailable` when the disk refuses. Damage is in the report.
pub fn run(
    disk: &dyn Disk,
    extents: &Arc<Extents>,
    base: &Base,
    progress: &mut dyn FnMut(f64),
) -> Result<Report> {
    // What is not whole at the end of its log is being written.
    verify(disk, extents, base, progress).map(|(report, _)| report)
}

/// Checks everything. Answers also what a crash left at the end of the log, or what is being
/// written there.
fn verify(
    disk: &dyn Disk,
    extents: &Arc<Extents>,
    base: &Base,
    progress: &mut dyn FnMut(f64),
) -> Result<(Report, Option<TornTail>)> {
    let mut report = Report::default();
    progress(0.0);
    let logged = check_log(disk, base, &mut report)?;
    check_logged_extents(extents, base, &logged, &mut report);
    let in_log: Vec<ExtentRef> = logged.extents.iter().map(|logged| logged.extent).collect();
    let mut only_in_log = Vec::new();
    for extent in in_log {
        // A damaged entry is found by the walk.
        if !base.is_referenced(&extent).unwrap_or(true) {
            only_in_log.push(extent);
        }
    }
    let mut listener = Listener { findings: &mut report.findings, progress };
    let Audited { blobs, bytes, segments, extents } = base.audit(&only_in_log, &mut listener);
    Ok((Report { blobs, bytes, segments, extents, ..report }, logged.torn_tail))
}

/// Checks a store that nobody has open. `index` opens its index, with the number of the last batch
/// that must be in it.
///
/// # Errors
/// `Unavailable` when the disk refuses. Damage is in the report, even when it keeps the store from
/// opening.
pub fn run_closed(
    disk: Arc<dyn Disk>,
    index: impl FnOnce(u64) -> Result<FjallIndex>,
    progress: &mut dyn FnMut(f64),
) -> Result<Report> {
    let open = || {
        let synced = synced_batch(&*disk)?;
        let index = Box::new(index(synced)?);
        let extents = Arc::new(Extents::open(Arc::clone(&disk), ExtentOptions::default())?);
        let base = Base::open(index, Arc::clone(&extents), Arc::clone(&disk))?;
        Ok((extents, base))
    };
    match open() {
        Ok((extents, base)) => {
            let (mut report, torn_tail) = verify(&*disk, &extents, &base, progress)?;
            let warning = torn_tail.map(|torn| Finding::warning("log", torn.to_string()));
            report.findings.extend(warning);
            Ok(report)
        }
        Err(error) if is_damage(&error) => {
            let what = format!("the store cannot be opened: {error}");
            let findings = vec![Finding::error(disk.describe(), what)];
            Ok(Report { findings, ..Report::default() })
        }
        Err(error) => Err(error),
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
}

/// Reads the log from the last checkpoint on.
fn check_log(disk: &dyn Disk, base: &Base, report: &mut Report) -> Result<Logged> {
    let (mut attempts, mut suspected) = (0, String::new());
    loop {
        let start = base.log_start();
        let mut logged = Logged::default();
        let mut visit = |sequence, at, entry: Entry| {
            // What a node of a cluster writes refers to no extents.
            if let Entry::Transaction(transaction) = entry {
                note_extents(sequence, at, &transaction, &mut logged.extents);
            }
            Ok(())
        };
        let result = log::replay(disk, start, ReplayMode::ReadOnly, &mut visit);
        attempts += 1;
        match result {
            Ok(replayed) => {
                report.log_records = replayed.records;
                logged.synced_to = replayed.synced_to;
                logged.torn_tail = replayed.torn;
                return Ok(logged);
            }
            // The segments it was reading are not needed any more, and may be gone.
            Err(_)
                if base.last_checkpoint().sequence != start.sequence && attempts < ATTEMPTS_MAX => {
            }
            // Damage stays where it is; the end of a log that is being written does not.
            Err(error) if suspected != error.to_string() && attempts < ATTEMPTS_MAX => {
                suspected = error.to_string();
            }
            Err(error) if is_damage(&error) => {
                report.findings.push(Finding::error("log", error.to_string()));
                return Ok(logged);
            }
            Err(error) => return Err(error),
        }
    }
}

fn note_extents(
    sequence: u64,
    at: Timestamp,
    transaction: &Transaction,
    out: &mut Vec<LoggedExtent>,
) {
    for entry in &transaction.blobs {
        for payload in entry.operations.iter().filter_map(Operation::payload) {
            let Payload::Extents(extents) = payload else { continue };
            let blob = &entry.blob;
            out.extend(extents.iter().map(|extent| LoggedExtent {
                sequence,
                at,
                blob: blob.clone(),
                extent: *extent,
            }));
        }
    }
}

/// Extents of operations that the base does not have yet are needed by the next replay.
fn check_logged_extents(extents: &Extents, base: &Base, logged: &Logged, report: &mut Report) {
    let keyspaces = base.keyspaces();
    for LoggedExtent { sequence, at, blob, extent } in &logged.extents {
        let is_known = keyspaces.iter().any(|info| info.id == blob.keyspace);
        // Where the entry is damaged the walk says so.
        let folded_at = base.attributes(blob).ok().flatten().map(|blob| blob.folded_at);
        if !is_known || folded_at.is_some_and(|folded_at| *at <= folded_at) {
            continue;
        }
        let Err(error) = extents.verify(extent) else { continue };
        if base.last_checkpoint().sequence > *sequence {
            continue;
        }
        let place = format!("log record {sequence}, {}", base.blob_title(blob));
        // What was not synced when the power went may be gone; opening ends the log before it.
        report.findings.push(match *sequence > logged.synced_to {
            true => Finding::warning(place, format!("was not synced: {error}")),
            false => Finding::error(place, error.to_string()),
        });
    }
}
