//! `tyr telemetry verify`: every aggregate against the raw measurements under it.

use clap::Args;
use serde_json::json;
use tyr_telemetry::render::{Format, render};
use tyr_telemetry::verify;

use super::queries::width;
use super::{LookArguments, open_to_look, runtime};
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::Session;

/// `tyr telemetry verify`
#[derive(Args, Debug)]
#[command(after_help = "\
All is read at one snapshot. Counts, minima and maxima must be exact; sums must lie within the \
bound for additions in any order. Differences give exit code 1.

Example:
  tyr telemetry verify --data /tmp/store")]
pub struct VerifyArguments {
    #[command(flatten)]
    look: LookArguments,
}

/// Verifies.
pub fn verify(session: &mut Session, arguments: &VerifyArguments) -> Outcome {
    let runtime = runtime()?;
    let telemetry = open_to_look(session, &runtime, &arguments.look)?;
    let bar = progress::bar(Some(0), Unit::Things("days"), session.output.is_json());
    let moving = bar.clone();
    let verifying = verify::verify(&telemetry, move |progress| {
        moving.set_length(progress.days_total as u64);
        moving.set_position(progress.days_done as u64);
    });
    let report = runtime.block_on(async {
        tokio::select! {
            report = verifying => report.map_err(Failure::from),
            () = super::interrupted(session.interrupt.clone()) => {
                Err(session.interrupt.check().err().unwrap_or(Failure::Interrupted(2)))
            }
        }
    })?;
    bar.finish_and_clear();
    let text = render(&report, Format::Table, width());
    session.output.record(&json!(report), text.trim_end())?;
    if report.is_clean() {
        return Ok(());
    }
    Err(Failure::Differences(format!(
        "{} aggregates differ from the measurements under them",
        report.differences_count
    )))
}
