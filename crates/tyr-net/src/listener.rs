//! The port: takes callers, and sees that those who do not say hello harm nobody.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tyr_types::{Error, Result};

use super::greeting::{Failure, flooded, let_go, welcome};
use super::refusal::Refusal;
use super::{Shared, connection};

/// Callers that the system keeps until we take them: all clients of a node may come at once when
/// it starts.
const BACKLOG: u32 = 1024;

/// After the system had no descriptor for a caller, the next is taken after this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Opens a port and takes callers from now on; answers its address.
///
/// # Errors
/// `Unavailable` when that is not possible, with what to do.
pub(super) fn listen(shared: &Arc<Shared>, address: SocketAddr) -> Result<SocketAddr> {
    let handle = shared.threads.next();
    let entered = handle.enter();
    let open = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Callers of the process before this one may linger.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let local = listener.local_addr()?;
        Ok((listener, local))
    };
    let (listener, local) = open().map_err(|error: std::io::Error| {
        Error::io(
            format!(
                "cannot listen on {address}; does another process, and is the address this \
                 machine's?"
            ),
            error,
        )
    })?;
    drop(entered);
    handle.spawn(accept(Arc::clone(shared), listener));
    Ok(local)
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut is_failing = false;
    loop {
        match listener.accept().await {
            Ok((socket, from)) => {
                is_failing = false;
                take(&shared, socket, from);
            }
            Err(error) => {
                // Said once, not each time.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!("cannot take callers: {error}; is the limit of files too low?");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Gives a caller to the thread whose turn it is.
fn take(shared: &Arc<Shared>, socket: TcpStream, from: SocketAddr) {
    let shared = Arc::clone(shared);
    if shared.threads.count() == 1 {
        tokio::spawn(async move { attend(&shared, socket, from).await });
        return;
    }
    let Ok(socket) = socket.into_std() else { return };
    let thread = shared.threads.next().clone();
    thread.spawn(async move {
        // The socket is watched by the thread that asks for it.
        if let Ok(socket) = TcpStream::from_std(socket) {
            attend(&shared, socket, from).await;
        }
    });
}

/// Greets a caller and serves its connection.
async fn attend(shared: &Arc<Shared>, socket: TcpStream, from: SocketAddr) {
    let within = shared.config.greeting_timeout;
    let turn = shared.waiting.enter(from.ip());
    let welcomed = timeout(within, welcome(shared, socket, from, &turn));
    let greeted = tokio::select! {
        biased;
        welcomed = welcomed => welcomed.unwrap_or_else(|_| Err(slow(within))),
        () = turn.pushed_out() => Err(flooded()),
    };
    match greeted {
        Ok(Some(greeted)) => {
            drop(turn);
            let who = greeted.peer.address;
            tracing::debug!(%from, ?who, "connected");
            let reason = connection::run(shared, greeted).await;
            tracing::debug!(%from, ?who, "connection ended: {reason}");
        }
        Ok(None) => {}
        Err(Failure { refusal, error, told }) => {
            shared.refusals.note(refusal, from, &error);
            if let Some(stream) = told {
                tokio::select! {
                    () = let_go(stream) => {}
                    () = turn.pushed_out() => {}
                }
            }
        }
    }
}

fn slow(within: Duration) -> Failure {
    let error = Error::unavailable(format!("it did not say hello within {within:?}"));
    Failure { refusal: Refusal::Slow, error, told: None }
}
