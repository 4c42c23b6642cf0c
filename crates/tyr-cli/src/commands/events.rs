//! `tyr events`: the cluster log.

use clap::Args;
use serde_json::json;
use tyr::metadata::{KeyChange, Path};
use tyr_metadata::reserved::{self, LOG};

use super::metadata::{each_entry, follow};
use crate::data::time_text;
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// `tyr events`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is a time (UTC), the epoch of the map in which it happened, and what happened: what \
became different with a map, what a user did, what a node warns of. The last 1,024 maps and \
4,096 other entries are remembered.

Examples:
  tyr events -n 20
  tyr events --follow --json")]
pub struct EventsArguments {
    /// Only the last so many entries
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

/// Prints what begins so, behind the node that says it.
pub fn print_of(session: &mut Session, mark: &str) -> Outcome {
    let metadata = session.open(Access::Read)?.metadata();
    each_entry(session, &metadata, LOG, |session, path, entry| {
        let said = String::from_utf8_lossy(&entry.value);
        let is_of = |line: &str| line.split_once(": ").is_some_and(|it| it.1.starts_with(mark));
        match read(path, &said).lines.lines().any(is_of) {
            true => print(session, path, &entry.value),
            false => Ok(()),
        }
    })
    .map(drop)
}

/// An entry of the cluster log.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'e> {
    time_us: u64,
    epoch: u32,
    /// `map`, `user` or `node`: whose it is.
    of: &'static str,
    /// The users who asked for it, if it is known.
    by: Option<&'e str>,
    lines: &'e str,
}

/// What an entry says.
fn read<'e>(path: &Path, text: &'e str) -> Entry<'e> {
    let (epoch, event) = reserved::log_place(path.as_str()).unwrap_or_default();
    let of = match event {
        None => "map",
        Some((_, of)) if of.starts_with("node") => "node",
        Some(_) => "user",
    };
    let (head, lines) = text.split_once('\n').unwrap_or(("", text));
    let (time, by) = match head.split_once(" by ") {
        Some((time, by)) => (time, Some(by)),
        None => (head, None),
    };
    Entry { time_us: time.parse().unwrap_or_default(), epoch, of, by, lines }
}

fn print(session: &mut Session, path: &Path, value: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(value);
    let Entry { time_us, epoch, of, by, lines } = read(path, &text);
    for line in lines.lines() {
        let asked = by.map(|by| format!(" (by {by})")).unwrap_or_default();
        let text = format!("{}  {epoch:>6}  {line}{asked}", time_text(time_us));
        let mut fields = json!({"time_us": time_us, "epoch": epoch, "of": of, "event": line});
        if let Some(by) = by {
            fields["by"] = json!(by);
        }
        session.output.record(&fields, &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_whose_it_is_and_who_asked_for_it() {
        let entry = |path: Path, text| {
            let Entry { time_us, epoch, of, by, lines } = read(&path, text);
            (time_us, epoch, of, by.map(str::to_owned), lines.to_owned())
        };
        assert_eq!(
            entry(reserved::log_entry(7), "12 by alice\na\nb"),
            (12, 7, "map", Some("alice".to_owned()), "a\nb".to_owned())
        );
        let path = reserved::log_event(7, 3, "node-2-0f-0");
        assert_eq!(entry(path, "12\nx"), (12, 7, "node", None, "x".to_owned()));
        assert_eq!(entry(reserved::log_event(7, 4, "user"), "12\nx").2, "user");
    }
}
