//! `tyr txn`: runs a script as one transaction, all or nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{Bytes, Committed, Error, ErrorKind, Key, OperationId, Scan, ScanEntry};

use crate::commands::arithmetic::number_json;
use crate::data::{key_text, to_base64, with_key};
use crate::failure::Outcome;
use crate::script::{self, Action, Step};
use crate::session::{Access, Session};

/// Bytes of a script; larger data belongs into files, by `put` or `write`.
const SCRIPT_LEN_MAX: u64 = 64 << 20;

/// `tyr txn`
#[derive(Args, Debug)]
#[command(after_help = "\
One operation a line; # starts a comment:
  create    KEYSPACE KEY              an empty blob; fails if it exists
  put       KEYSPACE KEY DATA         the whole new content
  write     KEYSPACE KEY OFFSET DATA
  append    KEYSPACE KEY DATA         prints the offset it got
  append-at KEYSPACE KEY OFFSET DATA  fails with Conflict unless the blob ends there
  truncate  KEYSPACE KEY LEN
  clear     KEYSPACE KEY OFFSET LEN   zeros from then on, and no space
  delete    KEYSPACE KEY
  apply     KEYSPACE KEY OFFSET KIND TYPE VALUE   prints the new value
  compare   KEYSPACE KEY OFFSET DATA  fails with Conflict unless these bytes are there
  compare-number KEYSPACE KEY OFFSET TYPE RELATION VALUE   fails with Conflict unless the number
                                      there is = != < <= > or >= VALUE; zero if never written
  expect-absent  KEYSPACE KEY         fails with AlreadyExists if there is a blob
  expect-present KEYSPACE KEY         fails with NotFound if there is none
  read      KEYSPACE KEY OFFSET LEN   sees what the lines before wrote
  get       KEYSPACE KEY
  stat      KEYSPACE KEY
  list      KEYSPACE PREFIX           the keys of one group that begin so, as get sees them
KEY and DATA are words, \"quoted text\" with \\n \\r \\t \\0 \\\\ \\\" \\xNN, 'verbatim text', \
hex:00ff or base64:AP8=. In quoted DATA to put, write or append, \\T is 16 bytes that the \
commit fills with its timestamp: entries sort by it. Nothing is done until the whole script is \
understood; errors name the line.

Example:
  tyr txn <<'END'
  compare accounts alice 0 hex:0a00000000000000
  apply   accounts alice 0 sub u64 5
  apply   accounts bob   0 add u64 5
  END")]
pub struct TxnArguments {
    /// The script; `-` or nothing for standard input
    file: Option<PathBuf>,
}

/// Runs the script.
pub fn run(session: &mut Session, arguments: &TxnArguments) -> Outcome {
    let steps = script::parse(&read_script(arguments.file.as_deref())?)?;
    let store = session.open(Access::Write)?;
    let keyspaces = open_keyspaces(&store, &steps)?;
    let (answers, committed) = execute(&store, &keyspaces, &steps)?;
    print(session, &steps, &answers, &committed)
}

fn read_script(file: Option<&Path>) -> Outcome<Vec<u8>> {
    let mut script = Vec::new();
    let (name, result) = match file {
        Some(path) if path != Path::new("-") => {
            let read = |file: File| file.take(SCRIPT_LEN_MAX + 1).read_to_end(&mut script);
            (path.display().to_string(), File::open(path).and_then(read))
        }
        Some(_) | None => {
            let read = io::stdin().take(SCRIPT_LEN_MAX + 1).read_to_end(&mut script);
            ("standard input".to_owned(), read)
        }
    };
    result.map_err(|error| Error::io(format!("cannot read {name}"), error))?;
    if script.len() as u64 > SCRIPT_LEN_MAX {
        return Err(Error::invalid(format!(
            "a script has at most {SCRIPT_LEN_MAX} bytes; give large data to `put` or `write`"
        ))
        .into());
    }
    Ok(script)
}

type Keyspaces = BTreeMap<String, Keyspace>;

fn open_keyspaces(store: &Tyr, steps: &[Step]) -> tyr::Result<Keyspaces> {
    let mut keyspaces = Keyspaces::new();
    for step in steps {
        if !keyspaces.contains_key(&step.keyspace) {
            let keyspace = store.keyspace(&step.keyspace).map_err(|error| at_line(step, error))?;
            keyspaces.insert(step.keyspace.clone(), keyspace);
        }
    }
    Ok(keyspaces)
}

/// What a step answered when it was added to the transaction; the rest is known at commit.
enum Answer {
    Write(OperationId),
    Data(Bytes),
    Stat(tyr::Stat),
    Keys(Vec<ScanEntry>),
}

fn execute(
    store: &Tyr,
    keyspaces: &Keyspaces,
    steps: &[Step],
) -> tyr::Result<(Vec<Answer>, Committed)> {
    let mut transaction = store.begin();
    let mut answers = Vec::with_capacity(steps.len());
    for step in steps {
        let keyspace = &keyspaces[&step.keyspace];
        let answer = add(&mut transaction, keyspace, step).map_err(|error| at_line(step, error))?;
        answers.push(answer);
    }
    match transaction.commit() {
        Ok(committed) => Ok((answers, committed)),
        Err(error) => {
            let of_it = |answer: &Answer| match answer {
                Answer::Write(id) => error.operation() == Some(*id),
                Answer::Data(_) | Answer::Stat(_) | Answer::Keys(_) => false,
            };
            Err(match answers.iter().position(of_it) {
                Some(place) => at_line(&steps[place], error),
                None => at_lines(keyspaces, steps, error),
            })
        }
    }
}

fn add(transaction: &mut Transaction, keyspace: &Keyspace, step: &Step) -> tyr::Result<Answer> {
    let key = &step.key;
    let id = match &step.action {
        Action::Create => transaction.create(keyspace, key),
        Action::Put { data } => transaction.put(keyspace, key, data.clone()),
        Action::Write { offset, data } => transaction.write(keyspace, key, *offset, data.clone()),
        Action::Append { data } => transaction.append(keyspace, key, data.clone()),
        Action::AppendAt { offset, data } => {
            transaction.append_at(keyspace, key, *offset, data.clone())
        }
        Action::Truncate { len } => transaction.truncate(keyspace, key, *len),
        Action::Clear { offset, len } => transaction.clear(keyspace, key, *offset, *len),
        Action::Delete => transaction.delete(keyspace, key),
        Action::Apply { offset, transform } => {
            transaction.apply(keyspace, key, *offset, *transform)
        }
        Action::Compare { offset, expected } => {
            transaction.compare(keyspace, key, *offset, expected.clone())
        }
        Action::CompareNumber { offset, relation, value } => {
            transaction.compare_number(keyspace, key, *offset, *relation, *value)
        }
        Action::ExpectAbsent => transaction.expect_absent(keyspace, key),
        Action::ExpectPresent => transaction.expect_present(keyspace, key),
        Action::Read { offset, len } => {
            return transaction.read(keyspace, key, *offset, *len).map(Answer::Data);
        }
        Action::Get => return transaction.get(keyspace, key).map(Answer::Data),
        Action::Stat => return transaction.stat(keyspace, key).map(Answer::Stat),
        Action::List => return list(transaction, keyspace, key).map(Answer::Keys),
    };
    id.map(Answer::Write)
}

/// All that begins with the prefix; the transaction bounds how much.
fn list(
    transaction: &mut Transaction,
    keyspace: &Keyspace,
    prefix: &Key,
) -> tyr::Result<Vec<ScanEntry>> {
    let (mut next, mut entries) = (Some(Scan::new().prefix(prefix)), Vec::new());
    while let Some(scan) = next {
        let page = transaction.scan_page(keyspace, &scan)?;
        next = scan.resumed(&page);
        entries.extend(page.entries);
    }
    Ok(entries)
}

fn at_line(step: &Step, error: Error) -> Error {
    error.context(format_args!("line {}", step.line))
}

/// What a commit failed with that no operation is named for, at the lines that it can be about:
/// what was read has changed, or a node of before refused it. It names a blob, and its kind
/// says which of the lines about that can have been refused so.
fn at_lines(keyspaces: &Keyspaces, steps: &[Step], error: Error) -> Error {
    let Some(blob) = error.blob() else { return error };
    let of_blob = |step: &&Step| {
        // A listing is refused by the name of its group.
        let is_listed =
            step.action == Action::List && step.key.as_bytes().starts_with(blob.key.as_bytes());
        keyspaces[&step.keyspace].id() == blob.keyspace && (step.key == blob.key || is_listed)
    };
    let refused = steps.iter().filter(of_blob);
    let refused = refused.filter(|step| may_be_refused(&step.action, error.kind()));
    let lines: Vec<String> = refused.map(|step| step.line.to_string()).collect();
    match lines.as_slice() {
        [] => error,
        [line] => error.context(format_args!("line {line}")),
        [lines @ .., last] => {
            error.context(format_args!("one of lines {} and {last}", lines.join(", ")))
        }
    }
}

/// Whether a commit can fail with such an error because of this.
fn may_be_refused(action: &Action, kind: ErrorKind) -> bool {
    let condition = match action {
        Action::AppendAt { .. }
        | Action::Compare { .. }
        | Action::CompareNumber { .. }
        | Action::Read { .. }
        | Action::Get
        | Action::Stat
        | Action::List => Some(ErrorKind::Conflict),
        Action::Create | Action::ExpectAbsent => Some(ErrorKind::AlreadyExists),
        Action::ExpectPresent => Some(ErrorKind::NotFound),
        Action::Put { .. }
        | Action::Write { .. }
        | Action::Append { .. }
        | Action::Truncate { .. }
        | Action::Clear { .. }
        | Action::Delete
        | Action::Apply { .. } => None,
    };
    match kind {
        ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::NotFound => {
            condition == Some(kind)
        }
        ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::SnapshotTooOld
        | ErrorKind::InvalidArgument
        | ErrorKind::PermissionDenied
        | ErrorKind::QuotaExceeded
        | ErrorKind::Corrupt => true,
    }
}

fn print(
    session: &mut Session,
    steps: &[Step],
    answers: &[Answer],
    committed: &Committed,
) -> Outcome {
    let mut results = Vec::with_capacity(steps.len());
    for (step, answer) in steps.iter().zip(answers) {
        let (fields, text) = describe(step, answer, committed);
        if session.output.is_json() {
            results.push(fields);
        } else if let Some(text) = text {
            session.output.line(&format!("line {}: {text}", step.line))?;
        }
    }
    let version = committed.version().to_string();
    let count = steps.len();
    session.output.record(
        &json!({"version": version, "results": results}),
        &format!("committed {count} operations at version {version}"),
    )
}

/// A step's result in JSON, and as text where there is something to tell.
fn describe(step: &Step, answer: &Answer, committed: &Committed) -> (Value, Option<String>) {
    let mut fields = json!({
        "line": step.line,
        "operation": step.action.name(),
        "keyspace": step.keyspace,
    });
    let text = match answer {
        Answer::Data(bytes) => {
            fields["len"] = json!(bytes.len());
            fields["base64"] = json!(to_base64(bytes));
            Some(format!("\"{}\"", bytes.escape_ascii()))
        }
        Answer::Stat(stat) => {
            fields["size"] = json!(stat.size);
            fields["version"] = json!(stat.version.to_string());
            Some(format!("{} bytes, version {}", stat.size, stat.version))
        }
        Answer::Keys(entries) => {
            let listed = entries.iter().map(|entry| {
                let stat = entry.stat.map(|it| (it.size, it.version.to_string()));
                let (size, version) = stat.unzip();
                with_key(&entry.key, json!({"size": size, "version": version}))
            });
            fields["entries"] = listed.collect();
            let keys: Vec<String> = entries.iter().map(|entry| key_text(&entry.key)).collect();
            Some(format!("{} keys: {}", keys.len(), keys.join(", ")))
        }
        Answer::Write(id) => {
            if let Some(offset) = committed.offset(*id) {
                fields["offset"] = json!(offset);
                Some(format!("appended at {offset}"))
            } else if let Some(value) = committed.value(*id) {
                fields["value"] = number_json(value);
                Some(format!("now {value}"))
            } else if let Some(existed) = committed.existed(*id) {
                fields["existed"] = json!(existed);
                Some(if existed { "deleted" } else { "was not there" }.to_owned())
            } else {
                None
            }
        }
    };
    let text = text.map(|text| {
        format!("{} {} {}: {text}", step.action.name(), step.keyspace, key_text(&step.key))
    });
    (with_key(&step.key, fields), text)
}
