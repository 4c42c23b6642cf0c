//! Spans as a collector reads them: an `ExportTraceServiceRequest` of OTLP, in JSON.
//!
//! As the protocol has it: names of fields in lowerCamelCase, ids in hexadecimal digits, 64-bit
//! numbers as texts, enumerations as numbers.

use serde_json::{Value, json};
use tyr_protocol::commit::Attempt;
use tyr_types::NodeId;

use super::span::{EndedSpan, Happening, Moment, Outcome, Span};

/// The name of service and scope.
const NAME: &str = "tyr";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `SPAN_KIND_SERVER`: what a node does because a client or another node asked for it.
const KIND_SERVER: u32 = 2;

/// `STATUS_CODE_ERROR`. Whatever went as it should has no status.
const STATUS_ERROR: u32 = 2;

/// What is posted for these spans of a node.
pub(super) fn request(node: NodeId, spans: &[EndedSpan]) -> String {
    let resource = [
        text("service.name", NAME),
        text("service.version", VERSION),
        text("service.instance.id", &node.0.to_string()),
    ];
    let spans: Vec<Value> = spans.iter().map(|ended| span(node, ended)).collect();
    json!({
        "resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{
                "scope": {"name": NAME, "version": VERSION},
                "spans": spans,
            }],
        }],
    })
    .to_string()
}

fn span(node: NodeId, ended: &EndedSpan) -> Value {
    let EndedSpan { span, ended_us, outcome } = ended;
    let is_head = span.is_submitted || span.place.is_some_and(|(position, _)| position == 0);
    let mut value = json!({
        "traceId": format!("{:032x}", span.transaction.0),
        "spanId": format!("{:016x}", span.id.0),
        "name": if is_head { "transaction" } else { "transaction hop" },
        "kind": KIND_SERVER,
        "startTimeUnixNano": span.unix_ns(span.begun_us).to_string(),
        "endTimeUnixNano": span.unix_ns(*ended_us).to_string(),
        "attributes": attributes(node, span, outcome),
        "events": span.moments.iter().map(|moment| event(span, moment)).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        value["parentSpanId"] = format!("{:016x}", parent.0).into();
    }
    if span.lost_moments > 0 {
        value["droppedEventsCount"] = span.lost_moments.into();
    }
    if let Some(message) = complaint(outcome) {
        value["status"] = json!({"code": STATUS_ERROR, "message": message});
    }
    value
}

fn attributes(node: NodeId, span: &Span, outcome: &Outcome) -> Vec<Value> {
    let mut attributes = vec![
        number("tyr.node", u64::from(node.0)),
        number("tyr.blobs", span.blobs as u64),
        number("tyr.reads", span.reads as u64),
        number("tyr.bytes", span.payload_len),
        text("tyr.outcome", outcome_name(outcome)),
    ];
    if let Some((position, len)) = span.place {
        attributes.push(number("tyr.chain.position", position as u64));
        attributes.push(number("tyr.chain.length", len as u64));
    }
    if let Some(attempt) = span.attempt {
        attributes.push(text("tyr.attempt", &attempt_text(attempt)));
    }
    match outcome {
        Outcome::Committed(at) => attributes.push(text("tyr.timestamp", &at.to_string())),
        Outcome::Aborted { kind, .. } => attributes.push(text("error.type", kind.name())),
        Outcome::Withdrawn | Outcome::Superseded | Outcome::Unfinished => {}
    }
    attributes
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Committed(_) => "committed",
        Outcome::Aborted { .. } => "aborted",
        Outcome::Withdrawn => "withdrawn",
        Outcome::Superseded => "superseded",
        Outcome::Unfinished => "unfinished",
    }
}

/// What is wrong with a transaction that ended so.
fn complaint(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Aborted { reason, .. } => Some(reason),
        Outcome::Unfinished => Some("the node does not know yet what becomes of it"),
        Outcome::Committed(_) | Outcome::Withdrawn | Outcome::Superseded => None,
    }
}

fn event(span: &Span, moment: &Moment) -> Value {
    let (name, attribute) = match moment.what {
        Happening::AskedAgain => ("asked again", None),
        Happening::EnteredAgain(attempt) => {
            ("entered again", Some(text("tyr.attempt", &attempt_text(attempt))))
        }
        Happening::Validated(proposal) => {
            ("validated", Some(text("tyr.proposal", &proposal.to_string())))
        }
        Happening::Persisted => ("persisted", None),
        Happening::NotPersisted => ("not persisted", None),
        Happening::Forwarded(next) => ("forwarded", Some(number("tyr.node", u64::from(next.0)))),
        Happening::Decided(at) => ("decided", Some(text("tyr.timestamp", &at.to_string()))),
        Happening::Applied => ("applied", None),
        Happening::Withdrawn => ("withdrawn", None),
        Happening::Misplaced => ("misplaced", None),
        Happening::Queried => ("queried", None),
        Happening::AbortLogged => ("abort logged", None),
    };
    json!({
        "timeUnixNano": span.unix_ns(moment.at_us).to_string(),
        "name": name,
        "attributes": Vec::from_iter(attribute),
    })
}

/// Epoch, number and coordinator.
fn attempt_text(Attempt { epoch, number, coordinator }: Attempt) -> String {
    format!("{}.{number}.{}", epoch.0, coordinator.0)
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// How many spans a collector refused of those it was sent, by what it answers to a success: an
/// `ExportTraceServiceResponse`.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
