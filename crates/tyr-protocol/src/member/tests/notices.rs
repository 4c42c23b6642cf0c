//! Notices at a node: whom they reach, and when (K6).

use tyr_types::{BlobName, Bytes, Key, KeyspaceId, NodeId, NoticeId, WatchTarget};

use super::stand::{Stand, map};
use crate::key_watch::Message;
use crate::level::LEVEL_WATCHING;
use crate::map::{Change, ClusterMap};
use crate::member::{Effect, Event};
use crate::message::{Address, Body, Envelope};
use crate::rule::Rule;

/// The client that sends notices.
const SENDER: u64 = 9;

/// A key that this node is the authority of by this map.
fn key_of(map: &ClusterMap, node: u16) -> BlobName {
    let name = |number: u32| BlobName {
        keyspace: KeyspaceId(1),
        key: Key::new(number.to_be_bytes()).unwrap(),
    };
    (0..).map(name).find(|blob| map.holders(blob, 0)[0] == NodeId(node)).unwrap()
}

impl Stand {
    /// A client says this; what is told to whom, in short.
    fn hear_of_watch(&mut self, client: u64, message: Message) -> String {
        let (from, body) = (Address::Client(client), Body::KeyWatch(message));
        let epoch = self.member.map().unwrap().epoch;
        let envelope = Envelope { epoch, incarnation: 0, from, body };
        brief(&self.step(Event::Receive(envelope)))
    }

    fn watch(&mut self, client: u64, blob: &BlobName) -> String {
        let target = WatchTarget::key(blob.keyspace, &blob.key);
        self.hear_of_watch(client, Message::Ask { watch: 7, target })
    }

    fn watch_all(&mut self, client: u64) -> String {
        let target = WatchTarget::prefix(KeyspaceId(1), b"").unwrap();
        self.hear_of_watch(client, Message::Ask { watch: 7, target })
    }

    fn notify(&mut self, number: u64, blob: &BlobName) -> String {
        let (blob, payload) = (blob.clone(), Bytes::from_static(b"word"));
        let message = Message::Notify { number, blob, payload, timeout_us: 10_000_000 };
        self.hear_of_watch(SENDER, message)
    }

    fn acknowledge(&mut self, client: u64, number: u64) -> String {
        let id = NoticeId { client: SENDER, number };
        let reply = Bytes::from_static(b"done");
        self.hear_of_watch(client, Message::Acknowledge { watch: 7, id, reply })
    }

    /// A second passes under a lease; what is told then.
    fn pass_with_lease(&mut self) -> String {
        self.lease();
        brief(&self.step(Event::Tick))
    }
}

fn brief(effects: &[Effect]) -> String {
    let brief = |effect: &Effect| {
        let Effect::Send { to: Address::Client(client), envelope } = effect else { return None };
        let what = match &envelope.body {
            Body::KeyWatch(Message::Watching { .. }) => "watches".to_owned(),
            Body::KeyWatch(Message::Notice { .. }) => "notice".to_owned(),
            Body::KeyWatch(Message::Notified { notified, .. }) => {
                let (acknowledged, missed) = (&notified.acknowledged, &notified.missed);
                format!("{} of {}", acknowledged.len(), acknowledged.len() + missed.len())
            }
            Body::NotHere(_) => "not here".to_owned(),
            Body::Refused { abort, .. } => abort.kind.name().to_owned(),
            _ => return None,
        };
        Some(format!("{client} {what}"))
    };
    effects.iter().filter_map(brief).collect::<Vec<_>>().join(", ")
}

/// K6, M3.
#[test]
fn a_notice_reaches_who_watches_the_key_or_what_it_begins_with() {
    let map = map(5);
    let (own, others) = (key_of(&map, 0), key_of(&map, 1));
    let mut stand = Stand::new(0, &map);
    assert_eq!(stand.notify(1, &own), "9 not here", "it has no lease");
    stand.lease();
    assert_eq!(stand.notify(1, &others), "9 not here");
    assert_eq!(stand.notify(1, &own), "9 0 of 0", "nobody watches");
    stand.watch(1, &own);
    stand.watch_all(2);
    assert_eq!(stand.notify(2, &own), "1 notice, 2 notice");
    assert_eq!(stand.acknowledge(1, 2), "");
    assert_eq!(stand.acknowledge(2, 2), "9 2 of 2");
    assert_eq!(stand.notify(3, &own), "1 notice, 2 notice");
    assert_eq!(stand.hear_of_watch(1, Message::End { watch: 7 }), "");
    assert_eq!(stand.acknowledge(2, 3), "9 1 of 2", "who watches no more is not waited for");
}

/// K6: those who watch register with a new authority within seconds, and notices wait.
#[test]
fn a_new_authority_passes_on_no_notice_before_all_who_watch_may_have_registered() {
    let first = map(5);
    let key = key_of(&first, 0);
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    let NodeId(heir) = second.holders(&key, 0)[0];
    let taken_over = |rule: Option<Rule>| {
        let mut stand = Stand::new(heir, &first);
        rule.into_iter().for_each(|rule| stand.member.break_rule(rule));
        stand.lease();
        stand.learn(&second);
        stand.lease();
        let own = key_of(&first, heir);
        assert_eq!(stand.notify(1, &own), "9 0 of 0", "it was its own all along");
        stand
    };
    let mut stand = taken_over(None);
    for _ in 0..10 {
        assert_eq!(stand.notify(2, &key), "");
        stand.pass_with_lease();
    }
    stand.watch(1, &key);
    stand.pass_with_lease();
    assert_eq!(stand.notify(2, &key), "1 notice");
    let mut broken = taken_over(Some(Rule::K6));
    assert_eq!(broken.notify(2, &key), "9 0 of 0", "though somebody may watch");
}

/// K6: the time is over also for who is gone, and what is another's is answered there.
#[test]
fn a_notice_is_answered_in_time_and_by_the_authority_alone() {
    let first = map(5);
    let key = key_of(&first, 0);
    let mut stand = Stand::new(0, &first);
    stand.lease();
    stand.watch(1, &key);
    assert_eq!(stand.notify(1, &key), "1 notice");
    let told: Vec<String> = (0..6)
        .map(|_| {
            let from_lease = {
                stand.now_us += 900_000;
                brief(&stand.step(Event::Tick))
            };
            format!("{from_lease}{}", stand.pass_with_lease())
        })
        .collect();
    assert!(told.join(" ").contains("1 notice"), "it is repeated: {told:?}");
    stand.lease();
    assert_eq!(stand.notify(1, &key), "9 0 of 1", "asked again it is told again");
    let mut stand = Stand::new(0, &first);
    stand.lease();
    stand.watch(1, &key);
    assert_eq!(stand.notify(1, &key), "1 notice");
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    stand.learn(&second);
    stand.lease();
    assert_eq!(stand.acknowledge(1, 1), "", "another is the authority by now");
    assert_eq!(stand.notify(1, &key), "9 not here");
}

#[test]
fn a_cluster_of_before_has_no_notices_and_what_is_out_of_bounds_is_refused() {
    let map = map(3);
    let key = key_of(&map, 0);
    let mut stand = Stand::new(0, &map.clone().speaking(LEVEL_WATCHING));
    stand.lease();
    assert_eq!(stand.notify(1, &key), "9 Unavailable");
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let payload = Bytes::from(vec![0; 65_537]);
    let message = Message::Notify { number: 1, blob: key.clone(), payload, timeout_us: 1_000_000 };
    assert_eq!(stand.hear_of_watch(SENDER, message), "9 InvalidArgument");
    let dropped = map.changed(&Change::DropKeyspace(KeyspaceId(1)));
    stand.learn(&dropped.unwrap());
    stand.lease();
    assert_eq!(stand.notify(1, &key), "9 NotFound");
}
