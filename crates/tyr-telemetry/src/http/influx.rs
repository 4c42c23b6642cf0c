//! What InfluxDB's own clients ask before and beside writing: who is there, and is it well.
//!
//! They look for headers that name a version of InfluxDB, and some will not go on without. The
//! version named is the last one that has both APIs, of which writing is what there is here; the
//! build says who it really is.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::json;

/// The InfluxDB whose two ways to write are understood.
const VERSION: &str = "1.8.10";

const BUILD: &str = concat!("tyr-", env!("CARGO_PKG_VERSION"));

const VERSION_HEADER: HeaderName = HeaderName::from_static("x-influxdb-version");
const BUILD_HEADER: HeaderName = HeaderName::from_static("x-influxdb-build");

/// Adds the headers that every answer of InfluxDB has.
pub async fn sign(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    headers.insert(BUILD_HEADER, HeaderValue::from_static(BUILD));
    response
}

/// Answers 204: it is there.
pub async fn ping() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

#[derive(Serialize)]
struct Health {
    name: &'static str,
    message: String,
    status: &'static str,
    checks: [(); 0],
    version: &'static str,
}

/// Says in InfluxDB's words whether measurements can be written.
pub fn health(outcome: Result<(), &tyr::Error>) -> Response {
    let (code, status, message) = match outcome {
        Ok(()) => (StatusCode::OK, "pass", "ready for queries and writes".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, "fail", error.to_string()),
    };
    json(code, &Health { name: "influxdb", message, status, checks: [], version: VERSION })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use tyr::Error;

    use super::*;

    #[tokio::test]
    async fn health_is_what_clients_expect_also_when_it_is_bad() {
        let body = |response: Response| async {
            let bytes = to_bytes(response.into_body(), 1000).await.unwrap();
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
        };
        let well = health(Ok(()));
        assert_eq!(well.status(), 200);
        let expected = serde_json::json!({
            "name": "influxdb",
            "message": "ready for queries and writes",
            "status": "pass",
            "checks": [],
            "version": VERSION,
        });
        assert_eq!(body(well).await, expected);
        let bad = health(Err(&Error::invalid("why")));
        assert_eq!(bad.status(), 503);
        let bad = body(bad).await;
        assert_eq!(bad["status"], "fail");
        assert!(bad["message"].as_str().unwrap().contains("why"), "{bad}");
    }
}
