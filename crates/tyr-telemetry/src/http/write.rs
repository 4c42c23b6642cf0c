//! Line protocol in: good lines are recorded, the others named in the answer.
//!
//! The body of an error answers clients of both versions of InfluxDB's API: `code` and `message`
//! for version 2, `error` for version 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::body::{self, Encoding};
use super::{Service, json};
use crate::source::influx::{LineError, LineWriter, Precision, WriteReport};
use crate::source::now_us;

#[derive(Serialize)]
struct WriteError<'a> {
    code: &'a str,
    message: &'a str,
    error: &'a str,
    #[serde(skip_serializing_if = "<[LineError]>::is_empty")]
    line_errors: &'a [LineError],
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    json(status, &WriteError { code, message, error: message, line_errors: &[] })
}

/// Answers 204 when every line is recorded, 400 when some were refused (the others are recorded),
/// 503 when the store did not take all.
pub async fn write(
    State(service): State<Arc<Service>>,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request,
) -> Response {
    let precision = query.get("precision").map_or("", String::as_str);
    let precision = match Precision::parse(precision) {
        Ok(precision) => precision,
        Err(error) => {
            service.sources.influx.refuse(1, &error);
            return refuse(StatusCode::BAD_REQUEST, "invalid", error.message());
        }
    };
    let _permit = service.writers.acquire().await.expect("the semaphore is never closed");
    let body = match read_body(&service, request).await {
        Ok(body) => body,
        Err((status, message)) => {
            service.sources.influx.refuse(1, &message);
            return refuse(status, "invalid", &message);
        }
    };
    let writer = LineWriter {
        intake: &service.sources.influx,
        tags: &service.options.tags,
        defaults: &service.options.defaults,
    };
    answer(&writer.write(&body, precision, now_us()).await)
}

async fn read_body(service: &Service, request: Request) -> Result<Bytes, body::Untaken> {
    let encoding = Encoding::of(request.headers())?;
    body::read(request.into_body(), encoding, service.options.body_len_max).await
}

fn answer(report: &WriteReport) -> Response {
    let counts = &report.counts;
    if counts.failed > 0 {
        let message = format!(
            "{} measurements are not recorded, {} are; retry later",
            counts.failed, counts.stored
        );
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &message);
    }
    let refused = report.lines_refused + counts.refused;
    if refused == 0 {
        return StatusCode::NO_CONTENT.into_response();
    }
    let first = report.line_errors.first();
    let example = first.map(|error| format!("line {}: {}", error.line, error.message));
    let message = format!(
        "partial write: {refused} of {} lines refused, the others are recorded; {}",
        report.lines,
        example.unwrap_or_default()
    );
    let body = WriteError {
        code: "invalid",
        message: &message,
        error: &message,
        line_errors: &report.line_errors,
    };
    json(StatusCode::BAD_REQUEST, &body)
}
