//! The folder: moves recent operations into the base, and tidies up.

use std::sync::Arc;
use std::time::Duration;

use tyr_types::{Error, Result, Timestamp};

use super::committer::sync_now;
use crate::clock;
use crate::processor::Processor;
use crate::statistics::Counters;

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
        tidy(processor, now_us, None);
        if self.is_fold_due(processor, is_wanted) && now_us >= self.retry_at_us {
            if let Err(error) = fold(processor) {
                self.retry_at_us = now_us + SYNC_INTERVAL_US;
                note_failure(processor, &error);
            }
            self.log_bytes_after_fold = log_bytes(processor);
        }
        if now_us >= self.last_sync_us + SYNC_INTERVAL_US {
            self.last_sync_us = now_us;
            self.sync_buffered(processor);
        }
    }

    fn is_fold_due(&self, processor: &Processor, is_wanted: bool) -> bool {
        let dirty = processor.store.recent().dirty_memory();
        let is_log_long = log_bytes(processor)
            >= self.log_bytes_after_fold.max(1) + processor.options.fold_log_bytes;
        dirty > 0 && (is_wanted || is_log_long)
            || dirty >= processor.options.cache_bytes as usize / 2
    }

    /// Syncs what buffered commits have written since the last time.
    fn sync_buffered(&mut self, processor: &Processor) {
        let end = processor.written.load(std::sync::atomic::Ordering::Acquire);
        if end == self.synced_end || processor.check_writable().is_err() {
            return;
        }
        self.synced_end = end;
        // A failure refuses all further writes, and says so there.
        let _ = sync_now(processor);
    }
}

/// Expires snapshots, drops versions that nobody needs, keeps the cache within its budget.
fn tidy(processor: &Processor, now_us: u64, spared: Option<Timestamp>) {
    let timeout_us = processor.options.snapshot_timeout.as_micros();
    let timeout_us = u64::try_from(timeout_us).unwrap_or(u64::MAX);
    processor.snapshots.expire(now_us.saturating_sub(timeout_us), spared);
    collect(processor);
    processor.store.recent().shrink(processor.options.cache_bytes as usize);
    // What is left is removed at the next tick; an error shows up in the next fold.
    let _ = processor.store.base().remove_some_dropped(DROPPED_PER_TICK);
}

fn collect(processor: &Processor) {
    let in_use = processor.snapshots.lock().timestamps().to_vec();
    processor.store.recent().collect(tyr_store::recent::Readers::new(&in_use));
}

/// Folds everything committed so far into the base and lets the log below it go.
pub(crate) fn fold(processor: &Arc<Processor>) -> Result<()> {
    let alone = processor.folding.alone.lock();
    let folded = fold_inner(processor);
    drop(alone);
    let mut state = processor.folding.state.lock();
    state.ended += 1;
    processor.folding.done.notify_all();
    folded
}

fn fold_inner(processor: &Arc<Processor>) -> Result<()> {
    let dead = processor.store.take_dead();
    let Some((guard, sequence)) = processor.snapshot_for_fold()? else { return Ok(()) };
    guard.settle()?;
    wait_until_oldest(processor, guard.at())?;
    sync_now(processor)?;
    let mut fold = processor.store.begin_fold(guard.at(), dead);
    loop {
        let entries = processor.keyspaces.look();
        let more = processor.store.fold_some(&mut fold, |id| entries.keeps_versions(id));
        drop(entries);
        match more {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                processor.store.abandon_fold(fold);
                return Err(error);
            }
        }
    }
    processor.store.end_fold(fold, sequence)?;
    let removal = processor.arbiter.lock().log.as_mut().map(|log| log.truncate_before(sequence));
    removal.map_or(Ok(()), |removal| removal.run())?;
    Counters::add(&processor.counters.folds, 1);
    drop(guard);
    collect(processor);
    Ok(())
}

/// Waits until no snapshot older than `at` is in use; ends them when the log grows too long.
fn wait_until_oldest(processor: &Processor, at: Timestamp) -> Result<()> {
    loop {
        match processor.snapshots.oldest() {
            Some(oldest) if oldest < at => {}
            Some(_) | None => return Ok(()),
        }
        let is_stopping = processor.folding.state.lock().is_stopping;
        let is_long = log_bytes(processor) > PATIENCE * processor.options.fold_log_bytes;
        let dirty = processor.store.recent().dirty_memory();
        let is_full = dirty > processor.options.cache_bytes as usize;
        if is_stopping || is_long || is_full {
            processor.snapshots.expire(u64::MAX, Some(at));
            return Ok(());
        }
        tidy(processor, clock::now_us(), Some(at));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn log_bytes(processor: &Processor) -> u64 {
    processor.arbiter.lock().log.as_ref().map_or(0, |log| log.bytes())
}

fn note_failure(processor: &Processor, error: &Error) {
    *processor.last_fold_error.lock() = Some(error.to_string());
}
