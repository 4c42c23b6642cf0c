//! Many who append, read, and are cut off in the middle: each entry is there once, in one order.

use std::collections::BTreeMap;
use std::time::Duration;

use tyr::ErrorKind;
use tyr_log::{Batch, Entry, Log, Options, Start};

use crate::place::{all, on_each};

/// What a writer's entry says: who, and which of its own.
fn parse(entry: &Entry) -> (u64, u64) {
    let text = std::str::from_utf8(&entry.data).unwrap();
    let (writer, rest) = text.split_once(' ').unwrap();
    (writer.parse().unwrap(), rest.trim_end().parse().unwrap())
}

/// Each writer's entries are there once, all of them and in its order in each partition.
fn check(entries: &[Entry], writers: &BTreeMap<u64, u64>) {
    let mut positions: Vec<_> = entries.iter().map(|entry| entry.position).collect();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions.len(), entries.len(), "no position is handed out twice");
    let mut seen: BTreeMap<(u64, u16), Vec<u64>> = BTreeMap::new();
    for entry in entries {
        let (writer, n) = parse(entry);
        seen.entry((writer, entry.position.partition)).or_default().push(n);
    }
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for ((writer, partition), in_partition) in seen {
        assert!(in_partition.is_sorted(), "writer {writer} in {partition}: {in_partition:?}");
        numbers.entry(writer).or_default().extend(in_partition);
    }
    for (writer, numbers) in &mut numbers {
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..writers[writer]), "writer {writer}: {numbers:?}");
    }
    assert_eq!(numbers.len(), writers.len());
}

async fn append(log: Log, writer: u64, count: u64) {
    for n in 0..count {
        log.append(format!("{writer} {n:<60}")).await.unwrap();
    }
}

#[test]
fn many_append_while_segments_roll_and_each_reader_sees_each_entry_once_in_order() {
    on_each(|place| async move {
        const EACH: u64 = 60;
        for partitions in [1, 3] {
            let log = place.log(&format!("orders-{partitions}"), partitions).await;
            // Half of them by handles of their own, which learn late of other segments.
            let mut writers = Vec::new();
            for writer in 0..6_u64 {
                let handle = match writer % 2 {
                    0 => log.clone(),
                    _ => place.open(log.name()).await.unwrap(),
                };
                writers.push(tokio::spawn(append(handle, writer, EACH)));
            }
            let read = async |log: Log| {
                let mut reader = log.subscribe(&Start::Oldest).await.unwrap();
                let mut entries = Vec::new();
                while entries.len() < 6 * EACH as usize {
                    entries.extend(reader.next(11).await.unwrap().unwrap());
                }
                entries
            };
            let readers: Vec<_> = (0..2).map(|_| tokio::spawn(read(log.clone()))).collect();
            for writer in writers {
                writer.await.unwrap();
            }
            let entries = all(&log).await;
            check(&entries, &(0..6).map(|writer| (writer, EACH)).collect());
            assert!(entries.last().unwrap().position.segment > 3);
            for reader in readers {
                assert_eq!(reader.await.unwrap(), entries);
            }
        }
    });
}

#[test]
fn who_appends_and_trims_may_be_cut_off_anywhere() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        let mut acknowledged = 0;
        for round in 0..40_u64 {
            // A task that is dropped wherever it is, also between closing a segment and what is due
            // after that.
            let (sender, receiver) = std::sync::mpsc::channel();
            let cut_off = tokio::spawn({
                let log = log.clone();
                async move {
                    for n in 0.. {
                        log.append(format!("{round} {n:<300}")).await.unwrap();
                        if sender.send(()).is_err() {
                            return;
                        }
                        if n % 5 == 4 {
                            let _ = log.apply_retention(|_| Ok(())).await;
                        }
                    }
                }
            });
            tokio::time::sleep(Duration::from_micros(300 * (round % 10))).await;
            cut_off.abort();
            let _ = cut_off.await;
            acknowledged += receiver.try_iter().count();
        }
        // What is in flight when it is cut off may be there, one of each round.
        let entries = all(&log).await;
        assert!((acknowledged..=acknowledged + 40).contains(&entries.len()), "{}", entries.len());
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        entries.iter().for_each(|entry| *counts.entry(parse(entry).0).or_default() += 1);
        check(&entries, &counts);
        let other = place.open("orders").await.unwrap();
        let segment = log.tail().await.unwrap().positions()[0].segment;
        for n in 0..20_u64 {
            let batch = Batch::of([format!("99 {n:<300}")]).unwrap().in_partition(0);
            other.append_batch(&batch).await.unwrap();
        }
        assert!(log.tail().await.unwrap().positions()[0].segment > segment, "it goes on");
    });
}

#[test]
fn who_reads_where_an_entry_is_being_appended_finds_it_or_that_nothing_is_there_yet() {
    on_each(|place| async move {
        let options = Options { segment_bytes: Some(1 << 20), ..place.options(1) };
        let log = Log::create(&place.store, "orders", &options).await.unwrap();
        for n in 0..100_u64 {
            let next = log.tail().await.unwrap().positions()[0];
            let appending = tokio::spawn(append(log.clone(), n, 1));
            let entry = loop {
                match log.read(next).await {
                    Ok(entry) => break entry,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                }
            };
            assert_eq!(parse(&entry), (n, 0));
            appending.await.unwrap();
        }
    });
}
