//! What was applied to chunks whose base is still to come, for as long as it is.
//!
//! The store lays it aside until the base is installed; here is what it was, so that it survives
//! when the log is cut below it. Bounded as the store's own is: by what chains bring to a chunk
//! while it is copied. Nothing is copied for this: transactions are shared, and their payloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{Timestamp, Transaction};

use super::{ChunkName, Record};
use crate::chain::Chain;

/// A transaction that was applied, at least one of whose chunks is awaited.
#[derive(Clone, Debug)]
pub(super) struct LaidAside {
    pub transaction: Arc<Transaction>,
    pub chain: Chain,
}

/// What is laid aside, by chunk.
#[derive(Debug, Default)]
pub(super) struct Aside {
    by_chunk: BTreeMap<ChunkName, BTreeMap<Timestamp, LaidAside>>,
}

impl Aside {
    /// Something was applied to this chunk, whose base is awaited.
    pub fn lay(&mut self, chunk: ChunkName, at: Timestamp, what: LaidAside) {
        self.by_chunk.entry(chunk).or_default().insert(at, what);
    }

    /// The chunk's base is here, or the chunk is gone.
    pub fn forget(&mut self, chunk: &ChunkName) {
        self.by_chunk.remove(chunk);
    }

    /// All of it in the order of timestamps, each transaction once.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let all = self.by_chunk.values().flatten();
        let once: BTreeMap<Timestamp, &LaidAside> = all.map(|(at, it)| (*at, it)).collect();
        once.into_iter().map(|(at, LaidAside { transaction, chain })| Record::Aside {
            transaction: Arc::clone(transaction),
            chain: chain.clone(),
            at,
        })
    }

    /// The chunks that something is laid aside of.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkName> {
        self.by_chunk.keys()
    }
}
