//! What is trimmed is gone for all, its space too, and nobody reads half of it.

use std::time::Duration;

use tyr::{Error, ErrorKind};
use tyr_log::{Log, Retention, Start};

use crate::place::{Place, all, all_from, cut, numbered, on_each, take};

async fn filled(place: &Place, partitions: u16) -> Log {
    filled_as(place, "orders", partitions).await
}

async fn filled_as(place: &Place, name: &str, partitions: u16) -> Log {
    let log = place.log(name, partitions).await;
    for n in 0..60_u64 {
        log.append(format!("{n:0150}")).await.unwrap();
    }
    log
}

#[test]
fn what_is_before_the_cut_is_gone_and_what_is_behind_it_stays() {
    on_each(|place| async move {
        let log = filled(&place, 2).await;
        let (entries, before) = (all(&log).await, log.status().await.unwrap());
        for at in [0, 1, 23, 44] {
            let mut reader = log.reader(&Start::Oldest).await.unwrap();
            let gone = entries.len() - all(&log).await.len();
            if at > gone {
                take(&mut reader, at - gone).await;
            }
            let trimmed = log.trim(&reader.cut(), |_| Ok(())).await.unwrap();
            assert_eq!(trimmed.left, 0);
            assert_eq!(all(&log).await, entries[at..], "{at}");
            for entry in &entries[..at] {
                let error = log.read(entry.position).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound);
                assert!(error.message().contains("was trimmed"), "{error}");
            }
        }
        let after = log.status().await.unwrap();
        for (before, after) in before.partitions.iter().zip(&after.partitions) {
            assert!(after.segments < before.segments && after.bytes < before.bytes, "{after:?}");
            assert_eq!(after.end, before.end);
        }
        // All of it may go, and the log goes on.
        log.trim(&log.tail().await.unwrap(), |_| Ok(())).await.unwrap();
        assert!(all(&log).await.is_empty());
        log.append("more").await.unwrap();
        assert_eq!(all(&log).await.len(), 1);
    });
}

#[test]
fn who_reads_what_is_trimmed_meanwhile_is_told_and_where_it_begins_now() {
    on_each(|place| async move {
        let log = filled(&place, 1).await;
        let mut reader = log.reader(&Start::Oldest).await.unwrap();
        let first = reader.next(1).await.unwrap();
        log.trim(&log.tail().await.unwrap(), |_| Ok(())).await.unwrap();
        let error = loop {
            // What it has read ahead it has.
            match reader.next(1).await {
                Ok(more) => assert!(!more.is_empty(), "an error comes, not the end"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("the partition begins at 0:"), "{error}");
        let again = log.reader(&Start::At(cut(&first[0].position.to_string()))).await.unwrap_err();
        assert!(again.message().contains("was trimmed"), "{again}");
        let late = log.trim(&cut("0:99:64"), |_| Ok(())).await.unwrap_err();
        assert!(late.message().contains("nothing has been written"), "{late}");
    });
}

#[test]
fn who_trims_next_goes_on_where_it_was_interrupted() {
    on_each(|place| async move {
        let log = filled(&place, 2).await;
        let entries = all(&log).await;
        let mut reader = log.reader(&Start::Oldest).await.unwrap();
        take(&mut reader, 50).await;
        let cut = reader.cut();
        let stop = |_| Err(Error::unavailable("stopped"));
        assert_eq!(log.trim(&cut, stop).await.unwrap_err().message(), "stopped");
        assert_eq!(all(&log).await, entries[50..], "nobody reads what is on its way out");
        let segments =
            async || log.status().await.unwrap().partitions.iter().map(|it| it.segments).sum();
        let left: u64 = segments().await;
        let trimmed = log.trim(&cut, |_| Ok(())).await.unwrap();
        assert!(trimmed.segments > 0, "{trimmed:?}");
        assert_eq!(segments().await, left - trimmed.segments);
        assert_eq!(all(&log).await, entries[50..]);
    });
}

#[test]
fn what_is_too_much_or_too_old_goes_by_itself_and_the_newest_stay() {
    on_each(|place| async move {
        let log = filled(&place, 2).await;
        let entries = all(&log).await;
        let keep = 6_000;
        let retention = Retention { bytes: Some(keep), age: None };
        log.set_retention(retention).await.unwrap();
        for n in 0..20_u64 {
            log.append(format!("{n:0150}")).await.unwrap();
        }
        let status = log.status().await.unwrap();
        assert_eq!(status.retention, retention);
        let bytes: u64 = status.partitions.iter().map(|it| it.bytes).sum();
        assert!((keep..3 * keep).contains(&bytes), "{bytes}");
        let left = all(&log).await;
        let old: Vec<_> = left.iter().filter(|it| entries.contains(it)).cloned().collect();
        assert!(entries.ends_with(&old) && old.len() == left.len() - 20, "there are no holes");

        let old = Retention { age: Some(Duration::from_micros(1)), bytes: None };
        log.set_retention(old).await.unwrap();
        log.apply_retention(|_| Ok(())).await.unwrap();
        let young = all(&log).await;
        assert!(young.len() < left.len() && left.ends_with(&young));
        let hour = Retention { age: Some(Duration::from_secs(3_600)), bytes: None };
        log.set_retention(hour).await.unwrap();
        for n in 0..20_u64 {
            log.append(format!("{n:0150}")).await.unwrap();
        }
        assert_eq!(all(&log).await.len(), young.len() + 20);
    });
}

#[test]
fn times_are_found_after_what_was_before_them_is_trimmed() {
    on_each(|place| async move {
        let log = filled(&place, 1).await;
        let entries = all(&log).await;
        let before = cut(&entries[40].position.to_string());
        log.trim(&before, |_| Ok(())).await.unwrap();
        assert_eq!(all_from(&log, &Start::Time(0)).await, entries[40..]);
        log.append_batch(&numbered(0, 3)).await.unwrap();
        let time = entries[50].stamp.clock;
        let from = all_from(&log, &Start::Time(time)).await;
        assert_eq!(from.first(), entries.iter().find(|entry| entry.stamp.clock >= time));
    });
}

#[test]
fn who_trims_less_than_another_in_one_partition_trims_the_rest() {
    on_each(|place| async move {
        let log = filled(&place, 2).await;
        let entries = all(&log).await;
        let of = |partition: u16| {
            entries.iter().map(|it| it.position).filter(move |it| it.partition == partition)
        };
        let (early, late) = (of(0).nth(5).unwrap(), of(1).nth(5).unwrap());
        let (further, less) = (of(0).nth(20).unwrap(), of(1).nth(2).unwrap());
        log.trim(&cut(&format!("{further},{less}")), |_| Ok(())).await.unwrap();
        log.trim(&cut(&format!("{early},{late}")), |_| Ok(())).await.unwrap();
        let (mut left, mut expected) = (all(&log).await, entries);
        expected.retain(|it| it.position >= [further, late][usize::from(it.position.partition)]);
        left.sort_by_key(|it| it.position);
        expected.sort_by_key(|it| it.position);
        assert_eq!(left, expected);
    });
}

#[test]
fn many_trim_at_the_same_time_and_the_furthest_cut_stays() {
    on_each(|place| async move {
        for partitions in [1, 3] {
            let log = filled_as(&place, &format!("orders-{partitions}"), partitions).await;
            let entries = all(&log).await;
            let mut tasks = Vec::new();
            for task in 0..4_usize {
                let log = place.open(log.name()).await.unwrap();
                tasks.push(tokio::spawn(async move {
                    let mut reader = log.reader(&Start::Oldest).await.unwrap();
                    for step in 0..8 {
                        // Who is overtaken goes on from where the log begins by then.
                        match reader.next(1 + (task + step) % 2).await {
                            Ok(_) => log.trim(&reader.cut(), |_| Ok(())).await.map(drop).unwrap(),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                                reader = log.reader(&Start::Oldest).await.unwrap();
                            }
                        }
                    }
                }));
            }
            for task in tasks {
                task.await.unwrap();
            }
            let left = all(&log).await;
            assert!(!left.is_empty() && left.len() < entries.len() && entries.ends_with(&left));
        }
    });
}
