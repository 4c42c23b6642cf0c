//! Connecting to a cluster: who is there, which map, and then to its nodes.
//!
//! ```text
//!   addresses ─► control connection: bootstrap ─► network: a connection to each node ─► Client
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Address, Envelope};
use tyr_protocol::wire::Hello;
use tyr_types::{Bytes, Error, ErrorKind, NodeId, Result};

use super::network_transport::{NetworkTransport, addresses};
use super::{Client, ClientConfig, ClientParts, Inbox, block_on};
use tyr_control::Thread;
use tyr_control::status::Bootstrap;
use tyr_control::{ClientOptions, MetadataClient, Sender};
use tyr_net::access::{self, Key};
use tyr_net::level;
use tyr_net::{
    Authenticate, Dialer, Introduction, Network, NetworkConfig, NetworkParts, Peer, Principal,
    Receive, TlsConfig,
};
use tyr_runtime::clock;

/// Between two looks for something that has to come.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long a client that has reached a node waits for the others: those that are there answer
/// within milliseconds, and one that is not must not hold it up.
const OTHERS_WAIT: Duration = Duration::from_millis(500);

/// How often each node refuses a client before it gives up: with the pauses between, half a second.
const DENIALS: u64 = 4;

const _: () = {
    assert!(LOOK_AGAIN.as_millis() < OTHERS_WAIT.as_millis(), "who comes late is seen in time");
    assert!(DENIALS > 1, "a user that was just made is not known everywhere yet");
};

/// How a cluster is connected to.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Where nodes of it are reached, `host:port`, any of them.
    pub addresses: Vec<String>,
    /// Who connects, with the key that shows it; `None` where nothing is checked.
    pub user: Option<(String, Key)>,
    /// How long to try. Default 15 s.
    pub connect_timeout: Duration,
    /// How patient calls are, and how many there may be.
    pub config: ClientConfig,
    /// TLS; without it nothing is encrypted. Default none.
    pub tls: Option<TlsConfig>,
    /// The highest feature level that the client speaks. Default the program's; tests have clients
    /// of other releases.
    pub level: u8,
}

impl ConnectOptions {
    /// Somebody without a name, at these addresses.
    pub fn at(addresses: Vec<String>) -> Self {
        let (connect_timeout, config) = (Duration::from_secs(15), ClientConfig::default());
        let level = level::spoken();
        Self { addresses, user: None, connect_timeout, config, tls: None, level }
    }

    fn token(&self) -> String {
        self.user.as_ref().map_or(String::new(), |(name, key)| access::token(name, key))
    }
}

impl Client {
    /// Connects to a cluster. Blocks until the first of its nodes is reached.
    ///
    /// # Errors
    /// `InvalidArgument` for options that cannot be; `PermissionDenied` when one side does not let
    /// the other in, by key or by certificate; `Unavailable` when nobody answers in time.
    pub fn connect(options: &ConnectOptions) -> Result<Arc<Self>> {
        options.config.session()?;
        let until = Instant::now() + options.connect_timeout;
        let thread = Thread::start()?;
        let monitors = metadata_client(options)?;
        let asking = begin(monitors.clone(), until);
        let asked = thread.handle.spawn(asking);
        let (bootstrap, map) = block_on(asked).unwrap_or_else(|_| Err(super::answer::closed()))?;
        let (number, inbox) = (clock::random_u64(), Inbox::default());
        let entrance = Arc::new(Entrance { inbox: inbox.clone(), ..Entrance::default() });
        let network = start_network(options, &bootstrap, number, &entrance)?;
        let places = addresses(&bootstrap);
        network.set_nodes(&places);
        entrance.wait(&map, until, || is_denied(&network)).ok_or_else(|| unreached(&network))?;
        let transport = NetworkTransport::new(network, monitors, thread, places);
        let (transport, control) = (Arc::clone(&transport), transport);
        let config = options.config;
        Self::start(ClientParts { number, map, transport, inbox, control, config })
    }
}

fn metadata_client(options: &ConnectOptions) -> Result<MetadataClient> {
    let user = options.user.as_ref().map_or(String::new(), |(name, _)| name.clone());
    let dialer = Dialer::new(options.tls.as_ref())?;
    let options = ClientOptions {
        sender: Sender::User(user),
        token: options.token(),
        patience: options.connect_timeout,
        ..ClientOptions::at(&options.addresses)
    };
    MetadataClient::new(options, Arc::new(dialer))
}

/// What a client needs to begin; of a cluster that forms, as soon as it has.
async fn begin(monitors: MetadataClient, until: Instant) -> Result<(Bootstrap, Arc<ClusterMap>)> {
    loop {
        let bootstrap = monitors.bootstrap().await?;
        match bootstrap.cluster_map() {
            Ok(map) => return Ok((bootstrap, Arc::new(map))),
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < until => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn start_network(
    options: &ConnectOptions,
    bootstrap: &Bootstrap,
    number: u64,
    entrance: &Arc<Entrance>,
) -> Result<Network> {
    let hello = Hello {
        cluster: bootstrap.cluster,
        level: options.level,
        sender: Address::Client(number),
        receiver: None,
        incarnation: 0,
        token: Bytes::from(options.token()),
    };
    let parts = NetworkParts {
        identity: Arc::new(move || hello.clone()),
        authenticate: Arc::clone(entrance) as _,
        receive: Arc::clone(entrance) as _,
        control: None,
    };
    Network::start(NetworkConfig { tls: options.tls.clone(), ..NetworkConfig::default() }, parts)
}

/// Whether all nodes have refused this client, or it them, and more than once: a user that was just
/// made is known to all a moment later.
fn is_denied(network: &Network) -> bool {
    let targets = network.statistics().targets;
    !targets.is_empty()
        && targets.values().all(|status| status.is_denied && status.failures >= DENIALS)
}

/// Why no node could be reached.
fn unreached(network: &Network) -> Error {
    let kind = match is_denied(network) {
        true => ErrorKind::PermissionDenied,
        false => ErrorKind::Unavailable,
    };
    let targets = network.statistics().targets;
    let why = targets.into_values().find_map(|status| status.last_error);
    let why = why.unwrap_or_else(|| "none of them takes connections".to_owned());
    Error::new(kind, format!("no node of the cluster can be reached: {why}"))
}

/// Where nodes speak to a client.
#[derive(Default)]
struct Entrance {
    inbox: Inbox,
    here: Mutex<BTreeSet<NodeId>>,
    changed: Condvar,
}

impl Entrance {
    /// Waits until the nodes of the map are connected, or until one is and the others take long;
    /// `None` when none is in time, or none will be.
    fn wait(&self, map: &ClusterMap, until: Instant, is_denied: impl Fn() -> bool) -> Option<()> {
        let others = Instant::now() + OTHERS_WAIT;
        let mut here = self.here.lock();
        loop {
            let now = Instant::now();
            let is_all = map.live().all(|node| here.contains(&node));
            if is_all || (!here.is_empty() && now >= others) {
                return Some(());
            }
            if now >= until || (here.is_empty() && is_denied()) {
                return None;
            }
            let next = until.min(now + LOOK_AGAIN);
            self.changed.wait_until(&mut here, next);
        }
    }
}

impl Receive for Entrance {
    fn here(&self, peer: &Arc<Peer>) {
        if let Address::Node(node) = peer.address {
            self.here.lock().insert(node);
            self.changed.notify_all();
        }
    }

    fn receive(&self, _: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        self.inbox.receive(batch.drain(..));
    }

    fn gone(&self, _: &Arc<Peer>) {}

    fn refused(&self, _: NodeId, error: &Error) {
        if error.kind() == ErrorKind::AlreadyExists {
            self.inbox.end(error);
        }
    }
}

/// Whom a client reaches is who it meant: the network has checked cluster and number.
impl Authenticate for Entrance {
    fn authenticate(&self, _: &Introduction<'_>) -> Result<Principal> {
        Ok(Principal::new(()))
    }
}
