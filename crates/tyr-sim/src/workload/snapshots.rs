//! Long snapshots over blobs that hot writers never leave alone.
//!
//! Each write puts one number into a cell of every blob; so within a snapshot all blobs show the
//! same number, however long it lasts. A snapshot begins with a read of a blob, or is of
//! everything.

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, ByteRange, Operation};

use super::{CELL, Space, Unique, Work, Workload, cell, numbers, on, views};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Snapshots {
    space: Space,
    blobs: usize,
    pause_us: u64,
    /// So many clients read; the others only write.
    readers: u16,
    /// Of a hundred snapshots so many are of everything.
    moments: u64,
    /// Of a hundred of the others so many are kept ones.
    kept: u64,
    unique: Unique,
}

impl Snapshots {
    /// So many blobs, read by snapshots that pause so long before each but the first.
    pub fn new(space: Space, blobs: usize, pause_us: u64) -> Self {
        let (readers, moments, kept, unique) = (u16::MAX, 0, 0, Unique::new(b's'));
        Self { space, blobs: blobs.max(1), pause_us, readers, moments, kept, unique }
    }

    /// The same, read by the first so many clients only.
    #[must_use]
    pub fn with_readers(self, readers: u16) -> Self {
        Self { readers, ..self }
    }

    /// The same, with so many snapshots of a hundred that are of everything.
    #[must_use]
    pub fn with_moments(self, moments: u64) -> Self {
        Self { moments, ..self }
    }

    /// The same, with so many of the others of a hundred that read what is kept.
    #[must_use]
    pub fn with_kept(self, kept: u64) -> Self {
        Self { kept, ..self }
    }

    fn write(&mut self) -> Vec<BlobOperations> {
        let number = self.unique.draw();
        let write = |blob| {
            let write = Operation::Write { offset: 0, payload: cell(number) };
            on(&self.space.blob("snapshot", blob), [write])
        };
        (0..self.blobs).map(write).collect()
    }

    fn wants(&self) -> Vec<Want> {
        let range = ByteRange { start: 0, end: CELL };
        let blobs = (0..self.blobs).map(|blob| self.space.blob("snapshot", blob));
        blobs.map(|blob| Want::bytes(blob, range)).collect()
    }
}

impl Workload for Snapshots {
    fn name(&self) -> &'static str {
        "snapshots"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        vec![self.write()]
    }

    fn next(&mut self, client: u16, random: &mut Random) -> Work {
        match random.below(100) {
            0..75 => Work::Commit(self.write()),
            _ if client >= self.readers => Work::Commit(self.write()),
            75..85 => Work::ReadMany(self.wants()),
            _ if self.moments > 0 && random.below(100) < self.moments => {
                Work::Moment { reads: self.wants(), pause_us: self.pause_us }
            }
            _ => {
                // The one that it began with again in the end: that version is in use (V1).
                let mut reads = self.wants();
                reads.push(reads[0].clone());
                let snapshot = Work::Snapshot { reads, pause_us: self.pause_us };
                match self.kept > 0 && random.below(100) < self.kept {
                    true => Work::AtKept(Box::new(snapshot)),
                    false => snapshot,
                }
            }
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        for (entry, seen) in views(deeds).filter(|(_, seen)| !seen.is_empty()) {
            let mut shown = seen.iter().map(|seen| numbers(seen).next());
            let first = shown.next().flatten();
            // What is kept may be of before there was anything.
            let is_wrong = first.is_none() && self.kept == 0;
            if is_wrong || shown.any(|number| number != first) {
                return Err(format!("{} shows two moments", entry.name()));
            }
        }
        Ok(())
    }
}
