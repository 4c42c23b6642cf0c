//! What passes the engine, watched for the transactions that are traced.
//!
//! The engine has one of these when traces are wanted, under its lock, and shows it every event
//! that comes in, every message that goes out and every record that is given to the log. A span
//! begins where a transaction comes in, and ends where the node passes back what became of it.
//!
//! ```text
//!   Submit, Forward ──► begin ──► moments: records, durability, decision … ──► end ──► outbox
//!                                                            Reply, Backward, Fenced ──┘
//! ```
//!
//! Must not know: why a machine does what it does; it is told by what comes out alone. Nothing here
//! is missed by anybody: when there is too much, it is dropped and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use tyr_protocol::Chain;
use tyr_protocol::commit::{Attempt, Decision, Message, recovery};
use tyr_protocol::member::{Event, Record};
use tyr_protocol::message::{Address, Asked, Body, Envelope, Now};
use tyr_types::{NodeId, Timestamp, Transaction, TransactionId};

use super::outbox::Outbox;
use super::sampling::Sampling;
use super::span::{Happening, Outcome, Span};

/// Spans that are open at once: some 2 MiB. A node has at most 65,536 transactions in flight for
/// each head, so more than that is met only by tracing a large part of an overload.
const OPEN_MAX: usize = 4096;

/// A span that is open for so long is ended: every client has given up by then.
const OPEN_US_MAX: u64 = 60_000_000;

/// How often it is looked for those.
const SWEEP_US: u64 = 1_000_000;

/// Watches what passes.
#[derive(Debug)]
pub struct Watch {
    node: NodeId,
    sampling: Sampling,
    outbox: Arc<Outbox>,
    /// At most [`OPEN_MAX`].
    open: HashMap<TransactionId, Span, RandomState>,
    /// Numbers of records that are not known to be durable, ascending; at most [`OPEN_MAX`].
    unsynced: VecDeque<(u64, TransactionId)>,
    swept_us: u64,
}

impl Watch {
    /// Watches at `node`; spans that ended go to `outbox`.
    pub(crate) fn new(node: NodeId, sampling: Sampling, outbox: Arc<Outbox>) -> Self {
        let (open, unsynced) = (HashMap::default(), VecDeque::new());
        Self { node, sampling, outbox, open, unsynced, swept_us: 0 }
    }

    /// An event comes in.
    pub fn happened(&mut self, event: &Event, now: Now) {
        match event {
            Event::Receive(envelope) => self.received(envelope, now),
            Event::Persisted { number } => {
                self.persisted(*number, Happening::Persisted, now.monotonic_us);
            }
            Event::PersistFailed { number } => {
                self.persisted(*number, Happening::NotPersisted, now.monotonic_us);
            }
            Event::Tick => self.sweep(now.monotonic_us),
            Event::Resume | Event::Continue | Event::Unread(_) => {}
        }
    }

    fn received(&mut self, envelope: &Envelope, now: Now) {
        match &envelope.body {
            Body::Submit { transaction, is_retry, .. } => {
                // Under another's name it is not taken in.
                if envelope.from == Address::Client((transaction.id.0 >> 64) as u64) {
                    self.submitted(transaction, *is_retry, now);
                }
            }
            Body::Commit(message) => self.heard(message, now),
            Body::Recovery(recovery::Message::Query { id, .. }) => {
                self.note(*id, Happening::Queried, || now.monotonic_us);
            }
            Body::Recovery(
                recovery::Message::Ask { .. }
                | recovery::Message::Report { .. }
                | recovery::Message::Behind { .. }
                | recovery::Message::Clear { .. }
                | recovery::Message::Abort { .. }
                | recovery::Message::Aborted { .. },
            )
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {}
        }
    }

    fn submitted(&mut self, transaction: &Transaction, is_retry: bool, now: Now) {
        if !self.sampling.picks(transaction.id) {
            return;
        }
        match self.open.get_mut(&transaction.id) {
            Some(span) if is_retry => span.note(now.monotonic_us, Happening::AskedAgain),
            Some(_) => {} // It came twice.
            None => self.begin(Span::submitted(self.node, transaction, is_retry, now)),
        }
    }

    /// What another node of the chain says.
    fn heard(&mut self, message: &Message, now: Now) {
        let clock = || now.monotonic_us;
        match message {
            Message::Forward { transaction, chain, attempt, .. } => {
                self.forwarded(transaction, chain, *attempt, now);
            }
            Message::Decided { id, at, .. }
            | Message::Backward { id, decision: Decision::Commit(at), .. } => {
                self.decided(*id, *at, clock);
            }
            // It ends when this node passes that back.
            Message::Backward { decision: Decision::Abort(_), .. } => {}
            Message::Misplaced { id, .. } => self.note(*id, Happening::Misplaced, clock),
            Message::Withdrawn { id, .. } => self.note(*id, Happening::Withdrawn, clock),
            Message::Again { .. }
            | Message::Anchored { .. }
            | Message::Stable { .. }
            | Message::AskStable { .. } => {}
        }
    }

    fn forwarded(&mut self, transaction: &Transaction, chain: &Chain, attempt: Attempt, now: Now) {
        let id = transaction.id;
        if !self.sampling.picks(id) {
            return;
        }
        let Some(position) = chain.position(self.node) else { return };
        match self.open.get_mut(&id) {
            Some(span) if span.attempt == Some(attempt) => return, // It came twice.
            Some(span) if position == 0 => {
                span.locate(self.node, chain, attempt);
                return span.note(now.monotonic_us, Happening::EnteredAgain(attempt));
            }
            Some(_) => self.end(id, Outcome::Superseded, || now.monotonic_us),
            None => {}
        }
        let span = Span::forwarded(self.node, position, transaction, chain, attempt, now);
        self.begin(span);
    }

    /// A message goes out.
    pub fn sent(&mut self, to: Address, body: &Body, clock: impl FnOnce() -> u64) {
        match body {
            Body::Commit(Message::Forward { transaction, chain, attempt, .. }) => {
                self.passed_on(to, transaction.id, chain, *attempt, clock);
            }
            Body::Commit(Message::Backward { id, decision, .. })
            | Body::Reply { id, decision, .. } => self.passed_back(*id, decision, clock),
            Body::Commit(Message::Decided { id, at, .. }) => self.decided(*id, *at, clock),
            Body::NotHere(Asked::Transaction(id)) => self.forget(*id),
            Body::NotHere(Asked::Read(_))
            | Body::NotUnderstood { .. }
            | Body::Commit(
                Message::Misplaced { .. }
                | Message::Withdrawn { .. }
                | Message::Again { .. }
                | Message::Anchored { .. }
                | Message::Stable { .. }
                | Message::AskStable { .. },
            )
            | Body::Submit { .. }
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {}
        }
    }

    fn passed_on(
        &mut self,
        to: Address,
        id: TransactionId,
        chain: &Chain,
        attempt: Attempt,
        clock: impl FnOnce() -> u64,
    ) {
        let node = self.node;
        let Some(span) = self.span(id) else { return };
        let Address::Node(next) = to else { return };
        // Who begins a pass at another head was the head by an older chain, or looks after what is
        // held up.
        let is_begun_elsewhere = chain.hops()[0].node == next;
        match is_begun_elsewhere {
            true if span.is_submitted => self.end(id, Outcome::Withdrawn, clock),
            true => {}
            false => {
                span.locate(node, chain, attempt);
                span.note(clock(), Happening::Forwarded(next));
            }
        }
    }

    fn passed_back(&mut self, id: TransactionId, decision: &Decision, clock: impl FnOnce() -> u64) {
        let Some(span) = self.span(id) else { return };
        if span.is_repeated() {
            return self.forget(id);
        }
        let outcome = match decision {
            Decision::Commit(at) => Outcome::Committed(*at),
            Decision::Abort(abort) => {
                Outcome::Aborted { kind: abort.kind, reason: abort.reason.clone() }
            }
        };
        self.end(id, outcome, clock);
    }

    /// A record is given to the log under this number.
    pub fn logged(&mut self, number: u64, record: &Record, clock: impl FnOnce() -> u64) {
        let node = self.node;
        match record {
            Record::Validated { transaction, chain, attempt, proposal, .. } => {
                let id = transaction.id;
                let Some(span) = self.span(id) else { return };
                span.locate(node, chain, *attempt);
                span.note(clock(), Happening::Validated(*proposal));
                if self.unsynced.len() < OPEN_MAX {
                    self.unsynced.push_back((number, id));
                }
            }
            Record::Decided { id, at } => {
                if let Some(span) = self.span(*id) {
                    let now_us = clock();
                    span.decide(now_us, *at);
                    span.note(now_us, Happening::Applied);
                }
            }
            Record::Aborted { id, .. } => self.note(*id, Happening::AbortLogged, clock),
            Record::Fenced { id, is_cleared: true, .. } => match self.span(*id) {
                // A head goes on with it, and answers for it.
                Some(span) if span.is_submitted => span.note(clock(), Happening::Withdrawn),
                Some(_) => self.end(*id, Outcome::Withdrawn, clock),
                None => {}
            },
            Record::Fenced { is_cleared: false, .. }
            | Record::Map(_)
            | Record::Answered { .. }
            | Record::Recalled { .. }
            | Record::Installed { .. }
            | Record::Finished { .. }
            | Record::Remembered { .. }
            | Record::Marked { .. }
            | Record::Staged { .. }
            | Record::Unstaged { .. }
            | Record::CompleteTo { .. }
            | Record::Standing { .. }
            | Record::Aside { .. } => {}
        }
    }

    /// Records become durable in their order, so what is before this one is of no interest.
    fn persisted(&mut self, number: u64, what: Happening, now_us: u64) {
        while let Some((first, id)) = self.unsynced.front().copied()
            && first <= number
        {
            self.unsynced.pop_front();
            if first == number {
                self.note(id, what, || now_us);
            }
        }
    }

    /// Everything that is open ends as it is: the node stops.
    pub fn close(&mut self, now_us: u64) {
        for (_, span) in self.open.drain() {
            self.outbox.push(span.end(now_us, Outcome::Unfinished));
        }
    }

    /// Ends what has been open for too long.
    fn sweep(&mut self, now_us: u64) {
        if now_us < self.swept_us + SWEEP_US {
            return;
        }
        self.swept_us = now_us;
        let is_old = |_: &TransactionId, span: &mut Span| now_us >= span.begun_us + OPEN_US_MAX;
        for (_, span) in self.open.extract_if(is_old) {
            self.outbox.push(span.end(now_us, Outcome::Unfinished));
        }
    }

    /// The open span of a transaction, if it is traced.
    fn span(&mut self, id: TransactionId) -> Option<&mut Span> {
        if self.sampling.picks(id) { self.open.get_mut(&id) } else { None }
    }

    fn note(&mut self, id: TransactionId, what: Happening, clock: impl FnOnce() -> u64) {
        if let Some(span) = self.span(id) {
            span.note(clock(), what);
        }
    }

    fn decided(&mut self, id: TransactionId, at: Timestamp, clock: impl FnOnce() -> u64) {
        if let Some(span) = self.span(id) {
            span.decide(clock(), at);
        }
    }

    fn begin(&mut self, span: Span) {
        match self.open.len() < OPEN_MAX {
            true => {
                self.open.insert(span.transaction, span);
            }
            false => self.outbox.note_crowded(),
        }
    }

    fn end(&mut self, id: TransactionId, outcome: Outcome, clock: impl FnOnce() -> u64) {
        if let Some(span) = self.open.remove(&id) {
            self.outbox.push(span.end(clock(), outcome));
        }
    }

    /// Another node is asked, and tells of it.
    fn forget(&mut self, id: TransactionId) {
        self.open.remove(&id);
    }
}

#[cfg(test)]
mod tests;
