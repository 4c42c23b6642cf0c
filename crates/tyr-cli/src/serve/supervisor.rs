//! Tells systemd, or whoever speaks its protocol, how the process stands: a datagram to a socket.

use std::os::unix::net::UnixDatagram;

/// Whoever wants to be told.
#[derive(Debug, Default)]
pub struct Supervisor(Option<UnixDatagram>);

impl Supervisor {
    /// The one that the environment names, if it does.
    pub fn find() -> Self {
        std::env::var("NOTIFY_SOCKET").map_or_else(|_| Self::default(), |name| Self::at(&name))
    }

    /// The one at this path; `@` stands for the abstract names of Linux.
    fn at(name: &str) -> Self {
        let connected = UnixDatagram::unbound().and_then(|socket| {
            match name.strip_prefix('@') {
                #[cfg(target_os = "linux")]
                Some(rest) => {
                    use std::os::linux::net::SocketAddrExt;
                    let address = std::os::unix::net::SocketAddr::from_abstract_name(rest)?;
                    socket.connect_addr(&address)?;
                }
                #[cfg(not(target_os = "linux"))]
                Some(_) => return Err(std::io::ErrorKind::Unsupported.into()),
                None => socket.connect(name)?,
            }
            // A supervisor that does not listen must not hold the node up.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        if let Err(error) = &connected {
            tracing::warn!(%error, name, "the supervisor named by NOTIFY_SOCKET is not reached");
        }
        Self(connected.ok())
    }

    /// Tells it, if there is one.
    pub fn tell(&mut self, what: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(what.as_bytes())
        {
            tracing::warn!(%error, what, "the supervisor is not told any more");
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_in_one_datagram_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut supervisor = Supervisor::at(path.to_str().unwrap());
        supervisor.tell("READY=1");
        supervisor.tell("STOPPING=1");
        let mut bytes = [0; 32];
        for what in ["READY=1", "STOPPING=1"] {
            let len = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..len], what.as_bytes());
        }
        drop(socket);
        supervisor.tell("READY=1");
        assert!(supervisor.0.is_none(), "nobody listens any more");
        assert!(Supervisor::at("/nowhere/at/all").0.is_none());
    }
}
