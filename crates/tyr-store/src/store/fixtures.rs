//! Stores of nodes that the tests of this folder share.

use std::sync::Arc;

use tyr_types::{KeyspaceConfig, KeyspaceId, KeyspaceName};

use super::{Parts, Store};
use crate::disk::simulated::SimulatedDisk;
use crate::extents::ExtentOptions;
use crate::index::memory::MemoryIndex;
use crate::log::LogOptions;

/// The store on this disk, with this index.
pub fn open(disk: &SimulatedDisk, index: &MemoryIndex) -> Arc<Store> {
    let parts = Parts {
        disk: Arc::new(disk.clone()),
        index: Box::new(index.clone()),
        log: LogOptions::default(),
        extents: ExtentOptions::default(),
        is_read_only: false,
    };
    Store::assemble_node(parts, &mut |_, _, _| Ok(())).unwrap().store
}

/// Makes keyspace 1, of chunks of so many bytes.
pub fn adopt_keyspace(store: &Store, chunk_size: u64) {
    let config = KeyspaceConfig { chunk_size, ..KeyspaceConfig::default() };
    store.adopt_keyspace(KeyspaceId(1), &KeyspaceName::new("k").unwrap(), &config).unwrap();
}

/// A new store with that keyspace.
pub fn store(chunk_size: u64) -> Arc<Store> {
    let store = open(&SimulatedDisk::new(), &MemoryIndex::new());
    adopt_keyspace(&store, chunk_size);
    store
}
