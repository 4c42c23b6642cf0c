//! Chunks: what a node of a cluster keeps, each like a blob of its own.
//!
//! Chunk 0 of a blob has the blob's name, and its size and existence; a later chunk has the key
//! with the chunk's number behind it, in the keyspace's [twin](later). So listings meet each blob
//! once, and the totals of a keyspace count each blob once.
//!
//! ```text
//!   apply ──► recent ──fold──► base        read: plan (under a lock, at once) ─► finish (any disk)
//! ```
//!
//! What is written here was decided elsewhere and is in the node's log; nothing here may fail for
//! lack of anything but a working disk.

mod kept;

use std::sync::Arc;

use tyr_types::chunk::{Answers, Place, Start, steps};
use tyr_types::{
    BlobName, ByteRange, Bytes, Error, Key, KeyRange, KeyspaceConfig, KeyspaceId, KeyspaceName,
    Operation, Result, Timestamp,
};

use super::promises::{self, PromisesWriter};
use super::read::too_old;
use super::{Store, loaded};
use crate::base::BlobBase;
use crate::recent::chunk::Installed;
use crate::recent::plan::Plan;
use crate::recent::{Applying, Attributes, BlobCell, BlobState, Readers};

/// Set in the number of the keyspace that holds a keyspace's later chunks.
const LATER: u32 = 1 << 31;

/// How often a read that folds overtake begins again. Each time takes a whole fold.
const ATTEMPTS_MAX: usize = 100;

const _: () = assert!(LATER.is_power_of_two(), "a twin's number differs in one bit");

/// The keyspace that holds the later chunks of this one's blobs.
pub fn later(keyspace: KeyspaceId) -> KeyspaceId {
    KeyspaceId(keyspace.0 | LATER)
}

/// The name under which a chunk is kept.
pub fn stored_name(blob: &BlobName, chunk: u64) -> BlobName {
    match chunk {
        0 => blob.clone(),
        _ => BlobName { keyspace: later(blob.keyspace), key: blob.key.of_chunk(chunk) },
    }
}

/// The chunk that is kept under this name; `None` when none is.
pub fn chunk_name(stored: &BlobName) -> Option<(BlobName, u64)> {
    if stored.keyspace.0 & LATER == 0 {
        return Some((stored.clone(), 0));
    }
    let (key, chunk) = stored.key.split_chunk()?;
    Some((BlobName { keyspace: KeyspaceId(stored.keyspace.0 & !LATER), key }, chunk))
}

/// What is read of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkReading {
    /// What the chunk holds of the range, from its start; may be short (R7).
    pub bytes: Bytes,
    /// The chunk's attributes; of chunk 0 the blob's.
    pub attributes: Attributes,
    /// The newest version that overlaps what was read.
    pub version: Timestamp,
    /// The last transaction that changed size or existence.
    pub reshaped: Timestamp,
}

/// What was done to a chunk since some moment: one transaction of it.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// What it does.
    pub operations: &'a [Operation],
    /// Where the blob ended before.
    pub start: Start,
    /// Its timestamp.
    pub at: Timestamp,
    /// Who may read what there was before.
    pub readers: Readers<'a>,
}

/// A read of which the version is chosen, and the bytes in memory are copied.
#[derive(Debug)]
pub struct ChunkRead {
    cell: Arc<BlobCell>,
    local: ByteRange,
    at: Timestamp,
    plan: Plan<'static>,
    version: Timestamp,
    reshaped: Timestamp,
}

impl ChunkRead {
    /// Whether memory had all of it: finishing it takes no time.
    pub fn is_complete(&self) -> bool {
        self.plan.missing.is_empty()
    }

    /// Whether there is no such chunk then, or no such blob.
    pub fn is_absent(&self) -> bool {
        !self.plan.attributes.exists
    }
}

impl Store {
    /// The chunk that is kept under this name, in memory.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn chunk(&self, stored: &BlobName) -> Result<Arc<BlobCell>> {
        if let Some(cell) = self.recent.find(stored) {
            return Ok(cell);
        }
        let cell = self.recent.find_or_load(stored, || {
            let folded = self.base.last_checkpoint().timestamp;
            let found = self.base.attributes(stored)?;
            // Of a chunk that is not there nothing is known but when it was looked at last.
            let absent = || {
                let nothing = BlobState::new(Attributes::default(), Timestamp::ZERO);
                // What was deleted since the last checkpoint has its tombstone in the base, also
                // where memory forgot it. Looked at after the base: what left memory, or the base,
                // meanwhile counts.
                let passed = self.base.last_checkpoint().timestamp;
                let nothing = nothing.with_known_from(self.recent.known_from().min(passed));
                // Its tombstone is forgotten, and what a checkpoint has of before comes again.
                nothing.with_absent_to(folded)
            };
            let state = found.map_or_else(absent, |blob| loaded(&blob));
            let is_gone = !state.attributes().exists;
            let forgotten = if is_gone { folded } else { Timestamp::ZERO };
            Ok(Some(state.with_forgotten(forgotten)))
        })?;
        cell.ok_or_else(|| Error::corrupt(format!("{stored}: the table in memory is wrong")))
    }

    /// Whether the chunk's attributes are in memory.
    pub fn is_chunk_resident(&self, stored: &BlobName) -> bool {
        self.recent.find(stored).is_some()
    }

    /// Does what a transaction does to a chunk. What is in it already is not done again.
    ///
    /// # Errors
    /// As [`Store::chunk`], when bytes that a transform changes were not in memory; then nothing
    /// has been done.
    pub fn apply_chunk(
        &self,
        cell: &Arc<BlobCell>,
        place: Place,
        operations: &[Operation],
        start: Start,
        at: Timestamp,
        readers: Readers,
    ) -> Result<Answers> {
        let mut is_held = false;
        loop {
            let mut state = cell.lock();
            if state.is_done(at) {
                return Ok(Answers::new());
            }
            if !is_held
                && state.is_unfolded_copy()
                && let Some(kept) = self.kept_of_copy(&state, at)
            {
                drop(state);
                self.hold_copy(cell, place, kept)?;
                is_held = true;
                continue;
            }
            let mut changed = steps(place, operations).filter_map(|step| step.changed);
            if let Some(range) = changed.find(|range| !state.is_resident(*range)) {
                drop(state);
                self.make_resident(cell, range)?;
                continue;
            }
            let applying = Applying { at, readers, dead: self.recent.dead() };
            return Ok(self.recent.change(cell, &mut state, |state| {
                state.apply_chunk(place, operations, start, applying)
            }));
        }
    }

    /// Chooses what a read of `range` of the blob sees, as of `at`, or now if there is none.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that version is gone.
    pub fn plan_chunk_read(
        &self,
        cell: &Arc<BlobCell>,
        place: Place,
        range: ByteRange,
        at: Option<Timestamp>,
    ) -> Result<ChunkRead> {
        let local = place.local(range);
        let state = cell.lock();
        let seen = at.unwrap_or(Timestamp::MAX);
        if !state.is_readable(seen) {
            return Err(too_old(cell.name()));
        }
        let plan = state.plan(local, seen).ok_or_else(|| too_old(cell.name()))?;
        let version = state.version_at(local, place.is_first(), seen);
        let reshaped = state.version_at(ByteRange { start: 0, end: 0 }, true, seen);
        debug_assert!(version.max(reshaped) <= seen, "what came later is not seen");
        // Should a fold overtake it, it is done again as of now.
        let at = at.unwrap_or(state.attributes().version);
        drop(state);
        Ok(ChunkRead { cell: Arc::clone(cell), local, at, plan, version, reshaped })
    }

    /// Fetches what a read still needs.
    ///
    /// # Errors
    /// `SnapshotTooOld` when a fold overtook it and its version is gone; `Corrupt` and
    /// `Unavailable` as the disk has it.
    pub fn finish_chunk_read(&self, read: ChunkRead) -> Result<ChunkReading> {
        let ChunkRead { cell, local, at, mut plan, version, reshaped } = read;
        for _ in 0..ATTEMPTS_MAX {
            let is_complete = plan.missing.is_empty();
            let fetched = self.fetch(cell.name(), &mut plan);
            if is_complete || !cell.lock().is_overtaken(&plan) {
                fetched?;
                let attributes = plan.attributes;
                let bytes = Bytes::from(plan.into_bytes());
                debug_assert!(bytes.len() as u64 <= local.len(), "no more than was asked for");
                return Ok(ChunkReading { bytes, attributes, version, reshaped });
            }
            let state = cell.lock();
            let again = state.plan(local, at).filter(|_| state.is_readable(at));
            plan = again.ok_or_else(|| too_old(cell.name()))?;
        }
        Err(Error::unavailable(format!(
            "{}: folds overtook the read again and again; try again",
            cell.name()
        )))
    }

    /// Takes a chunk as it was elsewhere; nothing that was here of it counts any more.
    ///
    /// # Errors
    /// As [`Store::chunk`].
    pub fn install_chunk(&self, stored: &BlobName, place: Place, copy: Installed) -> Result<()> {
        let cell = self.chunk(stored)?;
        let mut state = cell.lock();
        let applying = Applying { at: copy.at, readers: Readers::NONE, dead: self.recent.dead() };
        self.recent.change(&cell, &mut state, |state| state.install(place, copy, applying));
        Ok(())
    }

    /// What is here of a chunk is as it was at `stands_at`; does on top of that what was done to it
    /// since, in order, in one go: no fold comes in between.
    ///
    /// # Errors
    /// As [`Store::apply_chunk`].
    pub fn confirm_chunk(
        &self,
        cell: &Arc<BlobCell>,
        place: Place,
        stands_at: Timestamp,
        since: &[Since<'_>],
    ) -> Result<Vec<Answers>> {
        loop {
            let mut state = cell.lock();
            let steps = since.iter().flat_map(|since| steps(place, since.operations));
            let mut changed = steps.filter_map(|step| step.changed);
            if let Some(range) = changed.find(|range| !state.is_resident(*range)) {
                drop(state);
                self.make_resident(cell, range)?;
                continue;
            }
            return Ok(self.recent.change(cell, &mut state, |state| {
                state.stand_at(stands_at);
                let apply = |since: &Since<'_>| {
                    let Since { operations, start, at, readers } = *since;
                    let applying = Applying { at, readers, dead: self.recent.dead() };
                    state.apply_chunk(place, operations, start, applying)
                };
                since.iter().map(apply).collect()
            }));
        }
    }

    /// Forgets a chunk that is not held here any more.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn release_chunk(&self, stored: &BlobName) -> Result<()> {
        self.recent.forget(stored);
        self.base.forget(stored)
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn clear_chunks(&self) -> Result<()> {
        for info in self.base.keyspaces() {
            self.recent.forget_keyspace(info.id);
            self.base.clear_keyspace(info.id)?;
        }
        Ok(())
    }

    /// Begins a file that will stand for the log below some sequence. It counts once a fold has
    /// [ended](Store::end_fold) with that sequence; there is one at a time.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn write_promises(&self) -> Result<PromisesWriter> {
        PromisesWriter::new(Arc::clone(&self.disk))
    }

    /// Removes what stood for the log at earlier checkpoints.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn remove_old_promises(&self) -> Result<()> {
        promises::remove_others(&*self.disk, self.base.last_checkpoint().sequence)
    }

    /// Knows of a keyspace of the cluster from now on, durably.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn adopt_keyspace(
        &self,
        id: KeyspaceId,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<()> {
        self.base.adopt_keyspace(id, name, config)?;
        self.base.adopt_keyspace(later(id), name, config)
    }

    /// Keys of blobs whose first chunk is or was of late here, that begin with `prefix` and come
    /// after `after`, in order; at most `limit`. Also of blobs that were deleted since the last
    /// fold: a snapshot may still see them.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn keys(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Key>> {
        // Memory first: a blob that is folded in between is then seen in both, not in none.
        let range = KeyRange::of(prefix, after.map(Key::as_bytes));
        let recent = self.recent.dirty_from(keyspace, &range, limit);
        let base = self.base.scan(keyspace, prefix, after.map(Key::as_bytes), limit)?;
        let mut keys: Vec<Key> = base.into_iter().map(|(key, _)| key).collect();
        keys.extend(recent.iter().map(|cell| cell.name().key.clone()));
        keys.sort_unstable();
        keys.dedup();
        debug_assert!(
            after.is_none_or(|after| keys.first().is_none_or(|first| first > after)),
            "a listing that goes on meets nothing twice"
        );
        keys.truncate(limit);
        Ok(keys)
    }

    /// The names under which chunks of one keyspace, or of its twin, are kept, in order, after
    /// `after`, with their attributes; at most `limit`. Also those that are in memory only.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn stored_chunks(
        &self,
        keyspace: KeyspaceId,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(BlobName, Attributes)>> {
        let range = KeyRange::of(b"", after.map(Key::as_bytes));
        let recent = self.recent.dirty_from(keyspace, &range, limit);
        let base = self.base.scan(keyspace, b"", after.map(Key::as_bytes), limit)?;
        // What is in memory stands before what the base has of it.
        let recent = recent.iter().map(|cell| (cell.name().clone(), cell.lock().attributes()));
        let mut chunks: Vec<(BlobName, Attributes)> = recent.collect();
        chunks.extend(base.into_iter().map(|(key, blob)| {
            let BlobBase { exists, size, version, .. } = blob;
            (BlobName { keyspace, key }, Attributes { exists, size, version })
        }));
        chunks.sort_by(|(one, _), (next, _)| one.cmp(next));
        chunks.dedup_by(|(next, _), (one, _)| one == next);
        debug_assert!(
            after.is_none_or(|after| chunks.first().is_none_or(|(first, _)| first.key > *after)),
            "a listing that goes on meets nothing twice"
        );
        chunks.truncate(limit);
        Ok(chunks)
    }

    /// The names under which chunks are kept that have changed after `at`, with their attributes,
    /// in order, if memory can tell: `None` when a fold was begun as of a later moment, so that the
    /// base may have some of them.
    pub fn stored_above(&self, at: Timestamp) -> Option<Vec<(BlobName, Attributes)>> {
        if self.folded_to.get() > at {
            return None;
        }
        let all = self.recent.dirty_cells();
        let all = all.iter().map(|cell| (cell.name().clone(), cell.lock().attributes()));
        Some(all.filter(|(_, attributes)| attributes.version > at).collect())
    }
}

#[cfg(test)]
mod tests;
