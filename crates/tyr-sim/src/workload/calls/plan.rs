//! One transaction of calls: which version they run by, and what they do.

use tyr_class::{Access, Batch, Failure, LogLevel, Object, Occasion};
use tyr_protocol::session::Want;
use tyr_types::{BlobName, Bytes, ErrorKind, Result, TransactionId};

use super::super::calling::{Gathered, Ran};
use super::super::{numbers, numbers_of};
use super::class::Queue;
use crate::checker::{Called, Seen};

/// Who calls, as methods see it.
pub const CALLER: &str = "a client";

/// A call that is to be made.
pub struct Wanted {
    /// The method.
    pub method: &'static str,
    /// Its input: a number that is given to no other.
    pub input: [u8; 8],
    /// By which it is told from others.
    pub id: TransactionId,
}

/// What a client knows of the class.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its version.
    pub version: u64,
    /// So long it goes by that.
    pub until_us: u64,
}

/// What is done in a transaction.
pub enum Doing {
    /// These calls of one object, each for itself.
    Batch(BlobName, Vec<Wanted>),
    /// A number goes from the queue of one object into that of another, or nothing happens.
    Pass { from: BlobName, to: BlobName, ids: [TransactionId; 2] },
}

/// A transaction of calls.
pub struct Plan {
    /// The record that says which version there is.
    record: Want,
    /// What its client goes by, if that is new enough.
    kept: Option<Known>,
    /// The version that its calls run by, and the time, once they have begun.
    began: Option<(u64, u64)>,
    doing: Doing,
}

impl Plan {
    /// A transaction that has not begun.
    pub fn new(record: Want, kept: Option<Known>, doing: Doing) -> Self {
        Self { record, kept, began: None, doing }
    }

    /// Runs all calls of it on what was read so far.
    ///
    /// # Panics
    /// When a call meets an error that no call here can meet.
    pub fn run(&mut self, seen: &[Seen], now_us: u64) -> Ran {
        let mut gathered = Gathered::new(seen);
        let calls = self.attempt(&mut gathered, now_us);
        let missing = gathered.missing();
        match (calls, missing) {
            (_, Some(want)) => Ran::Wants(want),
            (Ok(calls), None) => Ran::Through { blobs: gathered.into_written(), calls },
            (Err(error), None) => panic!("violation: a call met {error}"),
        }
    }

    /// The calls that were made; an error where something was not read yet.
    fn attempt(&mut self, gathered: &mut Gathered<'_>, now_us: u64) -> Result<Vec<Called>> {
        let kept = self.kept.filter(|kept| now_us < kept.until_us);
        let (version, now_us) = match (self.began, kept) {
            (Some(began), _) => began,
            (None, Some(kept)) => (kept.version, now_us),
            (None, None) => {
                let record = gathered.find(self.record.clone())?;
                (numbers(record).next().unwrap_or(0), now_us)
            }
        };
        self.began = Some((version, now_us));
        match &self.doing {
            Doing::Batch(object, all) => batch(gathered, object, all, (version, now_us)),
            Doing::Pass { from, to, ids } => pass(gathered, [from, to], *ids, (version, now_us)),
        }
    }
}

/// Calls of one object, each of which sees what those before it did.
fn batch(
    gathered: &mut Gathered<'_>,
    name: &BlobName,
    all: &[Wanted],
    (version, now_us): (u64, u64),
) -> Result<Vec<Called>> {
    let (class, object) = (Queue::of_version(version), Object::new(name.key.clone())?);
    let mut within = gathered.within(name.keyspace);
    let occasion = |id| Occasion { caller: CALLER, now_us, id, log };
    let mut access =
        Access { blobs: &mut within, object: &object, occasion: occasion(TransactionId(0)) };
    let mut batch = Batch::new(&mut access);
    let mut calls = Vec::new();
    for &Wanted { method, input, id } in all {
        let answer = batch.call(occasion(id), &class, method, &input)?;
        let answer = known(answer.expect("no method here asks for a version"))?;
        let (object, input) = (name.clone(), Bytes::copy_from_slice(&input));
        let answer = told(answer);
        calls.push(Called { object, version, method, input, id, now_us, answer });
    }
    batch.hand_on()?;
    Ok(calls)
}

/// A call of each of two objects; where one fails, neither is made.
fn pass(
    gathered: &mut Gathered<'_>,
    [from, to]: [&BlobName; 2],
    ids: [TransactionId; 2],
    (version, now_us): (u64, u64),
) -> Result<Vec<Called>> {
    let class = Queue::of_version(version);
    let (mut calls, mut input) = (Vec::new(), Bytes::new());
    for (name, method, id) in [(from, "pop", ids[0]), (to, "push", ids[1])] {
        let object = Object::new(name.key.clone())?;
        let mut within = gathered.within(name.keyspace);
        let occasion = Occasion { caller: CALLER, now_us, id, log };
        let mut access = Access { blobs: &mut within, object: &object, occasion };
        let Ok(answer) = known(access.call(&class, method, &input))? else {
            gathered.drop_written();
            return Ok(Vec::new());
        };
        let number = numbers_of(&answer).nth(1).unwrap_or(0);
        let answer = Ok(answer);
        let object = name.clone();
        calls.push(Called { object, version, method, input, id, now_us, answer });
        input = Bytes::copy_from_slice(&number.to_le_bytes());
    }
    Ok(calls)
}

/// What a call answered; an error where it asked for what was not read yet.
fn known(answer: Result<Bytes, Failure>) -> Result<Result<Bytes, Failure>> {
    match answer {
        Err(Failure::Context(error)) if error.kind() == ErrorKind::Unavailable => Err(error),
        answer => Ok(answer),
    }
}

/// An answer, as its caller is told.
pub fn told(answer: Result<Bytes, Failure>) -> Result<Bytes, String> {
    answer.map_err(|failure| format!("{}: {failure}", failure.kind().name()))
}

/// Methods here say nothing.
fn log(_level: LogLevel, _caller: &str, _text: &str) {}
