//! The session against nodes that a test plays: by hand, or all of them by chance.

mod commits;
mod failures;
mod leases;
mod moments;
mod notices;
mod reads;
mod scans;
mod seeds;
mod uploads;
mod watches;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, Key, KeyspaceConfig, KeyspaceId, Operation,
    Payload, Timestamp, TransactionId,
};

use super::*;
use crate::chain::Ends;
use crate::commit::{Decision, Outcomes};
use crate::message::{ReadPart, ReadRequest};
use crate::read::Kind;

/// Bytes of a chunk.
const CHUNK: u64 = 4096;
/// The number of the client.
const CLIENT: u64 = 77;

fn map() -> ClusterMap {
    ClusterMap::of(5, &[KeyspaceConfig { chunk_size: CHUNK, ..Default::default() }])
}

/// The same map, some epochs later.
fn later(map: &ClusterMap, epochs: u32) -> ClusterMap {
    ClusterMap { epoch: Epoch(map.epoch.0 + epochs), ..map.clone() }
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn time(clock: u64) -> Timestamp {
    Timestamp { clock, ..Timestamp::ZERO }
}

fn range(start: u64, end: u64) -> ByteRange {
    ByteRange { start, end }
}

fn append(key: &str, len: usize) -> BlobOperations {
    let payload = Payload::Inline(Bytes::from(vec![7; len]));
    let operations = vec![Operation::Append { payload, expected: None }];
    BlobOperations { blob: blob(key), operations }
}

/// A submission as a node gets it.
#[derive(Clone, Debug, PartialEq)]
struct Submitted {
    to: NodeId,
    id: TransactionId,
    ends: Ends,
    begun_us: u64,
    is_retry: bool,
    settled: u64,
}

/// A session, what it sent and what it answered.
struct Client {
    session: Session,
    now: Now,
    sent: Vec<(NodeId, Body)>,
    done: Vec<(CallId, Answer)>,
    news: Vec<(u64, LeaseNews)>,
    watched: Vec<(u64, WatchNews)>,
    calls: u64,
}

impl Client {
    fn new() -> Self {
        Self::with(map(), SessionConfig::default())
    }

    fn with(map: ClusterMap, config: SessionConfig) -> Self {
        let session = Session::with_config(CLIENT, Arc::new(map), config);
        let now = Now { wall_us: 0, monotonic_us: 1_000 };
        let (sent, done, news) = (Vec::new(), Vec::new(), Vec::new());
        Self { session, now, sent, done, news, watched: Vec::new(), calls: 0 }
    }

    /// A client that has heard the cluster's clock already.
    fn with_time() -> Self {
        let mut client = Self::new();
        client.session.clock.observe(time(5_000_000), client.now.monotonic_us);
        client
    }

    fn step(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.session.step(self.now, event, &mut effects);
        self.session.invariants();
        for effect in effects {
            match effect {
                Effect::Send { to, envelope } => {
                    assert_eq!(envelope.from, Address::Client(CLIENT));
                    assert_eq!(envelope.epoch, self.session.map.epoch);
                    self.sent.push((to, envelope.body));
                }
                Effect::Done { call, answer } => self.done.push((call, answer)),
                Effect::Lease { lease, news } => self.news.push((lease, news)),
                Effect::Watch { watch, news } => self.watched.push((watch, news)),
            }
        }
    }

    fn call(&mut self, what: Call) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.step(Event::Call { call, what });
        call
    }

    fn read(&mut self, key: &str, range: ByteRange, place: Place) -> CallId {
        self.call(Call::Read { want: Want::bytes(blob(key), range), place })
    }

    fn commit(&mut self, blobs: Vec<BlobOperations>) -> CallId {
        self.call(Call::Commit { blobs, reads: vec![] })
    }

    /// Time passes, and the driver ticks as often as it is asked to.
    fn pass(&mut self, us: u64) {
        let until = self.now.monotonic_us + us;
        while let Some(due_us) = self.session.due_us().filter(|due_us| *due_us <= until) {
            self.now.monotonic_us = due_us.max(self.now.monotonic_us);
            self.step(Event::Tick);
        }
        self.now.monotonic_us = until;
        self.step(Event::Tick);
    }

    fn receive(&mut self, from: NodeId, body: Body) {
        let epoch = self.session.map.epoch;
        self.receive_of(epoch, from, body);
    }

    fn receive_of(&mut self, epoch: Epoch, from: NodeId, body: Body) {
        let envelope = Envelope { epoch, incarnation: 1, from: Address::Node(from), body };
        self.step(Event::Receive(envelope));
    }

    /// The reads sent since the last look; everything else sent is forgotten.
    fn asked(&mut self) -> Vec<(NodeId, ReadRequest)> {
        let of_read = |(to, body)| match body {
            Body::Read(request) => Some((to, request)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_read).collect()
    }

    /// The only read sent since the last look.
    fn asked_one(&mut self) -> (NodeId, ReadRequest) {
        let asked = self.asked();
        let [one] = &asked[..] else { panic!("one read is sent, not {asked:?}") };
        one.clone()
    }

    /// The submissions since the last look; everything else sent is forgotten.
    fn submitted(&mut self) -> Vec<Submitted> {
        let of_submit = |(to, body)| match body {
            Body::Submit { transaction, ends, begun_us, is_retry, settled } => {
                Some(Submitted { to, id: transaction.id, ends, begun_us, is_retry, settled })
            }
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_submit).collect()
    }

    /// The only submission since the last look.
    fn submitted_one(&mut self) -> Submitted {
        let submitted = self.submitted();
        let [one] = &submitted[..] else { panic!("one is submitted, not {submitted:?}") };
        one.clone()
    }

    /// Those told that a snapshot is over, since the last look; everything else is forgotten.
    fn ended(&mut self) -> Vec<(NodeId, u64)> {
        let of_end = |(to, body)| match body {
            Body::SnapshotEnded { read } => Some((to, read)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_end).collect()
    }

    fn has_sent(&self, is_it: impl Fn(&Body) -> bool) -> bool {
        self.sent.iter().any(|(_, body)| is_it(body))
    }

    /// The answer to the only call answered since the last look.
    fn answer(&mut self) -> Answer {
        let mut done = std::mem::take(&mut self.done);
        assert_eq!(done.len(), 1, "one call is answered: {done:?}");
        done.remove(0).1
    }

    fn seen(&mut self) -> Seen {
        match self.answer() {
            Answer::Read(seen) => seen,
            other => panic!("a read is answered, not {other:?}"),
        }
    }

    fn refusal(&mut self) -> Abort {
        match self.answer() {
            Answer::Failed(abort) | Answer::Aborted { abort, .. } => abort,
            other => panic!("it is refused, not {other:?}"),
        }
    }

    fn reply(&mut self, from: NodeId, id: TransactionId, decision: Decision) {
        let (outcomes, clock) = (Outcomes::new(), time(5_000_000));
        self.receive(from, Body::Reply { id, decision, outcomes, clock });
    }

    fn replicas(&self, key: &str, chunk: u64) -> Vec<NodeId> {
        self.session.map.holders(&blob(key), chunk).to_vec()
    }
}

/// The answer of a node whose chunk holds `bytes` of what was asked for, to a read at `at`, of a
/// blob of `size` bytes.
fn part(request: &ReadRequest, at: Option<u64>, bytes: &[u8], size: Option<u64>) -> Body {
    Body::Part(ReadPart {
        read: request.read,
        range: request.range,
        at: at.map(time),
        version: time(at.unwrap_or(40)),
        bytes: Bytes::copy_from_slice(bytes),
        size: request.is_attributes.then_some(size),
        clock: time(6_000_000),
    })
}

fn abort(kind: ErrorKind) -> Abort {
    Abort::new(kind, "a test says so")
}
