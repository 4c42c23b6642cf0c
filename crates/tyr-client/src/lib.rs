//! A client of a cluster: what drives the session, so that threads and tasks can call it.
//!
//! ```text
//!   callers ──────────┐            ┌── session (one lock) ─┐
//!   network threads ──┼──► queue ─►│ Session::step ──►     │──► transport: flush
//!   clock ────────────┘            │   Send, Done          │──► answers, to who waits for them
//!                                  └───────────────────────┘
//! ```
//!
//! Whoever brings work drives it, if nobody does already: an answer reaches its waiter from the
//! thread that read it from its socket, and calls of many threads at once go out in one flush. Who
//! finds the queue driven leaves the work there; who drives takes all of it, a bounded number of
//! times, and then hands over to the [`clock`], the one thread that a client has.
//!
//! The parts: [`work_queue`] is where work waits, [`driver`] steps the session and carries out what
//! it says, [`answer`] is how callers wait, [`key_lease`] what they hold, [`key_watch`] what they
//! watch, [`clock`] wakes the session when it asked for that. [`control`] is what a client needs of
//! the monitors, [`keyspaces`] finds and makes keyspaces by it, [`mod@kept`] keeps snapshots,
//! [`metadata`] and [`locations`] are what else is asked there, [`mod@usage`] what is asked of each
//! node, [`calls`] what one node is asked to run, [`presence`] what goes when the client does.
//! [`connecting`] puts all this on a network: [`network_transport`] is where messages and questions
//! to the monitors go out there, and [`mod@tls`] what is said of encryption.
//!
//! All but those must not know how messages travel ([`Transport`], [`Control`]), and nothing
//! here what its callers make of answers.

pub mod answer;
mod calls;
mod clock;
mod connecting;
pub mod control;
mod driver;
mod kept;
mod key_lease;
mod key_watch;
mod keyspaces;
mod locations;
mod metadata;
mod network_transport;
mod presence;
#[cfg(test)]
mod tests;
mod tls;
mod usage;
mod work_queue;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tyr_protocol::level::LEVEL_STAGING;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::Envelope;
use tyr_protocol::session::{
    Began, Call, Event, LeaseCall, NotifyCall, REMEMBERED_US, SessionConfig,
};
use tyr_types::{
    BlobName, BlobOperations, Bytes, Error, ErrorKind, KeyspaceId, LeaseMode, Leased, NodeId,
    Notified, PieceId, PieceRef, ReadCheck, Result, Scan, ScanPage, Timestamp, Transaction,
    WatchTarget,
};

pub use self::answer::{Lease, Many, Moment, Sight, Unresolved, Waiting};
pub use self::connecting::ConnectOptions;
pub use self::control::Control;
pub use self::key_lease::KeyLease;
pub use self::key_watch::KeyWatch;
pub use self::presence::Presence;
pub use self::tls::TlsOptions;
pub use tyr_protocol::level::{LEVEL_CALLING, LEVEL_COPYING, LEVEL_LISTING, LEVEL_STRETCHING};
pub use tyr_protocol::read::layout;
pub use tyr_protocol::session::{Place, Seen, Want};
pub use tyr_protocol::upload::PieceSource;
pub use tyr_runtime::waiting::block_on;

use self::answer::Waiter;
use self::calls::KnownSeats;
use self::driver::Driver;
use tyr_runtime::lease_state::LeaseState;
use tyr_runtime::statistics::Statistics;
use tyr_runtime::ticket::Ticket;
use tyr_runtime::watch_state::WatchState;

/// Where a client's messages go out.
pub trait Transport: Send + Sync + 'static {
    /// Takes a message on its way to a node; it may be lost (F6). Never blocks.
    fn send(&self, to: NodeId, envelope: Envelope);
    /// Everything sent so far goes out.
    fn flush(&self);
    /// The session goes by this map from now on: nodes may have come, or be elsewhere.
    fn learn(&self, map: &Arc<ClusterMap>) {
        let _ = map;
    }
}

/// How patient a client is, and how much it does at once.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// How long a call may take. Below a minute: for so long nodes remember outcomes. Default 30 s.
    pub timeout: Duration,
    /// Calls in flight; further ones are `Unavailable`. Default 65,536: with small payloads some
    /// 100 MB, and more than a client gets answered in a second.
    pub in_flight_max: usize,
}

/// The longest time-out: half of the time for which nodes remember outcomes, so that what became
/// of a transaction can still be asked for when its call has failed.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);

const _: () = assert!(
    2 * TIMEOUT_MAX.as_micros() <= REMEMBERED_US as u128,
    "an outcome is remembered for as long again as a call may take"
);

impl Default for ClientConfig {
    fn default() -> Self {
        Self { timeout: TIMEOUT_MAX, in_flight_max: 1 << 16 }
    }
}

impl ClientConfig {
    fn session(&self) -> Result<SessionConfig> {
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MAX {
            return Err(Error::invalid(format!(
                "a call's time-out is above 0 and at most {} s, not {:?}",
                TIMEOUT_MAX.as_secs(),
                self.timeout
            )));
        }
        let deadline_us = u64::try_from(self.timeout.as_micros()).expect("it is at most 30 s");
        let in_flight_max = self.in_flight_max;
        Ok(SessionConfig { deadline_us, in_flight_max, ..SessionConfig::default() })
    }
}

/// Where the network puts what comes in for a client; made before the client is, since the
/// network that the client sends by needs it.
#[derive(Clone, Default)]
pub struct Inbox {
    driver: Arc<OnceLock<Weak<Driver>>>,
}

impl Inbox {
    /// Messages that came in together. Answers reach their waiters before it returns, unless
    /// another thread drives already. Does nothing before the client is made and after it is gone.
    pub fn receive(&self, envelopes: impl IntoIterator<Item = Envelope>) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.receive(envelopes);
        }
    }

    /// A node does not take this client, since it has another of the same number: nothing more is
    /// begun.
    pub fn end(&self, why: &Error) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.end_calls(why);
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbox")
    }
}

/// What a client is made of.
pub struct ClientParts {
    /// By which nodes know it: drawn at random ([`tyr_runtime::clock::random_u64`]), never used
    /// again.
    pub number: u64,
    /// The cluster map, perhaps not the newest.
    pub map: Arc<ClusterMap>,
    /// Where messages go out.
    pub transport: Arc<dyn Transport>,
    /// Where they come in.
    pub inbox: Inbox,
    /// The monitors.
    pub control: Arc<dyn Control>,
    /// How patient it is.
    pub config: ClientConfig,
}

/// A client of a cluster. Dropping it closes it.
pub struct Client {
    driver: Arc<Driver>,
    control: Arc<dyn Control>,
    clock: Mutex<Option<JoinHandle<()>>>,
    /// How long a call may take.
    timeout: Duration,
    seats: KnownSeats,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.driver)
    }
}

impl Client {
    /// A client, ready for calls.
    ///
    /// # Errors
    /// `InvalidArgument` for a configuration out of range; `Unavailable` when no thread starts.
    pub fn start(parts: ClientParts) -> Result<Arc<Self>> {
        let ClientParts { number, map, transport, inbox, control, config } = parts;
        let driver = Arc::new(Driver::new(number, map, config.session()?, transport));
        let is_first = inbox.driver.set(Arc::downgrade(&driver)).is_ok();
        assert!(is_first, "an inbox is of one client");
        let running = Arc::clone(&driver);
        let clock = std::thread::Builder::new()
            .name("tyr-client".to_owned())
            .spawn(move || clock::run(&running))
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "cannot start thread tyr-client")
                    .with_source(error)
            })?;
        let clock = Mutex::new(Some(clock));
        let timeout = config.timeout;
        let seats = KnownSeats::default();
        Ok(Arc::new(Self { driver, control, clock, timeout, seats }))
    }

    /// Commits a transaction. `held` are what its reads began: they end when it is answered.
    pub fn commit(
        &self,
        blobs: Vec<BlobOperations>,
        reads: Vec<ReadCheck>,
        held: Vec<Lease>,
    ) -> Ticket {
        let (answer, ticket) = Ticket::waiting();
        self.driver.call(Call::Commit { blobs, reads }, Waiter::Commit(answer, held));
        ticket
    }

    /// Asks what became of a transaction whose commit ended as `TimedOut` (F4). Of that error,
    /// [`Unresolved`] has it.
    pub fn ask(&self, transaction: Arc<Transaction>) -> Ticket {
        let (answer, ticket) = Ticket::waiting();
        self.driver.call(Call::Ask { transaction }, Waiter::Commit(answer, Vec::new()));
        ticket
    }

    /// Reads one blob.
    pub fn read(&self, want: Want, place: Place) -> Waiting<Sight> {
        let (answer, receiver) = oneshot::channel();
        let call = self.driver.call(Call::Read { want, place }, Waiter::Read(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// Reads many blobs at one timestamp, which everything acknowledged before precedes (R6).
    pub fn read_many(&self, wants: Vec<Want>) -> Waiting<Many> {
        let (answer, receiver) = oneshot::channel();
        let call = self.driver.call(Call::ReadMany { wants }, Waiter::Many(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// A moment of everything: all that was acknowledged before is at or below it, and all that
    /// this client begins after it is above. What is read there stays as long as the lease is kept,
    /// or until the read timeout (V5); of a cluster some node of which is of a release that counts
    /// no such moments there is no lease, and it stays for as long as versions linger (V4).
    pub fn moment(&self) -> Waiting<Moment> {
        let (answer, receiver) = oneshot::channel();
        let call = self.driver.call(Call::Moment, Waiter::Moment(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// A page of a keyspace, exactly as it was at `at`, or as it is now if there is none (Q2).
    pub fn scan(
        &self,
        keyspace: KeyspaceId,
        scan: Scan,
        at: Option<Timestamp>,
    ) -> Waiting<ScanPage> {
        let (answer, receiver) = oneshot::channel();
        let what = Call::Scan { keyspace, scan: Box::new(scan), at };
        let call = self.driver.call(what, Waiter::Scan(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// A lease of a key or a group, which is renewed from then on (K1, K7). `wait` is how long to
    /// wait where others are in the way; `None` for not at all.
    pub fn lease(
        &self,
        of: Leased,
        mode: LeaseMode,
        duration: Duration,
        wait: Option<Duration>,
    ) -> Waiting<KeyLease> {
        let (answer, receiver) = oneshot::channel();
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (duration_us, wait_us) = (us(duration), wait.map(us));
        let what = Call::Lease(LeaseCall { of, mode, duration_us, wait_us });
        let call = self.driver.call(what, Waiter::Lease(answer, LeaseState::default()));
        Waiting::new(&self.driver, call, receiver)
    }

    /// Watches a key, or those with a prefix (K5): what there is to tell is in what comes back.
    pub fn watch(&self, target: WatchTarget) -> Waiting<KeyWatch> {
        let (answer, receiver) = oneshot::channel();
        let waiter = Waiter::Watch(answer, WatchState::default());
        let call = self.driver.call(Call::Watch { target }, waiter);
        Waiting::new(&self.driver, call, receiver)
    }

    /// Sends a notice to who watches a key; they have so long to acknowledge it (K6).
    pub fn notify(&self, blob: BlobName, payload: Bytes, timeout: Duration) -> Waiting<Notified> {
        let (answer, receiver) = oneshot::channel();
        let timeout_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        let what = Call::Notify(NotifyCall { blob, payload, timeout_us });
        let call = self.driver.call(what, Waiter::Notice(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// Uploads a piece of at most 4 MiB ahead of its transaction, to the nodes of the chunk that it
    /// will lie in (U1); the answer names it. It is kept for a day, or until it is
    /// [dropped](Client::drop_pieces).
    pub fn upload(&self, blob: BlobName, chunk: u64, bytes: Bytes) -> Waiting<PieceRef> {
        let (answer, receiver) = oneshot::channel();
        let call = Call::Stage { blob, chunk, bytes };
        let call = self.driver.call(call, Waiter::Piece(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// Has nodes fill a piece with what a blob had at a moment (U5): at most 4 MiB of one of its
    /// chunks. The moment has to be kept meanwhile. Else it is as with [`Client::upload`].
    pub fn copy(&self, blob: BlobName, chunk: u64, source: PieceSource) -> Waiting<PieceRef> {
        let (answer, receiver) = oneshot::channel();
        let call = Call::Copy { blob, chunk, source };
        let call = self.driver.call(call, Waiter::Piece(answer));
        Waiting::new(&self.driver, call, receiver)
    }

    /// Whether all nodes take payloads ahead of their transactions.
    pub fn may_upload(&self) -> bool {
        self.map().level >= LEVEL_STAGING
    }

    /// Pieces of a chunk are not needed: their space is given back (U2).
    pub fn drop_pieces(&self, blob: BlobName, chunk: u64, ids: Vec<PieceId>) {
        self.driver.call(Call::Unstage { blob, chunk, ids }, Waiter::Nobody);
    }

    /// The newest map that it knows.
    pub fn map(&self) -> Arc<ClusterMap> {
        self.driver.map()
    }

    /// A map that was learned elsewhere.
    pub fn install(&self, map: Arc<ClusterMap>) {
        self.driver.tell(Event::Learn(map));
    }

    /// What it did so far: commits, aborts, reads; the rest is a node's.
    pub fn statistics(&self) -> Statistics {
        self.driver.statistics()
    }

    /// Ends it: calls in flight fail, as does every further one. Does nothing the second time.
    pub fn close(&self) {
        self.driver.close();
        if let Some(clock) = self.clock.lock().take()
            && clock.thread().id() != std::thread::current().id()
        {
            // A panic there has been reported; the calls have failed.
            let _ = clock.join();
        }
        self.control.close();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

/// Tells nodes that snapshots are over (V1), if anybody is left to tell them.
fn end(driver: &Weak<Driver>, began: Vec<Began>) {
    if let Some(driver) = driver.upgrade() {
        driver.end(began);
    }
}
