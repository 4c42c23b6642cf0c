//! Keeps a node of a cluster small: what was applied goes into the base, and the log is cut.
//!
//! ```text
//!   pages of what is remembered ─► checkpoint at log position s, moment F (the clock)
//!     ─► everything up to F is applied, the log is synced to s
//!     ─► fold all chunks up to F ─► promises(s) durable ─► checkpoint(s, F) ─► log below s goes
//! ```
//!
//! The steps, and why they are safe, are in `docs/internals/member.md`. Nothing stops meanwhile:
//! what is written during a fold stays above F. Between folds, older versions that nobody reads go,
//! and memory that was not used for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_protocol::member::Record;
use tyr_protocol::member::checkpoint::CHECKPOINT_PAGE;
use tyr_protocol::wire::{self, Outgoing};
use tyr_store::store::{PromisesWriter, Store};
use tyr_types::{Error, Result, Timestamp};

use crate::agent::holdings::Shortage;
use crate::clock;
use crate::processor::driver::Driver;

/// How often the keeper looks around.
const TICK: Duration = Duration::from_millis(50);

/// Chunks with older versions that are looked at in one tick, while nobody else is worked for: less
/// than a millisecond.
const COLLECT_MAX: usize = 512;

/// After older versions were looked at the node works for others at least so many times as long: a
/// chunk that is written all the time has very many.
const COLLECT_PAUSE: u32 = 50;

/// All chunks with older versions are looked at once in this time at most: versions linger for
/// longer in any case.
const COLLECT_ROUND: Duration = Duration::from_millis(500);

/// How long a fold waits for what is in flight before it gives up and tries again later.
const PATIENCE: Duration = Duration::from_secs(30);

/// The log may grow to this many times its usual size before a fold ends the snapshots that hold it
/// back.
const PATIENCE_FACTOR: u64 = 8;

/// A fold writes all that is remembered of transactions: the log grows by so many times as much
/// before the next, so that what is written twice stays little.
const PROMISES_FACTOR: u64 = 4;

/// After a failed fold the next one waits so long, in microseconds.
const RETRY_US: u64 = 1_000_000;

/// While memory is short a fold begins when this share of the cache has come to what the base
/// lacks.
const DIRTY_SHARE: usize = 8;

/// What the base lacks may come to this share more than the cache; when half of that is left over
/// whatever is forgotten, what is read goes, too.
const DIRTY_OVER: usize = 4;

/// Blobs of dropped keyspaces removed in a tick.
const DROPPED_PER_TICK: usize = 1000;

/// When to fold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Memory for recent operations and cache, in bytes.
    pub cache_bytes: usize,
    /// Bytes of log after which a fold begins.
    pub fold_log_bytes: u64,
    /// Snapshots that were begun this long before a fold are not disturbed by it, in microseconds.
    pub grace_us: u64,
}

impl Limits {
    /// Bytes that the base lacks at which nothing more is let in.
    pub fn dirty_max(self) -> usize {
        self.cache_bytes + self.cache_bytes / DIRTY_OVER
    }

    /// How short memory is with `memory` bytes in it, when `left` were left last of what nobody
    /// needs to have forgotten.
    fn shortage(self, memory: usize, left: usize) -> Shortage {
        match self.cache_bytes {
            cache if left > cache + cache / DIRTY_OVER / 2 => Shortage::Severe,
            cache if memory > cache => Shortage::Short,
            _ => Shortage::None,
        }
    }
}

/// Down to where snapshots are read anywhere in the cluster, as far as is known.
pub(crate) type SnapshotFloor = Arc<dyn Fn() -> Option<Timestamp> + Send + Sync>;

/// Folds, cuts and tidies until it is closed.
pub(crate) struct Keeper {
    driver: Arc<Driver>,
    store: Arc<Store>,
    limits: Limits,
    floor: SnapshotFloor,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keeper({:?})", self.limits)
    }
}

/// The records of a checkpoint on their way to the disk.
struct Promises {
    writer: PromisesWriter,
    outgoing: Outgoing,
}

impl Promises {
    fn begin(store: &Store) -> Result<Self> {
        Ok(Self { writer: store.write_promises()?, outgoing: Outgoing::new() })
    }

    fn push(&mut self, record: &Record) -> Result<()> {
        wire::encode_record(record, &mut self.outgoing);
        self.writer.push(&self.outgoing.take_bytes())
    }

    fn finish(self, sequence: u64) -> Result<u64> {
        self.writer.finish(sequence)
    }
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_wanted: bool,
    folds: u64,
    failure: Option<String>,
    /// Bytes of log after the last fold.
    log_bytes_after: u64,
    /// Memory of blobs that the base lacked something of after the last fold: what was written
    /// meanwhile, and older versions of it that are still read.
    dirty_after: usize,
    /// Bytes of the last checkpoint.
    promises_len: u64,
    retry_at_us: u64,
    /// Bytes of memory that were left when what could be forgotten was forgotten last.
    left_in_memory: usize,
    /// Older versions are not looked at before.
    collect_at: Option<Instant>,
    /// How many chunks are left to be looked at in this round.
    round_left: usize,
    /// The next round begins no earlier.
    round_at: Option<Instant>,
}

impl State {
    /// Whether enough has come to the log or to memory since the last fold that another one is
    /// worth it: what that one left in memory, the next may leave there, too. But while nothing is
    /// let in nothing comes, and then it is always worth it.
    fn is_fold_due(&self, limits: Limits, log_bytes: u64, dirty: usize) -> bool {
        let grown = log_bytes.saturating_sub(self.log_bytes_after);
        let enough = limits.fold_log_bytes.max(PROMISES_FACTOR * self.promises_len);
        let cache = limits.cache_bytes;
        let enough_dirty = (cache / 2).max(self.dirty_after + cache / DIRTY_SHARE);
        grown >= enough || dirty >= enough_dirty.min(limits.dirty_max())
    }
}

impl Keeper {
    /// Keeps what this driver drives.
    pub fn new(driver: Arc<Driver>, limits: Limits, floor: SnapshotFloor) -> Arc<Self> {
        let store = driver.store();
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { driver, store, limits, floor, state, changed })
    }

    /// Runs until the keeper is closed.
    pub fn run(&self) {
        loop {
            let is_wanted = {
                let mut state = self.state.lock();
                if !state.is_wanted && !state.is_closed {
                    self.changed.wait_for(&mut state, TICK);
                }
                if state.is_closed {
                    return;
                }
                std::mem::take(&mut state.is_wanted)
            };
            self.tidy();
            let now_us = clock::now_us();
            if (is_wanted || self.is_fold_due()) && now_us >= self.state.lock().retry_at_us {
                self.fold_and_note(now_us);
            }
        }
    }

    /// Folds, if possible, and ends.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Folds now.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails, or something is in flight for long.
    pub fn fold(&self) -> Result<()> {
        let (mut promises, mut after) = (Promises::begin(&self.store)?, 0);
        loop {
            let page =
                self.driver.look(|engine| engine.member().checkpoint_page(after, CHECKPOINT_PAGE));
            let Some((record, next)) = page else { break };
            promises.push(&record)?;
            after = next;
        }
        let dead = self.store.take_dead();
        let (rest, sequence, at) = self.driver.look(|engine| {
            let rest = engine.checkpoint(after);
            let sequence = engine.journal().next_sequence();
            let clock = engine.member().clock();
            (rest, sequence, engine.holdings().floors().begin_fold(clock))
        });
        let pushed = rest.iter().try_for_each(|record| promises.push(record));
        let folded = self.fold_at(sequence, at, dead, pushed.map(|()| promises));
        self.driver.look(|engine| engine.holdings().floors().end_fold());
        self.state.lock().promises_len = folded?;
        Ok(())
    }

    /// Folds so far, and why the last one failed, if it did.
    pub fn folds(&self) -> (u64, Option<String>) {
        let state = self.state.lock();
        (state.folds, state.failure.clone())
    }

    fn fold_and_note(&self, now_us: u64) {
        let folded = self.fold();
        let log_bytes_after = self.driver.look(|engine| engine.journal().bytes());
        let mut state = self.state.lock();
        state.log_bytes_after = log_bytes_after;
        state.dirty_after = self.store.recent().dirty_memory();
        state.failure = folded.as_ref().err().map(ToString::to_string);
        match folded {
            Ok(()) => state.folds += 1,
            Err(error) => {
                tracing::warn!(%error, "a fold failed; it is tried again");
                state.retry_at_us = now_us + RETRY_US;
            }
        }
    }

    fn is_fold_due(&self) -> bool {
        let dirty = self.store.recent().dirty_memory();
        let log_bytes = self.driver.look(|engine| engine.journal().bytes());
        self.state.lock().is_fold_due(self.limits, log_bytes, dirty)
    }

    fn fold_at(
        &self,
        sequence: u64,
        at: Timestamp,
        dead: Vec<tyr_types::ExtentRef>,
        promises: Result<Promises>,
    ) -> Result<u64> {
        let ready = promises.and_then(|it| self.wait_until_ready(sequence, at).map(|()| it));
        let mut fold = self.store.begin_fold(at, dead);
        let folded = ready.and_then(|promises| {
            let promises_len = promises.finish(sequence)?;
            self.store.extents().sync()?;
            while self.store.fold_some(&mut fold, |_| true)? {
                // What has been folded may leave memory, so that writers find room meanwhile.
                self.tidy();
            }
            Ok(promises_len)
        });
        let promises_len = match folded {
            Ok(promises_len) => promises_len,
            Err(error) => {
                self.store.abandon_fold(fold);
                return Err(error);
            }
        };
        self.store.end_fold(fold, sequence)?;
        self.store.remove_old_promises()?;
        let removal = self.driver.look(|engine| engine.journal().cut(sequence));
        removal.run().map(|()| promises_len)
    }

    /// Whether snapshots below `at` stand in the way of a fold: those known to be in use, while
    /// there is room; and those that began just now, of which nobody has heard yet.
    fn is_read_below(&self, at: Timestamp, clock: Timestamp, log_bytes: u64) -> bool {
        let grown = log_bytes.saturating_sub(self.state.lock().log_bytes_after);
        let is_long = grown > PATIENCE_FACTOR * self.limits.fold_log_bytes;
        let is_full = self.store.recent().dirty_memory() >= self.limits.cache_bytes;
        if is_long || is_full || self.state.lock().is_closed || clock.epoch > at.epoch {
            return false;
        }
        let is_in_use = (self.floor)().is_some_and(|floor| floor < at);
        is_in_use || clock.clock < at.clock + self.limits.grace_us
    }

    /// Waits until everything up to `at` is applied, the log is durable up to there, from
    /// `sequence` on at least, and no snapshot needs what is below.
    fn wait_until_ready(&self, sequence: u64, at: Timestamp) -> Result<()> {
        let (begun, mut tidied) = (Instant::now(), Instant::now());
        // What was applied up to `at` has to be durable before the base has it.
        let mut needed = None;
        loop {
            let seen = self.driver.look(|engine| match engine.failure() {
                Some(failure) => Err(failure.duplicate()),
                None => Ok((
                    engine.member().applied_to() >= at,
                    (engine.journal().synced_to() + 1, engine.journal().next_sequence()),
                    engine.member().clock(),
                    engine.journal().bytes(),
                )),
            });
            let (is_applied, (synced_to, next), clock, log_bytes) = seen?;
            if is_applied && needed.is_none() {
                needed = Some(next.max(sequence));
            }
            let is_synced = needed.is_some_and(|needed| synced_to >= needed);
            let is_ready = is_applied && is_synced;
            if is_ready && !self.is_read_below(at, clock, log_bytes) {
                return Ok(());
            }
            if self.state.lock().is_closed && !is_ready {
                return Err(Error::unavailable("the node stops; it folds when it runs again"));
            }
            if !is_ready && begun.elapsed() > PATIENCE {
                return Err(Error::unavailable(format!(
                    "a fold to {at} waits for what is in flight (applied: {is_applied}, synced: \
                     {is_synced}); it is tried again"
                )));
            }
            if tidied.elapsed() >= TICK {
                self.tidy();
                tidied = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Drops some versions that nobody reads, while nobody else is worked for.
    fn collect(&self, shortage: Shortage) {
        self.driver.look(|engine| {
            let begun = Instant::now();
            let clock = engine.member().clock();
            let holdings = engine.holdings();
            holdings.floors().set_shortage(shortage);
            let readers = |stored: &_| holdings.readers_now(stored, clock);
            let recent = self.store.recent();
            let mut state = self.state.lock();
            if state.round_left == 0 {
                state.round_left = recent.holding();
                state.round_at = Some(begun + COLLECT_ROUND);
            }
            let count = state.round_left.min(COLLECT_MAX);
            recent.collect_chunks(count, readers);
            state.round_left -= count;
            let now = Instant::now();
            let paused = Some(now + (now - begun) * COLLECT_PAUSE);
            let is_over = state.round_left == 0;
            state.collect_at = if is_over { paused.max(state.round_at) } else { paused };
        });
    }

    /// Drops versions that nobody reads, memory that nobody used, keyspaces that are gone.
    fn tidy(&self) {
        let recent = self.store.recent();
        let (is_early, left) = {
            let state = self.state.lock();
            (state.collect_at.is_some_and(|at| Instant::now() < at), state.left_in_memory)
        };
        let shortage = self.limits.shortage(recent.memory(), left);
        if !is_early || shortage != Shortage::None {
            self.collect(shortage);
        }
        recent.shrink(self.limits.cache_bytes);
        self.state.lock().left_in_memory = recent.memory();
        // What is left is removed at the next tick; an error shows up in the next fold.
        let _ = self.store.base().remove_some_dropped(DROPPED_PER_TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { cache_bytes: 800, fold_log_bytes: 1000, grace_us: 0 };

    #[test]
    fn a_fold_is_due_when_the_log_has_grown_or_half_of_the_cache_is_not_in_the_base() {
        let state = State { log_bytes_after: 500, ..State::default() };
        assert!(!state.is_fold_due(LIMITS, 1499, 399));
        assert!(state.is_fold_due(LIMITS, 1500, 0));
        assert!(state.is_fold_due(LIMITS, 500, 400));
        let state = State { promises_len: 500, ..state };
        assert!(!state.is_fold_due(LIMITS, 2499, 0), "a checkpoint is written for more than it");
        assert!(state.is_fold_due(LIMITS, 2500, 0));
    }

    #[test]
    fn readers_give_way_before_writers_do() {
        assert_eq!(LIMITS.shortage(800, 800), Shortage::None);
        assert_eq!(LIMITS.shortage(801, 0), Shortage::Short);
        assert_eq!(LIMITS.shortage(900, 900), Shortage::Short);
        assert_eq!(LIMITS.shortage(901, 901), Shortage::Severe);
        assert_eq!(LIMITS.dirty_max(), 1000);
    }

    #[test]
    fn what_a_fold_left_in_memory_is_no_reason_for_the_next() {
        let state = State { dirty_after: 700, ..State::default() };
        assert!(!state.is_fold_due(LIMITS, 0, 799));
        assert!(state.is_fold_due(LIMITS, 0, 800));
        let state = State { dirty_after: 10, ..State::default() };
        assert!(!state.is_fold_due(LIMITS, 0, 399));
        let state = State { dirty_after: 1200, ..State::default() };
        assert!(!state.is_fold_due(LIMITS, 0, 999));
        assert!(state.is_fold_due(LIMITS, 0, 1000), "nothing is let in before it");
    }
}
