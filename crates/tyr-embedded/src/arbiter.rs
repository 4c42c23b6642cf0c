//! The transaction arbiter: the commit machine, the log's end, and who waits for an answer.
//!
//! Everything here happens under one lock. The log is appended in timestamp order, so that a
//! replay in log order is a replay in timestamp order.

use std::collections::{HashMap, VecDeque};

use std::sync::Arc;

use tyr_protocol::commit::{Attempt, Decision, Effect, Event};
use tyr_protocol::{Chain, Commit, View};
use tyr_store::log::{EncodedRecord, Log};
use tyr_store::recent::Readers;
use tyr_store::store::{Cells, Store};
use tyr_types::{
    BlobName, ByteRange, Durability, Error, KeyspaceId, Listed, NodeId, Number, NumberType,
    Outcome, Result, Timestamp, Transaction, TransactionId,
};

use crate::commit::Held;
use crate::inner::Inner;
use crate::keyspaces::Entries;
use tyr_runtime::clock;
use tyr_runtime::ticket::{Answer, Committed};

/// The node that an embedded store is.
pub(crate) const NODE: NodeId = NodeId(0);

/// A transaction in flight.
pub(crate) struct Waiting {
    pub cells: Cells,
    pub held: Held,
    pub record: EncodedRecord,
    pub durability: Durability,
    pub answer: Answer,
    pub outcomes: Vec<Outcome>,
    /// Why the record could not be made durable.
    pub failure: Option<Error>,
}

/// An answer to be given once the lock is gone.
pub(crate) type Due = (Answer, Result<Committed>);

/// What the arbiter's lock protects.
pub(crate) struct Arbiter {
    pub machine: Commit,
    pub chain: Chain,
    /// `None` when the store was opened read-only.
    pub log: Option<Log>,
    pub waiting: HashMap<TransactionId, Waiting>,
    /// In the log, and answered when it has been synced.
    pub to_sync: VecDeque<(TransactionId, Attempt)>,
    /// Readers that wait until everything up to a timestamp is applied.
    pub settling: Vec<(Timestamp, oneshot::Sender<()>)>,
    pub is_stopping: bool,
    #[cfg(feature = "broken-rules")]
    broken: Option<tyr_protocol::Rule>,
    effects: Vec<Effect>,
}

impl std::fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arbiter({} in flight)", self.waiting.len())
    }
}

impl Arbiter {
    /// An arbiter whose clock is past everything in the log.
    pub fn new(log: Option<Log>, clock: Timestamp) -> Self {
        let mut machine = Commit::new(NODE);
        machine.observe(clock);
        #[cfg(feature = "broken-rules")]
        if let Some(rule) = tyr_runtime::broken::chosen() {
            machine.break_rule(rule);
        }
        Self {
            #[cfg(feature = "broken-rules")]
            broken: tyr_runtime::broken::chosen(),
            machine,
            chain: Chain::alone(NODE),
            log,
            waiting: HashMap::new(),
            to_sync: VecDeque::new(),
            settling: Vec::new(),
            is_stopping: false,
            effects: Vec::new(),
        }
    }

    /// Feeds the machine one event and carries out what it asks for, until it asks for no more.
    /// Answers that are due are added to `due`.
    pub fn drive(&mut self, inner: &Inner, event: Event, due: &mut Vec<Due>) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let entries = inner.keyspaces.look();
            let view = Applied { store: &inner.store, entries: &entries };
            let mut effects = std::mem::take(&mut self.effects);
            debug_assert!(effects.is_empty(), "what the step before asked for was done");
            self.machine.step(clock::now_us(), event, &view, &mut effects);
            drop(entries);
            for effect in effects.drain(..) {
                if let Some(next) = self.carry_out(inner, effect, due) {
                    events.push_back(next);
                }
            }
            self.effects = effects;
        }
        self.answer_settled();
    }

    fn carry_out(&mut self, inner: &Inner, effect: Effect, due: &mut Vec<Due>) -> Option<Event> {
        match effect {
            Effect::Send { .. }
            | Effect::Recover { .. }
            | Effect::Fence { .. }
            | Effect::Note { .. }
            | Effect::NoteHeard { .. }
            | Effect::Recall { .. }
            | Effect::Misplaced { .. } => unreachable!("a chain of one is all there is"),
            Effect::Moved { .. } => None,
            Effect::Resume => Some(Event::Resume),
            Effect::Persist { transaction, attempt, proposal, .. } => {
                self.persist(&transaction, attempt, proposal)
            }
            Effect::Apply { transaction, at, .. } => {
                self.apply(inner, &transaction, at);
                None
            }
            Effect::Reply { id, decision, .. } => {
                let waiting = self.waiting.remove(&id).expect("it waits until it is answered");
                due.push(waiting.conclude(decision));
                None
            }
        }
    }

    /// Puts the record into the log's memory; the answer comes with the sync, or at once.
    fn persist(
        &mut self,
        transaction: &Arc<Transaction>,
        attempt: Attempt,
        proposal: Timestamp,
    ) -> Option<Event> {
        let id = transaction.id;
        let waiting = self.waiting.get_mut(&id).expect("it waits until it is answered");
        let held = waiting.held.check();
        let appended = held.and_then(|()| append(self.log.as_mut(), &waiting.record, proposal));
        if let Err(error) = appended {
            waiting.failure = Some(error);
            return Some(Event::PersistFailed { id });
        }
        if waiting.durability < Durability::Sync || waiting.record.is_empty() {
            return Some(Event::Persisted { id, attempt });
        }
        debug_assert!(self.log.is_some(), "what is synced is in a log");
        debug_assert!(self.to_sync.len() < self.waiting.len(), "each is of one that waits");
        self.to_sync.push_back((id, attempt));
        None
    }

    fn apply(&mut self, inner: &Inner, transaction: &Transaction, at: Timestamp) {
        let waiting = self.waiting.get_mut(&transaction.id).expect("it waits until it is answered");
        match inner.apply(transaction, &waiting.cells, at) {
            Ok(outcomes) => waiting.outcomes = outcomes,
            Err(error) => {
                // It is decided and durable, but memory does not show it: only a restart can.
                inner.poison(&error);
                waiting.failure = Some(error);
            }
        }
    }

    /// Whether nothing is in flight that a snapshot at `at` has to wait for (R5).
    pub fn is_settled(&self, at: Timestamp) -> bool {
        #[cfg(feature = "broken-rules")]
        if self.broken == Some(tyr_protocol::Rule::R5) {
            return true;
        }
        !self.machine.is_in_flight_below(at)
    }

    /// Answers the readers for whom nothing is in flight any more.
    pub fn answer_settled(&mut self) {
        let machine = &self.machine;
        self.settling.retain(|(at, _)| machine.is_in_flight_below(*at));
    }
}

impl Waiting {
    fn conclude(self, decision: Decision) -> Due {
        let result = match (decision, self.failure) {
            (_, Some(error)) => Err(error),
            (Decision::Commit(at), None) => {
                self.held.adopt();
                Ok(Committed { at, outcomes: self.outcomes })
            }
            (Decision::Abort(abort), None) => Err(abort.into()),
        };
        (self.answer, result)
    }
}

/// Appends a record, unless nothing of it is to be logged; answers the sequence after it.
pub(crate) fn append(
    log: Option<&mut Log>,
    record: &EncodedRecord,
    at: Timestamp,
) -> Result<Option<u64>> {
    if record.is_empty() {
        return Ok(None);
    }
    let log = log.ok_or_else(|| crate::inner::Refusal::Closed.error())?;
    Ok(Some(log.append(record, at)? + 1))
}

impl Inner {
    /// Applies a decided transaction, under the arbiter's lock.
    pub(crate) fn apply(
        &self,
        transaction: &Transaction,
        cells: &Cells,
        at: Timestamp,
    ) -> Result<Vec<Outcome>> {
        let outcomes = {
            let in_use = self.snapshots.lock();
            let entries = self.keyspaces.look();
            self.store.apply(transaction, cells, at, |keyspace| {
                Readers::new(match entries.keeps_versions(keyspace) {
                    true => in_use.timestamps(),
                    false => in_use.always(),
                })
            })?
        };
        self.watches.tell(transaction, at);
        Ok(outcomes)
    }
}

/// The applied state, as the machine may look at it.
pub(crate) struct Applied<'a> {
    pub store: &'a Store,
    pub entries: &'a Entries,
}

impl View for Applied<'_> {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        self.store.newest_overlapping(blob, range, is_attributes)
    }

    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        // What cannot be read may have changed.
        self.store.is_listing_stale(keyspace, listed, at).unwrap_or(true)
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.store.resident_size(blob)
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        self.store.resident_matches(blob, offset, expected)
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        self.store.resident_number(blob, offset, number_type)
    }

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        let entry = self.entries.get(keyspace);
        entry.map_or(tyr_types::limits::CHUNK_SIZE_DEFAULT, |entry| entry.info().config.chunk_size)
    }
}
