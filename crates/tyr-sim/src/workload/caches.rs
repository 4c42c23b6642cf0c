//! Caches: clients read a cell under a lease, and go by what they have read for as long as they
//! hold it, while others write (K2).
//!
//! Each look at what was read counts as a read at that moment, of no duration: so what every
//! history must show finds out who was shown something old. Holders sleep with their leases.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, LeaseMode, Operation};

use super::locking::{Locked, Under};
use super::{CELL, Space, Unique, Work, Workload, cell, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Caches {
    space: Space,
    blobs: usize,
    unique: Unique,
}

impl Caches {
    /// So many blobs, with a cell each: every other one has it in its third chunk.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), unique: Unique::new(b'c') }
    }

    fn place(&self, number: usize) -> (BlobName, u64) {
        (self.space.blob("cached", number), (number % 2) as u64 * 2 * self.space.chunk_size)
    }

    fn want(&self, number: usize) -> Want {
        let (blob, start) = self.place(number);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    fn write(&mut self, number: usize) -> BlobOperations {
        let (blob, offset) = self.place(number);
        on(&blob, [Operation::Write { offset, payload: cell(self.unique.draw()) }])
    }

    fn cached(&self, number: usize, random: &mut Random) -> Locked {
        Locked {
            lock: self.place(number).0,
            mode: if random.percent(75) { LeaseMode::Shared } else { LeaseMode::Exclusive },
            duration_us: random.between(1_000_000, 3_000_000),
            wait_us: random.percent(80).then(|| random.between(100_000, 8_000_000)),
            want: self.want(number),
            under: Under::Cache { times: random.between(1, 12) as u32 },
            pause_us: random.below(300_000),
        }
    }
}

impl Workload for Caches {
    fn name(&self) -> &'static str {
        "caches"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        (0..self.blobs).map(|number| vec![self.write(number)]).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let number = random.below(self.blobs as u64) as usize;
        let other = random.below(self.blobs as u64) as usize;
        match random.below(100) {
            0..45 => Work::Locked(self.cached(number, random)),
            45..65 => Work::Commit(vec![self.write(number)]),
            65..75 if other != number => Work::Commit(vec![self.write(number), self.write(other)]),
            65..85 => {
                let write = self.write(number);
                Work::Transact { reads: vec![self.want(other)], then: Box::new(|_| vec![write]) }
            }
            _ => Work::Read(self.want(number)),
        }
    }

    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(()) // Every history is checked for what they see.
    }
}
