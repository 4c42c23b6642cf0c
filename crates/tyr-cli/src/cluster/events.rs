//! `tyr events`: the cluster log.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr::blocking::Metadata;
use tyr::metadata::{Entry, KeyChange};

use crate::data::time_text;
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// Where the entries lie.
const PREFIX: &str = "cluster/log/";

/// Entries that are asked for at a time: as many as are kept.
const PAGE: usize = 1_024;

/// How often a watch looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

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
    let (entries, revision) = all(&metadata)?;
    let skipped = entries.len().saturating_sub(arguments.limit.unwrap_or(usize::MAX));
    for (path, entry) in entries.iter().skip(skipped) {
        print(session, path, &entry.value)?;
    }
    if !arguments.follow {
        return Ok(());
    }
    session.output.flush()?;
    let mut watch = metadata.watch(PREFIX, revision);
    loop {
        session.interrupt.check()?;
        let Some(told) = watch.next_within(LOOK)? else { continue };
        for KeyChange { path, value, .. } in &told.changes {
            // What is gone is the oldest, for which there is no room any more.
            if let Some(value) = value {
                print(session, path.as_str(), value)?;
            }
        }
        session.output.flush()?;
    }
}

/// All entries in the order of their maps, and the revision that they are of.
fn all(metadata: &Metadata) -> Outcome<(Vec<(String, Entry)>, u64)> {
    let mut found: Vec<(String, Entry)> = Vec::new();
    loop {
        let after = found.last().map(|(path, _)| path.clone());
        let page = metadata.list(PREFIX, after.as_deref(), PAGE)?;
        if page.entries.is_empty() {
            return Ok((found, page.revision));
        }
        found.extend(page.entries.into_iter().map(|(path, entry)| (path.to_string(), entry)));
    }
}

fn print(session: &mut Session, path: &str, value: &[u8]) -> Outcome {
    let epoch = path.strip_prefix(PREFIX).and_then(|epoch| epoch.parse::<u32>().ok());
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
