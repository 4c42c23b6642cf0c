//! `tyr zlog append`, `read`, `tail` and `fill`.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tyr::Error;
use tyr_zlog::{ENTRY_LEN_MAX, Entry, Log, Opening, Sequencing};

use super::NameArguments;
use crate::commands::source::SourceArguments;
use crate::data::to_base64;
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::Session;
use crate::telemetry::interrupted;

/// How often who follows a log looks at its tail.
const LOOK: Duration = Duration::from_millis(100);

/// `tyr zlog append`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line of the input is an entry of up to 64 KiB, without its end. They are appended one after \
the other, each with the next position. It prints how many, and the position of the first; with \
--json a line for each as it is durable.

Examples:
  echo 'two books' | tyr zlog append orders
  tyr zlog append orders --value 'one pen'
  tyr zlog append orders old.log")]
pub struct AppendArguments {
    #[command(flatten)]
    name: NameArguments,
    #[command(flatten)]
    source: SourceArguments,
    /// All of the input is one entry
    #[arg(long = "whole")]
    is_whole: bool,
    /// Ask the node that has the log's sequencer for positions, and do not take it from there
    #[arg(long = "ask")]
    is_asking: bool,
}

/// How entries are shown.
#[derive(Args, Debug)]
pub struct ShowArguments {
    /// Show the position before each entry
    #[arg(long, short = 'l')]
    long: bool,
}

/// `tyr zlog read`
#[derive(Args, Debug)]
#[command(after_help = "\
Each entry is printed with a line's end behind it. A position that was given out and is not \
written after a moment is filled: whoever was given it appends at another one.

Examples:
  tyr zlog read orders
  tyr zlog read orders --from 100 --to 200 -l")]
pub struct ReadArguments {
    #[command(flatten)]
    name: NameArguments,
    /// The position to begin at
    #[arg(long, value_name = "POSITION", default_value = "0")]
    from: u64,
    /// End before this position
    #[arg(long, value_name = "POSITION")]
    to: Option<u64>,
    /// So many entries at most
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    show: ShowArguments,
}

/// `tyr zlog tail`
#[derive(Args, Debug)]
#[command(after_help = "\
With -f it goes on with what is appended, as it comes, until Ctrl-C.

Examples:
  tyr zlog tail orders
  tyr --data tyr://node-1:7070 zlog tail orders -n 100 -f")]
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

/// `tyr zlog fill`
#[derive(Args, Debug)]
#[command(after_help = "\
A position that nobody wrote will have no entry; whoever was given it appends at another one. \
Where there is an entry it stays, and the exit code is 4. Readers fill by themselves: this is for \
who cannot wait.

Example:
  tyr zlog fill orders 17")]
pub struct FillArguments {
    #[command(flatten)]
    name: NameArguments,
    /// The position
    position: u64,
}

/// Appends what comes.
pub fn append(session: &mut Session, arguments: &AppendArguments) -> Outcome {
    let sequencing = if arguments.is_asking { Sequencing::Asked } else { Sequencing::Held };
    let opening = Opening { sequencing, ..Opening::default() };
    let (runtime, log) = arguments.name.open_as(session, opening)?;
    let appended = append_all(session, arguments, (&runtime, &log));
    // Whoever appends next goes on with the counter, also after a mistake here.
    runtime.block_on(log.close())?;
    let (count, first) = appended?;
    if session.output.is_json() {
        return Ok(());
    }
    let what = if count == 1 { "entry" } else { "entries" };
    let from = first.map_or_else(String::new, |first| format!(" from {first}"));
    session.output.line(&format!("{count} {what}{from}"))
}

/// How many entries were appended, and where the first one is.
fn append_all(
    session: &mut Session,
    arguments: &AppendArguments,
    (runtime, log): (&Runtime, &Log),
) -> Outcome<(u64, Option<u64>)> {
    let mut input = BufReader::new(arguments.source.open(session)?);
    let (mut count, mut first) = (0, None);
    while let Some(entry) = next_entry(session, &mut input, arguments.is_whole)? {
        let position = runtime.block_on(log.append(entry))?;
        count += 1;
        first.get_or_insert(position);
        if session.output.is_json() {
            session.output.json(&json!({ "position": position }))?;
            session.output.flush()?;
        }
        if arguments.is_whole {
            break;
        }
    }
    Ok((count, first))
}

/// The next line without its end, or all of the input; `None` at the end.
fn next_entry(
    session: &Session,
    input: &mut impl BufRead,
    is_whole: bool,
) -> Outcome<Option<Vec<u8>>> {
    let mut entry = Vec::new();
    // One byte more than fits, with a line's end: so that what does not is refused, and not cut.
    let mut part = input.take(ENTRY_LEN_MAX as u64 + 2);
    let read = match is_whole {
        true => part.read_to_end(&mut entry),
        false => part.read_until(b'\n', &mut entry),
    };
    session.interrupt.check()?;
    let len = read.map_err(|error| Error::io("cannot read an entry", error))?;
    if !is_whole && entry.last() == Some(&b'\n') {
        entry.pop();
    }
    Ok((len > 0 || is_whole).then_some(entry))
}

/// Reads to the end.
pub fn read(session: &mut Session, arguments: &ReadArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session)?;
    let mut reader = log.reader(arguments.from);
    let bar = progress::bar(None, Unit::Things("entries"), session.output.is_json());
    let to = arguments.to.unwrap_or(u64::MAX);
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    while left > 0 && reader.position() < to {
        session.interrupt.check()?;
        let entries = runtime.block_on(reader.next_before(to))?;
        if entries.is_empty() {
            break;
        }
        for entry in entries.iter().take(left) {
            show(session, &arguments.show, entry)?;
            bar.inc(1);
        }
        left = left.saturating_sub(entries.len());
    }
    bar.finish_and_clear();
    session.output.flush()
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
    let (runtime, log) = arguments.name.open(session)?;
    let (entries, mut reader) = runtime.block_on(log.last(arguments.limit))?;
    for entry in &entries {
        show(session, &arguments.show, entry)?;
    }
    session.output.flush()?;
    if !arguments.follow {
        return Ok(());
    }
    loop {
        let interrupt = session.interrupt.clone();
        let entries = runtime.block_on(async {
            let entries = reader.next().await?;
            if entries.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = interrupted(interrupt) => {}
                }
            }
            Ok::<_, Error>(entries)
        })?;
        session.interrupt.check()?;
        for entry in &entries {
            show(session, &arguments.show, entry)?;
        }
        session.output.flush()?;
    }
}

/// Fills a position.
pub fn fill(session: &mut Session, arguments: &FillArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session)?;
    let position = arguments.position;
    match runtime.block_on(log.fill(position))? {
        true => Ok(()),
        false => Err(Failure::Store(Error::new(
            tyr::ErrorKind::AlreadyExists,
            format!("position {position} of log {} has an entry: it stays", log.name()),
        ))),
    }
}

fn show(session: &mut Session, how: &ShowArguments, entry: &Entry) -> Outcome {
    if session.output.is_json() {
        return session.output.json(&entry_json(entry));
    }
    if how.long {
        session.output.bytes(format!("{}  ", entry.position).as_bytes())?;
    }
    session.output.bytes(&entry.data)?;
    session.output.bytes(b"\n")
}

/// An entry in JSON: text where it is UTF-8, and else base64.
fn entry_json(entry: &Entry) -> Value {
    match std::str::from_utf8(&entry.data) {
        Ok(text) => json!({ "position": entry.position, "text": text }),
        Err(_) => json!({ "position": entry.position, "base64": to_base64(&entry.data) }),
    }
}
