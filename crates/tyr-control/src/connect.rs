//! How a control connection comes to be: over TCP, or whatever a driver or a test puts here.

use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use tyr_net::Dialer;

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// A stream that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Opens streams to other nodes.
pub trait Connect: Send + Sync + 'static {
    /// A stream to this address. It may be given up at any time by dropping it.
    ///
    /// # Errors
    /// What the network says.
    fn connect<'a>(&'a self, address: &'a str) -> Opening<'a>;
}

/// As the data plane does: over TCP, with TLS when that is configured.
impl Connect for Dialer {
    fn connect<'a>(&'a self, address: &'a str) -> Opening<'a> {
        Box::pin(async move {
            let stream = self.dial(address).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// Plain TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn connect<'a>(&'a self, address: &'a str) -> Opening<'a> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
