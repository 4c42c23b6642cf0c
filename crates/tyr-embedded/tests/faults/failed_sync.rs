//! A disk that fails once: nobody is told that a transaction is durable when it may not be.
//!
//! After a failed sync the system may have dropped what was written and yet read it back, so the
//! store does not try again: it refuses writes until it is opened again.

use tyr_store::disk::simulated::chance::Chance;
use tyr_store::disk::simulated::{Fault, FaultyOperation};
use tyr_types::{Durability, ErrorKind};

use super::machine::{End, Machine};
use super::model::{Model, Writer};
use super::seed;

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

/// Lets the first, second, third, ... operation of this kind fail.
fn fail_each(operation: FaultyOperation) {
    let (seed, mut refused) = (seed(), 0);
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
