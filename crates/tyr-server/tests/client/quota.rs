//! Quotas on a cluster of three in this process.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tyr_protocol::session::{Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceId,
    KeyspaceName, NodeId, Operation, Payload, Result,
};

use super::cluster::{PATIENCE, Stage};
use tyr_client::{Client, block_on};
use tyr_metadata::Transaction;
use tyr_server::Observer;
use tyr_server::quota::Quota;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn limit(stage: &Stage, keyspace: KeyspaceId, quota: Quota) {
    let path = Quota::path(keyspace).unwrap();
    let transaction = Transaction::new().put(path, quota.to_bytes());
    let server = &stage.servers[&NodeId(0)];
    runtime().block_on(server.metadata().transact(transaction)).unwrap();
}

/// A keyspace of which all three nodes count something: each blob lies on one of them.
fn spread(client: &Client) -> KeyspaceId {
    let name = KeyspaceName::new("spread").unwrap();
    let config = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
    block_on(client.create_keyspace(&name, &config)).unwrap().id
}

fn commit(client: &Client, keyspace: KeyspaceId, key: &str, operation: Operation) -> Result<()> {
    let blob = BlobName { keyspace, key: Key::new(key).unwrap() };
    let blobs = vec![BlobOperations { blob, operations: vec![operation] }];
    client.commit(blobs, Vec::new(), Vec::new()).wait().map(drop)
}

fn append(client: &Client, keyspace: KeyspaceId, key: &str) -> Result<()> {
    let payload = Payload::Inline(Bytes::from(vec![7; 1000]));
    commit(client, keyspace, key, Operation::Append { payload, expected: None })
}

/// Does it until it comes out so; answers how often it had not.
fn until(what: &str, mut holds: impl FnMut() -> bool) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut tries = 0;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        tries += 1;
    }
    tries
}

#[test]
fn a_full_keyspace_is_refused_until_something_is_deleted_and_no_other_is() {
    let (stage, client) = Stage::new();
    let full = spread(&client);
    limit(&stage, full, Quota { bytes: Some(50_000), ..Quota::default() });
    let mut refusal = None;
    let mut number = 0;
    let let_in = until("the keyspace is full", || {
        number += 1;
        refusal = append(&client, full, &format!("blob {}", number % 20)).err();
        refusal.is_some()
    });
    let refusal = refusal.unwrap();
    assert_eq!(refusal.kind(), ErrorKind::QuotaExceeded, "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains("keyspace spread has a quota of 50000 bytes"), "{text}");
    println!("{let_in} of 1000 bytes were let in");
    assert!(let_in >= 45, "not before it is nearly full: {let_in}");
    append(&client, stage.keyspace, "a").unwrap();
    for number in 0..20 {
        commit(&client, full, &format!("blob {number}"), Operation::Delete).unwrap();
    }
    until("there is room", || append(&client, full, "a").is_ok());
    for server in stage.servers.values() {
        until("all nodes know what is used", || {
            let reports = Observer::of(server).report().quotas;
            let [report] = &reports[..] else { return false };
            (&*report.keyspace, report.bytes, report.blobs) == ("spread", 1000, 1)
        });
    }
}

#[test]
fn a_keyspace_with_all_its_blobs_gets_no_more_and_those_it_has_may_grow() {
    let (stage, client) = Stage::new();
    let full = spread(&client);
    append(&client, full, "a").unwrap();
    limit(&stage, full, Quota { blobs: Some(1), ..Quota::default() });
    let mut number = 0;
    until("one more is refused", || {
        number += 1;
        append(&client, full, &format!("{number}")).is_err()
    });
    append(&client, full, "a").unwrap();
    commit(&client, full, "not there", Operation::Delete).unwrap();
}

#[test]
fn operations_beyond_the_limit_are_refused_and_let_in_again_in_their_time() {
    let (stage, client) = Stage::new();
    append(&client, stage.keyspace, "a").unwrap();
    limit(&stage, stage.keyspace, Quota { operations: Some(6), ..Quota::default() });
    let read = || {
        let blob = BlobName { keyspace: stage.keyspace, key: Key::new("a").unwrap() };
        let want = Want::bytes(blob, ByteRange { start: 0, end: 10 });
        block_on(client.read(want, Place::Newest).answer()).map(drop)
    };
    let mut refusal = None;
    until("too many reads", || {
        refusal = read().err();
        refusal.is_some()
    });
    let refusal = refusal.unwrap();
    assert_eq!(refusal.kind(), ErrorKind::QuotaExceeded);
    let text = refusal.to_string();
    assert!(text.contains("keyspace test has a quota of 6 operations a second"), "{text}");
    let refused = until("reads are let in again", || read().is_ok());
    println!("{refused} reads were refused meanwhile");
    until("too many writes", || append(&client, stage.keyspace, "a").is_err());
    limit(&stage, stage.keyspace, Quota::default());
    until("the quota is gone", || (0..30).all(|_| read().is_ok()));
}
