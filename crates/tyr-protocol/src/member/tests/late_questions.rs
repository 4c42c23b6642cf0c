//! Clients that ask minutes later what became of a transaction (F4, F11).

use std::sync::Arc;

use tyr_types::{
    BlobOperations, Bytes, NodeId, Operation, Outcome, Payload, Timestamp, Transaction,
    TransactionId,
};

use super::checkpoints::transaction;
use super::stand::{CLIENT, Stand, map};
use super::world::blob;
use crate::chain::Ends;
use crate::commit::OutcomeRetention;
use crate::commit::{Answered, Attempt, Decision, Remembered};
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
    told(&submitted(stand, transaction, begun_us, true))
}

/// What follows when a client submits a transaction that began at this clock, perhaps again.
fn submitted(
    stand: &mut Stand,
    transaction: &Arc<Transaction>,
    begun_us: u64,
    is_retry: bool,
) -> Vec<Effect> {
    let (transaction, ends) = (Arc::clone(transaction), Ends::new());
    let body = Body::Submit { transaction, ends, begun_us, is_retry, settled: 0 };
    let epoch = stand.member.epoch();
    let from = Address::Client(CLIENT);
    stand.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }))
}

/// What the client is told by these effects.
fn told(effects: &[Effect]) -> String {
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

/// F11: a program that slept for an hour goes on where it was, with an id that nobody knows any
/// more.
#[test]
fn who_comes_back_after_an_hour_is_told_that_nobody_can_tell_and_nothing_runs() {
    const HOUR_US: u64 = 3_600_000_000;
    let map = map(1);
    let (mut stand, transaction) = (Stand::new(0, &map), appends());
    let begun_us = stand.now_us;
    stand.now_us += HOUR_US;
    let done_to_us = stand.now_us - 60_000_000;
    stand.lease_with(OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN });
    for is_retry in [true, false] {
        let effects = submitted(&mut stand, &transaction, begun_us, is_retry);
        assert_eq!(told(&effects), "TimedOut");
        assert_eq!(effects.len(), 1, "nothing else is done: {effects:?}");
    }
    let fresh = submitted(&mut stand, &transaction, done_to_us + 1, false);
    assert!(fresh.iter().any(|it| matches!(it, Effect::Persist { .. })), "{fresh:?}");
}

/// Makes durable what is to be, until nothing more follows; what the client is told meanwhile.
fn carried_out(stand: &mut Stand, mut effects: Vec<Effect>) -> String {
    let mut answers = Vec::new();
    while !effects.is_empty() {
        answers.push(told(&effects));
        let event = |effect| match effect {
            Effect::Persist { number, .. } => Some(Event::Persisted { number }),
            Effect::Resume => Some(Event::Resume),
            _ => None,
        };
        let events: Vec<Event> = effects.into_iter().filter_map(event).collect();
        effects = events.into_iter().flat_map(|event| stand.step(event)).collect();
    }
    answers.retain(|it| !it.is_empty());
    answers.join(", ")
}

/// F4: two clients of one number; the second is told so, in place of what became of the first's.
#[test]
fn another_transaction_of_the_same_id_is_not_answered_by_the_outcome_of_the_first() {
    let map = map(1);
    let id = u128::from(CLIENT) << 64 | 1;
    let [first, second] = [0, 1].map(|number| {
        let written = (*transaction(1, number)).clone();
        Arc::new(Transaction { id: TransactionId(id), ..written })
    });
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let began_us = stand.now_us;
    let effects = submitted(&mut stand, &first, began_us, false);
    for is_retry in [false, true] {
        let while_in_flight = submitted(&mut stand, &second, began_us + 7, is_retry);
        assert_eq!(told(&while_in_flight), "TimedOut");
    }
    assert_eq!(carried_out(&mut stand, effects), "0 answers");
    for (begun_us, is_retry) in [(began_us + 7, false), (began_us + 7, true), (began_us - 7, true)]
    {
        let afterwards = submitted(&mut stand, &second, begun_us, is_retry);
        assert_eq!(told(&afterwards), "TimedOut");
    }
    let again = submitted(&mut stand, &first, began_us, true);
    assert_eq!(told(&again), "0 answers", "the first is answered as ever");
}
