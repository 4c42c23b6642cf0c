//! Pieces that are filled inside the cluster with what a blob had at a moment (U5).

use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceId, NodeId,
    Operation, Payload, PieceId, PieceRef, Timestamp, Transaction, TransactionId, Uploaded,
};

use super::shelf::CHUNK;
use super::stand::{CLIENT, Stand};
use super::uploads::Nodes;
use crate::abort::Abort;
use crate::level::{LEVEL_COPYING, LEVEL_LISTING};
use crate::map::ClusterMap;
use crate::member::{Effect, Event};
use crate::message::{Address, Asked, Body, Envelope, ReadRequest};
use crate::rule::Rule;
use crate::upload::{Message, PieceSource, sum_of};

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn number(bytes: u64) -> Bytes {
    Bytes::copy_from_slice(&bytes.to_le_bytes())
}

/// A transaction that writes at the beginning of a blob.
fn writing(id: u64, key: &str, payload: Payload) -> Arc<Transaction> {
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob(key), operations }];
    Arc::new(Transaction { id: TransactionId::new(CLIENT, id), blobs, reads: Vec::new() })
}

/// The first number of one blob, at a moment, as the piece of this number for another.
fn copying(number: u64, from: &str, to: &str, at: Timestamp) -> Message {
    let source = PieceSource { blob: blob(from), range: ByteRange { start: 0, end: 8 }, at };
    let id = PieceId::new(CLIENT, number);
    Message::Copy { number, id, blob: blob(to), chunk: 0, source }
}

impl Nodes {
    fn write(&mut self, id: u64, head: u16, key: &str, value: u64) {
        self.submit_to(head, &writing(id, key, Payload::Inline(number(value))));
        assert!(self.is_committed(id), "{:?}", self.decision(id));
    }

    fn copy(&mut self, to: u16, message: Message) {
        self.say(to, Body::Upload(message));
    }

    /// The piece that its client was told of.
    fn copied(&self, number: u64) -> Option<PieceRef> {
        self.said.iter().find_map(|body| match body {
            Body::Upload(Message::Copied { number: of, piece }) if *of == number => Some(*piece),
            _ => None,
        })
    }

    fn first_of(&self, node: u16, key: &str) -> u64 {
        let shelf = &self.stands[usize::from(node)].shelf;
        shelf.content(&(blob(key), 0), None).unwrap().0[0]
    }

    /// Writes 5 to the source, and 6 after the moment at which it is copied; what is copied.
    fn copy_what_is_overwritten(&mut self) -> [u64; 3] {
        self.write(1, 0, "a", 5);
        let at = self.stands[0].member.clock();
        self.write(2, 0, "a", 6);
        self.copy(1, copying(9, "a", "b", at));
        let piece = self.copied(9).expect("it is filled");
        assert_eq!(piece.len, 8);
        let payload = Payload::Uploaded(Arc::new(Uploaded::of([piece]).unwrap()));
        self.submit(&writing(3, "b", payload));
        assert!(self.is_committed(3), "{:?}", self.decision(3));
        [0, 1, 2].map(|node| self.first_of(node, "b"))
    }
}

/// U5.
#[test]
fn a_piece_is_filled_with_what_its_source_had_at_the_moment_that_is_said() {
    let mut nodes = Nodes::new(None);
    assert_eq!(nodes.copy_what_is_overwritten(), [5; 3]);
    assert_eq!(nodes.first_of(0, "a"), 6);
}

/// U5.
#[test]
fn without_u5_a_piece_is_filled_with_what_its_source_has_now() {
    let mut nodes = Nodes::new(Some(Rule::U5));
    assert_eq!(nodes.copy_what_is_overwritten(), [6; 3]);
}

/// U5.
#[test]
fn whoever_fills_a_piece_fills_it_alike_and_where_nothing_is_there_are_zeros() {
    let mut nodes = Nodes::new(None);
    nodes.write(1, 0, "a", 5);
    let at = nodes.stands[0].member.clock();
    nodes.silent = vec![NodeId(2)];
    nodes.copy(0, copying(9, "a", "b", at));
    assert_eq!(nodes.copied(9), None, "one has not got it");
    nodes.silent.clear();
    nodes.write(2, 0, "a", 6);
    nodes.copy(1, copying(9, "a", "b", at));
    let piece = nodes.copied(9).expect("another asked for the same");
    assert_eq!(piece.sum, sum_of(&number(5)));
    // More than the shelf has of a chunk.
    let source = PieceSource { blob: blob("a"), range: ByteRange { start: 8, end: 100 }, at };
    let (id, chunk) = (PieceId::new(CLIENT, 10), 0);
    nodes.copy(0, Message::Copy { number: 10, id, blob: blob("b"), chunk, source });
    assert_eq!(nodes.copied(10).map(|piece| piece.sum), Some(sum_of(&Bytes::from(vec![0; 92]))));
}

#[test]
fn what_cannot_be_in_a_piece_is_refused() {
    let mut nodes = Nodes::new(None);
    let (at, target) = (nodes.stands[0].member.clock(), blob("b"));
    for (read, start, end, keyspace, kind) in [
        (1, 8, 8, 1, ErrorKind::InvalidArgument),
        (2, CHUNK - 1, CHUNK + 1, 1, ErrorKind::InvalidArgument),
        (3, 0, 8, 9, ErrorKind::NotFound),
    ] {
        let from = BlobName { keyspace: KeyspaceId(keyspace), ..blob("a") };
        let source = PieceSource { blob: from, range: ByteRange { start, end }, at };
        let id = PieceId::new(CLIENT, read);
        let target = target.clone();
        let message = Message::Copy { number: read, id, blob: target, chunk: 0, source };
        nodes.copy(0, message);
        let is_refused = |body: &Body| match body {
            Body::Refused { read: of, abort } => *of == read && abort.kind == kind,
            _ => false,
        };
        assert!(nodes.said.iter().any(is_refused), "{read}: {:?}", nodes.said);
    }
}

/// Keys of two blobs that different nodes hold alone, with the nodes.
fn apart(map: &ClusterMap) -> [(String, u16); 2] {
    let holder = |key: &str| map.holders(&blob(key), 0)[0].0;
    let all = (0..50).map(|n| format!("key {n}"));
    let other = all.clone().find(|key| holder(key) != holder("key 0")).unwrap();
    let at = holder(&other);
    [("key 0".to_owned(), holder("key 0")), (other, at)]
}

fn asked(effects: &[Effect]) -> Vec<(NodeId, ReadRequest)> {
    let reads = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to: Address::Node(to), envelope } => match &envelope.body {
            Body::Read(request) => Some((*to, request.clone())),
            _ => None,
        },
        _ => None,
    });
    reads.collect()
}

/// U5.
#[test]
fn the_source_is_asked_of_those_that_hold_it_again_while_they_are_silent() {
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(3, &[config]);
    let [(from, there), (to, here)] = apart(&map);
    let mut nodes = Nodes::of(map, None);
    nodes.write(1, there, &from, 5);
    let at = nodes.stands[usize::from(there)].member.clock();
    nodes.silent = vec![NodeId(there)];
    nodes.copy(here, copying(9, &from, &to, at));
    assert_eq!(nodes.copied(9), None);
    nodes.silent.clear();
    nodes.tick(600_000);
    let piece = nodes.copied(9).expect("it was asked again");
    assert_eq!(piece.sum, sum_of(&number(5)));
}

/// U2.
#[test]
fn what_its_client_drops_is_not_filled_any_more() {
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(3, &[config]);
    let [(from, there), (to, here)] = apart(&map);
    let mut nodes = Nodes::of(map, None);
    nodes.write(1, there, &from, 5);
    let at = nodes.stands[usize::from(there)].member.clock();
    nodes.silent = vec![NodeId(there)];
    nodes.copy(here, copying(9, &from, &to, at));
    let ids = vec![PieceId::new(CLIENT, 9)];
    nodes.copy(here, Message::Drop { blob: blob(&to), chunk: 0, ids });
    nodes.silent.clear();
    nodes.tick(600_000);
    assert_eq!(nodes.copied(9), None);
    assert_eq!(nodes.stands[usize::from(here)].member.staged().0, 0);
}

/// A node that reads for a piece of another's blob, and what it asked.
fn reading(map: &ClusterMap) -> (Stand, NodeId, ReadRequest) {
    let [(from, there), (to, here)] = apart(map);
    let mut stand = Stand::new(here, map);
    stand.lease();
    let at = stand.member.clock();
    let body = Body::Upload(copying(9, &from, &to, at));
    let (epoch, from) = (map.epoch, Address::Client(CLIENT));
    let effects = stand.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body }));
    let [(asked, request)] = &asked(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(*asked, NodeId(there));
    (stand, *asked, request.clone())
}

#[test]
fn versions_that_are_gone_end_it_and_want_of_room_does_not() {
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(3, &[config]);
    for (kind, is_over) in [(ErrorKind::SnapshotTooOld, true), (ErrorKind::Unavailable, false)] {
        let (mut stand, there, request) = reading(&map);
        let body = Body::Refused { read: request.read, abort: Abort::new(kind, "for a test") };
        let (epoch, from) = (map.epoch, Address::Node(there));
        let incarnation = map.incarnation(there).unwrap();
        let said = stand.step(Event::Receive(Envelope { epoch, incarnation, from, body }));
        let is_told = |effect: &Effect| match effect {
            Effect::Send { to: Address::Client(CLIENT), envelope } => match &envelope.body {
                Body::Refused { read: 9, abort } => abort.kind == kind,
                _ => false,
            },
            _ => false,
        };
        assert_eq!(said.iter().any(is_told), is_over, "{said:?}");
        stand.now_us += 600_000;
        assert_eq!(asked(&stand.step(Event::Tick)).is_empty(), is_over);
    }
}

#[test]
fn in_a_cluster_of_before_nothing_is_filled() {
    let mut nodes = Nodes::of(super::stand::map(3).speaking(LEVEL_LISTING), None);
    let at = nodes.stands[0].member.clock();
    nodes.copy(0, copying(9, "a", "b", at));
    let is_refused = |body: &Body| match body {
        Body::Refused { read: 9, abort } => {
            abort.reason.contains(&format!("feature level {LEVEL_COPYING}"))
        }
        _ => false,
    };
    assert!(nodes.said.iter().any(is_refused), "{:?}", nodes.said);
    let is_elsewhere = |body: &Body| matches!(body, Body::NotHere(Asked::Read(_)));
    assert!(!nodes.said.iter().any(is_elsewhere));
}
