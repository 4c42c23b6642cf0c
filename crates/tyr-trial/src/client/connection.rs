//! The product's client on the product's network, told by the monitors where everybody is.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tyr_node::client::control::Asked;
use tyr_node::client::{Client, ClientConfig, ClientParts, Control, Inbox, Transport};
use tyr_node::monitors::control::MetadataClient;
use tyr_node::network::{
    Authenticate, Introduction, Network, NetworkConfig, NetworkParts, Peer, Principal, Receive,
};
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Envelope};
use tyr_protocol::wire::Hello;
use tyr_types::{Epoch, Error, NodeId, Result};

use crate::cluster::Office;
use crate::cluster::office::addresses;

/// How often a client looks where the nodes are: who joins is asked soon.
const LOOK: Duration = Duration::from_millis(500);

/// How long a call of a trial's client may take.
pub const TIMEOUT: Duration = Duration::from_secs(8);

/// Nobody listens to who calls a client.
pub(super) struct Anybody;

impl Authenticate for Anybody {
    fn authenticate(&self, _: &Introduction<'_>) -> Result<Principal> {
        Ok(Principal::new(()))
    }
}

/// Hands what comes in to a client.
struct Mailbox(Inbox);

impl Receive for Mailbox {
    fn receive(&self, _: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        self.0.receive(batch.drain(..));
    }

    fn gone(&self, _: &Arc<Peer>) {}
}

struct Post(Network);

impl Transport for Post {
    fn send(&self, to: NodeId, envelope: Envelope) {
        self.0.send(Address::Node(to), &envelope);
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// The monitors, asked on a runtime whoever waits for the answer.
struct Desk {
    client: MetadataClient,
    runtime: Handle,
    network: Network,
}

impl Control for Desk {
    fn map(&self) -> Asked<Arc<ClusterMap>> {
        let client = self.client.clone();
        let asked = async move { client.bootstrap().await?.cluster_map().map(Arc::new) };
        let asked = self.runtime.spawn(asked);
        Box::pin(async { asked.await.unwrap_or_else(|_| Err(over())) })
    }

    fn propose(&self, change: Change) -> Asked<Epoch> {
        let client = self.client.clone();
        let asked = self.runtime.spawn(async move { client.propose(change).await });
        Box::pin(async { asked.await.unwrap_or_else(|_| Err(over())) })
    }

    fn close(&self) {
        self.network.close();
    }
}

fn over() -> Error {
    Error::unavailable("the trial is over")
}

/// A network of a client's: this number, this cluster.
pub(super) fn network(
    number: u64,
    cluster: Option<u128>,
    receive: Arc<dyn Receive>,
) -> Result<Network> {
    let hello = Hello {
        cluster,
        sender: Address::Client(number),
        receiver: None,
        incarnation: 0,
        token: Bytes::new(),
    };
    let parts = NetworkParts {
        identity: Arc::new(move || hello.clone()),
        authenticate: Arc::new(Anybody),
        receive,
        control: None,
    };
    Network::start(NetworkConfig::default(), parts)
}

/// A client of the cluster that the office asks. It learns of nodes that join.
///
/// # Errors
/// `Unavailable` when nobody answers.
pub fn connect(office: &Office) -> Result<Arc<Client>> {
    let bootstrap = office.bootstrap()?;
    let number = tyr_node::clock::random_u64();
    let inbox = Inbox::default();
    let network = network(number, bootstrap.cluster, Arc::new(Mailbox(inbox.clone())))?;
    network.set_nodes(&addresses(&bootstrap));
    let (client, runtime) = office.parts();
    let desk = Desk { client, runtime: runtime.clone(), network: network.clone() };
    let client = Client::start(ClientParts {
        number,
        map: Arc::new(bootstrap.cluster_map()?),
        transport: Arc::new(Post(network.clone())),
        inbox,
        control: Arc::new(desk),
        config: ClientConfig { timeout: TIMEOUT, ..ClientConfig::default() },
    })?;
    let followed = Arc::downgrade(&client);
    runtime.spawn(follow(office.parts().0, network, followed));
    Ok(client)
}

/// Tells the network where everybody is, for as long as the client lives.
async fn follow(monitors: MetadataClient, network: Network, client: Weak<Client>) {
    let is_there = || client.strong_count() > 0;
    while is_there() {
        tokio::time::sleep(LOOK).await;
        if let Ok(bootstrap) = monitors.bootstrap().await
            && !bootstrap.nodes.is_empty()
        {
            network.set_nodes(&addresses(&bootstrap));
        }
    }
}
