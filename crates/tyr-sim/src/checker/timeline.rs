//! The committed transactions of a history, in the order of their timestamps.
//!
//! Whether a transaction committed whose client never learnt it is known from the nodes: what one
//! of them applied has committed.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_types::{BlobName, Timestamp, TransactionId};

use super::history::{Attempted, Fate, History};

/// What nodes applied during the run, and when.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    by_id: HashMap<TransactionId, Timestamp, FixedState>,
    clash: Option<String>,
}

impl Applied {
    /// A node applied this transaction at this timestamp.
    pub fn note(&mut self, id: TransactionId, at: Timestamp) {
        let first = *self.by_id.entry(id).or_insert(at);
        if first != at && self.clash.is_none() {
            let id = id.0;
            self.clash = Some(format!("transaction {id:x} took effect at {first} and at {at}"));
        }
    }

    /// When a transaction took effect.
    pub fn at(&self, id: TransactionId) -> Option<Timestamp> {
        self.by_id.get(&id).copied()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (TransactionId, Timestamp)> {
        self.by_id.iter().map(|(id, at)| (*id, *at))
    }

    /// A transaction that two nodes applied at different timestamps.
    pub(super) fn clash(&self) -> Option<&str> {
        self.clash.as_deref()
    }
}

/// A blob, by a number within one check.
pub type BlobNumber = usize;

/// A committed transaction.
#[derive(Clone, Debug)]
pub struct Committed<'a> {
    /// Its timestamp.
    pub at: Timestamp,
    /// Its place among the entries of the history.
    pub entry: usize,
    /// When its client began, in microseconds.
    pub start_us: u64,
    /// When its client knew that it committed; never, if it was not told.
    pub end_us: u64,
    /// What its client did.
    pub attempted: &'a Attempted,
    /// The blobs it writes or requires, in its own order.
    pub blobs: Vec<BlobNumber>,
}

/// The committed transactions, and the blobs of the history by number.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// The history.
    pub history: &'a History,
    /// Ascending by timestamp.
    pub committed: Vec<Committed<'a>>,
    /// The names of blobs, by number.
    pub names: Vec<&'a BlobName>,
    numbers: HashMap<&'a BlobName, BlobNumber, FixedState>,
}

impl<'a> Timeline<'a> {
    /// The timeline of a history, of which the nodes applied this.
    pub fn new(history: &'a History, applied: &Applied) -> Self {
        let (committed, names) = (Vec::new(), Vec::new());
        let mut this = Self { history, committed, names, numbers: HashMap::default() };
        for (entry, its, attempted) in history.transactions() {
            let (at, end_us) = match &attempted.fate {
                Fate::Committed(at) => (*at, its.end_us.unwrap_or(u64::MAX)),
                Fate::Pending | Fate::Unknown => {
                    let Some(at) = attempted.id.and_then(|id| applied.at(id)) else { continue };
                    (at, u64::MAX)
                }
                Fate::NotSubmitted | Fate::Aborted(_) => continue,
            };
            let blobs = attempted.blobs.iter().map(|entry| this.intern(&entry.blob)).collect();
            let start_us = its.start_us;
            this.committed.push(Committed { at, entry, start_us, end_us, attempted, blobs });
        }
        for (_, seen) in history.seen() {
            this.intern(&seen.want.blob);
        }
        this.committed.sort_by_key(|committed| committed.at);
        this
    }

    fn intern(&mut self, name: &'a BlobName) -> BlobNumber {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// The number of a blob that the history names.
    pub fn number(&self, name: &BlobName) -> Option<BlobNumber> {
        self.numbers.get(name).copied()
    }

    /// What messages call a committed transaction.
    pub fn name(&self, place: usize) -> String {
        let committed = &self.committed[place];
        format!("{} at {}", self.history.entries[committed.entry].name(), committed.at)
    }
}
