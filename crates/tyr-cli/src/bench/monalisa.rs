//! The transaction of a monitoring store: one append, six additions in place.

use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{Durability, Result};

use super::meter::Figures;
use super::pace::{self, Pace, Step};
use super::workload::Workload;
use crate::random::Random;

/// Measures `writers` threads that commit; compares counts and sizes afterwards.
pub fn run(pace: Pace, dir: &Path, durability: Durability, writers: usize) -> Result<Figures> {
    let workload = Workload::create(Tyr::open(dir)?, durability)?;
    let steps = (0..writers)
        .map(|writer| {
            let (workload, mut random) = (&workload, Random::new(writer as u64));
            Box::new(move || workload.measure_in_place(&mut random)) as Step<'_>
        })
        .collect();
    let run = pace::run(pace, steps, || workload.store.statistics())?;
    workload.verify(pace::count_total(&run.threads), false)?;

    let mut figures = Figures::default();
    run.cost.report(pace::count(&run.threads), &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    let (begin, end) = &run.marks;
    let syncs = end.log_syncs - begin.log_syncs;
    if durability == Durability::Sync && syncs > 0 {
        let synced = end.synced_commits - begin.synced_commits;
        figures.set("transactions_per_sync", synced as f64 / syncs as f64);
    }
    workload.close()?;
    Ok(figures)
}
