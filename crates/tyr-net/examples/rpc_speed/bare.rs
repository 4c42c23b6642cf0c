//! The least: length, number and bytes; a task that writes all that waits, one that reads, a table
//! of who waits for what.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};

/// Bytes of a request besides its length.
const REQUEST_LEN: usize = 60;

/// A server on a thread of its own, and who calls it.
pub struct Pair {
    runtime: Runtime,
    address: std::net::SocketAddr,
    in_flight: u64,
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("the system has descriptors")
}

impl Pair {
    pub fn start(in_flight: u64, answer_len: usize) -> Self {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                send.send(listener.local_addr().expect("it is bound")).expect("somebody waits");
                loop {
                    let (socket, _) = listener.accept().await.expect("a caller");
                    serve(socket, answer_len).await;
                }
            });
        });
        Self { runtime: runtime(), address: receive.recv().expect("it has a port"), in_flight }
    }

    /// Callers are where the socket is.
    pub fn run_here(&self, count: u64) {
        self.runtime.block_on(self.run(count, self.runtime.handle()));
    }

    /// Callers are on this thread, the socket on another.
    pub fn run_apart(&self, count: u64) {
        let sockets = runtime();
        let handle = sockets.handle().clone();
        let stop = Arc::new(tokio::sync::Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || sockets.block_on(stopped.notified()));
        self.runtime.block_on(self.run(count, &handle));
        stop.notify_one();
        thread.join().expect("no panic");
    }

    async fn run(&self, count: u64, sockets: &Handle) {
        let pending = Pending::default();
        let (ask, asked) = mpsc::unbounded_channel::<u64>();
        let (address, waiting) = (self.address, Arc::clone(&pending));
        let serving = sockets.spawn(async move {
            let socket = TcpStream::connect(address).await.expect("it listens");
            socket.set_nodelay(true).expect("it is a socket");
            let (reader, writer) = socket.into_split();
            let reading = tokio::spawn(read(reader, waiting));
            write(writer, asked).await;
            reading.await.expect("no panic");
        });
        let next = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..self.in_flight)
            .map(|_| tokio::spawn(call(pending.clone(), ask.clone(), next.clone(), count)))
            .collect();
        for caller in callers {
            caller.await.expect("no panic");
        }
        drop(ask);
        serving.await.expect("no panic");
    }
}

/// Cuts frames off what was read; each is a number and bytes.
fn frames(read: &mut BytesMut, mut take: impl FnMut(u64, BytesMut)) {
    while let Some(len) = read.first_chunk::<4>().map(|len| u32::from_le_bytes(*len) as usize) {
        if read.len() < 4 + len {
            return;
        }
        read.advance(4);
        let mut frame = read.split_to(len);
        take(frame.get_u64_le(), frame);
    }
}

fn put(out: &mut BytesMut, number: u64, bytes: &[u8]) {
    out.put_u32_le((8 + bytes.len()) as u32);
    out.put_u64_le(number);
    out.put_slice(bytes);
}

async fn serve(mut socket: TcpStream, answer_len: usize) {
    socket.set_nodelay(true).expect("it is a socket");
    let answer = vec![1; answer_len];
    let (mut read, mut out) = (BytesMut::new(), BytesMut::new());
    loop {
        read.reserve(64 << 10);
        match socket.read_buf(&mut read).await {
            Ok(0) | Err(_) => return,
            Ok(_) => frames(&mut read, |number, _| put(&mut out, number, &answer)),
        }
        socket.write_all_buf(&mut out).await.expect("the caller is there");
    }
}

type Pending = Arc<Mutex<HashMap<u64, oneshot::Sender<BytesMut>>>>;

/// Writes requests, many at once.
async fn write(mut writer: OwnedWriteHalf, mut asked: mpsc::UnboundedReceiver<u64>) {
    let (mut out, mut numbers) = (BytesMut::new(), Vec::new());
    while asked.recv_many(&mut numbers, 1024).await > 0 {
        for number in numbers.drain(..) {
            put(&mut out, number, &[2; REQUEST_LEN - 8]);
        }
        writer.write_all_buf(&mut out).await.expect("the server is there");
    }
}

/// Reads answers.
async fn read(mut reader: OwnedReadHalf, pending: Pending) {
    let mut read = BytesMut::new();
    loop {
        read.reserve(64 << 10);
        match reader.read_buf(&mut read).await {
            Ok(0) | Err(_) => return,
            Ok(_) => frames(&mut read, |number, bytes| {
                let waiter = pending.lock().remove(&number).expect("somebody waits");
                let _ = waiter.send(bytes);
            }),
        }
    }
}

/// Asks, and waits for the answer, until all have.
async fn call(pending: Pending, ask: mpsc::UnboundedSender<u64>, next: Arc<AtomicU64>, count: u64) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        let (answer, answered) = oneshot::channel();
        pending.lock().insert(number, answer);
        ask.send(number).expect("the writer is there");
        answered.await.expect("an answer");
    }
}
