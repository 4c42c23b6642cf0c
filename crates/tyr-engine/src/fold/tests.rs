//! Folds and pieces of the log, on a disk that loses power between any two steps.

use tyr_protocol::member::{Member, MemberConfig, incarnation};
use tyr_store::disk::SimulatedDisk;
use tyr_store::extents::ExtentOptions;
use tyr_store::index::memory::MemoryIndex;
use tyr_store::log::LogOptions;
use tyr_store::store::Parts;
use tyr_types::NodeId;

use super::*;
use crate::holdings::{Holdings, Retention};
use crate::journal::Piece;

const RETENTION: Retention = Retention { read_timeout_us: 1_000_000, linger_us: 0 };

struct Own<'e>(&'e mut Engine);

impl Access<Holdings> for Own<'_> {
    fn look<T>(&mut self, look: impl FnOnce(&mut Engine) -> T) -> T {
        look(self.0)
    }
}

/// A machine whose store is small.
#[derive(Clone, Default)]
struct Machine {
    disk: SimulatedDisk,
    index: MemoryIndex,
}

impl Machine {
    /// What a loss of power leaves.
    fn after_power_loss(&self, seed: u64) -> Self {
        let kept = seed as usize % (self.index.unsynced_batches() + 1);
        Self { disk: self.disk.crash(seed), index: self.index.crash(kept) }
    }

    /// A node on it, and how many records its member was told of.
    fn open(&self) -> (Engine, usize) {
        let parts = Parts {
            disk: Arc::new(self.disk.clone()),
            index: Box::new(self.index.clone()),
            log: LogOptions { segment_len: 16 << 10, is_direct: true },
            extents: ExtentOptions { file_len_max: 256 << 10 },
            is_read_only: false,
        };
        let member = Member::new(NodeId(0), incarnation(1), MemberConfig::default());
        let (mut told, hold) = (0, |store| Holdings::new(NodeId(0), store, RETENTION));
        let opened = Engine::open(member, hold, |visit| {
            Store::assemble_node(parts, &mut |store, body, extents| {
                told += 1;
                visit(store, body, extents)
            })
        });
        (opened.unwrap().0, told)
    }
}

/// Gives so many records to the log; the last is waited for under number 7.
fn log(engine: &mut Engine, count: usize) {
    for left in (0..count).rev() {
        let record = Record::Finished { but: Vec::new() };
        engine.journal().append(&record, (left == 0).then_some(7)).unwrap();
    }
}

fn piece(engine: &mut Engine) -> Piece {
    assert!(engine.journal().begin(false), "somebody waits, and nothing is on its way");
    let log = engine.journal().log();
    Piece::take(engine.store(), &log)
}

fn sync(engine: &mut Engine) -> Vec<u64> {
    let mut piece = piece(engine);
    let result = piece.finish();
    engine.journal().settle(piece, &result)
}

#[test]
fn who_waits_for_a_record_is_told_when_no_loss_of_power_takes_it() {
    let mut kept = Vec::new();
    for seed in 0..20 {
        let machine = Machine::default();
        let (mut engine, _) = machine.open();
        log(&mut engine, 30);
        let mut piece = piece(&mut engine);
        assert!(!engine.journal().begin(true), "one piece at a time");
        let result = loop {
            kept.push(machine.after_power_loss(seed).open().1);
            if let Some(result) = piece.step() {
                break result;
            }
        };
        assert_eq!(engine.journal().settle(piece, &result), [7]);
        assert_eq!(machine.after_power_loss(seed).open().1, 30);
    }
    assert!(kept.contains(&0) && kept.contains(&30), "{kept:?}");
}

#[test]
fn a_fold_that_power_ends_after_any_step_leaves_all_that_the_log_told_or_what_stands_for_it() {
    for seed in 0..20 {
        for steps in 0.. {
            let machine = Machine::default();
            let (mut engine, _) = machine.open();
            log(&mut engine, 50);
            sync(&mut engine);
            let mut folding = Folding::begin(engine.store()).unwrap();
            let took = |_| folding.step(&mut Own(&mut engine), |_| true).unwrap();
            let is_ended = (0..steps).map(took).any(|it| matches!(it, Progress::Ended { .. }));
            let (mut left, told) = machine.after_power_loss(seed).open();
            assert_eq!(left.journal().next_sequence(), 51, "after {steps} steps");
            let is_cut = told < 50;
            assert!(is_cut || told == 50 && !is_ended, "{told} after {steps} steps");
            log(&mut left, 1);
            assert_eq!(sync(&mut left), [7]);
            if is_ended {
                break;
            }
        }
    }
}

#[test]
fn a_fold_waits_for_the_log_and_for_readers_and_is_given_up_without_a_trace() {
    let machine = Machine::default();
    let (mut engine, _) = machine.open();
    log(&mut engine, 50);
    let mut folding = Folding::begin(engine.store()).unwrap();
    let mut wait = |engine: &mut Engine, may_go_on: bool| loop {
        match folding.step(&mut Own(engine), |_| may_go_on).unwrap() {
            Progress::Steps => {}
            progress => break progress,
        }
    };
    let waits = wait(&mut engine, true);
    assert!(matches!(waits, Progress::Waits(seen) if seen.is_applied && !seen.is_synced));
    sync(&mut engine);
    let waits = wait(&mut engine, false);
    assert!(matches!(waits, Progress::Waits(seen) if seen.is_ready()));
    folding.abandon(&mut Own(&mut engine));
    let machine = machine.after_power_loss(1);
    let (mut engine, told) = machine.open();
    assert_eq!(told, 50);
    let mut folding = Folding::begin(engine.store()).unwrap();
    while !matches!(folding.step(&mut Own(&mut engine), |_| true).unwrap(), Progress::Ended { .. })
    {
    }
    let (_, told) = machine.after_power_loss(2).open();
    assert!(told < 50, "{told}");
}
