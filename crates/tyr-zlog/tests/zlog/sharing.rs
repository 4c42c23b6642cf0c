//! The sequencer, held by one client at a time.

use std::time::Duration;

use tyr_zlog::{Opening, Policy};

use crate::place::{all_from, hasty, on_each, patient, texts};

#[test]
fn the_counter_goes_with_the_sequencer_from_one_to_the_other() {
    on_each(|place| async move {
        let one = place.log("orders").await;
        let two = place.open("orders", 1, patient()).await;
        for n in 0..12 {
            let log = if n % 2 == 0 { &one } else { &two };
            assert_eq!(log.append("entry").await.unwrap(), n);
        }
        // None was lost, so nothing had to be recovered.
        let status = one.status().await.unwrap();
        assert_eq!((status.term, status.tail, status.token), (0, 12, 12));
        two.close().await.unwrap();
        assert_eq!(one.append("entry").await.unwrap(), 12);
        one.clone().close().await.unwrap();
        assert!(one.append("entry").await.unwrap_err().message().contains("closed"));
        let three = place.open("orders", 1, patient()).await;
        assert_eq!(three.append("entry").await.unwrap(), 13);
        assert_eq!(three.status().await.unwrap().term, 0);
    });
}

#[test]
fn a_quota_keeps_it_for_so_many_positions() {
    on_each(|place| async move {
        const EACH: u64 = 40;
        let time = Duration::from_secs(600);
        let opening = || Opening { policy: Policy::Quota { positions: 8, time }, ..hasty() };
        place.log("orders").await.close().await.unwrap();
        let mut writers = Vec::new();
        for program in 0..2 {
            let log = place.open("orders", program, opening()).await;
            writers.push(tokio::spawn(async move {
                for n in 0..EACH {
                    log.append(format!("{program} {n}")).await.unwrap();
                }
                log.close().await.unwrap();
            }));
        }
        for writer in writers {
            writer.await.unwrap();
        }
        let reader = place.open("orders", 0, hasty()).await;
        let status = reader.status().await.unwrap();
        assert!(status.token <= 2 * EACH / 8 + 2, "it was got {} times", status.token);
        assert_eq!(status.term, 0);
        assert_eq!(all_from(&reader, 0).await.len() as u64, 2 * EACH);
    });
}

#[test]
fn who_lost_the_sequencer_writes_nothing_any_more_and_readers_wait_for_nobody() {
    on_each(|place| async move {
        let lost = place.log("orders").await;
        lost.append("zero").await.unwrap();
        let mut given = Vec::new();
        for _ in 0..3 {
            given.push(lost.next_position().await.unwrap());
        }
        let [kept, late, later] = given[..] else { panic!("{given:?}") };
        assert!(lost.write(kept, "one").await.unwrap());
        let reader = place.open("orders", 1, hasty()).await;
        // These know only the view of before.
        let asleep =
            [place.open("orders", 0, patient()).await, place.open("orders", 1, patient()).await];
        drop(lost);
        // Nobody has the sequencer now.
        assert_eq!(all_from(&reader, 0).await.len(), 2);
        let next = place.open("orders", 0, patient()).await;
        assert_eq!(next.append("two").await.unwrap(), late.position);
        // Who was given positions before wakes: one is another's by now, one will be.
        for asleep in asleep {
            assert!(!asleep.write(later, "later").await.unwrap());
            assert!(!asleep.write(late, "late").await.unwrap());
        }
        // And who knows the view of now.
        assert!(!next.write(later, "later").await.unwrap());
        assert_eq!(next.append("three").await.unwrap(), later.position);
        let wanted = [(0, "zero"), (1, "one"), (2, "two"), (3, "three")];
        let wanted = wanted.map(|(position, text)| (position, text.to_owned()));
        assert_eq!(texts(&all_from(&reader, 0).await), wanted);
        assert_eq!(next.status().await.unwrap().term, 1);
    });
}
