//! A new map: what the node stops doing before it, and what it begins with it.
//!
//! ```text
//!   Prepare(map)   nothing is begun any more on chains that it changes, nor served where it takes
//!                  the right to; when what was in flight is done, or takes too long, nothing is
//!                  validated on them either: Prepared
//!   Effective, or a peer's newer map
//!                  log it; out with what is not held any more; Recipient and Commit go by it;
//!                  then the messages that waited for it
//! ```
//!
//! The commit machine goes by a map only under a lease: what it drives it also validates.

use std::sync::Arc;

use tyr_types::{Epoch, NodeId};

use super::sole_replica::KeptAlone;
use super::{ChunkName, LocalChunk, Member, PLANNED_MAX, Planned, Promise, Record, Store, Turn};
use crate::commit::{self, Commit};
use crate::key_watch;
use crate::lease::Holder;
use crate::map::{ClusterMap, Membership, NodeState, may_lose};
use crate::message::{Address, Body};
use crate::movement::{self, ChunkCopy};
use crate::read::Reads;
use crate::rule::Rule;

/// What others began before they heard of a planned change has come in after so long, as a rule, in
/// microseconds; later it is driven anew under the new map.
const DRAIN_MIN_US: u64 = 10_000;

/// A node says again that it has prepared after so long, in microseconds, until there is a newer
/// map: the monitors, who may not have heard it, need not send it the map again.
const PREPARED_AGAIN_US: u64 = 200_000;

/// Chunks that are looked at in one go when the map changes what is held.
const PAGE: usize = 1024;

impl<S: Store> Turn<'_, S> {
    /// A planned change is announced.
    pub(super) fn prepare(&mut self, map: Arc<ClusterMap>) {
        if map.epoch <= self.member.epoch() {
            return;
        }
        let now_us = self.member.now.monotonic_us;
        let planned = &mut self.member.planned;
        match planned.iter_mut().find(|planned| planned.map.epoch == map.epoch) {
            Some(known) => known.told_us = None, // The answer was lost.
            None => {
                if planned.len() == PLANNED_MAX {
                    planned.remove(0); // Long withdrawn: no two are planned at a time.
                }
                let (is_prepared, is_durable, told_us) = (false, false, None);
                planned.push(Planned { map, since_us: now_us, is_prepared, is_durable, told_us });
                planned.sort_by_key(|planned| planned.map.epoch);
            }
        }
        self.review_reads();
        self.acknowledge_planned();
    }

    /// Says that the node goes no more by what a planned map changes, once it does not.
    ///
    /// What was decided by the old map is durable here first: by the new one those may be gone that
    /// knew of it beside this node.
    pub(super) fn acknowledge_planned(&mut self) {
        let now_us = self.member.now.monotonic_us;
        let drain_max_us = self.member.config.drain_max_us;
        let mut prepared: Vec<Epoch> = Vec::new();
        for place in 0..self.member.planned.len() {
            let Planned { map, since_us, is_prepared, .. } = &self.member.planned[place];
            let waited_us = now_us.saturating_sub(*since_us);
            // What is in flight is looked at last: that takes longest.
            let is_drained = || waited_us >= DRAIN_MIN_US && !self.member.is_using_old(map);
            if !is_prepared && (waited_us >= drain_max_us || is_drained()) {
                prepared.push(map.epoch);
                let planned = &mut self.member.planned[place];
                // A log that takes no more is as durable as it will ever be.
                (planned.is_prepared, planned.is_durable) = (true, self.member.is_broken);
            }
        }
        let is_logged = !self.member.is_broken;
        for epoch in prepared.into_iter().filter(|_| is_logged) {
            let but = self.member.commit.unfinished().collect();
            self.persist(Record::Finished { but }, Some(Promise::Prepared(epoch)));
        }
        let is_told = |told_us| now_us.saturating_sub(told_us) < PREPARED_AGAIN_US;
        let is_due = |it: &&mut Planned| it.is_durable && !it.told_us.is_some_and(is_told);
        let due = self.member.planned.iter_mut().filter(is_due);
        let told: Vec<Epoch> = due
            .map(|planned| {
                planned.told_us = Some(now_us);
                planned.map.epoch
            })
            .collect();
        for epoch in told {
            self.send(Address::Monitors, Body::Prepared { epoch });
        }
    }

    /// What the node had logged when it had prepared for this map is durable, or will never be.
    pub(super) fn prepared_durably(&mut self, epoch: Epoch) {
        if let Some(planned) = self.member.planned.iter_mut().find(|it| it.map.epoch == epoch) {
            planned.is_durable = true;
            self.acknowledge_planned();
        }
    }

    /// A map is in effect.
    pub(super) fn install(&mut self, map: Arc<ClusterMap>) {
        if map.epoch <= self.member.epoch() {
            return;
        }
        if let Err(error) = map.check_program(self.member.config.level) {
            self.member.outdated = Some(error);
            return;
        }
        // Of what another process of this node was, before its disk was lost, the log says nothing:
        // after a restart this one would take its place for its own.
        let map_node = map.nodes.get(&self.member.node);
        let is_own = map_node.is_none_or(|it| it.incarnation == self.member.incarnation);
        if is_own || self.member.has_disk {
            self.note_complete(&map);
            self.persist(Record::Map(Arc::clone(&map)), Some(Promise::Map));
        }
        self.adopt(map);
        self.member.fetched_us = None;
        self.member.shown.clear();
        // Who is back is let in as soon as it has the newest map.
        self.member.returned_us = None;
        self.member.lease.hurry();
        self.review_reads();
        self.catch_up_commit();
        self.release_held();
        self.return_if_needed();
    }

    /// Goes by the map from here on: also when the log says so after a restart.
    pub(super) fn adopt(&mut self, map: Arc<ClusterMap>) {
        let old = self.member.map.replace(Arc::clone(&map));
        self.keep_snapshots(&map);
        self.member.has_recipients = !map.recipients_of_any().is_empty();
        self.member.planned.retain(|planned| planned.map.epoch > map.epoch);
        let node = self.member.node;
        let is_expelled = is_expelled(&map, old.as_deref(), node);
        let kept = is_expelled.then(|| self.begin_anew(&map));
        self.note_singles(&map);
        // Only if no change of the chains was missed in between is what was copied still whole.
        let is_anew = is_expelled || old.as_ref().is_none_or(|old| is_gap(old, &map));
        let is_same = old.as_ref().is_some_and(|old| old.moved == map.moved);
        self.member.authorities = map.authorities();
        self.member.note_keyspaces(&map);
        if is_anew && !is_expelled {
            self.note_unsure(&map);
        }
        if !is_same {
            self.member.note_gained(old.as_deref().filter(|_| !is_anew), &map);
            self.forget_stored(&map, is_anew);
        }
        self.release_chunks(&map, is_anew);
        if !is_same && (old.is_some() || self.member.has_disk) {
            // In a cluster that forms nothing is in use.
            self.member.usage.change();
            self.member.place_key_leases(old.filter(|_| !is_anew));
            self.member.place_notices();
        }
        self.settle_awaited(&map);
        let is_over = self.end_difference(&map);
        let is_moving = map.next.is_some() || self.member.is_returning();
        self.supply(movement::Event::Map { is_moving, is_anew });
        if is_over && is_moving && !is_anew {
            self.find_copied(&map); // Chunks of a move that goes on are here, too.
        }
        kept.into_iter().for_each(|kept| self.keep(kept));
        self.scrub_by_map();
        self.member.has_disk |= self.member.is_member();
        if !map.is_live(node) {
            self.member.lease.give_up();
        }
    }

    /// Before anything is done under the map, so that nothing goes that it keeps (V7).
    pub(super) fn keep_snapshots(&mut self, map: &ClusterMap) {
        if self.member.commit.rules.hold(Rule::V7) {
            self.store.keep(map);
        }
    }

    /// Lets go of the chunks that this node neither holds nor is a recipient of; with `is_anew` of
    /// those too that it is a recipient of, for they come again, unless it returns by difference.
    fn release_chunks(&mut self, map: &Arc<ClusterMap>, is_anew: bool) {
        let node = self.member.node;
        // Down, it holds nothing that counts, but what it has is not lost before it must.
        let is_down = map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Down)
            && map.membership(node) != Membership::Out;
        if is_down {
            return;
        }
        let before = self.member.placed_by.replace(Arc::clone(map));
        // Most maps take nothing from this node; and of who returns mostly nothing has to go but
        // what was on its way when it went down.
        let may_lose = before.is_none_or(|before| may_lose(&before, map, node));
        if !may_lose && !is_anew {
            return;
        }
        let those = if may_lose { None } else { self.above_difference(map) };
        let Some(those) = those else { return self.release_in_walk(map, is_anew) };
        self.release_those(&those, map, is_anew);
        debug_assert!(self.is_all_kept(map), "D5: more is let go of than memory tells");
    }

    /// The same, of all that is here: a microsecond each.
    fn release_in_walk(&mut self, map: &ClusterMap, is_anew: bool) {
        let mut after: Option<ChunkName> = None;
        loop {
            let held = self.store.held_or_kept(after.as_ref(), PAGE);
            debug_assert!(held.is_sorted_by(|one, next| one.name < next.name), "in order, once");
            let is_end = held.len() < PAGE;
            after = held.last().map(|held| held.name.clone());
            self.release_those(&held, map, is_anew);
            if is_end {
                return;
            }
        }
    }

    fn release_those(&mut self, held: &[LocalChunk], map: &ClusterMap, is_anew: bool) {
        for held in held {
            if self.is_let_go(held, map, is_anew) {
                self.release(&held.name);
            }
        }
    }

    fn is_let_go(&self, held: &LocalChunk, map: &ClusterMap, is_anew: bool) -> bool {
        let (node, chunk) = (self.member.node, &held.name);
        let placed = map.placement(&chunk.0, chunk.1).unwrap_or_default();
        let is_recipient = placed.recipients.contains(&node)
            && (!is_anew || self.is_kept_for_difference(held, map));
        !placed.holders.contains(&node) && !is_recipient
    }

    /// Whether a walk would let nothing go, of a node that begins anew.
    fn is_all_kept(&self, map: &ClusterMap) -> bool {
        let all = self.store.held_or_kept(None, usize::MAX);
        !all.iter().any(|held| self.is_let_go(held, map, true))
    }

    /// Copies that are becoming durable just now, of chunks that were let go of, are not waited
    /// for: they would be taken for what is there.
    fn forget_stored(&mut self, map: &ClusterMap, is_anew: bool) {
        let node = self.member.node;
        let is_kept = |promise: &Promise| match promise {
            Promise::Stored((blob, chunk)) => {
                !is_anew && map.recipients(blob, *chunk).contains(&node)
            }
            Promise::Validated(..)
            | Promise::Fenced { .. }
            | Promise::Noted(_)
            | Promise::Recalled { .. }
            | Promise::Map
            | Promise::Prepared(_)
            | Promise::Staged { .. }
            | Promise::Done => true,
        };
        self.member.promises.retain(|_, promise| is_kept(promise));
    }

    /// A recipient has become a holder while a chunk was still to be copied that it had heard of
    /// after it had caught up. Then there was nothing of the chunk before what it heard of: its
    /// base is empty.
    fn settle_awaited(&mut self, map: &ClusterMap) {
        self.settle_unconfirmed(map);
        for chunk in self.member.recipient.missing() {
            let is_holder = map.holders(&chunk.0, chunk.1).contains(&self.member.node);
            if is_holder && let Some(range) = map.chunk_range(chunk.0.keyspace, chunk.1) {
                self.install_base(&chunk, &ChunkCopy::empty(range, chunk.1 == 0));
            }
        }
    }

    /// The commit machine marks what it remembers of what only this node has.
    pub(super) fn note_singles(&mut self, map: &ClusterMap) {
        let singles = self.member.singles(map);
        if let Some(recovery) = &mut self.member.commit.recovery {
            recovery.singles = singles;
        }
    }

    /// Declared down, others went on without it: what it knows may be wrong by now, and what it had
    /// validated was decided without it. Nothing of it counts (M4) but what only it has: that is
    /// answered, to be taken in again. The chunks that it has may stay until others have said which
    /// of them still stand (D5).
    fn begin_anew(&mut self, map: &ClusterMap) -> KeptAlone {
        let kept = self.member.kept_alone(map);
        let (node, clock) = (self.member.node, self.member.commit.clock());
        let (commit_rules, reads_rules) = (self.member.commit.rules, self.member.reads.rules);
        let pieces = std::mem::take(&mut self.member.commit.pieces);
        let old = std::mem::replace(&mut self.member.commit, Commit::clustered(node));
        self.member.commit.rules = commit_rules;
        self.member.commit.observe(clock);
        self.member.commit.follow(old);
        self.member.commit_epoch = None;
        self.member.reads = Reads::new(node);
        self.member.reads.rules = reads_rules;
        self.member.asked = super::AskedReads::default();
        self.member.listings = super::Listings::default();
        self.member.in_use = super::InUse::new(self.member.config.read_timeout_us);
        self.member.usage = super::UsageOnItsWay::default();
        self.member.usage.change();
        self.member.forget_key_leases();
        self.member.key_watches = key_watch::Table::default();
        self.member.notices = key_watch::Notices::default();
        self.member.aside = super::Aside::default();
        self.member.difference.await_nothing();
        self.member.uploads = super::Uploads::default();
        self.member.misplaced.clear();
        self.member.unanswered.clear();
        self.member.unsure.clear();
        self.member.promises.retain(|_, promise| *promise == Promise::Map);
        // What was to be durable before the node says that it has prepared is of what it was: it
        // prepares anew, or nobody would ever hear.
        let planned = self.member.planned.iter_mut().filter(|planned| !planned.is_durable);
        planned.for_each(|planned| planned.is_prepared = false);
        self.member.recipient = self.member.config.recipient(node, self.member.incarnation);
        self.member.is_resume_due = false;
        debug_assert!(self.member.commit.clock() >= clock, "C8: the clock stays");
        debug_assert!(self.member.commit.is_empty(), "M4: nothing counts of what it had validated");
        debug_assert_eq!(self.member.reads.len(), self.member.asked.len(), "nobody waits any more");
        // What is not kept goes chunk by chunk, as what is not held any more.
        match self.is_returning_by_difference() {
            true => {
                self.store.stop_awaiting();
                self.keep_pieces(pieces, map);
            }
            false if map.held_alone(node).next().is_some() => self.keep_pieces(pieces, map),
            false => self.store.clear(),
        }
        kept
    }

    /// Lets the commit machine go by the newest map, if there is a lease.
    pub(super) fn catch_up_commit(&mut self) {
        let epoch = self.member.epoch();
        let is_behind = self.member.commit_epoch.is_none_or(|known| known < epoch);
        if is_behind
            && self.member.has_lease()
            && let Some(map) = self.member.map.clone()
        {
            debug_assert!(
                self.member.planned.iter().all(|it| it.map.epoch > epoch),
                "M3: it is over"
            );
            self.member.commit_epoch = Some(epoch);
            self.commit(commit::Event::Install { map });
            if self.member.is_resume_due {
                self.resume();
            }
        }
    }

    /// Tells the monitors that the node is here, when their map has not got it so. One that was
    /// declared down while it ran comes back under its next incarnation (M4).
    pub(super) fn return_if_needed(&mut self) {
        if let Some(map_node) = self.member.map_node().copied() {
            let is_passed = map_node.incarnation > self.member.incarnation;
            let is_down = map_node.incarnation == self.member.incarnation && !map_node.is_live();
            let is_out = self.member.is_out();
            if is_passed || is_down && !is_out {
                self.member.incarnation = map_node.incarnation + 1;
                self.member.lease = Holder::new(self.member.incarnation);
                self.member.returned_us = None;
            }
        }
        if self.member.is_member() || self.member.is_out() {
            return;
        }
        let now_us = self.member.now.monotonic_us;
        let again_us = self.member.outdated_us().unwrap_or(super::tick::RETURN_AGAIN_US);
        let is_told = |told_us| now_us.saturating_sub(told_us) < again_us;
        if !self.member.returned_us.is_some_and(is_told) {
            self.member.returned_us = Some(now_us);
            let incarnation = self.member.incarnation;
            let has_disk = self.member.has_disk;
            let level = self.member.config.level;
            self.send(Address::Monitors, Body::Return { incarnation, has_disk, level });
            self.fetch(Address::Monitors); // It may have left the cluster: nobody takes it back.
        }
    }
}

impl Member {
    /// How long a node waits between two questions to the monitors that its program cannot make
    /// use of the answer to, in microseconds; none while it can.
    pub(super) fn outdated_us(&self) -> Option<u64> {
        self.outdated.as_ref().map(|_| super::tick::OUTDATED_AGAIN_US)
    }

    /// Whether the node has left the cluster.
    fn is_out(&self) -> bool {
        let is_out = |map: &Arc<ClusterMap>| map.membership(self.node) == Membership::Out;
        self.map_node().is_some() && self.map.as_ref().is_some_and(is_out)
    }

    /// Whether something in flight here was validated under chains that `map` changes, and can end
    /// before it. With a node that is lost it cannot.
    fn is_using_old(&self, map: &ClusterMap) -> bool {
        self.commit.records.iter().any(|(_, record)| {
            let epoch = record.entered_in.epoch;
            record.state.in_flight_at().is_some()
                && record.chain.hops().iter().all(|hop| map.is_live(hop.node))
                && map.is_affected(&record.chain, &record.transaction, epoch)
        })
    }
}

/// Whether the node was declared down, or may have been, between the map that it had and `map`. A
/// recipient that starts again is let in by the map that follows the one it had, so it can tell.
///
/// Who comes back to its place is `Returning` first; who was about to join is `Up` at once, and
/// nobody counts on what it has.
pub(super) fn is_expelled(map: &ClusterMap, old: Option<&ClusterMap>, node: NodeId) -> bool {
    let Some(map_node) = map.nodes.get(&node) else { return false };
    let Some(old) = old else { return false };
    let Some(before) = old.nodes.get(&node) else { return false };
    // Between that map and the one that let this process in there is no epoch to go down in.
    let is_missed =
        before.incarnation != map_node.incarnation && map_node.since.0 > old.epoch.0 + 1;
    match map_node.state {
        NodeState::Returning => before.state != NodeState::Returning || is_missed,
        NodeState::Up => {
            let was_down = before.state == NodeState::Down || is_missed;
            map.membership(node) == Membership::Joining && was_down
        }
        // What left the cluster left it all behind.
        NodeState::Down => {
            before.state != NodeState::Down && map.membership(node) == Membership::Out
        }
    }
}

/// Whether chains may have been others in between.
fn is_gap(old: &ClusterMap, map: &ClusterMap) -> bool {
    map.moved.0 > old.epoch.0 + 1
}

#[cfg(test)]
mod tests {
    use tyr_types::KeyspaceConfig;

    use super::*;
    use crate::level::LEVEL;
    use crate::map::Change;

    /// The map after these changes.
    fn after(map: &ClusterMap, changes: &[Change]) -> ClusterMap {
        changes.iter().fold(map.clone(), |map, change| map.changed(change).unwrap())
    }

    fn back(node: u16, incarnation: u64) -> Change {
        Change::Return { node: NodeId(node), incarnation, has_disk: true, level: LEVEL }
    }

    /// M4.
    #[test]
    fn a_recipient_that_started_again_knows_whether_it_was_declared_down_in_between() {
        let node = NodeId(2);
        let cluster = ClusterMap::of(3, &[KeyspaceConfig::default()]);
        let known = after(&cluster, &[Change::Down(node), back(2, 5)]);
        let is_expelled = |changes: &[Change]| {
            let map = after(&known, changes);
            super::is_expelled(&map, Some(&known), node)
        };
        assert!(!is_expelled(&[back(2, 9)]));
        assert!(!is_expelled(&[back(2, 9), back(1, 7)]), "the first of them let it in");
        assert!(is_expelled(&[Change::Down(node), back(2, 9)]));
        assert!(is_expelled(&[back(1, 7), back(2, 9)]), "that might have been its end");
        assert!(!is_expelled(&[back(1, 7)]), "it is the same process");
    }
}
