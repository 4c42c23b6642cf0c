//! A chunk whose base is on its way here: its pieces so far, and what was applied meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_protocol::movement::ChunkCopy;
use tyr_types::chunk::Start;
use tyr_types::{Operation, Payload, PieceContent, Timestamp};

/// What was applied to a chunk before its base came.
#[derive(Clone, Debug)]
pub struct LaidAside {
    pub operations: Arc<[Operation]>,
    pub start: Start,
}

/// A chunk whose base is still to come, or to be confirmed.
#[derive(Debug, Default)]
pub struct Expected {
    /// What is here of it, if it is nothing, too, is of this moment: it may be the base.
    stands_at: Option<Timestamp>,
    /// Pieces of one copy, one after the other.
    pieces: Vec<ChunkCopy>,
    /// By timestamp.
    aside: BTreeMap<Timestamp, LaidAside>,
}

impl Expected {
    /// One of which there is something here, as it was at this moment.
    pub fn standing(stands_at: Timestamp) -> Self {
        Self { stands_at: Some(stands_at), ..Self::default() }
    }

    /// Of which moment it is what is here of it.
    pub fn stands_at(&self) -> Option<Timestamp> {
        self.stands_at
    }

    /// What lies above `at`, in order.
    pub fn into_above(self, at: Timestamp) -> Vec<(Timestamp, LaidAside)> {
        self.aside.into_iter().filter(|(its, _)| *its > at).collect()
    }

    /// Keeps what a transaction does, for when the base is here. The same again is kept once.
    pub fn lay_aside(&mut self, at: Timestamp, operations: Vec<Operation>, start: Start) {
        debug_assert!(
            !operations.iter().any(Operation::has_extents),
            "an extent may be given back before the base is here, and they name one"
        );
        self.aside.entry(at).or_insert_with(|| LaidAside { operations: operations.into(), start });
    }

    /// Adds a piece of the base of a chunk that begins at byte `start` of its blob.
    ///
    /// # Panics
    /// When the pieces are not of one timestamp and one after the other: the recipient asks so.
    pub fn add(&mut self, copy: ChunkCopy, start: u64) {
        if copy.range.start == start {
            self.pieces.clear(); // It begins anew.
        }
        debug_assert!(!copy.range.is_empty(), "a piece of no byte has no piece behind it");
        let next = self.pieces.last().map_or(start, |piece| piece.range.end);
        assert!(
            copy.range.start == next && self.pieces.iter().all(|piece| piece.at == copy.at),
            "a piece {:?} at {} of a copy does not follow the one before, up to {next}",
            copy.range,
            copy.at
        );
        self.pieces.push(copy);
    }

    /// The pieces, and what lies above them, in order.
    pub fn into_parts(mut self) -> (Vec<ChunkCopy>, Vec<(Timestamp, LaidAside)>) {
        let copied = self.pieces.iter().map(|piece| piece.at).max().unwrap_or(Timestamp::ZERO);
        let pieces = std::mem::take(&mut self.pieces);
        (pieces, self.into_above(copied))
    }

    /// Bytes it holds, roughly.
    pub fn bytes(&self) -> usize {
        let copied = |copy: &ChunkCopy| -> usize {
            copy.versions.iter().map(|version| version.bytes.len()).sum()
        };
        let payload = |operation: &Operation| match operation.payload() {
            Some(Payload::Uploaded(uploaded)) => {
                let held = uploaded.pieces().iter().map(|it| match &it.content {
                    PieceContent::Bytes(bytes) => bytes.len(),
                    PieceContent::Elsewhere | PieceContent::Extents(_) => 0,
                });
                held.sum()
            }
            Some(payload) => payload.len() as usize,
            None => 0,
        };
        let laid = |it: &LaidAside| -> usize {
            it.operations.iter().map(|operation| size_of::<Operation>() + payload(operation)).sum()
        };
        self.pieces.iter().map(copied).sum::<usize>() + self.aside.values().map(laid).sum::<usize>()
    }
}
