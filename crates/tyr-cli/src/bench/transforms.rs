//! Arithmetic in place against transactions that read, compute and write.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr::blocking::Tyr;
use tyr::{Durability, ErrorKind, Result};

use super::meter::Figures;
use super::pace::{self, Pace, Step};
use super::workload::Workload;
use crate::random::Random;

/// Measures `writers` threads that all meet in one minute's aggregates.
///
/// A transaction that keeps losing gives up in `transact`; the thread begins it anew, within the
/// same operation, so that its time counts.
pub fn run(pace: Pace, dir: &Path, is_in_place: bool, writers: usize) -> Result<Figures> {
    let workload = Workload::create(Tyr::open(dir)?, Durability::Buffered)?;
    workload.preload()?;
    let given_up = AtomicU64::new(0);
    let steps = (0..writers)
        .map(|writer| {
            let (workload, given_up) = (&workload, &given_up);
            let mut random = Random::new(writer as u64);
            let step = move || {
                if is_in_place {
                    return workload.measure_in_place(&mut random);
                }
                loop {
                    match workload.measure_by_reading(&mut random) {
                        Err(error) if error.kind() == ErrorKind::Conflict => {
                            given_up.fetch_add(1, Ordering::Relaxed);
                        }
                        other => return other,
                    }
                }
            };
            Box::new(step) as Step<'_>
        })
        .collect();
    let run = pace::run(pace, steps, || workload.store.statistics())?;
    workload.verify(pace::count_total(&run.threads), true)?;
    let mut figures = Figures::default();
    let count = pace::count(&run.threads);
    run.cost.report(count, &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    let aborts = run.marks.1.aborts - run.marks.0.aborts;
    figures.set("aborts_per_commit", aborts as f64 / count.max(1) as f64);
    figures.set("given_up", given_up.into_inner() as f64);
    workload.close()?;
    Ok(figures)
}
