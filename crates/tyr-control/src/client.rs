//! The metadata from outside: for clients, the command line, and nodes that are no monitors.
//!
//! It knows some addresses and asks one after the other until somebody answers. What may be done
//! twice is asked again when a connection breaks; of what may not, the caller is told that it is
//! not known (`TimedOut`). A watch goes on elsewhere from the revision that it has seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tyr_protocol::map::Change;
use tyr_types::{Epoch, Error, ErrorKind, NodeId, Result};

use super::connect::Connect;
use super::connection::{Answers, CallError, Connection};
use super::hello::{Hello, Sender};
use super::message::{Answer, Fault, Question, Remarks, Request, WATCH_QUIET, no_leader};
use super::peers::{Peers, SayHello};
use super::proposal::Proposal;
use crate::record::NodeRecord;
use crate::status::{Bootstrap, Status};
use tyr_metadata::{Actor, Entry, KeyChange, Path, Transaction};

/// How long one node may take to answer what can be asked of another instead.
const ATTEMPT: Duration = Duration::from_secs(4);
/// After all addresses failed, and before the first is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks for what the leader knows and the one that was asked does not.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How often one looks. Monitors hear of what is committed within a heartbeat, a quarter of a
/// second.
const LOOKS_MAX: u32 = 100;
/// How long a node has to say how it stands: who is busy says so all the same, who is gone never.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);
/// Most addresses that are tried; every node of a large cluster would do as well as these.
const ADDRESSES_MAX: usize = 64;

/// Who asks, and how long they wait.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Where nodes of the cluster are reached, any of them; tried in turn.
    pub addresses: Vec<String>,
    /// The cluster that is meant; `None` for whichever is there.
    pub cluster: Option<u128>,
    /// Who asks.
    pub sender: Sender,
    /// What proves that.
    pub token: String,
    /// How long a request may take in all. Default 15 s: more than a monitor waits for a leader.
    pub patience: Duration,
}

impl ClientOptions {
    /// Somebody without a name, at these addresses.
    pub fn at(addresses: &[impl AsRef<str>]) -> Self {
        Self {
            addresses: addresses.iter().map(|it| it.as_ref().to_owned()).collect(),
            cluster: None,
            sender: Sender::User(String::new()),
            token: String::new(),
            patience: Duration::from_secs(15),
        }
    }
}

struct Shared {
    peers: Peers,
    /// Connections for calls of methods, which take long and may be many: nobody waits behind them.
    calls: Peers,
    addresses: Mutex<Vec<String>>,
    /// The address to ask, modulo their number.
    turn: AtomicUsize,
    /// The cluster, once somebody has said which; from then on no other one is meant.
    cluster: Arc<Mutex<Option<u128>>>,
    patience: Duration,
}

/// The metadata of a cluster, from outside. Clones share their connections.
#[derive(Clone)]
pub struct MetadataClient {
    shared: Arc<Shared>,
}

impl MetadataClient {
    /// A client; nothing is opened yet.
    ///
    /// # Errors
    /// `InvalidArgument` without an address.
    pub fn new(options: ClientOptions, connect: Arc<dyn Connect>) -> Result<Self> {
        let ClientOptions { addresses, cluster, sender, token, patience } = options;
        if addresses.is_empty() {
            return Err(Error::invalid("the address of at least one node is needed"));
        }
        let cluster = Arc::new(Mutex::new(cluster));
        let meant = Arc::clone(&cluster);
        let say = move || {
            let cluster = *meant.lock();
            Hello { cluster, sender: sender.clone(), token: token.clone() }
        };
        let say: SayHello = Arc::new(say);
        let calls = Peers::new(Arc::clone(&connect), Arc::clone(&say));
        let peers = Peers::new(connect, say);
        let (addresses, turn) = (Mutex::new(addresses), AtomicUsize::new(0));
        let shared = Shared { peers, calls, addresses, turn, cluster, patience };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The cluster, once somebody has said which.
    pub fn cluster(&self) -> Option<u128> {
        *self.shared.cluster.lock()
    }

    /// Also tries these addresses from now on, after those it has.
    pub fn learn(&self, addresses: impl IntoIterator<Item = String>) {
        let mut known = self.shared.addresses.lock();
        for address in addresses {
            if known.len() < ADDRESSES_MAX && !known.contains(&address) {
                known.push(address);
            }
        }
    }

    /// Asks whatever can be asked, but for watches.
    ///
    /// # Errors
    /// `Unavailable` when nobody answers in time; `TimedOut` when it is not known whether a change
    /// was made; what the request itself meets.
    pub async fn ask(&self, request: Request) -> Result<Answer> {
        Ok(self.hand_on(None, request).await?)
    }

    /// Asks in somebody's name: for a node, whose word counts for others.
    pub async fn hand_on(&self, actor: Option<Actor>, request: Request) -> Result<Answer, Fault> {
        let deadline = Instant::now() + self.shared.patience;
        let is_repeatable = request.is_repeatable();
        let mut tried = 0;
        let mut denied = 0;
        loop {
            let (turn, address) = self.address();
            let until = match is_repeatable {
                true => deadline.min(Instant::now() + ATTEMPT),
                false => deadline,
            };
            let patience_ms = until.duration_since(Instant::now()).as_millis() as u32;
            let (actor, request) = (actor.clone(), request.clone());
            let question = Question { actor, is_handed_on: false, patience_ms, request };
            let attempt = self.attempt(&address, question);
            let attempt = match tokio::time::timeout_at(until, attempt).await {
                Ok(attempt) => attempt,
                Err(_) => Err(CallError::Lost(format!("{address} does not answer"))),
            };
            let text = match attempt {
                Ok(answer) => return Ok(answer),
                Err(CallError::Fault(Fault::Refused(refusal))) => {
                    return Err(Fault::Refused(refusal));
                }
                Err(CallError::Lost(text)) if !is_repeatable => {
                    let text = format!(
                        "{text}; whether it was done is not known, look before asking again"
                    );
                    return Err(Fault::Refused(Error::new(ErrorKind::TimedOut, text).into()));
                }
                Err(CallError::Denied(text)) => {
                    denied += 1;
                    if denied >= self.shared.addresses.lock().len() {
                        // Nobody lets this one in: asking on would change nothing.
                        let denied = Error::new(ErrorKind::PermissionDenied, text);
                        return Err(Fault::Refused(denied.into()));
                    }
                    text
                }
                // Who cannot be reached lets nobody in.
                Err(CallError::NotSent(text)) => text,
                Err(error) => {
                    denied = 0;
                    error.text()
                }
            };
            self.turn_from(turn);
            tried += 1;
            if Instant::now() + PAUSE >= deadline {
                let text = format!("no node of the cluster answers; the last said: {text}");
                return Err(Fault::Refused(Error::unavailable(text).into()));
            }
            if tried % self.shared.addresses.lock().len() == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn attempt(&self, address: &str, question: Question) -> Result<Answer, CallError> {
        self.connection(address).await?.call(question).await
    }

    async fn connection(&self, address: &str) -> Result<Arc<Connection>, CallError> {
        let open = self.shared.peers.connection(address).await?;
        if let Some(cluster) = open.cluster() {
            self.shared.cluster.lock().get_or_insert(cluster);
        }
        Ok(open)
    }

    /// The connections for calls of methods.
    pub(super) fn calls(&self) -> &Peers {
        &self.shared.calls
    }

    fn address(&self) -> (usize, String) {
        let addresses = self.shared.addresses.lock();
        let turn = self.shared.turn.load(Ordering::Relaxed);
        (turn, addresses[turn % addresses.len()].clone())
    }

    /// The next address is to be asked, unless somebody else has found that out.
    fn turn_from(&self, turn: usize) {
        let (load, fail) = (Ordering::Relaxed, Ordering::Relaxed);
        _ = self.shared.turn.compare_exchange(turn, turn + 1, load, fail);
    }

    /// What a key holds; `None` when there is no such key.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `PermissionDenied`.
    pub async fn get(&self, path: Path) -> Result<Option<Entry>> {
        self.ask(Request::Get(path)).await?.into_entry()
    }

    /// The entries of a prefix in order, after one key, at most so many; and the revision that they
    /// are of.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`].
    pub async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.ask(Request::List { prefix, after, limit }).await?.into_entries()
    }

    /// Conditions and changes, all or nothing; the revision in which they took effect.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `Conflict` when a condition does not hold; `PermissionDenied`.
    pub async fn transact(&self, transaction: Transaction) -> Result<u64> {
        self.ask(Request::Transact(transaction)).await?.into_revision()
    }

    /// What changes under a prefix in revisions after this one.
    pub fn watch(&self, prefix: impl Into<String>, after: u64) -> ClientWatch {
        self.watch_as(None, prefix.into(), after)
    }

    /// The same in the name of another: only nodes may.
    pub fn watch_as(&self, actor: Option<Actor>, prefix: String, after: u64) -> ClientWatch {
        ClientWatch { client: self.clone(), actor, prefix, seen: after, open: None }
    }

    /// Proposes a change of the map; the epoch in which it is in effect.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`], and why the change cannot be.
    pub async fn propose(&self, change: Change) -> Result<Epoch> {
        let proposal = Proposal::try_from(change)?;
        self.ask(Request::Propose(proposal)).await?.into_epoch()
    }

    /// How the monitors are.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`].
    pub async fn status(&self) -> Result<Status> {
        match self.ask(Request::Status).await? {
            Answer::Status(status) => Ok(status),
            other => Err(other.unexpected()),
        }
    }

    /// What a client needs to begin. The addresses in it are tried from now on.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`].
    pub async fn bootstrap(&self) -> Result<Bootstrap> {
        match self.ask(Request::Bootstrap).await? {
            Answer::Bootstrap(bootstrap) => {
                let nodes = bootstrap.nodes.values();
                self.learn(nodes.filter_map(|record| record.addresses.first().cloned()));
                if let Some(cluster) = bootstrap.cluster {
                    self.shared.cluster.lock().get_or_insert(cluster);
                }
                Ok(bootstrap)
            }
            other => Err(other.unexpected()),
        }
    }

    /// What a client needs to begin, as new as the leader knows it: [`bootstrap`](Self::bootstrap)
    /// is answered by anybody, who may have been cut off or paused for long.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `Unavailable` when nobody comes to lead in time, or when whoever
    /// is asked stays behind.
    pub async fn newest(&self) -> Result<Bootstrap> {
        let deadline = Instant::now() + self.shared.patience;
        let mut status = self.status().await?;
        while status.leadership.is_none() {
            // Whoever answered does not lead, and may not have heard of the newest yet. It has
            // answered at once: a new leader is there within a second or two.
            if Instant::now() + PAUSE >= deadline {
                return Err(no_leader());
            }
            tokio::time::sleep(PAUSE).await;
            status = self.status().await?;
        }
        for _ in 0..LOOKS_MAX {
            let bootstrap = self.bootstrap().await?;
            if bootstrap.cluster_map()?.epoch.0 >= status.epoch.unwrap_or_default() {
                return Ok(bootstrap);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Err(Error::unavailable("a monitor stays behind the others; try again later"))
    }

    /// The node that leads the monitors, as far as the one that is asked knows: where a node sends
    /// its `Renew` to.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`].
    pub async fn leader(&self) -> Result<Option<NodeId>> {
        match self.ask(Request::Leader).await? {
            Answer::Leader(node) => Ok(node.map(NodeId)),
            other => Err(other.unexpected()),
        }
    }

    /// How the node at this address stands, as JSON; `None` when its program is of an older release
    /// and does not tell.
    ///
    /// # Errors
    /// `Unavailable` when it does not answer within two seconds; `PermissionDenied`.
    pub async fn report(&self, address: &str) -> Result<Option<Bytes>> {
        match self.ask_node(address, Request::Report).await? {
            None => Ok(None),
            Some(Answer::Report(report)) => Ok(Some(report)),
            Some(other) => Err(other.unexpected()),
        }
    }

    /// Asks the node at this address and no other; `None` when its program is of an older release,
    /// to which this means nothing.
    ///
    /// # Errors
    /// As [`MetadataClient::report`].
    pub async fn ask_node(&self, address: &str, request: Request) -> Result<Option<Answer>> {
        let asking = async {
            let connection = self.connection(address).await?;
            if !connection.understands(&request) {
                return Ok(None);
            }
            let patience_ms = REPORT_PATIENCE.as_millis() as u32;
            let question = Question { actor: None, is_handed_on: true, patience_ms, request };
            connection.call(question).await.map(Some)
        };
        match tokio::time::timeout(REPORT_PATIENCE, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(CallError::Denied(text))) => Err(Error::new(ErrorKind::PermissionDenied, text)),
            Ok(Err(error)) => Err(Error::unavailable(error.text())),
            Err(_) => Err(Error::unavailable(format!("{address} does not answer"))),
        }
    }

    /// Makes a node known to the cluster, before it joins: with the number that it wants, or the
    /// next free one. Asked again with the same identity it answers the same.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `AlreadyExists` when the number is another node's.
    pub async fn admit(&self, wanted: Option<NodeId>, record: NodeRecord) -> Result<NodeId> {
        let request = Request::Admit { wanted: wanted.map(|node| node.0), record };
        match self.ask(request).await? {
            Answer::Admitted(node) => Ok(NodeId(node)),
            other => Err(other.unexpected()),
        }
    }

    /// What happened at a node, for the cluster log; what was noted before is not noted twice.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `Unavailable`, too, while the monitors are of an older release.
    pub async fn remark(&self, remarks: Remarks) -> Result<()> {
        match self.ask(Request::Remark(remarks)).await? {
            Answer::Done => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// Makes a node, which runs a monitor already, one that votes, or one no more.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `NotFound` for a node that nobody knows.
    pub async fn appoint(&self, node: NodeId, is_monitor: bool) -> Result<()> {
        match self.ask(Request::Appoint { node: node.0, is_monitor }).await? {
            Answer::Done => Ok(()),
            other => Err(other.unexpected()),
        }
    }
}

/// A watch that outlives connections and nodes.
pub struct ClientWatch {
    client: MetadataClient,
    actor: Option<Actor>,
    prefix: String,
    seen: u64,
    /// The connection that it is on, which must not be closed, and the answers.
    open: Option<(Arc<Connection>, Answers)>,
}

impl ClientWatch {
    /// What happened since, and up to which revision that is everything. Comes from time to time
    /// even if nothing happened. Waits as long as nobody answers.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what happened is not remembered any more: list anew, and watch from
    /// that revision. `PermissionDenied`.
    pub async fn next(&mut self) -> Result<(Vec<KeyChange>, u64)> {
        loop {
            let (turn, address) = self.client.address();
            let answered = match self.open_at(&address).await {
                Ok((_, answers)) => {
                    // A node that is cut off says nothing: twice the time in which it would.
                    let next = tokio::time::timeout(2 * WATCH_QUIET, answers.next()).await;
                    next.unwrap_or_else(|_| Err(CallError::Lost("nothing is heard".to_owned())))
                }
                Err(error) => Err(error),
            };
            match answered {
                Ok(Answer::Changes { changes, revision }) => {
                    self.seen = self.seen.max(revision);
                    return Ok((changes, revision));
                }
                Ok(other) => return Err(other.unexpected()),
                Err(CallError::Fault(Fault::Refused(refusal))) => {
                    self.open = None;
                    return Err(refusal.into());
                }
                Err(CallError::Fault(Fault::NotLeader | Fault::Leaderless(_)))
                | Err(CallError::NotSent(_) | CallError::Denied(_) | CallError::Lost(_)) => {
                    self.open = None;
                    self.client.turn_from(turn);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn open_at(
        &mut self,
        address: &str,
    ) -> Result<&mut (Arc<Connection>, Answers), CallError> {
        if self.open.is_none() {
            let connection = self.client.connection(address).await?;
            let request = Request::Watch { prefix: self.prefix.clone(), after: self.seen };
            let actor = self.actor.clone();
            let question = Question { actor, is_handed_on: false, patience_ms: 0, request };
            let answers = connection.ask(question).await?;
            self.open = Some((connection, answers));
        }
        Ok(self.open.as_mut().expect("opened above"))
    }
}
