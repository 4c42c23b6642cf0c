//! Histories made by hand, each wrong in one way.

use std::collections::BTreeMap;

use tyr_protocol::commit::Outcomes;
use tyr_protocol::member::Store;
use tyr_protocol::session::Want;
use tyr_protocol::versions::Policy;
use tyr_protocol::{Abort, Chain};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Key, KeyspaceId, NodeId, Operation,
    Outcome, Payload, Timestamp, Transaction, TransactionId,
};

use super::*;
use crate::store::{SimStore, StoreConfig};

const HEALTHY: Allowed = Allowed {
    is_unavailable: false,
    are_pieces_lost: false,
    is_damaged: false,
    snapshot_us: Some(1_000),
    linger_us: 100,
    dropped: Vec::new(),
};

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() }
}

fn time(clock: u64) -> Timestamp {
    Timestamp { clock, ..Timestamp::ZERO }
}

fn write(number: u8) -> Operation {
    Operation::Write { offset: 0, payload: Payload::Inline(Bytes::from(vec![number; 8])) }
}

fn append(number: u8) -> Operation {
    let payload = Payload::Inline(Bytes::from(vec![number; 8]));
    Operation::Append { payload, expected: None }
}

/// A history under way, and what was applied.
#[derive(Default)]
struct Case {
    history: History,
    applied: Applied,
}

impl Case {
    fn add(&mut self, (start_us, end_us): (u64, u64), deed: Deed) -> &mut Entry {
        let end_us = Some(end_us);
        self.history.entries.push(Entry {
            client: 0,
            workload: 0,
            start_us,
            end_us,
            deed,
            pages: Vec::new(),
        });
        self.history.entries.last_mut().unwrap()
    }

    /// A transaction on blobs by letter; committed, and applied, when it has a timestamp.
    fn transaction(
        &mut self,
        times: (u64, u64),
        reads: Vec<Seen>,
        writes: &[(&str, Operation)],
        at: Option<u64>,
    ) -> &mut Attempted {
        let id = TransactionId(self.history.entries.len() as u128);
        let on = |(key, operation): &(&str, Operation)| BlobOperations {
            blob: blob(key),
            operations: vec![operation.clone()],
        };
        let blobs = writes.iter().map(on).collect();
        let fate = match at {
            Some(at) => Fate::Committed(time(at)),
            None => Fate::Aborted(Abort::new(ErrorKind::Conflict, "it changed")),
        };
        if let (Some(at), false) = (at, writes.is_empty()) {
            self.applied.note(id, time(at));
        }
        let (answers, calls) = Default::default();
        let attempted = Attempted { id: Some(id), reads, blobs, fate, answers, calls };
        match &mut self.add(times, Deed::Transaction(attempted)).deed {
            Deed::Transaction(attempted) => attempted,
            _ => unreachable!("it was just made"),
        }
    }

    fn read(&mut self, key: &str, times: (u64, u64), number: Option<u8>) {
        self.add(times, Deed::Read(seen(key, times, None, number)));
    }

    fn wrong(&self) -> Vec<String> {
        check(&self.history, &self.applied, None, &HEALTHY).0
    }

    /// Something is wrong, and these words say what.
    fn finds(&self, words: &str) {
        let wrong = self.wrong();
        assert!(wrong.iter().any(|text| text.contains(words)), "\"{words}\" is not in {wrong:#?}");
    }
}

/// A read of the first eight bytes of a blob.
fn seen(key: &str, times: (u64, u64), at: Option<u64>, number: Option<u8>) -> Seen {
    let want = Want::bytes(blob(key), ByteRange { start: 0, end: 8 });
    let found = match number {
        None => Found::Absent,
        Some(number) => Found::Bytes { bytes: Bytes::from(vec![number; 8]), size: None },
    };
    let at = at.map(time);
    Seen { want, start_us: times.0, end_us: Some(times.1), at, found }
}

/// Two transactions and a read, all as it should be.
fn good() -> Case {
    let mut case = Case::default();
    case.transaction((10, 20), vec![], &[("a", write(1)), ("b", write(1))], Some(15));
    case.transaction(
        (30, 40),
        vec![seen("a", (30, 31), Some(20), Some(1))],
        &[("a", write(2))],
        Some(35),
    );
    case.read("a", (50, 55), Some(2));
    case
}

#[test]
fn a_good_history_is_found_good() {
    assert_eq!(good().wrong(), Vec::<String>::new());
}

#[test]
fn what_never_ended_is_found() {
    let mut case = good();
    case.history.entries[2].end_us = None;
    case.finds("never ended");
}

/// Who gets a blob's chunks after it was deleted and that is forgotten gets nothing of before.
#[test]
fn what_nobody_has_of_a_blob_that_was_deleted_since_is_not_missed() {
    let mut case = Case::default();
    case.transaction((10, 20), vec![], &[("a", write(1))], Some(15));
    let delete = [("a", Operation::Delete)];
    let answer = history::Answer { blob: 0, operation: 0, outcome: Outcome::Existed(true) };
    case.transaction((30, 40), vec![], &delete, Some(35)).answers = vec![answer];
    case.applied = Applied::default();
    case.applied.note(TransactionId(1), time(35));
    assert_eq!(case.wrong(), Vec::<String>::new());
    case.transaction((50, 60), vec![], &[("a", write(2))], Some(55));
    case.applied = Applied::default();
    case.applied.note(TransactionId(1), time(35));
    case.finds("no node applied it");
}

#[test]
fn an_acknowledged_transaction_that_nobody_applied_is_found() {
    let mut case = good();
    case.applied = Applied::default();
    case.applied.note(TransactionId(0), time(15));
    case.finds("no node applied it");
}

#[test]
fn a_transaction_at_two_timestamps_is_found() {
    let mut case = good();
    case.applied.note(TransactionId(1), time(36));
    case.finds("took effect at 0.35.0 and at 0.36.0");
    let mut case = good();
    case.applied = Applied::default();
    case.applied.note(TransactionId(0), time(15));
    case.applied.note(TransactionId(1), time(36));
    case.finds("acknowledged at 0.35.0, and applied at 0.36.0");
}

#[test]
fn an_aborted_transaction_that_took_effect_is_found() {
    let mut case = good();
    let reads = vec![seen("a", (60, 61), Some(60), Some(2))];
    case.transaction((60, 70), reads, &[("a", write(3))], None);
    assert_eq!(case.wrong(), Vec::<String>::new());
    case.applied.note(TransactionId(3), time(65));
    case.finds("was aborted (it changed), and applied at 0.65.0");
}

#[test]
fn an_effect_that_nobody_asked_for_is_found() {
    let mut case = good();
    case.applied.note(TransactionId(99), time(99));
    case.finds("nobody asked for it");
}

#[test]
fn two_transactions_with_one_timestamp_are_found() {
    let mut case = good();
    case.transaction((60, 70), vec![], &[("c", write(3))], Some(35));
    case.finds("share timestamp 0.35.0");
}

#[test]
fn a_transaction_that_only_writes_and_aborts_is_found() {
    let mut case = good();
    case.transaction((60, 70), vec![], &[("a", write(3))], None);
    case.finds("it only writes, and was aborted as Conflict");
}

#[test]
fn unavailability_is_legitimate_only_with_faults() {
    let mut case = good();
    let attempted = case.transaction((60, 70), vec![], &[("a", write(3))], None);
    attempted.fate = Fate::Aborted(Abort::new(ErrorKind::Unavailable, "nobody is there"));
    case.transaction((80, 90), vec![], &[("a", write(4))], None).fate = Fate::Unknown;
    case.finds("was aborted as Unavailable");
    let allowed = Allowed { is_unavailable: true, ..HEALTHY };
    assert_eq!(check(&case.history, &case.applied, None, &allowed).0, Vec::<String>::new());
    let Deed::Transaction(attempted) = &mut case.history.entries[3].deed else { unreachable!() };
    attempted.fate = Fate::Aborted(Abort::new(ErrorKind::Corrupt, "it is broken"));
    assert_eq!(check(&case.history, &case.applied, None, &allowed).0.len(), 1, "never legitimate");
}

#[test]
fn a_snapshot_whose_version_was_removed_while_in_use_is_found() {
    let mut case = good();
    let refused = |key: &str, times| Seen {
        found: Found::Refused(Abort::new(ErrorKind::SnapshotTooOld, "it is gone")),
        ..seen(key, times, Some(52), None)
    };
    let first = seen("a", (50, 60), Some(52), Some(2));
    let seen = vec![first, refused("b", (60, 149)), refused("a", (149, 1049))];
    case.add((50, 1_049), Deed::Snapshot(seen));
    case.finds("its read of \"b\" after 99 us was refused as SnapshotTooOld");
    let Deed::Snapshot(seen) = &mut case.history.entries[3].deed else { unreachable!() };
    seen[1].end_us = Some(150);
    case.finds("its read of \"a\" after 999 us was refused as SnapshotTooOld");
    let Deed::Snapshot(seen) = &mut case.history.entries[3].deed else { unreachable!() };
    seen[2].end_us = Some(1_050);
    assert_eq!(case.wrong(), Vec::<String>::new(), "after the read timeout it may be gone");
}

#[test]
fn reads_of_a_transaction_that_do_not_repeat_are_found() {
    let mut case = good();
    let of = |at, number| seen("a", (60, 61), Some(at), Some(number));
    case.transaction((60, 70), vec![of(20, 1), of(60, 2)], &[], Some(65));
    case.finds("reads do not repeat on \"a\"");
    let mut case = good();
    case.transaction((60, 70), vec![of(60, 1), of(60, 2)], &[], Some(65));
    case.finds("reads do not repeat on \"a\"");
}

#[test]
fn a_read_at_a_timestamp_that_saw_another_moment_is_found() {
    let mut case = good();
    case.add((60, 70), Deed::Snapshot(vec![seen("a", (60, 70), Some(34), Some(2))]));
    case.finds("read \"a\" at 0.34.0: at byte 0 it saw [02");
}

#[test]
fn a_commit_on_stale_reads_is_found() {
    let mut case = good();
    let reads = vec![seen("a", (30, 31), Some(20), Some(1))];
    case.transaction((30, 60), reads, &[("b", write(3))], Some(45));
    case.finds("though what it read of \"a\" is stale");
}

#[test]
fn a_commit_whose_condition_fails_is_found() {
    let mut case = good();
    let expected = Bytes::from(vec![1; 8]);
    let compare = Operation::Compare { offset: 0, expected: expected.into() };
    case.transaction((60, 70), vec![], &[("a", compare)], Some(65));
    case.finds("though its compare of \"a\" fails");
}

#[test]
fn a_wrong_answer_is_found() {
    let mut case = good();
    let attempted = case.transaction((60, 70), vec![], &[("a", append(3))], Some(65));
    let outcome = Outcome::Offset(16);
    attempted.answers.push(Answer { blob: 0, operation: 0, outcome });
    case.finds("answered Offset(16) on \"a\", not Offset(8)");
}

#[test]
fn a_stale_read_is_found() {
    let mut case = good();
    case.read("a", (60, 61), Some(1));
    case.finds("stood nowhere");
}

#[test]
fn a_read_of_the_future_is_found() {
    let mut case = good();
    case.read("a", (22, 29), Some(2));
    case.finds("stood nowhere");
}

#[test]
fn a_read_of_what_nobody_wrote_is_found() {
    let mut case = good();
    case.read("a", (60, 61), Some(7));
    case.finds("stood nowhere");
}

#[test]
fn reads_that_go_back_in_time_are_found() {
    let mut case = Case::default();
    case.transaction((10, 20), vec![], &[("a", write(1))], Some(15));
    // While it is being overwritten, either may be seen, but not first the new and then the old.
    case.transaction((30, 90), vec![], &[("a", write(2))], Some(35));
    case.read("a", (40, 45), Some(2));
    assert_eq!(case.wrong(), Vec::<String>::new());
    case.read("a", (50, 55), Some(1));
    case.finds("not strictly serializable");
}

#[test]
fn two_readers_who_disagree_on_the_order_of_writers_are_found() {
    let mut case = Case::default();
    case.transaction((10, 20), vec![], &[("a", write(1)), ("b", write(1))], Some(15));
    case.transaction((30, 90), vec![], &[("a", write(2))], Some(35));
    case.transaction((30, 90), vec![], &[("b", write(2))], Some(36));
    // One sees a before b, the other b before a.
    case.read("a", (40, 45), Some(2));
    case.read("b", (46, 50), Some(1));
    assert_eq!(case.wrong(), Vec::<String>::new());
    case.read("b", (40, 45), Some(2));
    case.read("a", (46, 50), Some(1));
    case.finds("not strictly serializable");
}

#[test]
fn transactions_against_real_time_are_found_by_who_saw_them() {
    let mut case = Case::default();
    // The second ended before the third began, and has the higher timestamp. That alone is
    // allowed: they are on unrelated blobs.
    case.transaction((1, 2), vec![], &[("a", write(1)), ("b", write(1))], Some(1));
    case.transaction((10, 20), vec![], &[("a", write(2))], Some(50));
    case.transaction((30, 40), vec![], &[("b", write(2))], Some(35));
    assert_eq!(case.wrong(), Vec::<String>::new());
    // One that reads both between their timestamps sees the third and not the second.
    let of = |key, number| seen(key, (5, 60), Some(40), Some(number));
    case.transaction((5, 60), vec![of("a", 1), of("b", 2)], &[], Some(41));
    case.finds("not strictly serializable");
}

#[test]
fn a_lost_update_is_found() {
    let mut case = good();
    for (number, at) in [(3, 66), (4, 67)] {
        let reads = vec![seen("a", (60, 61), Some(60), Some(2))];
        case.transaction((60, 70), reads, &[("a", write(number))], Some(at));
    }
    case.finds("is stale");
}

#[test]
fn a_read_many_that_misses_what_was_acknowledged_is_found() {
    let mut case = good();
    case.add((60, 70), Deed::ReadMany(vec![seen("a", (60, 70), Some(34), Some(1))]));
    case.finds("a read_many of client 0 (60..70 us) misses of \"a\"");
    let mut case = good();
    case.add((39, 70), Deed::ReadMany(vec![seen("a", (39, 70), Some(34), Some(1))]));
    assert_eq!(case.wrong(), Vec::<String>::new(), "it began before the acknowledgement");
}

/// A store of one node that holds everything, with the transactions of a case applied.
fn store(node: u16, case: &Case) -> SimStore {
    let chunk_sizes = BTreeMap::from([(KeyspaceId(1), 16)]);
    let policy = Policy { read_timeout_us: 1_000, linger_us: 100 };
    let mut store = SimStore::new(
        NodeId(node),
        StoreConfig { chunk_sizes, policy, versions_max: 100, broken: None },
    );
    for (_, _, attempted) in case.history.transactions() {
        let (Fate::Committed(at), Some(id)) = (&attempted.fate, attempted.id) else { continue };
        let transaction = Transaction { id, blobs: attempted.blobs.clone(), reads: Vec::new() };
        let _: Outcomes = store.apply(&transaction, &Chain::alone(NodeId(node)), *at);
    }
    store
}

fn wrong_replicas(case: &Case, stores: &[SimStore]) -> Vec<String> {
    let holders = |_: &BlobName, _: u64| vec![NodeId(0), NodeId(1)];
    let nodes = (0..).map(NodeId).zip(stores.iter().map(SimStore::replica)).collect();
    let chunk_sizes = BTreeMap::from([(KeyspaceId(1), 16)]);
    let replicas = Replicas { chunk_sizes, nodes, holders: &holders };
    check(&case.history, &case.applied, Some(&replicas), &HEALTHY).0
}

#[test]
fn replicas_that_differ_are_found() {
    let mut case = good();
    let behind = store(1, &case);
    let payload = Payload::Inline(Bytes::from(vec![3; 16]));
    let beyond = Operation::Write { offset: 8, payload };
    case.transaction((60, 70), vec![], &[("b", beyond)], Some(65));
    let good = store(0, &case);
    assert_eq!(wrong_replicas(&case, &[good.clone(), store(1, &case)]), Vec::<String>::new());
    let wrong = wrong_replicas(&case, &[good.clone(), behind]);
    assert!(wrong[0].contains("node 1 holds keyspace 1 blob \"b\" chunk 0"), "{wrong:?}");
    let mut lacking = store(1, &case);
    lacking.release(&(blob("b"), 1));
    let wrong = wrong_replicas(&case, &[good.clone(), lacking]);
    assert!(wrong[0].contains("chunk 1: nothing, it must have 8 bytes"), "{wrong:?}");
    let mut waiting = store(1, &case);
    waiting.release(&(blob("a"), 0));
    waiting.await_base(&(blob("a"), 0));
    let wrong = wrong_replicas(&case, &[good, waiting]);
    assert!(wrong[0].contains("its base is still to come"), "{wrong:?}");
}
