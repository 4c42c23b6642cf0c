//! Kept snapshots read as they were: beside writers and folds, after restarts, and after the power
//! went at any moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_chance::usual_seed;
use tyr_embedded::EmbeddedStore;
use tyr_store::disk::simulated::chance::Chance;
use tyr_types::{Durability, ErrorKind, KeptName};

use super::machine::{End, Machine};
use super::model::{Model, Writer};

/// Transactions of a run.
const TRANSACTIONS: u64 = 150;

/// Operations of the disk from one end of the machine's life to the next.
const STEP: usize = 5;

/// What was done about kept snapshots, and when.
struct Deed {
    name: KeptName,
    /// Operations of the disk when it began, and when it was acknowledged.
    begun: u64,
    done: u64,
    /// The transactions before it; `None` when it was dropped.
    transactions: Option<u64>,
}

/// Runs transactions while snapshots are kept, dropped and read.
fn run(
    node: &Arc<EmbeddedStore>,
    machine: &Machine,
    model: &Model,
    chance: &mut Chance,
) -> Vec<Deed> {
    let mut writer = Writer::new(node, machine, model, Durability::Buffered, 0).unwrap();
    let (mut deeds, mut kept) = (Vec::new(), BTreeMap::<KeptName, u64>::new());
    let mut done = 0;
    while done < TRANSACTIONS {
        let count = 1 + chance.below(12);
        writer.run(count).unwrap();
        done += count;
        let begun = machine.operations();
        if chance.one_in(2) {
            let name = KeptName::new(&format!("after-{done}")).unwrap();
            let at = node.keep(&name).unwrap().at;
            let found = model.verify_kept(node, at, None, chance, &format!("{name}, just kept"));
            let acknowledged = machine.operations();
            let transactions = Some(found);
            kept.insert(name.clone(), found);
            deeds.push(Deed { name, begun, done: acknowledged, transactions });
        }
        if chance.one_in(5)
            && let Some(name) = kept.keys().nth(chance.below(3) as usize).cloned()
        {
            let begun = machine.operations();
            node.drop_kept(&name).unwrap();
            kept.remove(&name);
            deeds.push(Deed { name, begun, done: machine.operations(), transactions: None });
        }
        for (name, transactions) in &kept {
            let at = node.kept_moment(name).unwrap();
            let context = format!("{name} after {done}");
            model.verify_kept(node, at, Some(*transactions), chance, &context);
        }
    }
    writer.end().unwrap();
    deeds
}

#[test]
fn kept_snapshots_read_as_they_were_beside_writers_and_after_restarts() {
    for round in 0..4 {
        let seed = usual_seed().wrapping_add(round);
        let mut chance = Chance::new(seed);
        let (machine, model) = (Machine::new(), Model::new(seed, TRANSACTIONS + 20));
        let node = machine.boot().unwrap();
        run(&node, &machine, &model, &mut chance);
        let mut wanted = BTreeMap::new();
        for kept in node.kept().unwrap() {
            let found = model.verify_kept(&node, kept.at, None, &mut chance, "before");
            wanted.insert(kept.name, (kept.at, found));
        }
        node.close().unwrap();
        let after = machine.after(machine.operations(), End::Kill, seed);
        let node = after.boot().unwrap();
        assert_eq!(node.kept().unwrap().len(), wanted.len());
        for (name, (at, transactions)) in &wanted {
            assert_eq!(node.kept_moment(name).unwrap(), *at);
            let context = format!("{name} after a restart, seed {seed}");
            model.verify_kept_after(&node, *at, Some(*transactions), &mut chance, &context);
        }
        for name in wanted.keys() {
            node.drop_kept(name).unwrap();
        }
        let report = node.check(&mut |_| {}).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

#[test]
fn power_loss_after_any_operation_leaves_every_kept_snapshot_that_was_acknowledged_as_it_was() {
    let seed = usual_seed();
    let mut chance = Chance::new(seed);
    let (machine, model) = (Machine::new(), Model::new(seed, TRANSACTIONS + 20));
    let node = machine.boot().unwrap();
    let deeds = run(&node, &machine, &model, &mut chance);
    node.close().unwrap();
    let mut checked = 0;
    let first = machine.opened_at() + chance.below(STEP as u64);
    for count in (first..=machine.operations()).step_by(STEP) {
        let end = if chance.one_in(3) { End::Kill } else { End::PowerLoss };
        let context = format!("{end:?} after operation {count}, seed {seed}");
        let left = machine.after(count, end, seed ^ (count << 8));
        let node = left.boot().unwrap_or_else(|error| panic!("{context}: {error}"));
        let found: BTreeMap<KeptName, _> =
            node.kept().unwrap().into_iter().map(|kept| (kept.name, kept.at)).collect();
        let mut last: BTreeMap<&KeptName, &Deed> = BTreeMap::new();
        for deed in deeds.iter().filter(|deed| deed.done <= count) {
            last.insert(&deed.name, deed);
        }
        for (name, deed) in last {
            let is_open =
                deeds.iter().any(|it| it.name == *name && it.begun <= count && count < it.done);
            let at = found.get(name);
            match deed.transactions {
                Some(transactions) => match at {
                    Some(at) => {
                        checked += 1;
                        let context = format!("{name}, {context}");
                        let wanted = Some(transactions);
                        model.verify_kept_after(&node, *at, wanted, &mut chance, &context);
                    }
                    None => assert!(is_open, "{name} is gone, {context}"),
                },
                None => assert!(at.is_none(), "{name} was dropped, {context}"),
            }
        }
        if chance.one_in(8) {
            let report = node.check(&mut |_| {}).unwrap();
            assert!(report.is_sound(), "{context}: {:?}", report.findings);
        }
    }
    assert!(checked > 100, "hardly anything was kept: {checked}");
}

#[test]
fn beyond_its_bound_the_oldest_kept_snapshot_is_dropped_and_writing_goes_on() {
    let seed = usual_seed();
    let mut chance = Chance::new(seed);
    let (machine, model) = (Machine::new(), Model::new(seed, 400));
    let node = machine.boot_with_kept_bytes_max(300 << 10).unwrap();
    let mut writer = Writer::new(&node, &machine, &model, Durability::Buffered, 0).unwrap();
    let mut names = Vec::new();
    for number in 0..8 {
        writer.run(50).unwrap();
        let name = KeptName::new(&format!("kept-{number}")).unwrap();
        node.keep(&name).unwrap();
        names.push(name);
        node.fold().unwrap();
        let held: u64 = node.kept().unwrap().iter().map(|kept| kept.bytes).sum();
        assert!(held <= 300 << 10, "{held} bytes are held");
    }
    writer.end().unwrap();
    let left: Vec<KeptName> = node.kept().unwrap().into_iter().map(|kept| kept.name).collect();
    assert!(!left.is_empty() && left.len() < names.len(), "{left:?}");
    assert_eq!(left, names[names.len() - left.len()..], "the youngest are left");
    let gone = node.kept_moment(&names[0]).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    for kept in node.kept().unwrap() {
        model.verify_kept(&node, kept.at, None, &mut chance, kept.name.as_str());
    }
}

#[test]
fn where_the_disk_has_no_room_kept_snapshots_go_and_writing_goes_on() {
    let seed = usual_seed();
    let (machine, model) = (Machine::new(), Model::new(seed, 400));
    let node = machine.boot().unwrap();
    let mut writer = Writer::new(&node, &machine, &model, Durability::Buffered, 0).unwrap();
    machine.disk().set_capacity(Some(5 << 20));
    let mut names = 0;
    for done in 0..400 {
        writer.run_one().unwrap_or_else(|error| panic!("after {done} transactions: {error}"));
        if done % 40 == 0 {
            node.keep(&KeptName::new(&format!("after-{done}")).unwrap()).unwrap();
            names += 1;
        }
        if done % 20 == 0 {
            node.fold().unwrap();
        }
    }
    let left = node.kept().unwrap().len();
    assert!(left < names, "{left} of {names} are left");
    let report = node.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn a_name_is_taken_once_and_too_many_are_refused() {
    let node = Machine::new().boot().unwrap();
    let name = |number: usize| KeptName::new(&format!("kept-{number}")).unwrap();
    for number in 0..tyr_types::limits::KEPT_MAX {
        node.keep(&name(number)).unwrap();
    }
    assert_eq!(node.keep(&name(0)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let error = node.keep(&name(1000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("drop one"), "{error}");
    node.drop_kept(&name(0)).unwrap();
    assert_eq!(node.drop_kept(&name(0)).unwrap_err().kind(), ErrorKind::NotFound);
    node.keep(&name(1000)).unwrap();
}
