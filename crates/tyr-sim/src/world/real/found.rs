//! What a process finds in its base when it starts: how far each chunk was folded.

use std::collections::BTreeMap;

use tyr_protocol::member::ChunkName;
use tyr_store::store::Store;
use tyr_store::store::chunks::chunk_name;
use tyr_types::{BlobName, KeyRange, Result, Timestamp};

/// How far a base is, by chunk.
#[derive(Debug, Default)]
pub struct Found {
    chunks: BTreeMap<ChunkName, Timestamp>,
    /// Of the chunks that it has nothing of.
    others: Timestamp,
}

impl Found {
    /// What the store has.
    pub(super) fn of(store: &Store) -> Result<Self> {
        let mut found =
            Self { others: store.base().last_checkpoint().timestamp, ..Self::default() };
        for info in store.base().keyspaces() {
            for (key, blob) in
                store.base().scan_traces(info.id, &KeyRange::default(), usize::MAX)?
            {
                if let Some(name) = chunk_name(&BlobName { keyspace: info.id, key }) {
                    found.chunks.insert(name, blob.folded_at);
                }
            }
        }
        Ok(found)
    }

    /// Everything of the chunk up to there is in the base.
    pub fn folded_at(&self, chunk: &ChunkName) -> Timestamp {
        self.chunks.get(chunk).copied().unwrap_or(self.others)
    }
}
