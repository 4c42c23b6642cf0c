//! When all has ended, and what is there then.
//!
//! After everything was mended nothing may stay under way for ever (liveness): calls are answered,
//! nodes are up again and have what the map gives them, nobody knows of a transaction that is not
//! finished. Then the checkers look at what clients saw and at what every node holds.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use tyr_protocol::map::NodeState;
use tyr_protocol::member::Member;
use tyr_types::{BlobName, TransactionId};

use super::World;
use super::node::Body;
use crate::checker::{self, Allowed, Deed, Fate, Replicas, Staged};
use crate::random::Random;
use crate::report::Report;
use crate::setup::Network;

/// How long it may take until all has ended: some leases, and a client's patience.
pub const SETTLE_MAX_US: u64 = 60_000_000;

/// So long after everything was mended the cluster is probed, in microseconds.
pub const PROBE_AFTER_US: u64 = 20_000_000;

/// What is asked from then on is served within so many microseconds.
pub const SERVED_WITHIN_US: u64 = 8_000_000;

/// Nodes look for pieces that are late each second: after so long they have.
const PIECES_LOOK_US: u64 = 3_000_000;

impl World {
    /// Whether the run is over; looked at now and then.
    pub(super) fn look_for_end(&mut self) {
        if !self.is_mended {
            return;
        }
        let left = self.left();
        if left.is_none() {
            self.settled_us.get_or_insert(self.now_us);
        }
        let Some(left) = left.or_else(|| self.runner.unprobed()) else {
            self.is_over = true;
            return;
        };
        // The probe may take its time as a whole: what it asks must be answered soon, one by one.
        let probing_us = if self.settled_us.is_some() { SETTLE_MAX_US } else { 0 };
        if self.now_us > self.setup.duration_us + SETTLE_MAX_US + probing_us {
            self.is_over = true;
            let max_s = (SETTLE_MAX_US + probing_us) / 1_000_000;
            let s = self.setup.duration_us / 1_000_000;
            let mut text =
                format!("liveness: everything was mended at {s} s, and {max_s} s later {left}");
            for member in self.nodes.iter().filter_map(super::Node::member) {
                let _ = write!(text, "\n{}", member.brief());
            }
            self.violations.push(text);
        }
    }

    /// From now on everything must be served, and soon: a client on each keyspace sees to it.
    ///
    /// In one run of two only when all that was under way has ended: what hangs until somebody
    /// touches it is not to be helped.
    pub(super) fn probe(&mut self) {
        let is_early = Random::of(self.setup.seed, "probe", 0).percent(50);
        if !is_early && self.settled_us.is_none() && !self.is_over {
            return self.queue.push(self.now_us + 500_000, super::Happening::Probe);
        }
        let chunks = self.setup.keyspaces.iter().map(|keyspace| keyspace.chunk_size);
        self.runner.probe(&chunks.collect::<Vec<_>>());
        for client in usize::from(self.setup.clients)..self.clients.len() {
            self.queue.push(self.now_us, super::Happening::Begin { client });
        }
    }

    /// What has not ended yet, in words.
    fn left(&self) -> Option<String> {
        if let Some(client) = self.clients.iter().position(|client| !client.session.is_empty()) {
            return Some(format!("client {client} waits for an answer"));
        }
        if !self.runner.is_idle() {
            return Some("a client is in the middle of something".to_owned());
        }
        if self.monitors.is_changing() {
            return Some("the map still changes".to_owned());
        }
        let map = self.monitors.map();
        for (id, it) in &map.nodes {
            let is_member = map.ring.share(*id).is_some();
            if is_member && it.state != NodeState::Up {
                return Some(format!("node {} is {}", id.0, it.state.name()));
            }
        }
        for machine in &self.nodes {
            let Some(member) = machine.member() else { continue };
            let (in_flight, reads) = (member.in_flight(), member.waiting_reads());
            if in_flight > 0 {
                return Some(format!("{in_flight} are in flight"));
            }
            if reads > 0 {
                return Some(format!("{reads} reads wait at node {}", machine.id.0));
            }
            if let Body::Model(model) = &machine.body
                && let Some(process) = &model.process
                && let Some((blob, chunk)) = process.store.rot().any()
            {
                return Some(format!("node {} cannot read {blob} chunk {chunk}", machine.id.0));
            }
        }
        None
    }

    /// What holds in every machine between steps.
    pub(super) fn check_machines(&mut self) {
        for member in self.nodes.iter().filter_map(super::Node::member) {
            member.invariants();
        }
        for client in &self.clients {
            client.session.invariants();
        }
        self.monitors.invariants();
    }

    /// The run is over: judges what clients saw and what is there.
    pub(super) fn finish(&mut self) {
        self.check_machines();
        if self.knowledge.lost().is_some() {
            return self.judge_beyond_promise();
        }
        for node in self.all() {
            self.follow(node);
        }
        let applied = self.lineage.applied();
        let map = Arc::clone(self.monitors.map());
        let holders = |blob: &BlobName, chunk: u64| map.holders(blob, chunk).to_vec();
        let running = self.nodes.iter_mut();
        let running = running.filter_map(|machine| Some((machine.id, machine.replica()?)));
        let chunk_sizes = self.setup.store().chunk_sizes;
        let replicas = Replicas { chunk_sizes, nodes: running.collect(), holders: &holders };
        let is_settled = self.violations.is_empty();
        let replicas = is_settled.then_some(&replicas);
        let history = self.runner.history();
        let (mut wrong, end) = checker::check(history, &applied, replicas, &self.allowed());
        let probes = &history.entries[self.runner.probed_from()..];
        wrong.extend(checker::probes_are_served(probes, SERVED_WITHIN_US, &map).err());
        if wrong.is_empty() {
            wrong = self.runner.check(&end);
        }
        let Network { loss, duplication, .. } = self.setup.network;
        if self.setup.faults.is_of_clocks() && (loss, duplication) == (0, 0) {
            let staged = self.nodes.iter().filter_map(super::Node::member).flat_map(staged);
            wrong.extend(checker::pieces_are_given_back(history, staged).err());
        }
        self.violations.extend(wrong);
    }

    /// Of a run in which more was lost than is promised to be borne only this is judged: what was
    /// answered as committed, cannot abort for what is there, and is on a disk that is left, is
    /// committed.
    pub(super) fn judge_beyond_promise(&mut self) {
        if self.knowledge.lost().is_none() {
            return;
        }
        let is_ended = self.is_over && self.violations.is_empty();
        self.violations.clear();
        if !is_ended {
            return;
        }
        let committed = self.runner.history().entries.iter().filter_map(|it| match &it.deed {
            Deed::Transaction(it) if matches!(it.fate, Fate::Committed(_)) => it.id,
            _ => None,
        });
        let committed: BTreeSet<TransactionId> = committed.collect();
        let unpaid = self.knowledge.unpaid().filter(|id| committed.contains(id));
        self.violations.extend(unpaid.map(|id| {
            format!(
                "{:x} was acknowledged, is without reads and conditions, and stood as validated \
                 on a disk that is left; nobody knows that it is committed",
                id.0
            )
        }));
    }

    /// Which refusals this run's faults make legitimate.
    fn allowed(&self) -> Allowed {
        let setup = &self.setup;
        let is_healthy = setup.faults.faults().is_empty() && setup.network.loss == 0;
        Allowed {
            is_unavailable: !is_healthy,
            are_pieces_lost: !setup.faults.is_growth() || setup.network.loss > 0,
            is_damaged: setup.faults.has_rot(),
            snapshot_us: is_healthy.then_some(setup.versions.read_timeout_us),
            linger_us: setup.versions.linger_us,
            dropped: setup.faults.dropped(),
        }
    }

    /// What came of the run.
    pub(super) fn report(self) -> Report {
        let mended_us = self.setup.duration_us;
        let mut counters = self.counters;
        for entry in &self.runner.history().entries {
            counters.count(entry);
        }
        Report {
            trace_hash: self.tracer.hash(),
            steps: self.steps,
            simulated_us: self.now_us,
            settled_us: self.settled_us.unwrap_or(self.now_us).saturating_sub(mended_us),
            history: self.runner.into_history(),
            violations: self.violations,
            unjudged: self.knowledge.lost(),
            trace: self.tracer.into_lines(),
            counters,
        }
    }
}

/// The pieces that a node has, those among them whose time was over some looks ago.
fn staged(member: &Member) -> impl Iterator<Item = Staged> + '_ {
    let (node, clock_us) = (member.node(), member.clock().clock);
    member.staged_until().map(move |(id, until_us)| {
        let is_late = until_us.saturating_add(PIECES_LOOK_US) < clock_us;
        Staged { node, id, is_late }
    })
}
