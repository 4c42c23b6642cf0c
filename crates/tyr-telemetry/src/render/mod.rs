//! Answers as text: a table, a chart, CSV, JSON.
//!
//! An answer says once what its columns and rows are ([`Answer`]); each format is written from
//! that. JSON alone is the answer itself, field by field.

mod chart;
mod csv;
mod table;

use serde::Serialize;
use tyr::{Error, Result};

use crate::calendar::format_time;
use crate::layout;
use crate::query::{AggregateSeries, Catalog, RawSeries, Top};
use crate::verify::VerifyReport;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumCount)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// A chart of block characters; for what has none, the table.
    Chart,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object.
    Json,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Table, Self::Chart, Self::Csv, Self::Json];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Chart => "chart",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            Error::invalid(format!(
                "a format is table, chart, csv or json, not \"{}\"",
                text.escape_debug()
            ))
        })
    }
}

/// The answer in this format, at most `width` characters wide where it is for the eye; ends with a
/// line break.
pub fn render(answer: &(impl Answer + Serialize), format: Format, width: usize) -> String {
    match format {
        Format::Table => table::write(&answer.rows()),
        Format::Chart => match answer.curve() {
            Some(curve) => chart::write(&curve, width),
            None => table::write(&answer.rows()),
        },
        Format::Csv => csv::write(&answer.rows()),
        Format::Json => {
            let mut text = serde_json::to_string(answer).expect("answers are plain values");
            text.push('\n');
            text
        }
    }
}

/// What can be written in every format.
pub trait Answer {
    /// Its columns and rows.
    fn rows(&self) -> Rows;

    /// Its curve over time or rank, where it has one.
    fn curve(&self) -> Option<Curve>;
}

/// Columns and rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The heads of the columns.
    pub heads: Vec<&'static str>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<String>>,
    /// What the reader should know besides.
    pub note: Option<String>,
}

/// A curve to draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What is drawn.
    pub title: String,
    /// Place and height of each point, by growing place: microseconds.
    pub points: Vec<(i64, f64)>,
    /// The width of a point's window; 0 for single values.
    pub step_us: i64,
}

/// A number as people write it: whole where it is whole, else with up to six digits that count.
pub(crate) fn format_number(number: f64) -> String {
    if number.is_nan() {
        return "-".to_owned();
    }
    let size = number.abs();
    if number.fract() == 0.0 && size < 1e15 {
        return format!("{number:.0}");
    }
    if !(1e-4..1e15).contains(&size) {
        return format!("{number:.5e}");
    }
    let decimals = (5 - size.log10().floor() as i64).clamp(0, 9) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn cut_note(is_cut: bool) -> Option<String> {
    is_cut.then(|| "There is more; ask for a smaller range, or a larger limit.".to_owned())
}

impl Answer for RawSeries {
    fn rows(&self) -> Rows {
        let row =
            |sample: &crate::Sample| vec![format_time(sample.time_us), sample.value.to_string()];
        Rows {
            heads: vec!["time", "value"],
            rows: self.samples.iter().map(row).collect(),
            note: cut_note(self.is_cut),
        }
    }

    fn curve(&self) -> Option<Curve> {
        let series = &self.series;
        let names = [&series.site, &series.cluster, &series.host, &series.job];
        Some(Curve {
            title: format!("{} of {}", series.parameter, layout::join_path(&names)),
            points: self.samples.iter().map(|sample| (sample.time_us, sample.value)).collect(),
            step_us: 0,
        })
    }
}

impl Answer for AggregateSeries {
    fn rows(&self) -> Rows {
        let rows = self.points.iter().map(|point| {
            let mut row = vec![format_time(point.start_us), point.count.to_string()];
            let numbers = [point.sum, point.mean, point.min, point.max];
            row.extend(numbers.map(|number| number.to_string()));
            row
        });
        Rows {
            heads: vec!["time", "count", "sum", "mean", "min", "max"],
            rows: rows.collect(),
            note: cut_note(self.is_cut),
        }
    }

    fn curve(&self) -> Option<Curve> {
        let path = layout::join_path(&self.names);
        Some(Curve {
            title: format!(
                "mean {} of {} {path}, by the {}",
                self.parameter,
                self.scope.name(),
                self.window.name()
            ),
            points: self.points.iter().map(|point| (point.start_us, point.mean)).collect(),
            step_us: self.window.len_us(),
        })
    }
}

impl Answer for Top {
    fn rows(&self) -> Rows {
        let rows = self.entries.iter().map(|entry| {
            let total = &entry.total;
            let mut row = vec![
                layout::join_path(&entry.names),
                entry.parameter.clone(),
                total.count.to_string(),
            ];
            let numbers = [total.sum, total.mean, total.min, total.max];
            row.extend(numbers.map(|number| number.to_string()));
            row
        });
        Rows {
            heads: vec![self.scope.name(), "parameter", "count", "sum", "mean", "min", "max"],
            rows: rows.collect(),
            note: None,
        }
    }

    fn curve(&self) -> Option<Curve> {
        None
    }
}

impl Answer for Catalog {
    fn rows(&self) -> Rows {
        let rows = self.entries.iter().map(|entry| {
            let series = &entry.series;
            let names = [&series.site, &series.cluster, &series.host, &series.parameter];
            let mut row: Vec<String> = names.into_iter().cloned().collect();
            row.extend([series.job.clone(), entry.region.clone()]);
            row
        });
        Rows {
            heads: vec!["site", "cluster", "host", "parameter", "job", "region"],
            rows: rows.collect(),
            note: cut_note(self.is_cut),
        }
    }

    fn curve(&self) -> Option<Curve> {
        None
    }
}

impl Answer for VerifyReport {
    fn rows(&self) -> Rows {
        let rows = self.differences.iter().map(|difference| {
            vec![
                difference.day.clone(),
                difference.what.clone(),
                difference.window.clone(),
                difference.field.to_owned(),
                difference.expected.clone(),
                difference.found.clone(),
            ]
        });
        Rows {
            heads: vec!["day", "what", "window", "field", "expected", "found"],
            rows: rows.collect(),
            note: Some(self.to_string()),
        }
    }

    fn curve(&self) -> Option<Curve> {
        None
    }
}

#[cfg(test)]
mod tests;
