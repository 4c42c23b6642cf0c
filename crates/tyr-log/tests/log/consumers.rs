//! Groups: who gets which entry, and what of those that nobody says anything about.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tyr::ErrorKind;
use tyr_log::{Group, Log, Start};

use crate::place::{Place, all, numbered, on, on_each, texts};
use tyr_testing::Kind;

const LONG: Duration = Duration::from_secs(3_600);

async fn filled(place: &Place, partitions: u16, entries: u64) -> Log {
    let log = place.log("orders", partitions).await;
    for n in 0..entries / 10 {
        log.append_batch(&numbered(10 * n, 10 * n + 10)).await.unwrap();
    }
    log
}

/// All that it gives out, without end until there is nothing.
async fn drain(group: &Group, step: usize) -> Vec<String> {
    let mut got = Vec::new();
    loop {
        let entries = group.pop(step).await.unwrap();
        if entries.is_empty() {
            return got;
        }
        got.extend(texts(&entries));
    }
}

#[test]
fn each_entry_goes_to_one_consumer_of_a_group_and_to_each_group() {
    on_each(|place| async move {
        let log = filled(&place, 3, 600).await;
        for name in ["a", "b"] {
            log.group(name, &Start::Oldest).await.unwrap();
            let consume = async |log: Log| drain(&log.open_group(name).await.unwrap(), 7).await;
            let consumers: Vec<_> = (0..4).map(|_| tokio::spawn(consume(log.clone()))).collect();
            let mut got = Vec::new();
            for consumer in consumers {
                got.extend(consumer.await.unwrap());
            }
            assert_eq!(got.len(), 600);
            assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 600, "none goes to two");
        }
        assert_eq!(log.groups().await.unwrap(), ["a", "b"]);
    });
}

#[test]
fn one_consumer_of_one_partition_gets_entries_in_their_order_over_segments() {
    on_each(|place| async move {
        let log = filled(&place, 1, 300).await;
        let group = log.group("g", &Start::Oldest).await.unwrap();
        assert_eq!(drain(&group, 13).await, texts(&all(&log).await));
        log.append("more").await.unwrap();
        assert_eq!(drain(&group, 13).await, ["more"]);
        assert_eq!(log.group("late", &Start::Newest).await.unwrap().pop(9).await.unwrap(), []);
    });
}

#[test]
fn what_a_consumer_remembers_does_not_hide_what_others_do() {
    on_each(|place| async move {
        let log = filled(&place, 1, 60).await;
        let mine = log.group("g", &Start::Oldest).await.unwrap();
        let other = log.open_group("g").await.unwrap();
        let got = async |group: &Group, max| texts(&group.pop(max).await.unwrap());
        // Often enough that it does not look any more.
        for n in 0..5_u64 {
            assert_eq!(got(&mine, 1).await, [n.to_string()]);
        }
        assert_eq!(got(&other, 2).await, ["5", "6"]);
        assert_eq!(got(&mine, 1).await, ["7"]);
        assert_eq!(got(&mine, 1).await, ["8"]);
        let taken = other.take(1, LONG).await.unwrap().unwrap();
        assert_eq!(texts(&taken.entries), ["9"]);
        assert_eq!(got(&mine, 1).await, ["10"]);
        assert_eq!(drain(&mine, 7).await.len(), 49);
        assert_eq!(got(&mine, 1).await, [""; 0]);
        // It knew that there was nothing more.
        other.seek(&Start::Oldest).await.unwrap();
        assert_eq!(got(&mine, 1).await, ["0"]);
        // There and back: the cursor is where it was, and nothing of before is.
        other.seek(&Start::Newest).await.unwrap();
        other.seek(&Start::Oldest).await.unwrap();
        assert_eq!(got(&mine, 2).await, ["0", "1"]);
        other.delete().await.unwrap();
        assert_eq!(mine.pop(1).await.unwrap_err().kind(), ErrorKind::NotFound);
        log.group("g", &Start::Oldest).await.unwrap();
        assert_eq!(got(&mine, 3).await, ["0", "1", "2"]);
        // Those who share a handle get each entry once.
        let all = futures_util::future::join_all((0..19).map(|_| got(&mine, 3))).await;
        let all: BTreeSet<_> = all.into_iter().flatten().collect();
        assert_eq!(all.len(), 57);
    });
}

#[test]
fn what_others_have_taken_and_trimmed_is_not_missed() {
    on_each(|place| async move {
        let log = filled(&place, 1, 10).await;
        let mine = log.group("g", &Start::Oldest).await.unwrap();
        let other = log.open_group("g").await.unwrap();
        for _ in 0..5 {
            assert_eq!(mine.pop(2).await.unwrap().len(), 2);
        }
        // It has read nothing ahead, and where it is will be gone.
        log.append_batch(&numbered(10, 16)).await.unwrap();
        assert_eq!(other.pop(4).await.unwrap().len(), 4);
        let cut = other.status().await.unwrap()[0].position;
        log.trim(&cut.to_string().parse().unwrap(), |_| Ok(())).await.unwrap();
        assert_eq!(texts(&mine.pop(9).await.unwrap()), ["14", "15"]);
    });
}

/// How a call of one consumer ends that is held up after so many steps, until another has popped
/// all there is but ten entries and what it popped is trimmed.
async fn held_up<T>(log: &Log, steps: u32, call: impl Future<Output = T>) -> T {
    let mut call = std::pin::pin!(call);
    for _ in 0..steps {
        if let Poll::Ready(ended) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            return ended;
        }
        // What it waits for comes, and it goes on with that later.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let other = log.open_group("g").await.unwrap();
    while other.status().await.unwrap()[0].behind_bytes > 0 {
        other.pop(10).await.unwrap();
    }
    log.append_batch(&numbered(0, 10)).await.unwrap();
    let cut = other.status().await.unwrap()[0].position.to_string().parse().unwrap();
    log.trim(&cut, |_| Ok(())).await.unwrap();
    call.await
}

#[test]
fn who_is_held_up_while_others_work_off_and_trim_what_it_reads_looks_again() {
    on_each(|place| async move {
        let log = filled(&place, 1, 60).await;
        log.group("g", &Start::Oldest).await.unwrap();
        for steps in 0..4 {
            log.append_batch(&numbered(0, 30)).await.unwrap();
            let group = log.open_group("g").await.unwrap();
            let taken = held_up(&log, steps, group.take(1, LONG)).await.unwrap();
            assert!(group.ack(&taken.unwrap()).await.unwrap());
            log.append_batch(&numbered(0, 30)).await.unwrap();
            let fetched = held_up(&log, steps, group.fetch(1)).await.unwrap();
            assert_eq!(fetched.entries.len(), 1);
            log.append_batch(&numbered(0, 30)).await.unwrap();
            let popped = held_up(&log, steps, log.open_group("g").await.unwrap().pop(1)).await;
            assert_eq!(popped.unwrap().len(), 1);
        }
    });
}

#[test]
fn what_is_not_acknowledged_in_time_comes_again_and_what_is_does_not() {
    on_each(|place| async move {
        let log = filled(&place, 1, 30).await;
        let group = log.group("g", &Start::Oldest).await.unwrap();
        let first = group.take(10, LONG).await.unwrap().unwrap();
        // Who has this one is over before it began.
        let late = group.take(10, Duration::ZERO).await.unwrap().unwrap();
        let again = group.take(10, LONG).await.unwrap().unwrap();
        assert_eq!((&again.entries, again.times, late.times), (&late.entries, 2, 1));
        assert!(!group.ack(&late).await.unwrap(), "somebody else has got it");
        assert!(group.ack(&again).await.unwrap());
        assert!(!group.ack(&again).await.unwrap(), "once");
        let last = group.take(99, LONG).await.unwrap().unwrap();
        assert_eq!(group.take(10, LONG).await.unwrap(), None);
        assert_eq!(group.status().await.unwrap()[0].lent, 2);
        assert!(group.release(&first).await.unwrap());
        let released = group.take(10, LONG).await.unwrap().unwrap();
        assert_eq!(released.entries, first.entries);
        assert!(group.ack(&released).await.unwrap() && group.ack(&last).await.unwrap());
        let got: Vec<_> = [released.entries, again.entries, last.entries].concat();
        assert_eq!(texts(&got), (0..30).map(|n| n.to_string()).collect::<Vec<_>>());
        let status = group.status().await.unwrap()[0];
        assert_eq!((status.lent, status.behind_bytes), (0, 0));
    });
}

#[test]
fn consumers_that_die_lose_nothing_that_they_took() {
    on_each(|place| async move {
        let log = filled(&place, 2, 400).await;
        log.group("g", &Start::Oldest).await.unwrap();
        let consume = async |log: Log, seed: usize| {
            let group = log.open_group("g").await.unwrap();
            let (mut done, mut n) = (Vec::new(), seed);
            while let Some(delivery) = group.take(5, Duration::from_millis(40)).await.unwrap() {
                n += 1;
                // Every third time it dies in the middle.
                if n % 3 != 0 && group.ack(&delivery).await.unwrap() {
                    done.extend(texts(&delivery.entries));
                }
            }
            done
        };
        let mut done = Vec::new();
        let lent = async || {
            let group = log.open_group("g").await.unwrap();
            group.status().await.unwrap().iter().map(|it| it.lent + it.behind_bytes).sum::<u64>()
        };
        while lent().await > 0 {
            let consumers: Vec<_> =
                (0..3).map(|seed| tokio::spawn(consume(log.clone(), seed))).collect();
            for consumer in consumers {
                done.extend(consumer.await.unwrap());
            }
        }
        assert_eq!(done.len(), 400, "acknowledged once each");
        assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), 400);
    });
}

#[test]
fn what_is_done_about_entries_is_done_once_however_many_do_it() {
    on_each(|place| async move {
        let log = filled(&place, 2, 200).await;
        log.group("g", &Start::Oldest).await.unwrap();
        let sum = async |log: Log, store: tyr::Tyr| {
            let group = log.open_group("g").await.unwrap();
            let space = log.keyspace();
            loop {
                let count = store.transact(async |transaction| {
                    let fetched = group.fetch(7).await?;
                    for entry in &fetched.entries {
                        let n: u64 = std::str::from_utf8(&entry.data).unwrap().parse().unwrap();
                        let add = tyr::Transform::add(tyr::Number::U64(n));
                        transaction.apply(space, "sum", 0, add)?;
                    }
                    fetched.commit_in(transaction)?;
                    Ok(fetched.entries.len())
                });
                if count.await.unwrap() == 0 {
                    return;
                }
            }
        };
        let workers = (0..3).map(|_| sum(log.clone(), place.store.clone()));
        futures_util::future::join_all(workers).await;
        let sum = log.keyspace().get("sum").await.unwrap();
        assert_eq!(u64::from_le_bytes(sum[..].try_into().unwrap()), (0..200).sum::<u64>());
    });
}

#[test]
fn an_acknowledgement_is_part_of_the_transaction_that_it_is_in() {
    on_each(|place| async move {
        let log = filled(&place, 1, 10).await;
        let group = log.group("g", &Start::Oldest).await.unwrap();
        let delivery = group.take(10, LONG).await.unwrap().unwrap();
        let mut dropped = place.store.begin();
        assert!(group.ack_in(&mut dropped, &delivery).await.unwrap());
        dropped.rollback();
        assert_eq!(group.status().await.unwrap()[0].lent, 1);
        let mut kept = place.store.begin();
        assert!(group.ack_in(&mut kept, &delivery).await.unwrap());
        kept.commit().await.unwrap();
        assert_eq!(group.status().await.unwrap()[0].lent, 0);
    });
}

#[test]
fn a_group_is_moved_and_told_when_what_it_was_at_is_trimmed() {
    on_each(|place| async move {
        let log = filled(&place, 1, 200).await;
        let group = log.group("g", &Start::Oldest).await.unwrap();
        let taken = group.take(50, LONG).await.unwrap().unwrap();
        group.seek(&Start::Oldest).await.unwrap();
        assert!(!group.ack(&taken).await.unwrap(), "it was moved");
        assert_eq!(group.pop(1).await.unwrap(), taken.entries[..1]);
        log.trim(&log.tail().await.unwrap(), |_| Ok(())).await.unwrap();
        assert_eq!(group.pop(1).await.unwrap(), taken.entries[1..2], "it had been read");
        let group = log.open_group("g").await.unwrap();
        for error in [
            group.pop(1).await.unwrap_err(),
            group.take(1, LONG).await.unwrap_err(),
            group.fetch(1).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.message().contains("seek to go on"), "{error}");
        }
        group.seek(&Start::Oldest).await.unwrap();
        log.append("more").await.unwrap();
        assert_eq!(texts(&group.pop(9).await.unwrap()), ["more"]);
    });
}

#[test]
fn a_group_that_is_not_there_is_told() {
    on_each(|place| async move {
        let log = filled(&place, 2, 10).await;
        let missing = log.open_group("g").await.unwrap_err();
        assert!(missing.message().contains("log orders has no group g"), "{missing}");
        let group = log.group("g", &Start::Oldest).await.unwrap();
        group.delete().await.unwrap();
        for error in [
            group.pop(1).await.unwrap_err(),
            group.take(1, LONG).await.unwrap_err(),
            group.fetch(1).await.unwrap_err(),
            group.seek(&Start::Oldest).await.unwrap_err(),
            group.status().await.unwrap_err(),
            group.delete().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.message().contains("has no group g"), "{error}");
        }
        assert_eq!(
            log.group("a b", &Start::Oldest).await.unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    });
}

#[test]
fn who_waits_for_entries_is_woken_by_them() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        let group = log.group("g", &Start::Oldest).await.unwrap();
        let consumer = tokio::spawn({
            let log = log.clone();
            async move {
                let (mut arrivals, mut got) = (log.arrivals(), 0);
                while got < 60 {
                    match group.pop(10).await.unwrap().len() {
                        0 => arrivals.wait().await.unwrap(),
                        more => got += more,
                    }
                }
            }
        });
        for n in 0..60_u64 {
            log.append(format!("{n:0100}")).await.unwrap();
        }
        consumer.await.unwrap();
    });
}

#[test]
fn deliveries_that_nobody_acknowledges_have_a_bound() {
    on(Kind::Embedded, |place| async move {
        let log = place.log("orders", 1).await;
        log.append_batch(&numbered(0, 2_000)).await.unwrap();
        let group = log.group("g", &Start::Oldest).await.unwrap();
        let mut last = None;
        for _ in 0..tyr_log::LENT_MAX {
            last = group.take(1, LONG).await.unwrap();
        }
        let error = group.take(1, LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("acknowledge some"), "{error}");
        assert!(group.ack(&last.unwrap()).await.unwrap());
        assert!(group.take(1, LONG).await.unwrap().is_some());
    });
}
