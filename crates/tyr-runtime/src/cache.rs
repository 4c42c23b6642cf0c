//! What is said, as a store or a node begins, of how much memory it has.

use tyr_types::limits;

/// A cache below this is warned of.
const CACHE_BYTES_SMALL: u64 = limits::READ_LEN_MAX;

/// Warns, as a store is opened, of a cache that a single read may fill.
pub fn warn_of_small_cache(cache_bytes: u64) {
    if cache_bytes < CACHE_BYTES_SMALL {
        tracing::warn!(
            cache_bytes,
            "the cache is small: below {CACHE_BYTES_SMALL} bytes (64 MiB) a single large read or \
             write may push everything else out of it, and what is written is worked into the \
             base all the time; give it more memory"
        );
    }
}
