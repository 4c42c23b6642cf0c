//! Positions that somebody was given and does not write.

use std::time::{Duration, Instant};

use tyr::ErrorKind;
use tyr_zlog::{Opening, Slot};

use crate::place::{all_from, hasty, on_each, patient, texts};

#[test]
fn a_reader_waits_for_a_hole_and_fills_it_and_its_writer_goes_elsewhere() {
    on_each(|place| async move {
        const WAIT: Duration = Duration::from_millis(120);
        let log = place.log("orders").await;
        let hole = log.next_position().await.unwrap();
        log.append("one").await.unwrap();
        let opening = Opening { fill_after: WAIT, ..patient() };
        let reader = place.open("orders", 1, opening).await;
        let begun = Instant::now();
        let entries = all_from(&reader, 0).await;
        assert_eq!(texts(&entries), [(1, "one".to_owned())]);
        assert!(begun.elapsed() >= WAIT, "{:?}", begun.elapsed());
        assert!(!log.write(hole, "zero").await.unwrap());
        assert_eq!(log.append("two").await.unwrap(), 2);
        let error = log.read(0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("filled or trimmed"), "{error}");
        assert!(log.read(7).await.unwrap_err().message().contains("not written yet"));
    });
}

#[test]
fn what_is_written_in_time_is_read_in_its_place() {
    on_each(|place| async move {
        let log = place.log("orders").await;
        let hole = log.next_position().await.unwrap();
        log.append("one").await.unwrap();
        let reader = place.open("orders", 1, patient()).await;
        assert_eq!(reader.slot(0).await.unwrap(), Slot::Unwritten);
        let reading = tokio::spawn(async move { all_from(&reader, 0).await });
        assert!(log.write(hole, "zero").await.unwrap());
        let entries = reading.await.unwrap();
        assert_eq!(texts(&entries), [(0, "zero".to_owned()), (1, "one".to_owned())]);
        assert!(!log.write(hole, "again").await.unwrap());
    });
}

#[test]
fn a_range_ends_where_it_is_to_and_passes_by_what_is_trimmed() {
    on_each(|place| async move {
        let log = place.log("orders").await;
        for n in 0..20 {
            log.append(n.to_string()).await.unwrap();
        }
        log.trim_one(3).await.unwrap();
        assert!(!log.fill(4).await.unwrap(), "it has an entry");
        let reader = place.open("orders", 1, hasty()).await;
        let found = reader.read_range(2, 17).await.unwrap();
        let wanted: Vec<_> = (2..17).filter(|n| *n != 3).map(|n| (n, n.to_string())).collect();
        assert_eq!(texts(&found), wanted);
        assert_eq!(reader.read_range(18, 99).await.unwrap().len(), 2);
    });
}
