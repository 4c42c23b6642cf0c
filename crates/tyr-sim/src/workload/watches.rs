//! Watches: some clients watch all cells and read those that they are told of, others write them,
//! seldom (K5).
//!
//! Each cell is written so seldom that who watches has time to hear of it, whatever fails
//! meanwhile: so each write that nothing follows for [`HEARD_US`] must have been seen by each who
//! watched.

use std::collections::BTreeMap;

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, KeyspaceId, Operation, WatchTarget};

use super::{CELL, Space, Unique, Watched, Work, Workload, cell, numbers, on};
use crate::checker::{Deed, Entry, Fate, Replayed};
use crate::random::Random;

/// Who watches has read a write by then, in microseconds.
const HEARD_US: u64 = 25_000_000;

/// The workload.
#[derive(Clone, Debug)]
pub struct Watches {
    space: Space,
    cells: usize,
    watchers: u16,
    unique: Unique,
    /// Of a hundred things that others do, so many are notices to who watches (K6).
    notices: u64,
}

impl Watches {
    /// So many cells; the first so many clients watch.
    pub fn new(space: Space, cells: usize, watchers: u16) -> Self {
        Self { space, cells: cells.max(1), watchers, unique: Unique::new(b'w'), notices: 0 }
    }

    /// The same, with so many notices of a hundred things that others do.
    pub fn with_notices(self, notices: u64) -> Self {
        Self { notices, ..self }
    }

    fn blob(&self, number: usize) -> BlobName {
        self.space.blob("watched", number)
    }

    fn want(&self, number: usize) -> Want {
        Want::bytes(self.blob(number), ByteRange { start: 0, end: CELL })
    }

    fn write(&mut self, number: usize) -> BlobOperations {
        let payload = cell(self.unique.draw());
        on(&self.blob(number), [Operation::Write { offset: 0, payload }])
    }

    /// The writes of a cell that took effect: when each began, when it was acknowledged, and what
    /// it wrote.
    fn writes(&self, number: usize, deeds: &[&Entry]) -> Vec<(u64, u64, u64)> {
        let blob = self.blob(number);
        let mut writes = Vec::new();
        for entry in deeds {
            let Deed::Transaction(attempted) = &entry.deed else { continue };
            // What nobody knows the fate of may have taken effect at any time: it counts as one
            // that follows, and need not have been heard of.
            let is_there = matches!(attempted.fate, Fate::Committed(_) | Fate::Unknown);
            for written in attempted.blobs.iter().filter(|it| is_there && it.blob == blob) {
                let [Operation::Write { payload: tyr_types::Payload::Inline(bytes), .. }] =
                    &written.operations[..]
                else {
                    continue;
                };
                let value = super::numbers_of(bytes).next().unwrap_or(0);
                let end_us = entry.end_us.filter(|_| attempted.is_committed());
                writes.push((entry.start_us, end_us.unwrap_or(u64::MAX), value));
            }
        }
        writes.sort_unstable();
        writes
    }
}

impl Workload for Watches {
    fn name(&self) -> &'static str {
        "watches"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        (0..self.cells).map(|number| vec![self.write(number)]).collect()
    }

    fn next(&mut self, client: u16, random: &mut Random) -> Work {
        if client < self.watchers {
            let keyspace = self.blob(0).keyspace;
            let wants = (0..self.cells).map(|number| self.want(number)).collect();
            return Work::Watch(Watched { target: target(keyspace, random), wants });
        }
        let number = random.below(self.cells as u64) as usize;
        if self.notices > 0 && random.percent(self.notices) {
            let timeout_us = random.between(500_000, 3_000_000);
            return Work::Notify { blob: self.blob(number), timeout_us };
        }
        match random.percent(50) {
            true => Work::Commit(vec![self.write(number)]),
            false => Work::Read(self.want(number)),
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        let over_us = deeds.iter().map(|entry| entry.start_us).max().unwrap_or(0);
        let mut seen: BTreeMap<(u16, BlobName), Vec<(u64, u64)>> = BTreeMap::new();
        let mut watching: BTreeMap<u16, u64> = BTreeMap::new();
        for entry in deeds.iter().filter(|entry| entry.client < self.watchers) {
            let Deed::Read(read) = &entry.deed else { continue };
            watching.entry(entry.client).or_insert(entry.start_us);
            if let Some(end_us) = read.end_us.filter(|_| read.is_answered()) {
                let values = numbers(read).map(|value| (value, end_us));
                seen.entry((entry.client, read.want.blob.clone())).or_default().extend(values);
            }
        }
        for number in 0..self.cells {
            let writes = self.writes(number, deeds);
            for (place, (start_us, end_us, value)) in writes.iter().enumerate() {
                let until_us = end_us.saturating_add(HEARD_US);
                let next_us = writes.get(place + 1).map_or(over_us, |(start_us, ..)| *start_us);
                let before = writes[..place].iter().any(|(_, end_us, _)| end_us > start_us);
                if next_us < until_us || before {
                    continue; // There was no time to hear of it, or others may come behind it.
                }
                for (client, _) in watching.iter().filter(|(_, since_us)| *since_us < start_us) {
                    let of_cell = seen.get(&(*client, self.blob(number)));
                    let is_heard = |(it, at_us): &(u64, u64)| it == value && *at_us <= until_us;
                    if !of_cell.is_some_and(|of_cell| of_cell.iter().any(is_heard)) {
                        return Err(format!(
                            "client {client} watches cell {number}, and had not seen {value:#x} \
                             {} s after it was written ({start_us}..{end_us} us)",
                            HEARD_US / 1_000_000
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// All keys of the workload, or all of the keyspace.
fn target(keyspace: KeyspaceId, random: &mut Random) -> WatchTarget {
    let prefix: &[u8] = if random.percent(50) { b"watched" } else { b"" };
    WatchTarget::prefix(keyspace, prefix).expect("it is short")
}
