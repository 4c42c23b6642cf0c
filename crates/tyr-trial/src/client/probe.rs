//! What one node answers: a read is sent to it alone, and nobody else is asked.
//!
//! By it a test sees what a replica has, and that a node without a lease answers nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_net::{
    Authenticate, Introduction, Network, NetworkConfig, NetworkParts, Peer, Principal, Receive,
};
use tyr_protocol::message::{Address, Asked, Body, Envelope, ReadRequest};
use tyr_protocol::read::Kind;
use tyr_protocol::wire::{Hello, LEVEL};
use tyr_types::{BlobName, ByteRange, Bytes, Epoch, Error, NodeId, Result};

use crate::cluster::Control;
use crate::cluster::control::addresses;

/// How long a replica is asked again: what it had in flight when it started is asked about first.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nobody calls a probe.
struct Anybody;

impl Authenticate for Anybody {
    fn authenticate(&self, _: &Introduction<'_>) -> Result<Principal> {
        Ok(Principal::new(()))
    }
}

/// What a node made of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It answered with these bytes.
    Bytes(Bytes),
    /// It does not serve this: no lease, or no replica.
    NotHere,
    /// It refused, and said why.
    Refused(String),
    /// Nothing came in time.
    Silence,
}

/// Who waits, by the number of the read.
#[derive(Default)]
struct Waiting(Mutex<HashMap<u64, Sender<(NodeId, Told)>>>);

impl Waiting {
    fn tell(&self, read: u64, from: &Address, told: Told) {
        let Address::Node(node) = from else { return };
        if let Some(waiter) = self.0.lock().get(&read) {
            // Who does not wait any more has its answer.
            let _ = waiter.send((*node, told));
        }
    }
}

impl Receive for Waiting {
    fn receive(&self, _: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        for envelope in batch.drain(..) {
            match envelope.body {
                Body::Part(part) => {
                    self.tell(part.read, &envelope.from, Told::Bytes(part.bytes));
                }
                Body::Refused { read, abort } => {
                    self.tell(read, &envelope.from, Told::Refused(format!("{abort:?}")));
                }
                Body::NotHere(Asked::Read(read)) => {
                    self.tell(read, &envelope.from, Told::NotHere);
                }
                // What else nodes say is for clients that go on.
                Body::NotHere(Asked::Transaction(_))
                | Body::NotUnderstood { .. }
                | Body::Commit(_)
                | Body::Recovery(_)
                | Body::Movement(_)
                | Body::Upload(_)
                | Body::Submit { .. }
                | Body::Read(_)
                | Body::CancelRead { .. }
                | Body::SnapshotEnded { .. }
                | Body::FetchMap
                | Body::Reply { .. }
                | Body::NewerMap(_)
                | Body::Renew { .. }
                | Body::Granted { .. }
                | Body::Prepare(_)
                | Body::Prepared { .. }
                | Body::Effective(_)
                | Body::CaughtUp { .. }
                | Body::Return { .. }
                | Body::ListKeys { .. }
                | Body::Scan(_)
                | Body::KeyLease(_)
                | Body::KeyWatch(_)
                | Body::Moment { .. }
                | Body::Keys { .. }
                | Body::Scanned { .. } => {}
            }
        }
    }

    fn gone(&self, _: &Arc<Peer>) {}
}

/// Asks single nodes.
pub struct Probe {
    number: u64,
    network: Network,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl Probe {
    /// A probe into the cluster that the control asks.
    ///
    /// # Errors
    /// `Unavailable` when nobody answers.
    pub fn new(control: &Control) -> Result<Self> {
        let bootstrap = control.bootstrap()?;
        let number = tyr_runtime::clock::random_u64();
        let waiting = Arc::<Waiting>::default();
        let network = network(number, bootstrap.cluster, Arc::clone(&waiting) as _)?;
        network.set_nodes(&addresses(&bootstrap));
        Ok(Self { number, network, waiting, next: AtomicU64::new(1) })
    }

    /// Waits until there is a connection with the node.
    ///
    /// # Errors
    /// `Unavailable` when there is none in time.
    pub fn reach(&self, node: NodeId, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        while !self.network.is_connected(Address::Node(node)) {
            if begun.elapsed() > patience {
                return Err(Error::unavailable(format!("no connection with node {}", node.0)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Sends a direct read (R1) to one node; the answer comes to what is returned.
    pub fn ask(
        &self,
        node: NodeId,
        epoch: Epoch,
        blob: &BlobName,
        range: ByteRange,
    ) -> Pending<'_> {
        let read = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        self.waiting.0.lock().insert(read, sender);
        let request = ReadRequest {
            read,
            asker: Address::Client(self.number),
            blob: blob.clone(),
            range,
            is_attributes: false,
            kind: Kind::Direct,
            is_copy: false,
        };
        let from = Address::Client(self.number);
        let envelope = Envelope { epoch, incarnation: 0, from, body: Body::Read(request) };
        self.network.send(Address::Node(node), &envelope);
        self.network.flush();
        Pending { probe: self, read, receiver }
    }

    /// The bytes of one chunk's range at one replica; asks again while it refuses, as it does in
    /// another epoch and without a lease, and while it passes the read on to the authority.
    ///
    /// # Errors
    /// `Unavailable` with the last refusal.
    pub fn read(
        &self,
        node: NodeId,
        control: &Control,
        blob: &BlobName,
        range: ByteRange,
    ) -> Result<Bytes> {
        self.reach(node, Duration::from_secs(10))?;
        let begun = Instant::now();
        loop {
            let epoch = control.map()?.epoch;
            let told = self.ask(node, epoch, blob, range).told(Duration::from_secs(2));
            let why = match told {
                (Some(answered), Told::Bytes(bytes)) if answered == node => return Ok(bytes),
                (_, Told::Bytes(_)) => "it is not known there to be clean, another answers".into(),
                (_, told) => format!("{told:?}"),
            };
            if begun.elapsed() > PATIENCE {
                let text = format!("node {} does not read {blob} {range:?}: {why}", node.0);
                return Err(Error::unavailable(text));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A network of a client of this number, in this cluster.
fn network(number: u64, cluster: Option<u128>, receive: Arc<dyn Receive>) -> Result<Network> {
    let hello = Hello {
        level: LEVEL,
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

/// A read under way.
pub struct Pending<'a> {
    probe: &'a Probe,
    read: u64,
    receiver: Receiver<(NodeId, Told)>,
}

impl Pending<'_> {
    /// Who answered first, and what; the node that was asked may have passed it on.
    pub fn told(self, patience: Duration) -> (Option<NodeId>, Told) {
        match self.receiver.recv_timeout(patience) {
            Ok((node, told)) => (Some(node), told),
            Err(_) => (None, Told::Silence),
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.probe.waiting.0.lock().remove(&self.read);
    }
}
