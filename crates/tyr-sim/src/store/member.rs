//! What the member of a simulated node does to what is applied.

use tyr_protocol::Chain;
use tyr_protocol::commit::Outcomes;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{ChunkName, LateAnswers, LocalChunk, Store};
use tyr_protocol::movement::ChunkCopy;
use tyr_protocol::upload::StagedPiece;
use tyr_protocol::versions::Usage;
use tyr_types::{BlobName, Bytes, Operation, PieceContent, PieceId, Timestamp, Transaction};

use super::chunk::Chunk;
use super::{Done, SimStore};

/// Which chunks a transaction is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All that it touches here.
    All,
    /// Those whose base is still to come: it was applied to the others.
    Awaited,
}

impl SimStore {
    fn apply_to(
        &mut self,
        reach: Reach,
        transaction: &Transaction,
        chain: &Chain,
        at: Timestamp,
    ) -> Outcomes {
        let mut outcomes = Vec::new();
        let Some(position) = chain.position(self.node) else {
            panic!(
                "violation: node {} applies {:x} beside its chain",
                self.node.0, transaction.id.0
            )
        };
        for (blob, entry) in (0u32..).zip(&transaction.blobs) {
            if !entry.operations.iter().any(Operation::is_write) {
                continue;
            }
            let guess = chain.ends().iter().find(|(place, _)| *place == blob);
            let guess = guess.map_or(0, |(_, end)| *end);
            let part = &chain.hops()[position].part;
            outcomes.extend(self.apply_blob(
                reach,
                (transaction.id, at),
                (blob, entry),
                (part, guess),
            ));
        }
        outcomes.into()
    }
}

impl Store for SimStore {
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes {
        self.apply_to(Reach::All, transaction, chain, at)
    }

    fn apply_to_awaited(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) {
        self.apply_to(Reach::Awaited, transaction, chain, at);
    }

    fn await_base(&mut self, name: &ChunkName) {
        if !self.chunks.contains_key(name) {
            self.chunk_mut(name).await_base(Vec::new());
        }
    }

    fn await_confirmation(&mut self, name: &ChunkName, complete_to: Timestamp) {
        if !self.is_awaited(name) {
            self.chunk_mut(name).await_confirmation(complete_to);
        }
    }

    fn confirm(&mut self, name: &ChunkName, _: Timestamp) -> Vec<LateAnswers> {
        self.chunks.get_mut(name).map(Chunk::confirm).unwrap_or_default()
    }

    fn stop_awaiting(&mut self) {
        let done = &mut self.done;
        self.chunks.retain(|name, chunk| {
            if !chunk.is_awaited() {
                return true;
            }
            let stands_at = chunk.stop_awaiting();
            done.push(match stands_at {
                Some(at) => Done::Withdrawn(name.clone(), at),
                None => Done::Released(name.clone()),
            });
            stands_at.is_some()
        });
        self.usages.clear();
    }

    fn local_chunk(&self, name: &ChunkName) -> LocalChunk {
        let chunk = self.chunks.get(name);
        let version = chunk.map_or(Timestamp::ZERO, Chunk::newest_of_all);
        LocalChunk { name: name.clone(), version, exists: chunk.is_some_and(Chunk::exists) }
    }

    fn is_awaited(&self, name: &ChunkName) -> bool {
        self.chunks.get(name).is_some_and(Chunk::is_awaited)
    }

    fn install(&mut self, name: &ChunkName, copy: &ChunkCopy) -> Vec<LateAnswers> {
        assert!(copy.is_sound(), "violation: a copy of {name:?} is installed that is not sound");
        self.rot.forget(name);
        let late = self.chunk_mut(name).install(copy.clone());
        self.done.push(Done::Installed(name.clone(), copy.at));
        late
    }

    fn release(&mut self, name: &ChunkName) {
        self.chunks.remove(name);
        self.rot.forget(name);
        self.done.push(Done::Released(name.clone()));
    }

    fn keep_piece(
        &mut self,
        staged: &StagedPiece,
        content: &PieceContent,
    ) -> tyr_types::Result<()> {
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
        self.usages.clear();
        self.rot.clear();
        self.done.push(Done::Cleared);
    }

    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.chunks.range::<ChunkName, _>((from, Bound::Unbounded));
        names.take(limit).map(|(name, _)| name.clone()).collect()
    }

    fn held_or_kept(&self, after: Option<&ChunkName>, limit: usize) -> Vec<LocalChunk> {
        // Also of what was deleted a chunk stays.
        self.held(after, limit).iter().map(|name| self.local_chunk(name)).collect()
    }

    fn held_above(&self, at: Timestamp) -> Option<Vec<LocalChunk>> {
        let all = self.held_or_kept(None, usize::MAX).into_iter();
        Some(all.filter(|held| held.version > at || self.is_awaited(&held.name)).collect())
    }

    fn keep(&mut self, map: &ClusterMap) {
        self.kept = map.kept_moments();
    }

    fn usage(&mut self, blob: &BlobName, usage: &Usage) {
        match self.usages.get_mut(blob) {
            Some(known) => known.update(usage),
            None => {
                self.usages.insert(blob.clone(), usage.clone());
            }
        }
        self.remove_versions_of(blob, usage.as_of());
    }

    fn usage_as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.usages.get(blob).map(Usage::as_of)
    }
}
