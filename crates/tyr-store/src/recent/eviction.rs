//! What leaves memory when that is more than its budget: what has not been used for longest.
//!
//! A clock, as page caches have it: a hand goes round the shards of the table, takes a cell's mark
//! of use away when it comes by, and the cell when it comes by again and nobody has used it. Only
//! what the base has, and no reader needs an older version of, may go.
//!
//! Of millions of blobs none may be free to go, while they are written or read by snapshots. So the
//! hand goes so far in a call, not all the way round: the next call goes on there.
//!
//! Must not know: how often it is called, and what the budget comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::blob::BlobState;
use super::{Recent, SHARDS, Shard};

/// Where the hand is.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The shard that it comes to next, counted on and on.
    next: AtomicUsize,
    /// Shards that it has passed since memory was within its budget, or since it was last twice
    /// round.
    passed: AtomicUsize,
}

impl Recent {
    /// Forgets what has not been used for longest until at most `budget` bytes are held. The hand
    /// passes `cells_max` cells, or a shard more; a thousand take some 0.2 ms. Answers whether all
    /// is done, or everything that can be forgotten is forgotten: else call it again.
    pub fn shrink(&self, budget: usize, cells_max: usize) -> bool {
        let mut cells = 0;
        while self.memory() > budget {
            if cells >= cells_max {
                return false;
            }
            let next = self.hand.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let mut shard = self.shards[next].lock();
            cells += shard.cells.len();
            self.shrink_shard(&mut shard);
            // Twice round: the first time may only take marks of use away.
            if self.hand.passed.fetch_add(1, Ordering::Relaxed) + 1 >= 2 * SHARDS {
                break;
            }
        }
        self.hand.passed.store(0, Ordering::Relaxed);
        true
    }

    fn shrink_shard(&self, shard: &mut Shard) {
        let Shard { cells, evictions } = shard;
        cells.retain(|cell| {
            if cell.is_used.swap(false, Ordering::Relaxed) {
                return true;
            }
            let Some(mut state) = cell.state.try_lock() else { return true };
            // The table holds it, and the lists it is in; whoever else does is at work on it.
            let is_holding = cell.is_holding.load(Ordering::Relaxed);
            let is_gone = cell.is_gone.load(Ordering::Relaxed);
            let at_rest =
                1 + [state.is_dirty(), is_holding, is_gone].map(usize::from).iter().sum::<usize>();
            if Arc::strong_count(cell) > at_rest {
                return true;
            }
            debug_assert!(!cell.is_forgotten(), "{}: what is let go of is in no table", cell.name);
            if !state.is_dirty() && !is_holding {
                debug_assert!(!state.has_older(), "{}: a reader's version would go", cell.name);
                if is_gone {
                    // The base has forgotten it, or will soon: then nothing tells of it.
                    self.know_from(state.attributes().version);
                    self.gone.lock().remove(&cell.name);
                }
                self.memory.fetch_sub(state.memory(), Ordering::Relaxed);
                *evictions += 1;
                return false;
            }
            self.change(cell, &mut state, BlobState::forget_clean);
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::fixtures::{at, load_cells};

    const CELLS_MAX: usize = 4096;

    #[test]
    fn the_hand_goes_so_far_in_a_call_and_on_from_there_in_the_next() {
        let recent = Recent::default();
        load_cells(&recent, 3 * CELLS_MAX, at(1));
        let memory = recent.memory();
        // Marks of use are taken away, shard after shard.
        let calls = (0..9).take_while(|_| !recent.shrink(memory / 2, CELLS_MAX)).count();
        assert!((3..9).contains(&calls), "{calls} calls");
        assert!(recent.memory() <= memory / 2 && recent.memory() > memory / 3, "no more than that");
    }

    #[test]
    fn what_cannot_be_forgotten_is_passed_twice_and_then_that_is_said() {
        let recent = Recent::default();
        let cells = load_cells(&recent, CELLS_MAX, at(1));
        assert!(!recent.shrink(0, CELLS_MAX));
        let calls = (0..9).take_while(|_| !recent.shrink(0, CELLS_MAX)).count();
        assert!(calls < 9, "it would never be said");
        assert_eq!(recent.memory(), cells.iter().map(|cell| cell.lock().memory()).sum::<usize>());
        drop(cells);
        while !recent.shrink(0, CELLS_MAX) {}
        assert_eq!(recent.memory(), 0);
    }
}
