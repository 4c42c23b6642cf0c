//! What the leader is told, and how much of it is looked at together.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tyr_protocol::map::Change;
use tyr_protocol::message::Envelope;
use tyr_types::Epoch;

use tyr_control::Fault;
use tyr_control::status::Leadership;

/// A change that somebody wants.
pub struct Wanted {
    /// What is wanted.
    pub change: Change,
    /// The user who does; `None`: the cluster itself.
    pub by: Option<String>,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Epoch, Fault>>,
}

/// What the leader is told.
pub enum Told {
    /// A message of a node.
    Heard(Envelope),
    /// Somebody wants a change.
    Propose(Wanted),
    /// Somebody wants to know how things are.
    Look(oneshot::Sender<Leadership>),
}

impl Told {
    /// Says that nobody leads here; nothing was done. A message is forgotten: it comes again.
    pub fn refuse(self) {
        match self {
            Self::Propose(wanted) => _ = wanted.answer.send(Err(Fault::NotLeader)),
            Self::Heard(_) | Self::Look(_) => {}
        }
    }
}

/// What waits to be looked at: a renewal of every node of the largest cluster, and as many other
/// messages. What comes beyond is lost, and comes again.
pub const INBOX_LEN: usize = 2048;

const _: () = assert!(INBOX_LEN > 0);

/// The leader looks around so often even if nobody says anything.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// What came until a quorum is asked, and whether it is time to look around.
pub(super) struct Batch {
    pub told: Vec<Told>,
    pub is_tick: bool,
}

/// Collects batches.
pub(super) struct Collector {
    next_tick: Instant,
}

impl Collector {
    pub fn new() -> Self {
        Self { next_tick: Instant::now() }
    }

    /// Waits for something to be said, or for the next tick; answers all there is.
    pub async fn collect(&mut self, inbox: &mut mpsc::Receiver<Told>) -> Batch {
        let first = tokio::time::timeout_at(self.next_tick, inbox.recv()).await;
        let mut told: Vec<Told> = first.ok().flatten().into_iter().collect();
        while told.len() < INBOX_LEN
            && let Ok(more) = inbox.try_recv()
        {
            told.push(more);
        }
        debug_assert!(told.len() <= INBOX_LEN, "a batch is bounded");
        let now = Instant::now();
        let is_tick = now >= self.next_tick;
        if is_tick {
            self.next_tick = now + TICK;
        }
        debug_assert!(self.next_tick > now || !is_tick, "the next tick is to come");
        Batch { told, is_tick }
    }
}
