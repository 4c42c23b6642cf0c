//! Blobs over many chunks, read while they are rewritten: nobody sees half of it.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, Operation, Payload};

use super::{CELL, Space, Unique, Work, Workload, cells, numbers, numbers_of, on};
use crate::checker::{Entry, Replayed, Seen};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Rewrites {
    space: Space,
    blobs: usize,
    unique: Unique,
}

impl Rewrites {
    /// So many blobs.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), unique: Unique::new(b'w') }
    }

    /// A whole blob of one number, ending somewhere in its second to fourth chunk.
    fn payload(&mut self, random: &mut Random) -> Payload {
        let in_chunk = self.space.chunk_size / CELL;
        let count = random.between(in_chunk, 4 * in_chunk);
        cells(self.unique.draw(), count)
    }

    fn want(&self, blob: &BlobName) -> Want {
        Want::bytes(blob.clone(), self.space.whole())
    }
}

impl Workload for Rewrites {
    fn name(&self) -> &'static str {
        "rewrites"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        let in_chunk = self.space.chunk_size / CELL;
        let blob = |blob| {
            let payload = cells(self.unique.draw(), 3 * in_chunk);
            vec![on(&self.space.blob("rewrite", blob), [Operation::Replace { payload }])]
        };
        (0..self.blobs).map(blob).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let blob = self.space.blob("rewrite", random.below(self.blobs as u64) as usize);
        match random.below(100) {
            0..30 => {
                let payload = self.payload(random);
                Work::Commit(vec![on(&blob, [Operation::Replace { payload }])])
            }
            30..45 => {
                let payload = self.payload(random);
                let write =
                    [Operation::Truncate { len: 0 }, Operation::Write { offset: 0, payload }];
                Work::Commit(vec![on(&blob, write)])
            }
            45..70 => Work::Read(self.want(&blob)),
            70..85 => {
                // Twice, so that what repeats is checked over all chunks.
                let reads = vec![self.want(&blob), self.want(&blob)];
                Work::Transact { reads, then: Box::new(|_| Vec::new()) }
            }
            85..93 => {
                let payload = self.payload(random);
                let reads = vec![self.want(&blob)];
                let then = move |_: &[Seen]| vec![on(&blob, [Operation::Replace { payload }])];
                Work::Transact { reads, then: Box::new(then) }
            }
            _ => Work::Snapshot { reads: vec![self.want(&blob); 2], pause_us: 3_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        let reads = deeds.iter().flat_map(|entry| entry.seen().iter().map(move |it| (entry, it)));
        for (entry, seen) in reads.filter(|(_, seen)| seen.is_answered()) {
            let mut numbers = numbers(seen);
            let first = numbers.next();
            if first.is_none() || numbers.any(|number| Some(number) != first) {
                return Err(format!("{} is torn", entry.name()));
            }
        }
        for blob in (0..self.blobs).map(|blob| self.space.blob("rewrite", blob)) {
            let bytes = end.blob(&blob).unwrap_or_default();
            let mut numbers = numbers_of(&bytes);
            let first = numbers.next();
            if numbers.any(|number| Some(number) != first) {
                return Err(format!("in the end \"{}\" is torn", blob.key));
            }
        }
        Ok(())
    }
}
