//! Many seeds.
//!
//! Each seed is a run of its own, so threads share nothing but the next seed's number. This is the
//! only place of the crate that looks at the machine's clocks, to say how fast it goes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tyr_types::Result;

use crate::report::Report;
use crate::scenario::library::Choice;
use crate::scenario::quantity::Share;
use crate::trial::{self, Manner};

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seeds.
    pub seeds: Range<u64>,
    /// When to end before that.
    pub lasts: Option<Duration>,
    /// The scenario; that of the seed when not said.
    pub choice: Choice,
    /// How runs are made.
    pub manner: Manner,
    /// Threads that run.
    pub threads: usize,
    /// Whether to end at the first failure.
    pub is_first_enough: bool,
}

/// A run in which something was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The scenario's name.
    pub scenario: String,
    /// What was wrong, in words.
    pub violations: Vec<String>,
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs made, by scenario.
    pub runs: BTreeMap<String, u64>,
    /// Runs in which something was wrong, in order of seeds.
    pub failures: Vec<Failure>,
    /// Runs that were ended and not judged, since more was lost than is promised to be borne (F7),
    /// by scenario.
    pub unjudged: BTreeMap<String, u64>,
    /// Time of processors spent.
    pub cpu: Duration,
    /// Calls of clients made.
    pub calls: u64,
    /// Transactions committed.
    pub committed: u64,
    /// Messages sent.
    pub messages: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Logs of nodes that were cut.
    pub cuts: u64,
    /// Simulated time, in microseconds.
    pub simulated_us: u64,
}

impl Summary {
    /// Runs made in all.
    pub fn runs_made(&self) -> u64 {
        self.runs.values().sum()
    }

    /// Scenarios of which more runs were not judged than they say, in words.
    pub fn hardly_judged(&self, choice: &Choice) -> Vec<String> {
        let too_many = |(name, unjudged): (&String, &u64)| {
            let runs = self.runs.get(name).copied().unwrap_or(0);
            let share = choice.named(name)?.unjudged;
            (*unjudged > unjudged_max(share, runs)).then(|| {
                format!("{unjudged} of {runs} runs of {name} were not judged, of {share} allowed")
            })
        };
        self.unjudged.iter().filter_map(too_many).collect()
    }

    /// Seeds in a minute of one core, by the time of processors spent.
    pub fn seeds_per_minute(&self) -> f64 {
        let seconds = self.cpu.as_secs_f64();
        if seconds > 0.0 { self.runs_made() as f64 * 60.0 / seconds } else { 0.0 }
    }

    fn add(&mut self, seed: u64, scenario: &str, report: Report) {
        *self.runs.entry(scenario.to_owned()).or_default() += 1;
        if report.unjudged.is_some() {
            *self.unjudged.entry(scenario.to_owned()).or_default() += 1;
        }
        self.calls += report.counters.calls;
        self.committed += report.counters.committed;
        self.messages += report.counters.messages;
        self.faults += report.counters.faults;
        self.cuts += report.counters.cuts;
        self.simulated_us += report.simulated_us;
        if !report.is_clean() {
            let scenario = scenario.to_owned();
            self.failures.push(Failure { seed, scenario, violations: report.violations });
        }
    }
}

/// Most of so many runs that may go unjudged: the share that the scenario says, and three times as
/// much more as chance has it.
fn unjudged_max(share: Share, runs: u64) -> u64 {
    let expected = f64::from(share.0) / f64::from(Share::WHOLE.0) * runs as f64;
    (expected + 3.0 * expected.sqrt()) as u64
}

/// What is told while it runs.
pub enum News<'a> {
    /// A run failed.
    Failed(&'a Failure),
    /// So far.
    Progress(&'a Summary),
}

/// Runs `plan` until it is done or `stop` is set.
///
/// # Errors
/// `InvalidArgument` when a scenario cannot run at all.
pub fn sweep(plan: &Plan, stop: &AtomicBool, mut tell: impl FnMut(News<'_>)) -> Result<Summary> {
    let next = AtomicU64::new(plan.seeds.start);
    let (results, inbox) = channel();
    let spent = cpu_spent();
    let ends = plan.lasts.map(|lasts| Instant::now() + lasts);
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            let (next, is_over, results) = (&next, &is_over, results.clone());
            let is_stopped =
                move || stop.load(Ordering::Relaxed) || is_over.load(Ordering::Relaxed);
            scope.spawn(move || work(plan, next, is_stopped, &results));
        }
        drop(results);
        let outcome = collect(plan, &inbox, &is_over, ends, spent, &mut tell);
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    let mut summary = outcome?;
    summary.cpu = cpu_spent().saturating_sub(spent);
    summary.failures.sort_by_key(|failure| failure.seed);
    Ok(summary)
}

/// A run made: its seed, its scenario's name, what came of it.
type Ran<'a> = (u64, &'a str, Result<Report>);

fn work<'a>(
    plan: &'a Plan,
    next: &AtomicU64,
    is_stopped: impl Fn() -> bool,
    results: &Sender<Ran<'a>>,
) {
    while !is_stopped() {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= plan.seeds.end {
            return;
        }
        let (name, scenario) = plan.choice.of(seed);
        if results.send((seed, name, trial::run(scenario, seed, plan.manner))).is_err() {
            return;
        }
    }
}

fn collect(
    plan: &Plan,
    inbox: &Receiver<Ran<'_>>,
    is_over: &AtomicBool,
    ends: Option<Instant>,
    spent: Duration,
    tell: &mut impl FnMut(News<'_>),
) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut told = Instant::now();
    loop {
        match inbox.recv_timeout(Duration::from_millis(200)) {
            Ok((seed, name, report)) => {
                let failed = summary.failures.len();
                summary.add(seed, name, report?);
                if let Some(failure) = summary.failures.get(failed) {
                    tell(News::Failed(failure));
                    let is_enough = plan.is_first_enough;
                    is_over.fetch_or(is_enough, Ordering::Relaxed);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(summary),
        }
        let now = Instant::now();
        is_over.fetch_or(ends.is_some_and(|ends| now >= ends), Ordering::Relaxed);
        if now.duration_since(told) >= TOLD_EVERY {
            told = now;
            summary.cpu = cpu_spent().saturating_sub(spent);
            tell(News::Progress(&summary));
        }
    }
}

/// Time of processors that this process has spent.
fn cpu_spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32);
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse::parse;

    fn plan(seeds: Range<u64>) -> Plan {
        let scenario = parse("nodes 1, replication 1, clients 1, 1 s; workload registers").unwrap();
        Plan {
            seeds,
            lasts: None,
            choice: Choice::Always(Box::new(("small".to_owned(), scenario))),
            manner: Manner::default(),
            threads: 2,
            is_first_enough: false,
        }
    }

    #[test]
    fn every_seed_of_a_sweep_is_run_once() {
        let summary = sweep(&plan(3..9), &AtomicBool::new(false), |_| ()).unwrap();
        assert_eq!(summary.runs, BTreeMap::from([("small".to_owned(), 6)]));
        assert_eq!(summary.failures, []);
        assert!(summary.committed > 6, "{summary:?}");
    }

    #[test]
    fn more_unjudged_runs_than_a_scenario_says_are_told() {
        let mut summary = sweep(&plan(3..9), &AtomicBool::new(false), |_| ()).unwrap();
        let Choice::Always(mut always) = plan(0..1).choice else { panic!("it is always one") };
        let unjudged = |count| BTreeMap::from([("small".to_owned(), count)]);
        for (share, unjudged_by, is_told) in [(0, 0, false), (0, 1, true), (2_000, 4, false)] {
            always.1.unjudged = Share(share);
            summary.unjudged = unjudged(unjudged_by);
            let told = summary.hardly_judged(&Choice::Always(always.clone()));
            assert_eq!(!told.is_empty(), is_told, "{told:?}");
        }
        summary.unjudged = unjudged(5);
        assert_eq!(summary.hardly_judged(&Choice::Always(always)).len(), 1);
    }

    #[test]
    fn a_sweep_that_is_stopped_runs_nothing_more() {
        let summary = sweep(&plan(0..u64::MAX), &AtomicBool::new(true), |_| ()).unwrap();
        assert_eq!(summary.runs_made(), 0);
    }

    #[test]
    fn a_sweep_may_end_at_its_first_failure_and_tells_its_seed() {
        let rule = tyr_protocol::Rule::C6;
        let scenario = crate::scenario::library::named("healthy").unwrap().scenario.clone();
        let plan = Plan {
            choice: Choice::Always(Box::new(("healthy".to_owned(), scenario))),
            manner: Manner { broken: Some(rule), ..Manner::default() },
            is_first_enough: true,
            ..plan(0..1_000)
        };
        let mut told = Vec::new();
        let summary = sweep(&plan, &AtomicBool::new(false), |news| match news {
            News::Failed(failure) => told.push(failure.seed),
            News::Progress(_) => {}
        });
        let summary = summary.unwrap();
        let failed: Vec<u64> = summary.failures.iter().map(|failure| failure.seed).collect();
        told.sort_unstable();
        assert_eq!(told, failed);
        // Whatever else was under way then was ended too.
        assert!(!failed.is_empty() && summary.runs_made() < 1_000, "{failed:?}");
    }
}
