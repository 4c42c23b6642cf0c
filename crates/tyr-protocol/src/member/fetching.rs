//! Pieces that a transaction lacks here are asked for from others before it is validated (U4).
//!
//! A message that waits for pieces is one that is late: nothing has been promised, and whoever sent
//! it asks on (F6). So nothing is lost when it is dropped, and nothing wrong when it comes too
//! late.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tyr_types::{Epoch, NodeId, PieceId, Transaction, TransactionId};

use super::{Store, Turn};
use crate::chain::Chain;
use crate::commit::event::client_of;
use crate::commit::{self, recovery};
use crate::message::Asked;
use crate::rule::Rule;
use crate::upload::{Message, is_uploaded, wanted};

/// Transactions that wait for pieces at a time; what is beyond comes again (F6).
pub const FETCHING_MAX: usize = 256;

/// Pieces of a transaction that are asked for at a time, so that few are in memory.
const FETCHED_MAX: usize = 4;

/// A node that was asked for a piece is given up after so long, in microseconds.
const FETCH_LATE_US: u64 = 500_000;

/// A piece that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    /// Who is to be asked yet.
    nodes: VecDeque<NodeId>,
    /// Who is asked, since when.
    pub asked: Option<(NodeId, u64)>,
}

/// A transaction that waits for pieces.
#[derive(Clone, Debug)]
pub(super) struct Fetching {
    event: commit::Event,
    /// Of the map under which it came.
    epoch: Epoch,
    pub sought: BTreeMap<PieceId, Sought>,
}

impl<S: Store> Turn<'_, S> {
    /// Tells the commit machine of a transaction that it may validate, when the pieces are here
    /// that it needs (U4); or when nobody has them: then it finds that out.
    pub(super) fn commit_with_pieces(&mut self, event: commit::Event) {
        if !self.member.commit.rules.hold(Rule::U3) && self.lacks_what_is_known(&event) {
            return;
        }
        let sought = self.sought(&event);
        let Some((transaction, _)) = subject(&event).filter(|_| !sought.is_empty()) else {
            return self.commit(event);
        };
        let (id, epoch) = (transaction.id, self.member.epoch());
        let fetching = &mut self.member.uploads.fetching;
        match fetching.get_mut(&id) {
            Some(fetching) => {
                (fetching.event, fetching.epoch) = (event, epoch);
                // It may have a chunk more by now, and then more of them.
                let before = std::mem::replace(&mut fetching.sought, sought);
                for (id, asked) in before.into_iter().filter(|(_, it)| it.asked.is_some()) {
                    fetching.sought.entry(id).and_modify(|it| *it = asked);
                }
            }
            None => {
                let is_full = fetching.len() >= FETCHING_MAX;
                if is_full {
                    return; // It comes again (F6).
                }
                fetching.insert(id, Fetching { event, epoch, sought });
            }
        }
        self.seek(id);
    }

    /// Whether it is of a transaction that is known to be committed, and pieces of it are not here:
    /// it is taken in without, for a copy brings them or has (U3).
    fn lacks_what_is_known(&self, event: &commit::Event) -> bool {
        let commit::Event::Receive(message) = event else { return false };
        let commit::Message::Forward { transaction, chain, known: Some(_), .. } = message else {
            return false;
        };
        let Some(position) = chain.position(self.member.node) else { return false };
        let (hop, commit) = (&chain.hops()[position], &self.member.commit);
        let all = wanted(transaction, hop, |keyspace| self.store.chunk_size(keyspace));
        let is_here = |id: PieceId| commit.pieces.get(id).is_some();
        !commit.knows_outcome(transaction.id) && all.iter().any(|want| !is_here(want.piece.id))
    }

    /// The pieces that this node lacks for a transaction, and who may have them: those that the
    /// chunk is placed on first, then all others.
    fn sought(&self, event: &commit::Event) -> BTreeMap<PieceId, Sought> {
        let mut sought = BTreeMap::new();
        let (commit, node) = (&self.member.commit, self.member.node);
        let Some((transaction, chain)) = subject(event) else { return sought };
        let (Some(map), Some(position)) = (&self.member.map, chain.position(node)) else {
            return sought;
        };
        let is_known = commit.knows_outcome(transaction.id);
        if is_known || !is_uploaded(transaction) || !commit.rules.hold(Rule::U4) {
            return sought;
        }
        let hop = &chain.hops()[position];
        for want in wanted(transaction, hop, |keyspace| self.store.chunk_size(keyspace)) {
            if commit.pieces.get(want.piece.id).is_none() {
                let placed = map.placement(want.blob, want.chunk).unwrap_or_default();
                let first: Vec<NodeId> =
                    placed.holders.iter().chain(&placed.recipients).copied().collect();
                let others = map.live().filter(|it| !first.contains(it));
                let mut nodes: VecDeque<NodeId> = first.iter().copied().chain(others).collect();
                nodes.retain(|it| *it != node && map.is_live(*it));
                sought.insert(want.piece.id, Sought { nodes, asked: None });
            }
        }
        sought
    }

    /// Asks for pieces that a transaction lacks, a few at a time. When all are here, or nobody has
    /// one, the commit machine is told of it.
    pub(super) fn seek(&mut self, transaction: TransactionId) {
        let now_us = self.member.now.monotonic_us;
        let Some(fetching) = self.member.uploads.fetching.get_mut(&transaction) else { return };
        let asked = fetching.sought.values().filter(|it| it.asked.is_some()).count();
        let mut room = FETCHED_MAX.saturating_sub(asked);
        let (mut asks, mut is_over) = (Vec::new(), fetching.sought.is_empty());
        for (id, sought) in fetching.sought.iter_mut().filter(|(_, it)| it.asked.is_none()) {
            if room == 0 {
                break;
            }
            match sought.nodes.pop_front() {
                Some(node) => {
                    sought.asked = Some((node, now_us));
                    asks.push((node, *id));
                    room -= 1;
                }
                None => is_over = true,
            }
        }
        if is_over {
            return self.end_fetching(transaction);
        }
        for (node, id) in asks {
            self.send_upload(node, Message::Fetch { id, transaction });
        }
    }

    /// A piece is here: those that waited for it go on.
    pub(super) fn has_come(&mut self, id: PieceId) {
        let fetching = self.member.uploads.fetching.iter_mut();
        let waited = fetching.filter_map(|(of, it)| it.sought.remove(&id).map(|_| *of));
        let waited: Vec<TransactionId> = waited.collect();
        waited.into_iter().for_each(|of| self.seek(of));
    }

    /// A transaction does not wait for pieces any more. What came under another map is out of date.
    fn end_fetching(&mut self, transaction: TransactionId) {
        let Some(fetching) = self.member.uploads.fetching.remove(&transaction) else { return };
        let is_current = fetching.epoch == self.member.epoch() && self.member.planned.is_empty();
        match fetching.event {
            commit::Event::Receive(message) if self.is_refused(&message) => {}
            commit::Event::Submit { .. } | commit::Event::Retry { .. } if !is_current => {
                let client = client_of(transaction);
                self.not_here(client, Asked::Transaction(transaction));
            }
            commit::Event::Recover(_) if !is_current => {} // It comes again (F6).
            event => self.commit(event),
        }
    }

    /// Who was asked for a piece and is silent is given up.
    pub(super) fn give_up_silent(&mut self, now_us: u64) {
        let mut late = Vec::new();
        for (transaction, fetching) in &mut self.member.uploads.fetching {
            for sought in fetching.sought.values_mut() {
                let is_late = |(_, asked_us)| now_us.saturating_sub(asked_us) >= FETCH_LATE_US;
                if sought.asked.is_some_and(is_late) {
                    sought.asked = None;
                    late.push(*transaction);
                }
            }
        }
        late.dedup();
        late.into_iter().for_each(|transaction| self.seek(transaction));
    }
}

/// The transaction that the commit machine may validate here because of this, and its chain. One
/// that is known to be committed is not validated: what it lacks comes by copy (U3).
fn subject(event: &commit::Event) -> Option<(&Arc<Transaction>, &Chain)> {
    match event {
        commit::Event::Submit { transaction, chain, .. }
        | commit::Event::Retry { transaction, chain, .. }
        | commit::Event::Recover(recovery::Message::Ask { transaction, chain, .. })
        | commit::Event::Receive(commit::Message::Forward {
            transaction,
            chain,
            known: None,
            ..
        }) => Some((transaction, chain)),
        _ => None,
    }
}
