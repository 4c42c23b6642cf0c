//! What transactions have listed, at a node alone (Q3). Keys of the group "g/" are listed.

use tyr_types::KeyRange;

use super::*;

/// A transaction that writes this blob.
fn writing(id: u128, key: &str) -> Transaction {
    let blobs = vec![BlobOperations { blob: blob(key), operations: vec![write(0, 8)] }];
    Transaction { id: TransactionId(id), blobs, reads: vec![] }
}

/// The same, with a listing of the group at `at`.
fn listing(mut transaction: Transaction, at: u64) -> Transaction {
    let listed = Listed { keys: KeyRange::of(b"g/", None), is_keys_only: false };
    transaction.reads.push(ReadCheck::of_listing(blob("g/"), listed, time(at, 0)));
    transaction
}

/// Q3, C1.
#[test]
fn a_listing_is_refused_when_a_key_of_it_was_written_since() {
    let mut node = Node::alone();
    node.view.newest = time(5, 0);
    assert_eq!(node.submit(listing(transaction(1, vec![]), 4)), ["reply 1: Conflict"]);
    assert_eq!(node.submit(listing(transaction(2, vec![]), 5)), ["reply 2: 0.1.0"]);
    let chain = node.chain.clone();
    let mut alone = |at| {
        let stale = listing(transaction(3, vec![]), at);
        assert_eq!(chain.hops().len(), 1);
        node.commit.commit_alone(0, &stale, &node.view).map(|answer| answer.is_ok())
    };
    assert_eq!((alone(4), alone(5)), (Some(false), Some(true)));
}

/// Q3, C1: whether there is such a blob yet or not.
#[test]
fn a_listing_is_refused_while_a_key_in_it_is_written_and_not_for_one_beside_it() {
    let mut node = Node::alone();
    node.submit(writing(1, "h/a"));
    node.submit(writing(2, "g"));
    assert_eq!(node.submit(listing(transaction(3, vec![]), 9)), ["reply 3: 0.3.0"]);
    node.submit(writing(4, "g/new"));
    assert_eq!(node.submit(listing(transaction(5, vec![]), 9)), ["reply 5: Conflict"]);
    node.persisted(4);
    assert_eq!(node.submit(listing(transaction(6, vec![]), 9)), ["reply 6: 0.5.0"]);
}

/// Q3: what is taken away is what the tests here are about.
#[test]
fn without_q3_a_listing_is_not_looked_at() {
    let mut node = Node::alone();
    node.commit.rules.broken = Some(Rule::Q3);
    node.view.newest = time(5, 0);
    node.submit(writing(1, "g/new"));
    assert_eq!(node.submit(listing(transaction(2, vec![]), 4)), ["reply 2: 0.2.0"]);
}

/// Q3, C2.
#[test]
fn a_write_waits_for_the_validated_listing_of_its_key_until_that_is_decided() {
    let mut node = Node::alone();
    node.submit(listing(writing(1, "x"), 0));
    assert!(node.submit(writing(2, "g/new")).is_empty(), "a blob that was not there");
    assert_eq!(node.submit(writing(3, "h/new")), ["persist 3 at 0.2.0"]);
    let told = node.persisted(1);
    assert_eq!(told, ["apply 1 at 0.1.0", "reply 1: 0.1.0", "persist 2 at 0.3.0"]);
}

/// Q3, C2: one that has read something is looked at whatever happens, and so is who has listed.
#[test]
fn who_waits_for_a_listing_and_has_read_is_woken_by_it() {
    let mut node = Node::alone();
    node.submit(listing(writing(1, "x"), 0));
    assert!(node.submit(reading(writing(2, "g/new"), 0, 8, 0)).is_empty());
    assert!(node.submit(listing(writing(3, "y"), 0)).is_empty(), "it came later, and waits behind");
    let told = node.persisted(1);
    assert_eq!(told, ["apply 1 at 0.1.0", "reply 1: 0.1.0", "persist 2 at 0.2.0"]);
    node.view.newest = time(2, 0);
    let told = node.persisted(2);
    assert_eq!(told, ["apply 2 at 0.2.0", "reply 2: 0.2.0", "reply 3: Conflict"]);
}

/// Q3: two that list a group, and each write in it what the other has not seen, do not both commit.
#[test]
fn of_two_that_list_a_group_and_add_to_it_one_is_refused() {
    let mut node = Node::alone();
    assert_eq!(node.submit(listing(writing(1, "g/one"), 0)), ["persist 1 at 0.1.0"]);
    assert_eq!(node.submit(listing(writing(2, "g/two"), 0)), ["reply 2: Conflict"]);
}

/// Q3, C9: what listed before the write is shown before it.
#[test]
fn a_write_is_applied_after_the_decided_listing_of_its_key() {
    let mut node = Node::alone();
    node.submit(writing(1, "x"));
    node.submit(listing(writing(2, "x"), 0));
    assert!(node.submit(writing(3, "g/new")).is_empty());
    let told = node.persisted(2);
    assert_eq!(told, ["persist 3 at 0.3.0"], "decided, and the first may come before");
    assert!(node.persisted(3).is_empty(), "decided, and who listed before it is not shown");
    let told = node.persisted(1);
    let applied: Vec<_> = told.iter().filter(|told| told.starts_with("apply")).collect();
    assert_eq!(applied, ["apply 1 at 0.1.0", "apply 2 at 0.2.0", "apply 3 at 0.3.0"]);
}

/// Q3.
#[test]
fn the_fast_path_is_not_taken_beside_a_listing_in_flight_nor_by_one_beside_a_write() {
    let mut node = Node::alone();
    let is_taken =
        |node: &mut Node, it: &Transaction| node.commit.commit_alone(0, it, &node.view).is_some();
    node.submit(listing(writing(1, "x"), 0));
    assert!(!is_taken(&mut node, &writing(2, "g/new")));
    assert!(is_taken(&mut node, &writing(3, "h/new")));
    assert!(is_taken(&mut node, &listing(writing(4, "y"), 9)), "two that list do not meet");
    node.persisted(1);
    assert!(is_taken(&mut node, &writing(5, "g/new")));
    node.submit(writing(6, "g/other"));
    assert!(!is_taken(&mut node, &listing(transaction(7, vec![]), 9)));
    node.persisted(6);
    assert!(is_taken(&mut node, &listing(transaction(8, vec![]), 9)));
}

/// Q3: on a blob that many write it is the same.
#[test]
fn a_listing_is_held_against_those_in_an_index() {
    let mut node = Node::alone();
    for id in 1..100 {
        node.submit(writing(id, "g/hot"));
    }
    assert_eq!(node.submit(listing(transaction(100, vec![]), 9)), ["reply 100: Conflict"]);
    for id in 1..100 {
        node.persisted(id);
    }
    node.submit(listing(writing(101, "x"), 1_000));
    for id in 102..200 {
        assert!(node.submit(writing(id, "g/hot")).is_empty());
    }
    let told = node.persisted(101);
    assert_eq!(told.iter().filter(|told| told.starts_with("persist")).count(), 98);
}
