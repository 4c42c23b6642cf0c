//! What goes between folds: older versions that nobody reads, and memory that was not used for
//! long.
//!
//! Must not know: how often, and how much of anybody's time it takes.

use tyr_store::store::Store;
use tyr_types::BlobName;

use crate::engine::Engine;
use crate::holdings::{Held, Shortage};
use crate::need::Limits;

/// Chunks with older versions that are looked at at once, while nobody else is worked for: less
/// than a millisecond.
const COLLECT_MAX: usize = 512;

/// Chunks in memory that are looked at at once, whether they can be forgotten: some milliseconds.
pub const FORGET_MAX: usize = 16_384;

/// The same after a step of a fold: many times as many as it brings to the base, for each is looked
/// at twice, and those that are still to be folded between them, too. Else memory would fill faster
/// than it is left while small blobs come in bulk.
pub const FORGET_FOLDED_MAX: usize = 131_072;

/// Blobs of dropped keyspaces removed at once.
const DROPPED_MAX: usize = 1000;

/// How far it is.
#[derive(Debug, Default)]
pub struct Tidying {
    /// Bytes of memory that were left when what could be forgotten was forgotten last.
    left_in_memory: usize,
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

    /// Drops some versions that nobody reads; answers whether that was the last of a round.
    pub fn collect<H: Held>(&mut self, engine: &mut Engine<H>, shortage: Shortage) -> bool {
        let clock = engine.member().clock();
        let holdings = engine.holdings();
        holdings.floors().set_shortage(shortage);
        let readers = |stored: &BlobName| holdings.readers_now(stored, clock);
        let collected = holdings.store().recent().collect_chunks(COLLECT_MAX, readers);
        self.versions_most = self.versions_most.max(collected.most);
        collected.is_round_over
    }

    /// Forgets some of what was not used for longest, beyond so many bytes, of so many chunks.
    pub fn forget(&mut self, store: &Store, bytes: usize, chunks_max: usize) {
        if store.recent().shrink(bytes, chunks_max) {
            self.left_in_memory = store.recent().memory();
        }
    }
}

/// Removes some blobs of keyspaces that are gone, and some of what is held for kept snapshots that
/// are.
pub fn remove_dropped(store: &Store) {
    // What is left is removed the next time; an error shows up in the next fold.
    let _ = store.base().remove_some_dropped(DROPPED_MAX);
    let _ = store.base().release_some(DROPPED_MAX);
}
