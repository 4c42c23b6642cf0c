//! A disk that fails once: nobody is told that a transaction is durable when it may not be.
//!
//! After a failed sync the system may have dropped what was written and yet read it back, so the
//! store does not try again: it refuses writes until it is opened again.

use tyr_chance::usual_seed;
use tyr_embedded::{EmbeddedStore, Held, KeyspaceEntry};
use tyr_store::disk::simulated::chance::Chance;
use tyr_store::disk::simulated::{Fault, FaultyOperation};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Durability, ErrorKind, Key, KeyspaceConfig, KeyspaceName,
    Operation, Payload, Result, Timestamp, Transaction, limits,
};

use super::machine::{End, Machine};
use super::model::{Model, Writer};

const TRANSACTIONS: u64 = 60;

#[test]
fn after_a_failed_sync_what_was_acknowledged_is_there() {
    fail_each(FaultyOperation::Sync);
}

#[test]
fn after_a_failed_write_what_was_acknowledged_is_there() {
    fail_each(FaultyOperation::Write);
}

#[test]
fn after_a_failed_sync_of_names_what_was_acknowledged_is_there() {
    fail_each(FaultyOperation::SyncFolder);
}

/// Threads at once, in a keyspace that syncs and one that does not.
const THREADS: usize = 6;
const COMMITS: usize = 40;

/// Whoever writes the log takes the records of all who wait for that. When it fails they must not
/// take the next write, which has none of them, for theirs.
#[test]
fn after_a_failed_sync_nobody_is_answered_by_a_write_without_his_record() {
    let mut refused = 0;
    for skip in 0..40 {
        let machine = Machine::new();
        let node = machine.boot().unwrap();
        let keyspaces = [Durability::Buffered, Durability::Sync].map(|durability| {
            let config = KeyspaceConfig { durability, ..KeyspaceConfig::default() };
            let name = KeyspaceName::new(durability.name()).unwrap();
            node.create_keyspace(&name, &config).unwrap()
        });
        machine.disk().fail(FaultyOperation::Sync, skip, Fault::Broken);
        let write = |thread: usize| {
            let keyspace = &keyspaces[thread % 2];
            let one = |number: &usize| put(&node, keyspace, &format!("{thread}/{number}")).is_ok();
            (0..COMMITS).take_while(one).count()
        };
        let acknowledged: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        refused += acknowledged.iter().filter(|count| **count < COMMITS).count();
        let count = machine.operations();
        let _ = node.close();
        let left = machine.after(count, End::Kill, skip);
        let node = left.boot().unwrap();
        for (thread, count) in acknowledged.into_iter().enumerate() {
            let name = KeyspaceName::new(keyspaces[thread % 2].info().name.as_str()).unwrap();
            let keyspace = node.keyspace(&name).unwrap();
            for number in 0..count {
                let key = format!("{thread}/{number}");
                let is_there = size(&node, &keyspace, &key) == Some(payload_len(&key) as u64);
                assert!(is_there, "sync {skip} failed: {key} was acknowledged and is not there");
            }
        }
    }
    assert!(refused > 0, "no failure ever met a transaction");
}

/// Every third is large, and lies in an extent.
fn payload_len(key: &str) -> usize {
    match key.bytes().map(usize::from).sum::<usize>() % 3 {
        0 => limits::EXTENT_PAYLOAD_MIN + 8,
        _ => 300,
    }
}

fn put(node: &EmbeddedStore, keyspace: &KeyspaceEntry, key: &str) -> Result<()> {
    let bytes = vec![7; payload_len(key)];
    let mut held = Held::default();
    let payload = if bytes.len() < limits::EXTENT_PAYLOAD_MIN {
        Payload::Inline(bytes.into())
    } else {
        let lease = node.upload(keyspace, &bytes)?;
        let extent = lease.extent();
        held.leases.push(lease);
        Payload::Extents(vec![extent])
    };
    let blob = BlobName { keyspace: keyspace.info().id, key: Key::new(key)? };
    let blobs = vec![BlobOperations { blob, operations: vec![Operation::Replace { payload }] }];
    let transaction = Transaction { id: node.next_transaction_id(), blobs, reads: Vec::new() };
    node.commit(transaction, held).wait().map(drop)
}

fn size(node: &EmbeddedStore, keyspace: &KeyspaceEntry, key: &str) -> Option<u64> {
    let blob = BlobName { keyspace: keyspace.info().id, key: Key::new(key).unwrap() };
    let end = ByteRange { start: 0, end: limits::READ_LEN_MAX };
    node.read(keyspace, &blob, end, Timestamp::MAX).unwrap().map(|(_, bytes)| bytes.len() as u64)
}

/// Lets the first, second, third, ... operation of this kind fail.
fn fail_each(operation: FaultyOperation) {
    let (seed, mut refused) = (usual_seed(), 0);
    let model = Model::new(seed, TRANSACTIONS);
    for skip in 0..100 {
        let mut chance = Chance::new(seed ^ skip);
        let context = format!("{operation:?} number {skip} fails");
        let machine = Machine::new();
        let node = machine.boot().unwrap();
        let mut writer = Writer::new(&node, &machine, &model, Durability::Sync, 0).unwrap();
        machine.disk().fail(operation, skip, Fault::Broken);
        let mut done = 0;
        while done < TRANSACTIONS {
            if chance.one_in(8) {
                // It may be this that fails; what it was to move stays where it is.
                let _ = node.fold();
            }
            let Err(error) = writer.run_one() else {
                done += 1;
                continue;
            };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{context}: {error}");
            refused += 1;
            break;
        }
        let count = machine.operations();
        let end = if chance.one_in(2) { End::Kill } else { End::PowerLoss };
        drop(writer);
        // Closing fails where the store does not know what the disk has; it never hangs.
        let _ = node.close();
        for (count, end) in [(count, end), (machine.operations(), End::PowerLoss)] {
            let left = machine.after(count, end, chance.any());
            let context = format!("{context}, {end:?} after {done} transactions");
            let node = left.boot().unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(model.verify(&node, done, &context).is_some(), "{context}: no keyspace");
            let report = node.check(&mut |_| {}).unwrap();
            assert!(report.is_sound(), "{context}: {:?}", report.findings);
        }
    }
    println!("{refused} of 100 failures met a transaction");
    assert!(refused > 0, "no failure of {operation:?} ever met a transaction");
}
