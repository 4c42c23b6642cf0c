//! A connection in use: what comes in is decoded and handed on, what goes out is [`Link`]'s.
//!
//! Must not know: how it came about, and what messages mean.

use std::sync::Arc;
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tyr_protocol::message::{Address, Envelope};
use tyr_protocol::wire::{Decoder, Frame, READ_BUFFER_LEN};
use tyr_types::{Error, Result};

use super::Shared;
use super::greeting::Greeted;
use super::link::{Link, OutboxBounds};
use super::peer::Peer;
use super::statistics::add;
use super::stream::Stream;
use super::tls;

/// Read at once in the middle of a message that is longer than the read buffer.
const LONG_READ_LEN: usize = 1 << 20;

/// While clients wait, the receiver is asked again after this long, should nobody say that it is
/// over.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);

const _: () = assert!(READ_BUFFER_LEN <= LONG_READ_LEN);

/// Runs a connection until it ends; answers why it did.
pub(super) async fn run(shared: &Arc<Shared>, greeted: Greeted) -> String {
    let Greeted { peer, stream, decoder, place } = greeted;
    match stream {
        Stream::Plain(socket) => {
            let (reader, writer) = socket.into_split();
            let link = Arc::new(new_link(shared, &peer, Some(writer)));
            let writing = Arc::clone(&link);
            tokio::spawn(async move {
                writing.write_rest().await;
                drop(place);
            });
            serve(shared, &link, reader, decoder).await
        }
        Stream::Tls(stream) => {
            let (reader, writer) = tokio::io::split(stream);
            let link = Arc::new(new_link(shared, &peer, None));
            let writing = Arc::clone(&link);
            tokio::spawn(async move {
                writing.write_through(writer).await;
                drop(place);
            });
            serve(shared, &link, reader, decoder).await
        }
    }
}

fn new_link(
    shared: &Shared,
    peer: &Arc<Peer>,
    socket: Option<tokio::net::tcp::OwnedWriteHalf>,
) -> Link {
    let bounds = OutboxBounds {
        one: shared.config.outbox_len_max,
        clients: shared.config.client_outboxes_len_max,
    };
    Link::new(Arc::clone(peer), socket, bounds, Arc::clone(&shared.counters))
}

async fn serve(
    shared: &Shared,
    link: &Arc<Link>,
    reader: impl AsyncRead + Unpin,
    decoder: Decoder,
) -> String {
    if let Err(error) = shared.links.insert(link) {
        link.end(error.to_string());
        return error.to_string();
    }
    let receive = &shared.parts.receive;
    receive.here(&link.peer);
    let ended = tokio::select! {
        biased;
        ended = read(shared, link, reader, decoder) => ended,
        () = link.ended() => Ok(()),
    };
    if let Err(error) = ended {
        link.end(error.to_string());
    }
    debug_assert!(link.reason().is_some(), "a connection ends for a reason");
    shared.links.remove(link);
    receive.gone(&link.peer);
    link.reason().unwrap_or("the connection has ended").to_owned()
}

/// Reads until the stream is over or breaks the protocol.
async fn read(
    shared: &Shared,
    link: &Link,
    mut reader: impl AsyncRead + Unpin,
    mut decoder: Decoder,
) -> Result<()> {
    let peer = &link.peer;
    let is_client = link.is_client();
    debug_assert_ne!(peer.address, Address::Monitors, "monitors have no connections of their own");
    let mut batch = Vec::new();
    loop {
        let taken = take_frames(shared, peer, &mut decoder, &mut batch);
        let longest = taken.inspect_err(|error| {
            add(&shared.counters.broken, 1);
            tracing::warn!(from = %peer.socket, who = ?peer.address, "connection closed: {error}");
        })?;
        if !batch.is_empty() {
            add(&shared.counters.messages_received, batch.len() as u64);
            shared.parts.receive.receive(peer, &mut batch);
            batch.clear();
        }
        if longest > LONG_READ_LEN && decoder.pending() == 0 {
            // Its buffer is as large as the message was.
            decoder = decoder.anew();
        }
        if is_client {
            wait_while_busy(shared).await;
        }
        // More than a buffer at once only where a message needs it: what is read is handed on
        // together.
        let is_long = decoder.pending() >= READ_BUFFER_LEN;
        let len_max = if is_long { LONG_READ_LEN } else { READ_BUFFER_LEN };
        let len = reader.read_buf(&mut decoder.buffer().limit(len_max)).await;
        let len = len.map_err(|error| {
            tls::explain(&error).unwrap_or_else(|| Error::io("the connection broke", error))
        })?;
        if len == 0 {
            return Err(Error::unavailable("the peer closed the connection"));
        }
        debug_assert!(len <= len_max, "no more is read than was asked for");
        add(&shared.counters.bytes_received, len as u64);
        add(&shared.counters.reads, 1);
    }
}

/// Decodes the whole frames that are in; answers the length of the longest. What is not understood
/// is told to the receiver by itself: it harms nothing else that comes on the connection.
fn take_frames(
    shared: &Shared,
    peer: &Arc<Peer>,
    decoder: &mut Decoder,
    batch: &mut Vec<Envelope>,
) -> Result<usize> {
    debug_assert!(batch.is_empty(), "what came before was handed on");
    let (mut longest, mut pending) = (0, decoder.pending());
    while let Some(frame) = decoder.frame()? {
        debug_assert!(decoder.pending() < pending, "a frame has bytes");
        longest = longest.max(pending - decoder.pending());
        pending = decoder.pending();
        match frame {
            Frame::Message(envelope) => {
                check_sender(peer, envelope.from)?;
                batch.push(envelope);
            }
            Frame::Unread(unread) => {
                check_sender(peer, unread.from)?;
                add(&shared.counters.not_understood, 1);
                shared.unknown_messages.note(&unread);
                shared.parts.receive.unread(peer, unread);
            }
        }
    }
    Ok(longest)
}

/// Who connected as a client speaks as that client only; a node speaks also for the monitors, who
/// have no connections of their own.
fn check_sender(peer: &Peer, from: Address) -> Result<()> {
    let is_fine = match peer.address {
        Address::Node(_) => from == peer.address || from == Address::Monitors,
        Address::Client(_) | Address::Monitors => from == peer.address,
    };
    match is_fine {
        true => Ok(()),
        false => Err(Error::corrupt(format!(
            "a message says that it is from {from:?}, it came from {:?}",
            peer.address
        ))),
    }
}

async fn wait_while_busy(shared: &Shared) {
    while shared.parts.receive.is_busy() {
        let resumed = shared.resumed.notified();
        // From its making on it hears of a resume.
        if shared.parts.receive.is_busy() {
            let _ = tokio::time::timeout(BUSY_INTERVAL, resumed).await;
        }
    }
}
