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
    let mut claims: in_flight::Claims = smallvec![];
    let mut records = Records::default();
    let chain = Chain::alone(NodeId(0));
    let slot = records.insert(Record {
        transaction: Arc::new(transaction(1, vec![])),
        chain: chain.clone(),
        position: 0,
        attempt: Attempt::default(),
        entered_in: Attempt::default(),
        begun: Timestamp::ZERO,
        known: None,
        unanchored: smallvec![],
        is_heard: false,
        is_anchored: false,
        is_behind: false,
        is_passed: false,
        is_restored: false,
        blocker: None,
        outcomes: Outcomes::new(),
        answers: Outcomes::new(),
        abort: None,
        touched_us: 0,
        asked: 0,
        arrival: 1,
        state: State::Waiting,
        highest: Timestamp::ZERO,
        placed: smallvec![],
        unstable: smallvec![],
        is_writing_here: false,
        holds_up: smallvec![],
        is_watched: false,
    });
    let operations = (0..50).map(|place| write(place * 7, 3)).collect();
    let mut index = InFlight::default();
    let hop = (&chain.hops()[0], &chain);
    index.claim(slot, hop, &transaction(1, operations), &EMPTY);
    claims.extend(index.claims(&blob("a")).iter().copied());
    assert!(claims.len() <= in_flight::CLAIMS_MAX);
    for start in (0..50).map(|place| place * 7) {
        let range = ByteRange { start, end: start + 3 };
        assert!(claims.iter().any(|claim| claim.footprint.range.contains(range)), "{range:?}");
    }
}
