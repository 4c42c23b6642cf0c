//! Verification of good stores, and of stores that were tampered with in every way.

use tyr::{Bytes, Number, Transform};

use super::*;
use crate::calendar::{DAY_US, MINUTE_US};
use crate::fixture::{Fixture, series};
use crate::load::{Generator, LoadOptions};

const START: i64 = 19_675 * DAY_US;

fn cluster_key() -> Key {
    let subject = Subject::parse(Scope::Cluster, "cern/batch").unwrap();
    let name = AggregateName { subject, parameter: "load".into() };
    layout::aggregate_key(Day::of(START), &name).unwrap()
}

async fn small_store() -> Fixture {
    let fixture = Fixture::new().await;
    for (host, minute, value) in [("a", 0, 0.1), ("b", 0, 0.2), ("a", 1, -7.0), ("b", 90, 1e20)] {
        let load = series(host, "load");
        fixture.telemetry.record(&load.at(START + minute * MINUTE_US, value)).await.unwrap();
    }
    fixture
}

async fn differences(fixture: &Fixture) -> Vec<(String, &'static str)> {
    let report = verify(&fixture.telemetry, |_| ()).await.unwrap();
    report.differences.into_iter().map(|found| (found.what, found.field)).collect()
}

#[tokio::test]
async fn an_empty_store_verifies() {
    let fixture = Fixture::new().await;
    fixture.verify_clean(0).await;
    assert_eq!(audit(&fixture.telemetry, 1).await.unwrap(), None);
}

#[tokio::test]
async fn what_was_recorded_verifies_and_is_counted() {
    let fixture = small_store().await;
    let mut seen = 0;
    let report = verify(&fixture.telemetry, |progress| seen = seen.max(progress.measurements))
        .await
        .unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    assert_eq!((report.days, report.generators, report.measurements, seen), (1, 2, 4, 4));
    // Two generators, two hosts, and one each of cluster, site, region, job and all.
    assert_eq!(report.aggregates, 9);
}

#[tokio::test]
async fn any_number_of_an_aggregate_changed_by_little_is_found() {
    for (field, offset, transform) in [
        ("count", 0, Transform::add(Number::U64(1))),
        ("sum", 8, Transform::add(Number::F64(1e6))),
        ("max", 16, Transform::add(Number::U64(1))),
        ("min", 24, Transform::add(Number::U64(1))),
    ] {
        let fixture = small_store().await;
        fixture.telemetry.keyspace().apply(&cluster_key(), offset, transform).await.unwrap();
        let what = "load of cluster cern/batch".to_owned();
        assert_eq!(differences(&fixture).await, [(what, field)]);
    }
}

#[tokio::test]
async fn a_sum_that_is_no_number_is_found() {
    let fixture = small_store().await;
    let nan = Bytes::copy_from_slice(&f64::NAN.to_le_bytes());
    fixture.telemetry.keyspace().write(&cluster_key(), 8, nan).await.unwrap();
    assert_eq!(differences(&fixture).await.len(), 1);
}

#[tokio::test]
async fn a_missing_aggregate_and_one_too_many_are_found() {
    let fixture = small_store().await;
    fixture.telemetry.keyspace().delete(&cluster_key()).await.unwrap();
    let found = differences(&fixture).await;
    // The day, two hours, three minutes; each lacks count, sum, max and min.
    assert_eq!(found.len(), 6 * 4, "{found:?}");
    let fixture = small_store().await;
    let stray = Key::new("2023-11-14/host/load/cern/batch/nobody").unwrap();
    fixture.telemetry.keyspace().put(&stray, vec![1_u8; 32]).await.unwrap();
    let found = differences(&fixture).await;
    assert!(found.iter().any(|(what, field)| what.contains("nobody") && *field == "raw data"));
    assert!(found.iter().any(|(what, field)| what.contains("nobody") && *field == "count"));
}

#[tokio::test]
async fn a_window_too_many_and_bytes_past_the_last_are_found() {
    let fixture = small_store().await;
    let keyspace = fixture.telemetry.keyspace();
    keyspace.write(&cluster_key(), 1000 * 32, vec![1_u8]).await.unwrap();
    assert_eq!(differences(&fixture).await.len(), 1);
    keyspace.write(&cluster_key(), 1465 * 32, vec![0_u8]).await.unwrap();
    let found = differences(&fixture).await;
    assert!(found.iter().any(|(_, field)| *field == "size"), "{found:?}");
}

#[tokio::test]
async fn raw_data_that_nothing_recorded_are_found() {
    let fixture = small_store().await;
    let keyspace = fixture.telemetry.keyspace();
    let path = layout::series_path(&series("a", "load")).unwrap();
    let raw = layout::raw_key(Day::of(START), &path, "default").unwrap();
    let sample = Sample { time_us: START, value: 0.0 }.store();
    keyspace.append(&raw, sample.to_vec()).await.unwrap();
    let found = differences(&fixture).await;
    // Of seven aggregates: the counts of three windows, and the minimum of the minute.
    let counts = found.iter().filter(|(_, field)| *field == "count").count();
    assert_eq!((counts, found.len()), (21, 28), "{found:?}");
    keyspace.append(&raw, vec![1_u8, 2, 3]).await.unwrap();
    assert!(differences(&fixture).await.iter().any(|(_, field)| *field == "size"));
    let foreign = Sample { time_us: START + DAY_US, value: 0.0 }.store();
    keyspace.truncate(&raw, 32).await.unwrap();
    keyspace.append(&raw, foreign.to_vec()).await.unwrap();
    assert!(differences(&fixture).await.iter().any(|(_, field)| *field == "samples"));
}

#[tokio::test]
async fn a_generator_that_the_catalog_lacks_and_foreign_blobs_are_found() {
    let fixture = small_store().await;
    let keyspace = fixture.telemetry.keyspace();
    keyspace.delete("catalog/cern/batch/a/load/reco/default").await.unwrap();
    keyspace.put("2023-11-14/what/is/this", vec![1_u8]).await.unwrap();
    let fields: Vec<&str> =
        differences(&fixture).await.into_iter().map(|(_, field)| field).collect();
    assert_eq!(fields, ["catalog", "key"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audits_find_aggregates_equal_while_writers_run() {
    let fixture = Fixture::new().await;
    let writers: Vec<_> = (0..4)
        .map(|seed| {
            let telemetry = fixture.telemetry.clone();
            tokio::spawn(async move {
                let mut load = Generator::new(&LoadOptions { seed, ..LoadOptions::default() });
                for n in 0..500 {
                    let time_us = START + n * 1_700_000;
                    let (series, value) = load.next(time_us);
                    telemetry.record(&series.at(time_us, value)).await.unwrap();
                }
            })
        })
        .collect();
    let mut audited = 0;
    let mut random = 0x1234_5678_u64;
    while writers.iter().any(|writer| !writer.is_finished()) || audited < 20 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if let Some(audit) = audit(&fixture.telemetry, random >> 8).await.unwrap() {
            assert!(audit.is_equal(), "{audit:#?}");
            audited += 1;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    fixture.verify_clean(2000).await;
}

#[tokio::test]
async fn an_audit_finds_an_aggregate_that_was_tampered_with() {
    let fixture = small_store().await;
    let one = Transform::add(Number::U64(1));
    fixture.telemetry.keyspace().apply(&cluster_key(), 0, one).await.unwrap();
    let mut wrong = 0;
    for random in 0..7 {
        let audit = audit(&fixture.telemetry, random).await.unwrap().unwrap();
        wrong += usize::from(!audit.is_equal());
        assert_eq!(audit.is_equal(), !audit.aggregate.contains("cluster"));
    }
    assert_eq!(wrong, 1);
}
