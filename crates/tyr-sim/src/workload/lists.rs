//! Lists that everybody appends to, several at a time; what is in them is the order of things.

use std::collections::{BTreeMap, BTreeSet};

use tyr_protocol::session::Want;
use tyr_types::{BlobOperations, Operation, Payload};

use super::{Space, Unique, Work, Workload, cell, cells, numbers, numbers_of, on};
use crate::checker::{Deed, Entry, Replayed, Seen};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Lists {
    space: Space,
    lists: usize,
    unique: Unique,
}

impl Lists {
    /// So many lists.
    pub fn new(space: Space, lists: usize) -> Self {
        Self { space, lists: lists.max(1), unique: Unique::new(b'l') }
    }

    fn some(&self, random: &mut Random, most: u64) -> Vec<usize> {
        let all: Vec<usize> = (0..self.lists).collect();
        let count = random.between(1, most) as usize;
        random.sample(&all, count)
    }

    fn wants(&self, lists: &[usize]) -> Vec<Want> {
        let want = |list: &usize| Want::bytes(self.space.blob("list", *list), self.space.whole());
        lists.iter().map(want).collect()
    }

    fn append(&mut self, lists: &[usize], random: &mut Random) -> Vec<BlobOperations> {
        let number = self.unique.draw();
        let append = |list: &usize| {
            // A long one now and then, so that ends move over chunks.
            let count = if random.percent(5) { random.between(2, 40) } else { 1 };
            let payload = if count == 1 { cell(number) } else { cells(number, count) };
            on(&self.space.blob("list", *list), [Operation::Append { payload, expected: None }])
        };
        lists.iter().map(append).collect()
    }
}

impl Workload for Lists {
    fn name(&self) -> &'static str {
        "lists"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let lists = self.some(random, 3);
        match random.below(100) {
            0..50 => Work::Commit(self.append(&lists, random)),
            50..65 => {
                let others = self.some(random, 2);
                let appends = self.append(&others, random);
                let reads = self.wants(&lists);
                Work::Transact { reads, then: Box::new(move |_| appends) }
            }
            65..75 => Work::Transact { reads: self.wants(&lists), then: Box::new(|_| Vec::new()) },
            75..87 => Work::Read(self.wants(&lists).remove(0)),
            87..95 => Work::ReadMany(self.wants(&lists)),
            _ => Work::Snapshot { reads: self.wants(&lists), pause_us: 2_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        for list in 0..self.lists {
            let blob = self.space.blob("list", list);
            let there: Vec<u64> = numbers_of(&end.blob(&blob).unwrap_or_default()).collect();
            let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
            for run in there.chunk_by(|left, right| left == right) {
                *runs.entry(run[0]).or_default() += 1;
            }
            if let Some((number, _)) = runs.iter().find(|(_, count)| **count > 1) {
                return Err(format!("{number:x} is in \"{}\" more than once", blob.key));
            }
            for seen in deeds.iter().flat_map(|entry| entry.seen()) {
                if seen.want.blob == blob && !there.starts_with(&cells_of(seen)) {
                    return Err(format!("what was read of \"{}\" is not how it begins", blob.key));
                }
            }
            let acknowledged: BTreeSet<u64> = appended(deeds, &blob).collect();
            if let Some(lost) = acknowledged.iter().find(|number| !runs.contains_key(number)) {
                return Err(format!("{lost:x} was acknowledged and is not in \"{}\"", blob.key));
            }
        }
        Ok(())
    }
}

fn cells_of(seen: &Seen) -> Vec<u64> {
    numbers(seen).collect()
}

/// The numbers whose appending to `blob` was acknowledged.
fn appended<'a>(
    deeds: &'a [&Entry],
    blob: &'a tyr_types::BlobName,
) -> impl Iterator<Item = u64> + 'a {
    let committed = deeds.iter().filter_map(|entry| match &entry.deed {
        Deed::Transaction(attempted) if attempted.is_committed() => Some(attempted),
        Deed::Transaction(_)
        | Deed::Read(_)
        | Deed::Snapshot(_)
        | Deed::Moment(_)
        | Deed::ReadMany(_) => None,
    });
    let entries = committed.flat_map(|attempted| &attempted.blobs);
    let operations = entries.filter(|entry| entry.blob == *blob).flat_map(|it| &it.operations);
    operations.filter_map(|operation| match operation.payload() {
        Some(Payload::Inline(bytes)) => numbers_of(bytes).next(),
        Some(Payload::Extents(_) | Payload::Stamped(_) | Payload::Uploaded(_)) | None => None,
    })
}
