//! Leases of keys and groups that this client holds, or asks for (K1, K7).
//!
//! ```text
//!   a call ─► Ask ─► the key's authority ─► Granted: held ─► Renew, a quarter of the time later
//!              ▲ silent, not here: again                        │ unknown there: Keep (K3)
//!              └ waits in line: again each second               └ silent: again, until it is over
//! ```
//!
//! All that is held of one node's keys is renewed in one message. A lease is held until its
//! duration has passed from when the last question was sent that was answered: so the holder knows
//! by itself when it is over, and its user is told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tyr_types::lease::{check_duration, duration_max};
use tyr_types::limits::LEASES_OF_CLIENT_MAX;
use tyr_types::{ErrorKind, LeaseMode, Leased, NodeId};

use super::effect::{Answer, Effect, LeaseNews};
use super::event::{CallId, LeaseCall};
use super::timer::Timer;
use super::{Session, Task, fail};
use crate::abort::Abort;
use crate::key_lease::{Ask, Message, RENEWED_MAX, Wish};
use crate::map::DROPPED;
use crate::message::Body;

/// A question is asked again after so long, in microseconds.
const AGAIN_US: u64 = 1_000_000;

/// A node that gives no leases of the key just now is asked again after so long.
const PAUSE_US: u64 = 20_000;

/// A renewal that was not answered is sent again after so long.
const RENEW_AGAIN_US: u64 = 250_000;

const _: () = assert!(PAUSE_US < AGAIN_US, "who must be asked anew is, first");

/// A call that asks for a lease.
#[derive(Clone, Debug)]
pub(super) struct Leasing {
    /// The number that the lease will have.
    lease: u64,
    what: LeaseCall,
    /// Who was asked last.
    asked: Option<NodeId>,
    /// Who has it wait in line.
    is_in_line: bool,
    /// Why it was not given, by who cannot just now.
    pub refusal: Option<Abort>,
}

impl Leasing {
    /// A call for the lease of this number.
    pub fn new(lease: u64, what: LeaseCall) -> Self {
        Self { lease, what, asked: None, is_in_line: false, refusal: None }
    }

    /// What a call that has taken too long ends with.
    pub fn lateness(&self) -> Option<Abort> {
        match self.is_in_line {
            true => Some(Abort::at(self.what.of.name(), ErrorKind::Conflict, STILL_HELD)),
            false => self.refusal.clone(),
        }
    }
}

/// A lease that is held.
#[derive(Clone, Debug)]
struct Held {
    of: Leased,
    mode: LeaseMode,
    duration_us: u64,
    /// Who gave it, or held it on.
    by: NodeId,
    until_us: u64,
    /// When it is renewed.
    renew_us: u64,
    is_recalled: bool,
}

impl Held {
    /// A question about it that was sent then is answered.
    fn hold_on(&mut self, sent_us: u64) {
        if sent_us + self.duration_us > self.until_us {
            self.until_us = sent_us + self.duration_us;
            self.renew_us = sent_us + self.duration_us / 4;
        }
    }

    fn due_us(&self) -> u64 {
        self.renew_us.min(self.until_us)
    }
}

/// The leases of this client.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    /// Those that are held; at most [`LEASES_OF_CLIENT_MAX`] with those that are asked for.
    held: BTreeMap<u64, Held>,
    /// The calls that ask for one.
    pub asking: BTreeMap<u64, CallId>,
    /// When they are looked at next, as the timer has it: when something is due, or before.
    pub due_us: Option<u64>,
}

impl Leases {
    pub fn invariants(&self) {
        assert!(self.held.keys().all(|lease| !self.asking.contains_key(lease)));
        assert!(self.held.len() + self.asking.len() <= LEASES_OF_CLIENT_MAX, "they are bounded");
        if let Some(first_us) = self.held.values().map(Held::due_us).min() {
            let is_noticed = self.due_us.is_some_and(|due_us| due_us <= first_us);
            assert!(is_noticed, "K1: what is over is noticed");
        }
    }
}

impl Session {
    /// A call asks for a lease.
    pub(super) fn lease(&mut self, call: CallId, what: LeaseCall, effects: &mut Vec<Effect>) {
        if let Err(error) = check_duration(Duration::from_micros(what.duration_us)) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return fail(call, abort, effects);
        }
        if self.leases.held.len() + self.leases.asking.len() >= LEASES_OF_CLIENT_MAX {
            let abort = Abort::at(what.of.name(), ErrorKind::Unavailable, TOO_MANY);
            return fail(call, abort, effects);
        }
        let mut what = what;
        let duration_max = duration_max(self.map.is_guarded(what.of.keyspace()));
        what.duration_us = what.duration_us.min(duration_max.as_micros() as u64);
        self.questions_begun += 1;
        let lease = self.numbers.of(self.questions_begun);
        let wait_us = what.wait_us.unwrap_or(self.config.deadline_us);
        self.leases.asking.insert(lease, call);
        let task = Task::Lease(Leasing::new(lease, what));
        self.enter_until(call, task, self.now_us.saturating_add(wait_us));
        self.ask_for_lease(call, effects);
    }

    /// Asks for a lease, for the first time or again.
    pub(super) fn ask_for_lease(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Lease(leasing)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let of = &leasing.what.of;
        if self.map.is_dropped(of.keyspace()) {
            return self.give_up(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        if self.map.chunk_size(of.keyspace()).is_none() {
            return self.is_stuck(call, effects);
        }
        if let Err(error) = self.map.check_leased(of) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return self.give_up(call, abort, effects);
        }
        let served = self.map.check_readable(of.name(), 0).err();
        let authority = self.map.holders(of.name(), 0).first().copied();
        let (client, now_us) = (self.client, self.now_us);
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Lease(leasing) = &mut in_flight.task else { return };
        in_flight.stuck = None;
        leasing.refusal = served.or(leasing.refusal.take());
        let (lease, before) = (leasing.lease, leasing.asked);
        let LeaseCall { of, mode, duration_us, wait_us } = leasing.what.clone();
        if let Some(to) = authority {
            leasing.is_in_line &= before == Some(to);
            leasing.asked = Some(to);
            let wish = if wait_us.is_some() { Wish::Wait } else { Wish::Try };
            let ask = Ask { client, lease, of, mode, duration_us, sent_us: now_us, wish };
            self.send(to, Body::KeyLease(Message::asking(ask)), effects);
        }
        self.resume_in(call, AGAIN_US);
    }

    /// An answer has not come, or who waits in line asks again.
    pub(super) fn resume_lease(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Lease(leasing)) = self.calls.get(&call).map(|it| &it.task) else { return };
        if let Some(asked) = leasing.asked.filter(|_| !leasing.is_in_line) {
            self.ask_others_than(asked, effects);
        }
        self.ask_for_lease(call, effects);
    }

    /// A node says something about a lease.
    pub(super) fn hear_of_lease(
        &mut self,
        from: NodeId,
        message: Message,
        effects: &mut Vec<Effect>,
    ) {
        self.routing.has_answered(from);
        match message {
            Message::Granted { lease, sent_us } => self.granted(from, lease, sent_us, effects),
            Message::Waits { lease } => {
                let call = self.leases.asking.get(&lease).and_then(|call| self.calls.get_mut(call));
                if let Some(Task::Lease(leasing)) = call.map(|it| &mut it.task) {
                    leasing.is_in_line = true;
                }
            }
            Message::Renewed { sent_us, held, unknown } => {
                for lease in held {
                    self.hold_on(from, lease, sent_us, effects);
                }
                for lease in unknown {
                    self.keep(from, lease, effects);
                }
            }
            Message::Recall { lease } => match self.leases.held.get_mut(&lease) {
                Some(held) if held.is_recalled => {}
                Some(held) => {
                    held.is_recalled = true;
                    effects.push(Effect::Lease { lease, news: LeaseNews::Recalled });
                }
                // Nobody here has it: what gave it back was lost.
                None if !self.leases.asking.contains_key(&lease) => {
                    self.send(from, Body::KeyLease(Message::GiveBack { lease }), effects);
                }
                None => {}
            },
            // Not for a node to say.
            Message::Ask { .. }
            | Message::AskGroup { .. }
            | Message::Renew { .. }
            | Message::GiveBack { .. } => {}
        }
    }

    /// A lease is given, or held on.
    fn granted(&mut self, from: NodeId, lease: u64, sent_us: u64, effects: &mut Vec<Effect>) {
        if self.leases.held.contains_key(&lease) {
            return self.hold_on(from, lease, sent_us, effects);
        }
        let call = self.leases.asking.get(&lease).copied();
        let Some(Task::Lease(leasing)) = call.and_then(|it| self.calls.get(&it)).map(|it| &it.task)
        else {
            // Nobody waits for it any more.
            return self.send(from, Body::KeyLease(Message::GiveBack { lease }), effects);
        };
        let LeaseCall { of, mode, duration_us, .. } = leasing.what.clone();
        if sent_us > self.now_us || sent_us + duration_us <= self.now_us {
            return; // It is over already, or was never asked for; the question is sent again.
        }
        let until_us = sent_us + duration_us;
        let renew_us = sent_us + duration_us / 4;
        let held = Held { of, mode, duration_us, by: from, until_us, renew_us, is_recalled: false };
        let call = call.expect("it was just there");
        if let Some(Task::Lease(leasing)) = self.calls.get_mut(&call).map(|it| &mut it.task) {
            leasing.asked = None; // It is not to be given back.
        }
        self.leave(call, effects);
        self.look_at_leases(held.due_us());
        self.leases.held.insert(lease, held);
        effects.push(Effect::Done { call, answer: Answer::Leased { lease, until_us } });
    }

    fn hold_on(&mut self, from: NodeId, lease: u64, sent_us: u64, effects: &mut Vec<Effect>) {
        let Some(held) = self.leases.held.get_mut(&lease) else {
            return self.send(from, Body::KeyLease(Message::GiveBack { lease }), effects);
        };
        if sent_us > self.now_us || held.until_us <= self.now_us {
            return;
        }
        let before_us = held.until_us;
        held.by = from;
        held.hold_on(sent_us);
        let (until_us, due_us) = (held.until_us, held.due_us());
        // The answer may be to an earlier question than the last, and be due again sooner.
        self.look_at_leases(due_us);
        if until_us > before_us {
            effects.push(Effect::Lease { lease, news: LeaseNews::Held { until_us } });
        }
    }

    /// A node does not know what this client holds: another gave it (K3).
    fn keep(&mut self, from: NodeId, lease: u64, effects: &mut Vec<Effect>) {
        let Some(Held { of, mode, duration_us, until_us, .. }) =
            self.leases.held.get(&lease).cloned()
        else {
            return;
        };
        if until_us > self.now_us && self.map.holders(of.name(), 0).first() == Some(&from) {
            let (client, sent_us, wish) = (self.client, self.now_us, Wish::Keep);
            let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
            self.send(from, Body::KeyLease(Message::asking(ask)), effects);
        }
    }

    /// A node does not give a lease, and says why.
    pub(super) fn lease_refused(&mut self, lease: u64, abort: Abort, effects: &mut Vec<Effect>) {
        if self.leases.held.contains_key(&lease) {
            return self.lose(lease, effects);
        }
        if let Some(call) = self.leases.asking.get(&lease).copied() {
            self.give_up(call, abort, effects);
        }
    }

    /// A node gives no leases of this key just now: it has no lease of its own, or another does.
    pub(super) fn lease_not_here(&mut self, from: NodeId, lease: u64) {
        let Some(call) = self.leases.asking.get(&lease).copied() else { return };
        let Some(Task::Lease(leasing)) = self.calls.get_mut(&call).map(|it| &mut it.task) else {
            return;
        };
        if leasing.asked == Some(from) {
            leasing.is_in_line = false;
            self.resume_in(call, PAUSE_US);
        }
    }

    /// A call for a lease is over without one: nobody is to give it.
    pub(super) fn withdraw_lease(&mut self, leasing: &Leasing, effects: &mut Vec<Effect>) {
        let lease = leasing.lease;
        self.leases.asking.remove(&lease);
        if let Some(asked) = leasing.asked {
            self.send(asked, Body::KeyLease(Message::GiveBack { lease }), effects);
        }
    }

    /// The user needs a lease no more.
    pub(super) fn give_back(&mut self, lease: u64, effects: &mut Vec<Effect>) {
        if let Some(held) = self.leases.held.remove(&lease) {
            self.send(held.by, Body::KeyLease(Message::GiveBack { lease }), effects);
        }
    }

    fn lose(&mut self, lease: u64, effects: &mut Vec<Effect>) {
        if self.leases.held.remove(&lease).is_some() {
            effects.push(Effect::Lease { lease, news: LeaseNews::Lost });
        }
    }

    /// Another may be the authority of what is held: it is asked at once.
    pub(super) fn reroute_leases(&mut self) {
        let (map, now_us) = (&self.map, self.now_us);
        let mut is_any = false;
        for held in self.leases.held.values_mut() {
            if map.holders(held.of.name(), 0).first() != Some(&held.by) {
                (held.renew_us, is_any) = (now_us, true);
            }
        }
        if is_any {
            self.look_at_leases(now_us);
        }
    }

    /// What is over ends, and what is due is renewed: all of a node's keys together.
    pub(super) fn renew_leases(&mut self, effects: &mut Vec<Effect>) {
        self.leases.due_us = None;
        let now_us = self.now_us;
        let is_over = |held: &Held| held.until_us <= now_us;
        let over = self.leases.held.iter().filter(|(_, held)| is_over(held));
        let over: Vec<u64> = over.map(|(lease, _)| *lease).collect();
        for lease in over {
            self.leases.held.remove(&lease);
            effects.push(Effect::Lease { lease, news: LeaseNews::Lost });
        }
        let map = &self.map;
        let authority = |held: &Held| map.holders(held.of.name(), 0).first().copied();
        let due = self.leases.held.values().filter(|held| held.renew_us <= now_us);
        let due: BTreeSet<NodeId> = due.filter_map(authority).collect();
        let mut renewed: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
        for (lease, held) in &mut self.leases.held {
            let to = authority(held);
            if let Some(to) = to.filter(|to| due.contains(to)) {
                renewed.entry(to).or_default().push(*lease);
                held.renew_us = now_us + RENEW_AGAIN_US;
            } else if held.renew_us <= now_us {
                held.renew_us = now_us + RENEW_AGAIN_US; // Nobody is there to ask.
            }
        }
        for (to, leases) in renewed {
            for leases in leases.chunks(RENEWED_MAX) {
                let (sent_us, leases) = (now_us, leases.to_vec());
                self.send(to, Body::KeyLease(Message::Renew { sent_us, leases }), effects);
            }
        }
        if let Some(due_us) = self.leases.held.values().map(Held::due_us).min() {
            self.look_at_leases(due_us);
        }
    }

    /// Leases are looked at then, if not before.
    fn look_at_leases(&mut self, due_us: u64) {
        if self.leases.due_us.is_some_and(|before_us| before_us <= due_us) {
            return;
        }
        if let Some(before_us) = self.leases.due_us.replace(due_us) {
            self.timers.clear(before_us, Timer::Leases);
        }
        self.timers.set(due_us, Timer::Leases);
    }
}

const STILL_HELD: &str = "others held leases that exclude this one for as long as it was waited \
                          for; try again";
const TOO_MANY: &str = "this client holds as many leases as it may; give some back";
