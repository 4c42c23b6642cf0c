//! Methods of objects, called by everybody, while their class is replaced.
//!
//! A transaction has several calls of one object, one after the other, or takes a number from one
//! object to another. Each call runs by the version of the class that stands in a record: its
//! client reads that in the transaction, where it is validated, or goes by what it has read of it
//! less than half a second ago, as nodes do. So while the class is replaced calls by the one before
//! run beside those by the next.
//!
//! In the end all calls are made once more, in the order of their timestamps, on objects in memory:
//! they must answer the same, and leave the same.

mod class;
mod plan;

use std::collections::BTreeMap;

use tyr_class::Object;
use tyr_class::testing::MemoryContext;
use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Operation, Payload, TransactionId};

use self::class::Queue;
use self::plan::{CALLER, Doing, Known, Plan, Wanted, told};
use super::{CELL, Space, Unique, Work, Workload, cell, numbers, numbers_of, on};
use crate::checker::{Deed, Entry, Replayed, Seen};
use crate::random::Random;

/// So long nodes go by a record that they have asked for.
const KEPT_US: u64 = 500_000;

/// So long after the class was replaced nobody begins by the version before: who replaces it waits
/// for that in a cluster.
const SETTLE_US: u64 = 550_000;

/// The workload.
#[derive(Clone, Debug)]
pub struct Calls {
    space: Space,
    objects: usize,
    /// Calls of an object in one transaction at most.
    batch: u64,
    /// Of a hundred things that clients do, so many replace the class.
    changes: u64,
    /// So long a client goes by what it has read of the record.
    kept_us: u64,
    unique: Unique,
    /// What clients know of the record.
    kept: BTreeMap<u16, Known>,
}

impl Calls {
    /// So many objects, at least two.
    pub fn new(space: Space, objects: usize, batch: u64, changes: u64) -> Self {
        let (unique, kept) = (Unique::new(b'q'), BTreeMap::new());
        let (objects, batch) = (objects.max(2), batch.max(1));
        Self { space, objects, batch, changes, kept_us: KEPT_US, unique, kept }
    }

    /// Clients go by a record for so long: more than nodes do shows.
    #[must_use]
    pub fn with_kept(self, kept_us: u64) -> Self {
        Self { kept_us, ..self }
    }

    fn record(&self) -> BlobName {
        self.space.blob("class", 0)
    }

    fn object(&self, number: usize) -> BlobName {
        self.space.blob("object", number)
    }

    fn want_record(&self) -> Want {
        Want::bytes(self.record(), ByteRange { start: 0, end: CELL })
    }

    /// All that a client can read of an object without its class.
    fn wants(&self, object: usize) -> Vec<Want> {
        let blob = self.object(object);
        let companion = companion_of(&blob);
        let whole = |blob| Want::bytes(blob, self.space.whole());
        vec![self.want_record(), whole(blob), whole(companion)]
    }

    fn wanted(&mut self, random: &mut Random) -> Wanted {
        let method = match random.below(100) {
            0..25 => "push",
            25..45 => "pop",
            45..60 => "put",
            60..72 => "swap",
            72..80 => "turn",
            80..88 => "note",
            88..92 => "look",
            92..95 => "forget",
            95..98 => "renew",
            _ => "clear",
        };
        let number = self.unique.draw();
        Wanted { method, input: number.to_le_bytes(), id: some_id(random) }
    }

    fn call(&mut self, client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.objects).collect();
        let two = random.sample(&all, 2);
        let doing = match random.percent(15) {
            true => Doing::Pass {
                from: self.object(two[0]),
                to: self.object(two[1]),
                ids: [some_id(random), some_id(random)],
            },
            false => {
                let count = random.between(1, self.batch);
                let wanted = (0..count).map(|_| self.wanted(random)).collect();
                Doing::Batch(self.object(two[0]), wanted)
            }
        };
        let kept = self.kept.get(&client).copied().filter(|_| random.percent(70));
        let mut plan = Plan::new(self.want_record(), kept, doing);
        Work::Call(Box::new(move |seen: &[Seen], now_us| plan.run(seen, now_us)))
    }

    fn replace(&self) -> Work {
        let record = self.record();
        Work::Transact {
            reads: vec![self.want_record()],
            then: Box::new(move |seen: &[Seen]| {
                let version = numbers(&seen[0]).next().unwrap_or(0);
                vec![on(&record, [version_is(version + 1)])]
            }),
        }
    }

    /// Nobody began by a version that was replaced long before.
    fn versions_are_current(&self, deeds: &[&Entry]) -> Result<(), String> {
        let mut replaced: Vec<(u64, u64)> = Vec::new();
        for entry in deeds {
            let Deed::Transaction(attempted) = &entry.deed else { continue };
            let Some(end_us) = entry.end_us.filter(|_| attempted.is_committed()) else { continue };
            let versions = attempted.blobs.iter().filter(|it| it.blob == self.record());
            let versions = versions.flat_map(|it| &it.operations).filter_map(version_of);
            replaced.extend(versions.map(|version| (end_us + SETTLE_US, version)));
        }
        for entry in deeds {
            let Deed::Transaction(attempted) = &entry.deed else { continue };
            for called in &attempted.calls {
                let newer = replaced.iter().find(|(settled_us, version)| {
                    *settled_us <= entry.start_us && *version > called.version
                });
                if let Some((_, newer)) = newer {
                    let (name, version) = (entry.name(), called.version);
                    return Err(format!(
                        "{name} ran version {version}, replaced by {newer} before"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The calls that committed, made once more in the order of their timestamps.
    fn explained(&self, end: &Replayed<'_>) -> Result<BTreeMap<BlobName, MemoryContext>, String> {
        let all: Vec<BlobName> = (0..self.objects).map(|number| self.object(number)).collect();
        let mut objects: BTreeMap<BlobName, MemoryContext> = BTreeMap::new();
        for (place, committed) in end.timeline.committed.iter().enumerate() {
            for called in &committed.attempted.calls {
                if !all.contains(&called.object) {
                    continue;
                }
                let object = objects.entry(called.object.clone()).or_default();
                (object.transaction, object.now_us) = (called.id, called.now_us);
                CALLER.clone_into(&mut object.caller);
                let class = Queue::of_version(called.version);
                let answer = told(object.call(&class, called.method, &called.input));
                if answer != called.answer {
                    return Err(format!(
                        "{} called {} of \"{}\" by version {} and was answered {:?}, where the \
                         order of all calls has {answer:?}",
                        end.timeline.name(place),
                        called.method,
                        called.object.key,
                        called.version,
                        called.answer,
                    ));
                }
            }
        }
        Ok(objects)
    }
}

impl Workload for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        vec![vec![on(&self.record(), [version_is(1)])]]
    }

    fn next(&mut self, client: u16, random: &mut Random) -> Work {
        let object = random.below(self.objects as u64) as usize;
        if random.percent(self.changes) {
            return self.replace();
        }
        match random.below(100) {
            0..4 => Work::ReadMany(self.wants(object)),
            4..6 => Work::Snapshot { reads: self.wants(object), pause_us: 1_000 },
            _ => self.call(client, random),
        }
    }

    fn answered(&mut self, client: u16, entry: &Entry) {
        let Deed::Transaction(attempted) = &entry.deed else { return };
        let record = self.record();
        let read = attempted.reads.iter().find(|seen| seen.want.blob == record);
        if let Some(seen) = read
            && let Some(version) = numbers(seen).next()
        {
            let until_us = seen.start_us + self.kept_us;
            self.kept.insert(client, Known { version, until_us });
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        self.versions_are_current(deeds)?;
        let objects = self.explained(end)?;
        for (name, object) in &objects {
            let (blob, map) = (end.blob(name), end.blob(&companion_of(name)).unwrap_or_default());
            if blob != object.blob || map != object.map {
                let key = &name.key;
                return Err(format!("\"{key}\" is not what the order of all calls leaves"));
            }
        }
        Ok(())
    }
}

/// A record that says this.
fn version_is(version: u64) -> Operation {
    Operation::Replace { payload: cell(version) }
}

/// The version that an operation puts into the record.
fn version_of(operation: &Operation) -> Option<u64> {
    match operation.payload() {
        Some(Payload::Inline(bytes)) => numbers_of(bytes).next(),
        Some(Payload::Extents(_) | Payload::Stamped(_) | Payload::Uploaded(_)) | None => None,
    }
}

/// The blob that has the map of the object of this one.
fn companion_of(blob: &BlobName) -> BlobName {
    let object = Object::new(blob.key.clone()).expect("keys of workloads are short");
    BlobName { keyspace: blob.keyspace, key: object.companion }
}

fn some_id(random: &mut Random) -> TransactionId {
    TransactionId(u128::from(random.any()) << 64 | u128::from(random.any()))
}
