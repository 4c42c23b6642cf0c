//! The client against a cluster of three in this process, over sockets, from many threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_protocol::session::{Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceId,
    KeyspaceName, NodeId, Number, NumberType, Operation, Outcome, Payload, Transform,
};

use tyr_client::{Client, ConnectOptions, block_on};
use tyr_metadata::reserved;
use tyr_monitors::InitialNode;
use tyr_server::{Formation, Server, ServerOptions};
use tyr_testing::free_address;

const ALL: ByteRange = ByteRange { start: 0, end: 1 << 20 };

/// How long a test waits for what has to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, of three unless a test says otherwise, with a keyspace in small chunks.
pub(super) struct Stage {
    pub servers: BTreeMap<NodeId, Server>,
    addresses: Vec<String>,
    options: BTreeMap<NodeId, ServerOptions>,
    pub keyspace: KeyspaceId,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> (Self, Arc<Client>) {
        Self::with(|_| {})
    }

    /// The same, of nodes whose options are changed so.
    pub fn with(change: impl Fn(&mut ServerOptions)) -> (Self, Arc<Client>) {
        Self::within(tempfile::tempdir().unwrap(), 3, change)
    }

    /// The same of so many nodes, in this folder.
    pub fn within(
        folder: tempfile::TempDir,
        nodes: usize,
        change: impl Fn(&mut ServerOptions),
    ) -> (Self, Arc<Client>) {
        let places: Vec<_> = (0..nodes).map(|_| free_address()).collect();
        let addresses: Vec<String> = places.iter().map(ToString::to_string).collect();
        let initial = |(n, address): (u16, &String)| InitialNode {
            node: NodeId(n),
            address: address.clone(),
            is_monitor: true,
        };
        let initial: Vec<_> = (0..).zip(&addresses).map(initial).collect();
        let options = |(n, place): (u16, _)| {
            let mut options = ServerOptions::new(folder.path().join(n.to_string()), place);
            options.node = Some(NodeId(n));
            options.formation = Formation::Initial(initial.clone());
            change(&mut options);
            (NodeId(n), options)
        };
        let options: BTreeMap<_, _> = (0..).zip(places).map(options).collect();
        let servers = started(&options);
        let client = connect(&addresses);
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let name = KeyspaceName::new("test").unwrap();
        let info = block_on(client.create_keyspace(&name, &config)).unwrap();
        (Self { servers, addresses, options, keyspace: info.id, _folder: folder }, client)
    }

    /// Stops all nodes and starts them again; answers a new client.
    pub fn restart(&mut self) -> Arc<Client> {
        std::mem::take(&mut self.servers).values().for_each(|server| server.stop().unwrap());
        self.servers = started(&self.options);
        self.client()
    }

    /// The entries of the cluster log.
    pub fn log(&self) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = self.servers.values().next().unwrap();
        let (entries, _) =
            runtime.block_on(server.metadata().list(reserved::LOG, None, 1000)).unwrap();
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        entries.iter().map(|(_, entry)| text(&entry.value)).collect()
    }

    /// How a node is started.
    pub fn options(&self, node: NodeId) -> &ServerOptions {
        &self.options[&node]
    }

    fn client(&self) -> Arc<Client> {
        connect(&self.addresses)
    }

    pub fn blob(&self, key: &str) -> BlobName {
        BlobName { keyspace: self.keyspace, key: Key::new(key).unwrap() }
    }

    pub fn add(&self, key: &str, offset: u64) -> BlobOperations {
        let transform = Transform::add(Number::U64(1));
        let operations = vec![Operation::Apply { offset, transform }];
        BlobOperations { blob: self.blob(key), operations }
    }

    pub fn append(&self, key: &str, bytes: &[u8]) -> BlobOperations {
        let payload = Payload::Inline(Bytes::copy_from_slice(bytes));
        let operations = vec![Operation::Append { payload, expected: None }];
        BlobOperations { blob: self.blob(key), operations }
    }
}

fn started(options: &BTreeMap<NodeId, ServerOptions>) -> BTreeMap<NodeId, Server> {
    let start = |(node, options): (&NodeId, &ServerOptions)| {
        (*node, Server::start(options.clone()).unwrap())
    };
    options.iter().map(start).collect()
}

/// Connects. A cluster that has just begun takes a moment to form.
pub(super) fn connect(addresses: &[String]) -> Arc<Client> {
    let options =
        ConnectOptions { connect_timeout: PATIENCE, ..ConnectOptions::at(addresses.to_vec()) };
    Client::connect(&options).unwrap()
}

#[test]
fn calls_of_many_threads_on_one_client_take_effect_once_each() {
    let (stage, client) = Stage::new();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for n in 0..100 {
                    let blobs = vec![stage.add("sum", 8 * (n % 4)), stage.append("log", &[1; 100])];
                    client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap();
                    let want = Want::bytes(stage.blob("sum"), ByteRange { start: 0, end: 32 });
                    block_on(client.read(want, Place::Newest).answer()).unwrap();
                }
            });
        }
    });
    let read =
        |key| block_on(client.read(Want::bytes(stage.blob(key), ALL), Place::Newest).answer());
    let sums = read("sum").unwrap().seen.bytes;
    assert_eq!(sums.len(), 32);
    for cell in sums.chunks(8) {
        assert_eq!(Number::load(NumberType::U64, cell), Number::U64(150));
    }
    assert_eq!(read("log").unwrap().seen.bytes.len(), 600 * 100);
    assert_eq!(client.statistics().commits, 600);
}

#[test]
fn a_moment_holds_what_was_acknowledged_to_others_and_not_what_is_begun_later() {
    let (stage, client) = Stage::new();
    let other = stage.client();
    for n in 0..50u8 {
        other.commit(vec![stage.append("a", &[n; 3])], Vec::new(), Vec::new()).wait().unwrap();
        let (at, _lease) = block_on(client.moment().answer()).unwrap().unwrap();
        client.commit(vec![stage.append("a", &[99; 2])], Vec::new(), Vec::new()).wait().unwrap();
        let want = Want::bytes(stage.blob("a"), ALL);
        let sight = block_on(client.read(want, Place::At(at)).answer()).unwrap();
        assert_eq!(sight.seen.bytes.len(), usize::from(n) * 5 + 3);
        assert_eq!(sight.seen.bytes.last(), Some(&n));
    }
}

#[test]
fn keyspaces_are_made_found_listed_and_dropped_for_all_clients() {
    let (stage, client) = Stage::new();
    let other = stage.client();
    let name = KeyspaceName::new("test").unwrap();
    let config = KeyspaceConfig::default();
    let twice = block_on(other.create_keyspace(&name, &config)).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
    let found = block_on(other.keyspace(&name)).unwrap();
    assert_eq!((found.id, found.config.chunk_size), (stage.keyspace, 4096));
    other.commit(vec![stage.append("a", b"x")], Vec::new(), Vec::new()).wait().unwrap();
    block_on(client.drop_keyspace(&name)).unwrap();
    assert_eq!(block_on(other.keyspace(&name)).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(block_on(other.keyspaces()).unwrap().is_empty());
    let late = other.commit(vec![stage.append("a", b"x")], Vec::new(), Vec::new()).wait();
    assert_eq!(late.unwrap_err().kind(), ErrorKind::NotFound);
    let again = block_on(client.create_keyspace(&name, &config)).unwrap();
    assert_ne!(again.id, stage.keyspace);
}

#[test]
fn a_cluster_that_lost_a_node_goes_on_after_its_lease() {
    let (mut stage, client) = Stage::new();
    client.commit(vec![stage.append("a", b"before")], Vec::new(), Vec::new()).wait().unwrap();
    stage.servers.remove(&NodeId(0));
    let begun = Instant::now();
    let after = client.commit(vec![stage.append("a", b"after")], Vec::new(), Vec::new());
    assert_eq!(after.wait().unwrap().outcomes, [Outcome::Offset(6)]);
    println!("it went on after {:?}", begun.elapsed());
    // Who comes now finds those that are there, by any address.
    let late = stage.client();
    let want = Want::bytes(stage.blob("a"), ALL);
    let sight = block_on(late.read(want, Place::Newest).answer()).unwrap();
    assert_eq!(sight.seen.bytes, "beforeafter");
}

/// Each commit of the one keyspace waited for the node that was gone.
#[test]
fn a_keyspace_of_one_replica_keeps_no_other_from_going_on_without_a_node() {
    let (mut stage, client) = Stage::new();
    let config = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
    let single = KeyspaceName::new("single").unwrap();
    let single = block_on(client.create_keyspace(&single, &config)).unwrap().id;
    let gone = NodeId(0);
    let keys = || (0..64u8).map(|n| Key::new([n]).unwrap());
    let write = |key: Key| {
        let blob = BlobName { keyspace: single, key };
        let blobs = vec![BlobOperations { blob, operations: vec![Operation::Create] }];
        client.commit(blobs, Vec::new(), Vec::new()).wait()
    };
    stage.servers.remove(&gone);
    let after = client.commit(vec![stage.append("a", b"after")], Vec::new(), Vec::new());
    assert_eq!(after.wait().unwrap().outcomes, [Outcome::Offset(0)]);
    let map = client.map();
    assert!(!map.is_live(gone), "it was declared down");
    let is_there = |key: &Key| {
        !map.holders(&BlobName { keyspace: single, key: key.clone() }, 0).contains(&gone)
    };
    let (there, away): (Vec<Key>, Vec<Key>) = keys().partition(is_there);
    write(there[0].clone()).unwrap();
    let error = write(away[0].clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("tyr keyspace loss single"), "{error}");
}

#[test]
fn who_reaches_nobody_is_told_so() {
    let options = ConnectOptions {
        connect_timeout: Duration::from_millis(300),
        ..ConnectOptions::at(vec![free_address().to_string()])
    };
    let error = Client::connect(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        Client::connect(&ConnectOptions::at(Vec::new())).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}
