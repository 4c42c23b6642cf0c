//! Recent operations: what has been committed and is not in the base yet, and what readers of
//! older versions still need. Also the cache of what has been read.
//!
//! ```text
//!   Recent ── shards ── BlobCell ── BlobState ── Block (runs of bytes, each with its version)
//!                                          └──── extent pieces, older versions, cuts
//! ```
//!
//! Reading order: [`readers`] (who still needs a version), [`runs`] and [`block`] (bytes with
//! versions), [`piece`] (what memory has no bytes of), [`older`] (what readers still need),
//! [`blob`] (one blob), [`apply`] (operations on it), [`chunk`] (operations on a chunk of one),
//! [`plan`] (reading it), [`capture`] and [`parts`] (folding it), [`lease`] (who answers for an
//! extent), [`collection`] and [`eviction`] (what goes), and here: the table of blobs in memory. A
//! node of a cluster keeps each chunk as a blob of its own.
//!
//! It knows nothing of files, of the log, or of how timestamps come about. Locks: a shard's lock
//! is held only to find a cell; a cell's lock only while memory is read or changed, never during
//! I/O. Whoever locks several cells holds the arbiter, so the order does not matter.

pub mod apply;
pub mod blob;
pub mod block;
pub mod capture;
pub mod chunk;
mod collection;
mod eviction;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod layout;
pub mod lease;
mod older;
mod parts;
mod piece;
pub mod plan;
pub mod readers;
pub mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard};
use tyr_types::{BlobName, Key, KeyRange, KeyspaceId, Result, Timestamp};

use collection::Holding;
use eviction::Hand;

pub use apply::Applying;
pub use blob::{Attributes, BlobState};
pub use collection::Collected;
pub use lease::{DeadExtents, ExtentLease};
pub use readers::Readers;

/// Shards of the table: so many that a reader of a few hot blobs seldom finds that a writer of
/// others has just taken its shard's cache line away.
const SHARDS: usize = 1024;

/// A blob in memory, shared by whoever works on it. It stays in the table while anybody holds it.
#[derive(Debug)]
pub struct BlobCell {
    name: BlobName,
    state: Mutex<BlobState>,
    /// Whether it was used since the cache last looked.
    is_used: AtomicBool,
    /// Whether it is in the list of blobs that hold older versions.
    is_holding: AtomicBool,
    /// Whether it is in the list of blobs that are gone. Changes under the state's lock.
    is_gone: AtomicBool,
    /// Whether it, or its keyspace, was let go of: whoever still works on it does so for nobody,
    /// and it is in no book. Changes under the state's lock.
    is_forgotten: AtomicBool,
}

impl BlobCell {
    /// Which blob it is.
    pub fn name(&self) -> &BlobName {
        &self.name
    }

    /// Whether it was let go of: it is in no table any more.
    pub fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Relaxed)
    }

    /// Locks its state.
    pub fn lock(&self) -> MutexGuard<'_, BlobState> {
        self.state.lock()
    }
}

/// A part of the table, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    cells: HashTable<Arc<BlobCell>>,
    /// Cells that left. A load that began before one left starts again: what it read is old.
    evictions: u64,
}

/// The blobs in memory.
#[derive(Debug)]
pub struct Recent {
    shards: Vec<Mutex<Shard>>,
    hasher: FixedState,
    /// Blobs with operations that the base lacks, in key order: what a fold takes and a scan adds.
    dirty: Mutex<BTreeMap<BlobName, Arc<BlobCell>>>,
    /// Blobs that are gone, and so in the base, in key order: what a listing of an earlier moment
    /// adds. Locked after `dirty` by whoever locks both.
    gone: Mutex<BTreeMap<BlobName, Arc<BlobCell>>>,
    /// Below this there may have been blobs of which nothing is known any more, neither here nor in
    /// the base.
    known_from: Mutex<Timestamp>,
    holding: Mutex<Holding>,
    dead: Arc<DeadExtents>,
    memory: AtomicUsize,
    dirty_memory: AtomicUsize,
    versions: AtomicUsize,
    hand: Hand,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: FixedState::with_seed(0),
            dirty: Mutex::default(),
            gone: Mutex::default(),
            known_from: Mutex::new(Timestamp::ZERO),
            holding: Mutex::default(),
            dead: Arc::default(),
            memory: AtomicUsize::new(0),
            dirty_memory: AtomicUsize::new(0),
            versions: AtomicUsize::new(0),
            hand: Hand::default(),
        }
    }
}

impl Recent {
    /// Extents that nothing refers to any more.
    pub fn dead(&self) -> &Arc<DeadExtents> {
        &self.dead
    }

    /// Bytes of memory held, roughly.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of memory in blobs that the base lacks something of, roughly.
    pub fn dirty_memory(&self) -> usize {
        self.dirty_memory.load(Ordering::Relaxed)
    }

    /// Older versions held for readers, as of the last collection.
    pub fn versions(&self) -> usize {
        self.versions.load(Ordering::Relaxed)
    }

    /// From here on it is known of every blob whether it was there: by memory, by the base, or by
    /// their having nothing of it.
    pub fn known_from(&self) -> Timestamp {
        *self.known_from.lock()
    }

    /// Below `at` there may have been blobs of which nothing is known here.
    pub fn know_from(&self, at: Timestamp) {
        let mut known_from = self.known_from.lock();
        *known_from = at.max(*known_from);
    }

    /// The blob's cell, if it is in memory.
    pub fn find(&self, name: &BlobName) -> Option<Arc<BlobCell>> {
        let hash = self.hasher.hash_one(name);
        let shard = self.shard(hash).lock();
        let cell = shard.cells.find(hash, |cell| cell.name == *name)?;
        if !cell.is_used.load(Ordering::Relaxed) {
            cell.is_used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(cell))
    }

    /// Looks at the blob's state, if it is in memory. Its shard stays locked meanwhile, so `look`
    /// must be short; what it saves is counting one more holder of a cell that others count, too.
    pub fn look<T>(&self, name: &BlobName, look: impl FnOnce(&BlobState) -> T) -> Option<T> {
        let hash = self.hasher.hash_one(name);
        let shard = self.shard(hash).lock();
        let cell = shard.cells.find(hash, |cell| cell.name == *name)?;
        if !cell.is_used.load(Ordering::Relaxed) {
            cell.is_used.store(true, Ordering::Relaxed);
        }
        let state = cell.lock();
        Some(look(&state))
    }

    /// The blob's cell, made from what `load` answers if it is not in memory; `None` when `load`
    /// says that none is wanted.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn find_or_load(
        &self,
        name: &BlobName,
        mut load: impl FnMut() -> Result<Option<BlobState>>,
    ) -> Result<Option<Arc<BlobCell>>> {
        let hash = self.hasher.hash_one(name);
        loop {
            let evictions = {
                let shard = self.shard(hash).lock();
                if let Some(cell) = shard.cells.find(hash, |cell| cell.name == *name) {
                    cell.is_used.store(true, Ordering::Relaxed);
                    return Ok(Some(Arc::clone(cell)));
                }
                shard.evictions
            };
            let Some(state) = load()? else { return Ok(None) };
            let mut shard = self.shard(hash).lock();
            if shard.evictions != evictions
                || shard.cells.find(hash, |cell| cell.name == *name).is_some()
            {
                continue;
            }
            // Else it would have to be in the books of those.
            debug_assert!(
                !state.is_dirty() && !state.has_older(),
                "{name}: the base has all of it"
            );
            self.memory.fetch_add(state.memory(), Ordering::Relaxed);
            let cell = Arc::new(BlobCell {
                name: name.clone(),
                state: Mutex::new(state),
                is_used: AtomicBool::new(true),
                is_holding: AtomicBool::new(false),
                is_gone: AtomicBool::new(false),
                is_forgotten: AtomicBool::new(false),
            });
            self.note_gone(&cell, &cell.lock());
            shard
                .cells
                .insert_unique(hash, Arc::clone(&cell), |cell| self.hasher.hash_one(&cell.name));
            return Ok(Some(cell));
        }
    }

    /// Does `work` on a locked cell's state and keeps the books: memory, dirtiness, versions held.
    pub fn change<T>(
        &self,
        cell: &Arc<BlobCell>,
        state: &mut BlobState,
        work: impl FnOnce(&mut BlobState) -> T,
    ) -> T {
        let (memory, was_dirty) = (state.memory(), state.is_dirty());
        let answer = work(state);
        if cell.is_forgotten() {
            return answer;
        }
        let now = state.memory();
        if now != memory {
            self.memory.fetch_add(now.wrapping_sub(memory), Ordering::Relaxed);
        }
        match (was_dirty, state.is_dirty()) {
            (false, true) => {
                self.dirty_memory.fetch_add(now, Ordering::Relaxed);
                self.dirty.lock().insert(cell.name.clone(), Arc::clone(cell));
            }
            (true, true) if now != memory => {
                self.dirty_memory.fetch_add(now.wrapping_sub(memory), Ordering::Relaxed);
            }
            (true, true | false) | (false, false) => {}
        }
        // In one list or the other at every moment: whoever looks at both misses nothing.
        self.note_gone(cell, state);
        if was_dirty && !state.is_dirty() {
            self.dirty_memory.fetch_sub(memory, Ordering::Relaxed);
            let listed = self.dirty.lock().remove(&cell.name);
            debug_assert!(listed.is_some(), "{}: no fold would have taken it", cell.name);
        }
        if state.has_older() && !cell.is_holding.swap(true, Ordering::Relaxed) {
            self.holding.lock().add(Arc::clone(cell));
        }
        // Books that are short by some wrap around in the end, and then nothing fits any more.
        let all = || if state.is_dirty() { self.dirty_memory() } else { self.memory() };
        debug_assert!(all() >= now, "{}: {now} bytes of {} in all", cell.name, all());
        answer
    }

    /// Keeps the list of blobs that are gone.
    fn note_gone(&self, cell: &Arc<BlobCell>, state: &BlobState) {
        let is_gone = state.is_gone() && !state.is_dirty();
        if is_gone == cell.is_gone.load(Ordering::Relaxed) {
            return;
        }
        cell.is_gone.store(is_gone, Ordering::Relaxed);
        let mut gone = self.gone.lock();
        match is_gone {
            true => gone.insert(cell.name.clone(), Arc::clone(cell)),
            false => gone.remove(&cell.name),
        };
    }

    /// The blobs that the base lacks something of, in key order.
    pub fn dirty_cells(&self) -> Vec<Arc<BlobCell>> {
        self.dirty.lock().values().cloned().collect()
    }

    /// The first `limit` dirty blobs of a keyspace with these keys.
    pub fn dirty_from(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        limit: usize,
    ) -> Vec<Arc<BlobCell>> {
        let dirty = self.dirty.lock();
        in_order(&dirty, keyspace, keys).take(limit).cloned().collect()
    }

    /// The same of the dirty blobs and of those that are gone: all of which the base does not tell
    /// what they were at an earlier moment.
    pub fn untold_from(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        limit: usize,
    ) -> Vec<Arc<BlobCell>> {
        let (dirty, gone) = (self.dirty.lock(), self.gone.lock());
        let of = |list| in_order(list, keyspace, keys).take(limit);
        let mut cells: Vec<Arc<BlobCell>> = of(&dirty).chain(of(&gone)).cloned().collect();
        drop((dirty, gone));
        cells.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        cells.dedup_by(|left, right| left.name == right.name);
        cells.truncate(limit);
        cells
    }

    /// Drops a blob that is gone.
    pub fn forget(&self, name: &BlobName) {
        let hash = self.hasher.hash_one(name);
        let mut shard = self.shard(hash).lock();
        if let Ok(found) = shard.cells.find_entry(hash, |cell| cell.name == *name) {
            let (cell, _) = found.remove();
            shard.evictions += 1;
            let state = cell.lock();
            cell.is_forgotten.store(true, Ordering::Relaxed);
            self.memory.fetch_sub(state.memory(), Ordering::Relaxed);
            if state.is_dirty() {
                self.dirty_memory.fetch_sub(state.memory(), Ordering::Relaxed);
                self.dirty.lock().remove(name);
            }
            // Among those with older versions it is passed over when their turn comes.
            if cell.is_gone.load(Ordering::Relaxed) {
                self.gone.lock().remove(name);
            }
        }
    }

    /// Drops every blob of a keyspace that is gone.
    pub fn forget_keyspace(&self, keyspace: KeyspaceId) {
        for shard in &self.shards {
            let Shard { cells, evictions } = &mut *shard.lock();
            cells.retain(|cell| {
                if cell.name.keyspace != keyspace {
                    return true;
                }
                let state = cell.lock();
                cell.is_forgotten.store(true, Ordering::Relaxed);
                self.memory.fetch_sub(state.memory(), Ordering::Relaxed);
                if state.is_dirty() {
                    self.dirty_memory.fetch_sub(state.memory(), Ordering::Relaxed);
                }
                *evictions += 1;
                false
            });
        }
        self.dirty.lock().retain(|name, _| name.keyspace != keyspace);
        self.gone.lock().retain(|name, _| name.keyspace != keyspace);
        self.holding.lock().forget_keyspace(keyspace);
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The table uses the high and the low bits; the middle ones choose the shard.
        &self.shards[(hash >> 24) as usize % SHARDS]
    }
}

/// The blobs of a list that are of a keyspace and have these keys.
fn in_order<'a>(
    list: &'a BTreeMap<BlobName, Arc<BlobCell>>,
    keyspace: KeyspaceId,
    keys: &'a KeyRange,
) -> impl Iterator<Item = &'a Arc<BlobCell>> {
    let lowest = BlobName { keyspace, key: Key::bound(&keys.start) };
    list.range(lowest..).map(|(_, cell)| cell).take_while(move |cell| {
        cell.name.keyspace == keyspace && keys.is_before_end(cell.name.key.as_bytes())
    })
}
