//! Watches: who tells of them, and when it is to be looked what is there (K5).

use super::*;
use crate::key_watch::Message;
use crate::level::LEVEL_GUARDING;
use tyr_types::{Changes, Key, WatchTarget};

const SECOND_US: u64 = 1_000_000;

impl Client {
    /// What was said about watches since the last look; everything else sent is forgotten.
    fn said_of_watches(&mut self) -> Vec<(NodeId, Message)> {
        let of_watch = |(to, body)| match body {
            Body::KeyWatch(message) => Some((to, message)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_watch).collect()
    }

    fn told_of(&mut self, from: NodeId, message: Message) {
        self.receive(from, Body::KeyWatch(message));
    }

    /// A watch, and who was asked to tell of it.
    fn watch(&mut self, target: &WatchTarget) -> (u64, Vec<NodeId>) {
        self.call(Call::Watch { target: target.clone() });
        let Answer::Watching { watch } = self.answer() else { panic!("it is watched") };
        let asked = self.said_of_watches().into_iter().map(|(to, message)| {
            assert_eq!(message, Message::Ask { watch, target: target.clone() });
            to
        });
        (watch, asked.collect())
    }

    fn news(&mut self) -> Vec<WatchNews> {
        std::mem::take(&mut self.watched).into_iter().map(|(_, news)| news).collect()
    }
}

fn changes(key: &str) -> Changes {
    let mut changes = Changes::default();
    changes.add(Timestamp { clock: 7, ..Timestamp::ZERO }, &Key::new(key).unwrap());
    changes
}

fn of_key(key: &str) -> WatchTarget {
    WatchTarget::key(blob(key).keyspace, &blob(key).key)
}

#[test]
fn the_authority_of_a_key_is_asked_and_what_it_tells_is_heard_once() {
    let mut client = Client::new();
    let (watch, asked) = client.watch(&of_key("a"));
    let to = client.replicas("a", 0)[0];
    assert_eq!(asked, [to]);
    assert_eq!(client.news(), []);
    client.told_of(to, Message::Watching { watch });
    client.told_of(to, Message::Watching { watch });
    assert_eq!(client.news(), [WatchNews::Began]);
    for _ in 0..2 {
        client.told_of(to, Message::Changed { watch, told: 1, changes: changes("a") });
    }
    assert_eq!(client.news(), [WatchNews::Changed(changes("a"))]);
    let heard = (to, Message::Heard { watch, told: 1 });
    assert_eq!(client.said_of_watches(), [heard.clone(), heard]);
    client.pass(SECOND_US);
    assert_eq!(client.said_of_watches(), [(to, Message::Renew { watches: vec![(watch, 1)] })]);
    client.call(Call::EndWatch { watch });
    client.answer();
    assert_eq!(client.said_of_watches(), [(to, Message::End { watch })]);
    client.told_of(to, Message::Changed { watch, told: 2, changes: changes("a") });
    assert_eq!(client.said_of_watches(), [(to, Message::End { watch })], "it has not heard that");
    client.pass(5 * SECOND_US);
    assert_eq!(client.said_of_watches(), []);
}

/// K5: of keys in many groups all nodes tell, and it begins when all do.
#[test]
fn a_prefix_of_many_groups_is_watched_at_all_nodes() {
    let mut client = Client::new();
    let (watch, asked) = client.watch(&WatchTarget::prefix(blob("a").keyspace, b"").unwrap());
    assert_eq!(asked, client.session.map.live().collect::<Vec<_>>());
    for (place, node) in asked.iter().enumerate() {
        assert_eq!(client.news(), [], "{place} of them do");
        client.told_of(*node, Message::Watching { watch });
    }
    assert_eq!(client.news(), [WatchNews::Began]);
}

/// K5: what changed while a node did not know of the watch is not told.
#[test]
fn a_node_that_knows_nothing_of_a_watch_is_asked_anew_and_it_begins_anew() {
    let mut client = Client::new();
    let (watch, asked) = client.watch(&of_key("a"));
    client.told_of(asked[0], Message::Watching { watch });
    client.news();
    client.told_of(asked[0], Message::Renewed { unknown: vec![watch] });
    let target = of_key("a");
    assert_eq!(client.said_of_watches(), [(asked[0], Message::Ask { watch, target })]);
    client.told_of(asked[0], Message::Watching { watch });
    assert_eq!(client.news(), [WatchNews::Began]);
}

/// K5: who is silent may be the authority no more.
#[test]
fn a_node_that_is_silent_and_another_by_the_next_map_are_asked_anew() {
    let mut client = Client::new();
    let (watch, asked) = client.watch(&of_key("a"));
    client.told_of(asked[0], Message::Watching { watch });
    client.news();
    client.pass(5 * SECOND_US);
    let said = client.said_of_watches();
    let is_asked = |it: &&(NodeId, Message)| matches!(it.1, Message::Ask { .. });
    assert!(said.iter().any(|it| is_asked(&it)), "{said:?}");
    let map = client.session.map.changed(&crate::map::Change::Down(asked[0])).unwrap();
    client.receive(NodeId(9), Body::NewerMap(Arc::new(map)));
    let second = client.replicas("a", 0)[0];
    assert_ne!(second, asked[0]);
    let said = client.said_of_watches();
    let target = of_key("a");
    assert!(said.contains(&(second, Message::Ask { watch, target })), "{said:?}");
    client.told_of(asked[0], Message::Watching { watch });
    assert_eq!(client.news(), [], "that one tells no more");
    client.told_of(second, Message::Watching { watch });
    assert_eq!(client.news(), [WatchNews::Began]);
}

#[test]
fn a_watch_that_is_refused_ends_and_in_an_older_cluster_there_is_none() {
    let mut client = Client::new();
    let (watch, asked) = client.watch(&of_key("a"));
    let abort = Abort::new(ErrorKind::PermissionDenied, "you may not read it");
    client.receive(asked[0], Body::Refused { read: watch, abort: abort.clone() });
    assert_eq!(client.news(), [WatchNews::Ended(abort)]);
    client.pass(5 * SECOND_US);
    let older = later(&map(), 1).speaking(LEVEL_GUARDING);
    client.receive(NodeId(1), Body::NewerMap(Arc::new(older)));
    client.call(Call::Watch { target: of_key("a") });
    let Answer::Failed(abort) = client.answer() else { panic!("not all nodes have that") };
    assert!(abort.reason.contains("feature level 14"), "{}", abort.reason);
}
