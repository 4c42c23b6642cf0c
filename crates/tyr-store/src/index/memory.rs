//! The index in memory, for tests and the simulator.
//!
//! It keeps two states: the visible one, and the durable one that a loss of power falls back to,
//! with the batches in between. It seals and checks values exactly as the one on disk does.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use tyr_types::{Error, Result};

use super::{Index, IndexBatch, Inspect, Table, Visit, seal};

type Tables = [BTreeMap<Vec<u8>, Bytes>; Table::ALL.len()];

#[derive(Clone, Default)]
struct State {
    visible: Tables,
    durable: Tables,
    /// Committed since the last sync, oldest first.
    unsynced: Vec<IndexBatch>,
    last_batch: u64,
}

/// Four tables in memory. Clones are the same index.
#[derive(Clone, Default)]
pub struct MemoryIndex {
    state: Arc<RwLock<State>>,
}

impl MemoryIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a loss of power leaves: everything synced, and the first `keep` of the batches since.
    #[must_use]
    pub fn crash(&self, keep: usize) -> Self {
        let state = self.state.read();
        let mut tables = state.durable.clone();
        let lost = state.unsynced.len().saturating_sub(keep);
        for batch in state.unsynced.iter().take(keep) {
            apply(&mut tables, batch);
        }
        let last_batch = state.last_batch - lost as u64;
        let left =
            State { visible: tables.clone(), durable: tables, unsynced: Vec::new(), last_batch };
        Self { state: Arc::new(RwLock::new(left)) }
    }

    /// A copy as a killed process leaves it: everything committed, synced or not.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { state: Arc::new(RwLock::new(self.state.read().clone())) }
    }

    /// A part of a table, copied (the values are shared), so that a visitor may come back.
    fn copied(&self, table: Table, from: &[u8], to: Option<&[u8]>) -> Vec<(Vec<u8>, Bytes)> {
        if to.is_some_and(|to| to <= from) {
            return Vec::new();
        }
        let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec()));
        let state = self.state.read();
        let found = state.visible[table as usize].range((Bound::Included(from.to_vec()), to));
        found.map(|(key, stored)| (key.clone(), stored.clone())).collect()
    }

    /// Batches that a loss of power could take now.
    pub fn unsynced_batches(&self) -> usize {
        self.state.read().unsynced.len()
    }

    /// Exchanges one stored value for `damage(value)`, as a failing disk would; answers whether
    /// the key was there.
    pub fn damage(&self, table: Table, key: &[u8], damage: impl FnOnce(&mut Vec<u8>)) -> bool {
        let state = &mut *self.state.write();
        let Some(stored) = state.visible[table as usize].get(key) else { return false };
        let mut bytes = stored.to_vec();
        damage(&mut bytes);
        let bytes = Bytes::from(bytes);
        for tables in [&mut state.visible, &mut state.durable] {
            tables[table as usize].insert(key.to_vec(), bytes.clone());
        }
        true
    }
}

fn apply(tables: &mut Tables, batch: &IndexBatch) {
    for change in &batch.changes {
        let table = &mut tables[change.table as usize];
        match &change.value {
            Some(value) => table.insert(change.key.clone(), Bytes::copy_from_slice(value)),
            None => table.remove(&change.key),
        };
    }
}

impl Index for MemoryIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        let stored = self.state.read().visible[table as usize].get(key).cloned();
        stored.map(|stored| seal::open(table, key, stored)).transpose()
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        for (key, stored) in self.copied(table, from, to) {
            if !visit(&key, &seal::open(table, &key, stored)?)? {
                break;
            }
        }
        Ok(())
    }

    fn scan_back(&self, table: Table, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        for (key, stored) in self.copied(table, from, Some(to)).into_iter().rev() {
            if !visit(&key, &seal::open(table, &key, stored)?)? {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, batch: IndexBatch) -> Result<u64> {
        if batch.changes.iter().any(|change| change.key.is_empty()) {
            return Err(Error::invalid("a key of the index is not empty"));
        }
        let mut state = self.state.write();
        apply(&mut state.visible, &batch);
        state.unsynced.push(batch);
        state.last_batch += 1;
        Ok(state.last_batch)
    }

    fn sync(&self) -> Result<()> {
        let state = &mut *self.state.write();
        for batch in std::mem::take(&mut state.unsynced) {
            apply(&mut state.durable, &batch);
        }
        debug_assert!(
            state.visible.iter().zip(&state.durable).all(|(seen, kept)| seen.len() == kept.len()),
            "all that is seen is durable"
        );
        Ok(())
    }

    fn last_batch(&self) -> u64 {
        self.state.read().last_batch
    }

    // It holds nothing outside memory; what was committed stays for whoever looks after a crash.
    fn close(&self) {}

    fn disk_bytes(&self) -> u64 {
        let state = self.state.read();
        let entries = state.visible.iter().flatten();
        entries.map(|(key, stored)| (key.len() + stored.len()) as u64).sum()
    }

    fn inspect(&self, table: Table, inspect: &mut Inspect<'_>) -> Result<()> {
        let entries = self.state.read().visible[table as usize].clone();
        for (key, stored) in entries {
            inspect(&key, seal::open(table, &key, stored));
        }
        Ok(())
    }

    fn verify(&self, _: &mut dyn FnMut(Error)) -> Result<()> {
        // Every byte in memory belongs to an entry.
        Ok(())
    }
}
