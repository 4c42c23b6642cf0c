//! What a node answers over HTTP: metrics, health, how it stands.
//!
//! It runs on one thread of its own, so that a node that is busy still says how it is. Who may see
//! it is decided by where it listens.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tyr::Error;
use tyr_server::{Health, Observer};

use crate::failure::Outcome;
use crate::metrics::Metrics;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What answers are made from.
struct Sources {
    observer: Observer,
    metrics: Metrics,
}

impl Http {
    /// Listens at this address.
    ///
    /// # Errors
    /// `Unavailable` when it is in use or not this machine's.
    pub fn start(address: SocketAddr, observer: Observer) -> Outcome<Self> {
        let refused = |error| Error::io(format!("cannot listen on {address} for HTTP"), error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let router = router(observer);
        let run = move || {
            runtime.block_on(async move {
                let answering = axum::serve(listener, router);
                tokio::select! {
                    ended = answering.into_future() => {
                        if let Err(error) = ended {
                            tracing::error!(%error, "HTTP is not answered any more");
                        }
                    }
                    // Connections that are open are cut: nobody waits for a scrape.
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("tyr-http".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::io("cannot start a thread for HTTP", error))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panicked, and said so, or it ended.
            let _ = thread.join();
        }
    }
}

fn router(observer: Observer) -> Router {
    let metrics = Metrics::of_node(observer.clone());
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/health/live", get(show_live))
        .route("/health/ready", get(show_ready))
        .route("/status", get(show_status))
        .with_state(Arc::new(Sources { observer, metrics }))
}

async fn show_metrics(State(sight): State<Arc<Sources>>, headers: HeaderMap) -> Response {
    sight.metrics.answer(&headers)
}

async fn show_live(State(sight): State<Arc<Sources>>) -> Response {
    answer(&sight.observer.live())
}

async fn show_ready(State(sight): State<Arc<Sources>>) -> Response {
    answer(&sight.observer.ready())
}

async fn show_status(State(sight): State<Arc<Sources>>) -> Response {
    json_text(StatusCode::OK, &json!(sight.observer.report()))
}

fn answer(health: &Health) -> Response {
    let status = if health.is_well() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_text(status, &json!({"ok": health.is_well(), "reasons": health.reasons}))
}

fn json_text(status: StatusCode, value: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
