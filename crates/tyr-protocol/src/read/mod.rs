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
//! stretches travel; [`invariants`]. What
//! is in flight is the commit machine's to say; this one asks it and hears of changes by `Moved`.

pub mod effect;
pub mod ending;
pub mod event;
mod invariants;
pub mod layout;
mod listing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{BlobName, ErrorKind, NodeId, Timestamp, TransactionId};

pub use self::effect::Effect;
pub use self::ending::Ending;
pub use self::event::{Event, Kind, Listing, ReadId, Request};
use crate::abort::Abort;
use crate::commit::Commit;
use crate::commit::question::{Writer, Writers};
use crate::rule::{Rule, Rules};

/// The most reads that wait at a node; further ones that would are refused as `Unavailable`.
///
/// A read waits for transactions in flight, so it is for them that this many may wait.
pub const PARKED_MAX: usize = crate::commit::IN_FLIGHT_MAX;

const TOO_MANY: &str = "too many reads wait for transactions in flight; retry later";

/// What waits.
#[derive(Debug)]
enum Wanted {
    Read(Request),
    Listing(Listing),
}

impl Wanted {
    fn is_of(&self, blob: &BlobName) -> bool {
        match self {
            Self::Read(request) => request.blob == *blob,
            Self::Listing(listing) => listing.is_of(blob),
        }
    }
}

/// A read or a listing that waits for transactions to be applied or aborted here.
#[derive(Debug)]
struct Parked {
    wanted: Wanted,
    /// The timestamp it is served at; `None` for the newest. A listing of the newest has that up to
    /// which it waits.
    at: Option<Timestamp>,
    /// What it waits for; a listing for one of many.
    pending: SmallVec<[TransactionId; 2]>,
}

/// The read machine of one node.
///
/// Its driver calls [`Reads::step`] for each request and for each `Moved` effect of the commit
/// machine beside it, and executes the effects in order.
#[derive(Debug)]
pub struct Reads {
    node: NodeId,
    parked: BTreeMap<ReadId, Parked>,
    /// Who waits for a transaction.
    waiting: HashMap<TransactionId, SmallVec<[ReadId; 2]>, FixedState>,
    pub(crate) rules: Rules,
}

impl Reads {
    /// A machine that has no read to serve.
    pub fn new(node: NodeId) -> Self {
        let waiting = HashMap::default();
        Self { node, parked: BTreeMap::new(), waiting, rules: Rules::default() }
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
                if let Some(parked) = self.parked.remove(&id) {
                    for transaction in parked.pending {
                        self.unlink(transaction, id);
                    }
                }
            }
        }
    }

    /// The lowest timestamp at which a read of `blob` waits here: it will see what was the newest
    /// then, and is not counted yet as a snapshot in use (V1).
    pub(crate) fn oldest_waiting(&self, blob: &BlobName) -> Option<Timestamp> {
        let of_blob = self.parked.values().filter(|parked| parked.wanted.is_of(blob));
        of_blob.filter_map(|parked| parked.at).min()
    }

    fn ask(&mut self, request: Request, commit: &mut Commit, effects: &mut Vec<Effect>) {
        let is_authority = request.authority == self.node;
        let writers = commit.writers(&request.blob, request.footprint);
        let at = match request.kind {
            Kind::Direct | Kind::Whole | Kind::Clock => None,
            Kind::First => Some(commit.snapshot_timestamp()),
            Kind::At(at) | Kind::Layout(at) => Some(at),
        };
        if !is_authority && !self.is_clean(&request, at, &writers) {
            effects.push(Effect::Forward { to: request.authority, request });
            return;
        }
        if let Some(at) = at {
            commit.observe(at); // R5: nothing proposed from now on is at or below it.
            let is_fixed = at <= commit.clock() || !commit.rules.hold(Rule::C8);
            debug_assert!(is_fixed, "R5: what is read at {at} may still change");
        }
        let pending: SmallVec<[TransactionId; 2]> = match is_authority {
            true => {
                // A chain of one is shown nowhere before it is applied here, nor is its place,
                // while no longer chain that may come after it is in flight (R1).
                let is_apart = !commit.is_shared_in_flight();
                let waits_for = |writer: &&Writer| {
                    let is_skipped = is_apart && writer.is_alone && request.kind == Kind::Direct;
                    !is_skipped && self.waits_for(&request, at, writer)
                };
                writers.iter().filter(waits_for).map(|writer| writer.id).collect()
            }
            false => SmallVec::new(),
        };
        if pending.is_empty() {
            self.serve(request, at, commit, effects);
        } else if self.is_full(request.id) {
            let abort = Abort::at(&request.blob, ErrorKind::Unavailable, TOO_MANY);
            effects.push(Effect::Refuse { id: request.id, abort });
        } else {
            let id = request.id;
            self.park(id, Parked { wanted: Wanted::Read(request), at, pending }, commit);
        }
    }

    /// Whether this one may not wait.
    fn is_full(&self, id: ReadId) -> bool {
        self.parked.len() >= PARKED_MAX || self.parked.contains_key(&id)
    }

    fn park(&mut self, id: ReadId, parked: Parked, commit: &mut Commit) {
        debug_assert!(!parked.pending.is_empty(), "nothing would ever serve {id:?}");
        for transaction in &parked.pending {
            commit.watch(*transaction);
            self.waiting.entry(*transaction).or_default().push(id);
        }
        let before = self.parked.insert(id, parked);
        debug_assert!(before.is_none(), "a read waits once: {id:?}");
        debug_assert!(self.parked.len() <= PARKED_MAX, "reads that wait are bounded");
    }

    /// R1, R2, R5: whether a replica that is not the authority may answer by itself.
    fn is_clean(&self, request: &Request, at: Option<Timestamp>, writers: &Writers) -> bool {
        let is_settled =
            |writer: &Writer| writer.is_applied && (writer.is_stable || !self.rules.hold(Rule::R2));
        match (request.kind, at) {
            (Kind::Clock, _) => false, // Only the authority's clock counts (R6).
            (Kind::First, _) if !self.rules.hold(Rule::R3) => true,
            (Kind::First | Kind::At(_) | Kind::Layout(_), Some(at)) => {
                writers.iter().all(|writer| writer.at > at || is_settled(writer))
            }
            (Kind::Direct | Kind::Whole | Kind::First | Kind::At(_) | Kind::Layout(_), _) => {
                writers.iter().all(is_settled) || !self.rules.hold(Rule::R1)
            }
        }
    }

    /// What a read at the authority waits for: with R1, D2 and `read_many` everything in flight on
    /// arrival, with R5 what may still be at or below S.
    fn waits_for(&self, request: &Request, at: Option<Timestamp>, writer: &Writer) -> bool {
        if writer.is_applied {
            return false;
        }
        match (request.kind, at) {
            (Kind::Direct, _) => self.rules.hold(Rule::R1),
            (Kind::Whole, _) => self.rules.hold(Rule::D2),
            (Kind::Clock, _) => true,
            (Kind::First | Kind::At(_) | Kind::Layout(_), at) => {
                at.is_none_or(|at| writer.at <= at) && self.rules.hold(Rule::R5)
            }
        }
    }

    /// A transaction was decided, applied or aborted: serves those that wait for nothing else.
    fn moved(
        &mut self,
        transaction: TransactionId,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        let pending_at = commit.pending_at(transaction);
        for id in self.waiting.get(&transaction).cloned().unwrap_or_default() {
            let parked = self.parked.get_mut(&id).expect("who waits is parked");
            let is_pending = pending_at.is_some_and(|its| parked.at.is_none_or(|at| its <= at));
            if is_pending {
                continue;
            }
            parked.pending.retain(|other| *other != transaction);
            self.unlink(transaction, id);
            if self.parked[&id].pending.is_empty() {
                let Parked { wanted, at, .. } = self.parked.remove(&id).expect("it was just there");
                match (wanted, at) {
                    (Wanted::Read(request), at) => self.serve(request, at, commit, effects),
                    (Wanted::Listing(listing), Some(up_to)) => {
                        self.list_when_applied(listing, up_to, commit, effects);
                    }
                    (Wanted::Listing(_), None) => unreachable!("a listing waits up to some time"),
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
        debug_assert!(!self.parked.contains_key(&id), "who is served waits for nothing: {id:?}");
        match request.kind {
            Kind::Direct | Kind::First | Kind::At(_) | Kind::Layout(_) => {
                effects.push(Effect::Serve { id, at });
            }
            Kind::Clock => effects.push(Effect::AnswerClock { id, clock: commit.clock() }),
            // What was in flight on arrival is applied, so it is at or below the clock. What came
            // since may be too, and is waited for as at any S.
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
