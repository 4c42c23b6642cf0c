//! What `transact` does about a conflict: whether the body runs again, when, and at which moment.
//!
//! A body that only reads runs again at one moment of everything that it has read so far (R8). What
//! it reads beyond that belongs to the moment of the run after, so that the set grows until it is
//! all there, and nothing is left for anybody to change.

use std::collections::BTreeSet;
use std::time::Duration;

use tyr_types::{BlobName, Error};

/// How often a body is run that meets conflicts.
const ATTEMPTS_MAX: u32 = 64;

/// The runs of one body so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    made: u32,
    /// What they have read, as long as they did nothing else.
    read: BTreeSet<BlobName>,
}

impl Attempts {
    /// What the next run has to see at one moment; nothing before the first, and of a body that
    /// does more than read.
    pub fn read(&self) -> &BTreeSet<BlobName> {
        &self.read
    }

    /// How long to wait before the body runs again, after a run that ended so; `None` when it does
    /// not. `read` is what it has read, if it did nothing else.
    pub fn pause_after(
        &mut self,
        error: &Error,
        read: Option<BTreeSet<BlobName>>,
    ) -> Option<Duration> {
        self.made += 1;
        match read {
            Some(read) => self.read.extend(read),
            None => self.read.clear(),
        }
        let is_again = error.kind().is_retryable() && self.made < ATTEMPTS_MAX;
        is_again.then(|| back_off(self.made))
    }
}

/// How long to wait before attempt `attempt + 1`: doubling from 20 µs to 10 ms, with jitter.
fn back_off(attempt: u32) -> Duration {
    let ceiling_us = (20_u64 << attempt.min(9)).min(10_000);
    Duration::from_micros(ceiling_us / 2 + tyr_runtime::clock::random_u64() % (ceiling_us / 2))
}
