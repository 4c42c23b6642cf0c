//! What programs of users build on: locks, classes, logs, seats, files. Each test on a cluster of
//! its own, for minutes; or all of them on one, for some seconds.

use std::sync::Arc;
use std::time::Instant;

use tyr_types::Result;

use super::{Extent, Ground, consumers, fencing, files, handover, hostile, replaced, sequencer};
use crate::cluster::{Cluster, Plan};

/// Nodes of the cluster.
const NODES: u16 = 3;

/// A test, which answers what it saw.
type Test = fn(&Ground, &mut Cluster, Extent) -> Result<String>;

/// One test, in full.
pub(super) fn one(ground: &Ground, test: Test) -> Result<String> {
    test(ground, &mut cluster(ground)?, Extent::Full)
}

/// A cluster whose logs tell when something was committed.
fn cluster(ground: &Ground) -> Result<Cluster> {
    let plan = Plan { log_level: Some("debug"), ..ground.plan(NODES, None)? };
    Cluster::form(plan, Arc::clone(&ground.fabric))
}

/// All of them in brief, one after the other.
pub(super) fn all(ground: &Ground) -> Result<String> {
    let tests: [Test; 8] = [
        fencing::fenced,
        fencing::unfenced,
        consumers::run,
        hostile::run,
        replaced::run,
        handover::run,
        sequencer::run,
        files::run,
    ];
    let mut cluster = cluster(ground)?;
    for test in tests {
        let begun = Instant::now();
        let text = test(ground, &mut cluster, Extent::Brief)?;
        println!("{text} [{:.1} s]", begun.elapsed().as_secs_f64());
    }
    Ok(format!("all {} on one cluster", tests.len()))
}
