//! What drives a node of a cluster: events in, one at a time, and what the member asks for, done.
//!
//! ```text
//!   network threads ──┐            ┌── core (one lock) ────────────────────┐
//!   syncer ───────────┼──► inbox ──┤ Member::step ──► effects              │──► network: flush
//!   ticker, readers ──┘            │   Persist ─► journal   Serve ─► store │──► syncer, readers
//!                                  └───────────────────────────────────────┘
//! ```
//!
//! Whoever brings work drives it, if nobody does already: a message is worked off on the thread
//! that read it from its socket, without waking another. Who finds the core taken leaves the work
//! in the inbox; whoever drives takes all of it before leaving. Disk work is never done here but
//! for what is not in memory of a chunk that is changed.

mod core;
mod reads;
mod syncer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tyr_protocol::member::Event;
use tyr_protocol::message::{Address, Envelope};
use tyr_store::log::PendingWrite;
use tyr_types::{NodeId, Result};

pub(crate) use self::core::Core;
use self::syncer::Syncer;

/// Events in the inbox above which what clients ask is refused: what a node works off in about a
/// second, the time after which clients ask again.
pub(crate) const INBOX_MAX: usize = 100_000;

/// Where messages go out.
pub(crate) trait Outlet: Send + Sync + 'static {
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
    Synced(PendingWrite, Result<()>),
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
    /// Reads that waited after the last round.
    pub waiting_reads: AtomicUsize,
}

/// Drives a member.
pub(crate) struct Driver {
    node: NodeId,
    inbox: Mutex<Vec<Work>>,
    core: Mutex<Core>,
    outlet: Arc<dyn Outlet>,
    syncer: Arc<Syncer>,
    is_closed: AtomicBool,
    pub counts: Counts,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl Driver {
    /// Drives what is in `core`. [`Driver::run_syncer`] has to run on a thread of its own.
    pub fn new(core: Core, outlet: Arc<dyn Outlet>) -> Arc<Self> {
        Arc::new(Self {
            node: core.member().node(),
            inbox: Mutex::default(),
            core: Mutex::new(core),
            outlet,
            syncer: Arc::default(),
            is_closed: AtomicBool::new(false),
            counts: Counts::default(),
        })
    }

    /// Takes messages in and works them off, unless somebody does that already.
    pub fn receive(self: &Arc<Self>, envelopes: impl Iterator<Item = Envelope>) {
        self.inbox.lock().extend(envelopes.map(|it| Work::Event(Event::Receive(it))));
        self.drive();
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
        self.inbox.lock().len() >= INBOX_MAX
    }

    /// The core, when nobody drives. What is done there must be short.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// Writes and syncs the log until the driver is closed.
    pub fn run_syncer(self: &Arc<Self>) {
        let store = Arc::clone(self.core().holdings().store());
        while let Some(pending) = self.syncer.wait() {
            // What records refer to is durable before they are.
            let synced = store.extents().sync();
            let result = synced.and_then(|()| pending.write()).and_then(|()| pending.sync());
            self.give(Work::Synced(pending, result));
        }
    }

    /// Nothing is worked off from now on, and the syncer ends when it has nothing to do.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.syncer.close();
    }

    fn give(self: &Arc<Self>, work: Work) {
        self.inbox.lock().push(work);
        self.drive();
    }

    /// Works off what is in the inbox, unless somebody does that already.
    fn drive(self: &Arc<Self>) {
        loop {
            let Some(mut core) = self.core.try_lock() else { return };
            self.round(&mut core);
            drop(core);
            // Who came in the meantime found the core taken, and relies on this.
            if self.inbox.lock().is_empty() {
                return;
            }
        }
    }

    fn round(self: &Arc<Self>, core: &mut Core) {
        if self.is_closed.load(Ordering::Acquire) {
            self.inbox.lock().clear();
            return;
        }
        let mut is_due = false;
        loop {
            let mut work = core.take_room();
            std::mem::swap(&mut work, &mut *self.inbox.lock());
            if work.is_empty() {
                core.give_room(work);
                break;
            }
            self.counts.events.fetch_add(work.len() as u64, Ordering::Relaxed);
            for one in work.drain(..) {
                is_due |= matches!(one, Work::Event(Event::Tick));
                core.work(self, one);
            }
            core.give_room(work);
        }
        self.counts.rounds.fetch_add(1, Ordering::Relaxed);
        self.counts.in_flight.store(core.member().in_flight(), Ordering::Relaxed);
        self.counts.waiting_reads.store(core.member().waiting_reads(), Ordering::Relaxed);
        if let Some(pending) = core.journal().take(is_due) {
            self.syncer.give(pending);
        }
        self.outlet.flush();
    }
}

#[cfg(test)]
mod tests;
