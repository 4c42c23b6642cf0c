//! What a worker does in a caller's place.

use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::{
    BlobOperations, ByteRange, Bytes, Error, ErrorKind, Expected, Number, Operation, Outcome,
    Payload, Result, Transform,
};

use super::{ASKS, place};
use crate::worker::order::What;
use crate::worker::{Change, Order, Told, Wanted, Worker};

/// A worker that plays a client, with so many keyspaces.
#[derive(Clone)]
pub(super) struct Played {
    worker: Arc<Mutex<Worker>>,
    keyspaces: usize,
}

impl Played {
    pub(super) fn new(worker: Worker, keyspaces: usize) -> Self {
        Self { worker: Arc::new(Mutex::new(worker)), keyspaces }
    }

    fn ask(&self, order: &Order) -> Result<Vec<Told>> {
        self.worker.lock().ask(order)
    }

    fn wanted(&self, key: &str, range: ByteRange) -> Wanted {
        let (keyspace, key) = (place(key, self.keyspaces), key.to_owned());
        Wanted { keyspace, key, start: range.start, len: range.end - range.start }
    }

    fn all_wanted(&self, keys: &[String], range: ByteRange) -> Vec<Wanted> {
        keys.iter().map(|key| self.wanted(key, range)).collect()
    }

    pub(super) fn read(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        let told = self.ask(&Order::Read(self.wanted(key, range)))?;
        one(bytes(told, 1)?)
    }

    pub(super) fn size(&self, key: &str) -> Result<u64> {
        let keyspace = place(key, self.keyspaces);
        match self.ask(&Order::Size { keyspace, key: key.to_owned() })?.as_slice() {
            [Told::Number(size)] => Ok(*size),
            other => Err(odd(other)),
        }
    }

    pub(super) fn read_many(
        &self,
        keys: &[String],
        range: ByteRange,
    ) -> Result<Vec<Option<Bytes>>> {
        bytes(self.ask(&Order::Many(self.all_wanted(keys, range)))?, keys.len())
    }

    pub(super) fn read_snapshot(
        &self,
        keys: &[String],
        range: ByteRange,
    ) -> Result<Vec<Option<Bytes>>> {
        bytes(self.ask(&Order::Snapshot(self.all_wanted(keys, range)))?, keys.len())
    }

    /// Begins a transaction, unless that is done.
    pub(super) fn begin(&self, is_begun: &mut bool) -> Result<()> {
        if !std::mem::replace(is_begun, true) {
            self.ask(&Order::Begin)?;
        }
        Ok(())
    }

    pub(super) fn read_in(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        let told = self.ask(&Order::In(self.wanted(key, range)))?;
        one(bytes(told, 1)?)
    }

    /// Commits, and asks again when the outcome is unknown (F4).
    pub(super) fn commit(&self, blobs: &[BlobOperations]) -> Result<Vec<Outcome>> {
        let mut changes = Vec::new();
        for blob in blobs {
            let key = String::from_utf8_lossy(blob.blob.key.as_bytes()).into_owned();
            let keyspace = place(&key, self.keyspaces);
            for operation in &blob.operations {
                changes.push(Change { keyspace, key: key.clone(), what: what(operation)? });
            }
        }
        let kinds: Vec<bool> = changes.iter().map(|it| matches!(it.what, What::Add(_))).collect();
        let mut done = self.ask(&Order::Commit(changes));
        for _ in 0..ASKS {
            if !done.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
                break;
            }
            match self.ask(&Order::Outcome) {
                // The library had no transaction that it could ask for.
                Err(error) if error.kind() == ErrorKind::InvalidArgument => break,
                told => done = told,
            }
        }
        let told = done?;
        if told.len() != kinds.len() {
            return Err(odd(&told));
        }
        told.iter().zip(kinds).map(|(told, is_sum)| outcome(told, is_sum)).collect()
    }
}

/// What a worker is told of an operation.
fn what(operation: &Operation) -> Result<What> {
    let inline = |payload: &Payload| match payload {
        Payload::Inline(bytes) => Ok(bytes.clone()),
        Payload::Extents(_) | Payload::Stamped(_) | Payload::Uploaded(_) => {
            Err(Error::invalid("workers are told bytes"))
        }
    };
    let one = Transform::add(Number::U64(1));
    match operation {
        Operation::Append { payload, expected: None } => inline(payload).map(What::Append),
        Operation::Replace { payload } => inline(payload).map(What::Put),
        Operation::Compare { offset: 0, expected: Expected::Bytes(bytes) } => {
            Ok(What::Compare(bytes.clone()))
        }
        Operation::Apply { offset: 0, transform } if *transform == one => Ok(What::Add(1)),
        Operation::Append { .. }
        | Operation::Compare { .. }
        | Operation::Apply { .. }
        | Operation::Create
        | Operation::Write { .. }
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Expect { .. } => Err(Error::invalid(format!("no worker knows {operation:?}"))),
    }
}

fn outcome(told: &Told, is_sum: bool) -> Result<Outcome> {
    match (told, is_sum) {
        (Told::Number(sum), true) => Ok(Outcome::Value(Number::U64(*sum))),
        (Told::Number(offset), false) => Ok(Outcome::Offset(*offset)),
        (Told::Done, false) => Ok(Outcome::Done),
        (Told::Done, true) | (Told::Bytes(_) | Told::Absent, _) => {
            Err(odd(std::slice::from_ref(told)))
        }
    }
}

/// So many answers, each bytes or nothing.
fn bytes(told: Vec<Told>, count: usize) -> Result<Vec<Option<Bytes>>> {
    if told.len() != count {
        return Err(odd(&told));
    }
    let one = |told| match told {
        Told::Bytes(bytes) => Ok(Some(bytes)),
        Told::Absent => Ok(None),
        Told::Number(_) | Told::Done => Err(odd(&[told])),
    };
    told.into_iter().map(one).collect()
}

fn one(mut all: Vec<Option<Bytes>>) -> Result<Option<Bytes>> {
    all.pop().ok_or_else(|| odd(&[]))
}

fn odd(told: &[Told]) -> Error {
    Error::corrupt(format!("a worker answers oddly: {told:?}"))
}
