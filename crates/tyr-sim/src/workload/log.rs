//! A log that is appended to at a position one knows: whoever is wrong about it is refused.

use std::collections::BTreeMap;

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, ByteRange, Operation, Outcome};

use super::{CELL, Space, Unique, Work, Workload, cells, numbers_of, on};
use crate::checker::{Attempted, Deed, Entry, Found, Replayed};
use crate::random::Random;

/// Cells of a record.
const RECORD: u64 = 4;

/// The workload.
#[derive(Clone, Debug)]
pub struct Log {
    space: Space,
    logs: usize,
    unique: Unique,
    /// Where each client believes each log to end.
    ends: BTreeMap<(u16, usize), u64>,
}

impl Log {
    /// So many logs.
    pub fn new(space: Space, logs: usize) -> Self {
        let unique = Unique::new(b'g');
        Self { space, logs: logs.max(1), unique, ends: BTreeMap::new() }
    }

    fn number(&self, entry: &Entry) -> Option<usize> {
        let blob = match &entry.deed {
            Deed::Transaction(attempted) => attempted.blobs.first().map(|entry| &entry.blob),
            Deed::Read(seen) => Some(&seen.want.blob),
            Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => None,
        }?;
        (0..self.logs).find(|log| self.space.blob("log", *log) == *blob)
    }
}

impl Workload for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, client: u16, random: &mut Random) -> Work {
        let log = random.below(self.logs as u64) as usize;
        let blob = self.space.blob("log", log);
        let end = self.ends.get(&(client, log)).copied();
        match (random.below(100), end) {
            (0..70, Some(end)) => {
                let payload = cells(self.unique.draw(), RECORD);
                let append = Operation::Append { payload, expected: Some(end) };
                Work::Commit(vec![on(&blob, [append])])
            }
            (70..85, Some(end)) if end > 0 => {
                let record = random.below(end / (RECORD * CELL)) * RECORD * CELL;
                let range = ByteRange { start: record, end: record + RECORD * CELL };
                Work::Read(Want::bytes(blob, range))
            }
            _ => Work::Read(Want::stat(blob)),
        }
    }

    fn answered(&mut self, client: u16, entry: &Entry) {
        let Some(log) = self.number(entry) else { return };
        let known = &mut self.ends;
        match &entry.deed {
            Deed::Transaction(attempted) if attempted.is_committed() => {
                known.entry((client, log)).and_modify(|end| *end += RECORD * CELL);
            }
            Deed::Transaction(_) => {
                known.remove(&(client, log));
            }
            Deed::Read(seen) => match &seen.found {
                Found::Bytes { size: Some(size), .. } => {
                    known.insert((client, log), *size);
                }
                Found::Absent => {
                    known.insert((client, log), 0);
                }
                Found::Bytes { size: None, .. } | Found::Nothing | Found::Refused(_) => {}
            },
            Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => {}
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        for log in 0..self.logs {
            let blob = self.space.blob("log", log);
            let bytes = end.blob(&blob).unwrap_or_default();
            let records: Vec<u64> = numbers_of(&bytes).collect();
            let is_record = |record: &[u64]| record.iter().all(|cell| *cell == record[0]);
            if !records.chunks(RECORD as usize).all(is_record) {
                return Err(format!("\"{}\" has a torn record", blob.key));
            }
            for entry in deeds {
                let Deed::Transaction(attempted) = &entry.deed else { continue };
                if self.number(entry) == Some(log) && attempted.is_committed() {
                    is_at_its_place(attempted, &records)
                        .map_err(|wrong| format!("{}: {wrong}", entry.name()))?;
                }
            }
        }
        Ok(())
    }
}

/// A record is where its client wanted it, and was told that it is.
fn is_at_its_place(attempted: &Attempted, records: &[u64]) -> Result<(), String> {
    for operation in attempted.blobs.iter().flat_map(|entry| &entry.operations) {
        if let Operation::Append { payload: tyr_types::Payload::Inline(bytes), expected } =
            operation
        {
            let end = expected.unwrap_or(0);
            let told = attempted.answers.first().map(|answer| answer.outcome);
            let there = records.get((end / CELL) as usize).copied();
            if there != numbers_of(bytes).next() || told != Some(Outcome::Offset(end)) {
                return Err(format!("its record for {end} is not there ({told:?}, {there:x?})"));
            }
        }
    }
    Ok(())
}
