//! A socket with or without TLS above it, and what is set on every socket.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::peer::ByteStream;

/// Probes of a silent peer before it is given up.
const PROBES: u32 = 3;

/// Sets what every connection of ours has: nothing is held back to be sent with what follows, and
/// a peer that says nothing for so long, not even that it got what was sent, is given up.
///
/// A half of the time passes before the first probe, so that the last has time to be answered.
pub(super) fn set_options(socket: impl AsFd, silence_timeout: Duration) -> io::Result<()> {
    let socket = socket.as_fd();
    debug_assert!(
        silence_timeout >= Duration::from_secs(1),
        "the system counts seconds, not {silence_timeout:?}: the configuration was checked"
    );
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    let idle = (silence_timeout / 2).max(Duration::from_secs(1));
    let interval = (silence_timeout / 2 / PROBES).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(idle.as_secs()))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(interval.as_secs()))?;
    sockopt::set_tcp_keepcnt(socket, PROBES)?;
    // Elsewhere what was sent and not confirmed is repeated for longer; probes find out anyway.
    #[cfg(target_os = "linux")]
    {
        let timeout_ms = u32::try_from(silence_timeout.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, timeout_ms)?;
    }
    Ok(())
}

/// A socket, with or without TLS.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The certificate that the other end showed.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => {
                let (_, session) = stream.get_ref();
                session.peer_certificates()?.first().map(|first| first.clone().into_owned())
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A stream of which something was read already, from its first byte on again.
#[derive(Debug)]
struct Rewound {
    read: BytesMut,
    stream: Stream,
}

impl Rewound {
    pub fn new(read: BytesMut, stream: Stream) -> Self {
        Self { read, stream }
    }
}

/// A stream on its way to another runtime, which watches its socket from then on. With TLS above it
/// the thread that took it goes on watching.
#[derive(Debug)]
pub struct Unopened {
    read: BytesMut,
    stream: Unwatched,
}

#[derive(Debug)]
enum Unwatched {
    Plain(std::net::TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Unopened {
    /// A stream of which `read` has been read already.
    pub(super) fn new(read: BytesMut, stream: Stream) -> io::Result<Self> {
        let stream = match stream {
            Stream::Plain(socket) => Unwatched::Plain(socket.into_std()?),
            Stream::Tls(stream) => Unwatched::Tls(stream),
        };
        Ok(Self { read, stream })
    }

    /// Opens it for the runtime in which it is called, from its first byte on.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn open(self) -> io::Result<Box<dyn ByteStream>> {
        let stream = match self.stream {
            Unwatched::Plain(socket) => Stream::Plain(TcpStream::from_std(socket)?),
            Unwatched::Tls(stream) => Stream::Tls(stream),
        };
        Ok(Box::new(Rewound::new(self.read, stream)))
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let len = this.read.len().min(buf.remaining());
        buf.put_slice(&this.read[..len]);
        this.read.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_is_given_up_within_ten_seconds() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_options(&socket, Duration::from_secs(10)).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        let idle = sockopt::tcp_keepidle(&socket).unwrap();
        let interval = sockopt::tcp_keepintvl(&socket).unwrap();
        let probes = sockopt::tcp_keepcnt(&socket).unwrap();
        assert!(idle + interval * probes <= Duration::from_secs(10));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 10_000);
    }
}
