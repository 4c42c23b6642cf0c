//! Monitors with their disks, and nodes that hold leases, put together to a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tyr_protocol::commit::OutcomeRetention;
use tyr_protocol::lease::Holder;
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::wire::LEVEL;
use tyr_store::disk::SimulatedDisk;
use tyr_types::{
    BlobName, Epoch, Error, Key, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, Result,
};

use super::network::Network;
use crate::responder::{Answering, Responder};
use crate::{InitialNode, Monitor, MonitorOptions};
use tyr_control::NodeRecord;
use tyr_control::{ClientOptions, Hello, Identity, MetadataClient, Sender};

/// How often a node looks around.
const STEP: Duration = Duration::from_millis(100);

pub fn address(node: u16) -> String {
    format!("node-{node}:7300")
}

/// A lease that was granted.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    pub monitor: u16,
    /// When the node asked, and when the monitor answered, in the one true time.
    pub asked: Instant,
    pub granted: Instant,
}

/// A node as far as its lease goes.
pub struct NodeState {
    pub holder: Holder,
    pub incarnation: u64,
    pub map: Option<Arc<ClusterMap>>,
    /// Epochs of maps that it was asked to prepare for, and those that are still proposed.
    pub prepared: Vec<Arc<ClusterMap>>,
    is_running: bool,
}

/// A map that a node was asked to prepare for, by its epoch.
type Planned = BTreeMap<Epoch, (u16, Arc<ClusterMap>)>;

/// What everybody sees of the world.
pub struct Shared {
    pub network: Network,
    pub monitors: Mutex<BTreeMap<u16, Monitor>>,
    pub nodes: Mutex<BTreeMap<u16, NodeState>>,
    pub grants: Mutex<Vec<Grant>>,
    /// What was sent to be prepared for, and what took effect: never two of one epoch.
    pub planned: Mutex<Planned>,
    pub effective: Mutex<BTreeMap<Epoch, Arc<ClusterMap>>>,
    began: Instant,
}

impl Shared {
    /// A node's clock: some run faster, some slower, by less than a tenth of a tenth.
    fn clock_us(&self, node: u16) -> u64 {
        let speed = 960 + u64::from(node) * 37 % 80;
        self.began.elapsed().as_micros() as u64 * speed / 1000
    }

    fn instant(&self, node: u16, clock_us: u64) -> Instant {
        let speed = 960 + u64::from(node) * 37 % 80;
        self.began + Duration::from_micros(clock_us * 1000 / speed)
    }
}

/// A cluster in one thread.
pub struct World {
    pub shared: Arc<Shared>,
    disks: BTreeMap<u16, SimulatedDisk>,
    initial: Vec<InitialNode>,
}

impl World {
    /// Nodes that form a cluster, the first of them monitors; not started yet.
    pub fn new(nodes: u16, monitors: u16) -> Self {
        let initial = (0..nodes).map(|node| InitialNode {
            node: NodeId(node),
            address: address(node),
            is_monitor: node < monitors,
        });
        let shared = Shared {
            network: Network::new(),
            monitors: Mutex::default(),
            nodes: Mutex::default(),
            grants: Mutex::default(),
            planned: Mutex::default(),
            effective: Mutex::default(),
            began: Instant::now(),
        };
        Self { shared: Arc::new(shared), disks: BTreeMap::new(), initial: initial.collect() }
    }

    /// Starts all nodes, and waits for the first map.
    pub async fn formed(nodes: u16, monitors: u16) -> Self {
        let mut world = Self::new(nodes, monitors);
        for node in 0..monitors {
            world.start_monitor(node).await;
        }
        for node in 0..nodes {
            world.start_node(node);
        }
        for node in monitors..nodes {
            world.report(node).await;
        }
        world
            .until("all nodes hold a lease", |world| world.holding().len() == usize::from(nodes))
            .await;
        let name = KeyspaceName::new("k").unwrap();
        let config = KeyspaceConfig::default();
        let change = Change::CreateKeyspace { name, config, seed: 7 };
        let epoch = world.client(0).propose(change).await.unwrap();
        world.until("all know the keyspace", |world| world.is_known(epoch)).await;
        world
    }

    pub fn record(node: u16, is_monitor: bool) -> NodeRecord {
        NodeRecord { identity: node.into(), is_monitor, ..NodeRecord::at(address(node)) }
    }

    pub fn disk(&mut self, node: u16) -> SimulatedDisk {
        self.disks.entry(node).or_default().clone()
    }

    /// Starts a monitor on its disk.
    pub async fn start_monitor(&mut self, node: u16) {
        self.try_start_monitor(node, self.initial.clone()).await.unwrap();
    }

    pub async fn try_start_monitor(&mut self, node: u16, initial: Vec<InitialNode>) -> Result<()> {
        let disk = Arc::new(self.disk(node));
        let record = Self::record(node, true);
        let options = MonitorOptions { initial, ..MonitorOptions::new(NodeId(node), disk, record) };
        let shared = Arc::clone(&self.shared);
        let (sent, queue) = mpsc::unbounded_channel();
        let send = Arc::new(move |to: NodeId, envelope| _ = sent.send((to, envelope)));
        let connect = self.shared.network.from(&address(node));
        let monitor = Monitor::launch(options, connect, send).await?;
        tokio::spawn(deliver(shared, node, queue));
        let others = Some(self.client(node));
        let answering = Answering::new(Some(monitor.clone()), others);
        let server = Responder::new(answering, Arc::new(identify));
        self.shared.network.listen(&address(node), server);
        self.shared.monitors.lock().insert(node, monitor);
        Ok(())
    }

    /// Kills a monitor: nothing of it is left but its disk, and of that what was synced.
    pub async fn kill_monitor(&mut self, node: u16) {
        self.shared.network.kill(&address(node));
        let monitor = self.shared.monitors.lock().remove(&node).unwrap();
        monitor.stop().await;
        let left = self.disk(node).crash(u64::from(node));
        self.disks.insert(node, left);
    }

    /// Stops a monitor as its node does when it is told to.
    pub async fn stop_monitor(&mut self, node: u16) {
        let monitor = self.shared.monitors.lock().remove(&node).unwrap();
        monitor.hand_over().await;
        monitor.close().await.unwrap();
        self.shared.network.kill(&address(node));
    }

    /// Starts a node that asks for its lease from now on.
    pub fn start_node(&mut self, node: u16) {
        let incarnation = self.shared.nodes.lock().get(&node).map_or(1, |it| it.incarnation + 1);
        let state = NodeState {
            holder: Holder::new(incarnation),
            incarnation,
            map: None,
            prepared: Vec::new(),
            is_running: true,
        };
        let before = self.shared.nodes.lock().insert(node, state);
        if before.is_none() {
            tokio::spawn(live(Arc::clone(&self.shared), node));
        }
    }

    /// Ends a node: it says nothing any more, and is not asked.
    pub fn stop_node(&mut self, node: u16) {
        self.shared.nodes.lock().get_mut(&node).unwrap().is_running = false;
    }

    /// A node that is no monitor tells of itself.
    pub async fn report(&self, node: u16) {
        let client = self.client(node);
        let given = client.admit(Some(NodeId(node)), Self::record(node, false)).await.unwrap();
        assert_eq!(given, NodeId(node));
    }

    /// A client at this node, which takes it for one of its own.
    pub fn client(&self, node: u16) -> MetadataClient {
        self.client_as(node, Sender::Node(node))
    }

    pub fn client_as(&self, node: u16, sender: Sender) -> MetadataClient {
        let monitors = self.initial.iter().filter(|it| it.is_monitor);
        let addresses: Vec<&str> = monitors.map(|it| it.address.as_str()).collect();
        let options = ClientOptions { sender, ..ClientOptions::at(&addresses) };
        MetadataClient::new(options, self.shared.network.from(&address(node))).unwrap()
    }

    pub fn monitor(&self, node: u16) -> Monitor {
        self.shared.monitors.lock()[&node].clone()
    }

    /// The monitor that all who are up take for the leader.
    pub fn leader(&self) -> Option<u16> {
        let monitors = self.shared.monitors.lock();
        let mut leaders = monitors.values().map(|it| it.leader().map(|node| node.0));
        let first = leaders.next()??;
        (leaders.all(|it| it == Some(first)) && monitors.contains_key(&first)).then_some(first)
    }

    pub async fn wait_for_leader(&self) -> u16 {
        self.until("there is a leader", |world| world.leader().is_some()).await;
        self.leader().unwrap()
    }

    /// The nodes that hold a lease.
    pub fn holding(&self) -> BTreeSet<u16> {
        self.holding_of(&self.shared.nodes.lock())
    }

    /// Whether all nodes that hold a lease go by a map of this epoch, or a later one.
    pub fn is_known(&self, epoch: Epoch) -> bool {
        let nodes = self.shared.nodes.lock();
        let held = self.holding_of(&nodes);
        held.iter().all(|node| nodes[node].map.as_ref().is_some_and(|map| map.epoch >= epoch))
    }

    fn holding_of(&self, nodes: &BTreeMap<u16, NodeState>) -> BTreeSet<u16> {
        let holds = |(node, it): &(&u16, &NodeState)| {
            it.is_running && it.holder.is_held(self.shared.clock_us(**node))
        };
        nodes.iter().filter(holds).map(|it| *it.0).collect()
    }

    /// The newest map in effect.
    pub fn map(&self) -> Arc<ClusterMap> {
        let effective = self.shared.effective.lock();
        Arc::clone(effective.last_key_value().expect("a map has taken effect").1)
    }

    /// Cuts a node off all others but these.
    pub fn isolate(&self, node: u16, but: &[u16]) {
        for other in self.initial.iter().map(|it| it.node.0).filter(|it| *it != node) {
            if !but.contains(&other) {
                self.shared.network.cut(&address(node), &address(other), true);
            }
        }
    }

    /// Waits until something is so, and fails when it is not within a minute.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so(self) {
            assert!(Instant::now() < deadline, "waited for a minute: {what}");
            self.pass(STEP).await;
        }
    }

    /// Lets time pass, and looks at every step whether all is well.
    pub async fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            tokio::time::sleep(STEP.min(end - Instant::now())).await;
            self.check();
        }
    }

    /// No place has two authorities (M3).
    pub fn check(&self) {
        let nodes = self.shared.nodes.lock();
        for place in 0..24_u64 {
            let serving: Vec<u16> = nodes
                .iter()
                .filter(|(node, it)| serves(it, **node, place, self.shared.clock_us(**node)))
                .map(|it| *it.0)
                .collect();
            assert!(serving.len() <= 1, "place {place} has the authorities {serving:?}");
        }
    }

    /// What this monitor granted so far.
    pub fn granted_by(&self, monitor: u16) -> Vec<Grant> {
        let grants = self.shared.grants.lock();
        grants.iter().filter(|it| it.monitor == monitor).copied().collect()
    }
}

/// Whether the node would serve this place now.
fn serves(it: &NodeState, node: u16, place: u64, clock_us: u64) -> bool {
    let key = Key::new(place.to_le_bytes()).unwrap();
    let blob = BlobName { keyspace: KeyspaceId(1), key };
    let is_authority = |map: &ClusterMap| {
        let is_own = map.incarnation(NodeId(node)) == Some(it.incarnation);
        is_own && map.holders(&blob, 0).first() == Some(&NodeId(node))
    };
    let Some(map) = &it.map else { return false };
    let is_kept = it.prepared.iter().all(|planned| is_authority(planned));
    it.is_running && it.holder.is_held(clock_us) && is_kept && is_authority(map)
}

/// Whoever says who they are is believed.
pub fn identify(hello: &Hello) -> Result<Identity> {
    match &hello.sender {
        Sender::Node(node) => Ok(Identity::Node(NodeId(*node))),
        Sender::User(name) if name.is_empty() => {
            let kind = tyr_types::ErrorKind::PermissionDenied;
            Err(Error::new(kind, "say who you are"))
        }
        Sender::User(name) => {
            Ok(Identity::User { name: name.clone(), is_administrator: name == "root" })
        }
    }
}

/// Carries what a monitor says to the nodes.
async fn deliver(
    shared: Arc<Shared>,
    monitor: u16,
    mut queue: mpsc::UnboundedReceiver<(NodeId, Envelope)>,
) {
    while let Some((NodeId(to), envelope)) = queue.recv().await {
        note(&shared, monitor, to, &envelope.body);
        if shared.network.is_cut(&address(monitor), &address(to)) {
            continue;
        }
        let reply = hear(&shared, to, envelope.body);
        if let Some(body) = reply {
            say(&shared, to, body);
        }
    }
}

/// Notes what was said, and that no epoch means two maps.
fn note(shared: &Shared, monitor: u16, to: u16, body: &Body) {
    match body {
        Body::Granted { sent_us, .. } => {
            let (asked, granted) = (shared.instant(to, *sent_us), Instant::now());
            shared.grants.lock().push(Grant { monitor, asked, granted });
        }
        Body::Prepare(map) => {
            let mut planned = shared.planned.lock();
            let (by, known) =
                planned.entry(map.epoch).or_insert_with(|| (monitor, Arc::clone(map)));
            let is_same = *by == monitor && *known == *map;
            assert!(is_same, "epoch {} is planned by {by} and {monitor}", map.epoch.0);
        }
        Body::Effective(map) => {
            let mut effective = shared.effective.lock();
            let known = effective.entry(map.epoch).or_insert_with(|| Arc::clone(map));
            assert_eq!(*known, *map, "two maps took effect in epoch {}", map.epoch.0);
        }
        _ => {}
    }
}

/// What a node makes of a message, and what it answers.
fn hear(shared: &Shared, node: u16, body: Body) -> Option<Body> {
    let mut nodes = shared.nodes.lock();
    let it = nodes.get_mut(&node).filter(|it| it.is_running)?;
    let epoch = it.map.as_ref().map_or(Epoch(0), |map| map.epoch);
    match body {
        Body::Granted { incarnation, sent_us, duration_us, .. } => {
            it.holder.granted(incarnation, sent_us, duration_us);
            None
        }
        Body::Prepare(map) if map.epoch > epoch => {
            let epoch = map.epoch;
            it.prepared.push(map);
            Some(Body::Prepared { epoch })
        }
        Body::Effective(map) if map.epoch > epoch => {
            it.prepared.retain(|planned| planned.epoch > map.epoch);
            let known = map.nodes.get(&NodeId(node)).copied();
            if known.is_some_and(|known| !known.is_live() && known.incarnation == it.incarnation) {
                // Declared down while it was alive: it comes back as another.
                it.incarnation += 1;
                it.holder = Holder::new(it.incarnation);
            }
            it.map = Some(map);
            it.holder.hurry();
            None
        }
        _ => None,
    }
}

/// A node tells the monitors; who does not lead does not listen.
fn say(shared: &Shared, node: u16, body: Body) {
    let (epoch, incarnation) = {
        let nodes = shared.nodes.lock();
        let it = &nodes[&node];
        (it.map.as_ref().map_or(Epoch(0), |map| map.epoch), it.incarnation)
    };
    for (number, monitor) in shared.monitors.lock().iter() {
        if !shared.network.is_cut(&address(*number), &address(node)) {
            let from = Address::Node(NodeId(node));
            monitor.receive(Envelope { epoch, incarnation, from, body: body.clone() });
        }
    }
}

/// What a node does from time to time.
async fn live(shared: Arc<Shared>, node: u16) {
    loop {
        tokio::time::sleep(STEP).await;
        for body in said(&shared, node) {
            say(&shared, node, body);
        }
    }
}

fn said(shared: &Shared, node: u16) -> Vec<Body> {
    let now_us = shared.clock_us(node);
    let mut nodes = shared.nodes.lock();
    let it = nodes.get_mut(&node).unwrap();
    if !it.is_running {
        return Vec::new();
    }
    let epoch = it.map.as_ref().map_or(Epoch(0), |map| map.epoch);
    let mut bodies: Vec<Body> = Vec::new();
    if let Some(renewal) = it.holder.renewal(now_us, epoch) {
        let (incarnation, sent_us) = (renewal.incarnation, renewal.sent_us);
        let retention = OutcomeRetention::UNKNOWN;
        bodies.push(Body::Renew { incarnation, epoch, sent_us, retention });
    }
    let known = it.map.as_ref().and_then(|map| map.incarnation(NodeId(node)));
    match known {
        Some(known) if known == it.incarnation => bodies.push(Body::CaughtUp { epoch }),
        Some(_) | None => {
            bodies.push(Body::Return { incarnation: it.incarnation, has_disk: true, level: LEVEL });
            if epoch == Epoch(0) {
                bodies.push(Body::FetchMap);
            }
        }
    }
    bodies
}
