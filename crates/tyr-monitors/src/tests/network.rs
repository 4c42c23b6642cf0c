//! A network of streams in memory that can be cut between any two places, and healed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::responder::Responder;
use tyr_control::{Connect, Opening, Stream};

/// Bytes that a stream holds, as a socket's buffer does.
const BUFFER_LEN: usize = 64 << 10;

type Cuts = BTreeSet<(String, String)>;

/// A stream: its two ends, and the tasks that carry it.
type Carried = (String, String, [AbortHandle; 2]);

/// The network. Clones are the same.
#[derive(Clone)]
pub struct Network {
    servers: Arc<Mutex<BTreeMap<String, Responder>>>,
    /// Pairs of places between which nothing gets through, in either direction.
    cuts: watch::Sender<Cuts>,
    /// Every stream there was.
    streams: Arc<Mutex<Vec<Carried>>>,
    /// How many pieces were carried to each address.
    carried: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Network {
    pub fn new() -> Self {
        let cuts = watch::channel(Cuts::new()).0;
        let (servers, streams, carried) = (Arc::default(), Arc::default(), Arc::default());
        Self { servers, cuts, streams, carried }
    }

    /// Somebody listens at this address from now on.
    pub fn listen(&self, address: &str, server: Responder) {
        self.servers.lock().insert(address.to_owned(), server);
    }

    /// Ends all streams of a place at once, as when its process is killed.
    pub fn kill(&self, place: &str) {
        self.servers.lock().remove(place);
        self.streams.lock().retain(|(one, other, tasks)| {
            let is_its = one == place || other == place;
            tasks.iter().filter(|_| is_its).for_each(AbortHandle::abort);
            !is_its
        });
    }

    /// Cuts the way between two places, or heals it. What is under way waits, as in TCP.
    pub fn cut(&self, one: &str, other: &str, is_cut: bool) {
        let pair = pair(one, other);
        self.cuts.send_modify(|cuts| {
            match is_cut {
                true => cuts.insert(pair),
                false => cuts.remove(&pair),
            };
        });
    }

    /// How many pieces were carried to this address so far.
    pub fn carried_to(&self, address: &str) -> u64 {
        self.carried.lock().get(address).copied().unwrap_or(0)
    }

    pub fn heal_all(&self) {
        self.cuts.send_replace(Cuts::new());
    }

    pub fn is_cut(&self, one: &str, other: &str) -> bool {
        self.cuts.borrow().contains(&pair(one, other))
    }

    /// The ways from one place.
    pub fn from(&self, place: &str) -> Arc<dyn Connect> {
        Arc::new(Place { network: self.clone(), name: place.to_owned() })
    }

    /// Returns when the way is open.
    async fn pass(&self, one: &str, other: &str) {
        let mut cuts = self.cuts.subscribe();
        let pair = pair(one, other);
        _ = cuts.wait_for(|cuts| !cuts.contains(&pair)).await;
    }
}

fn pair(one: &str, other: &str) -> (String, String) {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    (low.to_owned(), high.to_owned())
}

struct Place {
    network: Network,
    name: String,
}

impl Connect for Place {
    fn connect<'a>(&'a self, address: &'a str) -> Opening<'a> {
        Box::pin(async move {
            self.network.pass(&self.name, address).await;
            let server = self.network.servers.lock().get(address).cloned();
            let Some(server) = server else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            let (near, far) = tokio::io::duplex(BUFFER_LEN);
            let (inner, served) = tokio::io::duplex(BUFFER_LEN);
            let (network, way) = (self.network.clone(), (self.name.clone(), address.to_owned()));
            let carried = tokio::spawn(carry(network, way, far, inner));
            let accepted = tokio::spawn(async move { _ = server.accept(served).await });
            let tasks = [carried.abort_handle(), accepted.abort_handle()];
            let ends = (self.name.clone(), address.to_owned(), tasks);
            self.network.streams.lock().push(ends);
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// Carries bytes between the two ends while the way is open; ends when either end does.
async fn carry(network: Network, way: (String, String), near: DuplexStream, far: DuplexStream) {
    let (near_in, near_out) = tokio::io::split(near);
    let (far_in, far_out) = tokio::io::split(far);
    let count = || *network.carried.lock().entry(way.1.clone()).or_default() += 1;
    let there = pump(&network, &way, near_in, far_out, count);
    let back = pump(&network, &way, far_in, near_out, || ());
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

async fn pump(
    network: &Network,
    way: &(String, String),
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    note: impl Fn(),
) {
    let mut bytes = vec![0; BUFFER_LEN];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        note();
        // As long as a round trip takes in a room.
        tokio::time::sleep(Duration::from_micros(200)).await;
        network.pass(&way.0, &way.1).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
