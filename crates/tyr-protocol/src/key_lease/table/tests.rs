//! The table by itself: who gets a lease, and when it is over (K1, K3).

use tyr_types::{Key, KeyspaceId};

use super::*;

const SECOND_US: u64 = 1_000_000;
const DURATION_US: u64 = 10 * SECOND_US;

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn key(key: &str) -> Leased {
    Leased::Key(blob(key))
}

/// A table, and what it has said since it was last asked.
#[derive(Default)]
struct Desk {
    table: Table,
    said: Vec<(u64, Message)>,
    now_us: u64,
}

impl Desk {
    fn ask(&mut self, client: u64, mode: LeaseMode, wish: Wish) -> Result<(), Abort> {
        self.ask_at(client, mode, wish, true)
    }

    fn ask_at(
        &mut self,
        client: u64,
        mode: LeaseMode,
        wish: Wish,
        is_open: bool,
    ) -> Result<(), Abort> {
        let (of, duration_us, sent_us) = (key("a"), DURATION_US, self.now_us);
        let ask = Ask { client, lease: 7, of, mode, duration_us, sent_us, wish };
        let answer = self.table.ask(self.now_us, ask, is_open, &mut self.said);
        self.table.invariants();
        answer
    }

    fn give_back(&mut self, client: u64) {
        self.table.give_back(self.now_us, (client, 7), |_| true, &mut self.said);
        self.table.invariants();
    }

    fn renew(&mut self, client: u64) -> bool {
        self.table.renew(self.now_us, (client, self.now_us), &[7], |_| true, &mut self.said);
        let last = self.said.pop().unwrap();
        matches!(last, (_, Message::Renewed { held, .. }) if held == [7])
    }

    fn pass(&mut self, us: u64) {
        self.now_us += us;
        self.table.tick(self.now_us, |_| true, &mut self.said);
        self.table.invariants();
    }

    /// Who was granted a lease, and who was recalled, since this was last asked.
    fn heard(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut granted, mut recalled) = (Vec::new(), Vec::new());
        for (client, message) in self.said.drain(..) {
            match message {
                Message::Granted { lease: 7, .. } => granted.push(client),
                Message::Recall { lease: 7 } => recalled.push(client),
                Message::Waits { .. } | Message::Renewed { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        (granted, recalled)
    }
}

use LeaseMode::{Exclusive, Shared};

/// K1.
#[test]
fn an_exclusive_lease_is_held_by_one_and_the_next_gets_it_when_it_is_given_back() {
    let mut desk = Desk::default();
    desk.ask(1, Exclusive, Wish::Wait).unwrap();
    assert_eq!(desk.heard(), (vec![1], vec![]));
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    assert_eq!(desk.heard(), (vec![], vec![1]));
    let refused = desk.ask(3, Shared, Wish::Try).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    desk.give_back(1);
    assert_eq!(desk.heard(), (vec![2], vec![]));
}

#[test]
fn shared_leases_stand_beside_each_other_and_behind_who_waits_for_all_of_them() {
    let mut desk = Desk::default();
    desk.ask(1, Shared, Wish::Wait).unwrap();
    desk.ask(2, Shared, Wish::Wait).unwrap();
    desk.ask(3, Exclusive, Wish::Wait).unwrap();
    desk.ask(4, Shared, Wish::Wait).unwrap();
    desk.ask(5, Shared, Wish::Wait).unwrap();
    assert_eq!(desk.heard(), (vec![1, 2], vec![1, 2]));
    desk.give_back(1);
    assert_eq!(desk.heard(), (vec![], vec![]));
    desk.give_back(2);
    assert_eq!(desk.heard(), (vec![3], vec![]));
    desk.pass(SECOND_US);
    assert_eq!(desk.heard(), (vec![], vec![3]), "those behind it wait");
    desk.give_back(3);
    assert_eq!(desk.heard(), (vec![4, 5], vec![]));
}

/// K1: the authority counts a tenth longer than the holder.
#[test]
fn a_lease_is_over_when_it_was_not_renewed_for_its_duration_and_a_tenth() {
    let mut desk = Desk::default();
    desk.ask(1, Exclusive, Wish::Wait).unwrap();
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    for _ in 0..7 {
        desk.pass(4 * SECOND_US);
        assert!(desk.renew(1));
        desk.ask(2, Exclusive, Wish::Wait).unwrap();
    }
    desk.heard();
    for _ in 0..3 {
        desk.pass(3 * SECOND_US + SECOND_US / 2);
        desk.ask(2, Exclusive, Wish::Wait).unwrap();
    }
    assert_eq!(desk.heard().0, vec![], "10.5 s after the last renewal");
    desk.pass(SECOND_US / 2);
    assert_eq!(desk.heard().0, vec![2]);
    assert!(!desk.renew(1), "it holds nothing any more");
}

#[test]
fn who_waits_and_is_not_heard_of_waits_no_more() {
    let mut desk = Desk::default();
    desk.ask(1, Exclusive, Wish::Wait).unwrap();
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    desk.pass(SILENT_US - 1);
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    desk.pass(SILENT_US - 1);
    assert_eq!(desk.table.waiting(), 1);
    desk.pass(1);
    assert_eq!(desk.table.waiting(), 0);
}

#[test]
fn the_same_question_again_gets_the_same_answer() {
    let mut desk = Desk::default();
    for _ in 0..3 {
        desk.ask(1, Exclusive, Wish::Try).unwrap();
    }
    assert_eq!(desk.heard().0, vec![1, 1, 1]);
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    assert_eq!((desk.table.held(), desk.table.waiting()), (1, 1));
    desk.give_back(2);
    desk.give_back(2);
    assert_eq!((desk.table.held(), desk.table.waiting()), (1, 0));
}

/// K3.
#[test]
fn where_nothing_may_be_given_yet_those_who_held_something_hold_it_on() {
    let mut desk = Desk::default();
    desk.ask_at(1, Exclusive, Wish::Wait, false).unwrap();
    assert!(desk.ask_at(2, Exclusive, Wish::Try, false).is_err());
    assert_eq!(desk.heard(), (vec![], vec![]));
    desk.ask_at(3, Shared, Wish::Keep, false).unwrap();
    assert!(desk.ask_at(4, Exclusive, Wish::Keep, false).is_err(), "one of the two is wrong");
    assert_eq!(desk.heard().0, vec![3]);
    desk.pass(SECOND_US);
    assert_eq!(desk.heard(), (vec![], vec![3]), "it is open, and the first in line waits for one");
    desk.give_back(3);
    assert_eq!(desk.heard().0, vec![1]);
    desk.give_back(1);
    let late = desk.ask_at(5, Exclusive, Wish::Keep, true).unwrap_err();
    assert_eq!(late.kind, ErrorKind::Conflict);
}

#[test]
fn what_is_another_nodes_affair_is_forgotten() {
    let mut desk = Desk::default();
    desk.ask(1, Exclusive, Wish::Wait).unwrap();
    desk.ask(2, Exclusive, Wish::Wait).unwrap();
    desk.table.retain(|of| *of != key("a"));
    desk.table.invariants();
    assert_eq!((desk.table.held(), desk.table.waiting()), (0, 0));
    assert!(!desk.renew(1));
}

#[test]
fn ten_thousand_leases_whose_holders_die_at_once_go_to_those_who_wait() {
    let mut desk = Desk::default();
    for number in 0..10_000_u64 {
        for client in [1, 2] {
            let of = key(&number.to_string());
            let (lease, mode, wish) = (number, Exclusive, Wish::Wait);
            let (duration_us, sent_us) = (DURATION_US, 0);
            let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
            desk.table.ask(number, ask, true, &mut desk.said).unwrap();
        }
    }
    let leases: Vec<u64> = (0..10_000).collect();
    desk.said.clear();
    for second in 1..=12 {
        let now_us = second * SECOND_US;
        for lease in &leases {
            let (of, mode, wish) = (key(&lease.to_string()), Exclusive, Wish::Wait);
            let (client, lease, sent_us) = (2, *lease, now_us);
            let ask = Ask { client, lease, of, mode, duration_us: DURATION_US, sent_us, wish };
            desk.table.ask(now_us, ask, true, &mut desk.said).unwrap();
        }
        desk.table.tick(now_us, |_| true, &mut desk.said);
    }
    desk.table.invariants();
    assert_eq!((desk.table.held(), desk.table.waiting()), (10_000, 0));
    desk.table.renew(12 * SECOND_US, (2, 0), &leases, |_| true, &mut desk.said);
    let Some((2, Message::Renewed { held, unknown, .. })) = desk.said.pop() else { panic!() };
    assert_eq!((held.len(), unknown.len()), (10_000, 0));
}
