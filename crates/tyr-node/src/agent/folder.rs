//! The folder: moves recent operations into the base, and tidies up.

use std::sync::Arc;
use std::time::Duration;

use tyr_types::{Result, Timestamp};

use super::committer::sync_now;
use crate::clock;
use crate::processor::Processor;
use crate::processor::snapshot::SnapshotGuard;

/// How often the folder looks around when nobody calls it.
const TICK: Duration = Duration::from_millis(50);

/// Buffered commits are synced this long after they were written, at the latest.
const SYNC_INTERVAL_US: u64 = 1_000_000;

/// The log may grow to this many times its usual size before a fold ends the snapshots that hold
/// it back.
const PATIENCE: u64 = 8;

/// Blobs of dropped keyspaces removed per tick.
const DROPPED_PER_TICK: usize = 1000;

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
pub(crate) fn run(processor: &Arc<Processor>) {
    let mut rounds = Rounds { last_sync_us: clock::now_us(), ..Rounds::default() };
    loop {
        let is_wanted = {
            let mut state = processor.folding.state.lock();
            if !state.is_wanted && !state.is_stopping {
                processor.folding.wanted.wait_for(&mut state, TICK);
            }
            if state.is_stopping {
                return;
            }
            std::mem::take(&mut state.is_wanted)
        };
        rounds.tick(processor, is_wanted);
    }
}

impl Rounds {
    fn tick(&mut self, processor: &Arc<Processor>, is_wanted: bool) {
        let now_us = clock::now_us();
        tidy(processor, now_us);
        if self.is_fold_due(processor, is_wanted) && now_us >= self.retry_at_us {
            if fold(processor).is_err() {
                self.retry_at_us = now_us + SYNC_INTERVAL_US;
            }
            self.log_bytes_after_fold = processor.log_bytes();
        }
        if now_us >= self.last_sync_us + SYNC_INTERVAL_US {
            self.last_sync_us = now_us;
            self.sync_buffered(processor);
        }
    }

    fn is_fold_due(&self, processor: &Processor, is_wanted: bool) -> bool {
        let dirty = processor.store.recent().dirty_memory();
        let is_log_long = processor.log_bytes()
            >= self.log_bytes_after_fold.max(1) + processor.options.fold_log_bytes;
        dirty > 0 && (is_wanted || is_log_long)
            || dirty >= processor.options.cache_bytes as usize / 2
    }

    /// Syncs what buffered commits have written since the last time.
    fn sync_buffered(&mut self, processor: &Processor) {
        let end = processor.written.load(std::sync::atomic::Ordering::Acquire);
        if processor.check_writable().is_err() {
            return;
        }
        if end != self.synced_end {
            self.synced_end = end;
            // A failure refuses all further writes, and says so there.
            let _ = sync_now(processor);
        }
    }
}

/// Ends snapshots that last too long, drops versions that nobody needs, keeps the cache within its
/// budget.
fn tidy(processor: &Processor, now_us: u64) {
    processor.snapshots.expire(now_us);
    collect(processor);
    shrink(processor);
    // What is left is removed at the next tick; an error shows up in the next fold.
    let _ = processor.store.base().remove_some_dropped(DROPPED_PER_TICK);
}

fn shrink(processor: &Processor) {
    processor.store.recent().shrink(processor.options.cache_bytes as usize);
}

fn collect(processor: &Processor) {
    // Together under the arbiter's lock: whoever begins to read later reads at `now` or above.
    let (in_use, now) = {
        let arbiter = processor.arbiter.lock();
        (processor.snapshots.lock().timestamps().to_vec(), arbiter.machine.clock())
    };
    processor.store.recent().collect(tyr_store::recent::Readers::new(&in_use), now);
}

/// Folds everything committed so far into the base and lets the log below it go.
pub(crate) fn fold(processor: &Arc<Processor>) -> Result<()> {
    let alone = processor.folding.alone.lock();
    let folded = fold_inner(processor);
    // Before the next fold may begin: it has a moment of its own.
    processor.snapshots.end_fold();
    drop(alone);
    let log_bytes = processor.log_bytes();
    let mut state = processor.folding.state.lock();
    state.failure = folded.as_ref().err().map(ToString::to_string);
    state.ended += 1;
    if folded.is_ok() {
        state.log_bytes_after = log_bytes;
    }
    processor.folding.done.notify_all();
    folded
}

fn fold_inner(processor: &Arc<Processor>) -> Result<()> {
    let dead = processor.store.take_dead();
    let begun = begin_fold(processor);
    let (guard, sequence) = match begun {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(()),
        Err(error) => {
            processor.store.recent().dead().give_back(dead);
            return Err(error);
        }
    };
    let mut fold = processor.store.begin_fold(guard.at(), dead);
    loop {
        let entries = processor.keyspaces.look();
        let more = processor.store.fold_some(&mut fold, |id| entries.get(id).is_some());
        drop(entries);
        match more {
            // What has been folded may leave memory, so that writers find room meanwhile.
            Ok(true) => shrink(processor),
            Ok(false) => break,
            Err(error) => {
                processor.store.abandon_fold(fold);
                return Err(error);
            }
        }
    }
    // Had it expired, blobs could have been passed over whose versions are gone.
    if let Err(error) = guard.check() {
        processor.store.abandon_fold(fold);
        return Err(error);
    }
    processor.store.end_fold(fold, sequence)?;
    let removal = processor.arbiter.lock().log.as_mut().map(|log| log.truncate_before(sequence));
    removal.map_or(Ok(()), |removal| removal.run())?;
    processor.counters.folds.add(1);
    drop(guard);
    collect(processor);
    Ok(())
}

/// Chooses the fold's moment and the log's end at it, and waits until everything up to there is
/// applied and durable, and nobody reads below.
fn begin_fold(processor: &Arc<Processor>) -> Result<Option<(SnapshotGuard, u64)>> {
    let Some((guard, sequence)) = processor.snapshot_for_fold()? else { return Ok(None) };
    guard.settle()?;
    wait_until_oldest(processor, guard.at())?;
    sync_now(processor)?;
    Ok(Some((guard, sequence)))
}

/// Waits until no snapshot older than `at` is in use; ends them when the log grows too long.
fn wait_until_oldest(processor: &Processor, at: Timestamp) -> Result<()> {
    loop {
        match processor.snapshots.oldest() {
            Some(oldest) if oldest < at => {}
            Some(_) | None => return Ok(()),
        }
        let (is_stopping, log_bytes_after) = {
            let state = processor.folding.state.lock();
            (state.is_stopping, state.log_bytes_after)
        };
        // A segment goes as a whole, so much of what is there may have been folded long ago.
        let unfolded = processor.log_bytes().saturating_sub(log_bytes_after);
        let is_long = unfolded > PATIENCE * processor.options.fold_log_bytes;
        let dirty = processor.store.recent().dirty_memory();
        let is_full = dirty > processor.options.cache_bytes as usize;
        if is_stopping || is_long || is_full {
            processor.snapshots.end_below(at);
            return Ok(());
        }
        tidy(processor, clock::now_us());
        std::thread::sleep(Duration::from_millis(1));
    }
}
