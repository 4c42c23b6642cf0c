//! Monitors that fail, are cut off and come back.

use std::time::Duration;

use tokio::time::Instant;
use tyr_protocol::map::NodeState;
use tyr_types::{ErrorKind, NodeId};

use super::nodes::{World, address};
use tyr_control::{MetadataClient, Sender};
use tyr_metadata::{Expected, Path, Transaction};

fn path(text: &str) -> Path {
    Path::new(text).unwrap()
}

fn put(key: &str, value: &'static str) -> Transaction {
    Transaction::new().put(path(key), value)
}

async fn value(client: &MetadataClient, key: &str) -> Vec<u8> {
    client.get(path(key)).await.unwrap().unwrap().value.to_vec()
}

#[tokio::test(start_paused = true)]
async fn what_one_writes_all_read_whoever_is_asked() {
    let world = World::formed(3, 3).await;
    let revision = world.monitor(0).transact(put("service/a", "1")).await.unwrap();
    for node in 0..3 {
        assert_eq!(value(&world.client(node), "service/a").await, b"1");
    }
    let transaction = put("service/a", "2").when(path("service/a"), Expected::Revision(revision));
    world.client(1).transact(transaction.clone()).await.unwrap();
    let error = world.client(2).transact(transaction).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_followed_and_a_new_map_is_there_within_five_seconds() {
    let mut world = World::formed(5, 3).await;
    let leader = world.wait_for_leader().await;
    world.client(4).transact(put("service/a", "1")).await.unwrap();
    let killed = Instant::now();
    world.kill_monitor(leader).await;
    world.stop_node(leader);
    let is_down = |world: &World| {
        let map = world.map();
        map.nodes[&NodeId(leader)].state == NodeState::Down
    };
    world.until("the node of the leader is declared down", is_down).await;
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    assert_eq!(value(&world.client(4), "service/a").await, b"1");
    world.until("all others hold leases", |world| world.holding().len() == 4).await;
}

/// How a monitor ends.
#[derive(Clone, Copy)]
enum End {
    /// As M6 has it.
    Stopped,
    /// Without a word to the others.
    Killed,
}

/// How long until another leads when this one has ended.
async fn time_until_followed(world: &mut World, leader: u16, end: End) -> Duration {
    let ended = Instant::now();
    match end {
        End::Stopped => world.stop_monitor(leader).await,
        End::Killed => world.kill_monitor(leader).await,
    }
    while world.leader().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ended.elapsed()
}

/// M6.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_followed_at_once_in_clusters_of_three_and_five() {
    for monitors in [3, 5] {
        let mut world = World::formed(5, monitors).await;
        for round in 0..6 {
            let leader = world.wait_for_leader().await;
            // In the middle of its lease as well as at the end.
            world.pass(Duration::from_millis(130 * round)).await;
            world.client(4).transact(put("service/a", "1")).await.unwrap();
            let took = time_until_followed(&mut world, leader, End::Stopped).await;
            assert!(took < Duration::from_millis(250), "{monitors} monitors, {round}: {took:?}");
            assert_eq!(value(&world.client(4), "service/a").await, b"1");
            world.start_monitor(leader).await;
        }
        world.until("all hold leases", |world| world.holding().len() == 5).await;
    }
}

/// M6 taken away: who is not told that a leader stops waits until it has been silent for long.
#[tokio::test(start_paused = true)]
async fn without_m6_nobody_leads_for_more_than_a_second_when_a_leader_ends() {
    let mut world = World::formed(5, 3).await;
    for _ in 0..6 {
        let leader = world.wait_for_leader().await;
        let took = time_until_followed(&mut world, leader, End::Killed).await;
        assert!(took > Duration::from_secs(1), "{took:?}");
        world.start_monitor(leader).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_without_a_majority_is_followed_when_there_is_one() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    world.isolate(leader, &[]);
    let began = Instant::now();
    world.stop_monitor(leader).await;
    assert!(began.elapsed() < Duration::from_secs(3), "it stops all the same");
    let followed = world.wait_for_leader().await;
    assert_ne!(followed, leader);
}

#[tokio::test(start_paused = true)]
async fn leases_go_on_while_leaders_stop_one_after_the_other() {
    let mut world = World::formed(5, 3).await;
    for _ in 0..6 {
        let leader = world.wait_for_leader().await;
        world.stop_monitor(leader).await;
        // No node notices: `pass` looks that there is one authority at any time.
        for _ in 0..30 {
            world.pass(Duration::from_millis(100)).await;
            assert_eq!(world.holding().len(), 5, "a lease ran out though a leader was there");
        }
        world.start_monitor(leader).await;
        world.pass(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_stopping_is_sent_little_though_it_lacks_what_is_written() {
    // In ten seconds. What a leader asks all to know that it leads is among it, some 45 a second.
    const SENT_MAX: u64 = 1000;
    let world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let stopping = (0..3).find(|it| *it != leader).unwrap();
    // Its Raft has ended, and it still answers.
    world.monitor(stopping).stop().await;
    let before = world.shared.network.carried_to(&address(stopping));
    world.monitor(leader).transact(put("service/a", "1")).await.unwrap();
    world.pass(Duration::from_secs(10)).await;
    let sent = world.shared.network.carried_to(&address(stopping)) - before;
    assert!(sent > 0, "it is asked again, whether it has come back");
    assert!(sent < SENT_MAX, "{sent} pieces were sent to it");
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_the_newest_while_nobody_leads_hears_it_from_the_next_leader() {
    let mut world = World::formed(5, 3).await;
    let leader = world.wait_for_leader().await;
    let client = world.client(4);
    client.transact(put("service/a", "1")).await.unwrap();
    world.kill_monitor(leader).await;
    let status = client.status().await.unwrap();
    assert!(status.leadership.is_none(), "who asks how it is need not wait: {status:?}");
    let newest = client.newest().await.unwrap();
    assert_eq!(newest.cluster_map().unwrap().nodes.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_that_is_no_monitor_is_declared_down_within_three_seconds() {
    let mut world = World::formed(5, 3).await;
    world.pass(Duration::from_secs(3)).await;
    let stopped = Instant::now();
    world.stop_node(4);
    let is_down = |world: &World| world.map().nodes[&NodeId(4)].state == NodeState::Down;
    world.until("the node is declared down", is_down).await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    let status = world.client(0).status().await.unwrap();
    assert_eq!(status.leadership.unwrap().seats[&4].state, "down");
    // And it comes back.
    world.start_node(4);
    let is_up = |world: &World| world.map().nodes[&NodeId(4)].state == NodeState::Up;
    world.until("the node is up again", is_up).await;
}

#[tokio::test(start_paused = true)]
async fn a_minority_that_is_lost_stops_nobody() {
    let mut world = World::formed(5, 5).await;
    for _ in 0..2 {
        let leader = world.wait_for_leader().await;
        world.kill_monitor(leader).await;
        let left = (0..5).find(|it| world.shared.monitors.lock().contains_key(it)).unwrap();
        world.client(left).transact(put("service/a", "1")).await.unwrap();
    }
    world.until("leases go on", |world| world.holding().len() == 5).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_is_granted_nor_written_and_with_one_it_goes_on() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let others: Vec<u16> = (0..3).filter(|it| *it != leader).collect();
    for other in &others {
        world.kill_monitor(*other).await;
    }
    world.until("no lease is left", |world| world.holding().is_empty()).await;
    let error = world.client(leader).transact(put("service/a", "1")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable), "{error}");
    let error = world.client(leader).get(path("service/a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    world.start_monitor(others[0]).await;
    world.until("leases are granted again", |world| world.holding().len() == 3).await;
    world.client(leader).transact(put("service/b", "1")).await.unwrap();
    // Nobody was declared down meanwhile: nobody could have been heard.
    assert!(world.map().nodes.values().all(|node| node.state == NodeState::Up));
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_over_a_change_of_the_leader_and_misses_nothing() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let client = world.client_as(3, Sender::User("root".to_owned()));
    let (_, revision) = client.list("service/", None, 10).await.unwrap();
    let mut watch = client.watch("service/", revision);
    let (watched, mut seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((changes, _)) = watch.next().await {
            for change in changes {
                if watched.send((change.revision, change.value.unwrap())).is_err() {
                    return;
                }
            }
        }
    });
    let writer = world.client_as(3, Sender::User("root".to_owned()));
    for count in 0..30_u8 {
        if count == 10 {
            world.kill_monitor(leader).await;
        }
        if count == 20 {
            world.start_monitor(leader).await;
        }
        let transaction = Transaction::new().put(path("service/a"), vec![count]);
        let written = writer.transact(transaction).await;
        let is_unknown = |error: &tyr_types::Error| error.kind() == ErrorKind::TimedOut;
        assert!(written.is_ok() || written.is_err_and(|error| is_unknown(&error)));
    }
    let mut last = (0, 0);
    while last.1 < 29 {
        let next = tokio::time::timeout(Duration::from_secs(30), seen.recv()).await;
        let (revision, value) = next.expect("the watch tells it").unwrap();
        assert!(revision > last.0, "in order, each once");
        assert!(value[0] <= last.1 + 2, "{} after {}: nothing is left out", value[0], last.1);
        last = (revision, value[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn all_monitors_killed_at_once_go_on_from_their_disks() {
    let mut world = World::formed(3, 3).await;
    let cluster = world.monitor(0).cluster().unwrap();
    for count in 0..20_u8 {
        let transaction = Transaction::new().put(path("service/a"), vec![count]);
        world.client(0).transact(transaction).await.unwrap();
    }
    let epoch = world.map().epoch;
    for node in 0..3 {
        world.kill_monitor(node).await;
    }
    world.pass(Duration::from_secs(5)).await;
    assert!(world.holding().is_empty());
    for node in 0..3 {
        world.start_monitor(node).await;
    }
    world.until("leases are granted again", |world| world.holding().len() == 3).await;
    assert_eq!(value(&world.client(1), "service/a").await, [19]);
    assert_eq!(world.monitor(1).cluster(), Some(cluster));
    assert!(world.map().epoch >= epoch);
}

/// The term of a monitor.
async fn term(world: &World, node: u16) -> u64 {
    let monitor = world.monitor(node);
    let term = monitor.shared.raft.with_raft_state(|it| it.vote_ref().leader_id.term);
    term.await.unwrap()
}

/// It has not applied yet what it committed before, and does not know that it did.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_back_before_another_was_elected_answers_by_all_that_it_committed() {
    let mut world = World::formed(3, 3).await;
    for count in 0..10_u8 {
        let leader = world.wait_for_leader().await;
        let transaction = Transaction::new().put(path("service/a"), vec![count]);
        world.monitor(leader).transact(transaction).await.unwrap();
        let before = term(&world, leader).await;
        world.kill_monitor(leader).await;
        world.start_monitor(leader).await;
        assert_eq!(value(&world.client(leader), "service/a").await, [count]);
        let leader = world.wait_for_leader().await;
        assert!(term(&world, leader).await > before, "who leads was elected since");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_away_for_long_gets_a_snapshot() {
    let mut world = World::formed(3, 3).await;
    let leader = world.wait_for_leader().await;
    let away = (leader + 1) % 3;
    world.kill_monitor(away).await;
    // More than the log keeps: by number of bytes.
    for count in 0..12_u8 {
        let transaction = Transaction::new().put(path("service/a"), vec![count; 3 << 20]);
        world.client(leader).transact(transaction).await.unwrap();
        world.pass(Duration::from_secs(1)).await;
    }
    for count in 0..150_u8 {
        let transaction = Transaction::new().put(path("service/b"), vec![count]);
        world.client(leader).transact(transaction).await.unwrap();
    }
    world.monitor(leader).shared.raft.trigger().snapshot().await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    assert!(world.monitor(leader).shared.log.bytes() < 16 << 20);
    world.start_monitor(away).await;
    let revision = world.monitor(leader).committed().read().revision();
    let has_all = |world: &World| world.monitor(away).committed().read().revision() >= revision;
    world.until("it has everything", has_all).await;
    assert_eq!(*world.monitor(away).committed().read(), *world.monitor(leader).committed().read());
    let purged = world.monitor(leader).shared.raft.metrics().borrow().purged;
    assert!(purged.is_some(), "what it missed was in the log no more");
}

#[tokio::test(start_paused = true)]
async fn monitors_are_appointed_and_dismissed_while_all_goes_on() {
    let mut world = World::formed(4, 3).await;
    world.try_start_monitor(3, Vec::new()).await.unwrap();
    world.client(0).appoint(NodeId(3), true).await.unwrap();
    let status = world.client(3).status().await.unwrap();
    assert_eq!(status.voters, [0, 1, 2, 3]);
    let leader = world.wait_for_leader().await;
    let other = (0..3).find(|it| *it != leader).unwrap();
    world.client(0).appoint(NodeId(other), false).await.unwrap();
    world.kill_monitor(other).await;
    let left: Vec<u16> = (0..4).filter(|it| *it != other).collect();
    assert_eq!(world.client(left[0]).status().await.unwrap().voters, left);
    // The former leader may fail too: two of three are left.
    world.kill_monitor(leader).await;
    world.client(3).transact(put("service/a", "1")).await.unwrap();
    let error = world.client(3).appoint(NodeId(9), true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn one_monitor_alone_leads_as_soon_as_it_is_there() {
    let mut world = World::formed(1, 1).await;
    world.client(0).transact(put("service/a", "1")).await.unwrap();
    world.kill_monitor(0).await;
    let killed = Instant::now();
    world.start_monitor(0).await;
    assert_eq!(value(&world.client(0), "service/a").await, b"1");
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    world.until("it holds its lease", |world| world.holding().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn users_see_and_change_what_they_may_through_any_node() {
    let world = World::formed(3, 3).await;
    let root = world.client_as(9, Sender::User("root".to_owned()));
    root.transact(put("access/mine/", "write: alice")).await.unwrap();
    root.transact(put("other/a", "1")).await.unwrap();
    let alice = world.client_as(9, Sender::User("alice".to_owned()));
    let revision = alice.transact(put("mine/a", "1")).await.unwrap();
    let denied = [
        alice.transact(put("other/a", "2")).await.unwrap_err(),
        alice.get(path("other/a")).await.unwrap_err(),
        alice.propose(tyr_protocol::map::Change::Drain(NodeId(1))).await.unwrap_err(),
        alice.appoint(NodeId(1), false).await.unwrap_err(),
        alice.list("users/", None, 10).await.unwrap_err(),
    ];
    for error in denied {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
    assert_eq!(alice.list("", None, 10).await.unwrap().0.len(), 1);
    let mut watch = alice.watch("", revision);
    root.transact(put("other/a", "3")).await.unwrap();
    root.transact(put("mine/b", "3")).await.unwrap();
    let mut told = Vec::new();
    while told.is_empty() {
        told = watch.next().await.unwrap().0;
    }
    assert_eq!(told[0].path, path("mine/b"));
    let nobody = world.client_as(9, Sender::User(String::new()));
    let error = nobody.get(path("mine/a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("say who you are"), "{error}");
    assert!(!world.shared.network.is_cut(&address(0), &address(9)));
}
