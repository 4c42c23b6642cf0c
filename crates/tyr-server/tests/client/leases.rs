//! What nodes tell of the leases of keys that they give (K1).

use std::time::{Duration, Instant};

use tyr_types::{LeaseMode, Leased};

use super::cluster::{PATIENCE, Stage};
use tyr_client::block_on;
use tyr_server::Observer;

#[test]
fn a_node_counts_the_leases_that_are_held_and_those_that_wait() {
    let (stage, client) = Stage::with(|_| {});
    let told = || {
        let of = |server| Observer::of(server).statistics().key_leases;
        let all: Vec<(u64, u64)> = stage.servers.values().map(of).collect();
        all.iter().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    };
    let begun = Instant::now();
    let becomes = |expected: (u64, u64)| {
        while told() != expected {
            assert!(begun.elapsed() < PATIENCE, "{:?} are told, not {expected:?}", told());
            std::thread::yield_now();
        }
    };
    let lease = || {
        let (blob, lasts) = (stage.blob("lock"), Duration::from_secs(10));
        client.lease(Leased::Key(blob), LeaseMode::Exclusive, lasts, Some(PATIENCE))
    };
    assert_eq!(told(), (0, 0));
    let first = block_on(lease().answer()).unwrap();
    becomes((1, 0));
    let second = lease();
    becomes((1, 1));
    drop(first);
    let second = block_on(second.answer()).unwrap();
    becomes((1, 0));
    drop(second);
    becomes((0, 0));
}
