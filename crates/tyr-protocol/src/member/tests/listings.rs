//! Listings at a node: who is answered, and for which moments (Q1).

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::{ByteRange, Bytes, Epoch, KeyspaceId, NodeId, Scan, ScanPage, Timestamp};

use super::stand::{CLIENT, Stand, map};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap};
use crate::member::{Effect, Event};
use crate::message::{Address, Body, Envelope, ListForm, ListRequest, ScanRequest};
use crate::rule::Rule;

fn at(epoch: Epoch, clock: u64) -> Option<Timestamp> {
    Some(Timestamp { epoch, clock, node: 0 })
}

impl Stand {
    /// A client that goes by a map of this epoch says so.
    fn asked(&mut self, epoch: Epoch, body: Body) -> Vec<Effect> {
        let from = Address::Client(CLIENT);
        self.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }))
    }

    /// What the client of a scan is answered, or what is listed for it.
    fn scan(&mut self, map: &ClusterMap, scan: &Scan) -> Vec<Effect> {
        self.asked += 1;
        let at = at(map.epoch, 1);
        let request = Arc::new(ScanRequest::new(self.asked, KeyspaceId(1), scan, at));
        self.asked(map.epoch, Body::Scan(request))
    }

    /// Lists for a client that goes by a map of this epoch; what it came to, in short.
    fn list(&mut self, epoch: Epoch, at: Option<Timestamp>) -> String {
        self.asked += 1;
        let (keyspace, prefix) = (KeyspaceId(1), Bytes::new());
        let (number, limit) = (self.asked, 10);
        let request = ListRequest { number, keyspace, prefix, after: None, limit, at };
        let effects = self.asked(epoch, Body::ListKeys(request));
        let brief = |effect: &Effect| match effect {
            Effect::List { map, .. } => Some(format!("lists by {}", map.epoch.0)),
            Effect::Send { to: Address::Client(_), envelope } => match &envelope.body {
                Body::NotHere(_) => Some("not here".to_owned()),
                Body::Keys { keys, is_end: true, .. } if keys.is_empty() => {
                    Some("nothing".to_owned())
                }
                Body::Refused { abort, .. } => Some(abort.kind.name().to_owned()),
                _ => None,
            },
            _ => None,
        };
        effects.iter().filter_map(brief).collect::<Vec<_>>().join(", ")
    }
}

/// M3.
#[test]
fn nobody_lists_without_a_lease_or_by_another_placement_than_the_askers() {
    let first = map(4);
    let mut stand = Stand::new(0, &first);
    assert_eq!(stand.list(first.epoch, None), "not here");
    stand.lease();
    assert_eq!(stand.list(first.epoch, None), "lists by 1");
    let second = first.changed(&Change::Down(NodeId(3))).unwrap();
    stand.monitors_say(Body::Prepare(Arc::new(second.clone())));
    assert_eq!(stand.list(first.epoch, None), "not here", "others may list by the next already");
    stand.learn(&second);
    stand.lease();
    assert_eq!(stand.list(first.epoch, None), "not here");
    assert_eq!(stand.list(second.epoch, None), "lists by 2");
    assert_eq!(stand.list(second.epoch, at(Epoch(1), 5)), "lists by 2", "it held it all along");
    stand.now_us += 3_000_000;
    assert_eq!(stand.list(second.epoch, None), "not here", "its lease is over");
}

#[test]
fn a_moment_ahead_of_all_clocks_and_a_keyspace_that_is_none_are_not_listed() {
    let map = map(3);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    assert_eq!(stand.list(map.epoch, at(Epoch(2), 5)), "not here");
    let none = map.changed(&Change::DropKeyspace(KeyspaceId(1))).unwrap();
    let none = none.changed(&Change::ForgetKeyspace(KeyspaceId(1))).unwrap();
    stand.learn(&none);
    assert_eq!(stand.list(none.epoch, at(map.epoch, 5)), "NotFound");
}

/// A node that starts when others serve already may first hear of a map in which keyspaces only
/// are new.
#[test]
fn who_starts_late_lists_moments_since_the_last_change_of_nodes() {
    let first = map(3);
    let second = ClusterMap { epoch: Epoch(first.epoch.0 + 1), ..first.clone() };
    let mut stand = Stand::new(0, &second);
    stand.lease();
    assert_eq!(stand.list(second.epoch, at(first.epoch, 900)), "lists by 2");
}

#[test]
fn who_was_away_lists_no_moment_before_it_was_back() {
    let first = map(3);
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    let back = Change::Return { node: NodeId(0), incarnation: 2, has_disk: true, level: LEVEL };
    let third = second.changed(&back).unwrap();
    let fourth = third.changed(&Change::Settle(BTreeSet::from([NodeId(0)]))).unwrap();
    let (mut stayed, mut returned) = (Stand::new(1, &first), Stand::new(0, &third));
    for map in [&second, &third] {
        stayed.learn(map);
    }
    stayed.lease();
    returned.lease();
    let before = at(first.epoch, 900);
    assert_eq!(stayed.list(third.epoch, before), "lists by 3", "it held it all along");
    assert_eq!(returned.list(third.epoch, before), "nothing", "others are the authority");
    for stand in [&mut stayed, &mut returned] {
        stand.learn(&fourth);
        stand.lease();
    }
    assert_eq!(returned.list(fourth.epoch, before), "SnapshotTooOld");
    assert_eq!(returned.list(fourth.epoch, at(third.epoch, 900)), "SnapshotTooOld");
    assert_eq!(returned.list(fourth.epoch, at(fourth.epoch, 1)), "lists by 4");
    assert_eq!(stayed.list(fourth.epoch, before), "nothing");
}

/// Q2.
#[test]
fn a_scan_is_answered_as_a_page_and_its_bytes_are_of_its_moment() {
    let map = map(3);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let effects = stand.scan(&map, &Scan::new().first_bytes(8));
    let is_listed = |effect: &Effect| match effect {
        Effect::List { request, form, bytes_at, .. } => {
            *form == ListForm::Page && *bytes_at == request.at
        }
        _ => false,
    };
    assert!(effects.iter().any(is_listed), "{effects:?}");
    let effects = stand.scan(&map, &Scan::new().prefix("b").from("c"));
    let is_nothing = |effect: &Effect| match effect {
        Effect::Send { envelope, .. } => {
            matches!(&envelope.body, Body::Scanned { page, .. } if *page == ScanPage::default())
        }
        _ => false,
    };
    assert!(effects.iter().any(is_nothing), "no key is both: {effects:?}");
    let beyond = Scan::new().range(ByteRange { start: 1 << 30, end: (1 << 30) + 1 });
    let effects = stand.scan(&map, &beyond);
    let is_refused = |effect: &Effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.body {
            Body::Refused { abort, .. } => abort.reason.contains("first chunk"),
            _ => false,
        },
        _ => false,
    };
    assert!(effects.iter().any(is_refused), "{effects:?}");
}

#[test]
fn without_q2_first_bytes_are_read_at_another_moment() {
    let map = map(3);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    stand.member.break_rule(Rule::Q2);
    let effects = stand.scan(&map, &Scan::new().first_bytes(8));
    let is_broken = |effect: &Effect| match effect {
        Effect::List { request, bytes_at, .. } => *bytes_at != request.at,
        _ => false,
    };
    assert!(effects.iter().any(is_broken), "{effects:?}");
}
