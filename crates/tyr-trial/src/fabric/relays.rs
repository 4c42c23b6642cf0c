//! Nodes on the loopback device, each behind a relay that all others reach it by.
//!
//! ```text
//!   node 0 ──┐                              ┌──► node 1, where it listens
//!   clients ─┴─► relay: where 1 advertises ─┘
//! ```
//!
//! Who calls is found out from the system's table of sockets and the nodes' open files, so that
//! each pair of ends has lines of its own. What is cut stays in the relay until it is not cut any
//! more, as TCP keeps it; a call while either way is cut is answered by nobody. A piece that is
//! lost comes a retransmission later.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Listener, UdpSocket as Datagrams};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Runtime};
use tyr_types::{Error, Result};

use super::{End, Endpoint, Fabric, Slowness};
use crate::random::Random;

/// Bytes of a piece: what is delayed at once.
const PIECE_LEN: usize = 64 << 10;
/// How often a line that is cut is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// A piece that was lost comes so much later: the shortest retransmission of Linux.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// How a line is.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    is_cut: bool,
    is_tcp_cut: bool,
    slowness: Option<Slowness>,
}

impl Line {
    fn has_tcp(self) -> bool {
        !self.is_cut && !self.is_tcp_cut
    }
}

#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<BTreeMap<(End, End), Line>>,
    slow: Mutex<BTreeMap<u16, Slowness>>,
    pids: Mutex<BTreeMap<u16, u32>>,
    /// Where nodes listen, by which datagrams are known.
    places: Mutex<BTreeMap<SocketAddr, u16>>,
}

/// Relays on the loopback device. Dropping it ends them.
#[derive(Debug)]
pub struct Relays {
    shared: Arc<Shared>,
    endpoints: Mutex<BTreeMap<u16, Endpoint>>,
    runtime: Option<Runtime>,
}

impl Relays {
    /// Without nodes.
    ///
    /// # Errors
    /// `Unavailable` when no thread starts.
    pub fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::io("no thread for relays", error))?;
        let (shared, endpoints) = (Arc::default(), Mutex::default());
        Ok(Self { shared, endpoints, runtime: Some(runtime) })
    }
}

impl Fabric for Relays {
    fn name(&self) -> &'static str {
        "relays"
    }

    fn endpoint(&self, node: u16) -> Result<Endpoint> {
        let mut endpoints = self.endpoints.lock();
        if let Some(endpoint) = endpoints.get(&node) {
            return Ok(endpoint.clone());
        }
        let failed = |error| Error::io("no address on the loopback device", error);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // The node's own port is free again when this is dropped; nobody else asks for it soon.
        let listen = Listener::bind(any).and_then(|it| it.local_addr()).map_err(failed)?;
        let relay = Listener::bind(any).map_err(failed)?;
        let advertise = relay.local_addr().map_err(failed)?;
        relay.set_nonblocking(true).map_err(failed)?;
        let runtime = self.runtime.as_ref().expect("it runs until it is dropped");
        let _inside = runtime.enter();
        let listener = TcpListener::from_std(relay).map_err(failed)?;
        let target = Target { node, relay: advertise, listen };
        runtime.spawn(accept(Arc::clone(&self.shared), listener, target));
        let datagrams = UdpSocket::from_std(bind_datagrams(advertise).map_err(failed)?);
        runtime.spawn(carry(Arc::clone(&self.shared), datagrams.map_err(failed)?, target));
        self.shared.places.lock().insert(listen, node);
        let endpoint = Endpoint { listen, advertise: advertise.to_string(), command: Vec::new() };
        endpoints.insert(node, endpoint.clone());
        Ok(endpoint)
    }

    fn started(&self, node: u16, pid: u32) {
        self.shared.pids.lock().insert(node, pid);
    }

    fn cut(&self, from: End, to: End, is_cut: bool) -> Result<()> {
        self.shared.lines.lock().entry((from, to)).or_default().is_cut = is_cut;
        Ok(())
    }

    fn cut_tcp(&self, from: u16, to: u16, is_cut: bool) -> Result<()> {
        let mut lines = self.shared.lines.lock();
        lines.entry((End::Node(from), End::Node(to))).or_default().is_tcp_cut = is_cut;
        Ok(())
    }

    fn slow(&self, node: u16, slowness: Option<Slowness>) -> Result<()> {
        let mut slow = self.shared.slow.lock();
        match slowness {
            Some(slowness) => slow.insert(node, slowness),
            None => slow.remove(&node),
        };
        Ok(())
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn line(&self, from: End, to: End) -> Line {
        let mut line = self.lines.lock().get(&(from, to)).copied().unwrap_or_default();
        let slow = self.slow.lock();
        for end in [from, to] {
            if let End::Node(node) = end {
                line.slowness = line.slowness.or_else(|| slow.get(&node).copied());
            }
        }
        line
    }

    fn is_open(&self, from: End, to: End) -> bool {
        self.line(from, to).has_tcp() && self.line(to, from).has_tcp()
    }

    /// Who calls from this address.
    fn caller(&self, from: SocketAddr, relay: SocketAddr) -> End {
        let Some(inode) = inode(from, relay) else { return End::Clients };
        let pids = self.pids.lock().clone();
        let found = pids.iter().find(|(_, pid)| has_socket(**pid, inode));
        found.map_or(End::Clients, |(node, _)| End::Node(*node))
    }
}

/// The node behind a relay.
#[derive(Clone, Copy)]
struct Target {
    node: u16,
    relay: SocketAddr,
    listen: SocketAddr,
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, target: Target) {
    for number in 0.. {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        tokio::spawn(relay(Arc::clone(&shared), stream, from, target, number));
    }
}

async fn relay(shared: Arc<Shared>, stream: TcpStream, from: SocketAddr, target: Target, n: u64) {
    let (caller, called) = (shared.caller(from, target.relay), End::Node(target.node));
    while !shared.is_open(caller, called) {
        tokio::time::sleep(LOOK).await;
    }
    let Ok(onward) = TcpStream::connect(target.listen).await else { return };
    for socket in [&stream, &onward] {
        // A line without it is only slower.
        let _ = socket.set_nodelay(true);
    }
    let ((caller_in, caller_out), (called_in, called_out)) =
        (stream.into_split(), onward.into_split());
    let random = |way| Random::of(n, "relay", u64::from(target.node) * 2 + way);
    let there = pump(Arc::clone(&shared), caller, called, caller_in, called_out, random(0));
    tokio::spawn(there);
    pump(shared, called, caller, called_in, caller_out, random(1)).await;
}

fn bind_datagrams(address: SocketAddr) -> std::io::Result<Datagrams> {
    let socket = Datagrams::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Carries datagrams to a node. Those on a line that is cut, or lost, are gone.
async fn carry(shared: Arc<Shared>, socket: UdpSocket, target: Target) {
    let socket = Arc::new(socket);
    let mut random = Random::of(u64::from(target.node), "datagrams", 0);
    let mut datagram = vec![0; PIECE_LEN];
    loop {
        let Ok((len, from)) = socket.recv_from(&mut datagram).await else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let node = shared.places.lock().get(&from).copied();
        let line = shared.line(node.map_or(End::Clients, End::Node), End::Node(target.node));
        let loss = line.slowness.map_or(0, |slowness| u64::from(slowness.loss_percent));
        if line.is_cut || random.below(100) < loss {
            continue;
        }
        let (socket, data) = (Arc::clone(&socket), datagram[..len].to_vec());
        let delay = line.slowness.map_or(Duration::ZERO, |slowness| slowness.delay);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // It may be lost, as any.
            let _ = socket.send_to(&data, target.listen).await;
        });
    }
}

/// Carries bytes one way until either side ends it.
async fn pump(
    shared: Arc<Shared>,
    from: End,
    to: End,
    mut input: OwnedReadHalf,
    mut output: OwnedWriteHalf,
    mut random: Random,
) {
    let mut piece = vec![0; PIECE_LEN];
    loop {
        let len = input.read(&mut piece).await.unwrap_or(0);
        let arrived = Instant::now();
        let line = loop {
            let line = shared.line(from, to);
            if line.has_tcp() {
                break line;
            }
            tokio::time::sleep(LOOK).await;
        };
        if let Some(Slowness { delay, loss_percent }) = line.slowness {
            let is_lost = random.below(100) < u64::from(loss_percent);
            let wait = if is_lost { delay + RETRANSMISSION } else { delay };
            tokio::time::sleep_until((arrived + wait).into()).await;
        }
        if len == 0 || output.write_all(&piece[..len]).await.is_err() {
            // Whoever is at the other end sees that it ended.
            let _ = output.shutdown().await;
            return;
        }
    }
}

/// The socket's number in the system's table.
fn inode(local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let (local, remote) = (hexadecimal(local)?, hexadecimal(remote)?);
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = *words.get(1)? == local && *words.get(2)? == remote;
        is_it.then(|| words.get(9)?.parse().ok()).flatten()
    })
}

/// An address as the table has it.
fn hexadecimal(address: SocketAddr) -> Option<String> {
    match address {
        SocketAddr::V4(it) => {
            let number = u32::from_le_bytes(it.ip().octets());
            Some(format!("{number:08X}:{:04X}", it.port()))
        }
        SocketAddr::V6(_) => None,
    }
}

fn has_socket(pid: u32, inode: u64) -> bool {
    let wanted = format!("socket:[{inode}]");
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .any(|target| target.as_os_str() == wanted.as_str())
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn tcp_is_cut_one_way_while_datagrams_pass() {
        let relays = Relays::new().unwrap();
        let [zero, one] = [0, 1].map(|node| relays.endpoint(node).unwrap());
        let listener = TcpListener::bind(one.listen).unwrap();
        let datagrams = [&zero, &one].map(|endpoint| UdpSocket::bind(endpoint.listen).unwrap());
        // This process is node 0, and calls node 1.
        relays.started(0, std::process::id());
        let mut caller = TcpStream::connect(&one.advertise).unwrap();
        let (mut called, _) = listener.accept().unwrap();
        let mut byte = [0];

        relays.cut_tcp(0, 1, true).unwrap();
        caller.write_all(b"a").unwrap();
        datagrams[0].send_to(b"d", &one.advertise).unwrap();
        assert_eq!(datagrams[1].recv(&mut byte).unwrap(), 1);
        called.set_nonblocking(true).unwrap();
        assert_eq!(called.read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
        called.set_nonblocking(false).unwrap();

        relays.cut_tcp(0, 1, false).unwrap();
        called.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"a");
    }
}
