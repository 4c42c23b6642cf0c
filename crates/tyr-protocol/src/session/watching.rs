//! What this client watches (K5).
//!
//! ```text
//!   a call ─► Ask, at each node that tells of it ─► Watching, of all: look what is there (Began)
//!              ▲ not here, silent, unknown there, another map         │
//!              └──────────────────────────────────────────────────────┘ Changed ─► Heard
//! ```
//!
//! Each second a node is told what it is watched for, all in one message. Whoever does not answer
//! may be the authority no more: the map is asked for elsewhere. While one of the nodes does not
//! know of a watch something may change and not be told; when all know of it again the user is told
//! to look what is there. So nothing is missed, whatever is lost.

use std::collections::BTreeMap;

use tyr_types::limits::WATCHES_OF_CLIENT_MAX;
use tyr_types::{ErrorKind, NodeId, WatchTarget};

use super::effect::{Answer, Effect, WatchNews};
use super::event::CallId;
use super::timer::Timer;
use super::{Session, fail};
use crate::abort::Abort;
use crate::key_watch::{Message, RENEWED_MAX, tellers};
use crate::level::LEVEL_WATCHING;
use crate::map::DROPPED;
use crate::message::Body;
use crate::rule::Rule;

/// Nodes are told what they are watched for after so long, in microseconds.
const RENEW_US: u64 = 1_000_000;

/// A node that cannot tell just now, or was not heard, is asked again after so long.
const ASK_AGAIN_US: u64 = 250_000;

/// A node that has not answered for so long may be the authority no more.
const SILENT_US: u64 = 3 * RENEW_US;

/// A node that tells of a watch.
#[derive(Clone, Copy, Debug, Default)]
struct Teller {
    /// Whether it has said that it does.
    is_registered: bool,
    /// What was heard last of it: how often it had told something with that.
    heard: u64,
    /// When it is asked again, or renewed.
    due_us: u64,
    /// When it answered last.
    answered_us: u64,
}

/// Something that is watched.
#[derive(Clone, Debug)]
struct Watched {
    target: WatchTarget,
    tellers: BTreeMap<NodeId, Teller>,
    /// Whether its user has been told to look since the last time that something may have been
    /// missed.
    is_begun: bool,
}

/// What this client watches; at most [`WATCHES_OF_CLIENT_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    by_number: BTreeMap<u64, Watched>,
    /// When it is looked at next, as the timer has it.
    pub due_us: Option<u64>,
}

impl Watches {
    fn first_due_us(&self) -> Option<u64> {
        let tellers = self.by_number.values().flat_map(|it| it.tellers.values());
        tellers.map(|teller| teller.due_us).min()
    }

    /// Whether this is watched.
    pub fn contains(&self, watch: u64) -> bool {
        self.by_number.contains_key(&watch)
    }

    pub fn invariants(&self) {
        assert!(self.by_number.len() <= WATCHES_OF_CLIENT_MAX, "they are bounded");
        if let Some(first_us) = self.first_due_us() {
            let is_noticed = self.due_us.is_some_and(|due_us| due_us <= first_us);
            assert!(is_noticed, "K5: who tells is asked in time");
        }
    }
}

impl Session {
    /// A call watches something.
    pub(super) fn watch(&mut self, call: CallId, target: WatchTarget, effects: &mut Vec<Effect>) {
        if self.watches.by_number.len() >= WATCHES_OF_CLIENT_MAX {
            return fail(call, Abort::new(ErrorKind::Unavailable, TOO_MANY), effects);
        }
        if let Err(error) = self.map.check_level(LEVEL_WATCHING) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return fail(call, abort, effects);
        }
        self.questions_begun += 1;
        let watch = self.numbers.of(self.questions_begun);
        let watched = Watched { target, tellers: BTreeMap::new(), is_begun: false };
        self.watches.by_number.insert(watch, watched);
        effects.push(Effect::Done { call, answer: Answer::Watching { watch } });
        self.reroute_watches(effects);
    }

    /// The user watches something no more.
    pub(super) fn end_watch(&mut self, watch: u64, effects: &mut Vec<Effect>) {
        if let Some(watched) = self.watches.by_number.remove(&watch) {
            for node in watched.tellers.into_keys() {
                self.send(node, Body::KeyWatch(Message::End { watch }), effects);
            }
        }
    }

    /// By the map others may tell of what is watched: they are asked at once.
    pub(super) fn reroute_watches(&mut self, effects: &mut Vec<Effect>) {
        let (map, now_us) = (self.map.clone(), self.now_us);
        let (mut ended, mut left) = (Vec::new(), Vec::new());
        for (watch, watched) in &mut self.watches.by_number {
            if map.is_dropped(watched.target.keyspace) {
                ended.push(*watch);
                continue;
            }
            let nodes = tellers(&watched.target, &map);
            for node in &nodes {
                let teller = Teller { due_us: now_us, answered_us: now_us, ..Teller::default() };
                let is_new = !watched.tellers.contains_key(node);
                watched.tellers.entry(*node).or_insert(teller);
                watched.is_begun &= !is_new;
            }
            let gone = watched.tellers.keys().filter(|node| !nodes.contains(node));
            left.extend(gone.map(|node| (*node, *watch)));
            watched.tellers.retain(|node, _| nodes.contains(node));
        }
        for (node, watch) in left {
            self.send(node, Body::KeyWatch(Message::End { watch }), effects);
        }
        for watch in ended {
            self.lose_watch(watch, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        self.ask_tellers(effects);
    }

    /// Those that are due are asked, or told what they are watched for.
    pub(super) fn ask_tellers(&mut self, effects: &mut Vec<Effect>) {
        if let Some(due_us) = self.watches.due_us.take() {
            self.timers.clear(due_us, Timer::Watches);
        }
        let now_us = self.now_us;
        let mut renewed: BTreeMap<NodeId, Vec<(u64, u64)>> = BTreeMap::new();
        let (mut asks, mut silent) = (Vec::new(), None);
        for (watch, watched) in &mut self.watches.by_number {
            for (node, teller) in &mut watched.tellers {
                if teller.due_us > now_us {
                    continue;
                }
                if now_us.saturating_sub(teller.answered_us) >= SILENT_US {
                    (teller.is_registered, watched.is_begun) = (false, false);
                    silent = Some(*node);
                }
                match teller.is_registered {
                    true => {
                        renewed.entry(*node).or_default().push((*watch, teller.heard));
                        teller.due_us = now_us + RENEW_US;
                    }
                    false => {
                        asks.push((*node, *watch, watched.target.clone()));
                        teller.due_us = now_us + ASK_AGAIN_US;
                    }
                }
            }
        }
        for (node, watch, target) in asks {
            self.send(node, Body::KeyWatch(Message::Ask { watch, target }), effects);
        }
        for (node, watches) in renewed {
            for watches in watches.chunks(RENEWED_MAX) {
                let watches = watches.to_vec();
                self.send(node, Body::KeyWatch(Message::Renew { watches }), effects);
            }
        }
        if let Some(node) = silent {
            self.ask_others_than(node, effects);
        }
        self.watches.due_us = self.watches.first_due_us();
        if let Some(due_us) = self.watches.due_us {
            self.timers.set(due_us, Timer::Watches);
        }
    }

    /// A node says something about a watch.
    pub(super) fn hear_of_watch(
        &mut self,
        from: NodeId,
        message: Message,
        effects: &mut Vec<Effect>,
    ) {
        self.routing.has_answered(from);
        let now_us = self.now_us;
        match message {
            Message::Watching { watch } => {
                let Some(watched) = self.watches.by_number.get_mut(&watch) else {
                    return self.send(from, Body::KeyWatch(Message::End { watch }), effects);
                };
                let Some(teller) = watched.tellers.get_mut(&from) else { return };
                (teller.is_registered, teller.heard) = (true, 0);
                (teller.answered_us, teller.due_us) = (now_us, now_us + RENEW_US);
                if watched.tellers.values().all(|it| it.is_registered) && !watched.is_begun {
                    watched.is_begun = true;
                    if self.rules.hold(Rule::K5) {
                        effects.push(Effect::Watch { watch, news: WatchNews::Began });
                    }
                }
            }
            Message::Changed { watch, told, changes } => {
                let Some(watched) = self.watches.by_number.get_mut(&watch) else {
                    return self.send(from, Body::KeyWatch(Message::End { watch }), effects);
                };
                let Some(teller) = watched.tellers.get_mut(&from) else { return };
                teller.answered_us = now_us;
                if told > teller.heard {
                    teller.heard = told;
                    effects.push(Effect::Watch { watch, news: WatchNews::Changed(changes) });
                }
                self.send(from, Body::KeyWatch(Message::Heard { watch, told }), effects);
            }
            Message::Renewed { unknown } => {
                for (watch, watched) in &mut self.watches.by_number {
                    let Some(teller) = watched.tellers.get_mut(&from) else { continue };
                    teller.answered_us = now_us;
                    if unknown.contains(watch) {
                        (teller.is_registered, teller.due_us) = (false, now_us);
                        watched.is_begun = false;
                    }
                }
                self.ask_tellers(effects);
            }
            Message::Notice { watch, notice } => self.hear_notice(from, watch, notice, effects),
            Message::Notified { number, notified } => self.notified(number, notified, effects),
            // Not for a node to say.
            Message::Ask { .. }
            | Message::Renew { .. }
            | Message::Heard { .. }
            | Message::End { .. }
            | Message::Notify { .. }
            | Message::Acknowledge { .. } => {}
        }
    }

    /// A node does not take a watch, and says why. Whether there is such a watch.
    pub(super) fn watch_refused(
        &mut self,
        watch: u64,
        abort: &Abort,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let is_there = self.watches.by_number.contains_key(&watch);
        self.lose_watch(watch, abort.clone(), effects);
        is_there
    }

    fn lose_watch(&mut self, watch: u64, abort: Abort, effects: &mut Vec<Effect>) {
        if self.watches.by_number.contains_key(&watch) {
            self.end_watch(watch, effects);
            effects.push(Effect::Watch { watch, news: WatchNews::Ended(abort) });
        }
    }
}

const TOO_MANY: &str = "this client watches as much as it may; end some of its watches";
