//! When a node folds, and how much it keeps in memory.

use crate::holdings::Shortage;

/// A fold writes all that is remembered of transactions: the log grows by so many times as much
/// before the next, so that what is written twice stays little.
const PROMISES_FACTOR: u64 = 4;

/// The log may grow to this many times its usual size before a fold ends the snapshots that hold it
/// back.
const PATIENCE_FACTOR: u64 = 8;

/// While memory is short a fold begins when this share of the cache has come to what the base
/// lacks.
const DIRTY_SHARE: usize = 8;

/// What the base lacks may come to this share more than the cache; when half of that is left over
/// whatever is forgotten, what is read goes, too.
const DIRTY_OVER: usize = 4;

const _: () = {
    assert!(PATIENCE_FACTOR > 1, "a fold that is due is not overdue at once");
    assert!(DIRTY_OVER < DIRTY_SHARE, "a fold begins before nothing is let in");
};

/// When to fold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory for recent operations and cache, in bytes.
    pub cache_bytes: usize,
    /// Bytes of log after which a fold begins.
    pub fold_log_bytes: u64,
    /// Snapshots that were begun this long before a fold are not disturbed by it, in microseconds.
    pub grace_us: u64,
}

impl Limits {
    /// Bytes that the base lacks at which nothing more is let in.
    pub fn dirty_max(self) -> usize {
        self.cache_bytes + self.cache_bytes / DIRTY_OVER
    }

    /// How short memory is with `memory` bytes in it, when `left` were left last of what nobody
    /// needs to have forgotten.
    pub fn shortage(self, memory: usize, left: usize) -> Shortage {
        match self.cache_bytes {
            cache if left > cache + cache / DIRTY_OVER / 2 => Shortage::Severe,
            cache if memory > cache => Shortage::Short,
            _ => Shortage::None,
        }
    }
}

/// What there was after the last fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastFold {
    /// Bytes of log.
    pub log_bytes: u64,
    /// Memory of blobs that the base lacked something of: what was written meanwhile, and older
    /// versions of it that are still read.
    pub dirty: usize,
    /// Bytes of its checkpoint.
    pub promises_len: u64,
}

impl LastFold {
    /// Whether enough has come to the log or to memory since that another one is worth it: what
    /// that one left in memory, the next may leave there, too. But while nothing is let in nothing
    /// comes, and then it is always worth it. So it is when extents of so many bytes are dead:
    /// large payloads that are overwritten make little log, and only a checkpoint gives their space
    /// back.
    pub fn is_due(&self, limits: Limits, log_bytes: u64, dirty: usize, dead_bytes: u64) -> bool {
        let grown = log_bytes.saturating_sub(self.log_bytes);
        let enough = limits.fold_log_bytes.max(PROMISES_FACTOR * self.promises_len);
        let cache = limits.cache_bytes;
        let enough_dirty = (cache / 2).max(self.dirty + cache / DIRTY_SHARE);
        grown.max(dead_bytes) >= enough || dirty >= enough_dirty.min(limits.dirty_max())
    }

    /// Whether the log has grown so long since that a fold waits for no snapshot.
    pub fn is_long(&self, limits: Limits, log_bytes: u64) -> bool {
        log_bytes.saturating_sub(self.log_bytes) > PATIENCE_FACTOR * limits.fold_log_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { cache_bytes: 800, fold_log_bytes: 1000, grace_us: 0 };

    #[test]
    fn a_fold_is_due_when_the_log_has_grown_or_half_of_the_cache_is_not_in_the_base() {
        let last = LastFold { log_bytes: 500, ..LastFold::default() };
        assert!(!last.is_due(LIMITS, 1499, 399, 0));
        assert!(last.is_due(LIMITS, 1500, 0, 0));
        assert!(last.is_due(LIMITS, 500, 400, 0));
        let last = LastFold { promises_len: 500, ..last };
        assert!(!last.is_due(LIMITS, 2499, 0, 0), "a checkpoint is written for more than it");
        assert!(last.is_due(LIMITS, 2500, 0, 0));
    }

    #[test]
    fn a_fold_is_due_when_as_much_is_dead_as_would_be_a_reason_in_the_log() {
        let last = LastFold { log_bytes: 500, ..LastFold::default() };
        assert!(!last.is_due(LIMITS, 500, 0, 999));
        assert!(last.is_due(LIMITS, 500, 0, 1000));
    }

    #[test]
    fn readers_give_way_before_writers_do() {
        assert_eq!(LIMITS.shortage(800, 800), Shortage::None);
        assert_eq!(LIMITS.shortage(801, 0), Shortage::Short);
        assert_eq!(LIMITS.shortage(900, 900), Shortage::Short);
        assert_eq!(LIMITS.shortage(901, 901), Shortage::Severe);
        assert_eq!(LIMITS.dirty_max(), 1000);
    }

    #[test]
    fn what_a_fold_left_in_memory_is_no_reason_for_the_next() {
        let last = LastFold { dirty: 700, ..LastFold::default() };
        assert!(!last.is_due(LIMITS, 0, 799, 0));
        assert!(last.is_due(LIMITS, 0, 800, 0));
        let last = LastFold { dirty: 10, ..LastFold::default() };
        assert!(!last.is_due(LIMITS, 0, 399, 0));
        let last = LastFold { dirty: 1200, ..LastFold::default() };
        assert!(!last.is_due(LIMITS, 0, 999, 0));
        assert!(last.is_due(LIMITS, 0, 1000, 0), "nothing is let in before it");
    }
}
