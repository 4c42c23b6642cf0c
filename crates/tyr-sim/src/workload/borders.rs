//! Numbers of every width changed in place at both sides of chunks' borders, against writes over
//! them and ends that come to lie there.
//!
//! A number that would lie in two chunks is refused whatever else happens; one that touches the
//! border from either side is not. What comes of the others is what the order of timestamps makes
//! of it, and the checkers know that.

use tyr_protocol::session::Want;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, ErrorKind, Number, Operation, Transform, TransformKind,
};

use super::{CELL, Space, Unique, Work, Workload, cells, is_in_two_chunks, on};
use crate::checker::{Deed, Entry, Fate, Replayed};
use crate::random::Random;

/// Chunks of a blob whose borders matter.
const CHUNKS: u64 = 3;

/// The workload.
#[derive(Clone, Debug)]
pub struct Borders {
    space: Space,
    blobs: usize,
    unique: Unique,
}

impl Borders {
    /// So many blobs; few, so that they race.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), unique: Unique::new(b'b') }
    }

    fn border(&self, random: &mut Random) -> u64 {
        random.between(1, CHUNKS - 1) * self.space.chunk_size
    }

    /// A number changed in place: the last of a chunk, the first of the next, one a few bytes
    /// further that is no multiple of its size, or, seldom, one in two chunks.
    fn apply(&self, random: &mut Random) -> Operation {
        let amount = random.between(1, 100);
        let number = match random.below(4) {
            0 => Number::U8(amount as u8),
            1 => Number::U16(amount as u16),
            2 => Number::I32(amount as i32),
            _ => Number::U64(amount),
        };
        let kinds = [TransformKind::Add, TransformKind::Sub, TransformKind::Xor];
        let kind = random.pick(&[kinds[0], kinds[1], kinds[2], TransformKind::Max]);
        let transform = Transform::new(kind, number).expect("it divides nothing");
        let (border, width) = (self.border(random), transform.width() as u64);
        let offset = match random.below(100) {
            0..40 => border - width,
            40..80 => border,
            80..92 => border + random.between(1, 20),
            _ => border - width.div_ceil(2),
        };
        Operation::Apply { offset, transform }
    }

    fn operation(&mut self, random: &mut Random) -> Operation {
        let number = self.unique.draw();
        match random.below(100) {
            0..64 => self.apply(random),
            64..80 => {
                let offset = self.border(random) - random.below(3) * CELL;
                Operation::Write { offset, payload: cells(number, random.between(1, 4)) }
            }
            80..90 => {
                let payload = cells(number, random.between(1, 4));
                Operation::Append { payload, expected: None }
            }
            _ => Operation::Truncate { len: self.border(random) - random.below(2) * CELL },
        }
    }

    fn operations(&mut self, blob: usize, random: &mut Random) -> BlobOperations {
        let count = random.between(1, 3);
        let operations: Vec<Operation> = (0..count).map(|_| self.operation(random)).collect();
        on(&self.blob(blob), operations)
    }

    fn want(&self, blob: usize, random: &mut Random) -> Want {
        let (border, around) = (self.border(random), random.between(1, 4) * CELL);
        let range = ByteRange { start: border - around, end: border + around };
        Want::bytes(self.blob(blob), range)
    }

    /// Whether a number of this transaction would lie in two chunks.
    fn is_in_two(&self, blobs: &[BlobOperations]) -> bool {
        let chunk_size = |written: &BlobOperations| self.space.chunk_size_of(&written.blob);
        blobs.iter().any(|written| is_in_two_chunks(written, chunk_size(written)))
    }

    fn blob(&self, number: usize) -> BlobName {
        self.space.blob("border", number)
    }
}

impl Workload for Borders {
    fn name(&self) -> &'static str {
        "borders"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        let len = CHUNKS * self.space.chunk_size;
        let blob = |blob| vec![on(&self.blob(blob), [Operation::Truncate { len }])];
        (0..self.blobs).map(blob).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.blobs).collect();
        let count = random.between(1, 2) as usize;
        let some = random.sample(&all, count);
        match random.below(100) {
            0..60 => {
                Work::Commit(some.into_iter().map(|blob| self.operations(blob, random)).collect())
            }
            60..75 => Work::Read(self.want(some[0], random)),
            75..90 => {
                let reads = some.iter().map(|blob| self.want(*blob, random)).collect();
                let blobs = vec![self.operations(some[0], random)];
                Work::Transact { reads, then: Box::new(move |_| blobs) }
            }
            _ => Work::ReadMany(all.iter().map(|blob| self.want(*blob, random)).collect()),
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        for entry in deeds {
            let Deed::Transaction(attempted) = &entry.deed else { continue };
            let is_in_two = self.is_in_two(&attempted.blobs);
            let is_refused = match &attempted.fate {
                Fate::Aborted(abort) => abort.kind == ErrorKind::InvalidArgument,
                Fate::Committed(_) if is_in_two => {
                    return Err(format!("{} changed a number in two chunks", entry.name()));
                }
                Fate::Committed(_) | Fate::NotSubmitted | Fate::Pending | Fate::Unknown => false,
            };
            if is_refused && !is_in_two {
                return Err(format!("{} was refused, and lies in no two chunks", entry.name()));
            }
        }
        Ok(())
    }
}
