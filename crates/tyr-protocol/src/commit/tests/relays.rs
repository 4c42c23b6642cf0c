//! Decisions told through relays (C5, C9), at one node of a chain of ten: the tail, node 9, tells
//! nodes 2, 5 and 8; node 5 tells nodes 3 and 4.

use tyr_types::KeyspaceConfig;

use super::*;
use crate::commit::recovery;
use crate::map::ClusterMap;

const ID: TransactionId = TransactionId(1);

fn attempt(number: u32) -> Attempt {
    Attempt { number, ..Attempt::default() }
}

/// A node in the middle, and the chain it passes transaction 1 over.
struct Relay {
    commit: Commit,
    chain: Chain,
}

impl Relay {
    /// Node `node` of ten that hold all of "a"; it knows of nothing yet.
    fn of_ten(node: u16) -> Self {
        let hop = |node| {
            let piece = Piece {
                blob: blob("a"),
                range: ByteRange::ALL,
                is_attributes: true,
                is_written: true,
                authority: NodeId(0),
            };
            Hop { node: NodeId(node), part: Part::Pieces(vec![piece]) }
        };
        let chain = Chain::new((0..10).map(hop).collect(), Ends::new()).unwrap();
        Self { commit: Commit::clustered(NodeId(node)), chain }
    }

    /// The same, once it has validated transaction 1.
    fn that_validated(node: u16) -> Self {
        let mut relay = Self::of_ten(node);
        relay.forward(attempt(0), None);
        relay
    }

    /// Steps; answers what it tells in short.
    fn step(&mut self, event: Event) -> Vec<String> {
        let mut effects = Vec::new();
        self.commit.step(0, event, &EMPTY, &mut effects);
        self.commit.invariants();
        effects.iter().filter_map(brief).filter(|told| !told.starts_with("persist")).collect()
    }

    fn forward(&mut self, attempt: Attempt, known: Option<Timestamp>) -> Vec<String> {
        let transaction = Arc::new(transaction(1, vec![write(0, 8)]));
        let (chain, usages) = (self.chain.clone(), vec![]);
        let (begun, highest) = (time(1, 0), time(2, 0));
        let forward =
            Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
        let mut told = self.step(Event::Receive(forward));
        told.extend(self.step(Event::Persisted { id: ID, attempt }));
        told
    }

    fn decided(&mut self, attempt: Attempt) -> Vec<String> {
        self.step(Event::Receive(Message::Decided { id: ID, attempt, at: time(9, 9) }))
    }

    fn backward(&mut self, attempt: Attempt) -> Vec<String> {
        // No tail decides below what a node of its attempt proposed (C5).
        let decision = Decision::Commit(Timestamp { epoch: attempt.epoch, ..time(9, 9) });
        let (outcomes, usages) = (Outcomes::new(), vec![]);
        let backward = Message::Backward { id: ID, attempt, decision, outcomes, usages };
        self.step(Event::Receive(backward))
    }
}

const PASSED_ON: [&str; 2] = ["decided 1 to 3 at 0.9.9", "decided 1 to 4 at 0.9.9"];
const APPLIED: [&str; 2] = ["apply 1 at 0.9.9", "backward 1 to 4: 0.9.9"];
const NOTHING: [&str; 0] = [];

#[test]
fn the_tail_of_a_long_chain_tells_its_relays() {
    let told = Relay::of_ten(9).forward(attempt(0), None);
    let relays = [2, 5, 8].map(|node| format!("decided 1 to {node} at 0.3.9"));
    assert_eq!(told[..3], relays);
    assert_eq!(told[3..], ["apply 1 at 0.3.9", "backward 1 to 8: 0.3.9"]);
}

#[test]
fn a_relay_passes_a_decision_on_once() {
    let mut relay = Relay::that_validated(5);
    assert_eq!(relay.decided(attempt(0)), PASSED_ON);
    assert_eq!(relay.decided(attempt(0)), NOTHING, "it came twice");
    assert_eq!(relay.backward(attempt(0)), APPLIED);
}

#[test]
fn a_relay_that_hears_of_a_decision_by_the_way_back_passes_it_on_before_it_applies() {
    let mut relay = Relay::that_validated(5);
    assert_eq!(relay.backward(attempt(0)), [PASSED_ON, APPLIED].concat());
    assert_eq!(relay.decided(attempt(0)), NOTHING, "late");
}

#[test]
fn a_relay_that_must_wait_before_it_applies_passes_the_decision_on_at_once() {
    let mut relay = Relay::of_ten(5);
    let (earlier, chain) = (Arc::new(transaction(2, vec![write(0, 8)])), relay.chain.clone());
    let (attempt, begun, highest) = (attempt(0), time(1, 0), time(1, 0));
    let (known, usages, transaction) = (None, vec![], earlier);
    let forward = Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
    relay.step(Event::Receive(forward));
    relay.forward(attempt, None);
    assert_eq!(relay.backward(attempt), PASSED_ON, "the other may come before it (C6)");
}

#[test]
fn a_node_that_is_no_relay_passes_nothing_on() {
    let mut node = Relay::that_validated(4);
    assert_eq!(node.decided(attempt(0)), NOTHING);
    assert_eq!(node.backward(attempt(0)), ["apply 1 at 0.9.9", "backward 1 to 3: 0.9.9"]);
}

/// F2: whoever takes no part in an attempt passes nothing on in it; the newer one has a tail too.
#[test]
fn a_relay_that_promised_to_a_newer_attempt_passes_on_in_that_one_only() {
    let mut relay = Relay::that_validated(5);
    let query = recovery::Message::Query { id: ID, attempt: attempt(1), begun: Timestamp::ZERO };
    assert_eq!(relay.step(Event::Recover(query)), ["fence 1"]);
    assert_eq!(relay.decided(attempt(0)), NOTHING);
    assert_eq!(relay.backward(attempt(0)), NOTHING);
    assert_eq!(relay.forward(attempt(1), Some(time(9, 9))), ["forward 1 to 6 at 0.9.9"]);
    assert_eq!(relay.decided(attempt(0)), NOTHING);
    assert_eq!(relay.decided(attempt(1)), PASSED_ON);
}

/// F3: a pass whose decision is known is told of as any other.
#[test]
fn a_relay_passes_on_in_every_attempt_anew_even_when_it_has_finished_with_the_transaction() {
    let mut relay = Relay::that_validated(5);
    relay.decided(attempt(0));
    relay.backward(attempt(0));
    relay.step(Event::Receive(Message::Stable {
        id: ID,
        by: NodeId(0),
        outcomes: Outcomes::new(),
    }));
    assert!(relay.commit.is_empty());
    assert_eq!(relay.decided(attempt(0)), NOTHING, "it is forgotten, and everyone was told");
    relay.forward(attempt(1), Some(time(9, 9)));
    assert_eq!(relay.decided(attempt(0)), NOTHING);
    assert_eq!(relay.decided(attempt(1)), PASSED_ON);
    assert_eq!(relay.backward(attempt(1)), APPLIED[1..]);
}

/// C9: where all chunks have one authority, nobody tells; so the way back is no reason to.
#[test]
fn nobody_tells_where_the_map_gives_every_chunk_the_same_authority() {
    for (nodes, count) in [(9, 0), (10, 1)] {
        let map = ClusterMap::of(nodes, &[KeyspaceConfig { replication: 9, ..Default::default() }]);
        let chain = map.chain(&transaction(1, vec![write(0, 8)]), &Ends::new()).unwrap();
        let first = Attempt { epoch: map.epoch, ..attempt(0) };
        let (commit, third) = (Commit::clustered(chain.hops()[3].node), chain.hops()[2].node);
        assert_eq!(chain.told_by(3).collect::<Vec<_>>(), [third]);
        let mut relay = Relay { commit, chain };
        relay.step(Event::Install { map: Arc::new(map) });
        relay.forward(first, None);
        let told = relay.backward(first);
        let passed_on = told.iter().filter(|told| told.starts_with("decided")).count();
        assert_eq!(passed_on, count, "{nodes} nodes: {told:?}");
    }
}
