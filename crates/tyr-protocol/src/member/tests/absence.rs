//! Nodes that come back: after a day, and without their disk (M4).

use std::sync::Arc;

use super::checkpoints::{NODE, a_log, at, attempt, back, first_map, read, transaction};
use super::shelf::Shelf;
use super::stand::Stand;
use crate::chain::Ends;
use crate::commit;
use crate::commit::OutcomeRetention;
use crate::level::LEVEL;
use crate::map::Change;
use crate::member::{Effect, Event, Member, MemberConfig, Record, Store, incarnation};
use crate::message::{Address, Body, Envelope};

const DAY_US: u64 = 86_400_000_000;

/// M4, F11: its log has transactions in flight that all others have ended and forgotten.
#[test]
fn what_a_node_had_in_flight_a_day_ago_does_nothing_when_it_is_back() {
    let (member, shelf) = read(&a_log(), Shelf::new(NODE), None);
    assert!(member.in_flight() >= 4, "{}", member.brief());
    assert_eq!(shelf.held(None, 10).len(), 1, "1 and 9 have written the same");
    let mut stand = Stand { member, shelf, now_us: DAY_US, asked: 0 };
    let old = first_map(3);
    let now = back(&old, stand.member.incarnation());
    stand.learn(&now);
    assert_eq!(stand.member.in_flight(), 0, "{}", stand.member.brief());
    assert!(stand.shelf.held(None, 10).is_empty(), "it copies all anew");
    let done_to_us = DAY_US - 60_000_000;
    stand.lease_with(OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN });
    assert!(stand.member.has_lease());
    // What the network held back since then is not taken in again either.
    for id in [2, 3, 4] {
        let transaction = transaction(id, u8::try_from(id).unwrap() % 4);
        let chain = old.chain(&transaction, &Ends::new()).unwrap();
        let (attempt, begun, usages) = (attempt(&old, 5), at(10 + id as u64), vec![]);
        let (highest, known) = (begun, None);
        let forward =
            commit::Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
        let (epoch, body) = (old.epoch, Body::Commit(forward));
        let from = Address::Node(tyr_types::NodeId(0));
        let incarnation = old.incarnation(tyr_types::NodeId(0)).unwrap();
        let late = Envelope { epoch, incarnation, from, body };
        let effects = stand.step(Event::Receive(late));
        assert!(!effects.iter().any(|it| matches!(it, Effect::Persist { .. })), "{effects:?}");
    }
    assert_eq!(stand.member.in_flight(), 0);
    assert!(stand.shelf.held(None, 10).is_empty());
}

/// M4: a node that lost its disk starts twice before anybody has taken it back.
#[test]
fn a_node_without_its_disk_does_not_take_the_seat_of_before_for_its_own_after_a_restart() {
    let (node, has_disk, level) = (NODE, true, LEVEL);
    let seated = Change::Return { node, incarnation: incarnation(9), has_disk, level };
    let map = first_map(3).changed(&seated).unwrap();
    let mut log: Vec<Record> = Vec::new();
    for start in 1..4 {
        let member = Member::new(NODE, incarnation(start), MemberConfig::default());
        let mut stand = Stand { member, shelf: Shelf::new(NODE), now_us: 1_000_000, asked: 0 };
        log.iter().for_each(|it| stand.member.replay(it.clone(), &mut stand.shelf));
        let body = Body::Effective(Arc::new(map.clone()));
        let (epoch, from) = (map.epoch, Address::Monitors);
        let mut effects =
            stand.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }));
        stand.now_us += 1_000_000;
        effects.extend(stand.step(Event::Tick));
        let mut said = Vec::new();
        for effect in effects {
            match effect {
                Effect::Persist { record, .. } => log.push(record),
                Effect::Send {
                    envelope: Envelope { body: Body::Return { has_disk, .. }, .. },
                    ..
                } => {
                    said.push(has_disk);
                }
                _ => {}
            }
        }
        assert!(!said.is_empty() && said.iter().all(|has_disk| !has_disk), "{start}: {said:?}");
    }
}
