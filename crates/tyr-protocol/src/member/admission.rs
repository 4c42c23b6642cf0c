//! Which messages are looked into: from one the map knows, of a known epoch, under a lease.

use std::sync::Arc;

use tyr_types::{Epoch, ErrorKind, NodeId};

use super::{HELD_MAX, Store, Turn};
use crate::commit;
use crate::key_lease;
use crate::key_watch;
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body, Envelope, ListForm, Unread};
use crate::upload;

/// The newest map is asked for again after so long without an answer, in microseconds.
const FETCH_AGAIN_US: u64 = 100_000;

impl<S: Store> Turn<'_, S> {
    /// A message arrives.
    pub(super) fn receive(&mut self, envelope: Envelope) {
        if self.member.is_broken {
            return;
        }
        match envelope {
            Envelope { from, epoch, body: Body::FetchMap, .. } => self.give_map(from, epoch),
            Envelope { from: Address::Monitors | Address::Node(_), body, .. }
                if matches!(body, Body::NewerMap(_)) =>
            {
                if let Body::NewerMap(map) = body {
                    self.install(map);
                }
            }
            Envelope { from: Address::Monitors, body, .. } => self.heed_monitors(body),
            envelope if envelope.epoch > self.member.epoch() => self.hold(envelope),
            Envelope { from: Address::Node(from), incarnation, epoch, body } => {
                self.hear_node(from, incarnation, epoch, body);
            }
            Envelope { from: Address::Client(client), epoch, body, .. } => {
                self.hear_client(client, epoch, body);
            }
        }
    }

    /// A message arrives that this program does not understand: the sender is told so. What was on
    /// its way over its chain ends here; to run it again would not help before this program is
    /// another.
    pub(super) fn not_read(&mut self, unread: Unread) {
        let Unread { incarnation, from, asked, is_forwarded, level, .. } = unread;
        if self.member.is_broken {
            return;
        }
        let is_known =
            match from {
                Address::Node(node) => self.member.map.as_ref().is_some_and(|map| {
                    map.is_live(node) && map.incarnation(node) == Some(incarnation)
                }),
                Address::Client(_) => true,
                Address::Monitors => false,
            };
        let Some(asked) = asked.filter(|_| is_known) else { return };
        if let Asked::Transaction(id) = asked
            && is_forwarded
            && matches!(from, Address::Node(_))
            && self.member.has_lease()
        {
            self.commit(commit::Event::Unread { id, level });
        }
        self.send(from, Body::NotUnderstood { asked, level: self.member.config.level });
    }

    /// Somebody asks for the map. A node asks because it has seen a newer epoch, and needs no map
    /// that is none; a client also wants to hear that there is none.
    fn give_map(&mut self, from: Address, epoch: Epoch) {
        let is_wanted = match from {
            Address::Client(_) => true,
            Address::Node(_) | Address::Monitors => epoch < self.member.epoch(),
        };
        if let Some(map) = self.member.map.clone().filter(|_| is_wanted) {
            self.send(from, Body::NewerMap(map));
        }
    }

    /// Sends the newest map to who has an older one: once between two ticks, however much it says.
    fn show_map(&mut self, to: Address, map: Arc<ClusterMap>) {
        if self.member.shown.insert(to) {
            self.send(to, Body::NewerMap(map));
        }
    }

    /// Keeps a message of an epoch that is not known here, and asks for the map.
    fn hold(&mut self, envelope: Envelope) {
        debug_assert!(envelope.epoch > self.member.epoch(), "what is known is heard at once");
        let from = envelope.from;
        if self.member.held.len() < HELD_MAX {
            self.member.held.push_back(envelope);
        }
        self.fetch(match from {
            Address::Node(_) => from,
            Address::Client(_) | Address::Monitors => Address::Monitors,
        });
    }

    /// Asks for the newest map, unless that was done just now.
    pub(super) fn fetch(&mut self, from: Address) {
        let now_us = self.member.now.monotonic_us;
        let again_us = self.member.outdated_us().unwrap_or(FETCH_AGAIN_US);
        let is_asked = |asked_us| now_us.saturating_sub(asked_us) < again_us;
        if !self.member.fetched_us.is_some_and(is_asked) {
            self.member.fetched_us = Some(now_us);
            self.send(from, Body::FetchMap);
        }
    }

    /// Handles what was kept and is of a known epoch now.
    pub(super) fn release_held(&mut self) {
        let known = self.member.epoch();
        let mut held = std::mem::take(&mut self.member.held);
        held.retain(|envelope| {
            let is_known = envelope.epoch <= known;
            if is_known {
                self.receive(envelope.clone());
            }
            !is_known
        });
        // What came in between is of a yet newer epoch, and later.
        held.append(&mut self.member.held);
        debug_assert!(held.iter().all(|it| it.epoch > known), "none of a known epoch waits on");
        self.member.held = held;
    }

    fn hear_node(&mut self, from: NodeId, incarnation: u64, epoch: Epoch, body: Body) {
        // M4: who is not in the map, or was started again since, is not listened to.
        let Some(map) = self.member.map.clone() else { return };
        let is_known = map.is_live(from) && map.incarnation(from) == Some(incarnation);
        if !is_known || !self.member.has_lease() {
            if epoch < map.epoch && map.incarnation(from).is_some() {
                self.show_map(Address::Node(from), map);
            }
            return;
        }
        self.catch_up_commit();
        match body {
            Body::Commit(message) => self.hear_commit(message),
            Body::Recovery(message) => self.hear_recovery(message),
            Body::Read(request) => self.read(Address::Node(from), request),
            Body::CancelRead { read } => self.cancel_read(Address::Node(from), read),
            Body::Movement(message) => self.hear_movement(from, epoch, message),
            Body::Upload(message) => self.hear_passed(from, message),
            Body::NotHere(Asked::Read(read)) => {
                self.no_copy(read);
                self.not_filled(read, None);
            }
            Body::Refused { read, abort } => {
                self.no_copy(read);
                self.not_scrubbed(from, read, abort.kind);
                self.not_filled(read, Some(abort));
            }
            Body::Part(part) => {
                if let Some(part) = self.filled(part) {
                    self.scrubbed(from, part);
                }
            }
            Body::NotUnderstood { asked: Asked::Transaction(id), level: _ } => {
                self.commit(commit::Event::NotUnderstood { id });
            }
            Body::NotUnderstood { asked: Asked::Read(read), level: _ } => {
                self.no_copy(read);
                self.not_scrubbed(from, read, ErrorKind::Unavailable);
                self.not_filled(read, None);
            }
            Body::NotHere(Asked::Transaction(_))
            | Body::FetchMap
            | Body::NewerMap(_)
            | Body::Submit { .. }
            | Body::SnapshotEnded { .. }
            | Body::Reply { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {} // Not for a node to say to a node.
        }
    }

    fn hear_client(&mut self, client: u64, epoch: Epoch, body: Body) {
        let from = Address::Client(client);
        if let Some(map) = self.member.map.clone()
            && epoch < map.epoch
        {
            self.show_map(from, map);
        }
        if let (Some(asked), false) = (question(&body), self.member.has_lease()) {
            return self.send(from, Body::NotHere(asked));
        }
        self.catch_up_commit();
        match body {
            Body::Submit { transaction, ends, begun_us, is_retry, settled: _ } => {
                self.submit(client, transaction, ends, begun_us, is_retry);
            }
            Body::Read(request) => self.read(from, request),
            Body::CancelRead { read } => self.cancel_read(from, read),
            Body::ListKeys(request) => {
                self.list_blobs(client, epoch, Arc::new(request.into()), ListForm::Keys);
            }
            Body::Scan(request) => self.list_blobs(client, epoch, request, ListForm::Page),
            Body::Moment { read, placed } => self.take_moment(from, epoch, read, placed),
            Body::SnapshotEnded { read } => self.member.in_use.end(from, read),
            Body::KeyLease(message) => self.hear_key_lease(client, message),
            Body::KeyWatch(message) => self.hear_key_watch(client, message),
            Body::Upload(message) => self.hear_uploader(client, message),
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {} // Not for a client to say.
        }
    }

    /// The monitors say something: about the lease, or a map.
    fn heed_monitors(&mut self, body: Body) {
        match body {
            Body::Granted { incarnation, sent_us, duration_us, epoch, retention } => {
                // First: nothing is answered under the lease by what was known before (F11).
                self.commit(commit::Event::Retain(retention));
                self.member.lease.granted(incarnation, sent_us, duration_us);
                self.catch_up_commit();
                if epoch > self.member.epoch() {
                    self.fetch(Address::Monitors);
                }
            }
            Body::Prepare(map) => self.prepare(map),
            Body::Effective(map) => self.install(map),
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Submit { .. }
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Renew { .. }
            | Body::Prepared { .. }
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {} // Not for the monitors to say.
        }
    }

    /// Whether what these maps take away concerns the chain that `affects` looks at.
    pub(super) fn is_planned_away(&self, affects: impl Fn(&Arc<ClusterMap>) -> bool) -> bool {
        self.member.planned.iter().any(|planned| affects(&planned.map))
    }
}

/// What a client waits for an answer about.
fn question(body: &Body) -> Option<Asked> {
    match body {
        Body::Submit { transaction, .. } => Some(Asked::Transaction(transaction.id)),
        Body::Read(request) => Some(Asked::Read(request.read)),
        Body::ListKeys(request) => Some(Asked::Read(request.number)),
        Body::Scan(request) => Some(Asked::Read(request.number)),
        Body::Moment { read, .. } => Some(Asked::Read(*read)),
        Body::KeyLease(
            key_lease::Message::Ask { lease, .. } | key_lease::Message::AskGroup { lease, .. },
        ) => Some(Asked::Read(*lease)),
        Body::Upload(
            upload::Message::Stage { number, .. } | upload::Message::Copy { number, .. },
        )
        | Body::KeyWatch(key_watch::Message::Notify { number, .. }) => Some(Asked::Read(*number)),
        Body::Upload(_)
        | Body::Commit(_)
        | Body::Recovery(_)
        | Body::Movement(_)
        | Body::CancelRead { .. }
        | Body::SnapshotEnded { .. }
        | Body::FetchMap
        | Body::Reply { .. }
        | Body::Part(_)
        | Body::Refused { .. }
        | Body::NewerMap(_)
        | Body::NotHere(_)
        | Body::NotUnderstood { .. }
        | Body::Renew { .. }
        | Body::Granted { .. }
        | Body::Prepare(_)
        | Body::Prepared { .. }
        | Body::Effective(_)
        | Body::CaughtUp { .. }
        | Body::Return { .. }
        | Body::KeyLease(_)
        | Body::KeyWatch(_)
        | Body::Keys { .. }
        | Body::Scanned { .. } => None,
    }
}
