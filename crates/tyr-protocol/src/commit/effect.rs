//! What the commit machine asks of its driver.

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{NodeId, Timestamp, Transaction, TransactionId};

use super::event::{Attempt, Decision, Message};
use super::kept_off::Needed;
use super::memory::Remembered;
use super::outcomes::Outcomes;
use super::recovery;
use crate::abort::Abort;
use crate::chain::Chain;

/// Where the bytes of an append go, when that had to be settled before it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The blob, by its place in [`Transaction::blobs`].
    pub index: u32,
    /// The offset that its first append gets.
    pub offset: u64,
}

/// The settled appends of a transaction; nearly always none.
pub type Placements = SmallVec<[Placed; 1]>;

/// What the driver does for the commit machine.
///
/// Order rules:
/// - Effects are executed in the order they were given, those of one step before the next step.
/// - `Apply` cannot fail and is done before anything after it: later answers of the [`crate::View`]
///   include it, and a `Send` or `Reply` behind it tells of it (C7).
/// - `Persist` is answered by `Persisted` or `PersistFailed`, at once or later, in any order among
///   several. Nothing else waits for it.
/// - `Fence` is answered by `Fenced`, and `Note` with `is_synced` by `Noted`, when it is durable;
///   if that fails the node must not answer anything any more. What a node is asked to make durable
///   becomes so in the order asked.
/// - `Resume` is answered by [`super::Event::Resume`], after what stands before it is done.
/// - `Moved` and `Resume` come last in a step: whoever hears of them finds everything applied that
///   the machine says is.
/// - `Send` may be slow and may overtake another.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Give this message to that node.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Give this message about a transaction that was held up to that node.
    Recover {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: recovery::Message,
    },
    /// Make the record durable: this node has validated the transaction (C3).
    Persist {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// The attempt.
        attempt: Attempt,
        /// The timestamp proposed here.
        proposal: Timestamp,
        /// Appends whose offset is settled already.
        placed: Placements,
    },
    /// Make durable that no older attempt is taken part in any more (F2).
    Fence {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Whether what older attempts validated here is withdrawn too (F3).
        is_cleared: bool,
    },
    /// Write down what became of a transaction that other nodes know of too.
    Note {
        /// The transaction.
        id: TransactionId,
        /// What became of it.
        decision: Decision,
        /// Whether `Noted` is waited for.
        is_synced: bool,
    },
    /// Write down that these are committed, though they cannot be applied here yet (F14). Nothing
    /// waits for it.
    NoteHeard {
        /// What became of them.
        heard: Vec<Remembered>,
    },
    /// Do what the transaction writes at this node (C6). Appends take their offset now.
    Apply {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain, which says what of it is held here.
        chain: Chain,
        /// Its commit timestamp: the version of what it writes.
        at: Timestamp,
    },
    /// Tell the client, at the head of the chain.
    Reply {
        /// The transaction.
        id: TransactionId,
        /// What became of it.
        decision: Decision,
        /// What the other nodes of the chain answer.
        outcomes: Outcomes,
        /// The transaction, if some of what its operations answered may have been forgotten by who
        /// had it: the client is told when all of it is known.
        transaction: Option<Arc<Transaction>>,
    },
    /// At the head: make a chain that reaches the blob's end, and answer with `Reroute`.
    Misplaced {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// The chain that is too short.
        chain: Chain,
        /// The blob, by its place in [`Transaction::blobs`].
        blob: u32,
        /// Where the blob's chunks end, in bytes.
        end: u64,
    },
    /// A transaction of this client waits for what leases keep it off (K2): those who are in its
    /// way are to give them back. Then step with [`super::Event::Freed`].
    Recall {
        /// The client.
        client: u64,
        /// What it is kept off.
        needed: Needed,
    },
    /// Tell the read machine: a transaction it waits for was decided, applied or aborted.
    Moved {
        /// The transaction.
        id: TransactionId,
    },
    /// Step again with [`super::Event::Resume`]: transactions that waited can go on.
    Resume,
}

impl Effect {
    /// A decision on its way back to this node.
    pub(crate) fn backward(
        to: NodeId,
        id: TransactionId,
        attempt: Attempt,
        decision: Decision,
        outcomes: Outcomes,
    ) -> Self {
        let usages = Vec::new();
        Self::Send { to, message: Message::Backward { id, attempt, decision, outcomes, usages } }
    }

    /// Tell the client that its transaction is aborted.
    pub(crate) fn aborted(id: TransactionId, abort: Abort) -> Self {
        let (decision, outcomes) = (Decision::Abort(abort), Outcomes::new());
        Self::Reply { id, decision, outcomes, transaction: None }
    }
}
