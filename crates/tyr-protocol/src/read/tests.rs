//! Each rule of the read machine by itself, at one node beside a commit machine.

use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyRange, KeyspaceId, Number, NumberType,
    Operation, Payload, Transaction,
};

use super::*;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::{self, Attempt, Decision, Message, Outcomes};
use crate::footprint::Footprint;
use crate::view::View;

/// Nothing was ever applied.
struct Nothing;

impl View for Nothing {
    fn newest_overlapping(&self, _: &BlobName, _: ByteRange, _: bool) -> Timestamp {
        Timestamp::ZERO
    }

    fn is_listing_stale(&self, _: KeyspaceId, _: &tyr_types::Listed, _: Timestamp) -> bool {
        false
    }

    fn stat(&self, _: &BlobName) -> Option<u64> {
        None
    }

    fn matches(&self, _: &BlobName, _: u64, _: &[u8]) -> bool {
        false
    }

    fn number(&self, _: &BlobName, _: u64, _: NumberType) -> Option<Number> {
        None
    }

    fn chunk_size(&self, _: KeyspaceId) -> u64 {
        1000
    }
}

fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() }
}

fn time(clock: u64, node: u16) -> Timestamp {
    Timestamp { clock, node, ..Timestamp::ZERO }
}

fn range(start: u64, end: u64) -> Footprint {
    Footprint::bytes(ByteRange { start, end })
}

/// A write of bytes 0..8.
fn write() -> Operation {
    Operation::Write { offset: 0, payload: Payload::Inline(Bytes::from_static(&[1; 8])) }
}

fn one(id: TransactionId, operation: Operation) -> Arc<Transaction> {
    let blobs = vec![BlobOperations { blob: blob(), operations: vec![operation] }];
    Arc::new(Transaction { id, blobs, reads: vec![] })
}

/// Nodes 0, 1 and 2 hold the blob, node 0 is its authority; transactions write bytes 0..8.
struct Node {
    commit: Commit,
    reads: Reads,
    chain: Chain,
    asked: u64,
}

impl Node {
    fn of_three(node: u16) -> Self {
        let piece = Piece {
            blob: blob(),
            range: ByteRange::ALL,
            is_attributes: true,
            is_written: true,
            authority: NodeId(0),
        };
        let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(vec![piece.clone()]) };
        Self::new(node, Chain::new((0..3).map(hop).collect(), Ends::new()).unwrap())
    }

    fn new(node: u16, chain: Chain) -> Self {
        let (commit, reads) = (Commit::new(NodeId(node)), Reads::new(NodeId(node)));
        Self { commit, reads, chain, asked: 0 }
    }

    /// Steps the commit machine, and the read machine with what moved.
    fn step(&mut self, event: commit::Event) -> Vec<Effect> {
        let (mut asked, mut effects) = (Vec::new(), Vec::new());
        self.commit.step(0, event, &Nothing, &mut asked);
        for effect in asked {
            if let commit::Effect::Moved { id: transaction } = effect {
                let moved = Event::Moved { transaction };
                self.reads.step(moved, &mut self.commit, &mut effects);
            }
        }
        self.commit.invariants();
        self.reads.invariants(&self.commit);
        effects
    }

    /// A write of 0..8 is validated here, with a proposal above `highest`.
    fn validate(&mut self, id: u128, highest: Timestamp) {
        self.validate_one(id, write(), highest);
    }

    /// The same of an operation.
    fn validate_one(&mut self, id: u128, operation: Operation, highest: Timestamp) {
        let id = TransactionId(id);
        let transaction = one(id, operation);
        let (chain, attempt) = (self.chain.clone(), Attempt::default());
        let (begun, known, usages) = (Timestamp::ZERO, None, vec![]);
        let message =
            Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
        self.step(commit::Event::Receive(message));
        self.step(commit::Event::Persisted { id, attempt });
    }

    fn decide(&mut self, id: u128, decision: Decision) -> Vec<Effect> {
        let (id, attempt) = (TransactionId(id), Attempt::default());
        let (outcomes, usages) = (Outcomes::new(), vec![]);
        let message = Message::Backward { id, attempt, decision, outcomes, usages };
        self.step(commit::Event::Receive(message))
    }

    fn commit_at(&mut self, id: u128, at: Timestamp) -> Vec<Effect> {
        self.decide(id, Decision::Commit(at))
    }

    fn stable(&mut self, id: u128) {
        let message = Message::Stable {
            id: TransactionId(id),
            by: NodeId(0),
            outcomes: commit::Outcomes::new(),
        };
        self.step(commit::Event::Receive(message));
    }

    /// Asks; what it came to, in short.
    fn ask(&mut self, footprint: Footprint, kind: Kind) -> String {
        self.asked += 1;
        let (id, authority) = (ReadId(self.asked), NodeId(0));
        let request = Request { id, blob: blob(), footprint, authority, kind };
        let mut effects = Vec::new();
        self.reads.step(Event::Ask(request), &mut self.commit, &mut effects);
        self.reads.invariants(&self.commit);
        brief(&effects)
    }
}

impl Node {
    /// Asks for what begins with `prefix`; what it came to, in short.
    fn list(&mut self, prefix: &'static str, at: Option<Timestamp>) -> String {
        self.asked += 1;
        let (keyspace, keys) = (KeyspaceId(1), KeyRange::of(prefix.as_bytes(), None));
        let listing = Listing { id: ReadId(self.asked), keyspace, keys, at };
        let mut effects = Vec::new();
        self.reads.step(Event::List(listing), &mut self.commit, &mut effects);
        self.reads.invariants(&self.commit);
        brief(&effects)
    }
}

fn brief(effects: &[Effect]) -> String {
    let brief = |effect: &Effect| match effect {
        Effect::Serve { at: None, .. } => "newest".to_owned(),
        Effect::Serve { at: Some(at), .. } => format!("at {at}"),
        Effect::Forward { to, .. } => format!("to {}", to.0),
        Effect::List { .. } => "lists".to_owned(),
        Effect::AnswerClock { clock, .. } => format!("clock {clock}"),
        Effect::Refuse { abort, .. } => abort.kind.name().to_owned(),
    };
    match effects {
        [] => "waits".to_owned(),
        effects => effects.iter().map(brief).collect::<Vec<_>>().join(", "),
    }
}

/// R1.
#[test]
fn a_replica_answers_a_direct_read_of_a_clean_range_and_forwards_others() {
    let mut node = Node::of_three(1);
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "newest");
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(4, 9), Kind::Direct), "to 0", "undecided");
    assert_eq!(node.ask(range(8, 16), Kind::Direct), "newest", "beside it");
}

/// R1.
#[test]
fn the_authority_waits_until_what_was_in_flight_on_arrival_is_applied() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits");
    node.validate(2, time(1, 0));
    assert_eq!(brief(&node.commit_at(1, time(2, 0))), "newest", "not for what came after");
}

/// R1: what was shown anywhere before it came was decided here, at or below the clock.
#[test]
fn a_direct_read_waits_for_what_was_in_flight_unless_that_is_decided_above_its_arrival() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    node.validate(2, time(2, 0));
    assert_eq!(brief(&node.commit_at(2, time(40, 2))), "waits", "the first may be before it");
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits", "the second may have been shown");
    node.validate(3, time(1, 0));
    assert_eq!(brief(&node.commit_at(1, time(50, 2))), "newest", "the second is applied by that");
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits", "the first may be shown from now on");
    assert_eq!(brief(&node.commit_at(3, time(60, 2))), "newest", "the first is applied by that");
}

/// R1, F3: its number of arrival is another then, its timestamp is not.
#[test]
fn a_direct_read_waits_for_what_comes_again_and_was_committed_before_it_came() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits");
    let (id, attempt) = (TransactionId(1), Attempt { number: 1, ..Attempt::default() });
    let at = node.commit.pending_at(id).unwrap();
    let (transaction, chain, known) = (one(id, write()), node.chain.clone(), Some(at));
    let (begun, usages) = (Timestamp::ZERO, vec![]);
    let highest = at;
    let again = Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
    assert_eq!(brief(&node.step(commit::Event::Receive(again))), "waits");
    assert_eq!(brief(&node.step(commit::Event::Persisted { id, attempt })), "waits");
    let (decision, outcomes, usages) = (Decision::Commit(at), Outcomes::new(), vec![]);
    let back = Message::Backward { id, attempt, decision, outcomes, usages };
    assert_eq!(brief(&node.step(commit::Event::Receive(back))), "newest");
}

/// R1, R5.
#[test]
fn reads_wait_for_the_last_of_many_transactions() {
    let mut node = Node::of_three(0);
    (1..=40).for_each(|id| node.validate(id, time(1, 0)));
    for kind in [Kind::Direct, Kind::First, Kind::Clock, Kind::Direct] {
        assert_eq!(node.ask(range(0, 8), kind), "waits");
    }
    let told: Vec<String> = (1..=40)
        .map(|id| brief(&node.commit_at(id, time(u64::try_from(id).unwrap() + 1, 0))))
        .collect();
    let (last, before) = told.split_last().unwrap();
    assert!(before.iter().all(|told| told == "waits"), "{before:?}");
    assert_eq!(last, "newest, at 0.41.0, clock 0.41.0, newest");
}

/// R1.
#[test]
fn an_abort_ends_the_wait_of_a_direct_read() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits");
    let aborted = Decision::Abort(Abort::new(ErrorKind::Conflict, "elsewhere"));
    assert_eq!(brief(&node.decide(1, aborted)), "newest");
}

/// R1, for a chain of one.
#[test]
fn a_direct_read_does_not_wait_for_a_chain_of_one_unless_longer_ones_are_in_flight() {
    let mut node = Node::new(0, Chain::alone(NodeId(0)));
    let chain = node.chain.clone();
    let id = TransactionId(1);
    node.step(commit::Event::Submit {
        transaction: one(id, write()),
        chain,
        begun: Timestamp::ZERO,
    });
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "newest");
    assert_eq!(node.ask(Footprint::BLOB, Kind::First), "waits", "its proposal is at or below S");
    assert_eq!(
        brief(&node.step(commit::Event::Persisted { id, attempt: Attempt::default() })),
        "at 0.1.0"
    );

    let mut node = Node::of_three(0);
    let chain = Chain::alone(NodeId(0));
    node.step(commit::Event::Submit {
        transaction: one(id, write()),
        chain,
        begun: Timestamp::ZERO,
    });
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "newest");
    node.validate(2, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits");
}

/// R2: bytes between where a blob ended and where it ends now are a hole by it, and not its own.
#[test]
fn a_replica_may_show_where_a_blob_ends_by_what_is_not_stable() {
    let append = || match write() {
        Operation::Write { payload, .. } => Operation::Append { payload, expected: None },
        _ => unreachable!("it is a write"),
    };
    for (operation, may_show) in
        [(Operation::Truncate { len: 500 }, true), (write(), true), (append(), false)]
    {
        let mut node = Node::of_three(1);
        let (at, blob) = (time(20, 2), blob());
        node.validate_one(1, operation, time(10, 0));
        assert!(!node.commit.may_show_growth(&blob, || time(30, 0)), "it is not applied");
        node.commit_at(1, at);
        assert_eq!(node.commit.may_show_growth(&blob, || at), may_show);
        assert!(!node.commit.may_show_growth(&blob, || at.previous()), "it left the end as it was");
        node.stable(1);
        assert!(!node.commit.may_show_growth(&blob, || at));
    }
}

/// R2.
#[test]
fn a_replica_does_not_show_what_its_authority_has_not_passed_back() {
    let mut node = Node::of_three(2);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "to 0", "applied, not stable");
    node.stable(1);
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "newest");
}

/// R3.
#[test]
fn a_read_of_a_whole_blob_is_placed_after_what_was_in_flight_on_arrival() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(Footprint::BLOB, Kind::Whole), "waits");
    assert_eq!(brief(&node.commit_at(1, time(70, 2))), "at 0.70.2");
}

/// R3, R5.
#[test]
fn a_read_of_a_whole_blob_is_complete_at_its_timestamp() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(Footprint::BLOB, Kind::Whole), "waits");
    node.validate(2, time(90, 1));
    let told = brief(&node.commit_at(1, time(70, 2)));
    assert_eq!(told, "waits", "it is placed at 91, where the second may be too");
    assert_eq!(brief(&node.commit_at(2, time(95, 2))), "at 0.91.0", "and is not");
}

/// V1.
#[test]
fn a_first_read_that_waits_counts_at_its_timestamp() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    let clock = node.commit.clock();
    assert_eq!(node.reads.oldest_waiting(&blob()), None);
    assert_eq!(node.ask(Footprint::BLOB, Kind::First), "waits");
    assert_eq!(node.reads.oldest_waiting(&blob()), Some(clock));
    node.commit_at(1, time(2, 0));
    assert_eq!(node.reads.oldest_waiting(&blob()), None, "it is answered");
}

/// R3.
#[test]
fn a_version_manager_that_is_not_clean_forwards_the_read_of_a_whole_blob() {
    let mut node = Node::of_three(1);
    assert_eq!(node.ask(Footprint::BLOB, Kind::Whole), "at 0.0.0");
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(Footprint::BLOB, Kind::Whole), "to 0");
}

/// R4, R5.
#[test]
fn a_read_at_s_moves_the_clock_so_that_nothing_new_comes_below() {
    let mut node = Node::of_three(1);
    assert_eq!(node.ask(range(0, 8), Kind::At(time(50, 2))), "at 0.50.2");
    node.validate(1, Timestamp::ZERO);
    assert!(node.commit.clock() > time(50, 2), "its proposal is above S");
    assert_eq!(node.ask(range(0, 8), Kind::At(time(50, 2))), "at 0.50.2", "so it changes nothing");
}

/// R5.
#[test]
fn a_read_at_s_waits_for_what_may_still_be_at_or_below_s() {
    let mut node = Node::of_three(0);
    node.validate(1, time(10, 0));
    assert_eq!(node.ask(range(0, 8), Kind::At(time(9, 0))), "at 0.9.0", "proposed above");
    assert_eq!(node.ask(range(8, 16), Kind::At(time(20, 0))), "at 0.20.0", "beside it");
    assert_eq!(node.ask(range(0, 8), Kind::At(time(20, 0))), "waits");
    assert_eq!(brief(&node.commit_at(1, time(11, 0))), "at 0.20.0");
}

/// R5.
#[test]
fn a_read_at_s_goes_on_when_what_it_waits_for_is_decided_above() {
    let mut node = Node::of_three(0);
    node.validate(1, time(10, 0));
    node.validate(2, time(10, 0));
    assert_eq!(node.ask(range(0, 8), Kind::At(time(15, 0))), "waits");
    assert_eq!(brief(&node.commit_at(2, time(30, 2))), "waits", "the first may be below");
    assert_eq!(brief(&node.commit_at(1, time(20, 2))), "at 0.15.0", "both are above");
}

/// R5.
#[test]
fn a_replica_that_is_not_clean_up_to_s_forwards() {
    let mut node = Node::of_three(2);
    node.validate(1, time(10, 0));
    assert_eq!(node.ask(range(0, 8), Kind::At(time(11, 2))), "to 0", "applied, not stable");
    assert_eq!(node.ask(range(0, 8), Kind::At(time(9, 0))), "at 0.9.0", "but it is above 9");
    node.stable(1);
    assert_eq!(node.ask(range(0, 8), Kind::At(time(11, 2))), "at 0.11.2");
}

/// R6.
#[test]
fn a_snapshot_takes_the_clock_on_arrival() {
    let mut node = Node::of_three(0);
    node.commit.observe(time(40, 1));
    assert_eq!(node.ask(range(0, 8), Kind::First), "at 0.40.1");
    node.validate(1, time(40, 1));
    assert_eq!(node.ask(range(0, 8), Kind::First), "waits");
    assert_eq!(brief(&node.commit_at(1, time(60, 2))), "at 0.41.0", "decided above it");
}

/// R6.
#[test]
fn a_clock_is_answered_by_the_authority_after_what_was_in_flight_on_arrival() {
    let mut replica = Node::of_three(1);
    assert_eq!(replica.ask(range(0, 8), Kind::Clock), "to 0");
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Clock), "waits");
    assert_eq!(brief(&node.commit_at(1, time(60, 2))), "clock 0.60.2");
}

/// Q1.
#[test]
fn a_listing_at_s_waits_for_all_that_may_still_be_at_or_below_s() {
    let mut node = Node::of_three(0);
    node.validate(1, time(10, 0));
    node.validate(2, time(10, 0));
    node.validate(3, time(40, 0));
    assert_eq!(node.list("", Some(time(9, 0))), "lists", "proposed above");
    assert_eq!(node.list("b", Some(time(20, 0))), "lists", "of other blobs");
    assert_eq!(node.list("", Some(time(20, 0))), "waits");
    assert_eq!(node.reads.oldest_waiting(&blob()), Some(time(20, 0)), "its versions stay");
    assert_eq!(brief(&node.commit_at(2, time(13, 0))), "waits", "the first is before it");
    assert_eq!(brief(&node.commit_at(1, time(11, 0))), "lists", "the third is above");
}

/// Q1.
#[test]
fn a_listing_goes_on_when_what_it_waits_for_is_decided_above_or_aborted() {
    let mut node = Node::of_three(0);
    node.validate(1, time(10, 0));
    node.validate(2, time(10, 0));
    assert_eq!(node.list("a", Some(time(15, 0))), "waits");
    assert_eq!(brief(&node.commit_at(2, time(30, 2))), "waits", "the first may be below");
    let aborted = Decision::Abort(Abort::new(ErrorKind::Conflict, "elsewhere"));
    assert_eq!(brief(&node.decide(1, aborted)), "lists");
}

/// Q1.
#[test]
fn a_listing_at_s_moves_the_clock_so_that_nothing_new_comes_below() {
    let mut node = Node::of_three(0);
    assert_eq!(node.list("", Some(time(50, 2))), "lists");
    node.validate(1, Timestamp::ZERO);
    assert!(node.commit.clock() > time(50, 2), "its proposal is above S");
    assert_eq!(node.list("", Some(time(50, 2))), "lists", "so it changes nothing");
}

/// Q1.
#[test]
fn a_listing_of_the_newest_waits_for_what_was_in_flight_on_arrival() {
    let mut node = Node::of_three(0);
    node.validate(1, time(10, 0));
    assert_eq!(node.list("", None), "waits");
    node.validate(2, time(10, 0));
    assert_eq!(brief(&node.commit_at(1, time(11, 0))), "lists", "not for what came after");
}

/// Q1.
#[test]
fn without_it_a_listing_shows_half_of_what_was_in_flight() {
    let mut node = Node::of_three(0);
    node.reads.rules.broken = Some(Rule::Q1);
    node.validate(1, time(10, 0));
    assert_eq!(node.list("", Some(time(20, 0))), "lists", "the first is not applied");
}

#[test]
fn a_read_that_nobody_waits_for_leaves_nothing_behind() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "waits");
    let cancel = Event::Cancel { id: ReadId(node.asked) };
    node.reads.step(cancel, &mut node.commit, &mut Vec::new());
    assert!(node.reads.is_empty());
    node.reads.invariants(&node.commit);
    assert_eq!(brief(&node.commit_at(1, time(60, 2))), "waits", "and nothing is served");
}

#[test]
fn more_reads_than_may_wait_are_refused() {
    let mut node = Node::of_three(0);
    node.validate(1, time(1, 0));
    for id in 0..PARKED_MAX as u64 {
        let (id, authority) = (ReadId(1 << 32 | id), NodeId(0));
        let request =
            Request { id, blob: blob(), footprint: range(0, 8), authority, kind: Kind::Direct };
        node.reads.step(Event::Ask(request), &mut node.commit, &mut Vec::new());
    }
    assert_eq!(node.reads.len(), PARKED_MAX);
    assert_eq!(node.ask(range(0, 8), Kind::Direct), "Unavailable");
}
