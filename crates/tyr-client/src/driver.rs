//! Steps the session, one round at a time, and carries out what it says.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use parking_lot::{Condvar, Mutex};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Envelope, Now};
use tyr_protocol::session::{
    Answer, Began, Call, CallId, Effect, Event, LeaseNews, Session, SessionConfig, WatchNews,
};
use tyr_types::{Epoch, Error, Result};

use super::Transport;
use super::answer::{Waiter, closed};
use super::clock::Alarm;
use super::work_queue::{Put, Work, WorkQueue};
use tyr_runtime::clock;
use tyr_runtime::lease_state::LeaseState;
use tyr_runtime::statistics::Statistics;
use tyr_runtime::watch_state::WatchState;

/// Rounds that a caller drives for others before it hands over to the clock's thread: about a
/// millisecond.
const ROUNDS_MAX: u32 = 32;

const _: () = assert!(ROUNDS_MAX > 0);

/// Who closes waits for so long at most until what was begun before has gone out. What has not by
/// then ends by time at the nodes (F6).
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// What there is one of: the session, and who waits for it.
struct State {
    session: Session,
    /// Of the map that the transport knows of.
    epoch: Epoch,
    /// Those whose calls are in flight; bounded as the session's calls are.
    waiters: HashMap<CallId, Waiter, FixedState>,
    /// What the holders of leases know; bounded as the session's leases are.
    leases: HashMap<u64, LeaseState, FixedState>,
    /// What watchers are to be told; bounded as the session's watches are.
    watches: HashMap<u64, WatchState, FixedState>,
    /// Kept for their memory.
    effects: Vec<Effect>,
}

/// What a round leaves to be done without the lock. Kept for its memory.
#[derive(Default)]
struct Round {
    work: Vec<Work>,
    done: Vec<(Waiter, Answer)>,
}

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    commits: AtomicU64,
    aborts: AtomicU64,
    reads: AtomicU64,
    /// Messages that came in while too much waited.
    lost: AtomicU64,
    /// Times that somebody stepped the session.
    rounds: AtomicU64,
}

/// Drives a session.
pub(super) struct Driver {
    queue: Mutex<WorkQueue>,
    /// Wakes who closes, at the end.
    abandoned: Condvar,
    state: Mutex<State>,
    transport: Arc<dyn Transport>,
    /// The moment from which the monotonic clock counts.
    started: Instant,
    pub alarm: Alarm,
    counts: Counts,
    /// The process that it was made in.
    process: u32,
    /// Why nothing more is begun.
    ended: OnceLock<String>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.counts)
    }
}

impl Driver {
    /// Drives the session of the client of this number.
    pub fn new(
        number: u64,
        map: Arc<ClusterMap>,
        config: SessionConfig,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let epoch = map.epoch;
        let session = Session::with_config(number, map, config);
        let (waiters, leases, watches) = Default::default();
        let state = State { session, epoch, waiters, leases, watches, effects: Vec::new() };
        let (queue, abandoned, state) = (Mutex::default(), Condvar::new(), Mutex::new(state));
        let (started, alarm, counts) = (Instant::now(), Alarm::default(), Counts::default());
        let (process, ended) = (std::process::id(), OnceLock::new());
        Self { queue, abandoned, state, transport, started, alarm, counts, process, ended }
    }

    /// Begins a call.
    pub fn call(self: &Arc<Self>, what: Call, waiter: Waiter) -> CallId {
        if let Err(refused) = self.check_alone() {
            waiter.refuse(refused);
            return CallId(0);
        }
        let mut queue = self.queue.lock();
        let call = queue.next_call();
        debug_assert_ne!(call, CallId(0), "that is the number of what was not begun");
        if let Err(refused) = queue.room() {
            drop(queue);
            waiter.refuse(refusal(refused));
            return call;
        }
        let put = queue.put(Work::Call { call, what, waiter });
        drop(queue);
        self.see_to(put);
        call
    }

    /// Whether this is the only client of its number, as far as is known (F4). A process that was
    /// forked has the memory and the sockets of its parent, and none of its threads.
    fn check_alone(&self) -> Result<()> {
        if let Some(why) = self.ended.get() {
            return Err(Error::unavailable(why.clone()));
        }
        check_process(self.process)
    }

    /// Nothing more is begun, for this reason. What was begun ends by its time.
    pub fn end_calls(&self, why: &Error) {
        let _ = self.ended.set(why.message().to_owned());
    }

    /// Nobody waits for a call any more.
    pub fn cancel(self: &Arc<Self>, call: CallId) {
        self.tell(Event::Cancel { call });
    }

    /// Snapshots are over. If too much waits they end by time (V1).
    pub fn end(self: &Arc<Self>, began: Vec<Began>) {
        self.call(Call::End { began }, Waiter::Nobody);
    }

    /// Messages that came in together.
    pub fn receive(self: &Arc<Self>, envelopes: impl IntoIterator<Item = Envelope>) {
        let events = envelopes.into_iter().map(Event::Receive);
        let (put, lost) = self.queue.lock().put_all(events);
        if lost > 0 {
            self.counts.lost.fetch_add(lost, Ordering::Relaxed);
        }
        self.see_to(put);
    }

    /// Something else that the session is told; lost when too much waits.
    pub fn tell(self: &Arc<Self>, event: Event) {
        let put = self.queue.lock().put_all(std::iter::once(event)).0;
        self.see_to(put);
    }

    /// The newest map that the session knows.
    pub fn map(&self) -> Arc<ClusterMap> {
        Arc::clone(self.state.lock().session.map())
    }

    /// What it did so far.
    pub fn statistics(&self) -> Statistics {
        let counts = &self.counts;
        Statistics {
            commits: counts.commits.load(Ordering::Relaxed),
            aborts: counts.aborts.load(Ordering::Relaxed),
            reads: counts.reads.load(Ordering::Relaxed),
            ..Statistics::default()
        }
    }

    /// Nothing more is begun. What was before, as an acknowledgement or a lease that is given
    /// back, has gone out when it returns, unless that takes longer than [`CLOSING_MAX`].
    pub fn close(self: &Arc<Self>) {
        let put = self.queue.lock().close();
        self.see_to(put);
        self.alarm.close();
        let until = Instant::now() + CLOSING_MAX;
        let mut queue = self.queue.lock();
        while !queue.is_abandoned() && !self.abandoned.wait_until(&mut queue, until).timed_out() {}
    }

    /// Microseconds of the monotonic clock.
    fn now(&self) -> Now {
        let since = self.started.elapsed().as_micros();
        let monotonic_us = u64::try_from(since).expect("no client runs for 580,000 years");
        Now { wall_us: clock::now_us(), monotonic_us }
    }

    /// When the monotonic clock is at `at_us`.
    pub fn instant(&self, at_us: u64) -> Instant {
        self.started + std::time::Duration::from_micros(at_us)
    }

    fn see_to(self: &Arc<Self>, put: Put) {
        match put {
            Put::Drive => self.drive(),
            Put::Taken | Put::Full | Put::Closed => {}
        }
    }

    /// Works off what is on the queue, and what comes in meanwhile. Only for who was told to.
    pub fn drive(self: &Arc<Self>) {
        let _guard = Guard(self);
        let mut round = Round::default();
        for rounds in 1.. {
            let mut queue = self.queue.lock();
            let (is_last, is_work) = (queue.is_closed(), queue.take(&mut round.work));
            drop(queue);
            if is_work {
                self.round(&mut round);
            }
            if is_last {
                return self.abandon();
            }
            // A clock that does nothing any more has been closed after the queue.
            if !is_work || (rounds >= ROUNDS_MAX && self.alarm.hand_over()) {
                return;
            }
        }
    }

    fn round(self: &Arc<Self>, round: &mut Round) {
        debug_assert!(round.done.is_empty(), "who was answered has gone");
        let now = self.now();
        let mut is_sending = false;
        let due_us = {
            let state = &mut *self.state.lock();
            for work in round.work.drain(..) {
                let event = match work {
                    Work::Call { call, what, waiter } => {
                        let before = state.waiters.insert(call, waiter);
                        debug_assert!(before.is_none(), "each call has a number of its own");
                        Event::Call { call, what }
                    }
                    Work::Event(event) => event,
                };
                match &event {
                    Event::Cancel { call } => drop(state.waiters.remove(call)),
                    Event::Call { what: Call::GiveBack { lease }, .. } => {
                        state.leases.remove(lease);
                    }
                    Event::Call { what: Call::EndWatch { watch }, .. } => {
                        state.watches.remove(watch);
                    }
                    Event::Call { .. } | Event::Receive(_) | Event::Learn(_) | Event::Tick => {}
                }
                state.session.step(now, event, &mut state.effects);
            }
            debug_assert!(round.work.is_empty(), "all of a round is worked off");
            for effect in state.effects.drain(..) {
                match effect {
                    Effect::Lease { lease, news } => {
                        self.tell_holder(&mut state.leases, lease, news)
                    }
                    Effect::Watch { watch, news } => {
                        tell_watcher(&mut state.watches, watch, news);
                    }
                    Effect::Send { to, envelope } => {
                        is_sending = true;
                        self.transport.send(to, envelope);
                    }
                    Effect::Done { call, answer } => {
                        let waiter = state.waiters.remove(&call);
                        self.note(&mut state.leases, &mut state.watches, waiter.as_ref(), &answer);
                        round.done.extend(waiter.map(|waiter| (waiter, answer)));
                    }
                }
            }
            let map = state.session.map();
            if map.epoch > state.epoch {
                state.epoch = map.epoch;
                self.transport.learn(map);
            }
            debug_assert!(state.epoch >= state.session.map().epoch, "the transport has learned it");
            state.session.due_us()
        };
        if is_sending {
            self.transport.flush();
        }
        self.alarm.set(due_us);
        self.counts.rounds.fetch_add(1, Ordering::Relaxed);
        let driver = Arc::downgrade(self);
        for (waiter, answer) in round.done.drain(..) {
            self.count(&answer);
            waiter.tell(&driver, answer);
        }
    }

    /// There will be news of what is held or watched from now on.
    fn note(
        &self,
        leases: &mut HashMap<u64, LeaseState, FixedState>,
        watches: &mut HashMap<u64, WatchState, FixedState>,
        waiter: Option<&Waiter>,
        answer: &Answer,
    ) {
        match (answer, waiter) {
            (Answer::Leased { lease, until_us }, Some(Waiter::Lease(_, it))) => {
                it.hold_until(self.instant(*until_us));
                leases.insert(*lease, it.clone());
            }
            (Answer::Watching { watch }, Some(Waiter::Watch(_, it))) => {
                watches.insert(*watch, it.clone());
            }
            _ => {}
        }
    }

    /// There is news of a lease.
    fn tell_holder(
        &self,
        leases: &mut HashMap<u64, LeaseState, FixedState>,
        lease: u64,
        news: LeaseNews,
    ) {
        let Some(state) = leases.get(&lease) else { return }; // It was given back just now.
        match news {
            LeaseNews::Held { until_us } => state.hold_until(self.instant(until_us)),
            LeaseNews::Recalled => state.recall(),
            LeaseNews::Lost => {
                state.lose();
                leases.remove(&lease);
            }
        }
    }

    fn count(&self, answer: &Answer) {
        let (counter, n) = match answer {
            Answer::Committed { .. } => (&self.counts.commits, 1),
            Answer::Aborted { .. } => (&self.counts.aborts, 1),
            Answer::Read(_) => (&self.counts.reads, 1),
            Answer::Many { seen, .. } => (&self.counts.reads, seen.len() as u64),
            Answer::Page(_) => (&self.counts.reads, 1),
            Answer::Leased { .. }
            | Answer::Watching { .. }
            | Answer::Notified(_)
            | Answer::Moment { .. }
            | Answer::Staged(_)
            | Answer::Failed(_)
            | Answer::Ended => return,
        };
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Lets everybody go who waits: their ends of the line hear that it was closed.
    fn abandon(&self) {
        let (waiters, leases, watches) = {
            let State { waiters, leases, watches, .. } = &mut *self.state.lock();
            (std::mem::take(waiters), std::mem::take(leases), std::mem::take(watches))
        };
        drop(waiters);
        leases.values().for_each(LeaseState::lose);
        let error = Error::unavailable("the connection to the cluster is closed");
        watches.values().for_each(|watch| watch.end(&error));
        let left = self.queue.lock().abandon();
        drop(left);
        self.abandoned.notify_all();
    }
}

/// There is news of a watch.
fn tell_watcher(watches: &mut HashMap<u64, WatchState, FixedState>, watch: u64, news: WatchNews) {
    let Some(state) = watches.get(&watch) else { return }; // It was ended just now.
    match news {
        WatchNews::Began => state.begin(),
        WatchNews::Changed(changes) => state.change(&changes),
        // Whom there is no room for is waited for until the time is over.
        WatchNews::Notice(notice) => {
            state.notice(notice);
        }
        WatchNews::Ended(abort) => {
            state.end(&abort.into());
            watches.remove(&watch);
        }
    }
}

/// Whether this is the process in which the client was made.
fn check_process(made_in: u32) -> Result<()> {
    match std::process::id() == made_in {
        true => Ok(()),
        false => Err(Error::invalid(
            "this connection to the cluster was made before the process was forked, and is its \
             parent's; connect in each process",
        )),
    }
}

fn refusal(put: Put) -> Error {
    match put {
        Put::Closed => closed(),
        Put::Full | Put::Taken | Put::Drive => {
            Error::unavailable("too many calls of this client wait; retry when some are done")
        }
    }
}

/// Closes the queue when whoever drives panics: nobody would see to what is on it.
struct Guard<'a>(&'a Arc<Driver>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.lock().close();
            self.0.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::ErrorKind;

    #[test]
    fn a_client_is_of_the_process_that_made_it() {
        assert!(check_process(std::process::id()).is_ok());
        let refused = check_process(std::process::id() + 1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.message().contains("forked"));
    }
}
