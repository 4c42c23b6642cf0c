//! What was applied to chunks whose base is still to come, for as long as it is.
//!
//! The store lays it aside until the base is installed; here is what it was, so that it survives
//! when the log is cut below it. Bounded as the store's own is: by what chains bring to a chunk
//! while it is copied; such chunks are copied first, and where it is more than [`ASIDE_LEN_MAX`] at
//! any rate. Nothing is copied for this: transactions are shared, and their payloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{NodeId, Timestamp, Transaction};

use super::supply::chunk_of_piece;
use super::{ChunkName, Record};
use crate::chain::{Chain, Piece};
use crate::map::ClusterMap;

/// A transaction that was applied, at least one of whose chunks is awaited.
#[derive(Clone, Debug)]
pub(super) struct LaidAside {
    pub transaction: Arc<Transaction>,
    pub chain: Chain,
}

impl LaidAside {
    /// Bytes of memory, roughly.
    fn len(&self) -> u64 {
        self.transaction.payload_len() + TRANSACTION_LEN
    }
}

/// Bytes laid aside above which what they wait for is copied at any rate.
pub(super) const ASIDE_LEN_MAX: u64 = 64 << 20;

/// What a transaction takes besides its payload, roughly.
const TRANSACTION_LEN: u64 = 512;

/// What is laid aside, by chunk.
#[derive(Debug, Default)]
pub(super) struct Aside {
    by_chunk: BTreeMap<ChunkName, BTreeMap<Timestamp, LaidAside>>,
    /// Bytes of all of it; what several chunks share counts for each.
    len: u64,
}

impl Aside {
    /// Something was applied to this chunk, whose base is awaited.
    pub fn lay(&mut self, chunk: ChunkName, at: Timestamp, what: LaidAside) {
        self.len += what.len();
        let id = what.transaction.id;
        let before = self.by_chunk.entry(chunk).or_default().insert(at, what);
        let is_same = before.as_ref().is_none_or(|before| before.transaction.id == id);
        debug_assert!(is_same, "C6: a timestamp is of one transaction: {id:?} at {at}");
        self.len -= before.map_or(0, |before| before.len());
    }

    /// What was laid aside of this chunk at that moment.
    pub fn get(&self, chunk: &ChunkName, at: Timestamp) -> Option<&LaidAside> {
        self.by_chunk.get(chunk)?.get(&at)
    }

    /// Bytes of memory that it takes, roughly.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The chunk's base is here, or the chunk is gone.
    pub fn forget(&mut self, chunk: &ChunkName) {
        let gone = self.by_chunk.remove(chunk).into_iter().flat_map(BTreeMap::into_values);
        self.len -= gone.map(|it| it.len()).sum::<u64>();
        let is_empty = self.by_chunk.is_empty();
        debug_assert_eq!(is_empty, self.len == 0, "L3: what is laid aside is counted");
    }

    /// All of it in the order of timestamps, each transaction once. In their chains `node` has the
    /// chunks that wait, and no others: those have it already, also where they have gone since.
    pub fn records(&self, node: NodeId, map: &ClusterMap) -> impl Iterator<Item = Record> {
        let all = self.by_chunk.values().flatten();
        let once: BTreeMap<Timestamp, &LaidAside> = all.map(|(at, it)| (*at, it)).collect();
        once.into_iter().map(move |(at, LaidAside { transaction, chain })| {
            let is_waiting = |piece: &Piece| {
                let chunk = chunk_of_piece(piece, map);
                chunk.is_some_and(|chunk| self.get(&chunk, at).is_some())
            };
            let (transaction, chain) = (Arc::clone(transaction), chain.only(node, is_waiting));
            Record::Aside { transaction, chain, at }
        })
    }

    /// All transactions of it, some more than once.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.by_chunk.values().flat_map(BTreeMap::values).map(|it| &*it.transaction)
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        let all = self.by_chunk.values().flat_map(BTreeMap::values);
        assert_eq!(self.len, all.map(LaidAside::len).sum::<u64>(), "what is laid aside is counted");
        let is_empty = self.by_chunk.values().any(BTreeMap::is_empty);
        assert!(!is_empty, "a chunk is here for what is laid aside of it");
    }

    /// The chunks that something is laid aside of.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkName> {
        self.by_chunk.keys()
    }
}
