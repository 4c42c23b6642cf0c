//! Clients that ask minutes later what became of a transaction (F4, F11).

use std::sync::Arc;

use tyr_types::{
    BlobOperations, Bytes, NodeId, Operation, Outcome, Payload, Timestamp, Transaction,
    TransactionId,
};

use super::stand::{CLIENT, Stand, map};
use super::world::blob;
use crate::chain::Ends;
use crate::commit::{Answered, Attempt, Decision, Remembered};
use crate::lease::OutcomeRetention;
use crate::member::{Effect, Event, Record};
use crate::message::{Address, Body, Envelope};

/// Appends to two blobs: each answers its offset.
fn appends() -> Arc<Transaction> {
    let payload = Payload::Inline(Bytes::from_static(b"line"));
    let append = Operation::Append { payload, expected: None };
    let entry = |number| BlobOperations { blob: blob(number), operations: vec![append.clone()] };
    let id = TransactionId(u128::from(CLIENT) << 64 | 1);
    Arc::new(Transaction { id, blobs: vec![entry(0), entry(1)], reads: Vec::new() })
}

/// What the client is told when it asks again about what it first submitted at this clock.
fn asked_again(stand: &mut Stand, transaction: &Arc<Transaction>, begun_us: u64) -> String {
    let (transaction, ends) = (Arc::clone(transaction), Ends::new());
    let body = Body::Submit { transaction, ends, begun_us, is_retry: true, settled: 0 };
    let epoch = stand.member.epoch();
    let from = Address::Client(CLIENT);
    let effects = stand.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }));
    let brief = |effect: &Effect| match effect {
        Effect::Send { to: Address::Client(_), envelope } => match &envelope.body {
            Body::NotHere(_) => Some("not here".to_owned()),
            Body::Reply { decision: Decision::Commit(_), outcomes, .. } => {
                Some(format!("{} answers", outcomes.len()))
            }
            Body::Reply { decision: Decision::Abort(abort), .. } => {
                Some(abort.kind.name().to_owned())
            }
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(brief).collect::<Vec<_>>().join(", ")
}

/// F11: to say that it is done without what it answered would be a lie.
#[test]
fn who_has_only_a_part_of_the_answers_does_not_answer() {
    let map = map(1);
    let (mut stand, transaction) = (Stand::new(0, &map), appends());
    let at = Timestamp { epoch: map.epoch, clock: 1_000_500, node: 0 };
    let answered = |blob| Answered { blob, operation: 0, outcome: Outcome::Offset(8) };
    let remembered = |outcomes: Vec<Answered>| Remembered {
        id: transaction.id,
        attempt: Attempt { epoch: map.epoch, number: 0, coordinator: NodeId(0) },
        ends: Ends::new(),
        decision: Decision::Commit(at),
        outcomes: outcomes.into(),
    };
    let told = Record::Recalled { outcomes: vec![remembered(vec![answered(1)])] };
    stand.member.replay(told, &mut stand.shelf);
    stand.learn(&map);
    stand.lease();
    assert_eq!(asked_again(&mut stand, &transaction, 1_000_400), "not here");
    let told = Record::Recalled { outcomes: vec![remembered(vec![answered(0)])] };
    let (mut knowing, floor) = (Stand::new(0, &map), 1_000_400);
    let part = Record::Recalled { outcomes: vec![remembered(vec![answered(1)])] };
    [part, told].into_iter().for_each(|it| knowing.member.replay(it, &mut knowing.shelf));
    knowing.learn(&map);
    for stand in [&mut stand, &mut knowing] {
        stand.lease_with(OutcomeRetention { done_to_us: floor, ..OutcomeRetention::UNKNOWN });
    }
    assert_eq!(asked_again(&mut stand, &transaction, floor), "TimedOut");
    assert_eq!(asked_again(&mut knowing, &transaction, floor), "2 answers");
}
