//! HTTP: InfluxDB's line protocol in, answers out.
//!
//! ```text
//!   POST /api/v2/write, /write       line protocol, perhaps gzip; ?precision=ns|us|ms|s
//!   GET  /api/series                 ?site&cluster&host&parameter&job&from&to&limit
//!   GET  /api/aggregate              ?scope&path&parameter&window&from&to
//!   GET  /api/top                    ?scope&parameter&by&from&to&limit
//!   GET  /api/catalog                ?site&cluster&host&parameter&job&region&limit
//!   GET  /healthz                    whether the store answers, and all counts
//!   GET  /ping, /health              the same for InfluxDB's clients
//! ```
//!
//! Questions take `format=json|csv|table|chart` as well. What one client can make the service hold
//! is bound: the length of a body, packed and unpacked, the time it may take, the rows of an
//! answer, and how many requests of each kind are worked on at once.

mod body;
mod influx;
mod read;
mod write;

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tyr::ErrorKind;

use crate::series::Series;
use crate::source::influx::{TagNames, default_names};
use crate::sources::Sources;

/// Requests of each kind that are worked on at once; the others wait.
const REQUESTS_MAX: usize = 8;

/// Time that requests under way have to end when the service stops: a client that says nothing
/// more must not keep it from stopping.
const GRACE: Duration = Duration::from_secs(2);

/// How requests are understood.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Which tags of the line protocol name what.
    pub tags: TagNames,
    /// The names of what a line does not name.
    pub defaults: Series,
    /// Bytes of the largest body. Default 16 MiB.
    pub body_len_max: usize,
    /// What the service answers besides, such as metrics. Default nothing.
    pub more: Router,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            tags: TagNames::default(),
            defaults: default_names(),
            body_len_max: 16 << 20,
            more: Router::new(),
        }
    }
}

/// What handlers share.
struct Service {
    sources: Sources,
    options: HttpOptions,
    writers: Semaphore,
    readers: Semaphore,
}

/// Serves until `shutdown` completes and the requests under way are answered, or [`GRACE`] is over.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    listener: TcpListener,
    sources: Sources,
    mut options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let more = std::mem::take(&mut options.more);
    let service = Arc::new(Service {
        sources,
        options,
        writers: Semaphore::new(REQUESTS_MAX),
        readers: Semaphore::new(REQUESTS_MAX),
    });
    let router = Router::new()
        .route("/api/v2/write", post(write::write))
        .route("/write", post(write::write))
        .route("/api/series", get(read::series))
        .route("/api/aggregate", get(read::aggregate))
        .route("/api/top", get(read::top))
        .route("/api/catalog", get(read::catalog))
        .route("/healthz", get(read::health))
        .route("/health", get(read::influx_health))
        .route("/ping", get(influx::ping))
        .with_state(service)
        .merge(more)
        .layer(map_response(influx::sign));
    let (stop, stopped) = oneshot::channel();
    let stopping = async {
        shutdown.await;
        // Nobody listens only when serving has ended by itself.
        let _ = stop.send(());
    };
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopping).into_future();
    let grace = async {
        match stopped.await {
            Ok(()) => tokio::time::sleep(GRACE).await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        served = serving => served,
        () = grace => Ok(()),
    }
}

/// The answer to a request that failed.
struct Refusal(tyr::Error);

impl From<tyr::Error> for Refusal {
    fn from(error: tyr::Error) -> Self {
        Self(error)
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorText<'a>,
}

#[derive(Serialize)]
struct ErrorText<'a> {
    kind: &'a str,
    message: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = self.0.kind();
        let body =
            ErrorBody { error: ErrorText { kind: kind.name(), message: self.0.to_string() } };
        json(status_of(kind), &body)
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorKind::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Conflict | ErrorKind::AlreadyExists => StatusCode::CONFLICT,
        ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::SnapshotTooOld => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_string(body).expect("answers are plain values");
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests;
