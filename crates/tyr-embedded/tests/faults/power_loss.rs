//! The power goes after any operation of the disk; what was acknowledged as durable is there.
//!
//! One thread submits transactions, with several in flight, on a node whose disk and index live in
//! memory and remember what was done to them in which order. Then, for every operation of the disk,
//! the power goes right after it: what was synced is left, and of the rest what chance decides.
//! A node opened on that must hold what the first so many transactions leave, all of them that were
//! acknowledged by then, and must go on from there; the power goes once more, and again it must.
//!
//! The transactions follow from a seed. The node's threads do as they please, so the operations
//! come in another order in every run; but which acknowledgement came before which operation is
//! known in each.

use std::sync::Arc;

use tyr_chance::{part, usual_seed};
use tyr_embedded::EmbeddedStore;
use tyr_store::disk::simulated::chance::Chance;
use tyr_types::Durability;

use super::machine::{End, Machine};
use super::model::{Model, Promise, Writer};

/// Transactions of the first life, and of the second.
const TRANSACTIONS: u64 = 90;
const TRANSACTIONS_AFTER: u64 = 6;
/// How often each operation is the last: once of the process, else of the machine.
const LUCKS: u64 = 8;

#[test]
fn power_loss_after_any_operation_takes_nothing_acknowledged_and_leaves_no_half() {
    every_crash(Durability::Sync, usual_seed());
}

#[test]
fn power_loss_takes_only_the_last_buffered_transactions() {
    every_crash(Durability::Buffered, usual_seed().wrapping_add(1));
}

/// Runs transactions, and ends the machine's life after every operation of the disk.
fn every_crash(durability: Durability, seed: u64) {
    let test = Test { model: Model::new(seed, TRANSACTIONS + TRANSACTIONS_AFTER), durability };
    let machine = Machine::new();
    let promises = test.live(&machine, 0, TRANSACTIONS);
    let operations = machine.operations();
    let lucks = part(LUCKS);
    for count in 0..=operations {
        for luck in 0..lucks {
            let end = if luck == 0 { End::Kill } else { End::PowerLoss };
            let seed = seed ^ (count << 8) ^ luck;
            let context = format!("{durability:?}, {end:?} after operation {count}, seed {seed}");
            test.live_again(&machine.after(count, end, seed), promised(&promises, count), &context);
        }
    }
    println!("{operations} operations, each the last {lucks} times, {} promises", promises.len());
    assert!(operations > TRANSACTIONS, "hardly anything was written: {operations} operations");
}

/// What was promised before the disk's operation `count`; `None` before there were keyspaces.
fn promised(promises: &[Promise], count: u64) -> Option<u64> {
    let given = promises.iter().take_while(|promise| promise.operations <= count);
    given.map(|promise| promise.transactions).max()
}

struct Test {
    model: Model,
    durability: Durability,
}

impl Test {
    /// Opens the store, submits transactions after the first `done`, and closes it.
    fn live(&self, machine: &Machine, done: u64, count: u64) -> Vec<Promise> {
        let node = machine.boot().unwrap();
        self.write(&node, machine, done, count)
    }

    fn write(
        &self,
        node: &Arc<EmbeddedStore>,
        machine: &Machine,
        done: u64,
        count: u64,
    ) -> Vec<Promise> {
        let mut writer = Writer::new(node, machine, &self.model, self.durability, done).unwrap();
        writer.run(count).unwrap();
        let promises = writer.end().unwrap();
        node.close().unwrap();
        promises
    }

    /// Opens what an end left, checks it and goes on; then the power goes, and it is checked again.
    fn live_again(&self, machine: &Machine, promised_before: Option<u64>, context: &str) {
        let found = self.open(machine, promised_before, context, |node, found| {
            // What was found is served now, so it stays.
            let mut promises = self.write(node, machine, found, TRANSACTIONS_AFTER);
            promises[0].operations = machine.opened_at();
            promises
        });
        let Some(promises) = found else { return };
        let mut chance = Chance::new(machine.operations() ^ promised_before.unwrap_or(0));
        let count = chance.below(machine.operations() + 1);
        let least = promised(&promises, count).max(promised_before);
        let again = machine.after(count, End::PowerLoss, chance.any());
        let context = format!("{context}, power lost after operation {count} of the second life");
        self.open(&again, least, &context, |_, _| ());
    }

    /// Opens and checks everything; `None` when no keyspace is there, nor was promised to be.
    fn open<T>(
        &self,
        machine: &Machine,
        promised: Option<u64>,
        context: &str,
        then: impl FnOnce(&Arc<EmbeddedStore>, u64) -> T,
    ) -> Option<T> {
        let node = machine.boot().unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = self.model.verify(&node, promised.unwrap_or(0), context);
        if found.is_none() {
            assert_eq!(promised, None, "{context}: a keyspace is gone");
        }
        let found = found?;
        let report = node.check(&mut |_| {}).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(report.is_sound(), "{context}: {:?}", report.findings);
        Some(then(&node, found))
    }
}
