//! A disk that is full again and again: what does not fit is refused as a whole, and the store goes
//! on as soon as there is space.

use tyr_chance::usual_seed;
use tyr_store::disk::simulated::chance::Chance;
use tyr_types::{Durability, Error, ErrorKind};

use super::machine::{End, Machine};
use super::model::{Model, Writer};

const TRANSACTIONS: u64 = 300;

#[test]
fn a_full_disk_refuses_transactions_whole_and_the_store_goes_on() {
    let seed = usual_seed();
    for durability in [Durability::Sync, Durability::Buffered] {
        fill_again_and_again(durability, seed);
    }
}

fn fill_again_and_again(durability: Durability, seed: u64) {
    let (mut chance, model) = (Chance::new(seed), Model::new(seed, TRANSACTIONS));
    let machine = Machine::new();
    let node = machine.boot().unwrap();
    let mut writer = Writer::new(&node, &machine, &model, durability, 0).unwrap();
    let (mut done, mut refused, mut folds_refused) = (0, 0, 0);
    let mut space = 64 << 10;
    machine.disk().set_capacity(Some(space));
    while done < TRANSACTIONS {
        let context = format!("{durability:?}, {done} transactions, {space} bytes of space");
        match writer.run_one() {
            Ok(()) => done += 1,
            Err(error) => {
                check_error(&error, &context);
                refused += 1;
                model.verify_running(&node, done, &context);
                if chance.one_in(3) {
                    let left = machine.after(machine.operations(), End::PowerLoss, chance.any());
                    let least = if durability == Durability::Sync { done } else { 0 };
                    let context = format!("{context}, power lost");
                    model.verify(&left.boot().unwrap(), least, &context).unwrap();
                }
                space += chance.below(24 << 10);
                machine.disk().set_capacity(Some(space));
            }
        }
        if chance.one_in(6)
            && let Err(error) = node.fold()
        {
            check_error(&error, &context);
            folds_refused += 1;
        }
    }
    println!("{durability:?}: {refused} transactions and {folds_refused} folds met a full disk");
    assert!(refused > 20, "{durability:?}: the disk was full only {refused} times");
    drop(writer);
    model.verify_running(&node, done, "at the end");
    machine.disk().set_capacity(None);
    node.close().unwrap();
    drop(node);
    let node = machine.after(machine.operations(), End::PowerLoss, seed).boot().unwrap();
    assert_eq!(model.verify(&node, TRANSACTIONS, "opened again"), Some(TRANSACTIONS));
    let report = node.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

fn check_error(error: &Error, context: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{context}: {error}");
    assert!(error.message().contains("disk full"), "{context}: {error}");
}
