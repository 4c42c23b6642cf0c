//! Members in one process, each over a store of its own: no sockets, but threads, logs and clocks.

mod scrubbing;
mod web;

use tyr_protocol::chain::Ends;
use tyr_protocol::session::{Answer, Call, Place, Want};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, ErrorKind, Key, KeyspaceId, Number,
    NumberType, Operation, Outcome, Payload, Transaction, TransactionId, Transform,
};

use self::web::{Client, Web};
use super::*;

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn commit(client: &mut Client, blobs: Vec<BlobOperations>) -> Vec<Outcome> {
    match client.call(Call::Commit { blobs, reads: Vec::new() }) {
        Answer::Committed { outcomes, .. } => outcomes.iter().map(|it| it.outcome).collect(),
        other => panic!("not committed: {other:?}"),
    }
}

fn write(key: &str, offset: u64, bytes: &[u8]) -> BlobOperations {
    let payload = Payload::Inline(Bytes::copy_from_slice(bytes));
    BlobOperations { blob: blob(key), operations: vec![Operation::Write { offset, payload }] }
}

fn append(key: &str, bytes: &[u8]) -> BlobOperations {
    let payload = Payload::Inline(Bytes::copy_from_slice(bytes));
    let operations = vec![Operation::Append { payload, expected: None }];
    BlobOperations { blob: blob(key), operations }
}

fn add(key: &str, offset: u64, by: u64) -> BlobOperations {
    let transform = Transform::add(Number::U64(by));
    BlobOperations { blob: blob(key), operations: vec![Operation::Apply { offset, transform }] }
}

fn read(client: &mut Client, key: &str, range: ByteRange, place: Place) -> Bytes {
    let want = Want { blob: blob(key), range, is_attributes: false };
    match client.call(Call::Read { want, place }) {
        Answer::Read(seen) => seen.bytes,
        other => panic!("not read: {other:?}"),
    }
}

#[test]
fn a_transaction_over_chunks_and_blobs_is_read_back_at_every_node() {
    let web = Web::form(3, 4096);
    let mut client = web.client();
    let long = vec![7; 10_000];
    let answers = commit(&mut client, vec![write("a", 100, &long), append("b", b"hello")]);
    assert_eq!(answers, [Outcome::Offset(0)]);
    let all = ByteRange { start: 0, end: 20_000 };
    for _ in 0..9 {
        let seen = read(&mut client, "a", all, Place::Newest);
        assert_eq!(seen.len(), 10_100);
        assert_eq!(&seen[..100], [0; 100]);
        assert_eq!(&seen[100..], &long[..]);
        assert_eq!(read(&mut client, "b", all, Place::Newest), "hello");
    }
}

#[test]
fn counters_of_many_clients_add_up() {
    let web = Web::form(3, 1 << 20);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut client = web.client();
            std::thread::spawn(move || {
                for n in 0..200u64 {
                    commit(&mut client, vec![add("sum", 8 * (n % 4), 1), append("log", &[1; 16])]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut client = web.client();
    let sums = read(&mut client, "sum", ByteRange { start: 0, end: 32 }, Place::Newest);
    for cell in sums.chunks(8) {
        assert_eq!(Number::load(NumberType::U64, cell), Number::U64(200));
    }
    let log = read(&mut client, "log", ByteRange { start: 0, end: 1 << 20 }, Place::Newest);
    assert_eq!(log.len(), 800 * 16);
}

#[test]
fn a_cluster_that_was_killed_goes_on_with_what_was_acknowledged() {
    let mut web = Web::form(3, 4096);
    let mut client = web.client();
    for _ in 0..50 {
        commit(&mut client, vec![append("log", &[9; 300]), add("sum", 0, 2)]);
    }
    web.kill_and_restart();
    let mut client = web.client();
    let log = read(&mut client, "log", ByteRange { start: 0, end: 1 << 20 }, Place::Newest);
    assert_eq!(log.len(), 50 * 300);
    let sum = read(&mut client, "sum", ByteRange { start: 0, end: 8 }, Place::Newest);
    assert_eq!(Number::load(NumberType::U64, &sum), Number::U64(100));
    assert_eq!(commit(&mut client, vec![append("log", b"x")]), [Outcome::Offset(15_000)]);
}

#[test]
fn large_payloads_are_read_back_before_and_after_a_kill() {
    let mut web = Web::form(3, 64 << 10);
    let mut client = web.client();
    let pattern: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    commit(&mut client, vec![write("a", 10_000, &pattern), append("log", &pattern[..50_000])]);
    commit(&mut client, vec![append("log", &pattern[..40_000]), append("small", b"s")]);
    commit(&mut client, vec![write("a", 70_000, &[1; 40_000]), add("a2", 0, 1)]);
    let mut expected = vec![0; 10_000];
    expected.extend_from_slice(&pattern);
    expected[70_000..110_000].fill(1);
    let all = ByteRange { start: 0, end: 1 << 20 };
    for round in 0..2 {
        for _ in 0..3 {
            let seen = read(&mut client, "a", all, Place::Newest);
            assert!(seen == expected, "round {round}: {} bytes", seen.len());
            let log = read(&mut client, "log", all, Place::Newest);
            assert_eq!(log.len(), 90_000);
            assert!(log[..50_000] == pattern[..50_000] && log[50_000..] == pattern[..40_000]);
        }
        web.kill_and_restart();
        client = web.client();
    }
}

#[test]
fn what_was_folded_is_there_after_a_kill_and_is_not_done_twice() {
    let mut web = Web::form(3, 4096);
    let mut client = web.client();
    let pattern: Vec<u8> = (0..50_000u32).map(|n| (n % 253) as u8).collect();
    let all = ByteRange { start: 0, end: 1 << 20 };
    for round in 0..4u64 {
        for _ in 0..20 {
            commit(&mut client, vec![append("log", &[9; 300]), add("sum", 0, 2)]);
        }
        commit(&mut client, vec![write("large", round * 1000, &pattern), write("gone", 0, b"x")]);
        let delete = vec![Operation::Delete];
        commit(&mut client, vec![BlobOperations { blob: blob("gone"), operations: delete }]);
        if round != 2 {
            web.fold();
        }
        commit(&mut client, vec![append("log", &[9; 300]), add("sum", 0, 2)]);
        match round {
            0 => web.forget(),
            _ => web.kill_and_restart(),
        }
        client = web.client();
        let count = 21 * (round + 1);
        let log = read(&mut client, "log", all, Place::Newest);
        assert_eq!(log.len() as u64, count * 300, "round {round}");
        let sum = read(&mut client, "sum", ByteRange { start: 0, end: 8 }, Place::Newest);
        assert_eq!(Number::load(NumberType::U64, &sum), Number::U64(2 * count), "round {round}");
        let large = read(&mut client, "large", all, Place::Newest);
        let from = usize::try_from(round).unwrap() * 1000;
        assert!(large[from..] == pattern, "round {round}: {} bytes", large.len());
        assert!(read(&mut client, "gone", all, Place::Newest).is_empty());
    }
}

#[test]
fn a_condition_that_does_not_hold_is_a_conflict_and_changes_nothing() {
    let web = Web::form(3, 4096);
    let mut client = web.client();
    commit(&mut client, vec![write("a", 0, b"old")]);
    let swap = |expected: &'static [u8]| BlobOperations {
        blob: blob("a"),
        operations: vec![
            Operation::Compare { offset: 0, expected: Bytes::from_static(expected).into() },
            Operation::Write { offset: 0, payload: Payload::Inline(Bytes::from_static(b"new")) },
        ],
    };
    let refused = client.call(Call::Commit { blobs: vec![swap(b"odd")], reads: Vec::new() });
    assert!(matches!(refused, Answer::Aborted { abort, .. } if abort.kind == ErrorKind::Conflict));
    commit(&mut client, vec![swap(b"old")]);
    let all = ByteRange { start: 0, end: 9 };
    assert_eq!(read(&mut client, "a", all, Place::Newest), "new");
}

#[test]
fn who_waits_goes_in_as_soon_as_there_is_room_and_no_more_than_there_is() {
    let of = |count| Amount { count, len: 0 };
    let load = |in_flight| {
        let may = Amount { len: 1 << 20, ..of(10) };
        Load { in_flight: of(in_flight), may, backlog: None }
    };
    let mut inbox = Inbox::default();
    inbox.settle(load(10));
    for number in 0..3 {
        let blobs = vec![write("a", 0, b"b")];
        let (id, reads) = (TransactionId(number), Vec::new());
        let transaction = Arc::new(Transaction { id, blobs, reads });
        let (ends, begun_us, is_retry, settled) = (Ends::new(), 0, false, 0);
        let body = Body::Submit { transaction, ends, begun_us, is_retry, settled };
        let (epoch, from) = (Epoch::default(), Address::Client(1));
        let refusal = Envelope { epoch, incarnation: 0, from, body: Body::FetchMap };
        let envelope = Envelope { body, ..refusal.clone() };
        inbox.admission.put(1, 1, envelope, refusal, 0).unwrap();
    }
    inbox.settle(load(10));
    assert!(inbox.work.is_empty() && !inbox.has_room());
    let backlog = Some(Backlog { slowest: Some(NodeId(3)) });
    inbox.settle(Load { backlog, ..load(0) });
    assert!(inbox.work.is_empty() && !inbox.has_room(), "nothing more is to be remembered");
    inbox.settle(load(8));
    assert_eq!(inbox.work.len(), 2, "with those two ten are in flight");
    assert!(!inbox.admission.is_empty());
}
