//! Who is connected to whom: drivers, clients and monitors, by queues between threads.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_engine::need::Limits;
use tyr_engine::{Engine, Holdings, Retention};
use tyr_protocol::lease::{self, Grants, LeaseConfig};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{Member, MemberConfig, incarnation};
use tyr_protocol::message::{Address, Body, Envelope, Now};
use tyr_protocol::movement::scrub::ScrubConfig;
use tyr_protocol::session::{Answer, Call, CallId, Effect, Event, Session};
use tyr_store::store::Store;
use tyr_types::{Durability, KeyspaceConfig, NodeId};

use crate::driver::{Driver, Outbound};
use crate::keeper::Keeper;
use tyr_runtime::clock;

const RETENTION: Retention = Retention { read_timeout_us: 300_000_000, linger_us: 100_000 };

/// Where everybody can be reached.
#[derive(Default)]
struct Lines {
    nodes: Mutex<BTreeMap<NodeId, Sender<Envelope>>>,
    clients: Mutex<BTreeMap<u64, Sender<Envelope>>>,
    monitors: Mutex<Option<Sender<Envelope>>>,
}

impl Lines {
    fn send(&self, to: Address, envelope: Envelope) {
        let line = match to {
            Address::Node(node) => self.nodes.lock().get(&node).cloned(),
            Address::Client(client) => self.clients.lock().get(&client).cloned(),
            Address::Monitors => self.monitors.lock().clone(),
        };
        if let Some(line) = line {
            // Who is gone hears nothing, as on a network.
            let _ = line.send(envelope);
        }
    }
}

impl Outbound for Weak<Lines> {
    fn send(&self, to: Address, envelope: Envelope) {
        if let Some(lines) = self.upgrade() {
            lines.send(to, envelope);
        }
    }

    fn flush(&self) {}
}

/// A node that runs.
struct Running {
    driver: Arc<Driver>,
    threads: Vec<JoinHandle<()>>,
}

/// A cluster in this process.
pub struct Web {
    lines: Arc<Lines>,
    map: Arc<ClusterMap>,
    folders: Vec<tempfile::TempDir>,
    running: Vec<Running>,
    monitors: Option<JoinHandle<()>>,
    starts: u64,
    scrub: ScrubConfig,
}

impl Web {
    /// A cluster of so many nodes, with one keyspace.
    pub fn form(nodes: u16, chunk_size: u64) -> Self {
        Self::form_scrubbing(nodes, chunk_size, ScrubConfig::default())
    }

    /// The same, whose nodes compare replicas.
    pub fn form_scrubbing(nodes: u16, chunk_size: u64, scrub: ScrubConfig) -> Self {
        let config = KeyspaceConfig { chunk_size, ..KeyspaceConfig::default() };
        assert_eq!(config.durability, Durability::Sync);
        let map = Arc::new(ClusterMap::of(nodes, &[config]));
        let folders = (0..nodes).map(|_| tempfile::tempdir().unwrap()).collect();
        let lines = Arc::new(Lines::default());
        let (sender, receiver) = channel();
        *lines.monitors.lock() = Some(sender);
        let monitors = {
            let (lines, map) = (Arc::downgrade(&lines), Arc::clone(&map));
            std::thread::spawn(move || monitor(&lines, map, &receiver))
        };
        let monitors = Some(monitors);
        let (running, starts) = (Vec::new(), 0);
        let mut web = Self { lines, map, folders, running, monitors, starts, scrub };
        web.start();
        web
    }

    fn start(&mut self) {
        self.starts += 1;
        let folders: Vec<_> = self.folders.iter().map(|it| it.path().to_owned()).collect();
        for (number, folder) in (0..).zip(folders) {
            let running = self.start_node(NodeId(number), &folder);
            self.running.push(running);
        }
    }

    fn start_node(&self, node: NodeId, folder: &Path) -> Running {
        let config = MemberConfig { scrub: self.scrub, ..MemberConfig::default() };
        let member = Member::new(node, incarnation(self.starts), config);
        let hold = |store| Holdings::new(node, store, RETENTION);
        let opened = Engine::open(member, hold, |visit| Store::open_node(folder, visit));
        let (engine, lock) = opened.unwrap();
        let driver = Driver::new(engine, Arc::new(Arc::downgrade(&self.lines)));
        let (sender, receiver) = channel();
        self.lines.nodes.lock().insert(node, sender);
        let reader = {
            let driver = Arc::clone(&driver);
            std::thread::spawn(move || {
                let _lock = lock;
                serve(&driver, &receiver);
            })
        };
        let syncer = {
            let driver = Arc::clone(&driver);
            std::thread::spawn(move || driver.run_syncer())
        };
        Running { driver, threads: vec![reader, syncer] }
    }

    /// A client of its own.
    pub fn client(&self) -> Client {
        let number = clock::random_u64();
        let (sender, receiver) = channel();
        self.lines.clients.lock().insert(number, sender);
        let session = Session::new(number, Arc::clone(&self.map));
        let lines = Arc::clone(&self.lines);
        Client { session, receiver, lines, started: Instant::now(), calls: 0 }
    }

    /// Every node ends as by a kill, and starts again on what it had.
    pub fn kill_and_restart(&mut self) {
        self.end();
        self.start();
    }

    /// Every node folds, and cuts its log.
    pub fn fold(&self) {
        let limits = Limits { cache_bytes: 64 << 20, fold_log_bytes: 1 << 20, grace_us: 0 };
        for running in &self.running {
            Keeper::new(Arc::clone(&running.driver), limits, Arc::new(|| None)).fold().unwrap();
        }
    }

    /// What is cached goes.
    pub fn forget(&self) {
        for running in &self.running {
            let store = running.driver.store();
            store.recent().shrink(0, usize::MAX);
        }
    }

    /// The driver of a node.
    pub fn driver(&self, node: u16) -> &Arc<Driver> {
        &self.running[usize::from(node)].driver
    }

    /// Flips a bit of these bytes wherever a node has them in extents; answers at how many places.
    pub fn damage(&self, node: u16, bytes: &[u8]) -> usize {
        let folder = self.folders[usize::from(node)].path();
        let entries = std::fs::read_dir(folder.join("extents")).unwrap();
        let mut places = 0;
        for path in entries.map(|entry| entry.unwrap().path()) {
            let mut content = std::fs::read(&path).unwrap();
            let found = content.windows(bytes.len()).position(|window| window == bytes);
            if let Some(place) = found {
                content[place] ^= 1;
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&content[place..=place], place as u64).unwrap();
                places += 1;
            }
        }
        places
    }

    fn end(&mut self) {
        self.lines.nodes.lock().clear();
        for running in self.running.drain(..) {
            running.driver.close();
            running.threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.end();
        *self.lines.monitors.lock() = None;
        if let Some(monitors) = self.monitors.take() {
            monitors.join().unwrap();
        }
    }
}

/// Gives a node what comes for it, and the time.
fn serve(driver: &Arc<Driver>, receiver: &Receiver<Envelope>) {
    let mut next_tick = Instant::now();
    loop {
        let now = Instant::now();
        if now >= next_tick {
            driver.tick();
            next_tick = now + Duration::from_millis(50);
        }
        match receiver.recv_timeout(next_tick.saturating_duration_since(now)) {
            Ok(first) => driver.receive(std::iter::once(first).chain(receiver.try_iter())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The monitors as one machine.
fn monitor(lines: &Weak<Lines>, map: Arc<ClusterMap>, receiver: &Receiver<Envelope>) {
    let started = Instant::now();
    let mut grants = Grants::new(LeaseConfig::default(), map, 0);
    let mut effects = Vec::new();
    loop {
        let event = match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(envelope) => {
                let Address::Node(node) = envelope.from else { continue };
                let (incarnation, epoch) = (envelope.incarnation, envelope.epoch);
                match envelope.body {
                    Body::Renew { incarnation, epoch, sent_us, retention } => {
                        lease::Event::Renew { node, incarnation, epoch, sent_us, retention }
                    }
                    Body::Prepared { epoch } => lease::Event::Prepared { node, incarnation, epoch },
                    Body::CaughtUp { epoch } => lease::Event::CaughtUp { node, incarnation, epoch },
                    Body::Return { incarnation, has_disk, level } => {
                        lease::Event::Return { node, incarnation, epoch, has_disk, level }
                    }
                    Body::FetchMap => {
                        tell(lines, &grants, node, Body::NewerMap(Arc::clone(grants.map())));
                        continue;
                    }
                    other => panic!("not for monitors: {other:?}"),
                }
            }
            Err(RecvTimeoutError::Timeout) => lease::Event::Tick,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now_us = started.elapsed().as_micros() as u64;
        grants.step(now_us, event, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                lease::Effect::Grant {
                    to,
                    incarnation,
                    sent_us,
                    duration_us,
                    epoch,
                    retention,
                } => {
                    let body =
                        Body::Granted { incarnation, sent_us, duration_us, epoch, retention };
                    tell(lines, &grants, to, body);
                }
                lease::Effect::Prepare { to, map } => tell(lines, &grants, to, Body::Prepare(map)),
                lease::Effect::Inform { to, map } => {
                    tell(lines, &grants, to, Body::Effective(map));
                }
                lease::Effect::Publish(map) => {
                    for node in map.nodes.keys() {
                        tell(lines, &grants, *node, Body::Effective(Arc::clone(&map)));
                    }
                }
                lease::Effect::Answer { .. } => {}
            }
        }
    }
}

fn tell(lines: &Weak<Lines>, grants: &Grants, to: NodeId, body: Body) {
    let epoch = grants.map().epoch;
    let envelope = Envelope { epoch, incarnation: 0, from: Address::Monitors, body };
    lines.send(Address::Node(to), envelope);
}

/// A client, for one call at a time.
pub struct Client {
    session: Session,
    receiver: Receiver<Envelope>,
    lines: Arc<Lines>,
    started: Instant,
    calls: u64,
}

impl Client {
    /// Does a call, and waits for its answer.
    pub fn call(&mut self, what: Call) -> Answer {
        self.calls += 1;
        let call = CallId(self.calls);
        let mut event = Event::Call { call, what };
        loop {
            let now = Now {
                wall_us: clock::now_us(),
                monotonic_us: self.started.elapsed().as_micros() as u64,
            };
            let mut effects = Vec::new();
            self.session.step(now, event, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Send { to, envelope } => self.lines.send(Address::Node(to), envelope),
                    Effect::Done { answer, .. } => return answer,
                    Effect::Lease { .. } | Effect::Watch { .. } => {} // Nobody asks for one.
                }
            }
            event = match self.receiver.recv_timeout(Duration::from_millis(5)) {
                Ok(envelope) => Event::Receive(envelope),
                Err(_) => Event::Tick,
            };
        }
    }
}
