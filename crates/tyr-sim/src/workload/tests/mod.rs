//! Workloads on a store that does one thing after the other.

mod serial;

use tyr_types::KeyspaceId;

use self::serial::{Flaw, Serial};
use super::bank::Bank;
use super::borders::Borders;
use super::calls::Calls;
use super::counters::Counters;
use super::ends::Ends;
use super::holes::Holes;
use super::lists::Lists;
use super::locks::Locks;
use super::log::Log;
use super::pages::Pages;
use super::registers::Registers;
use super::rewrites::Rewrites;
use super::rooms::Rooms;
use super::sides::Sides;
use super::snapshots::Snapshots;
use super::stamps::Stamps;
use super::stocks::Stocks;
use super::{Space, Workload};
use crate::checker::{self, Allowed};
use crate::setup::Setup;

/// A cluster on which nothing goes wrong.
const HEALTHY: Allowed = Allowed {
    is_unavailable: false,
    are_pieces_lost: false,
    is_damaged: false,
    snapshot_us: Some(300_000_000),
    linger_us: 300_000_000,
    dropped: Vec::new(),
};

fn workloads() -> Vec<Box<dyn Workload>> {
    let space = Space::new(KeyspaceId(1), 4096);
    vec![
        Box::new(Bank::new(space.clone(), 8)),
        Box::new(Lists::new(space.clone(), 6)),
        Box::new(Registers::new(space.clone(), 10)),
        Box::new(Counters::new(space.clone(), 6)),
        Box::new(Locks::new(space.clone(), 2, true)),
        Box::new(Log::new(space.clone(), 2)),
        Box::new(Rewrites::new(space.clone(), 2)),
        Box::new(Ends::new(space.clone(), 2)),
        Box::new(Borders::new(space.clone(), 2)),
        Box::new(Sides::new(space.clone(), 2)),
        Box::new(Holes::new(space.clone(), 2).with_stretches(20)),
        Box::new(Pages::new(space.clone(), 6, 2_000)),
        Box::new(Rooms::new(space.clone(), 2, 6)),
        Box::new(Snapshots::new(space.clone(), 3, 100_000)),
        Box::new(Stamps::new(space.clone(), 3)),
        Box::new(Stocks::new(space.clone(), 3)),
        Box::new(Calls::new(space.clone(), 3, 3, 3)),
    ]
}

fn setup(seed: u64, duration_us: u64) -> Setup {
    Setup { workloads: workloads(), duration_us, ..Setup::new(seed) }
}

/// What is wrong with a run on a store with this flaw, and how many transactions committed.
fn verdict(seed: u64, duration_us: u64, flaw: Option<Flaw>) -> (Vec<String>, usize) {
    let (runner, applied) = Serial::run(setup(seed, duration_us), flaw);
    let history = runner.history();
    let (mut wrong, end) = checker::check(history, &applied, None, &HEALTHY);
    wrong.extend(runner.check(&end));
    let committed = history.transactions().filter(|(_, _, it)| it.is_committed()).count();
    (wrong, committed)
}

#[test]
fn a_right_store_is_found_right() {
    for seed in 0..10 {
        let (wrong, committed) = verdict(seed, 3_000_000, None);
        assert_eq!(wrong, Vec::<String>::new(), "seed {seed}");
        assert!(committed > 100, "seed {seed}: {committed}");
    }
}

#[test]
fn every_way_to_be_wrong_is_noticed() {
    for flaw in Flaw::ALL {
        let found = (0..20).find(|seed| !verdict(*seed, 3_000_000, Some(flaw)).0.is_empty());
        let Some(seed) = found else { panic!("{flaw:?} is not noticed") };
        println!("{flaw:?}, seed {seed}: {:#?}", verdict(seed, 3_000_000, Some(flaw)).0);
    }
}
