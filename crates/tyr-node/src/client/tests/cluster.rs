//! The client against nodes that run in this process, from many threads.

use std::sync::Arc;

use tyr_protocol::session::{Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceName,
    Number, NumberType, Operation, Outcome, Payload, Transform,
};

use crate::client::local::LocalCluster;
use crate::client::{Client, ClientConfig, block_on};

const ALL: ByteRange = ByteRange { start: 0, end: 1 << 20 };

/// A cluster of three, with a keyspace in small chunks.
struct Stage {
    cluster: LocalCluster,
    keyspace: tyr_types::KeyspaceId,
    _folders: Vec<tempfile::TempDir>,
}

impl Stage {
    fn new() -> (Self, Arc<Client>) {
        let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let paths: Vec<_> = folders.iter().map(|folder| folder.path().to_owned()).collect();
        let cluster = LocalCluster::start(&paths).unwrap();
        let client = cluster.client(ClientConfig::default()).unwrap();
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let name = KeyspaceName::new("test").unwrap();
        let info = block_on(client.create_keyspace(&name, &config)).unwrap();
        (Self { cluster, keyspace: info.id, _folders: folders }, client)
    }

    fn blob(&self, key: &str) -> BlobName {
        BlobName { keyspace: self.keyspace, key: Key::new(key).unwrap() }
    }

    fn add(&self, key: &str, offset: u64) -> BlobOperations {
        let transform = Transform::add(Number::U64(1));
        let operations = vec![Operation::Apply { offset, transform }];
        BlobOperations { blob: self.blob(key), operations }
    }

    fn append(&self, key: &str, bytes: &[u8]) -> BlobOperations {
        let payload = Payload::Inline(Bytes::copy_from_slice(bytes));
        let operations = vec![Operation::Append { payload, expected: None }];
        BlobOperations { blob: self.blob(key), operations }
    }
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
    let other = stage.cluster.client(ClientConfig::default()).unwrap();
    for n in 0..50u8 {
        other.commit(vec![stage.append("a", &[n; 3])], Vec::new(), Vec::new()).wait().unwrap();
        let at = block_on(client.moment()).unwrap().unwrap();
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
    let other = stage.cluster.client(ClientConfig::default()).unwrap();
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
    stage.cluster.stop_node(0);
    let after = client.commit(vec![stage.append("a", b"after")], Vec::new(), Vec::new());
    assert_eq!(after.wait().unwrap().outcomes, [Outcome::Offset(6)]);
}
