//! What a session does about its map: asks for a newer one, and goes on by it.

use std::sync::Arc;

use tyr_types::{ErrorKind, NodeId};

use super::event::CallId;
use super::{Effect, Session, Task, routing};
use crate::abort::Abort;
use crate::map::ClusterMap;
use crate::message::Body;

/// So many nodes must not know a keyspace before it counts as absent: some are behind.
const CONFIRMED_MIN: u32 = 3;

impl Session {
    /// Asks for the newest map, of this node or of one that lives, unless it is asked for already.
    pub(super) fn fetch_map(&mut self, from: Option<NodeId>, effects: &mut Vec<Effect>) {
        if self.now_us < self.fetching_until_us {
            return;
        }
        let live: Vec<NodeId> = self.map.live().collect();
        let chosen = self.routing.choose(&live, &routing::Tries::new(), self.now_us);
        if let Some(to) = from.or(chosen) {
            self.fetching_until_us = self.now_us + self.config.read_retry_us;
            self.send(to, Body::FetchMap, effects);
        }
    }

    /// A node is silent. It may be gone, and nobody else would say so: another is asked for its
    /// map, unless one has just told it.
    pub(super) fn ask_others_than(&mut self, silent: NodeId, effects: &mut Vec<Effect>) {
        let is_told = |told_us| self.now_us < told_us + self.config.read_retry_us;
        if self.told_us.is_some_and(is_told) {
            return;
        }
        let live: Vec<NodeId> = self.map.live().filter(|other| *other != silent).collect();
        let other = self.routing.choose(&live, &routing::Tries::new(), self.now_us);
        self.fetch_map(other, effects);
    }

    /// A node said its newest map: what waited for a newer one goes on.
    pub(super) fn install(&mut self, map: Arc<ClusterMap>, effects: &mut Vec<Effect>) {
        (self.fetching_until_us, self.told_us) = (0, Some(self.now_us));
        let is_newer = map.epoch > self.map.epoch;
        if is_newer {
            self.map = map;
            self.reroute_questions(effects);
            self.reroute_leases();
            self.reroute_watches(effects);
        }
        let waiting: Vec<CallId> = self.calls.keys().copied().collect();
        for call in waiting {
            self.reroute_call(call, is_newer, effects);
        }
    }

    pub(super) fn reroute_call(&mut self, call: CallId, is_newer: bool, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        match (&in_flight.task, &mut in_flight.stuck) {
            (Task::Commit(submission), _) if is_newer && submission.needs_resend(&self.map) => {
                self.submit(call, effects);
            }
            (Task::Read(_), Some(_)) if is_newer => self.advance(call, effects),
            (Task::Scan(_), _) if is_newer => self.reroute_scan(call, effects),
            (Task::Lease(_), _) if is_newer => self.ask_for_lease(call, effects),
            // By another map it may have to be elsewhere: it is sent there, for the nodes that
            // pass it on do not wait for maps.
            (Task::Stage(_), _) if is_newer => self.send_piece(call, effects),
            (Task::Notify(_), _) if is_newer => self.send_notice(call, effects),
            (Task::Moment(_), _) if is_newer => self.reroute_moment(call, effects),
            (_, Some(confirmed)) if *confirmed + 1 >= CONFIRMED_MIN => {
                let reason = "there is no such keyspace; create it, or look its name up again";
                self.give_up(call, Abort::new(ErrorKind::NotFound, reason), effects);
            }
            (_, Some(confirmed)) => *confirmed += 1,
            (_, None) => {}
        }
    }

    /// The map does not know a keyspace. One that was just created may be in a newer one.
    pub(super) fn is_stuck(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        in_flight.stuck.get_or_insert(0);
        self.resume_in(call, self.config.read_retry_us);
        self.fetch_map(None, effects);
    }
}
