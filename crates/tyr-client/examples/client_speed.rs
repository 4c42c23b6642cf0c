//! What a call costs a client apart from the network: nodes that answer at once, on the thread that
//! sends to them.
//!
//! `cargo run --release -p tyr-client --example client_speed -- CALLS`

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_client::control::{Asked, CalledAt, Control, UsageOfNodes};
use tyr_client::{
    Client, ClientConfig, ClientParts, Inbox, Place, Presence, Transport, Want, block_on,
};
use tyr_control::call::{CallKind, Called};
use tyr_control::status::Bootstrap;
use tyr_control::{Answer, NodeRecord, Request};
use tyr_metadata::KeyChange;
use tyr_protocol::commit::{Decision, Outcomes};
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Body, Envelope, ReadPart};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, Key, KeyspaceConfig, KeyspaceId, NodeId,
    Number, Operation, Payload, Timestamp, Transform,
};

/// Nodes that say yes to everything, as soon as they are flushed to.
struct Yes {
    inbox: Inbox,
    sent: Mutex<VecDeque<(NodeId, Envelope)>>,
}

impl Transport for Yes {
    fn send(&self, to: NodeId, envelope: Envelope) {
        self.sent.lock().push_back((to, envelope));
    }

    fn flush(&self) {
        let sent = std::mem::take(&mut *self.sent.lock());
        self.inbox.receive(sent.into_iter().filter_map(|(node, it)| answer(node, it)));
    }
}

fn answer(node: NodeId, asked: Envelope) -> Option<Envelope> {
    let clock = Timestamp { clock: 1_000_000, ..Timestamp::ZERO };
    let body = match asked.body {
        Body::Submit { transaction, .. } => {
            let (id, decision) = (transaction.id, Decision::Commit(clock));
            Body::Reply { id, decision, outcomes: Outcomes::new(), clock }
        }
        Body::Read(request) => Body::Part(ReadPart {
            read: request.read,
            range: request.range,
            at: Some(clock),
            version: clock,
            bytes: Bytes::from_static(&[0; 64]).slice(..request.range.len() as usize),
            size: Some(Some(64)),
            clock,
        }),
        _ => return None,
    };
    Some(Envelope { epoch: asked.epoch, incarnation: 1, from: Address::Node(node), body })
}

impl Control for Yes {
    fn newest(&self) -> Asked<Bootstrap> {
        unreachable!("nobody asks for keyspaces here")
    }

    fn propose(&self, _: Change) -> Asked<Epoch> {
        unreachable!("nobody asks for keyspaces here")
    }

    fn ask(&self, _: Request) -> Asked<Answer> {
        unreachable!("nobody asks for keyspaces here")
    }

    fn usage_of(&self, _: BTreeMap<u16, NodeRecord>) -> Asked<UsageOfNodes> {
        unreachable!("nobody asks how much there is")
    }

    fn call_at(
        &self,
        _: NodeId,
        _: CallKind,
        _: Called,
        _: Duration,
        _: Duration,
    ) -> Asked<CalledAt> {
        unreachable!("nobody calls methods")
    }

    fn changes(&self, _: String, _: u64) -> Asked<(Vec<KeyChange>, u64)> {
        unreachable!("nobody asks for keyspaces here")
    }

    fn presence(&self, _: Duration) -> Asked<Presence> {
        unreachable!("nobody is bound to anything")
    }

    fn close(&self) {}
}

fn blob(key: String) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).expect("it is short") }
}

/// An append and three blobs with two sums each: what a monitoring store does with a sample.
fn sample(n: u64) -> Vec<BlobOperations> {
    let payload = Payload::Inline(Bytes::from_static(&[7; 16]));
    let append = Operation::Append { payload, expected: None };
    let series = blob(format!("series/{}", n % 1000));
    let mut blobs = vec![BlobOperations { blob: series, operations: vec![append] }];
    for key in [format!("generator/{}", n % 1000), format!("area/{}", n % 20), "all".to_owned()] {
        let add = |offset, number| Operation::Apply { offset, transform: Transform::add(number) };
        let operations = vec![add(11_520, Number::U64(1)), add(11_528, Number::F64(0.5))];
        blobs.push(BlobOperations { blob: blob(key), operations });
    }
    blobs
}

fn cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn measure(what: &str, calls: u64, mut call: impl FnMut(u64)) {
    (0..calls / 10).for_each(&mut call);
    let (cpu, begun) = (cpu_us(), Instant::now());
    (0..calls).for_each(&mut call);
    let (cpu, elapsed) = (cpu_us() - cpu, begun.elapsed());
    let calls = calls as f64;
    println!("{what}: {:.2} us CPU, {:.2} us", cpu / calls, elapsed.as_micros() as f64 / calls);
}

fn main() {
    let calls = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let inbox = Inbox::default();
    let nodes = Arc::new(Yes { inbox: inbox.clone(), sent: Mutex::default() });
    let (transport, control) = (Arc::clone(&nodes), nodes);
    let map = Arc::new(ClusterMap::of(3, &[KeyspaceConfig::default()]));
    let config = ClientConfig::default();
    let parts = ClientParts { number: 1, map, transport, inbox, control, config };
    let client = Client::start(parts).expect("it starts");
    measure("a transaction's own words", calls, |n| drop(std::hint::black_box(sample(n))));
    measure("a transaction of four blobs", calls, |n| {
        let committed = client.commit(sample(n), Vec::new(), Vec::new()).wait();
        committed.expect("they say yes");
    });
    let read = |n: u64, place| {
        let range = ByteRange { start: 0, end: 64 };
        let want = Want::bytes(blob(format!("series/{}", n % 1000)), range);
        let sight = block_on(client.read(want, place).answer());
        sight.expect("they say yes");
    };
    measure("a read of 64 bytes", calls, |n| read(n, Place::Newest));
    measure("a transaction's first read", calls, |n| read(n, Place::Transaction));
    for threads in [2, 8, 32] {
        let (cpu, begun) = (cpu_us(), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for n in 0..calls / threads {
                        let committed = client.commit(sample(n), Vec::new(), Vec::new()).wait();
                        committed.expect("they say yes");
                    }
                });
            }
        });
        let (cpu, elapsed) = (cpu_us() - cpu, begun.elapsed());
        println!(
            "{threads} threads: {:.2} us CPU a transaction, {:.0} a second",
            cpu / calls as f64,
            calls as f64 / elapsed.as_secs_f64()
        );
    }
}
