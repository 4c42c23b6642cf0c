//! Counters that are only ever added to, in place, several in one transaction.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Number, Operation, Outcome, Transform};

use super::{CELL, Space, Work, Workload, numbers, numbers_of, on};
use crate::checker::{Attempted, Deed, Entry, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Counters {
    space: Space,
    counters: usize,
}

impl Counters {
    /// So many counters.
    pub fn new(space: Space, counters: usize) -> Self {
        Self { space, counters: counters.max(1) }
    }

    fn place(&self, counter: usize) -> (BlobName, u64) {
        self.space.sparse_cell("counter", counter)
    }

    fn want(&self, counter: usize) -> Want {
        let (blob, start) = self.place(counter);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    fn add(&self, counters: &[usize]) -> Vec<BlobOperations> {
        let mut blobs: Vec<BlobOperations> = Vec::new();
        for counter in counters {
            let (blob, offset) = self.place(*counter);
            let operation = Operation::Apply { offset, transform: Transform::add(Number::U64(1)) };
            match blobs.iter_mut().find(|entry| entry.blob == blob) {
                Some(entry) => entry.operations.push(operation),
                None => blobs.push(on(&blob, [operation])),
            }
        }
        blobs
    }

    /// How often a transaction adds to a counter, and the highest value it was answered.
    fn added(&self, attempted: &Attempted, counter: usize) -> (u64, u64) {
        let (name, place) = self.place(counter);
        let (mut count, mut highest) = (0, 0);
        for (blob, entry) in attempted.blobs.iter().enumerate().filter(|(_, it)| it.blob == name) {
            for (number, operation) in entry.operations.iter().enumerate() {
                if matches!(operation, Operation::Apply { offset, .. } if *offset == place) {
                    count += 1;
                    let answers = attempted.answers.iter();
                    let mut own = answers.filter(|it| (it.blob, it.operation) == (blob, number));
                    if let Some(Outcome::Value(Number::U64(value))) =
                        own.next().map(|it| it.outcome)
                    {
                        highest = value.max(highest);
                    }
                }
            }
        }
        (count, highest)
    }
}

impl Workload for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.counters).collect();
        let count = random.between(1, 4) as usize;
        let some = random.sample(&all, count);
        let wants = |some: &[usize]| some.iter().map(|counter| self.want(*counter)).collect();
        match random.below(100) {
            0..65 => Work::Commit(self.add(&some)),
            65..80 => Work::Read(self.want(some[0])),
            80..90 => {
                let add = self.add(&some);
                Work::Transact { reads: wants(&some), then: Box::new(move |_| add) }
            }
            _ => Work::ReadMany(wants(&some)),
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        for counter in 0..self.counters {
            let (mut certain, mut possible, mut highest) = (0, 0, 0);
            for entry in deeds {
                if let Deed::Transaction(attempted) = &entry.deed {
                    let (count, value) = self.added(attempted, counter);
                    certain += if attempted.is_committed() { count } else { 0 };
                    possible += if attempted.is_possible() { count } else { 0 };
                    highest = highest.max(value);
                }
                let reads = entry.seen().iter().filter(|seen| seen.want == self.want(counter));
                highest = reads.flat_map(numbers).fold(highest, u64::max);
            }
            let (blob, offset) = self.place(counter);
            let bytes = end.blob(&blob).unwrap_or_default();
            let there = numbers_of(bytes.get(offset as usize..).unwrap_or(&[])).next().unwrap_or(0);
            if there < certain.max(highest) || there > possible {
                return Err(format!(
                    "counter {counter} is {there}; {certain} to {possible} were added, and \
                     somebody saw {highest}"
                ));
            }
        }
        Ok(())
    }
}
