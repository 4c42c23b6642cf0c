//! Those who work in the demo: writers, this machine's metrics, auditors.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tyr::Result;
use tyr_telemetry::load::{Generator, LoadOptions};
use tyr_telemetry::source::live::{self, LiveOptions};
use tyr_telemetry::source::now_us;
use tyr_telemetry::verify::{self, Difference};
use tyr_telemetry::{Intake, Telemetry};

use super::DemoArguments;
use crate::failure::Outcome;
use crate::random::Random;
use crate::telemetry::notices;

/// The longest latency that is told from longer ones: a minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Latencies are kept to one in a hundred.
const LATENCY_DIGITS: u8 = 2;
/// Differences that are described; the others are only counted.
const DESCRIBED_MAX: usize = 20;
/// Pause of an auditor between two audits, so that writers get the processors too.
const AUDIT_PAUSE: Duration = Duration::from_millis(5);

/// An empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_MAX_NS, LATENCY_DIGITS)
        .expect("the bounds are constants that fit")
}

/// What all share.
struct Shared {
    telemetry: Telemetry,
    is_over: AtomicBool,
    has_failed: AtomicBool,
    audited: Mutex<Audited>,
    live_count: AtomicU64,
    latencies: Vec<Mutex<Histogram<u64>>>,
}

/// What auditors found so far.
#[derive(Clone, Debug, Default)]
pub struct Audited {
    /// Aggregates compared.
    pub audits: u64,
    /// Measurements under them.
    pub measurements: u64,
    /// Windows compared.
    pub slots: u64,
    /// Windows that differed.
    pub differences: u64,
    /// The first of them, in words.
    pub described: Vec<String>,
}

/// The work, running.
pub struct Work {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<()>>,
}

impl Work {
    /// Starts everybody.
    pub fn start(runtime: &Runtime, telemetry: &Telemetry, arguments: &DemoArguments) -> Self {
        let shared = Arc::new(Shared {
            telemetry: telemetry.clone(),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            audited: Mutex::default(),
            live_count: AtomicU64::new(0),
            latencies: (0..arguments.writers).map(|_| Mutex::new(histogram())).collect(),
        });
        let mut work = Self { shared, tasks: JoinSet::new() };
        let mut fleet =
            Generator::new(&LoadOptions { seed: arguments.seed, ..LoadOptions::default() });
        let rate = arguments.rate.map(|rate| rate / arguments.writers as f64);
        for writer in 0..arguments.writers {
            work.spawn(runtime, write(Arc::clone(&work.shared), fleet.fork(), writer, rate));
        }
        for auditor in 0..arguments.auditors {
            let random = Random::new(arguments.seed.wrapping_add(auditor as u64));
            work.spawn(runtime, audit(Arc::clone(&work.shared), random));
        }
        work.spawn(runtime, look(Arc::clone(&work.shared)));
        work
    }

    fn spawn(
        &mut self,
        runtime: &Runtime,
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let guarded = async move {
            let done = work.await;
            if done.is_err() {
                shared.has_failed.store(true, Ordering::Relaxed);
            }
            done
        };
        self.tasks.spawn_on(guarded, runtime.handle());
    }

    /// Whether somebody met an error; [`Work::stop`] tells it.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    /// Measurements of this machine so far.
    pub fn live_count(&self) -> u64 {
        self.shared.live_count.load(Ordering::Relaxed)
    }

    /// What auditors found so far.
    pub fn audited(&self) -> Audited {
        lock(&self.shared.audited).clone()
    }

    /// The latencies of transactions since the last call.
    pub fn take_latencies(&self) -> Histogram<u64> {
        let mut all = histogram();
        for writer in &self.shared.latencies {
            let mut own = lock(writer);
            all.add(&*own).expect("all histograms have the same bounds");
            own.reset();
        }
        all
    }

    /// Stops everybody and waits for them.
    ///
    /// # Errors
    /// The first error that any of them met.
    pub fn stop(&mut self, runtime: &Runtime) -> Outcome {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let mut outcome = Ok(());
        while let Some(joined) = runtime.block_on(self.tasks.join_next()) {
            let done = joined.expect("those who work in the demo do not panic");
            outcome = outcome.and(done);
        }
        Ok(outcome?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Records generated measurements, each in a transaction of its own.
async fn write(
    shared: Arc<Shared>,
    mut generator: Generator,
    writer: usize,
    rate: Option<f64>,
) -> Result<()> {
    let begin = Instant::now();
    let mut count = 0_u64;
    while !shared.is_over() {
        let time_us = now_us();
        let (series, value) = generator.next(time_us);
        let moment = Instant::now();
        shared.telemetry.record(&series.at(time_us, value)).await?;
        let nanoseconds = u64::try_from(moment.elapsed().as_nanos()).unwrap_or(u64::MAX);
        lock(&shared.latencies[writer]).saturating_record(nanoseconds);
        count += 1;
        match rate {
            Some(rate) => {
                let due = begin + Duration::from_secs_f64(count as f64 / rate);
                tokio::time::sleep_until(due.into()).await;
            }
            // A commit that need not wait never yields; the others want the threads too.
            None => tokio::task::yield_now().await,
        }
    }
    Ok(())
}

/// Compares aggregates, drawn at random, with the measurements under them.
async fn audit(shared: Arc<Shared>, mut random: Random) -> Result<()> {
    while !shared.is_over() {
        if let Some(audit) = verify::audit(&shared.telemetry, random.next()).await? {
            let mut audited = lock(&shared.audited);
            audited.audits += 1;
            audited.measurements += audit.measurements;
            audited.slots += audit.slots;
            audited.differences += audit.differences.len() as u64;
            let room = DESCRIBED_MAX.saturating_sub(audited.described.len());
            let described = audit.differences.iter().take(room);
            audited.described.extend(described.map(describe));
        }
        tokio::time::sleep(AUDIT_PAUSE).await;
    }
    Ok(())
}

/// A difference in words.
fn describe(difference: &Difference) -> String {
    let Difference { day, what, window, field, expected, found } = difference;
    format!("{what} in {window} of {day}: {field} is {found}, the measurements say {expected}")
}

/// Records this machine's metrics, once a second.
async fn look(shared: Arc<Shared>) -> Result<()> {
    /// How soon the end is noticed.
    const NAP: Duration = Duration::from_millis(50);
    let intake = Intake::new(&shared.telemetry, "live", notices());
    let over = async {
        while !shared.is_over() {
            shared.live_count.store(intake.counts().stored, Ordering::Relaxed);
            tokio::time::sleep(NAP).await;
        }
    };
    tokio::select! {
        () = live::run(Arc::clone(&intake), LiveOptions::default()) => {}
        () = over => {}
    }
    shared.live_count.store(intake.counts().stored, Ordering::Relaxed);
    Ok(())
}
