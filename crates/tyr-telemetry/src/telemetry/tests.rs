//! Recording, as the store below sees it.

use super::*;
use crate::calendar::DAY_US;
use crate::fixture::{Fixture, series};
use crate::verify::verify;

const START: i64 = 19_675 * DAY_US;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_measurement_is_one_transaction_that_cannot_abort() {
    let fixture = Fixture::new().await;
    let before = fixture.telemetry.store().statistics();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let telemetry = fixture.telemetry.clone();
            tokio::spawn(async move {
                let load = series(&format!("host{}", writer % 3), "load");
                for n in 0..100 {
                    telemetry.record(&load.at(START + n, n as f64)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let after = fixture.telemetry.store().statistics();
    assert_eq!((after.commits - before.commits, after.aborts - before.aborts), (800, 0));
    assert_eq!(fixture.telemetry.counts(), Counts { measurements: 800, transactions: 800 });
    fixture.verify_clean(800).await;
}

#[tokio::test]
async fn a_changed_mapping_of_regions_still_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).await.unwrap();
    let load = series("a", "load");
    for (region, value) in [("eu", 1.0), ("us", 2.0), ("eu", 4.0)] {
        let regions = BTreeMap::from([("cern".to_owned(), region.to_owned())]);
        let config = Config { regions, ..Config::default() };
        let telemetry = Telemetry::open(&store, config).await.unwrap();
        telemetry.record(&load.at(START, value)).await.unwrap();
    }
    let telemetry = Telemetry::open(&store, Config::default()).await.unwrap();
    let report = verify(&telemetry, |_| ()).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    // Two raw blobs; the aggregates of two regions and one of each other scope.
    assert_eq!((report.measurements, report.generators, report.aggregates), (3, 2, 8));
    let raw = telemetry.raw(&load, crate::TimeRange::ALL, 10).await.unwrap();
    assert_eq!(raw.samples.len(), 3);
}

#[tokio::test]
async fn forgotten_routes_change_nothing() {
    let fixture = Fixture::new().await;
    let store = fixture.telemetry.store();
    let telemetry = Telemetry::open_with(store, Config::default(), 2).await.unwrap();
    for n in 0..30 {
        let load = series(&format!("host{}", n % 5), "load");
        telemetry.record(&load.at(START + n, 1.0)).await.unwrap();
        assert!(telemetry.shared.routes.read().len() <= 2);
    }
    fixture.verify_clean(30).await;
}

#[tokio::test]
async fn a_store_opened_again_holds_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3_u64 {
        let store = Tyr::open(folder.path()).await.unwrap();
        let telemetry = Telemetry::open(&store, Config::default()).await.unwrap();
        for n in 0..50 {
            telemetry.record(&series("a", "load").at(START + n, 0.1)).await.unwrap();
        }
        let report = verify(&telemetry, |_| ()).await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
        assert_eq!(report.measurements, round * 50);
        drop(telemetry);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn configurations_out_of_range_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).await.unwrap();
    for config in [
        Config { batch: 0, ..Config::default() },
        Config { batch: BATCH_MAX + 1, ..Config::default() },
        Config { default_region: String::new(), ..Config::default() },
        Config { keyspace: "Not a name".to_owned(), ..Config::default() },
    ] {
        let error = Telemetry::open(&store, config).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[tokio::test]
async fn a_batch_beyond_its_bound_is_refused_whole() {
    let fixture = Fixture::new().await;
    let load = series("a", "load");
    let measurements = vec![load.at(START, 1.0); BATCH_MAX + 1];
    let error = fixture.telemetry.record_batch(&measurements).await.unwrap_err();
    assert!(error.message().contains("512"), "{error}");
    fixture.telemetry.record_batch(&measurements[1..]).await.unwrap();
    fixture.telemetry.record_batch(&[]).await.unwrap();
    fixture.verify_clean(512).await;
}
