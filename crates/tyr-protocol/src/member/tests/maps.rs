//! Who is sent a map, and how often.

use std::sync::Arc;

use tyr_types::{Epoch, KeptName, NodeId};

use super::stand::{CLIENT, Stand, map};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap};
use crate::member::{Effect, Event, Record};
use crate::message::{Address, Asked, Body, Envelope};
use crate::rule::Rule;

/// What follows when this is said by somebody whose map is of this epoch.
fn hear(stand: &mut Stand, from: Address, epoch: Epoch, body: Body) -> Vec<Effect> {
    stand.step(Event::Receive(Envelope { epoch, incarnation: 1, from, body }))
}

/// How often anybody is sent this.
fn sent(effects: &[Effect], is_it: impl Fn(&Body) -> bool) -> usize {
    let is_sent = |effect: &&Effect| match effect {
        Effect::Send { envelope, .. } => is_it(&envelope.body),
        _ => false,
    };
    effects.iter().filter(is_sent).count()
}

fn is_map(body: &Body) -> bool {
    matches!(body, Body::NewerMap(_))
}

/// A node with a lease, and a map by which another is gone.
fn served() -> (Stand, ClusterMap) {
    let newest = map(3).changed(&Change::Down(NodeId(2))).unwrap();
    let mut stand = Stand::new(0, &newest);
    stand.lease();
    (stand, newest)
}

#[test]
fn who_says_much_by_an_older_map_is_sent_the_newer_one_once_between_two_ticks() {
    let (mut stand, newest) = served();
    let older = Epoch(newest.epoch.0 - 1);
    let speakers = [Address::Client(CLIENT), Address::Client(8), Address::Node(NodeId(2))];
    let mut sent_to = |from: Address| {
        let effects: Vec<Effect> = (0..100)
            .flat_map(|read| hear(&mut stand, from, older, Body::CancelRead { read }))
            .collect();
        let again = hear(&mut stand, from, older, Body::SnapshotEnded { read: 1 });
        (sent(&effects, is_map), sent(&again, is_map))
    };
    assert_eq!(speakers.map(&mut sent_to), [(1, 0); 3]);
    stand.step(Event::Tick);
    let effects = hear(&mut stand, speakers[0], older, Body::CancelRead { read: 7 });
    assert_eq!(sent(&effects, is_map), 1, "it may not have come");
}

#[test]
fn a_node_that_has_the_map_is_not_sent_it_and_a_client_is_told_that_there_is_no_newer() {
    let (mut stand, newest) = served();
    let (node, client) = (Address::Node(NodeId(1)), Address::Client(CLIENT));
    let mut answers = |from, epoch| {
        let effects = hear(&mut stand, from, epoch, Body::FetchMap);
        sent(&effects, is_map)
    };
    let older = Epoch(newest.epoch.0 - 1);
    assert_eq!([answers(node, older), answers(node, newest.epoch)], [1, 0]);
    assert_eq!([answers(client, older), answers(client, newest.epoch)], [1, 1]);
}

/// M3: the monitors need not send the map again to hear it.
#[test]
fn a_node_says_again_that_it_has_prepared_until_there_is_a_newer_map() {
    let (mut stand, newest) = served();
    let planned = newest.changed(&Change::Drain(NodeId(1))).unwrap();
    stand.monitors_say(Body::Prepare(Arc::new(planned.clone())));
    let mut said = 0;
    for _ in 0..40 {
        stand.now_us += 50_000;
        let mut effects = stand.step(Event::Tick);
        let synced: Vec<u64> = effects.iter().filter_map(synced_number).collect();
        for number in synced {
            effects.extend(stand.step(Event::Persisted { number }));
        }
        let is_prepared =
            |body: &Body| matches!(body, Body::Prepared { epoch } if *epoch == planned.epoch);
        said += sent(&effects, is_prepared);
    }
    assert_eq!(said, 10, "every 200 ms of two seconds");
    stand.learn(&planned);
    stand.now_us += 500_000;
    let is_prepared = |body: &Body| matches!(body, Body::Prepared { .. });
    assert_eq!(sent(&stand.step(Event::Tick), is_prepared), 0);
}

/// M3, M4: it hears that it was declared down, and is back, before what it logged when it prepared
/// for a later map is durable.
#[test]
fn a_node_that_begins_anew_while_it_prepares_says_in_the_end_that_it_has() {
    let first = map(3);
    let (node, has_disk, level) = (NodeId(1), true, LEVEL);
    let mut stand = Stand::new(1, &first);
    let incarnation = stand.member.incarnation() + 1;
    let down = first.changed(&Change::Down(node)).unwrap();
    let back = down.changed(&Change::Return { node, incarnation, has_disk, level }).unwrap();
    let planned = back.changed(&Change::Drain(NodeId(2))).unwrap();
    stand.monitors_say(Body::Prepare(Arc::new(planned.clone())));
    stand.now_us += 1_000_000;
    let synced: Vec<u64> = stand.step(Event::Tick).iter().filter_map(synced_number).collect();
    assert_eq!(synced.len(), 1, "it has prepared, and that is on its way to the disk");
    stand.learn(&back);
    let mut said = 0;
    let mut numbers = synced;
    for _ in 0..40 {
        let mut effects = Vec::new();
        for number in std::mem::take(&mut numbers) {
            effects.extend(stand.step(Event::Persisted { number }));
        }
        stand.now_us += 50_000;
        effects.extend(stand.step(Event::Tick));
        numbers.extend(effects.iter().filter_map(synced_number));
        let is_prepared =
            |body: &Body| matches!(body, Body::Prepared { epoch } if *epoch == planned.epoch);
        said += sent(&effects, is_prepared);
    }
    assert!(said > 0, "{}", stand.member.brief());
}

fn synced_number(effect: &Effect) -> Option<u64> {
    match effect {
        Effect::Persist { number, is_synced: true, .. } => Some(*number),
        _ => None,
    }
}

/// Its program is older than what its cluster uses.
#[test]
fn a_node_that_can_make_nothing_of_the_map_seldom_asks_for_it() {
    let newest = ClusterMap { level: LEVEL + 1, ..map(3) };
    let mut stand = Stand::new(0, &newest);
    assert!(stand.member.outdated().is_some());
    let (from, body) = (Address::Node(NodeId(1)), Body::NotHere(Asked::Read(1)));
    hear(&mut stand, from, newest.epoch, body);
    let mut asked = 0;
    for _ in 0..200 {
        stand.now_us += 50_000;
        let effects = stand.step(Event::Tick);
        asked += sent(&effects, |body| matches!(body, Body::FetchMap));
    }
    assert!(asked <= 3, "{asked} in ten seconds");
}

/// V7.
#[test]
fn a_node_tells_its_store_what_is_kept_with_the_map_live_and_when_its_log_is_read_again() {
    let keep = Change::Keep { name: KeptName::new("monday").unwrap(), day_us: 7 };
    let first = map(3);
    let kept = first.changed(&keep).unwrap();
    let at = kept.kept_moments();
    for is_broken in [false, true] {
        let mut stand = Stand::new(0, &first);
        if is_broken {
            stand.member.break_rule(Rule::V7);
        }
        stand.lease();
        assert!(stand.member.clock() < at[0], "nothing above it was given yet");
        stand.learn(&kept);
        assert_eq!(stand.shelf.kept, if is_broken { vec![] } else { at.clone() });
        stand.lease();
        assert!(stand.member.clock() > at[0], "nothing below it is given any more");
    }
    let mut stand = Stand::new(0, &first);
    let record = Record::Map(Arc::new(kept.clone()));
    stand.member.replay(record, &mut stand.shelf);
    assert_eq!(stand.shelf.kept, at);
    stand.learn(&kept.changed(&Change::DropKept(KeptName::new("monday").unwrap())).unwrap());
    assert_eq!(stand.shelf.kept, []);
}
