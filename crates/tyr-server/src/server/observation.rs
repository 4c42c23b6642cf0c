//! What a node shows of itself: numbers for metrics, whether it serves, and how it stands.
//!
//! Looking is cheap and holds nobody up for long: counters are read as they are, and the engine is
//! looked at once. Nothing here changes anything, so any thread may look at any time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tyr_engine::Engine;
use tyr_protocol::map::{ClusterMap, MapNode, Membership};
use tyr_protocol::member::INCARNATIONS_PER_START;
use tyr_protocol::message::Address;
use tyr_protocol::movement::Progress;
use tyr_protocol::movement::scrub::ScrubCounts;
use tyr_types::NodeId;

use super::Server;
use super::disk::{DiskReport, NodeDisk};
use super::metadata_follower::MetadataFollower;
use super::report::{MapReport, NodeReport, SeatReport};
use crate::driver::{AnswerStatistics, Driver};
use crate::gate::Gate;
use crate::histogram::Times;
use crate::keeper::Keeper;
use crate::quota::{QuotaReport, Quotas};
use tyr_gossip::{Gossip, GossipStatistics, NodeView};
use tyr_monitors::Monitor;
use tyr_net::{Network, NetworkStatistics};
use tyr_trace::{Exporter, Outbox, TraceStatistics};

/// Looks at a node. Clones look at the same one; it may outlive the node.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Parts>);

/// What is looked at.
pub(super) struct Parts {
    pub node: NodeId,
    starts: u64,
    listen: SocketAddr,
    pub driver: Arc<Driver>,
    keeper: Arc<Keeper>,
    gate: Arc<Gate>,
    network: Network,
    gossip: Gossip,
    pub quotas: Arc<Quotas>,
    disk: Arc<NodeDisk>,
    monitor: Option<Monitor>,
    follower: Arc<MetadataFollower>,
    traces: Option<Arc<Outbox>>,
    started: Instant,
    pace: Mutex<Pace>,
}

impl From<Arc<Parts>> for Observer {
    fn from(parts: Arc<Parts>) -> Self {
        Self(parts)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parts(node {})", self.node.0)
    }
}

/// The numbers of a node, at one moment as nearly as counters can be.
#[derive(Clone, Debug, Default)]
pub struct NodeStatistics {
    /// How long the node has run.
    pub uptime: Duration,
    /// How often it was started, this time included.
    pub starts: u64,
    /// The epoch of its map; 0 before it has one.
    pub epoch: u32,
    /// The feature level in use by its map; 0 before it has one.
    pub level: u8,
    /// How long its lease lasts yet; 0 without one.
    pub lease_left: Duration,
    /// Whether it serves.
    pub is_ready: bool,
    /// Events worked off.
    pub events: u64,
    /// Times that somebody worked them off.
    pub rounds: u64,
    /// Events that wait.
    pub waiting_events: u64,
    /// Transactions known here and not finished with.
    pub in_flight: u64,
    /// Reads that wait.
    pub waiting_reads: u64,
    /// What clients were answered.
    pub answers: AnswerStatistics,
    /// How long it took to write and sync the log, each time.
    pub syncs: Times,
    /// Records that were given to the log since it began.
    pub log_records: u64,
    /// Bytes of log that a restart would read.
    pub log_bytes: u64,
    /// How full the disk is.
    pub disk: DiskReport,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of extents on disk.
    pub extent_bytes: u64,
    /// Bytes of memory in recent operations and cache.
    pub memory_bytes: u64,
    /// Those of them that the base lacks.
    pub dirty_bytes: u64,
    /// Bytes of memory that wait for the bases of chunks that move here.
    pub expected_bytes: u64,
    /// Pieces that were uploaded ahead of their transactions and not used yet, and their bytes.
    pub staged: (u64, u64),
    /// Leases of keys that are held here, and of those that wait for them (K1).
    pub key_leases: (u64, u64),
    /// Older versions held for readers.
    pub versions_held: u64,
    /// Folds since the start.
    pub folds: u64,
    /// Whether the last fold failed.
    pub is_fold_failing: bool,
    /// Calls of methods taken since the start, and those under way.
    pub calls: (u64, u64),
    /// Requests without the right to them.
    pub refused_permission: u64,
    /// Requests for which there was no room.
    pub refused_overload: u64,
    /// Messages that their sender may not send.
    pub refused_forged: u64,
    /// Requests beyond a keyspace's quota.
    pub refused_quota: u64,
    /// How keyspaces with a quota stand in the whole cluster, as far as heard here.
    pub quotas: Vec<QuotaReport>,
    /// How far it is with copying what it is a recipient of.
    pub movement: MovementStatistics,
    /// What it has compared with other replicas.
    pub scrub: ScrubStatistics,
    /// What the network has done.
    pub network: NetworkStatistics,
    /// What gossip has done.
    pub gossip: GossipStatistics,
    /// The other nodes, as gossip sees them from here.
    pub peers: Vec<NodeView>,
    /// Whether the node leads the monitors.
    pub is_leading: bool,
    /// What became of what was traced.
    pub traces: TraceStatistics,
}

/// How far a node is with copying what it is a recipient of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MovementStatistics {
    /// Whether there is something to catch up with.
    pub is_moving: bool,
    /// Nodes whose lists are not complete yet.
    pub unlisted: usize,
    /// Chunks known to be missing.
    pub missing: usize,
    /// Chunks installed.
    pub installed: usize,
    /// Chunks compared with what their authorities have, since the node began to return.
    #[serde(default)]
    pub compared: u64,
    /// Chunks copied since then.
    #[serde(default)]
    pub copied: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Seconds until what is known to be missing is here, as fast as it went so far; `None` when
    /// nothing is missing or nothing came yet.
    pub remaining_s: Option<f64>,
}

/// What a node has compared with other replicas, of the chunks that it is the authority of (D4);
/// since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStatistics {
    /// Rounds over all chunks that have ended.
    pub rounds: u64,
    /// Chunks compared.
    pub chunks: u64,
    /// Bytes of them, each counted once for all its replicas.
    pub bytes: u64,
    /// Stretches of up to 64 KiB found that differ, or that a replica could not read.
    pub differing: u64,
    /// Those of them that are the same again, and can be read.
    pub repaired: u64,
    /// Those that could not be repaired.
    pub unrepaired: u64,
}

impl From<ScrubCounts> for ScrubStatistics {
    fn from(counts: ScrubCounts) -> Self {
        let ScrubCounts { rounds, chunks, bytes, differing, repaired, unrepaired } = counts;
        Self { rounds, chunks, bytes, differing, repaired, unrepaired }
    }
}

/// Whether a node does its work, and why not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Why not; empty when it does.
    pub reasons: Vec<String>,
}

impl Health {
    /// Whether it does.
    pub fn is_well(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// How fast chunks came since a movement began.
#[derive(Debug, Default)]
struct Pace(Option<(Instant, usize)>);

impl Pace {
    fn remaining_s(&mut self, progress: &Progress, now: Instant) -> Option<f64> {
        if !progress.is_moving {
            self.0 = None;
            return None;
        }
        let (since, installed) = *self.0.get_or_insert((now, progress.installed));
        let came = progress.installed.saturating_sub(installed);
        let passed = now.duration_since(since).as_secs_f64();
        (came > 0 && progress.missing > 0).then(|| passed / came as f64 * progress.missing as f64)
    }
}

/// What is read of the engine, all at once.
struct Seen {
    map: Option<Arc<ClusterMap>>,
    lease_left_us: u64,
    health: Health,
    progress: Progress,
    scrub: ScrubStatistics,
    expected_bytes: u64,
    staged: (u64, u64),
    key_leases: (u64, u64),
    log_records: u64,
    log_bytes: u64,
}

fn see(engine: &mut Engine) -> Seen {
    let map = engine.member().map().cloned();
    let lease_left_us = engine.member().lease_left_us();
    let health = Health { reasons: reasons(engine, map.as_deref()) };
    let progress = engine.member().progress();
    let scrub = engine.member().scrubbed().into();
    let expected_bytes = engine.holdings().expected_bytes() as u64;
    let (pieces, staged_bytes) = engine.member().staged();
    let staged = (pieces as u64, staged_bytes);
    let (held, waiting) = engine.member().key_leases();
    let key_leases = (held as u64, waiting as u64);
    let journal = engine.journal();
    let (log_records, log_bytes) = (journal.next_sequence(), journal.bytes());
    Seen {
        map,
        lease_left_us,
        health,
        progress,
        scrub,
        expected_bytes,
        staged,
        key_leases,
        log_records,
        log_bytes,
    }
}

fn reasons(engine: &Engine, map: Option<&ClusterMap>) -> Vec<String> {
    let member = engine.member();
    let mut reasons = Vec::new();
    if let Some(error) = member.outdated() {
        reasons.push(error.message().to_owned());
    }
    if let Some(failure) = engine.failure() {
        reasons.push(format!("the store failed, and the node has to be started again: {failure}"));
    }
    if !member.has_lease() {
        reasons.push(unleased(member.node(), map));
    }
    let state = map.and_then(|map| map.nodes.get(&member.node())).map(|seat| seat.state.name());
    if state == Some("returning") {
        reasons.push("it was down, and copies its chunks from other nodes (M4)".to_owned());
    }
    reasons
}

/// Why a node has no lease, as far as its map tells.
fn unleased(node: NodeId, map: Option<&ClusterMap>) -> String {
    let Some(map) = map else {
        return "it knows no cluster map yet: it waits for the monitors".to_owned();
    };
    match (map.membership(node), map.nodes.contains_key(&node)) {
        (Membership::Out, true) => format!(
            "it left the cluster, drained or removed; `tyr node add {}` lets it in again",
            node.0
        ),
        (Membership::Out, false) => "it is new, and not let into the cluster yet".to_owned(),
        (Membership::In | Membership::Joining | Membership::Leaving, _) => {
            "it has no lease: it does not reach the monitors, or was declared down".to_owned()
        }
    }
}

impl Observer {
    /// Looks at this node.
    pub fn of(server: &Server) -> Self {
        Self(server.observed())
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0
    }

    pub(super) fn parts_of(server: &Server) -> Arc<Parts> {
        let incarnation = server.driver.look(|engine| engine.member().incarnation());
        debug_assert!(incarnation > 0, "every start has a number");
        debug_assert_eq!(server.driver.node(), server.node, "its parts are of one node");
        Arc::new(Parts {
            node: server.node,
            starts: incarnation.saturating_sub(1) / INCARNATIONS_PER_START + 1,
            listen: server.listen,
            driver: Arc::clone(&server.driver),
            keeper: Arc::clone(&server.keeper),
            gate: Arc::clone(&server.gate),
            network: server.network.clone(),
            gossip: server.gossip.clone(),
            quotas: Arc::clone(&server.quotas),
            disk: Arc::clone(&server.disk),
            monitor: server.monitor.clone(),
            follower: Arc::clone(&server.follower),
            traces: server.exporter.as_ref().map(Exporter::outbox).cloned(),
            started: Instant::now(),
            pace: Mutex::default(),
        })
    }

    /// The node's number.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The numbers.
    pub fn statistics(&self) -> NodeStatistics {
        let Parts { driver, keeper, gate, network, gossip, started, starts, pace, .. } = &*self.0;
        let (folds, fold_failure) = keeper.folds();
        let (seen, store) =
            driver.look(|engine| (see(engine), Arc::clone(engine.holdings().store())));
        let counts = &driver.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NodeStatistics {
            uptime: started.elapsed(),
            starts: *starts,
            epoch: seen.map.as_ref().map_or(0, |map| map.epoch.0),
            level: seen.map.as_ref().map_or(0, |map| map.level),
            lease_left: Duration::from_micros(seen.lease_left_us),
            is_ready: self.whole(seen.health).is_well(),
            events: read(&counts.events),
            rounds: read(&counts.rounds),
            waiting_events: driver.waiting_events() as u64,
            in_flight: counts.in_flight.load(Ordering::Relaxed) as u64,
            waiting_reads: counts.waiting_reads.load(Ordering::Relaxed) as u64,
            answers: counts.answers.statistics(),
            syncs: counts.syncs.read(),
            log_records: seen.log_records,
            log_bytes: seen.log_bytes,
            disk: self.0.disk.report(),
            index_bytes: store.base().disk_bytes(),
            extent_bytes: store.payload_bytes().unwrap_or(0),
            memory_bytes: store.recent().memory() as u64,
            dirty_bytes: store.recent().dirty_memory() as u64,
            expected_bytes: seen.expected_bytes,
            staged: seen.staged,
            key_leases: seen.key_leases,
            versions_held: store.recent().versions() as u64,
            folds,
            is_fold_failing: fold_failure.is_some(),
            calls: gate.methods.counts(),
            refused_permission: read(&gate.refused.permission),
            refused_overload: read(&gate.refused.overload) + read(&counts.late),
            refused_forged: read(&gate.refused.forged),
            refused_quota: read(&gate.refused.quota),
            quotas: self.0.quotas.reports(),
            movement: movement(&seen.progress, &mut pace.lock()),
            scrub: seen.scrub,
            network: network.statistics(),
            gossip: gossip.statistics(),
            peers: gossip.view(),
            is_leading: self.is_leading(),
            traces: self.0.traces.as_ref().map(|it| it.statistics()).unwrap_or_default(),
        }
    }

    fn is_leading(&self) -> bool {
        let leader = self.0.monitor.as_ref().and_then(Monitor::leader);
        leader == Some(self.0.node)
    }

    /// Whether the process is of any use; if not, it has to be started again.
    pub fn live(&self) -> Health {
        let failure = self.0.driver.look(|engine| engine.failure().map(ToString::to_string));
        let monitor = self.0.monitor.as_ref().and_then(|monitor| monitor.check().err());
        let refusal = self.0.follower.refusal().map(str::to_owned);
        let monitor = monitor.map(|error| error.to_string());
        let of_disk = self.0.disk.failure().into_iter();
        Health { reasons: of_disk.chain(failure).chain(monitor).chain(refusal).collect() }
    }

    /// Whether the node serves.
    pub fn ready(&self) -> Health {
        self.whole(self.0.driver.look(|engine| see(engine).health))
    }

    /// The health of the engine, with what that does not know.
    fn whole(&self, mut health: Health) -> Health {
        health.reasons.extend(self.0.disk.failure());
        health
    }

    /// How it stands.
    pub fn report(&self) -> NodeReport {
        let Parts { node, listen, driver, network, started, starts, pace, .. } = &*self.0;
        let seen = driver.look(see);
        let network = network.statistics();
        let answers = driver.counts.answers.statistics();
        let health = self.whole(seen.health);
        NodeReport {
            node: node.0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listen: listen.to_string(),
            uptime_s: started.elapsed().as_secs_f64(),
            starts: *starts,
            is_ready: health.is_well(),
            reasons: health.reasons,
            lease_left_ms: seen.lease_left_us / 1000,
            in_flight: driver.counts.in_flight.load(Ordering::Relaxed) as u64,
            commits: answers.commits,
            reads: answers.reads,
            clients: network.clients,
            is_leading: self.is_leading(),
            movement: movement(&seen.progress, &mut pace.lock()),
            scrub: seen.scrub,
            quotas: self.0.quotas.reports(),
            disk: Some(self.0.disk.report()),
            map: seen.map.map(|map| self.describe(&map, &network)),
        }
    }

    fn describe(&self, map: &ClusterMap, network: &NetworkStatistics) -> MapReport {
        let peers = self.0.gossip.view();
        let seat = |(node, seat): (&NodeId, &MapNode)| {
            let ring = map.next.as_ref().unwrap_or(&map.ring);
            let share = ring.share(*node).or_else(|| map.ring.share(*node));
            let address = Address::Node(*node);
            let is_self = *node == self.0.node;
            SeatReport {
                node: node.0,
                state: seat.state.name().to_owned(),
                membership: map.membership(*node).name().to_owned(),
                weight: share.map_or(0, |share| share.weight),
                domain: share.and_then(|share| share.domain).map(|domain| domain.0),
                is_connected: is_self || self.0.network.is_connected(address),
                gossip: peers
                    .iter()
                    .find(|it| it.node == *node)
                    .map(|it| it.state.name().to_owned()),
                last_error: network.targets.get(node).and_then(|it| it.last_error.clone()),
            }
        };
        let open = map.keyspaces.values().filter(|keyspace| !keyspace.is_dropped);
        MapReport {
            epoch: map.epoch.0,
            is_moving: map.next.is_some(),
            nodes: map.nodes.iter().map(seat).collect(),
            keyspaces: open.map(|keyspace| keyspace.name.to_string()).collect(),
        }
    }
}

fn movement(progress: &Progress, pace: &mut Pace) -> MovementStatistics {
    let Progress { is_moving, unlisted, missing, installed, compared, copied, bytes } = *progress;
    MovementStatistics {
        is_moving,
        unlisted,
        missing,
        installed,
        compared,
        copied,
        bytes,
        remaining_s: pace.remaining_s(progress, Instant::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_what_came_did() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let progress = |missing, installed| Progress {
            is_moving: true,
            unlisted: 0,
            missing,
            installed,
            ..Progress::default()
        };
        assert_eq!(pace.remaining_s(&progress(100, 10), start), None);
        let later = start + Duration::from_secs(5);
        assert_eq!(pace.remaining_s(&progress(100, 10), later), None, "nothing came");
        assert_eq!(pace.remaining_s(&progress(50, 60), later), Some(5.0));
        let done = Progress { is_moving: false, ..progress(0, 110) };
        assert_eq!(pace.remaining_s(&done, later), None);
        assert_eq!(pace.remaining_s(&progress(9, 0), later), None, "another one has begun");
    }
}
