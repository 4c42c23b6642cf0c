//! What a node counts, as Prometheus reads it.
//!
//! One table of metrics ([`table`]): name, help, and how it is read from a node's statistics. The
//! answer to a scrape and the reference page are both made from it.

mod table;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tyr_node::histogram::{BOUNDS_US, Times};
use tyr_node::server::{NodeStatistics, Observer};

pub use self::table::page;
use self::table::{METRICS, Metric, Reading};

const US_PER_S: f64 = 1e6;

/// The metrics of a node.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Metrics {
    /// The metrics of this node.
    pub fn of(observer: Observer) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Node(observer)));
        Self(registry)
    }

    /// The answer to a scrape.
    ///
    /// # Errors
    /// None that can happen while a text takes any text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0)?;
        Ok(text)
    }
}

#[derive(Debug)]
struct Node(Observer);

impl Collector for Node {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        encode(&self.0.statistics(), encoder)
    }
}

fn encode(statistics: &NodeStatistics, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
    for metric in &METRICS {
        let kind = metric.reading.kind();
        let mut encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
        encode_one(metric, statistics, &mut encoder)?;
    }
    Ok(())
}

fn encode_one(
    metric: &Metric,
    statistics: &NodeStatistics,
    encoder: &mut MetricEncoder<'_>,
) -> fmt::Result {
    match &metric.reading {
        Reading::Count(read) => encoder.encode_counter(&read(statistics), NO_EXEMPLAR),
        Reading::Level(read) => encoder.encode_gauge(&read(statistics)),
        Reading::Counts(label, read) => {
            for (value, count) in read(statistics) {
                let labels = [(*label, value)];
                encoder.encode_family(&labels)?.encode_counter(&count, NO_EXEMPLAR)?;
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

const NO_EXEMPLAR: Option<&prometheus_client::metrics::exemplar::Exemplar<NoLabelSet, f64>> = None;

/// The buckets with their upper ends in seconds; the last one has none.
fn buckets(times: &Times) -> Vec<(f64, u64)> {
    let ends = BOUNDS_US.iter().map(|bound| *bound as f64 / US_PER_S);
    ends.chain([f64::INFINITY]).zip(times.buckets).collect()
}

impl Reading {
    fn kind(&self) -> MetricType {
        match self {
            Self::Count(_) | Self::Counts(..) => MetricType::Counter,
            Self::Level(_) | Self::Levels(..) => MetricType::Gauge,
            Self::Times(_) => MetricType::Histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Statistics without a node.
    #[derive(Debug)]
    struct Fixed(NodeStatistics);

    impl Collector for Fixed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            encode(&self.0, encoder)
        }
    }

    fn text_of(statistics: NodeStatistics) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Fixed(statistics)));
        Metrics(registry).text().unwrap()
    }

    #[test]
    fn what_was_counted_is_in_the_answer() {
        let mut statistics = NodeStatistics { events: 42, epoch: 7, ..NodeStatistics::default() };
        statistics.answers.commits = 3;
        statistics.answers.aborts.insert("Conflict", 2);
        statistics.answers.commit_times.buckets[0] = 2;
        statistics.answers.commit_times.buckets[18] = 1;
        statistics.answers.commit_times.sum_us = 1_500_000;
        let text = text_of(statistics);
        for line in [
            "tyr_events_total 42",
            "tyr_map_epoch 7.0",
            "tyr_commits_total 3",
            "tyr_aborts_total{kind=\"Conflict\"} 2",
            "tyr_commit_seconds_sum 1.5",
            "tyr_commit_seconds_count 3",
            "tyr_commit_seconds_bucket{le=\"0.00005\"} 2",
            "tyr_commit_seconds_bucket{le=\"+Inf\"} 3",
            "# TYPE tyr_commit_seconds histogram",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn every_metric_has_a_name_of_its_own_with_its_unit_and_a_help() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in &METRICS {
            let name = metric.name;
            assert!(name.starts_with("tyr_") || name.starts_with("process_"), "{name}");
            assert!(!name.ends_with("_total"), "{name}: the format adds that");
            assert!(metric.help.ends_with('.') && metric.help.len() > 10, "{name}");
            let has_word = |word| name.split('_').any(|it| it == word);
            assert!(!has_word("us") && !has_word("ms"), "{name}: seconds");
            let is_time = matches!(metric.reading, Reading::Times(_));
            assert!(!is_time || name.ends_with("_seconds"), "{name}");
        }
    }

    #[test]
    fn the_reference_page_is_what_the_table_says() {
        let page = include_str!("../../../../../docs/reference/metrics.md");
        assert!(
            page == table::page(),
            "run: cargo run -p tyr-cli -- reference metrics > docs/reference/metrics.md"
        );
    }
}
