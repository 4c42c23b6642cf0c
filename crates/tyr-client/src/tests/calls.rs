//! Methods that nodes are asked to run: which node, and what is made of what it says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tyr_control::call::{CallAnswer, CallKind, Called};
use tyr_control::status::Bootstrap;
use tyr_control::{Answer, CallError, NodeRecord, Request};
use tyr_metadata::KeyChange;
use tyr_protocol::level::LEVEL_CALLING;
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::Envelope;
use tyr_protocol::wire::{Outgoing, encode_map};
use tyr_types::{
    BlobName, Bytes, Epoch, Error, ErrorKind, Key, KeyspaceConfig, KeyspaceId, MethodAnswer,
    MethodCall, NodeId, Result,
};

use crate::control::{Asked, CalledAt, Control, UsageOfNodes};
use crate::{Client, ClientConfig, ClientParts, Inbox, Presence, Transport, block_on};

/// Nodes that say what a test wants, in turn; and who was asked.
#[derive(Default)]
struct Nodes {
    says: Mutex<VecDeque<CalledAt>>,
    asked: Mutex<Vec<NodeId>>,
    /// What the monitors know.
    newest: Mutex<Option<ClusterMap>>,
}

impl Transport for Nodes {
    fn send(&self, _: NodeId, _: Envelope) {}

    fn flush(&self) {}
}

fn at_once<T: Send + 'static>(answer: Result<T>) -> Asked<T> {
    Box::pin(std::future::ready(answer))
}

fn none<T: Send + 'static>() -> Asked<T> {
    at_once(Err(Error::unavailable("nobody answers that here")))
}

impl Control for Nodes {
    fn newest(&self) -> Asked<Bootstrap> {
        let Some(map) = self.newest.lock().clone() else { return none() };
        let mut outgoing = Outgoing::new();
        encode_map(&map, &mut outgoing);
        let map = Some(outgoing.take_bytes());
        let nodes = BTreeMap::new();
        at_once(Ok(Bootstrap { cluster: Some(1), map, nodes, leader: None, revision: 1 }))
    }

    fn propose(&self, _: Change) -> Asked<Epoch> {
        none()
    }

    fn ask(&self, _: Request) -> Asked<Answer> {
        none()
    }

    fn usage_of(&self, _: BTreeMap<u16, NodeRecord>) -> Asked<UsageOfNodes> {
        none()
    }

    fn call_at(
        &self,
        node: NodeId,
        _: CallKind,
        _: Called,
        _: Duration,
        _: Duration,
    ) -> Asked<CalledAt> {
        self.asked.lock().push(node);
        let said = self.says.lock().pop_front();
        at_once(Ok(said.unwrap_or_else(|| Err(CallError::NotSent("it is gone".to_owned())))))
    }

    fn changes(&self, _: String, _: u64) -> Asked<(Vec<KeyChange>, u64)> {
        none()
    }

    fn presence(&self, _: Duration) -> Asked<Presence> {
        none()
    }

    fn close(&self) {}
}

fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("object").unwrap() }
}

/// Calls a method by this map of nodes that say this.
fn call(
    map: ClusterMap,
    newest: Option<ClusterMap>,
    says: Vec<CalledAt>,
) -> (Result<Option<MethodAnswer>>, Vec<NodeId>) {
    let nodes = Arc::new(Nodes { says: Mutex::new(says.into()), ..Nodes::default() });
    *nodes.newest.lock() = newest;
    let config = ClientConfig { timeout: Duration::from_millis(200), ..ClientConfig::default() };
    let (transport, control) = (Arc::clone(&nodes), Arc::clone(&nodes));
    let (number, map, inbox) = (77, Arc::new(map), Inbox::default());
    let parts = ClientParts { number, map, transport, inbox, control, config };
    let client = Client::start(parts).unwrap();
    let (class, method) = ("till".to_owned(), "pay_in".to_owned());
    let call = MethodCall { blob: blob(), class, method, input: Bytes::from_static(b"1") };
    let answer = block_on(client.call_method(call));
    client.close();
    let asked = std::mem::take(&mut *nodes.asked.lock());
    (answer, asked)
}

fn map() -> ClusterMap {
    ClusterMap::of(3, &[KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() }])
}

fn answered() -> CalledAt {
    Ok(Some(CallAnswer::Answered(Bytes::from_static(b"8"))))
}

#[test]
fn the_authority_is_asked_and_its_answer_is_that_of_the_method() {
    let (answer, asked) = call(map(), None, vec![answered()]);
    assert_eq!(answer.unwrap(), Some(Ok(Bytes::from_static(b"8"))));
    assert_eq!(asked, map().holders(&blob(), 0)[..1]);
}

#[test]
fn below_the_level_and_where_no_methods_are_run_the_caller_runs_them() {
    let (answer, asked) = call(map().speaking(LEVEL_CALLING - 1), None, vec![answered()]);
    assert_eq!((answer.unwrap(), asked.len()), (None, 0));
    for said in [Ok(None), Ok(Some(CallAnswer::Unhosted))] {
        let (answer, asked) = call(map(), None, vec![said]);
        assert_eq!((answer.unwrap(), asked.len()), (None, 1));
    }
}

#[test]
fn who_is_not_the_authority_any_more_says_so_and_the_newest_map_tells_who_is() {
    let config = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
    let newer = ClusterMap::of(5, &[config]).at(Epoch(9));
    let elsewhere = || Ok(Some(CallAnswer::Elsewhere(9)));
    let (answer, asked) = call(map(), Some(newer.clone()), vec![elsewhere(), answered()]);
    assert_eq!(answer.unwrap(), Some(Ok(Bytes::from_static(b"8"))));
    assert_eq!(asked, [map().holders(&blob(), 0)[0], newer.holders(&blob(), 0)[0]]);
}

#[test]
fn a_call_that_was_not_sent_is_tried_again_and_one_without_an_answer_is_not() {
    let not_sent = || Err(CallError::NotSent("it does not listen".to_owned()));
    let (answer, asked) = call(map(), None, vec![not_sent(), answered()]);
    assert!(answer.unwrap().is_some());
    assert_eq!(asked.len(), 2);
    let (answer, _) = call(map(), None, Vec::new());
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let lost = Err(CallError::Lost("the connection broke".to_owned()));
    let (answer, asked) = call(map(), None, vec![lost, answered()]);
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), asked.len()), (ErrorKind::TimedOut, 1));
    assert!(error.message().contains("may have taken effect"), "{error}");
}

/// Asks a seat so often, by this map of nodes that say this.
fn ask_seat(times: usize, says: Vec<CalledAt>) -> (Vec<Result<Option<MethodAnswer>>>, Vec<NodeId>) {
    let nodes = Arc::new(Nodes { says: Mutex::new(says.into()), ..Nodes::default() });
    let config = ClientConfig { timeout: Duration::from_millis(200), ..ClientConfig::default() };
    let (transport, control) = (Arc::clone(&nodes), Arc::clone(&nodes));
    let (number, map, inbox) = (77, Arc::new(map()), Inbox::default());
    let parts = ClientParts { number, map, transport, inbox, control, config };
    let client = Client::start(parts).unwrap();
    let ask = |_| {
        let (class, method) = ("counter".to_owned(), "next".to_owned());
        let request = MethodCall { blob: blob(), class, method, input: Bytes::new() };
        block_on(client.ask_seat(request))
    };
    let answers = (0..times).map(ask).collect();
    client.close();
    let asked = std::mem::take(&mut *nodes.asked.lock());
    (answers, asked)
}

fn moved(node: u16) -> CalledAt {
    Ok(Some(CallAnswer::Moved(node)))
}

#[test]
fn a_seat_is_asked_where_it_was_moved_to_and_first_there_the_next_time_s4() {
    let says = vec![moved(40), answered(), answered(), moved(41), answered(), answered()];
    let (answers, asked) = ask_seat(4, says);
    assert!(answers.into_iter().all(|it| it.unwrap() == Some(Ok(Bytes::from_static(b"8")))));
    let home = map().holders(&blob(), 0)[0];
    let [one, other] = [NodeId(40), NodeId(41)];
    assert_eq!(asked, [home, one, one, one, other, other]);
}

#[test]
fn when_who_had_a_seat_is_gone_the_authority_of_its_key_is_asked_again() {
    let gone = || Err(CallError::NotSent("it does not listen".to_owned()));
    let elsewhere = || Ok(Some(CallAnswer::Elsewhere(0)));
    for lost in [gone, elsewhere] {
        let says = vec![moved(40), answered(), lost(), answered()];
        let (answers, asked) = ask_seat(2, says);
        assert!(answers.into_iter().all(|it| it.unwrap().is_some()));
        let home = map().holders(&blob(), 0)[0];
        assert_eq!(asked, [home, NodeId(40), NodeId(40), home]);
    }
    // It is said to be at who does not say so, again and again.
    let (answers, _) = ask_seat(1, (0..100).map(|at| moved(40 + at % 2)).collect());
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
}
