//! A transaction on its way to the head of its chain.
//!
//! It is sent again until it is answered, always with the same id and the time of its first
//! submission, and marked as a retry: the head finds out what became of it (F4). It is never
//! simply run again, not even when a node says that it did not take it in, since the network may
//! have doubled the message. What is refused for want of room is in [`room`](super::room).

use std::sync::Arc;

use tyr_types::{
    BlobOperations, ErrorKind, NodeId, Operation, ReadCheck, Timestamp, Transaction, TransactionId,
};

use super::event::CallId;
use super::gather::Question;
use super::limits::Limits;
use super::reading::{Ask, Target};
use super::routing::{Sent, pause_us};
use super::{Answer, Effect, Session, Task, fail};
use crate::abort::Abort;
use crate::chain::Ends;
use crate::commit::recovery::NEVER_BEGUN;
use crate::commit::{Decision, Outcomes};
use crate::level::level_of;
use crate::map::{ClusterMap, DROPPED};
use crate::message::{Asked, Body};
use crate::rule::Rule;

/// A transaction that is to be submitted, or was.
#[derive(Debug)]
pub(super) struct Submission {
    transaction: Arc<Transaction>,
    /// Bytes that it carries.
    pub len: u64,
    ends: Ends,
    /// How often it was sent, in this call and those before, without what was refused at the door.
    tries: u32,
    /// Whether the call asks what became of it: then it is not committed anew.
    pub is_question: bool,
    /// Where it was sent last; `None` while it waits to be sent.
    head: Option<Sent>,
    /// Where it waits until more may be sent there.
    pub queued_at: Option<NodeId>,
    /// How often a node had no room for it.
    pub refusals: u32,
    /// Where it was sent and refused at the door last.
    refused_at: Option<Sent>,
    pub refusal: Option<Abort>,
}

impl Submission {
    fn new(transaction: Arc<Transaction>, ends: Ends, is_question: bool) -> Self {
        let len = transaction.payload_len();
        let tries = u32::from(is_question); // It was sent before.
        Self {
            transaction,
            len,
            ends,
            tries,
            is_question,
            head: None,
            queued_at: None,
            refusals: 0,
            refused_at: None,
            refusal: None,
        }
    }

    /// Whether a newer map changes where it is to be sent.
    ///
    /// Where the head lives it answers, or says that it is not the head any more.
    pub fn needs_resend(&self, map: &ClusterMap) -> bool {
        self.head.is_none_or(|head| !map.is_live(head.to))
    }

    /// Its place among the transactions of this client.
    pub fn sequence(&self) -> u64 {
        sequence_of(self.transaction.id)
    }

    /// Whether an answer is waited for.
    pub fn is_sent(&self) -> bool {
        self.head.is_some()
    }

    /// What was sent to `head`, if anything, is waited for from now on, and nothing else.
    pub fn wait_for(&mut self, head: Option<Sent>, limits: &mut Limits) {
        if let Some(before) = std::mem::replace(&mut self.head, head) {
            limits.over(before.to, self.len);
        }
        if let Some(head) = head {
            limits.sent(head.to, self.len);
        }
    }

    /// The head has refused it at the door: it was as good as not sent.
    pub fn take_back(&mut self, why: Abort, limits: &mut Limits) {
        (self.refused_at, self.tries) = (self.head, 0);
        self.refusal = Some(why);
        self.wait_for(None, limits);
    }

    /// Whose answer is waited for.
    pub fn waits_for(&self) -> Option<NodeId> {
        self.head.map(|head| head.to)
    }
}

impl Session {
    /// A call commits a transaction.
    pub(super) fn commit(
        &mut self,
        call: CallId,
        blobs: Vec<BlobOperations>,
        reads: Vec<ReadCheck>,
        effects: &mut Vec<Effect>,
    ) {
        let id = TransactionId::new(self.client, 0);
        let mut transaction = Transaction { id, blobs, reads };
        if let Err(error) = transaction.validate() {
            let reason = error.message().to_owned();
            let abort = Abort::new(error.kind(), reason);
            return fail(call, abort, effects);
        }
        let mut keyspaces = transaction.blobs.iter().map(|entry| entry.blob.keyspace);
        if keyspaces.any(|keyspace| self.map.is_dropped(keyspace)) {
            return fail(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        if let Err(error) = self.map.check_level(level_of(&transaction)) {
            self.fetch_map(None, effects); // There may be a newer one.
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return fail(call, abort, effects);
        }
        let sequence = self.unsettled.open(call, self.numbers);
        transaction.id = TransactionId::new(self.client, sequence);
        let transaction = Arc::new(transaction);
        if transaction.blobs.is_empty() && transaction.reads.is_empty() {
            self.unsettled.close(sequence);
            let (at, outcomes) = (Timestamp::ZERO, Outcomes::new());
            let answer = Answer::Committed { transaction, at, outcomes };
            return effects.push(Effect::Done { call, answer });
        }
        let ends = self.guess_ends(&transaction);
        let submission = Submission::new(transaction, ends, false);
        self.enter(call, Task::Commit(submission));
        self.submit(call, effects);
    }

    /// A call asks what became of a transaction whose outcome is unknown.
    pub(super) fn ask_outcome(
        &mut self,
        call: CallId,
        transaction: Arc<Transaction>,
        effects: &mut Vec<Effect>,
    ) {
        let sequence = sequence_of(transaction.id);
        let is_own = transaction.id == TransactionId::new(self.client, sequence);
        if !is_own || !self.unsettled.ask(sequence, call) {
            let reason = "the outcome of this transaction cannot be asked for: another client's, \
                          in flight, answered, or too long ago; read what it would have written";
            let abort = Abort::new(ErrorKind::TimedOut, reason);
            let answer = Answer::Aborted { transaction, abort };
            return effects.push(Effect::Done { call, answer });
        }
        let ends = self.guess_ends(&transaction);
        let submission = Submission::new(transaction, ends, true);
        self.enter(call, Task::Commit(submission));
        self.submit(call, effects);
    }

    /// Sends a transaction to the head of its chain by the newest map, as soon as the cluster's
    /// clock is known.
    pub(super) fn submit(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        let chain = match self.map.chain(&submission.transaction, &submission.ends) {
            Ok(chain) => chain,
            Err(abort) => {
                submission.wait_for(None, &mut self.limits);
                submission.refusal = Some(abort.clone());
                return self.not_routed(call, abort, effects);
            }
        };
        if submission.tries == 0
            && let Err(abort) = self.map.check_served(&chain)
        {
            return self.not_served(call, abort, effects);
        }
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        in_flight.stuck = None;
        let entry =
            self.unsettled.entry(submission.sequence()).expect("in flight, so not answered");
        debug_assert_eq!(entry.call, Some(call), "a transaction is sent by who waits for it");
        let is_dated = submission.tries == 0 || entry.begun_us.is_some();
        debug_assert!(is_dated, "F4: all that is sent of it tells the same time");
        let known_us = entry.begun_us.or_else(|| self.clock.now_us(self.now_us));
        let Some(begun_us) = known_us else {
            let blob = first_blob(&submission.transaction).expect("it has a chain").clone();
            if in_flight.questions.is_empty() {
                let ask = Ask { target: Target::Time, blob, question: Question::CLOCK };
                self.ask(call, ask, effects);
            }
            return;
        };
        let to = chain.hops()[0].node;
        if submission.tries == 0
            && let Some(abort) = self.limits.refusal(to, submission.len, self.now_us)
        {
            return self.wait_for_room(call, to, abort, effects);
        }
        submission.queued_at = None;
        entry.begun_us = Some(begun_us);
        let sent = Sent { to, epoch: self.map.epoch, at_us: self.now_us };
        // Sent to the same once more, it is no other than a message that the network doubled.
        let is_elsewhere = |at: Sent| (at.to, at.epoch) != (sent.to, sent.epoch);
        submission.tries += u32::from(submission.refused_at.take().is_some_and(is_elsewhere));
        let is_retry = submission.tries > 0 && self.rules.hold(Rule::F4);
        submission.tries += 1;
        submission.wait_for(Some(sent), &mut self.limits);
        let (transaction, ends) = (submission.transaction.clone(), submission.ends.clone());
        let (tries, sequence) = (submission.tries, submission.sequence());
        for number in std::mem::take(&mut in_flight.questions) {
            self.withdraw(number, effects);
        }
        let settled = self.unsettled.settled();
        self.send(to, Body::Submit { transaction, ends, begun_us, is_retry, settled }, effects);
        let (first_us, max_us) = (self.config.commit_retry_us, self.config.retry_max_us);
        self.resume_in(call, pause_us(first_us, max_us, tries, self.client ^ sequence));
    }

    /// A node is down that alone has what a new transaction touches. The map may be an old one: it
    /// is refused when the next look shows the same.
    fn not_served(&mut self, call: CallId, abort: Abort, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        if submission.refusal.as_ref() == Some(&abort) {
            return self.give_up(call, abort, effects);
        }
        submission.wait_for(None, &mut self.limits);
        submission.refusal = Some(abort.clone());
        self.not_routed(call, abort, effects);
    }

    /// The map has no chain for a transaction.
    fn not_routed(&mut self, call: CallId, abort: Abort, effects: &mut Vec<Effect>) {
        match abort.kind {
            ErrorKind::Unavailable => {
                self.resume_in(call, self.config.read_retry_us);
                self.fetch_map(None, effects);
            }
            ErrorKind::NotFound => self.is_stuck(call, effects),
            ErrorKind::TimedOut
            | ErrorKind::Corrupt
            | ErrorKind::SnapshotTooOld
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded => self.give_up(call, abort, effects),
        }
    }

    /// A node said what became of a transaction; or, with `is_refused`, that it did not look at it,
    /// which says nothing of what was sent besides.
    pub(super) fn replied(
        &mut self,
        id: TransactionId,
        decision: Decision,
        outcomes: Outcomes,
        is_refused: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.waiting_for(id) else { return };
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        if submission.tries == 0 {
            return; // It cannot have an answer.
        }
        if let Some(head) = submission.head {
            match &decision {
                Decision::Abort(abort) if is_refused && abort.kind == ErrorKind::Unavailable => {
                    self.limits.refused(head.to, abort, head.at_us, self.now_us);
                }
                Decision::Abort(_) | Decision::Commit(_) => {
                    self.limits.answered(head.to, self.now_us);
                }
            }
        }
        if is_refused && submission.tries > 1 {
            return; // Another node may have taken it in, or this one what was sent after it.
        }
        match &decision {
            Decision::Abort(abort) if is_refused && self.wait_after_refusal(call, abort) => {}
            Decision::Abort(_) | Decision::Commit(_) => {
                self.decided(call, decision, outcomes, effects);
            }
        }
    }

    /// What became of a transaction is known.
    fn decided(
        &mut self,
        call: CallId,
        decision: Decision,
        outcomes: Outcomes,
        effects: &mut Vec<Effect>,
    ) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        let sequence = submission.sequence();
        match decision {
            Decision::Abort(abort) if is_never_begun(&abort) && !submission.is_question => {
                self.commit_anew(call, effects);
            }
            Decision::Abort(abort) => {
                let transaction = submission.transaction.clone();
                self.leave(call, effects);
                match abort.kind == ErrorKind::TimedOut {
                    true => self.unsettled.leave(sequence, self.now_us),
                    false => self.unsettled.close(sequence),
                }
                let answer = Answer::Aborted { transaction, abort };
                effects.push(Effect::Done { call, answer });
            }
            Decision::Commit(at) => {
                let transaction = submission.transaction.clone();
                self.leave(call, effects);
                self.unsettled.close(sequence);
                for (index, entry) in transaction.blobs.iter().enumerate() {
                    let own = outcomes.iter().filter(|answer| answer.blob as usize == index);
                    self.sizes.committed(entry, own);
                }
                let answer = Answer::Committed { transaction, at, outcomes };
                effects.push(Effect::Done { call, answer });
            }
        }
    }

    /// The nodes have found that the transaction had not reached any of them, and made sure that it
    /// never takes effect under this id (F12): it is submitted under a new one.
    fn commit_anew(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        self.unsettled.close(submission.sequence());
        let id = TransactionId::new(self.client, self.unsettled.open(call, self.numbers));
        debug_assert_ne!(
            id, submission.transaction.id,
            "F12: under this one it never takes effect"
        );
        let transaction = Transaction { id, ..(*submission.transaction).clone() };
        submission.wait_for(None, &mut self.limits);
        submission.transaction = Arc::new(transaction);
        (submission.tries, submission.refused_at) = (0, None);
        self.submit(call, effects);
    }

    /// A node is not the head of a transaction's chain, or has no lease.
    pub(super) fn not_head(&mut self, from: NodeId, id: TransactionId, effects: &mut Vec<Effect>) {
        let epoch = self.map.epoch;
        let Some(call) = self.waiting_for(id) else { return };
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Commit(submission) = &mut in_flight.task else { return };
        match submission.head {
            Some(head) if head.to == from => {
                submission.wait_for(None, &mut self.limits);
                match head.epoch < epoch {
                    true => self.submit(call, effects),
                    false => self.resume_later(call),
                }
            }
            Some(_) | None => {} // Doubled, or late.
        }
    }

    /// A node does not understand what it was asked: its program is of an older release.
    pub(super) fn misread(
        &mut self,
        from: NodeId,
        asked: Asked,
        level: u8,
        effects: &mut Vec<Effect>,
    ) {
        let reason = format!(
            "node {} does not understand this: it speaks feature levels up to {level}, and is of \
             an older release; upgrade it",
            from.0
        );
        let abort = Abort::new(ErrorKind::Unavailable, reason);
        let id = match asked {
            Asked::Read(read) => return self.refused(from, read, abort, effects),
            Asked::Transaction(id) => id,
        };
        let Some(call) = self.waiting_for(id) else { return };
        let Some(Task::Commit(submission)) = self.calls.get(&call).map(|it| &it.task) else {
            return;
        };
        match submission.waits_for() == Some(from) && submission.tries == 1 {
            // Nobody else was asked, and this one did nothing.
            true => self.replied(id, Decision::Abort(abort), Outcomes::new(), false, effects),
            false => self.not_head(from, id, effects),
        }
    }

    /// A transaction is sent again after a pause, by the map of then.
    fn resume_later(&mut self, call: CallId) {
        let Some(in_flight) = self.calls.get(&call) else { return };
        let Task::Commit(submission) = &in_flight.task else { return };
        let (first_us, max_us) = (self.config.read_retry_us, self.config.retry_max_us);
        let salt = self.client ^ submission.sequence();
        self.resume_in(call, pause_us(first_us, max_us, submission.tries, salt));
    }

    /// A committing call ends without an answer.
    pub(super) fn give_up_commit(
        &mut self,
        call: CallId,
        submission: Submission,
        abort: Abort,
        effects: &mut Vec<Effect>,
    ) {
        self.abandon(&submission);
        let abort = match submission.tries {
            0 => abort,
            _ => {
                let reason = "no node said in time what became of the transaction; ask again";
                Abort::new(ErrorKind::TimedOut, reason)
            }
        };
        let answer = Answer::Aborted { transaction: submission.transaction, abort };
        effects.push(Effect::Done { call, answer });
    }

    /// Nobody waits for a transaction any more.
    pub(super) fn abandon(&mut self, submission: &Submission) {
        match submission.tries {
            0 => self.unsettled.close(submission.sequence()),
            _ => self.unsettled.leave(submission.sequence(), self.now_us),
        }
    }

    /// A node said its clock. The first one in a while lets go what waits for the time.
    pub(super) fn observe(&mut self, clock: Timestamp, effects: &mut Vec<Effect>) {
        let is_first = self.clock.now_us(self.now_us).is_none();
        self.clock.observe(clock, self.now_us);
        if is_first {
            let waiting: Vec<CallId> = self.unsettled.undated().collect();
            waiting.into_iter().for_each(|call| self.submit(call, effects));
        }
    }

    /// The call that waits for this transaction.
    fn waiting_for(&mut self, id: TransactionId) -> Option<CallId> {
        let sequence = sequence_of(id);
        let is_own = id == TransactionId::new(self.client, sequence);
        self.unsettled.entry(sequence).filter(|_| is_own)?.call
    }

    /// Where blobs end that a transaction appends to or cuts, as far as is known.
    fn guess_ends(&mut self, transaction: &Transaction) -> Ends {
        let mut ends = Ends::new();
        for (index, entry) in transaction.blobs.iter().enumerate() {
            if !entry.operations.iter().any(Operation::depends_on_end) {
                continue;
            }
            if let Some(end) = self.sizes.guess(&entry.blob) {
                let index = u32::try_from(index).expect("TRANSACTION_OPERATIONS_MAX is below 2^32");
                ends.push((index, end));
            }
        }
        ends
    }
}

/// Whether a transaction was given up because nobody had it when it was asked about (F12).
fn is_never_begun(abort: &Abort) -> bool {
    abort.kind == ErrorKind::Unavailable && abort.reason == NEVER_BEGUN
}

fn first_blob(transaction: &Transaction) -> Option<&tyr_types::BlobName> {
    let written = transaction.blobs.iter().map(|entry| &entry.blob);
    written.chain(transaction.reads.iter().map(|read| &read.blob)).next()
}

/// The lower half of an id: the client's count.
fn sequence_of(id: TransactionId) -> u64 {
    id.0 as u64
}
