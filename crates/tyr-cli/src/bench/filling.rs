//! A cluster that is filled with many blobs of one size.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tyr::Result;
use tyr::blocking::{Keyspace, Tyr};

use crate::random::Random;

/// Threads that fill.
const FILLERS: u64 = 4;
/// Bytes of one transaction, unless a blob is longer; and blobs at most.
const BATCH_LEN: u64 = 4 << 20;
const BATCH_BLOBS: u64 = 1000;

/// What a cluster is filled with.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    /// Blobs.
    pub blobs: u64,
    /// Bytes of each.
    pub len: u64,
}

impl Filling {
    /// Writes all of them.
    pub fn write(self, store: &Tyr, keyspace: &Keyspace) -> Result<()> {
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            let fillers: Vec<_> = (0..FILLERS)
                .map(|_| scope.spawn(|| self.write_from(store, keyspace, &next)))
                .collect();
            let mut ended = fillers.into_iter().map(|filler| filler.join());
            ended.try_for_each(|ended| ended.expect("a benchmark thread does not panic"))
        })
    }

    /// Writes batches until there are no more.
    fn write_from(self, store: &Tyr, keyspace: &Keyspace, next: &AtomicU64) -> Result<()> {
        let Self { blobs, len } = self;
        let batch = (BATCH_LEN / len).clamp(1, BATCH_BLOBS);
        loop {
            let begin = next.fetch_add(batch, Ordering::Relaxed);
            if begin >= blobs {
                return Ok(());
            }
            let mut transaction = store.begin();
            for number in begin..blobs.min(begin + batch) {
                transaction.put(keyspace, key(number), content(number, 0, len))?;
            }
            if let Err(error) = transaction.commit() {
                next.store(blobs, Ordering::Relaxed); // The others end too.
                return Err(error);
            }
        }
    }
}

/// The key of a blob.
pub fn key(number: u64) -> String {
    format!("blob/{number:012}")
}

/// What a blob has after so many changes: nothing that can be compressed.
pub fn content(number: u64, changes: u64, len: u64) -> Vec<u8> {
    let mut random = Random::new(number << 1 | changes);
    let words = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes());
    words.take(len as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_as_long_as_asked_for_and_changes() {
        assert_eq!(content(7, 0, 100).len(), 100);
        assert_eq!(content(7, 0, 100), content(7, 0, 100));
        assert_ne!(content(7, 0, 100), content(7, 1, 100));
        assert_ne!(content(7, 1, 100), content(8, 0, 100));
    }
}
