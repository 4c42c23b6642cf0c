//! Holdings that are watched: what is done to them is written down for the checker.

use tyr_engine::{Held, Holdings};
use tyr_protocol::commit::Outcomes;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{ChunkName, LateAnswers, LocalChunk, Store};
use tyr_protocol::movement::ChunkCopy;
use tyr_protocol::upload::StagedPiece;
use tyr_protocol::versions::Usage;
use tyr_protocol::{Chain, View};
use tyr_types::{
    BlobName, ByteRange, Bytes, KeyspaceId, Listed, NodeId, Number, NumberType, Operation,
    PieceContent, PieceId, Result, Timestamp, Transaction,
};

use crate::store::Done;

/// What a simulated node holds in the real store.
#[derive(Debug)]
pub struct Watched {
    node: NodeId,
    holdings: Holdings,
    done: Vec<Done>,
}

impl Watched {
    /// Watches what a node holds.
    pub fn new(node: NodeId, holdings: Holdings) -> Self {
        Self { node, holdings, done: Vec::new() }
    }

    /// What was done since this was asked last.
    pub fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// The chunks that a transaction writes here.
    fn touched(&self, transaction: &Transaction, chain: &Chain) -> Vec<ChunkName> {
        let mut touched = Vec::new();
        if chain.position(self.node).is_none() {
            return touched;
        }
        for entry in &transaction.blobs {
            if entry.operations.iter().any(Operation::is_write) {
                let chunks = self.holdings.touched(entry, chain).into_iter();
                touched.extend(chunks.map(|chunk| (entry.blob.clone(), chunk)));
            }
        }
        touched
    }
}

impl Held for Watched {
    fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    fn holdings_mut(&mut self) -> &mut Holdings {
        &mut self.holdings
    }
}

impl Store for Watched {
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes {
        let done = |chunk| Done::Applied(transaction.id, at, chunk);
        self.done.extend(self.touched(transaction, chain).into_iter().map(done));
        self.holdings.apply(transaction, chain, at)
    }

    fn apply_to_awaited(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) {
        let mut chunks = self.touched(transaction, chain);
        chunks.retain(|chunk| self.holdings.is_awaited(chunk));
        let done = |chunk| Done::Applied(transaction.id, at, chunk);
        self.done.extend(chunks.into_iter().map(done));
        self.holdings.apply_to_awaited(transaction, chain, at);
    }

    fn await_base(&mut self, chunk: &ChunkName) {
        self.holdings.await_base(chunk);
    }

    fn await_confirmation(&mut self, chunk: &ChunkName, complete_to: Timestamp) {
        self.holdings.await_confirmation(chunk, complete_to);
    }

    fn confirm(&mut self, chunk: &ChunkName, complete_to: Timestamp) -> Vec<LateAnswers> {
        self.holdings.confirm(chunk, complete_to)
    }

    fn stop_awaiting(&mut self) {
        let done = |(name, stands_at): (&ChunkName, Option<Timestamp>)| match stands_at {
            Some(at) => Done::Withdrawn(name.clone(), at),
            None => Done::Released(name.clone()),
        };
        self.done.extend(self.holdings.awaited().map(done));
        self.holdings.stop_awaiting();
    }

    fn local_chunk(&self, chunk: &ChunkName) -> LocalChunk {
        self.holdings.local_chunk(chunk)
    }

    fn is_awaited(&self, chunk: &ChunkName) -> bool {
        self.holdings.is_awaited(chunk)
    }

    fn install(&mut self, chunk: &ChunkName, copy: &ChunkCopy) -> Vec<LateAnswers> {
        self.done.push(Done::Installed(chunk.clone(), copy.at));
        self.holdings.install(chunk, copy)
    }

    fn release(&mut self, chunk: &ChunkName) {
        self.done.push(Done::Released(chunk.clone()));
        self.holdings.release(chunk);
    }

    fn keep_piece(&mut self, staged: &StagedPiece, content: &PieceContent) -> Result<()> {
        self.holdings.keep_piece(staged, content)
    }

    fn unstage(&mut self, ids: &[PieceId]) {
        self.holdings.unstage(ids);
    }

    fn staged_content(&self, id: PieceId) -> PieceContent {
        self.holdings.staged_content(id)
    }

    fn staged_bytes(&self, id: PieceId) -> Option<Bytes> {
        self.holdings.staged_bytes(id)
    }

    fn clear(&mut self) {
        self.done.push(Done::Cleared);
        self.holdings.clear();
    }

    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName> {
        self.holdings.held(after, limit)
    }

    fn usage(&mut self, blob: &BlobName, usage: &Usage) {
        self.holdings.usage(blob, usage);
    }

    fn held_or_kept(&self, after: Option<&ChunkName>, limit: usize) -> Vec<LocalChunk> {
        self.holdings.held_or_kept(after, limit)
    }

    fn held_above(&self, at: Timestamp) -> Option<Vec<LocalChunk>> {
        self.holdings.held_above(at)
    }

    fn keep(&mut self, map: &ClusterMap) {
        self.holdings.keep(map);
    }

    fn usage_as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.holdings.usage_as_of(blob)
    }
}

impl View for Watched {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        self.holdings.newest_overlapping(blob, range, is_attributes)
    }

    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        self.holdings.is_listing_stale(keyspace, listed, at)
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.holdings.stat(blob)
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        self.holdings.matches(blob, offset, expected)
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        self.holdings.number(blob, offset, number_type)
    }

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        self.holdings.chunk_size(keyspace)
    }
}
