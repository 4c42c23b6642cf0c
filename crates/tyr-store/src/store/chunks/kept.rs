//! Chunks as they were at kept moments (V7): memory as long as no fold has passed the moment, then
//! what the base holds for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::chunk::Place;
use tyr_types::{
    BlobName, ByteRange, Bytes, Epoch, ErrorKind, KeptName, Key, KeyRange, KeyspaceId, Result,
    Scan, ScanEntry, ScanPage, Timestamp, stretch,
};

use super::{ATTEMPTS_MAX, ChunkReading};
use crate::base::{CopiedVersion, KeptStretches};
use crate::recent::{Attributes, BlobCell, BlobState};
use crate::store::Store;
use crate::store::read::{overtaken, too_old};
use crate::store::scan::filled;

/// Who knows what a chunk was at a kept moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Memory,
    Base,
}

impl Store {
    /// Keeps what a map of `epoch` says, and nothing else that was kept up to there.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn adopt_kept(&self, kept: &BTreeMap<KeptName, Timestamp>, epoch: Epoch) -> Result<()> {
        self.base.adopt_kept(kept, epoch)
    }

    /// The names under which something is held for kept moments of chunks of one keyspace, or of
    /// its twin, in order, after `after`; at most `limit`. To be asked after those that
    /// [are here](Store::stored_chunks): a fold takes what goes from memory and base there.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn kept_chunks(
        &self,
        keyspace: KeyspaceId,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<BlobName>> {
        if !self.base.holds_any() {
            return Ok(Vec::new());
        }
        let range = KeyRange::of(b"", after.map(Key::as_bytes));
        let held = self.base.kept_keys(keyspace, &range, Timestamp::ZERO, limit)?;
        Ok(held.keys.into_iter().take(limit).map(|key| BlobName { keyspace, key }).collect())
    }

    /// Reads `range` of a blob, which lies in the chunk that is kept under this name, as of a kept
    /// moment. All that was committed below it must be applied.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it is not known what was there; `NotFound` when the moment is kept no
    /// more; `Corrupt` and `Unavailable` as the disk has it.
    pub fn read_chunk_kept(
        &self,
        stored: &BlobName,
        place: Place,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<ChunkReading> {
        for _ in 0..ATTEMPTS_MAX {
            match self.who_knows(stored, at)? {
                Known::Memory => {
                    let cell = self.chunk(stored)?;
                    let read = self.plan_chunk_read(&cell, place, range, Some(at));
                    match read.and_then(|read| self.finish_chunk_read(read)) {
                        // A fold has passed the moment meanwhile.
                        Err(error) if error.kind() == ErrorKind::SnapshotTooOld => {}
                        found => return found,
                    }
                }
                Known::Base => {
                    let found = self.base.read_kept(stored, place.local(range), at)?;
                    return Ok(found.map_or_else(nothing, |(blob, bytes)| {
                        let (exists, size, version) = (blob.exists, blob.size, blob.version);
                        let attributes = Attributes { exists, size, version };
                        let bytes = Bytes::from(bytes);
                        ChunkReading { bytes, attributes, version, reshaped: version }
                    }));
                }
            }
        }
        Err(overtaken(stored))
    }

    /// What was written of `range` of a blob, as [`Store::chunk_stretches`] tells it, as of a kept
    /// moment.
    ///
    /// # Errors
    /// As [`Store::read_chunk_kept`].
    pub fn chunk_stretches_kept(
        &self,
        stored: &BlobName,
        place: Place,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Vec<ByteRange>> {
        for _ in 0..ATTEMPTS_MAX {
            match self.who_knows(stored, at)? {
                Known::Memory => match self.chunk_stretches(stored, place, range, at) {
                    Err(error) if error.kind() == ErrorKind::SnapshotTooOld => {}
                    found => return found,
                },
                Known::Base => return self.base_stretches(stored, place, range, at),
            }
        }
        Err(overtaken(stored))
    }

    fn base_stretches(
        &self,
        stored: &BlobName,
        place: Place,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Vec<ByteRange>> {
        let (mut left, mut all) = (place.local(range), Vec::new());
        loop {
            let found = self.base.stretches_kept(stored, left, at, usize::MAX)?;
            let Some(KeptStretches { written, resume, .. }) = found else { break };
            all.extend(written);
            let Some(resume) = resume else { break };
            debug_assert!(left.start < resume, "a page goes on behind the one before");
            left.start = resume;
        }
        Ok(stretch::joined(all.into_iter().map(|local| place.in_blob(local))))
    }

    /// A page of those blobs of `scan` that are wanted and were there at a kept moment.
    ///
    /// # Errors
    /// As [`Store::read_chunk_kept`]; `InvalidArgument` for a scan out of range.
    pub fn scan_chunks_kept(
        &self,
        keyspace: KeyspaceId,
        scan: &Scan,
        at: Timestamp,
        is_wanted: impl Fn(&Key) -> bool,
    ) -> Result<ScanPage> {
        let step = |keys: &KeyRange, len| {
            let mut step = self.step_kept(keyspace, keys, len, at)?;
            step.traces.retain(|key, ()| is_wanted(key));
            Ok(step)
        };
        self.walk(keyspace, scan, step, |name, (), range, is_key_only| {
            let asked = range.unwrap_or(ByteRange::NOTHING);
            let place = Place { range: ByteRange { start: 0, end: asked.end } };
            let ChunkReading { bytes, attributes, .. } =
                self.read_chunk_kept(name, place, asked, at)?;
            let Some(stat) = attributes.stat() else { return Ok(None) };
            let whole = asked.intersection(ByteRange { start: 0, end: attributes.size });
            let bytes = filled(bytes, whole.len());
            let stat = (!is_key_only).then_some(stat);
            Ok(Some(ScanEntry { key: name.key.clone(), stat, bytes }))
        })
    }

    /// The newest kept moment at which a copy that no fold has been at since is current, if a
    /// change at `at` ends that. It may be so of older ones, too, that no fold stops at any more.
    pub(super) fn kept_of_copy(&self, state: &BlobState, at: Timestamp) -> Option<Timestamp> {
        let attributes = state.attributes();
        let kept = self.base.newest_kept_below(at).filter(|_| attributes.exists)?;
        (attributes.version <= kept).then_some(kept)
    }

    /// Holds a copy as it is for a kept moment: it is about to change.
    pub(super) fn hold_copy(
        &self,
        cell: &Arc<BlobCell>,
        place: Place,
        kept: Timestamp,
    ) -> Result<()> {
        let read = self.plan_chunk_read(cell, place, place.range, None)?;
        let ChunkReading { bytes, attributes, .. } = self.finish_chunk_read(read)?;
        let (size, version) = (attributes.size, attributes.version);
        let pieces = [(0, bytes)].into();
        let then = CopiedVersion { at: kept, size, version, pieces };
        self.base.hold_beside(cell.name(), &[then], None)
    }

    fn who_knows(&self, stored: &BlobName, at: Timestamp) -> Result<Known> {
        let cell = self.chunk(stored)?;
        let state = cell.lock();
        let is_passed = at <= self.base.last_checkpoint().timestamp;
        // What a fold has taken, or is taking, may be gone from where memory looks for it; and of a
        // copy that no fold has been at it is held what it was at moments that folds have passed.
        let is_apart = at >= state.captured_to() && !(is_passed && state.is_unfolded_copy());
        if state.is_readable(at) && (is_apart || state.attributes().version <= at) {
            return Ok(Known::Memory);
        }
        match is_passed || state.is_passed(at) || state.is_left_to_base(at) {
            true => Ok(Known::Base),
            false => Err(too_old(stored)),
        }
    }
}

/// What is read of a chunk that was not there.
fn nothing() -> ChunkReading {
    ChunkReading {
        bytes: Bytes::new(),
        attributes: Attributes::default(),
        version: Timestamp::ZERO,
        reshaped: Timestamp::ZERO,
    }
}

#[cfg(test)]
mod tests;
