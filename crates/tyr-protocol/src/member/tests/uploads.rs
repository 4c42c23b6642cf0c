//! Pieces that are uploaded ahead of their transaction (U1 to U4), between a few nodes by hand.

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceId, NodeId, Operation,
    Payload, PieceId, PieceRef, Timestamp, Transaction, TransactionId, Uploaded,
};

use super::shelf::{CHUNK, Shelf};
use super::stand::{CLIENT, Stand, map};
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::{self, Attempt, Decision, recovery};
use crate::map::ClusterMap;
use crate::member::{Effect, Event, Member, MemberConfig, Record, Store};
use crate::message::{Address, Asked, Body, Envelope, ReadPart, ReadRequest};
use crate::rule::Rule;
use crate::upload::{Message, StagedPiece, sum_of};

fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("b").unwrap() }
}

fn bytes(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_le_bytes())
}

fn staged(number: u64) -> StagedPiece {
    let piece = PieceRef { id: PieceId::new(CLIENT, number), len: 8, sum: sum_of(&bytes(number)) };
    StagedPiece { piece, blob: blob(), chunk: 0 }
}

/// A transaction that writes pieces of these numbers one after the other.
fn writing(id: u64, numbers: &[u64]) -> Arc<Transaction> {
    let uploaded = Uploaded::of(numbers.iter().map(|number| staged(*number).piece)).unwrap();
    let payload = Payload::Uploaded(Arc::new(uploaded));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob(), operations }];
    Arc::new(Transaction { id: TransactionId::new(CLIENT, id), blobs, reads: Vec::new() })
}

/// Nodes, and what they said to others.
pub struct Nodes {
    pub map: ClusterMap,
    pub stands: Vec<Stand>,
    /// What each has logged.
    logs: Vec<Vec<Record>>,
    /// To clients.
    pub said: Vec<Body>,
    /// Nobody hears these nodes, nor do they hear.
    pub silent: Vec<NodeId>,
}

impl Nodes {
    /// Three that all hold everything.
    pub fn new(rule: Option<Rule>) -> Self {
        Self::of(map(3), rule)
    }

    /// Three of this map.
    pub fn of(map: ClusterMap, rule: Option<Rule>) -> Self {
        let stand = |node| {
            let mut stand = Stand::new(node, &map);
            rule.into_iter().for_each(|rule| stand.member.break_rule(rule));
            stand.lease();
            stand
        };
        let stands = (0..3).map(stand).collect();
        let logs = vec![Vec::new(); 3];
        Self { map, stands, logs, said: Vec::new(), silent: Vec::new() }
    }

    /// A client says something to a node; all that follows happens, syncs at once.
    pub fn say(&mut self, to: u16, body: Body) {
        let (epoch, from) = (self.map.epoch, Address::Client(CLIENT));
        let envelope = Envelope { epoch, incarnation: 0, from, body };
        self.run([(to, Event::Receive(envelope))]);
    }

    fn run(&mut self, events: impl IntoIterator<Item = (u16, Event)>) {
        let mut events: VecDeque<(u16, Event)> = events.into_iter().collect();
        while let Some((node, event)) = events.pop_front() {
            let place = usize::from(node);
            for effect in self.stands[place].step(event) {
                match effect {
                    Effect::Send { to: Address::Node(to), envelope } => {
                        let is_heard = !self.silent.contains(&to);
                        if is_heard && !self.silent.contains(&NodeId(node)) {
                            events.push_back((to.0, Event::Receive(envelope)));
                        }
                    }
                    Effect::Send { to: Address::Client(_), envelope } => {
                        self.said.push(envelope.body);
                    }
                    Effect::Persist { number, record, is_synced } => {
                        self.logs[place].push(record);
                        if is_synced {
                            events.push_back((node, Event::Persisted { number }));
                        }
                    }
                    Effect::Serve { request, at } => {
                        let envelope = self.serve(node, &request, at);
                        match request.asker {
                            Address::Node(to) if to.0 == node || !self.silent.contains(&to) => {
                                events.push_back((to.0, Event::Receive(envelope)));
                            }
                            Address::Client(_) => self.said.push(envelope.body),
                            Address::Node(_) | Address::Monitors => {}
                        }
                    }
                    Effect::Resume => events.push_back((node, Event::Resume)),
                    Effect::Yield => events.push_back((node, Event::Continue)),
                    Effect::Send { to: Address::Monitors, .. }
                    | Effect::List { .. }
                    | Effect::Found(_) => {}
                }
            }
        }
    }

    /// What a node has of a range.
    fn serve(&self, node: u16, request: &ReadRequest, at: Option<Timestamp>) -> Envelope {
        let Stand { member, shelf, .. } = &self.stands[usize::from(node)];
        let (chunk, from) = (request.range.start / CHUNK, (request.range.start % CHUNK) as usize);
        let content = shelf.content(&(request.blob.clone(), chunk), at);
        let (content, version) = content.expect("nothing is folded");
        let bytes: Vec<u8> = content.iter().flat_map(|number| number.to_le_bytes()).collect();
        let end = (from + request.range.len() as usize).min(bytes.len());
        let bytes = Bytes::copy_from_slice(&bytes[from.min(end)..end]);
        let (read, range, clock) = (request.read, request.range, member.clock());
        let size = None;
        member.envelope(Body::Part(ReadPart { read, range, at, version, bytes, size, clock }))
    }

    /// All nodes have a tick, after so long.
    pub fn tick(&mut self, after_us: u64) {
        self.stands.iter_mut().for_each(|stand| stand.now_us += after_us);
        self.run((0..3).map(|node| (node, Event::Tick)));
    }

    fn stage(&mut self, to: u16, number: u64) {
        let message = Message::Stage { number, staged: staged(number), bytes: bytes(number) };
        self.say(to, Body::Upload(message));
    }

    /// Only this node gets the piece.
    fn stage_at(&mut self, node: u16, number: u64) {
        let silent = std::mem::take(&mut self.silent);
        self.silent = (0..3).filter(|other| *other != node).map(NodeId).collect();
        self.stage(node, number);
        self.silent = silent;
    }

    pub fn submit(&mut self, transaction: &Arc<Transaction>) {
        self.submit_to(0, transaction);
    }

    pub fn submit_to(&mut self, head: u16, transaction: &Arc<Transaction>) {
        let begun_us = self.stands[0].now_us;
        let (transaction, ends) = (Arc::clone(transaction), Ends::new());
        let body = Body::Submit { transaction, ends, begun_us, is_retry: false, settled: 0 };
        self.say(head, body);
    }

    /// What the transaction of this number came to, if its client was told.
    pub fn decision(&self, number: u64) -> Option<&Decision> {
        let id = TransactionId::new(CLIENT, number);
        self.said.iter().find_map(|body| match body {
            Body::Reply { id: of, decision, .. } if *of == id => Some(decision),
            _ => None,
        })
    }

    pub fn is_committed(&self, number: u64) -> bool {
        matches!(self.decision(number), Some(Decision::Commit(_)))
    }

    fn abort_kind(&self, number: u64) -> Option<ErrorKind> {
        match self.decision(number)? {
            Decision::Commit(_) => None,
            Decision::Abort(abort) => Some(abort.kind),
        }
    }

    fn is_staged(&self, number: u64) -> bool {
        let is_it = |body: &Body| *body == Body::Upload(Message::Staged { number });
        self.said.iter().any(is_it)
    }

    /// The first numbers of the blob at a node.
    fn content(&self, node: u16) -> [u64; 2] {
        let (content, _) =
            self.stands[usize::from(node)].shelf.content(&(blob(), 0), None).unwrap();
        [content[0], content[1]]
    }

    fn staged_at(&self, node: u16) -> usize {
        let stand = &self.stands[usize::from(node)];
        assert_eq!(stand.shelf.pieces.len(), stand.member.staged().0, "both know the same");
        stand.shelf.pieces.len()
    }
}

/// U1.
#[test]
fn a_piece_is_answered_when_it_is_durable_at_all_and_is_the_blobs_when_its_transaction_is() {
    let mut nodes = Nodes::new(None);
    nodes.silent = vec![NodeId(2)];
    nodes.stage(0, 5);
    assert!(!nodes.is_staged(5), "one has not got it");
    nodes.silent.clear();
    nodes.stage(1, 5);
    nodes.stage(1, 6);
    assert!(nodes.is_staged(5) && nodes.is_staged(6));
    assert_eq!([0, 1, 2].map(|node| nodes.staged_at(node)), [2; 3]);
    nodes.submit(&writing(1, &[5, 6]));
    assert!(nodes.is_committed(1), "{:?}", nodes.decision(1));
    assert_eq!([0, 1, 2].map(|node| nodes.content(node)), [[5, 6]; 3]);
    assert_eq!([0, 1, 2].map(|node| nodes.staged_at(node)), [0; 3]);
}

/// U1.
#[test]
fn what_is_not_the_piece_that_was_uploaded_is_refused() {
    let mut nodes = Nodes::new(None);
    let message = Message::Stage { number: 1, staged: staged(1), bytes: bytes(2) };
    nodes.say(0, Body::Upload(message));
    let is_refused = |body: &Body| matches!(body, Body::Refused { read: 1, .. });
    assert!(nodes.said.iter().any(is_refused), "other bytes");
    nodes.stage(0, 3);
    let mut wrong = (*writing(1, &[3])).clone();
    let other = PieceRef { sum: 7, ..staged(3).piece };
    let payload = Payload::Uploaded(Arc::new(Uploaded::of([other]).unwrap()));
    wrong.blobs[0].operations = vec![Operation::Write { offset: 0, payload }];
    nodes.submit(&Arc::new(wrong));
    assert_eq!(nodes.abort_kind(1), Some(ErrorKind::InvalidArgument), "another sum");
    nodes.submit(&writing(2, &[3]));
    assert!(nodes.is_committed(2), "the piece is free again");
    nodes.submit(&writing(3, &[3]));
    assert_eq!(nodes.abort_kind(3), Some(ErrorKind::Unavailable), "it is the blob's");
}

/// U1, U4.
#[test]
fn a_transaction_whose_pieces_nobody_has_is_unavailable_and_changes_nothing() {
    let mut nodes = Nodes::new(None);
    nodes.stage(0, 5);
    nodes.submit(&writing(1, &[5, 6]));
    assert_eq!(nodes.abort_kind(1), Some(ErrorKind::Unavailable));
    assert_eq!([0, 1, 2].map(|node| nodes.content(node)), [[0, 0]; 3]);
    nodes.stage(0, 6);
    nodes.submit(&writing(2, &[5, 6]));
    assert!(nodes.is_committed(2));
}

/// U1. A recovery may have aborted the first, and its client tries again with the same pieces,
/// before a node hears of it.
#[test]
fn who_refers_to_pieces_of_a_transaction_in_flight_may_try_again() {
    let mut nodes = Nodes::new(None);
    nodes.stage(0, 5);
    nodes.silent = vec![NodeId(1)];
    nodes.submit(&writing(1, &[5]));
    nodes.silent.clear();
    assert!(nodes.decision(1).is_none(), "it waits for the next node");
    nodes.submit(&writing(2, &[5]));
    assert_eq!(nodes.abort_kind(2), Some(ErrorKind::Unavailable));
}

/// U1.
#[test]
#[should_panic(expected = "U1")]
fn without_u1_what_is_nowhere_is_applied() {
    let mut nodes = Nodes::new(Some(Rule::U1));
    nodes.submit(&writing(1, &[5, 6]));
}

/// U4.
#[test]
fn pieces_that_a_node_lacks_are_asked_for_from_others() {
    let mut nodes = Nodes::new(None);
    nodes.stage_at(1, 5);
    nodes.stage_at(2, 6);
    nodes.submit(&writing(1, &[5, 6]));
    assert!(nodes.is_committed(1), "{:?}", nodes.decision(1));
    assert_eq!([0, 1, 2].map(|node| nodes.content(node)), [[5, 6]; 3]);
}

/// U4.
#[test]
fn who_is_asked_for_a_piece_and_silent_is_given_up() {
    let mut nodes = Nodes::new(None);
    nodes.stage_at(2, 5);
    nodes.silent = vec![NodeId(1)];
    nodes.submit(&writing(1, &[5]));
    assert!(nodes.decision(1).is_none());
    nodes.tick(600_000);
    nodes.silent.clear();
    assert_eq!(nodes.staged_at(0), 1, "the next one gave it");
}

/// U4.
#[test]
fn without_u4_a_transaction_fails_though_others_have_its_pieces() {
    let mut nodes = Nodes::new(Some(Rule::U4));
    nodes.stage_at(1, 5);
    nodes.stage_at(2, 6);
    nodes.submit(&writing(1, &[5, 6]));
    assert_eq!(nodes.abort_kind(1), Some(ErrorKind::Unavailable));
}

/// U2.
#[test]
fn pieces_go_when_they_are_dropped_or_late_but_not_from_a_transaction_in_flight() {
    let mut nodes = Nodes::new(None);
    (1..=4).for_each(|number| nodes.stage(0, number));
    let ids = vec![staged(1).piece.id];
    nodes.say(1, Body::Upload(Message::Drop { blob: blob(), chunk: 0, ids }));
    assert_eq!([0, 1, 2].map(|node| nodes.staged_at(node)), [3; 3]);
    // In flight at the head, which waits for the next.
    nodes.silent = vec![NodeId(1)];
    nodes.submit(&writing(1, &[2]));
    nodes.silent.clear();
    let ids = vec![staged(2).piece.id, staged(3).piece.id];
    nodes.say(0, Body::Upload(Message::Drop { blob: blob(), chunk: 0, ids }));
    assert_eq!(nodes.staged_at(0), 2, "that in flight stays");
    let day_us = tyr_types::limits::PIECE_KEPT_US;
    nodes.stands[1].now_us += day_us + 2_000_000;
    nodes.stands[1].lease();
    nodes.run([(1, Event::Tick)]);
    assert_eq!(nodes.staged_at(1), 0, "a day later");
    let gone = nodes.logs[1].iter().any(|record| matches!(record, Record::Unstaged { .. }));
    assert!(gone, "or they would come back from the log");
}

/// A node that reads again what stands for its log.
fn again(node: u16, map: &ClusterMap, standing: Vec<Record>) -> Stand {
    let mut stand = Stand {
        member: Member::new(NodeId(node), 1, MemberConfig::default()),
        shelf: Shelf::new(NodeId(node)),
        now_us: 9_000_000,
        asked: 0,
    };
    for record in standing {
        stand.member.replay_checkpoint(record, &mut stand.shelf);
    }
    assert!(stand.member.map().is_some_and(|it| it.epoch == map.epoch));
    stand
}

/// U2.
#[test]
fn what_is_staged_outlives_the_log_that_had_it() {
    let mut nodes = Nodes::new(None);
    nodes.stage(0, 5);
    nodes.stage(0, 6);
    let Stand { member, shelf, .. } = &mut nodes.stands[1];
    let standing = member.checkpoint(0).into_iter();
    let standing: Vec<_> =
        standing.map(|it| it.with_content(|id| shelf.staged_content(id))).collect();
    let stand = again(1, &nodes.map, standing);
    assert_eq!((stand.member.staged(), stand.shelf.pieces.len()), ((2, 16), 2));
}

/// U2.
#[test]
fn without_u2_what_is_staged_is_lost_with_the_log() {
    let mut nodes = Nodes::new(Some(Rule::U2));
    nodes.stage(0, 5);
    let standing = nodes.stands[1].member.checkpoint(0);
    assert_eq!(again(1, &nodes.map, standing).member.staged(), (0, 0));
}

/// What the second node is told by the first in the first attempt after that of the client.
fn pass(nodes: &Nodes, transaction: &Arc<Transaction>, is_known: bool) -> Event {
    let chain = nodes.map.chain(transaction, &Ends::new()).unwrap();
    let clock = nodes.stands[0].member.clock();
    let message = commit::Message::Forward {
        transaction: Arc::clone(transaction),
        chain,
        attempt: first_attempt(nodes),
        begun: clock,
        highest: clock,
        known: is_known.then_some(clock),
        usages: Vec::new(),
    };
    heard(nodes, Body::Commit(message))
}

fn first_attempt(nodes: &Nodes) -> Attempt {
    Attempt { epoch: nodes.map.epoch, number: 1, coordinator: NodeId(0) }
}

fn heard(nodes: &Nodes, body: Body) -> Event {
    let from = Address::Node(NodeId(0));
    Event::Receive(Envelope { epoch: nodes.map.epoch, incarnation: 1, from, body })
}

/// What the second node is told of a transaction that is known to be committed.
fn known_pass(nodes: &Nodes, transaction: &Arc<Transaction>) -> Event {
    pass(nodes, transaction, true)
}

/// U4, F2: a promise to an attempt is no word of its pieces.
#[test]
fn who_has_only_promised_to_an_attempt_asks_for_the_pieces_that_it_lacks() {
    let mut nodes = Nodes::new(None);
    let transaction = writing(1, &[5]);
    let begun = nodes.stands[0].member.clock();
    let (id, attempt) = (transaction.id, first_attempt(&nodes));
    let query = Body::Recovery(recovery::Message::Query { id, attempt, begun });
    let query = heard(&nodes, query);
    nodes.stands[1].step(query);
    let standing = nodes.stands[1].member.checkpoint(0);
    assert!(!standing.is_empty(), "it has promised");
    let effects = {
        let event = pass(&nodes, &transaction, false);
        nodes.stands[1].step(event)
    };
    let piece = staged(5).piece.id;
    let is_asked = |effect: &Effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.body {
            Body::Upload(Message::Fetch { id, .. }) => *id == piece,
            _ => false,
        },
        _ => false,
    };
    assert!(effects.iter().any(is_asked), "{effects:?}");
}

/// A chain over the first nodes, each of which holds these of a blob's chunks.
fn chain_of(held: &[&[u64]]) -> Chain {
    let piece = |chunk: &u64| Piece {
        blob: blob(),
        range: ByteRange { start: chunk * CHUNK, end: (chunk + 1) * CHUNK },
        is_attributes: *chunk == 0,
        is_written: true,
        authority: NodeId(0),
    };
    let part = |chunks: &[u64]| Part::Pieces(chunks.iter().map(piece).collect());
    let hops = (0..).zip(held).map(|(node, held)| Hop { node: NodeId(node), part: part(held) });
    Chain::new(hops.collect(), Ends::new()).unwrap()
}

/// A pass of two nodes, of which the second holds these chunks.
fn pass_over(nodes: &Nodes, transaction: &Arc<Transaction>, number: u32, held: &[u64]) -> Event {
    let clock = nodes.stands[0].member.clock();
    let message = commit::Message::Forward {
        transaction: Arc::clone(transaction),
        chain: chain_of(&[&[0, 1], held]),
        attempt: Attempt { number, ..first_attempt(nodes) },
        begun: clock,
        highest: clock,
        known: None,
        usages: Vec::new(),
    };
    heard(nodes, Body::Commit(message))
}

/// The pieces that others are asked for.
fn fetched(effects: &[Effect]) -> Vec<PieceId> {
    let fetched = effects.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.body {
            Body::Upload(Message::Fetch { id, .. }) => Some(*id),
            _ => None,
        },
        _ => None,
    });
    fetched.collect()
}

/// U4, F2.
#[test]
fn who_asks_for_pieces_and_has_a_chunk_more_in_a_later_attempt_asks_for_those_in_it_too() {
    let mut nodes = Nodes::new(None);
    let mut transaction = (*writing(1, &[5, 6])).clone();
    let [Operation::Write { offset, .. }] = &mut transaction.blobs[0].operations[..] else {
        panic!("it writes once")
    };
    *offset = CHUNK - 8; // The second piece is in the second chunk.
    let transaction = Arc::new(transaction);
    let [first, second] = [5, 6].map(|number| staged(number).piece.id);
    let event = pass_over(&nodes, &transaction, 1, &[0]);
    assert_eq!(fetched(&nodes.stands[1].step(event)), [first]);
    let event = pass_over(&nodes, &transaction, 2, &[0, 1]);
    assert_eq!(fetched(&nodes.stands[1].step(event)), [second], "the first is asked for");
}

/// U4, F3: whoever runs it again itself may have a chunk more by the newest map.
#[test]
fn a_coordinator_that_runs_a_transaction_again_asks_for_the_pieces_that_it_lacks() {
    let mut nodes = Nodes::new(None);
    nodes.stage_at(1, 5);
    let transaction = writing(1, &[5]);
    // By the map that it began under the coordinator had nothing of it.
    let chain = chain_of(&[&[], &[0]]);
    let begun = nodes.stands[0].member.clock();
    let body = Body::Recovery(recovery::Message::Ask { transaction, chain, begun });
    let (epoch, from) = (nodes.map.epoch, Address::Node(NodeId(1)));
    let incarnation = nodes.map.incarnation(NodeId(1)).unwrap();
    nodes.run([(0, Event::Receive(Envelope { epoch, incarnation, from, body }))]);
    assert!(nodes.is_committed(1), "{:?}", nodes.decision(1));
    assert_eq!([0, 1, 2].map(|node| nodes.content(node)[0]), [5; 3]);
}

/// U3.
#[test]
fn what_is_known_to_be_committed_is_taken_in_without_its_pieces() {
    let mut nodes = Nodes::new(None);
    let event = known_pass(&nodes, &writing(1, &[5]));
    let effects = nodes.stands[1].step(event);
    let is_taken_in = |effect: &Effect| match effect {
        Effect::Persist { record, .. } => matches!(record, Record::Validated { .. }),
        _ => false,
    };
    assert!(effects.iter().any(is_taken_in), "its chunk's copy has what it wrote: {effects:?}");
}

/// U3.
#[test]
fn without_u3_what_is_known_to_be_committed_is_held_up_by_who_lacks_its_pieces() {
    let mut nodes = Nodes::new(Some(Rule::U3));
    let event = known_pass(&nodes, &writing(1, &[5]));
    assert!(nodes.stands[1].step(event).is_empty());
}

#[test]
fn in_a_cluster_of_before_nothing_is_uploaded() {
    let mut nodes = Nodes::new(None);
    let before = nodes.map.clone().speaking(crate::level::LEVEL_LEASING);
    let mut stand = Stand::new(0, &before);
    stand.lease();
    let message = Message::Stage { number: 4, staged: staged(4), bytes: bytes(4) };
    let (from, body) = (Address::Client(CLIENT), Body::Upload(message));
    let said =
        stand.step(Event::Receive(Envelope { epoch: before.epoch, incarnation: 0, from, body }));
    let is_refused = |effect: &Effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.body {
            Body::Refused { read: 4, abort } => abort.reason.contains("feature level 10"),
            _ => false,
        },
        _ => false,
    };
    assert!(said.iter().any(is_refused), "{said:?}");
    let is_elsewhere = |body: &Body| matches!(body, Body::NotHere(Asked::Read(_)));
    assert!(!nodes.said.iter().any(is_elsewhere));
    nodes.stage(0, 4);
    assert!(nodes.is_staged(4));
}
