//! The exporter against collectors that take what they are given, refuse it, or are not there.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use super::*;
use crate::Endpoint;
use crate::outbox::{BATCH_MAX, TraceStatistics};
use crate::tests::collector::{self, Collector, Post, Reply};
use crate::tests::ended;

fn export(endpoint: Endpoint, outbox: Outbox) -> Exporter {
    let options = TraceOptions { endpoint, ratio: 1.0 };
    Exporter::start(NodeId(3), &options, Arc::new(outbox)).unwrap()
}

/// An address at which nobody is.
fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn count(posts: &[Post]) -> usize {
    posts.iter().map(|post| post.spans().len()).sum()
}

#[test]
fn spans_are_posted_in_batches_over_one_connection() {
    let collector = Collector::start();
    let exporter = export(collector.endpoint(), Outbox::new());
    let all = 2 * BATCH_MAX + 5;
    (0..all as u64).for_each(|n| exporter.outbox().push(ended(n)));
    let posts = collector.wait(|posts| count(posts) == all);
    assert!(posts.iter().all(|post| post.spans().len() <= BATCH_MAX));
    assert_eq!(
        (posts[0].asked.as_str(), posts[0].content_type.as_str()),
        ("POST /v1/traces", "application/json")
    );
    exporter.close();
    assert_eq!(collector.connections(), 1);
    let exported = TraceStatistics { exported: all as u64, ..TraceStatistics::default() };
    assert_eq!(exporter.outbox().statistics(), exported);
}

#[test]
fn what_is_there_is_sent_at_a_stop() {
    let collector = Collector::start();
    let exporter = export(collector.endpoint(), Outbox::new());
    exporter.outbox().push(ended(1));
    exporter.close();
    assert_eq!(count(&collector.wait(|posts| !posts.is_empty())), 1);
    assert_eq!(exporter.outbox().statistics().exported, 1);
}

#[test]
fn a_batch_is_tried_again_when_the_collector_has_no_time_or_hangs_up() {
    let collector = Collector::start();
    let exporter = export(collector.endpoint(), Outbox::new());
    // The first batch has a connection that lasts, on which the second one is hung up on.
    exporter.outbox().push(ended(1));
    collector.wait(|posts| posts.len() == 1);
    collector.replies([Reply::HangsUp, Reply::Says("503 Service Unavailable", "busy")]);
    exporter.outbox().push(ended(2));
    collector.wait(|posts| posts.len() == 4);
    exporter.close();
    let statistics = exporter.outbox().statistics();
    assert_eq!(statistics, TraceStatistics { exported: 2, ..TraceStatistics::default() });
}

#[test]
fn a_batch_that_is_refused_is_not_sent_again_and_counted() {
    let collector = Collector::start();
    let exporter = export(collector.endpoint(), Outbox::new());
    let partly = r#"{"partialSuccess":{"rejectedSpans":"1"}}"#;
    collector.replies([Reply::Says("400 Bad Request", "no"), Reply::Says("200 OK", partly)]);
    exporter.outbox().push(ended(1));
    collector.wait(|posts| posts.len() == 1);
    exporter.outbox().push(ended(2));
    collector.wait(|posts| posts.len() == 2);
    exporter.close();
    let refused = TraceStatistics { refused: 2, ..TraceStatistics::default() };
    assert_eq!(exporter.outbox().statistics(), refused);
}

#[test]
fn spans_wait_for_a_collector_that_is_not_there_as_far_as_there_is_room() {
    let address = nowhere();
    let exporter = export(collector::endpoint(address), Outbox::with_room(100));
    (0..300).for_each(|n| exporter.outbox().push(ended(n)));
    let overflowed = exporter.outbox().statistics().overflowed;
    assert!((100..=200).contains(&overflowed), "{overflowed}");
    let collector = Collector::at(address);
    let left = 300 - usize::try_from(overflowed).unwrap();
    assert_eq!(count(&collector.wait(|posts| count(posts) >= left)), left);
    exporter.close();
    assert_eq!(exporter.outbox().statistics().exported, left as u64);
}

#[test]
fn a_stop_does_not_wait_long_for_a_collector_that_is_silent_or_not_there() {
    let silent = Collector::start();
    silent.replies([Reply::IsSilent]);
    for endpoint in [silent.endpoint(), collector::endpoint(nowhere())] {
        let exporter = export(endpoint, Outbox::new());
        (0..10).for_each(|n| exporter.outbox().push(ended(n)));
        let begun = Instant::now();
        exporter.close();
        let took = begun.elapsed();
        assert!(took < FLUSH_MAX + Duration::from_secs(5), "{took:?}");
        let statistics = exporter.outbox().statistics();
        assert_eq!((statistics.exported, statistics.unsent), (0, 10));
    }
}
