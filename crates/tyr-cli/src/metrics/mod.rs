//! What a program of ours counts, as Prometheus reads it.
//!
//! Tables of metrics, each with its name, its help and how it is read: [`node`] from the statistics
//! of a node, [`store`] from what the monitoring store counts of its sources, [`program`] from the
//! process itself. The answers to scrapes and the reference page ([`page`]) are made from them.
//!
//! There are two formats. In the older, plain text, a counter is called `tyr_commits_total`
//! throughout; in OpenMetrics its samples are, and its description has the name without `_total`.
//! Whoever does not ask for OpenMetrics gets the older, which everything reads.

mod node;
pub mod page;
mod program;
mod store;

use std::fmt;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tyr_server::Observer;
use tyr_server::histogram::{BOUNDS_US, Times};
use tyr_telemetry::Sources;

const US_PER_S: f64 = 1e6;

/// A metric.
#[derive(Debug)]
struct Metric<S: 'static> {
    /// Its name, with its unit; counters get `_total` after it.
    name: &'static str,
    /// What it is.
    help: &'static str,
    /// How it is read.
    reading: Reading<S>,
}

/// How a metric is read.
#[derive(Debug)]
enum Reading<S: 'static> {
    /// A count that only grows.
    Count(fn(&S) -> u64),
    /// The same by the values of a label.
    Counts(&'static str, fn(&S) -> Vec<(String, u64)>),
    /// A number that rises and falls.
    Level(fn(&S) -> f64),
    /// The same by the values of a label.
    Levels(&'static str, fn(&S) -> Vec<(String, f64)>),
    /// How long something took, each time.
    Times(fn(&S) -> &Times),
}

const fn metric<S>(name: &'static str, help: &'static str, reading: Reading<S>) -> Metric<S> {
    Metric { name, help, reading }
}

fn labelled<N: Copy>(numbers: &[(&str, N)]) -> Vec<(String, N)> {
    numbers.iter().map(|(label, number)| ((*label).to_owned(), *number)).collect()
}

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Prometheus' text format, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// What whoever asks likes best: OpenMetrics when it is named, and text is not named as better.
    fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let (mut open, mut text) = (0.0, 0.0);
        for range in accept.flat_map(|accept| accept.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse().ok());
            let quality: f64 = quality.unwrap_or(1.0);
            match kind.as_str() {
                "application/openmetrics-text" => open = quality.max(open),
                "text/plain" => text = quality.max(text),
                _ => {}
            }
        }
        if open > 0.0 && open >= text { Self::OpenMetrics } else { Self::Text }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The metrics of a program.
#[derive(Debug)]
pub struct Metrics {
    text: Registry,
    open: Registry,
}

impl Metrics {
    /// Those of a node.
    pub fn of_node(observer: Observer) -> Self {
        Self::of(&node::METRICS, move || observer.statistics())
    }

    /// Those of a service of the monitoring store.
    pub fn of_store(sources: Sources) -> Self {
        Self::of(&store::METRICS, move || sources.counts())
    }

    /// Those of a table, and of the program.
    fn of<S, R>(table: &'static [Metric<S>], read: R) -> Self
    where
        S: fmt::Debug + 'static,
        R: Fn() -> S + Clone + Send + Sync + 'static,
    {
        let registry = |format| {
            let mut registry = Registry::default();
            let read = read.clone();
            registry.register_collector(Box::new(Table { table, read, format }));
            registry
        };
        Self { text: registry(Format::Text), open: registry(Format::OpenMetrics) }
    }

    /// The answer to a scrape with these headers.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let format = Format::of(headers);
        match self.write(format) {
            Ok(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }

    fn write(&self, format: Format) -> Result<String, fmt::Error> {
        let mut text = String::new();
        match format {
            Format::Text => text::encode_registry(&mut text, &self.text)?,
            // With the mark of the end that only this format has.
            Format::OpenMetrics => text::encode(&mut text, &self.open)?,
        }
        Ok(text)
    }
}

/// A table, with what it is read from and the format that it is written in.
struct Table<S: 'static, R> {
    table: &'static [Metric<S>],
    read: R,
    format: Format,
}

impl<S, R> fmt::Debug for Table<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<S: 'static, R: Fn() -> S + Send + Sync + 'static> Collector for Table<S, R> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let statistics = (self.read)();
        encode(self.table, &statistics, self.format, &mut encoder)?;
        encode(&program::METRICS, &(), self.format, &mut encoder)
    }
}

fn encode<S>(
    table: &[Metric<S>],
    statistics: &S,
    format: Format,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    for metric in table {
        let kind = metric.reading.kind();
        let is_named_total = matches!((kind, format), (MetricType::Counter, Format::Text));
        let name = format!("{}{}", metric.name, if is_named_total { "_total" } else { "" });
        let mut encoder = encoder.encode_descriptor(&name, metric.help, None, kind)?;
        encode_one(metric, statistics, format, &mut encoder)?;
    }
    Ok(())
}

fn encode_one<S>(
    metric: &Metric<S>,
    statistics: &S,
    format: Format,
    encoder: &mut MetricEncoder<'_>,
) -> fmt::Result {
    match &metric.reading {
        Reading::Count(read) => encode_count(read(statistics), format, encoder),
        Reading::Level(read) => encoder.encode_gauge(&read(statistics)),
        Reading::Counts(label, read) => {
            for (value, count) in read(statistics) {
                let labels = [(*label, value)];
                encode_count(count, format, &mut encoder.encode_family(&labels)?)?;
            }
            Ok(())
        }
        Reading::Levels(label, read) => {
            for (value, level) in read(statistics) {
                encoder.encode_family(&[(*label, value)])?.encode_gauge(&level)?;
            }
            Ok(())
        }
        Reading::Times(read) => {
            let times = read(statistics);
            let sum_s = times.sum_us as f64 / US_PER_S;
            let buckets = buckets(times);
            encoder.encode_histogram::<NoLabelSet>(sum_s, times.count(), &buckets, None)
        }
    }
}

/// A sample of a counter: the library adds `_total` to its name, which in text has it already.
fn encode_count(count: u64, format: Format, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    match format {
        Format::Text => encoder.encode_gauge(&count),
        Format::OpenMetrics => encoder.encode_counter(&count, NO_EXEMPLAR),
    }
}

const NO_EXEMPLAR: Option<&prometheus_client::metrics::exemplar::Exemplar<NoLabelSet, f64>> = None;

/// The buckets with their upper ends in seconds; the last one has none.
fn buckets(times: &Times) -> Vec<(f64, u64)> {
    let ends = BOUNDS_US.iter().map(|bound| *bound as f64 / US_PER_S);
    ends.chain([f64::INFINITY]).zip(times.buckets).collect()
}

impl<S> Reading<S> {
    fn kind(&self) -> MetricType {
        match self {
            Self::Count(_) | Self::Counts(..) => MetricType::Counter,
            Self::Level(_) | Self::Levels(..) => MetricType::Gauge,
            Self::Times(_) => MetricType::Histogram,
        }
    }
}

#[cfg(test)]
mod tests;
