//! The folder: moves recent operations into the base, and tidies up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_store::recent::Readers;
use tyr_types::{Result, Timestamp};

use crate::committer::sync_now;
use crate::inner::Inner;
use crate::snapshot::SnapshotGuard;
use tyr_runtime::clock;

/// How often the folder looks around when nobody calls it.
const TICK: Duration = Duration::from_millis(50);

/// Buffered commits are synced this long after they were written, at the latest.
const SYNC_INTERVAL_US: u64 = 1_000_000;

/// The log may grow to this many times its usual size before a fold ends the snapshots that hold
/// it back.
const PATIENCE: u64 = 8;

/// Blobs of dropped keyspaces removed per tick.
const DROPPED_PER_TICK: usize = 1000;

/// Blobs in memory that are looked at at once, whether they can be forgotten: some 20 ms. Between
/// two steps of a fold, of which each writes less, a good part of all that a cache has.
const FORGET_MAX: usize = 131_072;

const _: () = assert!(TICK.as_micros() < SYNC_INTERVAL_US as u128, "it looks around in time");

/// What the folder remembers between ticks.
#[derive(Debug, Default)]
struct Rounds {
    last_sync_us: u64,
    synced_end: u64,
    log_bytes_after_fold: u64,
    /// After a failure the next try waits until then.
    retry_at_us: u64,
}

/// Runs until it is told to stop.
pub(crate) fn run(inner: &Arc<Inner>) {
    let mut rounds = Rounds { last_sync_us: clock::now_us(), ..Rounds::default() };
    loop {
        let is_wanted = {
            let mut state = inner.folding.state.lock();
            if !state.is_wanted && !state.is_stopping {
                inner.folding.wanted.wait_for(&mut state, TICK);
            }
            if state.is_stopping {
                return;
            }
            std::mem::take(&mut state.is_wanted)
        };
        rounds.tick(inner, is_wanted);
    }
}

impl Rounds {
    fn tick(&mut self, inner: &Arc<Inner>, is_wanted: bool) {
        let now_us = clock::now_us();
        let is_releasing = || inner.store.base().is_releasing();
        let was_releasing = is_releasing();
        tidy(inner, now_us);
        // A fold's checkpoint gives the space back.
        let is_released = was_releasing && !is_releasing();
        let is_due = is_released || self.is_fold_due(inner, is_wanted);
        if is_due && now_us >= self.retry_at_us {
            if fold(inner).is_err() {
                self.retry_at_us = now_us + SYNC_INTERVAL_US;
            }
            self.log_bytes_after_fold = inner.log_bytes();
        }
        if now_us >= self.last_sync_us + SYNC_INTERVAL_US {
            self.last_sync_us = now_us;
            inner.drop_oldest_kept(false);
            self.sync_buffered(inner);
        }
    }

    fn is_fold_due(&self, inner: &Inner, is_wanted: bool) -> bool {
        let dirty = inner.store.recent().dirty_memory();
        let is_log_long =
            inner.log_bytes() >= self.log_bytes_after_fold.max(1) + inner.options.fold_log_bytes;
        // Large payloads that are overwritten make little log; a checkpoint gives their space back.
        let is_much_dead = inner.store.recent().dead().bytes() >= inner.options.fold_log_bytes;
        let is_full = dirty >= inner.options.cache_bytes as usize / 2;
        dirty > 0 && (is_wanted || is_log_long) || is_much_dead || is_full
    }

    /// Syncs what buffered commits have written since the last time.
    fn sync_buffered(&mut self, inner: &Inner) {
        let end = inner.written.load(std::sync::atomic::Ordering::Acquire);
        if inner.check_writable().is_err() {
            return;
        }
        if end != self.synced_end {
            debug_assert!(self.synced_end < end, "what was written stays written");
            self.synced_end = end;
            // A failure refuses all further writes, and says so there.
            let _ = sync_now(inner);
        }
    }
}

/// Ends snapshots that last too long, drops versions that nobody needs, keeps the cache within its
/// budget.
fn tidy(inner: &Inner, now_us: u64) {
    inner.snapshots.expire(now_us);
    collect(inner);
    shrink(inner);
    // What is left is removed at the next tick; an error shows up in the next fold.
    let _ = inner.store.base().remove_some_dropped(DROPPED_PER_TICK);
    let _ = inner.store.base().release_some(DROPPED_PER_TICK);
}

fn shrink(inner: &Inner) {
    inner.store.recent().shrink(inner.options.cache_bytes as usize, FORGET_MAX);
}

/// Drops versions that nobody needs.
fn collect(inner: &Inner) {
    // Together under the arbiter's lock: whoever begins to read later reads at `now` or above.
    let (in_use, now) = {
        let arbiter = inner.arbiter.lock();
        (inner.snapshots.lock().timestamps().to_vec(), arbiter.machine.clock())
    };
    inner.store.recent().collect(usize::MAX, Readers::new(&in_use), now);
}

/// Gives back the space of what is dead, beside the folder, until the store is closed.
pub(crate) fn give_back(inner: &Arc<Inner>) {
    loop {
        {
            let mut state = inner.folding.state.lock();
            if !state.is_stopping {
                inner.folding.done.wait_for(&mut state, TICK);
            }
            if state.is_stopping {
                return;
            }
        }
        give_all_back(inner, || inner.folding.state.lock().is_stopping);
    }
}

/// Gives back all that can be, or until it is to stop.
pub(crate) fn give_all_back(inner: &Inner, is_stopping: impl Fn() -> bool) {
    if let Err(error) = inner.store.base().give_all_back(is_stopping) {
        tracing::warn!(%error, "space could not be given back; it is tried again");
    }
}

/// Folds everything committed so far into the base and lets the log below it go.
pub(crate) fn fold(inner: &Arc<Inner>) -> Result<()> {
    let alone = inner.folding.alone.lock();
    let folded = fold_inner(inner);
    // Before the next fold may begin: it has a moment of its own.
    inner.snapshots.end_fold(|| inner.store.base().kept_unfolded());
    drop(alone);
    let log_bytes = inner.log_bytes();
    let mut state = inner.folding.state.lock();
    state.failure = folded.as_ref().err().map(ToString::to_string);
    state.ended += 1;
    if folded.is_ok() {
        state.log_bytes_after = log_bytes;
    }
    inner.folding.done.notify_all();
    folded
}

fn fold_inner(inner: &Arc<Inner>) -> Result<()> {
    let dead = inner.store.take_dead();
    let begun = begin_fold(inner);
    let (guard, sequence) = match begun {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(()),
        Err(error) => {
            inner.store.recent().dead().give_back(dead);
            return Err(error);
        }
    };
    let mut fold = inner.store.begin_fold(guard.at(), dead);
    fold.take_parts(inner.options.fold_step_bytes, inner.options.cache_bytes as usize / 2);
    let stops = inner.snapshots.stop_fold_at(|| inner.store.base().kept_unfolded());
    fold.stop_at(&stops);
    loop {
        let entries = inner.keyspaces.look();
        let moving = inner.folding.moving.lock();
        let more = inner.store.fold_some(&mut fold, |id| entries.get(id).is_some());
        drop((moving, entries));
        match more {
            // What has been folded may leave memory, so that writers find room meanwhile.
            Ok(true) => {
                shrink(inner);
                inner.folding.done.notify_all();
                inner.drop_oldest_kept(false);
            }
            Ok(false) => break,
            Err(error) => {
                inner.store.abandon_fold(fold);
                inner.drop_oldest_kept(true);
                return Err(error);
            }
        }
    }
    // Had it expired, blobs could have been passed over whose versions are gone.
    if let Err(error) = guard.check() {
        inner.store.abandon_fold(fold);
        return Err(error);
    }
    // What goes now is given back by the checkpoint that follows.
    let _ = inner.store.base().release_some(DROPPED_PER_TICK);
    inner.store.end_fold(fold, sequence)?;
    let removal = inner.arbiter.lock().log.as_mut().map(|log| log.truncate_before(sequence));
    removal.map_or(Ok(()), |removal| removal.run())?;
    inner.counters.folds.add(1);
    inner.drop_oldest_kept(false);
    drop(guard);
    collect(inner);
    Ok(())
}

/// Chooses the fold's moment and the log's end at it, and waits until everything up to there is
/// applied and durable, and nobody reads below.
fn begin_fold(inner: &Arc<Inner>) -> Result<Option<(SnapshotGuard, u64)>> {
    let Some((guard, sequence)) = inner.snapshot_for_fold()? else { return Ok(None) };
    guard.settle()?;
    wait_until_oldest(inner, guard.at())?;
    let oldest = inner.snapshots.oldest();
    debug_assert!(oldest.is_none_or(|oldest| guard.at() <= oldest), "the base passes a reader");
    sync_now(inner)?;
    let synced_to = inner.arbiter.lock().log.as_ref().map(|log| log.synced_to());
    assert!(
        synced_to.is_none_or(|synced_to| sequence <= synced_to + 1),
        "the base would hold what the log can still lose: {sequence}, durable up to {synced_to:?}"
    );
    Ok(Some((guard, sequence)))
}

/// Waits until no snapshot older than `at` is in use; ends them when the log grows too long.
fn wait_until_oldest(inner: &Inner, at: Timestamp) -> Result<()> {
    let mut tidied = Instant::now();
    loop {
        match inner.snapshots.oldest() {
            Some(oldest) if oldest < at => {}
            Some(_) | None => return Ok(()),
        }
        let (is_stopping, log_bytes_after) = {
            let state = inner.folding.state.lock();
            (state.is_stopping, state.log_bytes_after)
        };
        // A segment goes as a whole, so much of what is there may have been folded long ago.
        let unfolded = inner.log_bytes().saturating_sub(log_bytes_after);
        let is_long = unfolded > PATIENCE * inner.options.fold_log_bytes;
        let dirty = inner.store.recent().dirty_memory();
        let is_full = dirty > inner.options.cache_bytes as usize;
        if is_stopping || is_long || is_full {
            inner.snapshots.end_below(at);
            if !inner.snapshots.is_keeping_below(at) {
                return Ok(());
            }
        }
        if tidied.elapsed() >= TICK {
            tidy(inner, clock::now_us());
            tidied = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
