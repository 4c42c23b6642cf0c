//! Blobs that are copied into each other inside the cluster, whole and in part, while others write,
//! cut, delete and read them.
//!
//! What a copy is to have in it is what its client has read of the source at the moment of the
//! copy; so it is held to that by everybody who reads it. Half of the transactions depend on what
//! was read, like any other read; half are of a snapshot, whatever became of the source since.

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, ByteRange, Operation};

use super::copying::Copied;
use super::uploads::PIECES_MAX;
use super::{CELL, Space, Unique, Work, Workload, cells, on};
use crate::checker::{Entry, Replayed, Seen};
use crate::random::Random;

/// Chunks that writes lie in.
const CHUNKS: u64 = 4;

/// The workload.
#[derive(Clone, Debug)]
pub struct Copies {
    space: Space,
    blobs: usize,
    /// Between the pieces of a transaction and before it is committed, in microseconds.
    pause_us: u64,
    unique: Unique,
}

impl Copies {
    /// So many blobs, at least two; clients pause for so long before each call of a copy but the
    /// first.
    pub fn new(space: Space, blobs: usize, pause_us: u64) -> Self {
        Self { space, blobs: blobs.max(2), pause_us, unique: Unique::new(b'y') }
    }

    fn place(&self, random: &mut Random) -> u64 {
        random.below(CHUNKS * self.space.chunk_size / CELL) * CELL
    }

    fn copy(&self, from: usize, to: usize, random: &mut Random) -> Work {
        let (from, to) = (self.space.blob("copies", from), self.space.blob("copies", to));
        let (from_size, to_size) = (self.space.chunk_size_of(&from), self.space.chunk_size_of(&to));
        let (from, offset) = match random.percent(40) {
            true => {
                let range = self.space.whole();
                (Want { blob: from, range, is_attributes: true }, None)
            }
            false => {
                let (start, offset) = (self.place(random), self.place(random));
                let len = random.between(1, 2 * self.space.chunk_size / CELL) * CELL;
                (Want::bytes(from, ByteRange { start, end: start + len }), Some(offset))
            }
        };
        let (len_max, is_validated) =
            (random.between(to_size / PIECES_MAX, to_size), random.percent(50));
        let copied = Copied { from, from_size, to, to_size, offset, len_max, is_validated };
        Work::Copy { copied, pause_us: self.pause_us }
    }

    fn operations(&mut self, size: u64, random: &mut Random) -> Vec<Operation> {
        let (offset, in_chunk) = (self.place(random), size / CELL);
        match random.below(100) {
            0..60 => {
                let payload = cells(self.unique.draw(), random.between(1, in_chunk));
                vec![Operation::Write { offset, payload }]
            }
            60..85 => {
                let payload = cells(self.unique.draw(), random.between(1, 3 * in_chunk));
                vec![Operation::Replace { payload }]
            }
            85..93 => vec![Operation::Truncate { len: offset }],
            93..97 => {
                vec![Operation::Clear { range: ByteRange { start: offset, end: offset + size } }]
            }
            _ => vec![Operation::Delete],
        }
    }

    fn write(&mut self, number: usize, random: &mut Random) -> BlobOperations {
        let blob = self.space.blob("copies", number);
        let size = self.space.chunk_size_of(&blob);
        let operations = self.operations(size, random);
        on(&blob, operations)
    }

    fn want(&self, blob: usize) -> Want {
        Want::bytes(self.space.blob("copies", blob), self.space.whole())
    }
}

impl Workload for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        let write = |number| {
            let blob = self.space.blob("copies", number);
            let count = 2 * self.space.chunk_size_of(&blob) / CELL;
            let payload = cells(self.unique.draw(), count);
            vec![on(&blob, [Operation::Replace { payload }])]
        };
        (0..self.blobs).map(write).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.blobs).collect();
        let two = random.sample(&all, 2);
        let wants = || all.iter().map(|blob| self.want(*blob)).collect();
        match random.below(100) {
            0..35 => {
                let written = self.write(two[0], random);
                Work::Commit(vec![written])
            }
            35..40 => {
                let written = self.write(two[1], random);
                let then = move |_: &[Seen]| vec![written];
                Work::Transact { reads: vec![self.want(two[0])], then: Box::new(then) }
            }
            // Into itself, now and then.
            40..44 => self.copy(two[0], two[0], random),
            44..74 => self.copy(two[0], two[1], random),
            74..86 => Work::Read(self.want(two[0])),
            86..94 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 3_000 },
        }
    }

    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(())
    }
}
