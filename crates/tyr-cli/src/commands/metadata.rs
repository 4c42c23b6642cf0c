//! `tyr meta`: service metadata, what services agree on beside their data.

use std::process::Command;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tyr::Error;
use tyr::blocking::Metadata;
use tyr::metadata::{Entry, Expected, KeyChange, Path, Transaction};
use tyr_metadata::limits::{LIST_MAX, VALUE_LEN_MAX};

use super::held;
use super::source::SourceArguments;
use crate::data::to_base64;
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// How often a watch looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What to do with service metadata.
#[derive(Debug, Subcommand)]
pub enum MetadataCommand {
    /// Write a key's value to standard output
    Get(GetArguments),
    /// Give a key a value
    Put(PutArguments),
    /// Take a key away
    Delete(DeleteArguments),
    /// List keys in order
    List(ListArguments),
    /// Print what changes, until Ctrl-C
    Watch(WatchArguments),
}

/// `tyr meta get`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr meta get service/log/leader --json")]
pub struct GetArguments {
    /// The key, a path such as service/log/leader
    path: String,
}

/// `tyr meta put`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the revision in which it has the value. Of those who say --if-absent, or the same \
--if-revision, one puts it and the others are told Conflict.

With COMMAND the key is there while COMMAND runs and this process lives: on a cluster it goes when \
nothing was heard of this process for --ttl seconds and a tenth, in a directory when it is opened \
again. If it cannot be kept, COMMAND is told to stop (SIGTERM, and SIGKILL 5 s later), and the \
exit code is 6; else it is COMMAND's.

Examples:
  tyr meta put service/web/1 --value 10.0.0.1:80 -- ./web
  tyr meta put service/log/leader --value alice --if-absent
  tyr meta put service/log/leader --value bob --if-revision 17
  tyr meta put service/log/config config.toml")]
pub struct PutArguments {
    /// The key, a path of up to 512 bytes such as service/log/leader
    path: String,
    #[command(flatten)]
    source: SourceArguments,
    /// Only if there is no such key
    #[arg(long = "if-absent", conflicts_with = "if_revision")]
    if_absent: bool,
    /// Only if it was last changed in this revision, as `tyr meta list` shows it
    #[arg(long, value_name = "REVISION")]
    if_revision: Option<u64>,
    /// Seconds after which the key goes when nothing was heard of this process
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "command",
          value_parser = clap::value_parser!(u64).range(1..=60))]
    ttl: u64,
    /// The command to run, with its arguments, while the key is there
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// `tyr meta delete`
#[derive(Args, Debug)]
#[command(after_help = "\
Does nothing if there is no such key.

Example:
  tyr meta delete service/log/leader --if-revision 18")]
pub struct DeleteArguments {
    /// The key
    path: String,
    /// Only if it was last changed in this revision, as `tyr meta list` shows it
    #[arg(long, value_name = "REVISION")]
    if_revision: Option<u64>,
}

/// `tyr meta list`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is the revision of the last change, the length of the value, and the key.

Examples:
  tyr meta list service/
  tyr meta list --json")]
pub struct ListArguments {
    /// Only keys that begin with this
    #[arg(default_value = "")]
    prefix: String,
}

/// `tyr meta watch`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is a revision, put or delete, and the key; with --json also the value. It goes on over \
failures of nodes. What it has told, --after goes on from.

Examples:
  tyr meta watch service/
  tyr meta watch service/ --after 17 --json")]
pub struct WatchArguments {
    /// Only keys that begin with this
    #[arg(default_value = "")]
    prefix: String,
    /// What changed after this revision, too; without, what changes from now on
    #[arg(long, value_name = "REVISION")]
    after: Option<u64>,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: MetadataCommand) -> Outcome {
    match command {
        MetadataCommand::Get(arguments) => get(session, &arguments),
        MetadataCommand::Put(arguments) => put(session, &arguments),
        MetadataCommand::Delete(arguments) => delete(session, &arguments),
        MetadataCommand::List(arguments) => list(session, &arguments),
        MetadataCommand::Watch(arguments) => watch(session, &arguments),
    }
}

fn get(session: &mut Session, arguments: &GetArguments) -> Outcome {
    let metadata = session.open(Access::Read)?.metadata();
    let path = Path::new(&*arguments.path)?;
    let entry = metadata.get(path.as_str())?.ok_or_else(|| {
        Error::not_found(format!("there is no key \"{path}\" in the service metadata"))
    })?;
    if session.output.is_json() {
        return session.output.json(&entry_json(&path, &entry));
    }
    session.output.bytes(&entry.value)
}

fn put(session: &mut Session, arguments: &PutArguments) -> Outcome {
    let path = Path::new(&*arguments.path)?;
    let value = arguments.source.read_all(session, VALUE_LEN_MAX as u64, "the value")?;
    let mut transaction = Transaction::new().put(path.clone(), value);
    if arguments.if_absent {
        transaction = transaction.when(path.clone(), Expected::Absent);
    }
    if let Some(revision) = arguments.if_revision {
        transaction = transaction.when(path, Expected::Revision(revision));
    }
    match arguments.command.split_first() {
        None => change(session, transaction),
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            put_while(session, transaction, Duration::from_secs(arguments.ttl), command)
        }
    }
}

/// Puts it for as long as the command runs.
fn put_while(
    session: &mut Session,
    transaction: Transaction,
    ttl: Duration,
    command: Command,
) -> Outcome {
    let presence = session.open(Access::Write)?.metadata().presence(ttl)?;
    presence.transact(transaction)?;
    let is_lost = |wait| presence.lost_within(wait) || !presence.is_there();
    let lost = "the key goes, since the monitors did not answer in time";
    let ended = held::run(session, command, is_lost, lost);
    if let Err(error) = presence.end() {
        eprintln!("tyr: the key goes by itself: {error}");
    }
    held::outcome(ended?)
}

fn delete(session: &mut Session, arguments: &DeleteArguments) -> Outcome {
    let path = Path::new(&*arguments.path)?;
    let mut transaction = Transaction::new().delete(path.clone());
    if let Some(revision) = arguments.if_revision {
        transaction = transaction.when(path, Expected::Revision(revision));
    }
    change(session, transaction)
}

fn change(session: &mut Session, transaction: Transaction) -> Outcome {
    let revision = session.open(Access::Create)?.metadata().transact(transaction)?;
    session.output.record(&json!({ "revision": revision }), &revision.to_string())
}

fn list(session: &mut Session, arguments: &ListArguments) -> Outcome {
    let metadata = session.open(Access::Read)?.metadata();
    let print = |session: &mut Session, path: &Path, entry: &Entry| {
        let text = format!("{:>10}  {:>8}  {path}", entry.changed, entry.value.len());
        session.output.record(&entry_json(path, entry), &text)
    };
    each_entry(session, &metadata, &arguments.prefix, print).map(drop)
}

/// Hands `take` all entries under a prefix, in order; answers the revision of the last page: a
/// watch from there on misses nothing of keys that only come behind all others.
pub fn each_entry(
    session: &mut Session,
    metadata: &Metadata,
    prefix: &str,
    mut take: impl FnMut(&mut Session, &Path, &Entry) -> Outcome,
) -> Outcome<u64> {
    let mut after: Option<String> = None;
    loop {
        session.interrupt.check()?;
        let page = metadata.list(prefix, after.as_deref(), LIST_MAX)?;
        for (path, entry) in &page.entries {
            take(session, path, entry)?;
        }
        match page.entries.into_iter().last() {
            Some((path, _)) => after = Some(path.to_string()),
            None => return Ok(page.revision),
        }
    }
}

fn watch(session: &mut Session, arguments: &WatchArguments) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "a directory is open in one program at a time, so nobody else changes it: watch a \
             cluster, tyr://HOST:PORT, or the program that has it open by its own API"
                .to_owned(),
        ));
    }
    let metadata = session.open(Access::Read)?.metadata();
    let after = match arguments.after {
        Some(after) => after,
        None => metadata.list(&arguments.prefix, None, 1)?.revision,
    };
    follow(session, &metadata, &arguments.prefix, after, |session, change| {
        let KeyChange { revision, path, value } = change;
        let verb = if value.is_some() { "put" } else { "delete" };
        let text = format!("{revision:>10}  {verb:<6}  {path}");
        session.output.record(&change_json(change, verb), &text)
    })
}

/// Hands `take` what changes under a prefix after a revision, until Ctrl-C.
pub fn follow(
    session: &mut Session,
    metadata: &Metadata,
    prefix: &str,
    after: u64,
    mut take: impl FnMut(&mut Session, &KeyChange) -> Outcome,
) -> Outcome {
    let mut watch = metadata.watch(prefix, after);
    loop {
        session.interrupt.check()?;
        let Some(told) = watch.next_within(LOOK)? else { continue };
        told.changes.iter().try_for_each(|change| take(session, change))?;
        session.output.flush()?;
    }
}

fn entry_json(path: &Path, entry: &Entry) -> Value {
    json!({
        "path": path.as_str(),
        "base64": to_base64(&entry.value),
        "created": entry.created,
        "changed": entry.changed,
    })
}

fn change_json(change: &KeyChange, verb: &str) -> Value {
    let mut fields =
        json!({ "revision": change.revision, "path": change.path.as_str(), "change": verb });
    if let Some(value) = &change.value {
        fields["base64"] = json!(to_base64(value));
    }
    fields
}
