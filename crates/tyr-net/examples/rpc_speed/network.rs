//! The same by the network of a node and of a client: reads and their answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};
use tyr_net::{
    Authenticate, Introduction, Network, NetworkConfig, NetworkParts, NodeAddresses, Peer,
    Principal, Receive,
};
use tyr_protocol::message::{Address, Body, Envelope, ReadPart, ReadRequest};
use tyr_protocol::read::Kind;
use tyr_protocol::wire::{Hello, LEVEL};
use tyr_types::{BlobName, ByteRange, Bytes, Epoch, Key, KeyspaceId, NodeId, Result, Timestamp};

const SERVER: Address = Address::Node(NodeId(1));
const CLIENT: Address = Address::Client(77);

/// Lets everybody in.
struct Open;

impl Authenticate for Open {
    fn authenticate(&self, _: &Introduction<'_>) -> Result<Principal> {
        Ok(Principal::new(()))
    }
}

/// Answers reads.
struct Server {
    network: OnceLock<Network>,
    answer: Bytes,
}

impl Receive for Server {
    fn receive(&self, peer: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        let Some(network) = self.network.get() else { return };
        for envelope in batch.drain(..) {
            let Body::Read(request) = envelope.body else { panic!("nobody sends this") };
            let part = ReadPart {
                read: request.read,
                range: request.range,
                at: None,
                version: Timestamp { epoch: Epoch(7), clock: 1_700_000_000_000_000, node: 1 },
                bytes: self.answer.clone(),
                size: None,
                clock: Timestamp { epoch: Epoch(7), clock: 1_700_000_000_000_000, node: 1 },
            };
            network.send(peer.address, &envelope_of(SERVER, Body::Part(part)));
        }
        network.flush();
    }

    fn gone(&self, _: &Arc<Peer>) {}
}

/// What a client does about an answer.
struct Client {
    network: OnceLock<Network>,
    blob: BlobName,
    here: mpsc::SyncSender<()>,
    /// Requests that are left to send, and answers left to come, of a run in rounds.
    left: Mutex<(u64, u64)>,
    done: mpsc::SyncSender<()>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
}

impl Client {
    fn ask(&self, number: u64) {
        let Some(network) = self.network.get() else { return };
        let request = ReadRequest {
            read: number,
            asker: CLIENT,
            blob: self.blob.clone(),
            range: ByteRange { start: 0, end: 64 },
            is_attributes: false,
            kind: Kind::Direct,
            is_copy: false,
        };
        assert!(network.send(SERVER, &envelope_of(CLIENT, Body::Read(request))));
    }

    fn flush(&self) {
        if let Some(network) = self.network.get() {
            network.flush();
        }
    }
}

impl Receive for Client {
    fn here(&self, _: &Arc<Peer>) {
        let _ = self.here.send(());
    }

    fn receive(&self, _: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        let mut left = self.left.lock();
        if left.1 == 0 {
            drop(left);
            let mut pending = self.pending.lock();
            for envelope in batch.drain(..) {
                let Body::Part(part) = envelope.body else { panic!("nobody sends this") };
                let waiter = pending.remove(&part.read).expect("somebody waits");
                let _ = waiter.send(part.bytes);
            }
            return;
        }
        for _ in batch.drain(..) {
            left.1 -= 1;
            if left.0 > 0 {
                left.0 -= 1;
                self.ask(left.0);
            }
        }
        self.flush();
        if left.1 == 0 {
            let _ = self.done.send(());
        }
    }

    fn gone(&self, _: &Arc<Peer>) {}
}

fn envelope_of(from: Address, body: Body) -> Envelope {
    Envelope { epoch: Epoch(7), incarnation: u64::from(from == SERVER), from, body }
}

fn start(sender: Address, receive: Arc<dyn Receive>) -> Network {
    let identity = move || Hello {
        level: LEVEL,
        cluster: Some(1),
        sender,
        receiver: None,
        incarnation: u64::from(sender == SERVER),
        token: Bytes::new(),
    };
    let parts = NetworkParts {
        identity: Arc::new(identity),
        authenticate: Arc::new(Open),
        receive,
        control: None,
    };
    Network::start(NetworkConfig::default(), parts).expect("threads and descriptors")
}

/// A server and a client.
pub struct Pair {
    server: Network,
    client: Arc<Client>,
    done: mpsc::Receiver<()>,
    runtime: Runtime,
    in_flight: u64,
}

impl Pair {
    pub fn start(in_flight: u64, answer_len: usize) -> Self {
        let answer = Bytes::from(vec![1; answer_len]);
        let serving = Arc::new(Server { network: OnceLock::new(), answer });
        let server = start(SERVER, Arc::clone(&serving) as Arc<dyn Receive>);
        let _ = serving.network.set(server.clone());
        let at = server.listen(([127, 0, 0, 1], 0).into()).expect("a free port");
        let (here, is_here) = mpsc::sync_channel(1);
        let (is_done, done) = mpsc::sync_channel(1);
        let key = Key::new("site/farm/node17").expect("it is short");
        let client = Arc::new(Client {
            network: OnceLock::new(),
            blob: BlobName { keyspace: KeyspaceId(3), key },
            here,
            left: Mutex::default(),
            done: is_done,
            pending: Mutex::default(),
        });
        let network = start(CLIENT, Arc::clone(&client) as Arc<dyn Receive>);
        let _ = client.network.set(network.clone());
        let addresses = NodeAddresses { addresses: vec![at.to_string()], tls_name: None };
        network.set_nodes(&BTreeMap::from([(NodeId(1), addresses)]));
        is_here.recv().expect("they meet");
        let runtime = Builder::new_current_thread().build().expect("it needs nothing");
        Self { server, client, done, runtime, in_flight }
    }

    /// Each answer is followed by a request, where it arrives.
    pub fn run_rounds(&self, count: u64) {
        *self.client.left.lock() = (count - self.in_flight, count);
        for number in 0..self.in_flight {
            self.client.ask(count + number);
        }
        self.client.flush();
        self.done.recv().expect("all answers come");
    }

    /// A task for each request in flight, and one that flushes after all that are ready.
    pub fn run_apart(&self, count: u64) {
        let next = Arc::new(AtomicU64::new(0));
        let unflushed = Arc::new(Notify::new());
        self.runtime.block_on(async {
            let (client, due) = (Arc::clone(&self.client), Arc::clone(&unflushed));
            let flushing = tokio::spawn(async move {
                loop {
                    due.notified().await;
                    tokio::task::yield_now().await;
                    client.flush();
                }
            });
            let callers: Vec<_> = (0..self.in_flight)
                .map(|_| {
                    let client = Arc::clone(&self.client);
                    let (next, unflushed) = (Arc::clone(&next), Arc::clone(&unflushed));
                    tokio::spawn(async move {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= count {
                                return;
                            }
                            let (answer, answered) = oneshot::channel();
                            client.pending.lock().insert(number, answer);
                            client.ask(number);
                            unflushed.notify_one();
                            answered.await.expect("an answer");
                        }
                    })
                })
                .collect();
            for caller in callers {
                caller.await.expect("no panic");
            }
            flushing.abort();
        });
    }

    pub fn close(&self) {
        if let Some(network) = self.client.network.get() {
            network.close();
        }
        self.server.close();
    }
}
