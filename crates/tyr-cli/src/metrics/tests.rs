//! What a scrape is answered, in both formats.

use std::collections::BTreeSet;

use tyr_server::NodeStatistics;

use super::*;

fn counted() -> NodeStatistics {
    let mut statistics = NodeStatistics { events: 42, epoch: 7, ..NodeStatistics::default() };
    statistics.answers.commits = 3;
    statistics.answers.aborts.insert("Conflict", 2);
    statistics.answers.commit_times.buckets[0] = 2;
    statistics.answers.commit_times.buckets[18] = 1;
    statistics.answers.commit_times.sum_us = 1_500_000;
    statistics
}

const SAMPLES: [&str; 9] = [
    "tyr_events_total 42",
    "tyr_map_epoch 7.0",
    "tyr_commits_total 3",
    "tyr_aborts_total{kind=\"Conflict\"} 2",
    "tyr_commit_seconds_sum 1.5",
    "tyr_commit_seconds_count 3",
    "tyr_commit_seconds_bucket{le=\"0.00005\"} 2",
    "tyr_commit_seconds_bucket{le=\"+Inf\"} 3",
    "# TYPE tyr_commit_seconds histogram",
];

#[test]
fn what_was_counted_is_in_the_answer() {
    for (format, kind) in [
        (Format::Text, "# TYPE tyr_commits_total counter"),
        (Format::OpenMetrics, "# TYPE tyr_commits counter"),
    ] {
        let text = Metrics::of(&node::METRICS, counted).write(format).unwrap();
        for line in SAMPLES.into_iter().chain([kind]) {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
    }
}

/// In text a sample belongs to the description of its own name, in OpenMetrics to that without
/// `_total`; whoever reads the one as the other finds counters without type or help.
#[test]
fn every_sample_has_its_description_before_it() {
    for format in [Format::Text, Format::OpenMetrics] {
        let text = Metrics::of(&node::METRICS, counted).write(format).unwrap();
        let mut described = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                described = rest.split(' ').next().unwrap();
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let suffix = name.strip_prefix(described).unwrap_or("another");
                let is_total = suffix == "_total" && format == Format::OpenMetrics;
                let is_own = ["", "_sum", "_count", "_bucket"].contains(&suffix) || is_total;
                assert!(is_own, "{line} below {described} in {format:?}");
            }
        }
    }
}

#[test]
fn open_metrics_come_to_those_only_who_ask_for_them() {
    let of = |accept: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        Format::of(&headers)
    };
    assert_eq!(Format::of(&HeaderMap::new()), Format::Text);
    for accept in ["*/*", "text/plain", "text/plain;version=0.0.4;q=0.3,*/*;q=0.1"] {
        assert_eq!(of(accept), Format::Text, "{accept}");
    }
    for accept in [
        "application/openmetrics-text",
        // Prometheus 2.42.
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
         q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    ] {
        assert_eq!(of(accept), Format::OpenMetrics, "{accept}");
    }
    assert_eq!(of("application/openmetrics-text;q=0.3,text/plain;q=0.5"), Format::Text);
    assert_eq!(of("application/openmetrics-text;q=0, text/plain;q=0"), Format::Text);
}

#[test]
fn both_answers_say_which_program_it_is_and_only_open_metrics_have_an_end() {
    let metrics = Metrics::of(&program::METRICS, || ());
    let version = format!("tyr_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    for (format, has_end) in [(Format::Text, false), (Format::OpenMetrics, true)] {
        let text = metrics.write(format).unwrap();
        assert!(text.contains(&version), "{text}");
        assert_eq!(text.ends_with("# EOF\n"), has_end, "{text}");
    }
}

/// Name, help, and whether it is a histogram.
fn rows<S>(table: &[Metric<S>]) -> Vec<(&'static str, &'static str, bool)> {
    let is_times = |it: &Metric<S>| matches!(it.reading, Reading::Times(_));
    table.iter().map(|it| (it.name, it.help, is_times(it))).collect()
}

#[test]
fn every_metric_has_a_name_of_its_own_with_its_unit_and_a_help() {
    let tables = [rows(&node::METRICS), rows(&store::METRICS), rows(&program::METRICS)].concat();
    let names: BTreeSet<&str> = tables.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(names.len(), tables.len());
    for (name, help, is_times) in tables {
        assert!(name.starts_with("tyr_") || name.starts_with("process_"), "{name}");
        assert!(!name.ends_with("_total"), "{name}: the format adds that");
        assert!(help.ends_with('.') && help.len() > 10, "{name}");
        let has_word = |word| name.split('_').any(|it| it == word);
        assert!(!has_word("us") && !has_word("ms"), "{name}: seconds");
        assert!(!is_times || name.ends_with("_seconds"), "{name}");
    }
}

#[test]
fn the_reference_page_is_what_the_tables_say() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    assert!(
        page == page::page(),
        "run: cargo run -p tyr-cli -- reference metrics > docs/reference/metrics.md"
    );
}
