//! Many threads on one store: their histories must be explained by one order.
//!
//! Folds go on all the while. Each workload runs on keyspaces of different durability: buffered
//! commits go through in one piece, synced ones stay in flight for a while, and transactions over
//! both must hold together.

#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod histories;

use std::sync::atomic::{AtomicU64, Ordering};

use histories::checker::{check, explain};
use histories::history::{History, Place};
use histories::stage::{Stage, options};
use histories::{bank, counters, lists, log, registers};
use tyr::Durability::{self, Buffered, Sync};
use tyr::ErrorKind;
use tyr_chance::{new_seed, part};
use tyr_runtime::broken::{Rule, with_broken};
use tyr_testing::{Kind, stores};

const THREADS: u64 = 8;
/// Threads where each waits for the disk most of the time.
const SYNC_THREADS: u64 = 16;

fn assert_sound(stage: &Stage, history: &History) {
    let done = history.entries.iter().filter(|entry| entry.is_committed);
    let count = |place| done.clone().filter(|entry| entry.place == place).count();
    let folds = stage.tyr().statistics().folds;
    println!(
        "{} entries: {} strict, {} fresh, {} at snapshots took effect; {folds} folds",
        history.entries.len(),
        count(Place::Strict),
        count(Place::Fresh),
        count(Place::Snapshot)
    );
    assert!(done.clone().count() > history.entries.len() / 3, "most take effect");
    let anomalies = check(history);
    let explained: Vec<String> =
        anomalies.iter().take(3).map(|anomaly| explain(anomaly, history)).collect();
    assert!(anomalies.is_empty(), "{} anomalies: {}", anomalies.len(), explained.join("\n"));
}

/// A stage of each kind, with keyspaces of these durabilities.
fn stages(test: &str, durabilities: &[Durability]) -> impl Iterator<Item = Stage> {
    let seed = new_seed(test);
    stores().into_iter().map(move |kind| Stage::new(kind, seed, durabilities, true))
}

/// Operations of a thread on a stage: fewer on a cluster, whose messages and three copies share the
/// machine with the test.
fn operations(stage: &Stage, embedded: u64) -> u64 {
    match stage.kind {
        Kind::Embedded => part(embedded),
        Kind::Cluster => part(embedded.min(200)),
    }
}

#[test]
fn buffered_lists_are_strictly_serializable() {
    for stage in stages("buffered_lists_are_strictly_serializable", &[Buffered]) {
        let history = lists::play(&stage, THREADS, operations(&stage, 4000));
        assert_sound(&stage, &history);
        let is_folding = stage.tyr().statistics().folds > 0;
        assert_eq!(is_folding, stage.is_embedded(), "folds go on beside it");
    }
}

#[test]
fn synced_lists_are_strictly_serializable() {
    for stage in stages("synced_lists_are_strictly_serializable", &[Sync]) {
        let history = lists::play(&stage, SYNC_THREADS, operations(&stage, 500));
        assert_sound(&stage, &history);
    }
}

#[test]
fn lists_of_both_durabilities_are_strictly_serializable_together() {
    let test = "lists_of_both_durabilities_are_strictly_serializable_together";
    for stage in stages(test, &[Buffered, Sync]) {
        let history = lists::play(&stage, SYNC_THREADS, operations(&stage, 500));
        assert_sound(&stage, &history);
    }
}

#[test]
fn lists_without_older_versions_are_strictly_serializable() {
    let seed = new_seed("lists_without_older_versions_are_strictly_serializable");
    for kind in stores() {
        let stage = Stage::new(kind, seed, &[Buffered], false);
        let history = lists::play(&stage, THREADS, operations(&stage, 2500));
        assert_sound(&stage, &history);
    }
}

#[test]
fn registers_are_strictly_serializable() {
    for durabilities in [&[Buffered][..], &[Buffered, Sync]] {
        for stage in stages("registers_are_strictly_serializable", durabilities) {
            let history = registers::play(&stage, THREADS, operations(&stage, 400));
            assert_sound(&stage, &history);
        }
    }
}

#[test]
fn counters_count_every_addition_once() {
    for (durability, count) in [(Buffered, 1500), (Sync, 200)] {
        for stage in stages("counters_count_every_addition_once", &[durability]) {
            let history = counters::play(&stage, THREADS, operations(&stage, count));
            assert_sound(&stage, &history);
        }
    }
}

#[test]
fn conditional_appends_leave_no_gap_and_no_double() {
    for (durability, count) in [(Buffered, 1500), (Sync, 150)] {
        for stage in stages("conditional_appends_leave_no_gap_and_no_double", &[durability]) {
            let count = operations(&stage, count);
            let history = log::play(&stage, THREADS, count);
            let anomalies = check(&history);
            assert!(anomalies.is_empty(), "{}", anomalies[0]);
            let appended = stage.keyspace(0).stat("o0").unwrap().size / 8;
            assert!(appended > count / 4, "only {appended} appends went through");
        }
    }
}

#[test]
fn auditors_find_the_same_sum_whenever_they_look() {
    for (durabilities, count) in [(&[Buffered][..], 1000), (&[Buffered, Sync], 150)] {
        for stage in stages("auditors_find_the_same_sum_whenever_they_look", durabilities) {
            let count = operations(&stage, count);
            let audits = bank::play(&stage, THREADS, count);
            println!("{audits:?}, {} folds", stage.tyr().statistics().folds);
            // Over a network optimistic transactions conflict as the machine's load would have it.
            let (snapshots, transfers) = if stage.is_embedded() { (count, count) } else { (0, 0) };
            assert!(audits.snapshots > snapshots, "snapshots answer: {audits:?}");
            assert!(audits.transfers > transfers, "transfers go through: {audits:?}");
            assert!(audits.at_once > 0 && audits.transactions > 0, "audits end: {audits:?}");
        }
    }
}

/// Rounds within which the checker must have noticed a broken rule.
const ROUNDS_MAX: u64 = 50;

/// The anomalies found on stores that break `rule`.
fn anomalies_without(rule: Rule, durabilities: &[Durability]) -> Vec<&'static str> {
    let seed = new_seed("a broken rule");
    for round in 0..ROUNDS_MAX {
        let open = |path: &std::path::Path| with_broken(rule, || options().open_blocking(path));
        let stage = Stage::embedded(seed + round, durabilities, true, open);
        let anomalies = check(&lists::play(&stage, THREADS, 100));
        if !anomalies.is_empty() {
            println!("without {rule:?}, in round {round}: {}", anomalies[0]);
            return anomalies.iter().map(|anomaly| anomaly.name()).collect();
        }
    }
    panic!("{rule:?} was broken for {ROUNDS_MAX} rounds and the checker did not notice");
}

#[test]
fn checker_notices_reads_that_are_not_validated() {
    let found = anomalies_without(Rule::C1, &[Buffered]);
    let is_known = |name: &&str| ["lost update", "write skew", "stale read"].contains(name);
    assert!(found.iter().any(is_known), "{found:?}");
}

#[test]
fn checker_notices_writes_that_do_not_wait_for_reads() {
    // Only where one is in flight for long and the other is not can anybody see between them.
    let found = anomalies_without(Rule::C2, &[Buffered, Sync]);
    assert!(found.contains(&"stale read"), "{found:?}");
}

#[test]
fn checker_notices_snapshots_that_do_not_wait_for_what_is_in_flight() {
    let found = anomalies_without(Rule::R5, &[Sync]);
    let is_known = |name: &&str| ["fractured read", "unrepeatable read"].contains(name);
    assert!(found.iter().any(is_known), "{found:?}");
}

#[test]
fn keyspaces_dropped_beside_their_writers_leave_nothing_behind() {
    const TIMES: u64 = 60;
    let seed = new_seed("keyspaces_dropped_beside_their_writers");
    let stage = Stage::new(Kind::Embedded, seed, &[Buffered, Sync], true);
    let configs: Vec<_> = stage.keyspaces().iter().map(|space| space.config().clone()).collect();
    let dropped = AtomicU64::new(0);
    stage.play(THREADS, |recorder, random| {
        let is_dropping = recorder.is_first();
        while dropped.load(Ordering::Relaxed) < TIMES {
            let name = ["k0", "k1"][random.below(2) as usize];
            if is_dropping {
                stage.tyr().drop_keyspace(name).unwrap();
                let config = configs[usize::from(name == "k1")].clone();
                stage.tyr().create_keyspace(name, config).unwrap();
                dropped.fetch_add(1, Ordering::Relaxed);
            }
            for _ in 0..50 {
                let Ok(keyspace) = stage.tyr().keyspace(name) else { continue };
                let result = keyspace.put(format!("{}", random.below(100)), vec![7; 200]);
                let kind = result.err().map(|error| error.kind());
                assert!(matches!(kind, None | Some(ErrorKind::NotFound)), "{kind:?}");
            }
        }
    });
    for name in ["k0", "k1"] {
        stage.tyr().drop_keyspace(name).unwrap();
    }
    stage.fold();
    let statistics = stage.tyr().statistics();
    assert_eq!(statistics.dirty_bytes, 0, "{statistics:?}");
    assert_eq!(statistics.memory_bytes, 0, "{statistics:?}");
    // What lies on disk is removed by and by, also while it is looked at.
    let mut left = (0..100_000).map(|_| stage.tyr().check(&mut |_| {}).unwrap().blobs);
    assert!(left.any(|blobs| blobs == 0), "blobs of dropped keyspaces stay on disk");
}
