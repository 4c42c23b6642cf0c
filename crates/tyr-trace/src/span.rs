//! What one node saw of one transaction: when it came, what happened to it, how it ended here.
//!
//! A span is begun and ended by the [watch](super::watch). Its moments are counted on the machine's
//! steady clock, and put on the wall clock from where that stood when the span began: a clock that
//! is set in between makes no span end before it began.

use std::borrow::Cow;

use smallvec::SmallVec;
use tyr_protocol::Chain;
use tyr_protocol::commit::Attempt;
use tyr_protocol::message::Now;
use tyr_types::{ErrorKind, NodeId, Timestamp, Transaction, TransactionId};
use xxhash_rust::xxh3::xxh3_64;

/// Moments of a span at most; one that has more was driven anew again and again, and the last few
/// say no more than the first.
const MOMENTS_MAX: usize = 32;

/// The number of a span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SpanId(pub u64);

impl SpanId {
    /// Of the span at a head: whoever knows head and transaction can compute it.
    pub fn at_head(head: NodeId, id: TransactionId) -> Self {
        Self::of(head, id, &[])
    }

    /// Of the span at another node, one for each attempt that passes it.
    pub fn at_hop(node: NodeId, id: TransactionId, attempt: Attempt) -> Self {
        let Attempt { epoch, number, coordinator } = attempt;
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&epoch.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..].copy_from_slice(&coordinator.0.to_be_bytes());
        Self::of(node, id, &bytes)
    }

    fn of(node: NodeId, id: TransactionId, more: &[u8]) -> Self {
        let mut bytes: SmallVec<[u8; 28]> = SmallVec::new();
        bytes.extend_from_slice(&id.0.to_be_bytes());
        bytes.extend_from_slice(&node.0.to_be_bytes());
        bytes.extend_from_slice(more);
        // 0 is no number of a span.
        Self(xxh3_64(&bytes).max(1))
    }
}

/// What happened to a transaction at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The client asked again.
    AskedAgain,
    /// It began to pass its chain once more.
    EnteredAgain(Attempt),
    /// It is validated here with this proposal, and given to the log (C3).
    Validated(Timestamp),
    /// That is durable.
    Persisted,
    /// That is not known to be durable.
    NotPersisted,
    /// It was passed on to this node.
    Forwarded(NodeId),
    /// It is known here that it commits, and when (C5).
    Decided(Timestamp),
    /// It is applied here (C6).
    Applied,
    /// What was validated is withdrawn: it waits at a later node, and holds nobody up meanwhile
    /// (C9).
    Withdrawn,
    /// Its chain did not reach the end of a blob.
    Misplaced,
    /// Another node asks what is known of it here (F2).
    Queried,
    /// That it is aborted was given to the log (F4).
    AbortLogged,
}

/// How a span ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The transaction commits at this timestamp; it is applied here, and was passed back.
    Committed(Timestamp),
    /// It is aborted.
    Aborted {
        /// What a client can do about it.
        kind: ErrorKind,
        /// Why, in words.
        reason: Cow<'static, str>,
    },
    /// It does not count here any more; it may come again, in another span.
    Withdrawn,
    /// Another attempt came by before this one was over (F2).
    Superseded,
    /// It was open for so long, or when the node stopped, that nobody looks any more.
    Unfinished,
}

/// A moment of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// On the steady clock, in microseconds.
    pub at_us: u64,
    pub what: Happening,
}

/// A span that is open.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub transaction: TransactionId,
    pub id: SpanId,
    /// The span that it is part of; the trace begins with one that has none.
    pub parent: Option<SpanId>,
    /// Whether a client gave the transaction to this node, and not another node.
    pub is_submitted: bool,
    /// Whether the client had done so before.
    pub is_retry: bool,
    /// The place in the chain, and the length of the chain, as soon as known.
    pub place: Option<(usize, usize)>,
    pub attempt: Option<Attempt>,
    /// Blobs it writes or compares, ranges it read, bytes it carries.
    pub blobs: usize,
    pub reads: usize,
    pub payload_len: u64,
    pub moments: SmallVec<[Moment; 6]>,
    /// Moments for which there was no room.
    pub lost_moments: u32,
    pub decided: Option<Timestamp>,
    pub begun_us: u64,
    begun_wall_us: u64,
}

/// A span that is over.
#[derive(Clone, Debug)]
pub(crate) struct EndedSpan {
    pub span: Span,
    /// On the steady clock, in microseconds.
    pub ended_us: u64,
    pub outcome: Outcome,
}

impl Span {
    /// Of a transaction that a client submits here.
    pub fn submitted(node: NodeId, transaction: &Transaction, is_retry: bool, now: Now) -> Self {
        let id = SpanId::at_head(node, transaction.id);
        Self { is_submitted: true, is_retry, ..Self::begin(id, transaction, now) }
    }

    /// Of a transaction that another node passed on to this one, which is in its chain.
    pub fn forwarded(
        node: NodeId,
        position: usize,
        transaction: &Transaction,
        chain: &Chain,
        attempt: Attempt,
        now: Now,
    ) -> Self {
        let id = transaction.id;
        let head = chain.hops()[0].node;
        let (own, above) = match position {
            // Somebody else drives it: the head before it in a reroute, or who found it held up.
            0 => (SpanId::at_head(node, id), attempt.coordinator),
            _ => (SpanId::at_hop(node, id, attempt), head),
        };
        let parent = (above != node).then(|| SpanId::at_head(above, id));
        let place = Some((position, chain.hops().len()));
        let attempt = Some(attempt);
        Self { parent, place, attempt, ..Self::begin(own, transaction, now) }
    }

    fn begin(id: SpanId, transaction: &Transaction, now: Now) -> Self {
        Self {
            transaction: transaction.id,
            id,
            parent: None,
            is_submitted: false,
            is_retry: false,
            place: None,
            attempt: None,
            blobs: transaction.blobs.len(),
            reads: transaction.reads.len(),
            payload_len: transaction.payload_len(),
            moments: SmallVec::new(),
            lost_moments: 0,
            decided: None,
            begun_us: now.monotonic_us,
            begun_wall_us: now.wall_us,
        }
    }

    /// Takes note of a moment, unless there are enough.
    pub fn note(&mut self, at_us: u64, what: Happening) {
        match self.moments.len() < MOMENTS_MAX {
            true => self.moments.push(Moment { at_us, what }),
            false => self.lost_moments = self.lost_moments.saturating_add(1),
        }
    }

    /// It is known that the transaction commits; that is noted once.
    pub fn decide(&mut self, at_us: u64, timestamp: Timestamp) {
        if self.decided.replace(timestamp).is_none() {
            self.note(at_us, Happening::Decided(timestamp));
        }
    }

    /// What happened of late is known to be of this attempt, over this chain.
    pub fn locate(&mut self, node: NodeId, chain: &Chain, attempt: Attempt) {
        let position = chain.position(node);
        self.place = position.map(|position| (position, chain.hops().len())).or(self.place);
        self.attempt = Some(attempt);
    }

    /// Whether a client asked again, and nothing came of it but the answer from memory: the span of
    /// the first time tells it all.
    pub fn is_repeated(&self) -> bool {
        self.is_retry && self.moments.is_empty()
    }

    /// Ends it.
    pub fn end(self, ended_us: u64, outcome: Outcome) -> EndedSpan {
        EndedSpan { span: self, ended_us, outcome }
    }

    /// A moment of the steady clock in nanoseconds since 1970.
    pub fn unix_ns(&self, at_us: u64) -> u64 {
        (self.begun_wall_us + at_us.saturating_sub(self.begun_us)).saturating_mul(1000)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tyr_types::Epoch;

    use super::*;

    #[test]
    fn spans_of_nodes_transactions_and_attempts_have_numbers_of_their_own() {
        let mut ids = HashSet::new();
        for (node, id) in (0..50).flat_map(|node| (1..50).map(move |id| (node, id))) {
            let (node, id) = (NodeId(node), TransactionId(id));
            assert_eq!(SpanId::at_head(node, id), SpanId::at_head(node, id));
            assert!(ids.insert(SpanId::at_head(node, id)));
            for number in 0..3 {
                let attempt = Attempt { epoch: Epoch(1), number, coordinator: NodeId(0) };
                assert!(ids.insert(SpanId::at_hop(node, id, attempt)));
            }
        }
    }

    #[test]
    fn moments_are_put_on_the_wall_clock_from_where_it_stood_at_the_beginning() {
        let transaction =
            Transaction { id: TransactionId(5), blobs: Vec::new(), reads: Vec::new() };
        let now = Now { wall_us: 1_700_000_000_000_000, monotonic_us: 900 };
        let span = Span::submitted(NodeId(0), &transaction, false, now);
        assert_eq!(span.unix_ns(900), 1_700_000_000_000_000_000);
        assert_eq!(span.unix_ns(1_150), 1_700_000_000_000_250_000);
        assert_eq!(span.unix_ns(0), span.unix_ns(900), "nothing is before the beginning");
    }

    #[test]
    fn a_span_has_room_for_so_many_moments_and_counts_the_others() {
        let transaction =
            Transaction { id: TransactionId(5), blobs: Vec::new(), reads: Vec::new() };
        let mut span = Span::submitted(NodeId(0), &transaction, false, Now::default());
        (0..100).for_each(|at_us| span.note(at_us, Happening::Queried));
        assert_eq!((span.moments.len(), span.lost_moments), (MOMENTS_MAX, 68));
    }
}
