//! Where blobs lie, as programs are told that go to their data.

use tyr::{ByteRange, ErrorKind, KeyspaceConfig};

use tyr_testing::{Kind, Store, stores};

const CHUNK: u64 = 4096;

fn config() -> KeyspaceConfig {
    KeyspaceConfig { chunk_size: CHUNK, replication: 2, ..KeyspaceConfig::default() }
}

#[test]
fn each_chunk_of_what_is_there_is_told_with_the_nodes_that_hold_it() {
    for kind in stores() {
        let store = Store::new(kind, config());
        store.keyspace.put("a", vec![7; 10_000]).unwrap();
        let located = store.keyspace.locations("a", ByteRange::from(100)).unwrap();
        let ranges: Vec<_> = located.iter().map(|it| (it.range.start, it.range.end)).collect();
        match kind {
            Kind::Embedded => {
                assert_eq!(ranges, [(100, 10_000)]);
                assert_eq!(located[0].replicas, [], "it is in this process");
            }
            Kind::Cluster => {
                assert_eq!(ranges, [(100, 4096), (4096, 8192), (8192, 10_000)]);
                for location in &located {
                    let nodes: Vec<_> = location.replicas.iter().map(|it| it.node).collect();
                    assert_eq!(nodes.len(), 2, "{location:?}");
                    assert!(nodes[0] < nodes[1], "the authority is first: {location:?}");
                    let addresses = location.replicas.iter().map(|it| &it.address);
                    assert!(addresses.clone().all(|it| it.starts_with("127.0.0.1:")));
                }
            }
        }
        assert_eq!(store.keyspace.locations("a", ByteRange::from(10_000)).unwrap(), []);
    }
}

#[test]
fn what_is_not_there_lies_nowhere() {
    for kind in stores() {
        let store = Store::new(kind, config());
        let error = store.keyspace.locations("a", ByteRange::from(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

#[test]
fn more_chunks_than_are_told_at_once_are_refused() {
    let store = Store::new(Kind::Cluster, config());
    store.keyspace.truncate("a", 65_537 * CHUNK).unwrap();
    let error = store.keyspace.locations("a", ByteRange::from(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let range = ByteRange { start: 4096, end: 65_537 * CHUNK };
    assert_eq!(store.keyspace.locations("a", range).unwrap().len(), 65_536);
}
