//! Claims that were merged guard what they were merged from.

use super::*;

#[test]
fn many_ranges_of_one_transaction_are_merged_and_still_guarded() {
    let mut node = Node::of_three(0);
    let mut many = transaction(1, vec![write(9_000, 1)]);
    for start in (0..100).map(|place| place * 10) {
        many = reading(many, start, start + 1, 0);
    }
    node.submit(many);
    let claims = node.commit.in_flight.claims(&blob("a")).len();
    assert!(claims <= in_flight::CLAIMS_MAX + 1, "{claims}");
    for start in (0..100).map(|place| place * 10) {
        let id = 2 + u128::from(start);
        assert!(node.submit(transaction(id, vec![write(start, 1)])).is_empty(), "{start}");
    }
}

#[test]
fn a_merged_claim_covers_what_it_was_merged_from() {
    let mut node = Node::of_three(0);
    node.submit(transaction(1, (0..50).map(|place| write(place * 7, 3)).collect()));
    let claims = node.commit.in_flight.claims(&blob("a"));
    assert!(claims.len() <= in_flight::CLAIMS_MAX);
    for start in (0..50).map(|place| place * 7) {
        let range = ByteRange { start, end: start + 3 };
        assert!(claims.iter().any(|claim| claim.footprint.range.contains(range)), "{range:?}");
    }
}
