//! Each rule of the commit machine by itself, at one node.

mod alone;
mod appends;
mod chunks;
mod claims;
mod conditions;
mod indexes;
mod listings;
mod relays;

use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceId, Listed, Number, NumberType,
    Operation, Payload, ReadCheck, Transaction, TransactionId,
};

use super::*;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::recovery::held_alone;

/// The applied state as a test sets it.
#[derive(Clone, Copy, Debug)]
struct Applied {
    newest: Timestamp,
    size: Option<u64>,
    is_equal: bool,
    number: Option<Number>,
}

const EMPTY: Applied =
    Applied { newest: Timestamp::ZERO, size: None, is_equal: true, number: None };

impl View for Applied {
    fn newest_overlapping(&self, _: &BlobName, _: ByteRange, _: bool) -> Timestamp {
        self.newest
    }

    fn is_listing_stale(&self, _: KeyspaceId, _: &Listed, at: Timestamp) -> bool {
        self.newest > at
    }

    fn stat(&self, _: &BlobName) -> Option<u64> {
        self.size
    }

    fn matches(&self, _: &BlobName, _: u64, _: &[u8]) -> bool {
        self.is_equal
    }

    fn number(&self, _: &BlobName, _: u64, _: NumberType) -> Option<Number> {
        self.number
    }

    fn chunk_size(&self, _: KeyspaceId) -> u64 {
        100
    }
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn bytes(len: u64) -> Bytes {
    Bytes::from(vec![7; len as usize])
}

fn write(offset: u64, len: u64) -> Operation {
    Operation::Write { offset, payload: Payload::Inline(bytes(len)) }
}

fn append(len: u64) -> Operation {
    Operation::Append { payload: Payload::Inline(bytes(len)), expected: None }
}

fn compare(offset: u64, len: u64) -> Operation {
    Operation::Compare { offset, expected: bytes(len).into() }
}

/// A transaction of these operations on the blob "a".
fn transaction(id: u128, operations: Vec<Operation>) -> Transaction {
    let blobs = match operations.is_empty() {
        true => vec![],
        false => vec![BlobOperations { blob: blob("a"), operations }],
    };
    Transaction { id: TransactionId(id), blobs, reads: vec![] }
}

/// The same, with a read of bytes of "a" at `at`.
fn reading(mut transaction: Transaction, start: u64, end: u64, at: u64) -> Transaction {
    transaction.reads.push(ReadCheck {
        blob: blob("a"),
        range: ByteRange { start, end },
        is_attributes: false,
        at: time(at, 0),
        listed: None,
    });
    transaction
}

fn time(clock: u64, node: u16) -> Timestamp {
    Timestamp { clock, node, ..Timestamp::ZERO }
}

/// Nodes 0, 1 and 2 hold all of "a"; node 0 is its authority.
fn chain_of_three() -> Chain {
    chain_of_three_writing(true)
}

fn chain_of_three_writing(is_written: bool) -> Chain {
    let piece = |_| Piece {
        blob: blob("a"),
        range: ByteRange::ALL,
        is_attributes: true,
        is_written,
        authority: NodeId(0),
    };
    let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(vec![piece(node)]) };
    Chain::new((0..3).map(hop).collect(), Ends::new()).unwrap()
}

/// A machine, the state it looks at, and what it asked for.
struct Node {
    commit: Commit,
    view: Applied,
    chain: Chain,
}

impl Node {
    fn alone() -> Self {
        Self { commit: Commit::new(NodeId(0)), view: EMPTY, chain: Chain::alone(NodeId(0)) }
    }

    fn of_three(node: u16) -> Self {
        Self { commit: Commit::new(NodeId(node)), view: EMPTY, chain: chain_of_three() }
    }

    /// Steps; answers the effects in short, and those of the `Resume` they ask for.
    fn step(&mut self, event: Event) -> Vec<String> {
        let mut effects = Vec::new();
        self.commit.step(0, event, &self.view, &mut effects);
        self.commit.invariants();
        let mut told: Vec<String> = effects.iter().filter_map(brief).collect();
        for effect in &effects {
            if let Effect::Note { id, is_synced: true, .. } = effect {
                told.extend(self.step(Event::Noted { id: *id }));
            }
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Resume)) {
            told.extend(self.step(Event::Resume));
        }
        told
    }

    fn submit(&mut self, transaction: Transaction) -> Vec<String> {
        let chain = self.chain.clone();
        self.step(Event::Submit {
            transaction: Arc::new(transaction),
            chain,
            begun: Timestamp::ZERO,
        })
    }

    fn forward(&mut self, transaction: Transaction, highest: Timestamp) -> Vec<String> {
        let (transaction, chain) = (Arc::new(transaction), self.chain.clone());
        let attempt = Attempt::default();
        let (begun, known, usages) = (Timestamp::ZERO, None, vec![]);
        let forward =
            Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
        self.step(Event::Receive(forward))
    }

    fn backward(&mut self, id: u128, decision: Decision) -> Vec<String> {
        let (id, attempt) = (TransactionId(id), Attempt::default());
        let (outcomes, usages) = (Outcomes::new(), vec![]);
        let backward = Message::Backward { id, attempt, decision, outcomes, usages };
        self.step(Event::Receive(backward))
    }

    fn persisted(&mut self, id: u128) -> Vec<String> {
        self.step(Event::Persisted { id: TransactionId(id), attempt: Attempt::default() })
    }
}

/// An effect in short: what it is, and of which transaction.
fn brief(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Send { to, message: Message::Forward { transaction, highest, .. } } => {
            format!("forward {} to {} at {highest}", transaction.id.0, to.0)
        }
        Effect::Send { to, message: Message::Backward { id, decision, .. } } => {
            format!("backward {} to {}: {}", id.0, to.0, told(decision))
        }
        Effect::Send { to, message: Message::Stable { id, .. } } => {
            format!("stable {} to {}", id.0, to.0)
        }
        Effect::Persist { transaction, proposal, placed, .. } if placed.is_empty() => {
            format!("persist {} at {proposal}", transaction.id.0)
        }
        Effect::Persist { transaction, placed, .. } => {
            format!("persist {} with end {}", transaction.id.0, placed[0].offset)
        }
        Effect::Apply { transaction, at, .. } => format!("apply {} at {at}", transaction.id.0),
        Effect::Reply { id, decision, .. } => format!("reply {}: {}", id.0, told(decision)),
        Effect::Moved { id } => format!("moved {}", id.0),
        Effect::Recall { client, needed } => format!("recall {needed:?} for {client}"),
        Effect::Send { to, message: Message::Decided { id, at, .. } } => {
            format!("decided {} to {} at {at}", id.0, to.0)
        }
        Effect::Send { message, .. } => format!("send {message:?}"),
        Effect::Recover { message, .. } => format!("recover {message:?}"),
        Effect::Fence { id, .. } => format!("fence {}", id.0),
        Effect::Misplaced { transaction, end, .. } => {
            format!("misplaced {} at {end}", transaction.id.0)
        }
        Effect::Note { .. } | Effect::NoteHeard { .. } | Effect::Resume => return None,
    })
}

fn told(decision: &Decision) -> String {
    match decision {
        Decision::Commit(at) => at.to_string(),
        Decision::Abort(abort) => abort.kind.name().to_owned(),
    }
}

/// C1.
#[test]
fn a_read_is_refused_when_a_newer_version_was_applied() {
    let mut node = Node::alone();
    node.view.newest = time(5, 0);
    assert_eq!(node.submit(reading(transaction(1, vec![]), 0, 8, 4)), ["reply 1: Conflict"]);
    assert_eq!(node.submit(reading(transaction(2, vec![]), 0, 8, 5)), ["reply 2: 0.1.0"]);
}

/// C1, C4.
#[test]
fn a_read_is_refused_while_a_write_of_its_bytes_is_in_flight() {
    let mut node = Node::alone();
    node.submit(transaction(1, vec![write(0, 8)]));
    assert_eq!(node.submit(reading(transaction(2, vec![]), 4, 12, 9)), ["reply 2: Conflict"]);
    assert_eq!(node.submit(reading(transaction(3, vec![]), 8, 12, 9)), ["reply 3: 0.2.0"]);
}

/// C2.
#[test]
fn a_write_waits_for_the_validated_read_it_overlaps_until_that_is_decided() {
    let mut node = Node::of_three(0);
    node.submit(reading(transaction(1, vec![write(50, 8)]), 0, 8, 0));
    node.persisted(1);
    assert!(node.submit(transaction(2, vec![write(4, 8)])).is_empty());
    let told = node.backward(1, Decision::Commit(time(9, 2)));
    let applied = ["apply 1 at 0.9.2", "stable 1 to 1", "stable 1 to 2", "reply 1: 0.9.2"];
    assert_eq!(told[..4], applied);
    assert_eq!(told[4..], ["persist 2 at 0.10.0"]);
}

/// C9: what read before the write is shown before it.
#[test]
fn a_write_is_applied_after_the_decided_read_that_it_overlaps() {
    let mut node = Node::alone();
    let elsewhere = |mut transaction: Transaction| {
        transaction.blobs[0].blob = blob("b");
        transaction
    };
    node.submit(elsewhere(transaction(1, vec![write(0, 8)])));
    node.submit(reading(elsewhere(transaction(2, vec![write(0, 8)])), 0, 8, 0));
    assert!(node.submit(transaction(3, vec![write(0, 8)])).is_empty());
    let told = node.persisted(2);
    assert_eq!(told, ["persist 3 at 0.3.0"], "decided, and the first may come before");
    assert!(node.persisted(3).is_empty(), "decided, and what read before it is not shown");
    let told = node.persisted(1);
    let applied: Vec<_> = told.iter().filter(|told| told.starts_with("apply")).collect();
    assert_eq!(applied, ["apply 1 at 0.1.0", "apply 2 at 0.2.0", "apply 3 at 0.3.0"]);
}

/// C2, C4.
#[test]
fn a_write_beside_the_validated_read_does_not_wait() {
    let mut node = Node::of_three(0);
    node.submit(reading(transaction(1, vec![write(50, 8)]), 0, 8, 0));
    assert_eq!(node.submit(transaction(2, vec![write(8, 8)])), ["persist 2 at 0.2.0"]);
}

/// C1, C2: nobody is overtaken for ever.
#[test]
fn who_comes_later_stands_behind_who_waits() {
    let mut node = Node::of_three(0);
    node.chain = chain_of_three_writing(false);
    node.submit(reading(transaction(1, vec![]), 0, 8, 0));
    node.chain = chain_of_three();
    assert!(node.submit(transaction(2, vec![write(0, 8)])).is_empty());
    let third = node.submit(reading(transaction(3, vec![]), 0, 8, 0));
    assert!(third.is_empty(), "a read that came later waits behind the write: {third:?}");
    let told = node.backward(1, Decision::Commit(time(9, 2)));
    assert_eq!(told, ["reply 1: 0.9.2", "persist 2 at 0.10.0", "reply 3: Conflict"]);
}

/// C3.
#[test]
fn a_proposal_is_durable_before_the_highest_is_passed_on() {
    let mut node = Node::of_three(1);
    node.commit.observe(time(20, 2));
    assert_eq!(
        node.forward(transaction(1, vec![write(0, 8)]), time(7, 0)),
        ["persist 1 at 0.21.1"]
    );
    assert_eq!(node.persisted(1), ["forward 1 to 2 at 0.21.1"]);
    assert_eq!(
        node.forward(transaction(2, vec![write(0, 8)]), time(70, 0)),
        ["persist 2 at 0.71.1"]
    );
    assert_eq!(node.persisted(1), [""; 0], "told twice, it does nothing");
}

/// C4.
#[test]
fn writes_of_the_same_bytes_are_validated_side_by_side() {
    let mut node = Node::of_three(0);
    assert_eq!(node.submit(transaction(1, vec![write(0, 8)])), ["persist 1 at 0.1.0"]);
    assert_eq!(node.submit(transaction(2, vec![write(0, 8)])), ["persist 2 at 0.2.0"]);
    let replace = Operation::Replace { payload: Payload::Inline(bytes(3)) };
    assert_eq!(node.submit(transaction(3, vec![replace])), ["persist 3 at 0.3.0"]);
}

/// C5, C7.
#[test]
fn the_tail_decides_at_the_highest_proposal_and_applies_before_it_tells() {
    let mut node = Node::of_three(2);
    node.forward(transaction(1, vec![write(0, 8)]), time(40, 1));
    let all = ["decided 1 to 0 at 0.41.2", "decided 1 to 1 at 0.41.2"];
    let then = ["apply 1 at 0.41.2", "backward 1 to 1: 0.41.2"];
    assert_eq!(node.persisted(1), [all, then].concat());
}

/// C6, C7.
#[test]
fn a_decided_transaction_waits_for_an_overlapping_one_that_may_come_before() {
    let mut node = Node::of_three(1);
    node.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
    node.forward(transaction(2, vec![write(4, 8)]), time(2, 0));
    for id in [1, 2] {
        node.persisted(id);
    }
    assert!(node.backward(2, Decision::Commit(time(30, 2))).is_empty());
    let told = node.backward(1, Decision::Commit(time(29, 2)));
    let first = ["apply 1 at 0.29.2", "backward 1 to 0: 0.29.2"];
    assert_eq!(told[..2], first);
    assert_eq!(told[2..], ["apply 2 at 0.30.2", "backward 2 to 0: 0.30.2"]);
}

/// C6.
#[test]
fn a_decided_transaction_goes_on_when_the_one_before_gets_a_higher_timestamp_or_aborts() {
    let aborted = Decision::Abort(Abort::new(ErrorKind::Conflict, "elsewhere"));
    for decision in [Decision::Commit(time(31, 2)), aborted] {
        let mut node = Node::of_three(1);
        node.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
        node.forward(transaction(2, vec![write(4, 8)]), time(2, 0));
        for id in [1, 2] {
            node.persisted(id);
        }
        assert!(node.backward(2, Decision::Commit(time(30, 2))).is_empty());
        let told = node.backward(1, decision);
        assert!(told.contains(&"apply 2 at 0.30.2".to_owned()), "{told:?}");
    }
}

/// C8.
#[test]
fn the_clock_moves_past_every_timestamp_it_sees() {
    let mut node = Node::of_three(1);
    node.forward(transaction(1, vec![write(0, 8)]), time(50, 0));
    assert_eq!(node.commit.clock(), time(51, 1));
    node.persisted(1);
    node.backward(1, Decision::Commit(time(80, 2)));
    assert_eq!(node.commit.clock(), time(80, 2));
    node.commit.observe(time(3, 0));
    assert_eq!(node.commit.clock(), time(80, 2));
}

#[test]
fn an_abort_goes_back_to_those_who_validated_and_frees_those_who_wait() {
    let mut node = Node::of_three(0);
    node.submit(reading(transaction(1, vec![write(0, 8)]), 0, 8, 0));
    node.persisted(1);
    assert!(node.submit(transaction(2, vec![write(0, 8)])).is_empty());
    let told = node.backward(1, Decision::Abort(Abort::new(ErrorKind::Conflict, "elsewhere")));
    assert_eq!(told, ["reply 1: Conflict", "persist 2 at 0.2.0"]);
    let mut middle = Node::of_three(1);
    middle.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
    middle.persisted(1);
    let told = middle.backward(1, Decision::Abort(Abort::new(ErrorKind::Conflict, "elsewhere")));
    assert_eq!(told, ["backward 1 to 0: Conflict"]);
    assert!(middle.commit.is_empty());
}

/// F9: else it could crash, come back with what it has validated, and commit that when the head is
/// lost, which has answered. Seed 1795592012058 of the simulator.
#[test]
fn who_has_validated_passes_an_abort_back_when_that_is_durable() {
    let mut middle = Node::of_three(1);
    middle.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
    middle.persisted(1);
    let abort = Decision::Abort(Abort::new(ErrorKind::Unavailable, "the tail cannot write"));
    let (id, attempt) = (TransactionId(1), Attempt::default());
    let (outcomes, usages) = (Outcomes::new(), vec![]);
    let message = Message::Backward { id, attempt, decision: abort, outcomes, usages };
    let mut effects = Vec::new();
    middle.commit.step(0, Event::Receive(message), &middle.view, &mut effects);
    assert!(matches!(effects[..], [Effect::Note { is_synced: true, .. }]), "{effects:?}");
    let told = middle.step(Event::Noted { id });
    assert_eq!(told, ["backward 1 to 0: Unavailable"]);
}

/// F7: a recipient that has become the holder forgot, when it had been down, what it had applied
/// before, and told a client that it had never begun. Seeds 1795700000156 (single-moves) and
/// 1795595515595 of the simulator.
#[test]
fn what_a_recipient_may_have_alone_one_day_is_kept_as_what_a_holder_has() {
    let singles = [KeyspaceId(1)].into();
    for position in 0..3 {
        let kept: Vec<_> = held_alone(&chain_of_three(), position, &singles).collect();
        assert_eq!(kept, [KeyspaceId(1)], "at {position}");
    }
    assert_eq!(held_alone(&chain_of_three(), 2, &[KeyspaceId(2)].into()).next(), None);
}

#[test]
fn a_record_that_cannot_be_made_durable_aborts_as_unavailable() {
    let mut node = Node::alone();
    node.submit(transaction(1, vec![write(0, 8)]));
    let told = node.step(Event::PersistFailed { id: TransactionId(1) });
    assert_eq!(told, ["reply 1: Unavailable"]);
    assert!(node.commit.is_empty());
}

#[test]
fn a_transaction_submitted_twice_is_run_once() {
    let mut node = Node::alone();
    node.submit(transaction(1, vec![write(0, 8)]));
    assert!(node.submit(transaction(1, vec![write(0, 8)])).is_empty());
    assert_eq!(node.persisted(1), ["apply 1 at 0.1.0", "reply 1: 0.1.0"]);
}

#[test]
fn messages_of_another_attempt_or_about_nobody_known_do_nothing() {
    let mut node = Node::of_three(1);
    node.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
    node.persisted(1);
    let decision = Decision::Commit(time(9, 2));
    assert!(node.backward(2, decision.clone()).is_empty());
    let attempt = Attempt { number: 1, ..Attempt::default() };
    let id = TransactionId(1);
    let (outcomes, usages) = (Outcomes::new(), vec![]);
    let other = Message::Backward { id, attempt, decision, outcomes, usages };
    assert!(node.step(Event::Receive(other)).is_empty());
    assert!(
        node.step(Event::Receive(Message::Stable {
            id: TransactionId(2),
            by: NodeId(0),
            outcomes: Outcomes::new()
        }))
        .is_empty()
    );
    assert_eq!(node.commit.len(), 1);
}

/// R2.
#[test]
fn a_record_is_forgotten_when_its_authority_has_passed_it_back() {
    let mut node = Node::of_three(1);
    node.forward(transaction(1, vec![write(0, 8)]), time(1, 0));
    node.persisted(1);
    node.backward(1, Decision::Commit(time(9, 2)));
    assert_eq!(node.commit.len(), 1);
    node.step(Event::Receive(Message::Stable {
        id: TransactionId(1),
        by: NodeId(0),
        outcomes: Outcomes::new(),
    }));
    assert!(node.commit.is_empty());
}

#[test]
fn a_head_refuses_more_than_its_bound() {
    let mut node = Node::alone();
    for id in 0..IN_FLIGHT_MAX as u128 {
        let mut own = transaction(id, vec![write(0, 8)]);
        own.blobs[0].blob = blob(&id.to_string());
        let (transaction, chain) = (Arc::new(own), node.chain.clone());
        node.commit.step(
            0,
            Event::Submit { transaction, chain, begun: Timestamp::ZERO },
            &EMPTY,
            &mut Vec::new(),
        );
    }
    let (transaction, chain) = (Arc::new(transaction(1 << 32, vec![write(0, 8)])), node.chain);
    let mut effects = Vec::new();
    node.commit.step(
        0,
        Event::Submit { transaction, chain, begun: Timestamp::ZERO },
        &EMPTY,
        &mut effects,
    );
    assert_eq!(
        effects.iter().filter_map(brief).collect::<Vec<_>>(),
        ["reply 4294967296: Unavailable"]
    );
}
