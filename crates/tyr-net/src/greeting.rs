//! How a connection begins: TLS, a hello in each direction, and the checks before anybody listens.
//!
//! ```text
//!   caller                                     called
//!     connect ───────────────────────────────► accept
//!     TLS ◄──────────────────────────────────► TLS, if configured
//!     hello with token ──────────────────────► cluster, receiver, number, authenticate
//!     cluster, number ◄─────────────────────── hello without token, or a refusal in words
//!     frames ◄───────────────────────────────► frames
//! ```
//!
//! Must not know: what happens on a connection afterwards.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tyr_protocol::message::Address;
use tyr_protocol::wire::{self, Decoder, Hello, refusal_bytes};
use tyr_types::{Bytes, Error, ErrorKind, NodeId, Result};

use super::peer::{ControlStream, Introduction, Peer};
use super::refusal::Refusal;
use super::statistics::{Place, add};
use super::stream::{Stream, Unopened, set_options};
use super::targets::NodeAddresses;
use super::waiting::Turn;
use super::{CONTROL_MAGIC, Shared, tls};

/// Bytes by which a connection shows which of our protocols it speaks.
const MAGIC_LEN: usize = wire::MAGIC.len();

/// The first byte of TLS: a handshake.
const TLS_FIRST: u8 = 22;

/// How long a caller has to hear why it is refused: a round trip on a bad line.
const LET_GO_TIME: Duration = Duration::from_millis(500);

/// Bytes at most that are read of who is refused: hellos, and a handshake of TLS with certificates.
const UNREAD_LEN_MAX: usize = 64 << 10;

/// A connection on which both have said hello.
pub(super) struct Greeted {
    pub peer: Arc<Peer>,
    pub stream: Stream,
    /// With what came after the hello already.
    pub decoder: Decoder,
    pub place: Place,
}

/// Why a caller is not taken.
pub(super) struct Failure {
    pub refusal: Refusal,
    pub error: Error,
    /// Where it was told so, if it was: to be [let go](let_go).
    pub told: Option<Stream>,
}

impl Failure {
    fn new(refusal: Refusal, error: Error) -> Self {
        Self { refusal, error, told: None }
    }

    fn told(self, stream: Stream) -> Self {
        Self { told: Some(stream), ..self }
    }

    fn vanished(error: io::Error) -> Self {
        match tls::explain(&error) {
            Some(error) => Self::new(Refusal::Tls, error),
            None => Self::new(Refusal::Vanished, Error::io("it went away before its hello", error)),
        }
    }
}

/// A caller's side of the greeting, from the called: `None` when the control plane took it.
pub(super) async fn welcome(
    shared: &Shared,
    socket: TcpStream,
    from: SocketAddr,
    turn: &Turn<'_>,
) -> Result<Option<Greeted>, Failure> {
    set_options(&socket, shared.config.silence_timeout).map_err(Failure::vanished)?;
    let mut stream = secure(shared, socket).await?;
    let mut read = BytesMut::with_capacity(2048);
    let error = match read_magic(&mut stream, &mut read).await? {
        Magic::Wire => match greet(shared, &mut stream, &mut read, from, turn).await {
            Ok((peer, place)) => {
                let mut decoder = Decoder::speaking((shared.parts.identity)().level);
                decoder.feed(&read);
                return Ok(Some(Greeted { peer, stream, decoder, place }));
            }
            Err(failure) => failure,
        },
        Magic::Control => match hand_over(shared, &stream, from, turn) {
            Ok((control, place)) => {
                let certificate = stream.certificate();
                let stream = Unopened::new(read, stream).map_err(Failure::vanished)?;
                control(ControlStream { stream, certificate, from, place });
                return Ok(None);
            }
            // It does not speak what a refusal is written in.
            Err(failure) => return Err(failure),
        },
    };
    refuse(&mut stream, &error.error).await;
    Err(error.told(stream))
}

/// Tells the caller why; it may have gone.
async fn refuse(stream: &mut Stream, error: &Error) {
    if stream.write_all(&refusal_bytes(error)).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// Reads what a caller still sends who was told that it is refused, for a moment: what nobody has
/// read makes the system reset the connection, and the caller may then not hear why.
pub(super) async fn let_go(mut stream: Stream) {
    let reading = async {
        let _ = stream.shutdown().await;
        let (mut unread, mut len) = ([0; 1024], 0);
        while let Ok(more @ 1..) = stream.read(&mut unread).await
            && len < UNREAD_LEN_MAX
        {
            len += more;
        }
    };
    // Who does not close has had the time to hear it.
    let _ = tokio::time::timeout(LET_GO_TIME, reading).await;
}

/// TLS, if it is configured.
async fn secure(shared: &Shared, socket: TcpStream) -> Result<Stream, Failure> {
    let mut first = [0];
    if socket.peek(&mut first).await.map_err(Failure::vanished)? == 0 {
        return Err(Failure::vanished(io::ErrorKind::UnexpectedEof.into()));
    }
    let is_tls = first[0] == TLS_FIRST;
    match &shared.tls {
        Some(tls) if is_tls => match tls.accept(socket).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err((error, socket)) => {
                Err(Failure::new(Refusal::Tls, error).told(Stream::Plain(socket)))
            }
        },
        Some(_) if first[0] == wire::MAGIC[0] => {
            let error = Error::new(
                ErrorKind::PermissionDenied,
                "connections are taken with TLS only: configure certificate, key and authorities; \
                 a client says tls_ca, tls_certificate and tls_key in the address",
            );
            let mut stream = Stream::Plain(socket);
            refuse(&mut stream, &error).await;
            Err(Failure::new(Refusal::Tls, error).told(stream))
        }
        None if is_tls => {
            let error = Error::invalid("it speaks TLS, which is not configured here");
            // It cannot read this, but it sees that it is no TLS.
            let mut stream = Stream::Plain(socket);
            refuse(&mut stream, &error).await;
            Err(Failure::new(Refusal::Tls, error).told(stream))
        }
        Some(_) | None => Ok(Stream::Plain(socket)),
    }
}

/// Which of our protocols a caller speaks.
enum Magic {
    Wire,
    Control,
}

const _: () = {
    assert!(CONTROL_MAGIC.len() == MAGIC_LEN);
    // By its first byte TLS is told from a caller that speaks without it.
    assert!(wire::MAGIC[0] != TLS_FIRST && CONTROL_MAGIC[0] != TLS_FIRST);
    let (mut place, mut is_other) = (0, false);
    while place < MAGIC_LEN {
        is_other |= wire::MAGIC[place] != CONTROL_MAGIC[place];
        place += 1;
    }
    assert!(is_other, "a caller speaks one protocol");
};

/// Reads until it is clear what the caller speaks; which may be the first byte.
async fn read_magic(stream: &mut Stream, read: &mut BytesMut) -> Result<Magic, Failure> {
    loop {
        let len = read.len().min(MAGIC_LEN);
        let could_be = |magic: &[u8; MAGIC_LEN]| read[..len] == magic[..len];
        let (is_wire, is_control) = (could_be(&wire::MAGIC), could_be(&CONTROL_MAGIC));
        if !is_wire && !is_control {
            return Err(Failure::new(
                Refusal::Protocol,
                Error::corrupt("it does not speak a protocol of Týr's"),
            ));
        }
        debug_assert!(!is_wire || !is_control || len < MAGIC_LEN, "the two differ");
        if len == MAGIC_LEN {
            return Ok(if is_wire { Magic::Wire } else { Magic::Control });
        }
        read_more(stream, read).await.map_err(Failure::vanished)?;
    }
}

/// Reads what there is; an error when the stream is over.
async fn read_more(stream: &mut Stream, read: &mut BytesMut) -> io::Result<()> {
    match stream.read_buf(read).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

type Control = Arc<dyn Fn(ControlStream) + Send + Sync>;

/// A place for a connection of the control plane, and who takes it.
fn hand_over(
    shared: &Shared,
    stream: &Stream,
    from: SocketAddr,
    turn: &Turn<'_>,
) -> Result<(Control, Place), Failure> {
    let Some(control) = &shared.parts.control else {
        return Err(Failure::new(
            Refusal::Protocol,
            Error::invalid("it wants the control plane, which is not served here"),
        ));
    };
    let place = place(shared, false)?;
    leave_waiting(turn)?;
    add(&shared.counters.accepted, 1);
    tracing::debug!(%from, is_tls = stream.certificate().is_some(), "control connection");
    Ok((Arc::clone(control), place))
}

fn leave_waiting(turn: &Turn<'_>) -> Result<(), Failure> {
    match turn.end() {
        true => Ok(()),
        false => Err(flooded()),
    }
}

/// The failure of who had to go.
pub(super) fn flooded() -> Failure {
    Failure::new(
        Refusal::Flood,
        Error::unavailable("too many connections have not said hello, and it was the oldest"),
    )
}

/// A place among the connections. Nodes get one always: the others wait for what they say.
fn place(shared: &Shared, is_node: bool) -> Result<Place, Failure> {
    let max = if is_node { usize::MAX } else { shared.config.connections_max };
    Place::take(&shared.counters, max).ok_or_else(|| {
        Failure::new(
            Refusal::Full,
            Error::unavailable(format!(
                "there are {max} connections, as many as may be; try again later, connect to \
                 another node, or raise the bound"
            )),
        )
    })
}

/// Hellos both ways, from the called side.
async fn greet(
    shared: &Shared,
    stream: &mut Stream,
    read: &mut BytesMut,
    from: SocketAddr,
    turn: &Turn<'_>,
) -> Result<(Arc<Peer>, Place), Failure> {
    let hello = loop {
        match Hello::take(read) {
            Ok(Some(hello)) => break hello,
            Ok(None) => read_more(stream, read).await.map_err(Failure::vanished)?,
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                return Err(Failure::new(Refusal::Version, error));
            }
            Err(error) => return Err(Failure::new(Refusal::Protocol, error)),
        }
    };
    let ours = (shared.parts.identity)();
    check_caller(&ours, &hello)?;
    shared
        .links
        .check(hello.sender, hello.incarnation)
        .map_err(|error| Failure::new(Refusal::Identity, error))?;
    let certificate = stream.certificate();
    let introduction =
        Introduction { hello: &hello, certificate: certificate.as_ref(), from, is_caller: true };
    let principal = shared.parts.authenticate.authenticate(&introduction).map_err(|error| {
        match error.kind() {
            ErrorKind::InvalidArgument => Failure::new(Refusal::Version, error),
            _ => Failure::new(Refusal::Permission, error),
        }
    })?;
    let level = ours.level.min(hello.level);
    let place = place(shared, matches!(hello.sender, Address::Node(_)))?;
    leave_waiting(turn)?;
    let answer = Hello { receiver: Some(hello.sender), token: Bytes::new(), ..ours };
    let answer = answer.to_bytes().map_err(|error| Failure::new(Refusal::Identity, error))?;
    stream.write_all(&answer).await.map_err(Failure::vanished)?;
    stream.flush().await.map_err(Failure::vanished)?;
    add(&shared.counters.accepted, 1);
    let peer = Peer {
        address: hello.sender,
        incarnation: hello.incarnation,
        level,
        principal,
        socket: from,
        connection: shared.next_connection.fetch_add(1, Ordering::Relaxed),
    };
    Ok((Arc::new(peer), place))
}

/// An address as in sentences.
pub(super) fn name(address: Address) -> String {
    match address {
        Address::Node(node) => format!("node {}", node.0),
        Address::Client(number) => format!("client {number:x}"),
        Address::Monitors => "the monitors".to_owned(),
    }
}

/// Whether somebody who says this may call us.
fn check_caller(ours: &Hello, hello: &Hello) -> Result<(), Failure> {
    check_cluster(ours, hello).map_err(|error| Failure::new(Refusal::Cluster, error))?;
    let wrong = match (hello.sender, hello.receiver) {
        (_, Some(receiver)) if receiver != ours.sender => format!(
            "here is {}, not {}, who is wanted; its address is another by now",
            name(ours.sender),
            name(receiver)
        ),
        (Address::Monitors, _) => "monitors do not connect; their nodes do".to_owned(),
        (sender, _) if sender == ours.sender => format!(
            "both sides are {}; give each node a number of its own, and check the addresses",
            name(sender)
        ),
        (Address::Node(_), _) if hello.sender > ours.sender => format!(
            "{} does not connect to {}: of two nodes the one of the lower number does",
            name(hello.sender),
            name(ours.sender)
        ),
        (Address::Node(_) | Address::Client(_), _) => return Ok(()),
    };
    Err(Failure::new(Refusal::Identity, Error::invalid(wrong)))
}

/// Whether both are of one cluster, as far as they know.
fn check_cluster(ours: &Hello, theirs: &Hello) -> Result<()> {
    match (ours.cluster, theirs.cluster) {
        (Some(ours), Some(theirs)) if ours != theirs => Err(Error::invalid(format!(
            "two clusters: one side belongs to {ours:032x}, the other to {theirs:032x}; check the \
             addresses in the configuration, and whether a folder of another cluster is used"
        ))),
        _ => Ok(()),
    }
}

/// Connects to a node and greets it, at the first of its addresses where that succeeds.
///
/// # Errors
/// What went wrong at the last of them, and what to do.
pub(super) async fn call(
    shared: &Shared,
    node: NodeId,
    addresses: &NodeAddresses,
) -> Result<Greeted> {
    let mut last = Error::unavailable(format!("node {} has no address", node.0));
    for address in &addresses.addresses {
        let context = format!("node {} at {address}", node.0);
        let within = shared.config.greeting_timeout;
        let found = match lookup_host(address.as_str()).await {
            Ok(found) => found,
            Err(error) => {
                last = Error::io("the name cannot be looked up", error).context(context);
                continue;
            }
        };
        for socket in found {
            let called = call_at(shared, node, addresses, socket);
            match tokio::time::timeout(within, called).await {
                Ok(Ok(greeted)) => return Ok(greeted),
                Ok(Err(error)) => last = error.context(&context),
                Err(_) => {
                    last = Error::unavailable(format!(
                        "{context}: no answer within {within:?}; is the machine up, and the way \
                         to it open?"
                    ));
                }
            }
        }
    }
    Err(last)
}

async fn call_at(
    shared: &Shared,
    node: NodeId,
    addresses: &NodeAddresses,
    at: SocketAddr,
) -> Result<Greeted> {
    let socket = TcpStream::connect(at).await.map_err(unreachable_error)?;
    set_options(&socket, shared.config.silence_timeout).map_err(unreachable_error)?;
    let mut stream = match &shared.tls {
        None => Stream::Plain(socket),
        Some(tls) => {
            let name = addresses.tls_name.clone().unwrap_or_else(|| tls.node_name(node));
            Stream::Tls(Box::new(tls.connect(socket, &name).await?))
        }
    };
    let mut ours = Hello { receiver: Some(Address::Node(node)), ..(shared.parts.identity)() };
    if let Address::Client(_) = ours.sender {
        ours.incarnation = shared.next_call.fetch_add(1, Ordering::Relaxed);
    }
    stream.write_all(&ours.to_bytes()?).await.map_err(silent_error)?;
    stream.flush().await.map_err(silent_error)?;
    let mut read = BytesMut::with_capacity(2048);
    let hello = loop {
        match Hello::take(&mut read)? {
            Some(hello) => break hello,
            None => read_more(&mut stream, &mut read).await.map_err(silent_error)?,
        }
    };
    check_cluster(&ours, &hello)?;
    if hello.sender != Address::Node(node) {
        return Err(Error::unavailable(format!(
            "there is {} now; the address in the cluster's map is old",
            name(hello.sender)
        )));
    }
    let certificate = stream.certificate();
    let introduction = Introduction {
        hello: &hello,
        certificate: certificate.as_ref(),
        from: at,
        is_caller: false,
    };
    let principal = shared.parts.authenticate.authenticate(&introduction)?;
    let peer = Arc::new(Peer {
        address: hello.sender,
        incarnation: hello.incarnation,
        level: ours.level.min(hello.level),
        principal,
        socket: at,
        connection: shared.next_connection.fetch_add(1, Ordering::Relaxed),
    });
    let mut decoder = Decoder::speaking(ours.level);
    decoder.feed(&read);
    let place = Place::take(&shared.counters, usize::MAX)
        .ok_or_else(|| Error::unavailable("there are as many connections as can be counted"))?;
    add(&shared.counters.connected, 1);
    Ok(Greeted { peer, stream, decoder, place })
}

fn unreachable_error(error: io::Error) -> Error {
    let what = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nobody listens there; is the node running, and is this its address?"
        }
        _ => "it cannot be reached; is the machine up, and the way to it open?",
    };
    Error::io(what, error)
}

fn silent_error(error: io::Error) -> Error {
    tls::explain(&error).unwrap_or_else(|| {
        Error::io(
            "it closed the connection before its hello; does it want TLS, and is it a node of Týr?",
            error,
        )
    })
}
