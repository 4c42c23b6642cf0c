//! Which blobs hold older versions, and dropping those that no reader needs (V3).
//!
//! ```text
//!   a change leaves an older version ──► last in the queue
//!   first of the queue ──► collected ──► nothing older left: out of it; else last again
//! ```
//!
//! A *round* is once over all that were in the queue when it began. It is made in steps of so many
//! blobs, for there may be millions, and whoever collects has other work too.
//!
//! Must not know: who reads, and how often this is done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tyr_types::{BlobName, KeyspaceId, Timestamp};

use super::blob::BlobState;
use super::readers::Readers;
use super::{BlobCell, Recent};

/// Blobs that hold older versions, or did of late.
#[derive(Debug, Default)]
pub(super) struct Holding {
    cells: VecDeque<Arc<BlobCell>>,
    /// How many of them the round under way has yet to look at; 0 between rounds.
    round_left: usize,
    /// Older versions that this round found no reader to be done with, so far.
    versions: usize,
}

impl Holding {
    /// One more.
    pub fn add(&mut self, cell: Arc<BlobCell>) {
        self.cells.push_back(cell);
    }

    /// The keyspace is gone.
    pub fn forget_keyspace(&mut self, keyspace: KeyspaceId) {
        self.cells.retain(|cell| cell.name.keyspace != keyspace);
    }

    /// Takes the next `limit` of the round, or of a new one.
    fn take(&mut self, limit: usize) -> Vec<Arc<BlobCell>> {
        if self.round_left == 0 {
            (self.round_left, self.versions) = (self.cells.len(), 0);
        }
        let count = limit.min(self.round_left).min(self.cells.len());
        self.round_left = if count < self.cells.len() { self.round_left - count } else { 0 };
        self.cells.drain(..count).collect()
    }
}

/// What a step of a round came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Older versions left of the blob that has most.
    pub most: usize,
    /// Whether the round is over.
    pub is_round_over: bool,
}

impl Recent {
    /// Whether the next step begins a round.
    pub fn begins_round(&self) -> bool {
        self.holding.lock().round_left == 0
    }

    /// Drops older versions that no reader needs (V3) of at most `limit` blobs. The rest has its
    /// turn in the next steps.
    ///
    /// `now` is the clock when `readers` were listed: those who came later read at it or above.
    pub fn collect(&self, limit: usize, readers: Readers<'_>, now: Timestamp) -> Collected {
        self.collect_some(limit, |_| readers, |state, readers| state.collect(readers, now))
    }

    /// The same of chunks, each with its own readers.
    pub fn collect_chunks<'a>(
        &self,
        limit: usize,
        readers: impl Fn(&BlobName) -> Readers<'a>,
    ) -> Collected {
        self.collect_some(limit, readers, BlobState::collect_chunk)
    }

    fn collect_some<'a>(
        &self,
        limit: usize,
        readers: impl Fn(&BlobName) -> Readers<'a>,
        collect: impl Fn(&mut BlobState, Readers<'a>) -> usize,
    ) -> Collected {
        let mut cells = self.holding.lock().take(limit);
        let (mut most, mut sum) = (0, 0);
        cells.retain(|cell| {
            let readers = readers(&cell.name);
            let mut state = cell.lock();
            if cell.is_forgotten() {
                return false;
            }
            let left = self.change(cell, &mut state, |state| collect(state, readers));
            (most, sum) = (most.max(left), sum + left);
            if left == 0 {
                cell.is_holding.store(false, Ordering::Relaxed);
            }
            left > 0
        });
        let mut holding = self.holding.lock();
        holding.cells.extend(cells);
        holding.versions += sum;
        let is_round_over = holding.round_left == 0;
        if is_round_over {
            self.versions.store(holding.versions, Ordering::Relaxed);
        }
        Collected { most, is_round_over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::fixtures::{at, load_cells, write_twice};

    #[test]
    fn a_round_is_made_in_steps_and_counts_what_is_left() {
        let recent = Recent::default();
        for cell in load_cells(&recent, 5, at(1)) {
            write_twice(&recent, &cell, at(2), at(9));
        }
        let read = [at(3)];
        let step = |recent: &Recent| recent.collect(2, Readers::new(&read), at(10));
        let steps: Vec<Collected> = (0..4).map(|_| step(&recent)).collect();
        let is_over: Vec<bool> = steps.iter().map(|step| step.is_round_over).collect();
        assert_eq!(is_over, [false, false, true, false], "the fourth step is of the next round");
        assert_eq!(recent.versions(), 5 * steps[0].most);
        assert!(steps[0].most > 0 && !recent.begins_round());
        // The reader goes: another round finds nothing that is needed, and then there is none.
        while !recent.begins_round() {
            step(&recent);
        }
        assert!(recent.collect(9, Readers::NONE, at(10)).is_round_over);
        assert_eq!(recent.versions(), 0);
        assert_eq!(recent.collect(9, Readers::NONE, at(10)).most, 0);
    }

    #[test]
    fn a_keyspace_that_goes_in_the_middle_of_a_round_ends_it() {
        let recent = Recent::default();
        for cell in load_cells(&recent, 5, at(1)) {
            write_twice(&recent, &cell, at(2), at(9));
        }
        let read = [at(3)];
        assert!(!recent.collect(2, Readers::new(&read), at(10)).is_round_over);
        recent.forget_keyspace(KeyspaceId(1));
        assert!(recent.collect(2, Readers::new(&read), at(10)).is_round_over);
        assert!(recent.begins_round());
    }
}
