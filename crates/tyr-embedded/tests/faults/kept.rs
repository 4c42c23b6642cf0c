//! What a store said is on disk is there after the power failed: what `sync` covers, and service
//! metadata.

use tyr_chance::{part, usual_seed};
use tyr_embedded::EmbeddedStore;
use tyr_metadata::{Path, Transaction};
use tyr_store::disk::simulated::{Fault, FaultyOperation};
use tyr_types::{Durability, ErrorKind};

use super::machine::{End, Machine};
use super::model::{Model, Writer};

/// Losses of power after each moment.
const LUCKS: u64 = 8;

#[test]
fn what_buffered_keyspaces_acknowledged_before_a_sync_survives_the_loss_of_power() {
    const STEP: u64 = 7;
    let seed = usual_seed();
    let model = Model::new(seed, 5 * STEP);
    let machine = Machine::new();
    let node = machine.boot().unwrap();
    let mut writer = Writer::new(&node, &machine, &model, Durability::Buffered, 0).unwrap();
    for done in (STEP..=5 * STEP).step_by(STEP as usize) {
        for _ in 0..STEP {
            writer.run_one().unwrap();
        }
        node.sync().unwrap();
        for luck in 0..part(LUCKS) {
            let context = format!("{done} transactions, seed {seed}, luck {luck}");
            let left = machine.after(machine.operations(), End::PowerLoss, seed ^ luck);
            let node = left.boot().unwrap();
            let found = model.verify(&node, done, &context);
            assert_eq!(found, Some(done), "{context}");
        }
    }
}

fn put(node: &EmbeddedStore, value: u64) -> tyr_types::Result<u64> {
    let path = |text| Path::new(text).unwrap();
    let both = Transaction::new()
        .put(path("service/one"), value.to_string())
        .put(path("service/two"), value.to_string());
    node.change_metadata(&both)
}

/// The value of both keys, which are changed together; 0 when they are not there.
fn found(node: &EmbeddedStore, context: &str) -> u64 {
    let (entries, revision) = node.list_metadata("service/", None, 10).unwrap();
    let values: Vec<u64> = entries
        .iter()
        .map(|(_, entry)| std::str::from_utf8(&entry.value).unwrap().parse().unwrap())
        .collect();
    match values[..] {
        [] => 0,
        [one, two] => {
            assert_eq!((one, revision), (two, one), "{context}: half of a change");
            one
        }
        _ => panic!("{context}: one of two keys is there"),
    }
}

#[test]
fn service_metadata_survives_the_loss_of_power_after_any_operation_whole() {
    let seed = usual_seed();
    let machine = Machine::new();
    let node = machine.boot().unwrap();
    let mut acknowledged = Vec::new();
    for value in 1..=20 {
        assert_eq!(put(&node, value).unwrap(), value);
        acknowledged.push(machine.operations());
    }
    for count in machine.opened_at()..=machine.operations() {
        let promised =
            acknowledged.iter().filter(|operations| **operations <= count).count() as u64;
        for luck in 0..part(LUCKS) {
            let context = format!("after operation {count}, seed {seed}, luck {luck}");
            let left = machine.after(count, End::PowerLoss, seed ^ (count << 8) ^ luck);
            let node = left.boot().unwrap();
            let value = found(&node, &context);
            assert!(value >= promised, "{context}: {value}, but {promised} was acknowledged");
            put(&node, value + 1).unwrap();
        }
    }
}

#[test]
fn metadata_that_could_not_be_written_is_unknown_until_the_store_is_opened_again() {
    let machine = Machine::new();
    let node = machine.boot().unwrap();
    put(&node, 1).unwrap();
    machine.disk().fail(FaultyOperation::Sync, 0, Fault::Broken);
    let error = put(&node, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    for error in [node.list_metadata("", None, 1).unwrap_err(), put(&node, 2).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("open the store again"), "{error}");
    }
    let left = machine.after(machine.operations(), End::Kill, 1);
    let node = left.boot().unwrap();
    let value = found(&node, "after a failure");
    assert!((1..=2).contains(&value), "{value}");
}
