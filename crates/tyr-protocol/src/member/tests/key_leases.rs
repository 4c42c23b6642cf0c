//! Leases of keys at a node: which it gives, and when (K1, K3).

use std::sync::Arc;

use tyr_types::{BlobName, Key, KeyspaceId, LeaseMode, NodeId};

use super::shelf::Shelf;
use super::stand::{CLIENT, Stand, map};
use crate::key_lease::{Message, Wish};
use crate::level::LEVEL_MOMENTS;
use crate::map::{Change, ClusterMap};
use crate::member::key_leasing::grace_us;
use crate::member::{Effect, Event, Member, MemberConfig, Record};
use crate::message::{Address, Body, Envelope};
use crate::rule::Rule;

const DURATION_US: u64 = 10_000_000;
const GRACE_US: u64 = grace_us(false);

/// A key that this node is the authority of by this map.
fn key_of(map: &ClusterMap, node: u16) -> BlobName {
    let name = |number: u32| BlobName {
        keyspace: KeyspaceId(1),
        key: Key::new(number.to_be_bytes()).unwrap(),
    };
    (0..).map(name).find(|blob| map.holders(blob, 0)[0] == NodeId(node)).unwrap()
}

impl Stand {
    /// A client says this; what it is told, in short.
    fn hear(&mut self, client: u64, message: Message) -> String {
        let (from, body) = (Address::Client(client), Body::KeyLease(message));
        let epoch = self.member.map().unwrap().epoch;
        let envelope = Envelope { epoch, incarnation: 0, from, body };
        let effects = self.step(Event::Receive(envelope));
        brief(&effects)
    }

    fn ask(&mut self, client: u64, blob: &BlobName, wish: Wish) -> String {
        let (lease, mode, duration_us) = (9, LeaseMode::Exclusive, DURATION_US);
        let (blob, sent_us) = (blob.clone(), 5);
        self.hear(client, Message::Ask { lease, blob, mode, duration_us, sent_us, wish })
    }

    fn renew(&mut self, client: u64) -> String {
        self.hear(client, Message::Renew { sent_us: 6, leases: vec![9] })
    }

    /// So many seconds pass, under a lease of its own.
    fn pass(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.lease());
    }
}

fn brief(effects: &[Effect]) -> String {
    let brief = |effect: &Effect| {
        let Effect::Send { to: Address::Client(client), envelope } = effect else { return None };
        let what = match &envelope.body {
            Body::KeyLease(Message::Granted { .. }) => "granted",
            Body::KeyLease(Message::Waits { .. }) => "waits",
            Body::KeyLease(Message::Recall { .. }) => "recall",
            Body::KeyLease(Message::Renewed { held, unknown, .. }) => {
                match (held.len(), unknown.len()) {
                    (1, 0) => "held",
                    (0, 1) => "unknown",
                    _ => "nothing of it",
                }
            }
            Body::NotHere(_) => "not here",
            Body::Refused { abort, .. } => abort.kind.name(),
            _ => return None,
        };
        Some(format!("{client} {what}"))
    };
    effects.iter().filter_map(brief).collect::<Vec<_>>().join(", ")
}

/// M3.
#[test]
fn a_node_gives_leases_of_its_own_keys_under_a_lease_of_its_own() {
    let map = map(5);
    let (own, others) = (key_of(&map, 0), key_of(&map, 1));
    let mut stand = Stand::new(0, &map);
    assert_eq!(stand.ask(1, &own, Wish::Try), "1 not here");
    stand.lease();
    assert_eq!(stand.ask(1, &others, Wish::Try), "1 not here");
    assert_eq!(stand.ask(1, &own, Wish::Try), "1 granted");
    assert_eq!(stand.ask(2, &own, Wish::Try), "2 Conflict");
    assert_eq!(stand.ask(2, &own, Wish::Wait), "2 waits, 1 recall");
    assert_eq!(stand.renew(1), "1 held");
    assert_eq!(stand.member.key_leases(), (1, 1));
    stand.now_us += 3_000_000;
    assert_eq!(stand.renew(1), "", "its own is over");
    assert_eq!(stand.hear(1, Message::GiveBack { lease: 9 }), "");
    stand.lease();
    assert_eq!(brief(&stand.step(Event::Tick)), "2 granted");
}

/// K3.
#[test]
fn a_new_authority_gives_none_before_what_its_predecessor_gave_is_over() {
    let first = map(5);
    let key = key_of(&first, 0);
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    let NodeId(heir) = second.holders(&key, 0)[0];
    let taken_over = |rule: Option<Rule>| {
        let mut stand = Stand::new(heir, &first);
        rule.into_iter().for_each(|rule| stand.member.break_rule(rule));
        stand.lease();
        let own = key_of(&first, heir);
        stand.learn(&second);
        stand.lease();
        assert_eq!(stand.ask(1, &own, Wish::Try), "1 granted", "it was its own all along");
        stand
    };
    let mut stand = taken_over(None);
    assert_eq!(stand.ask(2, &key, Wish::Try), "2 Conflict");
    assert_eq!(stand.ask(3, &key, Wish::Keep), "3 granted", "that one has it yet");
    assert_eq!(stand.ask(4, &key, Wish::Keep), "4 Conflict");
    let mut stand = taken_over(None);
    assert_eq!(stand.ask(2, &key, Wish::Wait), "2 waits");
    for _ in 1..GRACE_US / 1_000_000 {
        stand.pass(1);
        assert_eq!(stand.ask(2, &key, Wish::Wait), "2 waits");
    }
    stand.pass(1);
    assert_eq!(stand.ask(2, &key, Wish::Wait), "2 granted");
    assert_eq!(stand.ask(3, &key, Wish::Keep), "3 Conflict", "that comes too late");
    let mut stand = taken_over(Some(Rule::K3));
    assert_eq!(stand.ask(2, &key, Wish::Try), "2 granted", "though another may hold it");
}

/// K3: the next authority may give leases as soon as this node has said that it has prepared.
#[test]
fn what_a_planned_map_gives_to_another_is_neither_given_nor_renewed() {
    let first = map(5);
    let (key, own) = (key_of(&first, 0), key_of(&first, 0));
    let mut stand = Stand::new(0, &first);
    stand.lease();
    assert_eq!(stand.ask(1, &key, Wish::Try), "1 granted");
    let planned = first.changed(&Change::Drain(NodeId(0))).unwrap();
    assert_eq!(planned.holders(&own, 0)[0], NodeId(0), "others have not caught up");
    let recipients = planned.recipients_of_any();
    let planned = planned.changed(&Change::Settle(recipients)).unwrap();
    assert_ne!(planned.holders(&key, 0).first(), Some(&NodeId(0)));
    stand.monitors_say(Body::Prepare(Arc::new(planned)));
    assert_eq!(stand.ask(2, &key, Wish::Try), "2 not here");
    assert_eq!(stand.renew(1), "1 nothing of it");
    assert_eq!(stand.hear(1, Message::GiveBack { lease: 9 }), "");
}

/// K3: what the process before gave is not known to the next one, though the map goes on.
#[test]
fn who_has_started_again_takes_its_own_keys_for_anothers() {
    let map = map(3);
    let key = key_of(&map, 0);
    let mut stand = Stand::new(0, &map);
    let (member, mut shelf) =
        (Member::new(NodeId(0), 1, MemberConfig::default()), Shelf::new(NodeId(0)));
    stand.member = member;
    stand.member.replay(Record::Map(Arc::new(map.clone())), &mut shelf);
    let (node, has_disk, level) = (NodeId(0), true, crate::level::LEVEL);
    let incarnation = stand.member.incarnation();
    let back = Change::Return { node, incarnation, has_disk, level };
    stand.learn(&map.changed(&back).unwrap());
    stand.lease();
    assert_eq!(stand.ask(1, &key, Wish::Try), "1 Conflict");
    stand.pass(GRACE_US / 1_000_000 + 1);
    assert_eq!(stand.ask(1, &key, Wish::Try), "1 granted");
}

#[test]
fn who_was_away_takes_its_own_keys_for_anothers() {
    let map = map(3);
    let key = key_of(&map, 0);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    assert_eq!(stand.ask(CLIENT, &key, Wish::Try), "7 granted");
    let down = map.changed(&Change::Down(NodeId(0))).unwrap();
    stand.learn(&down);
    let (node, has_disk, level) = (NodeId(0), true, crate::level::LEVEL);
    let incarnation = stand.member.incarnation();
    let back = Change::Return { node, incarnation, has_disk, level };
    let back = down.changed(&back).unwrap();
    stand.learn(&back);
    let up = back.changed(&Change::Settle([NodeId(0)].into())).unwrap();
    stand.learn(&up);
    stand.lease();
    assert_eq!(up.holders(&key, 0)[0], NodeId(0));
    assert_eq!(stand.renew(CLIENT), "7 unknown");
    assert_eq!(stand.ask(1, &key, Wish::Try), "1 Conflict");
}

#[test]
fn in_a_keyspace_that_is_none_or_an_older_cluster_there_are_no_leases() {
    let map = map(3);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let mut key = key_of(&map, 0);
    key.keyspace = KeyspaceId(77);
    assert_eq!(stand.ask(1, &key, Wish::Try), "1 NotFound");
    let older = ClusterMap { epoch: tyr_types::Epoch(2), ..map.clone().speaking(LEVEL_MOMENTS) };
    stand.learn(&older);
    stand.lease();
    assert_eq!(stand.ask(1, &key_of(&map, 0), Wish::Try), "1 Unavailable");
}
