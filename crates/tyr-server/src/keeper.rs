//! Keeps a node of a cluster small: what was applied goes into the base, and the log is cut.
//!
//! The steps of a fold are `tyr_engine::fold`'s; here is when it begins, how long it waits for what
//! is in flight and for readers, and what goes between folds: older versions that nobody reads, and
//! memory that was not used for long. Nothing stops meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_engine::fold::{Folding, Progress, Seen};
use tyr_engine::holdings::Shortage;
use tyr_engine::need::{LastFold, Limits};
use tyr_engine::tidy::{self, Tidying};
use tyr_store::store::Store;
use tyr_types::{Error, Result, Timestamp};

use crate::driver::{Driver, Looking};
use tyr_runtime::clock;

/// How often the keeper looks around.
const TICK: Duration = Duration::from_millis(50);

/// After older versions were looked at the node works for others at least so many times as long: a
/// chunk that is written all the time has very many. When memory is short they have to go.
const COLLECT_PAUSE: u32 = 50;
const COLLECT_PAUSE_SHORT: u32 = 3;

/// Older versions are looked at again and again for so long, while others may work in between.
/// Long enough that a pause is not much longer than [`TICK`] makes it.
const COLLECT_TIME: Duration = Duration::from_millis(1);
const COLLECT_TIME_SHORT: Duration = Duration::from_millis(15);

/// All chunks with older versions are looked at once in this time at most: versions linger for
/// longer in any case.
const COLLECT_ROUND: Duration = Duration::from_millis(500);

/// How long a fold waits for what is in flight before it gives up and tries again later.
const PATIENCE: Duration = Duration::from_secs(30);

/// After a failed fold the next one waits so long, in microseconds.
const RETRY_US: u64 = 1_000_000;

const _: () = assert!(TICK.as_millis() < COLLECT_ROUND.as_millis());
const _: () = assert!(TICK.as_micros() < RETRY_US as u128, "a failed fold is not tried at once");
const _: () = assert!(COLLECT_ROUND.as_millis() < PATIENCE.as_millis() && COLLECT_PAUSE > 0);

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

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_wanted: bool,
    folds: u64,
    failure: Option<String>,
    last: LastFold,
    retry_at_us: u64,
    tidying: Tidying,
    /// Older versions are not looked at before.
    collect_at: Option<Instant>,
    /// The next round begins no earlier.
    round_at: Option<Instant>,
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
            self.tidy(tidy::FORGET_MAX);
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

    /// Folds as soon as it can, whatever there is to fold.
    pub fn fold_soon(&self) {
        self.state.lock().is_wanted = true;
        self.changed.notify_all();
    }

    /// Folds now.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails, or something is in flight for long.
    pub fn fold(&self) -> Result<()> {
        let mut folding = Folding::begin(&self.store)?;
        let (mut begun, mut tidied) = (None, Instant::now());
        let mut access = Looking(&self.driver);
        loop {
            match folding.step(&mut access, |seen| !self.is_read_below(seen))? {
                Progress::Steps => {}
                // What has been folded may leave memory, so that writers find room meanwhile.
                Progress::Folded => self.tidy(tidy::FORGET_FOLDED_MAX),
                Progress::Waits(seen) => {
                    let begun = *begun.get_or_insert_with(Instant::now);
                    if let Err(error) = self.check_patience(&seen, begun) {
                        folding.abandon(&mut access);
                        return Err(error);
                    }
                    if tidied.elapsed() >= TICK {
                        self.tidy(tidy::FORGET_MAX);
                        tidied = Instant::now();
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                Progress::Ended { promises_len } => {
                    self.state.lock().last.promises_len = promises_len;
                    return Ok(());
                }
            }
        }
    }

    /// Folds so far, and why the last one failed, if it did.
    pub fn folds(&self) -> (u64, Option<String>) {
        let state = self.state.lock();
        (state.folds, state.failure.clone())
    }

    fn fold_and_note(&self, now_us: u64) {
        debug_assert!(self.state.lock().retry_at_us <= now_us, "a failed fold is waited after");
        let folded = self.fold();
        let log_bytes = self.driver.look(|engine| engine.journal().bytes());
        let mut state = self.state.lock();
        match (&state.failure, &folded) {
            (None, Err(error)) => {
                self.driver.remarks.say(format!("a fold failed; it is tried again: {error}"));
            }
            (Some(_), Ok(())) => self.driver.remarks.say("folds succeed again"),
            (None, Ok(())) | (Some(_), Err(_)) => {}
        }
        state.last.log_bytes = log_bytes;
        state.last.dirty = self.store.recent().dirty_memory();
        state.failure = folded.as_ref().err().map(ToString::to_string);
        debug_assert_eq!(state.failure.is_some(), folded.is_err(), "why it failed is kept");
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
        let dead_bytes = self.store.recent().dead().bytes();
        self.state.lock().last.is_due(self.limits, log_bytes, dirty, dead_bytes)
    }

    /// Whether snapshots below a fold's moment stand in its way: those known to be in use, while
    /// there is room; and those that began just now, of which nobody has heard yet.
    fn is_read_below(&self, seen: &Seen) -> bool {
        let Seen { at, clock, log_bytes, .. } = *seen;
        let is_full = self.store.recent().dirty_memory() >= self.limits.cache_bytes;
        let (is_long, is_closed) = {
            let state = self.state.lock();
            (state.last.is_long(self.limits, log_bytes), state.is_closed)
        };
        if is_long || is_full || is_closed || clock.epoch > at.epoch {
            return false;
        }
        let is_in_use = (self.floor)().is_some_and(|floor| floor < at);
        is_in_use || clock.clock < at.clock + self.limits.grace_us
    }

    /// Whether a fold that began to wait then waits on.
    fn check_patience(&self, seen: &Seen, begun: Instant) -> Result<()> {
        let Seen { at, is_applied, is_synced, .. } = *seen;
        if seen.is_ready() {
            return Ok(());
        }
        if self.state.lock().is_closed {
            return Err(Error::unavailable("the node stops; it folds when it runs again"));
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::unavailable(format!(
                "a fold to {at} waits for what is in flight (applied: {is_applied}, synced: \
                 {is_synced}); it is tried again"
            )));
        }
        Ok(())
    }

    /// Drops some versions that nobody reads, a few at a time, while nobody else is worked for.
    fn collect(&self, shortage: Shortage) {
        let (time, pause) = match shortage {
            Shortage::None => (COLLECT_TIME, COLLECT_PAUSE),
            Shortage::Short | Shortage::Severe => (COLLECT_TIME_SHORT, COLLECT_PAUSE_SHORT),
        };
        let mut spent = Duration::ZERO;
        let mut is_over = false;
        while !is_over && spent < time {
            self.driver.look(|engine| {
                let begun = Instant::now();
                let mut state = self.state.lock();
                if self.store.recent().begins_round() {
                    state.round_at = Some(begun + COLLECT_ROUND);
                }
                is_over = state.tidying.collect(engine, shortage);
                spent += begun.elapsed();
            });
        }
        self.state.lock().collect_at = Some(Instant::now() + spent * pause);
    }

    /// Drops versions that nobody reads, memory that nobody used, of so many chunks, and keyspaces
    /// that are gone.
    fn tidy(&self, forget_max: usize) {
        let (is_early, shortage) = {
            let state = self.state.lock();
            let shortage = state.tidying.shortage(&self.store, self.limits);
            let is_before = |at: Option<Instant>| at.is_some_and(|at| Instant::now() < at);
            // When memory is short no round waits.
            let is_round = shortage == Shortage::None && self.store.recent().begins_round();
            let is_early = is_before(state.collect_at) || (is_round && is_before(state.round_at));
            (is_early, shortage)
        };
        if !is_early {
            self.collect(shortage);
        }
        self.state.lock().tidying.forget(&self.store, self.limits.cache_bytes, forget_max);
        tidy::remove_dropped(&self.store);
    }
}
