//! Folding: recent operations move into the base, in batches, and the log may go.

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::{ExtentRef, KeyspaceId, Result, Timestamp};

use super::Store;
use crate::base::{BlobChange, Checkpoint, PieceData};
use crate::recent::BlobCell;
use crate::recent::capture::Captured;

/// Bytes by value that one step of a fold carries at most, roughly.
const STEP_BYTES: u64 = 4 << 20;

/// Bytes that an entry of the index takes, roughly.
const ENTRY_BYTES: u64 = 128;

/// A fold under way.
#[derive(Debug)]
pub struct Fold {
    at: Timestamp,
    cells: std::vec::IntoIter<Arc<BlobCell>>,
    /// The blob of which some parts are in the base, and more are to come.
    in_parts: Option<Arc<BlobCell>>,
    /// Bytes that a part of a blob has at least.
    part_len: u64,
    /// When what is not folded takes more memory, parts that are leave it.
    memory: usize,
    /// The moment that blobs are folded up to now: a kept one that lies below, or `at`.
    to: Timestamp,
    /// Kept moments that it stops at after that, the last one first.
    stops: Vec<Timestamp>,
    dead: Vec<ExtentRef>,
    kept: BTreeSet<ExtentRef>,
}

impl Fold {
    /// These are not given back when it ends, though no blob refers to them any more: what stands
    /// for the log does, or what is in flight.
    pub fn keep(&mut self, extents: BTreeSet<ExtentRef>) {
        self.kept = extents;
    }

    /// Blobs that are kept whole come in parts of about `part_len` bytes, if they have more. What
    /// is folded of them leaves memory while all that is not folded takes more than `memory` bytes.
    pub fn take_parts(&mut self, part_len: u64, memory: usize) {
        (self.part_len, self.memory) = (part_len, memory);
    }

    /// It folds everything up to each of these moments, oldest first, before it goes on: those that
    /// are kept and that no fold has passed. They must be in use by readers until it has ended.
    pub fn stop_at(&mut self, moments: &[Timestamp]) {
        debug_assert!(moments.is_sorted_by(|left, right| left < right), "oldest first");
        let mut stops: Vec<Timestamp> =
            moments.iter().copied().filter(|moment| *moment < self.at).collect();
        if !stops.is_empty() {
            self.part_len = u64::MAX; // Of a blob in parts nobody could tell what it was at each.
        }
        stops.push(self.at);
        stops.reverse();
        self.to = stops.pop().expect("it stops at its own moment");
        self.stops = stops;
    }
}

impl Fold {
    /// Whether all blobs are in the base up to the moment that it folds up to now.
    fn is_done(&self) -> bool {
        self.cells.len() == 0 && self.in_parts.is_none()
    }
}

impl Store {
    /// Takes the extents that died so far, for [`Store::begin_fold`]. Call it before the fold's
    /// moment is chosen: then only records below the fold's end refer to them.
    pub fn take_dead(&self) -> Vec<ExtentRef> {
        self.recent.dead().take()
    }

    /// Begins to fold everything up to `at`, which must be in use by a reader, be the oldest such,
    /// and have everything up to it applied; log and extents must be synced that far.
    pub fn begin_fold(&self, at: Timestamp, dead: Vec<ExtentRef>) -> Fold {
        self.disk.balance_reserve();
        self.folded_to.begin(at);
        let (cells, stops) = (self.cells_to_fold(), Vec::new());
        let (in_parts, part_len, memory, kept) = (None, u64::MAX, usize::MAX, BTreeSet::new());
        Fold { at, cells, in_parts, part_len, memory, to: at, stops, dead, kept }
    }

    fn cells_to_fold(&self) -> std::vec::IntoIter<Arc<BlobCell>> {
        // Later chunks lie behind first ones, and go first: after a loss of power in the middle
        // the base must not have a blob's size from after what its chunks have.
        let cells: Vec<_> = self.recent.dirty_cells().into_iter().rev().collect();
        debug_assert!(
            cells.is_sorted_by(|later, first| later.name() > first.name()),
            "each blob once, and later ones first"
        );
        cells.into_iter()
    }

    /// Folds some more blobs, of keyspaces that are still there; answers whether there are more.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails: what was not folded stays in memory and log.
    pub fn fold_some(
        &self,
        fold: &mut Fold,
        is_alive: impl Fn(KeyspaceId) -> bool,
    ) -> Result<bool> {
        let _alone = self.folding.lock();
        let mut taken: Vec<(Arc<BlobCell>, Captured)> = Vec::new();
        let mut changes = Vec::new();
        let mut bytes = 0;
        while bytes < STEP_BYTES {
            let Some(cell) = fold.in_parts.take().or_else(|| fold.cells.next()) else { break };
            if !is_alive(cell.name().keyspace) || cell.is_forgotten() {
                continue;
            }
            let captured = cell.lock().capture_some(fold.to, fold.part_len);
            let Some(mut captured) = captured else { continue };
            let pieces = std::mem::take(&mut captured.pieces);
            let holes = captured.holes.clone();
            bytes += ENTRY_BYTES + pieces.iter().map(|(_, piece)| cost(piece)).sum::<u64>();
            changes.push(BlobChange {
                blob: cell.name().clone(),
                exists: captured.attributes.exists,
                size: captured.attributes.size,
                version: captured.attributes.version,
                folded_at: captured.at,
                cut: captured.cut,
                holes,
                pieces,
                part: captured.part,
            });
            let is_part = captured.part.is_some();
            taken.push((Arc::clone(&cell), captured));
            if is_part {
                fold.in_parts = Some(cell);
                break;
            }
        }
        if !changes.is_empty() {
            // What is let go of meanwhile must not come back.
            let folded = self.base.fold_those(changes, |place| !taken[place].0.is_forgotten());
            let folded = folded.inspect_err(|_| {
                fold.in_parts.take().into_iter().for_each(|cell| cell.lock().leave_parts());
            })?;
            assert_eq!(folded.len(), taken.len(), "an answer for each blob, in their order");
            let mut folded = folded.into_iter();
            taken.retain(|_| folded.next().unwrap_or(false));
        }
        for (cell, captured) in &taken {
            let mut state = cell.lock();
            let is_much = self.recent.dirty_memory() > fold.memory;
            self.recent.change(cell, &mut state, |state| {
                state.settle(captured);
                if is_much && captured.part.is_some() {
                    state.forget_clean_in(captured.range());
                }
            });
        }
        if fold.is_done()
            && let Some(next) = fold.stops.pop()
        {
            fold.to = next;
            fold.cells = self.cells_to_fold();
            return Ok(true);
        }
        Ok(!fold.is_done())
    }

    /// Does `work`, of several steps, between two steps of a fold: none takes a blob from memory,
    /// or writes to the base, while it is half done.
    pub fn between_folds<T>(&self, work: impl FnOnce() -> T) -> T {
        let _alone = self.folding.lock();
        work()
    }

    /// Ends a fold whose blobs are all in the base: the log below `sequence` is not needed any
    /// more, and neither are the extents that nothing referred to when the fold began, but those
    /// [kept](Fold::keep).
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails; then the log below is still needed.
    pub fn end_fold(&self, fold: Fold, sequence: u64) -> Result<()> {
        // The log is all that has them.
        assert!(
            fold.is_done() && fold.stops.is_empty(),
            "blobs are not folded, and the log below is let go of"
        );
        let checkpoint = Checkpoint { sequence, timestamp: fold.at };
        let ended = self
            .base
            .give_up(&fold.dead)
            .and_then(|()| self.base.checkpoint(checkpoint, &fold.kept));
        match &ended {
            Ok(()) => self.folded_to.end(fold.at),
            Err(_) => self.abandon_fold(fold),
        }
        ended
    }

    /// Gives up a fold after an error.
    pub fn abandon_fold(&self, fold: Fold) {
        self.recent.dead().give_back(fold.dead);
    }
}

/// Bytes that a piece adds to a step.
fn cost(piece: &PieceData) -> u64 {
    match piece {
        PieceData::Bytes(bytes) => ENTRY_BYTES + bytes.len() as u64,
        PieceData::Extent { .. } | PieceData::Pages(_) => ENTRY_BYTES,
    }
}
