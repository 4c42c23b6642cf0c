//! Blobs that are written in pieces which were uploaded ahead, over several chunks, while others
//! write, cut, compute and read there.
//!
//! What is read is held to a blob that is kept plainly: a piece is there whole, with all others of
//! its transaction, in the place of that transaction, or not at all.

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, Bytes, Number, Operation, Payload, Transform};

use super::uploading::{Afterwards, in_pieces};
use super::{CELL, Space, Unique, Work, Workload, cells, on};
use crate::checker::{Entry, Replayed, Seen};
use crate::random::Random;

/// Chunks that writes lie in.
const CHUNKS: u64 = 4;

/// Pieces of a chunk at most, so that no client is at one upload for long after the faults ended.
pub const PIECES_MAX: u64 = 64;

/// The workload.
#[derive(Clone, Debug)]
pub struct Uploads {
    space: Space,
    blobs: usize,
    /// Of a hundred transactions, so many are not committed: their pieces are dropped, or left.
    unused: u64,
    /// Between the pieces of a transaction and before it is committed, in microseconds.
    pause_us: u64,
    unique: Unique,
}

impl Uploads {
    /// So many blobs, at least two.
    pub fn new(space: Space, blobs: usize) -> Self {
        let (unused, pause_us, unique) = (0, 0, Unique::new(b'u'));
        Self { space, blobs: blobs.max(2), unused, pause_us, unique }
    }

    /// The same; of a hundred transactions so many are not committed when all is uploaded, half of
    /// these without a word.
    pub fn with_unused(self, unused: u64) -> Self {
        Self { unused, ..self }
    }

    /// The same; clients pause for so long before each call of a transaction but the first.
    pub fn with_pause(self, pause_us: u64) -> Self {
        Self { pause_us, ..self }
    }

    /// Commits it; or uploads what it needs, and does not.
    fn commit(&self, blobs: Vec<BlobOperations>, random: &mut Random) -> Work {
        let uploaded = |entry: &BlobOperations| {
            entry.operations.iter().any(|operation| operation.uploaded().is_some())
        };
        let is_unused =
            self.unused > 0 && blobs.iter().any(uploaded) && random.percent(self.unused);
        let afterwards = match is_unused {
            true if random.percent(50) => Afterwards::Drop,
            true => Afterwards::Leave,
            false => Afterwards::Commit,
        };
        Work::Upload { blobs, afterwards, pause_us: self.pause_us }
    }

    /// So many cells of one number at `offset`, uploaded ahead.
    fn uploaded(&mut self, offset: u64, count: u64, size: u64, random: &mut Random) -> Payload {
        let number = self.unique.draw();
        let bytes = Bytes::from(number.to_le_bytes().repeat(count as usize));
        in_pieces(&bytes, offset, size, random.between(size / PIECES_MAX, size))
    }

    fn place(&self, random: &mut Random) -> u64 {
        random.below(CHUNKS * self.space.chunk_size / CELL) * CELL
    }

    fn operations(&mut self, size: u64, random: &mut Random) -> Vec<Operation> {
        let in_chunk = size / CELL;
        let offset = self.place(random);
        match random.below(100) {
            0..30 => {
                let count = random.between(1, 3 * in_chunk);
                vec![Operation::Replace { payload: self.uploaded(0, count, size, random) }]
            }
            30..60 => {
                let count = random.between(1, 2 * in_chunk);
                let payload = self.uploaded(offset, count, size, random);
                vec![Operation::Write { offset, payload }]
            }
            // Computed over what was uploaded, in one transaction.
            60..66 => {
                let payload = self.uploaded(offset, 4, size, random);
                let transform = Transform::add(Number::U64(self.unique.draw()));
                vec![Operation::Write { offset, payload }, Operation::Apply { offset, transform }]
            }
            // By value beside it.
            66..72 => {
                let payload = self.uploaded(offset, in_chunk, size, random);
                let beside = self.place(random);
                let cells = cells(self.unique.draw(), 2);
                vec![
                    Operation::Write { offset, payload },
                    Operation::Write { offset: beside, payload: cells },
                ]
            }
            72..82 => {
                let payload = cells(self.unique.draw(), random.between(1, in_chunk));
                vec![Operation::Write { offset, payload }]
            }
            82..88 => {
                let payload = cells(self.unique.draw(), random.between(1, 8));
                vec![Operation::Append { payload, expected: None }]
            }
            88..94 => vec![Operation::Truncate { len: offset }],
            94..97 => vec![Operation::Delete],
            _ => vec![Operation::Apply {
                offset,
                transform: Transform::add(Number::U64(self.unique.draw())),
            }],
        }
    }

    fn on_blob(&mut self, number: usize, random: &mut Random) -> BlobOperations {
        let blob = self.space.blob("uploads", number);
        let size = self.space.chunk_size_of(&blob);
        let operations = self.operations(size, random);
        on(&blob, operations)
    }

    fn want(&self, blob: usize) -> Want {
        Want::bytes(self.space.blob("uploads", blob), self.space.whole())
    }
}

impl Workload for Uploads {
    fn name(&self) -> &'static str {
        "uploads"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.blobs).collect();
        let two = random.sample(&all, 2);
        let wants = || all.iter().map(|blob| self.want(*blob)).collect();
        match random.below(100) {
            0..50 => {
                let one = self.on_blob(two[0], random);
                self.commit(vec![one], random)
            }
            50..62 => {
                let (one, other) = (self.on_blob(two[0], random), self.on_blob(two[1], random));
                self.commit(vec![one, other], random)
            }
            // What was read is written elsewhere.
            62..72 => {
                let written = self.on_blob(two[1], random);
                let then = move |_: &[Seen]| vec![written];
                Work::Transact { reads: vec![self.want(two[0])], then: Box::new(then) }
            }
            72..84 => Work::Read(self.want(two[0])),
            84..92 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 3_000 },
        }
    }

    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(())
    }
}
