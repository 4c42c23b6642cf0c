//! What a new authority has yet to tell the others (F5).
//!
//! A map that makes a node the authority of others' chunks may find much there that is applied and
//! passed back, and of which the authority before it told nobody: after a restart all that the log
//! has. Were all of it told in the step that installs the map, this node would do nothing else
//! meanwhile, and the others would get as many messages at once. So as many are told at once as
//! ballots are begun, what came first first, and as many more with each tick.
//!
//! Nobody has to wait for it. Who has not heard yet hands what is read to the authority (R1, R2),
//! which answers it; and who asks (F6) is told at once, out of turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::NodeId;

use crate::commit::record::{Record, Slot};
use crate::commit::{Commit, Effect};
use crate::map::ClusterMap;

/// Those of which the others are to be told that they are stable, by arrival. Some may be finished
/// with since, or come by again; at most as many as there were records when the map came.
pub(crate) type Untold = BTreeSet<(u64, Slot)>;

impl Commit {
    /// By this map, notes those of the affected that this node has to tell the others of; what was
    /// noted before and is still there stays.
    pub(super) fn note_untold(&mut self, affected: &[(Slot, u64)], map: &ClusterMap) {
        let is_due = |slot: Slot| {
            let record = &self.records[slot];
            let is_ours = |by: &NodeId| self.authority_now(slot, *by, map) == self.node;
            record.is_applied() && record.is_passed && record.unstable.iter().any(is_ours)
        };
        let of_old = self.recovery.iter().flat_map(|recovery| &recovery.untold);
        let candidates = affected.iter().map(|(slot, arrival)| (*arrival, *slot));
        let is_here = |it: &(u64, Slot)| self.is_there(*it);
        let all = candidates.chain(of_old.copied()).filter(is_here);
        let untold: Untold = all.filter(|(_, slot)| is_due(*slot)).collect();
        debug_assert!(untold.len() <= self.records.len(), "each is told of once");
        if let Some(recovery) = &mut self.recovery {
            recovery.untold = untold;
        }
    }

    /// F5: tells the others of some of what they have not been told, what came first first: as
    /// many as ballots are asked at a time.
    pub(super) fn tell_untold(&mut self, effects: &mut Vec<Effect>) {
        let Some(recovery) = &self.recovery else { return };
        let Some(map) = recovery.map.as_ref().map(Arc::clone) else { return };
        for _ in 0..recovery.inquiries.places() {
            let recovery = self.recovery.as_mut().expect("it was just there");
            let Some(it) = recovery.untold.pop_first() else { return };
            let unstable = self.records.get(it.1).map(|record| record.unstable.clone());
            for by in unstable.into_iter().flatten() {
                if self.is_there(it) && self.authority_now(it.1, by, &map) == self.node {
                    self.stable_here(it.1, by, effects);
                }
            }
        }
    }

    /// Whether a record is still the one that arrived then, in the same attempt.
    fn is_there(&self, (arrival, slot): (u64, Slot)) -> bool {
        self.records.get(slot).is_some_and(|record| record.arrival == arrival)
    }

    /// Whether the others will be told of it without anybody's asking.
    pub(super) fn is_untold(&self, slot: Slot, record: &Record) -> bool {
        self.recovery.as_ref().is_some_and(|it| it.untold.contains(&(record.arrival, slot)))
    }

    /// The node that is the authority now of what the chain says `by` is; `by` while it is live.
    pub(super) fn authority_now(&self, slot: Slot, by: NodeId, map: &ClusterMap) -> NodeId {
        let record = &self.records[slot];
        let hop = &record.chain.hops()[record.position];
        let piece = hop.pieces().iter().find(|piece| piece.is_written && piece.authority == by);
        let chunk = |piece: &crate::Piece| {
            let size = map.chunk_size(piece.blob.keyspace)?;
            map.holders(&piece.blob, piece.range.start / size).first().copied()
        };
        piece.and_then(chunk).unwrap_or(by)
    }

    /// F5: this node is the authority now, and it is passed back here: every replica knows of it.
    pub(super) fn stable_here(&mut self, slot: Slot, by: NodeId, effects: &mut Vec<Effect>) {
        if !self.records[slot].is_passed {
            return;
        }
        self.tell_stable(slot, by, effects);
        self.records[slot].unstable.retain(|authority| *authority != by);
        if self.records[slot].is_finished() {
            self.settle(slot, effects);
        }
    }
}
