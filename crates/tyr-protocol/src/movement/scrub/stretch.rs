//! Some bytes of a chunk on their way through a comparison.

use std::collections::BTreeMap;

use tyr_types::{ByteRange, Bytes, NodeId, Timestamp};

use super::comparison::{Comparison, Repair, trimmed};
use super::event::Effect;
use super::finding::{Finding, What};
use crate::movement::ChunkName;

/// Some bytes of a chunk that are compared.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub chunk: ChunkName,
    /// Where the chunk ends, in bytes of the blob.
    pub chunk_end: u64,
    pub range: ByteRange,
    /// Where the long stretch ends that this is a part of, because something differs there.
    pub part_until: Option<u64>,
    /// The length of the next part.
    pub part_len: u64,
    pub tries: u8,
    pub repairs: u8,
    pub stage: Stage,
}

/// How far it is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Waits for its turn.
    Due,
    /// Waits for what is in flight at `at`.
    Settling { at: Timestamp, since_us: u64 },
    /// Holders were asked.
    Reading(Reading),
    /// It is being written anew.
    Repairing { since_us: u64 },
}

/// What holders say of a stretch.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub at: Timestamp,
    pub since_us: u64,
    pub asked_us: u64,
    pub comparison: Comparison,
    /// What was read; of long stretches nothing.
    pub bytes: BTreeMap<NodeId, Bytes>,
    /// The most bytes that any has there.
    pub len: u64,
    /// Whether anybody could read it.
    pub has_read: bool,
    pub sizes: BTreeMap<NodeId, Option<u64>>,
    /// Of those who cannot read it: whether they can be written to, once they have said.
    pub probes: BTreeMap<NodeId, Option<bool>>,
}

impl Stretch {
    /// Asks those who have not answered.
    pub fn ask(&self, number: u64, effects: &mut Vec<Effect>) {
        let Stage::Reading(reading) = &self.stage else { return };
        let ask = |to| Effect::Ask {
            to,
            read: number,
            chunk: self.chunk.clone(),
            range: self.range,
            at: reading.at,
        };
        effects.extend(reading.comparison.waiting().map(ask));
        let open = reading.probes.iter().filter(|(_, probe)| probe.is_none());
        effects.extend(open.map(|(to, _)| self.probe(number, *to)));
    }

    /// Asks a holder that cannot read the stretch for no bytes of it: who cannot answer that could
    /// not apply a write either, and would have to stop.
    pub fn probe(&self, number: u64, to: NodeId) -> Effect {
        let at = match &self.stage {
            Stage::Reading(reading) => reading.at,
            Stage::Due | Stage::Settling { .. } | Stage::Repairing { .. } => Timestamp::ZERO,
        };
        let start = self.range.start;
        let range = ByteRange { start, end: start };
        Effect::Ask { to, read: number + 1, chunk: self.chunk.clone(), range, at }
    }

    pub fn is_answered(&self) -> bool {
        let Stage::Reading(reading) = &self.stage else { return false };
        reading.comparison.waiting().next().is_none()
            && reading.probes.values().all(Option::is_some)
    }

    pub fn tell(&self, what: What, nodes: Vec<NodeId>) -> Effect {
        Effect::Tell(Finding { chunk: self.chunk.clone(), range: self.range, what, nodes })
    }
}

impl Reading {
    /// Whether writing what is right makes all the same: who cannot read it can be written to, and
    /// nobody has bytes where the right ones have ended.
    pub fn is_reparable(&self, repair: &Repair) -> bool {
        let right = &self.bytes[&repair.from];
        let is_covered = |holder: &NodeId| match self.bytes.get(holder) {
            Some(bytes) => trimmed(bytes).len() <= right.len(),
            None => self.probes.get(holder) == Some(&Some(true)),
        };
        !right.is_empty() && repair.to.iter().all(is_covered)
    }
}
