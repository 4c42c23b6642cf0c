//! One connection's way out: messages gather in the outbox, and whoever holds the pen writes.
//!
//! ```text
//!   put ──encode──► outbox ══swap══► pen ──write──► socket
//!   (any thread,    (short lock)     (one writer at a time: who flushes, without waiting;
//!    short lock)                      when the socket is full, the connection's task)
//! ```
//!
//! Encoding and writing do not wait for each other: they have a buffer each, which are swapped.
//! Who flushes while another writes leaves it to that one, so that messages of many threads leave
//! in one write. A plain socket is written from the thread that flushes: nobody is woken, and what
//! fits into the socket's buffer is gone at once. With TLS the connection's task writes.
//!
//! Must not know: which connections there are, and who listens.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Buf;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;
use tyr_protocol::message::{Address, Envelope};
use tyr_protocol::wire::{Outgoing, encode};
use tyr_types::ErrorKind;

use super::peer::Peer;
use super::statistics::{Counters, add};

/// More than this is left to the connection's task: copying it to the system takes longer than
/// waking the task, and who flushes has others to flush.
const DIRECT_LEN_MAX: usize = 256 << 10;

/// Pieces of one write: a message of 16 KiB or more takes two.
const PIECES_MAX: usize = 32;

const _: () = assert!(PIECES_MAX >= 2 && DIRECT_LEN_MAX > 0);

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It will be written with the next flush.
    Taken {
        /// Whether nothing waited for that flush before.
        is_first: bool,
    },
    /// The connection is ending.
    Ended,
    /// Too much waits already.
    Full,
    /// It is longer than a frame may be.
    TooLong,
    /// It needs a higher feature level than the peer speaks.
    TooNew,
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutboxBounds {
    /// On one connection, before a message is refused.
    pub one: usize,
    /// On all of clients.
    pub clients: usize,
}

#[derive(Debug, Default)]
struct Outbox {
    outgoing: Outgoing,
    messages: u64,
    /// Whether it has been put among those to flush since it was emptied last.
    is_listed: bool,
    is_ended: bool,
}

/// A connection as others see it.
#[derive(Debug)]
pub(super) struct Link {
    pub peer: Arc<Peer>,
    bounds: OutboxBounds,
    counters: Arc<Counters>,
    outbox: Mutex<Outbox>,
    /// What is being written.
    pen: Mutex<Outgoing>,
    /// Bytes in the pen, for who looks at the outbox.
    pen_len: AtomicUsize,
    /// Set by who wants to flush; who holds the pen looks again after giving it back.
    is_due: AtomicBool,
    /// The socket, unless TLS is above it.
    socket: Option<OwnedWriteHalf>,
    /// Wakes the task that writes.
    woken: Notify,
    /// Wakes the task that reads, for the end.
    ended: Notify,
    reason: OnceLock<String>,
}

/// Whether there is more to write when the socket takes it.
enum Written {
    All,
    Blocked,
}

impl Link {
    pub fn new(
        peer: Arc<Peer>,
        socket: Option<OwnedWriteHalf>,
        bounds: OutboxBounds,
        counters: Arc<Counters>,
    ) -> Self {
        debug_assert!(bounds.one > 0 && bounds.clients > 0, "something may wait");
        let outgoing = Outgoing::speaking(peer.level);
        let pen = Mutex::new(Outgoing::speaking(peer.level));
        Self {
            peer,
            bounds,
            counters,
            outbox: Mutex::new(Outbox { outgoing, ..Outbox::default() }),
            pen,
            pen_len: AtomicUsize::new(0),
            is_due: AtomicBool::new(false),
            socket,
            woken: Notify::new(),
            ended: Notify::new(),
            reason: OnceLock::new(),
        }
    }

    pub fn is_client(&self) -> bool {
        matches!(self.peer.address, Address::Client(_))
    }

    /// Encodes a message into the outbox.
    pub fn put(&self, envelope: &Envelope) -> Put {
        let mut outbox = self.outbox.lock();
        if outbox.is_ended {
            return Put::Ended;
        }
        let before = outbox.outgoing.remaining();
        if before + self.pen_len.load(Ordering::Relaxed) > self.bounds.one {
            return Put::Full;
        }
        debug_assert_eq!(before > 0, outbox.messages > 0, "bytes that wait are of messages");
        let is_client = self.is_client();
        let all_len = &self.counters.client_outboxes_len;
        if is_client && all_len.load(Ordering::Relaxed) > self.bounds.clients {
            return Put::Full;
        }
        if let Err(error) = encode(envelope, &mut outbox.outgoing) {
            return match error.kind() {
                ErrorKind::Unavailable => Put::TooNew,
                _ => Put::TooLong,
            };
        }
        debug_assert!(outbox.outgoing.remaining() > before, "a message has bytes");
        if is_client {
            all_len.fetch_add(outbox.outgoing.remaining() - before, Ordering::Relaxed);
        }
        outbox.messages += 1;
        Put::Taken { is_first: !std::mem::replace(&mut outbox.is_listed, true) }
    }

    /// Writes what was put in as far as the socket takes it now; the rest follows by itself.
    pub fn flush(&self) {
        if self.socket.is_none() || self.waiting_len() > DIRECT_LEN_MAX {
            self.woken.notify_one();
            return;
        }
        self.is_due.store(true, Ordering::SeqCst);
        while self.is_due.load(Ordering::SeqCst) {
            // Who has it looks at `is_due` after it gave it back, so nothing stays.
            let Some(pen) = self.pen.try_lock() else { return };
            if let Written::Blocked = self.write_and_end(pen) {
                self.woken.notify_one();
                return;
            }
        }
    }

    /// Bytes that wait to be written.
    pub fn waiting_len(&self) -> usize {
        self.pen_len.load(Ordering::Relaxed) + self.outbox.lock().outgoing.remaining()
    }

    /// Nothing more is sent or received; the first reason given is kept.
    pub fn end(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        let mut outbox = self.outbox.lock();
        if !outbox.is_ended {
            outbox.is_ended = true;
            let dropped = std::mem::take(&mut outbox.outgoing).remaining();
            drop(outbox);
            self.forget_len(dropped);
        }
        debug_assert!(self.is_ended(), "who has ended knows why");
        self.woken.notify_one();
        self.ended.notify_one();
    }

    /// Until [`Link::end`] is called.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Why it ended.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    fn is_ended(&self) -> bool {
        self.reason.get().is_some()
    }

    /// Bytes of a client do not wait any more.
    fn forget_len(&self, len: usize) {
        if self.is_client() {
            let before = self.counters.client_outboxes_len.fetch_sub(len, Ordering::Relaxed);
            debug_assert!(before >= len, "what goes was counted when it came");
        }
    }

    /// Takes the outbox's content into an empty pen; false when there is none.
    fn refill(&self, pen: &mut Outgoing) -> bool {
        debug_assert!(!pen.has_remaining(), "what is being written stays in its order");
        let mut outbox = self.outbox.lock();
        outbox.is_listed = false;
        if !outbox.outgoing.has_remaining() {
            return false;
        }
        debug_assert!(!outbox.is_ended, "who has ended holds nothing");
        std::mem::swap(&mut outbox.outgoing, pen);
        debug_assert!(!outbox.outgoing.has_remaining(), "all of the outbox is taken");
        // Under the lock, so that nobody sees the bytes in neither place.
        self.pen_len.store(pen.remaining(), Ordering::Relaxed);
        let messages = std::mem::take(&mut outbox.messages);
        drop(outbox);
        debug_assert!(messages > 0, "bytes are of messages");
        add(&self.counters.messages_sent, messages);
        true
    }

    /// So many bytes of the pen are written.
    fn advance(&self, pen: &mut Outgoing, len: usize) {
        debug_assert!(len <= pen.remaining(), "no more is written than there was");
        pen.advance(len);
        self.pen_len.store(pen.remaining(), Ordering::Relaxed);
        self.forget_len(len);
        add(&self.counters.writes, 1);
        add(&self.counters.bytes_sent, len as u64);
    }

    /// [`Link::write`], where an error ends the connection.
    fn write_and_end(&self, mut pen: MutexGuard<'_, Outgoing>) -> Written {
        self.is_due.store(false, Ordering::SeqCst);
        match self.write(&mut pen) {
            Ok(written) => written,
            Err(error) => {
                self.forget_pen(&mut pen);
                drop(pen);
                self.end(format!("sending failed: {error}"));
                Written::All
            }
        }
    }

    fn forget_pen(&self, pen: &mut Outgoing) {
        self.forget_len(std::mem::take(pen).remaining());
        debug_assert!(!pen.has_remaining(), "what is forgotten is not written");
        self.pen_len.store(0, Ordering::Relaxed);
    }

    /// Writes all there is, until the socket takes no more.
    fn write(&self, pen: &mut Outgoing) -> io::Result<Written> {
        let Some(socket) = &self.socket else { return Ok(Written::All) };
        loop {
            if !pen.has_remaining() && !self.refill(pen) {
                return Ok(Written::All);
            }
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let count = pen.chunks_vectored(&mut pieces);
            debug_assert!((1..=PIECES_MAX).contains(&count), "a pen with bytes has pieces");
            let written = match &pieces[..count] {
                [piece] => socket.try_write(piece),
                several => socket.try_write_vectored(several),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => self.advance(pen, len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Written::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The task that writes what a plain socket did not take at once.
    pub async fn write_rest(&self) {
        let Some(socket) = &self.socket else { return };
        loop {
            self.woken.notified().await;
            loop {
                if self.is_ended() {
                    return self.forget_pen(&mut self.pen.lock());
                }
                let is_ready = tokio::select! {
                    biased;
                    ready = socket.writable() => ready,
                    () = self.until_ended() => Ok(()),
                };
                if let Err(error) = is_ready {
                    self.end(format!("sending failed: {error}"));
                }
                if self.is_ended() {
                    continue;
                }
                if let Written::All = self.write_and_end(self.pen.lock()) {
                    break;
                }
            }
            if self.is_due.load(Ordering::SeqCst) {
                self.flush();
            }
        }
    }

    /// The task that writes when TLS lies between.
    pub async fn write_through(&self, mut stream: impl AsyncWrite + Unpin) {
        let mut pen = Outgoing::speaking(self.peer.level);
        loop {
            self.woken.notified().await;
            while !self.is_ended() && self.refill(&mut pen) {
                let len = pen.remaining();
                let written = async {
                    stream.write_all_buf(&mut pen).await?;
                    stream.flush().await
                };
                let result = tokio::select! {
                    biased;
                    result = written => result,
                    () = self.until_ended() => Ok(()),
                };
                debug_assert!(pen.remaining() <= len, "nothing is put into a pen that writes");
                debug_assert!(
                    result.is_err() || !pen.has_remaining() || self.is_ended(),
                    "all of it is written, unless the connection ends"
                );
                let written = len - pen.remaining();
                self.forget_len(len);
                add(&self.counters.writes, 1);
                add(&self.counters.bytes_sent, written as u64);
                self.pen_len.store(0, Ordering::Relaxed);
                if let Err(error) = result {
                    self.end(format!("sending failed: {error}"));
                }
            }
            if self.is_ended() {
                return;
            }
        }
    }

    /// As [`Link::ended`], for the task that writes, in the middle of it. Wakings meanwhile are
    /// lost, which is well: it goes on until all is written.
    async fn until_ended(&self) {
        while !self.is_ended() {
            self.woken.notified().await;
        }
    }
}
