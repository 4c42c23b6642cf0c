//! Blobs whose end everybody moves: appends race truncates, deletes, creates and writes beyond.
//!
//! There is nothing of its own to check: what comes of it is what the order of timestamps makes of
//! it, and the checkers know that.

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, ByteRange, Operation};

use super::{CELL, Space, Unique, Work, Workload, cells, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Ends {
    space: Space,
    blobs: usize,
    unique: Unique,
}

impl Ends {
    /// So many blobs; few, so that they race.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), unique: Unique::new(b'e') }
    }

    /// A place in the first four chunks; often near the end of one.
    fn place(&self, random: &mut Random) -> u64 {
        let in_chunk = self.space.chunk_size / CELL;
        match random.percent(30) {
            true => (random.between(1, 3) * in_chunk + random.below(5) - 2) * CELL,
            false => random.below(4 * in_chunk) * CELL,
        }
    }

    fn operation(&mut self, random: &mut Random) -> Operation {
        let number = self.unique.draw();
        let in_chunk = self.space.chunk_size / CELL;
        let count = if random.percent(20) { random.between(1, 2 * in_chunk) } else { 1 };
        let payload = cells(number, count);
        match random.below(100) {
            0..45 => Operation::Append { payload, expected: None },
            45..65 => {
                // A write of nothing moves the end, too.
                let payload = if number.is_multiple_of(7) { cells(number, 0) } else { payload };
                Operation::Write { offset: self.place(random), payload }
            }
            65..80 => Operation::Truncate { len: self.place(random) },
            80..88 => Operation::Delete,
            88..94 => Operation::Create,
            _ => Operation::Replace { payload },
        }
    }
}

impl Workload for Ends {
    fn name(&self) -> &'static str {
        "ends"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.blobs).collect();
        let blob = self.space.blob("end", random.pick(&all));
        let start = self.place(random);
        let piece = Want::bytes(blob.clone(), ByteRange { start, end: start + 4 * CELL });
        let sized = Want { is_attributes: true, ..piece.clone() };
        match random.below(100) {
            0..60 => {
                let count = random.between(1, 2) as usize;
                let some = random.sample(&all, count);
                let operations = |blob: &usize| {
                    let count = if random.percent(25) { 2 } else { 1 };
                    let operations = (0..count).map(|_| self.operation(random)).collect::<Vec<_>>();
                    (self.space.blob("end", *blob), operations)
                };
                let blobs: Vec<_> = some.iter().map(operations).collect();
                Work::Commit(blobs.into_iter().map(|(blob, it)| on(&blob, it)).collect())
            }
            60..70 => Work::Read(piece),
            70..76 => Work::Read(Want::stat(blob)),
            76..84 => Work::Read(Want::bytes(blob, self.space.whole())),
            84..94 => {
                let operation = self.operation(random);
                let then = Box::new(move |_: &[_]| vec![on(&blob, [operation])]);
                Work::Transact { reads: vec![sized], then }
            }
            _ => {
                let want =
                    |blob: &usize| Want::bytes(self.space.blob("end", *blob), self.space.whole());
                Work::ReadMany(all.iter().map(want).collect())
            }
        }
    }

    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(())
    }
}
