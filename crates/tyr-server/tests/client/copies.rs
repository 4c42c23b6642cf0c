//! A node's folder is put back from a copy, made before the cluster went on (M4).

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_protocol::session::{Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceName,
    NodeId, Operation, Payload, Result,
};

use super::cluster::{PATIENCE, connect};
use super::format::copy;
use tyr_client::{Client, block_on};
use tyr_monitors::InitialNode;
use tyr_server::{Formation, Observer, Server, ServerOptions};
use tyr_testing::free_address;

const LATE: NodeId = NodeId(2);

/// Three nodes, each stopped and started at will.
struct Nodes {
    folder: tempfile::TempDir,
    places: Vec<SocketAddr>,
    running: BTreeMap<NodeId, Server>,
    blob: Option<BlobName>,
    /// What was acknowledged.
    written: Vec<u8>,
}

impl Nodes {
    fn new() -> Self {
        let places = (0..3).map(|_| free_address()).collect();
        let (folder, running) = (tempfile::tempdir().unwrap(), BTreeMap::new());
        let mut nodes = Self { folder, places, running, blob: None, written: Vec::new() };
        (0..3).for_each(|node| nodes.start(NodeId(node)).unwrap());
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let name = KeyspaceName::new("test").unwrap();
        let keyspace = block_on(nodes.client().create_keyspace(&name, &config)).unwrap().id;
        nodes.blob = Some(BlobName { keyspace, key: Key::new("log").unwrap() });
        nodes
    }

    fn folder(&self, node: NodeId) -> PathBuf {
        self.folder.path().join(node.0.to_string())
    }

    fn start(&mut self, node: NodeId) -> Result<()> {
        let place = self.places[usize::from(node.0)];
        let mut options = ServerOptions::new(self.folder(node), place);
        let initial = |(n, place): (u16, &SocketAddr)| InitialNode {
            node: NodeId(n),
            address: place.to_string(),
            is_monitor: true,
        };
        options.node = Some(node);
        options.formation = Formation::Initial((0..).zip(&self.places).map(initial).collect());
        self.running.insert(node, Server::start(options)?);
        Ok(())
    }

    fn stop(&mut self, node: NodeId) {
        self.running.remove(&node).unwrap().stop().unwrap();
    }

    fn is_ready(&self, node: NodeId) -> bool {
        Observer::of(&self.running[&node]).ready().is_well()
    }

    fn client(&self) -> Arc<Client> {
        let places: Vec<String> = self.places.iter().map(ToString::to_string).collect();
        connect(&places)
    }

    /// Appends, once that is possible.
    fn write(&mut self, byte: u8) {
        let (client, blob) = (self.client(), self.blob.clone().unwrap());
        let until = Instant::now() + PATIENCE;
        loop {
            let payload = Payload::Inline(Bytes::from(vec![byte; 10]));
            let operations = vec![Operation::Append { payload, expected: None }];
            let blobs = vec![BlobOperations { blob: blob.clone(), operations }];
            match client.commit(blobs, Vec::new(), Vec::new()).wait() {
                Ok(_) => break,
                Err(_) => assert!(Instant::now() < until, "nothing can be written"),
            }
        }
        self.written.extend([byte; 10]);
    }

    /// Reads what was acknowledged, several times, so that each replica has its turn.
    fn read(&self) {
        let client = self.client();
        for _ in 0..6 {
            let blob = self.blob.clone().unwrap();
            let want = Want::bytes(blob, ByteRange { start: 0, end: 1 << 20 });
            let sight = block_on(client.read(want, Place::Newest).answer()).unwrap();
            assert_eq!(sight.seen.bytes, self.written);
        }
    }

    /// Stops the node, copies its folder, starts it, writes, and stops it: the copy is older now.
    fn age(&mut self) -> PathBuf {
        self.write(1);
        self.stop(LATE);
        let aside = self.folder.path().join("copy");
        copy(&self.folder(LATE), &aside);
        self.start(LATE).unwrap();
        until("it is back", || self.is_ready(LATE));
        self.write(2);
        self.stop(LATE);
        aside
    }

    /// Copies the folder of a node that runs. Others take what it writes meanwhile.
    fn copy_running(&mut self) -> PathBuf {
        self.write(1);
        let aside = self.folder.path().join("copy");
        let identity = fs::read(self.folder(LATE).join("node.json")).unwrap();
        copy(&self.folder(LATE), &aside);
        // Before anything else of it.
        fs::write(aside.join("node.json"), identity).unwrap();
        aside
    }

    fn generation(&self) -> u64 {
        self.running[&NodeId(0)].records()[&LATE].generation
    }

    /// Puts the copy in the place of the folder, which is set aside.
    fn put_back(&self, aside: &PathBuf) -> PathBuf {
        let kept = self.folder.path().join("kept");
        fs::rename(self.folder(LATE), &kept).unwrap();
        fs::rename(aside, self.folder(LATE)).unwrap();
        kept
    }

    /// Starts the node on the folder that was set aside, in the place of the copy.
    fn bring_back(&mut self, kept: &PathBuf) {
        fs::remove_dir_all(self.folder(LATE)).unwrap();
        fs::rename(kept, self.folder(LATE)).unwrap();
        self.start(LATE).unwrap();
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_folder_that_was_put_back_from_a_copy_is_refused_before_the_node_does_anything() {
    let mut nodes = Nodes::new();
    let aside = nodes.age();
    let kept = nodes.put_back(&aside);
    for _ in 0..3 {
        let refused = nodes.start(LATE).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.message().contains("older than what the cluster has seen of node 2"));
    }
    nodes.read();
    nodes.bring_back(&kept);
    until("the folder that is the newest is taken", || nodes.is_ready(LATE));
    nodes.write(3);
    nodes.read();
}

#[test]
fn a_copy_that_starts_before_anybody_can_tell_gets_no_lease() {
    let mut nodes = Nodes::new();
    let aside = nodes.age();
    nodes.put_back(&aside);
    [NodeId(0), NodeId(1)].into_iter().for_each(|node| nodes.stop(node));
    nodes.start(LATE).unwrap();
    [NodeId(0), NodeId(1)].into_iter().for_each(|node| nodes.start(node).unwrap());
    let observer = Observer::of(&nodes.running[&LATE]);
    let is_refused = || observer.live().reasons.iter().any(|it| it.contains("of node 2"));
    until("it is refused", is_refused);
    assert!(!nodes.is_ready(LATE));
    until("the others go on", || nodes.is_ready(NodeId(0)) && nodes.is_ready(NodeId(1)));
    nodes.read();
    nodes.write(3);
    nodes.read();
    assert!(!nodes.is_ready(LATE));
}

#[test]
fn a_copy_made_while_the_node_ran_is_refused_after_it_has_stopped() {
    let mut nodes = Nodes::new();
    let aside = nodes.copy_running();
    nodes.write(2);
    nodes.stop(LATE);
    let kept = nodes.put_back(&aside);
    let refused = nodes.start(LATE).unwrap_err();
    assert!(refused.message().contains("older than what the cluster has seen of node 2"));
    nodes.bring_back(&kept);
    until("what it stopped with is taken", || nodes.is_ready(LATE));
    nodes.write(3);
    nodes.read();
}

/// So a copy is older soon, also where the node is killed.
#[test]
fn the_generation_rises_while_a_node_runs() {
    let nodes = Nodes::new();
    until("the cluster has seen all", || nodes.running[&NodeId(0)].records().len() == 3);
    let known = nodes.generation();
    until("it goes on", || nodes.generation() > known);
}
