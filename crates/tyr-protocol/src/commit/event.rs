//! What the commit machine is told, by its driver and by other nodes.

use std::sync::Arc;

use tyr_types::{BlobName, Epoch, ErrorKind, NodeId, Timestamp, Transaction, TransactionId};

use super::outcomes::Outcomes;
use super::recovery;
use super::retention::OutcomeRetention;
use crate::abort::Abort;
use crate::chain::Chain;
use crate::map::ClusterMap;
use crate::versions::Usage;

/// Which run of a transaction over its chain a message belongs to.
///
/// A failure in the middle makes the next one (F2, F3); a node answers only to the newest that
/// it knows of. The coordinator is part of it, so that no two ever drive the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The epoch in which it began.
    pub epoch: Epoch,
    /// Its number in that epoch, the first being 0.
    pub number: u32,
    /// The node that drives it: of the first, the head.
    pub coordinator: NodeId,
}

/// The client whose transaction it is: it gave it its number.
pub(crate) fn client_of(id: TransactionId) -> u64 {
    (id.0 >> 64) as u64
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It takes effect at this timestamp (C5).
    Commit(Timestamp),
    /// It does not take effect anywhere.
    Abort(Abort),
}

impl Decision {
    /// Whether nobody could tell what became of it: that is no outcome, and gives way to one (F11).
    pub fn is_given_up(&self) -> bool {
        match self {
            Self::Commit(_) => false,
            Self::Abort(abort) => abort.kind == ErrorKind::TimedOut,
        }
    }
}

/// What is in use of the blobs that a transaction writes (V2). The driver fills it in when it
/// sends; the commit machine does not look at it.
pub type Usages = Vec<(BlobName, Usage)>;

/// What the nodes of a chain say to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// To the next node: every node so far has validated (C3), or knows that it is decided.
    Forward {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain.
        chain: Chain,
        /// The attempt.
        attempt: Attempt,
        /// The cluster's clock when the client first submitted it, the same in all attempts (F11).
        begun: Timestamp,
        /// The highest timestamp proposed so far.
        highest: Timestamp,
        /// The timestamp, when an earlier attempt decided it (F3).
        known: Option<Timestamp>,
        /// What is in use (V2).
        usages: Usages,
    },
    /// To the previous node: what was decided, applied from here to the tail (C7).
    Backward {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// What was decided.
        decision: Decision,
        /// What the nodes from here to the tail answer.
        outcomes: Outcomes,
        /// What is in use (V2).
        usages: Usages,
    },
    /// To the previous node: the chain does not reach the blob's end, which is `end`; it is
    /// withdrawn, and the head makes another chain. Nobody has decided anything.
    Misplaced {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// The blob, by its place in [`Transaction::blobs`].
        blob: u32,
        /// Where the blob's chunks end, in bytes.
        end: u64,
    },
    /// To the previous node: it must wait until others are applied, which may wait for it; so what
    /// is validated is withdrawn while it waits (C9).
    Withdrawn {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
    },
    /// To the head: it was withdrawn, and has nothing to wait for any more: come again.
    Again {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
    },
    /// From the tail, and on from the relays that it tells ([`Chain::told_by`]), to all before it:
    /// it is decided. It is applied when the nodes behind have (C7); but what comes before what,
    /// here and elsewhere, must not wait for that (C9).
    Decided {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Its timestamp.
        at: Timestamp,
    },
    /// From an authority of what is written to the authorities after it: nothing can come before it
    /// here any more that is not shown (C9).
    Anchored {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Who says so.
        by: NodeId,
    },
    /// From an authority to those that hold the same chunks: it has passed the decision back, so
    /// every replica knows it (R2).
    Stable {
        /// The transaction.
        id: TransactionId,
        /// The authority, as the chain has it.
        by: NodeId,
        /// What the transaction answered at the authority, while there are recipients: one that
        /// takes part without a chunk's base cannot answer itself, and may be asked later (F4).
        outcomes: Outcomes,
    },
    /// To the authority, from one that holds the same chunks and has waited long for its notice of
    /// stability (F6).
    AskStable {
        /// The transaction.
        id: TransactionId,
        /// The authority, as the chain has it; by now it may be another node that is asked.
        by: NodeId,
        /// Who asks.
        from: NodeId,
    },
}

/// What the commit machine is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client's transaction, at the head of its chain.
    Submit {
        /// The transaction, checked by [`Transaction::validate`].
        transaction: Arc<Transaction>,
        /// Its chain, of which this node is the head.
        chain: Chain,
        /// The cluster's clock when the client first submitted it.
        begun: Timestamp,
    },
    /// The same again, because the client has waited long (F4).
    Retry {
        /// The transaction.
        transaction: Arc<Transaction>,
        /// Its chain by the newest map, of which this node is the head.
        chain: Chain,
        /// The cluster's clock when the client first submitted it.
        begun: Timestamp,
    },
    /// The answer to [`super::Effect::Misplaced`]: a chain that reaches the blob's end.
    Reroute {
        /// The transaction.
        id: TransactionId,
        /// Its new chain; this node may not be in it.
        chain: Chain,
    },
    /// A message of another node.
    Receive(Message),
    /// A message of another node about a transaction that was held up (F2, F6).
    Recover(recovery::Message),
    /// A transaction on its way came here that this program does not understand, of this feature
    /// level.
    Unread {
        /// The transaction.
        id: TransactionId,
        /// The level that it needs.
        level: u8,
    },
    /// A node did not understand what was sent of a transaction.
    NotUnderstood {
        /// The transaction.
        id: TransactionId,
    },
    /// The answer to [`super::Effect::Persist`]: the record is durable.
    Persisted {
        /// The transaction.
        id: TransactionId,
        /// The attempt it was validated in.
        attempt: Attempt,
    },
    /// The answer to [`super::Effect::Persist`]: it is not known to be durable.
    PersistFailed {
        /// The transaction.
        id: TransactionId,
    },
    /// The answer to [`super::Effect::Fence`]: the promise is durable.
    Fenced {
        /// The transaction.
        id: TransactionId,
        /// The attempt.
        attempt: Attempt,
        /// Whether it was to withdraw what older attempts had validated.
        is_cleared: bool,
    },
    /// The answer to [`super::Effect::Note`] with `is_synced`: the decision is durable.
    Noted {
        /// The transaction.
        id: TransactionId,
    },
    /// A newer cluster map (F1).
    Install {
        /// The map.
        map: Arc<ClusterMap>,
    },
    /// The monitors say how far all live nodes are done, and what the highest clock is (F10).
    Retain(OutcomeRetention),
    /// Time has passed: `elapsed_us` on a clock that neither jumps nor goes back (F6).
    Tick {
        /// Microseconds since any fixed moment.
        elapsed_us: u64,
    },
    /// What kept transactions off this blob may be given back (K2), or off what they have listed of
    /// the group of this name.
    Freed {
        /// The blob, or what the keys of the group begin with.
        blob: BlobName,
    },
    /// The answer to [`super::Effect::Resume`]: everything before it is executed.
    Resume,
}
