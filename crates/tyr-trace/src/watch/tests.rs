//! Spans of what a node hears, says and writes down.

use tyr_protocol::Abort;
use tyr_protocol::commit::{Outcomes, Placements};
use tyr_types::{Epoch, ErrorKind};

use super::*;
use crate::span::{EndedSpan, SpanId};
use crate::tests::{CLIENT, at, attempt, chain, id, now, transaction};

/// A watch of this node that traces everything, and where its spans go.
fn watch_at(node: u16) -> (Watch, Arc<Outbox>) {
    let outbox = Arc::new(Outbox::new());
    (Watch::new(NodeId(node), Sampling::new(1.0).unwrap(), Arc::clone(&outbox)), outbox)
}

fn receive(from: Address, body: Body) -> Event {
    Event::Receive(Envelope { epoch: Epoch(3), incarnation: 0, from, body })
}

fn submit(sequence: u64, is_retry: bool) -> Event {
    let (ends, transaction) = (Default::default(), transaction(sequence));
    let body = Body::Submit { transaction, ends, begun_us: 0, is_retry, settled: 0 };
    receive(Address::Client(CLIENT), body)
}

fn forward(sequence: u64, over: &Chain, attempt: Attempt) -> Body {
    Body::Commit(Message::Forward {
        transaction: transaction(sequence),
        chain: over.clone(),
        attempt,
        begun: at(0),
        highest: at(1),
        known: None,
        usages: Vec::new(),
    })
}

fn backward(sequence: u64, decision: Decision) -> Body {
    let (id, attempt, outcomes) = (id(sequence), attempt(0, 0), Outcomes::new());
    Body::Commit(Message::Backward { id, attempt, decision, outcomes, usages: Vec::new() })
}

fn reply(sequence: u64, decision: Decision) -> Body {
    Body::Reply { id: id(sequence), decision, outcomes: Outcomes::new(), clock: at(0) }
}

fn validated(sequence: u64, over: &Chain, attempt: Attempt) -> Record {
    Record::Validated {
        transaction: transaction(sequence),
        chain: over.clone(),
        attempt,
        begun: at(0),
        proposal: at(5),
        placed: Placements::new(),
    }
}

fn fenced(sequence: u64) -> Record {
    Record::Fenced { id: id(sequence), attempt: attempt(1, 0), is_cleared: true }
}

fn node(number: u16) -> Address {
    Address::Node(NodeId(number))
}

fn conflict() -> Decision {
    Decision::Abort(Abort::new(ErrorKind::Conflict, "it changed"))
}

fn happenings(ended: &EndedSpan) -> Vec<(u64, Happening)> {
    ended.span.moments.iter().map(|moment| (moment.at_us, moment.what)).collect()
}

#[test]
fn a_head_sees_a_transaction_from_its_submission_to_the_reply() {
    let (mut watch, outbox) = watch_at(1);
    let over = chain(&[1, 4]);
    watch.happened(&submit(1, false), now(100));
    watch.logged(9, &validated(1, &over, attempt(0, 1)), || 110);
    watch.happened(&Event::Persisted { number: 9 }, now(300));
    watch.sent(node(4), &forward(1, &over, attempt(0, 1)), || 310);
    watch.happened(&receive(node(4), backward(1, Decision::Commit(at(8)))), now(700));
    watch.logged(10, &Record::Decided { id: id(1), at: at(8) }, || 720);
    assert_eq!(outbox.take().len(), 0);
    let committed = reply(1, Decision::Commit(at(8)));
    watch.sent(Address::Client(CLIENT), &committed, || 730);
    let [ended] = &outbox.take()[..] else { panic!("it has one span") };
    assert_eq!(ended.span.id, SpanId::at_head(NodeId(1), id(1)));
    assert_eq!((ended.span.parent, ended.span.place), (None, Some((0, 2))));
    assert_eq!((ended.span.begun_us, ended.ended_us), (100, 730));
    assert_eq!(ended.outcome, Outcome::Committed(at(8)));
    let expected = [
        (110, Happening::Validated(at(5))),
        (300, Happening::Persisted),
        (310, Happening::Forwarded(NodeId(4))),
        (700, Happening::Decided(at(8))),
        (720, Happening::Applied),
    ];
    assert_eq!(happenings(ended), expected);
    assert!(watch.open.is_empty() && watch.unsynced.is_empty());
}

#[test]
fn a_later_node_has_a_span_below_the_heads_and_says_why_it_aborted() {
    let (mut watch, outbox) = watch_at(4);
    let over = chain(&[1, 4, 6]);
    watch.happened(&receive(node(1), forward(1, &over, attempt(0, 1))), now(50));
    watch.happened(&receive(node(1), forward(1, &over, attempt(0, 1))), now(51));
    watch.happened(&receive(node(6), backward(1, conflict())), now(80));
    let abort = Abort::new(ErrorKind::Conflict, "it changed");
    watch.logged(3, &Record::Aborted { id: id(1), abort }, || 81);
    watch.sent(node(1), &backward(1, conflict()), || 82);
    let [ended] = &outbox.take()[..] else { panic!("it has one span") };
    assert_eq!(ended.span.parent, Some(SpanId::at_head(NodeId(1), id(1))));
    assert_eq!(ended.span.id, SpanId::at_hop(NodeId(4), id(1), attempt(0, 1)));
    assert_eq!(ended.span.place, Some((1, 3)));
    let why = Outcome::Aborted { kind: ErrorKind::Conflict, reason: "it changed".into() };
    assert_eq!(ended.outcome, why);
    assert_eq!(happenings(ended), [(81, Happening::AbortLogged)]);
}

#[test]
fn each_attempt_that_passes_a_later_node_has_a_span_of_its_own() {
    let (mut watch, outbox) = watch_at(4);
    let over = chain(&[1, 4]);
    for number in 0..3 {
        watch.happened(&receive(node(1), forward(1, &over, attempt(number, 1))), now(50));
        if number == 1 {
            watch.logged(3, &fenced(1), || 60);
        }
    }
    watch.sent(node(1), &backward(1, Decision::Commit(at(9))), || 90);
    let ended = outbox.take();
    let outcomes: Vec<_> = ended.iter().map(|it| it.outcome.clone()).collect();
    let expected = [Outcome::Superseded, Outcome::Withdrawn, Outcome::Committed(at(9))];
    assert_eq!(outcomes, expected);
    assert_ne!(ended[0].span.id, ended[1].span.id);
    assert_ne!(ended[1].span.id, ended[2].span.id);
}

#[test]
fn a_head_keeps_its_span_while_the_transaction_comes_again() {
    let (mut watch, outbox) = watch_at(1);
    let over = chain(&[1, 4]);
    watch.happened(&submit(1, false), now(0));
    watch.happened(&receive(node(4), forward(1, &over, attempt(1, 1))), now(5));
    watch.logged(3, &fenced(1), || 6);
    watch.happened(&submit(1, true), now(7));
    watch.sent(Address::Client(CLIENT), &reply(1, Decision::Commit(at(9))), || 90);
    let [ended] = &outbox.take()[..] else { panic!("it has one span") };
    let expected = [
        (5, Happening::EnteredAgain(attempt(1, 1))),
        (6, Happening::Withdrawn),
        (7, Happening::AskedAgain),
    ];
    assert_eq!(happenings(ended), expected);
}

#[test]
fn a_head_that_gives_the_transaction_to_another_ends_its_span_above_the_others() {
    let (mut watch, outbox) = watch_at(1);
    let over = chain(&[0, 4]);
    watch.happened(&submit(1, false), now(0));
    watch.sent(node(0), &forward(1, &over, attempt(1, 1)), || 20);
    let [ended] = &outbox.take()[..] else { panic!("it has one span") };
    assert_eq!(ended.outcome, Outcome::Withdrawn);
    let (mut other, outbox) = watch_at(0);
    other.happened(&receive(node(1), forward(1, &over, attempt(1, 1))), now(30));
    other.sent(Address::Client(CLIENT), &reply(1, Decision::Commit(at(9))), || 40);
    let [next] = &outbox.take()[..] else { panic!("it has one span") };
    assert_eq!(next.span.parent, Some(ended.span.id));
    assert_eq!(next.span.id, SpanId::at_head(NodeId(0), id(1)));
}

#[test]
fn what_is_answered_from_memory_or_elsewhere_has_no_span() {
    let (mut watch, outbox) = watch_at(1);
    watch.happened(&submit(1, true), now(0));
    watch.sent(Address::Client(CLIENT), &reply(1, Decision::Commit(at(9))), || 1);
    watch.happened(&submit(2, false), now(0));
    watch.sent(Address::Client(CLIENT), &Body::NotHere(Asked::Transaction(id(2))), || 1);
    let Event::Receive(mut forged) = submit(3, false) else { panic!("it is a message") };
    forged.from = Address::Client(CLIENT + 1);
    watch.happened(&Event::Receive(forged), now(0));
    assert!(watch.open.is_empty() && outbox.take().is_empty());
}

#[test]
fn records_that_fail_to_become_durable_are_told_apart_from_others() {
    let (mut watch, outbox) = watch_at(1);
    let over = chain(&[1]);
    for sequence in 1..=3 {
        watch.happened(&submit(sequence, false), now(0));
        watch.logged(10 * sequence, &validated(sequence, &over, attempt(0, 1)), || 1);
    }
    watch.happened(&Event::Persisted { number: 10 }, now(2));
    watch.happened(&Event::PersistFailed { number: 30 }, now(3));
    watch.close(4);
    let mut ended = outbox.take();
    ended.sort_by_key(|ended| ended.span.transaction);
    let last: Vec<_> = ended.iter().map(|it| it.span.moments.last().unwrap().what).collect();
    let expected = [Happening::Persisted, Happening::Validated(at(5)), Happening::NotPersisted];
    assert_eq!(last, expected);
}

#[test]
fn what_is_not_traced_is_not_kept() {
    let outbox = Arc::new(Outbox::new());
    let mut watch = Watch::new(NodeId(1), Sampling::new(0.0).unwrap(), Arc::clone(&outbox));
    watch.happened(&submit(1, false), now(0));
    watch.happened(&receive(node(0), forward(2, &chain(&[0, 1]), attempt(0, 0))), now(0));
    watch.logged(1, &validated(1, &chain(&[1]), attempt(0, 1)), || panic!("no time is asked for"));
    assert!(watch.open.is_empty() && watch.unsynced.is_empty());
}

#[test]
fn there_are_only_so_many_open_spans_and_old_ones_end_unfinished() {
    let (mut watch, outbox) = watch_at(1);
    (1..=OPEN_MAX as u64 + 10).for_each(|n| watch.happened(&submit(n, false), now(0)));
    assert_eq!((watch.open.len(), outbox.statistics().crowded), (OPEN_MAX, 10));
    watch.happened(&Event::Tick, now(OPEN_US_MAX - 1));
    assert_eq!(watch.open.len(), OPEN_MAX);
    watch.happened(&Event::Tick, now(OPEN_US_MAX + SWEEP_US));
    assert!(watch.open.is_empty());
    assert_eq!(outbox.take()[0].outcome, Outcome::Unfinished);
}
