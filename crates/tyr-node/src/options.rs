//! How a node is opened.

use std::time::Duration;

use tyr_types::{Error, Result, limits};

/// The smallest cache: below that a few large transactions would hold each other up.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// A cache below this is warned of.
const CACHE_BYTES_SMALL: u64 = limits::READ_LEN_MAX;

/// Warns, as a store is opened, of a cache that a single read may fill.
pub(crate) fn warn_of_small_cache(cache_bytes: u64) {
    if cache_bytes < CACHE_BYTES_SMALL {
        tracing::warn!(
            cache_bytes,
            "the cache is small: below {CACHE_BYTES_SMALL} bytes (64 MiB) a single large read or \
             write may push everything else out of it, and what is written is worked into the \
             base all the time; give it more memory"
        );
    }
}

/// How a node is opened. The defaults suit a laptop as well as a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for recent operations and cache, in bytes. Default 128 MiB, at least 8 MiB.
    pub cache_bytes: u64,
    /// Whether the store is opened without changing anything on disk. Default false.
    pub is_read_only: bool,
    /// Whether a store whose log is damaged opens read-only all the same, as it was before the
    /// damage. Default false.
    pub is_damage_accepted: bool,
    /// Whether a missing store is an error instead of being made. Default false.
    pub must_exist: bool,
    /// After this long a snapshot is too old (V1). Default 5 minutes.
    pub snapshot_timeout: Duration,
    /// Bytes of log after which a fold begins. Default 64 MiB.
    pub fold_log_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            is_read_only: false,
            is_damage_accepted: false,
            must_exist: false,
            snapshot_timeout: Duration::from_secs(300),
            fold_log_bytes: 64 << 20,
        }
    }
}

impl Options {
    pub(crate) fn validate(&self) -> Result<()> {
        if self.cache_bytes < CACHE_BYTES_MIN {
            return Err(Error::invalid(format!(
                "the cache is at least 8 MiB ({CACHE_BYTES_MIN} bytes), not {}",
                self.cache_bytes
            )));
        }
        Ok(())
    }
}
