//! Returning by difference: what a node has since before it was declared down, until it is known
//! what of that still stands (D5).
//!
//! ```text
//!   Expelled ─► complete to F, logged before the map ─► chunks of later versions go, others stay
//!   lists of every node that serves ─► unchanged since F: stands
//!                                      all else, also what is on no list: copied
//! ```
//!
//! *Complete to F.* Of the chunks that are here, all is applied that was committed up to F, and
//! nothing else. What is in flight here is above F, and what is applied and may not be known to
//! others: they may have decided otherwise since. What was decided without this node is of an epoch
//! from that on in which it was declared down, and so above F, too.
//!
//! *Stands.* What an authority says not to have changed since F, and has in the same version, is
//! here as it is there: its list waits for what is in flight there from before the move, and what
//! comes later passes this node.
//! Until that is said, what chains bring of a chunk waits, as for a copy. So a chunk that is here
//! with a version above F was copied, or was said to stand before it was written.
//!
//! *Not there.* Of a chunk that is not there versions do not tell that: the store may know of a
//! deletion above F from before the node was down, and may not know of one that a copy brought. It
//! never stands. What chains bring of it waits for a copy, also where there was one before a
//! restart; and when the node had caught up before what it reads in its log, for an empty base.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{Epoch, NodeId, Timestamp};

use super::change::is_expelled;
use super::comparing::{InFull, Received};
use super::{ChunkName, LocalChunk, Member, Record, Store, Turn};
use crate::level::LEVEL_RETURNING;
use crate::map::{ClusterMap, Membership, NodeState};

/// What a node has since before it was declared down.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    /// The chunks that are here have all that was committed up to this moment. None while there is
    /// nothing to be seen about them.
    pub(super) complete_to: Option<Timestamp>,
    /// The chunks among them that something waits for; bounded as what is laid aside.
    pub(super) unconfirmed: BTreeSet<ChunkName>,
    /// Of whom lists are asked for name by name.
    pub(super) in_full: InFull,
    /// Summaries that came; at most one of each node.
    pub(super) received: BTreeMap<NodeId, Received>,
    /// The clock of the last record of the log, until the node takes part again: what the log lost
    /// behind it was proposed above that.
    replayed_to: Option<Timestamp>,
}

impl Difference {
    /// The log says up to when the chunks are complete.
    pub fn is_complete_to(&mut self, at: Timestamp) {
        self.complete_to = Some(at);
    }

    /// A record of the log was read, which had the clock there.
    pub fn replayed(&mut self, clock: Timestamp) {
        self.replayed_to = Some(clock);
    }

    /// Nothing waits any more.
    pub fn await_nothing(&mut self) {
        self.unconfirmed.clear();
    }

    /// Nothing waits for this chunk any more: it is gone, or came as a copy.
    pub fn forget(&mut self, chunk: &ChunkName) {
        self.unconfirmed.remove(chunk);
    }

    /// What a checkpoint has of it.
    pub fn record(&self) -> Option<Record> {
        self.complete_to.map(|at| Record::CompleteTo { at })
    }
}

impl Member {
    /// Up to when the chunks here are complete, if `map` says that this node was declared down, and
    /// it was whole before.
    fn complete_before(&self, map: &ClusterMap) -> Option<Timestamp> {
        let old = self.map.as_deref()?;
        let before = old.nodes.get(&self.node)?;
        let was_whole = match old.membership(self.node) {
            Membership::In | Membership::Leaving => before.state != NodeState::Returning,
            Membership::Joining | Membership::Out => false,
        };
        let is_out = map.membership(self.node) == Membership::Out; // It leaves it all behind.
        if !was_whole || is_out || !is_expelled(map, Some(old), self.node) {
            return None;
        }
        let down_from = match before.state {
            NodeState::Down => before.since,
            NodeState::Up | NodeState::Returning => Epoch(old.epoch.0 + 1),
        };
        let to = Timestamp { epoch: down_from, ..Timestamp::ZERO }.previous();
        let to = self.difference.replayed_to.map_or(to, |replayed| to.min(replayed));
        Some(self.commit.complete_to().min(to))
    }
}

impl<S: Store> Turn<'_, S> {
    /// Whether what the node has since before it was declared down is still to be compared.
    pub(super) fn is_returning_by_difference(&self) -> bool {
        self.member.difference.complete_to.is_some()
    }

    /// Before a map is logged that says that this node was declared down: up to when what it has is
    /// complete.
    pub(super) fn note_complete(&mut self, map: &ClusterMap) {
        let is_due = !self.is_returning_by_difference() && self.member.has_disk;
        if !is_due || map.check_level(LEVEL_RETURNING).is_err() {
            return;
        }
        if let Some(at) = self.member.complete_before(map) {
            self.member.difference.complete_to = Some(at);
            self.persist(Record::CompleteTo { at }, None);
        }
    }

    /// Whether a chunk stays when the node begins anew by `map`, until it is compared. When the log
    /// is read again, the base may have what was written since by that map or a later one: then the
    /// chunk was found to stand, or was copied.
    pub(super) fn is_kept_for_difference(&self, held: &LocalChunk, map: &ClusterMap) -> bool {
        let Difference { complete_to: Some(complete_to), unconfirmed, .. } =
            &self.member.difference
        else {
            return false;
        };
        let is_only_awaited =
            !unconfirmed.contains(&held.name) && self.store.is_awaited(&held.name);
        let is_known = held.version <= *complete_to || held.version.epoch >= map.epoch;
        // What is on its way by a later move was compared with nothing when it has caught up.
        is_known && !is_only_awaited && !is_whole(map, self.member.node)
    }

    /// What may not be [kept](Self::is_kept_for_difference) among what is here when the node begins
    /// anew by `map`. `None` when nothing is, or when that cannot be told without a walk.
    pub(super) fn above_difference(&self, map: &ClusterMap) -> Option<Vec<LocalChunk>> {
        let complete_to = self.member.difference.complete_to?;
        if is_whole(map, self.member.node) {
            return None;
        }
        self.store.held_above(complete_to)
    }

    /// The version of what is here of a chunk, as far as it counts. What is not there any more may
    /// have been deleted before the node was down, by what others never decided: it counts only
    /// when chains have brought the deletion since.
    pub(super) fn counted(&self, held: &LocalChunk, map: &ClusterMap) -> Timestamp {
        let back = map.nodes.get(&self.member.node).map_or(Epoch(u32::MAX), |it| it.since);
        match held.exists || held.version.epoch >= back {
            true => held.version,
            false => Timestamp::ZERO,
        }
    }

    /// Whether a chunk stands, of which a transaction comes by, and which is not known to have come
    /// as a copy. If it may stand, what is written to it waits from now on until that is known.
    pub(super) fn stands(&mut self, chunk: &ChunkName, map: &ClusterMap) -> bool {
        let Some(complete_to) = self.member.difference.complete_to else { return false };
        let recipient = &self.member.recipient;
        if recipient.has_written(chunk) {
            return true;
        }
        let held = self.store.local_chunk(chunk);
        if self.counted(&held, map) > complete_to {
            self.note_standing(chunk, map);
            return true;
        }
        let authority = map.holders(&chunk.0, chunk.1).first().copied();
        let is_listed = authority.is_some_and(|authority| recipient.has_listed(authority, chunk));
        // One that is to be copied is copied first from now on.
        let may_stand = held.exists && !recipient.is_wanting(chunk);
        if may_stand && is_listed {
            self.note_standing(chunk, map);
            return true;
        }
        self.store.await_confirmation(chunk, complete_to);
        if may_stand {
            self.member.difference.unconfirmed.insert(chunk.clone());
        }
        may_stand
    }

    /// A chunk stands, and is written to. Once it is deleted nothing here tells that it stood, and
    /// while something of it is kept, lists go on to name it.
    fn note_standing(&mut self, chunk: &ChunkName, map: &ClusterMap) {
        if !map.kept.is_empty() {
            self.member.recipient.note_standing(chunk);
        }
    }

    /// A copy of a chunk is here. What is here of it from before does not stand, of whatever moment
    /// a fold says that it is: one may have passed it since, and have taken it for what is current.
    pub(super) fn await_copy(&mut self, chunk: &ChunkName) {
        let is_from_before = |at: &Timestamp| {
            let map = self.member.map.as_deref();
            map.is_some_and(|map| self.counted(&self.store.local_chunk(chunk), map) <= *at)
        };
        match self.member.difference.complete_to.filter(is_from_before) {
            Some(at) => self.store.await_confirmation(chunk, at),
            None => self.store.await_base(chunk),
        }
    }

    /// A chunk stands: what waited for that is applied.
    pub(super) fn confirm(&mut self, chunk: &ChunkName) {
        let Some(complete_to) = self.member.difference.complete_to else { return };
        if !self.member.difference.unconfirmed.contains(chunk) {
            return;
        }
        let late = self.store.confirm(chunk, complete_to);
        late.into_iter().for_each(|it| self.answer_late(chunk, it));
        self.nothing_waits_for(chunk);
        debug_assert!(!self.store.is_awaited(chunk), "D5: it stands: {chunk:?}");
    }

    /// The node has become a holder of chunks that something waits for: it had caught up before, so
    /// they stand. Only when the log is read again, in which lists do not show.
    pub(super) fn settle_unconfirmed(&mut self, map: &ClusterMap) {
        let node = self.member.node;
        let is_holder = |(blob, chunk): &&ChunkName| map.holders(blob, *chunk).contains(&node);
        let unconfirmed = self.member.difference.unconfirmed.iter();
        let settled: Vec<ChunkName> = unconfirmed.filter(is_holder).cloned().collect();
        settled.iter().for_each(|chunk| self.confirm(chunk));
    }

    /// Ends the comparison when the node has caught up by `map`; answers whether there was one.
    pub(super) fn end_difference(&mut self, map: &ClusterMap) -> bool {
        if self.member.is_member() {
            self.member.difference.replayed_to = None;
        }
        is_whole(map, self.member.node) && self.member.difference.complete_to.take().is_some()
    }
}

/// Whether the node has caught up with all that it holds by this map.
fn is_whole(map: &ClusterMap, node: NodeId) -> bool {
    let is_up = map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up);
    is_up && map.membership(node) != Membership::Joining
}
