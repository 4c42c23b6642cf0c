//! Appends, alone and with other data.

use tyr::{ErrorKind, KeyspaceConfig, PlacedBy};
use tyr_log::{Batch, FRAME_LEN_MAX, Log, Options, Start};

use crate::place::{Place, all, numbered, on_each, texts};

#[test]
fn entries_are_read_in_the_order_in_which_they_were_appended_over_many_segments() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        let mut positions = Vec::new();
        for n in 0..60_u64 {
            positions.push(log.append(format!("{n:0100}")).await.unwrap().position);
        }
        assert!(positions.is_sorted() && positions.last().unwrap().segment >= 5, "{positions:?}");
        let entries = all(&log).await;
        let numbers: Vec<u64> = texts(&entries).iter().map(|it| it.parse().unwrap()).collect();
        assert!(numbers.into_iter().eq(0..60));
        assert!(entries.iter().map(|entry| entry.position).eq(positions));
        assert!(entries.iter().map(|entry| entry.stamp).is_sorted());
        assert_eq!(all(&place.open("orders").await.unwrap()).await, entries);
    });
}

#[test]
fn a_batch_is_one_frame_with_one_stamp_and_each_entry_has_its_position() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        let appended = log.append_batch(&Batch::of(["a", "", "c"]).unwrap()).await.unwrap();
        assert_eq!((appended.position.to_string().as_str(), appended.count), ("0:0:64", 3));
        let entries = all(&log).await;
        assert_eq!(texts(&entries), ["a", "", "c"]);
        assert!(entries.iter().all(|entry| entry.stamp == appended.stamp));
        for entry in &entries {
            assert_eq!(&log.read(entry.position).await.unwrap(), entry);
        }
        assert_eq!(entries[2].position.to_string(), "0:0:64+2");
        let none = log.append_batch(&Batch::new()).await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::InvalidArgument);
    });
}

#[test]
fn the_longest_entry_fits_and_a_longer_one_is_refused_in_words() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        let longest = vec![7; FRAME_LEN_MAX - 36];
        let appended = log.append(&longest).await.unwrap();
        log.append("behind").await.unwrap();
        assert_eq!(log.read(appended.position).await.unwrap().data, longest);
        assert_eq!(all(&log).await.len(), 2);
        let refused = log.append(vec![7; FRAME_LEN_MAX - 35]).await.unwrap_err();
        assert!(refused.message().contains("8 MiB"), "{refused}");
    });
}

#[test]
fn an_append_takes_effect_with_the_transaction_that_it_is_in_or_not_at_all() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        let data = place.store.keyspace(&place.keyspace).await.unwrap();
        for n in 0..30_u64 {
            let mut transaction = place.store.begin();
            transaction.put(&data, "count", n.to_string()).unwrap();
            let appending = log.append_in(&mut transaction, &numbered(n, n + 1)).await.unwrap();
            let committed = transaction.commit().await.unwrap();
            let appended = appending.finish(&committed).await.unwrap();
            assert_eq!(log.read(appended.position).await.unwrap().data, n.to_string());
        }
        let mut refused = place.store.begin();
        refused.expect_absent(&data, "count").unwrap();
        let appending = log.append_in(&mut refused, &numbered(99, 100)).await.unwrap();
        assert_eq!(refused.commit().await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop(appending);
        let dropped = log.append_in(&mut place.store.begin(), &numbered(98, 99)).await.unwrap();
        drop(dropped);
        assert_eq!(texts(&all(&log).await), (0..30).map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(data.get("count").await.unwrap(), "29");
    });
}

#[test]
fn transactions_that_tell_nobody_what_came_of_them_go_on_in_other_segments_all_the_same() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        for n in 0..60 {
            let append = place.store.transact(async |transaction| {
                log.append_in(transaction, &numbered(n, n + 1)).await.map(drop)
            });
            append.await.unwrap();
        }
        let entries = all(&log).await;
        assert_eq!(entries.len(), 60);
        assert!(entries.last().unwrap().position.segment >= 1, "{entries:?}");
    });
}

#[test]
fn a_transaction_appends_to_two_logs_at_once_with_one_stamp() {
    on_each(|place| async move {
        let (one, two) = (place.log("one", 1).await, place.log("two", 3).await);
        let mut transaction = place.store.begin();
        let first = one.append_in(&mut transaction, &numbered(1, 2)).await.unwrap();
        let second = two.append_in(&mut transaction, &numbered(2, 4)).await.unwrap();
        let committed = transaction.commit().await.unwrap();
        let (first, second) =
            (first.finish(&committed).await.unwrap(), second.finish(&committed).await.unwrap());
        assert_eq!((first.stamp, second.stamp), (committed.version(), committed.version()));
        assert_eq!(all(&one).await[0].stamp, all(&two).await[1].stamp);
    });
}

#[test]
fn who_knows_of_an_older_segment_goes_on_in_the_last_one() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        let late = place.open("orders").await.unwrap();
        let to = |n: u16| Batch::of(["x".repeat(500)]).unwrap().in_partition(n);
        for _ in 0..5 {
            log.append_batch(&to(1)).await.unwrap();
        }
        let appended = late.append_batch(&to(1)).await.unwrap();
        assert!(appended.position.segment >= 2, "{appended:?}");
        let transacted = place.open("orders").await.unwrap();
        let appended = place.store.transact(async |transaction| {
            transacted.append_in(transaction, &to(1)).await.map(drop)
        });
        appended.await.unwrap();
        assert_eq!(all(&log).await.len(), 7);
        let refused = late.append_batch(&to(2)).await.unwrap_err();
        assert!(refused.message().contains("partitions 0 to 1"), "{refused}");
    });
}

#[test]
fn a_log_is_made_once_and_found_by_name() {
    on_each(|place| async move {
        place.log("b", 1).await;
        place.log("a", 2).await.append("x").await.unwrap();
        let again = Log::create(&place.store, "a", &place.options(1)).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        assert!(again.message().contains("log a"), "{again}");
        assert_eq!(place.open("c").await.unwrap_err().kind(), ErrorKind::NotFound);
        let none = Log::open(&place.store, "a/b").await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::InvalidArgument);
        let logs = Log::list_in(&place.store, &place.keyspace).await.unwrap();
        assert_eq!(logs, ["a", "b"]);
        Log::delete(&place.store, &place.keyspace, "a").await.unwrap();
        assert_eq!(place.open("a").await.unwrap_err().kind(), ErrorKind::NotFound);
        let gone = Log::delete(&place.store, &place.keyspace, "a").await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        place.open("b").await.unwrap();
        assert!(
            all(&place.log("a", 1).await).await.is_empty(),
            "nothing is left of the one before"
        );
    });
}

#[test]
fn a_log_that_is_deleted_is_told_to_who_has_it_open() {
    on_each(|place| async move {
        let log = place.log("a", 1).await;
        log.append("x").await.unwrap();
        let mut reader = log.reader(&Start::Oldest).await.unwrap();
        Log::delete(&place.store, &place.keyspace, "a").await.unwrap();
        assert_eq!(log.append("y").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(reader.next(1).await.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_log_that_was_made_anew_is_told_from_the_one_before() {
    on_each(|place| async move {
        let log = place.log("a", 1).await;
        for _ in 0..4 {
            log.append("x".repeat(600)).await.unwrap();
        }
        Log::delete(&place.store, &place.keyspace, "a").await.unwrap();
        let anew = place.log("a", 1).await;
        let error = log.append("y").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("open it again"), "{error}");
        assert!(all(&anew).await.is_empty());
    });
}

#[test]
fn who_appends_while_a_log_is_deleted_leaves_nothing_of_it() {
    on_each(|place| async move {
        for round in 0..5 {
            let log = place.log("a", 2).await;
            let append = async |log: Log| while log.append("x".repeat(600)).await.is_ok() {};
            let writers: Vec<_> = (0..3).map(|_| tokio::spawn(append(log.clone()))).collect();
            while log.tail().await.unwrap().positions()[0].segment < 2 {
                tokio::task::yield_now().await;
            }
            Log::delete(&place.store, &place.keyspace, "a").await.unwrap();
            for writer in writers {
                writer.await.unwrap();
            }
            // What was appended in between may be left, and the next one takes it away.
            let _ = Log::delete(&place.store, &place.keyspace, "a").await;
            let left = place.store.keyspace(&place.keyspace).await.unwrap();
            let left = left.scan(b"a", None, 10).await.unwrap();
            assert!(left.is_empty(), "round {round}: {left:?}");
        }
    });
}

#[test]
fn keyspaces_that_are_there_are_taken_if_they_can_hold_a_log() {
    on_each(|place| async move {
        let make = async |place: &Place, name: &str, config: KeyspaceConfig| {
            let keyspace = format!("{}-{name}", place.keyspace);
            place.store.create_keyspace(&keyspace, config).await.unwrap();
            Log::create(&place.store, "a", &Options { keyspace, ..Options::default() }).await
        };
        let plain = KeyspaceConfig::default();
        make(&place, "plain", plain.clone()).await.unwrap().append("x").await.unwrap();
        let placed = KeyspaceConfig { placed_by: PlacedBy::First(4), ..plain.clone() };
        make(&place, "placed", placed).await.unwrap().append("x").await.unwrap();
        let single = KeyspaceConfig { is_multi_versioned: false, ..plain.clone() };
        let refused = make(&place, "single", single).await.unwrap_err();
        assert!(refused.message().contains("older versions"), "{refused}");
        let small = KeyspaceConfig { chunk_size: 4 << 10, ..plain };
        let refused = make(&place, "small", small).await.unwrap_err();
        assert!(refused.message().contains("larger chunks"), "{refused}");
    });
}
