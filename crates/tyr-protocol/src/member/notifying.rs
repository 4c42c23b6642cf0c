//! Notices to who watches keys of this node (K6).
//!
//! The key's authority knows all who watch it: those who watch the key, and those who watch what it
//! begins with. One that has become it just now does not know them yet: they register within
//! seconds, and notices wait until then.

use std::time::Duration;

use tyr_types::notice::{check_notice, check_reply};
use tyr_types::{BlobName, Bytes, ErrorKind, NoticeId, Watcher};

use super::key_leasing::authority;
use super::{Member, Store, Turn};
use crate::abort::Abort;
use crate::key_watch::Sent;
use crate::level::LEVEL_NOTIFYING;
use crate::map::{ClusterMap, DROPPED};
use crate::message::{Address, Asked, Body};
use crate::rule::Rule;

impl Member {
    /// Chunks are placed by the newest map from now on: notices to what is another's by it are
    /// answered there.
    pub(super) fn place_notices(&mut self) {
        let (node, map) = (self.node, self.map.clone());
        let is_here = |blob: &BlobName| map.iter().any(|map| authority(map, blob) == Some(node));
        self.notices.retain(is_here);
    }
}

impl<S: Store> Turn<'_, S> {
    /// A client sends a notice, or asks again what became of it.
    pub(super) fn notify(&mut self, client: u64, sent: Sent) {
        let Some(map) = self.member.map.clone() else { return };
        let (node, now_us, id) = (self.member.node, self.member.now.monotonic_us, sent.id);
        if let Err(abort) = check(&map, &sent) {
            return self.refuse_notice(client, id, abort);
        }
        let is_others = |map: &ClusterMap| authority(map, &sent.blob) != Some(node);
        let is_known = self.member.notices.contains(id);
        if is_others(&map) || (!is_known && self.is_planned_away(|planned| is_others(planned))) {
            return self.not_here(client, Asked::Read(id.number));
        }
        let is_settled = self.member.key_leases.is_settled(now_us, &sent.blob, node);
        if !is_known && !is_settled && self.member.commit.rules.hold(Rule::K6) {
            return; // Those who watch may not have registered yet. The client asks again.
        }
        let mut said = Vec::new();
        let (watches, blob) = (&self.member.key_watches, sent.blob.clone());
        let watchers = || watches.watchers(&blob);
        match self.member.notices.send(now_us, sent, watchers, &mut said) {
            Ok(()) => self.tell_watchers(said),
            Err(abort) => self.refuse_notice(client, id, abort),
        }
    }

    fn refuse_notice(&mut self, client: u64, id: NoticeId, abort: Abort) {
        self.send(Address::Client(client), Body::Refused { read: id.number, abort });
    }

    /// Who watches has acknowledged a notice.
    pub(super) fn acknowledge(&mut self, watcher: Watcher, id: NoticeId, reply: Bytes) {
        if check_reply(&reply).is_ok() {
            let (now_us, mut said) = (self.member.now.monotonic_us, Vec::new());
            self.member.notices.acknowledge(now_us, watcher, id, reply, &mut said);
            self.tell_watchers(said);
        }
    }

    /// Time has passed. Without a lease nothing is answered: another may be the authority.
    pub(super) fn tick_notices(&mut self) {
        if self.member.has_lease() {
            let (now_us, mut said) = (self.member.now.monotonic_us, Vec::new());
            self.member.notices.tick(now_us, &mut said);
            self.tell_watchers(said);
        }
    }
}

/// Whether there may be such a notice at all.
fn check(map: &ClusterMap, sent: &Sent) -> Result<(), Abort> {
    let keyspace = sent.blob.keyspace;
    if map.is_dropped(keyspace) {
        return Err(Abort::new(ErrorKind::NotFound, DROPPED));
    }
    if map.chunk_size(keyspace).is_none() {
        let reason = "there is no keyspace of this number";
        return Err(Abort::new(ErrorKind::NotFound, reason));
    }
    let timeout = Duration::from_micros(sent.timeout_us);
    let checked =
        check_notice(&sent.payload, timeout).and_then(|()| map.check_level(LEVEL_NOTIFYING));
    checked.map_err(|error| Abort::new(error.kind(), error.message().to_owned()))
}
