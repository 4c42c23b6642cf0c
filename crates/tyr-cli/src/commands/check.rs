//! `tyr check`: verifies a store that nobody has open.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use tyr::{CheckReport, CheckSeverity, Error};

use crate::data::size_text;
use crate::failure::Outcome;
use crate::progress::{self, Unit};
use crate::session::Session;

/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// What the folder of a cluster's node has, beside that of its store.
const NODE_FILE: &str = "node.json";

/// `tyr check`
#[derive(Args, Debug)]
#[command(after_help = "\
Reads all of it: the log, the extents, the index, and whether they say the same. Damage gives exit \
code 12 (Corrupt), and names the file and the place. It is of what is there now: what a node of a \
cluster has put right by itself is in its log, and counted in its metrics \
(tyr_scrub_repaired_total).

Example:
  tyr check --data /tmp/store")]
pub struct CheckArguments {}

/// Verifies the store of `--data`.
pub fn run(session: &mut Session, _arguments: &CheckArguments) -> Outcome {
    let folder = session.folder()?;
    let report = check_closed(session, &folder)?;
    let mut text = as_text(&report);
    if folder.join("..").join(NODE_FILE).exists() {
        text.push_str(
            "\nWhat the node has put right by itself while it ran is in its log, and counted in \
             its metrics (tyr_scrub_repaired_total).",
        );
    }
    session.output.record(&as_json(&report), &text)?;
    judge(&report)
}

/// Verifies the store in `folder`, with a progress bar.
pub fn check_closed(session: &Session, folder: &Path) -> Outcome<CheckReport> {
    let bar = progress::bar(Some(STEPS), Unit::Things("‰"), session.output.is_json());
    let report = tyr::check(folder, &mut |share| {
        bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    })?;
    bar.finish_and_clear();
    Ok(report)
}

/// What was looked at, in a sentence.
pub fn sentence(report: &CheckReport) -> String {
    let [errors, warnings] = count(report);
    format!(
        "{} blobs of {} in {} extents, {} transactions in the log: {errors} errors, {warnings} \
         warnings",
        report.blobs,
        size_text(report.bytes),
        report.extents,
        report.log_records
    )
}

/// Errors and warnings.
fn count(report: &CheckReport) -> [usize; 2] {
    let of =
        |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    [of(CheckSeverity::Error), of(CheckSeverity::Warning)]
}

/// The whole report as text: a line a finding, then the sentence.
fn as_text(report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let name = severity_name(finding.severity);
        writeln!(text, "{name}: {}: {}", finding.place, finding.what)
            .expect("a String takes any text");
    }
    text + &sentence(report)
}

fn severity_name(severity: CheckSeverity) -> &'static str {
    match severity {
        CheckSeverity::Warning => "warning",
        CheckSeverity::Error => "error",
    }
}

/// The report in JSON.
pub fn as_json(report: &CheckReport) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": severity_name(finding.severity),
                "place": finding.place,
                "what": finding.what,
            })
        })
        .collect();
    json!({
        "sound": report.is_sound(),
        "blobs": report.blobs,
        "bytes": report.bytes,
        "segments": report.segments,
        "extents": report.extents,
        "log_records": report.log_records,
        "findings": findings,
    })
}

/// A failure when anything is lost or damaged.
///
/// # Errors
/// `Corrupt`, with the number of findings and the first of them.
pub fn judge(report: &CheckReport) -> Outcome {
    let damage = report.findings.iter().find(|finding| finding.severity == CheckSeverity::Error);
    let Some(first) = damage else { return Ok(()) };
    let [errors, _] = count(report);
    Err(Error::corrupt(format!(
        "the store is damaged in {errors} places, the first: {}: {}",
        first.place, first.what
    ))
    .into())
}
