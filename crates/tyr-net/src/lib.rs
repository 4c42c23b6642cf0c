//! Connections: messages between nodes, and between clients and nodes, and who may send them.
//!
//! ```text
//!   send ──► links ──► link: outbox, pen ──► socket ═════► socket ──► connection: decoder
//!              ▲                                                            │
//!              │ a connection in use                                        ▼
//!   targets ──►│◄── listener, waiting                               Receive::receive
//!      └── greeting: TLS, hellos ──┘
//! ```
//!
//! One connection for each pair of peers, and many messages on it: [`Network::send`] encodes into
//! the connection's buffer, [`Network::flush`] writes each buffer with one system call, from the
//! thread that calls. What comes in on a connection is read, decoded and handed on together. The
//! same code serves a node, which listens and connects to nodes of higher numbers, and a client,
//! which connects to all it is told of.
//!
//! A message may be lost, without a word: when its receiver is not connected, or when too much
//! waits for it already. The protocols repeat what matters (F6). On one connection messages come in
//! the order in which they were sent.
//!
//! Reading order: [`peer`] is what an owner sees and provides, [`config`] has the bounds;
//! [`link`], [`links`] and [`connection`] are the way of a message; [`greeting`], [`listener`],
//! [`waiting`] and [`targets`] how connections come about; [`stream`] and [`tls`] what lies below
//! them; [`threads`], [`refusal`], [`unknown_messages`] and [`statistics`] are around. [`access`]
//! has users, their keys and rights, [`level`] the feature level that the process speaks.
//! `docs/internals/network.md` tells more.
//!
//! Must not know: what a message means, and who is the leader of anything.

pub mod access;
mod config;
mod connection;
mod dialer;
mod greeting;
pub mod level;
mod link;
mod links;
mod listener;
mod peer;
mod refusal;
mod statistics;
mod stream;
mod targets;
mod threads;
mod tls;
mod unknown_messages;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::Notify;
pub use tokio_rustls::rustls::pki_types::CertificateDer;
use tyr_protocol::message::{Address, Envelope};
use tyr_types::{Error, NodeId, Result};

pub use self::config::{NetworkConfig, OwnCertificate, TLS_DOMAIN, TlsConfig};
pub use self::dialer::Dialer;
use self::link::Put;
use self::links::Links;
pub use self::peer::{
    Authenticate, ByteStream, ControlStream, Introduction, NetworkParts, Peer, Principal, Receive,
};
pub use self::refusal::Refusal;
use self::refusal::Refusals;
use self::statistics::{Counters, add};
pub use self::statistics::{NetworkStatistics, NodeStatus, Place};
pub use self::stream::Unopened;
pub use self::targets::NodeAddresses;
use self::targets::Targets;
use self::threads::Threads;
use self::tls::Tls;
pub use self::tls::{explain, is_named};
use self::unknown_messages::UnknownMessages;
use self::waiting::Waiting;

/// The bytes that a connection of the control plane begins with.
pub const CONTROL_MAGIC: [u8; 8] = *b"TYR-CTRL";

/// The network of one node or client. Clones are the same network; it ends with the last of them,
/// or when it is closed.
#[derive(Clone)]
pub struct Network(Arc<Owner>);

/// Closes the network when its last handle goes; the tasks hold what is below it.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Who closes waits for so long at most until sockets have taken what was sent.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// What all parts share.
struct Shared {
    config: NetworkConfig,
    parts: NetworkParts,
    tls: Option<Tls>,
    links: Links,
    targets: Targets,
    waiting: Waiting,
    refusals: Refusals,
    unknown_messages: UnknownMessages,
    counters: Arc<Counters>,
    next_connection: AtomicU64,
    /// What a client says of the next connection that it tries to make: higher than all before.
    next_call: AtomicU64,
    /// Wakes connections of clients that were not read from.
    resumed: Notify,
    threads: Threads,
}

impl Shared {
    fn close(&self) {
        self.links.flush();
        if !self.threads.is_one() {
            self.links.wait_written(CLOSING_MAX);
        }
        self.links.end("the network is closed");
        self.threads.stop();
        // Those that came about meanwhile.
        self.links.end("the network is closed");
    }
}

impl Network {
    /// Starts the threads. Nobody is connected to, and nobody can connect, before
    /// [`Network::set_nodes`] and [`Network::listen`].
    ///
    /// # Errors
    /// `InvalidArgument` when the configuration is out of range or a file for TLS is not what it
    /// should be; `Unavailable` when the system has no more threads.
    pub fn start(config: NetworkConfig, parts: NetworkParts) -> Result<Self> {
        config.validate()?;
        let tls = config.tls.as_ref().map(Tls::read).transpose()?;
        let threads = Threads::start(config.threads)?;
        let waiting = Waiting::new(config.waiting_max, config.waiting_per_address_max);
        let shared = Shared {
            config,
            parts,
            tls,
            links: Links::default(),
            targets: Targets::default(),
            waiting,
            refusals: Refusals::default(),
            unknown_messages: UnknownMessages::default(),
            counters: Arc::default(),
            next_connection: AtomicU64::new(1),
            next_call: AtomicU64::new(1),
            resumed: Notify::new(),
            threads,
        };
        Ok(Self(Arc::new(Owner(Arc::new(shared)))))
    }

    /// Takes callers at this address from now on, besides those where it does already; port 0 is
    /// any free one. Answers the address with its port.
    ///
    /// # Errors
    /// `Unavailable` when the address is in use or not this machine's; `InvalidArgument` with TLS
    /// and no certificate to show.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr> {
        if self.shared().tls.as_ref().is_some_and(|tls| !tls.can_accept()) {
            return Err(Error::invalid("who takes callers with TLS needs a certificate to show"));
        }
        listener::listen(self.shared(), address)
    }

    /// The nodes to be connected to, and where they are; from now on these and no others. A node
    /// may tell all nodes: it connects to those of higher numbers, and the others to it. Those that
    /// are not reached are tried at once.
    pub fn set_nodes(&self, nodes: &BTreeMap<NodeId, NodeAddresses>) {
        self.shared().targets.set(self.shared(), nodes);
    }

    /// Sends a message with the next [`Network::flush`], or before; never waits. False when it was
    /// dropped: its receiver is not connected, too much waits for it, or does not speak the feature
    /// level of the message, or this is longer than a frame may be. Each of them is
    /// counted. True does not say that it arrives.
    pub fn send(&self, to: Address, envelope: &Envelope) -> bool {
        let shared = self.shared();
        match shared.links.put(to, envelope) {
            Some(Put::Taken { .. }) => true,
            Some(Put::Full) => {
                add(&shared.counters.dropped_full, 1);
                false
            }
            Some(Put::TooLong) => {
                tracing::error!(?to, "a message was dropped: it is longer than a frame may be");
                add(&shared.counters.dropped_too_long, 1);
                false
            }
            Some(Put::TooNew) => {
                shared.unknown_messages.note_unsent(to);
                add(&shared.counters.dropped_too_new, 1);
                false
            }
            Some(Put::Ended) | None => {
                add(&shared.counters.dropped_unconnected, 1);
                false
            }
        }
    }

    /// Writes what was sent so far, as far as sockets take it now; the rest follows by itself.
    /// Never waits. To be called once after all that was sent for one reason.
    pub fn flush(&self) {
        self.shared().links.flush();
    }

    /// Whether there is a connection with this one. It may be gone and nobody have noticed yet.
    pub fn is_connected(&self, to: Address) -> bool {
        self.shared().links.has(to)
    }

    /// Ends the connection with this one, if there is one. It may come back.
    pub fn disconnect(&self, to: Address, reason: &str) {
        self.shared().links.end_one(to, reason);
    }

    /// [`Receive::is_busy`] is over: clients are read from again.
    pub fn resume(&self) {
        self.shared().resumed.notify_waiters();
    }

    /// What it has done, and how it stands.
    pub fn statistics(&self) -> NetworkStatistics {
        let shared = self.shared();
        let (nodes, clients) = shared.links.counts();
        NetworkStatistics {
            nodes,
            clients,
            waiting: shared.waiting.count(),
            refused: Refusal::ALL.map(|kind| (kind, shared.refusals.count(kind))).into(),
            targets: shared.targets.status(),
            ..shared.counters.read()
        }
    }

    /// Writes what sockets take within a second, ends all connections, and stops the threads.
    /// Nothing is received after it, and no end of a connection told. Must not be waited for by
    /// what a network thread waits for. When one of them closes, no more is written than what
    /// sockets take at once.
    pub fn close(&self) {
        self.shared().close();
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}
