//! What happened, as lines that can be read and as a hash that can be compared.
//!
//! The hash takes in every step and is kept always. Lines cost more than the run itself, so they
//! are made only when asked for: those about one transaction, or all.

use std::fmt::{self, Display};
use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use tyr_protocol::Chain;
use tyr_protocol::commit::{self, recovery};
use tyr_protocol::member::Record;
use tyr_protocol::message::{Address, Asked, Body};
use tyr_types::{Expected, Operation, Payload, Transaction, TransactionId};

use crate::setup::Trace;

/// What is written down of a run.
#[derive(Debug)]
pub struct Tracer {
    wanted: Trace,
    lines: Vec<String>,
    hash: u64,
}

impl Tracer {
    /// Nothing has happened yet.
    pub fn new(wanted: Trace) -> Self {
        Self { wanted, lines: Vec::new(), hash: 0 }
    }

    /// Takes a step into the hash.
    pub fn note(&mut self, step: impl Hash) {
        self.hash = FixedState::with_seed(self.hash).hash_one(step);
    }

    /// Whether a line about this transaction, or about none, is wanted.
    pub fn wants(&self, about: Option<TransactionId>) -> bool {
        match self.wanted {
            Trace::Off => false,
            Trace::Transaction(id) => about == Some(id),
            Trace::All => true,
        }
    }

    /// Whether any line may be wanted.
    pub fn is_on(&self) -> bool {
        self.wanted != Trace::Off
    }

    /// Adds a line.
    pub fn line(&mut self, now_us: u64, place: &dyn Display, text: &dyn Display) {
        let (s, us) = (now_us / 1_000_000, now_us % 1_000_000);
        self.lines.push(format!("{s:>3}.{us:06}  {place:<10}  {text}"));
    }

    /// Of everything noted.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// An address as lines have it.
pub struct Place(pub Address);

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            Address::Node(node) => format!("n{}", node.0),
            Address::Client(client) => format!("c{client}"),
            Address::Monitors => "monitors".to_owned(),
        };
        f.pad(&text)
    }
}

/// A transaction's id as lines and the command line have it.
pub struct Name(pub TransactionId);

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0.0)
    }
}

/// The transaction that a message is about.
pub fn subject(body: &Body) -> Option<TransactionId> {
    match body {
        Body::Commit(message) => Some(commit_subject(message)),
        Body::Recovery(message) => Some(recovery_subject(message)),
        Body::Submit { transaction, .. } => Some(transaction.id),
        Body::Reply { id, .. } | Body::NotHere(Asked::Transaction(id)) => Some(*id),
        Body::NotUnderstood { asked: Asked::Transaction(id), .. } => Some(*id),
        Body::NotHere(Asked::Read(_))
        | Body::NotUnderstood { asked: Asked::Read(_), .. }
        | Body::Read(_)
        | Body::Movement(_)
        | Body::Upload(_)
        | Body::CancelRead { .. }
        | Body::SnapshotEnded { .. }
        | Body::FetchMap
        | Body::Part(_)
        | Body::Refused { .. }
        | Body::NewerMap(_)
        | Body::Renew { .. }
        | Body::Granted { .. }
        | Body::Prepare(_)
        | Body::Prepared { .. }
        | Body::Effective(_)
        | Body::CaughtUp { .. }
        | Body::Return { .. }
        | Body::ListKeys { .. }
        | Body::Scan(_)
        | Body::KeyLease(_)
        | Body::KeyWatch(_)
        | Body::Moment { .. }
        | Body::Keys { .. }
        | Body::Scanned { .. } => None,
    }
}

fn commit_subject(message: &commit::Message) -> TransactionId {
    match message {
        commit::Message::Forward { transaction, .. } => transaction.id,
        commit::Message::Backward { id, .. }
        | commit::Message::Misplaced { id, .. }
        | commit::Message::Withdrawn { id, .. }
        | commit::Message::Again { id, .. }
        | commit::Message::Decided { id, .. }
        | commit::Message::Anchored { id, .. }
        | commit::Message::Stable { id, .. }
        | commit::Message::AskStable { id, .. } => *id,
    }
}

fn recovery_subject(message: &recovery::Message) -> TransactionId {
    match message {
        recovery::Message::Ask { transaction, .. } => transaction.id,
        recovery::Message::Query { id, .. }
        | recovery::Message::Report { id, .. }
        | recovery::Message::Behind { id, .. }
        | recovery::Message::Clear { id, .. }
        | recovery::Message::Abort { id, .. }
        | recovery::Message::Aborted { id, .. } => *id,
    }
}

/// The transaction that a record is about.
pub fn record_subject(record: &Record) -> Option<TransactionId> {
    match record {
        Record::Validated { transaction, .. } => Some(transaction.id),
        Record::Fenced { id, .. }
        | Record::Decided { id, .. }
        | Record::Answered { id, .. }
        | Record::Aborted { id, .. } => Some(*id),
        Record::Aside { transaction, .. } => Some(transaction.id),
        Record::Map(_)
        | Record::Staged { .. }
        | Record::Unstaged { .. }
        | Record::CompleteTo { .. }
        | Record::Recalled { .. }
        | Record::Installed { .. }
        | Record::Finished { .. }
        | Record::Remembered { .. }
        | Record::Marked { .. }
        | Record::Standing { .. } => None,
    }
}

/// A message as lines have it: what it says, without the bulk.
pub struct Brief<'a>(pub &'a Body);

impl Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Body::Commit(commit::Message::Forward {
                transaction,
                chain,
                attempt,
                highest,
                known,
                ..
            }) => {
                let id = Name(transaction.id);
                write!(f, "Forward {id} over {} {attempt:?} at {highest}", Nodes(chain))?;
                known.map_or(Ok(()), |known| write!(f, " known {known}"))
            }
            Body::Submit { transaction, is_retry, .. } => {
                let again = if *is_retry { " again" } else { "" };
                write!(f, "Submit{again} {}", Whole(transaction))
            }
            Body::Recovery(recovery::Message::Ask { transaction, chain, .. }) => {
                write!(f, "Ask {} over {}", Name(transaction.id), Nodes(chain))
            }
            Body::NewerMap(map) => write!(f, "NewerMap {}", map.epoch.0),
            Body::Prepare(map) => write!(f, "Prepare {}", map.epoch.0),
            Body::Effective(map) => write!(f, "Effective {}", map.epoch.0),
            Body::Commit(message) => f.write_str(&cut(format!("{message:?}"))),
            Body::Recovery(message) => f.write_str(&cut(format!("{message:?}"))),
            body => f.write_str(&cut(format!("{body:?}"))),
        }
    }
}

/// What a transaction does, as lines have it.
pub struct Whole<'a>(pub &'a Transaction);

impl Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Name(self.0.id))?;
        for read in &self.0.reads {
            let what = if read.is_attributes { "+size" } else { "" };
            write!(f, "; read \"{}\" {:?}{what} at {}", read.blob.key, read.range, read.at)?;
        }
        for entry in &self.0.blobs {
            write!(f, "; \"{}\"", entry.blob.key)?;
            for operation in &entry.operations {
                write!(f, " {}", Deed(operation))?;
            }
        }
        Ok(())
    }
}

/// What an operation does, with the first bytes of what it carries.
struct Deed<'a>(&'a Operation);

impl Display for Deed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Operation::Create => f.write_str("create"),
            Operation::Delete => f.write_str("delete"),
            Operation::Truncate { len } => write!(f, "truncate {len}"),
            Operation::Clear { range } => write!(f, "clear {}..{}", range.start, range.end),
            Operation::Write { offset, payload } => write!(f, "write {offset} {}", Load(payload)),
            Operation::Append { payload, expected: None } => write!(f, "append {}", Load(payload)),
            Operation::Append { payload, expected: Some(end) } => {
                write!(f, "append at {end} {}", Load(payload))
            }
            Operation::Replace { payload } => write!(f, "replace {}", Load(payload)),
            Operation::Apply { offset, transform } => write!(f, "apply {offset} {transform:?}"),
            Operation::Compare { offset, expected: Expected::Bytes(bytes) } => {
                write!(f, "compare {offset} {}", Load(&Payload::Inline(bytes.clone())))
            }
            Operation::Compare { offset, expected: Expected::Number { relation, value } } => {
                write!(f, "compare {offset} {} {value}", relation.sign())
            }
            Operation::Expect { existence } => write!(f, "expect {existence:?}"),
        }
    }
}

struct Load<'a>(&'a Payload);

impl Display for Load<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0.len())?;
        match self.0 {
            Payload::Inline(bytes) => {
                f.write_str(" [")?;
                bytes.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("]")
            }
            Payload::Extents(_) => Ok(()),
            Payload::Stamped(stamped) => write!(f, " stamped at {:?}", stamped.places()),
            Payload::Uploaded(uploaded) => {
                let ids = uploaded.pieces().iter().map(|it| it.piece.id.0 as u64 & 0xF_FFFF);
                write!(f, " pieces {:x?}", ids.collect::<Vec<_>>())
            }
        }
    }
}

/// A record as lines have it.
pub struct BriefRecord<'a>(pub &'a Record);

impl Display for BriefRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Record::Map(map) => write!(f, "Map {}", map.epoch.0),
            Record::Validated { transaction, attempt, proposal, .. } => {
                write!(f, "Validated {} {attempt:?} at {proposal}", Name(transaction.id))
            }
            Record::Recalled { outcomes } => {
                write!(f, "Recalled {} outcomes", outcomes.len())
            }
            Record::Installed { blob, chunk, copy } => {
                write!(f, "Installed \"{}\" chunk {chunk} at {}", blob.key, copy.at)
            }
            Record::Finished { but } => write!(f, "Finished all but {}", but.len()),
            Record::Remembered { entries } => write!(f, "Remembered {}", entries.len()),
            Record::Marked { entries } => write!(f, "Marked {}", entries.len()),
            Record::Standing { clock, .. } => write!(f, "Standing at {clock}"),
            Record::Aside { transaction, at, .. } => {
                write!(f, "Aside {} at {at}", Name(transaction.id))
            }
            Record::Staged { staged, .. } => {
                let id = staged.piece.id.0 as u64 & 0xF_FFFF;
                write!(f, "Staged {id:x} of \"{}\" chunk {}", staged.blob.key, staged.chunk)
            }
            Record::Unstaged { .. }
            | Record::CompleteTo { .. }
            | Record::Fenced { .. }
            | Record::Decided { .. }
            | Record::Answered { .. }
            | Record::Aborted { .. } => f.write_str(&cut(format!("{:?}", self.0))),
        }
    }
}

struct Nodes<'a>(&'a Chain);

impl Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, hop) in self.0.hops().iter().enumerate() {
            write!(f, "{}n{}", if n > 0 { "-" } else { "" }, hop.node.0)?;
        }
        Ok(())
    }
}

/// Characters of a line's text, about.
const TEXT_MAX: usize = 240;

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}
