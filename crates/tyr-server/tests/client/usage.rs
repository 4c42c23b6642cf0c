//! How much there is, of a cluster of three in this process.

use std::time::Instant;

use tyr_client::{Client, block_on};
use tyr_types::{
    BlobName, BlobOperations, Bytes, Key, KeyspaceConfig, KeyspaceId, KeyspaceName, KeyspaceSize,
    NodeId, Operation, Payload,
};

use super::cluster::{PATIENCE, Stage};

fn commit(client: &Client, keyspace: KeyspaceId, key: u64, operation: Operation) {
    let blob = BlobName { keyspace, key: Key::new(format!("{key}")).unwrap() };
    let blobs = vec![BlobOperations { blob, operations: vec![operation] }];
    client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap();
}

fn append(client: &Client, keyspace: KeyspaceId, key: u64, len: usize) {
    let payload = Payload::Inline(Bytes::from(vec![7; len]));
    commit(client, keyspace, key, Operation::Append { payload, expected: None });
}

fn size(client: &Client, keyspace: KeyspaceId) -> KeyspaceSize {
    let usage = block_on(client.usage()).unwrap();
    usage.keyspaces.into_iter().find(|it| it.info.id == keyspace).unwrap()
}

/// Waits until all is counted; answers blobs and bytes.
fn counted(client: &Client, keyspace: KeyspaceId) -> (u64, u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let size = size(client, keyspace);
        if size.counted_ago.is_some() {
            return (size.blobs, size.bytes);
        }
        assert!(Instant::now() < deadline, "not all is counted: {size:?}");
    }
}

#[test]
fn what_was_committed_is_counted_at_once_and_once_whoever_holds_it() {
    let (mut stage, client) = Stage::new();
    let name = KeyspaceName::new("spread").unwrap();
    let config = KeyspaceConfig { replication: 2, ..KeyspaceConfig::default() };
    let spread = block_on(client.create_keyspace(&name, &config)).unwrap().id;
    (0..50).for_each(|key| append(&client, spread, key, 100));
    assert_eq!(counted(&client, spread), (50, 5000));
    // From then on changes are followed.
    (0..10).for_each(|key| append(&client, spread, key, 10));
    (10..15).for_each(|key| commit(&client, spread, key, Operation::Delete));
    (50..60).for_each(|key| append(&client, spread, key, 1));
    assert_eq!(counted(&client, spread), (55, 4610));
    let usage = block_on(client.usage()).unwrap();
    assert_eq!(usage.nodes.len(), 3);
    for node in &usage.nodes {
        let disk = node.disk.as_ref().unwrap();
        assert!(disk.taken_bytes > 0 && disk.free_bytes <= disk.size_bytes, "{disk:?}");
    }
    // The others take over what it counted.
    stage.servers.remove(&NodeId(2)).unwrap().stop().unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let usage = block_on(client.usage()).unwrap();
        let size = usage.keyspaces.iter().find(|it| it.info.id == spread).unwrap();
        if usage.nodes[2].disk.is_err() && size.counted_ago.is_some() {
            assert_eq!((size.blobs, size.bytes), (55, 4610));
            return;
        }
        assert!(Instant::now() < deadline, "the others do not count it: {usage:?}");
    }
}
