//! The client against nodes that a test plays: what is sent, what is answered, what is ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tyr_control::call::{CallKind, Called};
use tyr_control::status::Bootstrap;
use tyr_control::{Answer, NodeRecord, Request};
use tyr_metadata::KeyChange;
use tyr_protocol::commit::{Decision, Outcomes};
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Body, Envelope, ReadPart, ReadRequest};
use tyr_protocol::session::{Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, Error, ErrorKind, Key, KeyspaceConfig,
    KeyspaceId, NodeId, Operation, Outcome, Payload, PieceId, Timestamp,
};

use crate::control::{Asked, CalledAt, Control, UsageOfNodes};
use crate::{Client, ClientConfig, ClientParts, Inbox, Presence, Transport, Unresolved, block_on};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Hands what is sent to the test.
struct Script {
    sent: Sender<(NodeId, Envelope)>,
    flushes: Mutex<u64>,
}

impl Transport for Script {
    fn send(&self, to: NodeId, envelope: Envelope) {
        // The test may be over.
        let _ = self.sent.send((to, envelope));
    }

    fn flush(&self) {
        *self.flushes.lock() += 1;
    }
}

impl Control for Script {
    fn newest(&self) -> Asked<Bootstrap> {
        panic!("these tests need no monitors")
    }

    fn propose(&self, _: Change) -> Asked<Epoch> {
        panic!("these tests need no monitors")
    }

    fn ask(&self, _: Request) -> Asked<Answer> {
        panic!("these tests need no monitors")
    }

    fn usage_of(&self, _: BTreeMap<u16, NodeRecord>) -> Asked<UsageOfNodes> {
        panic!("these tests need no monitors")
    }

    fn call_at(
        &self,
        _: NodeId,
        _: CallKind,
        _: Called,
        _: Duration,
        _: Duration,
    ) -> Asked<CalledAt> {
        panic!("these tests call no methods")
    }

    fn changes(&self, _: String, _: u64) -> Asked<(Vec<KeyChange>, u64)> {
        panic!("these tests need no monitors")
    }

    fn presence(&self, _: Duration) -> Asked<Presence> {
        panic!("these tests need no monitors")
    }

    fn close(&self) {}
}

struct Stage {
    client: Arc<Client>,
    inbox: Inbox,
    sent: Receiver<(NodeId, Envelope)>,
    script: Arc<Script>,
}

impl Stage {
    fn new(config: ClientConfig) -> Self {
        let map = Arc::new(ClusterMap::of(3, &[KeyspaceConfig::default()]));
        let (sender, sent) = channel();
        let script = Arc::new(Script { sent: sender, flushes: Mutex::new(0) });
        let inbox = Inbox::default();
        let (transport, control) = (Arc::clone(&script), Arc::clone(&script));
        let parts =
            ClientParts { number: 77, map, transport, inbox: inbox.clone(), control, config };
        Self { client: Client::start(parts).unwrap(), inbox, sent, script }
    }

    fn sent(&self) -> (NodeId, Body) {
        let (to, envelope) = self.sent.recv_timeout(PATIENCE).expect("something is sent");
        assert_eq!(envelope.from, Address::Client(77));
        (to, envelope.body)
    }

    fn asked(&self) -> (NodeId, ReadRequest) {
        match self.sent() {
            (to, Body::Read(request)) => (to, request),
            other => panic!("a read is sent, not {other:?}"),
        }
    }

    fn answer(&self, from: NodeId, body: Body) {
        let envelope = envelope(from, body);
        self.inbox.receive([envelope]);
    }
}

fn envelope(from: NodeId, body: Body) -> Envelope {
    Envelope { epoch: Epoch(1), incarnation: 1, from: Address::Node(from), body }
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn time(clock: u64) -> Timestamp {
    Timestamp { clock, ..Timestamp::ZERO }
}

fn part(request: &ReadRequest, at: Option<u64>, bytes: &'static [u8]) -> Body {
    Body::Part(ReadPart {
        read: request.read,
        range: request.range,
        at: at.map(time),
        version: time(3),
        bytes: Bytes::from_static(bytes),
        size: Some(Some(bytes.len() as u64)),
        clock: time(1_000_000),
    })
}

fn want(key: &str) -> Want {
    Want::bytes(blob(key), ByteRange { start: 0, end: 4 })
}

fn append(key: &str) -> Vec<BlobOperations> {
    let payload = Payload::Inline(Bytes::from_static(b"abc"));
    let append = Operation::Append { payload, expected: None };
    vec![BlobOperations { blob: blob(key), operations: vec![Operation::Delete, append] }]
}

/// The client knows the cluster's clock from now on.
fn tell_time(stage: &Stage) {
    let waiting = stage.client.read(want("any"), Place::Newest);
    let (to, request) = stage.asked();
    stage.answer(to, part(&request, None, b"0000"));
    block_on(waiting.answer()).unwrap();
}

#[test]
fn answers_reach_their_waiters_before_the_network_goes_on() {
    let stage = Stage::new(ClientConfig::default());
    let keys = ["a", "b", "c"];
    let waiting = keys.map(|key| stage.client.read(want(key), Place::Newest));
    let requests = keys.map(|_| stage.asked());
    let parts = requests.map(|(to, request)| envelope(to, part(&request, None, b"1234")));
    stage.inbox.receive(parts);
    for waiting in waiting {
        let sight = block_on(waiting.answer()).unwrap();
        assert_eq!((&sight.seen.bytes[..], sight.lease.is_none()), (&b"1234"[..], true));
    }
    assert_eq!(stage.client.statistics().reads, 3);
    assert_eq!(*stage.script.flushes.lock(), 3, "each call went out by itself");
}

#[test]
fn a_read_that_nobody_waits_for_any_more_is_withdrawn_from_its_node() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Newest);
    let (to, request) = stage.asked();
    drop(waiting);
    assert_eq!(stage.sent(), (to, Body::CancelRead { read: request.read }));
}

#[test]
fn what_a_transaction_reads_is_kept_until_its_commit_is_answered() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Transaction);
    let (to, request) = stage.asked();
    stage.answer(to, part(&request, Some(50), b"1234"));
    let sight = block_on(waiting.answer()).unwrap();
    let (lease, check) = (sight.lease.unwrap(), sight.seen.check().unwrap());
    let ticket = stage.client.commit(append("a"), vec![check], vec![lease]);
    let (to, Body::Submit { transaction, .. }) = stage.sent() else { panic!("it is submitted") };
    let id = transaction.id;
    let (decision, outcomes, clock) = (Decision::Commit(time(60)), Outcomes::new(), time(60));
    stage.answer(to, Body::Reply { id, decision, outcomes, clock });
    let committed = ticket.wait().unwrap();
    assert_eq!((committed.at, committed.outcomes), (time(60), vec![Outcome::Done; 2]));
    let mut told = 0;
    while let Ok((_, envelope)) = stage.sent.try_recv() {
        assert_eq!(envelope.body, Body::SnapshotEnded { read: request.read });
        told += 1;
    }
    assert!(told > 0, "the nodes hear that it is over");
}

#[test]
fn an_answer_that_comes_after_its_waiter_went_ends_what_it_began() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Snapshot);
    let (to, request) = stage.asked();
    stage.answer(to, part(&request, Some(50), b"1234"));
    drop(waiting);
    assert!(matches!(stage.sent().1, Body::SnapshotEnded { read } if read == request.read));
}

#[test]
fn a_silent_replica_is_passed_over_when_the_clock_says_so() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Newest);
    let (first, request) = stage.asked();
    let (second, again) = stage.asked();
    assert!(first != second && again.read == request.read);
    stage.answer(second, part(&again, None, b"1234"));
    assert_eq!(block_on(waiting.answer()).unwrap().seen.bytes, "1234");
}

#[test]
fn what_became_of_a_commit_without_an_answer_can_be_asked_for() {
    let timeout = Duration::from_millis(300);
    let stage = Stage::new(ClientConfig { timeout, ..ClientConfig::default() });
    tell_time(&stage);
    let ticket = stage.client.commit(append("a"), Vec::new(), Vec::new());
    let error = ticket.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let transaction = Unresolved::of(&error).expect("the error has it");
    while stage.sent.try_recv().is_ok() {}
    let ticket = stage.client.ask(Arc::clone(&transaction));
    let (to, Body::Submit { transaction: again, is_retry, .. }) = stage.sent() else {
        panic!("it is asked for")
    };
    assert!(is_retry && again.id == transaction.id);
    let outcome = Outcome::Existed(true);
    let answered = tyr_protocol::commit::Answered { blob: 0, operation: 0, outcome };
    let outcomes = [answered].into_iter().collect();
    let (decision, clock) = (Decision::Commit(time(60)), time(60));
    stage.answer(to, Body::Reply { id: again.id, decision, outcomes, clock });
    assert_eq!(ticket.wait().unwrap().outcomes, [outcome, Outcome::Done]);
    let statistics = stage.client.statistics();
    assert_eq!((statistics.commits, statistics.aborts), (1, 1));
}

#[test]
fn a_closed_client_lets_everybody_go() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Newest);
    let ticket = stage.client.commit(append("a"), Vec::new(), Vec::new());
    stage.client.close();
    assert_eq!(block_on(waiting.answer()).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ticket.wait().unwrap_err().kind(), ErrorKind::TimedOut);
    let late = stage.client.read(want("a"), Place::Newest);
    assert_eq!(block_on(late.answer()).unwrap_err().kind(), ErrorKind::Unavailable);
    let late = stage.client.commit(append("a"), Vec::new(), Vec::new());
    assert_eq!(late.wait().unwrap_err().kind(), ErrorKind::Unavailable);
}

/// Nobody waits for an answer to some calls, as what is given back; and the process may end next.
#[test]
fn what_was_begun_before_the_end_is_sent_although_another_thread_drives() {
    let stage = Stage::new(ClientConfig::default());
    let (client, flushes) = (&stage.client, stage.script.flushes.lock());
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| client.read(want("a"), Place::Newest));
        stage.asked(); // It flushes next, and cannot yet.
        client.drop_pieces(blob("b"), 0, vec![PieceId(7)]);
        let closing = scope.spawn(|| client.close());
        let is_closed = || {
            let answer = std::pin::pin!(client.read(want("a"), Place::Newest).answer());
            answer.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        while !is_closed() {
            std::thread::yield_now();
        }
        drop(flushes);
        closing.join().unwrap();
        driving.join().unwrap();
    });
    let is_sent = |(_, sent): (NodeId, Envelope)| matches!(sent.body, Body::Upload(_));
    assert!(stage.sent.try_iter().any(is_sent), "it is sent before the client is closed");
}

#[test]
fn a_time_out_beyond_what_nodes_remember_is_refused() {
    for timeout in [Duration::ZERO, Duration::from_secs(31)] {
        let config = ClientConfig { timeout, ..ClientConfig::default() };
        assert_eq!(config.session().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// F4: a node has another client of this number, as after a machine was copied.
#[test]
fn a_client_whose_number_another_has_says_so_and_ends_what_it_has_begun() {
    let stage = Stage::new(ClientConfig::default());
    let waiting = stage.client.read(want("a"), Place::Newest);
    let (to, request) = stage.asked();
    let why = Error::new(ErrorKind::AlreadyExists, "another client has its number; connect anew");
    stage.inbox.end(&why);
    let refused = block_on(stage.client.read(want("a"), Place::Newest).answer()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.message().contains("connect anew"), "{refused}");
    let refused = stage.client.commit(append("a"), Vec::new(), Vec::new()).wait().unwrap_err();
    assert!(refused.message().contains("connect anew"), "{refused}");
    stage.answer(to, part(&request, Some(50), b"1234"));
    assert_eq!(block_on(waiting.answer()).unwrap().seen.bytes, &b"1234"[..]);
}
