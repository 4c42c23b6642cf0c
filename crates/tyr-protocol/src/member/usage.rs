//! What snapshots in use need of a blob, on its way to all that hold it (V2).
//!
//! A forward pass collects, a backward pass tells. Every version manager of a blob that the
//! transaction writes adds what it knows; at the tail all have, so the way back carries what is
//! true of the blob as a whole. One that cannot vouch adds nothing, and then nobody after it does:
//! half of the truth would let versions go that are in use.
//!
//! ```text
//!   forward    manager ─{40 │ 70}─► node ─{40 │ 70}─► manager ─{40, 55 │ 68}─► tail
//!   backward   manager ◄─{40, 55 │ 68}─ node ◄─{40, 55 │ 68}─ manager ◄─{40, 55 │ 68}─ tail
//! ```
//!
//! What is told is each moment at which a snapshot in use reads; and from where on there may be
//! others: the clock, or the oldest moment that a snapshot which begins just now reads at, or that
//! something in flight may be applied at. What was superseded below that, and was current at none
//! of the moments, nobody reads any more.
//!
//! Not every transaction carries this: whoever would be the first to add something does so when the
//! last news of one of its blobs is older than [`EVERY_US`]. On a blob that is written all the time
//! the next one tells as much.
//!
//! A manager cannot vouch until a read timeout has passed since it or its peers changed: snapshots
//! that a lost one had begun may be in use till then, and nobody knows of them.

use std::collections::BTreeMap;

use tyr_types::{BlobName, Timestamp, Transaction, TransactionId};

use super::{Store, Turn};
use crate::chain::Chain;
use crate::commit::{Message, Usages};
use crate::rule::Rule;
use crate::versions::{MOMENTS_MAX, SnapshotTable, Usage};

/// News of a blob is good for so long, in microseconds: little beside the seconds for which
/// versions linger (V4).
const EVERY_US: u64 = 500_000;

/// The most moments that a message tells in all, of however many blobs: beside what else it has
/// they are few.
const TOLD_MAX: usize = 1024;
const _: () = assert!(MOMENTS_MAX <= TOLD_MAX, "of one blob all can be told");

/// What is known of the usage of a transaction's blobs.
#[derive(Clone, Debug)]
enum Collected {
    /// On the way forward: of the managers so far.
    Partly(Usages),
    /// On the way back: of all.
    Wholly(Usages),
}

/// Usage on its way, by transaction in flight; and whether this node can vouch.
#[derive(Debug, Default)]
pub(super) struct UsageOnItsWay {
    by_id: BTreeMap<TransactionId, Collected>,
    /// Whether managers have changed since the last tick.
    is_changed: bool,
    /// Until then there may be snapshots that no manager knows of.
    unsure_until_us: u64,
}

impl UsageOnItsWay {
    /// The version managers have changed, or this node has started again.
    pub fn change(&mut self) {
        self.is_changed = true;
    }

    /// Some time has passed.
    pub fn tick(&mut self, now_us: u64, timeout_us: u64) {
        if std::mem::take(&mut self.is_changed) {
            self.unsure_until_us = now_us.saturating_add(timeout_us);
        }
    }

    /// Forgets what is on its way with nobody.
    pub fn retain(&mut self, mut is_in_flight: impl FnMut(TransactionId) -> bool) {
        self.by_id.retain(|id, _| is_in_flight(*id));
    }

    fn is_sure(&self, now_us: u64) -> bool {
        !self.is_changed && now_us >= self.unsure_until_us
    }
}

impl<S: Store> Turn<'_, S> {
    /// A message came by: keeps what it says of usage, and what is whole is told to the store.
    pub(super) fn take_usages(&mut self, message: &Message) {
        match message {
            Message::Forward { transaction, usages, .. } => {
                self.keep_usages(transaction.id, Collected::Partly(usages.clone()));
            }
            Message::Backward { id, usages, .. } => {
                for (blob, usage) in usages {
                    self.store.usage(blob, usage);
                }
                self.keep_usages(*id, Collected::Wholly(usages.clone()));
            }
            Message::Misplaced { .. }
            | Message::Again { .. }
            | Message::Withdrawn { .. }
            | Message::Decided { .. }
            | Message::Anchored { .. }
            | Message::Stable { .. }
            | Message::AskStable { .. } => {}
        }
    }

    fn keep_usages(&mut self, id: TransactionId, collected: Collected) {
        let (Collected::Partly(usages) | Collected::Wholly(usages)) = &collected;
        match usages.is_empty() {
            true => self.member.usage.by_id.remove(&id),
            false => self.member.usage.by_id.insert(id, collected),
        };
    }

    /// Puts what is known of usage into a message that leaves. The tail is told by nobody: it knows
    /// when it tells the others.
    pub(super) fn give_usages(&mut self, message: &mut Message) {
        match message {
            Message::Forward { transaction, chain, usages, .. } => {
                if self.is_carrying(transaction) {
                    *usages = self.usages_so_far(transaction, chain);
                }
            }
            Message::Backward { id, usages, .. } => {
                if let Some(Collected::Wholly(known)) = self.member.usage.by_id.get(id) {
                    *usages = known.clone();
                } else {
                    *usages = self.usages_at_tail(*id);
                    usages.iter().for_each(|(blob, usage)| self.store.usage(blob, usage));
                }
            }
            Message::Misplaced { .. }
            | Message::Again { .. }
            | Message::Withdrawn { .. }
            | Message::Decided { .. }
            | Message::Anchored { .. }
            | Message::Stable { .. }
            | Message::AskStable { .. } => {}
        }
    }

    /// Whether this transaction carries usage on from here: it does already, or it is time again.
    fn is_carrying(&self, transaction: &Transaction) -> bool {
        if self.member.usage.by_id.contains_key(&transaction.id) {
            return true;
        }
        let clock = self.member.commit.clock().clock;
        let is_due = |blob: &BlobName| {
            let news = self.store.usage_as_of(blob);
            news.is_none_or(|as_of| as_of.clock.saturating_add(EVERY_US) <= clock)
        };
        transaction.blobs.iter().any(|entry| is_due(&entry.blob))
            || !self.member.commit.rules.hold(Rule::V2)
    }

    /// At the tail every manager has been asked; elsewhere this is not known yet.
    fn usages_at_tail(&self, id: TransactionId) -> Usages {
        let Some(slot) = self.member.commit.records.slot(id) else { return Usages::new() };
        let record = &self.member.commit.records[slot];
        let is_tail = record.position + 1 == record.chain.hops().len();
        match is_tail && self.is_carrying(&record.transaction) {
            true => self.usages_so_far(&record.transaction, &record.chain),
            false => Usages::new(),
        }
    }

    /// What the managers up to and with this node know of the blobs that are written.
    fn usages_so_far(&self, transaction: &Transaction, chain: &Chain) -> Usages {
        let mut so_far = Usages::new();
        let Some(map) = &self.member.map else { return so_far };
        let node = self.member.node;
        let before = match self.member.usage.by_id.get(&transaction.id) {
            Some(Collected::Partly(usages) | Collected::Wholly(usages)) => usages.as_slice(),
            None => &[],
        };
        let mut left = TOLD_MAX;
        for entry in &transaction.blobs {
            let blob = &entry.blob;
            let managers = map.holders(blob, 0);
            let is_first = chain
                .hops()
                .iter()
                .take_while(|hop| hop.node != node)
                .all(|hop| !managers.contains(&hop.node));
            let known = before.iter().find(|(of, _)| of == blob).map(|(_, usage)| usage);
            let own = if managers.contains(&node) { Some(self.own_usage(blob)) } else { None };
            let usage = match (own, known) {
                (Some(own), _) if !self.member.commit.rules.hold(Rule::V2) => own,
                (None, known) => known.cloned(), // Not a manager: passes on what there is.
                (Some(Some(own)), None) if is_first => Some(own),
                (Some(Some(own)), Some(known)) => Some(own.and(known)),
                (Some(None), _) | (Some(Some(_)), None) => None,
            };
            let usage = usage.map(|usage| usage.within(left));
            left -= usage.as_ref().map_or(0, |usage| usage.moments().len());
            so_far.extend(usage.map(|usage| (blob.clone(), usage)));
        }
        so_far
    }

    /// What this manager knows of a blob, if it can vouch for it.
    fn own_usage(&self, blob: &BlobName) -> Option<Usage> {
        if !self.member.usage.is_sure(self.member.now.monotonic_us) {
            return None;
        }
        let clock = self.member.commit.clock();
        // One that begins has its timestamp from its arrival on, and is in use when it is answered.
        let beginning = self.member.reads.oldest_waiting(blob);
        // What is not applied here may not be applied elsewhere either, though what comes after it
        // is, on other bytes: nobody folds past it.
        let coming = self.member.commit.unapplied_from(blob);
        // Who was told the clock for a moment of everything reads there, or above.
        let all_from = self.member.in_use.all_from();
        let from = beginning.into_iter().chain(coming).chain(all_from);
        let as_of = from.fold(clock, Timestamp::min);
        debug_assert!(as_of <= clock, "V2: of what is to come nobody can tell");
        let of_blob = self.member.in_use.of(blob).into_iter();
        let of_blob = Usage::new(as_of, of_blob.flat_map(SnapshotTable::timestamps));
        let of_all = Usage::new(as_of, self.member.in_use.of_all().timestamps());
        Some(of_blob.and(&of_all))
    }

    /// A transaction that no other node hears of was applied: there is nobody to ask or to tell.
    pub(super) fn use_alone(&mut self, transaction: &Transaction, chain: &Chain) {
        if !chain.is_alone() || !self.is_carrying(transaction) {
            return;
        }
        for (blob, usage) in self.usages_so_far(transaction, chain) {
            self.store.usage(&blob, &usage);
        }
    }
}
