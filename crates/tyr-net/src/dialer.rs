//! Connections of the control plane, from the side that opens them: the same sockets and the same
//! TLS as the data plane's.
//!
//! Who asks the control plane does not know yet which node is where. So there a node's certificate
//! has to name the cluster's domain, beside the name of the node itself.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tyr_types::{ErrorKind, Result};

use super::config::TlsConfig;
use super::peer::ByteStream;
use super::stream;
use super::tls::Tls;

/// How long a socket and TLS may take together: three repeated packets on a bad line.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// A peer that does not answer for this long is given up.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens connections of the control plane.
pub struct Dialer {
    tls: Option<(Tls, String)>,
}

impl Dialer {
    /// With TLS as it is said here, or in the clear.
    ///
    /// # Errors
    /// `InvalidArgument` when a file is not what it should be.
    pub fn new(config: Option<&TlsConfig>) -> Result<Self> {
        let read = |config: &TlsConfig| Tls::read(config).map(|tls| (tls, config.domain.clone()));
        Ok(Self { tls: config.map(read).transpose()? })
    }

    /// A connection to `host:port`.
    ///
    /// # Errors
    /// What the network says; `PermissionDenied` with what TLS says; `ConnectionAborted` when the
    /// connection ended before TLS had come about.
    pub async fn dial(&self, address: &str) -> io::Result<Box<dyn ByteStream>> {
        let dialed = tokio::time::timeout(DIAL_TIMEOUT, self.dial_slowly(address)).await;
        dialed.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{address} did not answer for {} s", DIAL_TIMEOUT.as_secs()),
            ))
        })
    }

    async fn dial_slowly(&self, address: &str) -> io::Result<Box<dyn ByteStream>> {
        let socket = TcpStream::connect(address).await?;
        stream::set_options(&socket, SILENCE_TIMEOUT)?;
        let Some((tls, domain)) = &self.tls else { return Ok(Box::new(socket)) };
        let secured = tls.connect(socket, domain).await;
        let secured = secured.map_err(|error| {
            let may_pass = error.kind() == ErrorKind::Unavailable;
            let denied = io::ErrorKind::PermissionDenied;
            let kind = if may_pass { io::ErrorKind::ConnectionAborted } else { denied };
            io::Error::new(kind, error)
        })?;
        Ok(Box::new(secured))
    }
}
