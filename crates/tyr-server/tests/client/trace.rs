//! Traces of what a client does on a cluster of three in this process, as a collector gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;

use serde_json::Value;
use tyr_types::{
    BlobName, BlobOperations, Bytes, ErrorKind, Key, KeyspaceConfig, KeyspaceId, KeyspaceName,
    NodeId, Operation, Payload,
};

use self::collector::{Collector, Post, endpoint};
use super::cluster::Stage;
use tyr_client::{Client, block_on};
use tyr_server::Observer;
use tyr_trace::{Endpoint, TraceOptions};

#[allow(dead_code, reason = "the tests of two crates share it, and each uses a part")]
#[path = "../../../tyr-trace/src/tests/collector.rs"]
mod collector;

/// A cluster that traces everything.
fn traced(to: Endpoint) -> (Stage, Arc<Client>) {
    Stage::with(|options| {
        options.trace = Some(TraceOptions { endpoint: to.clone(), ratio: 1.0 });
    })
}

fn attribute<'v>(of: &'v Value, key: &str) -> &'v str {
    let mut attributes = of["attributes"].as_array().unwrap().iter();
    let found = attributes.find(|it| it["key"] == key);
    let value = &found.unwrap_or_else(|| panic!("no {key} in {of}"))["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap()
}

fn time(of: &Value, key: &str) -> u64 {
    of[key].as_str().unwrap().parse().unwrap()
}

fn has_outcome(span: &Value, outcome: &str) -> bool {
    attribute(span, "tyr.outcome") == outcome
}

/// The span that is part of no other, of which all others are.
fn root(spans: &[Value]) -> &Value {
    let (roots, others): (Vec<&Value>, Vec<&Value>) =
        spans.iter().partition(|span| span.get("parentSpanId").is_none());
    assert_eq!(roots.len(), 1, "{spans:?}");
    for other in others {
        assert_eq!(other["parentSpanId"], roots[0]["spanId"], "{spans:?}");
        assert_eq!(other["traceId"], roots[0]["traceId"], "{spans:?}");
    }
    roots[0]
}

/// The times of a span are in order, and so are those of its events.
fn check_times(span: &Value) {
    let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"].map(|key| time(span, key));
    let events = span["events"].as_array().unwrap().iter();
    let mut times = vec![start];
    times.extend(events.map(|event| time(event, "timeUnixNano")));
    times.push(end);
    assert!(times.is_sorted(), "{span}");
}

fn event_names(span: &Value) -> BTreeSet<&str> {
    let events = span["events"].as_array().unwrap().iter();
    events.map(|event| event["name"].as_str().unwrap()).collect()
}

#[test]
fn a_transaction_that_commits_is_one_trace_with_a_span_of_each_node_of_its_chain() {
    let collector = Collector::start();
    let (stage, client) = traced(collector.endpoint());
    let blobs = vec![stage.append("a", &[1; 100]), stage.append("b", &[2; 11])];
    client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap();
    let spans = collector.spans(3, |span| has_outcome(span, "committed"));
    assert_eq!(spans.len(), 3);
    let root = root(&spans);
    let mut timestamps = BTreeSet::new();
    for (position, node) in ["0", "1", "2"].into_iter().enumerate() {
        let span = spans.iter().find(|span| attribute(span, "tyr.node") == node).unwrap();
        check_times(span);
        assert!(time(span, "startTimeUnixNano") >= time(root, "startTimeUnixNano"), "{spans:?}");
        assert_eq!(attribute(span, "tyr.chain.position"), position.to_string());
        assert_eq!(attribute(span, "tyr.chain.length"), "3");
        assert_eq!((attribute(span, "tyr.blobs"), attribute(span, "tyr.bytes")), ("2", "111"));
        let names = event_names(span);
        for name in ["validated", "persisted", "decided", "applied"] {
            assert!(names.contains(name), "{name} in {span}");
        }
        assert_eq!(names.contains("forwarded"), position < 2, "{span}");
        timestamps.insert(attribute(span, "tyr.timestamp"));
        assert_eq!(span.get("status"), None);
    }
    assert_eq!(attribute(root, "tyr.node"), "0");
    assert_eq!(timestamps.len(), 1, "one decision");
    let instance = |post: &Post| {
        let resource = &post.body["resourceSpans"][0]["resource"];
        attribute(resource, "service.instance.id").to_owned()
    };
    let instances: BTreeSet<String> = collector.wait(|_| true).iter().map(instance).collect();
    assert_eq!(Vec::from_iter(instances), ["0", "1", "2"]);
    // The transaction is waited for as long as its longest span, but for what clocks round off.
    let end = time(root, "endTimeUnixNano") + 1_000_000;
    assert!(spans.iter().all(|span| time(span, "endTimeUnixNano") <= end), "{spans:?}");
}

/// A key of a blob that lies at this node alone.
fn key_at(stage: &Stage, keyspace: KeyspaceId, node: NodeId) -> BlobName {
    let name = |n: u32| BlobName { keyspace, key: Key::new(n.to_string()).unwrap() };
    let map = stage.servers[&NodeId(0)].map().unwrap();
    let is_there = |blob: &BlobName| map.placement(blob, 0).is_some_and(|it| it.has(node));
    (0..10_000).map(name).find(is_there).unwrap()
}

#[test]
fn a_transaction_that_a_later_node_aborts_says_so_and_why_at_every_node() {
    let collector = Collector::start();
    let (stage, client) = traced(collector.endpoint());
    let name = KeyspaceName::new("spread").unwrap();
    let config = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
    let keyspace = block_on(client.create_keyspace(&name, &config)).unwrap().id;
    let write = || Operation::Write { offset: 0, payload: Payload::Inline(Bytes::from("new")) };
    let on = |blob: &BlobName, operation| {
        vec![BlobOperations { blob: blob.clone(), operations: vec![operation] }]
    };
    // Node 0 knows of the keyspace when it is the head of a transaction there.
    for n in 0u32.. {
        let map = stage.servers[&NodeId(0)].map();
        if map.is_some_and(|map| map.keyspaces.contains_key(&keyspace)) {
            break;
        }
        let any = BlobName { keyspace, key: Key::new(n.to_string()).unwrap() };
        client.commit(on(&any, write()), Vec::new(), Vec::new()).wait().unwrap();
    }
    let [first, last] = [1, 2].map(|node| key_at(&stage, keyspace, NodeId(node)));
    client.commit(on(&last, write()), Vec::new(), Vec::new()).wait().unwrap();
    let compare = Operation::Compare { offset: 0, expected: Bytes::from("odd").into() };
    let blobs = [on(&first, write()), on(&last, compare)].concat();
    let error = client.commit(blobs, Vec::new(), Vec::new()).wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    // On a busy machine one of those before may have been aborted, too, and begun again.
    let spans = collector.spans(2, |span| {
        has_outcome(span, "aborted") && attribute(span, "error.type") == "Conflict"
    });
    assert_eq!(spans.len(), 2);
    assert_eq!(attribute(root(&spans), "tyr.node"), "1");
    for span in &spans {
        check_times(span);
        assert_eq!(span["status"]["code"], 2);
        let why = span["status"]["message"].as_str().unwrap();
        assert!(error.message().contains(why) && !why.is_empty(), "{why} in {error}");
    }
}

#[test]
fn nodes_without_their_collector_serve_all_the_same_and_count_what_they_dropped() {
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (stage, client) = traced(endpoint(nowhere));
    for n in 0..20 {
        client.commit(vec![stage.append("a", &[n; 10])], Vec::new(), Vec::new()).wait().unwrap();
    }
    let observers: BTreeMap<NodeId, Observer> =
        stage.servers.iter().map(|(node, server)| (*node, Observer::of(server))).collect();
    stage.servers.values().for_each(|server| server.stop().unwrap());
    for (node, observer) in observers {
        let traces = observer.statistics().traces;
        assert!(traces.unsent >= 20 && traces.is_failing, "{node:?}: {traces:?}");
        assert_eq!(traces.exported, 0, "{node:?}: {traces:?}");
    }
}

#[test]
fn nodes_trace_nothing_unless_they_are_asked_to() {
    let (stage, client) = Stage::new();
    client.commit(vec![stage.append("a", &[1; 10])], Vec::new(), Vec::new()).wait().unwrap();
    let traces = Observer::of(&stage.servers[&NodeId(0)]).statistics().traces;
    assert_eq!(traces, Default::default());
}
