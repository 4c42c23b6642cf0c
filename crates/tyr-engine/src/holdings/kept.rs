//! Kept snapshots (V7): which there are, and what chunks that come from elsewhere were at them.
//!
//! What is kept is what the newest map says. A moment is where an epoch begins, so it is known here
//! before anything is applied that was committed after it, and before a fold can pass it: until a
//! node has the map its clock is below. A copy brings what the chunk was at kept moments along: its
//! older versions, down to one from before the first of them, or to where it is not known any more.

use std::collections::BTreeMap;

use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::ChunkName;
use tyr_protocol::movement::{ChunkCopy, ChunkVersion};
use tyr_store::base::CopiedVersion;
use tyr_store::store::chunks::stored_name;
use tyr_types::chunk::Place;
use tyr_types::{Bytes, KeyspaceId, Result, Timestamp};

use super::Holdings;

/// A chunk as it was at a kept moment.
struct Then {
    /// What it had, if there was such a chunk, or blob.
    size: Option<u64>,
    version: Timestamp,
    pieces: BTreeMap<u64, Bytes>,
}

impl Holdings {
    /// Keeps what the map says.
    pub(super) fn keep_snapshots(&mut self, map: &ClusterMap) {
        let kept = map.kept.iter().map(|(name, kept)| (name.clone(), kept.at())).collect();
        let adopted = self.store.adopt_kept(&kept, map.epoch);
        self.note(adopted);
        self.floors.keep(self.store.base().kept_unfolded());
    }

    /// Whether what was there at this moment is kept.
    pub fn is_kept(&self, at: Timestamp) -> bool {
        self.store.base().is_kept(at)
    }

    /// Why what was kept of the keyspace at this moment cannot be read any more, if it is so.
    pub fn kept_obstacle(&self, keyspace: KeyspaceId, at: Timestamp) -> Option<&'static str> {
        self.map.as_ref().and_then(|map| map.kept_obstacle(keyspace, at))
    }

    /// Kept moments below this one, ascending, that something is known of in this keyspace.
    pub fn kept_below(&self, keyspace: KeyspaceId, at: Timestamp) -> Vec<Timestamp> {
        let mut kept = self.store.base().kept_moments();
        kept.retain(|kept| *kept < at && self.kept_obstacle(keyspace, *kept).is_none());
        kept
    }

    /// A fold begins: see [`super::Floors::begin_fold`].
    pub fn begin_fold(&mut self, clock: Timestamp) -> Timestamp {
        self.floors.begin_fold(clock)
    }

    /// The fold is over.
    pub fn end_fold(&mut self) {
        self.floors.end_fold();
        self.floors.keep(self.store.base().kept_unfolded());
    }

    /// Holds what a chunk, which is here now, was at each of these moments, ascending, if it was
    /// another: as the copies have it, or, where it came later, as memory has it. A fold may have
    /// passed them, so each is held whole.
    ///
    /// An empty base comes from nowhere: also when the log is read again of a chunk that was here,
    /// and was deleted, and of which nothing is left but what is held. That stays, and says what it
    /// was before.
    pub(super) fn hold_copied(
        &self,
        name: &ChunkName,
        copies: &[ChunkCopy],
        copied_at: Timestamp,
        kept: &[Timestamp],
    ) -> Result<()> {
        let (stored, place) = (stored_name(&name.0, name.1), self.place(name.0.keyspace, name.1));
        let (mut versions, mut unknown_to) = (Vec::new(), None);
        let cell = self.store.chunk(&stored)?;
        let (mut current_from, included_to) = {
            let state = cell.lock();
            (state.attributes().version, state.included_to())
        };
        for at in kept.iter().rev() {
            if current_from <= *at {
                continue;
            }
            let then = match *at < copied_at {
                true => copied(copies, place, *at),
                false => self.in_memory(name, place, *at)?,
            };
            let Some(Then { size, version, pieces }) = then else {
                let is_held = copied_at == Timestamp::ZERO && *at < included_to;
                unknown_to = (!is_held).then_some(*at);
                break;
            };
            current_from = version;
            versions.extend(size.map(|size| CopiedVersion { at: *at, size, version, pieces }));
        }
        if versions.is_empty() && unknown_to.is_none() && !self.store.base().holds_any() {
            return Ok(());
        }
        match copied_at > Timestamp::ZERO {
            true => self.store.base().hold_copied(&stored, &versions, unknown_to),
            false => self.store.base().hold_beside(&stored, &versions, unknown_to),
        }
    }

    fn in_memory(&self, name: &ChunkName, place: Place, at: Timestamp) -> Result<Option<Then>> {
        let cell = self.store.chunk(&stored_name(&name.0, name.1))?;
        if !cell.lock().is_readable(at) {
            return Ok(None);
        }
        let read = self.store.plan_chunk_read(&cell, place, place.range, Some(at))?;
        let reading = self.store.finish_chunk_read(read)?;
        let attributes = reading.attributes;
        let size = attributes.exists.then_some(attributes.size);
        let pieces = [(0, reading.bytes)].into_iter().filter(|(_, bytes)| !bytes.is_empty());
        // Of what was not there it may be forgotten since when.
        let version = if attributes.exists { attributes.version } else { at };
        Ok(Some(Then { size, version, pieces: pieces.collect() }))
    }
}

/// What the pieces of a copy say of a kept moment; `None` when it was not known where they come
/// from.
fn copied(copies: &[ChunkCopy], place: Place, at: Timestamp) -> Option<Then> {
    let mut then = Then { size: None, version: Timestamp::ZERO, pieces: BTreeMap::new() };
    let mut held = 0;
    for copy in copies {
        let is_of_then = |it: &&ChunkVersion| it.version.max(it.size_version) <= at;
        let found = copy.versions.iter().rfind(is_of_then)?;
        then.version = then.version.max(found.version).max(found.size_version);
        then.size = then.size.or(found.size.flatten());
        if !found.bytes.is_empty() {
            let start = copy.range.start - place.range.start;
            held = start + found.bytes.len() as u64;
            then.pieces.insert(start, found.bytes.clone());
        }
    }
    if !place.is_first() {
        then.size = (held > 0).then_some(held);
    }
    Some(then)
}
