//! A sequencer as a capability that is held by one client at a time, with the counter in its
//! memory.
//!
//! ```text
//!   next() ── held? ── yes ──► the counter, and one                    no message
//!                └──── no ───► in line; the keeper is woken
//!
//!   keeper (a thread):  lock ──► take over the counter ──► those in line ──► wait until it is
//!            ▲                   or recover the log                          recalled, and the
//!            └── leave the counter, give the lock back ◄─────────────────── policy is done
//! ```
//!
//! A position is given out only while the lock's lease is held by this client's clock (K1), and
//! none after the counter was taken out of [`State`] to be left for the next. So of one term none
//! is given twice. A client that stands still between the two, and writes later, meets the seal.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tyr::blocking::Lock;
use tyr::{Error, ErrorKind, LeaseOptions, Result};

use crate::class::NUMBER_END;
use crate::client::Client;
use crate::layout;
use crate::options::{Opening, Policy};
use crate::recovery::Counter;
use crate::sequencer::{Given, Run, Sequencer};

/// How often the keeper looks whether its log was closed or dropped.
const LOOK: Duration = Duration::from_millis(25);

/// How long the keeper waits in line before it looks whether it is still wanted.
const WAIT: Duration = Duration::from_secs(10);

/// Who waits for positions, and for how many.
#[derive(Debug)]
struct Waiter {
    wanted: u64,
    answer: oneshot::Sender<Result<Run>>,
}

/// The sequencer of a client; see the module.
#[derive(Debug)]
pub struct Capability {
    shared: Arc<Shared>,
    client: Arc<Client>,
    options: LeaseOptions,
}

#[derive(Debug)]
struct Shared {
    policy: Policy,
    state: Mutex<State>,
    /// Told when there is something for the keeper to look at.
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: Option<Held>,
    waiters: Vec<Waiter>,
    /// Whether the keeper is to leave, and who waits for that.
    is_closing: bool,
    closers: Vec<oneshot::Sender<()>>,
    /// Whether there is a keeper.
    is_kept: bool,
}

/// The capability, while it is held.
#[derive(Debug)]
struct Held {
    lock: Arc<Lock>,
    counter: Counter,
    /// Positions given since it was got.
    given: u64,
    since: Instant,
    /// When somebody else was first seen to wait for it.
    recalled: Option<Instant>,
}

impl Held {
    /// Until when it may be kept; `None`: nobody else wants it.
    fn until(&self, policy: Policy) -> Option<Instant> {
        let recalled = self.recalled?;
        Some(match policy {
            Policy::BestEffort => recalled,
            Policy::Delay(delay) => recalled + delay,
            Policy::Quota { positions, .. } if self.given >= positions => recalled,
            Policy::Quota { time, .. } => self.since + time,
        })
    }

    /// The next positions, as many as are wanted, if they may still be given.
    fn next(&mut self, policy: Policy, wanted: u64) -> Option<Run> {
        let is_spent = match policy {
            Policy::Quota { positions, .. } => self.recalled.is_some() && self.given >= positions,
            Policy::BestEffort | Policy::Delay(_) => false,
        };
        if is_spent || !self.lock.is_held() || self.counter.next >= NUMBER_END - wanted {
            return None;
        }
        let first = Given { position: self.counter.next, term: self.counter.term };
        self.counter.next += wanted;
        self.given += wanted;
        Some(Run { first, count: wanted, token: self.lock.token() })
    }
}

impl Capability {
    /// Held by nobody yet: the keeper begins with the first who asks.
    pub fn new(client: Arc<Client>, opening: &Opening) -> Self {
        let Opening { policy, lease, holder, .. } = opening;
        let shared = Shared { policy: *policy, state: Mutex::default(), woken: Condvar::new() };
        let options = LeaseOptions::exclusive().duration(*lease).wait(WAIT).holder(holder);
        Self { shared: Arc::new(shared), client, options }
    }

    /// So many positions, at once or when it is this program's turn.
    pub async fn next_run(&self, wanted: u64) -> Result<Run> {
        match self.ask(wanted)? {
            Ok(run) => Ok(run),
            Err(turn) => turn.await.unwrap_or_else(|_| {
                Err(Error::unavailable("the log was closed while this waited for its turn"))
            }),
        }
    }

    /// Gives the sequencer back, and waits no longer than this for that.
    pub fn leave(&self, within: Duration) {
        if let Some(closed) = self.begin_to_close() {
            let _ = closed.recv_timeout(within);
        }
    }

    /// Has the keeper leave; answers when it has, if there is one.
    fn begin_to_close(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.shared.state.lock();
        state.is_closing = true;
        state.is_kept.then(|| {
            let (closer, closed) = oneshot::channel();
            state.closers.push(closer);
            self.shared.woken.notify_all();
            closed
        })
    }

    /// Positions, or a place in line.
    fn ask(&self, wanted: u64) -> Result<Result<Run, oneshot::Receiver<Result<Run>>>> {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.is_closing {
            return Err(Error::unavailable("the log was closed: open it anew"));
        }
        if let Some(run) = state.held.as_mut().and_then(|held| held.next(shared.policy, wanted)) {
            return Ok(Ok(run));
        }
        let (answer, turn) = oneshot::channel();
        state.waiters.push(Waiter { wanted, answer });
        if !state.is_kept {
            let keeper = Keeper {
                shared: Arc::downgrade(shared),
                client: Arc::clone(&self.client),
                options: self.options.clone(),
                policy: shared.policy,
            };
            std::thread::Builder::new()
                .name("tyr-zlog".to_owned())
                .spawn(move || keeper.run())
                .map_err(|error| Error::io("starting the thread of a sequencer", error))?;
            state.is_kept = true;
        }
        shared.woken.notify_all();
        Ok(Err(turn))
    }
}

impl Sequencer for Capability {
    fn next(&self) -> BoxFuture<'_, Result<Given>> {
        Box::pin(async { self.next_run(1).await.map(|run| run.first) })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            if let Some(closed) = self.begin_to_close() {
                // The keeper drops it when it ends otherwise.
                let _ = closed.await;
            }
            Ok(())
        })
    }
}

/// Dropped without [`Sequencer::close`]: the keeper gives the lock back and leaves no counter, as
/// if this client had died.
impl Drop for Capability {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.held = None;
        state.is_closing = true;
        self.shared.woken.notify_all();
    }
}

/// The thread that gets the lock, and gives it back.
struct Keeper {
    shared: Weak<Shared>,
    client: Arc<Client>,
    options: LeaseOptions,
    policy: Policy,
}

impl Keeper {
    fn run(self) {
        while self.is_wanted() {
            match self.get() {
                Ok((lock, counter)) => self.hold(lock, counter),
                // Somebody else keeps it, and is waited for.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => self.with(|state, _| {
                    for waiter in state.waiters.drain(..) {
                        let _ = waiter.answer.send(Err(error.duplicate()));
                    }
                }),
            }
        }
        // First it lets go of the store: who waits for its end may open that anew.
        let Self { shared, client, .. } = self;
        drop(client);
        if let Some(shared) = shared.upgrade() {
            let mut state = shared.state.lock();
            state.is_kept = false;
            state.waiters.clear();
            state.closers.clear();
        }
    }

    /// Does something with the state, if there still is one.
    fn with(&self, act: impl FnOnce(&mut MutexGuard<'_, State>, &Shared)) {
        if let Some(shared) = self.shared.upgrade() {
            act(&mut shared.state.lock(), &shared);
        }
    }

    /// Waits until somebody here is in line; false when the log was closed.
    fn is_wanted(&self) -> bool {
        loop {
            let Some(shared) = self.shared.upgrade() else { return false };
            let mut state = shared.state.lock();
            if state.is_closing {
                return false;
            }
            // Who does not wait any more is not in line.
            state.waiters.retain(|waiter| !waiter.answer.is_closed());
            if !state.waiters.is_empty() {
                return true;
            }
            // Not for longer, so that a log that is dropped is noticed.
            shared.woken.wait_for(&mut state, LOOK * 40);
        }
    }

    fn get(&self) -> Result<(Lock, Counter)> {
        let lock =
            self.client.keyspace.lock(layout::lock_key(&self.client.name)?, &self.options)?;
        let counter = self.client.take_over(&lock)?;
        Ok((lock, counter))
    }

    /// Has the capability until it is to be given back, and gives it back.
    fn hold(&self, lock: Lock, counter: Counter) {
        let lock = Arc::new(lock);
        self.with(|state, shared| {
            let State { held, waiters, .. } = &mut **state;
            let held = held.insert(Held {
                lock: Arc::clone(&lock),
                counter,
                given: 0,
                since: Instant::now(),
                recalled: None,
            });
            // Whoever is in line gets one, whatever others want meanwhile: it was not in vain.
            let mut line = std::mem::take(waiters).into_iter();
            for waiter in line.by_ref().filter(|waiter| !waiter.answer.is_closed()) {
                match held.next(shared.policy, waiter.wanted) {
                    Some(run) => drop(waiter.answer.send(Ok(run))),
                    None => {
                        waiters.push(waiter);
                        break;
                    }
                }
            }
            waiters.extend(line);
        });
        while self.is_kept_on(&lock) {}
        let mut left = None;
        self.with(|state, _| left = state.held.take().map(|held| held.counter));
        if let Some(counter) = left.filter(|_| lock.is_held()) {
            // If it does not come to be, whoever is next recovers the log.
            let _ = self.client.leave(&lock, counter);
        }
    }

    /// Waits a little; whether the capability is to be kept after that.
    fn is_kept_on(&self, lock: &Lock) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let mut state = shared.state.lock();
        let Some(held) = state.held.as_ref().filter(|held| held.lock.is_held()) else {
            return false;
        };
        if state.is_closing {
            return false;
        }
        if let Some(until) = held.until(self.policy) {
            let now = Instant::now();
            if now < until {
                shared.woken.wait_until(&mut state, until.min(now + LOOK));
            }
            return now < until;
        }
        drop(state);
        if lock.recalled_within(LOOK) {
            let mut state = shared.state.lock();
            if let Some(held) = state.held.as_mut() {
                held.recalled = Some(Instant::now());
            }
        }
        true
    }
}
