//! How long things took, counted in buckets, by many threads and without a lock.
//!
//! Bounds are fixed: what is read at different nodes can be added up. One addition in a bucket and
//! one to the sum is all that counting costs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper ends of the buckets but the last, in microseconds: from what memory takes to what no
/// client waits for.
pub const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// How long things took.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// A moment's copy of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many fell into each bucket; the last has what is above all bounds.
    pub buckets: [u64; BOUNDS_US.len() + 1],
    /// All together, in microseconds.
    pub sum_us: u64,
}

impl Histogram {
    /// Something took this long.
    pub fn note(&self, took_us: u64) {
        let bucket = BOUNDS_US.partition_point(|bound| *bound < took_us);
        debug_assert!(BOUNDS_US.get(bucket).is_none_or(|end| took_us <= *end), "it ends above");
        debug_assert!(bucket == 0 || BOUNDS_US[bucket - 1] < took_us, "and begins below");
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// What was noted so far.
    pub fn read(&self) -> Times {
        Times {
            buckets: self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed)),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

impl Times {
    /// How many were noted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The upper end of the bucket below which this share of all lies, in microseconds; `None`
    /// when there are none, or it lies above all bounds.
    pub fn below_us(&self, share: f64) -> Option<u64> {
        debug_assert!((0.0..=1.0).contains(&share), "a share is a part of all");
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        let ends = BOUNDS_US.iter().zip(&self.buckets);
        let mut found = ends.skip_while(|(_, count)| {
            seen += **count;
            seen < wanted
        });
        found.next().map(|(bound, _)| *bound).filter(|_| wanted > 0)
    }
}

const _: () = {
    let mut at = 1;
    while at < BOUNDS_US.len() {
        assert!(BOUNDS_US[at - 1] < BOUNDS_US[at], "bounds ascend");
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_falls_into_the_bucket_whose_end_it_does_not_exceed() {
        let histogram = Histogram::default();
        for took_us in [0, 50, 51, 30_000_000, 30_000_001] {
            histogram.note(took_us);
        }
        let times = histogram.read();
        assert_eq!(times.buckets[0], 2);
        assert_eq!(times.buckets[1], 1);
        assert_eq!(times.buckets[BOUNDS_US.len() - 1..], [1, 1]);
        assert_eq!((times.count(), times.sum_us), (5, 60_000_102));
    }

    #[test]
    fn a_share_of_all_lies_below_the_end_of_its_bucket() {
        let histogram = Histogram::default();
        assert_eq!(histogram.read().below_us(0.5), None);
        (0..99).for_each(|_| histogram.note(60));
        histogram.note(4_000);
        assert_eq!(histogram.read().below_us(0.5), Some(100));
        assert_eq!(histogram.read().below_us(0.99), Some(100));
        assert_eq!(histogram.read().below_us(1.0), Some(5_000));
        histogram.note(u64::from(u32::MAX));
        assert_eq!(histogram.read().below_us(1.0), None);
    }
}
