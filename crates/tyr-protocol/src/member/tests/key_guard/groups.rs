//! Whom leases of groups keep off, and listings (K2, K7).

use tyr_types::{KeyRange, Listed, PlacedBy, Scan};

use super::*;
use crate::message::ScanRequest;

/// The same as `map`, in groups by the first two bytes of the key.
fn map_of_groups(nodes: u16) -> ClusterMap {
    let replication = u8::try_from(nodes.min(3)).expect("at most three");
    let config = KeyspaceConfig { chunk_size: CHUNK, replication, ..Default::default() };
    let placed_by = PlacedBy::First(2);
    ClusterMap::of(nodes, &[KeyspaceConfig { is_guarded: true, placed_by, ..config }])
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn group(prefix: &str) -> Leased {
    Leased::Group(blob(prefix))
}

fn stand_alone() -> Stand {
    let mut stand = Stand::new(0, &map_of_groups(1));
    stand.lease();
    stand
}

impl Stand {
    /// A client lists keys from there on up to there, as it is now or was then.
    fn lists(&mut self, client: u64, (start, end): (&str, &str), at: Option<Timestamp>) -> String {
        self.asked += 1;
        let scan = Scan::new().from(start).to(end);
        let request = ScanRequest::new(self.asked, KeyspaceId(1), &scan, at);
        self.client_says(client, Body::Scan(Arc::new(request)))
    }
}

/// A transaction that has listed keys of a group, and writes a blob of another.
fn list_and_write(client: u64, (start, end): (&str, &str), written: &str) -> Arc<Transaction> {
    let bytes = |text: &str| Bytes::from(text.to_owned());
    let keys = KeyRange { start: bytes(start), end: Some(bytes(end)) };
    let listed = Listed { keys, is_keys_only: false };
    let at = Timestamp { clock: 1, ..Timestamp::ZERO };
    let mut transaction = Transaction::clone(&write(client, 6, &blob(written)));
    transaction.reads = vec![ReadCheck::of_listing(blob(&start[..2]), listed, at)];
    Arc::new(transaction)
}

/// What is not there is held too.
#[test]
fn who_makes_a_blob_of_a_group_that_others_hold_waits_until_they_have_given_it_back() {
    let mut stand = stand_alone();
    assert_eq!(stand.asks(1, Shared, group("ab")), "1 granted");
    assert_eq!(stand.reads(2, &blob("ab/new")), "2 read", "who only looks is not kept off");
    assert_eq!(stand.lists(2, ("ab", "ac"), None), "2 listed");
    assert_eq!(stand.submits(&write(2, 1, &blob("cd/new"))), "2 committed", "another group");
    assert_eq!(stand.submits(&write(2, 2, &blob("ab/new"))), "1 recall");
    assert_eq!(stand.submits(&write(1, 1, &blob("ab/own"))), "1 committed", "its own lease");
    assert_eq!(stand.asks(3, Shared, group("ab")), "3 waits", "the transaction comes first");
    assert_eq!(stand.gives_back(1), "3 granted, 2 committed");
}

#[test]
fn who_looks_at_a_group_that_another_holds_to_itself_waits() {
    let mut stand = stand_alone();
    assert_eq!(stand.asks(1, Exclusive, group("ab")), "1 granted");
    assert_eq!(stand.reads(2, &blob("ab/x")), "1 recall");
    assert_eq!(stand.lists(3, ("ab", "ac"), None), "");
    assert_eq!(stand.lists(4, ("", "zz"), None), "", "all of the keyspace");
    assert_eq!(stand.lists(5, ("ac", "zz"), None), "5 listed");
    assert_eq!(stand.lists(1, ("ab", "ac"), None), "1 listed", "its own lease");
    let past = Some(Timestamp { epoch: stand.member.epoch(), clock: 1, node: 0 });
    assert_eq!(stand.lists(6, ("ab", "ac"), past), "6 listed", "what was there is as it was");
    assert_eq!(stand.gives_back(1), "2 read, 3 listed, 4 listed");
}

#[test]
fn a_listing_waits_for_a_key_in_its_range_that_another_holds_to_itself() {
    let mut stand = stand_alone();
    assert_eq!(stand.holds(1, Exclusive, &blob("ab/k")), "1 granted");
    assert_eq!(stand.lists(2, ("ab/l", "ac"), None), "2 listed");
    assert_eq!(stand.lists(3, ("ab/a", "ab/l"), None), "1 recall");
    assert_eq!(stand.asks(4, Exclusive, group("ab")), "4 waits");
    assert_eq!(stand.gives_back(1), "3 listed");
    assert_eq!(stand.later(1), "4 granted");
}

#[test]
fn a_listing_that_is_kept_off_for_too_long_is_asked_anew_and_one_that_is_not_needed_ends() {
    let mut stand = stand_alone();
    assert_eq!(stand.asks(1, Exclusive, group("ab")), "1 granted");
    assert_eq!(stand.lists(2, ("ab", "ac"), None), "1 recall");
    assert_eq!(stand.lists(3, ("ab", "ac"), None), "");
    let read = stand.asked;
    stand.client_says(3, Body::CancelRead { read });
    let mut said = String::new();
    for _ in 0..60 {
        stand.renews(1);
        said = stand.later(1);
        if said.contains("not here") {
            break;
        }
    }
    assert!(said.contains("2 not here") && !said.contains('3'), "{said}");
    assert_eq!(stand.gives_back(1), "", "nobody waits any more");
}

/// Q3, and who waits is woken though it claims no key.
#[test]
fn who_has_listed_what_another_holds_to_itself_is_validated_when_it_is_given_back() {
    let mut stand = stand_alone();
    stand.member.break_rule(Rule::Q3); // The shelf knows of no listing what it showed.
    assert_eq!(stand.asks(1, Exclusive, group("ab")), "1 granted");
    assert_eq!(stand.submits(&list_and_write(2, ("ab", "ac"), "cd/x")), "1 recall");
    assert_eq!(stand.submits(&list_and_write(3, ("cd", "ce"), "cd/y")), "3 committed");
    assert_eq!(stand.submits(&list_and_write(1, ("ab", "ac"), "cd/z")), "1 committed");
    assert_eq!(stand.gives_back(1), "2 committed");
    assert_eq!(stand.holds(4, Exclusive, &blob("ab/k")), "4 granted");
    assert_eq!(stand.submits(&list_and_write(5, ("ab/l", "ac"), "cd/x")), "5 committed");
    assert_eq!(stand.submits(&list_and_write(6, ("ab/a", "ab/l"), "cd/x")), "4 recall");
    assert_eq!(stand.gives_back(4), "6 committed");
    assert_eq!(stand.asks(7, Shared, group("ab")), "7 granted");
    assert_eq!(stand.submits(&list_and_write(8, ("ab", "ac"), "cd/x")), "8 committed");
}

/// A lease that is given while one of its keys is on its way would be of what changes just then.
#[test]
fn while_something_may_still_change_a_group_nobody_gets_a_lease_of_it() {
    let map = map_of_groups(3);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let names = (0..100).map(|number| format!("{number:02}"));
    let name = names.into_iter().find(|it| map.holders(&blob(it), 0)[0] == NodeId(0)).unwrap();
    let said = stand.submits(&write(2, 1, &blob(&format!("{name}/x"))));
    assert_eq!(said, "node 1 forward");
    assert_eq!(stand.asks(1, Shared, group(&name)), "1 waits");
    assert_eq!(stand.holds(3, Shared, &blob(&format!("{name}/y"))), "3 granted", "another key");
}

/// K3: what the process before gave may be held yet.
#[test]
fn a_new_authority_lists_nothing_before_what_its_predecessor_gave_is_over() {
    let first = map_of_groups(5);
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    let names = (0..100).map(|number| format!("{number:02}"));
    let name = names.into_iter().find(|it| first.holders(&blob(it), 0)[0] == NodeId(0)).unwrap();
    let NodeId(heir) = second.holders(&blob(&name), 0)[0];
    let mut stand = Stand::new(heir, &first);
    stand.lease();
    stand.learn(&second);
    stand.lease();
    let end = format!("{name}~");
    assert_eq!(stand.lists(1, (&name, &end), None), "");
    assert_eq!(stand.asks(2, Shared, group(&name)), "2 waits");
    assert_eq!(stand.later(grace_us(true) / 1_000_000), "");
    assert!(stand.later(1).contains("1 listed"));
    assert_eq!(stand.lists(1, (&name, &end), None), "1 listed");
}

#[test]
fn a_group_that_is_none_and_a_cluster_of_an_older_level_are_refused_in_words() {
    let mut stand = stand_alone();
    assert_eq!(stand.asks(1, Shared, group("abc")), "1 InvalidArgument");
    let mut stand = Stand::new(0, &map(1));
    stand.lease();
    assert_eq!(stand.asks(1, Shared, group("ab")), "1 InvalidArgument", "it has no groups");
    let mut stand = Stand::new(0, &map_of_groups(1).speaking(18));
    stand.lease();
    assert_eq!(stand.asks(1, Shared, group("ab")), "1 Unavailable");
    assert_eq!(stand.holds(1, Shared, &blob("ab")), "1 granted");
}

#[test]
fn without_k7_a_group_keeps_nobody_off_its_keys() {
    let mut stand = stand_alone();
    stand.member.break_rule(Rule::K7);
    assert_eq!(stand.asks(1, Exclusive, group("ab")), "1 granted");
    assert_eq!(stand.submits(&write(2, 1, &blob("ab/new"))), "2 committed");
    assert_eq!(stand.holds(3, Exclusive, &blob("cd/x")), "3 granted");
    assert_eq!(stand.submits(&write(2, 2, &blob("cd/x"))), "3 recall", "its own still does");
}

#[test]
fn in_a_keyspace_that_is_not_guarded_a_listing_is_kept_off_by_nobody() {
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let placed_by = PlacedBy::First(2);
    let mut stand = Stand::new(0, &ClusterMap::of(1, &[KeyspaceConfig { placed_by, ..config }]));
    stand.lease();
    assert_eq!(stand.asks(1, Exclusive, group("ab")), "1 granted");
    assert_eq!(stand.holds(2, Shared, &blob("ab/x")), "2 waits, 1 recall", "it is beside leases");
    assert_eq!(stand.lists(3, ("ab", "ac"), None), "3 listed");
    assert_eq!(stand.submits(&write(3, 1, &blob("ab/x"))), "3 committed");
}
