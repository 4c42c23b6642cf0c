//! A monitor: the handle that the rest of the node has, and what runs behind it.
//!
//! Raft and everything around it run on a thread of their own with a runtime of its own, so that a
//! node busy with data does not miss heartbeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openraft::Raft as OpenRaft;
use openraft::impls::BasicNode;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tyr_protocol::map::Change;
use tyr_protocol::message::Envelope;
use tyr_types::{Epoch, Error, NodeId, Result};

use super::cluster_log::Numbers;
use super::consensus::journal::{PAYLOAD_LEN_MAX, SEGMENT_LEN};
use super::consensus::log::LogStore;
use super::consensus::machine::{Committed, Machine};
use super::consensus::network::Network;
use super::consensus::succession::{Succession, resign};
use super::consensus::types::Raft;
use super::leadership::{self, batch};
use super::options::MonitorOptions;
use super::presence::Presences;
use tyr_control::record;
use tyr_control::{Answer, Connect, Hello, Peers, Proposal, Question, Request, Sender};
use tyr_metadata::{Actor, Expected, Transaction, reserved};

/// Delivers messages of the monitors to nodes; never blocks, and may lose them.
pub type Send = Arc<dyn Fn(NodeId, Envelope) + std::marker::Send + Sync>;

/// Between two looks at what is to be written again or to be made smaller.
const UPKEEP: Duration = Duration::from_millis(500);

/// Bytes of the log after which a snapshot is made even if it has few entries: they lie in memory.
const LOG_BYTES_MAX: usize = 16 << 20;

const _: () = {
    assert!(LOG_BYTES_MAX as u64 >= SEGMENT_LEN, "a snapshot lets go of a segment at least");
    assert!(LOG_BYTES_MAX > PAYLOAD_LEN_MAX, "one entry alone makes no snapshot");
};

/// What all parts of a monitor share.
pub(super) struct Shared {
    pub options: MonitorOptions,
    pub raft: Raft,
    pub committed: Committed,
    pub log: LogStore,
    pub peers: Peers,
    /// Raft's ways to others.
    pub network: Network,
    pub send: Send,
    pub inbox: mpsc::Sender<batch::Told>,
    /// Of entries of the cluster log.
    pub log_numbers: Mutex<Numbers>,
    /// Clients that are there, while this leads.
    pub presences: Mutex<Presences>,
    /// Held while it is decided that one is not, and while one is told that it is.
    pub deciding_presence: tokio::sync::Mutex<()>,
    /// Whether messages of nodes are listened to.
    pub is_leading: AtomicBool,
    /// Whether it stops, and lets another lead.
    pub is_handing_over: AtomicBool,
    started: Instant,
    /// Where all of this runs.
    runtime: Handle,
    tasks: Mutex<Vec<AbortHandle>>,
    /// The thread, when it is the monitor's own: told to end, and then joined.
    thread: Mutex<Option<(oneshot::Sender<()>, std::thread::JoinHandle<()>)>>,
}

impl Shared {
    /// Microseconds on a clock that neither jumps nor goes back.
    pub fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// Where all of the monitor runs.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The cluster, if it has been formed.
    pub fn cluster(&self) -> Option<u128> {
        cluster_of(&self.committed)
    }

    /// Where a node is reached.
    pub fn address(&self, node: u64) -> Option<String> {
        let number = u16::try_from(node).ok().map(NodeId)?;
        whereabouts(&self.committed, number).or_else(|| {
            let metrics = self.raft.server_metrics();
            let metrics = metrics.borrow();
            let known = metrics.membership_config.membership().get_node(&node);
            known.map(|known| known.addr.clone())
        })
    }
}

fn cluster_of(committed: &Committed) -> Option<u128> {
    let store = committed.read();
    let bytes = store.get(reserved::ID)?.value.first_chunk().copied()?;
    Some(u128::from_le_bytes(bytes))
}

fn whereabouts(committed: &Committed, node: NodeId) -> Option<String> {
    record::record(&committed.read(), node)?.addresses.into_iter().next()
}

/// A monitor. Clones are the same one.
#[derive(Clone)]
pub struct Monitor {
    pub(super) shared: Arc<Shared>,
}

impl Monitor {
    /// Starts a monitor on a thread of its own: with what its disk holds, or as one of those that
    /// form a cluster, or to be told by others.
    ///
    /// # Errors
    /// `InvalidArgument` for options that make no sense; `Corrupt` when the disk is damaged;
    /// `Unavailable` when it fails, or there is no thread to be had.
    pub fn start(options: MonitorOptions, connect: Arc<dyn Connect>, send: Send) -> Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, result) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            tyr_runtime::priority::go_first();
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let error = Error::io("no runtime for the monitor", error);
                    _ = started.send(Err(error));
                    return;
                }
            };
            runtime.block_on(async move {
                let launched = Self::launch(options, connect, send).await;
                let is_running = launched.is_ok();
                if started.send(launched).is_ok() && is_running {
                    // Ends when it is told to, or nobody is left to tell.
                    _ = stopped.await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("tyr-monitor".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::io("no thread for the monitor", error))?;
        let ended = |_| Error::unavailable("the monitor's thread ended before it had started");
        let monitor = result.recv().map_err(ended)??;
        *monitor.shared.thread.lock() = Some((stop, thread));
        Ok(monitor)
    }

    /// Starts a monitor on the runtime that this is called on.
    ///
    /// # Errors
    /// As [`Monitor::start`].
    pub async fn launch(
        options: MonitorOptions,
        connect: Arc<dyn Connect>,
        send: Send,
    ) -> Result<Self> {
        options.check()?;
        let log = LogStore::open(Arc::clone(&options.disk))?;
        let machine = Machine::open(Arc::clone(&options.disk))?;
        let committed = machine.committed();
        let is_pristine = log.is_pristine() && committed.read().revision() == 0;
        let peers = Peers::new(connect, say_hello(&options, &committed));
        let places = committed.clone();
        let network = Network {
            peers: peers.clone(),
            whereabouts: Arc::new(move |node| whereabouts(&places, node)),
            succession: Succession::default(),
        };
        let stopped = |error: String| Error::unavailable(format!("Raft does not start: {error}"));
        let config = options.raft().validate().map_err(|error| stopped(error.to_string()))?;
        let node = u64::from(options.node.0);
        let was_leading = resign(&log, node).await.map_err(|error| stopped(error.to_string()))?;
        let raft =
            OpenRaft::new(node, Arc::new(config), network.clone(), log.clone(), machine).await;
        let raft: Raft = raft.map_err(|error| stopped(error.to_string()))?;
        if is_pristine {
            initialize(&raft, &options).await?;
        }
        if was_leading {
            raft.trigger().elect().await.map_err(|error| stopped(error.to_string()))?;
        }
        // From here on its metrics say whether it votes.
        let state = raft.with_raft_state(|_| ()).await;
        state.map_err(|error| stopped(error.to_string()))?;
        let (inbox, told) = mpsc::channel(batch::INBOX_LEN);
        let shared = Arc::new(Shared {
            options,
            raft,
            committed,
            log,
            peers,
            network,
            send,
            inbox,
            log_numbers: Mutex::default(),
            presences: Mutex::new(Presences::new(Instant::now())),
            deciding_presence: tokio::sync::Mutex::default(),
            is_leading: AtomicBool::new(false),
            is_handing_over: AtomicBool::new(false),
            started: Instant::now(),
            runtime: Handle::current(),
            tasks: Mutex::default(),
            thread: Mutex::default(),
        });
        let leading = tokio::spawn(leadership::run(Arc::clone(&shared), told));
        let monitor = Self { shared };
        let upkeep = tokio::spawn(monitor.clone().keep_up());
        let presences = tokio::spawn(monitor.clone().keep_presences());
        let tasks = [leading, upkeep, presences].map(|task| task.abort_handle());
        monitor.shared.tasks.lock().extend(tasks);
        Ok(monitor)
    }

    /// A message of a node to the monitors: `Renew`, `Prepared`, `CaughtUp`, `Return`, `FetchMap`.
    /// Never blocks; lost when this monitor does not lead, or has too much to do.
    pub fn receive(&self, envelope: Envelope) {
        if self.shared.is_leading.load(Ordering::Acquire) {
            _ = self.shared.inbox.try_send(batch::Told::Heard(envelope));
        }
    }

    /// The node that leads the monitors, as far as this one knows.
    pub fn leader(&self) -> Option<NodeId> {
        let leader = self.shared.raft.server_metrics().borrow().current_leader;
        leader.and_then(|node| u16::try_from(node).ok()).map(NodeId)
    }

    /// Whether this monitor has a vote, as far as it knows. One that was started to be appointed
    /// later has none, and knows nothing of the cluster; one that was dismissed stays behind.
    pub fn is_voter(&self) -> bool {
        let metrics = self.shared.raft.server_metrics();
        let metrics = metrics.borrow();
        let own = u64::from(self.shared.options.node.0);
        metrics.membership_config.membership().voter_ids().any(|voter| voter == own)
    }

    /// The cluster, once it has been formed.
    pub fn cluster(&self) -> Option<u128> {
        self.shared.cluster()
    }

    /// Whether this monitor still runs; else its disk failed, and others go on without it.
    ///
    /// # Errors
    /// `Unavailable` with the reason.
    pub fn check(&self) -> Result<()> {
        let running = self.shared.raft.metrics().borrow().running_state.clone();
        running.map_err(|error| Error::unavailable("the monitor has stopped").with_source(error))
    }

    /// The metadata as this monitor has it: committed, perhaps not the newest.
    pub fn committed(&self) -> &Committed {
        &self.shared.committed
    }

    /// Asks in somebody's name. Answered by the leader, wherever it is.
    ///
    /// # Errors
    /// `Unavailable` when there is no leader in time, with what is known; `TimedOut` when a change
    /// may have happened or not; what the request itself meets.
    pub async fn ask(&self, actor: Actor, request: Request) -> Result<Answer> {
        let (monitor, runtime) = (self.clone(), self.shared.runtime.clone());
        // On the monitor's own runtime, whoever asks and wherever: what it waits for runs there.
        let question = self.question(request);
        let asked = runtime.spawn(async move { monitor.answer(actor, question).await });
        let ended = |_| Error::unavailable("the monitor has been closed");
        asked.await.map_err(ended)?.map_err(Error::from)
    }

    /// Changes the metadata, in the cluster's own name; answers the revision.
    ///
    /// # Errors
    /// As [`Monitor::ask`], and `Conflict` when a condition does not hold.
    pub async fn transact(&self, transaction: Transaction) -> Result<u64> {
        self.ask(Actor::System, Request::Transact(transaction)).await?.into_revision()
    }

    /// Proposes a change of the map; answers the epoch in which it is in effect.
    ///
    /// # Errors
    /// As [`Monitor::ask`], and why the change cannot be.
    pub async fn propose(&self, change: Change) -> Result<Epoch> {
        let proposal = Proposal::try_from(change)?;
        self.ask(Actor::System, Request::Propose(proposal)).await?.into_epoch()
    }

    /// Ends the monitor. What was acknowledged is durable; others go on without it, at once if it
    /// has handed over ([`Monitor::hand_over`]).
    ///
    /// # Errors
    /// `Unavailable` when the disk fails at the last moment.
    pub async fn close(&self) -> Result<()> {
        self.stop().await;
        let sealed = self.shared.log.seal();
        let thread = self.shared.thread.lock().take();
        if let Some((stop, thread)) = thread {
            drop(stop);
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                return Err(Error::unavailable("the monitor's thread panicked"));
            }
        }
        sealed
    }

    /// Ends what runs, and notes nothing: what a process leaves that is killed.
    pub(super) async fn stop(&self) {
        for task in self.shared.tasks.lock().drain(..) {
            task.abort();
        }
        let raft = self.shared.raft.clone();
        // Raft has said all that there is to say: whatever it met is in what others were told.
        _ = self.shared.runtime.spawn(async move { raft.shutdown().await }).await;
    }

    /// Sees to it that the others know where this node is, and that the log stays short.
    async fn keep_up(self) {
        loop {
            if let Some(put) = self.report() {
                // When it fails it is tried again.
                let question = self.question(Request::Transact(put));
                _ = self.answer(Actor::System, question).await;
            }
            if self.shared.log.bytes() > LOG_BYTES_MAX {
                _ = self.shared.raft.trigger().snapshot().await;
            }
            tokio::time::sleep(UPKEEP).await;
        }
    }

    /// A question of this monitor's own, that it waits for as long as it waits for anything.
    fn question(&self, request: Request) -> Question {
        let patience_ms = self.shared.options.patience.as_millis() as u32;
        Question { actor: None, is_handed_on: false, patience_ms, request }
    }

    /// What is to be written so that the others know of this node what it tells.
    fn report(&self) -> Option<Transaction> {
        let MonitorOptions { node, record, .. } = &self.shared.options;
        let path = reserved::node(*node);
        let (known, entry) = {
            let store = self.shared.committed.read();
            (record::record(&store, *node), store.get(path.as_str()).map(|it| it.changed))
        };
        let mut wanted = record.clone();
        if let Some(known) = &known {
            // Whether it is a monitor is decided by others from then on.
            wanted.is_monitor = known.is_monitor;
            // How far its folder has counted is told by the node when that is durable.
            if known.identity == wanted.identity {
                wanted.generation = known.generation;
            }
        }
        let is_known = known.as_ref() == Some(&wanted);
        // What was written since then, a generation among it, is not taken back: it is looked at
        // again.
        let expected = entry.map_or(Expected::Absent, Expected::Revision);
        let put = || Transaction::new().when(path.clone(), expected).put(path, wanted.encode());
        (!is_known).then(put)
    }
}

fn say_hello(options: &MonitorOptions, committed: &Committed) -> tyr_control::SayHello {
    let (node, token, committed) = (options.node.0, options.token.clone(), committed.clone());
    Arc::new(move || Hello {
        cluster: cluster_of(&committed),
        sender: Sender::Node(node),
        token: token.clone(),
    })
}

/// Makes this monitor one of those that form a cluster. All of them do, with the same list; Raft
/// sees to it that they form one.
async fn initialize(raft: &Raft, options: &MonitorOptions) -> Result<()> {
    let monitors = options.initial.iter().filter(|it| it.is_monitor);
    let voters: std::collections::BTreeMap<u64, BasicNode> =
        monitors.map(|it| (u64::from(it.node.0), BasicNode::new(&it.address))).collect();
    if !voters.contains_key(&u64::from(options.node.0)) {
        return Ok(());
    }
    raft.initialize(voters)
        .await
        .map_err(|error| Error::unavailable("the monitors cannot be formed").with_source(error))
}
