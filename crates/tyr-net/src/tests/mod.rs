//! Networks on the loopback: two and more of them, and strangers at the port.
//!
//! Here is what the tests share: an inbox that can be waited on, and networks with defaults.

mod bounds;
mod exchange;
mod identity;
mod levels;
mod reconnect;
mod secure;
mod strangers;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use parking_lot::{Condvar, Mutex};
use tyr_protocol::message::{Address, Body, Envelope, ReadPart};
use tyr_protocol::wire::{Decoder, Frame, Hello, LEVEL, Outgoing, Unread, encode};
use tyr_types::{Bytes, Epoch, Error, ErrorKind, NodeId, Result, Timestamp};

use super::*;

/// No test waits longer for anything; none that passes waits nearly as long.
const DEADLINE: Duration = Duration::from_secs(60);

const CLUSTER: u128 = 0x00c1_0573;
const TOKEN: &[u8] = b"open sesame";

/// Waits until something is so, which no event tells of.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "it never came about: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

type React = Box<dyn Fn(&Arc<Peer>, &[Envelope]) + Send + Sync>;

/// Keeps what comes in.
#[derive(Default)]
struct Inbox {
    seen: Mutex<Seen>,
    changed: Condvar,
    is_busy: AtomicBool,
    /// Whether a connection has heard that it is busy.
    is_told: AtomicBool,
    /// Does something about messages instead of keeping them.
    react: Mutex<Option<React>>,
}

#[derive(Default)]
struct Seen {
    messages: Vec<Envelope>,
    unread: Vec<Unread>,
    here: Vec<Arc<Peer>>,
    gone: Vec<Arc<Peer>>,
    refused: Vec<NodeId>,
}

impl Inbox {
    #[track_caller]
    fn wait<T>(&self, what: &str, mut find: impl FnMut(&mut Seen) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        let mut seen = self.seen.lock();
        loop {
            if let Some(found) = find(&mut seen) {
                return found;
            }
            let is_late = self.changed.wait_until(&mut seen, end).timed_out();
            assert!(!is_late, "it never came about: {what}");
        }
    }

    /// The numbers of the next `count` messages.
    #[track_caller]
    fn take(&self, count: usize) -> Vec<u64> {
        self.wait(&format!("{count} messages"), |seen| {
            (seen.messages.len() >= count)
                .then(|| seen.messages.drain(..count).map(|envelope| number(&envelope)).collect())
        })
    }

    fn count(&self) -> usize {
        self.seen.lock().messages.len()
    }
}

impl Receive for Inbox {
    fn here(&self, peer: &Arc<Peer>) {
        self.seen.lock().here.push(Arc::clone(peer));
        self.changed.notify_all();
    }

    fn receive(&self, peer: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        if let Some(react) = &*self.react.lock() {
            return react(peer, batch);
        }
        self.seen.lock().messages.append(batch);
        self.changed.notify_all();
    }

    fn unread(&self, _: &Arc<Peer>, unread: Unread) {
        self.seen.lock().unread.push(unread);
        self.changed.notify_all();
    }

    fn gone(&self, peer: &Arc<Peer>) {
        self.seen.lock().gone.push(Arc::clone(peer));
        self.changed.notify_all();
    }

    fn refused(&self, node: NodeId, _: &Error) {
        self.seen.lock().refused.push(node);
        self.changed.notify_all();
    }

    fn is_busy(&self) -> bool {
        let is_busy = self.is_busy.load(Ordering::SeqCst);
        self.is_told.fetch_or(is_busy, Ordering::SeqCst);
        is_busy
    }
}

/// Lets everybody in who knows the word.
struct Doorkeeper;

impl Authenticate for Doorkeeper {
    fn authenticate(&self, introduction: &Introduction<'_>) -> Result<Principal> {
        if introduction.is_caller && introduction.hello.token != TOKEN {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                "the token is not known; ask an administrator for one",
            ));
        }
        assert!(introduction.is_caller || introduction.hello.token.is_empty());
        Ok(Principal::new(format!("{:?}", introduction.hello.sender)))
    }
}

/// A network and what it got.
struct Site {
    network: Network,
    inbox: Arc<Inbox>,
    address: SocketAddr,
}

fn node(number: u16) -> Address {
    Address::Node(NodeId(number))
}

fn hello(sender: Address, incarnation: u64) -> Hello {
    Hello {
        level: LEVEL,
        cluster: Some(CLUSTER),
        sender,
        receiver: None,
        incarnation,
        token: Bytes::from_static(TOKEN),
    }
}

/// Patient with silence, since a busy machine may be silent, impatient with trying again.
fn config() -> NetworkConfig {
    NetworkConfig {
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(20),
        ..NetworkConfig::default()
    }
}

fn start(config: NetworkConfig, hello: Hello) -> Site {
    start_at(config, hello, "127.0.0.1:0".parse().unwrap())
}

fn start_at(config: NetworkConfig, hello: Hello, address: SocketAddr) -> Site {
    start_with(config, hello, address, None)
}

fn start_with(
    config: NetworkConfig,
    hello: Hello,
    address: SocketAddr,
    control: Option<Arc<dyn Fn(ControlStream) + Send + Sync>>,
) -> Site {
    let inbox = Arc::new(Inbox::default());
    let parts = NetworkParts {
        identity: Arc::new(move || hello.clone()),
        authenticate: Arc::new(Doorkeeper),
        receive: Arc::clone(&inbox) as Arc<dyn Receive>,
        control,
    };
    let network = Network::start(config, parts).unwrap();
    let address = network.listen(address).unwrap();
    Site { network, inbox, address }
}

fn nodes(sites: &[(u16, SocketAddr)]) -> BTreeMap<NodeId, NodeAddresses> {
    let addresses = |at: &SocketAddr| NodeAddresses {
        addresses: vec![at.to_string()],
        ..NodeAddresses::default()
    };
    sites.iter().map(|(number, at)| (NodeId(*number), addresses(at))).collect()
}

/// Nodes 1 and 2, connected.
fn pair(config: NetworkConfig) -> (Site, Site) {
    let (one, two) = (start(config.clone(), hello(node(1), 1)), start(config, hello(node(2), 1)));
    meet(&one, &two);
    (one, two)
}

fn meet(one: &Site, two: &Site) {
    let map = nodes(&[(1, one.address), (2, two.address)]);
    one.network.set_nodes(&map);
    two.network.set_nodes(&map);
    one.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
    two.inbox.wait("node 1 is here", |seen| (!seen.here.is_empty()).then_some(()));
}

/// A client that is connected to node `number`.
fn client(name: u64, number: u16, site: &Site) -> Site {
    let client = start(config(), hello(Address::Client(name), 0));
    client.network.set_nodes(&nodes(&[(number, site.address)]));
    client.inbox.wait("the node is here", |seen| (!seen.here.is_empty()).then_some(()));
    client
}

/// A small message with a number.
fn small(from: Address, number: u64) -> Envelope {
    envelope(from, Body::CancelRead { read: number })
}

fn envelope(from: Address, body: Body) -> Envelope {
    let incarnation = u64::from(matches!(from, Address::Node(_)));
    Envelope { epoch: Epoch(7), incarnation, from, body }
}

/// An answer to a read with so many bytes.
fn large(from: Address, number: u64, bytes: &Bytes) -> Envelope {
    let part = ReadPart {
        read: number,
        range: tyr_types::ByteRange { start: 0, end: bytes.len() as u64 },
        at: None,
        version: Timestamp::ZERO,
        bytes: bytes.clone(),
        size: None,
        clock: Timestamp::ZERO,
    };
    envelope(from, Body::Part(part))
}

fn number(envelope: &Envelope) -> u64 {
    match &envelope.body {
        Body::CancelRead { read } => *read,
        Body::Part(part) => part.read,
        other => panic!("nobody sent this: {other:?}"),
    }
}

/// Sends, and again while it is not taken.
fn send_surely(network: &Network, to: Address, envelope: &Envelope) {
    eventually("the message is taken", || {
        let is_sent = network.send(to, envelope);
        if !is_sent {
            network.flush();
        }
        is_sent
    });
}

/// Node 1 closes just after it has sent to node 2.
#[track_caller]
fn assert_last_arrive(one: &Site, two: &Site) {
    let bytes = Bytes::from(vec![0xab; 4 << 20]);
    for number in 0..4 {
        send_surely(&one.network, node(2), &large(node(1), number, &bytes));
    }
    one.network.flush();
    one.network.close();
    assert_eq!(two.inbox.take(4), [0, 1, 2, 3]);
}

/// What site `to` gets last is answered for once it is there: so all before it is.
#[track_caller]
fn assert_speak(one: &Site, two: &Site, from: Address, to: Address) {
    send_surely(&one.network, to, &small(from, 4711));
    one.network.flush();
    two.inbox.wait("the message is there", |seen| {
        let at = seen.messages.iter().position(|envelope| number(envelope) == 4711)?;
        seen.messages.drain(..=at);
        Some(())
    });
}

/// Callers were refused for this reason so often, and not more often.
#[track_caller]
fn assert_refused(site: &Site, refusal: Refusal, count: u64) {
    eventually(refusal.name(), || site.network.statistics().refused(refusal) >= count);
    assert_eq!(site.network.statistics().refused(refusal), count);
}

/// A plain socket that speaks as it likes.
struct Raw {
    stream: TcpStream,
    decoder: Decoder,
}

impl Raw {
    fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream, decoder: Decoder::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn say(&mut self, envelope: &Envelope) {
        let mut outgoing = Outgoing::new();
        encode(envelope, &mut outgoing).unwrap();
        self.send(&outgoing.take_bytes());
    }

    /// Says hello, and hears one or a refusal.
    fn greet(&mut self, hello: &Hello) -> Result<Hello> {
        self.send(&hello.to_bytes().unwrap());
        self.hear_hello()
    }

    fn hear_hello(&mut self) -> Result<Hello> {
        let mut read = BytesMut::new();
        let mut byte = [0];
        loop {
            if let Some(hello) = Hello::take(&mut read)? {
                return Ok(hello);
            }
            match self.stream.read(&mut byte) {
                Ok(1) => read.extend_from_slice(&byte),
                Ok(_) | Err(_) => return Err(Error::unavailable("closed without a word")),
            }
        }
    }

    fn hear(&mut self) -> Option<Envelope> {
        let mut bytes = [0; 4096];
        loop {
            match self.decoder.frame().unwrap() {
                Some(Frame::Message(envelope)) => return Some(envelope),
                Some(Frame::Unread(unread)) => panic!("{unread:?}"),
                None => {}
            }
            match self.stream.read(&mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(len) => self.decoder.feed(&bytes[..len]),
            }
        }
    }

    /// Until the other side closes; true when it did without a word.
    fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 64];
        matches!(self.stream.read(&mut bytes), Ok(0) | Err(_))
    }
}
