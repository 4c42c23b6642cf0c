//! What the machines ask for is done: to the log, to the store, in envelopes.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tyr_types::{
    Epoch, ErrorKind, NodeId, Operation, Payload, PieceId, Timestamp, Transaction, TransactionId,
};

use super::key_guard::Guarded;
use super::submission::lacks_answers;
use super::supply::written_at;
use super::{ChunkName, Effect, Member, Record, Store, Turn};
use crate::abort::Abort;
use crate::chain::{Chain, Ends};
use crate::commit::event::client_of;
use crate::commit::{self, Attempt, Decision, Message, Outcomes, recovery};
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body};
use crate::movement::{self, scrub::is_repair};
use crate::read;
use crate::rule::Rule;
use crate::upload::is_uploaded;

/// How often a transaction is placed anew because a blob ended elsewhere than was thought. The end
/// has to move by a chunk each time in between, so this many are not met.
const MISPLACED_MAX: u8 = 32;

/// Who waits for a record to be durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// The commit machine: the transaction is validated.
    Validated(TransactionId, Attempt),
    /// The commit machine: a promise to take part in nothing older.
    Fenced { id: TransactionId, attempt: Attempt, is_cleared: bool },
    /// The commit machine: the outcome.
    Noted(TransactionId),
    /// The recipient: a page of what another node remembers.
    Recalled { from: NodeId, epoch: Epoch, after: u64, next: Option<u64> },
    /// The recipient: the last piece of a chunk.
    Stored(super::ChunkName),
    /// Nobody, but what comes after it in the log is worth nothing without it.
    Map,
    /// The monitors: the node has prepared for the map of this epoch.
    Prepared(Epoch),
    /// Who passed on a piece, or its client: it is staged (U1).
    Staged { id: PieceId, passed_by: Option<NodeId>, is_new: bool },
    /// Nobody but those who want to know how far the log is durable.
    Done,
}

/// What a machine said to this node itself.
pub(super) enum Own {
    Commit(Message),
    Recovery(recovery::Message),
}

/// Whether it is validated where it comes to, and refers to pieces (U4).
fn is_validated_with_pieces(message: &Message) -> bool {
    let Message::Forward { transaction, known: None, .. } = message else { return false };
    is_uploaded(transaction)
}

impl<S: Store> Turn<'_, S> {
    /// Tells the commit machine of an event, and does what it asks for.
    pub(super) fn commit(&mut self, event: commit::Event) {
        let mut own = VecDeque::new();
        self.step_commit(event, &mut own);
        // A node is a hop like any other, and may be told of by itself.
        while let Some(message) = own.pop_front() {
            let event = match message {
                Own::Commit(message) if self.is_refused(&message) => continue,
                Own::Commit(message) if is_validated_with_pieces(&message) => {
                    self.commit_with_pieces(commit::Event::Receive(message));
                    continue;
                }
                Own::Commit(message) => commit::Event::Receive(message),
                Own::Recovery(message) => commit::Event::Recover(message),
            };
            self.step_commit(event, &mut own);
        }
    }

    fn step_commit(&mut self, event: commit::Event, own: &mut VecDeque<Own>) {
        let mut effects = Vec::new();
        let now_us = self.member.now.wall_us;
        let Member { commit, key_leases: leases, node, now, .. } = &mut *self.member;
        let (now_us_here, rules) = (now.monotonic_us, commit.rules);
        let view = Guarded { store: &*self.store, leases, node: *node, now_us: now_us_here, rules };
        commit.step(now_us, event, &view, &mut effects);
        for effect in effects {
            self.execute(effect, own);
        }
    }

    fn execute(&mut self, effect: commit::Effect, own: &mut VecDeque<Own>) {
        match effect {
            commit::Effect::Send { to, message } => self.send_commit(to, message, own),
            commit::Effect::Recover { to, message } if to == self.member.node => {
                own.push_back(Own::Recovery(message));
            }
            commit::Effect::Recover { to, message } => {
                self.send(Address::Node(to), Body::Recovery(message));
            }
            commit::Effect::Persist { transaction, chain, attempt, proposal, placed } => {
                debug_assert!(chain.position(self.member.node).is_some(), "C3: it is of the chain");
                self.hear_of_chunks(&chain);
                self.is_let_in(&transaction);
                let promise = Promise::Validated(transaction.id, attempt);
                let records = &self.member.commit.records;
                let begun = records.slot(transaction.id).map(|slot| records[slot].begun);
                let begun = begun.unwrap_or(proposal);
                let record =
                    Record::Validated { transaction, chain, attempt, begun, proposal, placed };
                self.persist(record, Some(promise));
            }
            commit::Effect::Fence { id, attempt, is_cleared } => {
                let record = Record::Fenced { id, attempt, is_cleared };
                self.persist(record, Some(Promise::Fenced { id, attempt, is_cleared }));
            }
            commit::Effect::Note { id, decision, is_synced } => {
                let record = match decision {
                    Decision::Commit(at) => Record::Decided { id, at },
                    Decision::Abort(abort) => Record::Aborted { id, abort },
                };
                self.persist(record, is_synced.then_some(Promise::Noted(id)));
            }
            commit::Effect::NoteHeard { heard } => {
                self.persist(Record::Recalled { outcomes: heard }, None);
            }
            commit::Effect::Apply { transaction, chain, at } => {
                self.apply(&transaction, &chain, at);
                self.give_leases_after(&transaction);
                self.tell_of(&transaction, at);
                let id = transaction.id;
                let outcomes = self.member.commit.answers(id).cloned().unwrap_or_default();
                if !outcomes.is_empty() {
                    self.persist(Record::Answered { id, outcomes }, None);
                }
            }
            commit::Effect::Reply { id, decision, outcomes, transaction } => {
                self.answer(id, decision, outcomes, transaction.as_deref());
            }
            commit::Effect::Misplaced { transaction, chain, blob, end } => {
                self.place_anew(&transaction, &chain, blob, end, own);
            }
            commit::Effect::Recall { client, needed } => self.recall(client, needed),
            commit::Effect::Moved { id } => self.ask_reads(read::Event::Moved { transaction: id }),
            commit::Effect::Resume => {
                self.effects.push(Effect::Resume);
            }
        }
    }

    /// Applies a transaction, and keeps what it answers here.
    pub(super) fn apply(&mut self, transaction: &Arc<Transaction>, chain: &Chain, at: Timestamp) {
        let (clock, rules) = (self.member.commit.clock(), self.member.commit.rules);
        debug_assert!(at <= clock || !rules.hold(Rule::C8), "C8: {at} is shown above the clock");
        self.hear_of_chunks(chain);
        let is_laid_aside = self.lay_aside(transaction, chain, at);
        if is_laid_aside {
            self.member.unanswered.insert(transaction.id);
        }
        if !self.member.commit.rules.hold(Rule::D1) && self.is_only_recipient(chain) {
            return;
        }
        let unsure = self.take_unsure(transaction.id, at);
        let mut outcomes = match rules.hold(Rule::C10) {
            true => self.store.apply(transaction, chain, at),
            false => {
                let wrong = stamped_here(transaction, self.member.node, at);
                self.store.apply(&Arc::new(wrong), chain, at)
            }
        };
        if self.member.map.as_ref().is_some_and(|map| at.epoch < map.moved) {
            // Of a chunk that has gone to others since, nothing is left here that could answer, and
            // nothing must be that would be taken for it when it comes back.
            let is_known = |it: &commit::Answered| {
                let chunk = self.member.chunk_that_answered(transaction, it);
                chunk.is_some_and(|it| self.member.is_placed_here(&it) && !unsure.contains(&it))
            };
            outcomes = outcomes.iter().copied().filter(is_known).collect();
            self.release_strays(chain);
        }
        self.use_pieces(transaction, is_laid_aside);
        self.member.commit.answered(transaction.id, outcomes);
        self.use_alone(transaction, chain);
    }

    /// The node begins anew by `map` with the chunks that it is a recipient of: what is on no list
    /// of others is not there. What is in flight here may be why: then nothing here says so once it
    /// is applied, and what it answers here is not so.
    pub(super) fn note_unsure(&mut self, map: &ClusterMap) {
        let Member { node, commit, unsure, .. } = &mut *self.member;
        unsure.retain(|id, _| commit.records.slot(*id).is_some());
        for (_, record) in commit.records.iter().filter(|(_, record)| !record.is_applied()) {
            for chunk in written_at(*node, &record.chain, map) {
                if map.recipients(&chunk.0, chunk.1).contains(node) {
                    unsure.entry(record.transaction.id).or_default().insert(chunk, map.moved);
                }
            }
        }
    }

    /// The chunks that are not here, perhaps by this transaction, which is applied now.
    fn take_unsure(&mut self, id: TransactionId, at: Timestamp) -> BTreeSet<ChunkName> {
        let chunks = self.member.unsure.remove(&id).unwrap_or_default();
        let is_not_here =
            |it: &ChunkName| !self.store.is_awaited(it) && !self.store.local_chunk(it).exists;
        let late = chunks.into_iter().filter(|(_, listed)| at.epoch < *listed);
        late.map(|(chunk, _)| chunk).filter(is_not_here).collect()
    }

    /// Goes on with a transaction that was applied here before the node began anew: to what it
    /// keeps, and to what is on its way to it.
    pub(super) fn keep_applied(
        &mut self,
        transaction: &Arc<Transaction>,
        chain: &Chain,
        at: Timestamp,
    ) {
        self.hear_of_chunks(chain);
        let is_laid_aside = self.lay_aside(transaction, chain, at);
        if is_laid_aside {
            self.member.unanswered.insert(transaction.id);
        }
        self.store.apply_to_awaited(transaction, chain, at);
        self.use_pieces(transaction, is_laid_aside);
        self.use_alone(transaction, chain);
    }

    fn send_commit(&mut self, to: NodeId, mut message: Message, own: &mut VecDeque<Own>) {
        if let Message::Backward { id, decision: Decision::Commit(_), outcomes, .. } = &mut message
        {
            self.member.commit.complete(*id, outcomes);
        }
        if let Message::Stable { id, outcomes, .. } = &mut message
            && self.member.has_recipients
        {
            self.member.commit.complete(*id, outcomes);
        }
        self.give_usages(&mut message);
        if to == self.member.node {
            own.push_back(Own::Commit(message));
            return;
        }
        self.send(Address::Node(to), Body::Commit(message));
    }

    /// Tells a client what became of its transaction, and what it answered here and elsewhere.
    fn answer(
        &mut self,
        id: TransactionId,
        decision: Decision,
        mut outcomes: Outcomes,
        transaction: Option<&Transaction>,
    ) {
        self.member.misplaced.remove(&id);
        if let Decision::Abort(_) = &decision {
            return self.reply(id, decision, Outcomes::new());
        }
        self.member.commit.complete(id, &mut outcomes);
        match transaction.is_some_and(|it| lacks_answers(it, &outcomes)) && !is_repair(id) {
            // Who had the rest has forgotten it, and this node will hear so soon (F11); or it comes
            // here with a chunk (F4). The client asks on.
            true => self.not_here(client_of(id), Asked::Transaction(id)),
            false => self.reply(id, decision, outcomes),
        }
    }

    /// Tells a client what became of its transaction.
    pub(super) fn reply(&mut self, id: TransactionId, decision: Decision, outcomes: Outcomes) {
        if is_repair(id) {
            return; // What became of it shows when replicas are compared again.
        }
        let client = client_of(id);
        let clock = self.member.commit.clock();
        self.send(Address::Client(client), Body::Reply { id, decision, outcomes, clock });
    }

    /// The chain did not reach the end of a blob: makes one that does.
    fn place_anew(
        &mut self,
        transaction: &Arc<Transaction>,
        chain: &Chain,
        blob: u32,
        end: u64,
        own: &mut VecDeque<Own>,
    ) {
        let id = transaction.id;
        let tries = self.member.misplaced.entry(id).or_insert(0);
        *tries += 1;
        if *tries > MISPLACED_MAX {
            self.member.misplaced.remove(&id);
            return; // It is asked about in time, and begins anew (F6).
        }
        debug_assert_eq!(chain.position(self.member.node), Some(0), "the head places it anew");
        let Some(map) = self.member.map.clone() else { return };
        let mut ends: Ends = chain.ends().clone();
        match ends.iter_mut().find(|(of, _)| *of == blob) {
            Some((_, known)) => *known = end,
            None => ends.push((blob, end)),
        }
        let is_once = |of: u32| ends.iter().filter(|(other, _)| *other == of).count() == 1;
        debug_assert!(is_once(blob), "of a blob there is one guess: {ends:?}");
        let commit = &self.member.commit;
        let slot = commit.records.slot(id);
        let is_again = slot.is_some_and(|slot| commit.records[slot].entered_in.number > 0);
        let chain = match is_again {
            true => recovery::chain_of_begun(commit.rules, &map, transaction, &ends),
            false => map.chain(transaction, &ends),
        };
        let Ok(chain) = chain else { return };
        let epoch = map.epoch;
        if !self.is_planned_away(|map| map.is_affected(&chain, transaction, epoch)) {
            self.step_commit(commit::Event::Reroute { id, chain }, own);
        }
    }

    /// A record is durable.
    pub(super) fn persisted(&mut self, number: u64) {
        debug_assert!(number <= self.member.records, "C3: only what was written is durable");
        self.member.done.persisted(number);
        match self.member.promises.remove(&number) {
            Some(Promise::Validated(id, attempt)) => {
                self.commit(commit::Event::Persisted { id, attempt });
            }
            Some(Promise::Fenced { id, attempt, is_cleared }) => {
                self.commit(commit::Event::Fenced { id, attempt, is_cleared });
            }
            Some(Promise::Noted(id)) => self.commit(commit::Event::Noted { id }),
            Some(Promise::Recalled { from, epoch, after, next }) => {
                self.supply(movement::Event::Recalled { from, epoch, after, next });
            }
            Some(Promise::Stored(chunk)) => self.supply(movement::Event::Stored(chunk)),
            Some(Promise::Prepared(epoch)) => self.prepared_durably(epoch),
            Some(Promise::Staged { id, passed_by, is_new: _ }) => {
                self.staged_durably(id, passed_by);
            }
            Some(Promise::Map | Promise::Done) | None => {}
        }
    }

    /// A record is not known to be durable. The log takes no more until the node starts again, so
    /// it can validate nothing; what it knows it still serves, while others can do without it.
    pub(super) fn persist_failed(&mut self, number: u64) {
        debug_assert!(number <= self.member.records, "C3: only what was written fails");
        match self.member.promises.remove(&number) {
            Some(Promise::Prepared(epoch)) => {
                self.member.is_broken = true;
                self.prepared_durably(epoch);
            }
            Some(Promise::Staged { id, passed_by: _, is_new }) => self.not_staged(id, is_new),
            Some(Promise::Validated(id, _)) => {
                let record = self.member.commit.records.slot(id);
                let is_known = |slot| self.member.commit.records[slot].known.is_some();
                // Others must not wait for this node to take part in what is committed.
                self.member.is_broken |= record.is_some_and(is_known);
                self.commit(commit::Event::PersistFailed { id });
            }
            Some(
                Promise::Fenced { .. }
                | Promise::Noted(_)
                | Promise::Recalled { .. }
                | Promise::Stored(_)
                | Promise::Map
                | Promise::Done,
            ) => self.member.is_broken = true,
            None => {}
        }
    }

    /// Those that waited look again, if the node may validate now.
    pub(super) fn resume(&mut self) {
        match self.member.has_lease() && self.member.planned.is_empty() {
            true => {
                self.member.is_resume_due = false;
                self.catch_up_commit();
                self.commit(commit::Event::Resume);
            }
            false => self.member.is_resume_due = true,
        }
    }

    /// A message about a transaction on its way.
    pub(super) fn hear_commit(&mut self, message: Message) {
        if !self.is_refused(&message) {
            self.take_usages(&message);
            self.commit_with_pieces(commit::Event::Receive(message));
        }
    }

    /// Whether it asks for something to be validated on a chain that a planned map changes, after
    /// the monitors may have been told that this ends (M3).
    pub(super) fn is_refused(&self, message: &Message) -> bool {
        let Message::Forward { transaction, chain, attempt, .. } = message else { return false };
        let prepared = self.member.planned.iter().filter(|planned| planned.is_prepared);
        let mut maps = prepared.map(|planned| &planned.map);
        maps.any(|map| map.is_affected(chain, transaction, attempt.epoch))
    }

    /// A message about a transaction that was held up. Not while something is planned: nothing is
    /// driven anew under a map that ends.
    pub(super) fn hear_recovery(&mut self, message: recovery::Message) {
        if self.member.planned.is_empty() {
            self.commit_with_pieces(commit::Event::Recover(message));
        }
    }
}

impl Member {
    /// Whether this chunk is placed here by the newest map.
    fn is_placed_here(&self, (blob, chunk): &ChunkName) -> bool {
        let placed = self.map.as_ref().and_then(|map| map.placement(blob, *chunk));
        placed.is_some_and(|placed| placed.has(self.node))
    }

    /// The chunk that gave this answer.
    fn chunk_that_answered(
        &self,
        transaction: &Transaction,
        answered: &commit::Answered,
    ) -> Option<ChunkName> {
        let entry = &transaction.blobs[answered.blob as usize];
        let map = self.map.as_ref()?;
        // Size and existence are for version managers to say, who hold the first chunk.
        let chunk = match &entry.operations[answered.operation as usize] {
            Operation::Apply { offset, .. } => {
                map.chunk_size(entry.blob.keyspace).map_or(0, |size| offset / size)
            }
            Operation::Compare { .. }
            | Operation::Create
            | Operation::Write { .. }
            | Operation::Append { .. }
            | Operation::Truncate { .. }
            | Operation::Clear { .. }
            | Operation::Delete
            | Operation::Replace { .. }
            | Operation::Expect { .. } => 0,
        };
        Some((entry.blob.clone(), chunk))
    }
}

/// Why a client's transaction was not begun.
pub(super) fn refused(kind: ErrorKind, reason: impl Into<Cow<'static, str>>) -> Decision {
    Decision::Abort(Abort::new(kind, reason))
}

/// The transaction with this node's name in its stamps, whoever had the highest proposal: what
/// there is without C10.
fn stamped_here(transaction: &Transaction, node: NodeId, at: Timestamp) -> Transaction {
    let mut wrong = transaction.clone();
    for operation in wrong.blobs.iter_mut().flat_map(|entry| &mut entry.operations) {
        let (Operation::Write { payload, .. }
        | Operation::Append { payload, .. }
        | Operation::Replace { payload }) = operation
        else {
            continue;
        };
        if let Payload::Stamped(stamped) = payload {
            let filled = stamped.filled(Timestamp { node: node.0, ..at });
            *payload = Payload::Inline(filled);
        }
    }
    wrong
}
