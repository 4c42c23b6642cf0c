//! `tyr log read` and `tyr log tail`: entries, from some place on, at the end, and as they come.

use std::time::Duration;

use clap::Args;
use tyr_log::{Cut, Entry, Start};

use super::NameArguments;
use super::words::{entry_head, entry_json, parse_duration, parse_start};
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::{Access, Session};
use crate::telemetry::interrupted;

/// Entries read at a time.
const STEP: usize = 1_000;

/// How entries are shown.
#[derive(Args, Debug)]
pub struct ShowArguments {
    /// Show time (UTC), position, and number before each entry
    #[arg(long, short = 'l')]
    long: bool,
}

/// `tyr log read`
#[derive(Args, Debug)]
#[command(after_help = "\
Each entry is printed with a line's end behind it. Of several partitions they come in the one \
order of all. --from takes oldest, newest, number:N (of a strict log), time:TIME (like \
time:2026-11-27T08:00:00Z, time:-15m), or a position as `append` and -l show it; of several \
partitions one of each, with commas between them.

With --group it reads as a consumer of that group, which is made if there is none: each entry goes \
to one of its consumers. If this one dies, what it had got and not printed comes again after \
--ack-within, and so may what it printed last.

Examples:
  tyr log read orders
  tyr log read orders --from time:-15m -l
  tyr log read orders --from 0:0:64 --limit 10 --json
  tyr log read orders --group billing --limit 100")]
pub struct ReadArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Where to begin; of a group, where it begins if it is made
    #[arg(long, value_name = "PLACE", default_value = "oldest", value_parser = parse_start)]
    from: Start,
    /// End before this position
    #[arg(long, value_name = "POSITION", conflicts_with = "group")]
    to: Option<Cut>,
    /// Read as a consumer of this group
    #[arg(long, short, value_name = "NAME")]
    group: Option<String>,
    /// As a consumer: how long what was got may take to be printed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s")]
    ack_within: Duration,
    /// So many entries at most
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    show: ShowArguments,
}

/// `tyr log tail`
#[derive(Args, Debug)]
#[command(after_help = "\
With -f it goes on with what is appended, as it comes, until Ctrl-C or until the log is sealed.

Examples:
  tyr log tail orders
  tyr log tail orders -n 100 -l
  tyr --data tyr://node-1:7070 log tail orders -f")]
pub struct TailArguments {
    #[command(flatten)]
    name: NameArguments,
    /// How many entries
    #[arg(long, short = 'n', value_name = "N", default_value = "10")]
    limit: usize,
    /// Go on with what comes
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    show: ShowArguments,
}

/// Reads to the end.
pub fn read(session: &mut Session, arguments: &ReadArguments) -> Outcome {
    let limit = arguments.limit.unwrap_or(usize::MAX);
    if let Some(group) = &arguments.group {
        return consume(session, arguments, group, limit);
    }
    let (runtime, log) = arguments.name.open(session, Access::Read)?;
    let mut reader = runtime.block_on(log.reader(&arguments.from))?;
    let bar = progress::bar(None, Unit::Things("entries"), session.output.is_json());
    let mut left = limit;
    while left > 0 {
        session.interrupt.check()?;
        let entries = runtime.block_on(reader.next(left.min(STEP)))?;
        if entries.is_empty() {
            break;
        }
        let mut is_over = true;
        for entry in entries.iter().filter(|entry| is_wanted(entry, arguments.to.as_ref())) {
            show(session, &arguments.show, entry)?;
            (is_over, left) = (false, left - 1);
            bar.inc(1);
        }
        if is_over && arguments.to.is_some() {
            break;
        }
    }
    bar.finish_and_clear();
    session.output.flush()
}

fn is_wanted(entry: &Entry, to: Option<&Cut>) -> bool {
    let end = to.and_then(|to| to.positions().get(usize::from(entry.position.partition)));
    end.is_none_or(|end| entry.position < *end)
}

/// Reads as a consumer: what was printed is acknowledged.
fn consume(session: &mut Session, arguments: &ReadArguments, group: &str, limit: usize) -> Outcome {
    let (runtime, log) = arguments.name.open(session, Access::Write)?;
    let group = runtime.block_on(log.group(group, &arguments.from))?;
    let mut left = limit;
    while left > 0 {
        session.interrupt.check()?;
        let taken = runtime.block_on(group.take(left.min(STEP), arguments.ack_within))?;
        let Some(delivery) = taken else { break };
        for entry in &delivery.entries {
            show(session, &arguments.show, entry)?;
        }
        session.output.flush()?;
        if !runtime.block_on(group.ack(&delivery))? {
            eprintln!(
                "tyr: warning: printing took longer than --ack-within: others may get the last {} \
                 entries, too",
                delivery.entries.len()
            );
        }
        left = left.saturating_sub(delivery.entries.len());
    }
    Ok(())
}

/// Shows the last entries, and those that come.
pub fn tail(session: &mut Session, arguments: &TailArguments) -> Outcome {
    if arguments.follow && !session.is_cluster()? {
        return Err(Failure::Usage(
            "a directory is open in one program at a time, so nobody else appends to it: follow a \
             log of a cluster, tyr://HOST:PORT, or in the program that has it open by its own API"
                .to_owned(),
        ));
    }
    let (runtime, log) = arguments.name.open(session, Access::Read)?;
    let (entries, next) = runtime.block_on(log.last(arguments.limit))?;
    for entry in &entries {
        show(session, &arguments.show, entry)?;
    }
    session.output.flush()?;
    if !arguments.follow {
        return Ok(());
    }
    let mut subscription = runtime.block_on(log.subscribe(&Start::At(next)))?;
    loop {
        let interrupt = session.interrupt.clone();
        let more = runtime.block_on(async {
            tokio::select! {
                more = subscription.next(STEP) => more,
                () = interrupted(interrupt) => Ok(Some(Vec::new())),
            }
        })?;
        session.interrupt.check()?;
        let Some(entries) = more else { return Ok(()) };
        for entry in &entries {
            show(session, &arguments.show, entry)?;
        }
        session.output.flush()?;
    }
}

fn show(session: &mut Session, how: &ShowArguments, entry: &Entry) -> Outcome {
    if session.output.is_json() {
        return session.output.json(&entry_json(entry));
    }
    if how.long {
        session.output.bytes(entry_head(entry).as_bytes())?;
    }
    session.output.bytes(&entry.data)?;
    session.output.bytes(b"\n")
}
