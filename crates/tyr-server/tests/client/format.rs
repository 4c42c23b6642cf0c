//! A node that a program of before feature levels left behind starts with everything in it; one
//! that a later program left behind does not, and the cluster log says so.
//!
//! `fixtures/node-format-1` is a node alone in its cluster, with a monitor, killed while it ran:
//! its log has all that it promised. Its `log` and `extents` end where what was written ends.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tyr_protocol::session::{Place, Want};
use tyr_protocol::wire::LEVEL;
use tyr_types::{BlobName, ByteRange, Bytes, Key, KeyspaceName, NodeId};

use super::cluster::{Stage, connect};
use tyr_client::block_on;
use tyr_monitors::InitialNode;
use tyr_server::{Formation, Server, ServerOptions};

/// Where the node was, as its peers and clients know it: it starts again at the same address.
const PLACE: &str = "127.0.0.1:17391";

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn a_node_of_the_first_format_starts_with_everything_in_it_and_uses_the_level_of_now() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&fixture.join("tests/client/fixtures/node-format-1"), folder.path());
    // Git keeps no empty folders.
    for table in fs::read_dir(folder.path().join("store/index/keyspaces")).unwrap() {
        fs::create_dir_all(table.unwrap().path().join("tables")).unwrap();
    }
    for _ in 0..2 {
        let place: SocketAddr = PLACE.parse().unwrap();
        let (node, address) = (NodeId(0), place.to_string());
        let mut options = ServerOptions::new(folder.path().to_owned(), place);
        options.formation =
            Formation::Initial(vec![InitialNode { node, address, is_monitor: true }]);
        let server = Server::start(options).unwrap();
        let client = connect(&[PLACE.to_owned()]);
        let name = KeyspaceName::new("notes").unwrap();
        let keyspace = block_on(client.keyspace(&name)).unwrap().id;
        let read = |key: &str| -> Bytes {
            let blob = BlobName { keyspace, key: Key::new(key).unwrap() };
            let want = Want::bytes(blob, ByteRange { start: 0, end: 1 << 20 });
            block_on(client.read(want, Place::Newest).answer()).unwrap().seen.bytes
        };
        let expected: String = (1..=32).map(|n| format!("entry-{n};")).collect();
        assert_eq!(read("log"), expected);
        assert_eq!(read("count"), 32u64.to_le_bytes()[..]);
        assert_eq!(read("large"), vec![b'x'; 50_000]);
        assert_eq!(server.map().unwrap().level, LEVEL);
        server.stop().unwrap();
    }
}

#[test]
fn that_a_program_is_too_old_for_its_folder_is_in_the_cluster_log_once() {
    let (mut stage, _client) = Stage::new();
    let node = NodeId(2);
    stage.servers.remove(&node).unwrap().stop().unwrap();
    // As a later release would have it.
    let path = stage.options(node).folder.join("store/checkpoint");
    let mut checkpoint = fs::read(&path).unwrap();
    checkpoint[4] = 99;
    fs::write(&path, &checkpoint).unwrap();
    for _ in 0..2 {
        let refused = Server::start(stage.options(node).clone()).unwrap_err();
        assert!(refused.message().contains("later release"), "{refused}");
    }
    let lines = stage.log();
    let told = lines.iter().filter(|line| line.contains("node 2: does not start: "));
    let told: Vec<_> = told.collect();
    assert!(told.len() == 1 && told[0].contains("later release"), "{lines:?}");
}
