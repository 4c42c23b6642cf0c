//! The world runs, the same way each time, and notices what is wrong.

use crate::report::Report;
use crate::scenario::library;
use crate::trial::{self, Manner};

fn run(name: &str, seed: u64) -> Report {
    let named = library::named(name).unwrap();
    trial::run(&named.scenario, seed, Manner { check_every: 16, ..Manner::default() }).unwrap()
}

#[test]
fn a_healthy_cluster_does_its_work_and_ends() {
    let report = run("healthy", 1);
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert!(report.counters.calls > 100, "{:?}", report.counters);
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    for name in ["standard", "chaos"] {
        let [first, second] = [(); 2].map(|()| run(name, 5));
        assert_eq!((first.trace_hash, first.steps), (second.trace_hash, second.steps));
        assert_eq!(first.history, second.history);
        assert_ne!(first.trace_hash, run(name, 6).trace_hash);
    }
}
