//! How a store is opened.

use std::time::Duration;

use tyr_store::recent::block::BLOCK_SIZE;
use tyr_types::{Error, Result, limits};

/// The smallest cache: below that a few large transactions would hold each other up.
const CACHE_BYTES_MIN: u64 = 8 << 20;

/// How a store is opened. The defaults suit a laptop as well as a server.
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
    /// Bytes that are held for kept snapshots: above it the oldest are dropped. Default 64 GiB.
    pub kept_bytes_max: u64,
    /// Bytes of log after which a fold begins. Default 64 MiB.
    pub fold_log_bytes: u64,
    /// Bytes of a blob that a fold takes at a time, roughly, if it has more to take: the less, the
    /// sooner there is room for who writes meanwhile. Default 1 MiB, at least 16 KiB.
    pub fold_step_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            is_read_only: false,
            is_damage_accepted: false,
            must_exist: false,
            snapshot_timeout: Duration::from_secs(300),
            kept_bytes_max: limits::KEPT_BYTES_DEFAULT,
            fold_log_bytes: 64 << 20,
            fold_step_bytes: 1 << 20,
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
        if self.fold_step_bytes < BLOCK_SIZE {
            return Err(Error::invalid(format!(
                "a step of a fold takes at least 16 KiB ({BLOCK_SIZE} bytes) of a blob, \
                 not {}",
                self.fold_step_bytes
            )));
        }
        Ok(())
    }
}
