//! What a node of a cluster holds: chunks, and what is still to come of them.
//!
//! The member's view of the store (`tyr_protocol::member::Store`): it names chunks and chains, the
//! store below names what it keeps. In between lies only what no store can know: chunks whose base
//! is still on its way here, with what was applied to them meanwhile; and where versions are still
//! read (V2 to V4).
//!
//! ```text
//!   Member ──apply, install, release──► Holdings ──► Store (recent, base)
//!                                          └── awaited: pieces of bases, operations laid aside
//! ```
//!
//! Nothing here answers an error: the log has it all already. When the disk fails, that is noted
//! ([`Holdings::check`]), and the node must do nothing more: what it says then is not so.

mod applying;
mod expected;
mod floor;
mod held;
mod installing;
mod kept;
mod listing;
mod maps;
mod pieces;
mod reading;
pub(crate) mod staging;
mod touched;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use tyr_protocol::commit::Outcomes;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{self, ChunkName, LateAnswers, LocalChunk, Record};
use tyr_protocol::movement::ChunkCopy;
use tyr_protocol::upload::StagedPiece;
use tyr_protocol::versions::Usage;
use tyr_protocol::{Chain, View};
use tyr_store::recent::Readers;
use tyr_store::store::Store;
use tyr_store::store::chunks::{chunk_name, stored_name};
use tyr_types::chunk::Place;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, ExtentRef, KeyspaceId, NodeId, Operation,
    PieceContent, PieceId, Result, Timestamp, Transaction, TransactionId, limits,
};

use self::expected::Expected;
pub use self::floor::{Floors, Retention, Shortage};
pub use self::held::Held;
use self::pieces::HeldPieces;
pub use self::reading::refusal;
use self::staging::Staging;
pub use self::touched::Chunks;
use crate::tally::{self, Tally};

/// A keyspace as far as the chunks of its blobs need it.
#[derive(Clone, Copy, Debug)]
struct Keyspace {
    chunk_size: u64,
    is_multi_versioned: bool,
    is_compressed: bool,
}

/// The chunks that a node holds.
pub struct Holdings {
    node: NodeId,
    store: Arc<Store>,
    keyspaces: HashMap<KeyspaceId, Keyspace, FixedState>,
    map: Option<Arc<ClusterMap>>,
    /// Chunks whose base is still to come.
    expected: BTreeMap<ChunkName, Expected>,
    floors: Floors,
    /// What was deleted before this may have been held by somebody else.
    known_from: Timestamp,
    staging: Staging,
    pieces: HeldPieces,
    tally: Arc<Tally>,
    failure: OnceLock<Error>,
}

impl std::fmt::Debug for Holdings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holdings(node {}, {:?})", self.node.0, self.store)
    }
}

impl Holdings {
    /// What the node has in `store`.
    pub fn new(node: NodeId, store: Arc<Store>, retention: Retention) -> Self {
        let tally: Arc<Tally> = Arc::default();
        let mut floors = Floors::new(retention);
        floors.keep(store.base().kept_unfolded());
        Self {
            node,
            store,
            keyspaces: HashMap::default(),
            map: None,
            expected: BTreeMap::new(),
            floors,
            known_from: Timestamp::ZERO,
            staging: Staging::default(),
            pieces: HeldPieces::new(Arc::clone(&tally)),
            tally,
            failure: OnceLock::new(),
        }
    }

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How much of what is here counts here.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Down to where versions are read.
    pub fn floors(&mut self) -> &mut Floors {
        &mut self.floors
    }

    /// Of what is not here, nothing is known before `at` (Q1).
    pub fn know_from(&mut self, at: Timestamp) {
        self.known_from = at;
    }

    /// Bytes that wait for the bases of their chunks, roughly.
    pub fn expected_bytes(&self) -> usize {
        self.expected.values().map(Expected::bytes).sum()
    }

    /// Writes the large payloads of a transaction that is about to be logged; answers it as the log
    /// is to keep it, `None` when that is as it is.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn stage(&mut self, transaction: &Transaction) -> Result<Option<Transaction>> {
        let keyspaces = &self.keyspaces;
        self.staging.stage(&self.store, transaction, |entry| {
            let known = keyspaces.get(&entry.blob.keyspace);
            known
                .map_or((limits::CHUNK_SIZE_DEFAULT, false), |it| (it.chunk_size, it.is_compressed))
        })
    }

    /// A transaction is over here without having been applied.
    pub fn forget_staged(&mut self, id: TransactionId) {
        self.staging.end(id);
    }

    /// The transaction with all its payloads by value.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn inlined(&self, transaction: &Transaction) -> Result<Transaction> {
        let inlined = |entry: &BlobOperations| {
            let operations = staging::inline(&self.store, &entry.operations)?;
            Ok(BlobOperations { blob: entry.blob.clone(), operations })
        };
        let blobs: Result<Vec<_>> = transaction.blobs.iter().map(inlined).collect();
        let (id, reads) = (transaction.id, transaction.reads.clone());
        Ok(Transaction { id, blobs: blobs?, reads })
    }

    /// Sees a record of the log at a start, in the order they were written and before the member
    /// does; adds the extents that it refers to.
    pub fn meet(&mut self, record: &Record, extents: &mut Vec<ExtentRef>) {
        match record {
            Record::Map(map) => self.learn(map),
            Record::Validated { transaction, .. } | Record::Aside { transaction, .. } => {
                extents.extend(staging::extents(transaction));
            }
            Record::Standing { map, .. } => map.iter().for_each(|map| self.learn(map)),
            Record::Staged { content: PieceContent::Extents(staged), .. } => extents.extend(staged),
            Record::Staged { .. }
            | Record::Unstaged { .. }
            | Record::CompleteTo { .. }
            | Record::Fenced { .. }
            | Record::Decided { .. }
            | Record::Answered { .. }
            | Record::Aborted { .. }
            | Record::Recalled { .. }
            | Record::Finished { .. }
            | Record::Remembered { .. }
            | Record::Marked { .. }
            | Record::Installed { .. } => {}
        }
    }

    /// Whether the disk does what it is asked.
    ///
    /// # Errors
    /// Why the node must do nothing more: what it says now is not so.
    pub fn check(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(failure) => Err(failure.duplicate()),
        }
    }

    /// The chunks of the blob that a transaction writes here, ascending, before it is applied.
    pub fn touched(&self, entry: &BlobOperations, chain: &Chain) -> Chunks {
        let size = || self.stat(&entry.blob).unwrap_or(0);
        touched::chunks(entry, (chain, self.node), self.chunk_size(entry.blob.keyspace), size)
    }

    /// Takes note of a failure of the disk.
    fn note<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failure.get_or_init(|| error)).ok()
    }

    fn place(&self, keyspace: KeyspaceId, chunk: u64) -> Place {
        let size = self.chunk_size(keyspace);
        Place { range: ByteRange { start: chunk * size, end: (chunk + 1) * size } }
    }

    /// Who may read older versions of the blob than what is written at `at`.
    fn readers(&self, blob: &BlobName, at: Timestamp) -> Readers<'_> {
        let is_multi = self.keyspaces.get(&blob.keyspace).is_none_or(|it| it.is_multi_versioned);
        self.floors.readers(blob, at, is_multi)
    }

    /// Who may read older versions of what is kept under this name, now.
    pub fn readers_now(&self, stored: &BlobName, now: Timestamp) -> Readers<'_> {
        match chunk_name(stored) {
            Some((blob, _)) => self.readers(&blob, now),
            None => Readers::NONE,
        }
    }

    /// The chunk's state, if it is one of those here.
    fn look<T>(
        &self,
        blob: &BlobName,
        chunk: u64,
        look: impl FnOnce(&tyr_store::recent::BlobState) -> T,
    ) -> Option<T> {
        let stored = stored_name(blob, chunk);
        if let Some(cell) = self.store.recent().find(&stored) {
            return Some(look(&cell.lock()));
        }
        let is_placed = |map: &Arc<ClusterMap>| {
            map.placement(blob, chunk).is_some_and(|placed| placed.has(self.node))
        };
        if !self.map.as_ref().is_none_or(is_placed) {
            return None;
        }
        // A disk that fails here fails again when the transaction is applied, and is noted then.
        let cell = self.store.chunk(&stored).ok()?;
        let state = cell.lock();
        Some(look(&state))
    }

    /// A blob had the one size and now has the other, as its first chunk says. Most transactions
    /// change none, and where a blob counts is not looked for then.
    fn count(&self, blob: &BlobName, before: Option<u64>, after: Option<u64>) {
        let counts_here = |map: &Arc<ClusterMap>| tally::counts(map, self.node, blob);
        let may_count = before != after && self.tally.is_any();
        if may_count && self.map.as_ref().is_some_and(counts_here) {
            self.tally.change(blob, before, after);
        }
    }

    /// Chunks whose base is still to come, and of which moment it is what is here of them.
    pub fn awaited(&self) -> impl Iterator<Item = (&ChunkName, Option<Timestamp>)> {
        self.expected.iter().map(|(name, expected)| (name, expected.stands_at()))
    }

    fn is_expected(&self, blob: &BlobName, chunk: u64) -> bool {
        !self.expected.is_empty() && self.expected.contains_key(&(blob.clone(), chunk))
    }
}

/// The chunks that a transaction is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// All that it touches here.
    All,
    /// Those whose base is still to come: it was applied to the others.
    Awaited,
}

impl Holdings {
    fn apply_to(
        &mut self,
        reach: Reach,
        transaction: &Transaction,
        at: Timestamp,
        chain: &Chain,
    ) -> Outcomes {
        let operations = transaction.blobs.iter().map(|entry| entry.operations.len());
        let mut answers = Vec::with_capacity(operations.sum());
        let position = chain.position(self.node);
        let part = &chain.hops()[position.expect("a node applies what it is in the chain of")].part;
        for (number, entry) in (0u32..).zip(&transaction.blobs) {
            if !entry.operations.iter().any(Operation::is_write) {
                continue;
            }
            let guess = chain.ends().iter().find(|(place, _)| *place == number);
            let guess = guess.map_or(0, |(_, end)| *end);
            let mut chunks = self.touched(entry, chain);
            if reach == Reach::Awaited {
                chunks.retain(|number| self.is_expected(&entry.blob, *number));
                if chunks.is_empty() {
                    continue;
                }
            }
            let start = self.start(part, &entry.blob, guess, at);
            let place = (number, entry);
            self.apply_blob((transaction.id, at), place, &chunks, start, &mut answers);
        }
        self.staging.end(transaction.id);
        answers.into()
    }
}

impl member::Store for Holdings {
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes {
        self.apply_to(Reach::All, transaction, at, chain)
    }

    fn apply_to_awaited(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) {
        self.apply_to(Reach::Awaited, transaction, at, chain);
    }

    fn await_base(&mut self, name: &ChunkName) {
        if self.is_expected(&name.0, name.1) {
            return;
        }
        let stored = stored_name(&name.0, name.1);
        let is_here = |cell: &Arc<tyr_store::recent::BlobCell>| {
            let state = cell.lock();
            state.attributes().version > Timestamp::ZERO || state.included_to() > Timestamp::ZERO
        };
        let known = self.store.chunk(&stored).map(|cell| is_here(&cell));
        if self.note(known) == Some(false) {
            self.expected.insert(name.clone(), Expected::default());
        }
    }

    fn await_confirmation(&mut self, name: &ChunkName, complete_to: Timestamp) {
        let standing = || Expected::standing(complete_to);
        self.expected.entry(name.clone()).or_insert_with(standing);
    }

    fn confirm(&mut self, name: &ChunkName, complete_to: Timestamp) -> Vec<LateAnswers> {
        let Some(expected) = self.expected.remove(name) else { return Vec::new() };
        self.lay_upon(name, complete_to, expected.into_above(complete_to))
    }

    fn stop_awaiting(&mut self) {
        self.expected.clear();
        self.staging.clear();
        self.floors.clear();
        self.tally.restart();
    }

    fn local_chunk(&self, name: &ChunkName) -> LocalChunk {
        let held = self.store.chunk(&stored_name(&name.0, name.1));
        let attributes = self.note(held).map(|cell| cell.lock().attributes()).unwrap_or_default();
        LocalChunk { name: name.clone(), version: attributes.version, exists: attributes.exists }
    }

    fn is_awaited(&self, name: &ChunkName) -> bool {
        self.is_expected(&name.0, name.1)
    }

    fn install(&mut self, name: &ChunkName, copy: &ChunkCopy) -> Vec<LateAnswers> {
        assert!(copy.is_sound(), "a copy of {name:?} is installed that is not sound");
        let stored = stored_name(&name.0, name.1);
        let included = self.store.chunk(&stored).map(|cell| cell.lock().included_to());
        let is_in_base =
            self.note(included).is_some_and(|to| to > Timestamp::ZERO && copy.at <= to);
        if is_in_base && !self.is_expected(&name.0, name.1) {
            return Vec::new(); // The log is read again over a base that has it.
        }
        let start = self.place(name.0.keyspace, name.1).range.start;
        let mut expected = self.expected.remove(name).unwrap_or_default();
        expected.add(copy.clone(), start);
        match copy.is_last {
            true => self.install_whole(name, expected),
            false => {
                self.expected.insert(name.clone(), expected);
                Vec::new()
            }
        }
    }

    fn release(&mut self, name: &ChunkName) {
        self.expected.remove(name);
        let released = self.store.release_chunk(&stored_name(&name.0, name.1));
        self.note(released);
    }

    fn keep_piece(&mut self, staged: &StagedPiece, content: &PieceContent) -> Result<()> {
        let keyspace = self.keyspaces.get(&staged.blob.keyspace);
        let is_compressed = keyspace.is_some_and(|it| it.is_compressed);
        let is_first = |map: &Arc<ClusterMap>| {
            map.holders(&staged.blob, staged.chunk).first() == Some(&self.node)
        };
        let is_counted = self.map.as_ref().is_some_and(is_first);
        self.pieces.stage(&self.store, staged, content, is_compressed, is_counted)
    }

    fn unstage(&mut self, ids: &[PieceId]) {
        self.pieces.unstage(ids);
    }

    fn staged_content(&self, id: PieceId) -> PieceContent {
        self.pieces.content(id)
    }

    fn staged_bytes(&self, id: PieceId) -> Option<Bytes> {
        // What cannot be read here may be elsewhere: who asks does so there.
        self.pieces.bytes(&self.store, id).ok().flatten()
    }

    fn clear(&mut self) {
        self.expected.clear();
        self.staging.clear();
        self.pieces.clear();
        self.floors.clear();
        self.tally.restart();
        let cleared = self.store.clear_chunks();
        self.note(cleared);
    }

    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName> {
        let held = self.all_held(after, limit, false);
        held.into_iter().map(|held| held.name).collect()
    }

    fn held_or_kept(&self, after: Option<&ChunkName>, limit: usize) -> Vec<LocalChunk> {
        self.all_held(after, limit, true)
    }

    fn held_above(&self, at: Timestamp) -> Option<Vec<LocalChunk>> {
        self.all_above(at)
    }

    fn keep(&mut self, map: &ClusterMap) {
        self.keep_snapshots(map);
    }

    fn usage(&mut self, blob: &BlobName, usage: &Usage) {
        self.floors.update(blob, usage);
    }

    fn usage_as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.floors.as_of(blob)
    }
}

#[cfg(test)]
mod tests;
