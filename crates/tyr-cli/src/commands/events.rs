//! `tyr events`: the cluster log.

use clap::Args;
use serde_json::json;
use tyr::metadata::{KeyChange, Path};
use tyr_metadata::reserved::LOG;

use super::metadata::{each_entry, follow};
use crate::data::time_text;
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// `tyr events`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is a time (UTC), the epoch of the map in which it holds, and what is different since. \
The last 1,024 maps are remembered.

Examples:
  tyr events -n 20
  tyr events --follow --json")]
pub struct EventsArguments {
    /// Only the last so many maps
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Go on with what happens, until Ctrl-C
    #[arg(long, short = 'f')]
    follow: bool,
}

/// Prints what happened to the cluster.
pub fn run(session: &mut Session, arguments: &EventsArguments) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "this is about a cluster, and --data names a directory: say --data tyr://HOST:PORT"
                .to_owned(),
        ));
    }
    let metadata = session.open(Access::Read)?.metadata();
    let mut entries = Vec::new();
    let revision = each_entry(session, &metadata, LOG, |_, path, entry| {
        entries.push((path.clone(), entry.value.clone()));
        Ok(())
    })?;
    let skipped = entries.len().saturating_sub(arguments.limit.unwrap_or(usize::MAX));
    for (path, value) in entries.iter().skip(skipped) {
        print(session, path, value)?;
    }
    if !arguments.follow {
        return Ok(());
    }
    session.output.flush()?;
    follow(session, &metadata, LOG, revision, |session, KeyChange { path, value, .. }| {
        // What is gone is the oldest, for which there is no room any more.
        value.iter().try_for_each(|value| print(session, path, value))
    })
}

fn print(session: &mut Session, path: &Path, value: &[u8]) -> Outcome {
    let epoch = path.as_str().strip_prefix(LOG).and_then(|epoch| epoch.parse::<u32>().ok());
    let text = String::from_utf8_lossy(value);
    let (time, lines) = text.split_once('\n').unwrap_or(("", &text));
    let (epoch, time_us) = (epoch.unwrap_or_default(), time.parse::<u64>().unwrap_or_default());
    for line in lines.lines() {
        let text = format!("{}  {epoch:>6}  {line}", time_text(time_us));
        session
            .output
            .record(&json!({ "time_us": time_us, "epoch": epoch, "event": line }), &text)?;
    }
    Ok(())
}
