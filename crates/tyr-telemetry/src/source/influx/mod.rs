//! InfluxDB's line protocol, as measurements.
//!
//! Tags name the site, cluster, host and job; a field is a parameter, named `measurement.field`.
//! Tags that name none of these tell series apart in InfluxDB, so they become part of the
//! parameter: `cpu.usage{core=3}`. How bodies arrive is the affair of [`http`](crate::http).

mod line;

use serde::Serialize;
use tyr::{Error, Result};

pub use line::{FieldValue, Line, Lines, MalformedLine, parse};

use crate::calendar::{HOUR_US, MINUTE_US, SECOND_US};
use crate::intake::{Intake, IntakeCounts};
use crate::layout;
use crate::series::{Measurement, Series};

/// Measurements parsed before they are recorded.
const CHUNK_LEN: usize = 1024;

/// Lines described in an answer; the others are only counted.
const LINE_ERRORS_MAX: usize = 100;

/// The unit of a request's timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes (version 1 only).
    Minutes,
    /// Hours (version 1 only).
    Hours,
}

impl Precision {
    /// The precision of this name, in either version of the API.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "" | "ns" | "n" => Self::Nanoseconds,
            "us" | "u" | "µs" | "µ" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => {
                return Err(Error::invalid(format!(
                    "precision is ns, us, ms, s, m or h, not \"{}\"",
                    text.escape_debug()
                )));
            }
        })
    }

    /// The timestamp in microseconds, rounded down; a time far outside the calendar when it has
    /// no place in 64 bits.
    fn to_us(self, timestamp: i64) -> i64 {
        match self {
            Self::Nanoseconds => timestamp.div_euclid(1000),
            Self::Microseconds => timestamp,
            Self::Milliseconds => timestamp.saturating_mul(1000),
            Self::Seconds => timestamp.saturating_mul(SECOND_US),
            Self::Minutes => timestamp.saturating_mul(MINUTE_US),
            Self::Hours => timestamp.saturating_mul(HOUR_US),
        }
    }
}

/// Which tags name what.
#[derive(Clone, Debug)]
pub struct TagNames {
    /// The tag that names the site. Default `site`.
    pub site: String,
    /// The tag that names the cluster. Default `cluster`.
    pub cluster: String,
    /// The tag that names the host. Default `host`.
    pub host: String,
    /// The tag that names the job. Default `job`.
    pub job: String,
}

impl Default for TagNames {
    fn default() -> Self {
        Self {
            site: "site".to_owned(),
            cluster: "cluster".to_owned(),
            host: "host".to_owned(),
            job: "job".to_owned(),
        }
    }
}

/// The names of what a line does not name: all of them `influx`.
pub fn default_names() -> Series {
    let name = || "influx".to_owned();
    Series { site: name(), cluster: name(), host: name(), parameter: name(), job: name() }
}

/// What became of a body.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WriteReport {
    /// Lines that were no comment.
    pub lines: u64,
    /// Lines that were refused; all the others are recorded.
    pub lines_refused: u64,
    /// The first refused lines, and why.
    pub line_errors: Vec<LineError>,
    /// What became of the measurements of the other lines.
    #[serde(flatten)]
    pub counts: IntakeCounts,
}

/// Why a line was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineError {
    /// Its number, from 1 on.
    pub line: usize,
    /// Why.
    pub message: String,
}

/// Turns lines into measurements, and records them.
pub struct LineWriter<'a> {
    /// Where they go.
    pub intake: &'a Intake,
    /// Which tags name what.
    pub tags: &'a TagNames,
    /// The names of what a line does not name.
    pub defaults: &'a Series,
}

/// A measurement with names of its own.
type Point = (Series, i64, f64);

impl LineWriter<'_> {
    /// Records the good lines of the body; a line without a time was taken at `now_us`.
    pub async fn write(&self, body: &[u8], precision: Precision, now_us: i64) -> WriteReport {
        let mut report = WriteReport::default();
        let mut points = Vec::new();
        for (number, line) in Lines::new(body) {
            report.lines += 1;
            let added = line
                .map_err(|error| error.to_string())
                .and_then(|line| self.add_points(&line, precision, now_us, &mut points));
            match added {
                Ok(texts) => {
                    report.counts.ignored += texts;
                    self.intake.ignore(texts);
                }
                Err(message) => {
                    self.intake.refuse(1, format_args!("line {number}: {message}"));
                    report.lines_refused += 1;
                    if report.line_errors.len() < LINE_ERRORS_MAX {
                        report.line_errors.push(LineError { line: number, message });
                    }
                }
            }
            if points.len() >= CHUNK_LEN {
                report.counts.add(self.record(&mut points).await);
            }
        }
        report.counts.add(self.record(&mut points).await);
        report
    }

    async fn record(&self, points: &mut Vec<Point>) -> IntakeCounts {
        let measurements: Vec<Measurement<'_>> =
            points.iter().map(|(series, time_us, value)| series.at(*time_us, *value)).collect();
        let counts = self.intake.record(&measurements).await;
        points.clear();
        counts
    }

    /// Adds the line's numbers to `points`, all or none; answers how many strings it had.
    fn add_points(
        &self,
        line: &Line<'_>,
        precision: Precision,
        now_us: i64,
        points: &mut Vec<Point>,
    ) -> Result<u64, String> {
        let time_us = line.timestamp.map_or(now_us, |timestamp| precision.to_us(timestamp));
        let before = points.len();
        let mut texts = 0;
        for (field, value) in &line.fields {
            let FieldValue::Number(value) = *value else {
                texts += 1;
                continue;
            };
            let series = self.series(line, field);
            let checked = series.at(time_us, value).validate();
            if let Err(error) = checked.and_then(|()| layout::series_path(&series).map(drop)) {
                points.truncate(before);
                return Err(error.message().to_owned());
            }
            points.push((series, time_us, value));
        }
        Ok(texts)
    }

    fn series(&self, line: &Line<'_>, field: &str) -> Series {
        let mut series = self.defaults.clone();
        series.parameter = format!("{}.{field}", line.measurement);
        let mut others = Vec::new();
        for (key, value) in &line.tags {
            let named = [
                (&self.tags.site, &mut series.site),
                (&self.tags.cluster, &mut series.cluster),
                (&self.tags.host, &mut series.host),
                (&self.tags.job, &mut series.job),
            ];
            match named.into_iter().find(|(tag, _)| *tag == key) {
                Some((_, name)) => *name = value.clone().into_owned(),
                None => others.push(format!("{key}={value}")),
            }
        }
        if !others.is_empty() {
            others.sort();
            series.parameter.push_str(&format!("{{{}}}", others.join(",")));
        }
        series
    }
}

#[cfg(test)]
mod tests;
