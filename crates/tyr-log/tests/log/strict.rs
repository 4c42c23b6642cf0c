//! Strict logs: one order over all partitions, and a number for each entry.

use std::collections::BTreeSet;

use tyr::ErrorKind;
use tyr_log::{Log, Start};

use crate::place::{Place, all, all_from, numbered, on_each};

async fn strict(place: &Place, partitions: u16) -> Log {
    let options = tyr_log::Options { is_strict: true, ..place.options(partitions) };
    Log::create(&place.store, "ledger", &options).await.unwrap()
}

#[test]
fn numbers_are_dense_and_in_the_order_that_appends_were_told() {
    on_each(|place| async move {
        let log = strict(&place, 3).await;
        let writer = async |log: Log, writer: u64| {
            let mut told = Vec::new();
            for n in 0..40 {
                let appended = log.append_batch(&numbered(n, n + 1 + writer)).await.unwrap();
                told.push((appended.number.unwrap(), appended.position, appended.stamp));
            }
            assert!(told.is_sorted(), "numbers of one writer ascend");
            told
        };
        let writers: Vec<_> = (0..3).map(|n| tokio::spawn(writer(log.clone(), n))).collect();
        let mut told = BTreeSet::new();
        for writer in writers {
            told.extend(writer.await.unwrap());
        }
        let entries = all(&log).await;
        assert_eq!(entries.len(), 40 * (1 + 2 + 3));
        assert!(entries.iter().map(|entry| entry.number).eq((0..240).map(Some)));
        assert!(told.iter().map(|(_, _, stamp)| stamp).is_sorted(), "numbers are as stamps");
        for (number, position, stamp) in &told {
            let entry = &entries[*number as usize];
            assert_eq!((entry.position, entry.stamp), (*position, *stamp));
        }
    });
}

#[test]
fn entries_are_found_by_number() {
    on_each(|place| async move {
        let log = strict(&place, 2).await;
        for n in 0..50 {
            log.append_batch(&numbered(3 * n, 3 * n + 3)).await.unwrap();
        }
        let entries = all(&log).await;
        for number in [0, 1, 74, 149] {
            let from = all_from(&log, &Start::Number(number)).await;
            assert_eq!(from, entries[number as usize..], "{number}");
        }
        assert!(all_from(&log, &Start::Number(150)).await.is_empty());
        let late = log.reader(&Start::Number(151)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::NotFound);
        assert!(late.message().contains("the next will be 150"), "{late}");
    });
}

#[test]
fn numbers_stay_when_what_is_before_is_trimmed() {
    on_each(|place| async move {
        let log = strict(&place, 2).await;
        for n in 0..50 {
            log.append_batch(&numbered(3 * n, 3 * n + 3)).await.unwrap();
        }
        let entries = all(&log).await;
        let cut = log.reader(&Start::Number(70)).await.unwrap().cut();
        assert_eq!(cut.number(), Some(70));
        log.trim(&cut, |_| Ok(())).await.unwrap();
        assert_eq!(all(&log).await, entries[70..]);
        assert_eq!(all_from(&log, &Start::Number(99)).await, entries[99..]);
        let gone = log.reader(&Start::Number(69)).await.unwrap_err();
        assert!(gone.message().contains("the first that is left is 70"), "{gone}");
        assert_eq!(log.status().await.unwrap().numbers, Some((70, 150)));
        let unnumbered = cut.to_string().split('#').next().unwrap().parse().unwrap();
        // It is trimmed already, so its number does not matter.
        log.trim(&unnumbered, |_| Ok(())).await.unwrap();
    });
}

#[test]
fn a_position_of_a_strict_log_with_one_partition_has_its_number_found() {
    on_each(|place| async move {
        let log = strict(&place, 1).await;
        for n in 0..40 {
            log.append_batch(&numbered(2 * n, 2 * n + 2)).await.unwrap();
        }
        let entries = all(&log).await;
        let cut = entries[51].position.to_string().parse().unwrap();
        log.trim(&cut, |_| Ok(())).await.unwrap();
        assert_eq!(all(&log).await, entries[51..]);
    });
}

#[test]
fn batches_of_one_transaction_are_told_numbers_only_if_readers_count_them_so() {
    on_each(|place| async move {
        let log = strict(&place, 2).await;
        let append = async |partitions: &[u16]| {
            let (mut transaction, mut appendings) = (place.store.begin(), Vec::new());
            for (partition, n) in partitions.iter().zip(0..) {
                let batch = numbered(n, n + 2).in_partition(*partition);
                appendings.push(log.append_in(&mut transaction, &batch).await.unwrap());
            }
            let committed = transaction.commit().await.unwrap();
            let mut told = Vec::new();
            for appending in appendings {
                told.push(appending.finish(&committed).await.unwrap());
            }
            told
        };
        let mut told = append(&[1]).await;
        told.extend(append(&[1, 0]).await);
        told.extend(append(&[0]).await);
        let entries = all(&log).await;
        let number = |position| entries.iter().find(|it| it.position == position).unwrap().number;
        let read: Vec<_> = told.iter().map(|it| number(it.position)).collect();
        assert_eq!(read, [Some(0), Some(4), Some(2), Some(6)], "by partitions, not as appended");
        assert!(told.iter().all(|it| it.number.is_none() || it.number == number(it.position)));
        assert!(told[0].number.is_some() && told[3].number.is_some());
    });
}
