//! How the library under the index is set up: memory, threads, and what its tables look like.

use std::path::Path;

use fjall::config::{CompressionPolicy, PartitioningPolicy};
use fjall::{CompressionType, Database, KeyspaceCreateOptions};

use super::Table;

/// Bytes of blocks that the library caches. Hot blobs are cached above, so it stays small.
const CACHE_BYTES: u64 = 32 << 20;
/// Threads that flush and merge. With two or more, fjall 3.1 keeps one of them handing merges back
/// to the queue, and so spinning, for as long as another merges.
const WORKERS: usize = 1;
/// Bytes of journals before the library makes lagging tables flush; the least it accepts.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// Bytes of changes that a table holds in memory before it writes them out. Up to four more of
/// these wait while the disk is busy: 5 * 22 MiB at worst.
pub const fn memtable_bytes(table: Table) -> u64 {
    match table {
        Table::Meta => 2 << 20,
        Table::Blobs | Table::Segments => 8 << 20,
        Table::Extents => 4 << 20,
    }
}

const _: () = {
    let [a, b, c, d] = Table::ALL;
    let all = memtable_bytes(a) + memtable_bytes(b) + memtable_bytes(c) + memtable_bytes(d);
    assert!(all == 22 << 20, "what waits at worst is said above");
    assert!(JOURNAL_BYTES_MAX >= 64 << 20, "the library accepts no less");
};

/// How a new table is laid out; one that is there keeps what it was made with.
pub fn table_options(table: Table) -> KeyspaceCreateOptions {
    let compression = match table {
        // Users' bytes: whoever wants them compressed says so for the keyspace.
        Table::Segments => CompressionPolicy::all(CompressionType::None),
        Table::Meta | Table::Blobs | Table::Extents => CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]),
    };
    // Below the first levels the library keeps no table's index or filter in memory. In one piece
    // each read would read and check all of them, up to some MiB, where they are not cached.
    KeyspaceCreateOptions::default()
        .manual_journal_persist(true)
        .max_memtable_size(memtable_bytes(table))
        .data_block_compression_policy(compression)
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
}

/// The database in `folder`, opened or made.
pub fn database_builder(folder: &Path) -> fjall::DatabaseBuilder<Database> {
    Database::builder(folder)
        .manual_journal_persist(true)
        .journal_compression(CompressionType::None)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNAL_BYTES_MAX)
        .worker_threads(WORKERS)
}
