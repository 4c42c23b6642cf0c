//! A node of a cluster: all its machines together, as one.
//!
//! [`Member`] owns the map, the lease, and the machines of commit, reads, movement and versions;
//! for every message it decides which of them sees it, and for every effect of theirs what the
//! driver is to do. It is a machine like they are: told of events with the time, it answers
//! effects.
//!
//! ```text
//!              ┌ admission ─ is it from one I know, of my epoch, have I a lease? (M3, M4)
//!   envelope ──┤
//!              ├► submission ──► Commit ──effects──► execution ──► log, store, envelopes
//!              ├► reading, listing ► Reads ◄──Moved───┘
//!              ├► supply ──────► Recipient (movement)
//!              ├► scrubbing ───► Scrubber (movement)
//!              ├► key_leasing ─► Table (key_lease)
//!              ├► key_watching, notifying ─► Table, Notices (key_watch)
//!              ├► uploading ───► pieces ahead of their transactions
//!              └► change ──────► a new map: Commit, Recipient, and what is not held any more
//!   tick ───────► tick ────────► lease, questions, time-outs
//!   log ────────► replay
//! ```
//!
//! The parts: [`event`], [`effect`], [`record`] and [`store`] are what goes in and out;
//! [`checkpoint`] is what stands for the log when it is cut; the others are named in the drawing;
//! [`durably_done`] is what the log has of what is done with; [`config`] is what can be set,
//! [`in_use`] counts snapshots, [`usage`] is what they need on its way to all holders, and
//! [`catching_up`] is what waits for a chunk's base. What a rule says is in the machine that it
//! belongs to; here is only who hears what.

mod admission;
mod catching_up;
mod change;
pub mod checkpoint;
pub mod comparing;
mod config;
mod copying;
mod difference;
mod durably_done;
pub mod effect;
pub mod event;
mod execution;
mod fetching;
mod finished;
mod in_use;
mod invariants;
mod key_guard;
mod key_leasing;
mod key_watching;
mod listing;
mod moment;
mod notifying;
mod reading;
pub mod record;
mod replay;
mod scrubbing;
mod sole_replica;
pub mod store;
mod submission;
mod supply;
#[cfg(test)]
mod tests;
mod tick;
mod uploading;
mod usage;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tyr_types::{Epoch, Error, NodeId, Timestamp, TransactionId};

use self::catching_up::Aside;
pub use self::config::MemberConfig;
use self::difference::Difference;
use self::durably_done::DurablyDone;
pub use self::effect::Effect;
pub use self::event::Event;
use self::execution::Promise;
use self::finished::ToldFinished;
use self::in_use::InUse;
use self::invariants::Grown;
use self::key_leasing::KeyLeases;
use self::listing::Listings;
use self::reading::AskedReads;
pub use self::record::Record;
pub use self::store::{LateAnswers, LocalChunk, Store};
use self::uploading::Uploads;
use self::usage::UsageOnItsWay;
use crate::commit::Commit;
use crate::commit::recovery::BALLOTS_MAX;
use crate::key_watch;
use crate::lease::Holder;
use crate::map::{ClusterMap, MapNode, NodeState};
use crate::message::{Address, Body, Envelope, Now};
pub use crate::movement::ChunkName;
use crate::movement::scrub::{ScrubCounts, Scrubber};
use crate::movement::{Progress, Recipient};
use crate::read::Reads;
#[cfg(any(test, feature = "broken-rules"))]
use crate::rule::Rule;

/// Messages of epochs that are not known here yet that are kept until they are. More are lost, and
/// come again (F6).
pub const HELD_MAX: usize = 1024;

const _: () = {
    assert!(4 * BALLOTS_MAX <= HELD_MAX, "ballots of four nodes find room");
    assert!(PLANNED_MAX > 1, "one that was withdrawn leaves room for the next");
    assert!(tick::RETURN_AGAIN_US < tick::OUTDATED_AGAIN_US, "who is outdated asks less");
};

/// Planned maps that are remembered at a time: one, and those withdrawn just before.
pub const PLANNED_MAX: usize = 8;

/// Numbers of incarnations between two starts of a node.
///
/// A node that finds itself declared down while it runs comes back under the next incarnation
/// (M4); this many are its own to use before its next start.
pub const INCARNATIONS_PER_START: u64 = 1 << 16;

/// The incarnation of a node's `start`-th start, the first being 1.
pub fn incarnation(start: u64) -> u64 {
    let incarnation = start.saturating_sub(1).saturating_mul(INCARNATIONS_PER_START) + 1;
    debug_assert!(incarnation >= start, "M4: no start is taken for an earlier one: {start}");
    incarnation
}

/// A planned change: nothing is begun any more on chains that it changes.
#[derive(Clone, Debug)]
struct Planned {
    map: Arc<ClusterMap>,
    /// When it was heard of.
    since_us: u64,
    /// Nothing is validated either, and the log is to be durable so far.
    is_prepared: bool,
    /// The log is durable so far: the monitors may have been told.
    is_durable: bool,
    /// When they were last told, since they last asked.
    told_us: Option<u64>,
}

/// One node of a cluster.
#[derive(Debug)]
pub struct Member {
    node: NodeId,
    incarnation: u64,
    config: MemberConfig,
    now: Now,
    /// The newest map known; nothing is done before there is one.
    map: Option<Arc<ClusterMap>>,
    /// The newest map that gives this node all that is here: what it does not was let go of.
    placed_by: Option<Arc<ClusterMap>>,
    /// Ascending by epoch; at most [`PLANNED_MAX`].
    planned: Vec<Planned>,
    lease: Holder,
    commit: Commit,
    /// The epoch of the map that the commit machine goes by. It is behind only while there is no
    /// lease: without one nothing is driven.
    commit_epoch: Option<Epoch>,
    reads: Reads,
    /// What the reads in the read machine are; bounded by it.
    asked: AskedReads,
    /// What the listings in the read machine are.
    listings: Listings,
    recipient: Recipient,
    scrubber: Scrubber,
    key_leases: KeyLeases,
    key_watches: key_watch::Table,
    notices: key_watch::Notices,
    in_use: InUse,
    usage: UsageOnItsWay,
    uploads: Uploads,
    /// What was applied to chunks whose base is awaited.
    aside: Aside,
    /// What it has since before it was declared down, until it has caught up.
    difference: Difference,
    /// In flight here, and applied to chunks whose base was awaited: what they answered is to come
    /// from their authorities.
    unanswered: BTreeSet<TransactionId>,
    /// Transactions in flight here, with chunks that they write and that came anew by the lists of
    /// others since, and the epoch of those lists.
    unsure: BTreeMap<TransactionId, BTreeMap<ChunkName, Epoch>>,
    /// Whether by the newest map chunks are on their way to somebody.
    has_recipients: bool,
    /// At most [`HELD_MAX`].
    held: VecDeque<Envelope>,
    /// Records that are waited for; bounded by what is in flight.
    promises: BTreeMap<u64, Promise>,
    /// The number of the last record.
    records: u64,
    /// How far the node is done, as far as its log has it (F10).
    done: DurablyDone,
    told_finished: ToldFinished,
    /// Whether the node still has what it promised under earlier maps: the log told of one, or it
    /// took part since it started.
    has_disk: bool,
    /// Before this, somebody else may have held what is held here now, and deleted blobs of it.
    known_from: Timestamp,
    /// The nodes that are the authority of anything.
    authorities: BTreeSet<NodeId>,
    /// How often a transaction was placed anew, for those in flight that were.
    misplaced: BTreeMap<TransactionId, u8>,
    /// Whether the log took no more: what is promised would not last.
    is_broken: bool,
    /// Whether new transactions may be begun.
    has_room: bool,
    /// Whether transactions that waited may go on once there is a lease and nothing planned.
    is_resume_due: bool,
    /// When the newest map was last asked for.
    fetched_us: Option<u64>,
    /// When the monitors were last told that the node is back.
    returned_us: Option<u64>,
    /// Who was sent the newest map since the last tick, because theirs is older.
    shown: BTreeSet<Address>,
    /// Why it takes no part: the cluster uses a feature level that its program does not speak.
    outdated: Option<Error>,
}

impl Member {
    /// A node that knows of nothing yet. `incarnation` is higher than that of any earlier start,
    /// [by enough](incarnation).
    pub fn new(node: NodeId, incarnation: u64, config: MemberConfig) -> Self {
        Self {
            node,
            incarnation,
            config,
            now: Now::default(),
            map: None,
            placed_by: None,
            planned: Vec::new(),
            lease: Holder::new(incarnation),
            commit: Commit::clustered(node).asking_at_most(config.ballots_max),
            commit_epoch: None,
            reads: Reads::new(node),
            asked: AskedReads::default(),
            listings: Listings::default(),
            recipient: config.recipient(node, incarnation),
            scrubber: Scrubber::new(node, incarnation, config.scrub),
            key_leases: KeyLeases::default(),
            key_watches: key_watch::Table::default(),
            notices: key_watch::Notices::default(),
            in_use: InUse::new(config.read_timeout_us),
            usage: UsageOnItsWay::default(),
            uploads: Uploads::default(),
            aside: Aside::default(),
            difference: Difference::default(),
            unanswered: BTreeSet::new(),
            unsure: BTreeMap::new(),
            has_recipients: false,
            held: VecDeque::new(),
            promises: BTreeMap::new(),
            records: 0,
            done: DurablyDone::default(),
            told_finished: ToldFinished::default(),
            has_disk: false,
            known_from: Timestamp::ZERO,
            authorities: BTreeSet::new(),
            misplaced: BTreeMap::new(),
            is_broken: false,
            has_room: true,
            is_resume_due: false,
            fetched_us: None,
            returned_us: None,
            shown: BTreeSet::new(),
            outdated: None,
        }
    }

    /// Takes a rule away, for a test that wants to see its checker notice.
    #[cfg(any(test, feature = "broken-rules"))]
    pub fn break_rule(&mut self, rule: Rule) {
        self.commit.rules.broken = Some(rule);
        self.reads.rules.broken = Some(rule);
        self.scrubber.rules.broken = Some(rule);
        #[cfg(feature = "broken-rules")]
        self.lease.break_rule(rule);
    }

    /// Takes in `event` at `now` and adds what the driver is to do to `effects`.
    ///
    /// Total and bounded, like the machines within.
    pub fn step<S: Store>(
        &mut self,
        now: Now,
        event: Event,
        store: &mut S,
        effects: &mut Vec<Effect>,
    ) {
        self.now = Now { wall_us: now.wall_us.min(Timestamp::CLOCK_MAX), ..now };
        let before = Grown::of(self);
        let mut turn = Turn { member: self, store, effects };
        match event {
            Event::Receive(envelope) => turn.receive(envelope),
            Event::Unread(unread) => turn.not_read(unread),
            Event::Persisted { number } => turn.persisted(number),
            Event::PersistFailed { number } => turn.persist_failed(number),
            Event::Resume => turn.resume(),
            Event::Continue => turn.compare_received(),
            Event::Tick => turn.tick(),
        }
        turn.note_finished();
        before.check(self);
        debug_assert!(self.held.len() <= HELD_MAX, "what waits for a newer map is bounded");
        debug_assert!(self.planned.len() <= PLANNED_MAX, "planned maps are bounded");
    }

    /// The node's number.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The incarnation it goes by now.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The newest map it knows.
    pub fn map(&self) -> Option<&Arc<ClusterMap>> {
        self.map.as_ref()
    }

    /// The highest timestamp it has seen or given out.
    pub fn clock(&self) -> Timestamp {
        self.commit.clock()
    }

    /// Whether its log took no more: it has to be started again to be of use.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Why it takes no part, when that is because its program is too old for its cluster.
    pub fn outdated(&self) -> Option<&Error> {
        self.outdated.as_ref()
    }

    /// Whether it may serve, validate and answer now (M3).
    pub fn has_lease(&self) -> bool {
        self.is_member() && self.lease.is_held(self.now.monotonic_us) && !self.is_broken
    }

    /// How long its lease lasts yet, in microseconds; 0 when it has none (M3).
    pub fn lease_left_us(&self) -> u64 {
        match self.has_lease() {
            true => self.lease.until_us().saturating_sub(self.now.monotonic_us),
            false => 0,
        }
    }

    /// The number of transactions known here and not finished with.
    pub fn in_flight(&self) -> usize {
        self.commit.len()
    }

    /// Bytes that those transactions carry.
    pub fn in_flight_len(&self) -> u64 {
        self.commit.payload_len()
    }

    /// The number of transactions finished with so far, and the bytes that they carried.
    pub fn finished(&self) -> (u64, u64) {
        self.commit.finished()
    }

    /// Whether so many outcomes are remembered that nothing new may be begun (F10).
    pub fn remembers_too_much(&self) -> bool {
        self.commit.remembers_too_much()
    }

    /// The node that all others remember outcomes for: it is done with what began the least far.
    /// `None` before the monitors have told.
    pub fn slowest(&self) -> Option<NodeId> {
        self.commit.slowest()
    }

    /// Whether there is room for new transactions. Without it, what a client submits again and
    /// nobody here knows of is not taken in: the client asks again later. What is submitted for the
    /// first time the driver refuses by itself.
    pub fn set_room(&mut self, has_room: bool) {
        self.has_room = has_room;
    }

    /// What is in flight here and what it waits for, a line each; for whoever looks for a failure.
    pub fn brief(&self) -> String {
        self.commit.brief()
    }

    /// Nobody reads a snapshot below this that began at this node: the oldest in use, or the clock.
    pub fn snapshot_floor(&self) -> Timestamp {
        self.in_use.oldest().into_iter().fold(self.commit.clock(), Timestamp::min)
    }

    /// The number of reads that wait here.
    pub fn waiting_reads(&self) -> usize {
        self.reads.len()
    }

    /// Whether this node is the authority of anything.
    fn is_authority(&self) -> bool {
        self.authorities.contains(&self.node)
    }

    /// How far it is with copying what it is a recipient of.
    pub fn progress(&self) -> Progress {
        self.recipient.progress()
    }

    /// What it has compared of the chunks that it is the authority of (D4).
    pub fn scrubbed(&self) -> ScrubCounts {
        self.scrubber.counts()
    }

    /// A message of this node.
    pub fn envelope(&self, body: Body) -> Envelope {
        let (epoch, incarnation) = (self.epoch(), self.incarnation);
        Envelope { epoch, incarnation, from: Address::Node(self.node), body }
    }

    fn epoch(&self) -> Epoch {
        self.map.as_ref().map_or(Epoch(0), |map| map.epoch)
    }

    /// This node, as the map has it.
    fn map_node(&self) -> Option<&MapNode> {
        self.map.as_ref().and_then(|map| map.nodes.get(&self.node))
    }

    /// Whether the map has this node, in this incarnation, taking part.
    fn is_member(&self) -> bool {
        self.map_node().is_some_and(|it| it.is_live() && it.incarnation == self.incarnation)
    }

    /// Whether the node is back after it was declared down, and not caught up (M4).
    fn is_returning(&self) -> bool {
        self.map_node().is_some_and(|it| it.state == NodeState::Returning)
    }
}

/// A step of a member: what is done in it is done to these.
struct Turn<'a, S> {
    member: &'a mut Member,
    store: &'a mut S,
    effects: &'a mut Vec<Effect>,
}

impl<S: Store> Turn<'_, S> {
    /// Sends `body` to `to`.
    fn send(&mut self, to: Address, body: Body) {
        let envelope = self.member.envelope(body);
        self.effects.push(Effect::Send { to, envelope });
    }

    /// Adds a record to the log; when it is synced, the promise that waits for it.
    fn persist(&mut self, record: Record, promise: Option<Promise>) {
        self.member.records += 1;
        let number = self.member.records;
        let last = self.member.promises.last_key_value().map(|(number, _)| *number);
        debug_assert!(last < Some(number), "C3: what is durable up to a number has all before it");
        let is_synced = promise.is_some();
        if let Some(promise) = promise {
            let before = self.member.promises.insert(number, promise);
            debug_assert!(before.is_none(), "C3: one promise waits for a record: {number}");
        }
        self.effects.push(Effect::Persist { number, record, is_synced });
    }
}
