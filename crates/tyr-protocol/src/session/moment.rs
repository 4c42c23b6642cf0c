//! A call that takes a moment of everything: each node that is the authority of anything is asked
//! for its clock, and counts from there on; the highest is S, which all of them are told (R6, V5).
//!
//! ```text
//!   all authorities ─► their clocks ─► S, to all of them ─► they know ─► S, with what to end
//!        ▲   silent: after a second        │
//!        │   not here: after a pause       │ not here: somebody does not know the first question
//!        └── other authorities: all anew ◄─┘ any more
//! ```
//!
//! All of them go by one map, so that nobody is missed who acknowledged anything; when that is
//! another one, all begins anew. In a cluster that knows no such moments it is the highest clock of
//! one blob of each authority ([`super::probes`]), and nobody counts it.

use std::collections::BTreeSet;

use tyr_types::{Epoch, NodeId, Timestamp};

use super::effect::{Answer, Effect};
use super::event::{Began, CallId, Want};
use super::reading::Reading;
use super::{Session, Task, fail};
use crate::abort::Abort;
use crate::level::LEVEL_EVERYTHING;
use crate::message::{Body, ReadPart};
use crate::rule::Rule;

/// After how long a node is asked again: a message may have been lost. It answers at once.
const AGAIN_US: u64 = 500_000;

/// A node that does not tell just now is asked again after so long.
const PAUSE_US: u64 = 20_000;

const _: () = assert!(PAUSE_US < AGAIN_US, "who must be asked anew is, first");

/// A call that takes a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    /// The placement that all go by; `None` before anybody was asked.
    moved: Option<Epoch>,
    /// The authorities. Bounded by the nodes of the map.
    nodes: BTreeSet<NodeId>,
    /// Those that have not answered the question of now.
    open: BTreeSet<NodeId>,
    /// The number of the question of now.
    number: u64,
    /// The highest clock so far.
    highest: Timestamp,
    /// The number of the first question, when all have answered it.
    first: Option<u64>,
}

impl Moment {
    /// The question of now, when it has no answer yet.
    pub fn number(&self) -> Option<u64> {
        (!self.open.is_empty()).then_some(self.number)
    }

    fn question(&self) -> Body {
        let placed = self.first.map(|first| (first, self.highest));
        Body::Moment { read: self.number, placed }
    }

    fn is_answered_by(&self, part: &ReadPart) -> bool {
        match self.first {
            None => part.at.is_some(),
            Some(_) => part.at == Some(self.highest),
        }
    }

    /// What nodes may count for it.
    pub fn began(&self) -> Vec<Began> {
        let began = |read| Began { read, nodes: self.nodes.iter().copied().collect() };
        let is_asked = !self.nodes.is_empty();
        self.first.into_iter().chain(is_asked.then_some(self.number)).map(began).collect()
    }
}

impl Session {
    /// A moment of everything is wanted.
    pub(super) fn begin_moment(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        if self.map.level < LEVEL_EVERYTHING {
            let probes = self.probes.blobs(&self.map);
            if probes.is_empty() {
                return no_keyspace(call, effects);
            }
            match Reading::many(probes.into_iter().map(Want::stat).collect(), self.rules) {
                Ok(reading) => self.read(call, reading, effects),
                Err(abort) => fail(call, abort, effects),
            }
            return;
        }
        self.enter(call, Task::Moment(Moment::default()));
        self.ask_for_moment(call, effects);
    }

    /// All are asked, by the newest map.
    fn ask_for_moment(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        self.withdraw_moment(call, effects);
        let (moved, nodes) = (self.map.moved, self.probes.authorities(&self.map));
        if nodes.is_empty() {
            self.leave(call, effects);
            return no_keyspace(call, effects);
        }
        let Some(Task::Moment(moment)) = self.calls.get_mut(&call).map(|it| &mut it.task) else {
            return;
        };
        *moment = Moment { moved: Some(moved), nodes, ..Moment::default() };
        self.ask_all(call, effects);
    }

    /// A question to all of them.
    fn ask_all(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        self.questions_begun += 1;
        let number = self.numbers.of(self.questions_begun);
        let Some(Task::Moment(moment)) = self.calls.get_mut(&call).map(|it| &mut it.task) else {
            return;
        };
        moment.number = number;
        moment.open = moment.nodes.clone();
        self.moments.insert(number, call);
        self.ask_open(call, effects);
    }

    /// Those that have not answered are asked (again).
    fn ask_open(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Moment(moment)) = self.calls.get(&call).map(|it| &it.task) else { return };
        debug_assert!(!moment.open.is_empty(), "who has all answers has ended");
        let (body, open) = (moment.question(), moment.open.clone());
        for node in open {
            self.send(node, body.clone(), effects);
        }
        self.resume_in(call, AGAIN_US);
    }

    /// Somebody was silent, or not ready.
    pub(super) fn resume_moment(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Moment(moment)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let Some(silent) = moment.open.first().copied() else {
            return self.ask_for_moment(call, effects);
        };
        self.ask_others_than(silent, effects);
        self.ask_open(call, effects);
    }

    /// A node has answered; whether it was asked this.
    pub(super) fn moment_told(
        &mut self,
        from: NodeId,
        part: &ReadPart,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(call) = self.moments.get(&part.read).copied() else { return false };
        let rules = self.rules;
        let Some(Task::Moment(moment)) = self.calls.get_mut(&call).map(|it| &mut it.task) else {
            return true;
        };
        if !moment.is_answered_by(part) || !moment.open.remove(&from) {
            return true; // Doubled, late, or not understood.
        }
        let clock = part.at.unwrap_or_default();
        moment.highest = match rules.hold(Rule::R6) {
            true => moment.highest.max(clock),
            false => clock,
        };
        if !moment.open.is_empty() {
            return true;
        }
        self.moments.remove(&part.read);
        match moment.first {
            None => {
                moment.first = Some(moment.number);
                self.ask_all(call, effects);
            }
            Some(_) => {
                let at = Some(moment.highest);
                let nodes = moment.nodes.iter().copied().collect();
                let began = Some(Began { read: moment.number, nodes });
                moment.nodes.clear(); // Its caller ends it.
                self.leave(call, effects);
                effects.push(Effect::Done { call, answer: Answer::Moment { at, began } });
            }
        }
        true
    }

    /// A node does not tell just now, or does not know the first question any more: then what is
    /// at S may have gone, and all begins anew.
    pub(super) fn moment_not_here(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let Some(call) = self.moments.get(&number).copied() else { return };
        let Some(Task::Moment(moment)) = self.calls.get(&call).map(|it| &it.task) else { return };
        if moment.first.is_some() {
            self.withdraw_moment(call, effects);
            if let Some(in_flight) = self.calls.get_mut(&call) {
                in_flight.task = Task::Moment(Moment::default());
            }
        }
        self.resume_in(call, PAUSE_US);
    }

    /// A node refuses: it would again.
    pub(super) fn moment_refused(&mut self, number: u64, abort: &Abort, effects: &mut Vec<Effect>) {
        if let Some(call) = self.moments.get(&number).copied() {
            self.leave(call, effects);
            fail(call, abort.clone(), effects);
        }
    }

    /// There is a newer map: if others are authorities by it all begins anew.
    pub(super) fn reroute_moment(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let nodes = self.probes.authorities(&self.map);
        let Some(Task::Moment(moment)) = self.calls.get(&call).map(|it| &it.task) else { return };
        match moment.moved == Some(self.map.moved) && moment.nodes == nodes {
            true => self.ask_open(call, effects),
            false => self.ask_for_moment(call, effects),
        }
    }

    /// Checks that its question is known to be its; how many questions that is.
    pub(super) fn check_moment(&self, call: CallId, moment: &Moment) -> usize {
        let Some(number) = moment.number() else { return 0 };
        assert_eq!(self.moments.get(&number), Some(&call), "its question is known");
        1
    }

    /// Nobody needs what nodes count for it.
    fn withdraw_moment(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Moment(moment)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let (number, began) = (moment.number(), moment.began());
        number.map(|number| self.moments.remove(&number));
        began.iter().for_each(|began| self.end(began, effects));
    }
}

/// In a cluster without a keyspace there is nothing to read.
fn no_keyspace(call: CallId, effects: &mut Vec<Effect>) {
    effects.push(Effect::Done { call, answer: Answer::Moment { at: None, began: None } });
}
