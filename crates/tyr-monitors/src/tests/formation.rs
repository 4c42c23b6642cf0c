//! How a cluster begins, and how others come to it; over real sockets too.

use std::sync::Arc;
use std::time::Duration;

use tyr_protocol::map::{Change, Newcomer};
use tyr_store::disk::SimulatedDisk;
use tyr_types::{ErrorKind, KeyspaceConfig, KeyspaceName, NodeId};

use super::nodes::{World, address, identify};
use crate::responder::{Answering, Responder};
use crate::{InitialNode, Monitor, MonitorOptions};
use tyr_control::NodeRecord;
use tyr_control::{ClientOptions, MetadataClient, Sender, TcpConnect};
use tyr_metadata::{Path, Transaction, reserved};

#[tokio::test(start_paused = true)]
async fn the_first_map_has_all_initial_nodes_and_waits_for_each_to_tell_of_itself() {
    let mut world = World::new(5, 3);
    for node in 0..3 {
        world.start_monitor(node).await;
    }
    world.wait_for_leader().await;
    world.report(3).await;
    world.pass(Duration::from_secs(5)).await;
    let bootstrap = world.client(0).bootstrap().await.unwrap();
    assert_eq!(bootstrap.cluster_map().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(bootstrap.cluster.is_some(), "its identity it has at once");
    world.report(4).await;
    world.pass(Duration::from_secs(2)).await;
    let bootstrap = world.client(4).bootstrap().await.unwrap();
    let map = bootstrap.cluster_map().unwrap();
    assert_eq!(map.nodes.len(), 5);
    assert_eq!(bootstrap.nodes[&4].addresses, [address(4)]);
    // The same once more: nothing is formed again.
    let cluster = bootstrap.cluster;
    for node in 0..3 {
        world.kill_monitor(node).await;
        world.start_monitor(node).await;
    }
    world.wait_for_leader().await;
    // What is in the log is known again when the leader has had it confirmed.
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.client(1).bootstrap().await.unwrap().cluster, cluster);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_later_gets_a_number_and_keeps_it() {
    let mut world = World::formed(3, 3).await;
    let record = NodeRecord { identity: 77, ..NodeRecord::at(address(3)) };
    let client = world.client_as(3, Sender::Node(u16::MAX));
    let number = client.admit(None, record.clone()).await.unwrap();
    assert_eq!(number, NodeId(3));
    assert_eq!(client.admit(None, record.clone()).await.unwrap(), number, "it is known again");
    let other = NodeRecord { identity: 78, ..record.clone() };
    let error = client.admit(Some(number), other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);

    let epoch = client.propose(Change::Join(vec![record.newcomer(number)])).await.unwrap();
    world.start_node(3);
    world.until("it holds a lease", |world| world.holding().contains(&3)).await;
    assert!(world.map().epoch >= epoch);
    world.until("it is on the ring", |world| world.map().next.is_none()).await;
    assert!(world.map().ring.share(number).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_drained_comes_in_when_an_administrator_says_so_and_its_number_stays_its() {
    let mut world = World::formed(3, 3).await;
    let record = NodeRecord { identity: 77, ..NodeRecord::at(address(3)) };
    let own = world.client_as(3, Sender::Node(u16::MAX));
    let node = own.admit(None, record.clone()).await.unwrap();
    let join = |incarnation| Change::Join(vec![Newcomer { incarnation, ..record.newcomer(node) }]);
    own.propose(join(1)).await.unwrap();
    world.start_node(3);
    world.until("it is on the ring", |world| world.map().ring.share(node).is_some()).await;
    let root = world.client_as(3, Sender::User("root".to_owned()));
    root.propose(Change::Drain(node)).await.unwrap();
    world.until("it is out", |world| world.map().ring.share(node).is_none()).await;
    let refused = own.propose(join(1 << 16)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("tyr node add 3"), "{refused}");
    root.propose(join(1 << 16)).await.unwrap();
    root.propose(Change::CancelMove).await.unwrap();
    // It is let in again, and was not drained since.
    own.propose(join(1 << 17)).await.unwrap();
    root.propose(Change::CancelMove).await.unwrap();

    let path = reserved::node(node);
    root.transact(Transaction::new().delete(path)).await.unwrap();
    let other = NodeRecord { identity: 78, ..record.clone() };
    assert_eq!(own.admit(None, other).await.unwrap(), NodeId(4), "the map remembers node 3");
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_cluster_is_not_heard() {
    let world = World::formed(3, 3).await;
    let options = ClientOptions {
        cluster: Some(4711),
        sender: Sender::Node(1),
        ..ClientOptions::at(&[address(0)])
    };
    let client = MetadataClient::new(options, world.shared.network.from("else")).unwrap();
    let error = client.status().await.unwrap_err();
    assert!(error.to_string().contains("not of"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_monitor_hands_everything_on() {
    let world = World::formed(4, 3).await;
    let answering = Answering::new(None, Some(world.client(3)));
    let relay = Responder::new(answering, Arc::new(identify));
    world.shared.network.listen(&address(3), relay);
    let sender = Sender::User("root".to_owned());
    let options = ClientOptions { sender, ..ClientOptions::at(&[address(3)]) };
    let client = MetadataClient::new(options, world.shared.network.from("user")).unwrap();
    let key = Path::new("service/a").unwrap();
    let revision = client.transact(Transaction::new().put(key.clone(), "1")).await.unwrap();
    assert_eq!(client.get(key.clone()).await.unwrap().unwrap().changed, revision);
    let mut watch = client.watch("service/", revision - 1);
    let mut told = Vec::new();
    while told.is_empty() {
        told = watch.next().await.unwrap().0;
    }
    assert_eq!((told[0].revision, &told[0].path), (revision, &key));
    assert!(client.leader().await.unwrap().is_some());
    // It is still the user who asks.
    let map = Path::new(reserved::MAP).unwrap();
    let error = client.transact(Transaction::new().delete(map)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn three_monitors_on_threads_of_their_own_talk_over_sockets() {
    let mut listeners = Vec::new();
    for node in 0..3 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        listeners.push((InitialNode { node: NodeId(node), address, is_monitor: true }, listener));
    }
    let initial: Vec<InitialNode> = listeners.iter().map(|it| it.0.clone()).collect();
    let mut monitors = Vec::new();
    for (own, listener) in listeners {
        let record = NodeRecord {
            identity: own.node.0.into(),
            is_monitor: true,
            ..NodeRecord::at(own.address)
        };
        let disk = Arc::new(SimulatedDisk::new());
        let initial = initial.clone();
        let options = MonitorOptions { initial, ..MonitorOptions::new(own.node, disk, record) };
        let monitor = Monitor::start(options, Arc::new(TcpConnect), Arc::new(|_, _| {})).unwrap();
        let answering = Answering::new(Some(monitor.clone()), None);
        let server = Responder::new(answering, Arc::new(identify));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { _ = server.accept(stream).await });
            }
        });
        monitors.push(monitor);
    }
    let addresses: Vec<&str> = initial.iter().map(|it| it.address.as_str()).collect();
    let sender = Sender::User("root".to_owned());
    let options = ClientOptions { sender, ..ClientOptions::at(&addresses) };
    let client = MetadataClient::new(options, Arc::new(TcpConnect)).unwrap();
    let key = Path::new("service/a").unwrap();
    client.transact(Transaction::new().put(key.clone(), "1")).await.unwrap();
    let mut watch = client.watch("cluster/map", 0);
    while watch.next().await.unwrap().0.is_empty() {}
    assert_eq!(client.bootstrap().await.unwrap().cluster_map().unwrap().nodes.len(), 3);
    assert_eq!(monitors[2].committed().read().get("service/a").unwrap().value, "1");
    for monitor in monitors {
        monitor.close().await.unwrap();
        assert_eq!(
            monitor.transact(Transaction::new()).await.unwrap_err().kind(),
            ErrorKind::Unavailable
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_became_different_with_a_map_is_in_the_cluster_log() {
    let world = World::formed(3, 3).await;
    let client = world.client(0);
    let before = client.list(reserved::LOG, None, 10).await.unwrap().0;
    let name = KeyspaceName::new("notes").unwrap();
    let config = KeyspaceConfig { replication: 3, ..KeyspaceConfig::default() };
    let create = Change::CreateKeyspace { name, config, seed: 1 };
    let epoch = client.propose(create).await.unwrap();
    let (entries, _) = client.list(reserved::LOG, None, 10).await.unwrap();
    assert_eq!(entries.len(), before.len() + 1);
    let (path, entry) = entries.last().unwrap();
    assert_eq!(*path, reserved::log_entry(epoch.0));
    let text = std::str::from_utf8(&entry.value).unwrap();
    let (time, lines) = text.split_once('\n').unwrap();
    assert!(time.parse::<u64>().unwrap() > 1_700_000_000_000_000, "{time}");
    assert_eq!(lines, "keyspace notes was created");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = world.client(1).list(reserved::LOG, None, 10).await.unwrap().0;
    assert_eq!(again, entries, "a map that is only repeated is no event");
}
