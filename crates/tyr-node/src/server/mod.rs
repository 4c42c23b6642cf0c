//! A node of a cluster: its parts, put together.
//!
//! ```text
//!             network ──► gate ──► driver ──► holdings, journal      monitors (by role)
//!                ▲                   │            │   │                 │      ▲
//!                └──── exit ◄────────┘         keeper syncer            └──────┘ renewals, maps
//! ```
//!
//! Starting: identity (which start this is), network, store and log, member, monitors; then the
//! gate opens. Stopping: the other way round.

mod identity;
mod observation;
mod options;
mod outlet;
mod solo;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{Member, MemberConfig, incarnation};
use tyr_protocol::message::Address;
use tyr_protocol::wire::{self, Hello};
use tyr_store::disk::FolderLock;
use tyr_store::store::{OpenedNode, Store};
use tyr_types::{Bytes, Error, ErrorKind, ExtentRef, NodeId, Result};

pub use self::identity::Identity;
pub use self::observation::{
    Health, MapReport, MovementStatistics, NodeReport, NodeStatistics, Observer, SeatReport,
};
pub use self::options::ServerOptions;
use self::outlet::{Exit, Leader};
use crate::agent::holdings::{Holdings, Retention};
use crate::agent::journal::Journal;
use crate::processor::driver::{Core, Driver, Outlet};
use crate::router::access::{self, Users};
use crate::router::gate::{Gate, MonitorInlet};
use crate::router::network::{Network, NetworkParts};

/// How often a node looks around.
const TICK: Duration = Duration::from_millis(50);

/// The folder of the store within a node's.
const STORE_FOLDER: &str = "store";

/// A node of a cluster that runs. Dropping it stops it.
pub struct Server {
    node: NodeId,
    listen: std::net::SocketAddr,
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    network: Network,
    is_stopping: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
}

struct Running {
    threads: Vec<JoinHandle<()>>,
    _lock: FolderLock,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server(node {} at {})", self.node.0, self.listen)
    }
}

impl Server {
    /// Starts a node.
    ///
    /// # Errors
    /// `InvalidArgument` for options that cannot be; `Unavailable` when the folder or the address
    /// is in use; `Corrupt` when the store is damaged.
    pub fn start(options: ServerOptions, map: Arc<ClusterMap>) -> Result<Self> {
        options.validate()?;
        let identity = Identity::begin(&options.folder, options.node)?;
        let node = NodeId(identity.node);
        let users = Arc::new(match &options.secret {
            Some(secret) => Users::with_secret(secret),
            None => Users::unchecked(),
        });
        let gate = Gate::new(users);
        let started = incarnation(identity.starts);
        let token = options.secret.as_ref().map(|secret| access::token(access::ROOT, secret));
        let hello = Hello {
            cluster: None,
            sender: Address::Node(node),
            receiver: None,
            incarnation: started,
            token: Bytes::from(token.unwrap_or_default()),
        };
        let parts = NetworkParts {
            identity: Arc::new(move || hello.clone()),
            authenticate: Arc::clone(&gate) as _,
            receive: Arc::clone(&gate) as _,
            control: None,
        };
        let network = Network::start(options.network.clone(), parts)?;
        let (core, lock) = open(&options, node, started)?;
        let exit = Exit::new(node, network.clone());
        let driver = Driver::new(core, Arc::clone(&exit) as Arc<dyn Outlet>);
        gate.learn(Arc::clone(&map));
        let monitors = solo::Solo::start(map, options.lease, Arc::clone(&exit));
        exit.open(Arc::clone(&monitors) as Arc<dyn Leader>, Arc::clone(&driver));
        gate.open(Arc::clone(&driver), monitors as Arc<dyn MonitorInlet>, exit);
        let listen = network.listen(options.listen)?;
        network.set_nodes(&options.nodes);

        let is_stopping = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let syncing = Arc::clone(&driver);
        threads.push(spawn("tyr-syncer", move || syncing.run_syncer())?);
        let (ticking, stopping) = (Arc::clone(&driver), Arc::clone(&is_stopping));
        threads.push(spawn("tyr-ticker", move || {
            while !stopping.load(Ordering::Acquire) {
                ticking.tick();
                std::thread::sleep(TICK);
            }
        })?);
        let running = Mutex::new(Some(Running { threads, _lock: lock }));
        Ok(Self { node, listen, driver, gate, network, is_stopping, running })
    }

    /// Its number.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Where it listens.
    pub fn listen(&self) -> std::net::SocketAddr {
        self.listen
    }

    /// What goes on in it, for whoever looks for a failure.
    pub fn brief(&self) -> String {
        let core = self.driver.core();
        let member = core.member();
        format!(
            "node {}: epoch {:?}, lease {}, in flight {}, reads waiting {}, failure {:?}\n{}",
            self.node.0,
            member.map().map(|map| map.epoch),
            member.has_lease(),
            member.in_flight(),
            member.waiting_reads(),
            core.failure(),
            member.brief(),
        )
    }

    /// Stops. Does nothing the second time.
    ///
    /// # Errors
    /// `Unavailable` when a thread ended otherwise than it should.
    pub fn stop(&self) -> Result<()> {
        let Some(Running { threads, _lock }) = self.running.lock().take() else { return Ok(()) };
        self.is_stopping.store(true, Ordering::Release);
        self.driver.close();
        self.network.close();
        let mut ended = Ok(());
        for thread in threads {
            if thread.join().is_err() {
                ended = Err(Error::unavailable("a thread of the node panicked"));
            }
        }
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure; whoever wants to know calls `stop`.
        let _ = self.stop();
    }
}

/// Opens the store, and tells the member what its log holds.
fn open(options: &ServerOptions, node: NodeId, incarnation: u64) -> Result<(Core, FolderLock)> {
    let us = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let read_timeout_us = us(options.snapshot_timeout);
    let retention = Retention { read_timeout_us, linger_us: us(options.linger) };
    let config = MemberConfig { read_timeout_us, ..MemberConfig::default() };
    let mut member = Member::new(node, incarnation, config);
    let mut holdings: Option<Holdings> = None;
    let mut visit = |store: &Arc<Store>, body: Bytes, extents: &mut Vec<ExtentRef>| {
        let holdings =
            holdings.get_or_insert_with(|| Holdings::new(node, Arc::clone(store), retention));
        holdings.replay(&mut member, wire::decode_record(&body)?, extents)
    };
    let OpenedNode { store, log, lock } =
        Store::open_node(&options.folder.join(STORE_FOLDER), &mut visit)?;
    let holdings = holdings.unwrap_or_else(|| Holdings::new(node, store, retention));
    Ok((Core::new(member, holdings, Journal::new(log)), lock))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("cannot start thread {name}"))
            .with_source(error)
    })
}
