//! `tyr log append`: lines become entries, many in a transaction.

use std::io::{BufRead, BufReader, Read};

use clap::Args;
use serde_json::json;
use tokio::runtime::Runtime;
use tyr::{Error, Result};
use tyr_log::{Appended, Batch, FRAME_LEN_MAX, Log};

use super::NameArguments;
use crate::commands::source::SourceArguments;
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// Bytes of lines that go in one transaction.
const BATCH_BYTES: usize = 64 << 10;

/// `tyr log append`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line of the input is an entry, without its end. Lines go in batches of up to 64 KiB, as they \
come: what a program writes now and then is there at once. When it is interrupted, all lines of \
the batches before are there, and none of the one that was not finished.

It prints how many entries were appended, and where the first of them is; with --json a line for \
each batch as it is durable.

Examples:
  echo 'two books' | tyr log append orders
  tyr log append orders --value 'one pen'
  tyr log append orders old.log
  tyr log append images tree.jpg --whole --key ann")]
pub struct AppendArguments {
    #[command(flatten)]
    name: NameArguments,
    #[command(flatten)]
    source: SourceArguments,
    /// All of the input is one entry, up to 8 MiB
    #[arg(long = "whole")]
    is_whole: bool,
    /// Append to this partition; else to each in turn
    #[arg(long, value_name = "N")]
    partition: Option<u16>,
    /// Append to the partition of this key, the same for the same key
    #[arg(long, value_name = "TEXT", conflicts_with = "partition")]
    key: Option<String>,
}

/// What was appended so far.
#[derive(Default)]
struct Sum {
    entries: u64,
    first: Option<Appended>,
}

/// Appends what comes.
pub fn append(session: &mut Session, arguments: &AppendArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session, Access::Write)?;
    let to = match &arguments.key {
        Some(key) => Some(log.partition_of(key)),
        None => arguments.partition,
    };
    let mut input = BufReader::with_capacity(BATCH_BYTES, arguments.source.open(session)?);
    let mut sum = Sum::default();
    if arguments.is_whole {
        let mut entry = Vec::new();
        let read = (&mut input).take(FRAME_LEN_MAX as u64).read_to_end(&mut entry);
        session.interrupt.check()?;
        read.map_err(|error| Error::io("cannot read the entry", error))?;
        let batch = Batch::of([entry])?;
        append_batch(session, (&runtime, &log), batch, to, &mut sum)?;
    } else {
        while let Some(batch) = next_batch(session, &mut input)? {
            append_batch(session, (&runtime, &log), batch, to, &mut sum)?;
        }
    }
    if session.output.is_json() {
        return Ok(());
    }
    let text = match sum.first {
        Some(first) => {
            let number = first.number.map_or_else(String::new, |it| format!(", number {it}"));
            let what = if sum.entries == 1 { "entry" } else { "entries" };
            format!("{} {what} from {}{number}", sum.entries, first.position)
        }
        None => "0 entries".to_owned(),
    };
    session.output.line(&text)
}

fn append_batch(
    session: &mut Session,
    (runtime, log): (&Runtime, &Log),
    batch: Batch,
    to: Option<u16>,
    sum: &mut Sum,
) -> Outcome {
    let batch = match to {
        Some(partition) => batch.in_partition(partition),
        None => batch,
    };
    let appended = runtime.block_on(log.append_batch(&batch))?;
    sum.entries += u64::from(appended.count);
    sum.first.get_or_insert(appended);
    if session.output.is_json() {
        session.output.json(&json!({
            "entries": appended.count,
            "position": appended.position.to_string(),
            "number": appended.number,
            "stamp": appended.stamp.to_string(),
        }))?;
        session.output.flush()?;
    }
    Ok(())
}

/// The lines that have come, up to a batch; waits for one. `None` at the end.
fn next_batch(session: &Session, input: &mut BufReader<impl Read>) -> Outcome<Option<Batch>> {
    let mut batch = Batch::new();
    loop {
        match next_line(input) {
            Ok(Some(line)) => batch.push(line)?,
            Ok(None) => break,
            Err(error) => {
                session.interrupt.check()?;
                return Err(error.into());
            }
        }
        let has_line = input.buffer().contains(&b'\n');
        if batch.frame_len() >= BATCH_BYTES || !has_line {
            break;
        }
    }
    session.interrupt.check()?;
    Ok((!batch.is_empty()).then_some(batch))
}

/// A line without its end; `None` at the end.
fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.take(FRAME_LEN_MAX as u64).read_until(b'\n', &mut line);
    if read.map_err(|error| Error::io("cannot read a line", error))? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_entries_without_their_end_and_the_last_needs_none() {
        let mut input: &[u8] = b"one\n\ntwo\r\nthree";
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, [&b"one"[..], b"", b"two\r", b"three"]);
    }

    #[test]
    fn a_line_that_does_not_fit_is_refused_and_not_cut() {
        let long = vec![b'x'; FRAME_LEN_MAX + 1];
        let line = next_line(&mut &long[..]).unwrap().unwrap();
        assert!(Batch::of([line]).unwrap_err().message().contains("8 MiB"));
    }
}
