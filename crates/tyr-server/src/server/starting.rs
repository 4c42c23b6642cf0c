//! The start of a node, step by step.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tyr_engine::{Engine, Holdings, Retention};
use tyr_protocol::member::{Member, MemberConfig, incarnation};
use tyr_protocol::message::Address;
use tyr_protocol::wire::Hello;
use tyr_store::disk::{FolderLock, LOCK_FILE, RealDisk};
use tyr_store::store::{Store, Visit};
use tyr_types::{Bytes, Error, ErrorKind, NodeId, Result};

use super::calls;
use super::control::Control;
use super::disk::NodeDisk;
use super::generation::{self, Generation, PEERS_PATIENCE};
use super::identity::Identity;
use super::kept_bound::KeptBound;
use super::maintenance::Maintenance;
use super::metadata_follower::{MetadataFollower, Parts};
use super::options::{FOLD_GRACE_US, Formation, ServerOptions};
use super::report::ReportSource;
use super::router::{Leader, Router};
use super::unopened;
use super::usage_scan::UsageScan;
use super::{Running, Server};
use crate::driver::{Driver, Outbound};
use crate::full_nodes::HEARD_MAX_US;
use crate::gate::{Gate, MonitorInbox};
use crate::giver::Giver;
use crate::keeper::{Keeper, SnapshotFloor};
use crate::memory_pressure::MemoryPressure;
use crate::quota::Quotas;
use tyr_control::NodeRecord;
use tyr_control::{ClientOptions, Connect, MetadataClient, Sender, Thread};
use tyr_gossip::{Gossip, GossipEvent, GossipOptions, Heard};
use tyr_monitors::{Answering, Describe};
use tyr_monitors::{Monitor, MonitorOptions};
use tyr_net::access::{self, Users};
use tyr_net::level;
use tyr_net::{Dialer, Network, NetworkParts};
use tyr_runtime::cache::warn_of_small_cache;
use tyr_runtime::marking::Marking;
use tyr_trace::Exporter;

/// What was heard of a node counts for this long, in microseconds.
const RUMOUR_AGE_MAX_US: u64 = 10_000_000;

const _: () = assert!(HEARD_MAX_US < RUMOUR_AGE_MAX_US, "floors are minded for longer than room");
const _: () = assert!(FOLD_GRACE_US < RUMOUR_AGE_MAX_US, "a snapshot is heard of, and for a while");

/// The folders of store and monitor within a node's.
const STORE_FOLDER: &str = "store";
const MONITOR_FOLDER: &str = "monitor";

/// Who the node is in this start.
struct Who {
    identity: Identity,
    node: NodeId,
    incarnation: u64,
    record: NodeRecord,
    token: String,
    is_joining: bool,
}

/// Starts a node.
pub(super) fn start(options: ServerOptions) -> Result<Server> {
    options.validate()?;
    let users = Arc::new(options.users());
    let control = Thread::start()?;
    // Monitors hear each other on it.
    control.handle.spawn(async { tyr_runtime::priority::go_first() });
    let connect: Arc<dyn Connect> = Arc::new(Dialer::new(options.network.tls.as_ref())?);
    let who = settle(&options, &control, &connect)?;
    let domain = options.network.tls.as_ref().map(|tls| tls.domain.clone());
    let gate = Gate::new(Arc::clone(&users), domain.clone());
    let accepting: Arc<OnceLock<Arc<Control>>> = Arc::default();
    let network = start_network(&options, &who, &gate, &accepting)?;
    let others = relaying_client(&options, &who, &connect)?;
    let tell = |error: &Error| unopened::tell(who.node, others.as_ref(), &control.handle, error);
    let Open { engine, lock, disk, torn } = open(&options, &who).inspect_err(tell)?;
    let router = Router::new(who.node, network.clone());
    let driver = start_driver(engine, &router, torn);
    let exporter = start_traces(&options, &driver)?;
    let quotas = quotas_of(who.node, &driver);
    let memory = MemoryPressure::new(driver.store(), options.fold_limits().dirty_max());
    let monitor = start_monitor(&options, &who, &connect, &router, &gate)?;
    let client = metadata_client(&options, &who, &connect, monitor.as_ref())?;
    let (answering, reports) = answering(monitor.as_ref(), others.as_ref(), &gate, &users);
    serve_control(&accepting, Control::new(answering, Arc::clone(&users), domain, &control));
    let (node, cluster) = (who.node, who.identity.cluster());
    let generation = Generation::new(node, options.folder.clone(), who.record, who.identity);
    let parts = Parts {
        node,
        client,
        others,
        monitor: monitor.clone(),
        network: network.clone(),
        gate: Arc::clone(&gate),
        users,
        quotas: Arc::clone(&quotas),
        generation,
        is_joining: who.is_joining,
    };
    let follower = MetadataFollower::start(parts, &control.handle);
    router.open(Arc::clone(&follower) as Arc<dyn Leader>, Arc::clone(&driver));
    let gossip = start_gossip(&options, node, who.incarnation, cluster, &follower, &control)?;
    follower.gossip_by(gossip.clone());
    let inbox = Arc::clone(&follower) as Arc<dyn MonitorInbox>;
    gate.open(Arc::clone(&driver), inbox, router, Arc::clone(&quotas), Arc::clone(&memory));
    let listen = network.listen(options.listen)?;
    let keeper = Keeper::new(Arc::clone(&driver), options.fold_limits(), snapshot_floor(&gossip));
    start_telling(&options, &driver, &keeper, &follower, &control);
    let is_stopping = Arc::<AtomicBool>::default();
    let (going, open, seen) = (Arc::clone(&driver), Arc::clone(&gate), Arc::clone(&disk));
    let (rumours, kept) = (gossip.clone(), Arc::clone(&quotas));
    let maintenance = Maintenance::new(going, open, rumours, kept, memory, seen);
    let threads = start_threads(&driver, &keeper, maintenance, &quotas, &is_stopping)?;
    let running = Running { threads, marking: start_marking(&driver)?, control, lock };
    let server = Server {
        node,
        listen,
        driver,
        keeper,
        gate,
        network,
        monitor,
        follower,
        gossip,
        quotas,
        disk,
        exporter,
        observed: OnceLock::new(),
        is_stopping,
        running: Mutex::new(Some(running)),
    };
    reports.open(&server.observed());
    Ok(server)
}

/// What the node tells the monitors of itself from now on: what happens, and too much that is kept.
fn start_telling(
    options: &ServerOptions,
    driver: &Arc<Driver>,
    keeper: &Arc<Keeper>,
    follower: &MetadataFollower,
    control: &Thread,
) {
    let client = || follower.client().clone();
    control.handle.spawn(Arc::clone(&driver.remarks).run(driver.node(), client()));
    let bound = KeptBound::new(driver, Arc::clone(keeper), client(), options.kept_bytes_max);
    control.handle.spawn(bound.run());
}

/// Drives the engine; what a crash left of its log is told.
fn start_driver(engine: Engine, router: &Arc<Router>, torn: Option<String>) -> Arc<Driver> {
    let driver = Driver::new(engine, Arc::clone(router) as Arc<dyn Outbound>);
    torn.into_iter().for_each(|torn| driver.remarks.say(torn));
    driver
}

/// From now on control connections are answered.
fn serve_control(accepting: &OnceLock<Arc<Control>>, serving: Arc<Control>) {
    assert!(accepting.set(serving).is_ok(), "control connections are taken by one server");
}

/// Who answers control connections, and where they find how the node stands once it runs.
fn answering(
    monitor: Option<&Monitor>,
    others: Option<&MetadataClient>,
    gate: &Arc<Gate>,
    users: &Arc<Users>,
) -> (Answering, ReportSource) {
    let reports = ReportSource::default();
    let (looking, counting) = (reports.clone(), reports.clone());
    let answering = Answering {
        report: Arc::new(move || looking.report()),
        usage: Arc::new(move || counting.observer().map(|node| node.usage())),
        describe: describing(gate),
        call: calls::runner(gate, users),
        ..Answering::new(monitor.cloned(), others.cloned())
    };
    (answering, reports)
}

/// Says what a change of the service metadata is.
fn describing(gate: &Arc<Gate>) -> Describe {
    let naming = Arc::clone(gate);
    Arc::new(move |path, old, new| super::control::describe(path, old, new, &naming))
}

/// Traces transactions, if that is wanted.
fn start_traces(options: &ServerOptions, driver: &Arc<Driver>) -> Result<Option<Exporter>> {
    let Some(options) = &options.trace else { return Ok(None) };
    let (watch, exporter) = tyr_trace::start(driver.node(), options)?;
    driver.watch_by(watch);
    Ok(Some(exporter))
}

/// No quotas yet, over what the node holds.
fn quotas_of(node: NodeId, driver: &Arc<Driver>) -> Arc<Quotas> {
    let (store, tally) = driver.look(|engine| {
        let holdings = engine.holdings();
        (Arc::clone(holdings.store()), Arc::clone(holdings.tally()))
    });
    Quotas::new(node, store, tally)
}

/// Finds out who the node is; a new one that joins asks the cluster for its number.
fn settle(options: &ServerOptions, control: &Thread, connect: &Arc<dyn Connect>) -> Result<Who> {
    let mut identity = Identity::begin(&options.folder)?;
    let incarnation = incarnation(identity.starts());
    assert!(incarnation > 0, "this start is counted (M4)");
    let mut record = options.record(identity.drawn()?, incarnation);
    if let Formation::Initial(initial) = &options.formation {
        let number = options.node.or(identity.node());
        let own = initial.iter().find(|it| Some(it.node) == number).ok_or_else(|| {
            Error::invalid(
                "the nodes that form the cluster do not have this one among them; say its number",
            )
        })?;
        record.is_monitor = own.is_monitor;
    }
    let token = match &options.secret {
        Some(secret) => access::token(access::ROOT, secret),
        None => String::new(),
    };
    let is_joining = matches!(options.formation, Formation::Join(_));
    let wanted = match (&options.formation, identity.node()) {
        (Formation::Join(addresses), None) => {
            let wanted = options.node;
            let options = ClientOptions {
                sender: Sender::Node(wanted.map_or(u16::MAX, |node| node.0)),
                token: token.clone(),
                ..ClientOptions::at(addresses)
            };
            let client = MetadataClient::new(options, Arc::clone(connect))?;
            let admitted = client.admit(wanted, record.clone());
            Some(control.handle.block_on(admitted)?)
        }
        (Formation::Join(_) | Formation::Initial(_) | Formation::Known, _) => options.node,
    };
    let node = identity.settle(&options.folder, wanted)?;
    assert_eq!(identity.node(), Some(node), "it is in the folder before anybody hears of it");
    // Before anything of it takes part: not its monitor either, which would vote by an old journal.
    if identity.generation().is_some() && !identity.peers().is_empty() {
        let at_peers = ClientOptions {
            cluster: identity.cluster(),
            sender: Sender::Node(node.0),
            token: token.clone(),
            patience: PEERS_PATIENCE,
            ..ClientOptions::at(identity.peers())
        };
        let client = MetadataClient::new(at_peers, Arc::clone(connect))?;
        let asked = generation::ask_peers(&client, &identity, node, &options.folder);
        control.handle.block_on(asked)?;
    }
    Ok(Who { identity, node, incarnation, record, token, is_joining })
}

fn start_network(
    options: &ServerOptions,
    who: &Who,
    gate: &Arc<Gate>,
    accepting: &Arc<OnceLock<Arc<Control>>>,
) -> Result<Network> {
    let hello = Hello {
        cluster: who.identity.cluster(),
        level: level::spoken(),
        sender: Address::Node(who.node),
        receiver: None,
        incarnation: who.incarnation,
        token: Bytes::from(who.token.clone()),
    };
    let accepting = Arc::clone(accepting);
    let parts = NetworkParts {
        identity: Arc::new(move || hello.clone()),
        authenticate: Arc::clone(gate) as _,
        receive: Arc::clone(gate) as _,
        control: Some(Arc::new(move |stream| {
            if let Some(control) = accepting.get() {
                control.accept(stream);
            }
        })),
    };
    Network::start(options.network.clone(), parts)
}

fn start_monitor(
    options: &ServerOptions,
    who: &Who,
    connect: &Arc<dyn Connect>,
    router: &Arc<Router>,
    gate: &Arc<Gate>,
) -> Result<Option<Monitor>> {
    let folder = options.folder.join(MONITOR_FOLDER);
    if !who.record.is_monitor && !folder.exists() {
        return Ok(None);
    }
    let disk = Arc::new(RealDisk::create(&folder)?);
    let mut monitor = MonitorOptions::new(who.node, disk, who.record.clone());
    monitor.token = who.token.clone();
    monitor.lease = options.lease.unwrap_or(monitor.lease);
    monitor.describe = describing(gate);
    let times = options.heartbeat_and_election;
    (monitor.heartbeat, monitor.election) = times.unwrap_or((monitor.heartbeat, monitor.election));
    if let Formation::Initial(initial) = &options.formation {
        monitor.initial = initial.clone();
    }
    let router = Arc::clone(router);
    let send = Arc::new(move |to, envelope| router.send_from_monitors(to, envelope));
    Monitor::start(monitor, Arc::clone(connect), send).map(Some)
}

/// Asks the monitors in this node's name: by way of its own, if that has a vote, then of everybody
/// it has heard of.
fn metadata_client(
    options: &ServerOptions,
    who: &Who,
    connect: &Arc<dyn Connect>,
    monitor: Option<&Monitor>,
) -> Result<MetadataClient> {
    let mut addresses = others(options, who);
    if monitor.is_some_and(Monitor::is_voter) {
        addresses.insert(0, options.listen.to_string());
    }
    if addresses.is_empty() {
        return Err(Error::invalid(
            "the node knows no other; say which cluster it is to join, or which nodes form it",
        ));
    }
    MetadataClient::new(asking(who, &addresses), Arc::clone(connect))
}

/// Asks the others for what is asked of this node; `None` while it knows of none.
fn relaying_client(
    options: &ServerOptions,
    who: &Who,
    connect: &Arc<dyn Connect>,
) -> Result<Option<MetadataClient>> {
    let addresses = others(options, who);
    let client = || MetadataClient::new(asking(who, &addresses), Arc::clone(connect));
    (!addresses.is_empty()).then(client).transpose()
}

fn asking(who: &Who, addresses: &[String]) -> ClientOptions {
    ClientOptions {
        cluster: who.identity.cluster(),
        sender: Sender::Node(who.node.0),
        token: who.token.clone(),
        ..ClientOptions::at(addresses)
    }
}

/// Where other nodes are, as far as this one has heard.
fn others(options: &ServerOptions, who: &Who) -> Vec<String> {
    let mut addresses: Vec<String> = match &options.formation {
        Formation::Known => Vec::new(),
        Formation::Join(addresses) => addresses.clone(),
        Formation::Initial(initial) => {
            let monitors = initial.iter().filter(|it| it.is_monitor && it.node != who.node);
            monitors.map(|it| it.address.clone()).collect()
        }
    };
    addresses.extend(who.identity.peers().iter().cloned());
    addresses
}

/// A store that was opened.
struct Open {
    engine: Engine,
    lock: FolderLock,
    disk: Arc<NodeDisk>,
    /// What a crash left at the end of the log, and was cut off.
    torn: Option<String>,
}

/// Opens the store, and tells the member what its log holds.
fn open(options: &ServerOptions, who: &Who) -> Result<Open> {
    warn_of_small_cache(options.cache_bytes);
    let us = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let read_timeout_us = us(options.snapshot_timeout);
    let retention = Retention { read_timeout_us, linger_us: us(options.linger) };
    let config = MemberConfig {
        read_timeout_us,
        copy_rate: options.copy_rate,
        scrub: options.scrub,
        level: level::spoken(),
        ..MemberConfig::default()
    };
    let member = Member::new(who.node, who.incarnation, config);
    #[cfg(feature = "broken-rules")]
    let member = tyr_runtime::broken::taken_from(member);
    let hold = |store| Holdings::new(who.node, store, retention);
    let folder = options.folder.join(STORE_FOLDER);
    let mut cut = None;
    let open = |visit: Visit<'_>| {
        let opened = Store::open_node(&folder, visit)?;
        if let Some(torn) = &opened.torn_tail {
            tracing::warn!("{torn}");
            cut = Some(torn.to_string());
        }
        Ok(opened)
    };
    let (engine, lock) = Engine::open(member, hold, open)?;
    if let Some(map) = engine.member().map() {
        map.check_program(level::spoken())?;
    }
    let disk = NodeDisk::of(folder.join(LOCK_FILE))?;
    Ok(Open { engine, lock, disk: Arc::new(disk), torn: cut })
}

/// Gossips at the node's address; who is gone is told to the monitors (M2).
fn start_gossip(
    options: &ServerOptions,
    node: NodeId,
    incarnation: u64,
    cluster: Option<u128>,
    follower: &Arc<MetadataFollower>,
    control: &Thread,
) -> Result<Gossip> {
    let options = GossipOptions {
        node,
        incarnation,
        cluster,
        secret: options.secret.clone(),
        address: options.listen,
        config: options.gossip.clone(),
        runtime: None,
    };
    let (follower, handle) = (Arc::downgrade(follower), control.handle.clone());
    let on_event = move |event| {
        let Some(follower) = follower.upgrade() else { return };
        match event {
            GossipEvent::Down { node, incarnation } => {
                handle.spawn(follower.report_down(node, incarnation));
            }
            // A node that is back tells the monitors itself; maps come with leases.
            GossipEvent::Alive { .. } | GossipEvent::Suspect { .. } | GossipEvent::Epoch { .. } => {
            }
        }
    };
    Gossip::start(options, Arc::new(on_event))
}

/// Down to where snapshots are read at other nodes. Of who was not heard lately nothing is waited
/// for: after a read timeout it has none.
fn snapshot_floor(gossip: &Gossip) -> SnapshotFloor {
    let gossip = gossip.clone();
    Arc::new(move || {
        let fresh = |heard: &Heard| heard.age_us < RUMOUR_AGE_MAX_US;
        gossip
            .rumours()
            .iter()
            .filter(|heard| fresh(heard))
            .map(|it| it.rumour.snapshot_floor)
            .min()
    })
}

/// How far the log is durable is written beside it.
fn start_marking(driver: &Arc<Driver>) -> Result<Marking> {
    let marker = driver.look(|engine| engine.journal().log().lock().marker());
    Marking::start(move || marker.mark())
}

fn start_threads(
    driver: &Arc<Driver>,
    keeper: &Arc<Keeper>,
    maintenance: Maintenance,
    quotas: &Arc<Quotas>,
    is_stopping: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<()>>> {
    let (syncing, keeping) = (Arc::clone(driver), Arc::clone(keeper));
    let [stopping, ending, closing] = [(); 3].map(|()| Arc::clone(is_stopping));
    let giver = Giver::new(driver.store());
    let usage_scan = UsageScan::new(Arc::clone(driver), quotas);
    Ok(vec![
        spawn("tyr-syncer", move || syncing.run_syncer())?,
        spawn("tyr-keeper", move || keeping.run())?,
        spawn("tyr-giver", move || giver.run(&closing))?,
        spawn("tyr-maintenance", move || maintenance.run(&stopping))?,
        spawn("tyr-usage-scan", move || usage_scan.run(&ending))?,
    ])
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("cannot start thread {name}")).with_source(error)
    })
}
