//! Entries that are appended at once by one handle to a log on a cluster: they share transactions.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tyr::{ErrorKind, Result};
use tyr_log::{Appended, Log, Options};

use crate::place::{Place, all, on, texts};
use tyr_testing::Kind;

type Appending = Pin<Box<dyn Future<Output = Result<Appended>> + Send>>;

/// Appends of numbers that have begun: those of the first few are under way, the rest gather.
fn begun(log: &Log, numbers: std::ops::Range<u64>) -> Vec<Appending> {
    let begin = |n: u64| {
        let log = log.clone();
        let mut appending: Appending = Box::pin(async move { log.append(n.to_string()).await });
        assert!(appending.as_mut().now_or_never().is_none(), "it waits for a trip");
        appending
    };
    numbers.map(begin).collect()
}

/// A log whose segments are not full for a while.
async fn log(place: &Place, is_strict: bool) -> Log {
    let options = Options { is_strict, segment_bytes: Some(1 << 20), ..place.options(1) };
    Log::create(&place.store, "orders", &options).await.unwrap()
}

#[test]
fn each_is_told_its_own_place_and_few_transactions_carry_them() {
    on(Kind::Cluster, |place| async move {
        let log = log(&place, true).await;
        let told = join_all(begun(&log, 0..200)).await;
        let told: Vec<Appended> = told.into_iter().map(Result::unwrap).collect();
        let stamps: BTreeSet<_> = told.iter().map(|it| it.stamp).collect();
        assert!(stamps.len() <= 5, "four at once, and the rest: {}", stamps.len());
        let entries = all(&log).await;
        assert_eq!(entries.len(), 200);
        for (n, told) in told.iter().enumerate() {
            let entry = log.read(told.position).await.unwrap();
            assert_eq!((&*entry.data, entry.stamp), (n.to_string().as_bytes(), told.stamp));
            let in_order = &entries[told.number.unwrap() as usize];
            assert_eq!((in_order.position, told.count), (told.position, 1));
        }
        let gathered: Vec<_> = told[4..].iter().map(|it| it.position.index).collect();
        assert!(gathered.into_iter().eq(0..196), "in the order in which they came");
    });
}

#[test]
fn long_ones_and_more_than_one_transaction_should_carry_are_appended_too() {
    on(Kind::Cluster, |place| async move {
        let log = log(&place, false).await;
        let entries = (0..12_usize).map(|n| vec![n as u8; (n % 3) << 15]);
        let told = join_all(entries.map(|it| log.append(it))).await;
        for (n, told) in told.into_iter().enumerate() {
            let entry = log.read(told.unwrap().position).await.unwrap();
            assert_eq!(entry.data, vec![n as u8; (n % 3) << 15], "{n}");
        }
        let too_long = log.append(vec![0; tyr_log::FRAME_LEN_MAX]).await.unwrap_err();
        assert_eq!(too_long.kind(), ErrorKind::InvalidArgument);
    });
}

#[test]
fn whoever_goes_away_holds_up_nobody() {
    on(Kind::Cluster, |place| async move {
        let log = log(&place, false).await;
        // The one that began to gather, one behind it, and one that is under way.
        let mut appending = begun(&log, 0..10);
        for gone in [7, 4, 1] {
            drop(appending.remove(gone));
        }
        for told in join_all(appending).await {
            told.unwrap();
        }
        let got: BTreeSet<_> = texts(&all(&log).await).into_iter().collect();
        let stayed = ["0", "2", "3", "5", "6", "8", "9"].map(str::to_owned);
        assert!(stayed.iter().all(|it| got.contains(it)), "{got:?}");
        assert!(got.contains("4") && got.contains("7"), "they went with those that waited");

        // Nobody waits for what has gathered: it is not appended, and others begin anew.
        let mut appending = begun(&log, 20..26);
        appending.truncate(4);
        for told in join_all(appending).await {
            told.unwrap();
        }
        assert!(join_all(begun(&log, 30..36)).await.iter().all(Result::is_ok));
        let got: BTreeSet<_> = texts(&all(&log).await).into_iter().collect();
        assert!(!got.contains("24") && !got.contains("25"), "{got:?}");
        assert!((20..24).chain(30..36).all(|n| got.contains(&n.to_string())), "{got:?}");
    });
}

#[test]
fn whoever_keeps_its_future_without_polling_it_holds_up_nobody() {
    on(Kind::Cluster, |place| async move {
        let log = log(&place, false).await;
        // All that may be under way at once, and one that gathers.
        let kept = begun(&log, 0..5);
        log.append("5").await.unwrap();
        log.append("6").await.unwrap();
        drop(kept);
        let got: BTreeSet<_> = texts(&all(&log).await).into_iter().collect();
        assert!(["4", "5", "6"].iter().all(|it| got.contains(*it)), "{got:?}");
    });
}

#[test]
fn all_are_told_what_was_wrong_and_all_go_on_in_the_next_segment() {
    on(Kind::Cluster, |place| async move {
        // Each transaction fills a segment, so the next one meets a closed one.
        let log = place.log("small", 1).await;
        for round in 0..20 {
            let told = join_all(begun(&log, 100 * round..100 * round + 100)).await;
            assert!(told.iter().all(Result::is_ok), "{told:?}");
        }
        let entries = all(&log).await;
        assert!(entries.last().unwrap().position.segment > 3);
        let mut got: Vec<u64> = texts(&entries).iter().map(|it| it.parse().unwrap()).collect();
        got.sort_unstable();
        assert!(got.into_iter().eq(0..2_000));

        place.open("small").await.unwrap().seal().await.unwrap();
        for told in join_all(begun(&log, 0..20)).await {
            let error = told.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains("is sealed"), "{error}");
        }
    });
}
