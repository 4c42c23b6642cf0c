//! The read machine: which node answers a read, when, and at which timestamp (R1..R7).
//!
//! A read is served here, parked until what it waits for is applied, or forwarded to the
//! authority of what it wants. It never holds up a transaction.
//!
//! ```text
//!                 clean here, or at the authority
//!   Ask ─────┬──────────────────────────────────────► Serve (newest, or at S)
//!            ├─ not clean, not the authority ───────► Forward to the authority
//!            └─ authority, something in flight ─────► parked ── Moved ──► Serve
//! ```
//!
//! The parts: [`event`] and [`effect`]; [`listing`] is Q1; [`ending`] is R7; [`layout`] is how
//! stretches travel; [`parked`] is what waits; [`invariants`]. What
//! is in flight is the commit machine's to say; this one asks it and hears of changes by `Moved`.

pub mod effect;
pub mod ending;
pub mod event;
mod invariants;
pub mod layout;
mod listing;
mod parked;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{BlobName, ErrorKind, NodeId, Timestamp, TransactionId};

pub use self::effect::Effect;
pub use self::ending::Ending;
pub use self::event::{Event, Kind, Listing, ReadId, Request};
use self::parked::{AllParked, Parked, Wanted};
use crate::abort::Abort;
use crate::commit::Commit;
use crate::rule::{Rule, Rules};

/// The most reads that wait at a node; further ones that would are refused as `Unavailable`.
///
/// A read waits for transactions in flight, so it is for them that this many may wait.
pub const PARKED_MAX: usize = crate::commit::IN_FLIGHT_MAX;

const TOO_MANY: &str = "too many reads wait for transactions in flight; retry later";

/// The read machine of one node.
///
/// Its driver calls [`Reads::step`] for each request and for each `Moved` effect of the commit
/// machine beside it, and executes the effects in order.
#[derive(Debug)]
pub struct Reads {
    node: NodeId,
    parked: AllParked,
    /// Who waits for a transaction.
    waiting: HashMap<TransactionId, SmallVec<[ReadId; 2]>, FixedState>,
    pub(crate) rules: Rules,
}

impl Reads {
    /// A machine that has no read to serve.
    pub fn new(node: NodeId) -> Self {
        let waiting = HashMap::default();
        Self { node, parked: AllParked::default(), waiting, rules: Rules::default() }
    }

    /// The number of reads that wait.
    pub fn len(&self) -> usize {
        self.parked.len()
    }

    /// Whether no read waits.
    pub fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Takes in `event`, asking `commit` what is in flight, and adds what the driver is to do.
    ///
    /// Total and bounded, like [`Commit::step`].
    pub fn step(&mut self, event: Event, commit: &mut Commit, effects: &mut Vec<Effect>) {
        match event {
            Event::Ask(request) => self.ask(request, commit, effects),
            Event::List(listing) => self.list(listing, commit, effects),
            Event::Moved { transaction } => self.moved(transaction, commit, effects),
            Event::Cancel { id } => {
                if let Some(parked) = self.parked.remove(id) {
                    self.unlink(parked.pending, id);
                }
            }
        }
    }

    /// The lowest timestamp at which a read of `blob` waits here: it will see what was the newest
    /// then, and is not counted yet as a snapshot in use (V1).
    pub(crate) fn oldest_waiting(&self, blob: &BlobName) -> Option<Timestamp> {
        self.parked.oldest_of(blob)
    }

    fn ask(&mut self, request: Request, commit: &mut Commit, effects: &mut Vec<Effect>) {
        let at = match request.kind {
            Kind::Direct | Kind::Whole | Kind::Clock => None,
            Kind::First => Some(commit.snapshot_timestamp()),
            Kind::At(at) | Kind::Layout(at) => Some(at),
        };
        let is_authority = request.authority == self.node;
        if !is_authority && !self.is_clean(&request, at, commit) {
            effects.push(Effect::Forward { to: request.authority, request });
            return;
        }
        if let Some(at) = at {
            commit.observe(at); // R5: nothing proposed from now on is at or below it.
            let is_fixed = at <= commit.clock() || !commit.rules.hold(Rule::C8);
            debug_assert!(is_fixed, "R5: what is read at {at} may still change");
        }
        if !is_authority {
            return self.serve(request, at, commit, effects);
        }
        self.read_when_applied(request, at.unwrap_or(commit.clock()), commit, effects);
    }

    /// Serves a read at the authority, or lets it wait for something that may still be at or below
    /// `up_to`. For the newest that is the clock on its arrival, since whatever was shown anywhere
    /// before is known here to be decided, at or below that (C8, C9).
    fn read_when_applied(
        &mut self,
        request: Request,
        up_to: Timestamp,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        let is_waiting = match request.kind {
            Kind::Direct => self.rules.hold(Rule::R1),
            Kind::First | Kind::At(_) | Kind::Layout(_) => self.rules.hold(Rule::R5),
            Kind::Whole => self.rules.hold(Rule::D2),
            Kind::Clock => true,
        };
        // A chain of one is shown nowhere before it is applied here, nor is its place, while no
        // longer chain that may come after it is in flight (R1).
        let may_be_alone = request.kind != Kind::Direct || commit.is_shared_in_flight();
        let last = |request: &Request| {
            commit.last_pending(&request.blob, request.footprint, up_to, may_be_alone)
        };
        let id = request.id;
        match is_waiting.then(|| last(&request)).flatten() {
            None => {
                let at = request.kind.is_at_a_timestamp().then_some(up_to);
                self.serve(request, at, commit, effects);
            }
            Some(_) if self.is_full(id) => {
                let abort = Abort::at(&request.blob, ErrorKind::Unavailable, TOO_MANY);
                effects.push(Effect::Refuse { id, abort });
            }
            Some(pending) => {
                self.park(id, Parked { wanted: Wanted::Read(request), up_to, pending }, commit);
            }
        }
    }

    /// Whether this one may not wait.
    fn is_full(&self, id: ReadId) -> bool {
        self.parked.len() >= PARKED_MAX || self.parked.contains(id)
    }

    fn park(&mut self, id: ReadId, parked: Parked, commit: &mut Commit) {
        commit.watch(parked.pending);
        self.waiting.entry(parked.pending).or_default().push(id);
        self.parked.insert(id, parked);
        debug_assert!(self.parked.len() <= PARKED_MAX, "reads that wait are bounded");
    }

    /// R1, R2, R5: whether a replica that is not the authority may answer by itself.
    fn is_clean(&self, request: &Request, at: Option<Timestamp>, commit: &Commit) -> bool {
        let is_settled =
            || commit.is_settled(&request.blob, request.footprint, at, self.rules.hold(Rule::R2));
        match request.kind {
            Kind::Clock => false, // Only the authority's clock counts (R6).
            Kind::First => is_settled() || !self.rules.hold(Rule::R3),
            Kind::At(_) | Kind::Layout(_) => is_settled(),
            Kind::Direct | Kind::Whole => is_settled() || !self.rules.hold(Rule::R1),
        }
    }

    /// A transaction was decided, applied or aborted: serves those that wait for nothing else.
    fn moved(
        &mut self,
        transaction: TransactionId,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        let Some(readers) = self.waiting.remove(&transaction) else { return };
        let pending_at = commit.pending_at(transaction);
        let (waiting, moved): (SmallVec<_>, SmallVec<_>) = readers.into_iter().partition(|id| {
            let up_to = self.parked.get(*id).expect("who waits is parked").up_to;
            pending_at.is_some_and(|its| its <= up_to)
        });
        if !waiting.is_empty() {
            self.waiting.insert(transaction, waiting);
        }
        for id in moved {
            let Parked { wanted, up_to, .. } = self.parked.remove(id).expect("it was just there");
            match wanted {
                Wanted::Read(request) => self.read_when_applied(request, up_to, commit, effects),
                Wanted::Listing(listing) => {
                    self.list_when_applied(listing, up_to, commit, effects);
                }
            }
        }
    }

    /// Serves a read that waits for nothing more.
    fn serve(
        &mut self,
        request: Request,
        at: Option<Timestamp>,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        let id = request.id;
        debug_assert!(!self.parked.contains(id), "who is served waits for nothing: {id:?}");
        match request.kind {
            Kind::Direct | Kind::First | Kind::At(_) | Kind::Layout(_) => {
                effects.push(Effect::Serve { id, at });
            }
            Kind::Clock => effects.push(Effect::AnswerClock { id, clock: commit.clock() }),
            // What was in flight on arrival is applied, aborted or decided, at or below the clock.
            // What is not applied of that, or of what came since, is waited for as at any S.
            Kind::Whole if !self.rules.hold(Rule::D2) => {
                effects.push(Effect::Serve { id, at: Some(commit.snapshot_timestamp()) });
            }
            Kind::Whole => {
                let kind = Kind::At(commit.snapshot_timestamp());
                self.ask(Request { kind, ..request }, commit, effects);
            }
        }
    }

    fn unlink(&mut self, transaction: TransactionId, id: ReadId) {
        if let Some(readers) = self.waiting.get_mut(&transaction) {
            debug_assert!(readers.contains(&id), "who waits for it is known to it: {id:?}");
            readers.retain(|reader| *reader != id);
            if readers.is_empty() {
                self.waiting.remove(&transaction);
            }
        }
    }
}
