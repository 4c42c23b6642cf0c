//! The commit machine: one pass forward over the chain, one pass back (C1..C8).
//!
//! Forward, each node validates what it holds ([`validate`], [`append`]), proposes a timestamp
//! above all it has seen, makes its record durable, and passes the highest proposal on. At the
//! tail everyone has validated, so the transaction is decided. Backward, each node applies it when
//! nothing in flight that it overlaps can come before it, and only then tells the node before.
//!
//! ```text
//!   Submit / Forward ─► validate ─► Persist … Persisted ─► Forward to the next
//!                         │ wait: until what is in the way is decided, applied or aborted
//!                         └ abort ─► Backward(abort) / Reply
//!   at the tail, or Backward(commit) ─► decided ─► Apply when next in line ─► Backward / Reply
//! ```
//!
//! The parts: [`event`] and [`effect`] are what goes in and out; [`record`] is the table of
//! transactions, [`in_flight`] the index of what they touch; [`settle`] frees those that waited for
//! a transaction; [`alone`] is all of this inlined for a chain of one with nothing in its way;
//! [`invariants`] says what holds between steps.
//!
//! This module must not know how reads are served: it only answers them what is in flight
//! ([`question`]).

mod alone;
mod append;
pub mod effect;
pub mod event;
mod in_flight;
mod invariants;
pub(crate) mod question;
pub(crate) mod record;
mod settle;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{ErrorKind, NodeId, Timestamp, Transaction, TransactionId};

pub use self::effect::{Effect, Placed, Placements};
pub use self::event::{Attempt, Decision, Event, Message};
use self::in_flight::InFlight;
use self::record::{Record, Records, Slot, State};
use self::validate::{Validation, Verdict};
use crate::abort::Abort;
use crate::chain::Chain;
use crate::rule::{Rule, Rules};
use crate::view::View;

/// The most transactions in flight that a head takes; further ones are refused as `Unavailable`.
///
/// At some microseconds of work each this is a queue of well under a second; a longer one only
/// adds waiting. Other nodes of the chains take what heads let in.
pub const IN_FLIGHT_MAX: usize = 65_536;

/// The commit machine of one node.
///
/// Its driver calls [`Commit::step`] with what happens, executes the effects in order (see
/// [`Effect`] for the order rules), and, for a chain of one, may take the shortcut
/// [`Commit::commit_alone`].
#[derive(Debug)]
pub struct Commit {
    node: NodeId,
    clock: Timestamp,
    records: Records,
    in_flight: InFlight,
    /// Those in flight, validated here, whose chain has other nodes too.
    shared: usize,
    /// Counts arrivals, so that those that wait have an order.
    arrivals: u64,
    /// Those that waited and may go on, by arrival. Emptied by `Resume`.
    woken: BTreeMap<u64, Slot>,
    /// Whether `Resume` is on its way.
    is_resuming: bool,
    /// The watched that were decided, applied or aborted in this step.
    moved: SmallVec<[TransactionId; 2]>,
    pub(crate) rules: Rules,
}

impl Commit {
    /// A machine that knows of nothing yet. After a restart, [`Commit::observe`] what was replayed.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            clock: Timestamp::ZERO,
            records: Records::default(),
            in_flight: InFlight::default(),
            shared: 0,
            arrivals: 0,
            woken: BTreeMap::new(),
            is_resuming: false,
            moved: SmallVec::new(),
            rules: Rules::default(),
        }
    }

    /// Takes a rule away, for a test that wants to see its checker notice.
    #[cfg(feature = "broken-rules")]
    pub fn break_rule(&mut self, rule: Rule) {
        self.rules.broken = Some(rule);
    }

    /// The highest timestamp seen or given out.
    pub fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Moves the clock to `seen`, if that is ahead (C8).
    pub fn observe(&mut self, seen: Timestamp) {
        if self.rules.hold(Rule::C8) {
            self.clock = self.clock.max(seen);
        }
    }

    /// The timestamp at which a snapshot that begins now reads (R3, R6): the clock on arrival.
    ///
    /// What is in flight may still take effect at or below it: [`crate::Reads`] waits for that.
    /// Where nothing is in flight between calls ([`Commit::commit_alone`] alone is used),
    /// everything at or below it is applied, and nothing will be added.
    pub fn snapshot_timestamp(&self) -> Timestamp {
        self.clock
    }

    /// The number of transactions known here and not finished with.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether no transaction is known here that is not finished with.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes in `event` at `now_us` (microseconds since 1970; it may stand still or go back) and
    /// adds what the driver is to do to `effects`.
    ///
    /// Total and bounded: any event in any state is met, and the work is bounded by what is in
    /// flight on the blobs concerned. Messages of older attempts and about unknown transactions
    /// do nothing.
    pub fn step(&mut self, now_us: u64, event: Event, view: &impl View, effects: &mut Vec<Effect>) {
        self.take_in(now_us, event, view, effects);
        // Last, so that whoever hears of it finds everything applied that is applied here.
        effects.extend(self.moved.drain(..).map(|id| Effect::Moved { id }));
        if !self.woken.is_empty() && !self.is_resuming {
            self.is_resuming = true;
            effects.push(Effect::Resume);
        }
    }

    fn take_in(&mut self, now_us: u64, event: Event, view: &impl View, effects: &mut Vec<Effect>) {
        match event {
            Event::Submit { transaction, chain } => {
                self.submit(now_us, transaction, chain, view, effects);
            }
            Event::Receive(Message::Forward { transaction, chain, attempt, highest }) => {
                self.observe(highest);
                // A transaction known here is under way already.
                if self.records.slot(transaction.id).is_none() {
                    let entry = Entry { transaction, chain, attempt, highest };
                    self.enter(now_us, entry, view, effects);
                }
            }
            Event::Receive(Message::Backward { id, attempt, decision }) => {
                let Some(slot) = self.records.slot(id) else { return };
                if self.records[slot].attempt == attempt {
                    match decision {
                        Decision::Commit(at) => self.decide(slot, at, effects),
                        Decision::Abort(abort) => self.abort(slot, abort, effects),
                    }
                }
            }
            Event::Receive(Message::Stable { id, by }) => {
                let Some(slot) = self.records.slot(id) else { return };
                self.records[slot].unstable.retain(|authority| *authority != by);
                if self.records[slot].is_finished() {
                    self.settle(slot, effects);
                }
            }
            Event::Persisted { id } => {
                let Some(slot) = self.records.slot(id) else { return };
                if let State::Persisting(proposal) = self.records[slot].state {
                    self.validated(slot, proposal, effects);
                }
            }
            Event::PersistFailed { id } => {
                let Some(slot) = self.records.slot(id) else { return };
                if let State::Persisting(_) = self.records[slot].state {
                    let reason = "the log could not be written; whether the transaction took \
                                  effect shows when the store is opened again";
                    self.abort(slot, Abort::new(ErrorKind::Unavailable, reason), effects);
                }
            }
            Event::Resume => self.resume(now_us, view, effects),
        }
    }

    fn submit(
        &mut self,
        now_us: u64,
        transaction: Arc<Transaction>,
        chain: Chain,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        if self.records.slot(transaction.id).is_some() {
            return; // The reply that is due answers the retry too.
        }
        if chain.position(self.node) != Some(0) {
            let reason = "a transaction is submitted to the head of its chain; look it up again";
            let decision = Decision::Abort(Abort::new(ErrorKind::Unavailable, reason));
            effects.push(Effect::Reply { id: transaction.id, decision });
            return;
        }
        if self.records.len() >= IN_FLIGHT_MAX {
            let reason = "too many transactions are in flight; retry later";
            let decision = Decision::Abort(Abort::new(ErrorKind::Unavailable, reason));
            effects.push(Effect::Reply { id: transaction.id, decision });
            return;
        }
        let attempt = Attempt { epoch: self.clock.epoch, number: 0 };
        let entry = Entry { transaction, chain, attempt, highest: Timestamp::ZERO };
        self.enter(now_us, entry, view, effects);
    }

    /// Takes a transaction in that is not known here.
    fn enter(&mut self, now_us: u64, entry: Entry, view: &impl View, effects: &mut Vec<Effect>) {
        let Entry { transaction, chain, attempt, highest } = entry;
        let Some(position) = chain.position(self.node) else { return };
        self.arrivals += 1;
        let record = Record {
            transaction: Arc::clone(&transaction),
            chain,
            position,
            attempt,
            arrival: self.arrivals,
            state: State::Waiting,
            highest,
            placed: Placements::new(),
            unstable: SmallVec::new(),
            is_writing_here: false,
            is_watched: false,
        };
        let slot = self.records.insert(record);
        let hop = &self.records[slot].chain.hops()[position];
        let authorities = self.in_flight.claim(slot, hop, &transaction, view);
        let record = &mut self.records[slot];
        record.is_writing_here = !authorities.is_empty();
        record.unstable = authorities;
        self.admit(now_us, slot, view, effects);
    }

    /// Validates a transaction that waits, if it can be; then proposes a timestamp (C3).
    fn admit(&mut self, now_us: u64, slot: Slot, view: &impl View, effects: &mut Vec<Effect>) {
        let mut verdict = self.verdict(slot, view);
        if let Verdict::NeedsEnd(indexes) = verdict {
            let record = &self.records[slot];
            let hop = &record.chain.hops()[record.position];
            for index in indexes {
                self.in_flight.claim_end(slot, hop, &record.transaction.blobs[index].blob);
            }
            verdict = self.verdict(slot, view);
        }
        match verdict {
            Verdict::Wait => {}
            Verdict::NeedsEnd(_) => unreachable!("it has the end of these blobs now"),
            Verdict::Abort(abort) => self.abort(slot, abort, effects),
            Verdict::Valid(placed) => {
                let proposal = self.clock.next(now_us, self.node.0);
                self.clock = proposal;
                let record = &mut self.records[slot];
                record.state = State::Persisting(proposal);
                record.placed = placed;
                self.shared += usize::from(!record.chain.is_alone());
                if record.transaction.is_writing() {
                    effects.push(Effect::Persist {
                        transaction: Arc::clone(&record.transaction),
                        proposal,
                        placed: record.placed.clone(),
                    });
                } else {
                    self.validated(slot, proposal, effects); // There is nothing to lose.
                }
            }
        }
    }

    fn verdict(&self, slot: Slot, view: &impl View) -> Verdict {
        let (node, rules) = (self.node, self.rules);
        let (records, in_flight) = (&self.records, &self.in_flight);
        Validation { node, records, in_flight, rules, view }.verdict(slot)
    }

    /// The record is durable: passes the transaction on (C3), or decides it at the tail (C5).
    fn validated(&mut self, slot: Slot, proposal: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        record.state = State::Validated(proposal);
        record.highest = record.highest.max(proposal);
        let highest = record.highest;
        match record.chain.hops().get(record.position + 1) {
            None => self.decide(slot, highest, effects),
            Some(next) => {
                let message = Message::Forward {
                    transaction: Arc::clone(&record.transaction),
                    chain: record.chain.clone(),
                    attempt: record.attempt,
                    highest,
                };
                effects.push(Effect::Send { to: next.node, message });
            }
        }
    }

    /// The transaction commits at `at`: applies it if nothing comes before it.
    fn decide(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        self.observe(at);
        let record = &mut self.records[slot];
        if !record.state.is_undecided() {
            return;
        }
        record.state = State::Decided(at);
        if !self.rules.hold(Rule::C7) {
            self.pass_back(slot, at, effects);
        }
        match self.is_blocked(slot, at) {
            true => self.moved(slot),
            false => self.apply(slot, at, effects),
        }
        self.settle(slot, effects);
    }

    /// Whether an overlapping write in flight here has a lower timestamp, or may get one (C6).
    fn is_blocked(&self, slot: Slot, at: Timestamp) -> bool {
        if self.records.len() == 1 || !self.rules.hold(Rule::C6) {
            return false;
        }
        let record = &self.records[slot];
        record.transaction.blobs.iter().any(|entry| {
            let claims = self.in_flight.claims(&entry.blob);
            let is_own = |claim: &&in_flight::Claim| claim.slot == slot && claim.kind.is_write();
            claims.iter().filter(is_own).any(|own| {
                claims.iter().any(|other| {
                    other.slot != slot
                        && other.kind.is_write()
                        && other.footprint.overlaps(own.footprint)
                        && self.records[other.slot].state.in_flight_at().is_some_and(|its| its < at)
                })
            })
        })
    }

    /// Applies a decided transaction here, and passes it back (C7).
    fn apply(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        record.state = State::Applied(at);
        self.shared -= usize::from(!record.chain.is_alone());
        if record.is_writing_here {
            let (transaction, chain) = (Arc::clone(&record.transaction), record.chain.clone());
            effects.push(Effect::Apply { transaction, chain, at });
        }
        if self.rules.hold(Rule::C7) {
            self.pass_back(slot, at, effects);
        }
        self.moved(slot);
    }

    /// Tells the previous node or the client; and, where this node is the authority, those that
    /// hold the same chunks (R2).
    fn pass_back(&mut self, slot: Slot, at: Timestamp, effects: &mut Vec<Effect>) {
        let record = &mut self.records[slot];
        record.unstable.retain(|authority| *authority != self.node);
        let record = &self.records[slot];
        if !record.chain.is_alone() {
            let mut followers: SmallVec<[NodeId; 4]> = SmallVec::new();
            for entry in &record.transaction.blobs {
                let claims = self.in_flight.claims(&entry.blob).iter();
                for claim in claims.filter(|claim| claim.slot == slot && claim.kind.is_write()) {
                    followers.extend(record.chain.followers(
                        self.node,
                        &entry.blob,
                        claim.footprint,
                    ));
                }
            }
            followers.sort_unstable();
            followers.dedup();
            let (id, by) = (record.transaction.id, self.node);
            effects.extend(
                followers
                    .into_iter()
                    .map(|to| Effect::Send { to, message: Message::Stable { id, by } }),
            );
        }
        self.answer(slot, Decision::Commit(at), effects);
    }

    /// Gives the decision to the previous node, or to the client.
    fn answer(&self, slot: Slot, decision: Decision, effects: &mut Vec<Effect>) {
        let record = &self.records[slot];
        let id = record.transaction.id;
        match record.position.checked_sub(1) {
            None => effects.push(Effect::Reply { id, decision }),
            Some(previous) => {
                let to = record.chain.hops()[previous].node;
                let attempt = record.attempt;
                let message = Message::Backward { id, attempt, decision };
                effects.push(Effect::Send { to, message });
            }
        }
    }

    /// Gives an undecided transaction up, and tells those who validated it.
    fn abort(&mut self, slot: Slot, abort: Abort, effects: &mut Vec<Effect>) {
        match self.records[slot].state {
            State::Waiting | State::Persisting(_) | State::Validated(_) => {
                self.answer(slot, Decision::Abort(abort), effects);
                let record = &mut self.records[slot];
                let was_shared = record.state.is_undecided() && !record.chain.is_alone();
                self.shared -= usize::from(was_shared);
                record.state = State::Aborted;
                self.moved(slot);
                self.settle(slot, effects);
            }
            State::Decided(_) | State::Applied(_) | State::Aborted => {}
        }
    }

    fn moved(&mut self, slot: Slot) {
        let record = &self.records[slot];
        if record.is_watched && !self.moved.contains(&record.transaction.id) {
            self.moved.push(record.transaction.id);
        }
    }
}

/// A transaction as it arrives at a node.
struct Entry {
    transaction: Arc<Transaction>,
    chain: Chain,
    attempt: Attempt,
    highest: Timestamp,
}
