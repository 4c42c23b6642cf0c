//! The answering side of a control connection: who is there, and an answer to each question.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tyr_types::{Error, ErrorKind, Result};

use crate::audit;
use crate::monitor::Monitor;
use crate::options::Describe;
use tyr_control::call::{CallAnswer, CallKind, Called};
use tyr_control::client::MetadataClient;
use tyr_control::connect::Stream;
use tyr_control::connection::write_all;
use tyr_control::frame::{self, FRAME_LEN_MAX};
use tyr_control::hello::{HELLO_LEN_MAX, Hello, Identity, LEVEL, MAGIC, VERSION, Welcome};
use tyr_control::message::{Answer, Ask, Fault, Question, Reply, Request, WATCH_QUIET};
use tyr_control::usage::NodeUsage;
use tyr_metadata::Actor;

#[cfg(test)]
mod tests;

/// Questions of one connection that are worked on at once; who asks more is not listened to
/// meanwhile. Many watches, and a program that asks from many threads.
const OPEN_MAX: usize = 256;

/// How long somebody may take to say who they are.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Says who is there, from what they say of themselves; the driver adds what it knows of the
/// stream, such as a certificate.
pub type Authenticate = Arc<dyn Fn(&Hello) -> Result<Identity> + Send + Sync>;

/// Who answers at this node: its monitor, once the others have given it a vote. Before that it
/// knows nothing, and afterwards nothing new: then all but Raft is handed on to them.
#[derive(Clone)]
pub struct Answering {
    /// The monitor, if the node runs one.
    pub monitor: Option<Monitor>,
    /// Asks the other nodes, this one never; `None` where there is none.
    pub others: Option<MetadataClient>,
    /// How the node stands.
    pub report: Report,
    /// How much there is with the node.
    pub usage: Usage,
    /// What a change of an entry is.
    pub describe: Describe,
    /// Runs methods of objects.
    pub call: RunCall,
}

/// Says how a node stands, as JSON; `None` while it starts, and when it has stopped. May take its
/// time: it is asked on a thread where that holds nobody up.
pub type Report = Arc<dyn Fn() -> Option<Bytes> + Send + Sync>;

/// Says how much there is with a node; as [`Report`] it may take its time, and be nothing.
pub type Usage = Arc<dyn Fn() -> Option<NodeUsage> + Send + Sync>;

/// Runs a method of an object for somebody, or asks a seat, if that may have it done here. It is
/// waited for on the thread of the control plane, and must not hold that up.
pub type RunCall = Arc<dyn Fn(&Identity, CallKind, Called) -> Running + Send + Sync>;

/// A call under way. What was begun may go on when it is dropped.
pub type Running = Pin<Box<dyn Future<Output = CallAnswer> + Send>>;

impl Answering {
    /// Of a node that tells nothing of itself.
    pub fn new(monitor: Option<Monitor>, others: Option<MetadataClient>) -> Self {
        let (report, usage) = (Arc::new(|| None), Arc::new(|| None));
        let describe: Describe = Arc::new(|_, _, _| None);
        let unhosted = || Box::pin(std::future::ready(CallAnswer::Unhosted)) as Running;
        let call: RunCall = Arc::new(move |_, _, _| unhosted());
        Self { monitor, others, report, usage, describe, call }
    }

    /// The monitor, while it votes.
    fn voter(&self) -> Option<&Monitor> {
        self.monitor.as_ref().filter(|monitor| monitor.is_voter())
    }
}

/// Answers control connections. Clones are the same.
#[derive(Clone)]
pub struct Responder {
    answering: Answering,
    authenticate: Authenticate,
    /// One report is made at a time, however many ask.
    reporting: Arc<Semaphore>,
}

impl Responder {
    /// One for this node.
    pub fn new(answering: Answering, authenticate: Authenticate) -> Self {
        Self { answering, authenticate, reporting: Arc::new(Semaphore::new(1)) }
    }

    /// The same for callers who show in this way who they are.
    #[must_use]
    pub fn admitting(&self, authenticate: Authenticate) -> Self {
        Self { authenticate, ..self.clone() }
    }

    /// Serves a stream from its first byte; returns when it ends.
    ///
    /// # Errors
    /// `InvalidData` when it does not begin with [`MAGIC`], and as [`Responder::serve`].
    pub async fn accept(&self, mut stream: impl Stream) -> io::Result<()> {
        let mut magic = [0; 8];
        stream.read_exact(&mut magic).await?;
        match &magic == MAGIC {
            true => self.serve(stream).await,
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "no control connection")),
        }
    }

    /// Serves a stream of which [`MAGIC`] has been read; returns when it ends.
    ///
    /// # Errors
    /// What the stream says, and `InvalidData` for what makes no sense. Nobody need be told.
    pub async fn serve(&self, mut stream: impl Stream) -> io::Result<()> {
        let begun = tokio::time::timeout(HELLO_TIMEOUT, self.begin(&mut stream)).await;
        let Some(identity) = begun?? else { return stream.shutdown().await };
        let (reading, writing) = tokio::io::split(stream);
        let (frames, queue) = mpsc::channel(OPEN_MAX);
        // Aborted with everything else when this function ends.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { _ = write_all(writing, queue).await });
        let mut reading = BufReader::new(reading);
        let permits = Arc::new(Semaphore::new(OPEN_MAX));
        let mut open: HashMap<u64, AbortHandle> = HashMap::new();
        loop {
            let ask: Ask = frame::receive(&mut reading, FRAME_LEN_MAX).await?;
            while tasks.try_join_next().is_some() {}
            match ask {
                Ask::Question { number, question } => {
                    let permit = Arc::clone(&permits).acquire_owned().await;
                    let permit = permit.expect("nobody closes it");
                    let work =
                        self.clone().work(identity.clone(), number, question, frames.clone());
                    let task = tasks.spawn(async move {
                        work.await;
                        drop(permit);
                    });
                    open.insert(number, task);
                    if open.len() > 2 * OPEN_MAX {
                        open.retain(|_, task| !task.is_finished());
                    }
                }
                Ask::Cancel { number } => {
                    if let Some(task) = open.remove(&number) {
                        task.abort();
                    }
                }
            }
        }
    }

    /// Hears who is there, and says whether this listens.
    async fn begin(&self, stream: &mut impl Stream) -> io::Result<Option<Identity>> {
        let version = stream.read_u32_le().await?;
        let cluster = self.cluster();
        let heard = match version == VERSION {
            true => {
                let hello: Hello = frame::receive(stream, HELLO_LEN_MAX).await?;
                self.check(cluster, &hello)
            }
            false => Err(Error::unavailable(format!(
                "version {version} of the control plane is not spoken here, {VERSION} is; update \
                 the older program"
            ))),
        };
        let (identity, refusal) = match heard {
            Ok(identity) => (Some(identity), None),
            Err(error) => (None, Some(error.into())),
        };
        frame::send(stream, &Welcome { cluster, refusal, level: LEVEL }).await?;
        Ok(identity)
    }

    fn check(&self, cluster: Option<u128>, hello: &Hello) -> Result<Identity> {
        if let (Some(own), Some(meant)) = (cluster, hello.cluster)
            && own != meant
        {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("this node is of cluster {own:032x}, not of {meant:032x}"),
            ));
        }
        (self.authenticate)(hello)
    }

    fn cluster(&self) -> Option<u128> {
        let Answering { monitor, others, .. } = &self.answering;
        let own = monitor.as_ref().and_then(Monitor::cluster);
        own.or_else(|| others.as_ref().and_then(MetadataClient::cluster))
    }

    /// Works on one question until it is answered.
    async fn work(
        self,
        identity: Identity,
        number: u64,
        question: Question,
        frames: mpsc::Sender<Vec<u8>>,
    ) {
        // Only nodes speak for others.
        let actor = match (&identity, &question.actor) {
            (Identity::Node(_), Some(actor)) => actor.clone(),
            (Identity::Node(_), None) | (Identity::User { .. }, _) => identity.actor(),
        };
        if let Request::Watch { prefix, after } = question.request {
            return self.watch(actor, prefix, after, number, frames).await;
        }
        let (kind, called) = match question.request {
            Request::Call(called) => (CallKind::Object, called),
            Request::Seat(called) => (CallKind::Seat, called),
            request => {
                let question = Question { request, ..question };
                return self.consider(identity, actor, number, question, frames).await;
            }
        };
        let answer = (self.answering.call)(&identity, kind, called).await;
        _ = reply(&frames, number, Ok(Answer::Called(answer))).await;
    }

    /// Works on a question that is about the cluster, and for auditors if it changes that.
    async fn consider(
        self,
        identity: Identity,
        actor: Actor,
        number: u64,
        question: Question,
        frames: mpsc::Sender<Vec<u8>>,
    ) {
        let is_raft = matches!(question.request, Request::Raft(_));
        let change = self.describe(&identity, &question).await;
        let result = match (is_raft, &identity) {
            (true, Identity::User { .. }) => {
                let error = Error::new(ErrorKind::PermissionDenied, "only monitors speak Raft");
                Err(Fault::Refused(error.into()))
            }
            (true | false, _) => self.answer(actor, question).await,
        };
        if let Some(change) = change {
            audit::note(&identity, &change, &result);
        }
        _ = reply(&frames, number, result).await;
    }

    /// What a user is about to change, for auditors. What is there is looked up first: of an entry
    /// that is changed under the condition of its revision it is what is replaced.
    async fn describe(&self, identity: &Identity, question: &Question) -> Option<String> {
        if matches!(identity, Identity::Node(_)) {
            return None;
        }
        let mut known = HashMap::new();
        for path in audit::described(&question.request) {
            if audit::is_to_be_new(&question.request, path) {
                known.insert(path.clone(), None); // Whatever is there is not replaced.
                continue;
            }
            let (path, patience_ms) = (path.clone(), question.patience_ms);
            let request = Request::Get(path.clone());
            let look = Question { actor: None, is_handed_on: false, patience_ms, request };
            if let Ok(Answer::Entry(entry)) = self.answer(Actor::System, look).await {
                known.insert(path, entry.map(|entry| entry.value));
            }
        }
        audit::describe(&question.request, |path, new| {
            (self.answering.describe)(path, known.get(path)?.as_deref(), new)
        })
    }

    async fn answer(&self, actor: Actor, question: Question) -> Result<Answer, Fault> {
        if matches!(question.request, Request::Report) {
            let report = Arc::clone(&self.answering.report);
            return self.tell(move || report().map(Answer::Report)).await;
        }
        if matches!(question.request, Request::Usage) {
            let usage = Arc::clone(&self.answering.usage);
            return self.tell(move || usage().map(Answer::Usage)).await;
        }
        // Who is to vote gets there by Raft.
        let answers = match matches!(question.request, Request::Raft(_)) {
            true => self.answering.monitor.as_ref(),
            false => self.answering.voter(),
        };
        match (answers, &self.answering.others) {
            (Some(monitor), _) => monitor.answer(actor, question).await,
            (None, Some(others)) if !question.is_handed_on => {
                others.hand_on(Some(actor), question.request).await
            }
            (None, Some(_) | None) => Err(Fault::NotLeader),
        }
    }

    /// What this node says of itself. Whoever waits for the engine does not hold up the monitors'
    /// messages.
    async fn tell(
        &self,
        look: impl FnOnce() -> Option<Answer> + Send + 'static,
    ) -> Result<Answer, Fault> {
        let place = Arc::clone(&self.reporting).acquire_owned().await.expect("nobody closes it");
        let telling = move || {
            // Held until it is there, whether or not anybody waits for it yet.
            let _place = place;
            look()
        };
        match tokio::task::spawn_blocking(telling).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) | Err(_) => {
                Err(Fault::Refused(Error::unavailable("the node starts, or stops").into()))
            }
        }
    }

    /// Tells a watch what happens until nobody listens any more.
    async fn watch(
        &self,
        actor: Actor,
        prefix: String,
        after: u64,
        number: u64,
        frames: mpsc::Sender<Vec<u8>>,
    ) {
        match (self.answering.voter(), &self.answering.others) {
            (Some(monitor), _) => {
                let mut watch = monitor.watch(actor, prefix, after);
                loop {
                    let next = tokio::time::timeout(WATCH_QUIET, watch.next()).await;
                    let next = next.unwrap_or_else(|_| Ok((Vec::new(), watch.seen())));
                    if !tell(&frames, number, next).await {
                        return;
                    }
                }
            }
            (None, Some(others)) => {
                let mut watch = others.watch_as(Some(actor), prefix, after);
                loop {
                    let next = watch.next().await;
                    if !tell(&frames, number, next).await {
                        return;
                    }
                }
            }
            (None, None) => _ = reply(&frames, number, Err(Fault::NotLeader)).await,
        }
    }
}

type Told = Result<(Vec<tyr_metadata::KeyChange>, u64)>;

/// Answers a watch; whether it goes on.
async fn tell(frames: &mpsc::Sender<Vec<u8>>, number: u64, next: Told) -> bool {
    let is_last = next.is_err();
    let result = match next {
        Ok((changes, revision)) => Ok(Answer::Changes { changes, revision }),
        Err(error) => Err(Fault::Refused(error.into())),
    };
    reply(frames, number, result).await && !is_last
}

/// Answers; whether anybody is there to hear it.
async fn reply(frames: &mpsc::Sender<Vec<u8>>, number: u64, result: Result<Answer, Fault>) -> bool {
    let frame = frame::encode(&Reply { number, result }).or_else(|error| {
        let error = Error::io("the answer cannot be sent; ask for less", error);
        frame::encode(&Reply { number, result: Err(Fault::Refused(error.into())) })
    });
    match frame {
        Ok(frame) => frames.send(frame).await.is_ok(),
        Err(_) => false,
    }
}
