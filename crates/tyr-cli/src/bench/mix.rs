//! Readers beside writers: does a reader pay for the writers around it?
//!
//! How much CPU a reader gets is the scheduler's affair and no property of the store, so it is held
//! equal: where there are two CPUs, all readers run on one and all writers on the other, whatever
//! their numbers, and a reader's rate is given per second of its own CPU time, from its thread's
//! clock. What is left is what a read costs beside those writers.

use std::path::Path;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
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
        let mut place = Place::new(1);
        steps.push(Box::new(move || {
            place.take();
            workload.measure_in_place(&mut random)
        }));
    }
    for reader in 0..readers {
        let (workload, zipf) = (&workload, &zipf);
        let mut random = Random::new((writers + reader) as u64);
        let mut place = Place::new(0);
        steps.push(Box::new(move || {
            place.take();
            workload.read(zipf, &mut random)
        }));
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

/// The CPU that a thread keeps to, once it runs.
struct Place {
    cpu: usize,
    is_taken: bool,
}

impl Place {
    fn new(cpu: usize) -> Self {
        Self { cpu, is_taken: false }
    }

    /// Moves the thread there, the first time. Where that is not allowed, or there is one CPU, it
    /// stays where it is.
    fn take(&mut self) {
        if !std::mem::replace(&mut self.is_taken, true) {
            let mut only = CpuSet::new();
            only.set(self.cpu);
            let _ = sched_setaffinity(None, &only);
        }
    }
}
