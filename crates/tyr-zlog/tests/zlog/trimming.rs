//! Trimming and deleting.

use tyr::{ErrorKind, Scan};
use tyr_zlog::{Log, Slot, Trimmed};

use crate::place::{Place, all_from, on_each, patient};

async fn objects(place: &Place, name: &str) -> usize {
    let keyspace = place.stores[0].keyspace(&place.keyspace).await.unwrap();
    let prefix = format!("{name}/");
    keyspace.scan_page(&Scan::new().prefix(&prefix).limit(1_000)).await.unwrap().entries.len()
}

#[test]
fn what_is_trimmed_gives_its_objects_back_and_nobody_reads_it() {
    on_each(|place| async move {
        let log = place.log("orders").await;
        let other = place.open("orders", 1, patient()).await;
        for n in 0..30_u64 {
            log.append(n.to_string()).await.unwrap();
        }
        assert_eq!(objects(&place, "orders").await, 8);
        // It is ended in the middle: what is begun, the next one goes on with.
        let mut steps = 0;
        let ended = log.trim(19, |_| {
            steps += 1;
            if steps == 2 { Err(tyr::Error::unavailable("enough")) } else { Ok(()) }
        });
        assert_eq!(ended.await.unwrap_err().message(), "enough");
        assert_eq!(all_from(&other, 0).await.first().unwrap().position, 19);
        let trimmed = other.trim(5, |_| Ok(())).await.unwrap();
        assert_eq!(trimmed, Trimmed { stripes: 2, left: 0 });
        assert_eq!(objects(&place, "orders").await, 4);
        for position in [0, 15, 16, 18] {
            assert_eq!(log.read(position).await.unwrap_err().kind(), ErrorKind::NotFound);
        }
        assert_eq!(all_from(&log, 0).await.len(), 11);
        assert_eq!(other.append("more").await.unwrap(), 30);
        let status = log.status().await.unwrap();
        assert_eq!((status.begin, status.tail, status.stripes), (19, 31, 2));
        // All of it: the last stripe stays, and the log goes on.
        log.trim(31, |_| Ok(())).await.unwrap();
        assert_eq!((all_from(&other, 0).await.len(), objects(&place, "orders").await), (0, 2));
        drop((log, other));
        let after = place.open("orders", 0, patient()).await;
        assert_eq!(after.append("after").await.unwrap(), 31);
    });
}

#[test]
fn a_stripe_that_stays_though_all_of_it_is_trimmed_has_nothing_for_who_does_not_know() {
    on_each(|place| async move {
        let log = place.log("orders").await;
        for n in 0..8_u64 {
            log.append(n.to_string()).await.unwrap();
        }
        let asleep = place.open("orders", 1, patient()).await;
        assert_eq!(asleep.slot(7).await.unwrap(), Slot::Data("7".into()));
        log.trim(8, |_| Ok(())).await.unwrap();
        assert_eq!(asleep.slot(7).await.unwrap(), Slot::Invalid);
    });
}

#[test]
fn a_log_that_is_deleted_is_not_there_and_its_name_is_free() {
    on_each(|place| async move {
        let log = place.log("orders").await;
        for _ in 0..10 {
            log.append("old").await.unwrap();
        }
        assert_eq!(Log::list_in(&place.stores[1], &place.keyspace).await.unwrap(), ["orders"]);
        Log::delete(&place.stores[1], &place.keyspace, "orders").await.unwrap();
        assert_eq!(objects(&place, "orders").await, 0);
        assert_eq!(log.append("late").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(Log::list_in(&place.stores[1], &place.keyspace).await.unwrap().is_empty());
        let gone = Log::delete(&place.stores[1], &place.keyspace, "orders").await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        drop(log);
        let anew = place.log("orders").await;
        assert_eq!(anew.append("new").await.unwrap(), 0);
    });
}
