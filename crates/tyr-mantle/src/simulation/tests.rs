//! What policies make of loads: the same from each seed, and what is promised of each.

use super::chart::{csv, svg};
use super::experiment::{FIGURES, runs};
use super::{Run, Setup, run};
use crate::builtin::{BUILT_IN, script};

/// A policy that moves whatever there is to the other node, all the time.
const RESTLESS: &str = "
    function when() return #nodes[whoami].seats > 0 end
    function where() targets[if whoami == 1 then 2 else 1] = nodes[whoami].load end";

fn simulated(seed: u64, policy: &str) -> Run {
    let policy = Some(script(policy).unwrap_or(policy).to_owned());
    run(&Setup { seed, policy, ..Setup::default() }).unwrap()
}

#[test]
fn one_seed_is_one_run() {
    for (name, _) in BUILT_IN {
        assert_eq!(simulated(7, name), simulated(7, name), "{name}");
    }
    assert_ne!(simulated(7, "hard").rates, simulated(8, "hard").rates);
}

#[test]
fn a_load_at_one_node_is_spread_by_each_policy_that_is_made_for_it_from_any_seed() {
    for seed in 0..10 {
        for name in ["greedy_spill", "adaptable", "sequencer", "hard"] {
            let run = simulated(seed, name);
            assert_eq!(run.failures, [], "{name}, seed {seed}");
            let (before, after) = (run.mean(0..10), run.mean(80..100));
            assert!(10 * after >= 19 * before, "{name}, seed {seed}: {before} and {after}");
        }
    }
}

#[test]
fn no_policy_that_comes_with_the_program_moves_a_seat_that_is_well_where_it_is() {
    for seed in 0..10 {
        for (name, _) in BUILT_IN {
            let late = simulated(seed, name).moves.iter().filter(|it| it.0 > 70_000_000).count();
            assert_eq!(late, 0, "{name}, seed {seed}");
        }
    }
}

#[test]
fn a_policy_that_moves_all_the_time_is_bounded() {
    let setup = Setup { seconds: 3_600, clients: 1, service_us: 50_000, ..Setup::default() };
    let run = run(&Setup { policy: Some(RESTLESS.to_owned()), nodes: 2, ..setup }).unwrap();
    let of = |seat: &str| run.moves.iter().filter(|it| it.1.seat == seat).count();
    // At once, and then after 30 s, a minute, two, and so on.
    assert!((4..=8).contains(&of("seats/0")), "{:?}", run.moves);
    // At most one from and one to each node in a tick.
    for pair in run.moves.windows(2) {
        let shares = [pair[0].1.from, pair[0].1.to].contains(&pair[1].1.from);
        assert!(pair[0].0 != pair[1].0 || !shares, "{pair:?}");
    }
}

#[test]
fn the_figures_in_the_documents_are_what_is_simulated() {
    let documents = [
        (
            include_str!("../../../../docs/figures/balancing.csv"),
            include_str!("../../../../docs/figures/balancing.svg"),
        ),
        (
            include_str!("../../../../docs/figures/balancing-modes.csv"),
            include_str!("../../../../docs/figures/balancing-modes.svg"),
        ),
    ];
    for (figure, (table, drawn)) in FIGURES.iter().zip(documents) {
        let remedy = "run `cargo run -p tyr-mantle --example balance` again";
        assert!(csv(&runs(figure).unwrap()) == table, "{}: {remedy}", figure.name);
        assert!(svg(figure.title, table) == drawn, "{}: {remedy}", figure.name);
    }
}
