//! Transactions, reads and listings that leases of others keep off in guarded keyspaces (K2, K7).
//!
//! ```text
//!   transaction, read ─► authority of the first chunk: does a lease of another exclude it, or may
//!                          │  no                        │  there be one that another node gave?
//!                          ▼                            ▼ yes
//!                      goes on as ever     parked, the holders are told (Recall)
//!                                                       │ given back, or over: looked at again
//! ```
//!
//! A lease of a key and one of its group both count. A listing of what is newest needs its keys
//! shared, those that are there and those that are not: each node looks at what it has given.
//!
//! Who is parked holds nobody up: what a transaction had validated at other nodes is withdrawn
//! meanwhile (C9), so that a holder can write what it has to before it gives its lease back. No
//! lease is given while something in flight here may still change the key.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{
    BlobName, ByteRange, Epoch, KeyRange, KeyspaceId, LeaseMode, Leased, Listed, NodeId, Number,
    NumberType, Timestamp, Transaction,
};

use super::key_leasing::KeyLeases;
use super::{Store, Turn};
use crate::commit::{self, Needed};
use crate::message::{Address, Asked, Body, ListForm, ReadRequest, ScanRequest};
use crate::read::{Kind, PARKED_MAX};
use crate::rule::{Rule, Rules};
use crate::view::View;

/// The applied state, and who is kept off what.
pub(super) struct Guarded<'a, S> {
    pub store: &'a S,
    pub leases: &'a KeyLeases,
    pub node: NodeId,
    pub now_us: u64,
    pub rules: Rules,
}

impl<S: View> View for Guarded<'_, S> {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        self.store.newest_overlapping(blob, range, is_attributes)
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.store.stat(blob)
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        self.store.matches(blob, offset, expected)
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        self.store.number(blob, offset, number_type)
    }

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        self.store.chunk_size(keyspace)
    }

    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        self.store.is_listing_stale(keyspace, listed, at)
    }

    fn keeps_off(&self, client: u64, blob: &BlobName, mode: LeaseMode) -> bool {
        let KeyLeases { table, guarded, .. } = self.leases;
        let is_in_way = || match self.rules.hold(Rule::K7) {
            true => table.is_in_way(client, blob, mode),
            false => table.is_key_in_way(client, blob, mode),
        };
        guarded.contains(&blob.keyspace)
            && self.rules.hold(Rule::K2)
            && (is_in_way() || !self.leases.is_clear(self.now_us, blob, self.node))
    }

    fn keeps_off_listing(&self, client: u64, keyspace: KeyspaceId, keys: &KeyRange) -> bool {
        let KeyLeases { table, guarded, .. } = self.leases;
        guarded.contains(&keyspace)
            && self.rules.hold(Rule::K2)
            && (table.is_listing_in_way(client, keyspace, keys)
                || !self.leases.is_clear_over(self.now_us, keyspace, keys, self.node))
    }
}

/// A read that waits for what keeps it off.
#[derive(Debug)]
struct KeptOff {
    from: Address,
    request: ReadRequest,
    since_us: u64,
}

/// The reads that are kept off, by blob: as many as may wait for transactions.
#[derive(Debug, Default)]
pub(super) struct KeptOffReads {
    by_blob: BTreeMap<BlobName, Vec<KeptOff>>,
    len: usize,
}

impl KeptOffReads {
    /// The number of reads that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    fn add(&mut self, read: KeptOff) {
        let of_blob = self.by_blob.entry(read.request.blob.clone()).or_default();
        let asked = (read.request.asker, read.request.read);
        if self.len < PARKED_MAX && of_blob.iter().all(|it| it.asked() != asked) {
            of_blob.push(read);
            self.len += 1;
        }
    }

    fn take(&mut self, blob: &BlobName) -> Vec<KeptOff> {
        let of_blob = self.by_blob.remove(blob).unwrap_or_default();
        self.len -= of_blob.len();
        of_blob
    }

    /// Nobody waits for this read any more.
    pub fn cancel(&mut self, asker: Address, read: u64) {
        self.by_blob.retain(|_, of_blob| {
            of_blob.retain(|it| it.asked() != (asker, read));
            !of_blob.is_empty()
        });
        self.len = self.by_blob.values().map(Vec::len).sum();
    }

    pub fn invariants(&self) {
        let len: usize = self.by_blob.values().map(Vec::len).sum();
        assert_eq!(self.len, len, "reads that are kept off are counted");
        assert!(self.len <= PARKED_MAX, "reads that are kept off are bounded");
    }
}

/// A listing of what is newest that waits for what keeps it off.
#[derive(Debug)]
pub(super) struct KeptOffListing {
    pub client: u64,
    pub request: Arc<ScanRequest>,
    pub form: ListForm,
    /// The epoch that its asker goes by.
    pub epoch: Epoch,
    pub since_us: u64,
}

/// The listings that are kept off: as many as may wait for transactions.
#[derive(Debug, Default)]
pub(super) struct KeptOffListings(Vec<KeptOffListing>);

impl KeptOffListings {
    /// Whether this one waits.
    pub fn contains(&self, client: u64, number: u64) -> bool {
        self.0.iter().any(|it| (it.client, it.request.number) == (client, number))
    }

    fn add(&mut self, listing: KeptOffListing) {
        if self.0.len() < PARKED_MAX {
            self.0.push(listing); // Who is let go asks again.
        }
    }

    /// Nobody waits for this listing any more.
    pub fn cancel(&mut self, client: u64, number: u64) {
        self.0.retain(|it| (it.client, it.request.number) != (client, number));
    }

    pub fn invariants(&self) {
        assert!(self.0.len() <= PARKED_MAX, "listings that are kept off are bounded");
    }
}

impl KeptOff {
    fn asked(&self) -> (Address, u64) {
        (self.request.asker, self.request.read)
    }
}

impl<S: Store> Turn<'_, S> {
    /// A transaction or a read of this client waits for this: who holds a lease that keeps it off
    /// is told.
    pub(super) fn recall(&mut self, client: u64, needed: Needed) {
        let now_us = self.member.now.monotonic_us;
        let name = match needed {
            Needed::Key(blob, mode) => {
                self.lease_keys(|_, table, _, said| {
                    table.want(now_us, (client, mode), &blob, said);
                });
                blob
            }
            Needed::Listed { group, keys } => {
                self.lease_keys(|_, table, _, said| {
                    table.want_listing(now_us, client, (group.keyspace, &keys), said);
                });
                group
            }
        };
        self.member.key_leases.kept_off.insert(name);
    }

    /// Looks again at whom leases keep off: who still is says so again.
    pub(super) fn go_on_with_kept_off(&mut self) {
        for blob in std::mem::take(&mut self.member.key_leases.kept_off) {
            self.commit(commit::Event::Freed { blob: blob.clone() });
            for KeptOff { from, request, since_us } in self.member.key_leases.reads.take(&blob) {
                let waited_us = self.member.now.monotonic_us.saturating_sub(since_us);
                match waited_us < self.member.config.wait_max_us {
                    true => self.read_unless_kept_off(from, request, since_us),
                    false => self.send(request.asker, Body::NotHere(Asked::Read(request.read))),
                }
            }
        }
        for listing in std::mem::take(&mut self.member.key_leases.listings.0) {
            let waited_us = self.member.now.monotonic_us.saturating_sub(listing.since_us);
            match waited_us < self.member.config.wait_max_us {
                true => self.list_unless_kept_off(listing),
                false => self.list_not_here(listing.client, listing.request.number),
            }
        }
    }

    /// Whether leases keep a listing off, which is handed back if they do not; else it waits until
    /// they are given back. What was there at some moment is as it was, whoever holds a lease by
    /// now.
    pub(super) fn let_list(&mut self, listing: KeptOffListing) -> Option<KeptOffListing> {
        let (client, keyspace) = (listing.client, listing.request.keyspace);
        if listing.request.at.is_some() || !self.member.key_leases.guarded.contains(&keyspace) {
            return Some(listing);
        }
        let (now_us, node) = (self.member.now.monotonic_us, self.member.node);
        let (leases, rules) = (&self.member.key_leases, self.member.commit.rules);
        let view = Guarded { store: &*self.store, leases, node, now_us, rules };
        let keys = listing.request.keys();
        if !view.keeps_off_listing(client, keyspace, &keys) {
            return Some(listing);
        }
        self.lease_keys(|_, table, _, said| {
            table.want_listing(now_us, client, (keyspace, &keys), said);
        });
        self.member.key_leases.listings.add(listing);
        None
    }

    /// A transaction is validated here: nothing waits any more for what it writes, nor for what it
    /// has listed.
    pub(super) fn is_let_in(&mut self, transaction: &Transaction) {
        let KeyLeases { table, guarded, .. } = &mut self.member.key_leases;
        for entry in transaction.blobs.iter().filter(|it| guarded.contains(&it.blob.keyspace)) {
            table.want_no_more(&Leased::Key(entry.blob.clone()));
        }
        let listed = transaction.reads.iter().filter(|read| read.listed.is_some());
        for read in listed.filter(|it| guarded.contains(&it.blob.keyspace)) {
            table.want_no_more(&Leased::Group(read.blob.clone()));
        }
    }

    /// A transaction is applied: who waits for leases of what it wrote may get them.
    pub(super) fn give_leases_after(&mut self, transaction: &Arc<Transaction>) {
        let (now_us, guarded) = (self.member.now.monotonic_us, &self.member.key_leases.guarded);
        let is_guarded = transaction.blobs.iter().any(|it| guarded.contains(&it.blob.keyspace));
        if is_guarded {
            self.lease_keys(|_, table, is_open, said| {
                for entry in &transaction.blobs {
                    table.give_next(now_us, &Leased::Key(entry.blob.clone()), is_open, said);
                }
            });
        }
    }

    /// Whether a client's read is to be answered by the authority of the first chunk, which knows
    /// of leases: what is newest in a guarded keyspace. What a transaction or a snapshot reads at
    /// its moment is as it was then, whoever holds a lease by now.
    pub(super) fn is_read_guarded(&self, request: &ReadRequest) -> bool {
        let is_newest = match request.kind {
            Kind::Direct | Kind::First | Kind::Whole | Kind::Clock => true,
            Kind::At(_) | Kind::Layout(_) => false,
        };
        let is_client = matches!(request.asker, Address::Client(_));
        let KeyLeases { guarded, .. } = &self.member.key_leases;
        is_newest && is_client && !request.is_copy && guarded.contains(&request.blob.keyspace)
    }

    /// Whether leases keep a read off; then it waits until they are given back.
    pub(super) fn is_read_kept_off(
        &mut self,
        from: Address,
        request: &ReadRequest,
        since_us: u64,
    ) -> bool {
        let Address::Client(client) = request.asker else { return false };
        let (now_us, node) = (self.member.now.monotonic_us, self.member.node);
        let (leases, rules) = (&self.member.key_leases, self.member.commit.rules);
        let view = Guarded { store: &*self.store, leases, node, now_us, rules };
        let is_kept_off = view.keeps_off(client, &request.blob, LeaseMode::Shared);
        if is_kept_off {
            self.recall(client, Needed::Key(request.blob.clone(), LeaseMode::Shared));
            let request = request.clone();
            self.member.key_leases.reads.add(KeptOff { from, request, since_us });
        }
        is_kept_off
    }
}
