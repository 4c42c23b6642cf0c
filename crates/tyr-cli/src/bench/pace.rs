//! Threads that do the same thing over and over, for a while.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tyr::Result;

use super::latencies::Latencies;
use super::meter::{Cost, Figures, Moment, thread_cpu};

/// How long to warm up and to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    warm: Duration,
    measure: Duration,
}

impl Pace {
    /// Measures for `seconds`, after a fifth of it.
    pub fn of_seconds(seconds: f64) -> Self {
        let measure = Duration::from_secs_f64(seconds);
        Self { warm: measure / 5, measure }
    }

    /// How long it measures.
    pub fn measured(self) -> Duration {
        self.measure
    }
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// What one thread did.
#[derive(Debug)]
pub struct Done {
    /// Operations that ended while it was measured.
    pub count: u64,
    /// All operations, those of the warm-up too.
    pub count_total: u64,
    /// CPU time of the thread while it was measured.
    pub cpu: Duration,
    latencies: Latencies,
}

/// What all threads did, and what it cost.
#[derive(Debug)]
pub struct Run<M> {
    /// Each thread, in the order given.
    pub threads: Vec<Done>,
    /// Of the measured time.
    pub cost: Cost,
    /// The marks at the beginning and the end of the measured time.
    pub marks: (M, M),
}

/// What one thread does again and again.
pub type Step<'a> = Box<dyn FnMut() -> Result<()> + Send + 'a>;

/// Runs each of `steps` on a thread of its own, as long as `pace` says.
///
/// `mark` is called when measuring begins and ends, to look at counters.
///
/// # Errors
/// The first error of any thread; the others stop then.
pub fn run<M>(pace: Pace, steps: Vec<Step<'_>>, mut mark: impl FnMut() -> M) -> Result<Run<M>> {
    let phase = AtomicU8::new(WARMING);
    thread::scope(|scope| {
        let phase = &phase;
        let threads: Vec<_> =
            steps.into_iter().map(|step| scope.spawn(move || repeat(phase, step))).collect();
        sleep_unless_over(phase, pace.warm);
        let begin = mark();
        let moment = Moment::now();
        // An error may have ended it already; then it stays over.
        let _ = phase.compare_exchange(WARMING, MEASURING, Ordering::SeqCst, Ordering::SeqCst);
        sleep_unless_over(phase, pace.measure);
        let cost = moment.cost();
        let end = mark();
        phase.store(OVER, Ordering::SeqCst);
        let threads = threads
            .into_iter()
            .map(|thread| thread.join().expect("a benchmark thread does not panic"))
            .collect::<Result<Vec<Done>>>()?;
        Ok(Run { threads, cost, marks: (begin, end) })
    })
}

fn sleep_unless_over(phase: &AtomicU8, time: Duration) {
    /// How soon an error in a thread is noticed.
    const NAP: Duration = Duration::from_millis(50);
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || phase.load(Ordering::Relaxed) == OVER {
            return;
        }
        thread::sleep(left.min(NAP));
    }
}

fn repeat(phase: &AtomicU8, mut step: Step<'_>) -> Result<Done> {
    let mut latencies = Latencies::default();
    let (mut count, mut count_total) = (0, 0);
    let mut cpu_begin = None;
    let mut last = Instant::now();
    loop {
        let now_phase = phase.load(Ordering::Relaxed);
        if now_phase == OVER {
            break;
        }
        if now_phase == MEASURING && cpu_begin.is_none() {
            cpu_begin = Some(thread_cpu());
        }
        if let Err(error) = step() {
            phase.store(OVER, Ordering::SeqCst);
            return Err(error);
        }
        let now = Instant::now();
        count_total += 1;
        if now_phase == MEASURING {
            count += 1;
            latencies.record(now - last);
        }
        last = now;
    }
    let cpu = cpu_begin.map_or(Duration::ZERO, |begin| thread_cpu().saturating_sub(begin));
    Ok(Done { count, count_total, cpu, latencies })
}

/// Operations of all `threads` while measured.
pub fn count(threads: &[Done]) -> u64 {
    threads.iter().map(|done| done.count).sum()
}

/// Operations of all `threads`, those of the warm-up too.
pub fn count_total(threads: &[Done]) -> u64 {
    threads.iter().map(|done| done.count_total).sum()
}

/// Sets the median and the 99th percentile of the latencies of all `threads`, in µs.
pub fn report_latencies(threads: &[Done], figures: &mut Figures) {
    let mut all = Latencies::default();
    for done in threads {
        all.add(&done.latencies);
    }
    for (name, quantile) in [("p50_us", 0.5), ("p99_us", 0.99)] {
        figures.set(name, all.at_us(quantile));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_is_counted_and_the_first_error_ends_all() {
        // Long enough for each thread to have its turn on a busy machine.
        let pace = Pace::of_seconds(0.5);
        let steps: Vec<Step<'_>> = vec![Box::new(|| Ok(())), Box::new(|| Ok(()))];
        let run = super::run(pace, steps, || 7).unwrap();
        assert_eq!(run.marks, (7, 7));
        assert!(run.threads.iter().all(|done| done.count > 0));
        assert!(count_total(&run.threads) >= count(&run.threads));

        let pace = Pace::of_seconds(3600.0);
        let fail = || Err(tyr::Error::invalid("enough"));
        let steps: Vec<Step<'_>> = vec![Box::new(|| Ok(())), Box::new(fail)];
        let error = super::run(pace, steps, || ()).unwrap_err();
        assert_eq!(error.message(), "enough");
    }
}
