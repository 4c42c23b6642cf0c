//! The collector over HTTP/1.1: one connection, kept as long as it lasts.

use std::pin::pin;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::otlp;

/// How long a post may take with all that belongs to it.
const POST_MAX: Duration = Duration::from_secs(5);

/// Bytes of an answer that are looked at: it says what was refused, if anything.
const ANSWER_LEN_MAX: usize = 64 << 10;

/// A collector as a node sees it.
#[derive(Debug)]
pub(super) struct Collector {
    endpoint: Endpoint,
    connection: Option<SendRequest<String>>,
}

/// Why a collector did not take what was posted.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was not reached, or has no time: the same may be taken later.
    Later(String),
    /// It will never take this.
    Never(String),
}

impl Collector {
    /// The collector there; nothing is connected yet.
    pub fn at(endpoint: Endpoint) -> Self {
        Self { endpoint, connection: None }
    }

    /// Where it is.
    pub fn authority(&self) -> &str {
        self.endpoint.authority()
    }

    /// Posts a request; answers how many spans of it were refused.
    ///
    /// # Errors
    /// What [`Failure`] says, within [`POST_MAX`].
    pub async fn post(&mut self, body: String) -> Result<u64, Failure> {
        let answered = timeout(POST_MAX, self.ask(body)).await;
        let answered = answered.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
        let (status, answer) = answered.map_err(Failure::Later)?;
        let said = format!("it answers {status}");
        match status {
            _ if status.is_success() => Ok(otlp::rejected(&answer)),
            // These, says the protocol, may be tried again, and no others.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Failure::Later(said)),
            _ => Err(Failure::Never(said)),
        }
    }

    async fn ask(&mut self, body: String) -> Result<(StatusCode, Vec<u8>), String> {
        if let Some(kept) = self.connection.take().filter(|kept| !kept.is_closed()) {
            // A collector ends a connection when it likes. Then it is asked on a new one.
            if let Ok(answer) = self.ask_on(kept, body.clone()).await {
                return Ok(answer);
            }
        }
        let fresh = self.connect().await?;
        self.ask_on(fresh, body).await
    }

    async fn connect(&self) -> Result<SendRequest<String>, String> {
        let place = (self.endpoint.host(), self.endpoint.port());
        let stream = TcpStream::connect(place).await.map_err(|error| error.to_string())?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // Who asks on it is told of what goes wrong.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Asks on this connection, and keeps it if it can be used again.
    async fn ask_on(
        &mut self,
        mut connection: SendRequest<String>,
        body: String,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let request = Request::post(self.endpoint.path())
            .header(header::HOST, self.endpoint.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| error.to_string())?;
        let exchange = async {
            connection.ready().await?;
            let response = connection.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, read(response.into_body()).await?))
        };
        let (status, answer) = exchange.await.map_err(|error| error.to_string())?;
        self.connection = Some(connection).filter(|_| answer.len() < ANSWER_LEN_MAX);
        Ok((status, answer))
    }
}

/// The beginning of an answer, and all of it where it is no longer.
async fn read(body: Incoming) -> hyper::Result<Vec<u8>> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let Ok(data) = frame?.into_data() else { continue };
        let room = ANSWER_LEN_MAX - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if bytes.len() == ANSWER_LEN_MAX {
            break;
        }
    }
    Ok(bytes)
}
