//! Questions to a small store whose answers are known.

use std::collections::BTreeMap;

use super::*;
use crate::calendar::{DAY_US, HOUR_US, MINUTE_US, TimeRange, Window};
use crate::fixture::{Fixture, series};
use crate::subject::{AggregateName, Scope, Subject};
use crate::telemetry::Config;

/// 2023-11-14 00:00:00.
const START: i64 = 19_675 * DAY_US;

fn aggregate(scope: Scope, path: &str) -> AggregateName {
    AggregateName { subject: Subject::parse(scope, path).unwrap(), parameter: "load".into() }
}

fn range(from_us: i64, to_us: i64) -> TimeRange {
    TimeRange::new(from_us, to_us).unwrap()
}

#[tokio::test]
async fn late_measurements_count_in_their_own_window_and_sort_into_place() {
    let fixture = Fixture::new().await;
    let load = series("a", "load");
    for (minute, value) in [(3, 30.0), (1, 10.0), (2, 20.0), (-5, -50.0), (1, 11.0)] {
        fixture.telemetry.record(&load.at(START + minute * MINUTE_US, value)).await.unwrap();
    }
    let raw = fixture.telemetry.raw(&load, TimeRange::ALL, 100).await.unwrap();
    let values: Vec<f64> = raw.samples.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [-50.0, 10.0, 11.0, 20.0, 30.0]);
    let name = aggregate(Scope::Host, "cern/batch/a");
    let minutes = fixture.telemetry.aggregate(&name, Window::Minute, TimeRange::ALL).await.unwrap();
    let counts: Vec<(i64, u64)> = minutes
        .points
        .iter()
        .map(|point| ((point.start_us - START) / MINUTE_US, point.count))
        .collect();
    assert_eq!(counts, [(-5, 1), (1, 2), (2, 1), (3, 1)]);
    let days = fixture.telemetry.aggregate(&name, Window::Day, TimeRange::ALL).await.unwrap();
    assert_eq!(days.points.len(), 2);
    let today = days.points[1];
    assert_eq!((today.count, today.sum, today.min, today.max), (4, 71.0, 10.0, 30.0));
    fixture.verify_clean(5).await;
}

#[tokio::test]
async fn a_raw_range_holds_its_times_and_says_when_it_is_cut() {
    let fixture = Fixture::new().await;
    let load = series("a", "load");
    for hour in (0..50).rev() {
        fixture.telemetry.record(&load.at(START + hour * HOUR_US, hour as f64)).await.unwrap();
    }
    let telemetry = &fixture.telemetry;
    let within = range(START + 5 * HOUR_US, START + 30 * HOUR_US);
    let raw = telemetry.raw(&load, within, 100).await.unwrap();
    assert_eq!((raw.samples.len(), raw.is_cut), (25, false));
    assert_eq!(raw.samples[0].value, 5.0);
    let raw = telemetry.raw(&load, within, 25).await.unwrap();
    assert_eq!((raw.samples.len(), raw.is_cut), (25, false));
    let raw = telemetry.raw(&load, within, 24).await.unwrap();
    assert_eq!((raw.samples.len(), raw.is_cut), (24, true));
    assert_eq!(raw.samples[23].value, 28.0);
    let none = telemetry.raw(&series("b", "load"), within, 100).await.unwrap();
    assert!(none.samples.is_empty() && !none.is_cut);
}

#[tokio::test]
async fn the_top_ranks_subjects_over_exactly_the_range() {
    let fixture = Fixture::new().await;
    for (host, values) in [("a", [1.0, 2.0, 9.0]), ("b", [4.0, 5.0, 0.0]), ("c", [3.0, 3.0, 3.0])] {
        let load = series(host, "load");
        for (hour, value) in (0..).zip(values) {
            let time_us = START + 22 * HOUR_US + hour * HOUR_US + 61 * 1_000_000;
            fixture.telemetry.record(&load.at(time_us, value)).await.unwrap();
        }
        fixture.telemetry.record(&series(host, "temp").at(START, 1000.0)).await.unwrap();
    }
    let query = |by, range| TopQuery {
        scope: Scope::Host,
        parameter: Some("load".into()),
        by,
        range,
        limit: 2,
    };
    let hosts = |top: Top| -> Vec<String> {
        top.entries.into_iter().map(|entry| entry.names[2].clone()).collect()
    };
    let telemetry = &fixture.telemetry;
    let everything = telemetry.top(&query(TopBy::Sum, TimeRange::ALL)).await.unwrap();
    assert_eq!(everything.entries[0].total.sum, 12.0);
    assert_eq!(hosts(everything), ["a", "b"]);
    let evening = range(START + 22 * HOUR_US, START + DAY_US);
    assert_eq!(hosts(telemetry.top(&query(TopBy::Mean, evening)).await.unwrap()), ["b", "c"]);
    let most = telemetry.top(&query(TopBy::Max, TimeRange::ALL)).await.unwrap();
    assert_eq!(hosts(most), ["a", "b"]);
    let any = TopQuery { parameter: None, ..query(TopBy::Max, TimeRange::ALL) };
    assert_eq!(telemetry.top(&any).await.unwrap().entries[0].parameter, "temp");
    let all = TopQuery { scope: Scope::All, ..query(TopBy::Count, TimeRange::ALL) };
    let all = telemetry.top(&all).await.unwrap();
    assert_eq!((all.entries.len(), all.entries[0].total.count), (1, 9));
}

#[tokio::test]
async fn the_catalog_lists_what_the_filter_matches() {
    let fixture = Fixture::new().await;
    for (host, parameter) in [("b", "load"), ("a", "temp"), ("a", "load")] {
        fixture.telemetry.record(&series(host, parameter).at(START, 1.0)).await.unwrap();
    }
    let telemetry = &fixture.telemetry;
    let all = telemetry.catalog(&CatalogFilter::default(), 10).await.unwrap();
    assert_eq!((all.entries.len(), all.is_cut), (3, false));
    assert_eq!(all.entries[0].series, series("a", "load"));
    assert_eq!(all.entries[0].region, "default");
    let host = CatalogFilter { host: Some("a".into()), ..CatalogFilter::default() };
    assert_eq!(telemetry.catalog(&host, 10).await.unwrap().entries.len(), 2);
    assert!(telemetry.catalog(&host, 1).await.unwrap().is_cut);
    let prefix = CatalogFilter { site: Some("cer".into()), ..CatalogFilter::default() };
    assert!(telemetry.catalog(&prefix, 10).await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn sites_count_in_their_region_and_the_others_in_the_default() {
    let config = Config {
        regions: BTreeMap::from([("cern".to_owned(), "eu".to_owned())]),
        ..Config::default()
    };
    let fixture = Fixture::with(config).await;
    let mut fnal = series("a", "load");
    fnal.site = "fnal".into();
    for (name, value) in [(series("a", "load"), 1.0), (series("b", "load"), 2.0), (fnal, 4.0)] {
        fixture.telemetry.record(&name.at(START, value)).await.unwrap();
    }
    for (region, sum) in [("eu", 3.0), ("default", 4.0)] {
        let name = aggregate(Scope::Region, region);
        let days = fixture.telemetry.aggregate(&name, Window::Day, TimeRange::ALL).await.unwrap();
        assert_eq!(days.points[0].sum, sum, "{region}");
    }
    fixture.verify_clean(3).await;
}

#[tokio::test]
async fn a_batch_records_the_same_as_single_transactions() {
    let fixture = Fixture::new().await;
    let names = [series("a", "load"), series("b", "load")];
    let measurements: Vec<_> =
        (0..100).map(|n| names[n % 2].at(START + n as i64 * 7_000_000, n as f64 / 8.0)).collect();
    fixture.telemetry.record_batch(&measurements).await.unwrap();
    assert_eq!(fixture.telemetry.counts().transactions, 1);
    let name = aggregate(Scope::Cluster, "cern/batch");
    let hour = fixture.telemetry.aggregate(&name, Window::Hour, TimeRange::ALL).await.unwrap();
    assert_eq!((hour.points[0].count, hour.points[0].max), (100, 99.0 / 8.0));
    fixture.verify_clean(100).await;
    let bad = [names[0].at(START, 1.0), names[0].at(START, f64::NAN)];
    assert!(fixture.telemetry.record_batch(&bad).await.is_err());
    fixture.verify_clean(100).await;
}

#[tokio::test]
async fn an_intake_stores_the_good_ones_of_a_bad_batch() {
    let fixture = Fixture::with(Config { batch: 4, ..Config::default() }).await;
    let load = series("a", "load");
    let measurements: Vec<_> =
        (0..10).map(|n| load.at(START, if n == 5 { f64::NAN } else { 1.0 })).collect();
    let intake = fixture.intake("test");
    let counts = intake.record(&measurements).await;
    assert_eq!((counts.stored, counts.refused, counts.failed), (9, 1, 0));
    assert_eq!(intake.counts(), counts);
    fixture.verify_clean(9).await;
}
