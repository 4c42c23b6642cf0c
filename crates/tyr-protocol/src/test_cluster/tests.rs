//! Many seeds of the test cluster, and what its checker notices.

use tyr_chance::part;

use super::config::{Config, Summary};
use super::world::run;
use crate::rule::Rule;

/// Runs a part of so many seeds from the first on; panics at one that goes wrong, naming it.
fn run_all(first: u64, seeds: u64, config: Config) -> Summary {
    let mut total = Summary::default();
    for seed in first..first + part(seeds) {
        match run(seed, config) {
            Ok(summary) => {
                total.committed += summary.committed;
                total.aborted += summary.aborted;
                total.placed += summary.placed;
                total.forwarded += summary.forwarded;
                total.parked += summary.parked;
                total.relayed += summary.relayed;
            }
            Err(error) => panic!("seed {seed} of {config:?}: {error}"),
        }
    }
    total
}

/// The first of these seeds at which the checker notices that `rule` is missing.
fn seed_that_notices(rule: Rule, seeds: u64, config: Config) -> (u64, String) {
    let config = Config { broken: Some(rule), ..config };
    let notices = |seed| run(seed, config).err().map(|error| (seed, error));
    let found = (0..seeds).find_map(notices);
    found.unwrap_or_else(|| panic!("nobody misses {rule:?} in {seeds} seeds"))
}

#[test]
fn chains_of_three_and_more_keep_every_promise() {
    let total = run_all(0, 6_000, Config::default());
    println!("{total:?}");
    // The run is worth something only if it went through what it is about.
    assert!(total.committed > part(20_000) && total.aborted > part(1_000), "{total:?}");
    assert!(
        total.placed > part(100) && total.forwarded > part(1_000) && total.parked > part(1_000),
        "{total:?}"
    );
}

#[test]
fn three_nodes_that_hold_everything_keep_every_promise() {
    run_all(10_000, 1_000, Config { nodes: 3, ..Config::default() });
}

#[test]
fn many_transactions_at_once_keep_every_promise() {
    let config = Config { transactions: 60, reads: 30, ..Config::default() };
    run_all(20_000, 200, config);
}

/// Whether claims are gone over or looked up, what comes of it is the same.
#[test]
fn a_crowd_with_an_index_comes_to_what_a_few_come_to() {
    for (nodes, replication) in [(5, 3), (5, 1), (3, 3), (1, 1)] {
        for seed in 60_000..60_000 + part(400) {
            let config = Config { nodes, replication, transactions: 30, ..Config::default() };
            let [few, crowd] = [usize::MAX, 0].map(|few_max| {
                let summary = run(seed, Config { few_max, ..config });
                format!("{summary:?}")
            });
            assert_eq!(few, crowd, "seed {seed} of {config:?}");
        }
    }
}

/// C9: chunks whose replicas all come before another's are not shown too early.
#[test]
fn chunks_that_lie_apart_keep_every_promise() {
    for (nodes, replication) in [(5, 1), (3, 1), (5, 2), (9, 3)] {
        let config = Config { nodes, replication, ..Config::default() };
        run_all(30_000, 1_000, config);
    }
}

/// C5, C9: in chains of five to nine nodes most hear of a decision from a relay.
#[test]
fn decisions_told_through_relays_keep_every_promise() {
    let total = run_all(50_000, 3_000, Config { nodes: 9, ..Config::default() });
    println!("{total:?}");
    assert!(total.relayed > part(10_000), "{total:?}");
}

#[test]
fn a_chain_of_one_keeps_every_promise() {
    run_all(40_000, 1_000, Config { nodes: 1, replication: 1, ..Config::default() });
}

#[test]
fn one_seed_is_one_run() {
    let [first, second] = [(); 2].map(|()| format!("{:?}", run(7, Config::default())));
    assert_eq!(first, second);
}

/// The checker misses each rule that is taken away.
#[test]
fn the_checker_notices_when_a_rule_is_taken_away() {
    let rules =
        [Rule::C1, Rule::C2, Rule::C6, Rule::C7, Rule::C8, Rule::R1, Rule::R2, Rule::R5, Rule::End];
    for rule in rules {
        let (seed, error) = seed_that_notices(rule, 30_000, Config::default());
        println!("without {rule:?}: noticed at seed {seed} of 0..30000: {error}");
    }
    for rule in [Rule::C2, Rule::C6, Rule::C7] {
        let config = Config { nodes: 9, ..Config::default() };
        let (seed, error) = seed_that_notices(rule, 30_000, config);
        println!("without {rule:?}: noticed with relays at seed {seed} of 0..30000: {error}");
    }
    let apart = Config { replication: 1, reads: 30, ..Config::default() };
    let many = Config { transactions: 30, reads: 60, ..apart };
    let (seed, error) = seed_that_notices(Rule::C6Chunk, 30_000, many);
    println!("without C6Chunk: noticed at seed {seed} of 0..30000: {error}");
    let (seed, error) = seed_that_notices(Rule::C9, 30_000, apart);
    println!("without C9: noticed at seed {seed} of 0..30000: {error}");
}
