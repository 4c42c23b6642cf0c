//! What drives a node of a cluster: events in, one at a time, and what the member asks for, done.
//!
//! ```text
//!   network threads ──┐            ┌── seat (one lock) ──────────────────────┐
//!   syncer ───────────┼──► inbox ──┤ Engine::step: the member, its chunks,  │──► network: flush
//!   ticker, readers ──┘            │   its log; gauges look on              │──► syncer, readers
//!                                  └────────────────────────────────────────┘
//! ```
//!
//! Whoever brings work drives it, if nobody does already: a message is worked off on the thread
//! that read it from its socket, without waking another. Who finds the engine taken leaves the work
//! in the inbox; whoever drives takes all of it before leaving. Disk work is never done here but
//! for what is not in memory of a chunk that is changed.

mod admission;
mod answers;
mod gauges;
mod pace;
mod stopwatch;
mod syncer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tyr_engine::fold::Access;
use tyr_engine::journal::Piece;
use tyr_engine::{Engine, Holdings};
use tyr_protocol::commit::Message;
use tyr_protocol::member::Event;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::upload;
use tyr_protocol::wire::Unread;
use tyr_store::log::Preparation;
use tyr_store::store::Store;
use tyr_types::{NodeId, Result, limits};

use self::admission::AdmissionQueue;
pub use self::answers::AnswerStatistics;
pub(crate) use self::answers::Answers;
use self::gauges::{Gauges, Surroundings};
pub(crate) use self::pace::Backlog;
use self::pace::{Amount, Load};
use self::syncer::Syncer;
use crate::histogram::Histogram;
use crate::remarks::Remarks;
use tyr_runtime::clock;
use tyr_trace::Watch;

/// Events in the inbox above which what clients ask is refused: what a node works off in about a
/// second, the time after which clients ask again.
pub(crate) const INBOX_MAX: usize = 100_000;

/// The same in bytes that the transactions among them carry.
const INBOX_LEN_MAX: u64 = 256 << 20;

/// Events that are worked off in a round: then what it asked for goes to the disk and out to
/// others, and whoever waits for the engine gets it, also while more comes in than is worked off.
const ROUND_MAX: usize = 512;

const _: () = assert!(0 < ROUND_MAX && ROUND_MAX < INBOX_MAX);
const _: () = assert!(limits::TRANSACTION_INLINE_MAX as u64 <= INBOX_LEN_MAX);

/// Between two MiB of the log's next segment: it is there in half a second, while the one before
/// lasts for two at the least.
const PREPARATION_PAUSE: Duration = Duration::from_millis(5);

/// Where messages go out.
pub(crate) trait Outbound: Send + Sync + 'static {
    /// Takes a message on its way; it may be lost (F6).
    fn send(&self, to: Address, envelope: Envelope);
    /// Everything sent so far goes out.
    fn flush(&self);
}

/// Something to be worked off.
pub(crate) enum Work {
    /// An event for the member.
    Event(Event),
    /// A piece of the log is durable, or failed to become so.
    Synced(Piece, Result<()>),
}

/// Counts what was worked off.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Events.
    pub events: AtomicU64,
    /// Rounds: times that somebody drove.
    pub rounds: AtomicU64,
    /// Transactions in flight after the last round.
    pub in_flight: AtomicUsize,
    /// Transactions that waited to be let in, for too long.
    pub late: AtomicU64,
    /// Reads that waited after the last round.
    pub waiting_reads: AtomicUsize,
    /// What clients were answered.
    pub answers: Answers,
    /// How long the log took to be written and synced, each time.
    pub syncs: Histogram,
}

/// What waits to be worked off, and how much was in flight after the last round.
#[derive(Default)]
struct Inbox {
    work: VecDeque<Work>,
    carried: Carried,
    load: Load,
    /// What waits until something new may be begun.
    admission: AdmissionQueue,
}

impl Inbox {
    fn push(&mut self, envelope: Envelope) {
        let carried = Carried::of(&envelope.body);
        self.carried.add(carried);
        self.work.push_back(Work::Event(Event::Receive(envelope)));
    }

    /// What came first of it, as much as a round takes.
    fn take(&mut self, room: &mut VecDeque<Work>) {
        debug_assert!(room.is_empty(), "the round before was worked off");
        debug_assert!(!self.work.is_empty() || self.carried.len == 0, "nothing carries nothing");
        if self.work.len() <= ROUND_MAX {
            std::mem::swap(&mut self.work, room);
            self.carried = Carried::default();
            return;
        }
        for work in self.work.drain(..ROUND_MAX) {
            if let Work::Event(Event::Receive(envelope)) = &work {
                self.carried.remove(Carried::of(&envelope.body));
            }
            room.push_back(work);
        }
        debug_assert_eq!(room.len(), ROUND_MAX, "a round is bounded");
        debug_assert!(!self.work.is_empty(), "what is beyond it stays");
    }

    /// So much is in flight: who waited for less goes in.
    fn settle(&mut self, load: Load) {
        self.load = load;
        while self.has_room()
            && let Some(envelope) = self.admission.next()
        {
            self.push(envelope);
        }
        debug_assert!(!self.has_room() || self.admission.is_empty(), "nobody waits in vain");
    }

    /// Whether something new may be begun.
    fn has_room(&self) -> bool {
        self.load.has_room(self.carried.submitted) && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.work.len() >= INBOX_MAX || self.carried.len >= INBOX_LEN_MAX
    }
}

/// The transactions among what waits.
#[derive(Clone, Copy, Default)]
struct Carried {
    /// Bytes that they carry.
    len: u64,
    /// Of those, what clients submit.
    submitted: Amount,
}

impl Carried {
    fn of(body: &Body) -> Self {
        match body {
            Body::Submit { transaction, .. } => {
                let len = transaction.payload_len();
                Self { len, submitted: Amount { count: 1, len } }
            }
            Body::Commit(Message::Forward { transaction, .. }) => {
                Self { len: transaction.payload_len(), ..Self::default() }
            }
            Body::Upload(
                upload::Message::Stage { bytes, .. } | upload::Message::Pass { bytes, .. },
            ) => Self { len: bytes.len() as u64, ..Self::default() },
            _ => Self::default(),
        }
    }

    fn add(&mut self, other: Self) {
        self.len += other.len;
        self.submitted.count += other.submitted.count;
        self.submitted.len += other.submitted.len;
        debug_assert!(self.submitted.len <= self.len, "what clients submit is part of it");
    }

    fn remove(&mut self, other: Self) {
        debug_assert!(other.len <= self.len, "what goes was counted when it came");
        debug_assert!(other.submitted.count <= self.submitted.count, "and so were submissions");
        debug_assert!(other.submitted.len <= self.submitted.len, "and their bytes");
        self.len -= other.len;
        self.submitted.count -= other.submitted.count;
        self.submitted.len -= other.submitted.len;
    }
}

/// What is driven by one at a time.
struct Seat {
    engine: Engine,
    gauges: Gauges,
    /// Kept for its memory.
    room: VecDeque<Work>,
}

/// Drives a member.
pub(crate) struct Driver {
    node: NodeId,
    inbox: Mutex<Inbox>,
    seat: Mutex<Seat>,
    outbound: Arc<dyn Outbound>,
    syncer: Arc<Syncer>,
    is_closed: AtomicBool,
    pub counts: Counts,
    /// What the cluster log is told of the node.
    pub remarks: Arc<Remarks>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl Driver {
    /// Drives what is in `engine`. [`Driver::run_syncer`] has to run on a thread of its own.
    pub fn new(engine: Engine, outbound: Arc<dyn Outbound>) -> Arc<Self> {
        Arc::new(Self {
            node: engine.member().node(),
            inbox: Mutex::default(),
            seat: Mutex::new(Seat { engine, gauges: Gauges::default(), room: VecDeque::new() }),
            outbound,
            syncer: Arc::default(),
            is_closed: AtomicBool::new(false),
            counts: Counts::default(),
            remarks: Remarks::new(clock::random_u64(), Instant::now()),
        })
    }

    /// Takes messages in and works them off, unless somebody does that already.
    pub fn receive(self: &Arc<Self>, envelopes: impl Iterator<Item = Envelope>) {
        {
            let mut inbox = self.inbox.lock();
            envelopes.for_each(|envelope| inbox.push(envelope));
        }
        self.drive();
    }

    /// A message came in that this program does not understand.
    pub fn unread(self: &Arc<Self>, unread: Unread) {
        self.give(Work::Event(Event::Unread(unread)));
    }

    /// Some time has passed.
    pub fn tick(self: &Arc<Self>) {
        self.give(Work::Event(Event::Tick));
    }

    /// The node that is driven.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Whether so much waits that nobody else should be let in.
    pub fn is_overloaded(&self) -> bool {
        self.inbox.lock().is_full()
    }

    /// Whether so much is in flight that other nodes should begin nothing either that comes here.
    pub fn is_crowded(&self) -> bool {
        self.inbox.lock().load.is_crowded()
    }

    /// Whether clients may begin something new: what is in flight is done in good time.
    pub fn has_room(&self) -> bool {
        let inbox = self.inbox.lock();
        inbox.has_room() && inbox.admission.is_empty()
    }

    /// More outcomes than there is room for, if that is so: nothing new may be begun.
    pub fn backlog(&self) -> Option<Backlog> {
        self.inbox.lock().load.backlog
    }

    /// Whether one more transaction of a client, of `len` bytes, may wait until there is room.
    pub fn may_wait(&self, client: u64, len: u64) -> bool {
        self.inbox.lock().admission.has_place(client, len)
    }

    /// Nothing new may be begun until a round has measured how much may.
    #[cfg(test)]
    pub fn take_no_more(&self) {
        self.inbox.lock().load.may = Amount::default();
    }

    /// A transaction of a client waits a moment until there is room, with what the client is told
    /// when there is none in time.
    ///
    /// # Errors
    /// The refusal, when too much waits so.
    pub fn wait(
        &self,
        client: u64,
        len: u64,
        envelope: Envelope,
        refusal: Envelope,
    ) -> Result<(), Box<Envelope>> {
        let now_us = clock::steady_us();
        self.inbox.lock().admission.put(client, len, envelope, refusal, now_us)
    }

    /// Tells those that they are refused who have waited too long.
    fn refuse_late(&self) {
        let now_us = clock::steady_us();
        while let Some((to, refusal)) = {
            let mut inbox = self.inbox.lock();
            inbox.admission.late(now_us)
        } {
            self.counts.late.fetch_add(1, Ordering::Relaxed);
            self.outbound.send(to, refusal);
        }
    }

    /// Looks at the engine when nobody drives, and works off what came meanwhile. What is done
    /// there must be short.
    pub fn look<T>(self: &Arc<Self>, look: impl FnOnce(&mut Engine) -> T) -> T {
        self.visit(|seat| look(&mut seat.engine))
    }

    fn visit<T>(self: &Arc<Self>, look: impl FnOnce(&mut Seat) -> T) -> T {
        let seen = look(&mut self.seat.lock());
        // Who brought work found the engine taken, and left it in the inbox.
        if !self.inbox.lock().work.is_empty() {
            self.drive();
        }
        seen
    }

    /// Traces transactions from now on.
    pub fn watch_by(self: &Arc<Self>, watch: Watch) {
        self.visit(|seat| seat.gauges.watch_by(watch));
    }

    /// Traces no more; what is open ends as it is.
    pub fn end_watch(self: &Arc<Self>) {
        self.visit(|seat| seat.gauges.end_watch());
    }

    /// The store of what the node holds.
    pub fn store(self: &Arc<Self>) -> Arc<Store> {
        self.look(|engine| Arc::clone(engine.store()))
    }

    /// Events that wait to be worked off.
    pub fn waiting_events(&self) -> usize {
        self.inbox.lock().work.len()
    }

    /// Writes and syncs the log until the driver is closed.
    pub fn run_syncer(self: &Arc<Self>) {
        let (store, log) = {
            let mut seat = self.seat.lock();
            (Arc::clone(seat.engine.store()), seat.engine.journal().log())
        };
        while self.syncer.wait() {
            let begun = Instant::now();
            let mut piece = Piece::take(&store, &log);
            let result = piece.finish();
            let took_us = begun.elapsed().as_micros();
            self.counts.syncs.note(u64::try_from(took_us).unwrap_or(u64::MAX));
            self.give(Work::Synced(piece, result));
        }
    }

    /// Waits until the log is durable as it is, for so long at most: what nobody waited for, as
    /// that something was decided, others need not find out for a node that stops cleanly.
    pub fn settle(self: &Arc<Self>, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.look(|engine| engine.journal().is_settled()) && Instant::now() < until {
            self.tick();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing is worked off from now on, and the syncer ends when it has nothing to do.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.syncer.close();
    }

    fn give(self: &Arc<Self>, work: Work) {
        self.inbox.lock().work.push_back(work);
        self.drive();
    }

    /// Works off what is in the inbox, unless somebody does that already.
    fn drive(self: &Arc<Self>) {
        loop {
            let Some(mut seat) = self.seat.try_lock() else { return };
            self.round(&mut seat);
            // Who looks is let in between two rounds, however much there is to do.
            MutexGuard::unlock_fair(seat);
            // Who came in the meantime found the engine taken, and relies on this.
            if self.inbox.lock().work.is_empty() {
                return;
            }
        }
    }

    fn round(self: &Arc<Self>, seat: &mut Seat) {
        if self.is_closed.load(Ordering::Acquire) {
            *self.inbox.lock() = Inbox::default();
            return;
        }
        let Seat { engine, gauges, room: work } = seat;
        self.inbox.lock().take(work);
        self.counts.events.fetch_add(work.len() as u64, Ordering::Relaxed);
        let mut is_due = false;
        let host = &mut Surroundings { driver: self, gauges };
        for one in work.drain(..) {
            match one {
                Work::Event(event) => {
                    is_due |= matches!(event, Event::Tick);
                    engine.step(host, event);
                }
                Work::Synced(piece, result) => engine.synced(host, piece, &result),
            }
        }
        debug_assert!(work.is_empty(), "all of a round is worked off");
        self.counts.rounds.fetch_add(1, Ordering::Relaxed);
        self.counts.in_flight.store(engine.member().in_flight(), Ordering::Relaxed);
        self.inbox.lock().settle(gauges.load(engine));
        if is_due {
            self.refuse_late();
        }
        self.counts.waiting_reads.store(engine.member().waiting_reads(), Ordering::Relaxed);
        if engine.journal().begin(is_due) {
            self.syncer.want();
            if let Some(preparation) = engine.journal().prepare() {
                blocking::unblock(|| prepare(preparation)).detach();
            }
        }
        self.outbound.flush();
    }
}

/// The engine for who folds.
pub(crate) struct Looking<'d>(pub &'d Arc<Driver>);

impl Access<Holdings> for Looking<'_> {
    fn look<T>(&mut self, look: impl FnOnce(&mut Engine) -> T) -> T {
        self.0.look(look)
    }
}

/// Makes the log's next segment, with pauses in which the disk is the log's.
fn prepare(mut preparation: Preparation) {
    while preparation.step() {
        std::thread::sleep(PREPARATION_PAUSE);
    }
}

#[cfg(test)]
mod tests;
