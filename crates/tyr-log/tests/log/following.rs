//! Subscriptions: what is appended comes, in order, once.

use tyr_log::{Log, Start, Subscription};

use crate::place::{all, numbered, on_each, texts};

/// So many entries, of two partitions in any order of acknowledgements.
async fn next_sorted(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut texts = next(subscription, count).await;
    texts.sort();
    texts
}

async fn next(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut entries = Vec::new();
    while entries.len() < count {
        entries.extend(subscription.next(count - entries.len()).await.unwrap().unwrap());
    }
    texts(&entries)
}

#[test]
fn a_subscription_has_what_there_is_then_what_comes_and_ends_with_the_log() {
    on_each(|place| async move {
        let log = place.log("orders", 2).await;
        log.append("before").await.unwrap();
        let mut all_of_it = log.subscribe(&Start::Oldest).await.unwrap();
        let mut new = log.subscribe(&Start::Newest).await.unwrap();
        assert_eq!(next(&mut all_of_it, 1).await, ["before"]);
        let appending = tokio::spawn({
            let log = place.open("orders").await.unwrap();
            async move {
                for n in 0..40_u64 {
                    log.append(format!("{n:0100}")).await.unwrap();
                }
            }
        });
        let expected: Vec<_> = (0..40_u64).map(|n| format!("{n:0100}")).collect();
        assert_eq!(next_sorted(&mut all_of_it, 40).await, expected);
        assert_eq!(next_sorted(&mut new, 40).await, expected);
        appending.await.unwrap();
        let at = new.cut();
        let mut again = log.subscribe(&Start::At(at)).await.unwrap();
        let waiting = tokio::spawn(async move { again.next(10).await });
        log.append("last").await.unwrap();
        assert_eq!(texts(&waiting.await.unwrap().unwrap().unwrap()), ["last"]);
        log.seal().await.unwrap();
        assert_eq!(next(&mut new, 1).await, ["last"]);
        assert_eq!(new.next(1).await.unwrap(), None);
    });
}

#[test]
fn many_who_follow_see_the_same_while_many_append() {
    on_each(|place| async move {
        const WRITERS: u64 = 4;
        const EACH: u64 = 50;
        let log = place.log("orders", 3).await;
        let follow = async |log: Log| {
            let mut subscription = log.subscribe(&Start::Oldest).await.unwrap();
            next(&mut subscription, (WRITERS * EACH) as usize).await
        };
        let followers: Vec<_> = (0..3).map(|_| tokio::spawn(follow(log.clone()))).collect();
        let append = async |log: Log, writer: u64| {
            for n in 0..EACH {
                log.append_batch(&numbered(1_000 * writer + n, 1_000 * writer + n + 1))
                    .await
                    .unwrap();
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|n| tokio::spawn(append(log.clone(), n))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let whole = texts(&all(&log).await);
        for follower in followers {
            assert_eq!(follower.await.unwrap(), whole);
        }
    });
}
