//! What stands between a source and the store: counting, batching, and notices that never flood.
//!
//! Sources meet bad input, and some of it is sent on purpose. It is counted, told about at most
//! once a second, and never stops the service. Nothing here waits for more than the store.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use serde::Serialize;
use tyr::ErrorKind;

use crate::series::Measurement;
use crate::telemetry::Telemetry;

/// Takes one line of text for the operator.
pub type Notify = Arc<dyn Fn(&str) + Send + Sync>;

/// Time between two notices of one intake.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// Transactions that one call keeps in flight, so that they share the syncs of the log.
const IN_FLIGHT_MAX: usize = 128;

/// What became of the input of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntakeCounts {
    /// Measurements recorded.
    pub stored: u64,
    /// Inputs (datagrams, lines, rows, values) that were malformed or out of range.
    pub refused: u64,
    /// Values that are well-formed but no numbers.
    pub ignored: u64,
    /// Measurements that the store did not take.
    pub failed: u64,
}

/// The intake of one source.
pub struct Intake {
    telemetry: Telemetry,
    source: &'static str,
    notify: Notify,
    pace: Mutex<Pace>,
    stored: AtomicU64,
    refused: AtomicU64,
    ignored: AtomicU64,
    failed: AtomicU64,
}

impl Intake {
    /// An intake for `source`, which is named in every notice.
    pub fn new(telemetry: &Telemetry, source: &'static str, notify: Notify) -> Arc<Self> {
        Arc::new(Self {
            telemetry: telemetry.clone(),
            source,
            notify,
            pace: Mutex::default(),
            stored: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ignored: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// Records these, as many to a transaction as configured; answers what became of them.
    ///
    /// A measurement that is out of range is refused, the others are recorded.
    pub async fn record(&self, measurements: &[Measurement<'_>]) -> IntakeCounts {
        let mut counts = IntakeCounts::default();
        let mut in_flight = FuturesUnordered::new();
        for batch in measurements.chunks(self.telemetry.config().batch) {
            if in_flight.len() >= IN_FLIGHT_MAX
                && let Some(more) = in_flight.next().await
            {
                counts.add(more);
            }
            in_flight.push(self.record_batch(batch));
        }
        while let Some(more) = in_flight.next().await {
            counts.add(more);
        }
        counts
    }

    async fn record_batch(&self, batch: &[Measurement<'_>]) -> IntakeCounts {
        let mut counts = IntakeCounts::default();
        match self.telemetry.record_batch(batch).await {
            Ok(()) => counts.stored = batch.len() as u64,
            // One of them is out of range: each for itself, so that only that one is lost.
            Err(error) if error.kind() == ErrorKind::InvalidArgument && batch.len() > 1 => {
                for measurement in batch {
                    counts.add(self.record_one(measurement).await);
                }
                return counts;
            }
            Err(error) => self.note_error(&error, batch.len() as u64, &mut counts),
        }
        self.stored.fetch_add(counts.stored, Ordering::Relaxed);
        counts
    }

    async fn record_one(&self, measurement: &Measurement<'_>) -> IntakeCounts {
        let mut counts = IntakeCounts::default();
        match self.telemetry.record(measurement).await {
            Ok(()) => counts.stored = 1,
            Err(error) => self.note_error(&error, 1, &mut counts),
        }
        self.stored.fetch_add(counts.stored, Ordering::Relaxed);
        counts
    }

    fn note_error(&self, error: &tyr::Error, measurements: u64, counts: &mut IntakeCounts) {
        if error.kind() == ErrorKind::InvalidArgument {
            counts.refused += measurements;
            self.refuse(measurements, error);
        } else {
            counts.failed += measurements;
            self.failed.fetch_add(measurements, Ordering::Relaxed);
            self.tell(format_args!("not recorded: {error}"));
        }
    }

    /// Counts inputs that are malformed or out of range.
    pub fn refuse(&self, inputs: u64, why: impl Display) {
        self.refused.fetch_add(inputs, Ordering::Relaxed);
        self.tell(format_args!("refused: {why}"));
    }

    /// Counts values that are no numbers.
    pub fn ignore(&self, values: u64) {
        self.ignored.fetch_add(values, Ordering::Relaxed);
    }

    /// Counts inputs that could not be recorded for a reason outside them, such as a broken socket.
    pub fn fail(&self, inputs: u64, why: impl Display) {
        self.failed.fetch_add(inputs, Ordering::Relaxed);
        self.tell(why);
    }

    /// Tells the operator, unless something was told within the last second.
    pub fn tell(&self, what: impl Display) {
        let due = self.pace.lock().take(Instant::now());
        match due {
            None => {}
            Some(0) => (self.notify)(&format!("{}: {what}", self.source)),
            Some(silent) => {
                (self.notify)(&format!("{}: {what} (and {silent} more before)", self.source));
            }
        }
    }

    /// Tells how much was kept silent, when that is over; who runs a service calls it now and then.
    pub fn tell_rest(&self) {
        if let Some(silent) = self.pace.lock().take_silent(Instant::now()) {
            (self.notify)(&format!("{}: {silent} more like it", self.source));
        }
    }

    /// What became of the input so far.
    pub fn counts(&self) -> IntakeCounts {
        IntakeCounts {
            stored: self.stored.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            ignored: self.ignored.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// The store that it feeds.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }
}

impl IntakeCounts {
    /// Adds the counts of more input.
    pub fn add(&mut self, more: Self) {
        self.stored += more.stored;
        self.refused += more.refused;
        self.ignored += more.ignored;
        self.failed += more.failed;
    }
}

/// Decides when a notice is due.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    silent: u64,
}

impl Pace {
    /// None when it is too early; else how many were kept silent since the last.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if self.is_early(now) {
            self.silent += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.silent))
    }

    /// How many were kept silent, if there are some and it is not too early.
    fn take_silent(&mut self, now: Instant) -> Option<u64> {
        if self.silent == 0 || self.is_early(now) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.silent))
    }

    fn is_early(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.duration_since(last) < NOTICE_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_come_at_most_once_a_second_and_say_how_many_were_silent() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(pace.take(at(0)), Some(0));
        assert_eq!(pace.take(at(1)), None);
        assert_eq!(pace.take(at(999)), None);
        assert_eq!(pace.take(at(1000)), Some(2));
        assert_eq!(pace.take(at(2500)), Some(0));
    }

    #[test]
    fn what_was_kept_silent_is_told_though_nothing_follows_it() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(pace.take_silent(at(0)), None);
        assert_eq!(pace.take(at(0)), Some(0));
        for _ in 0..11 {
            assert_eq!(pace.take(at(1)), None);
        }
        assert_eq!(pace.take_silent(at(999)), None);
        assert_eq!(pace.take_silent(at(1000)), Some(11));
        assert_eq!(pace.take_silent(at(9000)), None);
    }
}
