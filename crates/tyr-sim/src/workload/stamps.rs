//! Entries with the commit timestamp in them: in logs, several logs at once, and where two chunks
//! meet.
//!
//! What is filled in must be the same at every replica, after replay and in copies, and ascend
//! along a log, so that whoever merges logs by it finds the order in which they were written.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_protocol::session::Want;
use tyr_types::{
    BlobOperations, ByteRange, Operation, Payload, Stamped, Timestamp, limits::STAMP_LEN,
};

use super::{CELL, Space, Unique, Work, Workload, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// Bytes of an entry: a stamp, and a number that is drawn once.
const ENTRY: usize = STAMP_LEN + CELL as usize;

/// The workload.
#[derive(Clone, Debug)]
pub struct Stamps {
    space: Space,
    logs: usize,
    unique: Unique,
}

impl Stamps {
    /// So many logs, at least two.
    pub fn new(space: Space, logs: usize) -> Self {
        Self { space, logs: logs.max(2), unique: Unique::new(b't') }
    }

    /// So many entries of one number.
    fn entries(&mut self, count: usize) -> Payload {
        let number = self.unique.draw().to_le_bytes();
        let entry = [&[0; STAMP_LEN][..], &number].concat();
        let places = (0..count).map(|place| place * ENTRY);
        let stamped = Stamped::new(entry.repeat(count), places).expect("they are apart");
        Payload::Stamped(Arc::new(stamped))
    }

    fn append(&mut self, log: usize, payload: Payload) -> BlobOperations {
        on(&self.space.blob("stamped", log), [Operation::Append { payload, expected: None }])
    }

    /// A few entries over the end of a chunk of another blob.
    fn mark(&mut self, random: &mut Random) -> BlobOperations {
        let blob = self.space.blob("mark", 0);
        let chunk_size = self.space.chunk_size_of(&blob);
        // The end lies in each byte of a stamp now and then.
        let offset = chunk_size - random.between(1, ENTRY as u64);
        on(&blob, [Operation::Write { offset, payload: self.entries(1) }])
    }

    fn commit(&mut self, two: [usize; 2], random: &mut Random) -> Vec<BlobOperations> {
        match random.below(100) {
            0..40 => {
                let payload = self.entries(1);
                vec![self.append(two[0], payload)]
            }
            40..65 => {
                let payload = self.entries(1);
                vec![self.append(two[0], payload.clone()), self.append(two[1], payload)]
            }
            65..80 => {
                let count = random.between(2, 16) as usize;
                let payload = self.entries(count);
                vec![self.append(two[0], payload)]
            }
            80..90 => vec![self.mark(random)],
            90..97 => {
                let payload = self.entries(1);
                let both = [self.mark(random), self.append(two[0], payload)];
                both.to_vec()
            }
            _ => {
                let payload = self.entries(2);
                let blob = self.space.blob("stamped", two[0]);
                vec![on(&blob, [Operation::Replace { payload }])]
            }
        }
    }

    fn want(&self, log: usize) -> Want {
        Want::bytes(self.space.blob("stamped", log), self.space.whole())
    }
}

impl Workload for Stamps {
    fn name(&self) -> &'static str {
        "stamps"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.logs).collect();
        let two = random.sample(&all, 2);
        let wants = || all.iter().map(|log| self.want(*log)).collect();
        match random.below(100) {
            0..75 => Work::Commit(self.commit([two[0], two[1]], random)),
            75..83 => Work::Read(self.want(two[0])),
            83..87 => {
                let range = ByteRange { start: 0, end: 2 * self.space.chunk_size };
                Work::Read(Want::bytes(self.space.blob("mark", 0), range))
            }
            87..95 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 1_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        let logs: Vec<_> = (0..self.logs).map(|log| self.space.blob("stamped", log)).collect();
        let mut stamps: BTreeMap<u64, Timestamp> = BTreeMap::new();
        for entry in deeds {
            for seen in entry.seen().iter().filter(|seen| logs.contains(&seen.want.blob)) {
                let wrong = |text: String| format!("{}: {text}", entry.name());
                check_log(seen.bytes(), &mut stamps).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

/// Entries ascend by their stamps, and one number has one stamp wherever it is read.
fn check_log(bytes: &[u8], stamps: &mut BTreeMap<u64, Timestamp>) -> Result<(), String> {
    let mut last = Timestamp::ZERO;
    for entry in bytes.chunks_exact(ENTRY) {
        let (stamp, number) = entry.split_at(STAMP_LEN);
        let number = u64::from_le_bytes(number.try_into().expect("a cell has eight bytes"));
        let stamp = stamp.try_into().expect("it was split there");
        let at = Timestamp::from_stamp(stamp).ok_or_else(|| format!("{number:x} has no stamp"))?;
        if at == Timestamp::ZERO || at < last {
            return Err(format!("{number:x} is stamped {at}, behind one of {last}"));
        }
        let first = *stamps.entry(number).or_insert(at);
        if first != at {
            return Err(format!("{number:x} is stamped {at} here and {first} elsewhere"));
        }
        last = at;
    }
    Ok(())
}
