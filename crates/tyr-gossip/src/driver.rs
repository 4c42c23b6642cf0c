//! Gives the machine a socket, a clock and a task.
//!
//! ```text
//!   caller: set_nodes, tell ─► machine (under a lock) ─► wakes the task
//!   task:   datagram or time ─► machine ─► datagrams sent, then events told, without the lock
//!   names:  looked up again from time to time ─► machine
//! ```
//!
//! Only the task sends and tells, so that events come in the order in which they happened.
//!
//! Must not know: SWIM.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::{UdpSocket, lookup_host};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, timeout};
use tyr_types::{Error, NodeId, Result};

use super::config::GossipConfig;
use super::event::{Effect, GossipEvent, Input, MachineParts, NodeView};
use super::machine::Machine;
use super::rumour::{Heard, Rumour};
use super::statistics::GossipStatistics;
use tyr_net::NodeAddresses;
use tyr_net::access::Key;
use tyr_runtime::clock::random_u64;

/// Datagrams that are taken before time is looked at: more than a socket's buffer holds of ours.
const DATAGRAMS_MAX: usize = 256;

/// Longer than any datagram of ours, so that a longer one is seen to be none.
const BUFFER_LEN: usize = 2048;

/// Names are looked up again after this long: a node may have moved.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);

/// How long looking one up may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// After an error of the socket, which should have none.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// How gossip is started.
#[derive(Clone, Debug)]
pub struct GossipOptions {
    /// This node.
    pub node: NodeId,
    /// Its incarnation (M4): above 0, and higher than in all its earlier processes.
    pub incarnation: u64,
    /// The cluster, when it is known.
    pub cluster: Option<u128>,
    /// The cluster's secret, if it has one.
    pub secret: Option<Key>,
    /// Where to listen: the address of the node's TCP listener; port 0 is any free one.
    pub address: SocketAddr,
    /// Intervals and bounds.
    pub config: GossipConfig,
    /// Where to run; `None`: on a thread of its own.
    pub runtime: Option<Handle>,
}

/// What is called for each event, in order, on the gossip's task: it must not block, or nobody
/// hears of this node. It may call the gossip.
pub type OnEvent = Arc<dyn Fn(GossipEvent) + Send + Sync>;

/// The gossip of one node. Clones are the same; it ends with the last of them, or when it is
/// closed.
#[derive(Clone)]
pub struct Gossip(Arc<Owner>);

/// Ends the tasks when its last handle goes; they hold what is below it.
struct Owner {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    machine: Mutex<Machine>,
    events: OnEvent,
    started: Instant,
    /// Somebody called: the task is to look.
    changed: Notify,
    /// Nodes of which some have names to be looked up.
    named: Mutex<Option<BTreeMap<NodeId, Vec<String>>>>,
    renamed: Notify,
    closing: Mutex<bool>,
    closed: Notify,
}

impl fmt::Debug for Gossip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gossip").field("address", &self.0.address).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

impl Gossip {
    /// Starts. Nobody is asked before [`Gossip::set_nodes`].
    ///
    /// # Errors
    /// `InvalidArgument` when the options are out of range; `Unavailable` when the address is in
    /// use or not this machine's, or the system has no more threads.
    pub fn start(options: GossipOptions, events: OnEvent) -> Result<Self> {
        let GossipOptions { node, incarnation, cluster, secret, address, config, runtime } =
            options;
        let seed = random_u64();
        let machine =
            Machine::new(MachineParts { node, incarnation, cluster, secret, config, seed })?;
        let failed = |error| Error::io(format!("cannot gossip at {address}"), error);
        let socket = std::net::UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            machine: Mutex::new(machine),
            events,
            started: Instant::now(),
            changed: Notify::new(),
            named: Mutex::default(),
            renamed: Notify::new(),
            closing: Mutex::new(false),
            closed: Notify::new(),
        });
        let thread = match runtime {
            Some(handle) => {
                start_tasks(&handle, &shared, socket)?;
                None
            }
            None => Some(start_thread(&shared, socket)?),
        };
        Ok(Self(Arc::new(Owner { shared, address, thread: Mutex::new(thread) })))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The nodes of the map and where they are; from now on these and no others. This node may be
    /// among them.
    pub fn set_nodes(&self, nodes: &BTreeMap<NodeId, NodeAddresses>) {
        let shared = &self.0.shared;
        let parse = |it: &NodeAddresses| -> Option<Vec<SocketAddr>> {
            it.addresses.iter().map(|address| address.parse().ok()).collect()
        };
        let parsed: Option<BTreeMap<NodeId, Vec<SocketAddr>>> =
            nodes.iter().map(|(node, it)| Some((*node, parse(it)?))).collect();
        let named = |it: &NodeAddresses| it.addresses.clone();
        *shared.named.lock() = match &parsed {
            Some(_) => None,
            None => Some(nodes.iter().map(|(node, it)| (*node, named(it))).collect()),
        };
        match parsed {
            Some(nodes) => shared.set_nodes(&nodes),
            None => shared.renamed.notify_one(),
        }
    }

    /// From now on this node tells this of itself.
    ///
    /// # Errors
    /// `InvalidArgument` when it has totals of too many keyspaces.
    pub fn tell(&self, rumour: Rumour) -> Result<()> {
        let shared = &self.0.shared;
        shared.machine.lock().tell(shared.now_us(), rumour)?;
        shared.changed.notify_one();
        Ok(())
    }

    /// What was heard of all other nodes, each with its age; also of those that are down.
    pub fn rumours(&self) -> Vec<Heard> {
        self.0.shared.machine.lock().rumours(self.0.shared.now_us())
    }

    /// All other nodes of the map as they look from here.
    pub fn view(&self) -> Vec<NodeView> {
        self.0.shared.machine.lock().view(self.0.shared.now_us())
    }

    /// What was done so far.
    pub fn statistics(&self) -> GossipStatistics {
        self.0.shared.machine.lock().statistics()
    }

    /// Says goodbye and ends; others take the node for down at once. Waits for its thread, unless
    /// that calls. On a runtime that was handed in the goodbye follows soon.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Owner {
    fn close(&self) {
        if !std::mem::replace(&mut *self.shared.closing.lock(), true) {
            self.shared.changed.notify_one();
        }
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // A panic in it was reported where it happened.
            let _ = thread.join();
        }
    }
}

fn start_thread(shared: &Arc<Shared>, socket: std::net::UdpSocket) -> Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("cannot watch a socket for gossip", error))?;
    start_tasks(runtime.handle(), shared, socket)?;
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("tyr-gossip".into())
        .spawn(move || {
            tyr_runtime::priority::go_first();
            runtime.block_on(shared.closed.notified());
            // Does not wait for names that are being looked up.
            runtime.shutdown_background();
        })
        .map_err(|error| Error::io("cannot start a thread for gossip", error))
}

fn start_tasks(runtime: &Handle, shared: &Arc<Shared>, socket: std::net::UdpSocket) -> Result<()> {
    let _inside = runtime.enter();
    let socket = UdpSocket::from_std(socket)
        .map_err(|error| Error::io("cannot watch a socket for gossip", error))?;
    let lookups = runtime.spawn(look_up(Arc::clone(shared)));
    let shared = Arc::clone(shared);
    runtime.spawn(async move {
        run(&shared, &socket).await;
        lookups.abort();
        shared.closed.notify_one();
    });
    Ok(())
}

/// The task: until it is closed.
async fn run(shared: &Shared, socket: &UdpSocket) {
    let mut buffer = [0; BUFFER_LEN];
    let mut effects = Vec::new();
    loop {
        let wakes_at = shared.machine.lock().wakes_at();
        let wakes_at = shared.started + Duration::from_micros(wakes_at);
        tokio::select! {
            // What came is looked at before time is: it may be the answer.
            biased;
            readable = socket.readable() => {
                if readable.is_err() || !receive(shared, socket, &mut buffer, &mut effects) {
                    sleep(ERROR_PAUSE).await;
                }
            }
            () = shared.changed.notified() => {}
            () = sleep_until(wakes_at.into()) => {}
        }
        let is_closing = *shared.closing.lock();
        {
            let mut machine = shared.machine.lock();
            if is_closing {
                machine.leave(&mut effects);
            } else if machine.wakes_at() <= shared.now_us() {
                machine.step(shared.now_us(), Input::Tick, &mut effects);
            }
        }
        carry_out(shared, socket, &mut effects);
        if is_closing {
            return;
        }
    }
}

/// Takes the datagrams that have come. False after an error of the socket.
fn receive(
    shared: &Shared,
    socket: &UdpSocket,
    buffer: &mut [u8],
    effects: &mut Vec<Effect>,
) -> bool {
    for _ in 0..DATAGRAMS_MAX {
        match socket.try_recv_from(buffer) {
            Ok((len, from)) => {
                let input = Input::Datagram { from, bytes: &buffer[..len] };
                shared.machine.lock().step(shared.now_us(), input, effects);
                carry_out(shared, socket, effects);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
            Err(error) => {
                tracing::warn!(%error, "gossip cannot receive");
                return false;
            }
        }
    }
    true
}

/// Sends and tells.
fn carry_out(shared: &Shared, socket: &UdpSocket, effects: &mut Vec<Effect>) {
    for effect in effects.drain(..) {
        match effect {
            Effect::Send { to, bytes } => {
                if let Err(error) = socket.try_send_to(&bytes, to) {
                    tracing::debug!(%error, %to, "a datagram of gossip was not sent");
                    shared.machine.lock().count_unsent();
                }
            }
            Effect::Event(event) => (shared.events)(event),
        }
    }
}

/// Looks names up, again and again: until it is stopped.
async fn look_up(shared: Arc<Shared>) {
    loop {
        let named = shared.named.lock().clone();
        let Some(named) = named else {
            shared.renamed.notified().await;
            continue;
        };
        let mut nodes = BTreeMap::new();
        for (node, names) in &named {
            let mut addresses = Vec::new();
            for name in names {
                match timeout(LOOKUP_TIMEOUT, lookup_host(name)).await {
                    Ok(Ok(found)) => addresses.extend(found),
                    Ok(Err(error)) => tracing::debug!(%error, name, "no address for gossip"),
                    Err(_) => tracing::debug!(name, "looking up a name takes too long"),
                }
            }
            nodes.insert(*node, addresses);
        }
        // Not if others were set meanwhile.
        if shared.named.lock().as_ref() == Some(&named) {
            shared.set_nodes(&nodes);
            tokio::select! {
                () = sleep(LOOKUP_INTERVAL) => {}
                () = shared.renamed.notified() => {}
            }
        }
    }
}

impl Shared {
    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn set_nodes(&self, nodes: &BTreeMap<NodeId, Vec<SocketAddr>>) {
        self.machine.lock().set_nodes(self.now_us(), nodes);
        self.changed.notify_one();
    }
}
