//! Who is at the other end, and what the owner of a network provides: who may enter, and where
//! messages go.
//!
//! Must not know: sockets, and how messages are written.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tyr_protocol::message::{Address, Envelope};
use tyr_protocol::wire::{Hello, Unread};
use tyr_types::{Error, NodeId, Result};

use super::statistics::Place;
use super::stream::Unopened;

/// What the authenticator made of who is at the other end: any value, a user with rights perhaps.
#[derive(Clone)]
pub struct Principal(Arc<dyn Any + Send + Sync>);

impl Principal {
    /// Holds `value`.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal")
    }
}

/// Who is at the other end of a connection, after authentication.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who it is.
    pub address: Address,
    /// Its incarnation, when it is a node; of a client how many connections it has tried to make,
    /// or 0 where it does not count.
    pub incarnation: u64,
    /// The highest feature level that both ends speak.
    pub level: u8,
    /// What the authenticator answered.
    pub principal: Principal,
    /// Where it is.
    pub socket: SocketAddr,
    /// Different for each connection of this process, growing: of two with the same address the
    /// higher one is the newer.
    pub connection: u64,
}

/// What somebody says and shows who is about to become a [`Peer`].
#[derive(Clone, Copy, Debug)]
pub struct Introduction<'a> {
    /// What it says. Cluster, receiver and number have been checked already.
    pub hello: &'a Hello,
    /// The certificate it shows, with TLS. It is in its time and signed by an authority of ours.
    /// [`super::is_named`] tells whom it names.
    pub certificate: Option<&'a CertificateDer<'static>>,
    /// Where it is.
    pub from: SocketAddr,
    /// Whether it connected to us. If we did to it, it is a node, its certificate names it, and
    /// its hello has no token: it needs none, since we came to its address.
    pub is_caller: bool,
}

/// Decides who may speak to us.
pub trait Authenticate: Send + Sync + 'static {
    /// What is known of who says this. Called on a network thread; must not wait for anything.
    ///
    /// # Errors
    /// `PermissionDenied`, or `InvalidArgument` when its program is too old; the text goes to the
    /// log and to the peer, and says what to do.
    fn authenticate(&self, introduction: &Introduction<'_>) -> Result<Principal>;
}

/// Takes the messages that come in. All functions are called on network threads, for one
/// connection in order and by one thread at a time; none may wait for anything.
pub trait Receive: Send + Sync + 'static {
    /// There is a connection. Messages of it come after this.
    fn here(&self, peer: &Arc<Peer>) {
        let _ = peer;
    }

    /// Messages that came in together on one connection, in order. What is left in `batch` is
    /// dropped; its memory is used again.
    fn receive(&self, peer: &Arc<Peer>, batch: &mut Vec<Envelope>);

    /// A message that this program does not understand; it was dropped, counted and logged.
    fn unread(&self, peer: &Arc<Peer>, unread: Unread) {
        let _ = (peer, unread);
    }

    /// The connection is gone; no message of it comes any more. The peer may have a newer one
    /// already ([`Peer::connection`]).
    fn gone(&self, peer: &Arc<Peer>);

    /// A node that we called could not be reached, or did not take us; by `AlreadyExists` because
    /// another client has our number, and then it is not called again.
    fn refused(&self, node: NodeId, error: &Error) {
        let _ = (node, error);
    }

    /// Whether clients shall wait: while this is so nothing more is read from them. Nodes are read
    /// from always, since what they say is what others wait for. Asked before each read; when it
    /// is over call [`super::Network::resume`].
    fn is_busy(&self) -> bool {
        false
    }
}

/// Bytes both ways.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection that began with [`super::CONTROL_MAGIC`]: the control plane's.
pub struct ControlStream {
    /// The stream from its first byte on, the magic included, to be opened where it is to be
    /// watched: network threads have other things to do when a node is busy.
    pub stream: Unopened,
    /// The certificate its caller shows, with TLS; signed by an authority of ours.
    pub certificate: Option<CertificateDer<'static>>,
    /// Where it comes from.
    pub from: SocketAddr,
    /// It counts among the connections until this is dropped.
    pub place: Place,
}

/// What the owner of a network provides.
#[derive(Clone)]
pub struct NetworkParts {
    /// Who we are: the hello that a connection begins with, for its receiver to be filled in. Asked
    /// for each connection, so that a token can be replaced. To callers it is said without token.
    pub identity: Arc<dyn Fn() -> Hello + Send + Sync>,
    /// Who may speak to us.
    pub authenticate: Arc<dyn Authenticate>,
    /// Where messages go.
    pub receive: Arc<dyn Receive>,
    /// Where connections of the control plane go, if they are taken. Called on a network thread;
    /// must not wait for anything.
    pub control: Option<Arc<dyn Fn(ControlStream) + Send + Sync>>,
}
