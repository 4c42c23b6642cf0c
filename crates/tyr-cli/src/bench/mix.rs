//! Readers beside writers: does a reader pay for the writers around it?
//!
//! On few CPUs the rate of a reader on the wall's clock depends on how much CPU the scheduler
//! gives to it, which is no property of the store. So each reader's own CPU time is taken from
//! its thread's clock, and its rate is given per second of that: the CPU share is equal by
//! construction, and what is left is what reads cost.

use std::path::Path;
use std::time::Duration;

use tyr::blocking::Tyr;
use tyr::{Durability, Result};

use super::meter::Figures;
use super::pace::{self, Done, Pace, Step};
use super::workload::{Workload, Zipf};
use crate::random::Random;

/// Measures `readers` threads while `writers` threads commit.
pub fn run(pace: Pace, dir: &Path, writers: usize, readers: usize) -> Result<Figures> {
    let workload = Workload::create(Tyr::open(dir)?, Durability::Buffered)?;
    workload.preload()?;
    let zipf = Zipf::new(workload.blob_count());
    let mut steps: Vec<Step<'_>> = Vec::new();
    for writer in 0..writers {
        let (workload, mut random) = (&workload, Random::new(writer as u64));
        steps.push(Box::new(move || workload.measure_in_place(&mut random)));
    }
    for reader in 0..readers {
        let (workload, zipf) = (&workload, &zipf);
        let mut random = Random::new((writers + reader) as u64);
        steps.push(Box::new(move || workload.read(zipf, &mut random)));
    }
    let run = pace::run(pace, steps, || ())?;
    let (written, read) = run.threads.split_at(writers);
    workload.verify(pace::count_total(written), true)?;

    let mut figures = Figures::default();
    let wall = run.cost.wall.as_secs_f64();
    figures.set("writes_per_s", pace::count(written) as f64 / wall);
    figures.set("reads_per_s_per_reader", pace::count(read) as f64 / wall / readers as f64);
    figures.set("reads_per_cpu_s", pace::count(read) as f64 / cpu(read).as_secs_f64());
    figures.set("reader_cpu_us", cpu(read).as_secs_f64() * 1e6 / pace::count(read).max(1) as f64);
    figures.set("reader_cpu_share", cpu(read).as_secs_f64() / wall / readers as f64);
    run.cost.report_foreign(&mut figures);
    pace::report_latencies(read, &mut figures);
    workload.close()?;
    Ok(figures)
}

fn cpu(threads: &[Done]) -> Duration {
    threads.iter().map(|done| done.cpu).sum()
}
