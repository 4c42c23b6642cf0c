//! Where appends come to lie while others are in flight.

use super::*;
use crate::footprint::Footprint;

#[test]
fn appends_that_fit_the_chunk_are_validated_side_by_side() {
    let mut node = Node::of_three(0);
    node.view.size = Some(50);
    assert_eq!(node.submit(transaction(1, vec![append(20)])), ["persist 1 at 0.1.0"]);
    assert_eq!(node.submit(transaction(2, vec![append(30)])), ["persist 2 at 0.2.0"]);
}

#[test]
fn an_append_that_would_cross_the_chunk_waits_and_then_has_an_offset() {
    let mut node = Node::of_three(0);
    node.view.size = Some(50);
    node.submit(transaction(1, vec![append(20)]));
    node.persisted(1);
    assert!(node.submit(transaction(2, vec![append(31)])).is_empty());
    let third = node.submit(transaction(3, vec![append(1)]));
    assert!(third.is_empty(), "behind the one that needs the end: {third:?}");
    node.view.size = Some(70);
    let told = node.backward(1, Decision::Commit(time(9, 2)));
    assert_eq!(told[4..], ["persist 2 with end 70"], "and the third waits for it (C2)");
    node.persisted(2);
    node.view.size = Some(101);
    let told = node.backward(2, Decision::Commit(time(12, 2)));
    assert_eq!(told[4..], ["persist 3 at 0.13.0"]);
}

#[test]
fn an_append_and_a_write_that_moves_the_end_wait_for_each_other() {
    let mut node = Node::of_three(0);
    node.view.size = Some(50);
    node.submit(transaction(1, vec![append(20)]));
    node.persisted(1);
    assert!(node.submit(transaction(2, vec![write(10, 80)])).is_empty());
    assert!(node.submit(transaction(3, vec![append(1)])).is_empty(), "behind the second");
    node.view.size = Some(70);
    let told = node.backward(1, Decision::Commit(time(9, 2)));
    assert_eq!(told[4..], ["persist 2 at 0.10.0"]);
    node.persisted(2);
    node.view.size = Some(90);
    let told = node.backward(2, Decision::Commit(time(12, 2)));
    assert_eq!(told[4..], ["persist 3 at 0.13.0"]);
}

#[test]
fn an_append_and_a_write_within_the_blob_go_side_by_side() {
    let mut node = Node::of_three(0);
    node.view.size = Some(50);
    assert_eq!(node.submit(transaction(1, vec![append(20)])), ["persist 1 at 0.1.0"]);
    assert_eq!(node.submit(transaction(2, vec![write(10, 40)])), ["persist 2 at 0.2.0"]);
    assert_eq!(node.submit(transaction(3, vec![append(20)])), ["persist 3 at 0.3.0"]);
}

/// R5: what an append that waited for a cut takes in is where the cut lets it go; a read at S of
/// that went past it, while it was decided below S. Seed 1795611592177 of the simulator, scenario
/// borders.
#[test]
fn an_append_claims_the_end_that_a_cut_before_it_gives() {
    for few_max in [32, 0] {
        for cut in [Operation::Truncate { len: 4 }, Operation::Delete] {
            let mut node = Node::of_three(0);
            node.commit.in_flight.index_above(few_max);
            node.view.size = Some(50);
            node.submit(transaction(1, vec![cut]));
            node.persisted(1);
            assert!(node.submit(transaction(2, vec![append(8)])).is_empty());
            node.view.size = Some(4);
            let told = node.backward(1, Decision::Commit(time(9, 2)));
            assert!(told.contains(&"persist 2 at 0.10.0".to_owned()), "{told:?}");
            let slot = node.commit.records.slot(TransactionId(2)).unwrap();
            let bytes = Footprint::bytes(ByteRange { start: 4, end: 12 });
            let mut claims = node.commit.in_flight.claims(&blob("a")).of(slot);
            assert!(claims.any(|claim| claim.footprint.overlaps(bytes)), "it lies there");
        }
    }
}
