//! A node joins with a monitor that has no vote yet; it gets one, and another one loses its.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_types::{KeyspaceConfig, KeyspaceName, NodeId};

use super::cluster::{PATIENCE, Stage};
use tyr_client::block_on;
use tyr_control::{ClientOptions, MetadataClient, Sender, TcpConnect};
use tyr_server::{Formation, Observer, Server, ServerOptions};
use tyr_testing::free_address;

const LATE: NodeId = NodeId(3);

fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks by way of this node alone.
struct Asking {
    client: MetadataClient,
    runtime: tokio::runtime::Runtime,
}

impl Asking {
    fn at(node: &Server) -> Self {
        let sender = Sender::User("root".to_owned());
        let options = ClientOptions { sender, ..ClientOptions::at(&[node.listen().to_string()]) };
        let client = MetadataClient::new(options, Arc::new(TcpConnect)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { client, runtime }
    }

    fn voters(&self) -> Vec<u16> {
        let mut voters = self.runtime.block_on(self.client.status()).unwrap().voters;
        voters.sort_unstable();
        voters
    }

    fn appoint(&self, node: NodeId, is_monitor: bool) {
        self.runtime.block_on(self.client.appoint(node, is_monitor)).unwrap();
    }
}

#[test]
fn a_node_joins_with_a_monitor_that_is_given_a_vote_later() {
    let (mut stage, client) = Stage::new();
    let place = free_address();
    let join: Vec<String> = stage.servers.values().map(|it| it.listen().to_string()).collect();
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut options = ServerOptions::new(folder.path().to_owned(), place);
        options.is_monitor = true;
        options.formation = Formation::Join(join.clone());
        Server::start(options).unwrap()
    };
    let is_ready = |server: &Server| Observer::of(server).ready().is_well();

    let late = start();
    assert_eq!(late.node(), LATE);
    until("it is let in", || is_ready(&late));
    let asking = Asking::at(&late);
    assert_eq!(asking.voters(), [0, 1, 2], "it hands on what it does not know");

    asking.appoint(LATE, true);
    assert_eq!(asking.voters(), [0, 1, 2, 3]);
    late.stop().unwrap();
    let late = start();
    until("it is back", || is_ready(&late));
    assert_eq!(Asking::at(&late).voters(), [0, 1, 2, 3]);

    // One that has no vote any more goes on as a node.
    Asking::at(&late).appoint(NodeId(0), false);
    let first = stage.servers.remove(&NodeId(0)).unwrap();
    until("it knows", || Asking::at(&first).voters() == [1, 2, 3]);
    let name = KeyspaceName::new("later").unwrap();
    block_on(client.create_keyspace(&name, &KeyspaceConfig::default())).unwrap();
    let knows = |node: &Server| {
        Observer::of(node).report().map.is_some_and(|map| map.keyspaces.contains(&name.to_string()))
    };
    until("it hears what is new", || knows(&first));
    until("both serve", || is_ready(&first) && is_ready(&late));
    let written = stage.append("a", b"all");
    client.commit(vec![written], Vec::new(), Vec::new()).wait().unwrap();
    first.stop().unwrap();
    late.stop().unwrap();
}
