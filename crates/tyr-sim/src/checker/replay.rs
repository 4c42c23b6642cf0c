//! Committed transactions done again, one after the other in the order of their timestamps.
//!
//! This order must explain everything: the conditions that held, what operations answered, what
//! transactions read before they committed, and what reads at a timestamp saw, snapshots and
//! `read_many` among them. So it is the proof that all of these are serializable; and what it
//! leads to is what every replica must hold in the end.

use tyr_types::{BlobName, Existence, Operation, Outcome, Timestamp};

use super::history::{Entry, Found, Seen};
use super::model::{self, ATTRIBUTES, Blob, Ranges};
use super::timeline::{Committed, Timeline};

/// A version of a blob.
#[derive(Clone, Debug)]
pub struct Version {
    /// The transaction, by its place in the timeline.
    pub writer: usize,
    /// Its timestamp.
    pub at: Timestamp,
    /// What it changed.
    pub changed: Ranges,
}

/// What came of doing it all again.
#[derive(Clone, Debug)]
pub struct Replayed<'a> {
    /// The timeline.
    pub timeline: Timeline<'a>,
    /// The versions of each blob, ascending.
    pub versions: Vec<Vec<Version>>,
    /// What each blob is in the end.
    pub blobs: Vec<Blob>,
    /// What the order does not explain, in sentences.
    pub unexplained: Vec<String>,
}

/// So many sentences about one history are enough.
const UNEXPLAINED_MAX: usize = 5;

impl<'a> Replayed<'a> {
    /// Does it all again.
    pub fn new(timeline: Timeline<'a>) -> Self {
        let count = timeline.names.len();
        let (versions, blobs) = (vec![Vec::new(); count], vec![None; count]);
        let mut this = Self { timeline, versions, blobs, unexplained: Vec::new() };
        let mut placed = this.placed();
        placed.sort_by_key(|(at, _, _)| *at);
        let mut placed = placed.into_iter().peekable();
        let committed = std::mem::take(&mut this.timeline.committed);
        for (place, its) in committed.iter().enumerate() {
            while let Some((at, entry, seen)) = placed.next_if(|(at, _, _)| *at < its.at) {
                this.compare(at, entry, seen);
            }
            if place > 0 && committed[place - 1].at == its.at {
                let id = |its: &Committed| its.attempted.id.map_or(0, |id| id.0);
                let (one, other) = (id(&committed[place - 1]), id(its));
                let text = format!("transactions {one:x} and {other:x} share timestamp {}", its.at);
                this.complain(text);
            }
            this.commit(place, its);
        }
        for (at, entry, seen) in placed {
            this.compare(at, entry, seen);
        }
        this.timeline.committed = committed;
        this
    }

    /// The bytes of a blob in the end; `None` when it is absent.
    pub fn blob(&self, blob: &BlobName) -> Option<Vec<u8>> {
        self.timeline.number(blob).and_then(|number| self.blobs[number].clone())
    }

    /// What was read at a timestamp.
    fn placed(&self) -> Vec<(Timestamp, &'a Entry, &'a Seen)> {
        let history = self.timeline.history;
        history
            .seen()
            .filter(|(_, seen)| seen.is_answered())
            .filter_map(|(entry, seen)| seen.at.map(|at| (at, &history.entries[entry], seen)))
            .collect()
    }

    fn complain(&mut self, text: String) {
        if self.unexplained.len() < UNEXPLAINED_MAX {
            self.unexplained.push(text);
        }
    }

    fn compare(&mut self, at: Timestamp, entry: &Entry, seen: &Seen) {
        let blob = self.timeline.number(&seen.want.blob).expect("what was read is numbered");
        if let Some(difference) = difference(&self.blobs[blob], seen) {
            let name = entry.name();
            self.complain(format!("{name} read \"{}\" at {at}: {difference}", seen.want.blob.key));
        }
    }

    fn commit(&mut self, place: usize, its: &Committed) {
        let attempted = its.attempted;
        let name = || {
            let id = attempted.id.map_or(0, |id| id.0);
            format!("transaction {id:x} committed at {}", its.at)
        };
        for seen in &attempted.reads {
            let blob = self.timeline.number(&seen.want.blob).expect("what was read is numbered");
            if let Some(difference) = difference(&self.blobs[blob], seen) {
                let key = &seen.want.blob.key;
                let text = format!("{}, though what it read of \"{key}\" is stale", name());
                self.complain(format!("{text}: {difference}"));
            }
        }
        for (number, entry) in attempted.blobs.iter().enumerate() {
            let blob = its.blobs[number];
            let mut changed = Ranges::new();
            match model::operate(&mut self.blobs[blob], &entry.operations, its.at, &mut changed) {
                Ok(outcomes) => self.compare_answers(number, &outcomes, its, &name),
                Err(failed) => {
                    let operation = brief(&entry.operations[failed]);
                    let key = &entry.blob.key;
                    let text = format!("{}, though its {operation} of \"{key}\" fails", name());
                    self.complain(text);
                }
            }
            if !changed.is_empty() {
                self.versions[blob].push(Version { writer: place, at: its.at, changed });
            }
        }
    }

    fn compare_answers(
        &mut self,
        number: usize,
        outcomes: &[Outcome],
        its: &Committed,
        name: &dyn Fn() -> String,
    ) {
        let attempted = its.attempted;
        if attempted.answers.is_empty() && its.end_us == u64::MAX {
            return; // Its client was not told.
        }
        let answers = attempted.answers.iter().filter(|answer| answer.blob == number);
        let mut answered = vec![Outcome::Done; outcomes.len()];
        for answer in answers {
            answered[answer.operation] = answer.outcome;
        }
        let mut wrong = outcomes.iter().zip(&answered).filter(|(right, told)| right != told);
        if let Some((right, told)) = wrong.next() {
            let key = &attempted.blobs[number].blob.key;
            let text = format!("{} and answered {told:?} on \"{key}\", not {right:?}", name());
            self.complain(text);
        }
    }
}

/// What of `seen` is not as in `blob`, in words.
pub fn difference(blob: &Blob, seen: &Seen) -> Option<String> {
    let range = seen.want.range;
    match (&seen.found, blob) {
        (Found::Nothing | Found::Refused(_), _) | (Found::Absent, None) => None,
        (Found::Absent, Some(bytes)) => {
            Some(format!("it saw no blob, there is one of {} bytes", bytes.len()))
        }
        (Found::Bytes { bytes, .. }, None) => {
            Some(format!("it saw {} bytes, the blob is absent", bytes.len()))
        }
        (Found::Bytes { bytes, size }, Some(there)) => {
            let len = there.len() as u64;
            if size.is_some_and(|size| size != len) {
                return Some(format!("it saw a size of {size:?}, it is {len}"));
            }
            let there = &there[range.start.min(len) as usize..range.end.min(len) as usize];
            if there.len() != bytes.len() {
                let (seen, there) = (bytes.len(), there.len());
                return Some(format!("it saw {seen} bytes from {} on, not {there}", range.start));
            }
            if there == bytes {
                return None;
            }
            let place = there.iter().zip(bytes).position(|(there, seen)| there != seen)?;
            let cell = place / 8 * 8;
            let end = (cell + 8).min(bytes.len());
            let offset = range.start + cell as u64;
            let (seen, there) = (&bytes[cell..end], &there[cell..end]);
            Some(format!("at byte {offset} it saw {seen:02x?}, there is {there:02x?}"))
        }
    }
}

/// The ranges that an answer depends on.
pub fn depends_on(seen: &Seen) -> Ranges {
    let mut ranges = Ranges::new();
    match &seen.found {
        Found::Bytes { bytes, .. } => {
            let start = seen.want.range.start;
            let end = start + bytes.len() as u64;
            if !bytes.is_empty() {
                ranges.push(tyr_types::ByteRange { start, end });
            }
        }
        Found::Absent => {}
        Found::Nothing | Found::Refused(_) => return ranges,
    }
    if seen.shows_end() {
        ranges.push(ATTRIBUTES);
    }
    ranges
}

/// An operation without its payload.
fn brief(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Write { .. } => "write",
        Operation::Append { .. } => "append",
        Operation::Truncate { .. } => "truncate",
        Operation::Clear { .. } => "clear",
        Operation::Delete => "delete",
        Operation::Apply { .. } => "transform",
        Operation::Compare { .. } => "compare",
        Operation::Expect { existence: Existence::Absent } => "expect absent",
        Operation::Expect { existence: Existence::Present } => "expect present",
        Operation::Replace { .. } => "replace",
    }
}
