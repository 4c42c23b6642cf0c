//! Leases of groups beside those of their keys (K7).

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{BlobName, Key, KeyRange, KeyspaceId, LeaseMode, Leased, PlacedBy};

use crate::key_lease::{Ask, Message, Table, Wish};

use LeaseMode::{Exclusive, Shared};

const SECOND_US: u64 = 1_000_000;
const SPACE: KeyspaceId = KeyspaceId(1);

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: SPACE, key: Key::new(key).unwrap() }
}

/// Of a group where it ends with a slash.
fn of(name: &str) -> Leased {
    match name.ends_with('/') {
        true => Leased::Group(blob(name)),
        false => Leased::Key(blob(name)),
    }
}

/// A table of a keyspace whose groups end with a slash; each client has one lease.
struct Desk {
    table: Table,
    said: Vec<(u64, Message)>,
    now_us: u64,
}

impl Desk {
    fn new() -> Self {
        let mut table = Table::default();
        table.place(SPACE, PlacedBy::UpTo(b'/'));
        Self { table, said: Vec::new(), now_us: 0 }
    }

    fn try_ask(&mut self, client: u64, name: &str, mode: LeaseMode, wish: Wish) -> String {
        let (duration_us, sent_us) = (10 * SECOND_US, self.now_us);
        let ask = Ask { client, lease: 7, of: of(name), mode, duration_us, sent_us, wish };
        let answer = self.table.ask(self.now_us, ask, wish != Wish::Keep, &mut self.said);
        if let Err(abort) = answer {
            return abort.kind.name().to_owned();
        }
        self.heard()
    }

    fn ask(&mut self, client: u64, name: &str, mode: LeaseMode) -> String {
        self.try_ask(client, name, mode, Wish::Wait)
    }

    fn give_back(&mut self, client: u64) -> String {
        self.table.give_back(self.now_us, (client, 7), |_| true, &mut self.said);
        self.heard()
    }

    fn tick(&mut self, us: u64) -> String {
        self.now_us += us;
        self.table.tick(self.now_us, |_| true, &mut self.said);
        self.heard()
    }

    fn is_in_way(&self, client: u64, key: &str, mode: LeaseMode) -> bool {
        self.table.is_in_way(client, &blob(key), mode)
    }

    fn is_listing_in_way(&self, client: u64, start: &str, end: &str) -> bool {
        self.table.is_listing_in_way(client, SPACE, &range(start, end))
    }

    fn want(&mut self, client: u64, key: &str, mode: LeaseMode) -> String {
        self.table.want(self.now_us, (client, mode), &blob(key), &mut self.said);
        self.heard()
    }

    fn want_listing(&mut self, client: u64, start: &str, end: &str) -> String {
        let keys = range(start, end);
        self.table.want_listing(self.now_us, client, (SPACE, &keys), &mut self.said);
        self.heard()
    }

    fn heard(&mut self) -> String {
        self.table.invariants();
        let told = self.said.drain(..).map(|(client, message)| {
            let what = match message {
                Message::Granted { .. } => "has",
                Message::Waits { .. } => "waits",
                Message::Recall { .. } => "recalled",
                other => panic!("{other:?}"),
            };
            format!("{client} {what}")
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Keys from there on, up to there, or all that follow.
fn range(start: &str, end: &str) -> KeyRange {
    let end = Some(end.to_owned()).filter(|end| !end.is_empty());
    KeyRange { start: start.to_owned().into(), end: end.map(Into::into) }
}

#[test]
fn a_group_excludes_its_keys_and_they_exclude_it() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask(1, "a/", Exclusive), "1 has");
    assert_eq!(desk.try_ask(2, "a/x", Shared, Wish::Try), "Conflict");
    assert_eq!(desk.ask(3, "b/x", Exclusive), "3 has", "another group");
    assert_eq!(desk.ask(4, "a", Exclusive), "4 has", "a key without the byte is by itself");
    assert_eq!(desk.try_ask(5, "b/", Shared, Wish::Try), "Conflict");
    assert_eq!(desk.ask(6, "a/x", Exclusive), "6 waits, 1 recalled");
    assert_eq!(desk.ask(7, "a/y", Exclusive), "7 waits", "it is told already");
    assert_eq!(desk.give_back(1), "6 has, 7 has");
    assert_eq!(desk.ask(8, "a/", Shared), "8 waits, 6 recalled, 7 recalled");
    assert_eq!(desk.give_back(6), "");
    assert_eq!(desk.give_back(7), "8 has");
}

#[test]
fn shared_leases_of_a_group_and_of_its_keys_stand_beside_each_other() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask(1, "a/", Shared), "1 has");
    assert_eq!(desk.ask(2, "a/x", Shared), "2 has");
    assert_eq!(desk.ask(3, "a/", Shared), "3 has");
    assert_eq!(desk.ask(4, "a/y", Exclusive), "4 waits, 1 recalled, 3 recalled");
    assert_eq!(desk.ask(5, "a/", Exclusive), "5 waits, 2 recalled", "the others know");
}

/// No starvation of a group by its keys, nor of a key by its group.
#[test]
fn keys_stand_in_line_behind_their_group_and_it_behind_them() {
    let mut desk = Desk::new();
    desk.ask(1, "a/x", Exclusive);
    assert_eq!(desk.ask(2, "a/", Exclusive), "2 waits, 1 recalled");
    assert_eq!(desk.ask(3, "a/y", Shared), "3 waits", "nobody holds it, and a group waits");
    assert_eq!(desk.ask(4, "b/y", Shared), "4 has");
    assert_eq!(desk.ask(5, "a/", Shared), "5 waits");
    assert_eq!(desk.give_back(1), "2 has");
    assert_eq!(desk.tick(1), "2 recalled");
    assert_eq!(desk.give_back(2), "5 has, 3 has", "all of them are shared");
    assert_eq!(desk.ask(6, "a/z", Exclusive), "6 waits, 5 recalled");
    assert_eq!(desk.try_ask(7, "a/", Shared, Wish::Try), "Conflict", "it stands behind a key");
    assert_eq!(desk.ask(8, "a/y", Shared), "8 has", "that is in nobody's way");
    assert_eq!(desk.give_back(5), "6 has");
}

#[test]
fn who_waits_for_a_group_and_goes_away_lets_its_keys_go_on() {
    let mut desk = Desk::new();
    desk.ask(1, "a/x", Shared);
    desk.ask(2, "a/", Exclusive);
    assert_eq!(desk.ask(3, "a/y", Exclusive), "3 waits");
    assert_eq!(desk.give_back(2), "3 has");
    desk.ask(4, "a/", Exclusive);
    assert_eq!(desk.ask(5, "a/z", Shared), "5 waits");
    desk.tick(3 * SECOND_US);
    assert_eq!(desk.ask(5, "a/z", Shared), "5 waits");
    let said = desk.tick(2 * SECOND_US);
    assert!(said.contains("5 has"), "client 4 was not heard of for 5 s: {said}");
}

#[test]
fn a_lease_of_a_group_that_is_not_renewed_is_over_for_its_keys() {
    let mut desk = Desk::new();
    desk.ask(1, "a/", Exclusive);
    desk.ask(2, "a/x", Exclusive);
    for _ in 0..4 {
        desk.tick(5 * SECOND_US / 2);
        desk.ask(2, "a/x", Exclusive);
    }
    assert_eq!(desk.tick(SECOND_US), "2 has");
}

/// K2: what is there, and what is not.
#[test]
fn a_group_keeps_others_off_its_keys_and_its_listings() {
    let mut desk = Desk::new();
    desk.ask(1, "a/", Shared);
    assert!(desk.is_in_way(2, "a/x", Exclusive) && desk.is_in_way(2, "a/", Exclusive));
    assert!(!desk.is_in_way(2, "a/x", Shared) && !desk.is_in_way(1, "a/x", Exclusive));
    assert!(!desk.is_in_way(2, "b/x", Exclusive) && !desk.is_in_way(2, "a", Exclusive));
    assert!(!desk.is_listing_in_way(2, "a/", "a0"), "who only looks is not kept off");
    desk.give_back(1);
    desk.ask(1, "a/", Exclusive);
    assert!(desk.is_in_way(2, "a/x", Shared) && !desk.is_in_way(1, "a/x", Shared));
    for (start, end) in [("a/", "a0"), ("a/k", "a/x"), ("", ""), ("a", "b"), ("a/k", "")] {
        assert!(desk.is_listing_in_way(2, start, end), "{start} to {end}");
        assert!(!desk.is_listing_in_way(1, start, end), "its own keeps it off nothing");
    }
    for (start, end) in [("a", "a/"), ("b/", "b0"), ("a0", ""), ("", "a/")] {
        assert!(!desk.is_listing_in_way(2, start, end), "{start} to {end}");
    }
}

#[test]
fn a_key_that_is_held_alone_keeps_off_listings_that_are_over_it() {
    let mut desk = Desk::new();
    desk.ask(1, "a/k", Exclusive);
    desk.ask(2, "a/s", Shared);
    for (start, end) in [("a/", "a0"), ("a/k", "a/l"), ("", ""), ("a/b", "")] {
        assert!(desk.is_listing_in_way(2, start, end), "{start} to {end}");
    }
    for (start, end) in [("a/", "a/k"), ("a/l", "a0"), ("b/", "b0"), ("a/l", "")] {
        assert!(!desk.is_listing_in_way(2, start, end), "{start} to {end}");
    }
    assert!(!desk.is_listing_in_way(1, "", ""), "its own keeps it off nothing");
    assert_eq!(desk.want_listing(3, "a/", "a0"), "1 recalled");
    assert_eq!(desk.give_back(1), "");
    assert_eq!(desk.ask(4, "a/z", Exclusive), "4 waits", "a listing comes first");
    assert_eq!(desk.ask(5, "a/y", Shared), "5 has");
    assert_eq!(desk.tick(SECOND_US / 2), "4 has", "nobody lists any more");
}

#[test]
fn who_writes_a_key_comes_before_who_asks_for_its_group() {
    let mut desk = Desk::new();
    desk.ask(1, "a/", Shared);
    assert_eq!(desk.want(2, "a/new", Exclusive), "1 recalled");
    assert_eq!(desk.ask(3, "a/", Shared), "3 waits");
    assert_eq!(desk.ask(4, "a/old", Shared), "4 has", "another key");
    assert_eq!(desk.give_back(1), "");
    desk.table.want_no_more(&of("a/new"));
    assert_eq!(desk.tick(1), "3 has");
}

/// K3.
#[test]
fn what_another_gave_of_a_group_is_held_on() {
    let mut desk = Desk::new();
    assert_eq!(desk.try_ask(1, "a/", Exclusive, Wish::Keep), "1 has");
    assert_eq!(desk.try_ask(2, "a/x", Shared, Wish::Keep), "Conflict", "one of the two is wrong");
    desk.table.retain(|of| of.name().key.as_bytes() != b"a/" && !of.contains(&blob("a/x")));
    assert_eq!((desk.heard().as_str(), desk.table.held()), ("", 0));
}

#[test]
fn a_keyspace_that_is_gone_has_no_leases() {
    let mut desk = Desk::new();
    desk.ask(1, "a/", Exclusive);
    desk.ask(2, "a/x", Exclusive);
    desk.table.know(BTreeMap::from([(SPACE, PlacedBy::UpTo(b'/'))]));
    assert_eq!((desk.table.held(), desk.table.waiting()), (1, 1));
    desk.table.know(BTreeMap::new());
    assert_eq!((desk.heard().as_str(), desk.table.held(), desk.table.waiting()), ("", 0, 0));
}

/// Nothing goes over all leases: with that many it would be noticed.
#[test]
fn ten_thousand_keys_and_their_group_go_to_those_who_wait_in_turn() {
    let mut desk = Desk::new();
    let ask = |desk: &mut Desk, client: u64, lease: u64, of: Leased, mode| {
        let (duration_us, sent_us, wish) = (10 * SECOND_US, 0, Wish::Wait);
        let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
        desk.table.ask(0, ask, true, &mut desk.said).unwrap();
    };
    for number in 0..10_000 {
        ask(&mut desk, 1, number, of(&format!("a/{number}")), Exclusive);
    }
    ask(&mut desk, 2, 0, of("a/"), Exclusive);
    for number in 0..10_000 {
        ask(&mut desk, 3, number, of(&format!("a/{number}")), Shared);
    }
    for number in 0..10_000 {
        desk.table.give_back(0, (1, number), |_| true, &mut desk.said);
    }
    assert_eq!((desk.table.held(), desk.table.waiting()), (1, 10_000), "the group comes first");
    desk.table.give_back(0, (2, 0), |_| true, &mut desk.said);
    assert_eq!((desk.table.held(), desk.table.waiting()), (10_000, 0));
    desk.table.invariants();
}

/// Whatever is asked for and given back in whatever order: nobody is in another's way, and in the
/// end all have had it.
#[test]
fn whoever_waits_gets_it_in_the_end_whatever_the_others_do() {
    for seed in 0..50_u64 {
        let mut desk = Desk::new();
        let mut state = seed * 2 + 1;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            (state >> 33) % below
        };
        let names = ["a/", "a/x", "a/y", "b/", "b/x", "c"];
        let mut clients: BTreeSet<u64> = BTreeSet::new();
        for client in 0..60 {
            let name = names[draw(names.len() as u64) as usize];
            let mode = if draw(2) == 0 { Shared } else { Exclusive };
            desk.ask(client, name, mode);
            clients.insert(client);
            if draw(2) == 0 {
                let gone = draw(client + 1);
                desk.give_back(gone);
                clients.remove(&gone);
            }
        }
        while !clients.is_empty() {
            let held: Vec<u64> = desk.table.ends.iter().map(|(_, (client, _))| *client).collect();
            assert!(!held.is_empty(), "seed {seed}: {clients:?} wait for nobody");
            for client in held {
                desk.give_back(client);
                clients.remove(&client);
            }
        }
        assert_eq!((desk.table.held(), desk.table.waiting()), (0, 0), "seed {seed}");
        assert!(desk.table.groups.is_empty() && desk.table.alone.is_empty(), "seed {seed}");
    }
}
