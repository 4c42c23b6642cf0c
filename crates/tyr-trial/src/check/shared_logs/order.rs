//! The one order of a log's entries, of all that anybody was told.

use std::collections::{BTreeMap, HashMap};

use super::{Log, answered_before_earlier};
use crate::history::{Deed, Entry, Fate, Place};

/// An entry that is known to be in the log, or to have been.
pub struct Known<'a> {
    pub value: u64,
    pub at: Place,
    pub stamp: &'a str,
    pub number: Option<u64>,
    /// Who appended it.
    pub by: Option<&'a Deed>,
    /// When somebody had first been told of it.
    pub shown: u64,
}

/// All entries of a log, in its order: by stamps, and those of one transaction by places.
pub struct Order<'a> {
    pub all: Vec<Known<'a>>,
    places: HashMap<u64, Place>,
}

/// What is known so far, by places, and who is told things that cannot be.
struct Gathering<'a, 'b> {
    known: BTreeMap<Place, Known<'a>>,
    places: HashMap<u64, Place>,
    writers: HashMap<u64, &'a Deed>,
    wrong: &'b mut Vec<String>,
}

impl<'a> Order<'a> {
    /// The order of what somebody was told; what cannot be is `wrong`.
    pub fn of(log: &Log<'a>, wrong: &mut Vec<String>) -> Self {
        let writers = log.batches.iter();
        let writers = writers.flat_map(|it| it.values.iter().map(|value| (*value, it.deed)));
        let mut gathering = Gathering {
            known: BTreeMap::new(),
            places: HashMap::new(),
            writers: writers.collect(),
            wrong,
        };
        for batch in &log.batches {
            let Some(first) = batch.at else { continue };
            for (value, n) in batch.values.iter().zip(0..) {
                let [partition, segment, offset, index] = first.at;
                let at = [partition, segment, offset, index + n];
                let number = first.number.map(|number| number + n);
                gathering.hear(batch.deed, *value, at, (&first.stamp, number));
            }
        }
        for (deed, Entry { value, at, stamp, number }) in log.seen() {
            gathering.hear(deed, *value, *at, (stamp, *number));
        }
        let Gathering { known, places, .. } = gathering;
        let mut all: Vec<Known<'_>> = known.into_values().collect();
        all.sort_by_key(|it| (it.stamp, it.at));
        Self { all, places }
    }

    /// Where a value is.
    pub fn place(&self, value: u64) -> Option<Place> {
        self.places.get(&value).copied()
    }

    /// The entry at a place.
    pub fn at(&self, place: Place) -> Option<&Known<'a>> {
        self.all.iter().find(|it| it.at == place)
    }

    /// The entries of each partition, by their places.
    pub fn partitions(&self) -> BTreeMap<u64, Vec<&Known<'a>>> {
        let mut all = BTreeMap::<u64, Vec<&Known<'_>>>::new();
        self.all.iter().for_each(|it| all.entry(it.at[0]).or_default().push(it));
        all.values_mut().for_each(|partition| partition.sort_by_key(|it| it.at));
        all
    }

    /// Whether it is an order that a log may have.
    pub fn check(&self, log: &Log<'a>, wrong: &mut Vec<String>) {
        for (number, partition) in self.partitions() {
            if let Some(pair) = partition.windows(2).find(|pair| pair[0].stamp > pair[1].stamp) {
                let (one, other) = (pair[0].value, pair[1].value);
                wrong.push(format!("{other} is behind {one}, and has a lower stamp"));
            }
            check_time(&partition, &format!("in partition {number}"), wrong);
        }
        for pair in self.all.windows(2) {
            let writer = |it: &Known<'_>| it.by.map(|deed| deed.invoked);
            if pair[0].stamp == pair[1].stamp && writer(&pair[0]) != writer(&pair[1]) {
                let (one, other) = (pair[0].value, pair[1].value);
                wrong.push(format!("{one} and {other} are of two appends, and have one stamp"));
            }
        }
        if self.all.iter().any(|it| it.number.is_some()) {
            check_time(&self.all.iter().collect::<Vec<_>>(), "of a strict log", wrong);
            let is_other = |(it, n): &(&Known<'_>, u64)| it.number.is_some_and(|it| it != *n);
            if let Some((it, n)) = self.all.iter().zip(0..).find(is_other) {
                let (value, number) = (it.value, it.number.unwrap_or_default());
                wrong.push(format!("{value} has the number {number}, and {n} come before it"));
            }
        }
        log.batches.iter().for_each(|batch| self.check_batch(batch, wrong));
    }

    /// What was appended together is there as a whole, one after another.
    fn check_batch(&self, batch: &super::Batch<'a>, wrong: &mut Vec<String>) {
        let places: Vec<Place> = batch.values.iter().filter_map(|it| self.place(*it)).collect();
        let line = batch.deed.invoked;
        if let Some([partition, segment, offset, _]) = places.first() {
            let whole = (0..batch.values.len() as u64).map(|n| [*partition, *segment, *offset, n]);
            if !whole.eq(places.iter().copied()) {
                wrong.push(format!("a batch is not there as a whole (line {line}): {places:?}"));
            }
        }
    }
}

/// In the order in which they were acknowledged.
fn check_time(entries: &[&Known<'_>], of: &str, wrong: &mut Vec<String>) {
    let deeds: Vec<&Deed> = entries.iter().filter_map(|it| it.by).collect();
    if let Some((later, earlier)) = answered_before_earlier(&deeds) {
        wrong.push(format!(
            "what line {} appended was acknowledged before line {}, and comes behind it {of}",
            later.invoked, earlier.invoked
        ));
    }
}

impl<'a> Gathering<'a, '_> {
    /// Somebody was told of an entry.
    fn hear(
        &mut self,
        deed: &'a Deed,
        value: u64,
        at: Place,
        (stamp, number): (&'a str, Option<u64>),
    ) {
        let line = deed.invoked;
        let by = self.writers.get(&value).copied();
        if by.is_none_or(|by| by.fate == Fate::Failed) {
            self.wrong.push(format!("{value} is there, which nobody has appended (line {line})"));
        } else if by.is_some_and(|by| by.invoked > deed.returned) {
            self.wrong.push(format!("{value} was there before it was appended (line {line})"));
        }
        let place = *self.places.entry(value).or_insert(at);
        if place != at {
            self.wrong.push(format!("{value} is at {place:?} and at {at:?} (line {line})"));
            return;
        }
        let new = Known { value, at, stamp, number, by, shown: u64::MAX };
        let known = self.known.entry(at).or_insert(new);
        if deed.fate == Fate::Done {
            known.shown = known.shown.min(deed.returned);
        }
        if (known.value, known.stamp) != (value, stamp) {
            let other = known.value;
            self.wrong.push(format!("{other} and {value} are both at {at:?} (line {line})"));
        }
        let told = known.number.zip(number);
        if let Some((one, other)) = told.filter(|(one, other)| one != other) {
            self.wrong.push(format!("{value} has the numbers {one} and {other} (line {line})"));
        }
        known.number = known.number.or(number);
    }
}
