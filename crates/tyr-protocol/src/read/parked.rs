//! The reads and listings that wait at a node, and the oldest of a blob among them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;
use tyr_types::{BlobName, Timestamp, TransactionId};

use super::{Listing, ReadId, Request};

/// What waits.
#[derive(Debug)]
pub(super) enum Wanted {
    Read(Request),
    Listing(Listing),
}

/// A read or a listing that waits for transactions to be applied or aborted here.
///
/// Much may be in flight. It waits for one transaction at a time, the last of those that it has to
/// wait for, and looks again when that has moved: most of the others have by then. Nobody comes to
/// be one of those, so it seldom looks more than twice.
#[derive(Debug)]
pub(super) struct Parked {
    pub wanted: Wanted,
    /// It waits for whatever may still be at or below this.
    pub up_to: Timestamp,
    /// Which of those it waits for now.
    pub pending: TransactionId,
}

impl Parked {
    /// The blob of a read that will be served at a timestamp, and that: its versions are needed
    /// until then (V1).
    fn needed(&self) -> Option<(&BlobName, Timestamp)> {
        match &self.wanted {
            Wanted::Read(request) if request.kind.is_at_a_timestamp() => {
                Some((&request.blob, self.up_to))
            }
            Wanted::Read(_) | Wanted::Listing(_) => None,
        }
    }
}

/// All that wait, by number.
#[derive(Debug, Default)]
pub(super) struct AllParked {
    by_id: BTreeMap<ReadId, Parked>,
    /// Of each blob the reads that will be served at a timestamp, by that.
    needed: HashMap<BlobName, BTreeSet<(Timestamp, ReadId)>, FixedState>,
    /// The listings; few.
    listings: BTreeSet<ReadId>,
}

impl AllParked {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn contains(&self, id: ReadId) -> bool {
        self.by_id.contains_key(&id)
    }

    pub fn get(&self, id: ReadId) -> Option<&Parked> {
        self.by_id.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ReadId, &Parked)> {
        self.by_id.iter().map(|(id, parked)| (*id, parked))
    }

    pub fn insert(&mut self, id: ReadId, parked: Parked) {
        if let Some((blob, at)) = parked.needed() {
            self.needed.entry(blob.clone()).or_default().insert((at, id));
        }
        if let Wanted::Listing(_) = parked.wanted {
            self.listings.insert(id);
        }
        let before = self.by_id.insert(id, parked);
        debug_assert!(before.is_none(), "a read waits once: {id:?}");
    }

    pub fn remove(&mut self, id: ReadId) -> Option<Parked> {
        let parked = self.by_id.remove(&id)?;
        self.listings.remove(&id);
        if let Some((blob, at)) = parked.needed()
            && let Some(of_blob) = self.needed.get_mut(blob)
        {
            of_blob.remove(&(at, id));
            if of_blob.is_empty() {
                self.needed.remove(blob);
            }
        }
        Some(parked)
    }

    /// The lowest timestamp at which one of them needs versions of `blob`.
    pub fn oldest_of(&self, blob: &BlobName) -> Option<Timestamp> {
        let of_blob = self.needed.get(blob).and_then(|of_blob| of_blob.first());
        let listings = self.listings.iter().filter_map(|id| match &self.by_id[id] {
            Parked { wanted: Wanted::Listing(listing), up_to, .. } => {
                listing.is_of(blob).then_some(*up_to)
            }
            _ => None,
        });
        of_blob.map(|(at, _)| *at).into_iter().chain(listings).min()
    }

    /// What holds between steps: each is found by its blob, and nothing else is.
    pub fn invariants(&self) {
        for (id, parked) in &self.by_id {
            let is_listing = matches!(parked.wanted, Wanted::Listing(_));
            assert_eq!(self.listings.contains(id), is_listing, "listings are known: {id:?}");
            if let Some((blob, at)) = parked.needed() {
                let is_found = self.needed.get(blob).is_some_and(|it| it.contains(&(at, *id)));
                assert!(is_found, "V1: who waits keeps what it will see: {id:?}");
            }
        }
        let needed = self.by_id.values().filter(|parked| parked.needed().is_some()).count();
        let found: usize = self.needed.values().map(BTreeSet::len).sum();
        assert_eq!(found, needed, "nothing is kept for who does not wait");
    }
}
