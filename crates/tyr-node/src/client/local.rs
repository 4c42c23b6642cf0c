//! A cluster in this process: nodes on folders of their own, monitors, and clients, with queues
//! between their threads in place of sockets. For tests of what stands on a cluster.
//!
//! The nodes are those that run elsewhere, with logs, stores and clocks; the monitors are the pure
//! machine of leases and maps, without consensus.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_protocol::lease::{self, Grants, LeaseConfig};
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::member::{Member, MemberConfig, incarnation};
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::wire;
use tyr_store::store::{OpenedNode, Store};
use tyr_types::{Epoch, Error, NodeId, Result};

use super::control::{Asked, Control};
use super::{Client, ClientConfig, ClientParts, Inbox, Transport};
use crate::agent::holdings::{Holdings, Retention};
use crate::agent::journal::Journal;
use crate::clock;
use crate::processor::driver::{Driver, Engine, Outlet};

const RETENTION: Retention = Retention { read_timeout_us: 300_000_000, linger_us: 1_000_000 };

/// How often a node and the monitors are told that time has passed.
const TICK: Duration = Duration::from_millis(50);

/// Where everybody can be reached.
#[derive(Default)]
struct Lines {
    nodes: Mutex<BTreeMap<NodeId, Sender<Envelope>>>,
    clients: Mutex<BTreeMap<u64, Sender<Envelope>>>,
    monitors: Mutex<Option<Sender<ToMonitors>>>,
}

/// What the monitors are told.
enum ToMonitors {
    Message(Envelope),
    Propose(Change, oneshot::Sender<Result<Epoch>>),
    Map(oneshot::Sender<Result<Arc<ClusterMap>>>),
}

impl Lines {
    fn send(&self, to: Address, envelope: Envelope) {
        match to {
            Address::Node(node) => put(self.nodes.lock().get(&node), envelope),
            Address::Client(client) => put(self.clients.lock().get(&client), envelope),
            Address::Monitors => self.tell_monitors(ToMonitors::Message(envelope)),
        }
    }

    fn tell_monitors(&self, what: ToMonitors) {
        put(self.monitors.lock().as_ref(), what);
    }
}

/// Who is gone hears nothing, as on a network.
fn put<T>(line: Option<&Sender<T>>, what: T) {
    if let Some(line) = line {
        let _ = line.send(what);
    }
}

impl Outlet for Weak<Lines> {
    fn send(&self, to: Address, envelope: Envelope) {
        if let Some(lines) = self.upgrade() {
            lines.send(to, envelope);
        }
    }

    fn flush(&self) {}
}

/// A client's end of the lines.
struct Line {
    number: u64,
    lines: Arc<Lines>,
}

impl Transport for Line {
    fn send(&self, to: NodeId, envelope: Envelope) {
        self.lines.send(Address::Node(to), envelope);
    }

    fn flush(&self) {}
}

impl Control for Line {
    fn map(&self) -> Asked<Arc<ClusterMap>> {
        let (answer, receiver) = oneshot::channel();
        self.lines.tell_monitors(ToMonitors::Map(answer));
        Box::pin(async { receiver.await.unwrap_or_else(|_| Err(ended())) })
    }

    fn propose(&self, change: Change) -> Asked<Epoch> {
        let (answer, receiver) = oneshot::channel();
        self.lines.tell_monitors(ToMonitors::Propose(change, answer));
        Box::pin(async { receiver.await.unwrap_or_else(|_| Err(ended())) })
    }

    fn close(&self) {
        self.lines.clients.lock().remove(&self.number);
    }
}

fn ended() -> Error {
    Error::unavailable("the cluster has ended; start it again")
}

/// A node that runs.
struct Running {
    driver: Arc<Driver>,
    threads: Vec<JoinHandle<()>>,
}

/// A cluster in this process. Dropping it ends it.
pub struct LocalCluster {
    lines: Arc<Lines>,
    map: Arc<ClusterMap>,
    running: BTreeMap<NodeId, Running>,
    monitors: Option<JoinHandle<()>>,
}

impl fmt::Debug for LocalCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalCluster({:?})", self.running.keys())
    }
}

impl LocalCluster {
    /// A cluster of a node on each of these folders, which are empty, and without keyspaces.
    ///
    /// # Errors
    /// `Unavailable` when a folder cannot be written to or no thread starts.
    pub fn start(folders: &[PathBuf]) -> Result<Self> {
        let nodes = u16::try_from(folders.len());
        let nodes = nodes.map_err(|_| Error::invalid("a cluster has at most 65,535 nodes"))?;
        let map = Arc::new(ClusterMap::of(nodes, &[]));
        let lines = Arc::new(Lines::default());
        let (sender, receiver) = channel();
        *lines.monitors.lock() = Some(sender);
        let monitors = {
            let (lines, map) = (Arc::downgrade(&lines), Arc::clone(&map));
            spawn(move || Monitors::new(lines, map).run(&receiver))?
        };
        let (running, monitors) = (BTreeMap::new(), Some(monitors));
        let mut cluster = Self { lines, map, running, monitors };
        for (number, folder) in (0..).zip(folders) {
            cluster.start_node(NodeId(number), folder)?;
        }
        Ok(cluster)
    }

    /// A client of its own.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn client(&self, config: ClientConfig) -> Result<Arc<Client>> {
        let number = clock::random_u64();
        let (sender, receiver) = channel::<Envelope>();
        self.lines.clients.lock().insert(number, sender);
        let inbox = Inbox::default();
        let line = Arc::new(Line { number, lines: Arc::clone(&self.lines) });
        let (transport, control) = (Arc::clone(&line), line);
        let map = Arc::clone(&self.map);
        let parts = ClientParts { number, map, transport, inbox: inbox.clone(), control, config };
        let client = Client::start(parts)?;
        spawn(move || {
            while let Ok(first) = receiver.recv() {
                inbox.receive(std::iter::once(first).chain(receiver.try_iter()));
            }
        })?;
        Ok(client)
    }

    /// A node hears nothing any more and says nothing, as if its machine was gone.
    pub fn stop_node(&mut self, node: u16) {
        self.lines.nodes.lock().remove(&NodeId(node));
        if let Some(running) = self.running.remove(&NodeId(node)) {
            running.end();
        }
    }

    fn start_node(&mut self, node: NodeId, folder: &Path) -> Result<()> {
        let mut member = Member::new(node, incarnation(1), MemberConfig::default());
        let mut holdings: Option<Holdings> = None;
        let OpenedNode { store, log, lock } =
            Store::open_node(folder, &mut |store, body, extents| {
                let holdings = holdings
                    .get_or_insert_with(|| Holdings::new(node, Arc::clone(store), RETENTION));
                holdings.replay(&mut member, wire::decode_record(&body)?, extents)
            })?;
        let holdings = holdings.unwrap_or_else(|| Holdings::new(node, store, RETENTION));
        let engine = Engine::new(member, holdings, Journal::new(log));
        let driver = Driver::new(engine, Arc::new(Arc::downgrade(&self.lines)));
        let (sender, receiver) = channel();
        self.lines.nodes.lock().insert(node, sender);
        let (reading, syncing) = (Arc::clone(&driver), Arc::clone(&driver));
        let reader = spawn(move || {
            let _lock = lock;
            serve(&reading, &receiver);
        })?;
        let syncer = spawn(move || syncing.run_syncer())?;
        self.running.insert(node, Running { driver, threads: vec![reader, syncer] });
        Ok(())
    }
}

impl Running {
    /// Its line is cut already.
    fn end(self) {
        self.driver.close();
        for thread in self.threads {
            thread.join().expect("a node does not panic");
        }
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        self.lines.nodes.lock().clear();
        self.lines.clients.lock().clear();
        *self.lines.monitors.lock() = None;
        std::mem::take(&mut self.running).into_values().for_each(Running::end);
        if let Some(monitors) = self.monitors.take() {
            monitors.join().expect("the monitors do not panic");
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("tyr-local".to_owned())
        .spawn(work)
        .map_err(|error| Error::io("cannot start a thread", error))
}

/// Gives a node what comes for it, and the time.
fn serve(driver: &Arc<Driver>, receiver: &Receiver<Envelope>) {
    let mut next_tick = Instant::now();
    loop {
        let now = Instant::now();
        if now >= next_tick {
            driver.tick();
            next_tick = now + TICK;
        }
        match receiver.recv_timeout(next_tick.saturating_duration_since(now)) {
            Ok(first) => driver.receive(std::iter::once(first).chain(receiver.try_iter())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The monitors, as one machine.
struct Monitors {
    lines: Weak<Lines>,
    grants: Grants,
    started: Instant,
    /// Proposals without an answer; bounded by the callers who wait.
    proposals: BTreeMap<u64, oneshot::Sender<Result<Epoch>>>,
    proposed: u64,
}

impl Monitors {
    fn new(lines: Weak<Lines>, map: Arc<ClusterMap>) -> Self {
        let grants = Grants::new(LeaseConfig::default(), map, 0);
        let (started, proposals) = (Instant::now(), BTreeMap::new());
        Self { lines, grants, started, proposals, proposed: 0 }
    }

    fn run(mut self, receiver: &Receiver<ToMonitors>) {
        loop {
            match receiver.recv_timeout(2 * TICK) {
                Ok(ToMonitors::Message(envelope)) => self.hear(envelope),
                Ok(ToMonitors::Propose(change, answer)) => {
                    self.proposed += 1;
                    self.proposals.insert(self.proposed, answer);
                    self.step(lease::Event::Propose { proposal: self.proposed, change });
                }
                Ok(ToMonitors::Map(answer)) => {
                    // Who does not wait any more does not want it.
                    let _ = answer.send(Ok(Arc::clone(self.grants.map())));
                }
                Err(RecvTimeoutError::Timeout) => self.step(lease::Event::Tick),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hear(&mut self, envelope: Envelope) {
        let Address::Node(node) = envelope.from else { return };
        let it = envelope.incarnation;
        let event = match envelope.body {
            Body::Renew { incarnation, epoch, sent_us } => {
                lease::Event::Renew { node, incarnation, epoch, sent_us }
            }
            Body::Prepared { epoch } => lease::Event::Prepared { node, incarnation: it, epoch },
            Body::CaughtUp { epoch } => lease::Event::CaughtUp { node, incarnation: it, epoch },
            Body::Return { incarnation, has_disk } => {
                lease::Event::Return { node, incarnation, has_disk }
            }
            Body::FetchMap => {
                return self.tell(node, Body::NewerMap(Arc::clone(self.grants.map())));
            }
            other => panic!("not for monitors: {other:?}"),
        };
        self.step(event);
    }

    fn step(&mut self, event: lease::Event) {
        let now_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut effects = Vec::new();
        self.grants.step(now_us, event, &mut effects);
        for effect in effects {
            match effect {
                lease::Effect::Grant { to, incarnation, sent_us, duration_us, epoch } => {
                    self.tell(to, Body::Granted { incarnation, sent_us, duration_us, epoch });
                }
                lease::Effect::Prepare { to, map } => self.tell(to, Body::Prepare(map)),
                lease::Effect::Inform { to, map } => self.tell(to, Body::Effective(map)),
                lease::Effect::Publish(map) => {
                    for node in map.nodes.keys() {
                        self.tell(*node, Body::Effective(Arc::clone(&map)));
                    }
                }
                lease::Effect::Answer { proposal, result } => {
                    if let Some(answer) = self.proposals.remove(&proposal) {
                        let _ = answer.send(result);
                    }
                }
            }
        }
    }

    fn tell(&self, to: NodeId, body: Body) {
        let epoch = self.grants.map().epoch;
        let envelope = Envelope { epoch, incarnation: 0, from: Address::Monitors, body };
        if let Some(lines) = self.lines.upgrade() {
            lines.send(Address::Node(to), envelope);
        }
    }
}
