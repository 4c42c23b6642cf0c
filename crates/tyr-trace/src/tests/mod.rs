//! What several tests of traces need: a collector, and transactions.

#[allow(dead_code, reason = "the tests of two crates share it, and each uses a part")]
pub mod collector;

use std::sync::Arc;

use tyr_protocol::commit::Attempt;
use tyr_protocol::message::Now;
use tyr_protocol::{Chain, Ends, Hop, Part};
use tyr_types::{Epoch, NodeId, Timestamp, Transaction, TransactionId};

use super::Endpoint;
use super::span::{EndedSpan, Outcome, Span};

/// The client of all transactions here.
pub const CLIENT: u64 = 7;

/// The id of the client's `sequence`-th transaction.
pub fn id(sequence: u64) -> TransactionId {
    TransactionId::new(CLIENT, sequence)
}

/// A transaction that does nothing.
pub fn transaction(sequence: u64) -> Arc<Transaction> {
    Arc::new(Transaction { id: id(sequence), blobs: Vec::new(), reads: Vec::new() })
}

/// A chain of these nodes.
pub fn chain(nodes: &[u16]) -> Chain {
    let hop = |node: &u16| Hop { node: NodeId(*node), part: Part::Pieces(Vec::new()) };
    Chain::new(nodes.iter().map(hop).collect(), Ends::new()).unwrap()
}

/// The `number`-th attempt, driven by `coordinator`.
pub fn attempt(number: u32, coordinator: u16) -> Attempt {
    Attempt { epoch: Epoch(3), number, coordinator: NodeId(coordinator) }
}

/// A timestamp with this clock.
pub fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(3), clock, node: 2 }
}

/// A moment: so many microseconds after the machine was started, and after a moment of 2023.
pub fn now(us: u64) -> Now {
    Now { wall_us: 1_700_000_000_000_000 + us, monotonic_us: us }
}

/// The span of a transaction that was committed at its head.
pub fn ended(sequence: u64) -> EndedSpan {
    let span = Span::submitted(NodeId(0), &transaction(sequence), false, now(sequence));
    span.end(sequence + 10, Outcome::Committed(at(sequence)))
}
