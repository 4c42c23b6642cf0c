//! The end of the demo: everything verified, and what it was.

use std::path::Path;

use serde_json::json;
use tokio::runtime::Runtime;
use tyr::CheckReport;
use tyr_telemetry::verify::{self, VerifyReport};
use tyr_telemetry::{Telemetry, render};

use super::frame::Frame;
use crate::commands::check;
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::{Session, address};

/// Recomputes every aggregate from the raw measurements.
pub fn verify(
    session: &Session,
    runtime: &Runtime,
    telemetry: &Telemetry,
) -> Outcome<VerifyReport> {
    let bar = progress::bar(Some(0), Unit::Things("days"), session.output.is_json());
    bar.set_message("verifying aggregates");
    let moving = bar.clone();
    let verifying = verify::verify(telemetry, move |progress| {
        moving.set_length(progress.days_total as u64);
        moving.set_position(progress.days_done as u64);
    });
    let report = runtime.block_on(verifying)?;
    bar.finish_and_clear();
    Ok(report)
}

/// Closes the store, and verifies every checksum and cross-reference of it; `None` for a cluster,
/// whose nodes have it open.
pub fn check(session: &Session, data: &Path) -> Outcome<Option<CheckReport>> {
    session.opened().close()?;
    match address(data) {
        Some(_) => Ok(None),
        None => check::check_closed(session, data).map(Some),
    }
}

/// Prints what was done and found.
///
/// # Errors
/// `Differences` when anything differs anywhere.
pub fn report(
    session: &mut Session,
    last: &Frame,
    verified: &VerifyReport,
    checked: Option<&CheckReport>,
) -> Outcome {
    let audited = &last.audited;
    let seconds = last.elapsed.as_secs_f64();
    let text = format!(
        "\n{} measurements in {seconds:.1} s ({:.0} a second), {} of them this machine's own\n\
         {} audits while it ran: {} windows over {} measurements, {} differ\n\
         verified: {} measurements, {} windows of {} aggregates, {} differ\n\
         checked: {}",
        last.measurements,
        last.measurements as f64 / seconds,
        last.live,
        audited.audits,
        audited.slots,
        audited.measurements,
        audited.differences,
        verified.measurements,
        verified.slots,
        verified.aggregates,
        verified.differences_count,
        checked.map_or_else(|| "its nodes check their disks".to_owned(), check::sentence),
    );
    let json = json!({"summary": {
        "measurements": last.measurements,
        "live": last.live,
        "elapsed_s": seconds,
        "audits": audited.audits,
        "audited_slots": audited.slots,
        "audit_differences": audited.differences,
        "verify": verified,
        "check": checked.map(check::as_json),
    }});
    session.output.record(&json, &text)?;
    for difference in &audited.described {
        eprintln!("tyr: audit: {difference}");
    }
    if !verified.is_clean() && !session.output.is_json() {
        let table = render::render(verified, render::Format::Table, crate::telemetry::width());
        session.output.line(table.trim_end())?;
    }
    let differences = audited.differences + verified.differences_count;
    if differences > 0 || verified.measurements < last.measurements {
        return Err(Failure::Differences(format!(
            "{differences} differences; {} measurements recorded, {} found",
            last.measurements, verified.measurements
        )));
    }
    checked.map_or(Ok(()), check::judge)
}
