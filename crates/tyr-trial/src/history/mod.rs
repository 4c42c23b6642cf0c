//! What was asked and what was answered, as one line of JSON for each beginning and each end.
//!
//! Lines have the order in which things happened: a beginning is written before anything is sent,
//! an end after the answer came. Whoever reads it again, in whatever language, needs nothing else.
//! A process does one thing at a time; one whose outcome stays unknown does nothing more, and its
//! client goes on as another process.

mod shared_log;
mod step;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tyr_types::{Error, ErrorKind, Result};

pub use self::shared_log::{Did, Entry, Place, Stretch, Taking};
pub use self::step::{Head, How, Run, Step, changes};

/// How the note of a fault begins that begins.
pub const TROUBLE_BEGINS: &str = "begins: ";

/// The note that the cluster is whole after a fault.
pub const TROUBLE_ENDS: &str = "the cluster is whole";

/// How something lies in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Between its beginning and its end: transactions and single operations.
    Strict,
    /// Not before its beginning: reads of many blobs.
    Fresh,
    /// Anywhere: a snapshot.
    Snapshot,
}

/// Which line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something begins.
    Invoke,
    /// It took effect.
    Ok,
    /// It took no effect.
    Fail,
    /// Whether it took effect is not known.
    Info,
    /// Something else that helps who reads: a fault, a phase.
    Note,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number; what has a lower one happened before.
    pub order: u64,
    /// Microseconds since the history began.
    pub at_us: u64,
    /// Who does it.
    pub process: u32,
    /// Which line it is.
    pub kind: Kind,
    /// The workload.
    pub workload: String,
    /// What it is in the workload.
    pub operation: String,
    /// How it lies in real time.
    pub moment: Moment,
    /// What is done, and at the end what was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Why it did not take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It took effect.
    Done,
    /// It did not.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// A beginning and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Who did it.
    pub process: u32,
    /// The workload.
    pub workload: String,
    /// What it is in the workload.
    pub operation: String,
    /// How it lies in real time.
    pub moment: Moment,
    /// The order of its beginning, and of its end; an unknown one never ends.
    pub invoked: u64,
    /// The order of its end; `u64::MAX` when it may take effect at any time.
    pub returned: u64,
    /// When it began, in microseconds.
    pub invoked_us: u64,
    /// When it was answered, in microseconds.
    pub returned_us: u64,
    /// What became of it.
    pub fate: Fate,
    /// What was done and answered.
    pub steps: Vec<Step>,
    /// Why it did not take effect.
    pub error: Option<String>,
}

#[derive(Debug)]
struct Pages {
    events: Vec<Event>,
    file: Option<BufWriter<File>>,
    processes: u32,
}

/// Where lines are written. All clients of a trial share it.
#[derive(Debug)]
pub struct Book {
    started: Instant,
    pages: Mutex<Pages>,
}

impl Book {
    /// A book that is also written to a file.
    ///
    /// # Errors
    /// `Unavailable` when there is no such file to be had.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path);
        let file = file.map_err(|error| Error::io(path.display().to_string(), error))?;
        Ok(Self::with(Some(BufWriter::new(file))))
    }

    /// A book in memory.
    pub fn new() -> Self {
        Self::with(None)
    }

    fn with(file: Option<BufWriter<File>>) -> Self {
        let pages = Pages { events: Vec::new(), file, processes: 0 };
        Self { started: Instant::now(), pages: Mutex::new(pages) }
    }

    /// Microseconds since it began.
    pub fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// A process that nobody else is.
    pub fn process(&self) -> u32 {
        let mut pages = self.pages.lock();
        pages.processes += 1;
        pages.processes
    }

    /// Something that helps who reads.
    pub fn note(&self, text: impl Into<String>) {
        self.write(Event {
            order: 0,
            at_us: 0,
            process: 0,
            kind: Kind::Note,
            workload: String::new(),
            operation: text.into(),
            moment: Moment::Strict,
            steps: Vec::new(),
            error: None,
        });
    }

    fn write(&self, mut event: Event) {
        let mut pages = self.pages.lock();
        event.order = pages.events.len() as u64 + 1;
        event.at_us = self.now_us();
        if let Some(file) = &mut pages.file {
            let line = serde_json::to_string(&event).expect("numbers and texts are JSON");
            // A disk that is full shows when it is flushed.
            let _ = writeln!(file, "{line}");
        }
        pages.events.push(event);
    }

    /// Everything on disk, and all lines.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn events(&self) -> Result<Vec<Event>> {
        let mut pages = self.pages.lock();
        if let Some(file) = &mut pages.file {
            file.flush().map_err(|error| Error::io("the history", error))?;
        }
        Ok(pages.events.clone())
    }
}

impl Default for Book {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes what one client does.
#[derive(Debug)]
pub struct Scribe<'a> {
    book: &'a Book,
    process: u32,
    workload: &'static str,
}

impl<'a> Scribe<'a> {
    /// Of a client of this workload.
    pub fn new(book: &'a Book, workload: &'static str) -> Self {
        Self { book, process: book.process(), workload }
    }

    /// Does `work`, which fills in what was answered, between two lines. Whether it took effect.
    pub fn record(
        &mut self,
        operation: &str,
        moment: Moment,
        mut steps: Vec<Step>,
        work: impl FnOnce(&mut Vec<Step>) -> Result<()>,
    ) -> Result<()> {
        let event = |kind, steps: &[Step], error| Event {
            order: 0,
            at_us: 0,
            process: self.process,
            kind,
            workload: self.workload.to_owned(),
            operation: operation.to_owned(),
            moment,
            steps: steps.to_vec(),
            error,
        };
        self.book.write(event(Kind::Invoke, &steps, None));
        let done = work(&mut steps);
        let (kind, error) = match &done {
            Ok(()) => (Kind::Ok, None),
            Err(error) => {
                let is_unknown = changes(&steps) && may_have_changed(error.kind(), &steps);
                let kind = if is_unknown { Kind::Info } else { Kind::Fail };
                (kind, Some(format!("{}: {error}", error.kind().name())))
            }
        };
        self.book.write(event(kind, &steps, error));
        if kind == Kind::Info {
            self.process = self.book.process();
        }
        done
    }
}

/// Whether what failed so may have changed what it was to change: what timed out may, and what is
/// more than one transaction, of which the first took effect when a later one was `Unavailable`.
/// Who gets a lock raises its number, also when the lease is over by then; who trims moves the
/// marks before space is given back.
fn may_have_changed(kind: ErrorKind, steps: &[Step]) -> bool {
    let is_several = |step: &Step| {
        matches!(
            step,
            Step::Lock { .. } | Step::SharedLog { did: shared_log::Did::Trim { .. }, .. }
        )
    };
    kind == ErrorKind::TimedOut || (kind == ErrorKind::Unavailable && steps.iter().any(is_several))
}

/// The lines of a file.
///
/// # Errors
/// `Corrupt` with the line that is none; `NotFound`.
pub fn read(path: &Path) -> Result<Vec<Event>> {
    let file = File::open(path).map_err(|error| Error::io(path.display().to_string(), error))?;
    let mut events = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(|error| Error::io(path.display().to_string(), error))?;
        let event = serde_json::from_str(&line).map_err(|error| {
            Error::corrupt(format!("{}:{number} is no line of a history", path.display()))
                .with_source(error)
        })?;
        events.push(event);
    }
    Ok(events)
}

/// Beginnings with their ends, by beginning. What has no end is unknown.
pub fn deeds(events: &[Event]) -> Vec<Deed> {
    let mut open: HashMap<u32, usize> = HashMap::new();
    let mut deeds: Vec<Deed> = Vec::new();
    for event in events {
        match event.kind {
            Kind::Note => {}
            Kind::Invoke => {
                open.insert(event.process, deeds.len());
                deeds.push(begun(event));
            }
            Kind::Ok | Kind::Fail | Kind::Info => {
                let Some(place) = open.remove(&event.process) else { continue };
                let deed = &mut deeds[place];
                deed.returned_us = event.at_us;
                deed.steps.clone_from(&event.steps);
                deed.error.clone_from(&event.error);
                (deed.fate, deed.returned) = match event.kind {
                    Kind::Ok => (Fate::Done, event.order),
                    Kind::Fail => (Fate::Failed, event.order),
                    Kind::Info | Kind::Invoke | Kind::Note => (Fate::Unknown, u64::MAX),
                };
            }
        }
    }
    deeds
}

fn begun(event: &Event) -> Deed {
    Deed {
        process: event.process,
        workload: event.workload.clone(),
        operation: event.operation.clone(),
        moment: event.moment,
        invoked: event.order,
        returned: u64::MAX,
        invoked_us: event.at_us,
        returned_us: u64::MAX,
        fate: if changes(&event.steps) { Fate::Unknown } else { Fate::Failed },
        steps: event.steps.clone(),
        error: None,
    }
}
