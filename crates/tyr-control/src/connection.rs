//! The client's side of a control connection: many questions in flight on one stream.
//!
//! Two tasks carry it, one that writes what is asked and one that hands the answers out. When
//! either ends the connection is over, and everybody who waits is told.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tyr_protocol::wire;

use super::connect::Stream;
use super::frame::{self, FRAME_LEN_MAX};
use super::hello::{HELLO_LEN_MAX, Hello, MAGIC, VERSION, Welcome};
use super::message::{Answer, Ask, Fault, Question, Reply, Request};

/// Frames that wait to be written; who asks more waits.
const QUEUE_LEN: usize = 64;
/// Answers to one question that nobody has taken yet. A watch that does not keep up is ended, and
/// begins again from the revision that it has seen.
const ANSWERS_LEN: usize = 64;

/// Why a question has no answer.
#[derive(Debug)]
pub enum CallError {
    /// The other end says why.
    Fault(Fault),
    /// It was never sent; nothing was done.
    NotSent(String),
    /// The same, because the other end does not let this one in.
    Denied(String),
    /// The connection broke; what was done is not known.
    Lost(String),
}

impl CallError {
    /// What happened, in words.
    pub fn text(&self) -> String {
        match self {
            Self::Fault(Fault::NotLeader) => "the node does not lead the monitors".to_owned(),
            Self::Fault(Fault::Refused(refusal) | Fault::Leaderless(refusal)) => {
                tyr_types::Error::from(refusal.clone()).to_string()
            }
            Self::NotSent(text) | Self::Denied(text) | Self::Lost(text) => text.clone(),
        }
    }
}

/// Who waits for answers.
#[derive(Default)]
struct Waiting {
    questions: HashMap<u64, mpsc::Sender<Result<Answer, Fault>>>,
    /// When the first of all questions was asked since anything was heard.
    unheard: Option<Instant>,
    /// Why the connection is over.
    closed: Option<String>,
}

/// An open connection.
pub struct Connection {
    cluster: Option<u128>,
    level: u8,
    next: AtomicU64,
    frames: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Mutex<Waiting>>,
    tasks: [AbortHandle; 2],
}

impl Connection {
    /// Begins a connection on this stream.
    ///
    /// # Errors
    /// `PermissionDenied` with the reason when the other end does not listen; what the stream says.
    pub async fn open(mut stream: Box<dyn Stream>, hello: &Hello) -> io::Result<Self> {
        stream.write_all(MAGIC).await?;
        stream.write_all(&VERSION.to_le_bytes()).await?;
        frame::send(&mut stream, hello).await?;
        let welcome = hear_welcome(&mut stream).await?;
        if let Some(refusal) = welcome.refusal {
            let text = tyr_types::Error::from(refusal).to_string();
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let (mut reading, writing) = tokio::io::split(stream);
        let (frames, queue) = mpsc::channel(QUEUE_LEN);
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let (for_writer, for_reader) = (Arc::clone(&waiting), Arc::clone(&waiting));
        let writer = tokio::spawn(async move {
            let ended = write_all(writing, queue).await;
            close(&for_writer, ended);
        });
        let reader = tokio::spawn(async move {
            let mut reading = BufReader::new(&mut reading);
            let ended = loop {
                match frame::receive(&mut reading, FRAME_LEN_MAX).await {
                    Ok(reply) => hand_out(&for_reader, reply),
                    Err(error) => break Err(error),
                }
            };
            close(&for_reader, ended);
        });
        let tasks = [writer.abort_handle(), reader.abort_handle()];
        let (cluster, level, next) = (welcome.cluster, welcome.level, AtomicU64::new(0));
        Ok(Self { cluster, level, next, frames, waiting, tasks })
    }

    /// The cluster that the other end is of.
    pub fn cluster(&self) -> Option<u128> {
        self.cluster
    }

    /// Whether the other end knows what is asked with this.
    pub fn understands(&self, request: &Request) -> bool {
        request.level() <= self.level
    }

    /// Whether nothing can be asked any more.
    pub fn is_closed(&self) -> bool {
        self.waiting.lock().closed.is_some()
    }

    /// Whether something was asked longer ago than this, and nothing was heard since: the other end
    /// may have gone without a word, and TCP takes minutes to find out.
    pub fn is_silent_for(&self, time: Duration) -> bool {
        self.waiting.lock().unheard.is_some_and(|since| since.elapsed() > time)
    }

    /// Asks, and waits for the one answer. Dropping it cancels the question.
    ///
    /// # Errors
    /// As [`CallError`] says.
    pub async fn call(&self, question: Question) -> Result<Answer, CallError> {
        self.ask(question).await?.next().await
    }

    /// Asks what is answered many times.
    ///
    /// # Errors
    /// As [`CallError`] says.
    pub async fn ask(&self, question: Question) -> Result<Answers, CallError> {
        if !self.understands(&question.request) {
            let text = "the other end is of an older release, and does not know what is asked";
            return Err(CallError::NotSent(text.to_owned()));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = frame::encode(&Ask::Question { number, question })
            .map_err(|error| CallError::NotSent(error.to_string()))?;
        let (sender, answers) = mpsc::channel(ANSWERS_LEN);
        {
            let mut waiting = self.waiting.lock();
            if let Some(why) = &waiting.closed {
                return Err(CallError::NotSent(why.clone()));
            }
            waiting.unheard.get_or_insert_with(Instant::now);
            waiting.questions.insert(number, sender);
        }
        let (waiting, frames) = (Arc::clone(&self.waiting), self.frames.clone());
        let open = Answers { number, answers, waiting, frames };
        match self.frames.send(frame).await {
            Ok(()) => Ok(open),
            Err(_) => Err(CallError::NotSent("the connection is closed".to_owned())),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        close(&self.waiting, Ok(()));
    }
}

/// The answers to one question. Dropping it says that nobody waits any more.
pub struct Answers {
    number: u64,
    answers: mpsc::Receiver<Result<Answer, Fault>>,
    waiting: Arc<Mutex<Waiting>>,
    frames: mpsc::Sender<Vec<u8>>,
}

impl Answers {
    /// The next answer.
    ///
    /// # Errors
    /// As [`CallError`] says.
    pub async fn next(&mut self) -> Result<Answer, CallError> {
        match self.answers.recv().await {
            Some(result) => result.map_err(CallError::Fault),
            None => {
                let why = self.waiting.lock().closed.clone();
                Err(CallError::Lost(why.unwrap_or_else(|| "answers were not taken".to_owned())))
            }
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let was_open = self.waiting.lock().questions.remove(&self.number).is_some();
        if was_open && let Ok(frame) = frame::encode(&Ask::Cancel { number: self.number }) {
            // When the queue is full the other end finds out when it answers.
            _ = self.frames.try_send(frame);
        }
    }
}

/// The other end's welcome. Who takes connections with TLS only cannot know which plane is meant
/// when it says so, and speaks as the data plane does.
async fn hear_welcome(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Welcome> {
    let mut first = [0; 4];
    stream.read_exact(&mut first).await?;
    if !wire::MAGIC.starts_with(&first) {
        return frame::receive(&mut (&first[..]).chain(stream), HELLO_LEN_MAX).await;
    }
    let mut read = BytesMut::from(&first[..]);
    loop {
        match wire::Hello::take(&mut read) {
            Ok(None) if stream.read_buf(&mut read).await? > 0 => {}
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(refusal) => return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal)),
        }
    }
}

/// Writes frames as they come, several at a time.
pub async fn write_all(
    stream: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut stream = tokio::io::BufWriter::new(stream);
    while let Some(frame) = queue.recv().await {
        stream.write_all(&frame).await?;
        if queue.is_empty() {
            stream.flush().await?;
        }
    }
    stream.shutdown().await
}

fn hand_out(waiting: &Mutex<Waiting>, reply: Reply) {
    let mut waiting = waiting.lock();
    waiting.unheard = None;
    let Some(sender) = waiting.questions.get(&reply.number) else { return };
    if sender.try_send(reply.result).is_err() {
        waiting.questions.remove(&reply.number);
    }
}

fn close(waiting: &Mutex<Waiting>, ended: io::Result<()>) {
    let mut waiting = waiting.lock();
    let why = match ended {
        Ok(()) => "the connection was closed".to_owned(),
        Err(error) => format!("the connection broke: {error}"),
    };
    waiting.closed.get_or_insert(why);
    waiting.questions.clear();
}
