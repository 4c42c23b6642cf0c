//! CSV files, replayed as measurements with the times they say.
//!
//! Columns are found by their names in the header. Without being told otherwise, files look as in
//! the Numenta Anomaly Benchmark: `timestamp,value`, one series a file, named by the file.

mod feed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::task::JoinSet;
use tyr::{Error, Result};

use crate::calendar::{SECOND_US, parse_absolute};
use crate::intake::{Intake, IntakeCounts};
use crate::series::{Measurement, Series};
use feed::Feed;

/// Most transactions in flight.
pub const CONCURRENCY_MAX: usize = 1024;

/// Which columns hold what.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The time. Default `timestamp`.
    pub time: String,
    /// The value. Default `value`.
    pub value: String,
    /// The site, where a column names it.
    pub site: Option<String>,
    /// The cluster, where a column names it.
    pub cluster: Option<String>,
    /// The host, where a column names it.
    pub host: Option<String>,
    /// The parameter, where a column names it.
    pub parameter: Option<String>,
    /// The job, where a column names it.
    pub job: Option<String>,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            time: "timestamp".to_owned(),
            value: "value".to_owned(),
            site: None,
            cluster: None,
            host: None,
            parameter: None,
            job: None,
        }
    }
}

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// As text (`2014-04-01 00:00:00`, UTC unless it says otherwise), or seconds since 1970.
    #[default]
    Auto,
    /// Seconds since 1970, with a fraction or not.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
    /// Nanoseconds since 1970.
    Nanoseconds,
}

impl TimeFormat {
    /// The format of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "auto" => Self::Auto,
            "s" => Self::Seconds,
            "ms" => Self::Milliseconds,
            "us" => Self::Microseconds,
            "ns" => Self::Nanoseconds,
            _ => {
                return Err(Error::invalid(format!(
                    "a time format is auto, s, ms, us or ns, not \"{}\"",
                    text.escape_debug()
                )));
            }
        })
    }

    fn to_us(self, text: &str) -> Option<i64> {
        match self {
            Self::Auto => parse_absolute(text),
            Self::Seconds => match text.parse::<i64>() {
                Ok(seconds) => seconds.checked_mul(SECOND_US),
                Err(_) => text.parse::<f64>().ok().map(|seconds| (seconds * 1e6).round() as i64),
            },
            Self::Milliseconds => text.parse::<i64>().ok()?.checked_mul(1000),
            Self::Microseconds => text.parse().ok(),
            Self::Nanoseconds => text.parse::<i64>().ok().map(|nanos| nanos.div_euclid(1000)),
        }
    }
}

/// How files are replayed.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Which columns hold what.
    pub columns: Columns,
    /// The names of what no column names. Default: site `csv`, parameter `value`, job `replay`.
    pub defaults: Series,
    /// Whether a file's folder names the cluster and its stem the host, where no column does.
    /// Default true.
    pub is_named_by_path: bool,
    /// How times are written. Default `Auto`.
    pub time_format: TimeFormat,
    /// Transactions in flight, 1 to [`CONCURRENCY_MAX`]. Default 16.
    pub concurrency: usize,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        let name = |text: &str| text.to_owned();
        Self {
            columns: Columns::default(),
            defaults: Series {
                site: name("csv"),
                cluster: name("csv"),
                host: name("csv"),
                parameter: name("value"),
                job: name("replay"),
            },
            is_named_by_path: true,
            time_format: TimeFormat::default(),
            concurrency: 16,
        }
    }
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Bytes of the files read.
    pub bytes_read: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Rows read.
    pub rows: u64,
    /// Files read to their end.
    pub files_done: usize,
    /// All files.
    pub files_total: usize,
}

/// What a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Files read.
    pub files: usize,
    /// Rows read, without headers.
    pub rows: u64,
    /// What became of them.
    #[serde(flatten)]
    pub counts: IntakeCounts,
}

/// One row, ready to record.
struct Row {
    series: Arc<Series>,
    time_us: i64,
    value: f64,
}

/// Records every row of the files. `progress` is told about every few hundred rows.
///
/// Bad rows are refused by name and line, and do not stop it.
///
/// # Errors
/// `Unavailable` when a file cannot be read; `InvalidArgument` when it lacks a column.
pub async fn replay(
    intake: Arc<Intake>,
    files: &[PathBuf],
    options: ReplayOptions,
    progress: impl Fn(ReplayProgress) + Send + Sync + 'static,
) -> Result<ReplayReport> {
    if !(1..=CONCURRENCY_MAX).contains(&options.concurrency) {
        return Err(Error::invalid(format!(
            "1 to {CONCURRENCY_MAX} transactions can be in flight, not {}",
            options.concurrency
        )));
    }
    let concurrency = options.concurrency;
    let feed = Feed::open(files, options)?;
    let shared = Arc::new(Replay { intake, feed: Mutex::new(feed), refused: AtomicU64::new(0) });
    let progress = Arc::new(progress);
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
        workers.spawn(async move { shared.work(&*progress).await });
    }
    let mut counts = IntakeCounts::default();
    while let Some(joined) = workers.join_next().await {
        match joined {
            Ok(worked) => counts.add(worked?),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    counts.refused += shared.refused.load(Ordering::Relaxed);
    let done = shared.feed.lock().progress();
    progress(done);
    Ok(ReplayReport { files: done.files_done, rows: done.rows, counts })
}

/// What the workers of a replay share.
struct Replay {
    intake: Arc<Intake>,
    feed: Mutex<Feed>,
    refused: AtomicU64,
}

impl Replay {
    async fn work(&self, progress: &(impl Fn(ReplayProgress) + Sync)) -> Result<IntakeCounts> {
        let mut counts = IntakeCounts::default();
        let mut rows = Vec::new();
        loop {
            rows.clear();
            let done = {
                let mut feed = self.feed.lock();
                feed.fill(&mut rows, |why| {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    self.intake.refuse(1, why);
                })?;
                feed.progress()
            };
            if rows.is_empty() {
                return Ok(counts);
            }
            for batch in rows.chunks(self.intake.telemetry().config().batch) {
                let measurements: Vec<Measurement<'_>> =
                    batch.iter().map(|row| row.series.at(row.time_us, row.value)).collect();
                counts.add(self.intake.record(&measurements).await);
            }
            progress(done);
        }
    }
}

/// The names that a file's path gives: its folder the cluster, its stem the host.
fn names_of(path: &Path, options: &ReplayOptions) -> Series {
    let mut series = options.defaults.clone();
    if options.is_named_by_path {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map(|part| part.to_string_lossy().into_owned()).filter(|part| !part.is_empty())
        };
        if let Some(stem) = text(path.file_stem()) {
            series.host = stem;
        }
        if let Some(folder) = text(path.parent().and_then(Path::file_name)) {
            series.cluster = folder;
        }
    }
    series
}

#[cfg(test)]
mod tests;
