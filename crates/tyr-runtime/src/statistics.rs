//! Counters of a store, for `inspect`, `bench` and the demo.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A moment's copy of a store's counters and sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed since the store was opened.
    pub commits: u64,
    /// Transactions that failed, for a conflict or another reason.
    pub aborts: u64,
    /// Reads answered.
    pub reads: u64,
    /// Reads that had to go to disk (or the operating system's cache).
    pub reads_from_disk: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Transactions that waited for those syncs.
    pub synced_commits: u64,
    /// Bytes in the log's segments.
    pub log_bytes: u64,
    /// Bytes written to extents since the store was opened.
    pub extent_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Older versions held for readers.
    pub versions_held: u64,
    /// Snapshots in use.
    pub snapshots_in_use: u64,
    /// Bytes of memory in recent operations and cache.
    pub memory_bytes: u64,
    /// Bytes of memory that the base lacks.
    pub dirty_bytes: u64,
    /// Folds finished.
    pub folds: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "as in `Statistics`")]
pub struct Counters {
    pub commits: Counter,
    pub aborts: Counter,
    pub reads: Counter,
    pub reads_from_disk: Counter,
    pub log_syncs: Counter,
    pub synced_commits: Counter,
    pub extent_bytes: Counter,
    pub folds: Counter,
}

/// Stripes of a counter: enough that threads which run at once seldom share one.
const STRIPES: usize = 16;

/// A counter that many threads add to, each to a stripe of its own, so that the count of reads does
/// not cost more than the reads.
#[derive(Debug, Default)]
pub struct Counter([Stripe; STRIPES]);

/// A cache line with a number in it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

thread_local! {
    /// The stripe that this thread adds to.
    static STRIPE: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

impl Counter {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        let stripe = STRIPE.with(|stripe| *stripe);
        self.0[stripe].0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum of what was added.
    pub fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_add_is_counted_once() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|_| counter.add(2)));
            }
        });
        assert_eq!(counter.get(), 4000);
    }
}
