//! Who is let in, who is refused, and what that costs.

use std::net::SocketAddr;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tyr_engine::{Engine, Holdings, Retention};
use tyr_protocol::member::{Member, MemberConfig};
use tyr_protocol::wire::{self, Frame, Hello, LEVEL, Outgoing};
use tyr_store::store::Store;
use tyr_types::{
    BlobName, BlobOperations, Bytes, Epoch, ExtentRef, Key, KeyspaceConfig, Number, Operation,
    Payload, TransactionId, Transform,
};

use super::*;
use tyr_net::access::{self, User};
use tyr_net::{Authenticate, Introduction, Principal};
use tyr_types::ErrorKind;

/// Transactions that are refused to see what that costs.
const REFUSALS: u32 = 50_000;

/// No monitors are there.
struct NoMonitors;

impl MonitorInbox for NoMonitors {
    fn receive(&self, _: Envelope) {}

    fn is_monitor(&self, _: NodeId) -> bool {
        false
    }
}

/// Encodes what is sent, as the network does.
#[derive(Default)]
struct Encoding {
    count: AtomicU64,
    outgoing: Mutex<Outgoing>,
}

impl Outbound for Encoding {
    fn send(&self, to: Address, envelope: Envelope) {
        assert_eq!(to, Address::Client(1));
        let Body::Reply { decision: Decision::Abort(abort), .. } = &envelope.body else {
            panic!("not a refusal: {envelope:?}");
        };
        assert_eq!(abort.kind, ErrorKind::Unavailable);
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut outgoing = self.outgoing.lock();
        wire::encode(&envelope, &mut outgoing).unwrap();
        outgoing.take_bytes();
    }

    fn flush(&self) {}
}

/// The transaction of a monitoring store, as a client sends it.
fn frame(number: u64) -> Bytes {
    let blob =
        |key: &str| BlobName { keyspace: tyr_types::KeyspaceId(1), key: Key::new(key).unwrap() };
    let payload = Payload::Inline(Bytes::from_static(&[7; 16]));
    let append = Operation::Append { payload, expected: None };
    let add = |key: &str| {
        let apply =
            |(offset, number)| Operation::Apply { offset, transform: Transform::add(number) };
        let operations = [(0, Number::U64(1)), (8, Number::F64(0.5))].map(apply).to_vec();
        BlobOperations { blob: blob(key), operations }
    };
    let series = BlobOperations { blob: blob("generator/7"), operations: vec![append] };
    let blobs = vec![series, add("aggregate/generator/7"), add("aggregate/all")];
    let id = TransactionId::new(1, number);
    let transaction = Arc::new(Transaction { id, blobs, reads: Vec::new() });
    let (ends, begun_us, is_retry, settled) = (Ends::new(), 1, false, 0);
    let body = Body::Submit { transaction, ends, begun_us, is_retry, settled };
    let (epoch, from) = (Epoch(1), Address::Client(1));
    let mut outgoing = Outgoing::new();
    wire::encode(&Envelope { epoch, incarnation: 0, from, body }, &mut outgoing).unwrap();
    outgoing.take_bytes()
}

/// What a client asks beyond what may wait is refused by the gate alone, and costs next to nothing:
/// decoding, refusing and encoding are printed.
#[test]
fn a_full_node_refuses_what_may_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let member = Member::new(NodeId(0), 1, MemberConfig::default());
    let retention = Retention { read_timeout_us: 300_000_000, linger_us: 100_000 };
    let hold = |store| Holdings::new(NodeId(0), store, retention);
    let opened = Engine::open(member, hold, |visit| Store::open_node(folder.path(), visit));
    let (engine, _lock) = opened.unwrap();
    let outbound = Arc::new(Encoding::default());
    let driver = Driver::new(engine, outbound.clone());
    driver.take_no_more();
    let quotas = Quotas::new(NodeId(0), driver.store(), Arc::default());
    let memory = MemoryPressure::new(driver.store(), 1 << 30);
    let users = Arc::new(Users::unchecked());
    let caller = users.identify(&[]).unwrap();
    let gate = Gate::new(users, None);
    gate.learn(Arc::new(ClusterMap::of(3, &[KeyspaceConfig::default()])));
    gate.open(driver, Arc::new(NoMonitors), outbound.clone(), quotas, memory);
    let peer = Arc::new(Peer {
        address: Address::Client(1),
        incarnation: 0,
        level: LEVEL,
        principal: Principal::new(caller),
        socket: SocketAddr::from(([127, 0, 0, 1], 1)),
        connection: 1,
    });
    let frames: Vec<Bytes> = (0..100).map(frame).collect();
    let cpu = || clock_gettime(ClockId::ThreadCPUTime);
    let begun = cpu();
    for number in 0..REFUSALS as usize {
        let Ok(Frame::Message(envelope)) = wire::decode(&frames[number % frames.len()]) else {
            panic!("what was encoded can be decoded");
        };
        gate.receive(&peer, &mut vec![envelope]);
    }
    let took = cpu() - begun;
    let refused = outbound.count.load(Ordering::Relaxed);
    assert!(refused + 16 > u64::from(REFUSALS), "{refused}: a few wait");
    let us = (took.tv_sec as f64 * 1e6 + took.tv_nsec as f64 / 1e3) / f64::from(REFUSALS);
    println!("a refusal takes {us:.2} us of CPU");
}

#[test]
fn a_client_cannot_name_the_extents_of_a_node() {
    let users = Arc::new(Users::unchecked());
    let caller = users.identify(&[]).unwrap();
    let gate = Gate::new(users, None);
    let permitted = |payload| {
        let blob = BlobName { keyspace: tyr_types::KeyspaceId(1), key: Key::new("blob").unwrap() };
        let operations = vec![Operation::Write { offset: 0, payload }];
        let blobs = vec![BlobOperations { blob, operations }];
        let transaction = Transaction { id: TransactionId::new(1, 1), blobs, reads: Vec::new() };
        gate.permit_transaction(&caller, &transaction)
    };
    permitted(Payload::Inline(Bytes::from_static(b"bytes"))).unwrap();
    let extent = ExtentRef { file: 1, position: 4096, len: 40_000, compressed_len: 0 };
    let error = permitted(Payload::Extents(vec![extent])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(gate.refused.forged.load(Ordering::Relaxed), 1);
}

/// F10.
#[test]
fn who_is_refused_for_what_is_remembered_is_told_which_node_is_behind() {
    let error = crowded(Some(Backlog { slowest: Some(NodeId(3)) }));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("because node 3 is not done"), "{error}");
}

#[test]
fn a_node_whose_program_is_too_old_for_the_cluster_is_refused_by_name() {
    let gate = Gate::new(Arc::new(Users::unchecked()), None);
    let hello = |level: u8| Hello {
        level,
        cluster: None,
        sender: Address::Node(NodeId(1)),
        receiver: None,
        incarnation: 1,
        token: Bytes::new(),
    };
    let come = |hello: &Hello| {
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        gate.authenticate(&Introduction { hello, certificate: None, from, is_caller: true })
    };
    assert!(come(&hello(LEVEL)).is_ok(), "no map is known yet");
    let mut map = ClusterMap::of(3, &[KeyspaceConfig::default()]);
    gate.learn(Arc::new(map.clone()));
    assert!(come(&hello(LEVEL)).is_ok());
    map.level = LEVEL + 1;
    gate.learn(Arc::new(map));
    let error = come(&hello(LEVEL)).unwrap_err();
    let expected = format!(
        "this cluster uses feature level {}; this program speaks up to {LEVEL}: it is of an \
         older release; upgrade it",
        LEVEL + 1
    );
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, &expected[..]));
    assert!(come(&hello(LEVEL + 1)).is_ok());
    let client = Hello { sender: Address::Client(7), ..hello(LEVEL) };
    assert!(come(&client).is_ok(), "clients may be older");
}

/// U5.
#[test]
fn who_copies_may_read_the_source_and_write_the_target() {
    let key = access::Key::draw().unwrap();
    let users = Arc::new(Users::with_secret(&access::Key::draw().unwrap()));
    let [own, others] = [1, 2].map(tyr_types::KeyspaceId);
    let user = |rights: [Option<Right>; 2]| {
        let [of_own, of_others] = rights;
        let user = User::new(key.hash()).granted(own, of_own).granted(others, of_others);
        users.update("ann", Some(user));
        users.identify(access::token("ann", &key).as_bytes()).unwrap()
    };
    let gate = Gate::new(Arc::clone(&users), None);
    let blob = |keyspace| BlobName { keyspace, key: Key::new("blob").unwrap() };
    let may = |caller: &Caller| gate.permit_copy(caller, &blob(own), &blob(others)).is_ok();
    assert!(may(&user([Some(Right::Write), Some(Right::Read)])));
    assert!(!may(&user([Some(Right::Write), None])), "it would read what is not for it");
    assert!(!may(&user([Some(Right::Read), Some(Right::Read)])));
    assert!(!may(&user([None, Some(Right::Write)])));
}
