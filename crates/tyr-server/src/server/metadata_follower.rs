//! What a node knows of its cluster: who is where, who leads the monitors, who may do what.
//!
//! All of it lies in the service metadata. A watch tells what changes; what is told goes to the
//! network (addresses), the gate (users, quotas, names of keyspaces) and the router (who leads). It
//! runs on a thread of its own, and so do the control connections that others open to this node.
//!
//! ```text
//!   bootstrap ─► watch cluster/, users/, quotas/ ─► learn ─► network, gate, router
//!       ▲            │ too far behind, cut off
//!       └────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::runtime::Handle;
use tyr_protocol::map::{Change, ClusterMap, Membership};
use tyr_protocol::message::Envelope;
use tyr_protocol::wire;
use tyr_types::{Bytes, Error, ErrorKind, NodeId, Result};

use super::generation::{Generation, raise_every};
use super::router::Leader;
use crate::gate::{Gate, MonitorInbox};
use crate::quota::{Quota, Quotas};
use tyr_control::MetadataClient;
use tyr_control::NodeRecord;
use tyr_gossip::Gossip;
use tyr_metadata::limits::LIST_MAX;
use tyr_metadata::{KeyChange, Path, reserved};
use tyr_monitors::Monitor;
use tyr_net::access::{User, Users};
use tyr_net::{Network, NodeAddresses};

/// How often a node whose monitor, if any, has no vote asks who leads them.
const LEADER_EVERY: Duration = Duration::from_millis(500);

/// After a failure the next try waits so long.
const PAUSE: Duration = Duration::from_millis(200);

/// Users, or quotas, that are listed at a time.
const PAGE: u32 = 500;

/// Stands for no leader.
const NOBODY: u32 = u32::MAX;

const _: () = {
    assert!(NOBODY > u16::MAX as u32, "no node has that number");
    assert!(0 < PAGE && PAGE as usize <= LIST_MAX, "the monitors list no more at a time");
};

/// What a node knows of its cluster.
pub(crate) struct MetadataFollower {
    node: NodeId,
    client: MetadataClient,
    /// Asks the others for what is asked of this node.
    others: Option<MetadataClient>,
    monitor: Option<Monitor>,
    network: Network,
    gate: Arc<Gate>,
    users: Arc<Users>,
    quotas: Arc<Quotas>,
    /// Whether its folder is as new as what the cluster has seen of it.
    generation: Generation,
    leader: AtomicU32,
    records: RwLock<BTreeMap<NodeId, NodeRecord>>,
    monitors: RwLock<BTreeSet<NodeId>>,
    map: RwLock<Option<Arc<ClusterMap>>>,
    gossip: OnceLock<Gossip>,
    /// Whether it asks to join although it was there before.
    is_joining: bool,
}

/// What a follower is made of.
pub(crate) struct Parts {
    pub node: NodeId,
    pub client: MetadataClient,
    pub others: Option<MetadataClient>,
    pub monitor: Option<Monitor>,
    pub network: Network,
    pub gate: Arc<Gate>,
    pub users: Arc<Users>,
    pub quotas: Arc<Quotas>,
    pub generation: Generation,
    pub is_joining: bool,
}

impl MetadataFollower {
    /// Begins to follow the cluster on this runtime.
    pub fn start(parts: Parts, runtime: &Handle) -> Arc<Self> {
        let Parts {
            node,
            client,
            others,
            monitor,
            network,
            gate,
            users,
            quotas,
            generation,
            is_joining,
        } = parts;
        let follower = Arc::new(Self {
            node,
            client,
            others,
            monitor,
            network,
            gate,
            users,
            quotas,
            generation,
            leader: AtomicU32::new(NOBODY),
            records: RwLock::default(),
            monitors: RwLock::default(),
            map: RwLock::default(),
            gossip: OnceLock::new(),
            is_joining,
        });
        runtime.spawn(Arc::clone(&follower).follow());
        runtime.spawn(Arc::clone(&follower).follow_leader());
        runtime.spawn(Arc::clone(&follower).keep_raising());
        follower
    }

    /// The node's monitor, while it has a vote: it knows what there is to know.
    fn voter(&self) -> Option<&Monitor> {
        self.monitor.as_ref().filter(|monitor| monitor.is_voter())
    }

    /// Gossip goes on with the nodes that the cluster has.
    pub fn gossip_by(&self, gossip: Gossip) {
        let is_first = self.gossip.set(gossip).is_ok();
        assert!(is_first, "a node has one gossip");
        if !self.records.read().is_empty() {
            self.place_nodes();
        }
    }

    /// Gossip says that a node is gone: the monitors decide (M2).
    pub async fn report_down(self: Arc<Self>, node: NodeId, incarnation: u64) {
        debug_assert_ne!(node, self.node, "gossip says nothing of its own node");
        let Some(map) = self.map() else { return };
        let is_current = map.incarnation(node).is_some_and(|known| known <= incarnation);
        if !map.is_live(node) || !is_current {
            return;
        }
        tracing::warn!(node = node.0, "gossip takes a node for gone; the monitors are told");
        if let Err(error) = self.client.propose(Change::Down(node)).await {
            tracing::info!(%error, node = node.0, "the node is not declared down");
        }
    }

    /// The map in effect, as far as heard.
    pub fn map(&self) -> Option<Arc<ClusterMap>> {
        self.map.read().clone()
    }

    /// What the nodes told of themselves.
    pub fn records(&self) -> BTreeMap<NodeId, NodeRecord> {
        self.records.read().clone()
    }

    /// Why the node takes no part, if its folder is older than what the cluster has seen of it.
    pub fn refusal(&self) -> Option<&str> {
        self.generation.refusal()
    }

    /// Asks the monitors.
    pub fn client(&self) -> &MetadataClient {
        &self.client
    }

    /// Follows the cluster for as long as the node runs.
    async fn follow(self: Arc<Self>) {
        loop {
            if let Err(error) = self.follow_once().await {
                if self.refusal().is_some() {
                    tracing::error!(%error, "the node takes no part");
                    return;
                }
                if error.kind() != ErrorKind::SnapshotTooOld {
                    tracing::warn!(%error, "the service metadata is not followed for a moment");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn follow_once(&self) -> Result<()> {
        let is_voter = self.voter().is_some();
        if !is_voter {
            // Until the others know of it there is no map with it.
            self.generation.prove(&self.client).await?;
        }
        let bootstrap = self.client.bootstrap().await?;
        let cluster = bootstrap.cluster.ok_or_else(forming)?;
        self.generation.join(cluster)?;
        let map = bootstrap.cluster_map()?;
        if self.map().is_some_and(|known| known.epoch > map.epoch) {
            return Err(Error::unavailable("a monitor is behind what is known here already"));
        }
        let nodes = bootstrap.nodes.into_iter().map(|(node, record)| (NodeId(node), record));
        *self.records.write() = nodes.collect();
        self.place_nodes();
        if is_voter {
            self.generation.prove(&self.client).await?;
        }
        let users_of = self.list_users().await?;
        let quotas_of = self.list_quotas().await?;
        self.learn_map(map);
        let mut watches = [
            self.client.watch(reserved::CLUSTER, bootstrap.revision),
            self.client.watch(reserved::USERS, users_of),
            self.client.watch(reserved::QUOTAS, quotas_of),
        ];
        self.join_if_new().await?;
        let [cluster, users, quotas] = &mut watches;
        loop {
            let (changes, _) = tokio::select! {
                next = cluster.next() => next?,
                next = users.next() => next?,
                next = quotas.next() => next?,
            };
            for change in changes {
                self.learn(change);
            }
        }
    }

    /// Takes note of what changed.
    fn learn(&self, change: KeyChange) {
        let KeyChange { path, value, .. } = change;
        let path = path.as_str();
        if let Some(name) = path.strip_prefix(reserved::USERS) {
            let user = value.map(|bytes| User::from_bytes(&bytes)).transpose();
            match user {
                Ok(user) => self.users.update(name, user),
                Err(error) => tracing::error!(%error, name, "a user is locked out"),
            }
        } else if let Some(keyspace) = Quota::keyspace(path) {
            match value.map(|bytes| Quota::from_bytes(&bytes)).transpose() {
                Ok(quota) => self.quotas.update(keyspace, quota),
                Err(error) => tracing::error!(%error, path, "a quota stays as it was"),
            }
        } else if let Some(number) = path.strip_prefix(reserved::NODES) {
            let Ok(number) = number.parse().map(NodeId) else { return };
            match value.and_then(|bytes| NodeRecord::decode(&bytes).ok()) {
                Some(record) => self.records.write().insert(number, record),
                None => self.records.write().remove(&number),
            };
            self.place_nodes();
        } else if path == reserved::MAP
            && let Some(Ok(map)) = value.map(|bytes| wire::decode_map(&bytes))
        {
            self.learn_map(map);
        }
    }

    fn learn_map(&self, map: ClusterMap) {
        let map = Arc::new(map);
        self.gate.learn(Arc::clone(&map));
        self.quotas.learn(Arc::clone(&map));
        *self.map.write() = Some(map);
    }

    /// Tells the network where everybody is.
    fn place_nodes(&self) {
        let records = self.records.read();
        let place = |record: &NodeRecord| NodeAddresses {
            addresses: record.addresses.clone(),
            tls_name: None,
        };
        let nodes: BTreeMap<_, _> =
            records.iter().map(|(node, record)| (*node, place(record))).collect();
        debug_assert_eq!(nodes.len(), records.len(), "each node is somewhere");
        self.network.set_nodes(&nodes);
        if let Some(gossip) = self.gossip.get() {
            gossip.set_nodes(&nodes);
        }
        let is_monitor =
            |(node, record): (&NodeId, &NodeRecord)| record.is_monitor.then_some(*node);
        *self.monitors.write() = records.iter().filter_map(is_monitor).collect();
        let others = records.iter().filter(|(node, _)| **node != self.node);
        let peers: Vec<String> =
            others.flat_map(|(_, record)| record.addresses.iter().take(1).cloned()).collect();
        drop(records);
        for client in [Some(&self.client), self.others.as_ref()].into_iter().flatten() {
            client.learn(peers.iter().cloned());
        }
        if let Err(error) = self.generation.remember(peers) {
            tracing::warn!(%error, "where other nodes are is not remembered");
        }
    }

    /// Learns all users; answers the revision they are of.
    async fn list_users(&self) -> Result<u64> {
        let (users, revision) = self.list(reserved::USERS).await?;
        for (path, value) in users {
            self.learn(KeyChange { revision, path, value: Some(value) });
        }
        Ok(revision)
    }

    /// Learns all quotas, and which there are no more; answers the revision they are of.
    async fn list_quotas(&self) -> Result<u64> {
        let (listed, revision) = self.list(reserved::QUOTAS).await?;
        self.quotas.retain(|keyspace| {
            listed.iter().any(|(path, _)| Quota::keyspace(path.as_str()) == Some(keyspace))
        });
        for (path, value) in listed {
            self.learn(KeyChange { revision, path, value: Some(value) });
        }
        Ok(revision)
    }

    /// All that lies under a prefix. What changes after the revision that is answered may be in it
    /// already.
    async fn list(&self, prefix: &str) -> Result<(Vec<(Path, Bytes)>, u64)> {
        let (mut listed, mut began_at) = (Vec::<(Path, Bytes)>::new(), None);
        loop {
            let after = listed.last().map(|(path, _)| path.as_str());
            let (page, revision) = self.client.list(prefix, after, PAGE).await?;
            let revision = *began_at.get_or_insert(revision);
            if page.is_empty() {
                return Ok((listed, revision));
            }
            listed.extend(page.into_iter().map(|(path, entry)| (path, entry.value)));
        }
    }

    /// Asks to be let into the map, if the node is new, or was told to join.
    async fn join_if_new(&self) -> Result<()> {
        let Some(map) = self.map() else { return Ok(()) };
        let is_out = map.membership(self.node) == Membership::Out;
        if !is_out || map.nodes.contains_key(&self.node) && !self.is_joining {
            return Ok(());
        }
        let newcomer = self.generation.record().newcomer(self.node);
        match self.client.propose(Change::Join(vec![newcomer])).await {
            Ok(_) => Ok(()),
            // Another change is under way, or it has happened meanwhile.
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the node is not let into the cluster");
                Ok(())
            }
        }
    }

    /// Raises the generation for as long as the node takes part. Where the monitors do not answer,
    /// or the disk is full, it is tried again the next time: a copy stays unnoticed for longer.
    async fn keep_raising(self: Arc<Self>) {
        while self.refusal().is_none() {
            let nodes = self.records.read().len();
            tokio::time::sleep(raise_every(nodes)).await;
            if let Err(error) = self.generation.raise(&self.client).await {
                tracing::warn!(%error, "the node's generation is not raised");
            }
        }
    }

    /// The node is about to stop.
    pub async fn take_leave(&self) {
        self.generation.raise_at_stop(&self.client).await;
    }

    async fn follow_leader(self: Arc<Self>) {
        loop {
            if self.voter().is_none()
                && let Ok(leader) = self.client.leader().await
            {
                let leader = leader.map_or(NOBODY, |node| u32::from(node.0));
                self.leader.store(leader, Ordering::Release);
            }
            tokio::time::sleep(LEADER_EVERY).await;
        }
    }
}

impl MonitorInbox for MetadataFollower {
    fn receive(&self, envelope: Envelope) {
        if let Some(monitor) = &self.monitor {
            monitor.receive(envelope);
        }
    }

    fn is_monitor(&self, node: NodeId) -> bool {
        self.monitors.read().contains(&node)
    }
}

impl Leader for MetadataFollower {
    fn leader(&self) -> Option<NodeId> {
        if !self.generation.is_proven() {
            return None; // Nothing is asked for in the name of a folder that may be an old copy.
        }
        if let Some(monitor) = self.voter() {
            return monitor.leader();
        }
        u16::try_from(self.leader.load(Ordering::Acquire)).ok().map(NodeId)
    }
}

fn forming() -> Error {
    Error::unavailable("the cluster is being formed: not all of its first nodes have reported yet")
}
