//! Callers that do the same thing over and over, all on one thread, for a while.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::{join, try_join_all};
use hdrhistogram::Histogram;
use tyr::Result;

use super::pattern::Pattern;
use super::processes::Processes;
use crate::bench::meter::{Figures, Moment};
use crate::random::Random;

/// The longest latency that is told from longer ones: a minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Latencies are kept to one in a thousand.
const LATENCY_DIGITS: u8 = 3;

/// What all callers share.
struct Shared {
    is_over: Cell<bool>,
    is_measuring: Cell<bool>,
    count: Cell<u64>,
    count_total: Cell<u64>,
    aborts: Cell<u64>,
    latencies: RefCell<Histogram<u64>>,
}

/// Runs a pattern for `measured`, after a fifth of it as warm-up, and verifies what it left.
///
/// # Errors
/// The first error of any caller.
pub async fn run(pattern: &Pattern, processes: &Processes, measured: Duration) -> Result<Figures> {
    let latencies = Histogram::new_with_max(LATENCY_MAX_NS, LATENCY_DIGITS)
        .expect("the bounds are constants that fit");
    let shared = Shared {
        is_over: Cell::new(false),
        is_measuring: Cell::new(false),
        count: Cell::new(0),
        count_total: Cell::new(0),
        aborts: Cell::new(0),
        latencies: RefCell::new(latencies),
    };
    let callers = (0..pattern.case.callers).map(|number| repeat(pattern, number, &shared));
    let (figures, ended) = join(clock(&shared, processes, measured), try_join_all(callers)).await;
    ended?;
    pattern.verify(shared.count_total.get()).await?;
    Ok(figures)
}

/// Begins and ends the measured time.
async fn clock(shared: &Shared, processes: &Processes, measured: Duration) -> Figures {
    tokio::time::sleep(measured / 5).await;
    shared.is_measuring.set(true);
    let (moment, cpu, nodes_cpu) = (Moment::now(), processes.cpu(), processes.nodes_cpu());
    let until = Instant::now() + measured;
    while Instant::now() < until && !shared.is_over.get() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (cost, cpu) = (moment.cost(), processes.cpu().saturating_sub(cpu));
    let nodes_cpu = processes.nodes_cpu().saturating_sub(nodes_cpu);
    shared.is_measuring.set(false);
    shared.is_over.set(true);
    let count = shared.count.get();
    let mut figures = Figures::default();
    figures.set("per_s", count as f64 / cost.wall.as_secs_f64());
    let each_us = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count.max(1) as f64;
    figures.set("cpu_us", each_us(cpu));
    figures.set("nodes_cpu_us", each_us(nodes_cpu));
    figures.set("aborts", shared.aborts.get() as f64);
    for (name, quantile) in [("p50_us", 0.5), ("p99_us", 0.99)] {
        figures.set(name, shared.latencies.borrow().value_at_quantile(quantile) as f64 / 1e3);
    }
    figures
}

async fn repeat(pattern: &Pattern, number: usize, shared: &Shared) -> Result<()> {
    let mut random = Random::new(number as u64 + 1);
    while !shared.is_over.get() {
        pattern.before(number).await.inspect_err(|_| shared.is_over.set(true))?;
        let begun = Instant::now();
        let done = pattern.once(number, &mut random).await;
        let aborts = done.inspect_err(|_| shared.is_over.set(true))?;
        shared.count_total.set(shared.count_total.get() + 1);
        if shared.is_measuring.get() {
            shared.count.set(shared.count.get() + 1);
            shared.aborts.set(shared.aborts.get() + aborts);
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            shared.latencies.borrow_mut().saturating_record(took);
        }
    }
    Ok(())
}
