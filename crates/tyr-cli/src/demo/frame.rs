//! What can be seen of the demo at a moment: rates, latencies, top series, versions held.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tyr::Statistics;
use tyr_telemetry::query::{TopBy, TopQuery};
use tyr_telemetry::source::now_us;
use tyr_telemetry::{Scope, Telemetry, TimeRange};

use super::work::{Audited, Work};
use crate::data::size_text;

/// Rates that are remembered for the drawing.
const RATES_MAX: usize = 240;
/// Time between two looks at the top series.
const TOP_TIME: Duration = Duration::from_secs(1);
/// Top series shown.
const TOP_MAX: usize = 6;
/// What the top series are about: the last minutes.
const TOP_RANGE_US: i64 = 120 * 1_000_000;

/// One of the top series.
#[derive(Clone, Debug)]
pub struct TopLine {
    /// The names of its subject.
    pub name: String,
    /// What kind of subject it is.
    pub what: &'static str,
    /// What is measured.
    pub parameter: String,
    /// Measurements.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// A moment of the demo.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Since it began.
    pub elapsed: Duration,
    /// Measurements recorded, each in a transaction.
    pub measurements: u64,
    /// Those of this machine.
    pub live: u64,
    /// Measurements a second since the frame before.
    pub rate: f64,
    /// The rates of the frames before, oldest first.
    pub rates: Vec<u64>,
    /// Microseconds of a transaction since the frame before: half are faster.
    pub p50_us: f64,
    /// The same, 99 of 100.
    pub p99_us: f64,
    /// What auditors found.
    pub audited: Audited,
    /// The store's counters.
    pub statistics: Statistics,
    /// The top series of late.
    pub top: Vec<TopLine>,
}

/// Makes frames.
pub struct Watcher {
    runtime: Handle,
    telemetry: Telemetry,
    begin: Instant,
    last: Instant,
    last_count: u64,
    rates: VecDeque<u64>,
    top: Vec<TopLine>,
    top_at: Option<Instant>,
}

impl Watcher {
    /// Watches from now on.
    pub fn new(runtime: Handle, telemetry: Telemetry) -> Self {
        let now = Instant::now();
        Self {
            runtime,
            last_count: telemetry.counts().measurements,
            telemetry,
            begin: now,
            last: now,
            rates: VecDeque::new(),
            top: Vec::new(),
            top_at: None,
        }
    }

    /// What can be seen now.
    pub fn frame(&mut self, work: &Work) -> Frame {
        let now = Instant::now();
        let measurements = self.telemetry.counts().measurements;
        let seconds = (now - self.last).as_secs_f64().max(1e-9);
        let rate = (measurements - self.last_count) as f64 / seconds;
        (self.last, self.last_count) = (now, measurements);
        if self.rates.len() == RATES_MAX {
            self.rates.pop_front();
        }
        self.rates.push_back(rate as u64);
        let latencies = work.take_latencies();
        self.look_at_top(now);
        Frame {
            elapsed: now - self.begin,
            measurements,
            live: work.live_count(),
            rate,
            rates: self.rates.iter().copied().collect(),
            p50_us: latencies.value_at_quantile(0.5) as f64 / 1e3,
            p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3,
            audited: work.audited(),
            statistics: self.telemetry.store().statistics(),
            top: self.top.clone(),
        }
    }

    /// The programs of this machine that use most processor time, and the generated sites with
    /// the highest load, once in a while.
    ///
    /// An error leaves the old ones: whether the store works is for the auditors to say.
    fn look_at_top(&mut self, now: Instant) {
        if self.top_at.is_some_and(|at| now - at < TOP_TIME) {
            return;
        }
        self.top_at = Some(now);
        let now_us = now_us();
        let Ok(range) = TimeRange::new(now_us - TOP_RANGE_US, now_us) else { return };
        let mut lines = Vec::new();
        for (scope, parameter) in [(Scope::Job, "process.cpu"), (Scope::Site, "load.1")] {
            let query = TopQuery {
                scope,
                parameter: Some(parameter.to_owned()),
                by: TopBy::Mean,
                range,
                limit: TOP_MAX,
            };
            let Ok(found) = self.runtime.block_on(self.telemetry.top(&query)) else { continue };
            lines.extend(found.entries.into_iter().map(|entry| TopLine {
                name: entry.names.join("/"),
                what: scope.name(),
                parameter: entry.parameter,
                count: entry.total.count,
                mean: entry.total.mean,
                max: entry.total.max,
            }));
        }
        self.top = lines;
    }
}

impl Frame {
    /// As one line of text.
    pub fn as_line(&self) -> String {
        format!(
            "{:>3.0} s  {:>9} measurements  {:>7.0}/s  p50 {:>5.0} µs  p99 {:>6.0} µs  {:>5} \
             audits, {} differ  {} versions held, {} snapshots  {}",
            self.elapsed.as_secs_f64(),
            self.measurements,
            self.rate,
            self.p50_us,
            self.p99_us,
            self.audited.audits,
            self.audited.differences,
            self.statistics.versions_held,
            self.statistics.snapshots_in_use,
            size_text(self.statistics.memory_bytes),
        )
    }

    /// As a JSON object.
    pub fn as_json(&self) -> Value {
        json!({
            "elapsed_s": self.elapsed.as_secs_f64(),
            "measurements": self.measurements,
            "live": self.live,
            "per_s": self.rate,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "audits": self.audited.audits,
            "audited_measurements": self.audited.measurements,
            "differences": self.audited.differences,
            "versions_held": self.statistics.versions_held,
            "snapshots_in_use": self.statistics.snapshots_in_use,
            "memory_bytes": self.statistics.memory_bytes,
            "log_bytes": self.statistics.log_bytes,
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A frame with something in every place.
    pub fn sample() -> Frame {
        Frame {
            elapsed: Duration::from_secs(3),
            measurements: 123_456,
            live: 789,
            rate: 41_000.0,
            rates: (0..100).collect(),
            p50_us: 12.5,
            p99_us: 99.0,
            audited: Audited { audits: 17, measurements: 5000, slots: 51, ..Audited::default() },
            statistics: Statistics {
                versions_held: 42,
                memory_bytes: 3 << 20,
                ..Statistics::default()
            },
            top: vec![TopLine {
                name: "rustc".to_owned(),
                what: "job",
                parameter: "process.cpu".to_owned(),
                count: 3,
                mean: 99.5,
                max: 100.0,
            }],
        }
    }

    #[test]
    fn a_line_tells_rate_latency_audits_and_versions() {
        let line = sample().as_line();
        for part in ["123456", "41000/s", "p99     99", "17 audits, 0 differ", "42 versions"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert_eq!(sample().as_json()["per_s"], 41_000.0);
    }
}
