//! Every aggregate recomputed from the raw measurements, at one snapshot, while others write.
//!
//! Count, minimum and maximum must be exactly those of the raw data. A sum was rounded in the order
//! of arrival, which nobody knows any more, so it must lie within the bound that holds for every
//! order; the true sum is computed exactly ([`exact`]). Nothing may be missing, and nothing may be
//! there without raw data under it.
//!
//! Days are independent, so this goes day by day. Within a day raw blobs come sorted by site,
//! cluster and host: what has been added up for a host is compared and forgotten when the next host
//! begins, and so for clusters and sites. Memory is in proportion to the aggregates of one host,
//! and of the regions and jobs of one day, and to the number (not the size) of a day's blobs.

mod audit;
pub mod exact;
mod tally;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Serialize;
use tyr::{ErrorKind, Key, Result, Snapshot};

pub use audit::{Audit, audit};
use tally::{Comparison, DayTally};

use crate::calendar::{DAY_MAX, DAY_MIN, Day};
use crate::layout::{self, Entry};
use crate::query;
use crate::sample::Sample;
use crate::series::Series;
use crate::subject::{AggregateName, Scope, Subject};
use crate::telemetry::Telemetry;

/// Differences described in a report; the others are only counted.
pub const DIFFERENCES_MAX: usize = 1000;

/// How far a verification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Days verified.
    pub days_done: usize,
    /// All days.
    pub days_total: usize,
    /// Measurements read.
    pub measurements: u64,
    /// Windows compared.
    pub slots: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Days that hold anything.
    pub days: usize,
    /// Raw blobs: generators, counted each day.
    pub generators: u64,
    /// Measurements in them.
    pub measurements: u64,
    /// Aggregate blobs compared.
    pub aggregates: u64,
    /// Windows compared, that is, not empty in the raw data or in the aggregate.
    pub slots: u64,
    /// The largest part of its rounding bound that the error of any sum took up, 0 to 1.
    pub sum_error_max: f64,
    /// Differences found.
    pub differences_count: u64,
    /// The first of them.
    pub differences: Vec<Difference>,
}

/// A place where aggregate and raw data do not say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The day.
    pub day: String,
    /// The aggregate, generator or blob.
    pub what: String,
    /// The window, where it is one.
    pub window: String,
    /// What differs.
    pub field: &'static str,
    /// What the raw data say.
    pub expected: String,
    /// What the aggregate says.
    pub found: String,
}

impl VerifyReport {
    /// Whether nothing differs.
    pub fn is_clean(&self) -> bool {
        self.differences_count == 0
    }

    fn note(&mut self, difference: Difference) {
        self.differences_count += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(difference);
        }
    }

    fn add(&mut self, comparison: Comparison) {
        self.aggregates += 1;
        self.slots += comparison.slots;
        self.sum_error_max = self.sum_error_max.max(comparison.sum_error_max);
        comparison.differences.into_iter().for_each(|difference| self.note(difference));
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} measurements of {} generator days over {} days; {} aggregates with {} windows \
             recomputed: ",
            self.measurements, self.generators, self.days, self.aggregates, self.slots
        )?;
        match self.differences_count {
            0 => write!(
                f,
                "all equal (sums within {:.1} % of their rounding bound).",
                self.sum_error_max * 100.0
            ),
            1 => f.write_str("1 difference."),
            count => write!(f, "{count} differences."),
        }
    }
}

/// Recomputes everything at one snapshot; `progress` is told after every raw blob and every day.
///
/// # Errors
/// Whatever the store answers; `SnapshotTooOld` when it takes longer than the store keeps a
/// snapshot, which the store's options can extend.
pub async fn verify(
    telemetry: &Telemetry,
    mut progress: impl FnMut(&VerifyProgress) + Send,
) -> Result<VerifyReport> {
    let snapshot = telemetry.store().snapshot().await?;
    let days = query::days(telemetry, &snapshot, DAY_MIN, DAY_MAX).await?;
    let mut report = VerifyReport { days: days.len(), ..VerifyReport::default() };
    let mut done = VerifyProgress { days_total: days.len(), ..VerifyProgress::default() };
    for day in days {
        let mut verifier = DayVerifier::new(telemetry, &snapshot, day, &mut report);
        verifier
            .add_raw(|report| {
                done.measurements = report.measurements;
                done.slots = report.slots;
                progress(&done);
            })
            .await?;
        verifier.close_all().await?;
        verifier.find_strays().await?;
        done.days_done += 1;
        done.slots = report.slots;
        progress(&done);
    }
    Ok(report)
}

/// Verifies one day.
struct DayVerifier<'a> {
    telemetry: &'a Telemetry,
    snapshot: &'a Snapshot,
    day: Day,
    report: &'a mut VerifyReport,
    /// What is added up and not yet compared.
    open: BTreeMap<AggregateName, DayTally>,
    /// Keys of the aggregates that have raw data under them.
    compared: HashSet<Key>,
}

impl<'a> DayVerifier<'a> {
    fn new(
        telemetry: &'a Telemetry,
        snapshot: &'a Snapshot,
        day: Day,
        report: &'a mut VerifyReport,
    ) -> Self {
        let (open, compared) = (BTreeMap::new(), HashSet::new());
        Self { telemetry, snapshot, day, report, open, compared }
    }

    /// Adds up the day's raw blobs, and compares what is complete on the way.
    async fn add_raw(&mut self, mut progress: impl FnMut(&VerifyReport) + Send) -> Result<()> {
        let prefix = layout::raw_prefix(self.day, "");
        let mut last: Option<Series> = None;
        let mut after = None;
        loop {
            let keyspace = self.telemetry.keyspace();
            let page =
                self.snapshot.scan(keyspace, prefix.as_bytes(), after.as_ref(), 1000).await?;
            let Some((key, _)) = page.last() else { return Ok(()) };
            after = Some(key.clone());
            for (key, _) in &page {
                let Some(Entry::Raw(_, series, region)) = Entry::parse(key) else {
                    self.note_blob(key, "key", "one that a measurement makes");
                    continue;
                };
                if let Some(last) = &last {
                    self.close_left(last, &series).await?;
                }
                self.add_blob(key, &series, &region).await?;
                last = Some(series);
                progress(self.report);
            }
        }
    }

    async fn add_blob(&mut self, key: &Key, series: &Series, region: &str) -> Result<()> {
        let mut tally = DayTally::default();
        let mut strays = 0;
        let day = self.day;
        let take = |sample: Sample| {
            if series.at(sample.time_us, sample.value).validate().is_err()
                || Day::of(sample.time_us) != day
            {
                strays += 1;
            } else {
                tally.add(sample);
            }
        };
        let rest_len = query::read_samples(self.telemetry, self.snapshot, key, take).await?;
        if rest_len > 0 {
            self.note_blob(key, "size", "a multiple of 16");
        }
        if strays > 0 {
            self.note_blob(key, "samples", "finite values of this day");
        }
        let catalog = layout::catalog_key(&layout::series_path(series)?, region)?;
        match self.snapshot.stat(self.telemetry.keyspace(), &catalog).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.note_blob(key, "catalog", "an entry");
            }
            Err(error) => return Err(error),
        }
        self.report.generators += 1;
        self.report.measurements += tally.count();
        for scope in Scope::ALL {
            let subject = Subject::of(scope, series, region);
            let name = AggregateName { subject, parameter: series.parameter.clone() };
            self.open.entry(name).or_default().merge(&tally);
        }
        Ok(())
    }

    /// Compares what no later raw blob can add to, now that `next` follows `last`.
    async fn close_left(&mut self, last: &Series, next: &Series) -> Result<()> {
        let is_site = last.site == next.site;
        let is_cluster = is_site && last.cluster == next.cluster;
        let is_host = is_cluster && last.host == next.host;
        let is_complete = |scope: Scope| match scope {
            Scope::Generator | Scope::Host => !is_host,
            Scope::Cluster => !is_cluster,
            Scope::Site => !is_site,
            Scope::Region | Scope::Job | Scope::All => false,
        };
        if is_host {
            return Ok(());
        }
        let complete: Vec<AggregateName> =
            self.open.keys().filter(|name| is_complete(name.subject.scope())).cloned().collect();
        for name in complete {
            if let Some(tally) = self.open.remove(&name) {
                self.compare(&name, &tally).await?;
            }
        }
        Ok(())
    }

    async fn close_all(&mut self) -> Result<()> {
        for (name, tally) in std::mem::take(&mut self.open) {
            self.compare(&name, &tally).await?;
        }
        Ok(())
    }

    async fn compare(&mut self, name: &AggregateName, tally: &DayTally) -> Result<()> {
        let key = layout::aggregate_key(self.day, name)?;
        let bytes = match self.snapshot.get(self.telemetry.keyspace(), &key).await {
            Ok(bytes) => bytes.to_vec(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        self.report.add(tally.compare(self.day, name, &bytes));
        self.compared.insert(key);
        Ok(())
    }

    /// Finds aggregates without raw data, and blobs that no measurement makes.
    async fn find_strays(&mut self) -> Result<()> {
        let prefix = layout::day_prefix(self.day);
        let mut after = None;
        loop {
            let keyspace = self.telemetry.keyspace();
            let page =
                self.snapshot.scan(keyspace, prefix.as_bytes(), after.as_ref(), 1000).await?;
            let Some((key, _)) = page.last() else { return Ok(()) };
            after = Some(key.clone());
            for (key, _) in &page {
                match Entry::parse(key) {
                    Some(Entry::Aggregate(_, name)) if !self.compared.contains(key) => {
                        self.compare(&name, &DayTally::default()).await?;
                        self.note_blob(key, "raw data", "some");
                    }
                    Some(Entry::Aggregate(..) | Entry::Raw(..)) => {}
                    Some(Entry::Catalog(..)) | None => {
                        self.note_blob(key, "key", "one that a measurement makes");
                    }
                }
            }
        }
    }

    fn note_blob(&mut self, key: &Key, field: &'static str, expected: &str) {
        self.report.note(Difference {
            day: self.day.to_string(),
            what: format!("blob {key}"),
            window: String::new(),
            field,
            expected: expected.to_owned(),
            found: "not so".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests;
