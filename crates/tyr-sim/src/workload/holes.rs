//! Blobs over many chunks in which holes are made, while others write, append, cut and read there.
//!
//! What is cleared reads as zeros at every moment from then on, on every node, whatever the base
//! below it has; and it moves no end.

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, ByteRange, Number, Operation, Transform};

use super::{CELL, Space, Unique, Work, Workload, cells, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// Chunks that writes lie in.
const CHUNKS: u64 = 5;

/// The workload.
#[derive(Clone, Debug)]
pub struct Holes {
    space: Space,
    blobs: usize,
    /// Of a hundred things that a client does, so many ask which bytes are written.
    stretches: u64,
    unique: Unique,
}

impl Holes {
    /// So many blobs.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), stretches: 0, unique: Unique::new(b'h') }
    }

    /// The same; so many of a hundred things that clients do ask which bytes are written.
    pub fn with_stretches(self, stretches: u64) -> Self {
        Self { stretches, ..self }
    }

    /// Asks which bytes of a blob are written.
    fn ask(&self, blob: usize, random: &mut Random) -> Work {
        let name = self.space.blob("holes", blob);
        let chunk_size = self.space.chunk_size_of(&name);
        let start = random.below(chunk_size);
        let range = ByteRange { start, end: start + random.between(1, 6) * chunk_size };
        Work::Stretches { first: Want::stat(name), range, chunk_size, pause_us: 2_000 }
    }

    /// Where a cell begins.
    fn place(&self, random: &mut Random) -> u64 {
        random.below(CHUNKS * self.space.chunk_size / CELL) * CELL
    }

    fn clear(&self, random: &mut Random) -> Operation {
        let chunk = self.space.chunk_size;
        let len = match random.below(10) {
            0..3 => random.between(1, 3 * CELL),
            3..6 => random.between(1, chunk),
            6..9 => random.between(chunk, 4 * chunk),
            // Far behind the end.
            _ => 20 * chunk,
        };
        // Any byte, not cells alone.
        let start = random.below(CHUNKS * chunk);
        Operation::Clear { range: ByteRange { start, end: start + len } }
    }

    fn write(&mut self, count: u64, random: &mut Random) -> Operation {
        let offset = self.place(random);
        Operation::Write { offset, payload: cells(self.unique.draw(), count) }
    }

    fn operations(&mut self, random: &mut Random) -> Vec<Operation> {
        let in_chunk = self.space.chunk_size / CELL;
        match random.below(100) {
            0..20 => {
                let count = random.between(1, 4);
                vec![self.write(count, random)]
            }
            20..35 => {
                let count = random.between(in_chunk / 2, 3 * in_chunk);
                vec![self.write(count, random)]
            }
            35..60 => vec![self.clear(random)],
            60..68 => {
                let count = random.between(1, 4);
                vec![self.clear(random), self.write(count, random)]
            }
            68..76 => {
                let count = random.between(1, in_chunk);
                let payload = cells(self.unique.draw(), count);
                vec![Operation::Append { payload, expected: None }]
            }
            76..86 => {
                let transform = Transform::add(Number::U64(self.unique.draw()));
                vec![Operation::Apply { offset: self.place(random), transform }]
            }
            86..92 => vec![self.clear(random), self.clear(random)],
            92..97 => vec![Operation::Truncate { len: self.place(random) }],
            97..99 => vec![self.clear(random), Operation::Truncate { len: self.place(random) }],
            _ => vec![Operation::Delete],
        }
    }

    fn want(&self, blob: usize) -> Want {
        Want::bytes(self.space.blob("holes", blob), self.space.whole())
    }
}

impl Workload for Holes {
    fn name(&self) -> &'static str {
        "holes"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let blob = random.below(self.blobs as u64) as usize;
        let wants = || (0..self.blobs).map(|blob| self.want(blob)).collect();
        if self.stretches > 0 && random.percent(self.stretches) {
            return self.ask(blob, random);
        }
        match random.below(100) {
            0..70 => {
                let name = self.space.blob("holes", blob);
                Work::Commit(vec![on(&name, self.operations(random))])
            }
            70..80 => Work::Read(self.want(blob)),
            80..86 => Work::Read(Want::stat(self.space.blob("holes", blob))),
            86..93 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 5_000 },
        }
    }

    /// What was read is held to a blob that is kept plainly, as all reads are.
    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(())
    }
}
