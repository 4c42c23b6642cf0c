//! The shape of what is posted, against the names and types that the protocol gives.

use std::collections::BTreeSet;

use tyr_types::ErrorKind;

use super::*;
use crate::tests::{at, attempt, chain, ended, id, now, transaction};

/// The fields of `Span` in OTLP's trace.proto that are used here, as JSON has them.
const SPAN_FIELDS: [&str; 11] = [
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
    "droppedEventsCount",
    "status",
];

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn request_of(spans: &[EndedSpan]) -> Value {
    serde_json::from_str(&request(NodeId(3), spans)).unwrap()
}

/// The value of an attribute.
fn attribute<'v>(of: &'v Value, key: &str) -> &'v Value {
    let mut attributes = of["attributes"].as_array().unwrap().iter();
    &attributes.find(|it| it["key"] == key).unwrap_or_else(|| panic!("no {key} in {of}"))["value"]
}

/// A span of a later node, with everything that can be in one.
fn full() -> EndedSpan {
    let (over, attempt) = (chain(&[1, 3, 5]), attempt(2, 1));
    let own = transaction(77);
    let mut span = Span::forwarded(NodeId(3), 1, &own, &over, attempt, now(1_000));
    for what in [
        Happening::AskedAgain,
        Happening::EnteredAgain(attempt),
        Happening::Validated(at(4)),
        Happening::Persisted,
        Happening::NotPersisted,
        Happening::Forwarded(NodeId(5)),
        Happening::Decided(at(6)),
        Happening::Applied,
        Happening::Withdrawn,
        Happening::Misplaced,
        Happening::Queried,
        Happening::AbortLogged,
    ] {
        span.note(1_200, what);
    }
    span.lost_moments = 2;
    let reason = "it changed".into();
    span.end(1_500, Outcome::Aborted { kind: ErrorKind::Conflict, reason })
}

#[test]
fn a_request_names_the_service_the_node_and_the_scope() {
    let request = request_of(&[ended(1), ended(2)]);
    assert_eq!(keys(&request), BTreeSet::from(["resourceSpans"]));
    let of = &request["resourceSpans"][0];
    assert_eq!(keys(of), BTreeSet::from(["resource", "scopeSpans"]));
    assert_eq!(attribute(&of["resource"], "service.name")["stringValue"], "tyr");
    assert_eq!(attribute(&of["resource"], "service.instance.id")["stringValue"], "3");
    let scope = &of["scopeSpans"][0];
    assert_eq!(keys(scope), BTreeSet::from(["scope", "spans"]));
    assert_eq!(scope["scope"]["name"], "tyr");
    assert_eq!(scope["spans"].as_array().unwrap().len(), 2);
}

#[test]
fn a_span_has_the_fields_of_the_protocol_in_its_encoding() {
    let request = request_of(&[full()]);
    let span = &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(keys(span), BTreeSet::from(SPAN_FIELDS));
    assert_eq!(span["traceId"], format!("{:032x}", id(77).0));
    for (key, len) in [("traceId", 32), ("spanId", 16), ("parentSpanId", 16)] {
        let digits = span[key].as_str().unwrap();
        let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase());
        assert!(is_hex && digits.len() == len && digits.chars().any(|c| c != '0'), "{span}");
    }
    assert_eq!(span["startTimeUnixNano"], "1700000000001000000");
    assert_eq!(span["endTimeUnixNano"], "1700000000001500000");
    assert_eq!(span["kind"], 2);
    assert_eq!(span["status"], json!({"code": 2, "message": "it changed"}));
    assert_eq!(span["droppedEventsCount"], 2);
    assert_eq!(attribute(span, "error.type"), &json!({"stringValue": "Conflict"}));
    assert_eq!(attribute(span, "tyr.chain.position"), &json!({"intValue": "1"}));
    assert_eq!(attribute(span, "tyr.chain.length"), &json!({"intValue": "3"}));
    assert_eq!(attribute(span, "tyr.outcome")["stringValue"], "aborted");
    assert_eq!(attribute(span, "tyr.attempt")["stringValue"], "3.2.1");
}

#[test]
fn every_event_has_a_name_of_its_own_and_a_time() {
    let request = request_of(&[full()]);
    let events = &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"];
    let events = events.as_array().unwrap();
    let names: BTreeSet<&str> = events.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), events.len()), (12, 12));
    for event in events {
        assert_eq!(keys(event), BTreeSet::from(["timeUnixNano", "name", "attributes"]));
        assert_eq!(event["timeUnixNano"], "1700000000001200000");
    }
    assert_eq!(attribute(&events[2], "tyr.proposal")["stringValue"], at(4).to_string());
    assert_eq!(attribute(&events[5], "tyr.node")["intValue"], "5");
}

#[test]
fn a_span_that_went_well_has_no_status_and_a_root_no_parent() {
    let request = request_of(&[ended(1)]);
    let span = &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    for absent in ["status", "parentSpanId", "droppedEventsCount"] {
        assert_eq!(span.get(absent), None, "{span}");
    }
    assert_eq!(attribute(span, "tyr.timestamp")["stringValue"], at(1).to_string());
}

#[test]
fn what_a_collector_refuses_in_part_is_understood_in_both_ways_of_writing() {
    assert_eq!(rejected(b"{}"), 0);
    assert_eq!(rejected(b""), 0);
    assert_eq!(rejected(br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#), 3);
    assert_eq!(rejected(br#"{"partialSuccess":{"rejectedSpans":4}}"#), 4);
    assert_eq!(rejected(br#"{"partialSuccess":{}}"#), 0);
}
