//! The commit machine: one pass forward over the chain, one pass back (C1..C9).
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
//! transactions, [`in_flight`] what they touch, by blob: a few [`claims`] on each, or a
//! [`claim_index`] of them, [`spans`] of bytes in it; [`listed`] is which keys they have listed;
//! [`enter`] takes them in, [`again`] sends some back to come again, [`decide`] is the way back,
//! [`settle`] frees those that waited, [`kept_off`] those that leases keep off; [`memory`]
//! is what is known of those that are finished, [`outcomes`] what they answered, [`answers`] what
//! they answered here, [`namesake`] tells another transaction of the same id; [`alone`] is all of
//! this inlined for a chain of one with nothing in its way; [`invariants`] says what holds between
//! steps.
//!
//! This module must not know how reads are served: it only answers them what is in flight
//! ([`question`]). What happens when nodes or messages are lost is in [`recovery`];
//! [`retention`] is what nodes agree on about how long outcomes are remembered.

mod again;
mod alone;
mod answers;
mod append;
mod claim_index;
mod claims;
mod decide;
pub mod effect;
mod enter;
pub mod event;
#[cfg(feature = "broken-rules")]
mod fingerprint;
mod in_flight;
mod invariants;
mod kept_off;
mod listed;
mod memory;
pub(crate) mod namesake;
mod outcomes;
mod pieces;
pub(crate) mod question;
pub(crate) mod record;
pub mod recovery;
mod retention;
mod settle;
mod spans;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tyr_types::{ErrorKind, NodeId, Timestamp, TransactionId};

pub use self::effect::{Effect, Placed, Placements};
pub use self::event::{Attempt, Decision, Event, Message, Usages};
use self::in_flight::InFlight;
pub use self::kept_off::Needed;
pub use self::memory::{Kept, Marked, OUTCOME_WINDOW_US, OUTCOMES_MAX, Remembered, Singles};
pub use self::outcomes::{Answered, Outcomes};
pub use self::pieces::LACKING as PIECES_LACKING;
use self::record::{Records, Slot, State, Subject};
use self::recovery::{Inquiries, Recovery};
pub use self::retention::OutcomeRetention;
use crate::abort::Abort;
use crate::rule::{Rule, Rules};
use crate::upload::Pieces;
use crate::view::View;

/// The most transactions in flight that a head takes; further ones are refused as `Unavailable`.
///
/// At some microseconds of work each this is a queue of well under a second; a longer one only
/// adds waiting. Other nodes of the chains take what heads let in.
pub const IN_FLIGHT_MAX: usize = 65_536;

const _: () = assert!(IN_FLIGHT_MAX <= OUTCOMES_MAX, "what a head let in it can remember");

/// The commit machine of one node.
///
/// Its driver calls [`Commit::step`] with what happens, executes the effects in order (see
/// [`Effect`] for the order rules), and, for a chain of one, may take the shortcut
/// [`Commit::commit_alone`].
#[derive(Clone, Debug)]
pub struct Commit {
    pub(crate) node: NodeId,
    pub(crate) clock: Timestamp,
    pub(crate) records: Records,
    in_flight: InFlight,
    /// Those in flight, validated here, whose chain has other nodes too.
    shared: usize,
    /// Counts arrivals, so that those that wait have an order.
    arrivals: u64,
    /// Whether somebody may wait to be validated.
    waiting: settle::Waiting,
    /// Those that waited and may go on, by arrival. Emptied by `Resume`.
    woken: BTreeMap<u64, Slot>,
    /// Whether `Resume` is on its way.
    is_resuming: bool,
    /// The watched that were decided, applied or aborted in this step.
    moved: SmallVec<[TransactionId; 2]>,
    /// What a node of a cluster has beside; an embedded store has nobody to lose.
    pub(crate) recovery: Option<Box<Recovery>>,
    /// What was uploaded here ahead of its transaction; an embedded store has no such.
    pub(crate) pieces: Pieces,
    pub(crate) rules: Rules,
}

impl Commit {
    /// The machine of an embedded store, that knows of nothing yet. After a restart,
    /// [`Commit::observe`] what was replayed.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            clock: Timestamp::ZERO,
            records: Records::default(),
            in_flight: InFlight::default(),
            shared: 0,
            arrivals: 0,
            waiting: settle::Waiting::default(),
            woken: BTreeMap::new(),
            is_resuming: false,
            moved: SmallVec::new(),
            recovery: None,
            pieces: Pieces::default(),
            rules: Rules::default(),
        }
    }

    /// The machine of a node of a cluster, that knows of nothing yet: it remembers outcomes, and
    /// finds out what became of transactions that are held up.
    pub fn clustered(node: NodeId) -> Self {
        Self { recovery: Some(Box::default()), ..Self::new(node) }
    }

    /// Asks about so many transactions at a time, in place of [`recovery::BALLOTS_MAX`].
    pub(crate) fn asking_at_most(mut self, ballots_max: usize) -> Self {
        if let Some(recovery) = &mut self.recovery {
            recovery.inquiries = Inquiries::with_places(ballots_max);
        }
        self
    }

    /// Takes a rule away, for a test that wants to see its checker notice.
    #[cfg(feature = "broken-rules")]
    pub fn break_rule(&mut self, rule: Rule) {
        self.rules.broken = Some(rule);
    }

    /// More claims than these on a blob are an index.
    #[cfg(test)]
    pub(crate) fn index_above(&mut self, few_max: usize) {
        self.in_flight.index_above(few_max);
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

    /// Bytes that the transactions known here and not finished with carry.
    pub fn payload_len(&self) -> u64 {
        self.records.payload_len()
    }

    /// The number of transactions finished with so far, and the bytes that they carried.
    pub fn finished(&self) -> (u64, u64) {
        self.records.finished()
    }

    /// Whether no transaction is known here that is not finished with.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes in `event` at `now_us` (microseconds since 1970; it may stand still or go back) and
    /// adds what the driver is to do to `effects`.
    ///
    /// Total and bounded: any event in any state is met, and the work is bounded by what is in
    /// flight on the blobs concerned (by all that is in flight, for `Install` and `Tick`). Messages
    /// of older attempts and about unknown transactions do nothing.
    pub fn step(&mut self, now_us: u64, event: Event, view: &impl View, effects: &mut Vec<Effect>) {
        debug_assert!(self.moved.is_empty(), "who moved is told of in the step that moved it");
        let (clock, arrivals, done_to_us) = (self.clock, self.arrivals, self.done_to_us());
        self.take_in(now_us, event, view, effects);
        debug_assert!(clock <= self.clock, "C3, C8: the clock only goes on, {clock}");
        debug_assert!(arrivals <= self.arrivals, "who came later stands behind");
        debug_assert!(done_to_us <= self.done_to_us(), "F10: others have forgotten by it");
        debug_assert!(self.shared <= self.records.len(), "only who is known is in flight");
        // Last, so that whoever hears of it finds everything applied that is applied here.
        effects.extend(self.moved.drain(..).map(|id| Effect::Moved { id }));
        if !self.woken.is_empty() && !self.is_resuming {
            self.is_resuming = true;
            effects.push(Effect::Resume);
        }
        debug_assert!(self.moved.is_empty(), "who waits for one that moved is told");
    }

    fn take_in(&mut self, now_us: u64, event: Event, view: &impl View, effects: &mut Vec<Effect>) {
        match event {
            Event::Submit { transaction, chain, begun } => {
                self.submit(now_us, Subject { transaction, chain, begun }, view, effects);
            }
            Event::Retry { transaction, chain, begun } => {
                self.retry(now_us, Subject { transaction, chain, begun }, view, effects);
            }
            Event::Reroute { id, chain } => self.reroute(now_us, id, chain, view, effects),
            Event::Receive(message) => self.receive(now_us, message, view, effects),
            Event::Recover(message) => {
                self.recover(now_us, message, view, effects);
                self.take_turns(now_us, view, effects); // One may have ended.
            }
            Event::Unread { id, level } => self.unread(id, level),
            Event::NotUnderstood { id } => self.not_understood(now_us, id, view, effects),
            Event::Persisted { id, attempt } => {
                let Some(slot) = self.records.slot(id) else { return };
                if let State::Persisting(proposal) = self.records[slot].state
                    && self.records[slot].entered_in == attempt
                {
                    self.validated(slot, proposal, effects);
                }
            }
            Event::PersistFailed { id } => {
                let Some(slot) = self.records.slot(id) else { return };
                // What is known to be committed (F3) stays so, wherever a log fails.
                let record = &self.records[slot];
                if matches!(record.state, State::Persisting(_)) && record.known.is_none() {
                    let reason = "the log could not be written; whether the transaction took \
                                  effect shows when the store is opened again";
                    self.abort(slot, Abort::new(ErrorKind::Unavailable, reason), effects);
                }
            }
            Event::Fenced { id, attempt, is_cleared } => {
                self.fenced(now_us, id, attempt, is_cleared, view, effects);
            }
            Event::Noted { id } => self.noted(now_us, id, view, effects),
            Event::Install { map } => self.install(now_us, &map, view, effects),
            Event::Retain(retention) => self.retain(retention),
            Event::Freed { blob } => self.wake_kept_off(&blob),
            Event::Tick { elapsed_us } => self.tick(now_us, elapsed_us, view, effects),
            Event::Resume => self.resume(now_us, view, effects),
        }
    }

    pub(crate) fn receive(
        &mut self,
        now_us: u64,
        message: Message,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        match message {
            Message::Forward { transaction, chain, attempt, begun, highest, known, usages: _ } => {
                self.observe(highest);
                let pass = enter::Pass { transaction, chain, attempt, begun, highest, known };
                self.forward(now_us, pass, view, effects);
            }
            Message::Backward { id, attempt, decision, outcomes, usages: _ } => {
                let Some(slot) = self.taking_part(id, attempt) else { return };
                match decision {
                    Decision::Commit(at) => {
                        // Also in place of what another attempt brought: a node that is lost now
                        // may have applied what nobody else did.
                        self.records[slot].outcomes.put(&outcomes);
                        self.records[slot].is_behind = true;
                        self.hear(slot, at, effects);
                    }
                    Decision::Abort(abort) => self.abort(slot, abort, effects),
                }
            }
            Message::Misplaced { id, attempt, blob, end } => {
                if let Some(slot) = self.taking_part(id, attempt) {
                    self.misplaced(slot, blob, end, effects);
                }
            }
            Message::Withdrawn { id, attempt } => {
                if let Some(slot) = self.taking_part(id, attempt) {
                    self.withdrawn(slot, effects);
                }
            }
            Message::Again { id, attempt } => {
                if let Some(slot) = self.taking_part(id, attempt) {
                    self.come_again(now_us, slot, view, effects);
                }
            }
            Message::Decided { id, attempt, at } => {
                if let Some(slot) = self.taking_part(id, attempt) {
                    self.hear(slot, at, effects);
                }
            }
            Message::Anchored { id, attempt, by } => {
                if let Some(slot) = self.taking_part(id, attempt) {
                    self.records[slot].unanchored.retain(|anchor| *anchor != by);
                    self.advance(slot, effects);
                }
            }
            Message::Stable { id, by, outcomes } => {
                let Some(slot) = self.records.slot(id) else { return };
                self.records[slot].outcomes.put(&outcomes);
                self.records[slot].unstable.retain(|authority| *authority != by);
                if self.records[slot].is_finished() {
                    self.settle(slot, effects);
                }
            }
            Message::AskStable { id, by, from } => self.answer_stable(id, by, from, effects),
        }
    }

    /// The record of `id`, when a message of this attempt about it still counts: when it is the
    /// newest attempt promised to, and its forward pass has come by.
    fn taking_part(&self, id: TransactionId, attempt: Attempt) -> Option<Slot> {
        let slot = self.records.slot(id)?;
        let record = &self.records[slot];
        let is_current = record.attempt == attempt && record.entered_in == attempt;
        (is_current || !self.rules.hold(Rule::F2)).then_some(slot)
    }

    pub(crate) fn moved(&mut self, slot: Slot) {
        let record = &self.records[slot];
        if record.is_watched && !self.moved.contains(&record.transaction.id) {
            self.moved.push(record.transaction.id);
        }
    }
}
