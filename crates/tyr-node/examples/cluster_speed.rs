//! What a transaction of a monitoring store costs a cluster of three in one process.
//!
//! `cargo run --release -p tyr-node --example cluster_speed -- CALLERS SECONDS [txn|read]`

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tyr_node::router::network::{
    Authenticate, Introduction, Network, NetworkConfig, NetworkParts, NodeAddresses, Peer,
    Principal, Receive,
};
use tyr_node::monitors::InitialNode;
use tyr_node::server::{Formation, Server, ServerOptions};
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Envelope, Now};
use tyr_protocol::session::{Answer, Call, CallId, Effect, Event, Place, Session, Want};
use tyr_protocol::wire::Hello;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId,
    Number, Operation, Payload, Result, Transform,
};

struct Client {
    state: Mutex<State>,
    network: OnceLock<Network>,
    started: Instant,
    done: AtomicU64,
}

struct State {
    session: Session,
    calls: u64,
    random: u64,
    is_stopped: bool,
    is_reading: bool,
    begun: BTreeMap<u64, Instant>,
    latencies: Vec<u32>,
    failed: u64,
    failure: String,
}

impl State {
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn call(&mut self) -> Event {
        self.calls += 1;
        let blob = |key: String| BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() };
        let generator = self.next() % 1000;
        let what = if self.is_reading {
            let start = 16 * (self.next() % 900);
            let range = ByteRange { start, end: start + 800 };
            let want = Want { blob: blob(format!("g/{generator}")), range, is_attributes: false };
            Call::Read { want, place: Place::Newest }
        } else {
            let payload = Payload::Inline(Bytes::copy_from_slice(&[7; 16]));
            let append = Operation::Append { payload, expected: None };
            let series = blob(format!("g/{generator}"));
            let mut blobs = vec![BlobOperations { blob: series, operations: vec![append] }];
            for key in [format!("ag/{generator}"), format!("ac/{}", generator % 20), "all".into()] {
                let add =
                    |offset, number| Operation::Apply { offset, transform: Transform::add(number) };
                let operations =
                    vec![add(720 * 16, Number::U64(1)), add(720 * 16 + 8, Number::F64(0.5))];
                blobs.push(BlobOperations { blob: blob(key), operations });
            }
            Call::Commit { blobs, reads: Vec::new() }
        };
        self.begun.insert(self.calls, Instant::now());
        Event::Call { call: CallId(self.calls), what }
    }
}

impl Client {
    fn step(&self, events: impl Iterator<Item = Event>) {
        let mut state = self.state.lock().unwrap();
        let mut queue: VecDeque<Event> = events.collect();
        let now = Now { wall_us: 0, monotonic_us: self.started.elapsed().as_micros() as u64 };
        let mut effects = Vec::new();
        while let Some(event) = queue.pop_front() {
            state.session.step(now, event, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Send { to, envelope } => {
                        self.network.get().unwrap().send(Address::Node(to), &envelope);
                    }
                    Effect::Done { call, answer } => {
                        let is_done = matches!(answer, Answer::Committed { .. } | Answer::Read(_));
                        if is_done {
                            self.done.fetch_add(1, Ordering::Relaxed);
                        } else {
                            state.failed += 1;
                            state.failure = format!("{answer:?}");
                        }
                        let begun = state.begun.remove(&call.0).unwrap();
                        state.latencies.push(begun.elapsed().as_micros() as u32);
                        if !state.is_stopped {
                            queue.push_back(state.call());
                        }
                    }
                }
            }
        }
        drop(state);
        self.network.get().unwrap().flush();
    }

    fn begin(&self, count: usize) {
        let calls: Vec<Event> = {
            let mut state = self.state.lock().unwrap();
            (0..count).map(|_| state.call()).collect()
        };
        self.step(calls.into_iter());
    }
}

impl Receive for Client {
    fn receive(&self, _: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        self.step(batch.drain(..).map(Event::Receive));
    }

    fn gone(&self, _: &Arc<Peer>) {}
}

struct Anybody;

impl Authenticate for Anybody {
    fn authenticate(&self, _: &Introduction<'_>) -> Result<Principal> {
        Ok(Principal::new(()))
    }
}

fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10_000
}

fn connect(map: &Arc<ClusterMap>, nodes: &BTreeMap<NodeId, NodeAddresses>) -> Arc<Client> {
    const NUMBER: u64 = 12345;
    let client = Arc::new(Client {
        state: Mutex::new(State {
            session: Session::new(NUMBER, Arc::clone(map)),
            calls: 0,
            random: 88_172_645_463_325_252,
            is_stopped: false,
            is_reading: false,
            begun: BTreeMap::new(),
            latencies: Vec::new(),
            failed: 0,
            failure: String::new(),
        }),
        network: OnceLock::new(),
        started: Instant::now(),
        done: AtomicU64::new(0),
    });
    let parts = NetworkParts {
        identity: Arc::new(move || Hello {
            cluster: None,
            sender: Address::Client(NUMBER),
            receiver: None,
            incarnation: 0,
            token: Bytes::new(),
        }),
        authenticate: Arc::new(Anybody),
        receive: Arc::clone(&client) as _,
        control: None,
    };
    let network = Network::start(NetworkConfig::default(), parts).unwrap();
    network.set_nodes(nodes);
    assert!(client.network.set(network).is_ok());
    let ticking = Arc::clone(&client);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(20));
            ticking.step(std::iter::once(Event::Tick));
        }
    });
    client
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let callers: usize = arguments[1].parse().unwrap();
    let seconds: u64 = arguments[2].parse().unwrap();
    let is_reading = arguments.get(3).is_some_and(|kind| kind == "read");
    let folder = tempfile::tempdir().unwrap();
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let places: Vec<_> = (0..3).map(|_| free()).collect();
    let initial: Vec<InitialNode> = (0..)
        .zip(&places)
        .map(|(n, place)| InitialNode {
            node: NodeId(n),
            address: place.to_string(),
            is_monitor: true,
        })
        .collect();
    let servers: Vec<Server> = (0..)
        .zip(&places)
        .map(|(n, place): (u16, _)| {
            let mut options = ServerOptions::new(folder.path().join(n.to_string()), *place);
            options.node = Some(NodeId(n));
            options.formation = Formation::Initial(initial.clone());
            Server::start(options).unwrap()
        })
        .collect();
    let begun = Instant::now();
    while !servers.iter().all(Server::is_ready) {
        std::thread::sleep(Duration::from_millis(50));
        if begun.elapsed() > Duration::from_secs(30) {
            servers.iter().for_each(|server| println!("{}", server.brief()));
            std::process::exit(1);
        }
    }
    println!("formed after {:?}", begun.elapsed());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let created = runtime.block_on(servers[1].metadata().propose(Change::CreateKeyspace {
        name: KeyspaceName::new("bench").unwrap(),
        config: KeyspaceConfig::default(),
        seed: 42,
    }));
    println!("keyspace in epoch {:?} after {:?}", created.unwrap(), begun.elapsed());
    let map = loop {
        let map = servers[0].map().unwrap();
        if !map.keyspaces.is_empty() {
            break map;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let nodes: BTreeMap<NodeId, NodeAddresses> = (0..)
        .zip(&places)
        .map(|(n, place)| {
            let addresses = vec![place.to_string()];
            (NodeId(n), NodeAddresses { addresses, tls_name: None })
        })
        .collect();
    let client = connect(&map, &nodes);
    std::thread::sleep(Duration::from_millis(300));
    if is_reading {
        client.begin(64);
        std::thread::sleep(Duration::from_secs(4));
        client.state.lock().unwrap().is_stopped = true;
        std::thread::sleep(Duration::from_secs(1));
        let mut state = client.state.lock().unwrap();
        (state.is_stopped, state.is_reading) = (false, true);
    }
    client.begin(callers);
    std::thread::sleep(Duration::from_secs(1));
    client.state.lock().unwrap().latencies.clear();
    let (cpu, done, begun) = (cpu_us(), client.done.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(Duration::from_secs(seconds));
    let count = client.done.load(Ordering::Relaxed) - done;
    let (cpu, elapsed) = (cpu_us() - cpu, begun.elapsed());
    let mut state = client.state.lock().unwrap();
    state.latencies.sort_unstable();
    let at = |share: f64| {
        let place = (state.latencies.len() as f64 * share) as usize;
        state.latencies.get(place).copied().unwrap_or(0)
    };
    println!(
        "{callers} callers: {:.0}/s, {:.1} us CPU each, p50 {} us, p99 {} us, failed {} {}",
        count as f64 / elapsed.as_secs_f64(),
        cpu as f64 / count.max(1) as f64,
        at(0.5),
        at(0.99),
        state.failed,
        state.failure,
    );
    if count == 0 {
        servers.iter().for_each(|server| println!("{}", server.brief()));
        println!("{:?}", client.network.get().unwrap().statistics());
    }
    drop(state);
    drop(servers);
    std::process::exit(0);
}
