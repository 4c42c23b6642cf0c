//! The index in memory, with a record of what was done to it and when, counted in operations of
//! the disk beside it: so both can be taken back to the same moment.

use std::sync::Arc;

use parking_lot::Mutex;
use tyr_store::disk::SimulatedDisk;
use tyr_store::disk::simulated::chance::Chance;
use tyr_store::index::memory::MemoryIndex;
use tyr_store::index::{Index, IndexBatch, Inspect, Table, Visit};
use tyr_types::{Bytes, Error, Result};

#[derive(Clone)]
enum Event {
    Commit(IndexBatch),
    Sync,
}

/// An index and its past. Clones are the same index.
#[derive(Clone)]
pub struct RecordedIndex {
    disk: SimulatedDisk,
    index: Arc<MemoryIndex>,
    /// What was done, and after how many operations of the disk.
    events: Arc<Mutex<Vec<(u64, Event)>>>,
    /// So many of the events are of earlier lives.
    inherited: usize,
}

impl RecordedIndex {
    /// An empty index beside `disk`.
    pub fn new(disk: SimulatedDisk) -> Self {
        Self { disk, index: Arc::default(), events: Arc::default(), inherited: 0 }
    }

    /// What the loss of power after the disk's first `count` operations leaves, beside `disk`:
    /// the synced batches, and as many of the others as chance has it.
    pub fn crash_after(&self, count: u64, chance: &mut Chance, disk: SimulatedDisk) -> Self {
        let mut events = self.events_until(count, chance);
        let last_sync = events.iter().rposition(|event| matches!(event, Event::Sync));
        let synced = last_sync.map_or(0, |last| last + 1);
        let kept = chance.below((events.len() - synced) as u64 + 1) as usize;
        events.truncate(synced + kept);
        events.push(Event::Sync);
        Self::with(events, disk)
    }

    /// What the death of the process leaves: all of it, synced or not.
    pub fn copy_after(&self, count: u64, chance: &mut Chance, disk: SimulatedDisk) -> Self {
        Self::with(self.events_until(count, chance), disk)
    }

    fn events_until(&self, count: u64, chance: &mut Chance) -> Vec<Event> {
        let events = self.events.lock();
        let surely = events.partition_point(|(at, _)| *at < count).max(self.inherited);
        let perhaps = events.partition_point(|(at, _)| *at <= count) - surely;
        let happened = surely + chance.below(perhaps as u64 + 1) as usize;
        events[..happened].iter().map(|(_, event)| event.clone()).collect()
    }

    fn with(events: Vec<Event>, disk: SimulatedDisk) -> Self {
        let index = MemoryIndex::new();
        for event in &events {
            match event {
                Event::Commit(batch) => drop(index.commit(batch.clone()).unwrap()),
                Event::Sync => index.sync().unwrap(),
            }
        }
        let inherited = events.len();
        let events = events.into_iter().map(|event| (0, event)).collect();
        let events = Arc::new(Mutex::new(events));
        Self { disk, index: Arc::new(index), events, inherited }
    }
}

impl Index for RecordedIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.index.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.index.scan(table, from, to, visit)
    }

    fn scan_back(&self, table: Table, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        self.index.scan_back(table, from, to, visit)
    }

    fn commit(&self, batch: IndexBatch) -> Result<u64> {
        // The count first: what this rests on has been counted, what rests on this has not.
        let mut events = self.events.lock();
        events.push((self.disk.operations(), Event::Commit(batch.clone())));
        self.index.commit(batch)
    }

    fn sync(&self) -> Result<()> {
        let mut events = self.events.lock();
        events.push((self.disk.operations(), Event::Sync));
        self.index.sync()
    }

    fn last_batch(&self) -> u64 {
        self.index.last_batch()
    }

    fn close(&self) {
        self.index.close();
    }

    fn disk_bytes(&self) -> u64 {
        self.index.disk_bytes()
    }

    fn inspect(&self, table: Table, inspect: &mut Inspect<'_>) -> Result<()> {
        self.index.inspect(table, inspect)
    }

    fn verify(&self, found: &mut dyn FnMut(Error)) -> Result<()> {
        self.index.verify(found)
    }
}
