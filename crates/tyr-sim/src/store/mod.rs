//! What a simulated node has applied.
//!
//! The same questions as the real store answers, without a disk: after a crash the node's log is
//! read again, and this is made anew. Everything is kept by chunk ([`chunk`]), as versions over a
//! base; [`content`] says what operations do to a chunk, and must not know of versions; [`copy`] is
//! a chunk on its way from or to another node; [`rot`] what cannot be read.
//!
//! It trusts nobody: what reaches it in a wrong order, twice, or for a chunk that is not whole yet,
//! is a panic whose text begins with `violation`.

pub mod chunk;
pub mod content;
mod copy;
mod member;
mod rot;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_protocol::commit::Answered;
use tyr_protocol::member::{ChunkName, Store as _};
use tyr_protocol::movement::ChunkCopy;
use tyr_protocol::upload;
use tyr_protocol::versions::{self, Policy, Usage, Version};
use tyr_protocol::{Abort, Part, Rule, View};
use tyr_types::chunk::{Answers, Start};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, KeyspaceId, NodeId, Operation,
    PieceContent, PieceId, PieceRef, Timestamp, TransactionId,
};

use self::chunk::{Cause, Chunk, Oldest};
use self::member::Reach;
use self::rot::{Rot, damaged};
use crate::checker::{HeldChunk, Replica};

/// What a store is told once.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Bytes of a chunk, by keyspace.
    pub chunk_sizes: BTreeMap<KeyspaceId, u64>,
    /// How long versions stay.
    pub policy: Policy,
    /// Versions of a chunk above which memory counts as short (V4).
    pub versions_max: usize,
    /// A rule that does not hold.
    pub broken: Option<Rule>,
}

/// The applied state of one node.
#[derive(Clone, Debug)]
pub struct SimStore {
    node: NodeId,
    config: StoreConfig,
    chunks: BTreeMap<ChunkName, Chunk>,
    /// What was uploaded ahead of its transaction.
    pieces: BTreeMap<PieceId, PieceContent>,
    usages: BTreeMap<BlobName, Usage>,
    /// Kept moments, ascending: what was current there stays (V7).
    kept: Vec<Timestamp>,
    rot: Rot,
    /// What was done since [`SimStore::take_done`].
    done: Vec<Done>,
    /// Whether a log is being read: to chunks that went to others since it was cut, things are
    /// done that count for nothing.
    is_replaying: bool,
}

/// Something that changes which transactions are in what is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// This transaction was applied to this chunk.
    Applied(TransactionId, Timestamp, ChunkName),
    /// The chunk, or a piece of it, was installed as it was elsewhere at this timestamp.
    Installed(ChunkName, Timestamp),
    /// What was applied to the chunk above this timestamp is gone.
    Withdrawn(ChunkName, Timestamp),
    /// The chunk is gone.
    Released(ChunkName),
    /// Everything is gone.
    Cleared,
}

/// What is read of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What the chunk holds of the range, from its start; may be short (R7).
    pub bytes: Bytes,
    /// Of chunk 0: the size, `Some(None)` when the blob is absent.
    pub size: Option<Option<u64>>,
    /// The newest version that overlaps what was read.
    pub version: Timestamp,
}

impl SimStore {
    /// An empty store of this node.
    pub fn new(node: NodeId, config: StoreConfig) -> Self {
        let (chunks, pieces) = (BTreeMap::new(), BTreeMap::new());
        let (usages, rot) = (BTreeMap::new(), Rot::default());
        let (kept, done, is_replaying) = (Vec::new(), Vec::new(), true);
        Self { node, config, chunks, pieces, usages, kept, rot, done, is_replaying }
    }

    /// The log is read: from now on everything counts.
    ///
    /// # Panics
    /// When a chunk lacks bytes of what was applied to it (U1).
    pub fn end_replay(&mut self) {
        self.is_replaying = false;
        self.chunks.values().for_each(Chunk::check_whole);
    }

    /// What was done since this was asked last, for the checker.
    pub fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// All chunks, for comparing replicas.
    pub fn chunks(&self) -> impl Iterator<Item = (&ChunkName, &Chunk)> {
        self.chunks.iter()
    }

    /// The same, as the checker compares them.
    pub fn replica(&self) -> Replica {
        let held = |chunk: &Chunk| match chunk.is_awaited() {
            true => HeldChunk::Awaited,
            false => {
                let content = chunk.latest();
                let bytes = Bytes::copy_from_slice(&content.bytes);
                HeldChunk::Here { size: content.size, bytes }
            }
        };
        self.chunks.iter().map(|(name, chunk)| (name.clone(), held(chunk))).collect()
    }

    /// What becomes durable of it when everything at or below `at` is applied: the base, on which a
    /// restart begins. Chunks whose own base is still to come are not in it, and of those of which
    /// it is to be seen whether what is here stands, nothing else.
    pub fn folded(&self, at: Timestamp) -> Self {
        let is_here = |chunk: &Chunk| !chunk.is_awaited() || chunk.stands_at().is_some();
        let whole = self.chunks.iter().filter(|(_, chunk)| is_here(chunk));
        let first = self.kept.first().copied();
        let chunks = whole.map(|(name, chunk)| (name.clone(), chunk.folded(at, first))).collect();
        let (pieces, usages) = (BTreeMap::new(), BTreeMap::new());
        let (config, rot, done) = (self.config.clone(), Rot::default(), Vec::new());
        let (kept, is_replaying) = (self.kept.clone(), true);
        Self { node: self.node, config, chunks, pieces, usages, kept, rot, done, is_replaying }
    }

    /// A chunk is not in this base any more.
    pub fn lose(&mut self, name: &ChunkName) {
        self.chunks.remove(name);
    }

    /// Nothing is in this base any more.
    pub fn lose_all(&mut self) {
        self.chunks.clear();
    }

    /// What cannot be read.
    pub fn rot(&self) -> &Rot {
        &self.rot
    }

    /// From now on these bytes of a chunk cannot be read.
    pub fn spoil(&mut self, name: &ChunkName, range: ByteRange) {
        self.rot.spoil(name, range);
    }

    /// The most versions of one chunk.
    pub fn versions_most(&self) -> usize {
        self.chunks.values().map(Chunk::versions).max().unwrap_or(0)
    }

    /// Reads `range`, which lies in one chunk, at `at` or the newest.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that version is gone.
    ///
    /// # Panics
    /// When the chunk's base is still to come: whoever asked was wrong.
    pub fn read(
        &self,
        blob: &BlobName,
        range: ByteRange,
        at: Option<Timestamp>,
    ) -> Result<Reading, Abort> {
        let name = (blob.clone(), range.start / self.chunk_size(blob.keyspace));
        let chunk_range = self.chunk_range(&name);
        let is_first = name.1 == 0;
        let Some(chunk) = self.chunks.get(&name) else {
            let size = is_first.then_some(None);
            return Ok(Reading { bytes: Bytes::new(), size, version: Timestamp::ZERO });
        };
        assert!(!chunk.is_awaited(), "violation: {name:?} is read before its base is there");
        let content = chunk.content_at(at).ok_or_else(|| too_old(blob))?;
        let share = range.intersection(chunk_range);
        if !self.rot.is_readable(&name, share) {
            return Err(damaged(blob));
        }
        let from = (share.start - chunk_range.start) as usize;
        let to = (share.end - chunk_range.start) as usize;
        let held = content.bytes.get(from..to.min(content.bytes.len()).max(from)).unwrap_or(&[]);
        let bytes = match content.size {
            Some(size) if held.len() < to - from => {
                // A version manager knows what is a hole and what is the end.
                let mut bytes = held.to_vec();
                bytes
                    .resize((size.min(to as u64) as usize).saturating_sub(from).max(held.len()), 0);
                Bytes::from(bytes)
            }
            Some(_) | None => Bytes::copy_from_slice(held),
        };
        let version = chunk.newest(share, is_first, at.unwrap_or(Timestamp::MAX));
        Ok(Reading { bytes, size: is_first.then_some(content.size), version })
    }

    /// The share of `range` of a chunk as it is at `at`, for another node.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that version is gone.
    ///
    /// # Panics
    /// When the chunk's base is still to come: whoever asked was wrong.
    pub fn export(
        &self,
        name: &ChunkName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<ChunkCopy, Abort> {
        let empty = Chunk::new(self.chunk_range(name));
        let chunk = self.chunks.get(name).unwrap_or(&empty);
        assert!(!chunk.is_awaited(), "violation: {name:?} is copied before its base is there");
        if !self.rot.is_readable(name, range) {
            return Err(damaged(&name.0));
        }
        let usage = self.usages.get(&name.0);
        let is_needed = |oldest| !self.may_go(oldest, usage, at, false);
        chunk.export(range, at, is_needed).ok_or_else(|| too_old(&name.0))
    }

    /// Removes the versions that may go at `now` (V3, V4); answers how many went.
    pub fn remove_versions(&mut self, now: Timestamp) -> usize {
        let blobs: Vec<BlobName> = self.usages.keys().cloned().collect();
        blobs.iter().map(|blob| self.remove_versions_of(blob, now)).sum()
    }

    fn remove_versions_of(&mut self, blob: &BlobName, now: Timestamp) -> usize {
        let names = (blob.clone(), 0)..=(blob.clone(), u64::MAX);
        let here: Vec<ChunkName> = self.chunks.range(names).map(|(name, _)| name.clone()).collect();
        let mut gone = 0;
        for name in here {
            let Some(mut chunk) = self.chunks.remove(&name) else { continue };
            if !chunk.is_awaited() {
                let usage = self.usages.get(blob);
                let surplus = chunk.versions().saturating_sub(self.config.versions_max);
                let mut seen = 0;
                gone += chunk.remove_versions(|oldest| {
                    seen += 1;
                    self.may_go(oldest, usage, now, seen <= surplus)
                });
            }
            self.chunks.insert(name, chunk);
        }
        gone
    }

    fn may_go(
        &self,
        oldest: Oldest,
        usage: Option<&Usage>,
        now: Timestamp,
        is_memory_short: bool,
    ) -> bool {
        let Oldest { version, superseded_at } = oldest;
        let next = self.kept.partition_point(|at| *at < version);
        if self.kept.get(next).is_some_and(|at| *at < superseded_at) {
            return false;
        }
        let version = Version { version, superseded_at: Some(superseded_at) };
        let StoreConfig { policy, broken, .. } = self.config;
        versions::may_go_without(broken, &version, usage, now, policy, is_memory_short)
    }

    fn chunk_range(&self, name: &ChunkName) -> ByteRange {
        let chunk_size = self.chunk_size(name.0.keyspace);
        let start = name.1 * chunk_size;
        ByteRange { start, end: start + chunk_size }
    }

    fn chunk_mut(&mut self, name: &ChunkName) -> &mut Chunk {
        let range = self.chunk_range(name);
        self.chunks.entry(name.clone()).or_insert_with(|| Chunk::new(range))
    }

    /// The chunks of a blob that the transaction writes here.
    fn written(&self, entry: &BlobOperations, part: &Part) -> Vec<u64> {
        let chunk_size = self.chunk_size(entry.blob.keyspace);
        match part {
            Part::Pieces(pieces) => pieces
                .iter()
                .filter(|piece| piece.is_written && piece.blob == entry.blob)
                .map(|piece| piece.range.start / chunk_size)
                .collect(),
            Part::Whole => {
                let names = (entry.blob.clone(), 0)..=(entry.blob.clone(), u64::MAX);
                let here = self.chunks.range(names).map(|((_, chunk), _)| *chunk);
                let mut last = here.max().unwrap_or(0);
                let mut size = self.stat(&entry.blob).unwrap_or(0);
                for operation in &entry.operations {
                    size = size.max(reach(operation, size));
                    last = last.max(size / chunk_size);
                }
                (0..=last).collect()
            }
        }
    }

    /// Where the blob ends before a transaction, for its later chunks. Not what the first chunk
    /// says, even where it is here: when the log is read again it may be of another moment. Only
    /// the chain of a node that holds everything has no guess.
    fn start(&self, blob: &BlobName, part: &Part, guess: u64) -> Start {
        match part {
            Part::Whole => Start::Known(self.stat(blob).unwrap_or(0)),
            Part::Pieces(_) => Start::Guessed(guess),
        }
    }

    fn apply_blob(
        &mut self,
        reach: Reach,
        (id, at): (TransactionId, Timestamp),
        (blob, entry): (u32, &BlobOperations),
        (part, guess): (&Part, u64),
    ) -> Vec<Answered> {
        let content = |piece: &PieceRef| self.staged_content(piece.id);
        let operations = upload::with_content(&entry.operations, content);
        let operations: Arc<[Operation]> = operations.into();
        let chunks = self.written(entry, part);
        let start = self.start(&entry.blob, part, guess);
        let mut outcomes = Vec::new();
        let is_replaying = self.is_replaying;
        let (mut is_crowded, crowd) =
            (false, self.config.versions_max + self.config.versions_max / 4);
        for number in chunks {
            let name = (entry.blob.clone(), number);
            if reach == Reach::Awaited && !self.is_awaited(&name) {
                continue;
            }
            self.done.push(Done::Applied(id, at, name.clone()));
            self.rot.operate(&name, &operations);
            let chunk = self.chunk_mut(&name);
            let cause = Cause::Transaction { id, operations: Arc::clone(&operations), start };
            let answers: Answers = chunk.apply(at, cause);
            if !is_replaying {
                chunk.check_whole();
            }
            is_crowded |= chunk.versions() > crowd;
            outcomes.extend(answers.into_iter().filter_map(|(operation, outcome)| {
                Answered::at_chunk(blob, number, operation, outcome)
            }));
        }
        if is_crowded {
            self.remove_versions_of(&entry.blob, at); // As a node does between news.
        }
        outcomes.sort_unstable_by_key(|answered| answered.operation);
        outcomes
    }
}

/// The byte after the last that an operation can write on a blob of `size` bytes.
fn reach(operation: &Operation, size: u64) -> u64 {
    match operation {
        Operation::Write { offset, payload } => offset + payload.len(),
        Operation::Append { payload, .. } => size + payload.len(),
        Operation::Truncate { len } => *len,
        Operation::Apply { offset, transform } => offset + transform.width() as u64,
        Operation::Replace { payload } => payload.len(),
        Operation::Create
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Compare { .. }
        | Operation::Expect { .. } => 0,
    }
}

fn too_old(blob: &BlobName) -> Abort {
    let reason = "the version that the snapshot needs is gone; start a new snapshot";
    Abort::at(blob, ErrorKind::SnapshotTooOld, reason)
}
