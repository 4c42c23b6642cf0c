//! What goes between folds: older versions that nobody reads, and memory that was not used for
//! long.
//!
//! Must not know: how often, and how much of anybody's time it takes.

use tyr_store::store::Store;

use crate::engine::Engine;
use crate::holdings::{Held, Shortage};
use crate::need::Limits;

/// Chunks with older versions that are looked at at once, while nobody else is worked for: less
/// than a millisecond.
const COLLECT_MAX: usize = 512;

/// Blobs of dropped keyspaces removed at once.
const DROPPED_MAX: usize = 1000;

/// How far it is.
#[derive(Debug, Default)]
pub struct Tidying {
    /// Bytes of memory that were left when what could be forgotten was forgotten last.
    left_in_memory: usize,
    /// How many chunks are left to be looked at in this round.
    round_left: usize,
    /// Older versions left of those looked at in this round.
    versions: usize,
    /// The most older versions that a chunk had left.
    versions_most: usize,
}

impl Tidying {
    /// How short memory is.
    pub fn shortage(&self, store: &Store, limits: Limits) -> Shortage {
        limits.shortage(store.recent().memory(), self.left_in_memory)
    }

    /// The most older versions that a chunk had left after it was looked at: of bytes, and of
    /// attributes.
    pub fn versions_most(&self) -> usize {
        self.versions_most
    }

    /// Whether a round over all chunks with older versions is to begin.
    pub fn begins_round(&self) -> bool {
        self.round_left == 0
    }

    /// Drops some versions that nobody reads; answers whether that was the last of a round.
    pub fn collect<H: Held>(&mut self, engine: &mut Engine<H>, shortage: Shortage) -> bool {
        let clock = engine.member().clock();
        let holdings = engine.holdings();
        holdings.floors().set_shortage(shortage);
        let recent = holdings.store().recent();
        if self.round_left == 0 {
            (self.round_left, self.versions) = (recent.holding(), 0);
        }
        let count = self.round_left.min(COLLECT_MAX);
        let left = recent.collect_chunks(count, |stored| holdings.readers_now(stored, clock));
        self.versions += left.sum;
        self.versions_most = self.versions_most.max(left.most);
        self.round_left -= count;
        let is_over = self.round_left == 0;
        if is_over {
            recent.note_versions(self.versions);
        }
        is_over
    }

    /// Forgets what was not used for longest, beyond so many bytes.
    pub fn forget(&mut self, store: &Store, bytes: usize) {
        store.recent().shrink(bytes);
        self.left_in_memory = store.recent().memory();
    }
}

/// Removes some blobs of keyspaces that are gone, some of what is held for kept snapshots that are,
/// and gives back some space of what is dead.
pub fn remove_dropped(store: &Store) {
    // What is left is removed the next time; an error shows up in the next fold.
    let _ = store.base().remove_some_dropped(DROPPED_MAX);
    let _ = store.base().release_some(DROPPED_MAX);
    let _ = store.base().give_back();
}
