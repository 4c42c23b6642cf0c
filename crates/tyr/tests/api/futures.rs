//! The async API, on stores of each kind: the same answers, on an executor of one thread.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::StreamExt;
use tyr::{
    ByteRange, Bytes, ErrorKind, Key, Keyspace, KeyspaceConfig, Number, PlacedBy, ReadRequest,
    Scan, Transform, Tyr,
};
use tyr_testing::{Kind, Opened, stores};

/// Runs `work` on a store of each kind, with an empty keyspace.
fn each<F: Future<Output = ()>>(work: impl Fn(Tyr, Keyspace) -> F) {
    for kind in stores() {
        let opened = Opened::new(kind);
        let name = opened.name("async");
        let tyr = opened.tyr.clone().into_async();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let data = tyr.create_keyspace(&name, KeyspaceConfig::default()).await.unwrap();
            let found = tyr.keyspace(&name).await.unwrap();
            assert_eq!((found.id(), found.name()), (data.id(), name.as_str()));
            let found = tyr.keyspace_or_create(&name, KeyspaceConfig::default()).await.unwrap();
            assert_eq!(found.id(), data.id());
            let all = tyr.keyspaces().await.unwrap();
            assert!(all.iter().any(|info| info.id == data.id()));
            work(tyr.clone(), data).await;
            tyr.drop_keyspace(&name).await.unwrap();
            assert_eq!(tyr.keyspace(&name).await.unwrap_err().kind(), ErrorKind::NotFound);
        });
    }
}

#[test]
fn single_operations_answer_as_they_do_for_threads() {
    each(|_, data| async move {
        data.create("a").await.unwrap();
        let exists = data.create("a").await.unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::AlreadyExists);
        assert!(exists.message().contains(data.name()), "{exists}");
        data.put("a", "hello").await.unwrap();
        assert_eq!(data.append("a", " world").await.unwrap(), 5);
        assert_eq!(data.append_at("a", 0, "late").await.unwrap_err().kind(), ErrorKind::Conflict);
        data.write("a", 20, "!").await.unwrap();
        assert_eq!(data.read("a", 6, 5).await.unwrap(), "world");
        assert_eq!(data.stat("a").await.unwrap().size, 21);
        let (stat, bytes) = data.read_with_stat("a", 6, 5).await.unwrap();
        assert_eq!((stat, &bytes[..]), (data.stat("a").await.unwrap(), &b"world"[..]));
        let (stat, bytes) = data.read_with_stat("a", 0, 0).await.unwrap();
        assert_eq!((stat, bytes.len()), (data.stat("a").await.unwrap(), 0));
        data.truncate("a", 11).await.unwrap();
        assert_eq!(data.get("a").await.unwrap(), "hello world");
        data.compare_and_swap("a", 0, "hello", "HELLO").await.unwrap();
        let add = Transform::add(Number::U64(2));
        assert_eq!(data.apply("n", 0, add).await.unwrap(), Number::U64(2));
        assert!(data.delete("a").await.unwrap() && !data.delete("a").await.unwrap());
        for error in [data.get("a").await.err(), data.stat("a").await.map(drop).err()] {
            assert_eq!(error.unwrap().kind(), ErrorKind::NotFound);
        }
    });
}

#[test]
fn transactions_read_write_and_are_validated() {
    each(|tyr, data| async move {
        data.put("a", "12").await.unwrap();
        let len = tyr
            .transact(async |transaction| {
                let old = transaction.get(&data, "a").await?;
                transaction.append(&data, "a", "34")?;
                assert_eq!(transaction.read(&data, "a", 0, 9).await?, "1234");
                transaction.put(&data, "b", old.clone())?;
                Ok(old.len())
            })
            .await;
        assert_eq!(len.unwrap(), 2);
        assert_eq!(data.get("b").await.unwrap(), "12");
        let mut stale = tyr.begin();
        assert_eq!(stale.stat(&data, "a").await.unwrap().size, 4);
        assert_eq!(stale.stat(&data, "none").await.unwrap_err().kind(), ErrorKind::NotFound);
        data.delete("a").await.unwrap();
        stale.put(&data, "b", "").unwrap();
        assert_eq!(stale.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
        tyr.begin().rollback();
        assert_eq!(data.get("b").await.unwrap(), "12");
    });
}

#[test]
fn what_stat_showed_is_validated_and_who_only_reads_does_not_starve() {
    each(|tyr, data| async move {
        data.put("a", "old").await.unwrap();
        data.put("b", "old").await.unwrap();
        let mut stale = tyr.begin();
        stale.stat(&data, "a").await.unwrap();
        data.write("a", 0, "new").await.unwrap();
        stale.put(&data, "c", "").unwrap();
        assert_eq!(stale.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
        let mut runs = 0;
        let read = tyr
            .transact(async |transaction| {
                runs += 1;
                transaction.get(&data, "a").await?;
                data.put("a", runs.to_string()).await?;
                data.put("b", runs.to_string()).await?;
                transaction.get(&data, "b").await
            })
            .await;
        assert!(read.is_ok() && runs <= 3, "it ran {runs} times: {read:?}");
    });
}

#[test]
fn what_the_operations_of_the_last_run_answered_is_told() {
    each(|tyr, data| async move {
        data.put("a", "12").await.unwrap();
        let mut runs = 0;
        let (offset, committed) = tyr
            .transact_committed(async |transaction| {
                transaction.get(&data, "a").await?;
                runs += 1;
                if runs == 1 {
                    data.put("a", "123").await?;
                }
                transaction.append(&data, "a", "4")
            })
            .await
            .unwrap();
        assert_eq!((runs, committed.offset(offset)), (2, Some(3)));
        assert_eq!(committed.version(), data.stat("a").await.unwrap().version);
        let (tyr, data) = (tyr.blocking(), data.as_blocking());
        let delete = |transaction: &mut tyr::blocking::Transaction| transaction.delete(data, "a");
        let (gone, committed) = tyr.transact_committed(delete).unwrap();
        assert_eq!(committed.existed(gone), Some(true));
    });
}

/// Q3.
#[test]
fn a_transaction_lists_a_group_and_depends_on_it() {
    each(|tyr, data| async move {
        let name = format!("{}-groups", data.name());
        let config = KeyspaceConfig { placed_by: PlacedBy::First(2), ..KeyspaceConfig::default() };
        let groups = tyr.create_keyspace(&name, config).await.unwrap();
        groups.put("a/1", "x").await.unwrap();
        let scan = Scan::new().prefix("a/").first_bytes(9);
        for is_changed in [false, true] {
            let mut transaction = tyr.begin();
            transaction.put(&groups, "a/2", "own").unwrap();
            let page = transaction.scan_page(&groups, &scan).await.unwrap();
            assert_eq!((page.entries.len(), &page.entries[1].bytes[..]), (2, &b"own"[..]));
            if is_changed {
                groups.put("a/3", "x").await.unwrap();
            }
            let committed = transaction.commit().await.map_err(|error| error.kind());
            assert_eq!(committed.err(), is_changed.then_some(ErrorKind::Conflict));
        }
        let mut transaction = tyr.begin();
        let refused = transaction.scan_page(&data, &scan).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        tyr.drop_keyspace(&name).await.unwrap();
    });
}

#[test]
fn snapshots_and_reads_of_many_see_one_moment() {
    each(|tyr, data| async move {
        data.put("a", "old").await.unwrap();
        let snapshot = tyr.snapshot().await.unwrap();
        let keys = |listed: Vec<(Key, tyr::Stat)>| {
            listed.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>()
        };
        data.put("a", "new").await.unwrap();
        data.put("b", "late").await.unwrap();
        assert_eq!(snapshot.get(&data, "a").await.unwrap(), "old");
        assert_eq!(snapshot.read(&data, "a", 1, 9).await.unwrap(), "ld");
        assert_eq!(snapshot.stat(&data, "b").await.unwrap_err().kind(), ErrorKind::NotFound);
        let then = snapshot.scan(&data, b"", None, 10).await.unwrap();
        assert_eq!((keys(then.clone()), then[0].1.size), (vec!["a".to_owned()], 3));
        assert_eq!(keys(data.scan(b"", None, 10).await.unwrap()), ["a", "b"]);
        let streamed: Vec<_> = data.scan_stream(b"b").collect().await;
        assert_eq!(keys(streamed.into_iter().map(Result::unwrap).collect()), ["b"]);
        let scan = Scan::new().limit(1).first_bytes(3);
        let pages: Vec<_> = data.scan_pages(&scan).map(Result::unwrap).collect().await;
        let bytes: Vec<_> = pages.iter().map(|page| page.entries[0].bytes.clone()).collect();
        assert_eq!(bytes, ["new", "lat"]);
        let pages: Vec<_> = snapshot.scan_pages(&data, &scan).map(Result::unwrap).collect().await;
        assert_eq!((pages.len(), &pages[0].entries[0].bytes[..]), (1, &b"old"[..]));
        let page = snapshot.scan_page(&data, &scan).await.unwrap();
        assert_eq!(page, pages[0]);
        let refused = data.scan_page(&Scan::new().limit(0)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        let request = |key: &str| ReadRequest {
            keyspace: data.clone(),
            key: Key::new(key).unwrap(),
            range: ByteRange { start: 0, end: 10 },
        };
        let wanted = [request("a"), request("none"), request("b")];
        let seen = tyr.read_many(&wanted).await.unwrap();
        assert_eq!(seen, [Some(Bytes::from("new")), None, Some(Bytes::from("late"))]);
    });
}

#[test]
fn streams_go_in_and_come_out() {
    each(|_, data| async move {
        let piece = Bytes::from(vec![7; 1 << 20]);
        let pieces = vec![Ok(piece.clone()), Ok(piece.clone()), Ok(piece)];
        let len = data.put_stream("a", futures_util::stream::iter(pieces)).await;
        assert_eq!(len.unwrap(), 3 << 20);
        let range = ByteRange { start: 10, end: (2 << 20) + 5 };
        let mut reader = data.reader("a", range).await.unwrap();
        assert_eq!(reader.size(), 3 << 20);
        data.put("a", "gone").await.unwrap();
        let mut len = 0;
        while let Some(piece) = reader.next().await {
            let piece = piece.unwrap();
            assert!(piece.iter().all(|byte| *byte == 7));
            len += piece.len() as u64;
        }
        assert_eq!(len, range.len());
        let none = data.reader("none", ByteRange::ALL).await;
        assert_eq!(none.err().unwrap().kind(), ErrorKind::NotFound);
        let tail = futures_util::stream::iter(vec![Ok(Bytes::from("!"))]);
        assert_eq!(data.append_stream("a", tail).await.unwrap(), 4);
    });
}

#[test]
fn futures_that_are_dropped_leave_the_store_as_it_was_or_as_it_was_to_be() {
    each(|_, data| async move {
        data.put("a", "1").await.unwrap();
        let mut context = Context::from_waker(Waker::noop());
        for n in 0..50u64 {
            {
                let mut read = pin!(data.get("a"));
                let _ = read.as_mut().poll(&mut context);
            }
            {
                let mut write = pin!(data.write("log", n, "x"));
                let is_pending = matches!(write.as_mut().poll(&mut context), Poll::Pending);
                assert!(is_pending || data.stat("log").await.is_ok());
            }
        }
        // Those before it have been sent, and are decided in some order.
        data.write("log", 50, "x").await.unwrap();
        let log = data.get("log").await.unwrap();
        assert!(log.iter().all(|byte| *byte == b'x' || *byte == 0));
        assert_eq!(log.len(), 51);
        assert_eq!(data.get("a").await.unwrap(), "1");
    });
}

/// What a future answers when it is polled once.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

#[test]
fn what_memory_has_a_folder_answers_at_once() {
    let opened = Opened::new(Kind::Embedded);
    let tyr = opened.tyr.clone().into_async();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let data = tyr.create_keyspace("at-once", KeyspaceConfig::default()).await.unwrap();
        for len in [0, 1, 4096, 4097, 20_000] {
            data.put("a", vec![7; len]).await.unwrap();
            assert_eq!(at_once(data.get("a")).unwrap().unwrap(), vec![7; len]);
            assert_eq!(at_once(data.read("a", 0, 5000)).unwrap().unwrap().len(), len.min(5000));
            assert_eq!(at_once(data.stat("a")).unwrap().unwrap().size, len as u64);
            let snapshot = tyr.snapshot().await.unwrap();
            data.put("a", "newer").await.unwrap();
            assert_eq!(at_once(snapshot.get(&data, "a")).unwrap().unwrap(), vec![7; len]);
            let mut transaction = tyr.begin();
            assert_eq!(at_once(transaction.get(&data, "a")).unwrap().unwrap(), "newer");
        }
        data.delete("a").await.unwrap();
        let gone = at_once(data.get("a")).unwrap().unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        // What is long, and what memory does not have, is a thread's.
        data.put("long", vec![7; 2 << 20]).await.unwrap();
        assert_eq!(data.get("long").await.unwrap(), vec![7; 2 << 20]);
        assert_eq!(data.get("none").await.unwrap_err().kind(), ErrorKind::NotFound);
        tyr.drop_keyspace("at-once").await.unwrap();
        let dropped = at_once(data.get("long")).unwrap().unwrap_err();
        assert_eq!(dropped.kind(), ErrorKind::NotFound);
        let dropped = at_once(data.stat("long")).unwrap().unwrap_err();
        assert_eq!(dropped.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn what_was_begun_by_a_thread_goes_on_in_async_code() {
    each(|tyr, data| async move {
        data.put("a", "12").await.unwrap();
        let snapshot = tyr.blocking().snapshot().unwrap();
        let version = snapshot.version();
        let mut begun = tyr.blocking().begin();
        assert_eq!(begun.get(data.as_blocking(), "a").unwrap(), "12");
        let append = begun.append(data.as_blocking(), "b", "34").unwrap();
        let committed = begun.into_async().commit().await.unwrap();
        assert_eq!(committed.offset(append), Some(0));

        let snapshot = snapshot.into_async();
        assert_eq!(snapshot.version(), version);
        assert_eq!(snapshot.get(&data, "b").await.unwrap_err().kind(), ErrorKind::NotFound);

        let mut late = tyr.blocking().begin();
        late.get(data.as_blocking(), "a").unwrap();
        late.put(data.as_blocking(), "b", "late").unwrap();
        data.put("a", "56").await.unwrap();
        let refused = late.into_async().commit().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "what it read is still validated");
    });
}

#[test]
fn copies_may_go_on_in_another_thread() {
    fn goes_anywhere<F: Future + Send>(future: F) -> F {
        future
    }
    each(|tyr, data| async move {
        data.put("a", vec![7; 100_000]).await.unwrap();
        let copy = tyr::BlobCopy::new(&data, "a", &data, "b").unwrap();
        assert_eq!(goes_anywhere(tyr.copy(&copy)).await.unwrap(), 100_000);
        let mut transaction = tyr.begin();
        assert_eq!(goes_anywhere(transaction.copy(&copy)).await.unwrap(), 100_000);
        goes_anywhere(transaction.commit()).await.unwrap();
        assert_eq!(data.get("b").await.unwrap(), vec![7; 100_000]);
    });
}
