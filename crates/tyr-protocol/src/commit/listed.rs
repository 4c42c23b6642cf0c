//! What transactions have listed is read as a whole (Q3): the keys that were there, and that no
//! others were.
//!
//! A transaction claims the range of keys that it has listed at the authority of their group,
//! which is in the chain of whatever makes, changes or deletes a blob of it. There such a range is
//! to each write in it what a read of the blob's attributes is (C1, C2, C9), whether there is a
//! blob of that key yet or not.
//!
//! ```text
//!   own \ other              in flight            waiting, came earlier    applied above S
//!   listing  vs write in it   abort                wait                     abort
//!   write    vs listing       wait, if undecided   wait                     go
//! ```
//!
//! In flight nobody knows of a write whether it makes a blob or goes to one that is there: each
//! counts, also where only keys were listed.
//!
//! Where nobody has listed anything, as is usual, this costs a look at an empty list. Who has lists
//! goes over the blobs in flight; they are in no order.

use tyr_types::{BlobName, ErrorKind, KeyRange, KeyspaceId, Listed, ReadCheck, Timestamp};

use super::Commit;
use super::in_flight::{Chunks, Claim, ClaimKind};
use super::record::{Record, Slot};
use super::validate::{Obstacle, Validation};
use crate::abort::Abort;
use crate::chain::Place;
use crate::footprint::Footprint;
use crate::rule::{Rule, Rules};
use crate::view::View;

/// The text of an abort whose listings are stale.
pub(crate) const STALE_LISTING: &str = "of the keys that the transaction listed here one came or \
                                        went since, or was written; run it again";

/// The keys that a transaction has listed.
#[derive(Clone, Debug)]
struct Listing {
    slot: Slot,
    /// Their group, by the blob that has its prefix as a key.
    group: BlobName,
    keys: KeyRange,
}

impl Listing {
    fn is_of(&self, blob: &BlobName) -> bool {
        is_of(self.group.keyspace, &self.keys, blob)
    }
}

/// All ranges of keys that transactions known here have listed, of groups whose authority this node
/// is. Each has [`tyr_types::limits::TRANSACTION_LISTINGS_MAX`] at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Listings(Vec<Listing>);

impl Listings {
    /// Claims the keys of a listing, where they are validated here.
    pub fn claim(&mut self, slot: Slot, place: Place<'_>, read: &ReadCheck, listed: &Listed) {
        if place.is_end_authority(&read.blob) {
            let (group, keys) = (read.blob.clone(), listed.keys.clone());
            self.0.push(Listing { slot, group, keys });
        }
    }

    /// Removes what `slot` has listed.
    pub fn remove(&mut self, slot: Slot) {
        if !self.0.is_empty() {
            self.0.retain(|listing| listing.slot != slot);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those who have listed keys of this group.
    pub fn of_group<'a>(&'a self, group: &'a BlobName) -> impl Iterator<Item = Slot> + 'a {
        self.0.iter().filter(|listing| listing.group == *group).map(|listing| listing.slot)
    }

    /// Those who have listed where the blob would be.
    fn over<'a>(&'a self, blob: &'a BlobName) -> impl Iterator<Item = Slot> + 'a {
        self.0.iter().filter(|listing| listing.is_of(blob)).map(|listing| listing.slot)
    }
}

fn is_of(keyspace: KeyspaceId, keys: &KeyRange, blob: &BlobName) -> bool {
    blob.keyspace == keyspace && keys.contains(blob.key.as_bytes())
}

/// Whether a transaction with these reads has listed the blob's key.
fn has_listed(reads: &[ReadCheck], blob: &BlobName) -> bool {
    let mut listings = reads.iter().filter_map(|it| Some((it.blob.keyspace, it.listed.as_ref()?)));
    listings.any(|(keyspace, listed)| is_of(keyspace, &listed.keys, blob))
}

fn lists(reads: &[ReadCheck]) -> bool {
    reads.iter().any(|read| read.listed.is_some())
}

/// Q3: whether what was listed is as it was, by what is applied here.
pub(super) fn check_listing(
    rules: Rules,
    read: &ReadCheck,
    listed: &Listed,
    view: &impl View,
) -> Result<(), Abort> {
    match rules.hold(Rule::Q3) && view.is_listing_stale(read.blob.keyspace, listed, read.at) {
        true => Err(stale(&read.blob)),
        false => Ok(()),
    }
}

fn stale(blob: &BlobName) -> Abort {
    Abort::at(blob, ErrorKind::Conflict, STALE_LISTING)
}

/// What a listing is to a write in it.
fn claim_of(slot: Slot, node: tyr_types::NodeId) -> Claim {
    let (kind, footprint, chunks) = (ClaimKind::Read, Footprint::ATTRIBUTES, Chunks::NONE);
    Claim { slot, kind, footprint, chunks, authority: node }
}

impl<V: View> Validation<'_, V> {
    /// Who is in the way, of those that write what was listed, and of those that have listed what
    /// is written; `met` is who is in the way besides. An error when a listing is stale by that.
    pub(super) fn listed_obstacle(
        &self,
        slot: Slot,
        record: &Record,
        met: Obstacle,
    ) -> Result<Obstacle, Abort> {
        let listings = self.in_flight.listings();
        if listings.is_empty() || !self.rules.hold(Rule::Q3) {
            return Ok(met);
        }
        let mut worst = met;
        for own in listings.0.iter().filter(|listing| listing.slot == slot) {
            let claim = claim_of(slot, self.node);
            let blobs = self.in_flight.iter().filter(|(blob, _)| own.is_of(blob));
            let others = blobs.flat_map(|(_, claims)| claims.iter());
            for other in others.filter(|other| other.slot != slot) {
                match self.meeting(record, &claim, other, 0) {
                    Obstacle::Stale => return Err(stale(&own.group)),
                    met => worst = self.longer(worst, met),
                }
            }
        }
        for entry in &record.transaction.blobs {
            for other in listings.over(&entry.blob).filter(|other| *other != slot) {
                let claim = claim_of(other, self.node);
                let claims = self.in_flight.claims(&entry.blob);
                for own in claims.of(slot).filter(|own| own.kind.is_write()) {
                    worst = self.longer(worst, self.meeting(record, own, &claim, 0));
                }
            }
        }
        Ok(worst)
    }
}

impl Commit {
    /// Those that are told whatever happens to what `record` has listed, and those that have listed
    /// what it writes. It may claim nothing any more.
    pub(super) fn open_beside_listings(&self, record: &Record) -> Vec<Slot> {
        let transaction = &record.transaction;
        let mut open = Vec::new();
        if !self.in_flight.listings().is_empty() {
            let written = transaction.blobs.iter().map(|entry| &entry.blob);
            open.extend(written.flat_map(|blob| self.in_flight.listings().over(blob)));
        }
        if lists(&transaction.reads) {
            let blobs = self.in_flight.iter();
            let listed = blobs.filter(|(blob, _)| has_listed(&transaction.reads, blob));
            open.extend(listed.flat_map(|(_, claims)| claims.open()));
        }
        open
    }

    /// Of those that have listed what `slot` writes, are decided below `at` and not applied, the
    /// last (C9).
    pub(super) fn last_lister(&self, slot: Slot, at: Timestamp) -> Option<(Timestamp, Slot)> {
        let listings = self.in_flight.listings();
        if listings.is_empty() {
            return None;
        }
        let blobs = self.records[slot].transaction.blobs.iter().map(|entry| &entry.blob);
        let is_written = |blob: &&BlobName| {
            self.in_flight.claims(blob).of(slot).any(|claim| claim.kind.is_write())
        };
        let written = blobs.filter(is_written);
        let others = written.flat_map(|blob| listings.over(blob)).filter(|other| *other != slot);
        others.filter_map(|other| Some((self.before(other, false, at)?, other))).max()
    }

    /// Whether somebody who is not done writes what a transaction has listed, or has listed what it
    /// writes.
    pub(super) fn has_listed_company(&self, transaction: &tyr_types::Transaction) -> bool {
        let is_busy = |slot: Slot| !self.records[slot].is_applied();
        let listings = self.in_flight.listings();
        let mut written = transaction.blobs.iter().map(|entry| &entry.blob);
        if !listings.is_empty() && written.any(|blob| listings.over(blob).any(is_busy)) {
            return true;
        }
        let reads = &transaction.reads;
        lists(reads)
            && self.in_flight.iter().any(|(blob, claims)| {
                has_listed(reads, blob) && claims.iter().any(|claim| is_busy(claim.slot))
            })
    }

    /// Q3: a listing and a write in it are never both validated and undecided here.
    pub(super) fn check_listings(&self) {
        // As for reads: one that is known to be committed is not asked, and of those from the log
        // it may be lost that they were decided.
        let is_undecided = |slot: Slot| {
            let record = &self.records[slot];
            record.state.is_undecided() && record.is_new()
        };
        for listing in &self.in_flight.listings().0 {
            let slot = &listing.slot;
            assert!(
                self.records.get(*slot).is_some(),
                "a listing is of a live record: {listing:?}"
            );
            let are_kept = [Rule::C1, Rule::C2, Rule::Q3].iter().all(|it| self.rules.hold(*it));
            if !are_kept || !is_undecided(*slot) {
                continue;
            }
            for (blob, claims) in self.in_flight.iter().filter(|(blob, _)| listing.is_of(blob)) {
                let is_met = |claim: &Claim| {
                    let is_write = claim.kind.is_write() && claim.footprint.is_attributes;
                    is_write && claim.slot != *slot && is_undecided(claim.slot)
                };
                let write = claims.iter().find(|claim| is_met(claim));
                assert!(write.is_none(), "Q3: {write:?} of {blob} and {listing:?} are validated");
            }
        }
    }
}
