//! Who watches keys of this node, and when they are told (K5).
//!
//! A node tells of the keys that it is the authority of when a transaction that changes one is
//! applied: from then on who reads finds it. What it is the authority of no more another tells of,
//! at which the client registers when it hears of the map.

use std::sync::Arc;

use tyr_types::{ErrorKind, NoticeId, Timestamp, Transaction, WatchTarget, Watcher};

use super::key_leasing::authority;
use super::{Store, Turn};
use crate::abort::Abort;
use crate::key_watch::{Message, Sent, tellers};
use crate::level::LEVEL_WATCHING;
use crate::map::{ClusterMap, DROPPED};
use crate::message::{Address, Asked, Body};
use crate::rule::Rule;

impl super::Member {
    /// The number of watches at this node.
    pub fn key_watches(&self) -> usize {
        self.key_watches.len()
    }
}

impl<S: Store> Turn<'_, S> {
    /// A client says something about a watch. Without a lease nothing is answered: others may have
    /// changed what this node was the authority of.
    pub(super) fn hear_key_watch(&mut self, client: u64, message: Message) {
        if !self.member.has_lease() {
            return;
        }
        let (now_us, mut said) = (self.member.now.monotonic_us, Vec::new());
        let table = &mut self.member.key_watches;
        match message {
            Message::Ask { watch, target } => return self.ask_key_watch(client, watch, target),
            Message::Renew { watches } => {
                table.renew(now_us, client, &watches, &mut said);
                if !self.member.commit.rules.hold(Rule::K5) {
                    said.iter_mut().for_each(|(_, message)| hide_unknown(message));
                }
            }
            Message::Heard { watch, told } => {
                table.heard(now_us, Watcher { client, watch }, told, &mut said);
            }
            Message::End { watch } => {
                let watcher = Watcher { client, watch };
                table.end(watcher);
                self.member.notices.end(now_us, watcher, &mut said);
            }
            Message::Notify { number, blob, payload, timeout_us } => {
                let id = NoticeId { client, number };
                return self.notify(client, Sent { id, blob, payload, timeout_us });
            }
            Message::Acknowledge { watch, id, reply } => {
                return self.acknowledge(Watcher { client, watch }, id, reply);
            }
            // Not for a client to say.
            Message::Watching { .. }
            | Message::Changed { .. }
            | Message::Renewed { .. }
            | Message::Notice { .. }
            | Message::Notified { .. } => {}
        }
        self.tell_watchers(said);
    }

    fn ask_key_watch(&mut self, client: u64, watch: u64, target: WatchTarget) {
        let Some(map) = self.member.map.clone() else { return };
        let is_here = tellers(&target, &map).contains(&self.member.node);
        let is_going = |planned: &Arc<ClusterMap>| planned.moved != map.moved;
        let mut said = Vec::new();
        let asked = match check(&map, &target) {
            Ok(()) if !is_here || self.is_planned_away(is_going) => {
                return self.not_here(client, Asked::Read(watch));
            }
            Ok(()) => {
                let table = &mut self.member.key_watches;
                table.ask(Watcher { client, watch }, target, &mut said)
            }
            Err(abort) => Err(abort),
        };
        match asked {
            Ok(()) => self.tell_watchers(said),
            Err(abort) => self.send(Address::Client(client), Body::Refused { read: watch, abort }),
        }
    }

    /// A transaction is applied: who watches what it changed is told.
    pub(super) fn tell_of(&mut self, transaction: &Transaction, at: Timestamp) {
        if self.member.key_watches.is_empty() {
            return;
        }
        let Some(map) = self.member.map.clone() else { return };
        let (now_us, mut said) = (self.member.now.monotonic_us, Vec::new());
        let written = transaction.blobs.iter().filter(|entry| {
            let is_changing = entry.operations.iter().any(|operation| operation.is_write());
            is_changing && authority(&map, &entry.blob) == Some(self.member.node)
        });
        for entry in written {
            self.member.key_watches.changed(now_us, at, &entry.blob, &mut said);
        }
        self.tell_watchers(said);
    }

    /// Time has passed.
    pub(super) fn tick_key_watches(&mut self) {
        let now_us = self.member.now.monotonic_us;
        let can_hear = self.member.has_lease();
        self.member.key_watches.tick(now_us, can_hear);
        self.tick_notices();
    }

    pub(super) fn tell_watchers(&mut self, said: Vec<(u64, Message)>) {
        for (client, message) in said {
            self.send(Address::Client(client), Body::KeyWatch(message));
        }
    }
}

/// A node that breaks K5 does not say of which watches it knows nothing.
fn hide_unknown(message: &mut Message) {
    if let Message::Renewed { unknown } = message {
        unknown.clear();
    }
}

/// Whether there may be such a watch at all.
fn check(map: &ClusterMap, target: &WatchTarget) -> Result<(), Abort> {
    let refuse = |kind, reason: &'static str| Err(Abort::new(kind, reason));
    if map.is_dropped(target.keyspace) {
        return refuse(ErrorKind::NotFound, DROPPED);
    }
    if map.chunk_size(target.keyspace).is_none() {
        return refuse(ErrorKind::NotFound, "there is no keyspace of this number");
    }
    if target.prefix.len() > tyr_types::limits::KEY_LEN_MAX {
        return refuse(ErrorKind::InvalidArgument, "what is watched is longer than a key may be");
    }
    map.check_level(LEVEL_WATCHING)
        .map_err(|error| Abort::new(error.kind(), error.message().to_owned()))
}
