//! Reading: from where, in which order, and what is no place to read from.

use tyr::ErrorKind;
use tyr_log::{Batch, Cut, Log, Start};

use crate::place::{all, all_from, cut, numbered, on_each, take, texts};

async fn refusal(log: &Log, from: &Start) -> (ErrorKind, String) {
    let error = log.reader(from).await.unwrap_err();
    (error.kind(), error.message().to_owned())
}

#[test]
fn a_reader_goes_on_where_another_one_stopped() {
    on_each(|place| async move {
        let log = place.log("orders", 3).await;
        for n in 0..40 {
            log.append_batch(&numbered(10 * n, 10 * n + 10)).await.unwrap();
        }
        let whole = all(&log).await;
        assert_eq!(whole.len(), 400);
        let mut entries = Vec::new();
        let mut at = Start::Oldest;
        for step in (1..).take_while(|step| step * step < 2_000) {
            let mut reader = log.reader(&at).await.unwrap();
            entries.extend(reader.next(step).await.unwrap());
            // As text, as it is handed on to another process.
            at = Start::At(reader.cut().to_string().parse().unwrap());
        }
        assert_eq!(entries, whole);
        assert!(all_from(&log, &at).await.is_empty());
        log.append("more").await.unwrap();
        assert_eq!(texts(&all_from(&log, &at).await), ["more"]);
    });
}

#[test]
fn partitions_are_merged_by_their_stamps() {
    on_each(|place| async move {
        let log = place.log("orders", 4).await;
        // One after the other, so what each has seen is what was appended before.
        for n in 0..60_u64 {
            log.append(n.to_string()).await.unwrap();
        }
        let entries = all(&log).await;
        assert!(entries.iter().map(|entry| (entry.stamp, entry.position.partition)).is_sorted());
        let lanes: std::collections::BTreeSet<u16> =
            entries.iter().map(|entry| entry.position.partition).collect();
        assert_eq!(lanes.len(), 4);
        assert_eq!(entries.len(), 60);
        let tail = log.tail().await.unwrap();
        assert_eq!(log.reader(&Start::At(tail.clone())).await.unwrap().cut(), tail);
        let mut half = log.reader(&Start::Oldest).await.unwrap();
        let (begin, first) = (half.cut(), take(&mut half, 30).await);
        assert_eq!(log.read_range(&begin, &half.cut(), 1_000).await.unwrap(), first);
    });
}

#[test]
fn positions_that_nobody_wrote_are_told_from_those_that_are_none() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        log.append("hello").await.unwrap();
        let end = log.tail().await.unwrap().positions()[0];
        assert_eq!(end.to_string(), "0:0:105");
        for (text, kind, part) in [
            ("0:0:105", ErrorKind::NotFound, "nothing has been written at 0:0:105"),
            ("0:0:200", ErrorKind::NotFound, "the partition ends at 0:0:105"),
            ("0:7:64", ErrorKind::NotFound, "nothing has been written"),
            ("0:0:64+1", ErrorKind::InvalidArgument, "is not where an entry begins"),
            ("0:0:65", ErrorKind::InvalidArgument, "is not where an entry begins"),
            ("1:0:64", ErrorKind::InvalidArgument, "partitions 0 to 0"),
            ("0:0:0", ErrorKind::NotFound, "trimmed"),
        ] {
            let error = log.read(text.parse().unwrap()).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{text}: {error}");
            assert!(error.message().contains(part), "{text}: {error}");
            if text != "0:0:105" && text != "1:0:64" {
                let (kind_of_reader, _) = refusal(&log, &Start::At(cut(text))).await;
                assert_eq!(kind_of_reader, kind, "{text}");
            }
        }
        let two = Start::At("0:0:64,1:0:64".parse::<Cut>().unwrap());
        assert!(refusal(&log, &two).await.1.contains("has 1 partitions, and this names 2"));
        assert!(refusal(&log, &Start::Number(0)).await.1.contains("not strict"));
    });
}

#[test]
fn bytes_of_an_entry_that_look_like_a_frame_of_another_segment_are_none() {
    on_each(|place| async move {
        let log = place.log("orders", 1).await;
        log.append("x").await.unwrap();
        let keyspace = log.keyspace();
        let other = place.log("copies", 1).await;
        let bytes = keyspace.read("orders/p0000/s00000000000000000000", 64, 100).await.unwrap();
        let appended = other.append(&bytes).await.unwrap();
        let within = format!("0:0:{}", appended.position.offset + 36);
        let error = other.read(within.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    });
}

#[test]
fn reading_begins_at_a_time() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        for n in 0..80_u64 {
            log.append_batch(&Batch::of([format!("{n:0100}")]).unwrap()).await.unwrap();
        }
        let entries = all(&log).await;
        for at in [0, 1, 40, 79] {
            let time = entries[at].stamp.clock;
            let expected: Vec<_> =
                entries.iter().filter(|entry| entry.stamp.clock >= time).cloned().collect();
            assert_eq!(all_from(&log, &Start::Time(time)).await, expected, "{at}");
        }
        assert!(all_from(&log, &Start::Time(u64::MAX)).await.is_empty());
        assert_eq!(all_from(&log, &Start::Time(0)).await, entries);
    });
}

#[test]
fn the_last_entries_are_those_at_the_end_of_the_one_order() {
    on_each(|place| async move {
        let log = place.log("orders", 3).await;
        let (none, begin) = log.last(5).await.unwrap();
        assert_eq!((none.len(), begin), (0, log.tail().await.unwrap()));
        // Unevenly: one partition has hardly anything.
        for n in 0..70_u64 {
            let batch = Batch::of([format!("{n:0100}")]).unwrap();
            let partition = if n == 30 { 2 } else { n as u16 % 2 };
            log.append_batch(&batch.in_partition(partition)).await.unwrap();
        }
        let entries = all(&log).await;
        for count in [0, 1, 20, 45, 70, 99] {
            let (last, next) = log.last(count).await.unwrap();
            assert_eq!(last, entries[70_usize.saturating_sub(count)..], "{count}");
            assert_eq!(next, log.tail().await.unwrap());
        }
    });
}
