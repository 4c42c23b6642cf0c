//! Locks with tokens: whoever holds one reads a cell and writes back one more, in two steps that
//! nothing but the lock holds together (K1, K3, K4).
//!
//! Holders sleep, and go on when they wake as if nothing had been. So a number that is written
//! twice was read by two who both took themselves for the only one, and neither was refused.

use std::collections::BTreeMap;

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, LeaseMode, Leased, Operation};

use super::locking::{Locked, Under};
use super::{CELL, Space, Work, Workload, cell, numbers, numbers_of, on};
use crate::checker::{Deed, Entry, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Locks {
    space: Space,
    locks: usize,
    is_fenced: bool,
}

impl Locks {
    /// So many locks; holders show their tokens, if they are to be fenced.
    pub fn new(space: Space, locks: usize, is_fenced: bool) -> Self {
        Self { space, locks: locks.max(1), is_fenced }
    }

    fn lock(&self, number: usize) -> BlobName {
        self.space.blob("lock", number)
    }

    fn want(&self, number: usize) -> Want {
        let range = ByteRange { start: 0, end: CELL };
        Want::bytes(self.space.blob("locked", number), range)
    }
}

impl Workload for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let number = random.below(self.locks as u64) as usize;
        let want = self.want(number);
        if random.percent(10) {
            return Work::Read(want);
        }
        let blob = want.blob.clone();
        Work::Locked(Locked {
            lock: Leased::Key(self.lock(number)),
            mode: LeaseMode::Exclusive,
            duration_us: random.between(1_000_000, 10_000_000),
            wait_us: random.percent(80).then(|| random.between(100_000, 15_000_000)),
            want,
            listed: None,
            under: Under::Token {
                times: random.between(1, 4) as u32,
                write: Box::new(move |seen| {
                    let next = numbers_of(seen).next().unwrap_or(0) + 1;
                    vec![on(&blob, [Operation::Write { offset: 0, payload: cell(next) }])]
                }),
                is_fenced: self.is_fenced,
            },
            pause_us: random.below(400_000),
        })
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        let cells: Vec<BlobName> = (0..self.locks).map(|it| self.want(it).blob).collect();
        let mut written: BTreeMap<(usize, u64), &Entry> = BTreeMap::new();
        for entry in deeds {
            let Deed::Transaction(attempted) = &entry.deed else { continue };
            for blob in attempted.blobs.iter().filter(|_| attempted.is_committed()) {
                let Some(number) = cells.iter().position(|it| *it == blob.blob) else { continue };
                let [Operation::Write { payload, .. }] = &blob.operations[..] else { continue };
                let tyr_types::Payload::Inline(bytes) = payload else { continue };
                let value = numbers_of(bytes).next().unwrap_or(0);
                if let Some(other) = written.insert((number, value), entry) {
                    let (one, two) = (other.name(), entry.name());
                    return Err(format!("{one} and {two} both made cell {number} {value}"));
                }
            }
        }
        for (number, blob) in cells.iter().enumerate() {
            let seen = deeds.iter().flat_map(|entry| entry.seen());
            let seen = seen.filter(|seen| seen.want.blob == *blob).flat_map(numbers);
            let there = end.blob(blob).map_or(0, |bytes| numbers_of(&bytes).next().unwrap_or(0));
            let highest = written.keys().filter(|(cell, _)| *cell == number).map(|(_, it)| *it);
            if let Some(lost) = highest.chain(seen).find(|value| *value > there) {
                return Err(format!("cell {number} was {lost}, and is {there} in the end"));
            }
        }
        Ok(())
    }
}
