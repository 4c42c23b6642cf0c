//! A store for tests: numbers at places of blobs, kept as the list of who wrote what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{
    BlobName, ByteRange, Bytes, KeyspaceId, NodeId, Number, NumberType, Operation, Outcome,
    Payload, PieceContent, PieceId, PieceRef, Result, Timestamp, Transaction,
};

use crate::chain::Chain;
use crate::commit::{Answered, Outcomes};
use crate::map::ClusterMap;
use crate::member::{ChunkName, LateAnswers, LocalChunk, Store};
use crate::movement::{ChunkCopy, ChunkVersion};
use crate::upload::{self, StagedPiece};
use crate::versions::Usage;
use crate::view::View;

/// Bytes of a chunk in these tests.
pub const CHUNK: u64 = 4096;
/// Numbers in a chunk that tests use.
pub const SLOTS: u64 = 4;

/// What a chunk holds: `SLOTS` numbers. One that has zeros alone is not there.
pub type Content = [u64; SLOTS as usize];

#[derive(Clone, Debug, Default)]
struct Chunk {
    /// What it was like at `base_at`.
    base: Content,
    base_at: Timestamp,
    base_version: Timestamp,
    is_awaited: bool,
    /// While it is awaited: of which moment it is what is here.
    stands_at: Option<Timestamp>,
    /// What was applied since, or lies aside above a base to come.
    applied: BTreeMap<Timestamp, Arc<Transaction>>,
}

impl Chunk {
    /// What each of those above the base answers.
    fn answers(&self, name: &ChunkName) -> Vec<LateAnswers> {
        let mut below = self.base;
        let answers = |(at, transaction): (&Timestamp, &Arc<Transaction>)| {
            let answers = operate(&mut below, name, transaction).into_iter();
            (*at, answers.map(|it| (it.operation as usize, it.outcome)).collect())
        };
        self.applied.iter().map(answers).collect()
    }
}

/// The applied state of a test node.
#[derive(Clone, Debug)]
pub struct Shelf {
    node: NodeId,
    chunks: BTreeMap<ChunkName, Chunk>,
    pub usages: BTreeMap<BlobName, Usage>,
    pub pieces: BTreeMap<PieceId, PieceContent>,
    /// The kept moments that it was told of.
    pub kept: Vec<Timestamp>,
}

impl Shelf {
    pub fn new(node: NodeId) -> Self {
        let (chunks, usages, pieces) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { node, chunks, usages, pieces, kept: Vec::new() }
    }

    /// What the chunk was like at `at`; at the end without. `None` when that is gone.
    pub fn content(&self, name: &ChunkName, at: Option<Timestamp>) -> Option<(Content, Timestamp)> {
        let Some(chunk) = self.chunks.get(name) else {
            return Some((Content::default(), Timestamp::ZERO));
        };
        assert!(!chunk.is_awaited, "{name:?} is read at {} before its base is here", self.node.0);
        let at = at.unwrap_or(Timestamp::MAX);
        if at < chunk.base_at {
            return None;
        }
        let mut content = chunk.base;
        let mut version = chunk.base_version;
        for (_, transaction) in chunk.applied.range(..=at).map(|(its, it)| (*its, it)) {
            operate(&mut content, name, transaction);
        }
        if let Some((last, _)) = chunk.applied.range(..=at).next_back() {
            version = *last;
        }
        Some((content, version))
    }

    /// What a base has of it that is folded up to `at`: chunks that are whole.
    pub fn folded(&self, at: Timestamp) -> Self {
        let is_here = |chunk: &Chunk| !chunk.is_awaited || chunk.stands_at.is_some();
        let whole = self.chunks.iter().filter(|(_, chunk)| is_here(chunk));
        let folded = whole.map(|(name, chunk)| {
            if chunk.is_awaited {
                let (applied, is_awaited, stands_at) = (BTreeMap::new(), false, None);
                return (name.clone(), Chunk { applied, is_awaited, stands_at, ..chunk.clone() });
            }
            let at = at.max(chunk.base_at);
            let (base, base_version) = self.content(name, Some(at)).expect("it is not below");
            let chunk = Chunk { base, base_at: at, base_version, ..Chunk::default() };
            (name.clone(), chunk)
        });
        let (usages, pieces) = (BTreeMap::new(), BTreeMap::new());
        let kept = self.kept.clone();
        Self { node: self.node, chunks: folded.collect(), usages, pieces, kept }
    }

    pub fn base_at(&self, name: &ChunkName) -> Timestamp {
        self.chunks.get(name).map_or(Timestamp::ZERO, |it| it.base_at)
    }

    pub fn copy(&self, name: &ChunkName, range: ByteRange, at: Timestamp) -> Option<ChunkCopy> {
        let (content, version) = self.content(name, Some(at))?;
        let bytes: Vec<u8> = content.iter().flat_map(|number| number.to_le_bytes()).collect();
        let size = (name.1 == 0).then_some(None);
        let bytes = Bytes::from(bytes);
        let size_version = Timestamp::ZERO;
        let versions = vec![ChunkVersion { version, bytes, size, size_version }];
        Some(ChunkCopy::new(at, range, true, versions))
    }
}

fn place(offset: u64) -> (u64, usize) {
    (offset / CHUNK, (offset % CHUNK / 8) as usize)
}

/// Does what `transaction` writes to this chunk; answers the new values of transforms.
fn operate(
    content: &mut Content,
    (blob, number): &ChunkName,
    transaction: &Transaction,
) -> Vec<Answered> {
    let mut outcomes = Vec::new();
    for (blob_index, entry) in (0..).zip(&transaction.blobs).filter(|(_, it)| it.blob == *blob) {
        for (index, operation) in (0..).zip(&entry.operations) {
            match operation {
                Operation::Write { offset, payload: Payload::Inline(bytes) } => {
                    let (chunk, slot) = place(*offset);
                    if chunk == *number {
                        let bytes = bytes.as_ref().try_into().unwrap();
                        content[slot] = u64::from_le_bytes(bytes);
                    }
                }
                Operation::Write { offset, payload: Payload::Uploaded(uploaded) } => {
                    for (start, it) in uploaded.placed() {
                        let (chunk, slot) = place(offset + start);
                        if chunk == *number {
                            let PieceContent::Bytes(bytes) = &it.content else {
                                panic!("U1: {:?} is applied without its bytes", it.piece.id)
                            };
                            let bytes = bytes.as_ref().try_into().unwrap();
                            content[slot] = u64::from_le_bytes(bytes);
                        }
                    }
                }
                Operation::Apply { offset, transform } => {
                    let (chunk, slot) = place(*offset);
                    if chunk == *number {
                        let mut bytes = content[slot].to_le_bytes();
                        let value = transform.apply(&mut bytes);
                        content[slot] = u64::from_le_bytes(bytes);
                        let (blob, operation) = (blob_index, index);
                        let outcome = Outcome::Value(value);
                        outcomes.push(Answered { blob, operation, outcome });
                        assert!(matches!(value, Number::U64(_)));
                    }
                }
                other => panic!("tests write and add only: {other:?}"),
            }
        }
    }
    outcomes
}

/// The chunks of a blob that a transaction writes.
pub fn touched(transaction: &Transaction) -> BTreeSet<ChunkName> {
    let operations = |entry: &tyr_types::BlobOperations| {
        let offset = |operation: &Operation| match operation {
            Operation::Write { offset, .. } | Operation::Apply { offset, .. } => *offset,
            other => panic!("tests write and add only: {other:?}"),
        };
        let chunk = |operation: &Operation| (entry.blob.clone(), place(offset(operation)).0);
        entry.operations.iter().map(chunk).collect::<Vec<_>>()
    };
    transaction.blobs.iter().flat_map(operations).collect()
}

impl View for Shelf {
    fn newest_overlapping(&self, blob: &BlobName, range: ByteRange, _: bool) -> Timestamp {
        let name = (blob.clone(), range.start / CHUNK);
        let Some(chunk) = self.chunks.get(&name) else { return Timestamp::ZERO };
        let overlaps = |transaction: &Transaction| {
            let entry = transaction.blobs.iter().find(|entry| entry.blob == *blob);
            entry.is_some_and(|entry| {
                entry.operations.iter().any(|operation| {
                    let written = crate::Footprint::written(operation, 0);
                    written.is_some_and(|written| written.range.overlaps(range))
                })
            })
        };
        let newest = chunk.applied.iter().rev().find(|(_, it)| overlaps(it));
        newest.map_or(chunk.base_version, |(at, _)| *at)
    }

    fn is_listing_stale(&self, _: KeyspaceId, _: &tyr_types::Listed, _: Timestamp) -> bool {
        true
    }

    fn stat(&self, _: &BlobName) -> Option<u64> {
        None
    }

    fn matches(&self, _: &BlobName, _: u64, _: &[u8]) -> bool {
        false
    }

    fn number(&self, _: &BlobName, _: u64, _: NumberType) -> Option<Number> {
        None
    }

    fn chunk_size(&self, _: KeyspaceId) -> u64 {
        CHUNK
    }
}

impl Store for Shelf {
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes {
        let mut outcomes = Vec::new();
        let hop = &chain.hops()[chain.position(self.node).unwrap()];
        let content = |piece: &PieceRef| self.staged_content(piece.id);
        let mut resolved = transaction.clone();
        for entry in &mut resolved.blobs {
            entry.operations = upload::with_content(&entry.operations, content);
        }
        for name in touched(transaction) {
            let range = ByteRange { start: name.1 * CHUNK, end: (name.1 + 1) * CHUNK };
            let is_held =
                |piece: &crate::Piece| piece.blob == name.0 && piece.range.overlaps(range);
            let is_here = match &hop.part {
                crate::Part::Whole => true,
                crate::Part::Pieces(pieces) => pieces.iter().any(is_held),
            };
            let chunk =
                if is_here { self.chunks.entry(name.clone()).or_default() } else { continue };
            if at <= chunk.base_at {
                continue;
            }
            if let Some((last, by)) = chunk.applied.last_key_value()
                && *last >= at
                && !chunk.is_awaited
            {
                let is_same = by.id == transaction.id;
                assert!(is_same && *last == at, "{name:?}: {at} is applied after {last}");
                continue;
            }
            chunk.applied.insert(at, Arc::new(resolved.clone()));
            if !chunk.is_awaited {
                // What it answers is what it computes on what lies below it.
                let mut below = chunk.base;
                for other in chunk.applied.range(..at).map(|(_, other)| other) {
                    operate(&mut below, &name, other);
                }
                outcomes.extend(operate(&mut below, &name, &resolved));
            }
        }
        outcomes.into()
    }

    fn apply_to_awaited(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) {
        self.apply(transaction, chain, at); // What is there already is passed over.
    }

    fn await_base(&mut self, chunk: &ChunkName) {
        self.chunks.entry(chunk.clone()).or_insert(Chunk { is_awaited: true, ..Chunk::default() });
    }

    fn await_confirmation(&mut self, name: &ChunkName, complete_to: Timestamp) {
        if self.is_awaited(name) {
            return;
        }
        let (base, base_version) = self.content(name, None).unwrap();
        let is_absent = !self.local_chunk(name).exists;
        assert!(
            is_absent || base_version <= complete_to,
            "D5: {base_version} of {name:?} is later"
        );
        let base_at = complete_to.max(base_version);
        let stands_at = Some(base_at);
        let chunk =
            Chunk { base, base_at, base_version, is_awaited: true, stands_at, ..Chunk::default() };
        self.chunks.insert(name.clone(), chunk);
    }

    fn confirm(&mut self, name: &ChunkName, _: Timestamp) -> Vec<LateAnswers> {
        let chunk = self.chunks.get_mut(name).unwrap();
        (chunk.is_awaited, chunk.stands_at) = (false, None);
        chunk.answers(name)
    }

    fn stop_awaiting(&mut self) {
        self.chunks.retain(|_, chunk| !chunk.is_awaited || chunk.stands_at.is_some());
        for chunk in self.chunks.values_mut().filter(|chunk| chunk.is_awaited) {
            (chunk.is_awaited, chunk.stands_at) = (false, None);
            chunk.applied.clear();
        }
    }

    fn local_chunk(&self, name: &ChunkName) -> LocalChunk {
        let version = match self.chunks.get(name) {
            Some(chunk) if chunk.is_awaited => chunk.base_version,
            Some(chunk) => chunk.applied.keys().last().copied().unwrap_or(chunk.base_version),
            None => Timestamp::ZERO,
        };
        let content = match self.chunks.get(name) {
            Some(chunk) if chunk.is_awaited => Some(chunk.base),
            _ => self.content(name, None).map(|(content, _)| content),
        };
        // As with a deleted one its version may be known.
        let exists = content.is_some_and(|content| content != Content::default());
        LocalChunk { name: name.clone(), version, exists }
    }

    fn is_awaited(&self, chunk: &ChunkName) -> bool {
        self.chunks.get(chunk).is_some_and(|chunk| chunk.is_awaited)
    }

    fn install(&mut self, name: &ChunkName, copy: &ChunkCopy) -> Vec<LateAnswers> {
        assert!(copy.is_sound() && copy.is_last);
        let chunk = self.chunks.entry(name.clone()).or_default();
        if !chunk.is_awaited && copy.at <= chunk.base_at {
            return Vec::new(); // The log is read again over a base that has it.
        }
        let newest = copy.newest();
        let numbers = newest.bytes.chunks_exact(8);
        for (slot, bytes) in chunk.base.iter_mut().zip(numbers) {
            *slot = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        (chunk.base_at, chunk.base_version) = (copy.at, newest.version);
        (chunk.is_awaited, chunk.stands_at) = (false, None);
        chunk.applied.retain(|at, _| *at > copy.at);
        chunk.answers(name)
    }

    fn release(&mut self, chunk: &ChunkName) {
        self.chunks.remove(chunk);
    }

    fn keep_piece(&mut self, staged: &StagedPiece, content: &PieceContent) -> Result<()> {
        self.pieces.entry(staged.piece.id).or_insert_with(|| content.clone());
        Ok(())
    }

    fn unstage(&mut self, ids: &[PieceId]) {
        ids.iter().for_each(|id| drop(self.pieces.remove(id)));
    }

    fn staged_content(&self, id: PieceId) -> PieceContent {
        self.pieces.get(&id).cloned().unwrap_or(PieceContent::Elsewhere)
    }

    fn staged_bytes(&self, id: PieceId) -> Option<Bytes> {
        match self.pieces.get(&id)? {
            PieceContent::Bytes(bytes) => Some(bytes.clone()),
            PieceContent::Elsewhere | PieceContent::Extents(_) => None,
        }
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.pieces.clear();
    }

    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName> {
        let rest = self.chunks.keys().filter(|name| after.is_none_or(|after| *name > after));
        rest.take(limit).cloned().collect()
    }

    fn usage(&mut self, blob: &BlobName, usage: &Usage) {
        let known = self.usages.entry(blob.clone()).or_insert_with(|| usage.clone());
        known.update(usage);
    }

    fn held_or_kept(&self, after: Option<&ChunkName>, limit: usize) -> Vec<LocalChunk> {
        self.held(after, limit).iter().map(|name| self.local_chunk(name)).collect()
    }

    fn held_above(&self, _: Timestamp) -> Option<Vec<LocalChunk>> {
        Some(self.held_or_kept(None, usize::MAX))
    }

    fn keep(&mut self, map: &ClusterMap) {
        self.kept = map.kept_moments();
    }

    fn usage_as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.usages.get(blob).map(Usage::as_of)
    }
}
