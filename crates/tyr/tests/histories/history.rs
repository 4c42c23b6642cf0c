//! What was done and what was answered, in an order that everybody agrees on.
//!
//! Every object is a list of values, each written once: a blob of 8-byte values is one as it
//! stands; the values a register had, and the operations that a counter counted, are others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// An object by its number.
pub type Object = u32;
/// A value; no two writes have the same.
pub type Value = u64;

/// How an entry lies in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between its invocation and its return: transactions and single operations.
    Strict,
    /// Not before its invocation: `read_many`.
    Fresh,
    /// Anywhere: a snapshot.
    Snapshot,
}

/// What a read saw of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All its values, in order.
    List(Vec<Value>),
    /// How many values it had.
    Count(usize),
    /// The last of its values; `None` when it had none.
    Last(Option<Value>),
}

/// A step of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A value was added; `position` is where, if the store said so.
    Append { object: Object, value: Value, position: Option<usize> },
    /// An object was read.
    Read { object: Object, seen: Seen },
}

/// One transaction, operation or snapshot.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How it lies in real time.
    pub place: Place,
    /// When it began and ended, by the clock of the history.
    pub invoked: u64,
    pub returned: u64,
    /// Whether it took effect; what an aborted one wrote must never be seen.
    pub is_committed: bool,
    pub actions: Vec<Action>,
}

/// Everything that happened. A last entry that reads every object belongs to it: what nobody has
/// seen by then is lost.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub entries: Vec<Entry>,
    /// The values of those objects whose reads do not show all of them.
    pub orders: BTreeMap<Object, Vec<Value>>,
}

/// Gives invocations and returns an order that agrees with real time.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// The next moment.
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Records what one thread does.
#[derive(Debug)]
pub struct Recorder<'a> {
    clock: &'a Clock,
    thread: u64,
    entries: Vec<Entry>,
}

impl<'a> Recorder<'a> {
    pub fn new(clock: &'a Clock, thread: u64) -> Self {
        Self { clock, thread, entries: Vec::new() }
    }

    /// Whether it is that of the first thread.
    pub fn is_first(&self) -> bool {
        self.thread == 0
    }

    /// Does `work`, which adds its actions and answers whether they took effect.
    pub fn record(&mut self, place: Place, work: impl FnOnce(&mut Vec<Action>) -> bool) {
        let mut actions = Vec::new();
        let invoked = self.clock.tick();
        let is_committed = work(&mut actions);
        let returned = self.clock.tick();
        self.entries.push(Entry { place, invoked, returned, is_committed, actions });
    }

    /// What was recorded.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}
