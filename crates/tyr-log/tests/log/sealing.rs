//! Sealed logs: they take nothing, and stay as they are.

use tyr::ErrorKind;
use tyr_log::{Log, Start};

use crate::place::{all, numbered, on_each};

#[test]
fn a_sealed_log_refuses_appends_from_whoever_has_it_open_and_can_be_read() {
    on_each(|place| async move {
        let log = place.log("orders", 3).await;
        for n in 0..30 {
            log.append_batch(&numbered(n, n + 1)).await.unwrap();
        }
        let other = place.open("orders").await.unwrap();
        log.seal().await.unwrap();
        log.seal().await.unwrap();
        for handle in [&log, &other, &place.open("orders").await.unwrap()] {
            let refused = handle.append("more").await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
            assert!(refused.message().contains("log orders is sealed"), "{refused}");
        }
        let transacted = place.store.transact(async |transaction| {
            other.append_in(transaction, &numbered(0, 1)).await.map(drop)
        });
        assert!(transacted.await.unwrap_err().message().contains("is sealed"));
        let entries = all(&log).await;
        assert_eq!(entries.len(), 30);
        let mut reader = log.reader(&Start::Newest).await.unwrap();
        assert!(reader.next(1).await.unwrap().is_empty());
        assert!(reader.is_ended());
        assert!(log.status().await.unwrap().is_sealed);
    });
}

#[test]
fn what_is_appended_while_a_log_is_sealed_is_before_the_seal_or_refused() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        let append = async |log: Log, writer: u64| {
            let mut count = 0;
            loop {
                match log.append(format!("{writer}-{count}-{:0200}", 0)).await {
                    Ok(_) => count += 1,
                    Err(error) => {
                        assert!(error.message().contains("is sealed"), "{error}");
                        return count;
                    }
                }
            }
        };
        let writers: Vec<_> =
            (0..4).map(|writer| tokio::spawn(append(log.clone(), writer))).collect();
        while log.tail().await.unwrap().positions()[1].segment < 3 {
            tokio::task::yield_now().await;
        }
        place.open("orders").await.unwrap().seal().await.unwrap();
        let mut total = 0;
        for writer in writers {
            total += writer.await.unwrap();
        }
        assert_eq!(all(&log).await.len(), total);
    });
}
