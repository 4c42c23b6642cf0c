//! Listings: which may be answered here, and what they wait for (Q1, Q2).
//!
//! Each node lists the blobs that it is the authority of, by the placement of the asker's map: so
//! each blob is listed by one node, and all of them together miss none. Whoever gains chunks knows
//! of what was deleted before only what it copied: it lists no earlier moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{Epoch, ErrorKind, KeyspaceId, ScanPage, Timestamp};

use super::key_guard::KeptOffListing;
use super::{Effect, Member, Store, Turn};
use crate::abort::Abort;
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body, ListForm, ScanRequest};
use crate::read::{self, Kind, Listing, ReadId};
use crate::rule::Rule;

/// A listing that is in the read machine.
#[derive(Clone, Debug)]
struct Waiting {
    client: u64,
    request: Arc<ScanRequest>,
    form: ListForm,
    /// The epoch that its asker goes by.
    epoch: Epoch,
    since_us: u64,
}

/// The listings in the read machine, by the number they have there; bounded by it.
#[derive(Debug, Default)]
pub(super) struct Listings(BTreeMap<ReadId, Waiting>);

impl Listings {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn find(&self, client: u64, number: u64) -> Option<ReadId> {
        let mut all = self.0.iter();
        let is_it = |it: &Waiting| it.client == client && it.request.number == number;
        all.find(|(_, waiting)| is_it(waiting)).map(|(id, _)| *id)
    }
}

impl<S: Store> Turn<'_, S> {
    /// A client asks for the blobs that this node is the authority of.
    pub(super) fn list_blobs(
        &mut self,
        client: u64,
        epoch: Epoch,
        request: Arc<ScanRequest>,
        form: ListForm,
    ) {
        if self.member.listings.find(client, request.number).is_some()
            || self.member.key_leases.listings.contains(client, request.number)
        {
            return; // It waits here already.
        }
        let since_us = self.member.now.monotonic_us;
        let listing = KeptOffListing { client, request, form, epoch, since_us };
        self.list_unless_kept_off(listing);
    }

    /// The same of one that came then, and may have been kept off since (K2).
    pub(super) fn list_unless_kept_off(&mut self, listing: KeptOffListing) {
        let KeptOffListing { client, epoch, .. } = listing;
        let request = Arc::clone(&listing.request);
        let is_ahead = request.at.is_some_and(|at| self.is_ahead(Kind::At(at)));
        if is_ahead || !self.member.may_list(epoch) {
            return self.list_not_here(client, request.number);
        }
        if let Some(abort) = self.member.list_refusal(&request) {
            let body = Body::Refused { read: request.number, abort };
            return self.send(Address::Client(client), body);
        }
        if !self.member.is_authority() || request.keys().is_empty() {
            let body = listing.form.answer(request.number, ScanPage::default());
            return self.send(Address::Client(client), body);
        }
        let Some(KeptOffListing { form, .. }) = self.let_list(listing) else { return };
        let id = self.member.asked.number();
        let (keyspace, keys, at) = (request.keyspace, request.keys(), request.at);
        let since_us = self.member.now.monotonic_us;
        let waiting = Waiting { client, request, form, epoch, since_us };
        let before = self.member.listings.0.insert(id, waiting);
        debug_assert!(before.is_none(), "reads and listings have their numbers from one count");
        self.ask_reads(read::Event::List(Listing { id, keyspace, keys, at }));
    }

    /// A listing has waited long enough: it is answered, if it still may be.
    pub(super) fn serve_listing(&mut self, id: ReadId) {
        let Some(waiting) = self.member.listings.0.remove(&id) else { return };
        let Waiting { client, request, form, epoch, .. } = waiting;
        let bytes_at = request.at.filter(|_| self.member.commit.rules.hold(Rule::Q2));
        match self.member.map.clone().filter(|_| self.member.may_list(epoch)) {
            Some(map) => {
                self.effects.push(Effect::List { client, request, form, bytes_at, map });
            }
            None => self.list_not_here(client, request.number),
        }
    }

    /// There is no room for a listing; whether it was one.
    pub(super) fn refuse_listing(&mut self, id: ReadId, abort: &Abort) -> bool {
        let Some(waiting) = self.member.listings.0.remove(&id) else { return false };
        let body = Body::Refused { read: waiting.request.number, abort: abort.clone() };
        self.send(Address::Client(waiting.client), body);
        true
    }

    /// Nobody waits for this listing any more.
    pub(super) fn cancel_listing(&mut self, client: u64, number: u64) {
        self.member.key_leases.listings.cancel(client, number);
        if let Some(id) = self.member.listings.find(client, number) {
            self.member.listings.0.remove(&id);
            self.ask_reads(read::Event::Cancel { id });
        }
    }

    /// Gives up the listings that may not be answered here any more, and those that wait too long.
    pub(super) fn review_listings(&mut self) {
        let (now_us, wait_max_us) = (self.member.now.monotonic_us, self.member.config.wait_max_us);
        let is_given_up = |waiting: &Waiting| {
            let is_late = now_us.saturating_sub(waiting.since_us) >= wait_max_us;
            is_late || !self.member.may_list(waiting.epoch)
        };
        let all = self.member.listings.0.iter();
        let given_up: Vec<ReadId> =
            all.filter(|(_, waiting)| is_given_up(waiting)).map(|(id, _)| *id).collect();
        for id in given_up {
            let Some(waiting) = self.member.listings.0.remove(&id) else { continue };
            self.ask_reads(read::Event::Cancel { id });
            self.list_not_here(waiting.client, waiting.request.number);
        }
    }

    pub(super) fn list_not_here(&mut self, client: u64, number: u64) {
        self.send(Address::Client(client), Body::NotHere(Asked::Read(number)));
    }
}

impl Member {
    /// From here on it is known whether a blob was there of which nothing is here, as far as moves
    /// go: before, somebody else held it.
    pub fn known_from(&self) -> Timestamp {
        self.known_from
    }

    /// Whether what was listed by this map is what this node is the authority of: it has not lost
    /// anything meanwhile.
    pub fn has_listed_by(&self, map: &ClusterMap) -> bool {
        self.may_list(map.epoch)
    }

    /// The map gives this node chunks that it was a recipient of, or may have been: since the last
    /// change of nodes or rings at the latest.
    pub(super) fn note_gained(&mut self, old: Option<&ClusterMap>, map: &ClusterMap) {
        let was_recipient = |old: &ClusterMap| old.recipients_of_any().contains(&self.node);
        if old.is_none_or(was_recipient) {
            self.known_from =
                self.known_from.max(Timestamp { epoch: map.moved, ..Timestamp::ZERO });
        }
    }

    /// Whether this node may list for who goes by a map of that epoch: by the same placement, under
    /// a lease, and while nothing is planned that changes it (M3).
    fn may_list(&self, epoch: Epoch) -> bool {
        let Some(map) = &self.map else { return false };
        let is_moving = self.planned.iter().any(|planned| planned.map.moved > map.moved);
        self.has_lease() && map.moved <= epoch && !is_moving
    }

    /// Whether what was there at this moment is kept, and copied with what moves (V7).
    fn is_kept(&self, at: Timestamp) -> bool {
        self.map.as_ref().is_some_and(|map| map.is_kept(at))
    }

    /// Why what was kept of the keyspace at this moment cannot be listed any more, if it is so.
    fn kept_obstacle(&self, keyspace: KeyspaceId, at: Timestamp) -> Option<&'static str> {
        let map = self.map.as_ref().filter(|_| self.is_kept(at));
        map.and_then(|map| map.kept_obstacle(keyspace, at))
    }

    fn list_refusal(&self, request: &ScanRequest) -> Option<Abort> {
        let refuse = |kind, reason: &'static str| Some(Abort::new(kind, reason));
        let chunk_size = self.map.as_ref().and_then(|map| map.chunk_size(request.keyspace));
        let Some(chunk_size) = chunk_size else {
            return refuse(ErrorKind::NotFound, "there is no keyspace of this number");
        };
        if let Err(error) = request.scan().validate_in(chunk_size) {
            return Some(Abort::new(error.kind(), error.message().to_owned()));
        }
        // Who asks may go by a map of before, or be too old to look itself.
        if let Some(Err(error)) = self.map.as_ref().map(|map| map.check_whole(request.keyspace)) {
            return Some(Abort::new(error.kind(), error.message().to_owned()));
        }
        let obstacle = |at: Timestamp| self.kept_obstacle(request.keyspace, at);
        if let Some(why) = request.at.and_then(obstacle) {
            return refuse(ErrorKind::SnapshotTooOld, why);
        }
        let is_unknown = |at| at < self.known_from && !self.is_kept(at);
        if self.is_authority() && request.at.is_some_and(is_unknown) {
            return refuse(ErrorKind::SnapshotTooOld, MOVED_SINCE);
        }
        None
    }
}

const MOVED_SINCE: &str = "data has moved since this snapshot began, and what was deleted before \
                           that is not known any more; start a new one";
