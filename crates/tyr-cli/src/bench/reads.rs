//! Small reads of some blobs far more often than of others.

use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{Durability, Result};

use super::meter::Figures;
use super::pace::{self, Pace, Step};
use super::workload::{Workload, Zipf};
use crate::random::Random;

/// Measures `readers` threads, after the store was filled, closed and opened again.
pub fn run(pace: Pace, dir: &Path, readers: usize) -> Result<Figures> {
    let workload = Workload::create(Tyr::open(dir)?, Durability::Buffered)?;
    workload.preload()?;
    workload.close()?;
    let workload = Workload::open(Tyr::open(dir)?)?;
    let zipf = Zipf::new(workload.blob_count());
    let steps = (0..readers)
        .map(|reader| {
            let (workload, zipf) = (&workload, &zipf);
            let mut random = Random::new(reader as u64);
            Box::new(move || workload.read(zipf, &mut random)) as Step<'_>
        })
        .collect();
    let run = pace::run(pace, steps, || ())?;
    let mut figures = Figures::default();
    run.cost.report(pace::count(&run.threads), &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    workload.close()?;
    Ok(figures)
}
